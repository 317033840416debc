//! Walks by several threads while calls fail, and where threads are refused. The tests of one thread among mounts, and against a
//! hostile server, run on several threads too.

use super::{Lent, SORTED, Told, WAYS, comb, make};
use crate::support::machine;
use crate::support::process::{self, in_thread};
use crate::support::scratch::Scratch;
use crate::support::way::{PLAIN, POST, Way};
use rustix::fs::Uid;
use rustix::process::{Resource, Rlimit, geteuid, getrlimit, setrlimit};
use rustix::thread::set_thread_res_uid;
use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

/// The walk runs on as many threads as it may have.
#[test]
fn some_threads_are_refused() {
    const MAY_BE: usize = 5;
    process::run("walks::parallel::some_threads_are_refused", 60, || {
        let row = "walk by several threads: some of them refused";
        if !geteuid().is_root() {
            return machine::skip(row, "root, to be a user without any process");
        }
        let tree = Scratch::new();
        comb(tree.path(), 20);
        make(tree.path(), &["1/", "2/", "3/", "4/", "5/", "6/"]);
        let all = Told::by_std(tree.path()).unwrap();
        let roots = WAYS.map(|way| way.begin(tree.path()));
        in_thread(|| {
            // A user that no machine has.
            let user = Uid::from_raw(1_234_567);
            set_thread_res_uid(user, user, user).unwrap();
            setrlimit(
                Resource::Nproc,
                Rlimit { current: Some(MAY_BE as u64), ..getrlimit(Resource::Nproc) },
            )
            .unwrap();
            let threads = || fs::read_dir("/proc/self/task").unwrap().count();
            let before = threads();
            for run in roots {
                // A thread of the previous walk counts until the kernel has reaped it, a little after it was joined.
                while threads() > before {
                    thread::yield_now();
                }
                let (plan, begun) = (run.way.plan(), AtomicUsize::new(0));
                let parts = run.walk.run_parallel(64, |worker| {
                    begun.fetch_add(1, SeqCst);
                    let (is_first, mut lent) = (worker.index() == 0, Lent::default());
                    while lent.take(worker, |_| (), |_| plan) {
                        // Otherwise those that run could do it all.
                        let waits = |_: &_| {
                            lent.visits.len() > usize::from(is_first) && begun.load(SeqCst) < MAY_BE
                        };
                        (0..1000)
                            .take_while(waits)
                            .for_each(|_| thread::sleep(Duration::from_millis(1)));
                    }
                    lent.visits
                });
                assert_eq!(parts.len(), MAY_BE);
                assert_eq!(Told::of(parts.into_iter().flatten()).sorted(), all);
            }
        });
    });
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))] // where `trap` knows the registers
mod faults {
    use super::*;
    use crate::faults::trapped;
    use crate::support::visits::assert_nothing_is_lost_silently;
    use crate::trap;
    use libc::{EIO, EMFILE, c_int, c_long};

    const CALLS: [c_long; 4] =
        [libc::SYS_openat, libc::SYS_getdents64, libc::SYS_statx, libc::SYS_fcntl];

    #[test]
    fn failing_calls_lose_nothing_silently() {
        trapped("walks::parallel::faults::failing_calls_lose_nothing_silently", &CALLS, |tree| {
            comb(tree, 10);
            let all = Told::by_std(tree).unwrap();
            let walk = |way: Way,
                        call: c_long,
                        errno: c_int,
                        fails: &'static (dyn Fn(u32) -> bool + Sync)| {
                let run = way.begin(tree);
                trap::fail(call, errno, fails);
                let visits = run.run_parallel(4).concat();
                let made = trap::made();
                trap::count(call);
                let expected: Vec<_> = way.by_std(tree).collect();
                assert_nothing_is_lost_silently(
                    &visits,
                    &expected,
                    &format!("{way:?}, call {call}"),
                );
                (Told::of(visits), made)
            };
            for way in [PLAIN, POST, SORTED, Way { second_visits: true, ..SORTED }] {
                for call in CALLS {
                    let (told, calls) = walk(way, call, EIO, &|_| false);
                    assert_eq!(told.sorted(), all);
                    for nth in 1..=calls {
                        walk(way, call, EIO, Box::leak(Box::new(move |number| number == nth)));
                    }
                }
                // What cannot be duplicated is not split off.
                let (told, _) = walk(way, libc::SYS_fcntl, EMFILE, &|_| true);
                assert_eq!(told.sorted(), all);
            }
            // If a thread has to come back to a level that it cannot recognise, the level has no second visit. Nothing else is lost.
            let mut errors = 0;
            for number in 0..5000 {
                // Chance decides whether a thread has to.
                if number >= 50 && errors > 0 {
                    break;
                }
                let (told, _) = walk(POST, libc::SYS_statx, EIO, &|_| true);
                errors += told.errors.len();
                assert_eq!(Told { errors: vec![], ..told }.sorted(), all);
            }
            assert!(errors > 0, "no thread had to come back");
        });
    }
}
