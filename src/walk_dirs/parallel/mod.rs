//! `WalkDirs::run_parallel`: the same walk on several threads. It starts them, and gathers what they return. It does not know
//! where in the tree a thread is, nor how a part is split off.

mod split;
pub(crate) mod work_queue;
mod worker;

pub use worker::Worker;

use super::WalkDirs;
use crate::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use crate::sync::{Mutex, PoisonError, mpsc, thread};
use crate::walk_dirs::lender::Lender;
use crate::walk_dirs::traversal::Traversal;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use work_queue::{Others, WorkQueue};

/// The fewest threads of `run_parallel(0)`. On a cold disk they wait in parallel, whatever the core count.
const MIN_THREADS: usize = 8;

impl<S: Clone> WalkDirs<S> {
    /// Walks on several threads: each runs `work`, the usual loop, on a [`Worker`]. Returns what they return, in the order of
    /// [`Worker::index`].
    ///
    /// **A thread starts when there is a part of the work for it**, so a small tree has fewer threads than `threads`, and fewer
    /// results. No closure may wait for another one to begin. Any thread starts the next one, which inherits its CPU affinity and
    /// signal mask.
    ///
    /// `threads` is how many there are at most, the calling thread included. 0 means one for each core that this process may use,
    /// but at least 8, because threads that wait for a disk or a network need no core. For work that keeps the cores busy, pass
    /// their number. Where calls wait for a server, pass as many as it answers at once, which can be hundreds. A narrow tree keeps
    /// few threads busy: each works on directories that no other one has.
    ///
    /// [`Worker::next`] lends each directory to exactly one thread, and is `None` for all of them once nothing is left. Which
    /// thread gets which directory, and when, is unspecified, but a directory still comes before those below it, and its
    /// [second visit](crate::WalkDirsOptions::second_visits) after theirs. A huge directory is read by one thread: to divide the work on its
    /// files among several, send them over a channel, as [the recipe](crate::recipes#threads) does.
    ///
    /// ```
    /// use lendir::{Error, WalkDirs};
    ///
    /// let parts = lendir::walk_dirs("/sys/class")?.run_parallel(2, |worker| {
    ///     let mut count = 0;
    ///     while let Some(mut dir) = worker.next()? {
    ///         while let Some(_entry) = dir.next()? {
    ///             count += 1;
    ///         }
    ///     }
    ///     Ok::<u64, Error>(count)
    /// });
    /// let count = parts.into_iter().sum::<Result<u64, Error>>()?;
    /// # assert!(count > 0);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// A thread without work waits in `next` for another thread's, so hold no lock across `next` that another closure needs. A
    /// closure that returns early, as `?` does, ends its own thread only. The others walk the directories that it leaves, those
    /// not started yet too, but nobody is lent the unread entries of its last one. **The error of that `?` is in the results**, so
    /// the compiler warns if they are not used: where closures return nothing, write `let _ =`. [`Worker::stop`] ends the walk for
    /// all. So does a panic, which is passed on once all have returned.
    ///
    /// If a thread cannot be started, no other one is, and those that run walk the whole tree.
    ///
    /// While others wait or have not started, a busy thread splits off an equal part of its work for each of them: of its roots, or
    /// of the directories left at its shallowest open level. Nothing is split off at a level whose path is longer than 4096 bytes.
    ///
    /// | Costs | |
    /// |---|---|
    /// | each thread | a [`Buffer`](crate::Buffer), and at most [`max_open`](crate::WalkDirsOptions::max_open) descriptors: 64 threads × 32 exceed a `ulimit -n` of 1024, so lower `max_open` |
    /// | a part of the roots | a clone of the state |
    /// | a part of the directories at a level | a copy of their names and of their path, two clones of the state, and a duplicate of the level's descriptor: one more for each part that no thread has taken yet |
    /// | the same, with second visits | an `openat` with `O_PATH` and its `close`: one more descriptor while the part is split off |
    /// | the first part of a level, with second visits | for the level, and for each above it that threads do not share yet: a `statx`, an `fstatfs`, an allocation, a clone of the state, and a wait for the clock if it was [just made](crate::WalkDirsOptions::max_open) |
    /// | a root that threads share, with second visits | a duplicate of its descriptor, until its tree is done, so two threads with `max_open(4)` can hold nine descriptors, and the root's parent |
    /// | a part, once a link was followed | a copy of what is known of the directories above; what is not known yet, each thread queries again |
    #[doc(alias("build_parallel", "parallel", "threads"))]
    #[must_use = "what the closures return can be the error of a `?` in them"]
    pub fn run_parallel<R: Send>(
        self,
        threads: usize,
        work: impl Fn(&mut Worker<'_, S>) -> R + Sync,
    ) -> Vec<R>
    where
        S: Send,
    {
        let (queue, begun, results) = (WorkQueue::new(), AtomicUsize::new(0), Mutex::default());
        let all = Threads { queue, by_cores: threads == 0, work, begun, results };
        all.queue.add(if threads == 0 { MIN_THREADS } else { threads } - 1);
        thread::scope(|scope| {
            let (sender, started) = mpsc::channel();
            all.run(scope, &sender, self.lender);
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
}

/// What all threads of a walk share.
struct Threads<S, R, F> {
    queue: WorkQueue<Traversal<S>>,
    /// Whether there may be one for each core.
    by_cores: bool,
    work: F,
    /// How many have begun.
    begun: AtomicUsize,
    /// What they return, each with its index.
    results: Mutex<Vec<(usize, thread::Result<R>)>>,
}

impl<S: Clone + Send, R: Send, F: Fn(&mut Worker<'_, S>) -> R + Sync> Threads<S, R, F> {
    /// Runs `work` on this thread. Those that it starts go to `started`.
    fn run<'scope>(
        &'scope self,
        scope: &'scope thread::Scope<'scope, '_>,
        started: &mpsc::Sender<thread::ScopedJoinHandle<'scope, ()>>,
        lender: Lender<S>,
    ) {
        let index = self.begun.fetch_add(1, Relaxed);
        if self.by_cores && index + 1 == MIN_THREADS {
            // Only now, because it reads files, which takes longer than to walk a small tree.
            let cores = thread::available_parallelism().map_or(0, NonZero::get);
            self.queue.add(cores.saturating_sub(MIN_THREADS));
        }
        let buffer_capacity = lender.buffer_capacity();
        let start = || {
            let sender = started.clone();
            let begin = move || {
                if let Some(part) = self.queue.begin() {
                    self.run(scope, &sender, Lender::new(part, buffer_capacity));
                }
            };
            match thread::Builder::new().spawn_scoped(scope, begin) {
                Ok(thread) => _ = started.send(thread),
                Err(_) => self.queue.refuse(),
            }
        };
        let others = Others { queue: &self.queue, start: AssertUnwindSafe(&start) };
        others.start_next();
        let result = catch_unwind(AssertUnwindSafe(|| {
            let mut worker = Worker::new(lender, others, index);
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
