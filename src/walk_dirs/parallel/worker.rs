//! `Worker`: what each thread of `WalkDirs::run_parallel` lends directories by, and how it leaves the work to the others. It does
//! not know how a part is split off, nor when a thread starts.

use super::work_queue::Others;
use crate::cursor::skip_errors;
use crate::error::Error;
use crate::walk_dirs::dir::Dir;
use crate::walk_dirs::lender::Lender;
use crate::walk_dirs::traversal::Traversal;
use std::fmt;
use std::marker::PhantomData;

/// One of the threads of [`WalkDirs::run_parallel`](crate::WalkDirs::run_parallel). It lends directories as the [`WalkDirs`](crate::WalkDirs) does, each of
/// them to one thread only.
///
/// It stays in its closure, because its lifetime `'scope` is that of one `run_parallel`, and on its thread, because it is not `Send`.
/// So it can neither be kept nor replaced by another.
pub struct Worker<'scope, S = ()> {
    lender: Lender<S>,
    others: Others<'scope, Traversal<S>>,
    index: usize,
    /// Makes the worker not `Send`. To make it `Send` later breaks no program; to take `Send` away again would.
    on_its_thread: PhantomData<*const ()>,
}

impl<'scope, S: Clone + Send> Worker<'scope, S> {
    pub(crate) fn new(
        lender: Lender<S>,
        others: Others<'scope, Traversal<S>>,
        index: usize,
    ) -> Self {
        Self { lender, others, index, on_its_thread: PhantomData }
    }

    /// As [`WalkDirs::next`](crate::WalkDirs::next): lends a directory that no other thread is lent, and is `None` once nothing is
    /// left. Without work it waits until another thread splits off a part of its work. Each call costs one more atomic load.
    /// Never `while let Ok(Some(dir))`: it takes an error for the end, of this thread only.
    ///
    /// # Errors
    ///
    /// What [`WalkDirs::next`](crate::WalkDirs::next) can fail with.
    #[inline(always)]
    pub fn next(&mut self) -> Result<Option<Dir<'_, S>>, Error> {
        Ok(if self.lender.advance(Some(&self.others))? { Some(self.lender.lend()) } else { None })
    }

    /// As [`WalkDirs::next_ok`](crate::WalkDirs::next_ok).
    #[inline(always)]
    pub fn next_ok(&mut self, on_error: impl FnMut(Error)) -> Option<Dir<'_, S>> {
        skip_errors(|| self.lender.advance(Some(&self.others)), on_error)
            .then(|| self.lender.lend())
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
        self.others.queue.stop();
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

    /// Leaves what is left to the others.
    pub(crate) fn leave(self) {
        let Self { lender, others, .. } = self;
        // Before it leaves: if this is the last busy thread, the others end as soon as it has left.
        if lender.traversal.cursor.is_done() {
            drop(lender); // before it leaves: the state's destructor may panic
        } else {
            others.push(lender.traversal);
        }
        others.queue.leave();
    }
}

impl<S> fmt::Debug for Worker<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("index", &self.index).finish_non_exhaustive()
    }
}
