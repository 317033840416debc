//! `spread`: starts the threads of a walk, and collects their results.

use super::cursor::Cursor;
use super::handover::Handover;
use super::jobs::JobQueue;
use super::traversal::Traversal;
use super::worker::Worker;
use crate::sync::thread;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// The fewest threads of `spread(0)`. On a cold disk they wait in parallel, whatever the core count.
const MIN_THREADS: usize = 8;

/// Runs `work` on several threads: see [`Walk::spread`](super::Walk::spread).
pub(super) fn spread<'env, S: Clone + Send, R: Send>(
    cursor: Cursor<S>,
    threads: usize,
    work: impl for<'scope> Fn(&mut Worker<'scope, 'env, S>) -> R + Sync,
) -> Vec<R> {
    let cores = || std::thread::available_parallelism().map_or(1, NonZero::get);
    let threads = if threads == 0 { cores().max(MIN_THREADS) } else { threads };
    let handover = Handover::new();
    let run = |cursor, index| {
        let result = catch_unwind(AssertUnwindSafe(|| {
            let mut worker = Worker::new(cursor, &handover, index);
            let result = work(&mut worker);
            worker.leave();
            result
        }));
        if result.is_err() {
            handover.stop();
            handover.leave();
        }
        result
    };
    let results: Vec<_> = thread::scope(|scope| {
        // This thread counts as busy before any other starts. Otherwise they could find all threads idle, and end.
        handover.join();
        let run = &run;
        let start = |index| {
            let traversal = Traversal::new(cursor.traversal.options, cursor.traversal.root_state.clone());
            handover.join();
            let started = thread::Builder::new().spawn_scoped(scope, move || run(Cursor::new(traversal), index));
            started.inspect_err(|_| handover.leave()).ok()
        };
        // If a clone of the state panics, the walk ends, so the threads that were started do not wait for this one.
        let others = match catch_unwind(AssertUnwindSafe(|| (1..threads).map_while(start).collect::<Vec<_>>())) {
            Ok(others) => others,
            Err(panic) => {
                handover.stop();
                return vec![Err(panic)];
            }
        };
        let first = run(cursor, 0);
        let join = |thread: thread::ScopedJoinHandle<'_, _>| thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        [first].into_iter().chain(others.into_iter().map(join)).collect()
    });
    results.into_iter().map(|result| result.unwrap_or_else(|panic| resume_unwind(panic))).collect()
}
