//! The visits of all threads together, and the distribution of work.

use super::{STOP_READING, path_of, paths_left, paths_of};
use crate::support::prelude::*;
use std::collections::HashSet;

/// One thread has as many directories, or roots, as there are threads. No thread asks for a second
/// one before each thread has one.
#[test]
fn each_thread_gets_a_part_at_once() {
    const THREADS: usize = 9;
    let _watchdog = watchdog();
    let tree = Tree::new(|at| tree::wide(at, THREADS, 0));
    let roots: Vec<_> =
        fs::read_dir(tree.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    for walk in [PLAIN.build().open_all(&roots), PLAIN.begin(tree.path())] {
        let having = AtomicUsize::new(0);
        let _ = walk.run_parallel(THREADS, |worker| {
            while let Some(dir) = worker.next().unwrap() {
                having.fetch_add(usize::from(dir.path() != tree.path()), SeqCst);
                while dir.path() != tree.path() && having.load(SeqCst) < THREADS {
                    thread::sleep(Duration::from_millis(1));
                }
            }
        });
        assert_eq!(having.into_inner(), THREADS);
    }
}

/// The caller's thread has index 0. As many threads start as there is work for, and all have ended
/// completely when `run_parallel` returns, in whatever order they end.
#[test]
fn results_come_in_the_order_of_the_index() {
    struct Local;
    static LOCALS: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static LOCAL: Local = const { Local });
    impl Drop for Local {
        fn drop(&mut self) {
            thread::sleep(Duration::from_millis(2));
            LOCALS.fetch_add(1, SeqCst);
        }
    }
    let _watchdog = watchdog();
    let tree = Tree::new(|at| tree::wide(at, 8, 0));
    for (asked, threads) in [(0, 8), (1, 1), (2, 2), (64, 8)] {
        let [begun, ended] = [(); 2].map(|()| AtomicUsize::new(0));
        let wait = |count: &AtomicUsize, until| {
            while count.load(SeqCst) < until {
                thread::sleep(Duration::from_millis(1));
            }
        };
        let before = LOCALS.load(SeqCst);
        let ids = PLAIN.begin(tree.path()).run_parallel(asked, |worker| {
            begun.fetch_add(1, SeqCst);
            while let Some(dir) = worker.next().unwrap() {
                wait(&begun, if dir.depth() > 0 { threads } else { 1 });
            }
            wait(&ended, threads - 1 - worker.index());
            ended.fetch_add(1, SeqCst);
            LOCAL.with(|_| (worker.index(), thread::current().id()))
        });
        assert_eq!(ids.iter().map(|id| id.0).collect::<Vec<_>>(), (0..threads).collect::<Vec<_>>());
        assert_eq!(ids[0].1, thread::current().id());
        assert_eq!(ids.iter().map(|id| id.1).collect::<HashSet<_>>().len(), threads);
        assert_eq!(LOCALS.load(SeqCst), before + threads - 1);
    }
}

/// `run_parallel` continues a walk that has started, even with a directory that is half read.
#[test]
fn run_parallel_continues_a_walk() {
    let _watchdog = watchdog();
    let tree = Tree::new(|at| tree::comb(at, 30));
    for options in [PLAIN, TIGHT] {
        let expected = paths_of(&options.expected_visits(tree.path()));
        for steps in [0, 1, 2, 3, 10, expected.len()] {
            for stop_reading in STOP_READING {
                let mut walk = options.begin(tree.path());
                let mut paths = Vec::new();
                for _ in 0..steps {
                    let mut dir = walk.next().unwrap().unwrap();
                    paths.push(path_of(&dir));
                    let _ = dir.next().unwrap();
                    stop_reading(dir);
                }
                let parts = walk.run_parallel(3, |worker| paths_left(worker));
                paths.extend(parts.into_iter().flatten());
                paths.sort();
                assert_eq!(paths, expected, "{options:?}, {steps} steps");
            }
        }
    }
}
