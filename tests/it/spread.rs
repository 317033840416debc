//! What `Walk::spread` promises: the same walk by several threads, which ends whatever they do.

use crate::stamps::{self, Clock, read_all};
use crate::support::machine::{Watchdog, runs_long};
use crate::support::process::{self, as_nobody, in_thread};
use crate::support::scan::errno;
use crate::support::tree::{self, Random, Tree};
use crate::visits::{Plan, Visit, What, by_std, walked};
use crate::walk::remove;
use crate::walk_bounds::{leave_room, open_descriptors};
use lendir::{Dir, Order, Walk};
use rustix::fs::{CWD, Mode, RenameFlags, fchmod, fstat, renameat_with};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::iter;
use std::mem;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::Duration;

const THREADS: [usize; 5] = [1, 2, 3, 8, 64];

/// A way to walk.
#[derive(Clone, Copy, Debug)]
struct Way {
    is_sorted: bool,
    is_post_order: bool,
    is_on_one_mount: bool,
    max_open: usize,
}

const PLAIN: Way = Way { is_sorted: false, is_post_order: false, is_on_one_mount: false, max_open: 32 };
const POST: Way = Way { is_post_order: true, ..PLAIN };
const TIGHT: Way = Way { max_open: 4, ..POST };

const WAYS: [Way; 7] = [
    PLAIN,
    Way { is_sorted: true, ..PLAIN },
    Way { is_on_one_mount: true, ..PLAIN },
    Way { max_open: 4, ..PLAIN },
    POST,
    TIGHT,
    Way { is_sorted: true, is_on_one_mount: true, ..TIGHT },
];

impl Way {
    fn begin(self, root: &Path) -> Walk {
        let walk = Walk::open(root).unwrap().max_open(self.max_open);
        let walk = if self.is_post_order { walk.post_order(true) } else { walk };
        if self.is_on_one_mount { walk.same_mount(true) } else { walk }
    }

    fn plan(self) -> Plan {
        if self.is_sorted { Plan::sorted(Order::Bytes) } else { Plan::ALL }
    }

    /// What all threads together must lend.
    fn by_std(self, root: &Path) -> Vec<Visit> {
        in_one_order(by_std(root, self.is_post_order, |_| self.plan()))
    }

    /// What they do lend.
    fn spread(self, root: &Path, threads: usize) -> Vec<Visit> {
        let parts = self.begin(root).spread(threads, |walk| walked(walk, |_| self.plan()));
        assert_eq!(parts.len(), threads);
        in_one_order(parts.into_iter().flatten())
    }

    fn check(self, tree: &Tree, expected: &[Visit], threads: usize) {
        assert!(self.spread(tree.path(), threads) == expected, "{self:?}, {threads} threads");
    }
}

fn in_one_order(visits: impl IntoIterator<Item = Visit>) -> Vec<Visit> {
    let mut visits: Vec<_> = visits.into_iter().collect();
    visits.sort_by(|a, b| {
        let key = |visit: &Visit| match visit.what {
            What::First(_) => 0,
            What::Second => 1,
            What::Error(errno) => 2 + errno,
        };
        // As bytes: to compare paths name by name takes longer than to walk.
        (a.path.as_os_str().as_bytes(), key(a)).cmp(&(b.path.as_os_str().as_bytes(), key(b)))
    });
    visits
}

#[test]
fn threads_lend_together_what_one_lends() {
    let _watchdog = Watchdog::new(120);
    let trees: [&dyn Fn(&Path); 6] = [
        &|_| (),
        &|at| tree::random(at, 0),
        &|at| tree::chain(at, 300),
        &|at| tree::comb(at, 100),
        &|at| tree::wide(at, 500, 3),
        &|at| (0..5000).for_each(|number| tree::make(at, &[&format!("file-{number}")])),
    ];
    for make in trees {
        let tree = Tree::new(make);
        for way in WAYS {
            let expected = way.by_std(tree.path());
            for threads in THREADS {
                way.check(&tree, &expected, threads);
            }
        }
    }
}

#[test]
fn thousand_runs_lend_the_same() {
    let _watchdog = Watchdog::new(1200);
    let tree = Tree::new(|at| tree::random(at, 1));
    let expected = WAYS.map(|way| way.by_std(tree.path()));
    for run in 0..if runs_long() { 1000 } else { 20 } {
        for threads in [1, 2, 8, 64] {
            let way = run % WAYS.len();
            WAYS[way].check(&tree, &expected[way], threads);
        }
    }
}

