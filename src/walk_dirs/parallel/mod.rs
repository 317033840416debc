//! Walks a tree on several threads: starts them, and collects what they return. This module does
//! not know where in the tree a thread is, nor how a part is split off.

mod split;
mod work_queue;
mod worker;

pub use worker::Worker;

use crate::read_dir::buffer::Buffer;
use crate::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use crate::sync::{Mutex, PoisonError, mpsc, thread};
use crate::walk_dirs::part::Part;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use work_queue::{WorkQueue, Workers};

/// The fewest threads of `run_parallel(0)`. On a cold disk they wait in parallel, whatever the
/// number of cores.
const MIN_THREADS: usize = 8;

/// Runs `work` on this thread and, as parts are split off, on others. Returns the results in the
/// order of [`Worker::index`].
pub(crate) fn run<S: Clone + Send, R: Send>(
    part: Part<S>,
    buffer: Buffer,
    threads: usize,
    work: impl Fn(&mut Worker<'_, S>) -> R + Sync,
) -> Vec<R> {
    let queue = WorkQueue::new();
    queue.add_threads(if threads == 0 { MIN_THREADS } else { threads } - 1);
    let (begun_count, results) = (AtomicUsize::new(0), Mutex::default());
    let all = Threads { queue, is_by_cores: threads == 0, work, begun_count, results };
    thread::scope(|scope| {
        let (sender, started) = mpsc::channel();
        all.run(scope, &sender, part, buffer);
        drop(sender); // so `started` ends when the last thread has dropped its own
        for thread in started {
            thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
    });
    let mut results = all.results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_unstable_by_key(|(index, _)| *index);
    results
        .into_iter()
        .map(|(_, result)| result.unwrap_or_else(|panic| resume_unwind(panic)))
        .collect()
}

/// The data that all threads of a walk share.
struct Threads<S, R, F> {
    queue: WorkQueue<Part<S>>,
    /// Whether there may be a thread for each core.
    is_by_cores: bool,
    work: F,
    /// The number of threads that have begun.
    begun_count: AtomicUsize,
    /// The result of each thread, with its index.
    results: Mutex<Vec<(usize, thread::Result<R>)>>,
}

impl<S: Clone + Send, R: Send, F: Fn(&mut Worker<'_, S>) -> R + Sync> Threads<S, R, F> {
    /// Runs `work` on this thread. Sends the threads that it starts to `started`.
    fn run<'scope>(
        &'scope self,
        scope: &'scope thread::Scope<'scope, '_>,
        started: &mpsc::Sender<thread::ScopedJoinHandle<'scope, ()>>,
        part: Part<S>,
        buffer: Buffer,
    ) {
        let index = self.begun_count.fetch_add(1, Relaxed);
        if self.is_by_cores && index + 1 == MIN_THREADS {
            // Only now, because it reads files, which takes longer than to walk a small tree.
            let cores = thread::available_parallelism().map_or(0, NonZero::get);
            self.queue.add_threads(cores.saturating_sub(MIN_THREADS));
        }
        let buffer_capacity = buffer.capacity();
        let start = || {
            let sender = started.clone();
            let begin = move || {
                if let Some(part) = self.queue.begin() {
                    self.run(scope, &sender, part, Buffer::with_capacity(buffer_capacity));
                }
            };
            match thread::Builder::new().spawn_scoped(scope, begin) {
                Ok(thread) => _ = started.send(thread),
                Err(_) => self.queue.start_failed(),
            }
        };
        let workers = Workers { queue: &self.queue, start: AssertUnwindSafe(&start) };
        workers.start_next();
        let result = catch_unwind(AssertUnwindSafe(|| {
            let mut worker = Worker { part, buffer, workers, index };
            let result = (self.work)(&mut worker);
            worker.leave();
            result
        }));
        if result.is_err() {
            self.queue.stop();
            self.queue.leave();
        }
        self.results.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
    }
}
