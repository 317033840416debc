//! Checks levels that are closed: a walk with few descriptors yields the same entries, and each
//! lost level is one error.

use crate::support::prelude::*;
use std::panic;

const SORTED: EntryWalk = EntryWalk { order: Order::Bytes, ..ENTRY_WALK };
const FEW: EntryWalk = EntryWalk { max_open: 4, ..SORTED };

/// Makes nested directories `m`, each between a file `a` and a directory `y` and a file `z`.
fn comb(levels: usize) -> Tree {
    let paths = |level| ["a", "m/", "y/", "z"].map(|name| "m/".repeat(level) + name);
    Tree::new(|at| tree::make(at, &(0..levels).flat_map(paths).collect::<Vec<_>>()))
}

/// Reads a [`comb`] up to its last `m`.
fn read_to_the_bottom(tree: &mut Walk, levels: usize) -> Vec<Visit> {
    let mut items = Vec::new();
    while items.last().is_none_or(|last: &Visit| last.depth < levels || !last.path.ends_with("m")) {
        items.push(next(tree, |_| ()).unwrap());
    }
    items
}

/// Some levels are moved away, in several orders. Then twins may take their places, or they may be
/// removed with the current directory. Nothing is yielded twice, and all that is missing is below
/// an error.
#[test]
fn each_moved_or_removed_level_is_one_error() {
    const LEVELS: usize = 46;
    let mut lost = 0;
    for options in [SORTED, FEW] {
        for moved in
            [&[20, 10][..], &[10, 20], &[30, 20, 10], &[10, 20, 30], &[12, 11], &[45, 2], &[1]]
        {
            for then in ["nothing", "twins", "removed"] {
                let (tree, aside) = (comb(LEVELS), Tree::new(|_| ()));
                let all = SORTED.expected(tree.path());
                let mut read = options.begin(tree.path());
                let mut items = read_to_the_bottom(&mut read, LEVELS);
                for (number, level) in moved.iter().enumerate() {
                    // A level that was moved before took its subtree along.
                    let above = moved[..number].iter().rposition(|above| above < level);
                    let from = match above {
                        Some(above) => aside
                            .path()
                            .join(format!("{above}/{}", "m/".repeat(level - moved[above]))),
                        None => tree.path().join("m/".repeat(*level)),
                    };
                    let from = from.components().as_path();
                    fs::rename(from, aside.path().join(number.to_string())).unwrap();
                    if then == "twins" {
                        tree::make(from, &["a", "m/z", "y/", "z", "twin"]);
                    }
                }
                if then == "removed" {
                    fs::remove_dir_all(aside.path()).unwrap();
                }
                items.extend(options.rest(&mut read));
                let errors =
                    errors_between(&items, &all, false, &format!("{options:?}, {moved:?}, {then}"));
                assert!(errors.iter().all(|(_, errno)| *errno == libc::ENOENT), "{errors:?}");
                lost += errors.len();
            }
        }
    }
    assert!(lost > 50, "{lost} levels lost");
}

#[test]
fn walk_respects_max_open() {
    process::run("walk::lost::walk_respects_max_open", || {
        let tree = comb(50);
        let all = SORTED.expected(tree.path());
        let before = open_descriptors();
        for max_open in [0, 4, 5, 6, 13, 32, 1000] {
            let options = EntryWalk { max_open, ..SORTED };
            let (mut read, mut items, mut most) = (options.begin(tree.path()), Vec::new(), 0);
            while let Some(item) = next(&mut read, |_| most = most.max(open_descriptors() - before))
            {
                items.push(item);
            }
            assert_eq!(items, all, "{max_open} open");
            assert!(most <= max_open.max(4), "{most} open, {max_open} allowed");
            assert_eq!(open_descriptors(), before, "a descriptor is still open at the end");
            let mut read = options.begin(tree.path());
            read_to_the_bottom(&mut read, 20);
            drop(read);
            let found = open_descriptors();
            assert_eq!(found, before, "a descriptor is still open after a drop midway");
        }
        // A level without pending entries is closed once its last child is open.
        let chain = Tree::new(|at| tree::chain(at, 300));
        let mut read = ENTRY_WALK.begin(chain.path());
        while next(&mut read, |_| assert!(open_descriptors() <= before + 1)).is_some() {}
        // A process needs at least three: the root, the current directory, and a level that is
        // reopened.
        for (room, read_ahead) in (3..16).flat_map(|room| [0, 1, 3].map(|threads| (room, threads)))
        {
            let mut read = EntryWalk { max_open: 1000, read_ahead, ..SORTED }.begin(tree.path());
            let others = leave_room(room - 1); // the root is open
            let items = SORTED.rest(&mut read);
            drop(others);
            assert_eq!(items, all, "{room} descriptors, {read_ahead} threads");
        }
    });
}

