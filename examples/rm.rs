//! Removes each PATH: `rm [-r] [-j N] PATH...`. With `-r`, it also removes directories and their
//! contents. The program never asks.
//!
//! N is the number of threads that remove the contents of one PATH. The default is 1, and 0 means
//! one for each core, but at least 8. More threads help where a tree has many directories, because
//! the kernel lets only one of them at a time remove from a directory.
//!
//! The program looks up every PATH before it removes the first directory. If a PATH leads to
//! another directory later, the program reports `ENOENT` and does not remove that directory. Every
//! other step is relative to an open directory. So if another process replaces directories by links
//! meanwhile, above PATH or below it, nothing outside of PATH is removed.
//!
//! A symbolic link is removed and not followed. `/`, and each PATH that ends with `.` or `..`, is
//! refused with `EPERM`.
//!
//! If a directory is not empty although all that was listed is gone, because another process made
//! an entry or a server left one out, the program empties it again, for as long as each round finds
//! fewer entries than the last. So it ends even where a file comes back under another name, as it
//! does on FUSE while a process has it open.
//!
//! In a directory on ext4 with more than a thousand files, the program sorts the others by inode
//! number, some 100,000 at a time. Everywhere else it removes each file as soon as it is listed.
//! The recipe *Remove a tree* gives both reasons.
//!
//! The example shows second visits on several threads.

use lendir::{Dir, Error, FileType, WalkDirs, WalkDirsOptions};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat, fstatfs, openat, stat, statat, unlinkat};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::io::{self, Write};
use std::ops::Bound::{Included, Unbounded};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;

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
fn rm(mut args: impl Iterator<Item = OsString>) -> io::Result<bool> {
    let (mut recursive, mut threads, mut paths) = (false, 1, Vec::new());
    while let Some(arg) = args.next() {
        match arg.as_bytes() {
            b"-r" => recursive = true,
            b"-j" => {
                let number = args.next().and_then(|number| number.to_str()?.parse().ok());
                threads = number.ok_or_else(|| io::Error::other("-j needs a number"))?;
            }
            [b'-', ..] => return Err(usage()),
            _ => paths.push(arg),
        }
    }
    if paths.is_empty() {
        return Err(usage());
    }

    let all = id(&stat("/")?);
    let (rm, mut roots) = (Rm::default(), Vec::new());
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
            _ if bytes.is_empty() => rm.report(Path::new("''"), Errno::NOENT),
            _ if matches!(last, Some(b"." | b"..")) || root == Path::new("/") => {
                rm.report(path, Errno::PERM);
            }
            Ok((found, _)) if id(&found) == all => rm.report(root, Errno::PERM),
            Ok((found, _)) if recursive && is_dir(&found) => {
                roots.push((root, id(&found)));
            }
            Ok((_, parent)) => {
                // With its slashes, so that `file/` is an error. `unlinkat` removes no directory.
                let name = &bytes[root.as_os_str().len() - name.len()..];
                let removed = unlinkat(parent, name, AtFlags::empty());
                removed.unwrap_or_else(|errno| rm.report(path, errno));
            }
            Err(errno) => rm.report(path, errno),
        }
    }
    // One after another, because a PATH can be below another one.
    for (root, found) in roots {
        rm.remove_tree(root, found, threads);
    }
    Ok(rm.failed.into_inner().unwrap().is_empty())
}

fn usage() -> io::Error {
    io::Error::other("usage: rm [-r] [-j N] PATH...")
}

fn is_dir(stat: &Stat) -> bool {
    rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir()
}

