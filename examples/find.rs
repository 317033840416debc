//! Prints each PATH and the paths of its contents: `find [-j N] [PATH]...`. PATH is `.` by default.
//!
//! A walk yields directories, and each directory yields its entries. So all entries of a directory
//! are printed before the contents of its subdirectories.
//!
//! N is the number of threads. 0 means one thread for each core, but at least 8. With several
//! threads, the order of the directories varies. On a terminal, paths are printed by `{:?}`.

use lendir::rustix::io::Errno;
use lendir::{Error, WalkDirs};
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static FAILED: AtomicBool = AtomicBool::new(false);

fn main() -> ExitCode {
    match find(std::env::args_os().skip(1)) {
        Err(error) if Errno::from_io_error(&error) != Some(Errno::PIPE) => complain(error),
        _ => {}
    }
    ExitCode::from(u8::from(FAILED.load(Relaxed)))
}

fn complain(error: impl Display) {
    FAILED.store(true, Relaxed);
    let _ = writeln!(io::stderr(), "find: {error}");
}

/// Runs with the arguments of the program. Returns an error of output or of usage.
fn find(mut args: impl Iterator<Item = OsString>) -> io::Result<()> {
    let (mut threads, mut roots) = (1, Vec::new());
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
    let roots = if roots.is_empty() { vec![".".into()] } else { roots };

    let find = Find { is_terminal: io::stdout().is_terminal() };
    let parts = WalkDirs::options().follow_root_links(false).open_all(roots).run_parallel(
        threads,
        |walk| {
            let mut lines = Vec::new();
            while let Some(mut dir) = walk.next_or_report(|error| find.error(&mut lines, &error)) {
                let path = dir.path().as_os_str().as_bytes();
                if dir.depth() == 0 {
                    find.line(&mut lines, [path, b"", b""]);
                }
                let slash: &[u8] = if path.ends_with(b"/") { b"" } else { b"/" };
                while let Some(entry) = dir.next_or_report(complain) {
                    find.line(&mut lines, [path, slash, entry.name()]);
                    // Not each line by itself: then the threads would wait for each other at the
                    // lock of standard output.
                    if find.is_terminal || lines.len() >= 32 << 10 {
                        if let Err(error) = io::stdout().write_all(&lines) {
                            walk.stop();
                            return Err(error);
                        }
                        lines.clear();
                    }
                }
            }
            io::stdout().write_all(&lines)
        },
    );
    parts.into_iter().collect::<io::Result<()>>()?;
    io::stdout().flush()
}

struct Find {
    is_terminal: bool,
}

impl Find {
    fn line(&self, lines: &mut Vec<u8>, path: [&[u8]; 3]) {
        if self.is_terminal {
            // A name could contain terminal commands.
            lines.extend(format!("{:?}", OsStr::from_bytes(&path.concat())).as_bytes());
        } else {
            for part in path {
                lines.extend_from_slice(part);
            }
        }
        lines.push(b'\n');
    }

    /// Prints a root that is a file, and reports any other error.
    fn error(&self, lines: &mut Vec<u8>, error: &Error) {
        match error.path().filter(|_| error.is_root()) {
            Some(root) if root.symlink_metadata().is_ok_and(|found| !found.is_dir()) => {
                self.line(lines, [root.as_os_str().as_bytes(), b"", b""]);
            }
            _ => complain(error),
        }
    }
}
