//! Walks while others change the tree, calls fail, or the file system lies. This file has what they share: the ways to walk, and
//! the result of a walk.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))] // where `trap` knows the registers
mod answers;
mod changes;
mod copy_up;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod faults;
mod hostile;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod markers;
mod mounts;
mod no_atime;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod openat2;
mod parallel;
mod procfs;
mod self_bind;
mod swaps;
mod twins;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod walk;

use crate::support::scan::errno;
use crate::support::tree::make;
use crate::support::visits::{Lent, Visit, What, by_std};
use crate::support::way::{PLAIN, Way};
use lendir::{FileType, Order, Walk, WalkDirs};
use libc::c_int;
use rustix::fs::{AtFlags, unlinkat};
use rustix::io::Errno;
use std::ffi::CStr;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Its order is known, and it closes levels early.
pub const SORTED: Way = Way { is_sorted: true, max_open: 4, ..PLAIN };

pub const WAYS: [Way; 6] = [
    PLAIN,
    Way { is_sorted: false, ..SORTED },
    Way { is_sorted: false, second_visits: true, ..SORTED },
    Way { is_sorted: false, is_on_one_mount: true, ..SORTED },
    SORTED,
    Way { second_visits: true, is_on_one_mount: true, ..SORTED },
];

impl Way {
    pub fn begin(self, root: impl AsRef<Path>) -> Run {
        let walk = self.options().from_fd(lendir::open(root.as_ref()).unwrap(), "");
        Run { walk, way: self, lent: Lent::default() }
    }

    pub fn walk_dirs(self, root: impl AsRef<Path>) -> Told {
        self.begin(root).finish()
    }

    /// The same on several threads.
    pub fn run_parallel(self, root: impl AsRef<Path>, threads: usize) -> Told {
        Told::of(self.begin(root).run_parallel(threads).into_iter().flatten())
    }

    /// What a `Walk` with these options lends. It tells entries and errors.
    pub fn walk(self, root: impl AsRef<Path>) -> Told {
        let root = lendir::open(root.as_ref()).unwrap();
        let order = if self.is_sorted { Order::Bytes } else { Order::Unsorted };
        let options = Walk::options().max_open(self.max_open).max_depth(self.max_depth);
        let mut tree = options.same_mount(self.is_on_one_mount).order(order).from_fd(root, "");
        let mut told = Told::default();
        loop {
            match tree.next() {
                Ok(None) => return told,
                Ok(Some(entry)) => told.entries.push(entry.path().into()),
                Err(error) => told.errors.push((error.path().into(), errno(&error))),
            }
        }
    }

    /// What it must lend, in a sorted walk in this order.
    fn by_std(self, root: &Path) -> impl Iterator<Item = Visit> {
        let visits = by_std(root, self.second_visits, |_| self.plan());
        visits.into_iter().map(move |visit| Visit {
            path: visit.path.strip_prefix(root).unwrap().into(),
            ..visit
        })
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
    pub fn of(visits: impl IntoIterator<Item = Visit>) -> Self {
        let mut told = Self::default();
        for visit in visits {
            told.entries.extend(visit.entries());
            let Visit { path, depth, what } = visit;
            assert_eq!(depth, path.components().count());
            match what {
                What::First(_) => told.visited.push(path),
                What::Second => told.left.push(path),
                What::Error(errno) => told.errors.push((path, errno)),
            }
        }
        told
    }

    /// The result for the tree at `root`, by `std`.
    pub fn by_std(root: &Path) -> io::Result<Self> {
        let told = Self::of(PLAIN.by_std(root));
        match told.errors.first() {
            Some((_, errno)) => Err(io::Error::from_raw_os_error(*errno)),
            None => Ok(told.sorted()),
        }
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

    pub fn with_errors<P: Into<PathBuf>>(
        mut self,
        errors: impl IntoIterator<Item = (P, c_int)>,
    ) -> Self {
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
}

/// A walk that is under way.
pub struct Run {
    pub walk: WalkDirs,
    way: Way,
    pub lent: Lent,
}

impl Run {
    /// Takes the next directory, with all of its entries, or an error. Returns whether there was one.
    pub fn step(&mut self) -> bool {
        self.lent.take(&mut self.walk, |_| (), |_| self.way.plan())
    }

    /// Goes on until `dir` has been visited.
    pub fn until(&mut self, dir: impl AsRef<Path>) {
        while !self.lent.is_at(dir.as_ref()) {
            assert!(self.step(), "the walk ended before it came to {}", dir.as_ref().display());
        }
    }

    /// What is left of it, as several threads tell it.
    fn run_parallel(self, threads: usize) -> Vec<Vec<Visit>> {
        self.walk.run_parallel(threads, |worker| {
            let mut lent = Lent::default();
            while lent.take(worker, |_| (), |_| self.way.plan()) {}
            lent.visits
        })
    }

    /// Goes on to the end, and asks beyond it.
    pub fn finish(mut self) -> Told {
        while self.step() {}
        assert!(!self.step(), "the walk goes on after its end");
        Told::of(self.lent.visits)
    }
}

/// Checks what each way tells, on one thread, on three, and by a `Walk`.
fn check_ways<'t>(tree: &Path, expected: impl Fn(Way) -> &'t Told, what: &str) {
    for way in WAYS {
        for (told, threads) in [(way.walk_dirs(tree), 1), (way.run_parallel(tree, 3), 3)] {
            let (told, expected) = (told.sorted(), expected(way));
            assert_eq!(told, *expected, "{what}, {way:?}, {threads} threads");
        }
        let expected = Told { visited: vec![], ..expected(way).clone() };
        assert_eq!(way.walk(tree).sorted(), expected, "{what}, {way:?}, a `Walk`");
    }
}

/// `rm -r` on the second visits. It never leaves the tree: it removes each name from the directory that it was read from, and
/// follows no link. It skips what others add, remove or swap meanwhile.
pub fn remove_contents(root: OwnedFd) -> io::Result<()> {
    let is_of_others =
        |errno| matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::ISDIR | Errno::NOTEMPTY);
    let remove = |dir: BorrowedFd<'_>, name: &CStr, flags| match unlinkat(dir, name, flags) {
        Err(errno) if !is_of_others(errno) => Err(errno),
        _ => Ok(()),
    };
    let mut walk = WalkDirs::options().second_visits(true).from_fd(root, "");
    loop {
        let mut dir = match walk.next() {
            Ok(Some(dir)) => dir,
            Ok(None) => return Ok(()),
            Err(error) if Errno::from_io_error(error.io_error()).is_some_and(is_of_others) => {
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        if let Some((parent, name)) = dir.parent_and_name() {
            remove(parent, name, AtFlags::REMOVEDIR)?;
        }
        while let Some(entry) = dir.next()? {
            // For a directory of unknown type, this is `EISDIR`.
            if entry.d_type() != FileType::Directory {
                remove(entry.dir_fd(), entry.name_cstr(), AtFlags::empty())?;
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
