//! What this machine lacks is said aloud: a skipped test prints one line that `cargo test` does not capture. How long a
//! test may run is said here too.
#![allow(dead_code, reason = "no test uses all of it")]

use std::io::Write;

/// Says that `test` was skipped, and for want of what.
pub fn skip(test: &str, missing: &str) {
    // The handle itself, because libtest captures only what the `print` macros write.
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {missing}");
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
