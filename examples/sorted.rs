//! Prints the names in a directory, sorted by their bytes: `sorted [PATH]`. PATH is `.` by default.
//!
//! This is the first example to read about single directories.

use rustix::io::Errno;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let path = std::env::args_os().nth(1).unwrap_or(".".into());
    match sorted(path.as_ref()) {
        Err(error) if Errno::from_io_error(&error) != Some(Errno::PIPE) => {
            let _ = writeln!(io::stderr(), "sorted: {error}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

fn sorted(path: &std::path::Path) -> io::Result<()> {
    let mut listing = lendir::Listing::new();
    lendir::read_dir(path)?.read_into(&mut listing)?;

    let mut out = BufWriter::new(io::stdout().lock());
    let is_terminal = io::stdout().is_terminal();
    for entry in &listing {
        if is_terminal {
            write!(out, "{:?}", entry.file_name())?; // a name could contain terminal commands
        } else {
            out.write_all(entry.name())?;
        }
        out.write_all(b"\n")?;
    }
    out.flush()
}
