//! `Walk::spread`: the same walk on several threads. It starts them, and gathers what they return.

use super::Walk;
use super::lender::Lender;
use super::traversal::Traversal;
use super::work_queue::WorkQueue;
use super::worker::Worker;
use crate::sync::thread;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// The fewest threads of `spread(0)`. On a cold disk they wait in parallel, whatever the core count.
const MIN_THREADS: usize = 8;

impl<S: Clone> Walk<S> {
    /// Walks on several threads: each runs `work`, the usual loop, on a [`Worker`]. Returns what they return, in the order of
    /// [`Worker::index`].
    ///
    /// `threads` includes the calling thread. 0 means one for each core that this process may use, but at least 8, because
    /// threads that wait for a disk or a network need no core. For work that keeps the cores busy, pass their number. Where calls
    /// wait for a server, pass as many as it answers at once, which can be hundreds. A narrow tree keeps few threads busy: each
    /// works on directories that no other one has.
    ///
    /// [`Worker::next`] lends each directory to exactly one thread, and is `None` for all of them once nothing is left. Which
    /// thread gets which directory, and when, is unspecified, but a directory still comes before those below it, and its
    /// [second visit](crate::WalkOptions::second_visits) after theirs. A huge directory is read by one thread: to divide the work on its
    /// files among several, send them over a channel, as [the recipe](crate::recipes#threads) does.
    ///
    /// ```
    /// use lendir::{Error, Walk};
    ///
    /// let parts = Walk::open("/sys/class")?.spread(2, |worker| {
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
    /// closure that returns early, as `?` does, ends its own thread only. The others walk the directories that it leaves, but
    /// nobody is lent the unread entries of its last one. **The error of that `?` is in the results**, and no compiler warns if
    /// nobody looks at them. [`Worker::stop`] ends the walk for all. So does a panic, which is passed on once all have returned.
    ///
    /// If a thread cannot be started, there are fewer threads and fewer results.
    ///
    /// While others wait, a busy thread splits off an equal part of its work for each of them: of its roots, or of the
    /// directories left at its shallowest open level.
    ///
    /// | Costs | |
    /// |---|---|
    /// | each thread | a [`Buffer`](crate::Buffer), and at most [`max_open`](crate::WalkOptions::max_open) descriptors: 64 threads × 32 exceed a `ulimit -n` of 1024, so lower `max_open` |
    /// | a part of the roots | a clone of the state |
    /// | a part of the directories at a level | a copy of their names and of their path, two clones of the state, and a duplicate of the level's descriptor: one more for each part that no thread has taken yet |
    /// | the same, with second visits | an `openat` with `O_PATH` and its `close`: one more descriptor while the part is split off |
    /// | the first part of a level, with second visits | for the level, and for each above it that threads do not share yet: a `statx`, an `fstatfs`, an allocation, a clone of the state, and a wait for the clock if it was [just made](crate::WalkOptions::max_open) |
    /// | a root that threads share, with second visits | a duplicate of its descriptor, until its tree is done, so two threads with `max_open(4)` can hold nine descriptors |
    /// | a part, once a link was followed | a copy of what is known of the directories above, a `statx`, and for each that is not known yet what it costs at [`follow_entry`](crate::Dir::follow_entry); deep below a link, fewer parts are split off |
    #[doc(alias("build_parallel", "threads"))]
    pub fn spread<R: Send>(self, threads: usize, work: impl Fn(&mut Worker<'_, S>) -> R + Sync) -> Vec<R>
    where
        S: Send,
    {
        let lender = self.lender;
        let cores = || std::thread::available_parallelism().map_or(1, NonZero::get);
        let threads = if threads == 0 { cores().max(MIN_THREADS) } else { threads };
        let queue = WorkQueue::new();
        let run = |lender, index| {
            let result = catch_unwind(AssertUnwindSafe(|| {
                let mut worker = Worker::new(lender, &queue, index);
                let result = work(&mut worker);
                worker.leave();
                result
            }));
            result.inspect_err(|_| {
                queue.stop();
                queue.leave();
            })
        };
        let results: Vec<_> = thread::scope(|scope| {
            // This thread counts as busy before any other starts. Otherwise they could find all threads idle, and end.
            queue.join();
            let run = &run;
            let start = |index| {
                let traversal =
                    Traversal::new(*lender.traversal.descent.options(), lender.traversal.root_state.clone());
                queue.join();
                let started = thread::Builder::new().spawn_scoped(scope, move || run(Lender::new(traversal), index));
                started.inspect_err(|_| queue.leave()).ok()
            };
            let mut others = Vec::new();
            let started = catch_unwind(AssertUnwindSafe(|| others.extend((1..threads).map_while(start))));
            // If a clone of the state panics, the walk ends, so the threads that were started do not wait for this one.
            let first = started.inspect_err(|_| queue.stop()).and_then(|()| run(lender, 0));
            let others = others.into_iter().map(|thread| thread.join().and_then(|result| result));
            [first].into_iter().chain(others).collect()
        });
        results.into_iter().map(|result| result.unwrap_or_else(|panic| resume_unwind(panic))).collect()
    }
}
