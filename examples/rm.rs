//! Removes each PATH: `rm [-r] PATH...`. With `-r`, it also removes directories and their contents.
//! The program never asks.
//!
//! Each PATH is looked up once, and every later step is relative to an open directory. So if
//! another process replaces directories by links meanwhile, above PATH or below it, nothing outside
//! of PATH is removed. A symbolic link is removed and not followed. `/`, and each PATH that ends
//! with `.` or `..`, is refused with `EPERM`.
//!
//! The example shows second visits.

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

/// Returns `true` if everything was removed. Returns an error of usage.
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
        let root = path.components().as_path(); // a slash at the end would follow a link
        let name =
            path.as_os_str().as_bytes().rsplit(|byte| *byte == b'/').find(|part| !part.is_empty());
        match statat(CWD, root, AtFlags::SYMLINK_NOFOLLOW) {
            _ if matches!(name, Some(b"." | b"..")) => rm.report(path, Some(Errno::PERM)),
            Ok(found)
                if recursive && FileType::from_raw_mode(found.st_mode) == FileType::Directory =>
            {
                roots.push(root);
            }
            // `unlinkat` removes no directory, even if the path leads to one by now.
            found => {
                rm.report(path, found.and_then(|_| unlinkat(CWD, path, AtFlags::empty())).err());
            }
        }
    }
    // The state is the error of reading a directory. An empty directory that cannot be read can
    // still be removed.
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
    /// Removes all entries of a directory except its subdirectories.
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
                // Otherwise the walk would try to open an entry of unknown type.
                Ok(()) => entry.skip_subtree(),
            }
        }
        *dir.state_mut() = unread;
    }

    /// Removes a directory whose contents were removed.
    fn leave(&mut self, dir: &Dir<'_, Option<Errno>>) {
        let removed = match dir.parent_and_name() {
            Some((parent, name)) => unlinkat(parent, name, AtFlags::REMOVEDIR),
            None => Err(Errno::NOENT), // another process has moved its parent
        };
        self.report(dir.path(), removed.err().map(|errno| dir.state().unwrap_or(errno)));
    }

    /// Reports an error. If a directory is not empty, an earlier error has said why.
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
