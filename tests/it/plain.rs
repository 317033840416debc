//! Five plain tests, to read first. Each makes directories, reads or walks them, and compares
//! paths.

use crate::support::tree::Tree;
use lendir::{Buffer, Entries, Listing, WalkDirs};
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
fn listing_sorts_by_name() {
    let tree = Tree::of(&["b", "C", "a/"]);
    let mut listing = Listing::new();
    listing.read(lendir::open(tree.path()).unwrap()).unwrap();
    let names: Vec<_> = listing.iter().map(|entry| entry.name()).collect();
    assert_eq!(names, [b"C", b"a", b"b"]);
}

#[test]
fn walk_dirs_yields_parents_first() {
    let tree = Tree::of(&["a/b/c/", "a/b/file"]);
    let walk = lendir::walk_dirs(tree.path()).unwrap();
    assert_eq!(paths(walk, &tree), ["", "a", "a/b", "a/b/c"].map(PathBuf::from));
}

#[test]
fn second_visits_follow_the_subtree() {
    let tree = Tree::of(&["a/b/"]);
    let walk = WalkDirs::options().second_visits(true).open(tree.path()).unwrap();
    assert_eq!(paths(walk, &tree), ["", "a", "a/b", "a/b", "a", ""].map(PathBuf::from));
}

#[test]
fn walk_dirs_skips_a_subtree() {
    let tree = Tree::of(&["a/", ".git/objects/"]);
    let mut walk = lendir::walk_dirs(tree.path()).unwrap();
    let mut names = Vec::new();
    while let Some(mut dir) = walk.next().unwrap() {
        while let Some(entry) = dir.next().unwrap() {
            names.push(entry.name().to_vec());
            if entry.name() == b".git" {
                entry.skip_subtree();
            }
        }
    }
    names.sort();
    assert_eq!(names, [&b".git"[..], b"a"]);
}
