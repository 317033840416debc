//! What this machine lacks is said aloud: a skipped test prints one line that `cargo test` does not capture. How long a
//! test may run is said here too, and what came of it.
//!
//! `LENDIR_SCOREBOARD=FILE` appends all of that to a file, of which `.ci/trust` makes `tests/SCOREBOARD.md`. Each line there
//! begins with what it is: `passed`, `skipped`, or the name of a table.
#![allow(dead_code, reason = "no test uses all of it")]

use std::fs::File;
use std::io::Write;
use std::process::Command;

/// Says that `test` was skipped, and for want of what.
pub fn skip(test: &str, missing: &str) {
    say(&format!("\nSKIPPED {test}: {missing}"));
    score("skipped", &format!("| {test} | {missing} |"));
}

/// Says that all of `cases` passed, in a row of the scoreboard; a case that fails ends the run before this.
pub fn passed(test: &str, cases: usize, what: &str) {
    say(&format!("{test}: {cases} {what}"));
    score("passed", &format!("| {test} | {cases} of {cases} | {what} |"));
}

/// Prints a table and puts it on the scoreboard.
pub fn table(name: &str, text: &str) {
    say(text);
    for line in text.lines() {
        score(name, line);
    }
}

/// Prints past libtest, which captures only what the `print` macros write.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn score(kind: &str, line: &str) {
    if let Some(path) = std::env::var_os("LENDIR_SCOREBOARD") {
        let file = File::options().append(true).create(true).open(path);
        // In one piece, because tests run beside each other.
        let written = file.and_then(|mut file| file.write_all(format!("{kind}\t{line}\n").as_bytes()));
        written.expect("LENDIR_SCOREBOARD names a file that can be written");
    }
}

/// Whether strace is here and may trace; if not, says that `test` is skipped.
pub fn can_trace(test: &str) -> bool {
    let can = Command::new("strace").args(["-qq", "true"]).output().is_ok_and(|output| output.status.success());
    if !can {
        skip(test, "strace, or the right to trace");
    }
    can
}

/// Whether the long forms run: with `LENDIR_LONG=1` in the environment.
pub fn runs_long() -> bool {
    std::env::var_os("LENDIR_LONG").is_some_and(|value| value == "1")
}

/// Ends this process by `SIGALRM` when its tests are not done long after they should be: a hang is a failure.
pub fn watchdog() {
    // SAFETY: `alarm` touches no memory of this process.
    unsafe { libc::alarm(if runs_long() { 1800 } else { 300 }) };
}
