//! Contenders that walk a tree. They do not know how they are measured.

use crate::contender::Contender;
use crate::reader;
use crate::readers::{FLAGS, bare};
use crate::trees::{Answer, Tree};
use lendir::{Buffer, Listing, Walk, WalkOptions};
use rustix::fs::{Mode, openat};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The bare walk, which is the base of every other walk. It knows all directories beforehand. It
/// opens each directory relative to its parent and reads it by the bare loop. It closes a parent
/// once the last subdirectory is open.
pub fn bare_walk(tree: &Tree) -> Contender<'_> {
    let steps = tree.steps();
    let mut buffer = vec![0; Buffer::DEFAULT_CAPACITY];
    let mut open = Vec::new(); // each with the number of subdirectories that are not yet open
    Contender::counting("bare walk", tree.oracle(Answer::Records), move || {
        let mut bytes = 0;
        for (name, directories) in &steps {
            let parent = open.pop();
            let dir = match &parent {
                Some((parent, _)) => openat(parent, name, FLAGS, Mode::empty()),
                None => rustix::fs::open(name, FLAGS, Mode::empty()),
            }
            .expect("cannot open the directory");
            open.extend(parent.and_then(|(parent, left)| (left > 1).then(|| (parent, left - 1))));
            bytes += bare(&dir, &mut buffer);
            if *directories > 0 {
                open.push((dir, *directories));
            }
        }
        bytes
    })
}

reader!(Walking { tree: &'a Tree } |take| {
    let mut walk = lendir::walk_dirs(tree.path()).expect("cannot open the root");
    while let Some(mut dir) = walk.next().expect("cannot open a directory of the tree") {
        while let Some(entry) = dir.next().expect("cannot read the directory") {
            take(entry.name());
        }
    }
});

reader!(WalkingSorted { tree: &'a Tree, listing: Listing } |take| {
    let mut walk = lendir::walk_dirs(tree.path()).expect("cannot open the root");
    while let Some(mut dir) = walk.next().expect("cannot open a directory of the tree") {
        dir.read_into(listing).expect("cannot read the directory");
        for entry in &*listing {
            take(entry.name());
        }
    }
});

reader!(
    /// Reads every entry in one loop, by `walk`.
    EachEntry { tree: &'a Tree, options: WalkOptions } |take| {
        let mut tree = options.clone().open(tree.path()).expect("cannot open the root");
        while let Some(entry) = tree.next().expect("cannot read the tree") {
            take(entry.name());
        }
    }
);

reader!(
    /// Takes whole paths, not names.
    OwnedPaths { tree: &'a Tree } |take| {
        for entry in lendir::walk(tree.path()).expect("cannot open the root") {
            take(entry.expect("cannot read the tree").path().as_os_str().as_bytes());
        }
    }
);

reader!(Recursive { tree: &'a Tree } |take| {
    visit(tree.path(), &mut take);
});

/// Descends only after a directory is read and closed. Otherwise a long chain would exhaust the
/// descriptors.
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

/// Returns the contenders that do not sort, the bare walk first.
pub fn unsorted(tree: &Tree) -> Vec<Contender<'_>> {
    let by_directory = || tree.oracle(Answer::ByDirectory);
    let by_entry = tree.oracle(Answer::ByEntry);
    let walk = EachEntry { tree, options: Walk::options() };
    vec![
        bare_walk(tree),
        Contender::reading("std::fs::read_dir", by_directory(), Recursive { tree }),
        Contender::reading("lendir", by_directory(), Walking { tree }),
        Contender::reading("lendir, walk", by_entry, walk),
    ]
}

pub fn sorted(tree: &Tree) -> [Contender<'_>; 2] {
    let [by_directory, by_entry] =
        [Answer::ByDirectorySorted, Answer::ByEntrySorted].map(|it| tree.oracle(it));
    let walk = EachEntry { tree, options: Walk::options().order(lendir::Order::Bytes) };
    let walk_dirs = WalkingSorted { tree, listing: Listing::new() };
    [
        Contender::reading("lendir, sorted", by_directory, walk_dirs),
        Contender::reading("lendir, walk, sorted", by_entry, walk),
    ]
}

/// Returns a contender that iterates over owned paths.
pub fn paths(tree: &Tree) -> Contender<'_> {
    Contender::reading("lendir, walk, paths", tree.oracle(Answer::Paths), OwnedPaths { tree })
}
