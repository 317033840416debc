//! Closures that return early, stop or panic.

use super::endings;
use crate::support::prelude::*;
use std::ops::Range;

/// The number of a visit by which there is a part for each thread.
const ALL_HAVE_WORK: usize = 100;

/// Delays a visit. The thread that ends the walk at one of the visits `ends` waits until all
/// threads have begun, if there is work for all. Later visits are slow, because that thread may
/// also have to wait for a core.
fn slow_down(visit: usize, begun: &AtomicUsize, ends: &Range<usize>, threads: usize) {
    let waits =
        || ends.contains(&visit) && ends.start == ALL_HAVE_WORK && begun.load(SeqCst) < threads;
    while waits() {
        thread::sleep(Duration::from_millis(1));
    }
    if visit >= ends.end {
        thread::sleep(Duration::from_millis(1));
    }
}

/// A closure stops the walk and returns, stops it and continues, or panics.
#[test]
fn stop_and_panic_end_all_threads() {
    let _watchdog = watchdog();
    let tree = Tree::new(|at| tree::wide(at, 3000, 4));
    let all = |count| ALL_HAVE_WORK..ALL_HAVE_WORK + count;
    for options in [PLAIN, POST, TIGHT] {
        for (threads, ends) in THREADS
            .into_iter()
            .flat_map(|threads| [0..1, 1..2, all(1), all(5)].map(|ends| (threads, ends)))
        {
            for way in 0..3 {
                let delay = |visit, begun: &_| slow_down(visit, begun, &ends, threads);
                let walk = options.begin(tree.path());
                let [begun, visits] = match way {
                    0 => endings::panic(walk, threads, ends.clone(), &delay),
                    _ => endings::stop(walk, threads, ends.start, way == 1, &delay),
                };
                let is_right = begun == threads || begun < threads && ends.start < ALL_HAVE_WORK;
                assert!(is_right, "{begun} of {threads} threads");
                assert!(visits < 3000, "{visits} visits");
            }
        }
    }
}
