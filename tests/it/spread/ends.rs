//! A closure that returns early, stops, panics or begins another tree.

use super::{STOP_READING, THREADS, TIGHT, WAYS, path_of, paths_left, paths_of};
use crate::support::machine::{Watchdog, passed};
use crate::support::tree::{self, Tree};
use crate::support::way::{PLAIN, POST};
use lendir::Walk;
use std::iter;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Duration;

/// Of all threads but one, each returns after some directories. The first of them to go is the caller's, which had the root.
#[test]
fn directories_left_by_early_returns_go_to_the_others() {
    let _watchdog = Watchdog::new(300);
    let trees: [&dyn Fn(&Path); 2] = [&|at| tree::random(at, 3), &|at| tree::comb(at, 30)];
    for make in trees {
        let tree = Tree::new(make);
        for way in [PLAIN, POST, TIGHT] {
            let expected = paths_of(&way.by_std(tree.path()));
            for threads in [2, 3, 8] {
                for steps in [0, 1, 3, 20] {
                    for stop_reading in STOP_READING {
                        let caller = thread::current().id();
                        let stays = AtomicBool::new(false);
                        let work = |walk: &mut Walk| {
                            let mut paths = Vec::new();
                            if thread::current().id() != caller && !stays.swap(true, SeqCst) {
                                return paths_left(walk);
                            }
                            for step in 1..=steps {
                                let Some(mut dir) = walk.next().unwrap() else { break };
                                paths.push(path_of(&dir));
                                let _ = dir.next().unwrap();
                                if step == steps {
                                    stop_reading(dir);
                                }
                            }
                            paths
                        };
                        let parts = way.begin(tree.path()).spread(threads, work);
                        let mut paths: Vec<_> = parts.into_iter().flatten().collect();
                        paths.sort();
                        assert!(paths == expected, "{way:?}, {threads} threads, {steps} steps");
                    }
                }
            }
        }
    }
}

#[test]
fn all_return_early() {
    let _watchdog = Watchdog::new(60);
    let tree = Tree::new(|at| tree::random(at, 4));
    for way in WAYS {
        for threads in THREADS {
            for steps in [0, 1, 5] {
                let parts = way
                    .begin(tree.path())
                    .spread(threads, |walk| (0..steps).filter(|_| walk.next().unwrap().is_some()).count());
                assert_eq!(parts.len(), threads);
                assert!(parts.iter().all(|lent| *lent <= steps));
                assert!(parts.iter().sum::<usize>() >= steps, "{parts:?}");
            }
        }
    }
}

/// Those that are done with the shared tree do not wait until the new one is done.
#[test]
fn nobody_waits_for_a_thread_that_begins_another_tree() {
    let _watchdog = Watchdog::new(60);
    let (tree, other) = (Tree::of(&["a/"]), Tree::of(&["b/"]));
    let caller = thread::current().id();
    let are_done = Barrier::new(2);
    Walk::open(tree.path()).unwrap().spread(2, |walk| {
        if thread::current().id() == caller {
            walk.reset(lendir::open(other.path()).unwrap(), "");
        }
        while walk.next().unwrap().is_some() {}
        are_done.wait();
        assert!(walk.next().unwrap().is_none());
    });
}

/// A walk that is stopped and begins another tree in the same stride is stopped for the other threads, too.
#[test]
fn stop_is_not_forgotten_by_reset() {
    let _watchdog = Watchdog::new(60);
    let (tree, other) = (Tree::new(|at| tree::wide(at, 300, 4)), Tree::of(&["b/"]));
    let is_stopped = Barrier::new(2);
    let caller = thread::current().id();
    let parts = Walk::open(tree.path()).unwrap().spread(2, |walk| {
        if thread::current().id() == caller {
            let mut root = walk.next().unwrap().unwrap();
            while root.next().unwrap().is_some() {}
            walk.next().unwrap().unwrap(); // and half of the rest goes to the other thread
            walk.next().unwrap().unwrap().stop();
            walk.reset(lendir::open(other.path()).unwrap(), "");
            is_stopped.wait();
            return paths_left(walk).len();
        }
        let is_lent_one = walk.next().unwrap().is_some();
        is_stopped.wait();
        usize::from(is_lent_one) + paths_left(walk).len()
    });
    assert!(parts[0] == 2 && parts[1] < 2, "{parts:?}");
}

