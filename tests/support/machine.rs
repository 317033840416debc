//! The machine and the test run: which tests it skips, which form of them it runs, how long one may take, what passed.
//!
//! A skipped test prints one line, which `cargo test` does not capture. `LENDIR_SCOREBOARD=FILE` appends rows to a file,
//! from which `.ci/trust` makes `tests/SCOREBOARD.md`. Each line there begins with its kind: `passed`, `skipped`, or the name
//! of a table.

use std::fs::File;
use std::io::Write;
use std::process::{Command, exit};
use std::sync::LazyLock;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// Reports that `test` is skipped because this machine lacks `missing`.
pub fn skip(test: &str, missing: &str) {
    say(&format!("\nSKIPPED {test}: needs {missing}"));
    score("skipped", &format!("| {test} | {missing} |"));
}

/// Puts how many `cases` a test ran on the scoreboard, which adds up those of one name. A case that fails ends the test before this.
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

/// Opened once, and no later than by [`open_scoreboard`].
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

/// Opens it now, for a thread that is about to lose the right to.
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

/// Whether the long forms run: with `LENDIR_LONG=1` in the environment.
pub fn runs_long() -> bool {
    std::env::var_os("LENDIR_LONG").is_some_and(|value| value == "1")
}

/// Ends this process unless it is dropped in time: a test that hangs fails.
#[must_use = "dropping it stops it"]
pub struct Watchdog {
    _running: Sender<()>,
}

impl Watchdog {
    pub fn new(seconds: u64) -> Self {
        let (running, stopped) = channel();
        thread::spawn(move || {
            if stopped.recv_timeout(Duration::from_secs(seconds)) == Err(RecvTimeoutError::Timeout) {
                say(&format!("FAILED: a test has not ended after {seconds} s"));
                exit(1);
            }
        });
        Self { _running: running }
    }
}

/// For a test that takes seconds in the short form and minutes in the long one.
pub fn watchdog() -> Watchdog {
    Watchdog::new(if runs_long() { 1800 } else { 300 })
}
