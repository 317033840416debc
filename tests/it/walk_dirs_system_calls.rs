//! The system calls of a walk, as budgets: three for a directory if its file system marks the end,
//! otherwise four.

use crate::support::machine::{has_types, is_marked};
use crate::support::process::{as_nobody, leave_room};
use crate::support::strace::{Counted, totals};
use crate::support::tree::{self, Tree, chmod};
use lendir::{Dir, Listing, WalkDirs, WalkDirsOptions};
use rustix::fs::{Mode, mkdirat};
use std::collections::BTreeMap;
use std::iter;
use std::os::unix::fs::symlink;
use std::path::Path;

fn read_all(dir: &mut Dir<'_>) {
    while dir.next_or_report(|_| ()).is_some() {}
}

/// Makes a chain. Beside each next directory, there is an empty one that comes last, and cannot be
/// read or searched.
fn forbidden_chain(at: &Path) {
    tree::nest_with(at, 40, |dir, _| {
        mkdirat(dir, "m", Mode::RWXU).unwrap();
        mkdirat(dir, "z", Mode::empty()).unwrap();
    });
}

/// Returns the number of calls for a small directory of this file system, read to its end: to open,
/// to read and to close it.
fn calls_for(dir: &Path) -> usize {
    if is_marked(dir) { 3 } else { 4 }
}

fn assert_few(totals: &BTreeMap<String, usize>, most: usize, what: &str) {
    let calls: usize = totals.values().sum();
    assert!(calls <= most, "{what}: {calls} calls, not {most}: {totals:?}");
}

/// A case: what a caller does, the number of directories that are opened, and of extra calls each.
type Case = (&'static str, fn(WalkDirsOptions) -> WalkDirsOptions, fn(&mut Dir<'_>), usize, usize);

/// The directories of the tree. One of them cannot be read.
const PATHS: [&str; 8] = ["a/b/c/f", "a/d/", "e/f", "skipped/g/", "f", "x/1", "x/2", "secret/"];

const CASES: [Case; 9] = [
    ("reads all", |options| options, read_all, 10, 0),
    ("on one mount", |options| options.same_mount(true), read_all, 10, 0),
    // The second visits need the parent of the root.
    ("second visits", |options| options.second_visits(true), read_all, 11, 0),
    ("reads a listing", |options| options, |dir| drop(dir.read_into(&mut Listing::new())), 10, 0),
    ("does not read", |options| options, |_| (), 10, 0),
    ("reads one entry", |options| options, |dir| drop(dir.next()), 10, 0),
    ("skips everything", |options| options, |dir| dir.skip_subdirs(), 1, 0),
    ("skips an entry", |options| options, skip_one, 8, 0),
    ("stops above the bottom", |options| options.max_depth(2), |dir| drop(dir.next()), 6, 0),
];

fn skip_one(dir: &mut Dir<'_>) {
    while let Some(entry) = dir.next_or_report(|_| ()) {
        if entry.name() == b"skipped" {
            entry.skip_subtree();
        }
    }
}

/// A walk reads what the caller does not read, and reads nothing twice. It
/// opens nothing that is skipped, queries no entry, and makes no call for a link.
#[test]
fn directory_takes_three_or_four_calls() {
    const TEST: &str = "walk_dirs_system_calls::directory_takes_three_or_four_calls";
    let tree = Tree::of(&["f"]);
    if !has_types(TEST, tree.path()) {
        return;
    }
    let parts = totals(TEST, || {
        as_nobody(|| {
            let tree = Tree::of(&PATHS);
            for name in ["a/l", "a/b/1", "a/b/2", "l"] {
                symlink(tree.path().join("x"), tree.path().join(name)).unwrap();
            }
            chmod(tree.path().join("secret"), 0o300);
            for (_, options, look, ..) in CASES {
                let _counted = Counted::begin();
                let mut walk = options(WalkDirs::options()).open(tree.path()).unwrap();
                while let Some(mut dir) = walk.next_or_report(|_| ()) {
                    look(&mut dir);
                }
            }
        });
    });
    for ((what, _, _, opened, extra), totals) in CASES.iter().zip(parts.into_iter().flatten()) {
        // The file system is queried for its end marker, and the unreadable directory is opened
        // twice more. After its error the walk looks once for a filter, by two calls.
        assert_few(&totals, opened * (calls_for(tree.path()) + extra) + 5, what);
        // Under `same_mount`, the mount of the unreadable directory is queried.
        let is_query = |call: &str| call.contains("stat") && call != "fstatfs";
        let queries = totals.iter().filter(|(call, _)| is_query(call)).map(|all| all.1);
        assert!(queries.sum::<usize>() <= 2, "{what}: {totals:?}");
    }
}

/// A closed level takes two calls to be recognised, two to be reopened and closed, and one to tell
/// whether its birth time can be trusted. On the way back, each level between takes two.
#[test]
fn closed_level_takes_five_calls() {
    const TEST: &str = "walk_dirs_system_calls::closed_level_takes_five_calls";
    type Make = fn(&Path);
    let apart: Make = |at| {
        let levels = [(tree::COMB, 6), (tree::CHAIN, 40), (tree::COMB, 6)];
        tree::nest(at, levels.into_iter().flat_map(|(names, count)| iter::repeat_n(names, count)));
    };
    let comb: Make = |at| tree::comb(at, 40);
    // The limits, the directories, the levels with pending directories, and those between.
    let cases = [
        (comb, 4, 32, 1 + 3 * 40, 40, 0),
        (apart, 4, 32, 1 + 3 * 12 + 40, 12, 40),
        (comb, 32, 10, 1 + 3 * 40, 40, 0), // the process runs out of descriptors, once
        (forbidden_chain, 4, 32, 1 + 2 * 40, 40, 0), // the walk returns from the parents
    ];
    let parts = totals(TEST, || {
        as_nobody(|| {
            for (make, max_open, room, ..) in cases {
                let tree = Tree::new(make);
                let _others = leave_room(room);
                let _counted = Counted::begin();
                let mut walk = WalkDirs::options().max_open(max_open).open(tree.path()).unwrap();
                while let Some(mut dir) = walk.next().unwrap() {
                    let _ = dir.read_into(&mut Listing::new());
                }
            }
        });
    });
    let calls = calls_for(Tree::new(|_| ()).path());
    for ((_, max_open, room, dirs, levels, between), totals) in
        cases.iter().zip(parts.into_iter().flatten())
    {
        let what = format!("{max_open} open, room for {room}");
        assert_few(&totals, dirs * calls + 5 * levels + 2 * between + 3, &what);
    }
}
