//! Walks while others change the tree, calls fail, or the file system lies. This file has what they share: the ways to walk, and
//! the result of a walk.

mod changes;
mod copy_up;
mod endless;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))] // where `trap` knows the registers
mod faults;
mod hostile;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod markers;
mod mounts;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod openat2;
mod procfs;
mod self_bind;
mod spread;
mod swaps;
mod twins;

use crate::support::scan::errno;
use crate::support::tree::make;
use crate::support::way::{PLAIN, Way};
use lendir::{Dir, Error, FileType, Listing, Walk};
use libc::c_int;
use rustix::fs::{AtFlags, unlinkat};
use rustix::io::Errno;
use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Its order is known, and it closes levels early.
pub const SORTED: Way = Way { is_sorted: true, max_open: 4, ..PLAIN };

pub const WAYS: [Way; 6] = [
    PLAIN,
    Way { is_sorted: false, ..SORTED },
    Way { is_sorted: false, is_post_order: true, ..SORTED },
    Way { is_sorted: false, is_on_one_mount: true, ..SORTED },
    SORTED,
    Way { is_post_order: true, is_on_one_mount: true, ..SORTED },
];

impl Way {
    pub fn begin(self, root: impl AsRef<Path>) -> Run {
        let walk = self.options().from_fd(lendir::open(root.as_ref()).unwrap(), "");
        Run { walk, listing: self.is_sorted.then(Listing::new), told: Told::default() }
    }

    pub fn walk(self, root: impl AsRef<Path>) -> Told {
        self.begin(root).finish()
    }

    /// The same on several threads.
    pub fn spread(self, root: impl AsRef<Path>, threads: usize) -> Told {
        self.begin(root).spread(threads).into_iter().fold(Told::default(), Told::and)
    }
}

/// The result of a walk: paths relative to its root, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    pub entries: Vec<PathBuf>,
    /// The directories, at their first visit.
    pub visited: Vec<PathBuf>,
    /// The directories, at their second visit.
    pub left: Vec<PathBuf>,
    pub errors: Vec<(PathBuf, c_int)>,
}

impl Told {
    /// The result for the tree at `root`, by `std`.
    pub fn by_std(root: &Path) -> io::Result<Self> {
        let mut told = Self::default();
        let mut to_do = vec![PathBuf::new()];
        while let Some(dir) = to_do.pop() {
            for entry in fs::read_dir(root.join(&dir))? {
                let entry = entry?;
                let path = dir.join(entry.file_name());
                if entry.file_type()?.is_dir() {
                    to_do.push(path.clone());
                }
                told.entries.push(path);
            }
            told.visited.push(dir);
        }
        Ok(told.sorted())
    }

    /// The same in an order to compare by, without the second visits.
    pub fn sorted(mut self) -> Self {
        // As bytes: `Path` compares name by name, which would take most of the test's time.
        for paths in [&mut self.entries, &mut self.visited] {
            paths.sort_unstable_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
        }
        self.errors.sort_unstable();
        self.left.clear();
        self
    }

    /// The same result, if these directories were seen but not entered.
    pub fn without<Dir: AsRef<Path>>(mut self, directories: &[Dir]) -> Self {
        let is_in = |path: &Path| directories.iter().any(|dir| path.starts_with(dir));
        self.entries.retain(|path| !path.parent().is_some_and(is_in));
        self.visited.retain(|path| !is_in(path));
        self
    }

    /// The same result, if this directory was lent, but could not be read.
    pub fn unread(mut self, dir: &Path) -> Self {
        self.entries.retain(|path| !path.parent().is_some_and(|parent| parent.starts_with(dir)));
        self.visited.retain(|path| path == dir || !path.starts_with(dir));
        self
    }

    pub fn with_errors<P: Into<PathBuf>>(mut self, errors: impl IntoIterator<Item = (P, c_int)>) -> Self {
        self.errors = errors.into_iter().map(|(path, errno)| (path.into(), errno)).collect();
        self.errors.sort_unstable();
        self
    }

    /// This result and that of another thread.
    fn and(mut self, other: Self) -> Self {
        self.entries.extend(other.entries);
        self.visited.extend(other.visited);
        self.left.extend(other.left);
        self.errors.extend(other.errors);
        self
    }

