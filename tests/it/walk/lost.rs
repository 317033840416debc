//! Levels that are closed early: the tree is the same with few descriptors, and a level that is lost meanwhile is one error.

use crate::support::pre_order::{ENTRY_WALK, EntryWalk, Item, errors_between, next};
use crate::support::process;
use crate::support::tree::{self, Tree};
use crate::walk_dirs_bounds::{leave_room, open_descriptors};
use lendir::{Order, Walk};
use std::fs::{self, File};
use std::panic::{self, AssertUnwindSafe};
use std::thread;
use std::time::Duration;

const SORTED: EntryWalk = EntryWalk { order: Order::Bytes, ..ENTRY_WALK };
const FEW: EntryWalk = EntryWalk { max_open: 4, ..SORTED };

/// Nested directories `m`, each after a file `a` and before a directory `y` and a file `z`.
fn comb(levels: usize) -> Tree {
    let paths = |level| ["a", "m/", "y/", "z"].map(|name| "m/".repeat(level) + name);
    Tree::new(|at| tree::make(at, &(0..levels).flat_map(paths).collect::<Vec<_>>()))
}

/// Reads down to the last `m` of a [`comb`].
fn go_down(tree: &mut Walk, levels: usize) -> Vec<Item> {
    let mut items = Vec::new();
    while items.last().is_none_or(|last: &Item| last.depth < levels || !last.path.ends_with("m")) {
        items.push(next(tree, |_| ()).unwrap());
    }
    items
}

/// Two and three levels are moved away, in each order: nothing comes twice, and what does not come is below an error. The same if
/// others take their places, or if they are removed then, with the current directory.
#[test]
fn each_level_that_is_moved_or_removed_is_one_error() {
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
                let mut items = go_down(&mut read, LEVELS);
                for (number, level) in moved.iter().enumerate() {
                    // What was below a level moved before is with that one.
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

/// In a tree at rest, while others take each descriptor that is closed; once there are some again, the rest comes.
#[test]
fn level_that_no_descriptor_is_left_for_is_one_error() {
    process::run("walk::lost::level_that_no_descriptor_is_left_for_is_one_error", 60, || {
        let tree = comb(12);
        let all = SORTED.expected(tree.path());
        let errors_until = |most| {
            let mut read = FEW.begin(tree.path());
            let (mut items, mut others, mut errors) =
                (go_down(&mut read, 12), Vec::<File>::new(), 0);
            while errors < most {
                others.extend(leave_room(0));
                let Some(item) = next(&mut read, |_| ()) else { break };
                errors += usize::from(item.what.is_err());
                items.push(item);
            }
            drop(others);
            items.extend(FEW.rest(&mut read));
            let errors = errors_between(&items, &all, false, &format!("until {most} errors"));
            assert!(errors.iter().all(|(_, errno)| *errno == libc::EMFILE), "{errors:?}");
            errors.len()
        };
        let most = errors_until(usize::MAX);
        assert!(
            most > 8 && (1..most).all(|errors| errors_until(errors) == errors),
            "{most} errors"
        );
    });
}

#[test]
fn few_descriptors_give_the_same_and_no_more_are_open_than_stated() {
    process::run(
        "walk::lost::few_descriptors_give_the_same_and_no_more_are_open_than_stated",
        60,
        || {
            let tree = comb(50);
            let all = SORTED.expected(tree.path());
            let before = open_descriptors();
            for max_open in [0, 4, 5, 6, 13, 32, 1000] {
                let options = EntryWalk { max_open, ..SORTED };
                let (mut read, mut items, mut most) = (options.begin(tree.path()), Vec::new(), 0);
                while let Some(item) =
                    next(&mut read, |_| most = most.max(open_descriptors() - before))
                {
                    items.push(item);
                }
                assert_eq!(items, all, "{max_open} open");
                // The deepest directory is empty.
                assert_eq!(most, max_open.clamp(4, 50), "{max_open} allowed");
                assert_eq!(open_descriptors(), before, "a descriptor was left open at the end");
                let mut read = options.begin(tree.path());
                go_down(&mut read, 20);
                drop(read);
                assert_eq!(open_descriptors(), before, "a descriptor was left open midway");
            }
            // A level without anything left is closed once the one below it is open.
            let chain = Tree::new(|at| tree::chain(at, 300));
            let mut read = ENTRY_WALK.begin(chain.path());
            while next(&mut read, |_| assert!(open_descriptors() <= before + 1)).is_some() {}
            // The least that the process needs: the root, the current directory, and the way back to a closed one.
            for (room, read_ahead) in
                (3..16).flat_map(|room| [0, 1, 3].map(|threads| (room, threads)))
            {
                let mut read =
                    EntryWalk { max_open: 1000, read_ahead, ..SORTED }.begin(tree.path());
                let others = leave_room(room - 1); // the root is open
                let items = SORTED.rest(&mut read);
                drop(others);
                assert_eq!(items, all, "{room} descriptors, {read_ahead} threads");
            }
        },
    );
}

/// Wherever the tree is dropped, by a panic of the caller too.
#[test]
fn neither_a_thread_nor_a_descriptor_is_left_of_reading_ahead() {
    process::run(
        "walk::lost::neither_a_thread_nor_a_descriptor_is_left_of_reading_ahead",
        60,
        || {
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
                    assert_eq!(
                        open_descriptors(),
                        descriptors,
                        "after {stop} entries, {options:?}"
                    );
                    // The kernel counts a thread a little longer than `join` does.
                    while threads() > others {
                        thread::yield_now();
                    }
                }
            }
            assert!(ahead > 12, "{ahead} descriptors at most");
        },
    );
}

/// Threads that had nothing to do are called when there is, and others are started beside them.
#[test]
fn threads_that_have_waited_read_ahead_again() {
    process::run("walk::lost::threads_that_have_waited_read_ahead_again", 60, || {
        let (small, wide) = (Tree::of(&["a/f", "b/f"]), Tree::new(|at| tree::wide(at, 100, 3)));
        let threads = || fs::read_dir("/proc/self/task").unwrap().count();
        let (descriptors, others) = (open_descriptors(), threads());
        let wait = |what: &str, is_so: &dyn Fn() -> bool| {
            (0..10_000)
                .take_while(|_| !is_so())
                .for_each(|_| thread::sleep(Duration::from_millis(1)));
            assert!(is_so(), "{what}");
        };
        let mut read =
            Walk::options().order(Order::Bytes).read_ahead(3).open_all([small.path(), wide.path()]);
        for name in ["a", "f"] {
            assert_eq!(read.next().unwrap().unwrap().name_os(), name);
        }
        // The root, `a`, and `b` ahead: then the one thread waits.
        wait("`b` is not read ahead", &|| open_descriptors() >= descriptors + 3);
        thread::sleep(Duration::from_millis(5));
        while read.next().unwrap().unwrap().path() != wide.path().join("000") {}
        for number in 1..80 {
            assert_eq!(read.next().unwrap().unwrap().name_os(), &*format!("{number:03}"));
            // The root and the current directory, and these.
            wait("too few are read ahead", &|| open_descriptors() >= descriptors + 8);
        }
        wait("not all threads have started", &|| threads() == others + 3);
    });
}
