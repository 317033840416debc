//! `Jobs`: closures of the caller's that idle threads of a walk run.

use crate::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::fmt;

/// Hands closures to idle threads of a [`Walk::spread`](super::Walk::spread); if none is idle, the caller runs them.
///
/// Threads share directories. Where the entries of one directory are the work (2,000 files to search), they share jobs:
///
/// ```
/// use lendir::{FileType, OFlags, Walk};
/// use std::fs::File;
/// use std::io::Read;
/// use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
///
/// let found = AtomicUsize::new(0);
/// let search = |mut file: File| {
///     let mut text = Vec::new();
///     if file.read_to_end(&mut text).is_ok() && text.windows(4).any(|word| word == b"root") {
///         found.fetch_add(1, Relaxed);
///     }
/// };
/// Walk::options().max_depth(1).open("/etc")?.spread(2, |worker| {
///     let jobs = worker.jobs();
///     while let Some(mut dir) = worker.next_ok(|error| eprintln!("{error}")) {
///         while let Some(entry) = dir.next_ok(|error| eprintln!("{error}")) {
///             if entry.file_type() == FileType::RegularFile {
///                 match entry.open(OFlags::RDONLY | OFlags::NONBLOCK) {
///                     Ok(file) => {
///                         let search = &search;
///                         jobs.run(move || search(file.into()));
///                     }
///                     Err(error) => eprintln!("{error}"),
///                 }
///             }
///         }
///     }
/// });
/// println!("{found:?} files");
/// # Ok::<(), lendir::Error>(())
/// ```
///
/// It borrows from the `spread`, not from the [`Worker`](super::Worker), so it can be used while a [`Dir`](super::Dir) is lent.
#[derive(Clone, Copy)]
pub struct Jobs<'scope, 'env> {
    is_wanted: &'scope AtomicBool,
    queue: &'scope (dyn JobQueue<'env> + 'scope),
}

pub(crate) type Job<'env> = Box<dyn FnOnce() + Send + 'env>;

/// A [`Handover`](super::handover::Handover), whatever else is handed over there.
pub(crate) trait JobQueue<'env>: Sync {
    /// Whether to give one. A hint.
    fn is_wanted(&self) -> &AtomicBool;
    fn give_job(&self, job: Job<'env>);
}

impl<'scope, 'env> Jobs<'scope, 'env> {
    pub(super) fn new(queue: &'scope (dyn JobQueue<'env> + 'scope)) -> Self {
        Self { is_wanted: queue.is_wanted(), queue }
    }

    /// Queues `job` if a thread is idle and fewer than 16 jobs, and two for each thread, are queued. Otherwise runs it here and
    /// now.
    ///
    /// An idle thread runs it while it waits in [`Worker::next`](super::Worker::next). The job may borrow what outlives the
    /// `spread`, and own descriptors and buffers, which stay open while it is queued. Every job has run when
    /// [`spread`](super::Walk::spread) returns, except that [`stop`](super::Worker::stop) and a panic drop jobs that have not
    /// begun. A panic in a job is one in the closure of the thread that runs it.
    ///
    /// Costs: an atomic load; where a thread is idle also an allocation, a lock, and a system call to wake that thread.
    #[inline]
    pub fn run(self, job: impl FnOnce() + Send + 'env) {
        // A hint is enough: a job that is given when nobody wants it any more waits for the next idle thread.
        if self.is_wanted.load(Relaxed) {
            self.queue.give_job(Box::new(job));
        } else {
            job();
        }
    }
}

impl fmt::Debug for Jobs<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jobs").field("is_wanted", self.is_wanted).finish_non_exhaustive()
    }
}
