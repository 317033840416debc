//! Walks that end early, and jobs: nothing hangs, and nothing leaks.

use super::{DIRECTORIES, any_way, begin, explore, make};
use crate::tree::Tree;
use lendir::Walk;
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::mpsc::channel;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

/// No closure runs to the end of the walk, but the walk ends.
#[test]
fn it_ends_when_all_return_early() {
    let tree = Tree::new(make);
    explore("all return early", 1000, move || {
        let (is_post_order, max_open) = any_way();
        begin(&tree, is_post_order, max_open).spread(thread_rng().gen_range(1..5), |worker| {
            (0..thread_rng().gen_range(0..8)).take_while(|_| worker.next().unwrap().is_some()).count()
        });
    });
}

#[test]
fn stop_ends_it_for_all() {
    let tree = Tree::new(make);
    explore("stopped", 1000, move || {
        let (is_post_order, max_open) = any_way();
        let (visits, is_over, late) = (AtomicUsize::new(0), AtomicBool::new(false), AtomicUsize::new(0));
        let stop_at = thread_rng().gen_range(0..20);
        let returns = thread_rng().gen_bool(0.5);
        let parts = begin(&tree, is_post_order, max_open).spread(thread_rng().gen_range(1..5), |worker| {
            let mut stops = false;
            while let Some(_dir) = worker.next().unwrap() {
                late.fetch_add(usize::from(is_over.load(SeqCst)), SeqCst);
                stops = visits.fetch_add(1, SeqCst) == stop_at;
                if stops {
                    worker.stop();
                    if returns {
                        return;
                    }
                }
            }
            is_over.fetch_or(stops, SeqCst);
            assert!(worker.next().unwrap().is_none());
        });
        assert!(late.into_inner() < parts.len(), "another thread was lent two directories after the stop");
    });
}

#[test]
fn panic_is_passed_on_when_all_have_returned() {
    let tree = Tree::new(make);
    explore("panics", 1000, move || {
        let (is_post_order, max_open) = any_way();
        let (begun, ended, visits) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        let panic_at = thread_rng().gen_range(0..DIRECTORIES);
        let panics = thread_rng().gen_range(1..3);
        let walk = begin(&tree, is_post_order, max_open);
        let spread = AssertUnwindSafe(|| {
            walk.spread(thread_rng().gen_range(1..5), |worker| {
                begun.fetch_add(1, SeqCst);
                while let Some(_dir) = worker.next().unwrap() {
                    if (panic_at..panic_at + panics).contains(&visits.fetch_add(1, SeqCst)) {
                        ended.fetch_add(1, SeqCst);
                        resume_unwind(Box::new("on purpose"));
                    }
                }
                ended.fetch_add(1, SeqCst);
            });
        });
        let panic: Box<dyn Any + Send> = catch_unwind(spread).unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"on purpose"));
        assert_eq!(begun.into_inner(), ended.into_inner());
    });
}

/// Each job runs once, on any thread, before `spread` returns. If the walk is stopped, or a thread panics, it may be dropped
/// instead, and nothing hangs.
#[test]
fn jobs_run_once_or_are_dropped_at_the_end() {
    let tree = Tree::new(make);
    let moved = Arc::new(AtomicUsize::new(0));
    let moved_so_far = Arc::clone(&moved);
    explore("jobs", 2000, move || {
        let (is_post_order, max_open) = any_way();
        let (given, ran, elsewhere) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        let alive = Arc::new(());
        let ends_at = thread_rng().gen_range(0..4 * DIRECTORIES);
        let panics = thread_rng().gen_bool(0.5);
        let walk = begin(&tree, is_post_order, max_open);
        let spread = AssertUnwindSafe(|| {
            walk.spread(thread_rng().gen_range(1..5), |worker| {
                let jobs = worker.jobs();
                let steps = if worker.index() == 0 { usize::MAX } else { thread_rng().gen_range(0..8) };
                for _ in 0..steps {
                    let Some(mut dir) = worker.next().unwrap() else { break };
                    while dir.next().unwrap().is_some() {
                        let number = given.fetch_add(1, SeqCst);
                        let (here, alive) = (shuttle::thread::current().id(), Arc::clone(&alive));
                        let (ran, elsewhere) = (&ran, &elsewhere);
                        jobs.run(move |_| {
                            let _alive = alive;
                            ran.fetch_add(1, SeqCst);
                            elsewhere.fetch_add(usize::from(shuttle::thread::current().id() != here), SeqCst);
                            if panics && number == ends_at {
                                resume_unwind(Box::new("on purpose"));
                            }
                        });
                    }
                    if !panics && given.load(SeqCst) > ends_at {
                        worker.stop();
                    }
                }
            });
        });
        let is_panic = catch_unwind(spread).is_err();
        let (given, ran) = (given.into_inner(), ran.into_inner());
        assert_eq!(is_panic, panics && given > ends_at);
        assert!(if given > ends_at { ran <= given } else { ran == given }, "{ran} of {given} jobs ran");
        assert_eq!(Arc::strong_count(&alive), 1, "what a job owns is left over");
        moved_so_far.fetch_add(elsewhere.into_inner(), SeqCst);
    });
    assert!(moved.load(SeqCst) > 1000, "only {moved:?} jobs ran on another thread");
}

/// Each closure waits for its jobs, and each job for one of its own. Shuttle fails when all threads wait.
#[test]
fn who_waits_for_jobs_gets_their_results() {
    let tree = Tree::new(make);
    explore("jobs are waited for", 1000, move || {
        let (is_post_order, max_open) = any_way();
        begin(&tree, is_post_order, max_open).spread(thread_rng().gen_range(1..5), |worker| {
            let jobs = worker.jobs();
            while let Some(mut dir) = worker.next().unwrap() {
                let (sender, results) = channel();
                let mut given = 0;
                while dir.next().unwrap().is_some() {
                    let sender = sender.clone();
                    jobs.run(move |jobs| {
                        let (below, result) = channel();
                        jobs.run(move |_| below.send(()).unwrap());
                        result.recv().unwrap();
                        sender.send(()).unwrap();
                    });
                    given += 1;
                }
                (0..given).for_each(|_| results.recv().unwrap());
            }
        });
    });
}

/// After so many clones it panics.
#[derive(Debug)]
struct Fuse(Arc<AtomicUsize>);

impl Clone for Fuse {
    fn clone(&self) -> Self {
        if self.0.fetch_sub(1, SeqCst) == 1 {
            resume_unwind(Box::new("on purpose"));
        }
        Self(Arc::clone(&self.0))
    }
}

#[test]
fn state_whose_clone_panics_hangs_nothing() {
    let tree = Tree::new(make);
    explore("the clone of a state panics", 1000, move || {
        let (is_post_order, max_open) = any_way();
        let fuse = Fuse(Arc::new(AtomicUsize::new(thread_rng().gen_range(1..30))));
        let options = Walk::options().second_visits(is_post_order).max_open(max_open).with_state(fuse);
        let walk = options.open(tree.path()).unwrap();
        let spread = AssertUnwindSafe(|| {
            walk.spread(thread_rng().gen_range(1..5), |worker| while worker.next().unwrap().is_some() {})
        });
        let _ = catch_unwind(spread);
    });
}
