//! `Jobs`: work that threads without directories do for threads that have some.

use crate::spread::THREADS;
use crate::support::machine::{Watchdog, runs_long};
use crate::support::tree::{self, Tree};
use crate::support::way::{PLAIN, POST, Way};
use lendir::{Jobs, Walk};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Barrier, Mutex};
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
                            jobs.run(move |_| run(path));
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
                jobs.run(move |_| {
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
        assert_eq!(format!("{worker:?}, {jobs:?}"), "Worker { index: 0, .. }, Jobs { index: 0, .. }");
        let mut given = 0;
        while let Some(mut dir) = worker.next().unwrap() {
            while dir.next().unwrap().is_some() {
                let ran = &ran;
                jobs.run(move |_| _ = ran.fetch_add(1, SeqCst));
                given += 1;
                assert_eq!(ran.load(SeqCst), given);
            }
        }
    });
}

/// Both threads have a directory in hand, so none of them comes for jobs.
#[test]
fn caller_runs_what_no_other_thread_would() {
    let _watchdog = Watchdog::new(60);
    let tree = Tree::of(&["a/", "b/", "c/", "d/"]);
    let together = Barrier::new(2);
    Walk::open(tree.path()).unwrap().spread(2, |worker| {
        let jobs = worker.jobs();
        while let Some(dir) = worker.next().unwrap() {
            if dir.depth() == 0 {
                thread::sleep(Duration::from_millis(10)); // until the other one waits for directories and jobs
                continue;
            }
            together.wait();
            let (caller, ran_on) = (thread::current().id(), Arc::new(Mutex::new(None)));
            let ran_here = Arc::clone(&ran_on);
            jobs.run(move |_| *ran_here.lock().unwrap() = Some(thread::current().id()));
            assert_eq!(*ran_on.lock().unwrap(), Some(caller));
            together.wait();
            return;
        }
        panic!("one thread had all directories");
    });
}

/// The names in the tree, each of which came as the result of a job before its directory was left.
fn results(tree: &Tree, way: Way, threads: usize, run: fn(Jobs<'_, '_>, Name, Sender<Name>)) -> Vec<Name> {
    let parts = way.options().open(tree.path()).unwrap().spread(threads, |worker| {
        let (jobs, mut all) = (worker.jobs(), Vec::new());
        while let Some(mut dir) = worker.next().unwrap() {
            let (sender, results) = channel();
            while let Some(entry) = dir.next().unwrap() {
                run(jobs, entry.name().into(), sender.clone());
            }
            drop(sender);
            all.extend(results);
        }
        all
    });
    let mut names: Vec<_> = parts.into_iter().flatten().collect();
    names.sort();
    names
}

type Name = Box<[u8]>;

const ON: [usize; 5] = [1, 2, 3, 4, 8];

