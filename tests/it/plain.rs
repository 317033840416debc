//! Two plain tests, to read first. Each makes directories, reads or walks them, and compares paths.

use crate::support::tree::Tree;
use lendir::{Buffer, Entries, WalkDirs};
use std::os::fd::AsFd;
use std::path::PathBuf;

/// Returns the paths of the directories that `walk` yields, relative to `tree`.
fn paths(mut walk: WalkDirs, tree: &Tree) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    while let Some(dir) = walk.next().unwrap() {
        paths.push(dir.path().strip_prefix(tree.path()).unwrap().to_owned());
    }
    paths
}

#[test]
fn entries_omit_dots() {
    let tree = Tree::of(&["dir/", "file", ".hidden"]);
    let dir = lendir::open(tree.path()).unwrap();
    let mut buffer = Buffer::new();
    let mut entries = Entries::new(dir.as_fd(), &mut buffer);
    let mut names = Vec::new();
    while let Some(entry) = entries.next().unwrap() {
        names.push(entry.name().to_vec());
    }
    names.sort();
    assert_eq!(names, [&b".hidden"[..], b"dir", b"file"]);
}

#[test]
fn second_visits_follow_the_subtree() {
    let tree = Tree::of(&["a/b/"]);
    let walk = WalkDirs::options().second_visits(true).open(tree.path()).unwrap();
    assert_eq!(paths(walk, &tree), ["", "a", "a/b", "a/b", "a", ""].map(PathBuf::from));
}