    /// Takes the answer of `next`: a directory, with all of its entries, or an error. Returns whether it was one of them.
    fn take(&mut self, next: Result<Option<Dir<'_>>, Error>, listing: Option<&mut Listing>) -> bool {
        let Told { entries, visited, left, errors } = self;
        assert!(errors.len() < 100_000, "errors without end: {:?}", &errors[..3]);
        let mut note = |error: &Error| errors.push((error.path().to_owned(), errno(error)));
        let mut dir = match next {
            Ok(Some(dir)) => dir,
            Ok(None) => return false,
            Err(error) => {
                note(&error);
                return true;
            }
        };
        let path = dir.path();
        assert_eq!(dir.depth(), path.components().count());
        if dir.is_second_visit() {
            assert!(dir.next().unwrap().is_none());
            left.push(path.to_owned());
            return true;
        }
        visited.push(path.to_owned());
        if let Some(listing) = listing {
            let _ = dir.read_into(listing).map_err(|error| note(&error));
            entries.extend(listing.iter().map(|entry| path.join(entry.name_os())));
        } else {
            loop {
                match dir.next() {
                    Ok(Some(entry)) => entries.push(path.join(entry.name_os())),
                    Ok(None) => break,
                    Err(error) => note(&error),
                }
            }
        }
        true
    }
}

/// A walk that is under way.
pub struct Run {
    walk: Walk,
    /// If it is sorted.
    listing: Option<Listing>,
    pub told: Told,
}

impl Run {
    /// Takes the next directory, with all of its entries, or an error. Returns whether there was one.
    pub fn step(&mut self) -> bool {
        self.told.take(self.walk.next(), self.listing.as_mut())
    }

    /// Goes on until `dir` has been visited.
    pub fn until(&mut self, dir: impl AsRef<Path>) {
        while self.told.visited.last().is_none_or(|last| last != dir.as_ref()) {
            assert!(self.step(), "the walk ended before it came to {}", dir.as_ref().display());
        }
    }

    /// What is left of it, as several threads tell it.
    fn spread(self, threads: usize) -> Vec<Told> {
        self.walk.spread(threads, |worker| {
            let (mut told, mut listing) = (Told::default(), self.listing.is_some().then(Listing::new));
            while told.take(worker.next(), listing.as_mut()) {}
            told
        })
    }

    /// Goes on to the end, and asks beyond it.
    pub fn finish(mut self) -> Told {
        while self.step() {}
        assert!(!self.step(), "the walk goes on after its end");
        self.told
    }
}

/// `rm -r` on the second visits. It never leaves the tree: it removes each name from the directory that it was read from, and
/// follows no link. It skips what others add, remove or swap meanwhile.
pub fn remove_contents(root: OwnedFd) -> io::Result<()> {
    let is_of_others = |errno| matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::ISDIR | Errno::NOTEMPTY);
    let remove = |dir: BorrowedFd<'_>, name: &CStr, flags| match unlinkat(dir, name, flags) {
        Err(errno) if !is_of_others(errno) => Err(errno),
        _ => Ok(()),
    };
    let mut walk = Walk::options().post_order(true).from_fd(root, "");
    loop {
        let mut dir = match walk.next() {
            Ok(Some(dir)) => dir,
            Ok(None) => return Ok(()),
            Err(error) if Errno::from_io_error(error.io_error()).is_some_and(is_of_others) => continue,
            Err(error) => return Err(error.into()),
        };
        if let Some(parent) = dir.parent() {
            remove(parent, dir.name_cstr(), AtFlags::REMOVEDIR)?;
        }
        while let Some(entry) = dir.next()? {
            // For a directory of unknown type, this is `EISDIR`.
            if entry.file_type() != FileType::Directory {
                remove(entry.dir(), entry.name_cstr(), AtFlags::empty())?;
            }
        }
    }
}

/// The level `depth` of a [`comb`].
pub fn level(depth: usize) -> PathBuf {
    vec!["d"; depth].into_iter().collect()
}

/// Nested directories, `depth` levels deep. Each has something left to do on the way back: after `d`, the walk comes back to each
/// level for `z`.
pub fn comb(root: &Path, depth: usize) {
    let files: Vec<_> = (0..=depth).map(|depth| "d/".repeat(depth) + "z/file").collect();
    make(root, &files);
}