#[test]
fn ten_thousand_empty_directories() {
    let _watchdog = Watchdog::new(120);
    let tree = Tree::new(|at| tree::wide(at, 10_000, 5));
    let expected = PLAIN.by_std(tree.path());
    for threads in [2, 64] {
        PLAIN.check(&tree, &expected, threads);
    }
}

/// Directories half read, never read, left and sorted; entries skipped in each way.
#[test]
fn any_mix_of_calls_does_what_each_of_them_says() {
    let _watchdog = Watchdog::new(600);
    let tree = Tree::new(|at| tree::random(at, 2));
    for seed in 0..if runs_long() { 300 } else { 6 } {
        let plan = |path: &Path| Plan::any(seed, path);
        for way in [PLAIN, TIGHT] {
            let expected = in_one_order(by_std(tree.path(), way.is_post_order, plan));
            for threads in [2, 8] {
                let parts = way.begin(tree.path()).spread(threads, |walk| walked(walk, plan));
                let visits = in_one_order(parts.into_iter().flatten());
                assert!(visits == expected, "seed {seed}, {way:?}, {threads} threads");
            }
        }
    }
}

/// Checks that it is the directory at its path, and that the one above it is lent with it at its second visit.
fn check_descriptors(dir: &Dir<'_>) {
    let is_at = |dir: &dyn AsFd, path: &Path| fstat(dir.as_fd()).unwrap().st_ino == fs::metadata(path).unwrap().ino();
    assert!(is_at(dir, dir.path()), "{dir:?}");
    assert_eq!(dir.parent().is_some(), dir.is_second_visit() && dir.depth() > 0, "{dir:?}");
    assert!(dir.parent().is_none_or(|parent| is_at(&parent, dir.path().parent().unwrap())), "{dir:?}");
}

#[test]
fn directory_comes_before_all_below_it_and_again_after_them() {
    let _watchdog = Watchdog::new(300);
    let trees: [&dyn Fn(&Path); 3] = [
        &|at| {
            tree::wide(at, 30, 2);
            (0..30).for_each(|number| tree::wide(&at.join(format!("{number:02}")), 8, 1));
        },
        &|at| tree::comb(at, 60),
        &|at| {
            tree::wide(at, 5, 1);
            (0..5).for_each(|number| tree::comb(&at.join(number.to_string()), 20));
        },
    ];
    for make in trees {
        let tree = Tree::new(make);
        let count = PLAIN.by_std(tree.path()).len();
        for way in [PLAIN, POST, TIGHT] {
            for threads in [2, 3, 8, 64] {
                for _ in 0..if runs_long() { 100 } else { 3 } {
                    let clock = Clock::new();
                    let visit = |walk: &mut Walk| {
                        let look = |dir: Dir<'_>| {
                            check_descriptors(&dir);
                            read_all(dir);
                        };
                        clock.visit(walk, tree.path(), look).unwrap()
                    };
                    let parts = way
                        .begin(tree.path())
                        .spread(threads, |walk| iter::from_fn(|| visit(walk)).collect::<Vec<_>>());
                    let stamps: Vec<_> = parts.into_iter().flatten().collect();
                    assert_eq!(stamps.len(), if way.is_post_order { 2 * count } else { count });
                    stamps::check(tree.path(), way.is_post_order, &stamps);
                }
            }
        }
    }
}

/// While there is work for all, all get work.
#[test]
fn work_reaches_every_thread() {
    let _watchdog = Watchdog::new(120);
    let tree = Tree::new(|at| tree::wide(at, 5000, 4));
    for threads in THREADS {
        let working = AtomicUsize::new(0);
        let parts = PLAIN.begin(tree.path()).spread(threads, |walk| {
            let mut lent = 0;
            while walk.next().unwrap().is_some() {
                lent += 1;
                if lent == 1 {
                    working.fetch_add(1, SeqCst);
                }
                if working.load(SeqCst) < threads {
                    thread::sleep(Duration::from_millis(1));
                }
            }
            lent
        });
        assert!(parts.iter().all(|lent| *lent > 0), "{parts:?}");
        assert_eq!(parts.iter().sum::<usize>(), 5001);
    }
}

/// The caller's thread is one of them.
#[test]
fn as_many_closures_run_as_there_are_threads() {
    let _watchdog = Watchdog::new(60);
    let tree = Tree::of(&["a/b/", "c/"]);
    let cores = thread::available_parallelism().unwrap().get();
    for (asked, threads) in [(0, cores), (1, 1), (2, 2), (64, 64)] {
        let mut ids = POST.begin(tree.path()).spread(asked, |walk| {
            while walk.next().unwrap().is_some() {}
            format!("{:?}", thread::current().id())
        });
        assert!(ids.contains(&format!("{:?}", thread::current().id())));
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), threads);
    }
}

