//! `Jobs`: work that threads without directories do for threads that have some.

use crate::spread::THREADS;
use crate::support::machine::{Watchdog, runs_long};
use crate::support::tree::{self, Tree};
use crate::support::way::{PLAIN, POST};
use lendir::Walk;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

fn tree() -> Tree {
    Tree::new(|at| tree::random(at, 1))
}

/// Some closures return early, while some jobs have not begun.
#[test]
fn each_runs_once_before_spread_returns() {
    let _watchdog = Watchdog::new(60);
    let tree = tree();
    let count_all = |walk: &mut Walk| {
        let mut count = 0;
        while let Some(mut dir) = walk.next().unwrap() {
            while dir.next().unwrap().is_some() {
                count += 1;
            }
        }
        count
    };
    let expected: usize = count_all(&mut PLAIN.options().open(tree.path()).unwrap());
    for way in [PLAIN, POST] {
        for threads in THREADS {
            for leaves in [false, true] {
                let runs = Mutex::new(BTreeMap::<PathBuf, usize>::new());
                let run = |path: PathBuf| *runs.lock().unwrap().entry(path).or_default() += 1;
                let one_stays = AtomicBool::new(false);
                way.options().open(tree.path()).unwrap().spread(threads, |worker| {
                    let jobs = worker.jobs();
                    let most = if leaves && one_stays.swap(true, SeqCst) { 5 } else { usize::MAX };
                    for _ in 0..most {
                        let Some(mut dir) = worker.next().unwrap() else { break };
                        while let Some(entry) = dir.next().unwrap() {
                            let (path, run) = (entry.path(), &run);
                            jobs.run(move || run(path));
                        }
                    }
                });
                let runs = runs.into_inner().unwrap();
                assert_eq!(runs.len(), expected, "{way:?}, {threads} threads");
                assert!(runs.values().all(|times| *times == 1));
            }
        }
    }
}

/// All work is in one directory: it is lent to one thread, and the others run its jobs meanwhile.
#[test]
fn idle_threads_run_them_while_a_directory_is_lent() {
    let _watchdog = Watchdog::new(60);
    let tree = Tree::of(&["f"]);
    let ran_on = Mutex::new(Vec::<ThreadId>::new());
    let run = || ran_on.lock().unwrap().push(thread::current().id());
    Walk::open(tree.path()).unwrap().spread(3, |worker| {
        let jobs = worker.jobs();
        while let Some(mut dir) = worker.next().unwrap() {
            assert!(dir.next().unwrap().is_some());
            let begin = Instant::now();
            while begin.elapsed() < Duration::from_secs(10) && !others_ran(&ran_on.lock().unwrap()) {
                let run = &run;
                jobs.run(move || {
                    run();
                    thread::sleep(Duration::from_millis(1));
                });
            }
            assert!(dir.next().unwrap().is_none());
        }
    });
    assert!(others_ran(&ran_on.into_inner().unwrap()), "no job ran on another thread");
}

/// Whether two threads other than this one are among them.
fn others_ran(ids: &[ThreadId]) -> bool {
    let mut others: Vec<_> = ids.iter().filter(|id| **id != thread::current().id()).collect();
    others.dedup();
    others.len() >= 2
}

#[test]
fn one_thread_runs_each_at_once() {
    let tree = tree();
    let ran = AtomicUsize::new(0);
    Walk::open(tree.path()).unwrap().spread(1, |worker| {
        let jobs = worker.jobs();
        assert_eq!(format!("{worker:?}, {jobs:?}"), "Worker { index: 0, .. }, Jobs { is_wanted: false, .. }");
        let mut given = 0;
        while let Some(mut dir) = worker.next().unwrap() {
            while dir.next().unwrap().is_some() {
                let ran = &ran;
                jobs.run(move || _ = ran.fetch_add(1, SeqCst));
                given += 1;
                assert_eq!(ran.load(SeqCst), given);
            }
        }
    });
}

