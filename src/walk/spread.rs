//! `Walk::spread`: the same walk by several threads.

use super::handover::Handover;
use super::levels::{Levels, Step};
use super::{Walk, WalkError};
use crate::Buffer;
use crate::sync::Arc;
use crate::thread;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// A thread's share in a walk that several threads do together.
pub(super) type Shared = Arc<Handover<Levels>>;

impl Walk {
    /// Walks on several threads: each runs `work`, the same loop as ever, on a `Walk` of its own. Returns what they return.
    ///
    /// [`next`](Self::next) lends each directory to exactly one of the threads, and is `None` for all of them once nothing is
    /// left. Which thread gets a directory is left to chance, and so is the order, except that a directory is lent before those
    /// below it, and for the last time after them under [`post_order`](Self::post_order). To add up, let each thread return
    /// its part and fold:
    ///
    /// ```
    /// use lendir::{Walk, WalkError};
    ///
    /// let parts = Walk::open("/sys/class")?.spread(2, |walk| {
    ///     let mut count = 0;
    ///     while let Some(mut dir) = walk.next()? {
    ///         while let Some(_entry) = dir.next()? {
    ///             count += 1;
    ///         }
    ///     }
    ///     Ok::<u64, WalkError>(count)
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
    pub fn spread<R: Send>(mut self, threads: usize, work: impl Fn(&mut Self) -> R + Sync) -> Vec<R> {
        let handover = Arc::new(Handover::new());
        let run = |mut walk: Self| {
            let result = catch_unwind(AssertUnwindSafe(|| work(&mut walk)));
            if result.is_err() || walk.shared.is_some() && walk.levels.is_stopped() {
                handover.end();
            }
            walk.leave();
            result
        };
        let results: Vec<_> = thread::scope(|scope| {
            let start = |_| {
                handover.join();
                let (buffer, levels) = (Buffer::new(), self.levels.without_work());
                let walk = Self { buffer, levels, shared: Some(Arc::clone(&handover)) };
                let started = thread::Builder::new().spawn_scoped(scope, || run(walk));
                started.inspect_err(|_| handover.leave(None)).ok()
            };
            let others: Vec<_> = (1..threads).map_while(start).collect();
            self.shared = (!others.is_empty()).then(|| Arc::clone(&handover));
            let first = run(self);
            let join =
                |thread: thread::ScopedJoinHandle<'_, _>| thread.join().unwrap_or_else(|panic| resume_unwind(panic));
            [first].into_iter().chain(others.into_iter().map(join)).collect()
        });
        results.into_iter().map(|result| result.unwrap_or_else(|panic| resume_unwind(panic))).collect()
    }

    /// Another thread has nothing to do: gives it a share, or stops if that was the end.
    #[cold]
    #[inline(never)]
    pub(super) fn share(&mut self) {
        let Some(shared) = &self.shared else { return };
        if shared.is_over() {
            self.levels.clear();
        } else if let Some(share) = self.levels.split() {
            shared.give(share);
        }
    }

    /// Nothing is left here: waits for a share of another thread's work. A thread that left may have a directory half read.
    #[cold]
    #[inline(never)]
    pub(super) fn take_share(&mut self) -> Result<Step, WalkError> {
        let Some(share) = self.shared.as_ref().and_then(|shared| shared.take()) else { return Ok(Step::Done) };
        self.levels = share;
        self.resume().map(|is_root| if is_root { Step::AtHand } else { Step::On })
    }

    /// Leaves the other threads, if there are any, and the rest of the tree to them.
    pub(super) fn leave(&mut self) {
        if let Some(shared) = self.shared.take() {
            let nothing = self.levels.without_work();
            shared.leave(self.levels.has_work().then(|| mem::replace(&mut self.levels, nothing)));
        }
    }

    pub(super) fn stop(&mut self) {
        self.levels.clear();
        if let Some(shared) = &self.shared {
            shared.end();
        }
    }
}
