//! Removes trees: `Walk::post_order`, and every step relative to an open directory, so no link can lead it elsewhere.

const HELP: &str = "\
Usage: rm [-rfx] [--] PATH...

Removes each PATH. A symbolic link is removed, not followed. It never asks, so there is no -i. It refuses /, and a PATH that
ends in . or ..

  -r, -R  remove directories too, with everything below them
  -f      say nothing of what is missing
  -x      do not enter a directory that a file system is mounted on: name it and leave it
  --help  print this text

If others swap directories for links meanwhile, nothing outside of PATH is removed. Exit status: 0, or 1 for an error.
";

use lendir::rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, fstat, stat, statat, statx, unlinkat};
use lendir::rustix::io::Errno;
use lendir::{Dir, Entry, Error, FileType, OFlags, Walk};
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
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
    let (mut recursive, mut force, mut one_mount, mut paths) = (false, false, false, Vec::new());
    while let Some(arg) = args.next() {
        match arg.as_bytes() {
            b"--help" => return io::stdout().write_all(HELP.as_bytes()).map(|()| true),
            b"--" => paths.extend(args.by_ref()),
            [b'-', b'-', ..] => return Err(usage(format!("unknown option {arg:?}"))),
            [b'-', letters @ ..] if !letters.is_empty() => {
                for letter in letters {
                    match letter {
                        b'r' | b'R' => recursive = true,
                        b'f' => force = true,
                        b'x' => one_mount = true,
                        b'i' => return Err(usage("-i is missing: this rm never asks")),
                        _ => return Err(usage(format!("unknown option -{}", letter.escape_ascii()))),
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
        let mut removal = Removal { path, force, one_mount, failed: false, unread: None };
        if let Err(error) = removal.run(recursive) {
            removal.report(path.as_ref(), &error);
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
    one_mount: bool,
    failed: bool,
    /// Of a directory that could not be read. Its second visit comes next, if it is still there. If it is empty, it can be
    /// removed, and the error does not matter.
    unread: Option<Error>,
}

impl Removal<'_> {
    fn run(&mut self, recursive: bool) -> io::Result<()> {
        let path = self.path.as_bytes();
        let end = path.iter().rposition(|byte| *byte != b'/').map_or(0, |at| at + 1);
        let begin = path[..end].iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
        let (parent, name) = (if begin == 0 { b"." } else { &path[..begin] }, &path[begin..end]);
        if matches!(name, b"" | b"." | b"..") && !path.is_empty() {
            return Err(io::Error::other("refused"));
        }

        let parent = lendir::openat_with(CWD, parent, OFlags::PATH)?;
        // With the slashes after the name, which ask for a directory.
        let name_as_typed = &path[begin..];
        let remove_file = || match unlinkat(&parent, name_as_typed, AtFlags::empty()) {
            // A read-only file system gives this error for what is missing, too.
            Err(Errno::ROFS) => match statat(&parent, name_as_typed, AtFlags::SYMLINK_NOFOLLOW) {
                Err(errno) => Err(errno.into()),
                Ok(_) => Err(Errno::ROFS.into()),
            },
            removed => Ok(removed?),
        };
        if !recursive {
            return remove_file();
        }
        let root = match lendir::openat_with(&parent, name, OFlags::NOFOLLOW) {
            Ok(root) => root,
            Err(error) if error.kind() == ErrorKind::NotADirectory => return remove_file(),
            // An empty directory need not be readable.
            Err(error) => return unlinkat(&parent, name, AtFlags::REMOVEDIR).map_err(|_| error),
        };
        let (this, all) = (fstat(&root)?, stat("/")?);
        if (this.st_dev, this.st_ino) == (all.st_dev, all.st_ino) {
            return Err(io::Error::other("refused, as it is /"));
        }

        let mut walk = Walk::new(root, self.path).post_order(true).same_mount(self.one_mount);
        while let Some(dir) = walk.next_or(|error| {
            self.report_unread();
            self.unread = Some(error).filter(|error| !self.is_ignored(error.io_error()));
        }) {
            if !dir.is_second_visit() {
                self.report_unread();
                self.remove_files(dir);
                continue;
            }
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
        Ok(())
    }

    /// Removes all but the directories.
    fn remove_files(&mut self, mut dir: Dir<'_>) {
        while let Some(entry) = dir.next_or(|error| self.report(error.path(), error.io_error())) {
            let removed = match entry.file_type() {
                FileType::Directory => Err(Errno::ISDIR),
                _ => unlinkat(entry.dir(), entry.name_cstr(), AtFlags::empty()),
            };
            match removed {
                Ok(()) => dir.skip_entry(), // it might have been a directory, where types are unknown
                Err(Errno::ISDIR) if self.one_mount && is_mount(&entry) => {
                    self.report(&entry.path(), &io::Error::other("left, as a file system is mounted on it"));
                }
                Err(Errno::ISDIR) => {}
                Err(errno) => self.report(&entry.path(), &errno.into()),
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

    fn report(&mut self, path: &Path, error: &io::Error) {
        // The error that comes first says why.
        let is_explained = self.failed && error.kind() == ErrorKind::DirectoryNotEmpty;
        if is_explained || self.is_ignored(error) {
            return;
        }
        self.failed = true;
        let text = format!("rm: {}: {error}", path.display());
        // Control characters in a name could be commands to a terminal.
        let _ = writeln!(io::stderr(), "{}", text.replace(char::is_control, "?"));
    }
}

/// Whether a file system is mounted on this directory. Linux says so since 5.8.
fn is_mount(entry: &Entry<'_>) -> bool {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    statx(entry.dir(), entry.name_cstr(), flags, StatxFlags::empty())
        .is_ok_and(|stat| stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}
