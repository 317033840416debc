//! `Walk::spread`: the same walk by several threads, each a `Worker`.

use super::Walk;
use super::handover::Handover;
use super::levels::Step;
use super::share::Work;
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

    /// Waits for work. There is none for a walk that was moved out of its closure: it is no longer one of the threads.
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

/// Runs `work` on several threads: see [`Walk::spread`].
pub(super) fn spread<S: Clone + Send, R: Send>(
    mut walk: Walk<S>,
    threads: usize,
    work: impl Fn(&mut Walk<S>) -> R + Sync,
) -> Vec<R> {
    let threads = if threads == 0 { std::thread::available_parallelism().map_or(1, NonZero::get) } else { threads };
    let handover = Arc::new(Handover::new());
    let run = |mut walk: Walk<S>| {
        let worker = walk.worker.clone();
        let result = catch_unwind(AssertUnwindSafe(|| work(&mut walk)));
        if result.is_err() {
            handover.end();
        }
        drop(walk);
        if let Some(worker) = worker {
            worker.leave(); // if `work` has moved the walk elsewhere
        }
        result
    };
    let results: Vec<_> = thread::scope(|scope| {
        // This thread joins first, or the others could find nobody to wait for.
        let worker = Worker::join(&handover);
        let start = |_| {
            let worker = Worker::join(&handover);
            let (levels, of_the_root) = (walk.levels.of_another_thread(), walk.of_the_root.clone());
            let walk = Walk { buffer: Buffer::new(), levels, of_the_root, worker: Some(Arc::clone(&worker)) };
            let started = thread::Builder::new().spawn_scoped(scope, || run(walk));
            started.inspect_err(|_| worker.leave()).ok()
        };
        let others: Vec<_> = (1..threads).map_while(start).collect();
        walk.worker = (!others.is_empty()).then_some(worker);
        let first = run(walk);
        let join = |thread: thread::ScopedJoinHandle<'_, _>| thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        [first].into_iter().chain(others.into_iter().map(join)).collect()
    });
    handover.end(); // for a walk that was moved out of its closure too
    results.into_iter().map(|result| result.unwrap_or_else(|panic| resume_unwind(panic))).collect()
}

impl<S: Clone> Walk<S> {
    /// Another thread has nothing to do: gives it a share. Stops if the walk is over.
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
