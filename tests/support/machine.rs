//! The machine and the test run: which tests are skipped, which form of them runs, how long they may take, which passed.
//!
//! A skipped test prints one line, which `cargo test` does not capture. `LENDIR_SCOREBOARD=FILE` appends rows to a file,
//! from which `.ci/trust` makes `tests/SCOREBOARD.md`. Each row begins with its kind: `passed`, `skipped`, or the name of a
//! table.

use std::fs::File;
use std::io::Write;
use std::process::{Command, exit};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// Reports that `test` is skipped because this machine lacks `missing`.
pub fn skip(test: &str, missing: &str) {
    say(&format!("\nSKIPPED {test}: needs {missing}"));
    score("skipped", &format!("| {test} | {missing} |"));
}

/// Puts on the scoreboard how many `cases` a test has passed. The scoreboard adds up those of the same name.
pub fn passed(test: &str, cases: usize, what: &str) {
    score("passed", &format!("{test}\t{cases}\t{what}"));
}

/// Puts a test on the scoreboard: its cases, or what this machine lacks.
pub fn report(test: &str, outcome: Result<usize, String>, what: &str) {
    match outcome {
        Ok(cases) => passed(test, cases, what),
        Err(missing) => skip(test, &missing),
    }
}

/// Puts a table on the scoreboard.
pub fn table(name: &str, text: &str) {
    for line in text.lines() {
        score(name, line);
    }
}

/// Prints past libtest, which captures only the `print` macros.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn score(kind: &str, line: &str) {
    if let Some(mut file) = SCOREBOARD.as_ref() {
        // One write, because tests run in parallel.
        file.write_all(format!("{kind}\t{line}\n").as_bytes()).expect("cannot write to the scoreboard");
    }
}

/// Opened at its first use, or by [`open_scoreboard`].
static SCOREBOARD: LazyLock<Option<File>> = LazyLock::new(|| {
    let path = std::env::var_os("LENDIR_SCOREBOARD")?;
    Some(
        File::options()
            .append(true)
            .create(true)
            .open(path)
            .expect("cannot open the file that LENDIR_SCOREBOARD names"),
    )
});

/// Opens it now, because this thread is about to lose the right to.
pub fn open_scoreboard() {
    LazyLock::force(&SCOREBOARD);
}

/// Whether strace is installed and may trace; if not, reports that `test` is skipped.
#[allow(dead_code, reason = "`tests/it` alone traces")]
pub fn can_trace(test: &str) -> bool {
    let can = Command::new("strace").args(["-qq", "true"]).output().is_ok_and(|output| output.status.success());
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
            if stopped.recv_timeout(Duration::from_secs(seconds)) == Err(RecvTimeoutError::Timeout) {
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
