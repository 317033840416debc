//! Counts all entries of a tree: `count [PATH]`. PATH is `.` by default.
//!
//! This is the first example to read about `walk_dirs`, which yields directories, each of which
//! yields its entries. The README's program shows `walk`.

use rustix::io::Errno;
use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static FAILED: AtomicBool = AtomicBool::new(false);

fn main() -> ExitCode {
    let path = std::env::args_os().nth(1).unwrap_or(".".into());
    match count(path.as_ref()) {
        Err(error) if Errno::from_io_error(&error) != Some(Errno::PIPE) => complain(error),
        _ => {}
    }
    ExitCode::from(u8::from(FAILED.load(Relaxed)))
}

fn complain(error: impl Display) {
    FAILED.store(true, Relaxed);
    let _ = writeln!(io::stderr(), "count: {error}");
}

fn count(path: &Path) -> io::Result<()> {
    let (mut walk, mut count) = (lendir::walk_dirs(path)?, 0_u64);
    while let Some(mut dir) = walk.next_or_report(complain) {
        while dir.next_or_report(complain).is_some() {
            count += 1;
        }
    }
    writeln!(io::stdout(), "{count}")
}
