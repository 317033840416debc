//! `Walk`: a tree, directory by directory, and the contract of the walk.
//!
//! A module uses those above it:
//!
//! ```text
//! options  bounds  pending  path  identity  raw_open
//! open_child  links       how the next directory is opened, or why not
//! roots                   the trees left to do
//! way_back                how a closed level is found again
//! shared_level            a level that several threads walk
//! stack                   the levels on the way: open, closed or lost
//! descent                 the steps through a tree: down, back, up, on to the next root
//! said  notes             what the caller says of names, and the names to enter
//! traversal               what a thread has to do, and its next step
//! work_queue  split       the parts that idle threads wait for; how one is split off
//! dir                     what is lent
//! cursor                  a thread's traversal and its buffer: the walk's loop
//! worker                  a thread of several
//! tree_entry  read_tree   every entry in one loop: on a descent, without the rest
//! ```
//!
//! Why a directory was entered or not: by what the caller said, `Notes::settle`; by what it is, `Descent::find_child`; by where it
//! is, `Opener`.

mod bounds;
mod cursor;
mod descent;
mod dir;
mod identity;
mod links;
mod notes;
mod open_child;
mod options;
mod path;
mod pending;
mod raw_open;
mod read_tree;
mod roots;
mod said;
mod shared_level;
mod split;
mod stack;
mod traversal;
mod tree_entry;
mod way_back;
mod work_queue;
mod worker;

pub use dir::Dir;
pub use options::WalkOptions;
pub use read_tree::{ReadTree, read_tree};
pub use tree_entry::TreeEntry;
pub use worker::Worker;

use crate::error::Error;
use crate::sync::thread;
use cursor::{Cursor, until_ok};
use open_child::Found;
use roots::Roots;
use rustix::fd::OwnedFd;
use std::ffi::OsStr;
use std::fmt;
use std::num::NonZero;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use traversal::Traversal;
use work_queue::WorkQueue;

