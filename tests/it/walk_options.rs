//! The options of a walk: `max_depth` against `find`, all of them set midway, and walks without a tree.

use crate::fixture::run;
use crate::support::machine::{passed, skip};
use crate::support::process::as_nobody;
use crate::support::scan::errno;
use crate::support::tree::{self, Tree};
use crate::system_calls::{Counted, log, name_of};
use crate::visits::{Plan, walked};
use lendir::{Listing, Walk};
use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::mem;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The root, and the paths of all entries that are lent: one by one, or sorted.
fn entries(walk: &mut Walk, is_sorted: bool) -> BTreeSet<Vec<u8>> {
    let (mut listing, mut paths) = (Listing::new(), BTreeSet::new());
    let mut add =
        |path: PathBuf| assert!(paths.insert(path.into_os_string().into_encoded_bytes()), "a path came twice");
    while let Some(mut dir) = walk.next().unwrap() {
        if dir.depth() == 0 && !dir.is_second_visit() {
            add(dir.path().to_owned());
        }
        if is_sorted {
            dir.read(&mut listing).unwrap();
            listing.iter().for_each(|entry| add(dir.path().join(entry.name_os())));
        }
        while let Some(entry) = dir.next().unwrap() {
            add(entry.path());
        }
    }
    paths
}

#[test]
fn deepest_level_is_that_of_find() {
    if !Command::new("find").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return skip("walk_options::deepest_level_is_that_of_find", "find");
    }
    let mut cases = 0;
    for seed in 0..3 {
        let tree = Tree::new(|at| tree::random(at, seed));
        for max_depth in [0, 1, 2, 3, 5, 9, 100] {
            let found =
                run(Command::new("find").arg(tree.path()).args(["-maxdepth", &max_depth.to_string(), "-print0"]));
            let found: BTreeSet<_> = found.stdout.split(|byte| *byte == 0).filter(|path| !path.is_empty()).collect();
            for (is_sorted, is_post_order, max_open) in
                [(false, false, 32), (true, false, 32), (false, true, 32), (true, true, 4), (false, false, 4)]
            {
                let walk = || Walk::open(tree.path()).unwrap().max_open(max_open).post_order(is_post_order);
                let paths = entries(&mut walk().max_depth(max_depth), is_sorted);
                assert!(
                    paths.iter().map(|path| &path[..]).eq(found.iter().copied()),
                    "max_depth {max_depth}, seed {seed}"
                );
                let parts = walk().max_depth(max_depth).spread(3, |walk| entries(walk, is_sorted));
                let count: usize = parts.iter().map(BTreeSet::len).sum();
                assert_eq!(count, found.len(), "max_depth {max_depth}, on 3 threads, seed {seed}");
                cases += 2;
            }
        }
    }
    passed("walk: max_depth", cases, "walks down to a depth from 0 to 100, as `find -maxdepth` says");
}

/// Set midway, it holds from the next directory on.
#[test]
fn deepest_level_is_set_midway() {
    let tree = Tree::new(|at| tree::comb(at, 10));
    for max_open in [4, 32] {
        for set_at in 1..10 {
            for most in 0..12 {
                let mut walk = Walk::open(tree.path()).unwrap().max_open(max_open);
                let mut is_set = false;
                while let Some(mut dir) = walk.next().unwrap() {
                    let depth = dir.depth();
                    let mut lent = 0;
                    while dir.next().unwrap().is_some() {
                        lent += 1;
                    }
                    if is_set {
                        assert_eq!(
                            lent > 0,
                            dir.path().join("m").exists() && depth < most,
                            "{dir:?}, max_depth {most} set at level {set_at}"
                        );
                    } else if depth == set_at {
                        walk = walk.max_depth(most);
                        is_set = true;
                    }
                }
            }
        }
    }
}

/// The walk does not read the rest of a directory at the deepest level, because it enters nothing there.
#[test]
fn rest_of_the_deepest_directories_is_not_read() {
    let test = "walk_options::rest_of_the_deepest_directories_is_not_read";
    let lines = log(test, &[], || {
        let tree = Tree::new(|at| {
            tree::make(at, &["a/", "b/"]);
            for name in ["a", "b"] {
                tree::wide(&at.join(name), 1000, 200);
            }
        });
        let mut walk = Walk::open(tree.path()).unwrap().max_depth(2);
        let _counted = Counted::begin();
        while let Some(mut dir) = walk.next().unwrap() {
            let _ = dir.next().unwrap();
        }
    });
    let Some(lines) = lines else { return };
    let calls: Vec<_> = lines.iter().map(|line| name_of(line)).collect();
    let count = |calls: &[&str], call: &str| calls.iter().filter(|other| **other == call).count();
    let (_, below_root) =
        calls.split_at(calls.iter().position(|call| *call == "openat2").expect("nothing below the root is opened"));
    assert_eq!((count(below_root, "openat2"), count(below_root, "getdents64")), (2, 2), "{calls:?}");
    assert_eq!((count(&calls, "lseek"), count(below_root, "lseek")), (1, 0), "only the root is read again: {calls:?}");
}

