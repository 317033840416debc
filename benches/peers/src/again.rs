//! A tree walked again, without reading the directories that have not changed: what each holds is known from the first time.
//!
//! Times have the grain of a clock tick. A program that must not miss a change reads again what was changed less than a tick
//! before it was read.

use lendir::{Buffer, Entries, FileType, OFlags};
use lendir_benches::contender::Contender;
use lendir_benches::trees::{Answer, Tree};
use rustix::fs::{AtFlags, CWD, Stat, statat};
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

/// The walk before the one that is timed finds everything new.
pub fn incremental(tree: &Tree) -> Contender<'_> {
    let mut known = Known::default();
    let root = CString::new(tree.path().as_os_str().as_bytes()).expect("BUG: a path without NUL");
    let mut walk = move || known.visit(CWD, &root).expect("the tree");
    walk();
    Contender::counting("unchanged directories not read", tree.oracle(Answer::Bytes), walk)
}

/// The directories of the last walk.
#[derive(Default)]
struct Known {
    directories: HashMap<(u64, u64), Directory>,
    buffer: Buffer,
}

/// What was read of one, and when it had been changed last by then.
struct Directory {
    stamp: Stamp,
    /// Of its own names.
    bytes: u64,
    below: Vec<CString>,
}

/// Making, removing or renaming an entry changes both times; nobody can set the second one back.
#[derive(PartialEq, Eq)]
struct Stamp([i64; 2], [u64; 2]);

impl Stamp {
    fn of(stat: &Stat) -> Self {
        Self([stat.st_mtime, stat.st_ctime], [stat.st_mtime_nsec, stat.st_ctime_nsec])
    }
}

impl Known {
    /// The bytes of all names below a directory. If it has not changed, and has no directories in it, it is not even opened.
    fn visit(&mut self, parent: BorrowedFd<'_>, name: &CStr) -> io::Result<u64> {
        let stat = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let (id, stamp) = ((stat.st_dev, stat.st_ino), Stamp::of(&stat));
        let known = self.directories.remove(&id).filter(|known| known.stamp == stamp);
        let (bytes, directory) = match known {
            Some(known) if known.below.is_empty() => (known.bytes, known),
            known => {
                let dir = lendir::openat_with(parent, name, OFlags::NOFOLLOW)?;
                let directory = known.map_or_else(|| self.read(&dir, stamp), Ok)?;
                (directory.bytes + self.below(&dir, &directory)?, directory)
            }
        };
        self.directories.insert(id, directory);
        Ok(bytes)
    }

    fn below(&mut self, dir: &OwnedFd, directory: &Directory) -> io::Result<u64> {
        let below = directory.below.iter().map(|name| match self.visit(dir.as_fd(), name) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(0), // removed meanwhile
            bytes => bytes,
        });
        below.sum()
    }

    fn read(&mut self, dir: &OwnedFd, stamp: Stamp) -> io::Result<Directory> {
        let (mut bytes, mut below) = (0, Vec::new());
        let mut entries = Entries::new(dir, &mut self.buffer);
        while let Some(entry) = entries.next()? {
            bytes += entry.name().len() as u64;
            if entry.resolve_file_type()? == FileType::Directory {
                below.push(entry.name_cstr().into());
            }
        }
        Ok(Directory { stamp, bytes, below })
    }
}
