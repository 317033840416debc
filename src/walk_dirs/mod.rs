//! `WalkDirs`: walks a tree, directory by directory. This module is the public contract of the walk, and does not know how it is
//! done: [`part`] does.

mod dir;
mod parallel;
mod part;
mod pending;
mod shared_level;
mod subdirs;

pub use dir::Dir;
pub use parallel::Worker;

use crate::cursor::options::{Options, common_options};
use crate::cursor::roots::Roots;
use crate::cursor::skip_errors;
use crate::error::Error;
use crate::read_dir::buffer::Buffer;
use part::Part;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Walks the tree at `path`, directory by directory, with the default options.
///
/// ```
/// let mut walk = lendir::walk_dirs("/sys/class")?;
/// while let Some(mut dir) = walk.next_ok(|error| eprintln!("{error}")) {
///     println!("{:?} has {} entries", dir.path(), dir.count()?);
/// }
/// # Ok::<(), lendir::Error>(())
/// ```
///
/// # Errors
///
/// Same as [`WalkDirsOptions::open`].
pub fn walk_dirs(path: impl AsRef<Path>) -> Result<WalkDirs, Error> {
    WalkDirs::options().open(path)
}

/// A tree, directory by directory: the walk lends directories, and a directory lends the same [`Entry`](crate::Entry) as
/// [`Entries`](crate::Entries).
///
/// ```
/// let mut walk = lendir::walk_dirs("/sys/class")?;
/// let mut count = 0;
/// while let Some(mut dir) = walk.next_ok(|error| eprintln!("{error}")) {
///     while let Some(entry) = dir.next_ok(|error| eprintln!("{error}")) {
///         if entry.name() == b".git" {
///             entry.skip_subtree(); // do not go below it
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
/// - **Order.** First comes a directory, with all of its entries; then each directory in it, with everything below that. Both
///   come in the kernel's order or, after [`Dir::read_into`], in that of the [`Listing`](crate::Listing).
/// - **A directory is opened when `next` comes to it**, not when its entry is lent: the caller can `chmod` it first. A root is
///   open already.
/// - **Nothing is hidden.** If a [`Dir`] is dropped before its end, `next` reads the rest. A directory that may not be read is
///   lent like any other, and reading it is an error. One that cannot even be opened, because its parent may not be searched, is
///   an error of `next`.
/// - **It never leaves the tree.** Each step down opens one name, relative to the directory that was read, and refuses
///   symbolic links (`O_NOFOLLOW`), even those swapped in meanwhile. Only [`Entry::follow`](crate::Entry::follow) and
///   [`Dir::follow_name`] follow one. A level that was [closed early](WalkDirsOptions::max_open) is found again by `..` or by
///   names, and recognised by device, inode number and birth time. Another directory can pass for it only where the birth
///   time does not count, as on servers, or after the clock was set back. If the level is not found, that is an error, and
///   what is left of it is skipped.
/// - **Unknown types are opened**, unless a call such as [`Entry::file_type`](crate::Entry::file_type) told you the type: the
///   walk [relies on that](crate::Entry::stat). What turns out to be something else, or to be gone, is skipped silently. But
///   if the kernel's listing, or an answer to you, called it a directory, it is an error: `ENOTDIR`, because it was replaced,
///   or `ENOENT`.
/// - **Errors end nothing.** Each comes once, with its path, after the entries that were read before it. After an error of
///   [`Entry::stat`](crate::Entry::stat), it is no second error if that entry cannot be opened.
/// - **Any depth**: no recursion, no path that can be too long, and at most [`max_open`](WalkDirsOptions::max_open) descriptors,
///   and two more while it follows a link, or one while it finds a level again below one; on several threads,
///   [some more](Self::run_parallel). Only [`max_depth`](WalkDirsOptions::max_depth) ends a tree that is made without end.
/// - **Once each**: while others change the tree, a directory that stays where it is, below directories that stay, is lent
///   exactly once, if the kernel [returns its entry once](crate#what-the-kernel-promises-while-the-directory-changes).
///
/// # What it costs
///
/// | | system calls |
/// |---|---|
/// | a directory that fits into the [`Buffer`](crate::Buffer), on ext4, btrfs, tmpfs (Linux 6.14), sysfs or cgroup2, which mark the last entry | 3: `openat2`, `getdents64`, `close` |
/// | the same on others, or without `openat2` | 4: a second `getdents64` |
/// | a root | `openat` instead of `openat2`, and `fstatfs` for its mark |
/// | the same with second visits, by a path | `openat` and `close` of the root's parent |
/// | a directory on another mount | one more `openat`, and `fstatfs` for its mark |
/// | a directory that may not be read | 3: `openat2`, `openat` with `O_PATH`, `close` |
/// | an entry of unknown type that is no directory | 1: `openat2` |
/// | a level, a directory above the current one, that is closed early | 5 more: `statx`, `fstatfs`, `close`, then `openat` and `statx` to come back |
///
/// `openat2` is missing before Linux 5.6, on Android, and under some seccomp filters.
///
/// In memory: the [`Buffer`](crate::Buffer); the path; the names of directories left to do; and 112 bytes and the state for each
/// level above that has directories left to do, with second visits for each level. A level right below one that was closed early
/// stays too: if a process has only three descriptors left, that can be each level of a chain. [Following a
/// link](crate::Entry::follow) takes memory for the directories above it. Once all this has grown to what the tree takes, only
/// errors, followed links, and levels that are found again by names allocate. The next root of
/// [`open_all`](WalkDirsOptions::open_all) takes the same.
#[doc(alias("fts", "nftw", "walkdir"))]
#[must_use = "a walk is lazy: nothing is read before `next`"]
pub struct WalkDirs<S = ()> {
    part: Part<S>,
    buffer: Buffer,
}

