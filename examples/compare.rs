//! Prints what differs between two trees: `compare LEFT RIGHT`. It prints each entry that only one
//! tree has, and each entry whose type differs. For files and links it also compares the contents.
//! On a terminal, paths are printed by `{:?}`.
//!
//! The exit status is 1 if anything differs, and 2 after an error. The example shows how to merge
//! two sorted walks by relative path.

use lendir::{Error, Order, Walk, WalkEntry};
use rustix::io::Errno;
use std::cmp::Ordering::{Equal, Greater, Less};
use std::fmt::Display;
use std::io::{self, IsTerminal, Read, StdoutLock, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let (out, is_terminal) = (io::stdout().lock(), io::stdout().is_terminal());
    let mut results =
        Results { out, is_terminal, differs: false, failed: false, unread: Vec::new() };
    match compare(&std::env::args_os().skip(1).map(PathBuf::from).collect::<Vec<_>>(), &mut results)
    {
        Err(error) if Errno::from_io_error(&error) != Some(Errno::PIPE) => results.complain(error),
        _ => {}
    }
    ExitCode::from(if results.failed { 2 } else { u8::from(results.differs) })
}

struct Results {
    out: StdoutLock<'static>,
    is_terminal: bool,
    differs: bool,
    failed: bool,
    /// The relative paths that could not be read in one of the trees.
    unread: Vec<PathBuf>,
}

impl Results {
    fn complain(&mut self, error: impl Display) {
        self.failed = true;
        let _ = writeln!(io::stderr(), "compare: {error}");
    }

    fn add_unread(&mut self, error: &Error, root: &Path) {
        let path = error.path().and_then(|path| path.strip_prefix(root).ok());
        self.unread.push(path.unwrap_or(Path::new("")).to_owned());
        self.complain(error);
    }

    /// Prints a difference, unless its path could not be read in the other tree.
    #[allow(clippy::unnecessary_debug_formatting, reason = "it escapes")]
    fn print(&mut self, what: &str, path: &Path) -> io::Result<()> {
        // Both walks have passed the other paths.
        self.unread.retain(|unread| path.starts_with(unread) || path < unread.as_path());
        if self.unread.iter().any(|unread| path.starts_with(unread)) {
            return Ok(());
        }
        self.differs = true;
        if self.is_terminal {
            return writeln!(self.out, "{what}: {path:?}"); // a name could contain terminal commands
        }
        self.out.write_all(&[what.as_bytes(), b": ", path.as_os_str().as_bytes(), b"\n"].concat())
    }
}

/// Compares the trees at two paths. Returns an error of output, of usage, or of a root.
fn compare(roots: &[PathBuf], results: &mut Results) -> io::Result<()> {
    let [left_root, right_root] = roots else {
        return Err(io::Error::other("usage: compare LEFT RIGHT"));
    };
    // In this order, `walk` yields a tree in the order of `Path::cmp` on relative paths.
    let options = Walk::options().order(Order::Bytes);
    let (mut lefts, mut rights) = (options.clone().open(left_root)?, options.open(right_root)?);
    let mut left = lefts.next_or_report(|error| results.add_unread(&error, left_root));
    let mut right = rights.next_or_report(|error| results.add_unread(&error, right_root));
    loop {
        let order = match (&left, &right) {
            (None, None) => return Ok(()),
            (Some(_), None) => Less,
            (None, Some(_)) => Greater,
            (Some(left), Some(right)) => left.relative_path().cmp(right.relative_path()),
        };
        match (&left, &right) {
            (Some(left), Some(right)) if order == Equal => match is_same(left, right) {
                Ok(true) => {}
                Ok(false) => {
                    results.print("different", left.relative_path())?;
                    left.skip_subtree();
                    right.skip_subtree();
                }
                Err(error) if error.path() == Some(left.path()) => {
                    results.add_unread(&error, left_root);
                }
                Err(error) => results.add_unread(&error, right_root),
            },
            (Some(only), _) if order == Less => {
                only.skip_subtree();
                results.print("only left", only.relative_path())?;
            }
            (_, only) => {
                let only = only.as_ref().expect("one of them is there");
                only.skip_subtree();
                results.print("only right", only.relative_path())?;
            }
        }
        if order != Greater {
            left = lefts.next_or_report(|error| results.add_unread(&error, left_root));
        }
        if order != Less {
            right = rights.next_or_report(|error| results.add_unread(&error, right_root));
        }
    }
}

/// Returns `true` if the types are equal and, for files and links, the contents.
fn is_same(left: &WalkEntry<'_>, right: &WalkEntry<'_>) -> Result<bool, Error> {
    let file_type = left.file_type()?;
    if right.file_type()? != file_type {
        return Ok(false);
    }
    if file_type.is_symlink() {
        return Ok(left.read_link()? == right.read_link()?);
    }
    if !file_type.is_file() {
        return Ok(true);
    }
    let sides = [(left, left.open_file()?), (right, right.open_file()?)];
    let mut parts = [(); 2].map(|()| Vec::with_capacity(64 << 10));
    loop {
        for ((entry, file), part) in sides.iter().zip(&mut parts) {
            part.clear();
            // It reads on after a short read, or an interrupted one.
            let read = file.take(64 << 10).read_to_end(part);
            read.map_err(|error| entry.wrap_error(error))?;
        }
        let [left, right] = &parts;
        if left != right || left.is_empty() {
            return Ok(left == right);
        }
    }
}
