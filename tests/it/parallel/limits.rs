//! Checks parallel walks that have few descriptors, or whose threads the system refuses.

use super::{THREADS, TIGHT};
use crate::support::machine::runs_long;
use crate::support::options::{PLAIN, POST};
use crate::support::process::{self, as_nobody};
use crate::support::tree::{self, Tree};
use crate::visits::{
    Requests, assert_nothing_is_lost_silently, collect_visits, errors, in_one_order,
};
use crate::walk_dirs_bounds::{leave_room, open_descriptors};
use lendir::{Dir, Worker};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;

/// A part that no thread has taken yet has a descriptor. With second visits, the root and its
/// parent each have another one.
#[test]
fn threads_respect_max_open() {
    process::run("parallel::limits::threads_respect_max_open", 120, || {
        let tree = Tree::new(|at| tree::bushy(at, 60));
        let before = open_descriptors();
        for options in [PLAIN, POST, TIGHT] {
            for threads in THREADS {
                let most = Mutex::new(0);
                let parallel = |until: usize, look: &(dyn Fn(Dir<'_>) + Sync)| {
                    let walk = options.begin(tree.path());
                    let work = |worker: &mut Worker<'_>| {
                        (0..until).find(|_| worker.next().unwrap().map(look).is_none())
                    };
                    let _ = catch_unwind(AssertUnwindSafe(|| walk.run_parallel(threads, work)));
                    assert_eq!(open_descriptors(), before, "a descriptor is still open");
                };
                parallel(usize::MAX, &|_| {
                    let mut most = most.lock().unwrap();
                    *most = open_descriptors().max(*most);
                });
                let most = most.into_inner().unwrap() - before;
                assert!(
                    most <= threads * (options.max_open + 1) + 2,
                    "{options:?}, {threads} threads: {most} open"
                );
                for until in [0, 1, 10] {
                    parallel(until, &|_| ());
                }
                parallel(usize::MAX, &|dir| {
                    if dir.depth() == 2 {
                        resume_unwind(Box::new(()))
                    }
                });
            }
        }
    });
}

/// If a directory cannot be opened, or a descriptor cannot be duplicated, each missing directory
/// has an error: its own, or one of an ancestor.
#[test]
fn few_descriptors_lose_nothing_silently() {
    process::run("parallel::limits::few_descriptors_lose_nothing_silently", 120, || {
        let tree = Tree::new(|at| tree::bushy(at, 30));
        for options in [PLAIN, POST, TIGHT] {
            let expected = options.expected_visits(tree.path());
            for descriptors in [2, 3, 5, 8, 12, 40] {
                let _others = leave_room(descriptors);
                for _ in 0..if runs_long() { 100 } else { 1 } {
                    let parts = options
                        .begin(tree.path())
                        .run_parallel(8, |worker| collect_visits(worker, |_| Requests::ALL));
                    let visits = parts.concat();
                    assert!(
                        errors(&visits).iter().all(|(_, errno)| *errno == libc::EMFILE),
                        "{visits:?}"
                    );
                    assert_nothing_is_lost_silently(
                        &visits,
                        &expected,
                        &format!("{options:?}, {descriptors} descriptors"),
                    );
                }
            }
        }
    });
}

#[test]
fn walk_survives_refused_threads() {
    process::run("parallel::limits::walk_survives_refused_threads", 60, || {
        let tree = Tree::new(|at| tree::comb(at, 30));
        as_nobody(|| {
            setrlimit(Resource::Nproc, Rlimit { current: Some(0), ..getrlimit(Resource::Nproc) })
                .unwrap();
            for options in [PLAIN, POST] {
                for threads in [2, usize::MAX] {
                    let parts = options.begin(tree.path()).run_parallel(threads, |worker| {
                        collect_visits(worker, |_| options.requests())
                    });
                    let [visits] = <[_; 1]>::try_from(parts).unwrap();
                    assert_eq!(in_one_order(visits), options.expected_visits(tree.path()));
                }
            }
        });
    });
}
