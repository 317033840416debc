//! How deep and how wide a tree may be, and how few descriptors and how little stack its walk takes.

use crate::support::machine::runs_long;
use crate::support::process;
use crate::support::tree::{self, Tree};
use crate::visits::{ORDERS, Plan, Visit, What, walked};
use lendir::{Buffer, Dir, Entries, Listing, Order, Walk};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::thread;

fn walk(root: &Path, max_open: usize, is_post_order: bool) -> Walk {
    let walk = Walk::open(root).unwrap().max_open(max_open);
    if is_post_order { walk.post_order() } else { walk }
}

/// How many directories `walk` lends, and a hash of their names and depths in this order: all paths would be too much.
fn trace(walk: &mut Walk, mut look: impl FnMut(&Dir<'_>)) -> (usize, u64) {
    let mut listing = Listing::new();
    let (mut count, mut hasher) = (0, DefaultHasher::new());
    while let Some(mut dir) = walk.next().unwrap() {
        (dir.name(), dir.depth(), dir.is_post(), dir.path().as_os_str().len()).hash(&mut hasher);
        assert_eq!(dir.is_post() && dir.depth() > 0, dir.parent().is_some());
        look(&dir);
        dir.read(&mut listing).unwrap();
        count += 1;
    }
    (count, hasher.finish())
}

#[test]
fn any_depth_takes_little_stack_and_gives_the_same_with_few_descriptors() {
    let depth = if runs_long() { 100_000 } else { 5000 };
    let test = |make: fn(&Path, usize), count: usize| {
        let tree = Tree::new(|at| make(at, depth));
        for is_post_order in [false, true] {
            let expected = trace(&mut walk(tree.path(), 1000, is_post_order), |_| ());
            assert_eq!(expected.0, if is_post_order { 2 * count } else { count });
            for max_open in [1, 5, 32] {
                assert!(trace(&mut walk(tree.path(), max_open, is_post_order), |_| ()) == expected, "{max_open} open");
            }
        }
    };
    thread::scope(|scope| {
        for (make, beside) in [(tree::chain as fn(&Path, usize), 1), (tree::comb, 3)] {
            let thread = thread::Builder::new().stack_size(64 * 1024);
            thread.spawn_scoped(scope, move || test(make, beside * depth + 1)).unwrap();
        }
    });
}

#[test]
fn many_directories_in_one() {
    let count = if runs_long() { 65_536 } else { 5000 };
    let tree = Tree::new(|at| tree::wide(at, count, 8));
    let mut expected = (0..count).map(|number| format!("{number:08}"));
    let sorted = walked(&mut walk(tree.path(), 1, false), |_| Plan::sorted(Order::Bytes));
    assert!(sorted[1..].iter().all(|visit| expected.next().is_some_and(|name| visit.path.ends_with(name))));
    assert!(expected.next().is_none());
}

fn open_descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn no_more_descriptors_are_open_than_stated() {
    process::run("walk_bounds::no_more_descriptors_are_open_than_stated", 60, || {
        let tree = Tree::new(|at| {
            tree::comb(at, 50);
            tree::random(&at.join("a"), 3);
        });
        let before = open_descriptors();
        for is_post_order in [false, true] {
            for max_open in [0, 1, 4, 5, 32, 1000] {
                let mut most = 0;
                trace(&mut walk(tree.path(), max_open, is_post_order), |_| most = most.max(open_descriptors() - before));
                assert!(most <= max_open.max(4), "{most} open, {max_open} allowed");
                // Levels are kept open if they may be.
                assert!(most == max_open.max(4) || max_open > 50 && most == 51, "{most} open");
                assert_eq!(open_descriptors(), before, "all are closed at the end");
                for left_at in 1..20 {
                    let mut walk = walk(tree.path(), max_open, is_post_order);
                    for _ in 0..left_at {
                        drop(walk.next().unwrap());
                    }
                    drop(walk);
                    assert_eq!(open_descriptors(), before, "all are closed after {left_at} directories");
                }
            }
        }
    });
}
