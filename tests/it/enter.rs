//! `Dir::enter` enters what the caller names, whether it was lent or not.

use crate::spread::THREADS;
use crate::support::machine::Watchdog;
use crate::support::tree::{self, Tree};
use crate::visits::{Plan, by_std, directories, errors, walked};
use lendir::{Dir, Listing, Walk};
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

/// What the caller does in the root, and the directories that are then entered.
type Case = (&'static str, fn(&mut Dir<'_>), &'static [&'static str]);

const CASES: [Case; 8] = [
    // A `Dir` that is dropped midway is read again, without the directories that were entered.
    ("before the first entry", |dir| assert!(dir.enter("a")), &["a", "a/b", "e"]),
    (
        "after all was skipped",
        |dir| {
            dir.skip_all();
            dir.enter("a");
        },
        &["a", "a/b"],
    ),
    (
        "after all was skipped, and then lent",
        |dir| {
            dir.skip_all();
            dir.enter("a");
            while dir.next().unwrap().is_some() {}
        },
        &["a", "a/b"],
    ),
    (
        "before all is skipped",
        |dir| {
            dir.enter("a");
            dir.skip_all();
            dir.enter("e");
        },
        &["e"],
    ),
    (
        "twice",
        |dir| {
            dir.skip_all();
            (0..2).for_each(|_| assert!(dir.enter("e")));
        },
        &["e"],
    ),
    (
        "skipped by name",
        |dir| {
            dir.skip_all();
            dir.enter("a");
            dir.enter("e");
            dir.skip_name("a");
        },
        &["e"],
    ),
    (
        "after the end",
        |dir| {
            while let Some(entry) = dir.next().unwrap() {
                entry.skip_below();
            }
            dir.enter("a");
        },
        &["a", "a/b"],
    ),
    (
        "dropped midway",
        |dir| {
            let first = dir.next().unwrap().unwrap();
            first.skip_below();
            let first = first.name().to_vec();
            dir.enter(first);
        },
        &["a", "a/b", "e"],
    ),
];

#[test]
fn directory_that_is_named_is_entered() {
    let tree = Tree::of(&["a/b/", "e/"]);
    for (what, call, expected) in CASES {
        for second_visits in [false, true] {
            let mut walk = Walk::options().second_visits(second_visits).open(tree.path()).unwrap();
            call(&mut walk.next().unwrap().unwrap());
            let visits = walked(&mut walk, |_| Plan::ALL);
            let expected: Vec<_> = expected.iter().map(|path| tree.path().join(path)).collect();
            assert_eq!(
                (directories(&visits), errors(&visits)),
                (expected.iter().map(|path| &**path).collect(), vec![]),
                "{what}"
            );
        }
    }
    let mut walk = Walk::open(tree.path()).unwrap();
    let mut root = walk.next().unwrap().unwrap();
    root.enter("a");
    while root.next().unwrap().is_some() {}
    let expected = ["a", "a/b", "e"].map(|path| tree.path().join(path));
    let visits = walked(&mut walk, |_| Plan::ALL);
    assert_eq!(directories(&visits), expected, "a directory that is entered and lent must come once");
}

