//! What `Walk::spread` promises: the same walk by several threads, which ends whatever they do.

use crate::stamps::{self, Clock, read_all};
use crate::support::machine::{Watchdog, runs_long};
use crate::support::process::as_nobody;
use crate::support::tree::{self, Tree};
use crate::visits::{Plan, Visit, What, by_std, walked};
use lendir::{Dir, Order, Walk};
use rustix::fs::fstat;
use std::fs::{self, Permissions};
use std::iter;
use std::mem;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
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
        let walk = if self.is_post_order { walk.post_order() } else { walk };
        if self.is_on_one_mount { walk.same_mount() } else { walk }
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
            THREADS.into_iter().for_each(|threads| way.check(&tree, &expected, threads));
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
    [2, 64].into_iter().for_each(|threads| PLAIN.check(&tree, &expected, threads));
}

/// Directories half read, never read, leaked, left and sorted; entries skipped in each way.
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
    assert_eq!(dir.parent().is_some(), dir.is_post() && dir.depth() > 0, "{dir:?}");
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
            while let Some(dir) = walk.next().unwrap() {
                drop(dir);
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
    for (asked, threads) in [(0, 1), (1, 1), (2, 2), (64, 64)] {
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
                let parts = walk.spread(3, |walk| paths_left(walk));
                paths.extend(parts.into_iter().flatten());
                paths.sort();
                assert_eq!(paths, expected, "{way:?}, {steps} steps");
            }
        }
    }
}

/// The path of a visit, and whether it is the second.
type PathOf = (PathBuf, bool);

fn path_of(dir: &Dir<'_>) -> PathOf {
    (dir.path().to_owned(), dir.is_post())
}

fn paths_of(visits: &[Visit]) -> Vec<PathOf> {
    let mut paths: Vec<_> = visits.iter().map(|visit| (visit.path.clone(), visit.what == What::Second)).collect();
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
const STOP_READING: [fn(Dir<'_>); 3] = [|dir| drop(dir), |dir| mem::forget(dir), read_all];

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
                for steps in [0, 1, 2, 3, 10, 40] {
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
