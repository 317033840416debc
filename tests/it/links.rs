//! Which links are followed: those that the caller says, lent or not.

use crate::support::scan::errno;
use crate::support::tree::Tree;
use lendir::{FileType, Walk};
use std::os::unix::fs::symlink;

/// Directories, and links to one of them.
fn tree() -> Tree {
    let tree = Tree::of(&["a/below/", "b/", "file"]);
    for name in ["1", "2", "3", "4"] {
        symlink("a", tree.path().join(name)).unwrap();
    }
    symlink("file", tree.path().join("to_file")).unwrap();
    tree
}

/// The names of the directories of depth 1 that are left, in the order in which they come, and the errors.
fn left(walk: &mut Walk) -> (Vec<String>, Vec<(String, i32)>) {
    let (mut names, mut errors) = (Vec::new(), Vec::new());
    let mut note = |error: lendir::Error| {
        let name = error.path().file_name().unwrap().to_str().unwrap().to_owned();
        errors.push((name, errno(&error)));
    };
    while let Some(dir) = walk.next_ok(&mut note) {
        if dir.depth() == 1 {
            names.push(dir.name_os().to_str().unwrap().to_owned());
        }
    }
    (names, errors)
}

#[test]
fn only_links_that_the_caller_follows_are_entered() {
    let tree = tree();
    let mut walk = Walk::open(tree.path()).unwrap();
    let mut root = walk.next().unwrap().unwrap();
    root.follow_entry();
    while let Some(entry) = root.next().unwrap() {
        let name = entry.name().to_vec();
        match &name[..] {
            b"1" | b"to_file" => root.follow_entry(),
            b"2" => {
                root.follow_entry();
                root.skip_entry();
                root.follow_entry();
                assert!(!root.follow_name("2"), "it was skipped");
            }
            b"3" => assert!(root.follow_name("3") && !root.follow_name("3")),
            b"a" | b"b" => assert!(!root.follow_name(&name), "it is not a link"),
            _ => {}
        }
    }
    root.follow_entry(); // after the end
    let (mut names, errors) = left(&mut walk);
    names.sort();
    assert_eq!((&names[..], errors.len()), (&["1", "3", "a", "b"].map(str::to_owned)[..], 0));
}

#[test]
fn link_is_followed_though_its_directory_is_dropped_midway() {
    let tree = tree();
    let mut walk = Walk::open(tree.path()).unwrap();
    let mut root = walk.next().unwrap().unwrap();
    let link = root.find(|entry| entry.file_type() == FileType::Symlink && entry.name() != b"to_file");
    let mut expected =
        vec!["a".to_owned(), "b".to_owned(), link.unwrap().unwrap().name_os().to_str().unwrap().to_owned()];
    root.follow_entry();
    expected.sort();
    let (mut names, errors) = left(&mut walk);
    names.sort();
    assert_eq!((names, errors), (expected, vec![]));
}

/// So a caller can walk in an order of its own, and follow links.
#[test]
fn name_that_is_not_noted_is_followed() {
    let tree = tree();
    for is_lent in [false, true] {
        let mut walk = Walk::open(tree.path()).unwrap();
        let mut root = walk.next().unwrap().unwrap();
        root.skip_all();
        while is_lent && root.next().unwrap().is_some() {
            root.follow_entry(); // nothing
        }
        for name in ["3", "b", "missing", "to_file", "a/below", "1"] {
            assert!(root.follow_name(name) && !root.follow_name(name), "{name}");
        }
        root.enter("a");
        let names = ["3", "b", "1", "a"].map(str::to_owned).to_vec();
        assert_eq!(left(&mut walk), (names, vec![("below".to_owned(), libc::EINVAL)]));

        let mut walk = Walk::options().max_depth(1).open(tree.path()).unwrap();
        assert!(!walk.next().unwrap().unwrap().follow_name("1"), "it would be too deep");
        assert!(walk.next().unwrap().is_none());
    }
}

/// A link that is followed before it is lent is entered once.
#[test]
fn name_may_be_followed_before_it_is_lent() {
    let tree = tree();
    for is_read in [false, true] {
        let mut walk = Walk::open(tree.path()).unwrap();
        let mut root = walk.next().unwrap().unwrap();
        assert!(root.follow_name("1"));
        while is_read && root.next().unwrap().is_some() {}
        let (mut names, errors) = left(&mut walk);
        names.sort();
        assert_eq!((&names[..], errors.len()), (&["1", "a", "b"].map(str::to_owned)[..], 0));
    }
}
