//! `/proc` while processes start and end, and what other users may see of it.

use crate::file_systems::{FILE_SYSTEMS, HIDING_PROC};
use crate::support::machine;
use crate::support::process::{self, NOBODY, Process, as_nobody, fork_storm};
use crate::support::scan::errno;
use lendir::{Buffer, Entries, Error, Listing, OFlags};
use libc::{EACCES, ENODEV, ENOENT};
use rustix::process::geteuid;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread;
use std::time::Duration;

impl Process {
    fn sleeping() -> Self {
        Self::start(Command::new("sleep").arg("1000"))
    }

    /// Starts the part of `test` in another process: [`be_a_crowd`].
    fn crowd(test: &str) -> Self {
        process::part(test, be_a_crowd);
        let crowd = process::start(test);
        let count =
            |dir| pids(&mut Entries::new(crowd.open(dir).as_fd(), &mut Buffer::new())).len();
        while count("task") < CROWD || count("fd") < CROWD {
            thread::sleep(Duration::from_millis(1));
        }
        crowd
    }

    fn id(&self) -> u32 {
        self.0.id()
    }

    fn open(&self, dir: &str) -> OwnedFd {
        lendir::open(format!("/proc/{}/{dir}", self.id())).unwrap()
    }

    /// Kills the process and waits until it is a zombie.
    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.wait_for_zombie();
    }

    fn reap(&mut self) {
        self.0.wait().unwrap();
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
    assert!(
        seen_in_all.len() > staying.len() + 100,
        "only {} processes started and ended",
        seen_in_all.len()
    );
}

const CROWD: usize = 600;

/// Starts many threads and opens many descriptors: more than one batch of the smallest buffer.
fn be_a_crowd() {
    let _descriptors: Vec<_> = (0..CROWD).map(|_| File::open("/dev/null").unwrap()).collect();
    let sleep = || thread::sleep(Duration::from_secs(1000));
    let threads: Vec<_> = (0..CROWD)
        .map(|_| thread::Builder::new().stack_size(65536).spawn(sleep).unwrap())
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

/// The directory of a zombie yields the entries of the last batch and ends without an error. Once
/// the zombie is reaped, `is_removed` returns `true`.
#[test]
fn directory_of_an_ended_process_ends() {
    let _watchdog = machine::watchdog();
    for is_reaped in [false, true] {
        for dir in ["task", "fd"] {
            let mut crowd = Process::crowd("procfs::directory_of_an_ended_process_ends");
            let dir = crowd.open(dir);
            let mut buffer = Buffer::with_capacity(0);
            let mut entries = Entries::new(dir.as_fd(), &mut buffer);
            assert!(entries.next().unwrap().is_some());
            crowd.kill();
            if is_reaped {
                crowd.reap();
            }
            let fetched = pids(&mut entries);
            assert!(!fetched.is_empty() && fetched.len() < CROWD, "{} entries", fetched.len());
            assert_eq!(entries.is_removed(), is_reaped);

            crowd.reap();
            entries.rewind().unwrap();
            assert!(entries.next().unwrap().is_none() && entries.is_removed());
        }
    }
}

#[test]
fn refused_map_files_report_one_error() {
    let _watchdog = machine::watchdog();
    if !geteuid().is_root() {
        return machine::skip(
            "map_files",
            "root, to open a directory and then read it without privileges",
        );
    }
    let sleeping = Process::sleeping();
    let map_files = sleeping.open("map_files");
    let (mut buffer, mut listing) = (Buffer::new(), Listing::new());
    as_nobody(|| {
        let mut entries = Entries::new(map_files.as_fd(), &mut buffer);
        for _ in 0..2 {
            let error = entries.next().expect_err("the kernel did not refuse");
            assert_eq!(errno(&error), EACCES);
            (0..2)
                .for_each(|_| assert!(entries.next().unwrap().is_none() && !entries.is_removed()));
            entries.rewind().unwrap();
        }
        let error = listing.read(&map_files).expect_err("the kernel did not refuse");
        assert_eq!((errno(&error), listing.len()), (EACCES, 0));
    });
    let mut entries = Entries::new(map_files.as_fd(), &mut buffer);
    entries.rewind().unwrap();
    assert!(entries.next().unwrap().is_some(), "root gets no entry");
}

#[test]
fn hidepid_hides_the_processes_of_others() {
    let _watchdog = machine::watchdog();
    let outcome = HIDING_PROC.mounted(
        |_, _| {},
        |mounted| {
            let own = Process::start(Command::new("sleep").arg("1000").uid(NOBODY).gid(NOBODY));
            let foreign = Process::sleeping();
            as_nobody(|| {
                let proc = lendir::open(&mounted.at).unwrap();
                let mut buffer = Buffer::new();
                let mut entries = Entries::new(proc.as_fd(), &mut buffer);
                let pids = pids(&mut entries);
                for pid in [own.id(), std::process::id()] {
                    assert_eq!(
                        pids.iter().filter(|seen| **seen == pid).count(),
                        1,
                        "{pid} in {pids:?}"
                    );
                }
                assert!(!pids.contains(&foreign.id()) && !pids.contains(&1), "{pids:?}");
                let error = lendir::openat(&proc, foreign.id().to_string())
                    .expect_err("the process is not hidden");
                assert_eq!(errno(&error), ENOENT);
            });
            // Root sees all processes through the same mount.
            let proc = lendir::open(&mounted.at).unwrap();
            let mut buffer = Buffer::new();
            assert_eq!(pids(&mut Entries::new(proc.as_fd(), &mut buffer)).first(), Some(&1));
        },
    );
    machine::skip_unless("procfs: hidepid=2", outcome);
}

/// Reading an open file of a removed cgroup fails with a number of its own.
#[test]
fn gone_counts_a_removed_cgroup() {
    let cgroup2 = FILE_SYSTEMS.iter().find(|system| system.name == "cgroup2").unwrap();
    let outcome = cgroup2.mounted(
        |_, _| {},
        |mounted| {
            let path = mounted.at.join(format!("lendir-{}", std::process::id()));
            fs::create_dir(&path).unwrap();
            let mut dir = lendir::read_dir(&path).unwrap();
            let entry = dir.find(|entry| entry.name() == b"cgroup.procs").unwrap().unwrap();
            let mut file = File::from(entry.open(OFlags::RDONLY).unwrap());
            fs::remove_dir(&path).unwrap();
            let error = entry.wrap_error(file.read(&mut [0; 8]).unwrap_err());
            assert_eq!(errno(&error), ENODEV);
            assert!(error.is_gone(), "{error}");
            let errors = [entry.stat().unwrap_err(), entry.open(OFlags::RDONLY).unwrap_err()];
            assert!(errors.iter().all(Error::is_gone), "{errors:?}");
        },
    );
    machine::skip_unless("procfs: a removed cgroup", outcome);
}
