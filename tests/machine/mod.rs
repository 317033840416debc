//! What this machine lacks is said aloud: a skipped test prints one line that `cargo test` does not capture.

use std::io::Write;

/// Says that `test` was skipped, and for want of what.
pub fn skip(test: &str, missing: &str) {
    // The handle itself, because libtest captures only what the `print` macros write.
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: {missing}");
}
