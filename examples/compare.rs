//! Prints what differs between two trees: `compare LEFT RIGHT`. It prints each entry that only one
//! tree has, and each entry whose type differs. For files and links it also compares the contents.
//!
//! The exit status is 1 if anything differs, and 2 after an error. The example shows how to merge
//! two sorted walks by relative path.

use lendir::{Error, OFlags, Order, Walk, WalkEntry};
use std::cmp::Ordering::{Equal, Greater, Less};
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    match compare(&std::env::args_os().skip(1).map(PathBuf::from).collect::<Vec<_>>()) {
        Ok(status) => status,
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "compare: {error}");
            ExitCode::from(2)
        }
    }
}

/// The relative paths that could not be read in one of the trees.
#[derive(Default)]
struct Failed {
    paths: Vec<PathBuf>,
    ever: bool,
}

impl Failed {
    fn add(&mut self, error: &Error, root: &Path) {
        let _ = writeln!(io::stderr(), "compare: {error}");
        self.paths.push(error.path().strip_prefix(root).unwrap_or(Path::new("")).to_owned());
        self.ever = true;
    }

    /// Returns `true` if `path` is one of these paths or below one. Removes the paths that both
    /// walks have passed.
    fn contain(&mut self, path: &Path) -> bool {
        self.paths.retain(|failed| path.starts_with(failed) || path < failed.as_path());
        self.paths.iter().any(|failed| path.starts_with(failed))
    }
}

/// Compares the trees at two paths. Returns an error of output, of usage, or of a root.
fn compare(roots: &[PathBuf]) -> io::Result<ExitCode> {
    let [left_root, right_root] = roots else {
        return Err(io::Error::other("usage: compare LEFT RIGHT"));
    };
    // In this order, `walk` yields a tree in the order of `Path::cmp` on relative paths.
    let options = Walk::options().order(Order::Bytes);
    let (mut lefts, mut rights) = (options.clone().open(left_root)?, options.open(right_root)?);
    let (mut out, mut failed, mut differs) = (io::stdout().lock(), Failed::default(), false);
    let mut left = lefts.next_ok(|error| failed.add(&error, left_root));
    let mut right = rights.next_ok(|error| failed.add(&error, right_root));
    loop {
        let order = match (&left, &right) {
            (None, None) => break,
            (Some(_), None) => Less,
            (None, Some(_)) => Greater,
            (Some(left), Some(right)) => left.relative_path().cmp(right.relative_path()),
        };
        let mut line = |what: &str, path: &Path| {
            differs = true;
            // A name could contain terminal commands.
            let path = path.to_string_lossy().replace(char::is_control, "?");
            writeln!(out, "{what}: {path}")
        };
        match (&left, &right) {
            (Some(left), Some(right)) if order == Equal => match is_same(left, right) {
                Ok(true) => {}
                Ok(false) => {
                    line("different", left.relative_path())?;
                    left.skip_subtree();
                    right.skip_subtree();
                }
                Err(error) if error.path() == left.path() => failed.add(&error, left_root),
                Err(error) => failed.add(&error, right_root),
            },
            (Some(only), _) if order == Less => {
                only.skip_subtree();
                if !failed.contain(only.relative_path()) {
                    line("only left", only.relative_path())?;
                }
            }
            (_, only) => {
                let only = only.as_ref().expect("one of them is there");
                only.skip_subtree();
                if !failed.contain(only.relative_path()) {
                    line("only right", only.relative_path())?;
                }
            }
        }
        if order != Greater {
            left = lefts.next_ok(|error| failed.add(&error, left_root));
        }
        if order != Less {
            right = rights.next_ok(|error| failed.add(&error, right_root));
        }
    }
    Ok(ExitCode::from(if failed.ever { 2 } else { u8::from(differs) }))
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
    // By now the name may belong to a FIFO. Without `NONBLOCK`, opening a FIFO waits for a writer.
    let open = |entry: &WalkEntry<'_>| entry.open(OFlags::RDONLY | OFlags::NONBLOCK);
    let (mut a, mut b) =
        (BufReader::new(File::from(open(left)?)), BufReader::new(File::from(open(right)?)));
    loop {
        let (a_part, b_part) = (
            a.fill_buf().map_err(|error| left.wrap_error(error))?,
            b.fill_buf().map_err(|error| right.wrap_error(error))?,
        );
        let len = a_part.len().min(b_part.len());
        if len == 0 || a_part[..len] != b_part[..len] {
            return Ok(a_part.is_empty() && b_part.is_empty());
        }
        a.consume(len);
        b.consume(len);
    }
}
