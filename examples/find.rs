//! Prints each PATH and the paths of its contents: `find [-j N] [PATH]...`. PATH is `.` by default,
//! and need not be a directory. Each directory comes right before its contents.
//!
//! N is the number of threads that read directories ahead, which helps on a server or a cold disk,
//! and does not change the order. The default is 0. On a terminal, paths are printed by `{:?}`.

use lendir::WalkOptions;
use rustix::io::Errno;
use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut failed = false;
    match find(std::env::args_os().skip(1), |error| complain(error, &mut failed)) {
        Err(error) if Errno::from_io_error(&error) != Some(Errno::PIPE) => {
            complain(error, &mut failed);
        }
        _ => {}
    }
    ExitCode::from(u8::from(failed))
}

fn complain(error: impl Display, failed: &mut bool) {
    *failed = true;
    let _ = writeln!(io::stderr(), "find: {error}");
}

/// Runs with the arguments of the program. Returns an error of output or of usage.
#[allow(clippy::unnecessary_debug_formatting, reason = "it escapes")]
fn find(
    mut args: impl Iterator<Item = OsString>,
    mut report: impl FnMut(lendir::Error),
) -> io::Result<()> {
    let (mut threads, mut roots) = (0, Vec::new());
    while let Some(arg) = args.next() {
        match arg.as_bytes() {
            b"-j" => {
                let number = args.next().and_then(|number| number.to_str()?.parse().ok());
                threads = number.ok_or_else(|| io::Error::other("-j needs a number"))?;
            }
            [b'-', ..] => return Err(io::Error::other("usage: find [-j N] [PATH]...")),
            _ => roots.push(arg),
        }
    }
    if roots.is_empty() {
        roots.push(".".into());
    }

    let is_terminal = io::stdout().is_terminal();
    let capacity = if is_terminal { 0 } else { 32 << 10 };
    let mut out = BufWriter::with_capacity(capacity, io::stdout().lock());
    let options = WalkOptions::new().yield_roots(true).follow_root_links(false);
    let mut walk = options.read_ahead(threads).open_all(roots);
    while let Some(entry) = walk.next_or_report(&mut report) {
        if is_terminal {
            writeln!(out, "{:?}", entry.path())?; // a name could contain terminal commands
        } else {
            out.write_all(entry.path().as_os_str().as_bytes())?;
            out.write_all(b"\n")?;
        }
    }
    out.flush()
}
