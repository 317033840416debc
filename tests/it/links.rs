//! A walk follows only the links that the caller names, lent or not, and comes back from there.

use crate::follow::{WAYS, followed, followed_by_std, made};
use crate::support::process;
use crate::support::tree::{self, Tree};
use crate::support::way::Way;
use crate::visits::{Lent, Plan, What, assert_nothing_is_lost_silently, errors, walked};
use crate::walk_bounds::leave_room;
use lendir::{FileType, Walk};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

/// Directories, and links to one of them.
fn linked() -> Tree {
    let tree = Tree::of(&["a/below/", "b/", "file"]);
    for name in ["1", "2", "3", "4"] {
        symlink("a", tree.path().join(name)).unwrap();
    }
    symlink("file", tree.path().join("to_file")).unwrap();
    tree
}

/// The names of the directories of depth 1 in the rest of the walk, in their order, and the errors.
fn rest(walk: &mut Walk) -> (Vec<String>, Vec<(String, i32)>) {
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    let visits = walked(walk, |_| Plan::ALL);
    let entered = visits.iter().filter(|visit| visit.depth == 1 && matches!(visit.what, What::First(_)));
    let errors = errors(&visits).into_iter().map(|(path, errno)| (name(path), errno));
    (entered.map(|visit| name(&visit.path)).collect(), errors.collect())
}

#[test]
fn only_links_that_the_caller_follows_are_entered() {
    let tree = linked();
    let mut walk = Walk::open(tree.path()).unwrap();
    let mut root = walk.next().unwrap().unwrap();
    while let Some(entry) = root.next().unwrap() {
        let name = entry.name().to_vec();
        match &name[..] {
            b"1" | b"to_file" => entry.follow(),
            b"2" => {
                entry.follow();
                entry.skip_below();
            }
            b"3" => {
                root.skip_name("3");
                assert!(root.follow_name("3"));
            }
            b"a" | b"b" => assert!(root.follow_name(&name)),
            _ => {}
        }
    }
    let (mut names, errors) = rest(&mut walk);
    names.sort();
    assert_eq!((&names[..], errors.len()), (&["1", "3", "a", "b"].map(str::to_owned)[..], 0));
}

#[test]
fn link_is_followed_though_its_directory_is_dropped_midway() {
    let tree = linked();
    let mut walk = Walk::open(tree.path()).unwrap();
    let mut root = walk.next().unwrap().unwrap();
    let link = root.find(|entry| entry.file_type().unwrap() == FileType::Symlink && entry.name() != b"to_file");
    let link = link.unwrap().unwrap();
    link.follow();
    let mut expected = vec!["a".to_owned(), "b".to_owned(), link.name_os().to_str().unwrap().to_owned()];
    expected.sort();
    let (mut names, errors) = rest(&mut walk);
    names.sort();
    assert_eq!((names, errors), (expected, vec![]));
}

/// So a caller can follow links in an order of its own.
#[test]
fn name_that_is_not_noted_is_followed() {
    let tree = linked();
    for is_lent in [false, true] {
        let mut walk = Walk::open(tree.path()).unwrap();
        let mut root = walk.next().unwrap().unwrap();
        root.skip_all();
        while let Some(entry) = if is_lent { root.next().unwrap() } else { None } {
            entry.follow(); // nothing
        }
        for name in ["3", "b", "missing", "to_file", "a/below", "1"] {
            assert!(root.follow_name(name), "{name}");
        }
        root.enter("a");
        let names = ["3", "b", "1", "a"].map(str::to_owned).to_vec();
        assert_eq!(rest(&mut walk), (names, vec![("below".to_owned(), libc::EINVAL)]));

        let mut walk = Walk::options().max_depth(1).open(tree.path()).unwrap();
        assert!(!walk.next().unwrap().unwrap().follow_name("1"), "a link is followed below max_depth");
        assert!(walk.next().unwrap().is_none());
    }
}

/// A link that is followed before it is lent is entered once.
#[test]
fn name_may_be_followed_before_it_is_lent() {
    let tree = linked();
    for is_read in [false, true] {
        let mut walk = Walk::open(tree.path()).unwrap();
        let mut root = walk.next().unwrap().unwrap();
        assert!(root.follow_name("1"));
        while is_read && root.next().unwrap().is_some() {}
        let (mut names, errors) = rest(&mut walk);
        names.sort();
        assert_eq!((&names[..], errors.len()), (&["1", "a", "b"].map(str::to_owned)[..], 0));
    }
}