#[test]
fn what_cannot_be_entered_is_one_error() {
    let tree = Tree::of(&["a/", "ab/", "file", "a.b/"]);
    let outside = Tree::of(&["below/"]);
    symlink(outside.path(), tree.path().join("link")).unwrap();
    symlink("nowhere", tree.path().join("dangling")).unwrap();
    let long = "n".repeat(256);
    let cases: [(&[u8], &str, i32); 14] = [
        (b"", "", libc::EINVAL),
        (b".", ".", libc::EINVAL),
        (b"..", "..", libc::EINVAL),
        (b"/", "/", libc::EINVAL),
        (b"a/", "a/", libc::EINVAL),
        (b"a/b", "a/b", libc::EINVAL),
        (b"../a", "../a", libc::EINVAL),
        (b"a\0b", r"a\0b", libc::EINVAL),
        (b"a\0", r"a\0", libc::EINVAL),
        (b"file", "file", libc::ENOTDIR),
        (b"link", "link", libc::ENOTDIR),
        (b"dangling", "dangling", libc::ENOTDIR),
        (b"missing", "missing", libc::ENOENT),
        (long.as_bytes(), &long, libc::ENAMETOOLONG),
    ];
    for (name, shown, expected) in cases {
        for second_visits in [false, true] {
            let reads: [fn(&mut Dir<'_>); 3] = [
                |_| (),
                |dir| while dir.next().unwrap().is_some() {},
                |dir| dir.read_into(&mut Listing::new()).unwrap(),
            ];
            for read in reads {
                let mut walk = Walk::options().second_visits(second_visits).open(tree.path()).unwrap();
                let mut root = walk.next().unwrap().unwrap();
                root.enter(name);
                read(&mut root);
                let visits = walked(&mut walk, |_| Plan::ALL);
                let there = ["a", "a.b", "ab"].map(|path| tree.path().join(path));
                assert_eq!(directories(&visits), there, "{}", name.escape_ascii());
                let [(path, errno)] = errors(&visits)[..] else { panic!("{}: {visits:?}", name.escape_ascii()) };
                assert_eq!(errno, expected);
                // As bytes: to `Path`, "a/" equals "a".
                let path = path.as_os_str().as_bytes().strip_prefix(tree.path().as_os_str().as_bytes()).unwrap();
                assert_eq!(path.strip_prefix(b"/").unwrap(), shown.as_bytes());
            }
        }
    }
}

#[test]
fn nothing_is_entered_at_the_deepest_level_or_at_a_second_visit() {
    let tree = Tree::of(&["a/b/c/"]);
    for max_depth in 0..4 {
        let mut walk = Walk::options().max_depth(max_depth).second_visits(true).open(tree.path()).unwrap();
        let mut visits = Vec::new();
        while let Some(mut dir) = walk.next().unwrap() {
            visits.push(dir.depth());
            for name in ["a", "b", "c", "..", "missing"] {
                if dir.is_second_visit() || dir.depth() + 1 >= max_depth {
                    assert!(!dir.enter(name) && !dir.follow_name(name));
                }
            }
        }
        let deepest = max_depth.saturating_sub(1);
        assert_eq!(visits, (0..=deepest).chain((0..=deepest).rev()).collect::<Vec<_>>(), "{max_depth}");
    }
}

/// Nothing is read: the caller skips each directory, and enters those below it by name.
#[test]
fn threads_enter_what_is_named() {
    let _watchdog = Watchdog::new(300);
    let tree = Tree::new(|at| tree::random(at, 11));
    let all = by_std(tree.path(), false, |_| Plan::ALL);
    let all = directories(&all);
    let mut below = BTreeMap::<_, Vec<_>>::new();
    for path in &all {
        below.entry(path.parent().unwrap()).or_default().push(path.file_name().unwrap());
    }
    for max_open in [4, 32] {
        for second_visits in [false, true] {
            for threads in THREADS {
                let walk = Walk::options().max_open(max_open).second_visits(second_visits).open(tree.path()).unwrap();
                let parts = walk.spread(threads, |worker| {
                    let mut paths = Vec::new();
                    while let Some(mut dir) = worker.next().unwrap() {
                        if dir.is_second_visit() {
                            continue;
                        }
                        dir.skip_all();
                        for name in below.get(dir.path()).into_iter().flatten() {
                            dir.enter(name.as_bytes());
                        }
                        paths.push(dir.path().to_owned());
                    }
                    paths
                });
                let mut paths: Vec<_> = parts.into_iter().flatten().collect();
                paths.sort_unstable_by(|a: &PathBuf, b| a.as_os_str().cmp(b.as_os_str()));
                assert_eq!(paths, all, "{threads} threads, {max_open} open, second visits {second_visits}");
            }
        }
    }
}
