//! The system calls of a walk: three for a directory if its file system marks the end, otherwise
//! four.

use crate::support::machine::is_marked;
use crate::support::machine::{has_types, marked};
use crate::support::process::as_nobody;
use crate::support::process::leave_room;
use crate::support::strace::{Counted, totals};
use crate::support::tree::{self, Tree, chmod};
use lendir::{Dir, Listing, WalkDirs};
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use std::collections::BTreeMap;
use std::iter;
use std::os::unix::fs::symlink;
use std::path::Path;

fn walk_all(mut walk: WalkDirs, mut look: impl FnMut(&mut Dir<'_>)) {
    while let Some(mut dir) = walk.next().unwrap() {
        look(&mut dir);
    }
}

fn read_all(dir: &mut Dir<'_>) {
    while dir.next().unwrap().is_some() {}
}

/// Checks the system calls that `work` makes in its one counted part.
fn check(test: &str, expected: &[(&str, usize)], work: impl FnOnce()) {
    if let Some(parts) = totals(test, work) {
        assert_totals(&parts[0], expected, test);
    }
}

fn assert_totals(totals: &BTreeMap<String, usize>, expected: &[(&str, usize)], what: &str) {
    let totals: Vec<_> = totals.iter().map(|(call, times)| (call.as_str(), *times)).collect();
    assert_eq!(totals, expected, "{what}");
}

/// Returns the number of `getdents64` calls for a small directory of this file system: one with an
/// end marker, otherwise two.
fn reads(dir: &Path) -> usize {
    if is_marked(dir) { 1 } else { 2 }
}

/// Returns the same for [`Tree::of`]. If its directories list no types, reports that `test` is
/// skipped.
fn reads_on_disk(test: &str) -> Option<usize> {
    let tree = Tree::of(&["f"]);
    has_types(test, tree.path()).then(|| reads(tree.path()))
}

#[test]
fn directory_takes_three_or_four_calls() {
    const TEST: &str = "walk_dirs_system_calls::directory_takes_three_or_four_calls";
    const WITHOUT: &str = "/proc/sys/net/ipv4";
    let Some(with) = marked(TEST) else { return };
    let options = [
        WalkDirs::options(),
        WalkDirs::options().same_mount(true),
        WalkDirs::options().second_visits(true),
    ];
    let cases = || {
        [with, Path::new(WITHOUT)]
            .into_iter()
            .flat_map(|root| options.clone().map(|options| (root, options)))
    };
    let parts = totals(TEST, || {
        for (root, options) in cases() {
            let _counted = Counted::begin();
            walk_all(options.open(root).unwrap(), read_all);
        }
    });
    for (case, ((root, _), totals)) in cases().zip(parts.into_iter().flatten()).enumerate() {
        let (below, reads) = (totals["openat2"], reads(root));
        assert!(below >= 3, "{below} directories");
        let dirs = below + 1;
        // With second visits, the root's parent is opened.
        let parents = usize::from(case % options.len() == 2);
        // The root is opened by `openat`, and its end marker is queried.
        let expected = [
            ("close", dirs + parents),
            ("fstatfs", 1),
            ("getdents64", reads * dirs),
            ("openat", 1 + parents),
            ("openat2", below),
        ];
        assert_totals(&totals, &expected, root.to_str().unwrap());
    }
}

/// A walk reads what the caller does not read, and starts again if the caller stopped midway. No
/// call queries an entry.
#[test]
fn walk_reads_unread_directories_once() {
    const TEST: &str = "walk_dirs_system_calls::walk_reads_unread_directories_once";
    let Some(reads) = reads_on_disk(TEST) else { return };
    let looks: [fn(&mut Dir<'_>); 4] = [
        read_all,
        |dir| dir.read_into(&mut Listing::new()).unwrap(),
        |_| (),
        |dir| assert!(dir.next().is_ok()),
    ];
    let parts = totals(TEST, || {
        let tree = Tree::of(&["a/b/c/f", "a/d/", "e/f", "f"]);
        for look in looks {
            let _counted = Counted::begin();
            walk_all(lendir::walk_dirs(tree.path()).unwrap(), look);
        }
    });
    for (look, totals) in parts.into_iter().flatten().enumerate() {
        let midway = if look == 3 { 5 } else { 0 }; // one of the six directories is empty
        let rewound = if look == 2 { 6 } else { 0 };
        let mut expected = vec![
            ("close", 6 + midway),
            ("fstatfs", 1),
            ("getdents64", reads * 6 + midway),
            ("lseek", rewound),
            ("openat", 1 + midway),
            ("openat2", 5),
        ];
        expected.retain(|(_, times)| *times > 0);
        assert_totals(&totals, &expected, &format!("look {look}"));
    }
}

/// A directory whose subdirectories are skipped takes two calls. A skipped directory takes none.
#[test]
fn skipped_directory_takes_no_call() {
    const TEST: &str = "walk_dirs_system_calls::skipped_directory_takes_no_call";
    let Some(reads) = reads_on_disk(TEST) else { return };
    let expected =
        [("close", 4), ("fstatfs", 1), ("getdents64", reads), ("openat", 1), ("openat2", 3)];
    check(TEST, &expected, || {
        let tree = Tree::of(&["a/b/", "c/d/", "e/f/", "skipped/g/"]);
        let _counted = Counted::begin();
        walk_all(lendir::walk_dirs(tree.path()).unwrap(), |dir| {
            if dir.depth() == 1 {
                dir.skip_subdirs();
            }
            while dir.depth() == 0 {
                let Some(entry) = dir.next().unwrap() else { break };
                if entry.name() == b"skipped" {
                    entry.skip_subtree();
                }
            }
        });
    });
}

#[test]
fn unreadable_directory_takes_three_calls() {
    // The root is closed, too.
    let expected = [("close", 4), ("openat", 3), ("openat2", 3)];
    check("walk_dirs_system_calls::unreadable_directory_takes_three_calls", &expected, || {
        as_nobody(|| {
            let tree = Tree::of(&["1/", "2/", "3/"]);
            for name in ["1", "2", "3"] {
                chmod(tree.path().join(name), 0o300);
            }
            let mut walk = lendir::walk_dirs(tree.path()).unwrap();
            read_all(&mut walk.next().unwrap().unwrap());
            let _counted = Counted::begin();
            let mut errors = 0;
            walk_all(walk, |dir| while dir.next_ok(|_| errors += 1).is_some() {});
            assert_eq!(errors, 3);
        });
    });
}

/// A walk does not read the rest of a directory at the deepest level, because it enters nothing
/// there.
#[test]
fn walk_does_not_finish_the_deepest_directories() {
    const TEST: &str = "walk_dirs_system_calls::walk_does_not_finish_the_deepest_directories";
    let Some(reads) = reads_on_disk(TEST) else { return };
    // Only the root is read again.
    let expected = [
        ("close", 4),
        ("fstatfs", 1),
        ("getdents64", 1 + reads + 2),
        ("openat", 2),
        ("openat2", 2),
    ];
    check(TEST, &expected, || {
        let tree = Tree::of(&["a/below/", "b/below/"]);
        let _counted = Counted::begin();
        walk_all(WalkDirs::options().max_depth(2).open(tree.path()).unwrap(), |dir| {
            assert!(dir.next().is_ok());
        });
    });
}

#[test]
fn unfollowed_links_take_no_call() {
    const TEST: &str = "walk_dirs_system_calls::unfollowed_links_take_no_call";
    let Some(reads) = reads_on_disk(TEST) else { return };
    let expected =
        [("close", 5), ("fstatfs", 1), ("getdents64", 5 * reads), ("openat", 1), ("openat2", 4)];
    check(TEST, &expected, || {
        let tree = Tree::of(&["d/e/f/", "x/"]);
        for name in ["d/l", "d/e/f/1", "d/e/f/2", "l"] {
            symlink(tree.path().join("x"), tree.path().join(name)).unwrap();
        }
        let _counted = Counted::begin();
        walk_all(lendir::walk_dirs(tree.path()).unwrap(), read_all);
    });
}

/// Checks a walk with `max_open`, in a process with room for `room` descriptors. To reopen levels,
/// the walk opens `hops` directories beyond the levels themselves, and `refused` opens fail.
fn assert_closed_levels(
    test: &str,
    make: fn(&Path),
    max_open: usize,
    room: usize,
    [hops, refused]: [usize; 2],
) {
    let parts = totals(&format!("walk_dirs_system_calls::{test}"), || {
        let tree = Tree::new(make);
        let _others = leave_room(room);
        let _counted = Counted::begin();
        walk_all(WalkDirs::options().max_open(max_open).open(tree.path()).unwrap(), |dir| {
            dir.read_into(&mut Listing::new()).unwrap();
        });
    });
    let Some(mut parts) = parts else { return };
    let totals = &mut parts[0];
    let reads = reads(Tree::new(|_| ()).path());
    let (dirs, closed) = (totals["getdents64"] / reads, totals["statx"] / 2);
    let again = closed + hops;
    // With a birth time, `fstatfs` tells whether the walk can trust it. `std` does not query birth
    // times on musl.
    let births = statx(CWD, Tree::new(|_| ()).path(), AtFlags::empty(), StatxFlags::BTIME);
    let has_births = births.is_ok_and(|births| births.stx_mask & StatxFlags::BTIME.bits() != 0);
    let expected = [
        ("close", dirs + again),
        ("fstatfs", 1 + if has_births { closed } else { 0 }),
        ("getdents64", reads * dirs),
        ("openat", 1 + again),
        ("openat2", dirs - 1 + refused),
        ("statx", 2 * closed),
    ];
    assert_totals(totals, &expected, test);
    assert!(closed > 5, "{closed} levels");
}

#[test]
fn closing_a_level_early_takes_five_calls() {
    const TEST: &str = "closing_a_level_early_takes_five_calls";
    assert_closed_levels(TEST, |at| tree::comb(at, 40), 4, 32, [0, 0]);
}

#[test]
fn way_back_takes_one_call_for_each_level() {
    let make = |at: &Path| {
        let levels = [(tree::COMB, 6), (tree::CHAIN, 40), (tree::COMB, 6)];
        tree::nest(at, levels.into_iter().flat_map(|(names, count)| iter::repeat_n(names, count)));
    };
    assert_closed_levels("way_back_takes_one_call_for_each_level", make, 4, 32, [40, 0]);
}

#[test]
fn walk_runs_out_of_descriptors_only_once() {
    const TEST: &str = "walk_runs_out_of_descriptors_only_once";
    assert_closed_levels(TEST, |at| tree::comb(at, 40), 32, 10, [0, 1]);
}
