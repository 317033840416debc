//! `Worker`: walks the parts of one thread of `WalkDirs::run_parallel`.

use super::work_queue::Workers;
use crate::cursor::skip_errors;
use crate::error::Error;
use crate::walk_dirs::dir::Dir;
use crate::walk_dirs::part::Part;

/// A thread of [`WalkDirs::run_parallel`](crate::WalkDirs::run_parallel), which yields directories
/// like a [`WalkDirs`](crate::WalkDirs), each to exactly one thread.
///
/// ```
/// let _ = lendir::walk_dirs("/sys/class")?.run_parallel(0, |worker| {
///     while let Some(mut dir) = worker.next_or_report(|error| eprintln!("{error}")) {
///         while let Some(entry) = dir.next_or_report(|error| eprintln!("{error}")) {
///             println!("{:?}", entry.path());
///         }
///     }
/// });
/// # Ok::<(), lendir::Error>(())
/// ```
///
/// A worker stays on its thread and in its closure: it is not `Send`, and its lifetime `'scope` is
/// that one `run_parallel`.
pub struct Worker<'scope, S = ()> {
    pub(super) part: Part<S>,
    /// It also makes the worker not `Send`. To make the worker `Send` later breaks no program; to
    /// take `Send` away again would.
    pub(super) workers: Workers<'scope, Part<S>>,
    pub(super) index: usize,
}

impl<S: Clone + Send> Worker<'_, S> {
    /// Advances to the next directory for this thread, or returns `None` if no directory remains
    /// for any. If this thread has none, it waits for work of another thread.
    ///
    /// With `?`, the first error ends this thread alone. [`next_or_report`](Self::next_or_report)
    /// is the usual loop.
    ///
    /// # Errors
    ///
    /// The same as for [`WalkDirs::next`](crate::WalkDirs::next).
    #[inline(always)]
    pub fn next(&mut self) -> Result<Option<Dir<'_, S>>, Error> {
        Ok(if self.advance()? { Some(Dir::visit(&mut self.part)) } else { None })
    }

    /// Advances to the next directory for this thread, or returns `None` if no directory remains
    /// for any. Each error on the way is passed to `on_error`, and the walk continues.
    #[inline(always)]
    pub fn next_or_report(&mut self, on_error: impl FnMut(Error)) -> Option<Dir<'_, S>> {
        skip_errors(|| self.advance(), on_error).then(|| Dir::visit(&mut self.part))
    }

    /// Ends the walk on all threads: from now on, [`next`](Self::next) returns `None`.
    ///
    /// A [`Dir`] of another thread still yields its remaining entries. The `Dir` of this thread
    /// cannot be used any more, which the compiler checks.
    ///
    /// ```
    /// let found = lendir::walk_dirs("/sys/class")?.run_parallel(2, |worker| {
    ///     while let Some(mut dir) = worker.next_or_report(|error| eprintln!("{error}")) {
    ///         while let Some(entry) = dir.next_or_report(|error| eprintln!("{error}")) {
    ///             if entry.name() == b"net" {
    ///                 let path = entry.path();
    ///                 worker.stop();
    ///                 return Some(path);
    ///             }
    ///         }
    ///     }
    ///     None
    /// });
    /// println!("{:?}", found.iter().flatten().next());
    /// # Ok::<(), lendir::Error>(())
    /// ```
    #[doc(alias("cancel", "quit"))]
    pub fn stop(&mut self) {
        self.workers.queue.stop();
    }

    /// Numbers the threads: the calling thread is 0, and the others follow in the order in which
    /// they begin.
    ///
    /// Variables inside the closure belong to one thread. For memory of each thread that outlives
    /// the walk, pass a fixed number of threads; with 0, the number depends on the machine.
    ///
    /// ```
    /// use std::sync::Mutex;
    ///
    /// let lines: Vec<_> = (0..4).map(|_| Mutex::new(Vec::new())).collect(); // one for each thread
    /// let _ = lendir::walk_dirs("/sys/class")?.run_parallel(lines.len(), |worker| {
    ///     let lines = &lines[worker.index()];
    ///     while let Some(dir) = worker.next_or_report(|error| eprintln!("{error}")) {
    ///         lines.lock().unwrap().push(dir.path().to_owned());
    ///     }
    /// });
    /// # Ok::<(), lendir::Error>(())
    /// ```
    pub fn index(&self) -> usize {
        self.index
    }

    /// Opens the next directory, like [`Part::advance`]. Splits off a part for each thread that
    /// waits, and takes a part of another thread once nothing is pending here.
    #[inline(always)]
    fn advance(&mut self) -> Result<bool, Error> {
        loop {
            if self.part.is_unfinished() {
                self.finish()?;
            }
            // Between two directories, when all names of the last one have been noted.
            if self.workers.queue.wanted() > 0 {
                self.part.split(&self.workers);
            }
            if self.part.step_to_visit()? {
                return Ok(true);
            }
            let Some(part) = self.workers.queue.pop() else { return Ok(false) };
            self.part.replace_with(part);
            self.part.cursor.lower_max_open(self.workers.queue.max_open());
        }
    }

    #[cold]
    fn finish(&mut self) -> Result<(), Error> {
        if self.workers.queue.is_over() {
            self.part.clear(); // so the directory is not read in vain
        }
        self.part.finish()
    }

    /// Leaves the pending directories to the other threads.
    pub(crate) fn leave(self) {
        let Self { part, workers, .. } = self;
        if !part.cursor.roots.is_empty() || !part.cursor.stack.levels.is_empty() {
            // First: if this is the last busy thread, the others end as soon as it has left.
            workers.push(part);
        }
        workers.queue.leave();
    }
}

debug!([S] Worker<'_, S>, |worker| index: worker.index);
