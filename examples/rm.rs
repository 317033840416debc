//! Removes trees: `Walk::post_order`, and every step relative to an open directory, so that no link can lead it elsewhere.

const HELP: &str = "\
Usage: rm [-fx] [--] PATH...

Removes PATH, and if it is a directory, everything below it, as rm -r does. It never asks. A symbolic link is removed, not
followed. It refuses /, and a PATH that ends in . or ..

  -f      say nothing of what is missing
  -x      do not enter a directory that a file system is mounted on
  --help  print this text

If others swap directories for links meanwhile, nothing outside of PATH is removed. Exit status: 0, or 1 for an error.
";

use lendir::{Dir, Error, FileType, OFlags, Walk};
use rustix::fs::{AtFlags, CWD, fstat, stat, unlinkat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    match rm(std::env::args_os().skip(1)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "rm: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Does what the arguments ask for, and returns whether all of it is removed. An error is one of output or of usage.
fn rm(mut args: impl Iterator<Item = OsString>) -> io::Result<bool> {
    let (mut force, mut one_mount, mut paths) = (false, false, Vec::new());
    while let Some(arg) = args.next() {
        match arg.as_bytes() {
            b"--help" => return io::stdout().write_all(HELP.as_bytes()).map(|()| true),
            b"--" => paths.extend(args.by_ref()),
            [b'-', letters @ ..] if !letters.is_empty() => {
                for letter in letters {
                    match letter {
                        b'f' => force = true,
                        b'x' => one_mount = true,
                        _ => return Err(usage(format!("unknown option {arg:?}"))),
                    }
                }
            }
            _ => paths.push(arg),
        }
    }
    if paths.is_empty() && !force {
        return Err(usage("a PATH is missing"));
    }
    let mut is_removed = true;
    for path in &paths {
        let mut removal = Removal { path, force, failed: false, unread: None };
        if let Err(error) = removal.run(one_mount) {
            removal.report(Path::new(""), &error);
        }
        is_removed &= !removal.failed;
    }
    Ok(is_removed)
}

fn usage(error: impl Display) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, format!("{error}; try --help"))
}

struct Removal<'a> {
    path: &'a OsStr,
    force: bool,
    failed: bool,
    /// Of a directory that could not be read. Its second visit comes next, if it is still there. If it is empty, it can be
    /// removed, and the error does not matter.
    unread: Option<Error>,
}

impl Removal<'_> {
    fn run(&mut self, one_mount: bool) -> io::Result<()> {
        let path = self.path.as_bytes();
        let end = path.iter().rposition(|byte| *byte != b'/').map_or(0, |at| at + 1);
        let begin = path[..end].iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
        let (parent, name) = (if begin == 0 { b"." } else { &path[..begin] }, &path[begin..end]);
        if matches!(name, b"" | b"." | b"..") && !path.is_empty() {
            return Err(io::Error::other("refused"));
        }

        let parent = lendir::openat_with(CWD, parent, OFlags::PATH)?;
        let root = match lendir::openat_with(&parent, name, OFlags::NOFOLLOW) {
            Ok(root) => root,
            Err(error) if error.kind() == ErrorKind::NotADirectory => {
                // With the slashes behind the name, which ask for a directory.
                return Ok(unlinkat(&parent, &path[begin..], AtFlags::empty())?);
            }
            // An empty directory need not be readable.
            Err(error) => return unlinkat(&parent, name, AtFlags::REMOVEDIR).map_err(|_| error),
        };
        let (this, all) = (fstat(&root)?, stat("/")?);
        if (this.st_dev, this.st_ino) == (all.st_dev, all.st_ino) {
            return Err(io::Error::other("refused, as it is /"));
        }

        let walk = Walk::new(root, "").post_order(true);
        let mut walk = if one_mount { walk.same_mount(true) } else { walk };
        while let Some(dir) = walk.next().transpose() {
            match dir {
                Ok(dir) if dir.is_second_visit() => {
                    let removed = match dir.parent() {
                        Some(parent) => unlinkat(parent, dir.name_cstr(), AtFlags::REMOVEDIR),
                        None if dir.depth() == 0 => unlinkat(&parent, name, AtFlags::REMOVEDIR),
                        None => Err(Errno::NOENT), // it was moved
                    };
                    match removed {
                        Ok(()) => self.unread = None,
                        Err(_) if self.report_unread() => {}
                        Err(errno) => self.report(dir.path(), &errno.into()),
                    }
                }
                Ok(dir) => {
                    self.report_unread();
                    self.remove_files(dir);
                }
                Err(error) => {
                    self.report_unread();
                    self.unread = Some(error).filter(|error| !self.is_ignored(error.io_error()));
                }
            }
        }
        Ok(())
    }

    /// Removes all but the directories.
    fn remove_files(&mut self, mut dir: Dir<'_>) {
        let path = dir.path();
        while let Some(entry) = dir.next().transpose() {
            match entry {
                Ok(entry) if entry.file_type() == FileType::Directory => {}
                Ok(entry) => match unlinkat(entry.dir(), entry.name_cstr(), AtFlags::empty()) {
                    Ok(()) => dir.skip_entry(), // it might have been a directory, where types are unknown
                    Err(Errno::ISDIR) => {}
                    Err(errno) => self.report(&path.join(entry.name_os()), &errno.into()),
                },
                Err(error) => self.report(error.path(), error.io_error()),
            }
        }
    }

    fn report_unread(&mut self) -> bool {
        let unread = self.unread.take();
        unread.inspect(|error| self.report(error.path(), error.io_error())).is_some()
    }

    /// What is missing is no error under `-f`.
    fn is_ignored(&self, error: &io::Error) -> bool {
        self.force && matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
    }

    /// Reports an error, with the path from the root of the tree to it.
    fn report(&mut self, below: &Path, error: &io::Error) {
        // The error that comes first says why.
        let is_explained = self.failed && error.kind() == ErrorKind::DirectoryNotEmpty;
        if is_explained || self.is_ignored(error) {
            return;
        }
        self.failed = true;
        let path: PathBuf = Path::new(self.path).components().chain(below.components()).collect();
        let text = format!("rm: {}: {error}", path.display());
        // Control characters in a name could be commands to a terminal.
        let _ = writeln!(io::stderr(), "{}", text.replace(char::is_control, "?"));
    }
}