/// A walk that is under way, with a directory half read, goes on.
#[test]
fn spread_goes_on_where_the_walk_is() {
    let _watchdog = Watchdog::new(60);
    let tree = Tree::new(|at| tree::comb(at, 30));
    for way in [PLAIN, TIGHT] {
        let expected = paths_of(&way.by_std(tree.path()));
        for steps in [0, 1, 2, 3, 10, expected.len()] {
            for stop_reading in STOP_READING {
                let mut walk = way.begin(tree.path());
                let mut paths = Vec::new();
                for _ in 0..steps {
                    let mut dir = walk.next().unwrap().unwrap();
                    paths.push(path_of(&dir));
                    let _ = dir.next().unwrap();
                    stop_reading(dir);
                }
                let parts = walk.spread(3, paths_left);
                paths.extend(parts.into_iter().flatten());
                paths.sort();
                assert_eq!(paths, expected, "{way:?}, {steps} steps");
            }
        }
    }
}

/// The path of a visit, and whether it is the second. A `PathBuf` would be compared name by name, which takes longer than to
/// walk.
type PathOf = (OsString, bool);

fn path_of(dir: &Dir<'_>) -> PathOf {
    (dir.path().into(), dir.is_second_visit())
}

fn paths_of(visits: &[Visit]) -> Vec<PathOf> {
    let mut paths: Vec<_> =
        visits.iter().map(|visit| (visit.path.clone().into(), visit.what == What::Second)).collect();
    paths.sort();
    paths
}

fn paths_left(walk: &mut Walk) -> Vec<PathOf> {
    let mut paths = Vec::new();
    while let Some(dir) = walk.next().unwrap() {
        paths.push(path_of(&dir));
    }
    paths
}