/// A tree, directory by directory: the walk lends directories, and a directory lends the same [`Entry`](crate::Entry) as
/// [`Entries`](crate::Entries).
///
/// ```
/// let mut walk = lendir::Walk::open("/sys/class")?;
/// let mut count = 0;
/// while let Some(mut dir) = walk.next_ok(|error| eprintln!("{error}")) {
///     while let Some(entry) = dir.next_ok(|error| eprintln!("{error}")) {
///         if entry.name() == b".git" {
///             dir.skip_entry(); // do not go below it
///         }
///         count += 1;
///     }
/// }
/// # assert!(count > 0);
/// # Ok::<(), lendir::Error>(())
/// ```
///
/// # Guarantees
///
/// - **Order.** A directory is lent before those below it, depth first. Its entries come consecutively, in the kernel's order or,
///   after [`Dir::read_into`], in that of the [`Listing`](crate::Listing). The directories in it are visited in that order too.
/// - **A directory is opened when `next` comes to it**, not when its entry is lent: the caller can `chmod` it first. A root is
///   open already.
/// - **Nothing is hidden.** If a [`Dir`] is dropped before its end, `next` reads the rest. A directory that may not be read is
///   lent like any other, and reading it is an error. One that cannot even be opened, because its parent may not be searched, is
///   an error of `next`.
/// - **It never leaves the tree.** Each step down opens one name, relative to the directory that was read, and refuses symbolic
///   links (`O_NOFOLLOW`), even those swapped in meanwhile. Only [`Dir::follow_entry`] and [`Dir::follow_name`] follow one. A
///   level that was [closed early](WalkOptions::max_open) is found again by `..` or by names, and recognised by device, inode
///   number and birth time. Another directory can pass for it only where the birth time does not count, as on servers, or after
///   the clock was set back. If the level is not found, that is an error, and what is left of it is skipped.
/// - **Unknown types are opened**: an entry that then fails with `ENOTDIR` or `ELOOP` is skipped silently. For an entry of type
///   directory, `ENOTDIR` is an error: it was replaced.
/// - **Errors end nothing.** Each comes once, with its path, after the entries that were read before it.
/// - **Any depth**: no recursion, no path that can be too long, and at most [`max_open`](WalkOptions::max_open) descriptors,
///   and two more while it follows a link; on several threads, [some more](Self::spread). Only
///   [`max_depth`](WalkOptions::max_depth) ends a tree that is made without end.
/// - **Once each**: while others change the tree, a directory that stays where it is, below directories that stay, is lent
///   exactly once, if the kernel [returns its entry once](crate#what-the-kernel-promises-while-others-change-the-directory).
///
/// # What it costs
///
/// | | system calls |
/// |---|---|
/// | a directory that fits into the [`Buffer`](crate::Buffer), with an [`EndMarker`](crate::EndMarker) on its file system | 3: `openat2`, `getdents64`, `close` |
/// | one where it has none, or without `openat2` | 4: a second `getdents64` |
/// | a root | `openat` instead of `openat2`, and `fstatfs` for its `EndMarker` |
/// | a directory on another mount | one more `openat`, and `fstatfs` for its `EndMarker` |
/// | a directory that may not be read | 3: `openat2`, `openat` with `O_PATH`, `close` |
/// | an entry of unknown type that is no directory | 1: `openat2` |
/// | a level, a directory above the current one, that is closed early | 5 more: `statx`, `fstatfs`, `close`, then `openat` and `statx` to come back |
///
/// `openat2` is missing before Linux 5.6, on Android, and under some seccomp filters.
///
/// In memory: the [`Buffer`](crate::Buffer); the path; the names of directories left to do; and 112 bytes and the state for each
/// level above that has directories left to do, with second visits for each level. Once this has grown to what the tree takes,
/// only errors, followed links, and levels that are found again by names allocate. [`reopen`](Self::reopen) keeps it for the next
/// tree.
#[doc(alias("fts", "nftw", "walkdir"))]
#[must_use = "a walk is lazy: nothing is read before `next`"]
pub struct Walk<S = ()> {
    cursor: Cursor<S>,
}

impl Walk {
    /// The default options. Change them, then begin the walk: `Walk::options().max_depth(2).open(path)`.
    pub fn options() -> WalkOptions {
        WalkOptions::default()
    }

    /// A walk of the tree at `path`, with the default options: see [`WalkOptions::open`] for costs and errors.
    ///
    /// # Errors
    ///
    /// Those of [`WalkOptions::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::options().open(path)
    }
}

/// The fewest threads of `spread(0)`. On a cold disk they wait in parallel, whatever the core count.
const MIN_THREADS: usize = 8;

/// How a walk begins.
impl<S> WalkOptions<S> {
    /// Begins a walk of the tree at `path`. The paths that it lends begin with `path`, as it is written here.
    ///
    /// Costs: one `openat`, one `fstatfs`, and the memory of the [`Buffer`](crate::Buffer), the path and the first
    /// level; the rest of the memory comes with the tree.
    ///
    /// # Errors
    ///
    /// Those of [`open`](crate::open()), with the path: `ENOENT` for nothing or a dangling link, `ENOTDIR` for a file or a
    /// FIFO. A program that takes files too calls `stat` on them itself, as the example `find` does. A root that may not be read
    /// is lent all the same, and [`Dir::next`] returns the error.
    pub fn open(self, path: impl AsRef<Path>) -> Result<Walk<S>, Error> {
        let mut walk = self.begin(Roots::default(), b"");
        walk.reopen(path)?;
        Ok(walk)
    }

