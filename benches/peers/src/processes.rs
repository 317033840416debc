//! Listing processes: the PIDs alone, and the PIDs with the names of their commands.

use crate::contenders::{Answer, Contender};
use crate::directories::Directory;
use lendir::{Buffer, Entries};
use std::ffi::OsString;
use std::io::{self, PipeWriter, Write};
use std::process::{Child, Command};

#[allow(dead_code, reason = "its `main` is another program's")]
#[path = "../../../examples/pids.rs"]
mod example;

pub const LENDIR_PIDS: &str = "lendir, numeric_name";
pub const PROCFS_PIDS: &str = "procfs all_processes";
pub const LENDIR_NAMES: &str = "examples/pids.rs";
pub const STD_NAMES: &str = "std::fs, read_to_string";

/// The sum of the PIDs, and `-q` of the example, which writes them.
pub fn pids(proc: &Directory) -> Vec<Contender<'_>> {
    let mut buffer = Buffer::new();
    let lendir = move || {
        let proc = lendir::open(&*proc.path).expect("procfs");
        let mut entries = Entries::new(&proc, &mut buffer);
        let mut sum = 0;
        while let Some(entry) = entries.next().expect("an entry") {
            sum += entry.numeric_name().map_or(0, u64::from);
        }
        sum
    };
    let procfs = || {
        let processes = procfs::process::all_processes().expect("procfs");
        processes.filter_map(|process| u64::try_from(process.ok()?.pid()).ok()).sum()
    };
    vec![
        Contender::new(LENDIR_PIDS, Answer::By(sum_by_std), lendir),
        text("examples/pids.rs -q", pids_by_std, len_of_pids, |out| by_example(["-q"], out)),
        Contender::new("std::fs::read_dir, parse", Answer::By(sum_by_std), || sum_by_std(proc)),
        Contender::new(PROCFS_PIDS, Answer::By(sum_by_std), procfs),
    ]
}

/// A line of text for each process: its PID and the name of its command.
pub fn names() -> Vec<Contender<'static>> {
    let procfs = |out: &mut Vec<u8>| {
        for process in procfs::process::all_processes().expect("procfs").flatten() {
            let Ok(stat) = process.stat() else { continue };
            writeln!(out, "{} {}", stat.pid, stat.comm).expect("BUG: memory is written to");
        }
    };
    vec![
        text(LENDIR_NAMES, names_by_std, len_of_names, |out| by_example([], out)),
        text(STD_NAMES, names_by_std, len_of_names, names_by_std),
        text("procfs, stat().comm", names_by_std, len_of_names, procfs),
    ]
}

fn std_pids() -> impl Iterator<Item = (u32, std::fs::DirEntry)> {
    std::fs::read_dir("/proc").expect("procfs").filter_map(|entry| {
        let entry = entry.expect("an entry");
        Some((entry.file_name().to_str()?.parse().ok()?, entry))
    })
}

fn sum_by_std(_: &Directory) -> u64 {
    std_pids().map(|(pid, _)| u64::from(pid)).sum()
}

fn by_example<const N: usize>(args: [&str; N], out: &mut Vec<u8>) {
    example::pids(args.into_iter().map(OsString::from), out).expect("processes");
}

fn pids_by_std(out: &mut Vec<u8>) {
    std_pids().for_each(|(pid, _)| writeln!(out, "{pid}").expect("BUG: memory is written to"));
}

fn names_by_std(out: &mut Vec<u8>) {
    for (pid, entry) in std_pids() {
        let Ok(name) = std::fs::read_to_string(entry.path().join("comm")) else { continue };
        writeln!(out, "{pid} {}", name.trim_end_matches('\n')).expect("BUG: memory is written to");
    }
}

fn len_of_pids(_: &Directory) -> u64 {
    Text(Vec::new()).write(pids_by_std).len() as u64
}

fn len_of_names(_: &Directory) -> u64 {
    Text(Vec::new()).write(names_by_std).len() as u64
}

/// Memory to write to, as a lister would to its standard output.
struct Text(Vec<u8>);

impl Text {
    fn write(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> &[u8] {
        self.0.clear();
        write(&mut self.0);
        &self.0
    }
}

/// The contender that answers with the length of its text, once the text is known to be that of `by_std`.
fn text<'a>(
    name: &'static str,
    by_std: fn(&mut Vec<u8>),
    len_by_std: fn(&Directory) -> u64,
    mut write: impl FnMut(&mut Vec<u8>) + 'a,
) -> Contender<'a> {
    let (mut text, mut expected) = (Text(Vec::new()), Text(Vec::new()));
    let agrees = (0..100).any(|_| text.write(&mut write) == expected.write(by_std));
    assert!(agrees, "{name} does not write what std does");
    Contender::new(name, Answer::By(len_by_std), move || text.write(&mut write).len() as u64)
}

/// Processes that do nothing, as long as this value lives.
pub struct Idle {
    children: Vec<Child>,
    hold: Option<PipeWriter>,
}

impl Idle {
    /// What the first argument of this program is when it is to be such a process.
    const ARGUMENT: &str = "--idle";

    pub fn processes(count: usize) -> io::Result<Self> {
        let (end, hold) = io::pipe()?;
        let mut idle = Self { children: Vec::new(), hold: Some(hold) };
        for _ in 0..count {
            let program = std::env::current_exe()?;
            let child = Command::new(program).arg(Self::ARGUMENT).stdin(end.try_clone()?).spawn()?;
            idle.children.push(child);
        }
        Ok(idle)
    }

    /// Whether this is one of them; then its time is over, because the other end of its standard input was closed.
    pub fn was_it() -> bool {
        let is_it = std::env::args().nth(1).is_some_and(|arg| arg == Self::ARGUMENT);
        is_it && io::copy(&mut io::stdin(), &mut io::sink()).is_ok()
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        self.hold = None;
        for child in &mut self.children {
            let _ = child.wait();
        }
    }
}