/// Nor does a closure that replaces its walk with another one hold up the others.
#[test]
fn nobody_waits_for_a_walk_that_was_taken_away() {
    let _watchdog = Watchdog::new(60);
    let (tree, other) = (Tree::new(|at| tree::wide(at, 300, 4)), Tree::of(&["b/"]));
    for threads in THREADS {
        let caller = thread::current().id();
        let walks = Walk::open(tree.path()).unwrap().spread(threads, |walk| {
            let mut taken = None;
            if thread::current().id() == caller {
                taken = Some(mem::replace(walk, Walk::open(other.path()).unwrap()));
            }
            while walk.next().unwrap().is_some() {}
            taken
        });
        for mut walk in walks.into_iter().flatten() {
            while walk.next().unwrap().is_some() {}
        }
    }
}

/// The tree of a thread that begins another one goes to the other threads, and nobody helps with the new one.
#[test]
fn thread_that_begins_another_tree_leaves_this_one_to_the_others() {
    let _watchdog = Watchdog::new(60);
    let (tree, other) = (Tree::new(|at| tree::comb(at, 30)), Tree::new(|at| tree::comb(at, 10)));
    let caller = thread::current().id();
    for way in [PLAIN, POST, TIGHT] {
        let expected = paths_of(&way.by_std(tree.path()));
        let count = way.by_std(other.path()).len();
        for threads in [1, 2, 8] {
            for steps in [0, 1, 3, 10, usize::MAX] {
                let parts = way.begin(tree.path()).spread(threads, |walk| {
                    let mut paths = Vec::new();
                    let resets = thread::current().id() == caller;
                    while !resets || paths.len() < steps {
                        let Some(mut dir) = walk.next().unwrap() else { break };
                        paths.push(path_of(&dir));
                        let _ = dir.next().unwrap();
                    }
                    if resets {
                        walk.reset(lendir::open(other.path()).unwrap(), "");
                        assert_eq!(paths_left(walk).len(), count);
                    }
                    paths
                });
                let mut paths: Vec<_> = parts.into_iter().flatten().collect();
                paths.sort();
                assert!(
                    threads == 1 && steps < usize::MAX || paths == expected,
                    "{way:?}, {threads} threads, {steps} steps"
                );
            }
        }
    }
}

