//! Listing processes: the sum of their PIDs.

use lendir::{Buffer, Entries};
use lendir_benches::contender::{Contender, Oracle};
use std::os::fd::AsFd;

pub fn pids() -> Vec<Contender<'static>> {
    let mut buffer = Buffer::new();
    let lendir = move || {
        let proc = lendir::open("/proc").expect("cannot read /proc");
        let mut entries = Entries::new(proc.as_fd(), &mut buffer);
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
    let by_std = || {
        let entries = std::fs::read_dir("/proc").expect("cannot read /proc");
        let names = entries.map(|entry| entry.expect("cannot read the directory").file_name());
        names.filter_map(|name| name.to_str()?.parse::<u64>().ok()).sum()
    };
    let oracle = || Oracle::new("/proc", true, by_std);
    vec![
        Contender::counting("std::fs::read_dir, parse", oracle(), by_std),
        Contender::counting("lendir, numeric_name", oracle(), lendir),
        Contender::counting("procfs, all_processes", oracle(), procfs),
    ]
}
