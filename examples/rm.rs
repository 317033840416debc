//! Removes trees: `second_visits`, and every step relative to an open directory, so no link can lead it out of the tree.

const HELP: &str = "\
Usage: rm [-rfx] [--] PATH...

Removes each PATH. A symbolic link is removed, not followed. It never asks, so there is no -i. It refuses / and any PATH that
ends in . or .., with EPERM.

  -r, -R  remove directories too, with everything below them
  -f      ignore what is missing
  -x      do not enter a directory that a file system is mounted on: report it with EBUSY, and leave it
  --help  print this text

Even if others swap directories for links meanwhile, nothing outside of PATH is removed. Control characters are printed as ?.
Exit status: 0, or 1 for an error.
";

use lendir::rustix::fs::{AtFlags, CWD, Mode, StatxAttributes, StatxFlags, fstat, openat, stat, statat, unlinkat};
use lendir::rustix::io::Errno;
use lendir::{Dir, FileType, OFlags, Walk};
use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    match rm(std::env::args_os().skip(1)) {
        Ok(is_removed) => ExitCode::from(u8::from(!is_removed)),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "rm: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs with these arguments, and returns whether it removed everything. The error is one of output or of usage.
fn rm(mut args: impl Iterator<Item = OsString>) -> io::Result<bool> {
    let (mut recursive, mut paths, mut roots) = (false, Vec::new(), Vec::new());
    let mut rm = Rm { force: false, one_mount: false, failed: false };
    while let Some(arg) = args.next() {
        match arg.as_bytes() {
            b"--help" => return io::stdout().write_all(HELP.as_bytes()).map(|()| true),
            b"--" => paths.extend(args.by_ref()),
            [b'-', letters @ ..] if !letters.is_empty() => {
                for letter in letters {
                    match letter {
                        b'r' | b'R' => recursive = true,
                        b'f' => rm.force = true,
                        b'x' => rm.one_mount = true,
                        _ => return Err(usage(format!("unknown option {arg:?}"))),
                    }
                }
            }
            _ => paths.push(arg),
        }
    }
    if paths.is_empty() && !rm.force {
        return Err(usage("a PATH is missing"));
    }

    let all = stat("/")?;
    for path in paths.iter().map(Path::new) {
        let root = path.components().as_path(); // without slashes at the end, which would follow a link
        let name = path.as_os_str().as_bytes().rsplit(|byte| *byte == b'/').find(|part| !part.is_empty());
        match statat(CWD, root, AtFlags::SYMLINK_NOFOLLOW) {
            _ if matches!(name, Some(b"." | b"..")) => rm.report(path, Some(Errno::PERM)),
            Ok(found) if (found.st_dev, found.st_ino) == (all.st_dev, all.st_ino) => rm.report(path, Some(Errno::PERM)),
            Ok(found) if recursive && FileType::from_raw_mode(found.st_mode) == FileType::Directory => roots.push(root),
            found => rm.report(path, found.and_then(|_| unlinkat(CWD, path, AtFlags::empty())).err()),
        }
    }
    // The state is the error of reading a directory. If the directory is empty, it can be removed all the same.
    let options = Walk::options().follow_roots(false).second_visits(true).same_mount(rm.one_mount).with_state(None);
    let mut walk = options.open_all(roots);
    while let Some(dir) = walk.next_ok(|error| rm.report(error.path(), Errno::from_io_error(error.io_error()))) {
        if dir.is_second_visit() { rm.leave(&dir) } else { rm.enter(dir) }
    }
    Ok(!rm.failed)
}

fn usage(error: impl Display) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, format!("{error}; try --help"))
}

struct Rm {
    force: bool,
    one_mount: bool,
    failed: bool,
}

impl Rm {
    /// Removes everything but directories.
    fn enter(&mut self, mut dir: Dir<'_, Option<Errno>>) {
        let mut unread = None;
        while let Some(entry) = dir.next_ok(|error| unread = Errno::from_io_error(error.io_error())) {
            let attributes = || entry.statx(StatxFlags::empty()).map(|stat| stat.stx_attributes); // since Linux 5.8
            let is_mount = || attributes().is_ok_and(|all| all.contains(StatxAttributes::MOUNT_ROOT));
            let removed = match entry.d_type() {
                FileType::Directory => Err(Errno::ISDIR),
                _ => unlinkat(entry.dir_fd(), entry.name_cstr(), AtFlags::empty()),
            };
            match removed {
                Err(Errno::ISDIR) if self.one_mount && is_mount() => self.report(&entry.path(), Some(Errno::BUSY)),
                Err(Errno::ISDIR) => {}
                Err(errno) => self.report(&entry.path(), Some(errno)),
                Ok(()) => dir.skip_entry(), // it might have been a directory, where types are unknown
            }
        }
        *dir.state_mut() = unread;
    }

    fn leave(&mut self, dir: &Dir<'_, Option<Errno>>) {
        let removed = match dir.parent_and_name() {
            Some(_) if dir.depth() == 0 => remove_root(dir),
            Some((parent, name)) => unlinkat(parent, name, AtFlags::REMOVEDIR),
            None => Err(Errno::NOENT), // it was moved
        };
        self.report(dir.path(), removed.err().map(|errno| dir.state().unwrap_or(errno)));
    }

    /// Under -f, what is missing is no error. Why a directory is not empty, an earlier error has said.
    fn report(&mut self, path: &Path, error: Option<Errno>) {
        match error {
            None => {}
            Some(Errno::NOENT | Errno::NOTDIR) if self.force => {}
            Some(Errno::NOTEMPTY) if self.failed => {}
            Some(errno) => {
                self.failed = true;
                let path = path.to_string_lossy().replace(char::is_control, "?");
                let _ = writeln!(io::stderr(), "rm: {path}: {errno}");
            }
        }
    }
}

/// The path above the root may lead elsewhere by now, so this checks that the root is still there.
fn remove_root(root: &Dir<'_, Option<Errno>>) -> Result<(), Errno> {
    let (above, name) = (root.path().parent().unwrap_or(Path::new("")), root.name_os());
    let above = openat(CWD, Path::new(".").join(above), OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let (here, there) = (fstat(root.fd())?, statat(&above, name, AtFlags::SYMLINK_NOFOLLOW)?);
    let is_there = (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino);
    if is_there { unlinkat(above, name, AtFlags::REMOVEDIR) } else { Err(Errno::NOENT) }
}
