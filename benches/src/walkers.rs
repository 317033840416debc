//! Contenders that walk a tree.

use crate::contender::{Contender, Reader};
use crate::readers::{FLAGS, bare, bare_marked};
use crate::trees::{Answer, Order, Tree};
use lendir::{Buffer, EndMarker, Listing, Walk};
use rustix::fs::{Mode, ResolveFlags, openat, openat2};
use rustix::io::Errno;
use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::thread::{self, available_parallelism};

/// Reads each directory as the bare loop does. It knows the directories beforehand, opens each relative to its parent, and
/// closes a parent once the last directory in it is open: what every other walk is measured against.
pub fn bare_walk(tree: &Tree) -> Contender<'_> {
    bare_walk_by("bare walk", tree, |parent, name| openat(parent, name, FLAGS, Mode::empty()), bare)
}

/// With the system calls that `Walk` makes under `same_mount`: `openat2`, and no `getdents64` to confirm the end.
pub fn bare_walk_one_mount(tree: &Tree) -> Option<Contender<'_>> {
    let open = |parent: &OwnedFd, name: &CStr| openat2(parent, name, FLAGS, Mode::empty(), ResolveFlags::NO_XDEV);
    let is_marked = tree.is_one_mount() && has_marker(tree.path());
    is_marked.then(|| bare_walk_by("bare walk, one mount", tree, open, bare_marked))
}

fn has_marker(path: &Path) -> bool {
    EndMarker::of(lendir::open(path).expect("cannot open the root")).expect("fstatfs failed") != EndMarker::NONE
}

fn bare_walk_by<'a>(
    name: &'static str,
    tree: &'a Tree,
    open_below: impl Fn(&OwnedFd, &CStr) -> Result<OwnedFd, Errno> + 'a,
    read: impl Fn(&OwnedFd, &mut [u8]) -> u64 + 'a,
) -> Contender<'a> {
    let steps = tree.steps();
    let mut buffer = vec![0; Buffer::DEFAULT_CAPACITY];
    let mut open = Vec::new(); // with the number of directories still to be opened in each
    Contender::counting(name, tree.oracle(Answer::Records), move || {
        let mut bytes = 0;
        for step in &steps {
            let parent = open.pop();
            let dir = match &parent {
                Some((parent, _)) => open_below(parent, &step.name),
                None => rustix::fs::open(&*step.name, FLAGS, Mode::empty()),
            }
            .expect("cannot open the directory");
            open.extend(parent.and_then(|(parent, left)| (left > 1).then(|| (parent, left - 1))));
            bytes += read(&dir, &mut buffer);
            if step.directories > 0 {
                open.push((dir, step.directories));
            }
        }
        bytes
    })
}

pub fn lendir(tree: &Tree) -> Contender<'_> {
    Contender::reading("lendir", tree.oracle(UNSORTED), Walking { root: tree.path(), set_up: |walk| walk })
}

/// While another thread sleeps, as all but one do on a tree that cannot be divided. Once it starts, the two share the table of
/// descriptors, so the kernel counts references.
pub fn lendir_beside_thread(tree: &Tree) -> Contender<'_> {
    let walking = Walking { root: tree.path(), set_up: |walk| walk };
    Contender::reading("lendir, a thread asleep", tree.oracle(UNSORTED), BesideThread(walking))
}

struct BesideThread<R>(R);

impl<R: Reader> Reader for BesideThread<R> {
    fn read(&mut self, take: impl FnMut(&[u8])) {
        thread::scope(|scope| {
            let asleep = scope.spawn(thread::park);
            self.0.read(take);
            asleep.thread().unpark();
        });
    }
}

/// `None` where the tree has a mount point below its root.
pub fn lendir_same_mount(tree: &Tree) -> Option<Contender<'_>> {
    let reader = Walking { root: tree.path(), set_up: |walk: Walk| walk.same_mount(true) };
    tree.is_one_mount().then(|| Contender::reading("lendir, same_mount", tree.oracle(UNSORTED), reader))
}

