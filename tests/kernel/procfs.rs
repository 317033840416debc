//! `/proc` while processes start and end.

use crate::support::prelude::*;
use crate::support::process::fork_storm;

impl Process {
    fn sleeping() -> Self {
        Self::start(Command::new("sleep").arg("1000"))
    }

    fn id(&self) -> u32 {
        self.0.id()
    }
}

fn pids(entries: &mut Entries<'_>) -> Vec<u32> {
    let mut pids = Vec::new();
    while let Some(entry) = entries.next().unwrap() {
        pids.extend(entry.numeric_name());
    }
    pids
}

#[test]
fn living_processes_come_once_while_others_fork() {
    let _watchdog = machine::watchdog();
    let sleeping: Vec<Process> = (0..8).map(|_| Process::sleeping()).collect();
    let _storm = fork_storm();
    let staying = sleeping.iter().map(Process::id).chain([std::process::id(), 1]);
    let staying: Vec<u32> = staying.collect();

    let scans = if machine::runs_long() { 10_000 } else { 300 };
    let proc = lendir::open("/proc").unwrap();
    let mut seen_in_all = BTreeSet::new();
    for capacity in [0, Buffer::DEFAULT_CAPACITY] {
        let mut buffer = Buffer::with_capacity(capacity);
        let mut entries = Entries::new(proc.as_fd(), &mut buffer);
        for _ in 0..scans {
            entries.rewind().unwrap();
            let pids = pids(&mut entries);
            assert!(pids.is_sorted_by(|a, b| a < b), "not ascending: {pids:?}");
            for pid in &staying {
                assert!(pids.contains(pid), "{pid} is missing from {pids:?}");
            }
            seen_in_all.extend(pids);
        }
    }
    let is_right = seen_in_all.len() > staying.len() + 100;
    assert!(is_right, "only {} processes started and ended", seen_in_all.len());
}

/// The directory of a zombie ends like any other. Once the zombie is reaped, `is_removed` returns
/// `true`.
#[test]
fn directory_of_an_ended_process_ends() {
    for name in ["task", "fd"] {
        let mut process = Process::sleeping();
        let dir = lendir::open(format!("/proc/{}/{name}", process.id())).unwrap();
        let mut buffer = Buffer::new();
        let mut entries = Entries::new(dir.as_fd(), &mut buffer);
        process.0.kill().unwrap();
        process.wait_for_zombie();
        for is_reaped in [false, true] {
            if is_reaped {
                process.0.wait().unwrap();
            }
            entries.rewind().unwrap();
            assert!(entries.count().unwrap() <= 1);
            assert_eq!(entries.is_removed(), is_reaped, "{name}");
        }
    }
}
