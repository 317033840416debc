//! `Worker`: one of the threads that walk together.

use super::cursor::Cursor;
use super::dir::Dir;
use super::handover::Handover;
use super::jobs::{Job, JobQueue, Jobs};
use super::traversal::Traversal;
use crate::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// One of the threads of [`Walk::spread`](super::Walk::spread). It lends directories as the [`Walk`](super::Walk) does, each of
/// them to one thread only.
///
/// It stays in its closure, because its lifetime `'scope` is that of one `spread`, and on its thread, because it is not `Send`.
/// So it can neither be kept nor replaced by another.
///
/// ```compile_fail,E0521
/// let kept = std::sync::Mutex::new(None);
/// lendir::Walk::open("/sys/class")?.spread(2, |worker| *kept.lock().unwrap() = Some(worker)); // error: it would escape
/// # Ok::<(), lendir::Error>(())
/// ```
pub struct Worker<'scope, 'env, S = ()> {
    pub(super) cursor: Cursor<S>,
    pub(super) handover: &'scope Handover<'env, Traversal<S>>,
    pub(super) jobs: Jobs<'scope, 'env>,
}

impl<'scope, 'env, S: Clone + Send> Worker<'scope, 'env, S> {
    /// As [`Walk::next`](super::Walk::next): lends a directory that no other thread is lent, and is `None` once nothing is left.
    /// Without work it waits for that of another thread, and runs [jobs](Self::jobs) meanwhile. Each call costs one more atomic
    /// load.
    ///
    /// **`while let Ok(Some(dir)) = worker.next()`, which rustc suggests, silently takes an error for the end**, on this thread
    /// only.
    ///
    /// # Errors
    ///
    /// Those of [`Walk::next`](super::Walk::next).
    #[inline(always)]
    pub fn next(&mut self) -> Result<Option<Dir<'_, S>>, Error> {
        Ok(if self.advance()? { Some(self.cursor.lend()) } else { None })
    }

    /// As [`Walk::next_ok`](super::Walk::next_ok).
    #[inline(always)]
    pub fn next_ok(&mut self, mut on_error: impl FnMut(Error)) -> Option<Dir<'_, S>> {
        loop {
            match self.advance() {
                Ok(true) => return Some(self.cursor.lend()),
                Ok(false) => return None,
                Err(error) => on_error(error),
            }
        }
    }

    /// Ends the walk for all threads: [`next`](Self::next) is `None` from now on. Jobs that have not begun are dropped, and so
    /// are those that come later.
    pub fn stop(&mut self) {
        self.handover.stop();
    }

    /// The number of this thread: 0 for the caller's own, less than the number of threads for the others. For memory of each
    /// thread's own, pass `spread` a number: how many threads 0 takes depends on the machine.
    ///
    /// ```
    /// use std::sync::Mutex;
    ///
    /// let lines: Vec<_> = (0..4).map(|_| Mutex::new(Vec::new())).collect(); // memory of each thread's own
    /// lendir::Walk::open("/sys/class")?.spread(lines.len(), |worker| {
    ///     let lines = &lines[worker.index()];
    ///     while let Some(dir) = worker.next_ok(|error| eprintln!("{error}")) {
    ///         lines.lock().unwrap().push(dir.path().to_owned());
    ///     }
    /// });
    /// # Ok::<(), lendir::Error>(())
    /// ```
    pub fn index(&self) -> usize {
        self.jobs.index()
    }

    /// The [`Jobs`] of this thread, which hand closures over to idle ones.
    pub fn jobs(&self) -> Jobs<'scope, 'env> {
        self.jobs
    }

    #[inline(always)]
    fn advance(&mut self) -> Result<bool, Error> {
        loop {
            if self.cursor.is_unfinished() {
                self.finish()?;
            }
            // Between two directories, when all names of the last one have been noted.
            if self.handover.asked() > 0 {
                self.give();
            }
            if self.cursor.advance()? {
                return Ok(true);
            }
            if !self.take() {
                return Ok(false);
            }
        }
    }

    /// Reads what is unread of the current directory.
    #[cold]
    fn finish(&mut self) -> Result<(), Error> {
        if self.handover.is_over() {
            self.cursor.traversal.clear();
        }
        self.cursor.settle()
    }

    /// Other threads have nothing to do: gives each a part of what is left here. Stops if the walk is over.
    #[cold]
    fn give(&mut self) {
        let Self { cursor, handover, .. } = self;
        cursor.traversal.earn_path_credit();
        while !handover.is_over() {
            let Some(work) = cursor.traversal.split_off(handover.asked()) else { return };
            handover.give(work);
        }
        cursor.traversal.clear();
    }

    /// Nothing is left here: waits for work of another thread, and runs jobs. Returns whether there is work.
    #[cold]
    fn take(&mut self) -> bool {
        let Self { cursor, handover, jobs } = self;
        // The closure may catch a panic and return. Then nobody might be left to run what is queued.
        let run = |job: Job<'env>| {
            catch_unwind(AssertUnwindSafe(|| job(jobs.in_job()))).unwrap_or_else(|panic| {
                handover.stop();
                resume_unwind(panic)
            });
        };
        handover.take(run).map(|work| cursor.traversal = work).is_some()
    }

    /// Leaves what is left to the others.
    pub(super) fn leave(self) {
        let Self { cursor, handover, .. } = self;
        // Before it leaves: if this is the last busy thread, the others end as soon as it has left.
        if cursor.traversal.has_work() {
            handover.give(cursor.traversal);
        } else {
            drop(cursor); // before it leaves: the state's destructor may panic
        }
        handover.leave();
    }
}