impl WalkDirs {
    /// The default options. Change them, then begin the walk: `WalkDirs::options().max_depth(2).open(path)`.
    pub fn options() -> WalkDirsOptions {
        WalkDirsOptions::default()
    }
}

impl<S: Clone> WalkDirs<S> {
    /// Opens the next directory and lends it; the root first. `None` when nothing is left.
    ///
    /// [`next_ok`](Self::next_ok) is the usual loop. With `?`, the first error ends it. Never `while let Ok(Some(dir))`: it
    /// takes an error for the end.
    ///
    /// Costs: see [the table](Self#what-it-costs). A [`Dir`] that was dropped before its end is read again first.
    ///
    /// # Errors
    ///
    /// With the path of the directory concerned, and without its state. The next call continues.
    ///
    /// - `ENOENT` for a directory that [is gone](Error::is_gone), or `ESRCH` with its process; `EACCES` if the parent may not be
    ///   searched, `ENOTDIR` for a directory that was replaced, `ELOOP` for a [followed link](crate::Entry::follow) that leads back,
    ///   or only to links; `EMFILE` or `ENFILE` if no descriptor is left;
    ///   `ESTALE` if an NFS server no longer knows the directory.
    /// - Where a level that was closed early cannot be found again: see [`max_open`](WalkDirsOptions::max_open).
    /// - What [`Dir::next`] can fail with, if the [`Dir`] before was dropped before its end. At the deepest level that
    ///   [`max_depth`](WalkDirsOptions::max_depth) allows, nothing is read for that, so nothing fails.
    /// - What [`WalkDirsOptions::open`] can fail with, for a root of [`open_all`](WalkDirsOptions::open_all); what [`Dir::enter`] can.
    #[inline(always)]
    pub fn next(&mut self) -> Result<Option<Dir<'_, S>>, Error> {
        // Everything from `openat2` to the first `getdents64` stays in the caller's frame: see `Entries::find`.
        Ok(if self.part.advance(&mut self.buffer)? {
            Some(Dir::visit(&mut self.part, &mut self.buffer))
        } else {
            None
        })
    }

    /// The next directory, or `None` when nothing is left. `on_error` gets each error that comes before, and none ends the walk.
    #[inline(always)]
    pub fn next_ok(&mut self, on_error: impl FnMut(Error)) -> Option<Dir<'_, S>> {
        let Self { part, buffer } = self;
        skip_errors(|| part.advance(buffer), on_error).then(|| Dir::visit(part, buffer))
    }

    /// Walks on several threads: each runs `work`, the usual loop, on a [`Worker`]. Returns what they return, in the order of
    /// [`Worker::index`].
    ///
    /// **A thread starts when there is a part of the work for it**, so a small tree has fewer threads than `threads`, and fewer
    /// results. No closure may wait for another one to begin. Any thread starts the next one, which inherits its CPU affinity and
    /// signal mask.
    ///
    /// `threads` is how many there are at most, the calling thread included. 0 means one for each core that this process may use,
    /// but at least 8, because threads that wait for a disk or a network need no core. For work that keeps the cores busy, pass
    /// their number. Where calls wait for a server, pass as many as it answers at once, which can be hundreds. A narrow tree keeps
    /// few threads busy: each works on directories that no other one has.
    ///
    /// [`Worker::next`] lends each directory to exactly one thread, and is `None` for all of them once nothing is left. Which
    /// thread gets which directory, and when, is unspecified, but a directory still comes before those below it, and its
    /// [second visit](crate::WalkDirsOptions::second_visits) after theirs. A huge directory is read by one thread: to divide the work on its
    /// files among several, send them over a channel, as [the recipe](crate::recipes#work-on-each-file-on-all-cores) does.
    ///
    /// ```
    /// use lendir::{Error, WalkDirs};
    ///
    /// let parts = lendir::walk_dirs("/sys/class")?.run_parallel(2, |worker| {
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
    /// closure that returns early, as `?` does, ends its own thread only. The others walk the directories that it leaves, those
    /// not started yet too, but nobody is lent the unread entries of its last one. **The error of that `?` is in the results**, so
    /// the compiler warns if they are not used: where closures return nothing, write `let _ =`. [`Worker::stop`] ends the walk for
    /// all. So does a panic, which is passed on once all have returned.
    ///
    /// If a thread cannot be started, no other one is, and those that run walk the whole tree.
    ///
    /// While others wait or have not started, a busy thread splits off an equal part of its work for each of them: of its roots, or
    /// of the directories left at its shallowest open level. Nothing is split off at a level whose path is longer than 4096 bytes.
    ///
    /// | Costs | |
    /// |---|---|
    /// | each thread | a [`Buffer`](crate::Buffer), and at most [`max_open`](crate::WalkDirsOptions::max_open) descriptors: 64 threads × 32 exceed a `ulimit -n` of 1024, so lower `max_open` |
    /// | a part of the roots | a clone of the state |
    /// | a part of the directories at a level | a copy of their names and of their path, two clones of the state, and a duplicate of the level's descriptor: one more for each part that no thread has taken yet |
    /// | the same, with second visits | an `openat` with `O_PATH` and its `close`: one more descriptor while the part is split off |
    /// | the first part of a level, with second visits | for the level, and for each above it that threads do not share yet: a `statx`, an `fstatfs`, an allocation, a clone of the state, and a wait for the clock if it was [just made](crate::WalkDirsOptions::max_open) |
    /// | a root that threads share, with second visits | a duplicate of its descriptor, until its tree is done, so two threads with `max_open(4)` can hold nine descriptors |
    /// | a part, once a link was followed | a copy of what is known of the directories above; what is not known yet, each thread queries again |
    #[doc(alias("build_parallel", "parallel", "threads"))]
    #[must_use = "what the closures return can be the error of a `?` in them"]
    pub fn run_parallel<R: Send>(
        self,
        threads: usize,
        work: impl Fn(&mut Worker<'_, S>) -> R + Sync,
    ) -> Vec<R>
    where
        S: Send,
    {
        parallel::run(self.part, self.buffer, threads, work)
    }
}

