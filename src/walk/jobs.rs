//! `Jobs`: closures of the caller's that other threads of a walk run.

use crate::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::fmt;

/// Hands closures to threads of a [`Walk::spread`](super::Walk::spread) that have no directories left; if no thread is
/// idle, the caller runs them.
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
///                         let search = &search; // what `move` moves: not the closure
///                         jobs.run(move |_| search(file.into()));
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
/// It belongs to one thread, so it is not `Send`: a job gets the `Jobs` of the thread that runs it.
#[derive(Clone, Copy)]
pub struct Jobs<'scope, 'env> {
    queue: &'scope (dyn JobQueue<'env> + 'scope),
    is_wanted: &'scope AtomicBool,
    index: usize,
    /// Whether the thread runs a job of the queue, so jobs in the queue may wait for this one.
    is_in_job: bool,
}

pub(crate) type Job<'env> = Box<dyn for<'scope> FnOnce(Jobs<'scope, 'env>) + Send + 'env>;

/// The job half of a [`Handover`](super::handover::Handover). Not `Sync`, so [`Jobs`] is not `Send`.
pub(crate) trait JobQueue<'env> {
    /// Whether to give one rather than run it. A hint.
    fn is_wanted(&self) -> &AtomicBool;
    /// Queues `job`, or returns it if no thread is sure to run it, or enough are queued; drops it after a [stop](Self::stop).
    /// `is_in_job`: a job of the queue gives it.
    fn give_job(&self, job: Job<'env>, is_in_job: bool) -> Option<Job<'env>>;
    fn stop(&self);
}

impl<'scope, 'env> Jobs<'scope, 'env> {
    pub(super) fn new(queue: &'scope (dyn JobQueue<'env> + 'scope), index: usize) -> Self {
        Self { queue, is_wanted: queue.is_wanted(), index, is_in_job: false }
    }

    /// For a job of the queue.
    pub(super) fn in_job(self) -> Self {
        Self { is_in_job: true, ..self }
    }

    /// Queues `job` if another thread waits in [`Worker::next`](super::Worker::next), or runs a job there, and the queue, which
    /// is bounded, has room. Otherwise runs it here and now, so hold no lock that it takes. A job started by a job is queued
    /// only if a thread is waiting for it.
    ///
    /// A closure may wait for the results of its jobs, and a job for those of its own, because what is queued runs even if the
    /// caller does nothing more. **Who waits for a job holds nothing that any job takes**: the only thread that takes jobs may be
    /// running another one. A job must not wait for jobs that it did not start, or for anything that its starter does after this
    /// call.
    ///
    /// The job may borrow what outlives the `spread`, and own descriptors and buffers, which stay open while it is queued.
    /// Every job has run when [`spread`](super::Walk::spread) returns, except that [`stop`](Self::stop) and a panic drop those
    /// that have not begun, and those that come later. A panic in a job is one in the closure of the thread that runs it.
    ///
    /// Costs: an atomic load; where a thread wants jobs also an allocation, a lock, and a system call if that thread sleeps.
    #[inline]
    pub fn run(self, job: impl for<'a> FnOnce(Jobs<'a, 'env>) + Send + 'env) {
        if !self.is_wanted.load(Relaxed) {
            job(self);
        } else if let Some(job) = self.queue.give_job(Box::new(job), self.is_in_job) {
            job(self);
        }
    }

    /// As [`Worker::index`](super::Worker::index): the number of the thread.
    ///
    /// ```
    /// use std::sync::Mutex;
    ///
    /// let names: Vec<_> = (0..4).map(|_| Mutex::new(Vec::new())).collect(); // memory of each thread's own
    /// lendir::Walk::open("/sys/class")?.spread(names.len(), |worker| {
    ///     let jobs = worker.jobs();
    ///     while let Some(mut dir) = worker.next_ok(|error| eprintln!("{error}")) {
    ///         while let Some(entry) = dir.next_ok(|error| eprintln!("{error}")) {
    ///             let (name, names) = (entry.name().to_owned(), &names);
    ///             jobs.run(move |jobs| names[jobs.index()].lock().unwrap().push(name));
    ///         }
    ///     }
    /// });
    /// # Ok::<(), lendir::Error>(())
    /// ```
    pub fn index(self) -> usize {
        self.index
    }

    /// Ends the walk for all threads, as [`Worker::stop`](super::Worker::stop), from a job or while a [`Dir`](super::Dir) is
    /// lent. A `Dir` that is lent still lends its entries.
    ///
    /// ```
    /// lendir::Walk::open("/sys/class")?.spread(2, |worker| {
    ///     let jobs = worker.jobs();
    ///     while let Some(mut dir) = worker.next_ok(|error| eprintln!("{error}")) {
    ///         while let Some(entry) = dir.next_ok(|error| eprintln!("{error}")) {
    ///             if entry.name() == b"net" {
    ///                 println!("{:?}", entry.path());
    ///                 return jobs.stop();
    ///             }
    ///         }
    ///     }
    /// });
    /// # Ok::<(), lendir::Error>(())
    /// ```
    pub fn stop(self) {
        self.queue.stop();
    }
}

impl fmt::Debug for Jobs<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jobs").field("index", &self.index).finish_non_exhaustive()
    }
}
