//! Processes that run a part of a test or end with the test, and threads with fewer rights.

use super::machine::watchdog;
use rustix::fs::{Gid, Uid};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, geteuid, getrlimit,
    set_parent_process_death_signal, setrlimit, waitid,
};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use std::env;
use std::fs::{self, File};
use std::iter;
use std::os::unix::process::CommandExt;
use std::panic::resume_unwind;
use std::process::{Child, Command, Stdio, exit};
use std::thread;

/// The environment variable that names the test of which a process runs a part.
const PART_OF: &str = "LENDIR_PART_OF";
/// The exit code of a process that ran its part. libtest never exits with this code, but exits with
/// 0 even if no test has the given name.
const DONE: i32 = 42;

/// Runs `part` in a new process. Panics if `part` fails or hangs.
///
/// `test` is the name of the calling test with its module. The new process runs nothing else.
pub fn run(test: &str, part: impl FnOnce()) {
    self::part(test, part);
    finish(start(test), test);
}

/// Runs `part` and exits if this process was started to run the part of `test`.
pub fn part(test: &str, part: impl FnOnce()) {
    if env::var(PART_OF).is_ok_and(|running| running == test) {
        let _watchdog = watchdog();
        part();
        exit(DONE);
    }
}

/// Runs the [`part`] of `test` in a new process under `tracer`, a program that takes a command as
/// its last arguments.
#[allow(dead_code, reason = "`tests/it` alone traces")]
pub fn run_under(mut tracer: Command, test: &str) {
    tracer.arg(env::current_exe().unwrap());
    finish(start_as(tracer, test), test);
}

/// Starts the [`part`] of `test` in a new process.
pub fn start(test: &str) -> Process {
    start_as(Command::new(env::current_exe().unwrap()), test)
}

fn start_as(mut command: Command, test: &str) -> Process {
    command.args([test, "--exact", "--nocapture"]).env(PART_OF, test).stdout(Stdio::null());
    Process::start(&mut command)
}

fn finish(mut process: Process, test: &str) {
    let status = process.0.wait().unwrap();
    let found = status.code();
    assert_eq!(found, Some(DONE), "{test}: the process that ran a part of it ended with {status}");
}

/// A process that is killed and reaped when this value is dropped, and killed when the thread that
/// started the process ends.
pub struct Process(pub Child);

impl Process {
    pub fn start(command: &mut Command) -> Self {
        // SAFETY: the closure runs between `fork` and `exec`. It makes one system call, which is
        // async-signal-safe.
        let command = unsafe {
            command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::KILL))?))
        };
        Self(command.spawn().unwrap())
    }

    /// Waits until the process has ended.
    pub fn wait_for_zombie(&self) {
        let pid = WaitId::Pid(Pid::from_child(&self.0));
        waitid(pid, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The IDs of an ordinary user and its group.
pub const NOBODY: u32 = 65534;

/// Runs `test` in a thread without privileges: as an ordinary user if this process belongs to root,
/// otherwise as its user. Processes that the thread starts have no privileges, either.
pub fn as_nobody<T: Send>(test: impl FnOnce() -> T + Send) -> T {
    in_thread(|| {
        if geteuid().is_root() {
            // The functions of the C library would change all threads.
            set_thread_groups(&[]).unwrap();
            let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
            set_thread_res_gid(group, group, group).unwrap();
            set_thread_res_uid(user, user, user).unwrap();
        }
        test()
    })
}

/// Runs `test` in a new thread, so changes to the thread end with the test.
pub fn in_thread<T: Send>(test: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(test).join()).unwrap_or_else(|panic| resume_unwind(panic))
}

/// Returns the number of open descriptors. Counting takes a descriptor, too, so the limit is lifted
/// meanwhile.
pub fn open_descriptors() -> usize {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    let count = fs::read_dir("/proc/self/fd").unwrap().count() - 1;
    setrlimit(Resource::Nofile, limit).unwrap();
    count
}

/// Takes all descriptors of this process except this number, until the files are dropped.
pub fn leave_room(descriptors: usize) -> Vec<File> {
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), ..getrlimit(Resource::Nofile) })
        .unwrap();
    let mut all: Vec<_> = iter::from_fn(|| File::open("/dev/null").ok()).collect();
    all.truncate(all.len() - descriptors);
    all
}

/// Starts two shells that fork all the time.
pub fn fork_storm() -> [Process; 2] {
    [(); 2].map(|()| Process::start(Command::new("sh").args(["-c", "while :; do (:) & (:); done"])))
}