/// The walk is dropped at several entries, each time by a panic of the caller.
#[test]
fn read_ahead_leaves_no_thread_and_no_descriptor() {
    process::run("walk::lost::read_ahead_leaves_no_thread_and_no_descriptor", || {
        struct Stopped;
        let threads = || fs::read_dir("/proc/self/task").unwrap().count();
        let (descriptors, others, mut ahead) = (open_descriptors(), threads(), 0);
        for tree in
            [comb(50), Tree::new(|at| tree::bushy(at, 5)), Tree::new(|at| tree::chain(at, 300))]
        {
            let all = SORTED.expected(tree.path());
            for (read_ahead, stop) in
                (0..36).map(|case| ([1, 3, 8][case % 3], [0, 1, 9, 40, 250, 999][case % 6]))
            {
                let options = EntryWalk { read_ahead, max_open: 4, ..SORTED };
                let stopped = panic::catch_unwind(AssertUnwindSafe(|| {
                    let (mut read, mut items) = (options.begin(tree.path()), all.iter());
                    while let Some(item) = next(&mut read, |_| ()) {
                        assert_eq!(Some(&item), items.next(), "{options:?}");
                        let open = open_descriptors() - descriptors;
                        assert!(
                            open <= 2 * 4 + 8 * read_ahead && threads() <= others + read_ahead,
                            "{open} open, {options:?}"
                        );
                        ahead = open.max(ahead);
                        if all.len() - items.len() > stop {
                            panic::resume_unwind(Box::new(Stopped));
                        }
                    }
                }));
                match stopped {
                    Err(panic) if !panic.is::<Stopped>() => panic::resume_unwind(panic),
                    stopped => assert_eq!(stopped.is_err(), all.len() > stop),
                }
                assert_eq!(open_descriptors(), descriptors, "after {stop} entries, {options:?}");
                // The kernel still counts a thread for a moment after `join`.
                while threads() > others {
                    thread::yield_now();
                }
            }
        }
        assert!(ahead > 12, "{ahead} descriptors at most");
    });
}

/// Idle threads wake when directories are pending, and additional threads start.
#[test]
fn idle_threads_read_ahead_again() {
    process::run("walk::lost::idle_threads_read_ahead_again", || {
        let (small, wide) = (Tree::of(&["a/f", "b/f"]), Tree::new(|at| tree::wide(at, 100, 3)));
        let threads = || fs::read_dir("/proc/self/task").unwrap().count();
        let (descriptors, others) = (open_descriptors(), threads());
        let wait = |what: &str, is_so: &dyn Fn() -> bool| {
            (0..10_000)
                .take_while(|_| !is_so())
                .for_each(|_| thread::sleep(Duration::from_millis(1)));
            assert!(is_so(), "{what}");
        };
        let mut read = Walk::options()
            .order(Order::Bytes)
            .read_ahead(3)
            .eager()
            .open_all([small.path(), wide.path()]);
        for name in ["a", "f"] {
            assert_eq!(read.next().unwrap().unwrap().file_name(), name);
        }
        // The root, `a` and `b` are open. Then the only thread waits.
        wait("`b` is not read ahead", &|| open_descriptors() >= descriptors + 3);
        thread::sleep(Duration::from_millis(5));
        while read.next().unwrap().unwrap().path() != wide.path().join("000") {}
        for number in 1..80 {
            assert_eq!(read.next().unwrap().unwrap().file_name(), &*format!("{number:03}"));
            // The root, the current directory, and six directories that were read ahead.
            wait("too few are read ahead", &|| open_descriptors() >= descriptors + 8);
        }
        wait("not all threads have started", &|| threads() == others + 3);
    });
}
