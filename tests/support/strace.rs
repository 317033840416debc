//! System calls, as strace shows them.

use super::machine::{can_trace, watchdog};
use super::process;
use super::scratch::Scratch;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use std::collections::HashSet;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread;

/// A guard: system calls are counted while it lives.
pub struct Counted;

impl Counted {
    // No other code queries these paths. In the log, they mark the beginning and the end of a
    // counted part.
    const BEGIN: &str = "/begin of the counted part";
    const END: &str = "/end of the counted part";

    pub fn begin() -> Self {
        let _ = fs::symlink_metadata(Self::BEGIN);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let _ = fs::symlink_metadata(Self::END);
    }
}

/// Runs `work` in a process of its own under strace with these options. Returns the log of each
/// thread. `test` is the name of the test with its module.
///
/// Returns `None` and reports a skipped test without strace.
fn logs(test: &str, options: &[&str], work: impl FnOnce()) -> Option<Vec<String>> {
    process::part(test, work);
    if !can_trace(test) {
        return None;
    }
    // A log for each thread, so no thread cuts a line of another thread in two.
    let logs = Scratch::new();
    let mut strace = Command::new("strace");
    // With `-ff`, strace follows threads, but not the `rm` of a fixture.
    strace
        .args(["-ff", "-qq", "-b", "execve"])
        .args(options)
        .arg("-o")
        .arg(logs.path().join("thread"));
    process::run_under(strace, test);
    Some(
        fs::read_dir(logs.path())
            .unwrap()
            .map(|log| fs::read_to_string(log.unwrap().path()).unwrap())
            .collect(),
    )
}

/// Returns how often all threads of `work` make this `call`: see [`logs`].
pub fn total(test: &str, call: &str, work: impl FnOnce()) -> Option<usize> {
    let logs = logs(test, &["-e", &format!("trace={call}")], work)?;
    Some(logs.iter().flat_map(|log| log.lines()).filter(|line| name_of(line) == call).count())
}

/// Returns the lines of strace, run with these options, for the system calls that `work` makes
/// while each [`Counted`] lives: see [`logs`].
pub fn lines(test: &str, options: &[&str], work: impl FnOnce()) -> Option<Vec<Vec<String>>> {
    let logs = logs(test, options, work)?;
    let log =
        logs.iter().find(|log| log.contains(Counted::BEGIN)).expect("no log has a counted part");
    let mut parts = Vec::new();
    let mut is_counted = false;
    for line in log.lines() {
        if line.contains(Counted::BEGIN) {
            is_counted = true;
            parts.push(Vec::new());
        } else if line.contains(Counted::END) {
            is_counted = false;
        } else if is_counted {
            parts.last_mut().expect("BUG: no part has begun").push(line.to_owned());
        }
    }
    Some(parts)
}

/// All calls except these. `malloc` maps and unmaps memory, and takes a lock. `rustix` looks for
/// the vDSO once in a 32-bit process, and queries the time from the kernel if it finds none, as in
/// a static program. The walk yields its turn while a level is too new to be closed. Only fixtures
/// make and remove directories.
const TRACED: &str = "trace=!brk,?clock_gettime,?clock_gettime64,?futex,?mmap,?mmap2,mprotect,mremap,munmap,prctl,\
                      sched_yield,?mkdir,mkdirat,?rmdir,unlinkat";

/// Returns the system calls of each part: see [`lines`].
pub fn parts(test: &str, work: impl FnOnce()) -> Option<Vec<Vec<String>>> {
    let mut parts = lines(test, &["-e", TRACED, "-s", "65536"], work)?;
    // With debug assertions, `std` asserts that a descriptor is open before it closes the
    // descriptor.
    let is_of_std = |line: &String| cfg!(debug_assertions) && name_of(line) == "fcntl";
    for lines in &mut parts {
        lines.retain(|line| !is_of_std(line));
    }
    Some(parts)
}

