//! Contenders that walk a tree. They do not know how they are measured.

use crate::contender::{Contender, Reader};
use crate::readers::{FLAGS, bare};
use crate::trees::{Answer, Order, Tree};
use lendir::{Buffer, Listing, Walk};
use rustix::fs::{Mode, openat};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::thread::available_parallelism;

/// The bare walk, which is the base of every other walk. It knows all directories beforehand. It
/// opens each directory relative to its parent and reads it by the bare loop. It closes a parent
/// once the last subdirectory is open.
pub fn bare_walk(tree: &Tree) -> Contender<'_> {
    let steps = tree.steps();
    let mut buffer = vec![0; Buffer::DEFAULT_CAPACITY];
    let mut open = Vec::new(); // each with the number of subdirectories that are not yet open
    Contender::counting("bare walk", tree.oracle(Answer::Records), move || {
        let mut bytes = 0;
        for step in &steps {
            let parent = open.pop();
            let dir = match &parent {
                Some((parent, _)) => openat(parent, &step.name, FLAGS, Mode::empty()),
                None => rustix::fs::open(&*step.name, FLAGS, Mode::empty()),
            }
            .expect("cannot open the directory");
            open.extend(parent.and_then(|(parent, left)| (left > 1).then(|| (parent, left - 1))));
            bytes += bare(&dir, &mut buffer);
            if step.directories > 0 {
                open.push((dir, step.directories));
            }
        }
        bytes
    })
}

pub fn lendir(tree: &Tree) -> Contender<'_> {
    Contender::reading("lendir", tree.oracle(UNSORTED), Walking(tree.path()))
}

pub fn lendir_sorted(tree: &Tree) -> Contender<'_> {
    let sorted = WalkingSorted { root: tree.path(), listing: Listing::new() };
    Contender::reading("lendir, sorted", tree.oracle(Answer::ByDirectory(Order::Sorted)), sorted)
}

struct Walking<'a>(&'a Path);

impl Reader for Walking<'_> {
    #[inline]
    fn read(&mut self, mut take: impl FnMut(&[u8])) {
        let mut walk = lendir::walk_dirs(self.0).expect("cannot open the root");
        while let Some(mut dir) = walk.next().expect("cannot open a directory of the tree") {
            while let Some(entry) = dir.next().expect("cannot read the directory") {
                take(entry.name());
            }
        }
    }
}

struct WalkingSorted<'a> {
    root: &'a Path,
    listing: Listing,
}

impl Reader for WalkingSorted<'_> {
    #[inline]
    fn read(&mut self, mut take: impl FnMut(&[u8])) {
        let mut walk = lendir::walk_dirs(self.root).expect("cannot open the root");
        while let Some(mut dir) = walk.next().expect("cannot open a directory of the tree") {
            dir.read_into(&mut self.listing).expect("cannot read the directory");
            for entry in &self.listing {
                take(entry.name());
            }
        }
    }
}

/// Returns a contender that reads every entry in one loop, by `walk`.
pub fn walk(tree: &Tree) -> Contender<'_> {
    Contender::reading(
        "lendir, walk",
        tree.oracle(Answer::ByEntry(Order::Directory)),
        EachEntry(|| opened(tree)),
    )
}

pub fn walk_sorted(tree: &Tree) -> Contender<'_> {
    let options = Walk::options().order(lendir::Order::Bytes);
    let open = move || options.clone().open(tree.path()).expect("cannot open the root");
    Contender::reading(
        "lendir, walk, sorted",
        tree.oracle(Answer::ByEntry(Order::Sorted)),
        EachEntry(open),
    )
}

fn opened(tree: &Tree) -> Walk {
    lendir::walk(tree.path()).expect("cannot open the root")
}

struct EachEntry<F>(F);

impl<F: Fn() -> Walk> Reader for EachEntry<F> {
    #[inline]
    fn read(&mut self, mut take: impl FnMut(&[u8])) {
        let mut tree = (self.0)();
        while let Some(entry) = tree.next().expect("cannot read the tree") {
            take(entry.name());
        }
    }
}

/// A contender that iterates over owned paths. It takes whole paths, not names.
pub fn walk_paths(tree: &Tree) -> Contender<'_> {
    Contender::reading("lendir, walk, paths", tree.oracle(Answer::Paths), OwnedPaths(tree))
}

struct OwnedPaths<'a>(&'a Tree);

impl Reader for OwnedPaths<'_> {
    #[inline]
    fn read(&mut self, mut take: impl FnMut(&[u8])) {
        for path in opened(self.0).paths() {
            take(path.expect("cannot read the tree").as_os_str().as_bytes());
        }
    }
}

const UNSORTED: Answer = Answer::ByDirectory(Order::Directory);

pub fn standard(tree: &Tree) -> Contender<'_> {
    Contender::reading("std::fs::read_dir", tree.oracle(UNSORTED), Recursive(tree.path()))
}

/// Descends only after a directory is read and closed. Otherwise a long chain would exhaust the
/// descriptors.
struct Recursive<'a>(&'a Path);

impl Reader for Recursive<'_> {
    fn read(&mut self, mut take: impl FnMut(&[u8])) {
        visit(self.0, &mut take);
    }
}

fn visit(dir: &Path, take: &mut impl FnMut(&[u8])) {
    let mut below = Vec::new();
    for entry in std::fs::read_dir(dir).expect("cannot open the directory") {
        let entry = entry.expect("cannot read the directory");
        take(entry.file_name().as_bytes());
        if entry.file_type().expect("cannot tell its type").is_dir() {
            below.push(entry.path());
        }
    }
    for dir in &below {
        visit(dir, take);
    }
}

/// Returns a contender that walks with one thread for each core.
pub fn lendir_parallel(tree: &Tree) -> Contender<'_> {
    Contender::counting("lendir, all cores", tree.oracle(Answer::Bytes), || {
        walked_bytes(tree.path(), cores())
    })
}

/// Walks on several threads, and returns the bytes of all names.
pub fn walked_bytes(root: &Path, threads: usize) -> u64 {
    let walk = lendir::walk_dirs(root).expect("cannot open the root");
    let parts = walk.run_parallel(threads, |worker| {
        let mut bytes = 0;
        while let Some(mut dir) = worker.next().expect("cannot open a directory of the tree") {
            while let Some(entry) = dir.next().expect("cannot read the directory") {
                bytes += entry.name().len() as u64;
            }
        }
        bytes
    });
    parts.into_iter().sum()
}

/// Returns the number of threads of a contender that uses all cores.
pub fn cores() -> usize {
    available_parallelism().map_or(1, usize::from)
}

/// Returns the contenders, the bare walk first.
pub fn all(tree: &Tree) -> Vec<Contender<'_>> {
    vec![bare_walk(tree), standard(tree), lendir(tree), lendir_sorted(tree), walk(tree)]
}