/// Both threads return with a directory in hand, so none of them comes back for jobs.
#[test]
fn the_last_thread_runs_those_that_are_left() {
    let tree = Tree::of(&["a/", "b/", "c/", "d/"]);
    let (here, ran) = (AtomicUsize::new(0), AtomicUsize::new(0));
    Walk::open(tree.path()).unwrap().spread(2, |worker| {
        let jobs = worker.jobs();
        while let Some(dir) = worker.next().unwrap() {
            if dir.depth() == 0 {
                thread::sleep(Duration::from_millis(10)); // until the other one waits for directories and jobs
                continue;
            }
            here.fetch_add(1, SeqCst);
            let begin = Instant::now();
            while here.load(SeqCst) < 2 && begin.elapsed() < Duration::from_secs(1) {
                thread::yield_now();
            }
            let ran = &ran;
            return jobs.run(move || _ = ran.fetch_add(1, SeqCst));
        }
    });
    assert_eq!(ran.into_inner(), here.into_inner());
}

/// Counts how many exist.
struct Counted<'c>(&'c AtomicUsize);

impl<'c> Counted<'c> {
    fn new(count: &'c AtomicUsize) -> Self {
        count.fetch_add(1, SeqCst);
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// How a thread ends the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Stop,
    StopAndReturn,
    Panic,
    PanicInJob,
}

#[test]
fn what_has_not_begun_is_dropped_at_the_end() {
    let _watchdog = Watchdog::new(60);
    let tree = tree();
    for end in [End::Stop, End::StopAndReturn, End::Panic, End::PanicInJob] {
        for threads in THREADS {
            let (made, alive, ran) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
            let walk = Walk::open(tree.path()).unwrap();
            let spread = AssertUnwindSafe(|| {
                walk.spread(threads, |worker| {
                    let jobs = worker.jobs();
                    while let Some(mut dir) = worker.next().unwrap() {
                        while dir.next().unwrap().is_some() {
                            let number = made.fetch_add(1, SeqCst);
                            let (owned, ran) = (Counted::new(&alive), &ran);
                            jobs.run(move || {
                                let _owned = owned;
                                ran.fetch_add(1, SeqCst);
                                if end == End::PanicInJob && number == 100 {
                                    resume_unwind(Box::new(number));
                                }
                                thread::yield_now();
                            });
                            if end == End::Panic && number == 100 {
                                resume_unwind(Box::new(number));
                            }
                        }
                        if matches!(end, End::Stop | End::StopAndReturn) && made.load(SeqCst) > 100 {
                            worker.stop();
                            if end == End::StopAndReturn {
                                return;
                            }
                        }
                    }
                });
            });
            let result = catch_unwind(spread);
            assert_eq!(result.is_err(), matches!(end, End::Panic | End::PanicInJob), "{end:?}, {threads} threads");
            assert!(result.err().is_none_or(|panic| panic.downcast_ref() == Some(&100_usize)));
            assert_eq!(alive.into_inner(), 0, "{end:?}: a job leaks what it owns");
            assert!(ran.into_inner() <= made.into_inner());
        }
    }
}

/// A thread of the caller's own may hand over a job after all threads of the walk have become idle: then it runs the job itself.
#[test]
fn none_is_lost_that_comes_as_the_walk_ends() {
    let tree = Tree::of(&["a/", "b/"]);
    let (given, ran) = (AtomicUsize::new(0), AtomicUsize::new(0));
    for _ in 0..if runs_long() { 5000 } else { 300 } {
        let is_done = AtomicBool::new(false);
        Walk::open(tree.path()).unwrap().spread(2, |worker| {
            let jobs = worker.jobs();
            thread::scope(|scope| {
                if worker.index() == 0 {
                    scope.spawn(|| {
                        while !is_done.load(SeqCst) {
                            given.fetch_add(1, SeqCst);
                            let ran = &ran;
                            jobs.run(move || _ = ran.fetch_add(1, SeqCst));
                            thread::yield_now();
                        }
                    });
                }
                while worker.next().unwrap().is_some() {}
                if worker.index() == 0 {
                    is_done.store(true, SeqCst);
                }
            });
        });
    }
    assert_eq!(given.into_inner(), ran.into_inner());
}
