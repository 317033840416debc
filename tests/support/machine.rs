//! The machine and the test run: which tests are skipped, which form of them runs, how long they may take.
//!
//! A skipped test prints one line, which `cargo test` does not capture.

use std::io::Write;
use std::path::Path;
use std::process::{Command, exit};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Reports that `test` is skipped because this machine lacks `missing`.
pub fn skip(test: &str, missing: &str) {
    say(&format!("\nSKIPPED {test}: needs {missing}"));
}

/// Reports a test that could not run: the outcome is what this machine lacks.
pub fn skip_unless<T>(test: &str, outcome: Result<T, String>) {
    if let Err(missing) = outcome {
        skip(test, &missing);
    }
}

/// Prints past libtest, which captures only the `print` macros.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Whether strace is installed and may trace; if not, reports that `test` is skipped.
#[allow(dead_code, reason = "`tests/it` alone traces")]
pub fn can_trace(test: &str) -> bool {
    let can = Command::new("strace")
        .args(["-qq", "true"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !can {
        skip(test, "strace, and the right to trace");
    }
    can
}

/// Whether the tests run in their long forms: with `LENDIR_LONG=1` in the environment.
pub fn runs_long() -> bool {
    std::env::var_os("LENDIR_LONG").is_some_and(|value| value == "1")
}

/// Ends the process if it is not dropped in time, so a test that hangs fails.
#[must_use = "dropping it stops it"]
pub struct Watchdog {
    _running: Sender<()>,
}

impl Watchdog {
    pub fn new(seconds: u64) -> Self {
        let (running, stopped) = channel();
        let test = thread::current().name().unwrap_or("a test").to_owned(); // libtest names threads by their tests
        thread::spawn(move || {
            if stopped.recv_timeout(Duration::from_secs(seconds)) == Err(RecvTimeoutError::Timeout)
            {
                say(&format!("FAILED: {test} has not ended after {seconds} s"));
                exit(1);
            }
        });
        Self { _running: running }
    }
}

/// Waits until another thread sets `flag`, or for `most`; then a little for what that thread does next. It sleeps: on a busy
/// machine, a thread that yields gets its next turn after all others.
pub fn wait(flag: &AtomicBool, most: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < most && !flag.load(SeqCst) {
        thread::sleep(Duration::from_micros(20));
    }
    thread::sleep(Duration::from_micros(200));
}

/// For a test that takes seconds in the short form and minutes in the long one.
pub fn watchdog() -> Watchdog {
    Watchdog::new(if runs_long() { 1800 } else { 300 })
}

/// Whether the file system of this directory marks the end of a directory.
pub fn is_marked(path: &Path) -> bool {
    const MARKED: [u32; 5] = [0xef53, 0x0102_1994, 0x9123_683e, 0x6265_6572, 0x6367_7270]; // ext4, tmpfs, btrfs, sysfs, cgroup2
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a magic number has 32 bits"
    )]
    rustix::fs::statfs(path).is_ok_and(|answer| MARKED.contains(&(answer.f_type as u32)))
}
