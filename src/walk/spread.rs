//! `Walk::spread`: the same walk by several threads, each a `Worker`.

use super::Walk;
use super::handover::Handover;
use super::levels::{Step, Work};
use crate::Buffer;
use crate::error::Error;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, Ordering::Relaxed};
use crate::thread;
use std::mem;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// One of the threads that do a walk together.
#[derive(Debug)]
pub(super) struct Worker<S> {
    handover: Arc<Handover<Work<S>>>,
    has_left: AtomicBool,
}

impl<S> Worker<S> {
    fn join(handover: &Arc<Handover<Work<S>>>) -> Arc<Self> {
        handover.join();
        Arc::new(Self { handover: Arc::clone(handover), has_left: AtomicBool::new(false) })
    }

    #[inline]
    pub(super) fn is_asked(&self) -> bool {
        self.handover.is_asked()
    }

    pub(super) fn is_over(&self) -> bool {
        self.handover.is_over()
    }

    /// Waits for work. There is none for a walk that was moved out of its closure, as it is no thread any more.
    fn take(&self) -> Option<Work<S>> {
        if self.has_left.load(Relaxed) { None } else { self.handover.take() }
    }

    /// Nobody waits for this thread any more.
    fn leave(&self) {
        if !self.has_left.swap(true, Relaxed) {
            self.handover.leave();
        }
    }
}

impl<S: Clone> Walk<S> {
    /// Walks on several threads: each runs `work`, the same loop as ever, on a `Walk` of its own. Returns what they return.
    ///
    /// [`next`](Self::next) lends each directory to exactly one of the threads, and is `None` for all of them once nothing is
    /// left. Which thread gets a directory is left to chance, and so is the order, except that a directory is lent before those
    /// below it, and for the last time after them under [`post_order`](Self::post_order). To add up, let each thread return
    /// its part and fold:
    ///
    /// ```
    /// use lendir::{Error, Walk};
    ///
    /// let parts = Walk::open("/sys/class")?.spread(2, |walk| {
    ///     let mut count = 0;
    ///     while let Some(mut dir) = walk.next()? {
    ///         while let Some(_entry) = dir.next()? {
    ///             count += 1;
    ///         }
    ///     }
    ///     Ok::<u64, Error>(count)
    /// });
    /// let mut count = 0;
    /// for part in parts {
    ///     count += part?;
    /// }
    /// # assert!(count > 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// [`next`](Self::next) waits where another thread is busy and this one has nothing to do: hold no lock across it that
    /// another closure takes.
    ///
    /// If a closure returns early, the directories left to its thread go to the others: an error that `?` returns ends one
    /// thread, not the walk. Once all closures have returned, the walk is over, and what is left is not walked.
    /// [`Dir::stop`](super::Dir::stop) ends it for all. A panic in one of them ends it for all, and is passed on once they
    /// have returned.
    ///
    /// It pays where the kernel has to do much for each directory and `work` for each entry. A chain of directories, or one
    /// huge directory, is read by one thread at a time.
    ///
    /// Costs: `threads - 1` threads, as one of them is the caller's; for each a [`Buffer`], at most
    /// [`max_open`](Self::max_open) descriptors, and one more for what another thread gives it; in post-order, one for the
    /// root. A thread without work raises a flag and sleeps. Another one, which looks at the flag once a directory, gives it
    /// half of the directories that are left at its shallowest level, with a copy of their names and a duplicate of that
    /// level's descriptor; in post-order with a `statx` too, and an allocation, for each level above that no thread shares
    /// yet. One thread costs what [`next`](Self::next) costs without this. 0 `threads` are 1; once the system refuses to start
    /// one, the walk makes do with those before it, and there are fewer results.
    pub fn spread<R: Send>(mut self, threads: usize, work: impl Fn(&mut Self) -> R + Sync) -> Vec<R>
    where
        S: Send,
    {
        let threads = if threads == 0 { std::thread::available_parallelism().map_or(1, NonZero::get) } else { threads };
        let handover = Arc::new(Handover::new());
        let run = |mut walk: Self| {
            let worker = walk.worker.clone();
            let result = catch_unwind(AssertUnwindSafe(|| work(&mut walk)));
            if result.is_err() {
                handover.end();
            }
            drop(walk);
            if let Some(worker) = worker {
                worker.leave(); // where `work` has moved the walk elsewhere
            }
            result
        };
        let results: Vec<_> = thread::scope(|scope| {
            // First of all, or the others could find that there is nobody to give them work.
            let worker = Worker::join(&handover);
            let start = |_| {
                let worker = Worker::join(&handover);
                let (levels, of_the_root) = (self.levels.of_another_thread(), self.of_the_root.clone());
                let walk = Self { buffer: Buffer::new(), levels, of_the_root, worker: Some(Arc::clone(&worker)) };
                let started = thread::Builder::new().spawn_scoped(scope, || run(walk));
                started.inspect_err(|_| worker.leave()).ok()
            };
            let others: Vec<_> = (1..threads).map_while(start).collect();
            self.worker = (!others.is_empty()).then_some(worker);
            let first = run(self);
            let join =
                |thread: thread::ScopedJoinHandle<'_, _>| thread.join().unwrap_or_else(|panic| resume_unwind(panic));
            [first].into_iter().chain(others.into_iter().map(join)).collect()
        });
        handover.end(); // for a walk that was moved out of its closure too
        results.into_iter().map(|result| result.unwrap_or_else(|panic| resume_unwind(panic))).collect()
    }

    /// Another thread has nothing to do: gives it a share, or stops if that was the end.
    #[cold]
    #[inline(never)]
    pub(super) fn give_share(&mut self) {
        let Some(Worker { handover, .. }) = self.worker.as_deref() else { return };
        if handover.is_over() {
            self.levels.clear();
        } else if let Some(share) = self.levels.give_share() {
            handover.give(Work::Share(share));
        }
    }

    /// Nothing is left here: waits for work of another thread. A thread that left may have a directory half read.
    #[cold]
    #[inline(never)]
    pub(super) fn take_work(&mut self) -> Result<Step, Error> {
        let Some(work) = self.worker.as_ref().and_then(|worker| worker.take()) else { return Ok(Step::Done) };
        self.levels.take(work);
        self.resume().map(|is_root| if is_root { Step::AtHand } else { Step::More })
    }
}

impl<S> Walk<S> {
    /// Leaves the other threads, if there are any, and the rest of the tree to them.
    #[cold]
    #[inline(never)]
    pub(super) fn leave(&mut self) {
        if self.levels.is_stopped() {
            self.stop();
        }
        if let Some(worker) = self.worker.take() {
            if self.levels.has_work() {
                let nothing = self.levels.of_another_thread();
                worker.handover.give(Work::All(mem::replace(&mut self.levels, nothing)));
            }
            worker.leave();
        }
    }

    pub(super) fn stop(&mut self) {
        self.levels.clear();
        if let Some(worker) = &self.worker {
            worker.handover.end();
        }
    }
}