/// Directories of many files beside many directories: some threads wait for results, others for directories.
fn files_and_directories() -> Tree {
    let below = (0..6).flat_map(|dir| (0..20).map(move |file| format!("{dir}/{file}")));
    let paths: Vec<_> = below.chain((0..40).map(|file| format!("file{file}"))).collect();
    Tree::of(&paths.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Every closure ends that gives jobs and waits for their results.
fn wait_for_results(way: Way, run: fn(Jobs<'_, '_>, Name, Sender<Name>)) {
    let _watchdog = Watchdog::new(600);
    let tree = files_and_directories();
    let expected = results(&tree, way, 1, |_, name, results| results.send(name).unwrap());
    for threads in ON {
        for _ in 0..if runs_long() { 2000 } else { 100 } {
            assert!(results(&tree, way, threads, run) == expected, "{way:?}, {threads} threads");
        }
    }
}

#[test]
fn closure_may_wait_for_its_jobs() {
    for way in [PLAIN, POST] {
        wait_for_results(way, |jobs, name, results| {
            jobs.run(move |_| {
                thread::yield_now();
                results.send(name).unwrap();
            });
        });
    }
}

#[test]
fn job_may_wait_for_jobs_of_its_own() {
    wait_for_results(PLAIN, |jobs, name, results| {
        jobs.run(move |jobs| {
            let (sender, below) = channel();
            for _ in 0..8 {
                let sender = sender.clone();
                jobs.run(move |jobs| {
                    let (sender_below, below) = channel();
                    jobs.run(move |_| sender_below.send(1).unwrap());
                    thread::yield_now();
                    sender.send(below.recv().unwrap()).unwrap();
                });
            }
            drop(sender);
            assert_eq!(below.into_iter().sum::<usize>(), 8);
            results.send(name).unwrap();
        });
    });
}

/// A job gets the `Jobs` of its thread, and so do those that it gives.
#[test]
fn job_knows_its_thread() {
    let tree = tree();
    for threads in THREADS {
        let ids = Mutex::new(BTreeMap::<usize, ThreadId>::new());
        let note = |index| {
            let here = thread::current().id();
            assert_eq!(*ids.lock().unwrap().entry(index).or_insert(here), here);
        };
        Walk::open(tree.path()).unwrap().spread(threads, |worker| {
            let jobs = worker.jobs();
            assert_eq!(jobs.index(), worker.index());
            note(jobs.index());
            while let Some(mut dir) = worker.next().unwrap() {
                while dir.next().unwrap().is_some() {
                    let note = &note;
                    jobs.run(move |jobs| {
                        note(jobs.index());
                        jobs.run(move |jobs| note(jobs.index()));
                    });
                }
            }
        });
        assert!(ids.into_inner().unwrap().into_keys().eq(0..threads));
    }
}

/// A closure that catches the panic of a job, and returns, leaves nobody who would run what is queued.
#[test]
fn panic_in_a_job_that_is_caught_drops_what_comes_later() {
    let _watchdog = Watchdog::new(60);
    let tree = tree();
    let (tell, told) = channel();
    let told = Mutex::new(told);
    Walk::open(tree.path()).unwrap().spread(2, |worker| {
        if worker.index() == 1 {
            while catch_unwind(AssertUnwindSafe(|| while worker.next().unwrap().is_some() {})).is_ok() {}
            return tell.send(()).unwrap();
        }
        let (jobs, me) = (worker.jobs(), thread::current().id());
        let is_mine = Arc::new(AtomicBool::new(true));
        while is_mine.load(SeqCst) {
            let is_mine = Arc::clone(&is_mine);
            jobs.run(move |_| {
                if thread::current().id() != me {
                    is_mine.store(false, SeqCst);
                    panic!("a job");
                }
            });
        }
        told.lock().unwrap().recv().unwrap();
        let (send, received) = channel::<()>();
        jobs.run(move |_| send.send(()).unwrap());
        assert!(received.recv().is_err(), "a job ran after a panic");
    });
}

/// While a directory is lent, or from a job: no thread is lent more than the one that it has.
#[test]
fn jobs_stop_the_walk() {
    let _watchdog = Watchdog::new(60);
    let tree = tree();
    for from_job in [false, true] {
        for threads in THREADS {
            let is_stopped = AtomicBool::new(false);
            let stop = |jobs: Jobs<'_, '_>| {
                jobs.stop();
                is_stopped.store(true, SeqCst);
            };
            let late = Walk::open(tree.path()).unwrap().spread(threads, |worker| {
                let (jobs, mut late) = (worker.jobs(), 0);
                while let Some(mut dir) = worker.next().unwrap() {
                    late += usize::from(is_stopped.load(SeqCst));
                    if dir.next().unwrap().is_some() && dir.depth() == 2 {
                        let stop = &stop;
                        if from_job { jobs.run(stop) } else { stop(jobs) }
                    }
                }
                assert!(worker.next().unwrap().is_none());
                jobs.run(|_| panic!("a job ran after the stop"));
                late
            });
            assert!(
                is_stopped.into_inner() && late.iter().all(|late| *late <= 1),
                "a job {from_job}, {threads} threads: {late:?} directories"
            );
        }
    }
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
                            jobs.run(move |_| {
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