/// The thread that ends the walk at this visit may have to wait for a core meanwhile.
fn slow_down(visit: usize, end_at: usize) {
    if visit > end_at {
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn stop_ends_the_walk_for_all_threads() {
    let _watchdog = Watchdog::new(60);
    let tree = Tree::new(|at| tree::wide(at, 3000, 4));
    for way in WAYS {
        for threads in THREADS {
            for stop_at in [0, 1, 100] {
                for returns in [false, true] {
                    let (visits, late, is_over) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicBool::new(false));
                    let parts = way.begin(tree.path()).spread(threads, |walk| {
                        let mut stops = false;
                        while let Some(mut dir) = walk.next().unwrap() {
                            late.fetch_add(usize::from(is_over.load(SeqCst)), SeqCst);
                            let visit = visits.fetch_add(1, SeqCst);
                            slow_down(visit, stop_at);
                            stops = visit == stop_at;
                            if stops {
                                dir.stop();
                                if returns {
                                    return;
                                }
                            }
                        }
                        is_over.fetch_or(stops, SeqCst);
                        (0..3).for_each(|_| assert!(walk.next().unwrap().is_none()));
                    });
                    assert_eq!(parts.len(), threads);
                    assert!(late.into_inner() < threads, "another thread was lent two directories after the stop");
                    assert!(visits.into_inner() < 3000);
                }
            }
        }
    }
}

#[test]
fn panic_is_passed_on_once_all_closures_have_ended() {
    let _watchdog = Watchdog::new(60);
    let tree = Tree::new(|at| tree::wide(at, 3000, 4));
    for way in WAYS {
        for threads in THREADS {
            for (panic_at, panics) in [(0, 1), (1, 1), (100, 1), (100, 5)] {
                let (visits, begun, ended) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
                let walk = way.begin(tree.path());
                let spread = AssertUnwindSafe(|| {
                    walk.spread(threads, |walk| {
                        begun.fetch_add(1, SeqCst);
                        while let Some(_dir) = walk.next().unwrap() {
                            let visit = visits.fetch_add(1, SeqCst);
                            if (panic_at..panic_at + panics).contains(&visit) {
                                ended.fetch_add(1, SeqCst);
                                resume_unwind(Box::new(visit)); // without a message
                            }
                            slow_down(visit, panic_at);
                        }
                        ended.fetch_add(1, SeqCst);
                    });
                });
                let panic = *catch_unwind(spread).unwrap_err().downcast::<usize>().unwrap();
                assert!((panic_at..panic_at + panics).contains(&panic));
                assert_eq!((begun.into_inner(), ended.into_inner()), (threads, threads));
                assert!(visits.into_inner() < 3000);
            }
        }
    }
}

#[test]
fn all_threads_panic_before_the_first_directory() {
    let _watchdog = Watchdog::new(60);
    let tree = Tree::of(&["a/"]);
    for threads in THREADS {
        let walk = PLAIN.begin(tree.path());
        let spread = AssertUnwindSafe(|| walk.spread(threads, |_| resume_unwind(Box::new("on purpose"))));
        assert_eq!(catch_unwind(spread).unwrap_err().downcast_ref(), Some(&"on purpose"));
    }
}

/// A thread is given work thousands of levels below the root, and the walk is stopped there: the chain of all levels
/// between is dropped without recursion.
#[test]
fn work_is_given_at_any_depth() {
    const DEPTH: usize = 20_000;
    const WIDE: &[&str] = &["a", "b", "c", "d", "e", "f", "g", "m"];
    let _watchdog = Watchdog::new(300);
    let levels = iter::repeat_n(tree::CHAIN, DEPTH).chain([WIDE]);
    let tree = Tree::new(|at| tree::nest(at, levels));
    for stops in [false, true] {
        let is_given = AtomicBool::new(false);
        let caller = thread::current().id();
        let parts = POST.begin(tree.path()).spread(2, |walk| {
            let mut visits = 0;
            while let Some(mut dir) = walk.next().unwrap() {
                visits += 1;
                if dir.depth() > DEPTH && thread::current().id() != caller {
                    is_given.store(true, SeqCst);
                    if stops {
                        dir.stop();
                    }
                }
                for _ in (0..1000).take_while(|_| dir.depth() > DEPTH && !is_given.load(SeqCst)) {
                    thread::sleep(Duration::from_millis(1));
                }
            }
            visits
        });
        assert!(is_given.into_inner());
        let all = 2 * (1 + DEPTH + WIDE.len());
        assert_eq!(parts.iter().sum::<usize>() == all, !stops);
    }
}

/// How a closure may put another walk in the place of its own.
const REPLACE: [fn(&mut Walk, &Path); 5] = [
    |walk, _| *walk = Walk::default(),
    |walk, _| drop(mem::take(walk)),
    |walk, other| *walk = Walk::open(other).unwrap(),
    |walk, other| {
        let rest = mem::replace(walk, Walk::open(other).unwrap());
        assert!(walk.next().unwrap().is_some());
        drop(rest);
    },
    |walk, other| walk.reopen(other.join("missing")).unwrap_err().depth().eq(&0).then_some(()).unwrap(),
];

/// Of all threads but one, each replaces its walk after some directories: the rest goes to the others.
#[test]
fn directories_left_by_a_walk_that_is_replaced_go_to_the_others() {
    let _watchdog = Watchdog::new(300);
    let (tree, other) = (Tree::new(|at| tree::random(at, 5)), Tree::of(&["a/"]));
    let mut cases = 0;
    for way in [PLAIN, POST, TIGHT] {
        let expected = paths_of(&way.by_std(tree.path()));
        for threads in [2, 3, 8] {
            for steps in [0, 1, 3, 20] {
                for replace in REPLACE {
                    let stays = AtomicUsize::new(0);
                    let parts = way.begin(tree.path()).spread(threads, |walk| {
                        // The one that stays is not always the caller's, which has the root.
                        if stays.fetch_add(1, SeqCst) == cases % 2 {
                            return paths_left(walk);
                        }
                        let mut paths = Vec::new();
                        for _ in 0..steps {
                            let Some(mut dir) = walk.next().unwrap() else { break };
                            paths.push(path_of(&dir));
                            let _ = dir.next().unwrap();
                        }
                        replace(walk, other.path());
                        assert!(paths_left(walk).len() <= 2, "more is lent than the other tree has");
                        paths
                    });
                    let mut paths: Vec<_> = parts.into_iter().flatten().collect();
                    paths.sort();
                    assert!(paths == expected, "{way:?}, {threads} threads, {steps} steps");
                    cases += 1;
                }
            }
        }
    }
    passed("spread: a walk that is replaced in its closure", cases, "walks whose rest went to the other threads");
}

/// A walk moved out of its closure has no part in one that is over, even if nobody took what others left.
#[test]
fn walk_that_outlives_its_closure_lends_nothing_once_all_is_over() {
    let _watchdog = Watchdog::new(60);
    let tree = Tree::new(|at| tree::random(at, 6));
    for way in [PLAIN, POST, TIGHT] {
        for threads in [2, 3, 8] {
            for steps in [0, 1, 30] {
                let kept = Mutex::new(Vec::new());
                let start = Barrier::new(threads);
                way.begin(tree.path()).spread(threads, |walk| {
                    start.wait();
                    (0..steps).all(|_| walk.next().unwrap().is_some());
                    kept.lock().unwrap().push(mem::take(walk));
                });
                for mut walk in kept.into_inner().unwrap() {
                    assert!(walk.next().unwrap().is_none(), "{way:?}, {threads} threads, {steps} steps");
                    walk.reopen(tree.path()).unwrap();
                    assert!(walk.next().unwrap().is_some(), "it can begin another tree");
                }
            }
        }
    }
}

/// A thread may take over the walk of another one, which does not end before both are done.
#[test]
fn closure_may_take_the_walk_of_another() {
    let _watchdog = Watchdog::new(60);
    let tree = Tree::new(|at| tree::random(at, 8));
    for way in [PLAIN, POST, TIGHT] {
        let expected = paths_of(&way.by_std(tree.path()));
        for steps in [1, 5, 40] {
            let caller = thread::current().id();
            let (given, is_given) = (Mutex::new(None), Barrier::new(2));
            let parts = way.begin(tree.path()).spread(2, |walk| {
                if thread::current().id() != caller {
                    *given.lock().unwrap() = Some(mem::take(walk));
                    is_given.wait();
                    return Vec::new();
                }
                let mut paths = Vec::new();
                is_given.wait();
                thread::sleep(Duration::from_millis(50)); // the other closure returns meanwhile
                for _ in 0..steps {
                    let Some(dir) = walk.next().unwrap() else { break };
                    paths.push(path_of(&dir));
                }
                let mut of_other = given.lock().unwrap().take().unwrap();
                paths.extend(paths_left(&mut of_other));
                paths.extend(paths_left(walk));
                paths
            });
            let mut paths: Vec<_> = parts.into_iter().flatten().collect();
            paths.sort();
            assert!(paths == expected, "{way:?}, {steps} steps");
        }
    }
}
