//! Listing processes: the PIDs alone, and the PIDs with the names of their commands.

use lendir::{Buffer, Entries};
use lendir_benches::contender::{Contender, Oracle, hash};
use std::ffi::OsString;
use std::io::Write;

#[allow(dead_code, reason = "its `main` is another program's")]
#[allow(clippy::unnecessary_debug_formatting, reason = "`OsStr::display` is newer than the example's Rust")]
#[path = "../../../examples/pids.rs"]
mod example;

/// The sum of the PIDs, and the text that the example writes of them.
pub fn pids() -> Vec<Contender<'static>> {
    let mut buffer = Buffer::new();
    let lendir = move || {
        let proc = lendir::open("/proc").expect("cannot read /proc");
        let mut entries = Entries::new(&proc, &mut buffer);
        let mut sum = 0;
        while let Some(entry) = entries.next().expect("cannot read the directory") {
            sum += entry.numeric_name().map_or(0, u64::from);
        }
        sum
    };
    let procfs = || {
        let processes = procfs::process::all_processes().expect("cannot read /proc");
        processes.filter_map(|process| u64::try_from(process.ok()?.pid()).ok()).sum()
    };
    let oracle = || Oracle::new("/proc", true, sum_by_std);
    vec![
        Contender::counting("numeric_name", oracle(), lendir),
        text("examples/pids.rs -q", pids_by_std, |out| by_example(["-q"], out)),
        Contender::counting("std, parse", oracle(), sum_by_std),
        Contender::counting("procfs, all_processes", oracle(), procfs),
    ]
}

/// A line of text for each process: its PID and the name of its command.
pub fn names() -> Vec<Contender<'static>> {
    let procfs = |out: &mut Vec<u8>| {
        for process in procfs::process::all_processes().expect("cannot read /proc").flatten() {
            let Ok(stat) = process.stat() else { continue };
            writeln!(out, "{} {}", stat.pid, stat.comm).expect("BUG: writing to a `Vec` failed");
        }
    };
    vec![
        text("examples/pids.rs", names_by_std, |out| by_example([], out)),
        text("std, read_to_string", names_by_std, names_by_std),
        text("procfs, stat", names_by_std, procfs),
    ]
}

fn std_pids() -> impl Iterator<Item = (u32, std::fs::DirEntry)> {
    std::fs::read_dir("/proc").expect("cannot read /proc").filter_map(|entry| {
        let entry = entry.expect("cannot read the directory");
        Some((entry.file_name().to_str()?.parse().ok()?, entry))
    })
}

fn sum_by_std() -> u64 {
    std_pids().map(|(pid, _)| u64::from(pid)).sum()
}

fn by_example<const N: usize>(args: [&str; N], out: &mut Vec<u8>) {
    example::pids(args.into_iter().map(OsString::from), out).expect("the example failed to list the processes");
}

fn pids_by_std(out: &mut Vec<u8>) {
    std_pids().for_each(|(pid, _)| writeln!(out, "{pid}").expect("BUG: writing to a `Vec` failed"));
}

fn names_by_std(out: &mut Vec<u8>) {
    for (pid, entry) in std_pids() {
        let Ok(name) = std::fs::read_to_string(entry.path().join("comm")) else { continue };
        writeln!(out, "{pid} {}", name.trim_end_matches('\n')).expect("BUG: writing to a `Vec` failed");
    }
}

/// The contender that writes text to memory, as a lister would to its standard output.
fn text(
    name: &'static str,
    by_std: fn(&mut Vec<u8>),
    mut write: impl FnMut(&mut Vec<u8>) + 'static,
) -> Contender<'static> {
    let oracle = Oracle::new("/proc", true, move || {
        let mut out = Vec::new();
        by_std(&mut out);
        hash([out])
    });
    let fill = move |out: &mut Vec<u8>| {
        out.clear();
        write(out);
    };
    Contender::filling(name, oracle, Vec::new(), fill, |out| hash([out]))
}