struct Walking<'a, S> {
    root: &'a Path,
    set_up: S,
}

impl<S: Fn(Walk) -> Walk> Reader for Walking<'_, S> {
    #[inline]
    fn read(&mut self, mut take: impl FnMut(&[u8])) {
        let mut walk = (self.set_up)(Walk::open(self.root).expect("cannot open the root"));
        while let Some(mut dir) = walk.next().expect("cannot open a directory of the tree") {
            while let Some(entry) = dir.next().expect("cannot read the directory") {
                take(entry.name());
            }
        }
    }
}

pub fn lendir_sorted(tree: &Tree) -> Contender<'_> {
    let reader = WalkingSorted { root: tree.path(), listing: Listing::new() };
    Contender::reading("lendir, sorted", tree.oracle(Answer::ByDirectory(Order::Sorted)), reader)
}

struct WalkingSorted<'a> {
    root: &'a Path,
    listing: Listing,
}

impl Reader for WalkingSorted<'_> {
    #[inline]
    fn read(&mut self, mut take: impl FnMut(&[u8])) {
        let mut walk = Walk::open(self.root).expect("cannot open the root");
        while let Some(mut dir) = walk.next().expect("cannot open a directory of the tree") {
            dir.read(&mut self.listing).expect("cannot read the directory");
            for entry in &self.listing {
                take(entry.name());
            }
        }
    }
}

pub fn std_recursive(tree: &Tree) -> Contender<'_> {
    Contender::reading("std::fs::read_dir", tree.oracle(UNSORTED), Recursive(tree.path()))
}

const UNSORTED: Answer = Answer::ByDirectory(Order::Directory);

/// Goes below only once a directory is read and closed, or a long chain would exhaust the descriptors.
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

/// By a thread for each core.
pub fn lendir_spread(tree: &Tree) -> Contender<'_> {
    Contender::counting("lendir, all cores", tree.oracle(Answer::Bytes), move || {
        Walk::open(tree.path()).expect("cannot open the root").spread(cores(), bytes).into_iter().sum()
    })
}

/// On each core a walk of the whole tree: divided by the number of cores, what `spread` could take at best.
pub fn lendir_on_each_core(tree: &Tree) -> Contender<'_> {
    Contender::counting("lendir, one on each core", tree.oracle(Answer::Bytes), move || {
        let whole = || bytes(&mut Walk::open(tree.path()).expect("cannot open the root"));
        thread::scope(|scope| {
            let others: Vec<_> = (1..cores()).map(|_| scope.spawn(whole)).collect();
            let first = whole();
            assert!(others.into_iter().all(|other| other.join().expect("a walk panicked") == first));
            first
        })
    })
}

/// How many threads a contender that uses all cores has.
pub fn cores() -> usize {
    available_parallelism().map_or(1, usize::from)
}

/// Of all names.
fn bytes(walk: &mut Walk) -> u64 {
    let mut bytes = 0;
    while let Some(mut dir) = walk.next().expect("cannot open a directory of the tree") {
        while let Some(entry) = dir.next().expect("cannot read the directory") {
            bytes += entry.name().len() as u64;
        }
    }
    bytes
}

/// The bare walk first.
pub fn all(tree: &Tree) -> Vec<Contender<'_>> {
    let mut all = vec![bare_walk(tree), std_recursive(tree), lendir(tree)];
    all.extend([lendir_sorted(tree), lendir_spread(tree)]);
    all.extend(lendir_same_mount(tree));
    all
}

/// What bounds `same_mount` and a walk by several threads.
pub fn bounds(tree: &Tree) -> impl Iterator<Item = Contender<'_>> {
    bare_walk_one_mount(tree).into_iter().chain([lendir_beside_thread(tree), lendir_on_each_core(tree)])
}
