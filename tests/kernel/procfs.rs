//! `/proc` as it really is: processes that come and go while it is read, zombies, and what other users may see.

mod machine;
mod mounted;

use lendir::{Buffer, Entries, Listing};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// A process that is killed and reaped at the latest when the test is over.
struct Process(Child);

impl Process {
    fn start(command: &mut Command) -> Self {
        // SAFETY: `prctl` is async-signal-safe and this operation touches no memory.
        let command = unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            })
        };
        Self(command.spawn().unwrap())
    }

    fn sleeping() -> Self {
        Self::start(Command::new("sleep").arg("1000"))
    }

    /// One with many threads and many descriptors: more than one batch of the smallest buffer.
    fn crowd() -> Self {
        let mut command = Command::new("/proc/self/exe");
        command.args(["--exact", "killed_midway"]).env("LENDIR_CROWD", "1").stdout(Stdio::null());
        let crowd = Self::start(&mut command);
        let count = |dir| pids(&mut Entries::new(&crowd.open(dir), &mut Buffer::new())).len();
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

    /// Kills it, and waits until it is a zombie.
    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.wait_for_zombie();
    }

    fn wait_for_zombie(&self) {
        // SAFETY: zeros are valid for this plain C structure, which the call only writes to.
        let answer = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            libc::waitid(libc::P_PID, self.id(), &raw mut info, libc::WEXITED | libc::WNOWAIT)
        };
        assert_eq!(answer, 0);
    }

    fn reap(&mut self) {
        self.0.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
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
fn every_living_process_comes_once_in_a_storm_of_forks() {
    machine::watchdog();
    let sleeping: Vec<Process> = (0..8).map(|_| Process::sleeping()).collect();
    let _storm = [(); 2].map(|()| Process::start(Command::new("sh").args(["-c", "while :; do (:) & (:); done"])));
    let staying = sleeping.iter().map(Process::id).chain([std::process::id(), 1]);
    let staying: Vec<u32> = staying.collect();

    let scans = if machine::runs_long() { 10_000 } else { 300 };
    let proc = lendir::open("/proc").unwrap();
    let mut seen_in_all = BTreeSet::new();
    for capacity in [0, Buffer::DEFAULT_CAPACITY] {
        let mut buffer = Buffer::with_capacity(capacity);
        let mut entries = Entries::new(&proc, &mut buffer);
        for _ in 0..scans {
            entries.rewind().unwrap();
            let pids = pids(&mut entries);
            assert!(pids.is_sorted_by(|a, b| a < b), "none twice: {pids:?}");
            for pid in &staying {
                assert!(pids.contains(pid), "{pid} is missing from {pids:?}");
            }
            seen_in_all.extend(pids);
        }
    }
    assert!(seen_in_all.len() > staying.len() + 100, "that was no storm");
    machine::passed("procfs: forks and exits", 2 * scans, "scans with every living process once");
}

const CROWD: usize = 600;

/// What the process does that is killed.
fn be_a_crowd() {
    let _descriptors: Vec<_> = (0..CROWD).map(|_| File::open("/dev/null").unwrap()).collect();
    let sleep = || thread::sleep(Duration::from_secs(1000));
    let threads: Vec<_> = (0..CROWD).map(|_| thread::Builder::new().stack_size(65536).spawn(sleep).unwrap()).collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn killed_midway() {
    if std::env::var_os("LENDIR_CROWD").is_some() {
        return be_a_crowd();
    }
    machine::watchdog();
    for dir in ["task", "fd"] {
        let mut crowd = Process::crowd();
        let dir = crowd.open(dir);
        let mut buffer = Buffer::with_capacity(0);
        let mut entries = Entries::new(&dir, &mut buffer);
        assert!(entries.next().unwrap().is_some());

        // Of a zombie the kernel gives what was fetched already, and then an end like any other.
        crowd.kill();
        let fetched = pids(&mut entries);
        assert!(!fetched.is_empty() && fetched.len() < CROWD);

        crowd.reap();
        for _ in 0..2 {
            entries.rewind().unwrap();
            assert!(entries.next().unwrap().is_none() && entries.removed());
        }
    }
    machine::passed("procfs: killed midway", 2, "directories, `task` and `fd`: what was fetched, then the end");
}

#[test]
fn reaped_midway() {
    machine::watchdog();
    for dir in ["task", "fd"] {
        let mut crowd = Process::crowd();
        let dir = crowd.open(dir);
        let mut buffer = Buffer::with_capacity(0);
        let mut entries = Entries::new(&dir, &mut buffer);
        assert!(entries.next().unwrap().is_some());
        crowd.kill();
        crowd.reap();
        let fetched = pids(&mut entries);
        assert!(!fetched.is_empty() && fetched.len() < CROWD && entries.removed());
    }
    machine::passed("procfs: reaped midway", 2, "directories, `task` and `fd`: what was fetched, then `removed()`");
}

#[test]
fn the_net_of_a_zombie_is_one_error() {
    machine::watchdog();
    let mut zombie = Process::start(&mut Command::new("true"));
    zombie.wait_for_zombie();
    let net = zombie.open("net");
    let mut buffer = Buffer::new();
    let mut entries = Entries::new(&net, &mut buffer);
    for _ in 0..3 {
        assert_one_error(&mut entries, Errno::INVAL);
        entries.rewind().unwrap();
    }
    let task = zombie.open("task");
    let mut entries = Entries::new(&task, &mut buffer);
    assert_eq!(pids(&mut entries), [zombie.id()], "a zombie is one task");
    zombie.reap();
    entries.rewind().unwrap();
    assert!(entries.next().unwrap().is_none() && entries.removed());
    machine::passed("procfs: a zombie", 2, "directories: `net` is one error, `task` one entry");
}

fn assert_one_error(entries: &mut Entries<'_>, expected: Errno) {
    let error = entries.next().expect_err("the kernel refuses");
    assert_eq!(Errno::from_io_error(&error), Some(expected));
    for _ in 0..2 {
        assert!(entries.next().unwrap().is_none() && !entries.removed());
    }
}

/// Runs `test` in a thread that is nobody: with the rights of no user who owns anything here.
fn as_nobody<T: Send>(test: impl FnOnce() -> T + Send) -> T {
    let test = || {
        // The system calls themselves, because those of the C library change every thread.
        // SAFETY: they touch no memory but to read the empty list of groups.
        unsafe {
            assert_eq!(libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<u32>()), 0);
            assert_eq!(libc::syscall(libc::SYS_setresgid, NOBODY, NOBODY, NOBODY), 0);
            assert_eq!(libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY), 0);
        }
        test()
    };
    thread::scope(|scope| scope.spawn(test).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

const NOBODY: u32 = 65534;

#[test]
fn map_files_are_refused_while_reading() {
    machine::watchdog();
    // SAFETY: `geteuid` touches no memory.
    if unsafe { libc::geteuid() } != 0 {
        return machine::skip("map_files", "root, to open them and then read them as nobody");
    }
    let sleeping = Process::sleeping();
    let map_files = sleeping.open("map_files");
    let (mut buffer, mut listing) = (Buffer::new(), Listing::new());
    as_nobody(|| {
        let mut entries = Entries::new(&map_files, &mut buffer);
        assert_one_error(&mut entries, Errno::ACCESS);
        entries.rewind().unwrap();
        let error = listing.read(entries).expect_err("the kernel refuses");
        assert_eq!((Errno::from_io_error(&error), listing.len()), (Some(Errno::ACCESS), 0));
    });
    let mut entries = Entries::new(&map_files, &mut buffer);
    entries.rewind().unwrap();
    assert!(entries.next().unwrap().is_some(), "they are not refused to root");
    machine::passed("procfs: map_files", 2, "readers: nobody gets `EACCES`, root the entries");
}

#[test]
fn hidepid_hides_the_processes_of_others() {
    machine::watchdog();
    let outcome = mounted::HIDING_PROC.mounted(
        |_, _| {},
        |mounted| {
            let own = Process::start(Command::new("sleep").arg("1000").uid(NOBODY).gid(NOBODY));
            let foreign = Process::sleeping();
            as_nobody(|| {
                let proc = lendir::open(&mounted.at).unwrap();
                let mut buffer = Buffer::new();
                let mut entries = Entries::new(&proc, &mut buffer);
                let pids = pids(&mut entries);
                for pid in [own.id(), std::process::id()] {
                    assert_eq!(pids.iter().filter(|seen| **seen == pid).count(), 1, "{pid} in {pids:?}");
                }
                assert!(!pids.contains(&foreign.id()) && !pids.contains(&1), "{pids:?}");
                let error = lendir::openat(&proc, foreign.id().to_string()).expect_err("it is hidden");
                assert_eq!(Errno::from_io_error(&error), Some(Errno::NOENT));
            });
            // Root sees all of them through the same mount.
            let proc = lendir::open(&mounted.at).unwrap();
            let mut buffer = Buffer::new();
            assert!(pids(&mut Entries::new(&proc, &mut buffer)).starts_with(&[1]));
        },
    );
    match outcome {
        Ok(()) => machine::passed("procfs: hidepid=2", 2, "readers: nobody sees no process of others, root sees all"),
        Err(missing) => machine::skip("procfs: hidepid=2", &missing),
    }
}