impl<S> fmt::Debug for Worker<'_, '_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("index", &self.jobs.index()).finish_non_exhaustive()
    }
}

/// What else of a worker the compiler refuses.
///
/// To put it in the place of another, to move it out of its closure, or to begin another tree:
///
/// ```compile_fail,E0521
/// lendir::Walk::default().spread(1, |outer| {
///     let outer = std::sync::Mutex::new(outer);
///     lendir::Walk::default().spread(1, |inner| std::mem::swap(*outer.lock().unwrap(), inner));
/// });
/// ```
///
/// ```compile_fail,E0507
/// lendir::Walk::default().spread(1, |worker| drop::<lendir::Worker<'_, '_>>(*worker));
/// ```
///
/// ```compile_fail,E0277
/// lendir::Walk::default().spread(1, |worker| drop(std::mem::take(worker)));
/// ```
///
/// ```compile_fail,E0599
/// lendir::Walk::default().spread(1, |worker| worker.reopen("/sys/class"));
/// ```
///
/// To use it, or its jobs, on another thread:
///
/// ```compile_fail,E0277
/// lendir::Walk::default().spread(1, |worker| std::thread::scope(|scope| drop(scope.spawn(|| worker.index()))));
/// ```
///
/// ```compile_fail,E0277
/// lendir::Walk::default().spread(1, |worker| {
///     let jobs = worker.jobs();
///     std::thread::scope(|scope| drop(scope.spawn(move || jobs.index())));
/// });
/// ```
///
/// ```compile_fail,E0277
/// lendir::Walk::default().spread(1, |worker| {
///     let jobs = worker.jobs();
///     jobs.run(move |_| jobs.stop()); // error: those of the thread that gives the job
/// });
/// ```
///
/// To keep its jobs, or those that a job gets, or to give them what does not outlive the `spread`:
///
/// ```compile_fail,E0521
/// let kept = std::sync::Mutex::new(None);
/// lendir::Walk::default().spread(1, |worker| *kept.lock().unwrap() = Some(worker.jobs()));
/// ```
///
/// ```compile_fail,E0521
/// lendir::Walk::default().spread(1, |worker| {
///     let mut kept = None;
///     worker.jobs().run(|jobs| kept = Some(jobs));
/// });
/// ```
///
/// ```compile_fail,E0373
/// lendir::Walk::default().spread(1, |worker| {
///     let name = String::new();
///     worker.jobs().run(|_| drop(&name));
/// });
/// ```
#[cfg(doctest)]
mod misuse {}