impl<S> fmt::Debug for WalkDirs<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cursor = &self.part.cursor;
        let mut shown = f.debug_struct("WalkDirs");
        shown.field("path", &Path::new(OsStr::from_bytes(cursor.path.as_bytes())));
        shown.field("depth", &cursor.stack.levels.last().map_or(0, |top| top.bounds.depth));
        shown.field("options", &cursor.options).finish_non_exhaustive()
    }
}

/// How to walk, set before the walk begins. [`WalkDirs::options`] has the defaults; each method takes the
/// options, and returns them changed.
///
/// ```
/// use lendir::WalkDirs;
///
/// let mut walk = WalkDirs::options().same_mount(true).max_depth(2).open("/sys/class")?;
/// while let Some(mut dir) = walk.next_ok(|error| eprintln!("{error}")) {
///     while let Some(entry) = dir.next_ok(|error| eprintln!("{error}")) {
///         println!("{:?}", entry.path());
///     }
/// }
/// # Ok::<(), lendir::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "it does nothing before `open`, `open_all` or `from_fd`"]
pub struct WalkDirsOptions<S = ()> {
    options: Options,
    buffer_capacity: usize,
    state: S,
}

/// The same as [`WalkDirs::options`].
impl Default for WalkDirsOptions {
    fn default() -> Self {
        Self { options: Options::default(), buffer_capacity: Buffer::DEFAULT_CAPACITY, state: () }
    }
}

