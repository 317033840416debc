//! A test in a process of its own: what it does to the process ends with it, and a hang is a failure.

use std::env;
use std::process::{Command, Stdio, exit};

const TEST: &str = "LENDIR_CHILD";
/// No exit code of libtest: a name that matches no test would end in success, having tested nothing.
const DONE: i32 = 42;

/// Runs `body` in a new process that runs nothing but `test`. A failure in there fails here, and so does staying in there
/// for more than `seconds`.
pub fn run(test: &str, seconds: u32, body: impl FnOnce()) {
    run_under(&[], test, seconds, body);
}

/// The same, with the new process started by `tracer`, a program and its arguments.
pub fn run_under(tracer: &[&str], test: &str, seconds: u32, body: impl FnOnce()) {
    if env::var(TEST).is_ok_and(|running| running == test) {
        // SAFETY: no memory is passed.
        unsafe { libc::alarm(seconds) };
        body();
        exit(DONE);
    }
    let itself = env::current_exe().unwrap();
    let mut words = tracer.iter().map(AsRef::as_ref).chain([itself.as_os_str()]);
    let status = Command::new(words.next().expect("BUG: the test itself is one"))
        .args(words)
        .args([test, "--exact", "--nocapture"])
        .env(TEST, test)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(DONE), "{test} in a process of its own: {status}");
}