    /// Begins a walk of the trees at `paths`, one after another; on [several threads](Walk::spread), of all of them at once. A
    /// path that is given twice is walked twice: to avoid that, compare `fstat` of each root, and [skip](Dir::skip_all) it.
    ///
    /// A root is opened when the walk comes to it. If it is missing, or no directory, [`Walk::next`] returns the error, with the
    /// path and depth 0, and the next call goes on with the next root. A relative path is looked up then, too.
    ///
    /// ```
    /// let mut walk = lendir::Walk::options().open_all(["/sys/class", "/no/such/directory", "/sys/bus"]);
    /// let mut errors = 0;
    /// while let Some(_dir) = walk.next_ok(|_| errors += 1) {}
    /// assert_eq!(errors, 1);
    /// ```
    ///
    /// Costs: the memory of [`open`](Self::open), and a copy of each path.
    pub fn open_all<P: AsRef<Path>>(self, paths: impl IntoIterator<Item = P>) -> Walk<S> {
        self.begin(Roots::at(paths), b"")
    }

    /// Begins a walk of the tree at `root`, from [`open`](crate::open()) or [`openat`](crate::openat). The paths that it lends
    /// begin with `path`, which nothing looks up; with `""` they are relative to the root.
    ///
    /// Costs: one `lseek`, as the root is read from its beginning, one `fstatfs`, and the memory of [`open`](Self::open). A
    /// descriptor that cannot be read is lent all the same, and [`Dir::next`] returns the error.
    pub fn from_fd(self, root: impl Into<OwnedFd>, path: impl AsRef<Path>) -> Walk<S> {
        self.begin(Roots::from_fd(root.into()), path.as_ref().as_os_str().as_bytes())
    }

    fn begin(self, roots: Roots, path: &[u8]) -> Walk<S> {
        let mut traversal = Traversal::new(self.options, self.state);
        traversal.descent.begin(roots, path);
        Walk { cursor: Cursor::new(traversal) }
    }
}

/// A walk without a tree, with the default options: [`next`](Walk::next) is `None` until [`reopen`](Walk::reopen).
impl Default for Walk {
    fn default() -> Self {
        Self::options().open_all::<&Path>([])
    }
}

impl<S> Walk<S> {
    /// Begins the tree at `path`, in the same memory and with the same options. Abandons what is left of the trees before.
    ///
    /// Costs: one `openat` and one `fstatfs`.
    ///
    /// # Errors
    ///
    /// Those of [`WalkOptions::open`]. [`next`](Self::next) is then `None`.
    pub fn reopen(&mut self, path: impl AsRef<Path>) -> Result<(), Error> {
        self.cursor.traversal.clear();
        let path = path.as_ref();
        let bytes = path.as_os_str().as_bytes();
        let root = Found::root(bytes, self.cursor.traversal.descent.options.follow_roots);
        let root = root.map_err(|errno| Error::new(bytes, 0, errno))?;
        self.cursor.traversal.descent.begin(Roots::open(root), bytes);
        Ok(())
    }
}