#[test]
fn post_order_set_midway_holds_from_the_next_tree_on() {
    let tree = Tree::of(&["a/b/", "c/"]);
    let seconds = |walk: &mut Walk| {
        let mut seconds = 0;
        while let Some(dir) = walk.next().unwrap() {
            seconds += usize::from(dir.is_second_visit());
        }
        seconds
    };
    for is_first in [false, true] {
        let mut walk = Walk::open(tree.path()).unwrap().post_order(is_first);
        assert!(walk.next().unwrap().is_some());
        walk = walk.post_order(!is_first);
        assert_eq!(seconds(&mut walk), if is_first { 4 } else { 0 });
        walk.reopen(tree.path()).unwrap();
        assert_eq!(seconds(&mut walk), if is_first { 0 } else { 4 });
    }
}

/// Whatever limit is set at each step, the walk lends every directory.
#[test]
fn descriptors_are_limited_midway() {
    let tree = Tree::new(|at| tree::comb(at, 30));
    for is_post_order in [false, true] {
        let mut walk = Walk::open(tree.path()).unwrap().post_order(is_post_order);
        let mut visits = 0;
        while walk.next().unwrap().is_some() {
            visits += 1;
            walk = walk.max_open([4, 40, 1, 9, 0][visits % 5]).same_mount(visits % 3 == 0);
        }
        assert_eq!(visits, if is_post_order { 2 * 91 } else { 91 });
    }
}

#[test]
fn walk_without_a_tree_is_at_its_end() {
    let tree = Tree::of(&["a/b/"]);
    let mut walk = Walk::default();
    assert!(walk.next().unwrap().is_none() && walk.next().unwrap().is_none());
    assert!(walk.next_or(|_| unreachable!()).is_none());
    assert_eq!(format!("{walk:?}").split_once(", options").unwrap().0, r#"Walk { path: "", depth: 0"#);
    walk.reopen(tree.path()).unwrap();
    assert_eq!(walked(&mut walk, |_| Plan::ALL).len(), 3);
    walk.reset(lendir::open(tree.path()).unwrap(), "");
    assert_eq!(walked(&mut walk, |_| Plan::ALL).len(), 3);
    assert!(Walk::default().spread(3, |walk| walk.next().unwrap().is_none()).into_iter().all(|is_none| is_none));
    assert!(Walk::default().with_state(1).next().unwrap().is_none());

    // Options hold for the tree that comes.
    let mut walk = Walk::default().max_depth(1).post_order(true);
    walk.reopen(tree.path()).unwrap();
    assert_eq!(mem::take(&mut walk).spread(1, |walk| walked(walk, |_| Plan { lend: 0, ..Plan::ALL }).len()), [2]);
    assert!(walk.next().unwrap().is_none(), "it goes on after it was taken");
}

#[test]
fn walk_that_cannot_be_reopened_is_at_its_end() {
    let tree = Tree::of(&["a/b/", "file"]);
    for steps in 0..5 {
        let mut walk = Walk::open(tree.path()).unwrap().max_open(4);
        for _ in 0..steps {
            let _ = walk.next().unwrap().map(|mut dir| dir.next().map(|_| ()));
        }
        for (name, expected) in [("missing", libc::ENOENT), ("file", libc::ENOTDIR), ("a\0b", libc::EINVAL)] {
            let path = tree.path().join(name);
            let error = walk.reopen(&path).unwrap_err();
            assert_eq!((error.path(), error.depth(), errno(error.io_error())), (&*path, 0, expected));
            assert!(walk.next().unwrap().is_none());
        }
        walk.reopen(tree.path()).unwrap();
        assert_eq!(walked(&mut walk, |_| Plan::ALL).len(), 3, "after {steps} steps");
    }
}

/// The errors of a whole tree, with the rest of it.
#[test]
fn next_or_hands_over_each_error() {
    let tree = Tree::of(&["a/1/f", "a/2/f", "b/1/2/", "c/f", "d/e/"]);
    let secret = ["a/1", "b/1/2", "c"].map(|name| tree.path().join(name));
    let chmod = |mode| secret.iter().for_each(|path| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap());
    chmod(0);
    let (mut paths, errors) = as_nobody(|| {
        let (mut paths, mut errors) = (Vec::new(), Vec::new());
        let mut walk = Walk::open(tree.path()).unwrap();
        let mut on_error = |error: lendir::Error| errors.push((error.path().to_owned(), errno(error.io_error())));
        while let Some(mut dir) = walk.next_or(&mut on_error) {
            paths.push(dir.path().to_owned());
            while dir.next_or(|_| unreachable!()).is_some() {}
        }
        (paths, errors)
    });
    chmod(0o700);
    paths.sort();
    let expected = ["", "a", "a/2", "b", "b/1", "d", "d/e"];
    assert!(paths.iter().map(|path| path.strip_prefix(tree.path()).unwrap()).eq(expected.iter().map(Path::new)));
    let mut errors: Vec<_> = errors;
    errors.sort();
    assert!(errors.into_iter().eq(secret.iter().map(|path| (path.clone(), libc::EACCES))));
}
