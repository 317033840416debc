//! `rm [-r] PATH...` removes each PATH. With `-r` it removes directories too, with everything below them. It shows
//! `second_visits`.
//!
//! Each PATH is looked up once, and every later step is relative to an open directory. So if another process swaps directories
//! for links meanwhile, above PATH or below it, nothing outside of PATH is removed. A symbolic link is removed, not followed.
//! The program never asks. It refuses / and each PATH that ends in . or .., with EPERM.

use lendir::rustix::fs::{AtFlags, CWD, stat, statat, unlinkat};
use lendir::rustix::io::Errno;
use lendir::{Dir, Error, FileType, WalkDirs};
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    match rm(std::env::args_os().skip(1)) {
        Ok(is_removed) => ExitCode::from(u8::from(!is_removed)),
        Err(error) => {
            let _ = writeln!(io::stderr(), "rm: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs with these arguments, and returns whether it removed everything. The error is one of usage.
fn rm(args: impl Iterator<Item = OsString>) -> io::Result<bool> {
    let mut args = args.peekable();
    let recursive = args.next_if(|arg| arg == "-r").is_some();
    let (paths, mut roots) = (args.collect::<Vec<_>>(), Vec::new());
    if paths.is_empty() || paths.iter().any(|path| path.as_bytes().starts_with(b"-")) {
        return Err(io::Error::other("usage: rm [-r] PATH..."));
    }

    let all = stat("/")?;
    let mut rm = Rm { all: (all.st_dev, all.st_ino), failed: false };
    for path in paths.iter().map(Path::new) {
        let root = path.components().as_path(); // without slashes at the end, which would follow a link
        let name =
            path.as_os_str().as_bytes().rsplit(|byte| *byte == b'/').find(|part| !part.is_empty());
        match statat(CWD, root, AtFlags::SYMLINK_NOFOLLOW) {
            _ if matches!(name, Some(b"." | b"..")) => rm.report(path, Some(Errno::PERM)),
            Ok(found)
                if recursive && FileType::from_raw_mode(found.st_mode) == FileType::Directory =>
            {
                roots.push(root);
            }
            // Whatever the path leads to by now, `unlinkat` removes no directory.
            found => {
                rm.report(path, found.and_then(|_| unlinkat(CWD, path, AtFlags::empty())).err());
            }
        }
    }
    // The state is the error of reading a directory. If the directory is empty, it can be removed all the same.
    let options = WalkDirs::options().follow_root_links(false).second_visits(true).with_state(None);
    let mut walk = options.open_all(roots);
    while let Some(dir) =
        walk.next_ok(|error| rm.report(error.path(), Errno::from_io_error(error.io_error())))
    {
        if dir.is_second_visit() { rm.leave(&dir) } else { rm.enter(dir) }
    }
    Ok(!rm.failed)
}

struct Rm {
    /// The device and inode number of `/`.
    all: (u64, u64),
    failed: bool,
}

impl Rm {
    /// Removes everything but directories.
    fn enter(&mut self, mut dir: Dir<'_, Option<Errno>>) {
        if dir.depth() == 0 && !dir.stat().is_ok_and(|root| (root.st_dev, root.st_ino) != self.all)
        {
            *dir.state_mut() = Some(Errno::PERM);
            return dir.skip_subdirs();
        }
        let mut unread = None;
        while let Some(entry) = dir.next_ok(|error| unread = Errno::from_io_error(error.io_error()))
        {
            let removed = match entry.d_type() {
                FileType::Directory => Err(Errno::ISDIR),
                _ => unlinkat(entry.dir_fd(), entry.name_cstr(), AtFlags::empty()),
            };
            match removed {
                Err(Errno::ISDIR) => {}
                Err(errno) => self.report(&entry.path(), Some(errno)),
                Ok(()) => entry.skip_subtree(), // otherwise the walk looks for a directory there, where types are unknown
            }
        }
        *dir.state_mut() = unread;
    }

    /// Removes the directory itself, which is empty by now.
    fn leave(&mut self, dir: &Dir<'_, Option<Errno>>) {
        let removed = match dir.parent_and_name() {
            Some((parent, name)) => unlinkat(parent, name, AtFlags::REMOVEDIR),
            None => Err(Errno::NOENT), // its parent was moved
        };
        self.report(dir.path(), removed.err().map(|errno| dir.state().unwrap_or(errno)));
    }

    /// If a directory is not empty, an earlier error has said why.
    fn report(&mut self, path: &Path, error: Option<Errno>) {
        match error {
            None => {}
            Some(Errno::NOTEMPTY) if self.failed => {}
            Some(errno) => {
                self.failed = true;
                let _ = writeln!(io::stderr(), "rm: {}", Error::new(path, errno));
            }
        }
    }
}