/// What a thread does with its last directory before it returns.
const STOP_READING: [fn(Dir<'_>); 2] = [|_| (), read_all];

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
/// Nobody may see errors but for the directories that it may not enter. Some cannot be read, some not be searched, where
/// even `..` is refused.
#[test]
fn errors_are_the_same_whatever_the_number_of_threads() {
    let _watchdog = Watchdog::new(300);
    as_nobody(|| {
        let chmod = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        let tree = Tree::new(|at| {
            for mode in 0..8 {
                for number in 0..4 {
                    let dir = at.join(format!("{number}/mode-{mode}"));
                    tree::make(&dir, &["a/b/", "c/d/", "e/", "f"]);
                    chmod(&dir, mode << 6);
                }
            }
        });
        for way in [PLAIN, POST, TIGHT] {
            let expected = way.by_std(tree.path());
            assert!(expected.iter().filter(|visit| visit.what == What::Error(libc::EACCES)).count() > 20);
            for threads in THREADS {
                for _ in 0..if runs_long() { 100 } else { 5 } {
                    let visits = way.spread(tree.path(), threads);
                    assert!(visits == expected, "{way:?}, {threads} threads: {visits:#?}");
                }
            }
        }
    });
}

/// Whoever makes the second visit need not be able to read the directory any more.
#[test]
fn second_visit_needs_no_permission_to_read() {
    let _watchdog = Watchdog::new(60);
    as_nobody(|| {
        for way in [POST, TIGHT] {
            for threads in THREADS {
                let tree = Tree::new(|at| tree::comb(at, 40));
                let parts = way.begin(tree.path()).spread(threads, |walk| {
                    let mut second_visits = 0;
                    while let Some(dir) = walk.next().unwrap() {
                        if dir.is_second_visit() {
                            second_visits += 1;
                        } else {
                            fchmod(&dir, Mode::WUSR | Mode::XUSR).unwrap();
                        }
                    }
                    second_visits
                });
                assert_eq!(parts.into_iter().sum::<u32>(), 1 + 3 * 40, "{way:?}, {threads} threads");
            }
        }
    });
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

/// Nor does a closure hold up the others that puts another walk in the place of its own.
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
                    assert!(late.into_inner() < threads, "each of the others had one directory at most");
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

/// A thread is given work thousands of levels below the root, and the walk is stopped there: what knows all levels between is
/// dropped without recursion.
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

#[test]
fn removing_on_the_second_visit_removes_a_tree() {
    let _watchdog = Watchdog::new(60);
    for make in [|at: &Path| tree::random(at, 7), |at: &Path| tree::comb(at, 100), |at: &Path| tree::wide(at, 500, 3)] {
        for way in [POST, TIGHT] {
            for threads in [2, 8] {
                let tree = Tree::new(make);
                let parts = way.begin(tree.path()).spread(threads, |walk| remove(walk, tree.path()));
                for part in parts {
                    part.unwrap();
                }
                assert!(!tree.path().exists());
            }
        }
    }
}

/// As many directories stay where they are, and between them others are made, removed, moved and exchanged for links.
const PLACES: usize = 8;

/// What stays comes once, and again in post-order, whatever happens around it; nothing comes from outside.
#[test]
fn tree_changes_meanwhile() {
    let _watchdog = Watchdog::new(600);
    let outside = Tree::of(&["OUTSIDE/OUTSIDE/"]);
    let tree = Tree::new(|at| {
        for place in 0..PLACES {
            tree::make(at, &[&format!("{place}/stays/stays/stays/"), &format!("{place}/moved-{place}/a/b/c/")]);
            symlink(outside.path(), at.join(format!("{place}/link"))).unwrap();
        }
    });
    let is_over = AtomicBool::new(false);
    let changes: usize = thread::scope(|scope| {
        let (at, is_over) = (tree.path(), &is_over);
        let others = [1, 2].map(|seed| scope.spawn(move || change(at, seed, is_over)));
        let checked = scope.spawn(|| {
            for _ in 0..if runs_long() { 300 } else { 10 } {
                for way in [PLAIN, POST, TIGHT] {
                    for threads in [2, 8, 64] {
                        check_what_stays(way, at, threads);
                    }
                }
            }
        });
        let checked = checked.join();
        is_over.store(true, SeqCst);
        checked.unwrap_or_else(|panic| resume_unwind(panic));
        others.into_iter().map(|other| other.join().unwrap()).sum()
    });
    assert!(changes > 100, "{changes} changes");
}

fn change(root: &Path, seed: u64, is_over: &AtomicBool) -> usize {
    let mut random = Random(seed);
    let mut changes = 0;
    while !is_over.load(SeqCst) {
        let [from, to] = [(); 2].map(|()| root.join(random.below(PLACES).to_string()));
        let (made, moved) = (from.join(format!("new-{seed}")), format!("moved-{}", random.below(PLACES)));
        let rename = |to, flags| renameat_with(CWD, from.join(&moved), CWD, to, flags).is_ok();
        changes += usize::from(match random.below(5) {
            0 => fs::create_dir_all(made.join("a/b")).is_ok(),
            1 => fs::remove_dir_all(made).is_ok(),
            2 => rename(to.join("link"), RenameFlags::EXCHANGE),
            _ => rename(to.join(&moved), RenameFlags::NOREPLACE),
        });
    }
    changes
}

fn check_what_stays(way: Way, root: &Path, threads: usize) {
    let stays = |path: &Path| {
        let mut names = path.strip_prefix(root).unwrap().iter();
        names.next().is_none_or(|name| name.len() == 1) && names.all(|name| name == "stays")
    };
    let parts = way.begin(root).spread(threads, |walk| {
        let mut paths = Vec::new();
        loop {
            match walk.next() {
                Ok(None) => break paths,
                Ok(Some(mut dir)) => {
                    paths.extend(stays(dir.path()).then(|| path_of(&dir)));
                    while let Some(entry) = dir.next().unwrap() {
                        assert_ne!(entry.name(), b"OUTSIDE");
                    }
                }
                Err(error) => {
                    assert!(matches!(errno(error.io_error()), libc::ENOENT | libc::ENOTDIR), "{error}");
                }
            }
        }
    });
    let mut paths: Vec<_> = parts.into_iter().flatten().collect();
    paths.sort();
    let all = (0..PLACES).flat_map(|place| {
        let names = iter::once(place.to_string()).chain(iter::repeat_n("stays".to_owned(), 3));
        names.scan(root.to_owned(), |path, name| {
            path.push(name);
            Some(path.clone())
        })
    });
    let visits = if way.is_post_order { &[false, true][..] } else { &[false] };
    let mut expected: Vec<_> = iter::once(root.to_owned())
        .chain(all)
        .flat_map(|path| visits.iter().map(move |is_second_visit| (path.clone().into(), *is_second_visit)))
        .collect();
    expected.sort();
    assert_eq!(paths, expected, "{way:?}, {threads} threads");
}

/// A share that is on its way has a descriptor too, and in post-order the root another one.
#[test]
fn no_more_descriptors_are_open_than_stated() {
    process::run("spread::no_more_descriptors_are_open_than_stated", 120, || {
        let tree = Tree::new(|at| {
            tree::comb(at, 60);
            tree::random(&at.join("a"), 3);
        });
        let before = open_descriptors();
        for way in WAYS {
            for threads in [1, 2, 8, 64] {
                let most = Mutex::new(0);
                let spread = |until: usize, look: &(dyn Fn(Dir<'_>) + Sync)| {
                    let walk = way.begin(tree.path());
                    let work = |walk: &mut Walk| (0..until).find(|_| walk.next().unwrap().map(look).is_none());
                    let _ = catch_unwind(AssertUnwindSafe(|| walk.spread(threads, work)));
                    assert_eq!(open_descriptors(), before, "all are closed at the end");
                };
                spread(usize::MAX, &|_| {
                    let mut most = most.lock().unwrap();
                    *most = open_descriptors().max(*most);
                });
                let most = most.into_inner().unwrap() - before;
                assert!(most <= threads * (way.max_open + 1) + 1, "{way:?}, {threads} threads: {most} open");
                for until in [0, 1, 10] {
                    spread(until, &|_| ());
                }
                spread(usize::MAX, &|mut dir| dir.stop());
                spread(usize::MAX, &|dir| {
                    if dir.depth() == 2 {
                        resume_unwind(Box::new(()))
                    }
                });
            }
        }
    });
}

/// Whatever cannot be opened or duplicated: each directory comes, or it or one above it has an error.
#[test]
fn process_with_few_descriptors_loses_nothing_in_silence() {
    process::run("spread::process_with_few_descriptors_loses_nothing_in_silence", 120, || {
        let tree = Tree::new(|at| {
            tree::comb(at, 30);
            tree::random(&at.join("a"), 3);
        });
        for way in [PLAIN, POST, TIGHT] {
            let expected = paths_of(&way.by_std(tree.path()));
            for descriptors in [2, 3, 5, 8, 12, 40] {
                let _others = leave_room(descriptors);
                for _ in 0..if runs_long() { 100 } else { 2 } {
                    let parts = way.begin(tree.path()).spread(8, |walk| walked(walk, |_| Plan::ALL));
                    let (errors, visits): (Vec<_>, Vec<_>) =
                        parts.into_iter().flatten().partition(|visit| matches!(visit.what, What::Error(_)));
                    assert!(errors.iter().all(|error| error.what == What::Error(libc::EMFILE)), "{errors:?}");
                    let failed: HashSet<_> = errors.iter().map(|error| &*error.path).collect();
                    let mut paths = paths_of(&visits);
                    assert!(paths.windows(2).all(|pair| pair[0] != pair[1]), "each comes once");
                    let is_told = |path: &Path| path.ancestors().any(|path| failed.contains(path));
                    let missing = expected.iter().filter(|path| paths.binary_search(path).is_err());
                    let silent: Vec<_> = missing.filter(|(path, _)| !is_told(path.as_ref())).collect();
                    assert!(silent.is_empty(), "{way:?}, {descriptors} descriptors: {silent:?}, {failed:?}");
                    paths.retain(|path| expected.binary_search(path).is_err());
                    assert!(paths.is_empty(), "made up: {paths:?}");
                }
            }
        }
    });
}

#[test]
fn fewer_threads_walk_where_the_system_refuses_them() {
    process::run("spread::fewer_threads_walk_where_the_system_refuses_them", 60, || {
        let tree = Tree::new(|at| tree::comb(at, 30));
        as_nobody(|| {
            setrlimit(Resource::Nproc, Rlimit { current: Some(0), ..getrlimit(Resource::Nproc) }).unwrap();
            for way in [PLAIN, POST] {
                for threads in [2, 64, usize::MAX] {
                    let parts = way.begin(tree.path()).spread(threads, |walk| walked(walk, |_| way.plan()));
                    let [visits] = <[_; 1]>::try_from(parts).unwrap();
                    assert!(in_one_order(visits) == way.by_std(tree.path()));
                }
            }
        });
    });
}

#[test]
fn threads_share_one_cpu() {
    let _watchdog = Watchdog::new(60);
    in_thread(|| {
        let all = sched_getaffinity(None).unwrap();
        let mut one = CpuSet::new();
        one.set((0..CpuSet::MAX_CPU).find(|cpu| all.is_set(*cpu)).unwrap());
        sched_setaffinity(None, &one).unwrap();
        let tree = Tree::new(|at| tree::random(at, 5));
        for way in [PLAIN, TIGHT] {
            let expected = way.by_std(tree.path());
            for threads in THREADS {
                way.check(&tree, &expected, threads);
            }
        }
    });
}
