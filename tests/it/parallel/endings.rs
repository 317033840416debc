//! Closures that stop the walk or panic, for the threads of `ends` and of `tests/shuttle`.

use lendir::WalkDirs;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

/// A function that is called at each visit with its number and the number of threads that have
/// begun.
type Delay<'a> = &'a (dyn Fn(usize, &AtomicUsize) + Sync);

/// Walks until one thread stops the walk at a visit. The thread `returns` then or continues to the
/// end. Returns the number of threads and the number of visits.
pub fn stop(
    walk: WalkDirs,
    threads: usize,
    stop_at: usize,
    returns: bool,
    delay: Delay<'_>,
) -> [usize; 2] {
    let [begun, visits, late] = [(); 3].map(|()| AtomicUsize::new(0));
    let is_over = AtomicBool::new(false);
    let parts = walk.run_parallel(threads, |worker| {
        begun.fetch_add(1, SeqCst);
        let mut stops = false;
        while let Some(_dir) = worker.next().unwrap() {
            late.fetch_add(usize::from(is_over.load(SeqCst)), SeqCst);
            let visit = visits.fetch_add(1, SeqCst);
            delay(visit, &begun);
            stops = visit == stop_at;
            if stops {
                worker.stop();
                if returns {
                    return;
                }
            }
        }
        is_over.fetch_or(stops, SeqCst);
        (0..3).for_each(|_| assert!(worker.next().unwrap().is_none()));
    });
    assert!(late.into_inner() < parts.len(), "a thread got two directories after the stop");
    [parts.len(), visits.into_inner()]
}

/// Walks with a closure that panics at these visits. Checks that the caller gets one of the panics
/// when all closures have ended. Returns the same numbers as [`stop`].
pub fn panic(
    walk: WalkDirs,
    threads: usize,
    panic_at: Range<usize>,
    delay: Delay<'_>,
) -> [usize; 2] {
    let [begun, ended, visits] = [(); 3].map(|()| AtomicUsize::new(0));
    let parallel = AssertUnwindSafe(|| {
        let _ = walk.run_parallel(threads, |worker| {
            begun.fetch_add(1, SeqCst);
            while let Some(_dir) = worker.next().unwrap() {
                let visit = visits.fetch_add(1, SeqCst);
                delay(visit, &begun);
                if panic_at.contains(&visit) {
                    ended.fetch_add(1, SeqCst);
                    resume_unwind(Box::new(visit)); // without a message
                }
            }
            ended.fetch_add(1, SeqCst);
        });
    });
    let panic = *catch_unwind(parallel).unwrap_err().downcast::<usize>().unwrap();
    assert!(panic_at.contains(&panic), "panic {panic}, not one of {panic_at:?}");
    let begun = begun.into_inner();
    assert_eq!(begun, ended.into_inner());
    [begun, visits.into_inner()]
}
