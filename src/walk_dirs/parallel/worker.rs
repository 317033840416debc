//! `Worker`: walks the parts of one thread of `WalkDirs::run_parallel`. It does not know how a part is split off, nor when a thread
//! starts.

use super::work_queue::Workers;
use crate::cursor::skip_errors;
use crate::error::Error;
use crate::read_dir::buffer::Buffer;
use crate::walk_dirs::dir::Dir;
use crate::walk_dirs::part::Part;
use std::fmt;

/// One of the threads of [`WalkDirs::run_parallel`](crate::WalkDirs::run_parallel). It lends directories as the [`WalkDirs`](crate::WalkDirs) does, each of
/// them to one thread only.
///
/// It stays in its closure, because its lifetime `'scope` is that of one `run_parallel`, and on its thread, because it is not `Send`.
/// So it can neither be kept nor replaced by another.
pub struct Worker<'scope, S = ()> {
    pub(super) part: Part<S>,
    pub(super) buffer: Buffer,
    /// It also makes the worker not `Send`. To make the worker `Send` later breaks no program; to take `Send` away again would.
    pub(super) workers: Workers<'scope, Part<S>>,
    pub(super) index: usize,
}

impl<S: Clone + Send> Worker<'_, S> {
    /// As [`WalkDirs::next`](crate::WalkDirs::next): lends a directory that no other thread is lent, and is `None` once nothing is
    /// left. Without work it waits until another thread splits off a part of its work. Each call costs one more atomic load.
    /// Never `while let Ok(Some(dir))`: it takes an error for the end, of this thread only.
    ///
    /// # Errors
    ///
    /// What [`WalkDirs::next`](crate::WalkDirs::next) can fail with.
    #[inline(always)]
    pub fn next(&mut self) -> Result<Option<Dir<'_, S>>, Error> {
        Ok(if self.advance()? { Some(Dir::visit(&mut self.part, &mut self.buffer)) } else { None })
    }

    /// As [`WalkDirs::next_ok`](crate::WalkDirs::next_ok).
    #[inline(always)]
    pub fn next_ok(&mut self, on_error: impl FnMut(Error)) -> Option<Dir<'_, S>> {
        skip_errors(|| self.advance(), on_error)
            .then(|| Dir::visit(&mut self.part, &mut self.buffer))
    }

    /// Ends the walk for all threads: [`next`](Self::next) is `None` from now on. A [`Dir`] of another thread still lends its
    /// entries. The compiler refuses to use this thread's after this call.
    ///
    /// ```
    /// let found = lendir::walk_dirs("/sys/class")?.run_parallel(2, |worker| {
    ///     while let Some(mut dir) = worker.next_ok(|error| eprintln!("{error}")) {
    ///         while let Some(entry) = dir.next_ok(|error| eprintln!("{error}")) {
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
    pub fn stop(&mut self) {
        self.workers.queue.stop();
    }

    /// The number of this thread: 0 for the caller's own, less than what `run_parallel` was passed for the others, in the order in which
    /// they begin. The variables of the closure are each thread's own. For memory of each thread's own that outlives the walk, pass
    /// `run_parallel` a number: how many threads 0 takes depends on the machine.
    ///
    /// ```
    /// use std::sync::Mutex;
    ///
    /// let lines: Vec<_> = (0..4).map(|_| Mutex::new(Vec::new())).collect(); // one for each thread
    /// let _ = lendir::walk_dirs("/sys/class")?.run_parallel(lines.len(), |worker| {
    ///     let lines = &lines[worker.index()];
    ///     while let Some(dir) = worker.next_ok(|error| eprintln!("{error}")) {
    ///         lines.lock().unwrap().push(dir.path().to_owned());
    ///     }
    /// });
    /// # Ok::<(), lendir::Error>(())
    /// ```
    pub fn index(&self) -> usize {
        self.index
    }

    /// Opens the next directory as a sequential walk does, and shares the work with the other threads: splits off a part for each
    /// thread that waits, and takes a part of theirs once nothing is pending here.
    #[inline(always)]
    fn advance(&mut self) -> Result<bool, Error> {
        let Self { part, buffer, workers, .. } = self;
        loop {
            if part.is_unfinished() {
                if workers.queue.is_over() {
                    part.clear();
                } else {
                    part.finish(buffer)?;
                }
            }
            // Between two directories, when all names of the last one have been noted.
            if workers.queue.wanted() > 0 {
                part.split(workers);
            }
            if part.step_to_visit()? {
                return Ok(true);
            }
            let Some(next) = workers.queue.pop() else { return Ok(false) };
            *part = next;
        }
    }

    /// Leaves the pending directories to the other threads.
    pub(crate) fn leave(self) {
        let Self { part, workers, .. } = self;
        // Before it leaves: if this is the last busy thread, the others end as soon as it has left.
        if part.cursor.roots.is_empty() && part.cursor.stack.levels.is_empty() {
            drop(part); // before it leaves: the state's destructor may panic
        } else {
            workers.push(part);
        }
        workers.queue.leave();
    }
}

impl<S> fmt::Debug for Worker<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("index", &self.index).finish_non_exhaustive()
    }
}
