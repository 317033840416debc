//! Walks a tree on several threads: starts them, and collects what they return.

mod split;
mod work_queue;
mod worker;

pub use worker::Worker;

use crate::cursor::spare::divide;
use crate::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use crate::sync::thread;
use crate::walk_dirs::part::Part;
use rustix::fd::AsFd;
use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use rustix::io::fcntl_dupfd_cloexec;
use std::cell::RefCell;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use work_queue::{WorkQueue, Workers};

/// The fewest threads of `run_parallel(0)`. On a cold disk they wait in parallel, whatever the
/// number of cores.
const MIN_THREADS: usize = 8;

/// The most descriptors that the table is grown for in advance. It then takes 8 KiB.
const MAX_GROWN: i32 = 1024;

/// Runs `work` on this thread and, as parts are split off, on others. Returns the results in the
/// order of [`Worker::index`].
pub(crate) fn run<S: Clone + Send, R: Send>(
    part: Part<S>,
    threads: usize,
    work: impl Fn(&mut Worker<'_, S>) -> R + Sync,
) -> Vec<R> {
    let is_by_cores = threads == 0;
    let limit = if is_by_cores { MIN_THREADS } else { threads };
    let (queue, begun_count) = (WorkQueue::new(limit), AtomicUsize::new(0));
    // The parts that no thread has popped are dropped here, before a panic is passed on.
    let mut results = Threads { queue, limit, is_by_cores, work, begun_count }.run(part);
    results.sort_unstable_by_key(|(index, _)| *index);
    results
        .into_iter()
        .map(|(_, result)| result.unwrap_or_else(|panic| resume_unwind(panic)))
        .collect()
}

/// The data that all threads of a walk share.
struct Threads<S, F> {
    queue: WorkQueue<Part<S>>,
    /// The most threads that may run, unless there are more cores.
    limit: usize,
    /// Whether there may be a thread for each core.
    is_by_cores: bool,
    work: F,
    /// The number of threads that have begun.
    begun_count: AtomicUsize,
}

impl<S: Clone + Send, R: Send, F: Fn(&mut Worker<'_, S>) -> R + Sync> Threads<S, F> {
    /// Runs `work` on this thread. Returns its result and the results of the threads that it
    /// starts, each with the index of its thread.
    fn run(&self, mut part: Part<S>) -> Vec<(usize, thread::Result<R>)> {
        let index = self.begun_count.fetch_add(1, Relaxed);
        if self.is_by_cores && index + 1 == MIN_THREADS {
            // Only now, because it reads files, which takes longer than to walk a small tree.
            let cores = thread::available_parallelism().map_or(0, NonZero::get);
            self.queue.add_threads(cores.saturating_sub(MIN_THREADS));
        }
        part.cursor.lower_max_open(self.queue.max_open());
        let max_open = part.cursor.options.max_open;
        thread::scope(|scope| {
            let started = RefCell::new(Vec::new());
            let start = || {
                if index == 0 && started.borrow().is_empty() {
                    grow_descriptor_table(self.limit.saturating_mul(max_open));
                    if !self.share_descriptors(max_open) {
                        return self.queue.start_failed();
                    }
                }
                let begin = || self.queue.begin().map_or_else(Vec::new, |part| self.run(part));
                match thread::Builder::new().spawn_scoped(scope, begin) {
                    Ok(thread) => started.borrow_mut().push(thread),
                    Err(_) => self.queue.start_failed(),
                }
            };
            let workers = Workers { queue: &self.queue, start: AssertUnwindSafe(&start) };
            workers.start_next();
            let result = catch_unwind(AssertUnwindSafe(|| {
                let mut worker = Worker { part, workers, index };
                let result = (self.work)(&mut worker);
                worker.leave();
                result
            }));
            let mut results = vec![(index, result.inspect_err(|_| self.queue.stop()))];
            for thread in started.into_inner() {
                results.extend(thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
            }
            results
        })
    }

    /// Lets few threads start, each with few directories open, if the process may open few files.
    /// Returns `false` if they are too few for a second thread.
    fn share_descriptors(&self, max_open: usize) -> bool {
        let Ok(dir) = openat(CWD, c"/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) else {
            return false;
        };
        if let Some([threads, max_open]) = divide(dir.as_fd(), self.limit, max_open) {
            // This thread has started, and the next one is about to.
            self.queue.restrict(threads.saturating_sub(2), max_open);
            return threads > 1;
        }
        true
    }
}

/// Grows the table of descriptors to `count`, but at most 1,024, if no other thread is alive.
/// Otherwise the kernel would wait for all cores before each growth, which takes 10 ms or more, and
/// whoever needs a descriptor would wait with it.
fn grow_descriptor_table(count: usize) {
    let threads = openat(CWD, c"/proc/self/task", OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    let Ok(threads) = threads else { return };
    // `.`, `..`, and a link for each thread.
    if fstat(&threads).is_ok_and(|stat| stat.st_nlink == 3) {
        let last = i32::try_from(count).map_or(MAX_GROWN, |count| count.min(MAX_GROWN)) - 1;
        let _ = fcntl_dupfd_cloexec(&threads, last); // fails above the limit of the process
    }
}