impl<S> WalkDirsOptions<S> {
    common_options!(WalkDirs<S>, "WalkDirs");

    /// Lends each directory once more, after everything below it and without its entries: see [`Dir::is_second_visit`] and
    /// [`Dir::parent_and_name`]. First and second visits come in pairs, except that a level that others move or remove can be
    /// [lost](Self::max_open). On several threads too, the second visit of a directory begins only when those of all
    /// directories below it have ended, and it sees what their closures wrote.
    ///
    /// A root that is opened by a path is opened through its parent directory, whose descriptor is kept until the walk is done
    /// with the root. [`Dir::parent_and_name`] returns that parent.
    ///
    /// # Performance
    ///
    /// A level keeps its descriptor until its second visit, so in a tree deeper than [`max_open`](Self::max_open) the walk
    /// closes levels early. Opening a root by its path allocates once.
    #[doc(alias("depth_first", "contents_first", "post_order"))]
    pub fn second_visits(mut self, yes: bool) -> Self {
        self.options.second_visits = yes;
        self
    }

    /// Sets the size in bytes of the buffer of each thread. The default is [`Buffer::DEFAULT_CAPACITY`], 32 KiB.
    ///
    /// A larger buffer takes fewer system calls for directories of more than 1,000 entries. This matters where each call waits for
    /// a server of a FUSE file system; see [`Buffer::DEFAULT_CAPACITY`]. The size is clamped in the same way as the size of
    /// [`Buffer::with_capacity`].
    ///
    /// ```
    /// let walk = lendir::WalkDirs::options().buffer_capacity(1024 * 1024).open("/sys/class")?;
    /// # Ok::<(), lendir::Error>(())
    /// ```
    pub fn buffer_capacity(mut self, bytes: usize) -> Self {
        self.buffer_capacity = bytes;
        self
    }

    /// Carries a state down the tree.
    ///
    /// - Each root begins with a clone of `of_root`, and each directory with a clone of its parent's
    ///   [`Dir::state`](Dir::state), as you left it there. All directories in one parent begin with the same.
    /// - **If you do not set the state at the first visit of a directory, it keeps its parent's.** So set the state on every
    ///   path through the loop, also after an error. Otherwise a copy gets the mode of its parent, for example.
    /// - At its second visit a directory has its own state again. If nobody changed that, it is still the clone of its parent's.
    /// - In an [`Arc`](std::sync::Arc) a state also carries sums up: at second visits, as in the example `du`, or when its last
    ///   clone is dropped, as in [a recipe](crate::recipes#add-up-sizes-on-all-cores).
    /// - Descriptors in a state do not count for [`max_open`](Self::max_open).
    /// - If you catch a panic of its `clone`, the walk goes on, and misses nothing. After one of its `drop`, it may miss an
    ///   error: of a root that could not be opened, or of a lost level.
    ///
    /// ```
    /// let mut walk = lendir::WalkDirs::options().with_state(None).open("/usr/share/doc")?;
    /// while let Some(mut dir) = walk.next_ok(|error| eprintln!("{error}")) {
    ///     let depth = dir.depth();
    ///     while let Some(entry) = dir.next_ok(|error| eprintln!("{error}")) {
    ///         if entry.name() == b".git" {
    ///             // This directory and those below it are in a repository.
    ///             *dir.state_mut() = Some(depth);
    ///         }
    ///     }
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// Costs: one clone for each directory that is not the last of its parent's (with second visits, for each), and the
    /// size of the state for each level. On several threads, one clone more for each thread, and one or two for each part of the
    /// work that it splits off; with second visits also one for each level from the root to such a part.
    pub fn with_state<T>(self, of_root: T) -> WalkDirsOptions<T> {
        let Self { options, buffer_capacity, .. } = self;
        WalkDirsOptions { options, buffer_capacity, state: of_root }
    }

    fn begin(self, roots: Roots, path: &[u8]) -> WalkDirs<S> {
        let mut part = Part::new(self.options, self.state);
        part.cursor.begin(roots, path);
        WalkDirs { part, buffer: Buffer::with_capacity(self.buffer_capacity) }
    }
}