/// A directory that the walk reaches through a link has other ancestors than one of the same depth that it reaches directly.
#[test]
fn ancestors_through_a_link_are_forgotten_with_it() {
    let tree = Tree::of(&["a/", "b/t/"]);
    let at = |name: &str| tree.path().join(name);
    symlink("../b/t", at("a/l")).unwrap();
    symlink("../../a", at("b/t/to_a")).unwrap();
    symlink("..", at("b/t/to_b")).unwrap();
    for way in WAYS {
        let way = Way { is_sorted: true, ..way };
        assert_eq!(followed(way, tree.path()), followed_by_std(way, tree.path()), "{way:?}");
    }
}

/// Levels with a directory `a` and a directory `z`, each below a link `m` of the one above: `0`, `1`, and so on.
pub fn nest(at: &Path, levels: usize) {
    for level in 0..levels {
        tree::make(at, &[format!("{level}/a/"), format!("{level}/z/")]);
        if level > 0 {
            symlink(at.join(level.to_string()), at.join(format!("{}/m", level - 1))).unwrap();
        }
    }
}

/// `..` leads elsewhere from a directory that a link led to: the levels above it are found by names. With some descriptors to
/// spare, some of these are left open.
#[test]
fn levels_above_links_are_closed_and_found() {
    const LEVELS: usize = 19; // The model opens paths, and twice as many links in one may be too many for the kernel.
    let parts = Tree::new(|at| nest(at, LEVELS));
    let root = parts.path().join("0");
    for (way, max_open) in WAYS.into_iter().flat_map(|way| [4, 5, 6, 7, 9, 12, 32].map(|max_open| (way, max_open))) {
        let way = Way { max_open, ..way };
        assert_eq!(followed(way, &root), followed_by_std(way, &root), "{way:?}");
    }
    let mut lost = 0;
    // Once the walk is below them all, one of the links leads elsewhere.
    let is_at = |at: &Path, level: usize| at == root.join("m/".repeat(level).trim_end_matches('/'));
    for (way, max_open) in WAYS[..6].iter().flat_map(|way| [4, 6, 9, 12].map(|max_open| (way, max_open))) {
        let way = Way { max_open, is_sorted: true, ..*way };
        let expected = followed_by_std(way, &root);
        for changed in [1, 5, 10, 17] {
            let link = parts.path().join(format!("{changed}/m"));
            let target = fs::read_link(&link).unwrap();
            let change = |target: &Path| {
                fs::remove_file(&link).unwrap();
                symlink(target, &link).unwrap();
            };
            tree::make(parts.path(), &["twin/a/"]);
            let (mut walk, mut lent) = (way.options().open(&root).unwrap(), Lent::default());
            let plan = |at: &Path| {
                if is_at(at, LEVELS - 1) {
                    change(&parts.path().join("twin"));
                }
                Plan { follows: true, ..way.plan() }
            };
            while lent.take(&mut walk, |_| (), plan) {}
            change(&target);
            fs::remove_dir_all(parts.path().join("twin")).unwrap();
            let what = format!("{way:?}, changed {changed}");
            assert_nothing_is_lost_silently(&lent.visits, &expected, &what);
            let errors = errors(&lent.visits);
            assert!(errors.iter().all(|(_, errno)| *errno == libc::ENOENT), "{what}: {errors:?}");
            assert!(errors.len() <= LEVELS - changed, "{what}: {errors:?}");
            lost += errors.len();
        }
    }
    assert!(lost > 50, "{lost} levels lost");
}

/// The way up through the ancestors takes two descriptors at a time. The first level, the current one and the link's target take
/// three.
#[test]
fn process_with_few_descriptors_follows_links() {
    process::run("links::process_with_few_descriptors_follows_links", 60, || {
        for seed in 0..8 {
            let (_tree, root) = made(seed);
            for way in WAYS {
                let expected = followed_by_std(way, &root);
                let others = leave_room(5);
                let visits = followed(way, &root);
                drop(others);
                assert_eq!(visits, expected, "seed {seed}, {way:?}");
            }
        }
    });
}
