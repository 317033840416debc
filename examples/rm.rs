//! Removes each PATH: `rm [-r] PATH...`. With `-r`, it also removes directories and their contents.
//! The program never asks.
//!
//! The program looks up every PATH before it removes the first directory. If a PATH leads to
//! another directory later, the program reports `ENOENT` and does not remove that directory. Every
//! other step is relative to an open directory. So if another process replaces directories by links
//! meanwhile, above PATH or below it, nothing outside of PATH is removed.
//!
//! A symbolic link is removed and not followed. `/`, and each PATH that ends with `.` or `..`, is
//! refused with `EPERM`.
//!
//! The example shows second visits.

use lendir::rustix::fs::{AtFlags, CWD, Mode, Stat, openat, stat, statat, unlinkat};
use lendir::rustix::io::Errno;
use lendir::{Dir, Error, FileType, OFlags, WalkDirs};
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
    let paths: Vec<_> = args.collect();
    if paths.is_empty() || paths.iter().any(|path| path.as_bytes().starts_with(b"-")) {
        return Err(io::Error::other("usage: rm [-r] PATH..."));
    }

    let all = id(&stat("/")?);
    let (mut rm, mut roots) = (Rm::default(), Vec::new());
    for path in paths.iter().map(Path::new) {
        let bytes = path.as_os_str().as_bytes();
        let last = bytes.rsplit(|byte| *byte == b'/').find(|part| !part.is_empty());
        let root = path.components().as_path(); // a slash at the end would follow a link
        let name = root.file_name().unwrap_or_default();
        let above = Path::new(".").join(root.parent().unwrap_or(Path::new("")));
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let found = openat(CWD, above, flags, Mode::empty())
            .and_then(|parent| Ok((statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW)?, parent)));
        match found {
            _ if matches!(last, Some(b"." | b"..")) || root == Path::new("/") => {
                rm.report(path, Some(Errno::PERM));
            }
            Ok((found, _)) if id(&found) == all => rm.report(root, Some(Errno::PERM)),
            Ok((found, _)) if recursive && FileType::from_raw_mode(found.st_mode).is_dir() => {
                roots.push((root, id(&found)));
            }
            Ok((_, parent)) => {
                // With its slashes, so that `file/` is an error. `unlinkat` removes no directory.
                let name = &bytes[root.as_os_str().len() - name.len()..];
                rm.report(path, unlinkat(parent, name, AtFlags::empty()).err());
            }
            Err(errno) => rm.report(path, Some(errno)),
        }
    }
    // The state is the error of reading a directory. An empty directory that cannot be read can
    // still be removed.
    let options = WalkDirs::options().follow_root_links(false).second_visits(true).with_state(None);
    let mut walk = options.open_all(roots.iter().map(|(root, _)| root));
    let mut roots = roots.iter().copied();
    while let Some(dir) =
        walk.next_ok(|error| rm.report(error.path(), Errno::from_io_error(error.io_error())))
    {
        if dir.is_second_visit() {
            rm.leave(&dir);
            continue;
        }
        if dir.depth() == 0 {
            // The walk visits the roots in order, without those that it could not open.
            let root = roots.find(|(root, _)| *root == dir.path());
            let same = |(_, found)| dir.stat().is_ok_and(|opened| id(&opened) == found);
            rm.is_other_root = !root.is_some_and(same);
        }
        rm.enter(dir);
    }
    Ok(!rm.failed)
}

/// Returns the device and the inode number.
fn id(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

#[derive(Default)]
struct Rm {
    /// Whether the current root is not the directory that was found at first.
    is_other_root: bool,
    failed: bool,
}

impl Rm {
    /// Removes all entries of a directory except its subdirectories.
    fn enter(&mut self, mut dir: Dir<'_, Option<Errno>>) {
        if self.is_other_root {
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
            _ if self.is_other_root => Err(Errno::NOENT),
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