impl<S: Clone> Walk<S> {
    /// Opens the next directory and lends it; the root first. `None` when nothing is left.
    ///
    /// [`next_ok`](Self::next_ok) is the usual loop. With `?`, the first error ends it. [`Entries::next`](crate::Entries::next)
    /// warns of a loop that loses errors.
    ///
    /// Costs: see [the table](Self#what-it-costs). A [`Dir`] that was dropped before its end is read again first.
    ///
    /// # Errors
    ///
    /// With the path of the directory concerned, and without its state. The next call continues.
    ///
    /// - `EACCES` if the parent may not be searched, `ENOENT` for a directory that was removed, `ENOTDIR` for one that was
    ///   replaced, `ELOOP` for a [followed link](Dir::follow_entry) that leads back, or only to links; `EMFILE` or `ENFILE` if no
    ///   descriptor is left.
    /// - [Those of a level](WalkOptions::max_open) that was closed early and cannot be found again.
    /// - Those of [`Dir::next`], if the [`Dir`] before was dropped before its end. At the deepest level that
    ///   [`max_depth`](WalkOptions::max_depth) allows, nothing is read for that, so nothing fails.
    /// - Those of [`WalkOptions::open`], for a root of [`open_all`](WalkOptions::open_all), and of [`Dir::enter`].
    #[inline(always)]
    pub fn next(&mut self) -> Result<Option<Dir<'_, S>>, Error> {
        // Everything from `openat2` to the first `getdents64` stays in the caller's frame: see `Entries::find`.
        Ok(if self.cursor.advance(None)? { Some(self.cursor.lend()) } else { None })
    }

    /// The next directory, or `None` when nothing is left. `on_error` gets each error that comes before, and none ends the walk.
    #[inline(always)]
    pub fn next_ok(&mut self, on_error: impl FnMut(Error)) -> Option<Dir<'_, S>> {
        until_ok(|| self.cursor.advance(None), on_error).then(|| self.cursor.lend())
    }

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
    /// [second visit](WalkOptions::second_visits) after theirs. A huge directory is read by one thread: to divide the work on its
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
    /// | each thread | a [`Buffer`](crate::Buffer), and at most [`max_open`](WalkOptions::max_open) descriptors: 64 threads × 32 exceed a `ulimit -n` of 1024, so lower `max_open` |
    /// | a part of the roots | a clone of the state |
    /// | a part of the directories at a level | a copy of their names and of their path, two clones of the state, and a duplicate of the level's descriptor: one more for each part that no thread has taken yet |
    /// | the same, with second visits | an `openat` with `O_PATH` and its `close`: one more descriptor while the part is split off |
    /// | the first part of a level, with second visits | for the level, and for each above it that threads do not share yet: a `statx`, an `fstatfs`, an allocation, a clone of the state, and a wait for the clock if it was [just made](WalkOptions::max_open) |
    /// | a root that threads share, with second visits | a duplicate of its descriptor, until its tree is done, so two threads with `max_open(4)` can hold nine descriptors |
    /// | a part, once a link was followed | a `statx`, and for each ancestor not known yet what it costs at [`follow_entry`](Dir::follow_entry); deep below a link, fewer parts are split off |
    #[doc(alias("build_parallel", "threads"))]
    pub fn spread<R: Send>(self, threads: usize, work: impl Fn(&mut Worker<'_, S>) -> R + Sync) -> Vec<R>
    where
        S: Send,
    {
        let cursor = self.cursor;
        let cores = || std::thread::available_parallelism().map_or(1, NonZero::get);
        let threads = if threads == 0 { cores().max(MIN_THREADS) } else { threads };
        let queue = WorkQueue::new();
        let run = |cursor, index| {
            let result = catch_unwind(AssertUnwindSafe(|| {
                let mut worker = Worker::new(cursor, &queue, index);
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
                let traversal = Traversal::new(cursor.traversal.descent.options, cursor.traversal.root_state.clone());
                queue.join();
                let started = thread::Builder::new().spawn_scoped(scope, move || run(Cursor::new(traversal), index));
                started.inspect_err(|_| queue.leave()).ok()
            };
            let mut others = Vec::new();
            let started = catch_unwind(AssertUnwindSafe(|| others.extend((1..threads).map_while(start))));
            // If a clone of the state panics, the walk ends, so the threads that were started do not wait for this one.
            let first = started.inspect_err(|_| queue.stop()).and_then(|()| run(cursor, 0));
            let others = others.into_iter().map(|thread| thread.join().and_then(|result| result));
            [first].into_iter().chain(others).collect()
        });
        results.into_iter().map(|result| result.unwrap_or_else(|panic| resume_unwind(panic))).collect()
    }
}

impl<S> fmt::Debug for Walk<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let descent = &self.cursor.traversal.descent;
        let mut shown = f.debug_struct("Walk");
        shown.field("path", &Path::new(OsStr::from_bytes(descent.path.as_bytes())));
        shown.field("depth", &descent.stack.levels().last().map_or(0, |top| top.bounds.depth));
        shown.field("options", &descent.options).finish_non_exhaustive()
    }
}
