//! Decides which tests are skipped, whether tests run in their long forms, and how much time a test
//! has. These depend on the machine and on the test run.
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

/// Reports that `test` is skipped if `outcome` is an error, which names what this machine lacks.
pub fn skip_unless<T>(test: &str, outcome: Result<T, String>) {
    if let Err(missing) = outcome {
        skip(test, &missing);
    }
}

/// Prints to standard error past libtest, which captures only the `print` macros.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Returns `true` if strace is installed and has the right to trace. Otherwise, reports that `test`
/// is skipped.
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

/// Returns `true` if `LENDIR_LONG=1` is in the environment: the tests run in their long forms then.
pub fn runs_long() -> bool {
    std::env::var_os("LENDIR_LONG").is_some_and(|value| value == "1")
}

/// A timer that ends the process unless it is dropped in time, so a test that hangs fails.
#[must_use = "dropping it stops it"]
pub struct Watchdog {
    _running: Sender<()>,
}

impl Watchdog {
    fn new(seconds: u64) -> Self {
        let (running, stopped) = channel();
        // The threads of libtest have the names of tests.
        let test = thread::current().name().unwrap_or("a test").to_owned();
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

/// Sleeps until another thread sets `flag`, or for `most`. Then sleeps a little longer, for the
/// next step of that thread. A thread that yields instead of sleeping can wait for all other
/// threads on a busy machine.
pub fn wait(flag: &AtomicBool, most: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < most && !flag.load(SeqCst) {
        thread::sleep(Duration::from_micros(20));
    }
    thread::sleep(Duration::from_micros(200));
}

/// Returns a [`Watchdog`] for a test that takes seconds in the short form and minutes in the long
/// form. It waits far longer, because a busy machine is no reason to fail.
pub fn watchdog() -> Watchdog {
    Watchdog::new(if runs_long() { 1800 } else { 300 })
}

/// Returns `true` if the file system of this directory marks the end of a directory.
pub fn is_marked(path: &Path) -> bool {
    const MARKED: [u32; 5] = [0xef53, 0x0102_1994, 0x9123_683e, 0x6265_6572, 0x6367_7270]; // ext4, tmpfs, btrfs, sysfs, cgroup2
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a magic number has 32 bits"
    )]
    rustix::fs::statfs(path).is_ok_and(|answer| MARKED.contains(&(answer.f_type as u32)))
}

/// Returns a directory of a file system with an end marker. Without one, reports that `test` is
/// skipped.
pub fn marked(test: &str) -> Option<&'static Path> {
    let path = Some(Path::new("/sys/class")).filter(|path| is_marked(path));
    if path.is_none() {
        skip(test, "sysfs on /sys");
    }
    path
}

/// Returns `true` if this directory, which has an entry, lists types. Otherwise, reports that
/// `test` is skipped.
pub fn has_types(test: &str, dir: &Path) -> bool {
    let has = lendir::read_dir(dir).unwrap().next().unwrap().unwrap().d_type()
        != lendir::FileType::Unknown;
    if !has {
        skip(test, "a temporary directory whose file system has types");
    }
    has
}

/// A flag that ends the work of other threads when this value is dropped, even by a panic.
pub struct Over<'a>(pub &'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}
