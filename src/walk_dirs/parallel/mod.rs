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
use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use rustix::io::fcntl_dupfd_cloexec;
use std::cell::Cell;
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
    buffer: Buffer,
    threads: usize,
    work: impl Fn(&mut Worker<'_, S>) -> R + Sync,
) -> Vec<R> {
    let queue = WorkQueue::new();
    queue.add_threads(if threads == 0 { MIN_THREADS } else { threads } - 1);
    let (begun_count, results) = (AtomicUsize::new(0), Mutex::default());
    let max_open = part.cursor.options.max_open;
    let open_count = if threads == 0 { MIN_THREADS } else { threads }.saturating_mul(max_open);
    let all = Threads { queue, is_by_cores: threads == 0, work, begun_count, results, open_count };
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
    /// The number of directories that all threads together may hold open.
    open_count: usize,
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
        let is_first_start = Cell::new(index == 0);
        let start = || {
            if is_first_start.take() {
                grow_descriptor_table(self.open_count);
            }
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