/// Returns the device and the inode number.
fn id(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

/// Returns the options of a walk whose state is the error of reading a directory. An empty
/// directory that cannot be read can still be removed.
fn options() -> WalkDirsOptions<Option<Errno>> {
    WalkDirs::options().follow_root_links(false).second_visits(true).with_state(None)
}

/// From this many files on, the program asks whether a directory is on ext4. On a server, that
/// costs a request, which a small directory is not worth.
const MANY: usize = 1000;

/// The most memory that files take before they are removed, in bytes.
const MAX_MEMORY: usize = 8 << 20;

/// Returns whether the directory is on ext4, or on ext2 or ext3, which have the same number.
fn is_on_ext4(dir: BorrowedFd<'_>) -> bool {
    fstatfs(dir).is_ok_and(|found| found.f_type == 0xEF53) // EXT4_SUPER_MAGIC
}

#[derive(Default)]
struct Rm {
    /// The directories in which an entry could not be removed.
    failed: Mutex<BTreeSet<PathBuf>>,
}

impl Rm {
    /// Removes the tree at `root`, if that is still the directory `found`.
    fn remove_tree(&self, root: &Path, found: (u64, u64), threads: usize) {
        let walk = match options().open(root) {
            Ok(walk) => walk,
            Err(error) => return self.report_error(&error),
        };
        let _ = walk.run_parallel(threads, |worker| {
            while let Some(mut dir) = worker.next_or_report(|error| self.report_error(&error)) {
                if dir.is_second_visit() {
                    self.leave(&dir);
                } else if dir.depth() > 0
                    || dir.metadata().is_ok_and(|it| (it.dev(), it.ino()) == found)
                {
                    self.enter(&mut dir);
                } else {
                    self.report(dir.path(), Errno::NOENT);
                    return worker.stop();
                }
            }
        });
    }

    /// Removes all but the subdirectories of a directory. Returns the number of its entries.
    fn enter(&self, dir: &mut Dir<'_, Option<Errno>>) -> u64 {
        let (fd, path) = (dir.fd(), dir.path());
        let (mut unread, mut count) = (None, 0);
        let (mut file_count, mut is_sorting) = (0, false);
        let (mut files, mut memory) = (Vec::new(), 0);
        while let Some(entry) =
            dir.next_or_report(|error| unread = Errno::from_io_error(error.io_error()))
        {
            count += 1;
            match entry.d_type() {
                FileType::Directory => continue,
                FileType::Unknown => {} // it may be a directory, which the walk must enter
                _ if is_sorting => {
                    memory += 64 + entry.name().len(); // with what the allocator needs
                    files.push((entry.ino(), entry.name_cstr().to_owned()));
                    if memory > MAX_MEMORY {
                        self.remove_sorted(fd, path, &mut files);
                        memory = 0;
                    }
                    continue;
                }
                _ => {}
            }
            if self.remove_file(fd, path, entry.name_cstr()) {
                // Otherwise the walk would try to open an entry of unknown type.
                entry.skip_subtree();
            }
            file_count += 1;
            is_sorting |= file_count == MANY && is_on_ext4(fd);
        }
        self.remove_sorted(fd, path, &mut files);
        *dir.state_mut() = unread;
        count
    }

    /// Removes the files in the order of their inode numbers.
    fn remove_sorted(&self, dir: BorrowedFd<'_>, path: &Path, files: &mut Vec<(u64, CString)>) {
        files.sort_unstable();
        for (_, name) in files.drain(..) {
            self.remove_file(dir, path, &name);
        }
    }

    /// Removes an entry of the directory `dir`, unless it is a directory. Returns whether it did.
    fn remove_file(&self, dir: BorrowedFd<'_>, path: &Path, name: &CStr) -> bool {
        match unlinkat(dir, name, AtFlags::empty()) {
            Ok(()) => return true,
            Err(Errno::ISDIR) => {}
            Err(errno) => self.report(&path.join(OsStr::from_bytes(name.to_bytes())), errno),
        }
        false
    }

    /// Removes a directory whose contents were removed.
    fn leave(&self, dir: &Dir<'_, Option<Errno>>) {
        let Some((parent, name)) = dir.parent_and_name() else {
            return; // the walk has lost the parent, and has reported that
        };
        let mut fewest = Some(u64::MAX); // entries in a round; `None` after the last round
        while let Err(errno) = unlinkat(parent, name, AtFlags::REMOVEDIR) {
            if errno == Errno::NOTEMPTY && dir.state().is_none() {
                if self.has_failed_below(dir.path()) {
                    return; // an earlier error has said why
                }
                if let Some(before) = fewest {
                    fewest = self.empty_again(dir).filter(|count| *count < before);
                    continue;
                }
            }
            return self.report(dir.path(), dir.state().unwrap_or(errno));
        }
    }

    /// Removes what is in a directory by now. Returns the number of entries that it met.
    fn empty_again(&self, dir: &Dir<'_, Option<Errno>>) -> Option<u64> {
        let again = lendir::openat(dir.fd(), ".").ok()?;
        let (mut walk, mut count) = (options().from_fd(again, dir.path()), 0);
        while let Some(mut dir) = walk.next_or_report(|error| self.report_error(&error)) {
            if !dir.is_second_visit() {
                count += self.enter(&mut dir);
            } else if let Some((parent, name)) = dir.parent_and_name() {
                let _ = unlinkat(parent, name, AtFlags::REMOVEDIR); // its parent shows that
            }
        }
        Some(count)
    }

    fn has_failed_below(&self, dir: &Path) -> bool {
        let failed = self.failed.lock().unwrap();
        failed
            .range::<Path, _>((Included(dir), Unbounded))
            .next()
            .is_some_and(|first| first.starts_with(dir))
    }

    fn report_error(&self, error: &Error) {
        let path = error.path().unwrap_or(Path::new(""));
        self.report(path, Errno::from_io_error(error.io_error()).unwrap_or(Errno::IO));
    }

    fn report(&self, path: &Path, errno: Errno) {
        self.failed.lock().unwrap().insert(path.parent().unwrap_or(path).to_owned());
        let _ = writeln!(io::stderr(), "rm: {}", Error::new(path, errno));
    }
}