/// Returns the number of names in the paths of these calls, each of which the kernel looks up.
pub fn names_in(lines: &[String]) -> usize {
    let paths = lines.iter().flat_map(|line| line.split('"').skip(1).step_by(2));
    paths.map(|path| path.split('/').filter(|name| !name.is_empty()).count()).sum()
}

/// Returns the most descriptors of directories that each part has open at once, of those that it
/// opened: see [`lines`].
pub fn most_open(test: &str, work: impl FnOnce()) -> Option<Vec<usize>> {
    let most = |lines: Vec<String>| {
        let mut open = HashSet::new();
        let open_at = |line: &String| {
            let (call, answer) = line.rsplit_once(" = ").expect("a call without an answer");
            match name_of(call) {
                // `malloc` opens a file in /proc.
                "openat" | "openat2" if call.contains("O_DIRECTORY") => {
                    open.extend(answer.parse::<u32>().ok());
                }
                "fcntl" if call.contains("F_DUPFD") => open.extend(answer.parse::<u32>().ok()),
                "close" => {
                    let number = call.trim_end().trim_start_matches("close(").trim_end_matches(')');
                    open.remove(&number.parse().expect("no descriptor is closed"));
                }
                _ => {}
            }
            open.len()
        };
        lines.iter().map(open_at).max().unwrap_or(0)
    };
    Some(lines(test, &["-e", "trace=%desc,%file"], work)?.into_iter().map(most).collect())
}

/// Returns the name of the call in a line of strace, as in a 64-bit process.
pub fn name_of(line: &str) -> &str {
    match line.split('(').next().unwrap() {
        "_llseek" => "lseek",
        "fcntl64" => "fcntl",
        "fstatfs64" => "fstatfs",
        "mmap2" => "mmap",
        call => call,
    }
}

/// Calls `swap` for each directory, each call, and the numbers from 1 on. `swap` returns whether it
/// has swapped the directory, or `None` once the program makes fewer calls. Checks that more than
/// 50 swaps succeed. Reports that `test` is skipped without strace.
pub fn swap_after_each_call(
    test: &str,
    swapped: &[&str],
    calls: &[&str],
    swap: fn(&str, &str, usize) -> Option<bool>,
) {
    if !can_trace(test) {
        return;
    }
    let _watchdog = watchdog();
    let count = |swapped| {
        let steps = |call| (1..).map_while(move |step| swap(swapped, call, step));
        calls.iter().flat_map(|call| steps(call)).filter(|is_swapped| *is_swapped).count()
    };
    let swaps: usize = thread::scope(|scope| {
        let all: Vec<_> = swapped.iter().map(|swapped| scope.spawn(|| count(swapped))).collect();
        all.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert!(swaps > 50, "{swaps} swaps");
}

/// A process that strace stops after one of its system calls.
pub struct Stepped(Child);

impl Stepped {
    /// Starts `command`. strace stops the process after the `step`th call of `call`.
    pub fn start(command: &Command, call: &str, step: usize) -> Self {
        let inject = format!("inject={call}:signal=STOP:when={step}");
        let mut strace = Command::new("strace");
        // With `-D`, the started process becomes the program, and the tracer becomes its child.
        strace.args(["-D", "-qq", "-e", "signal=none", "-e", &format!("trace={call}")]);
        strace.args(["-e", &inject, "-o", "/dev/null"]).arg(command.get_program());
        strace.args(command.get_args()).stderr(Stdio::null());
        strace.env_remove("LD_LIBRARY_PATH"); // the loader would open many files in cargo's directories
        strace.current_dir(command.get_current_dir().unwrap());
        Self(strace.spawn().unwrap())
    }

    /// Waits until the process has stopped or ended. Returns `true` if the process has stopped.
    pub fn wait(&mut self) -> bool {
        let pid = Pid::from_child(&self.0);
        waitpid(Some(pid), WaitOptions::UNTRACED).unwrap().unwrap().1.stopped()
    }

    /// Lets the process run to its end.
    pub fn resume(mut self) {
        kill_process(Pid::from_child(&self.0), Signal::CONT).unwrap();
        assert!(!self.wait(), "the process has stopped twice");
    }
}
