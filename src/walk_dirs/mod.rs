//! `WalkDirs`, `WalkDirsOptions`, `walk_dirs`: the directories of a tree, in one loop.
//!
//! This module is the public contract of the walk. It does not know which directory comes next, nor
//! how a directory is opened or read: see [`part`].

mod dir;
mod dir_entry;
mod parallel;
mod part;
mod pending;
mod shared_level;
mod subdirs;

pub use dir::Dir;
pub use dir_entry::DirEntry;
pub use parallel::Worker;

use crate::cursor::options::{Options, common_options};
use crate::cursor::roots::Roots;
use crate::cursor::skip_errors;
use crate::error::Error;
use crate::read_dir::buffer::Buffer;
use part::Part;
use std::fmt;
use std::path::Path;

/// Walks the tree at `path`, directory by directory, with the default options.
///
/// ```
/// let mut walk = lendir::walk_dirs("/sys/class")?;
/// while let Some(mut dir) = walk.next_or_report(|error| eprintln!("{error}")) {
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

/// An iterator over the directories of a tree. Each call to [`next`](Self::next) yields a [`Dir`],
/// which in turn yields the entries of that directory.
///
/// ```
/// let mut walk = lendir::walk_dirs("/sys/class")?;
/// let mut count = 0;
/// while let Some(mut dir) = walk.next_or_report(|error| eprintln!("{error}")) {
///     while let Some(entry) = dir.next_or_report(|error| eprintln!("{error}")) {
///         if entry.name() == b".git" {
///             entry.skip_subtree();
///         }
///         count += 1;
///     }
/// }
/// # assert!(count > 0);
/// # Ok::<(), lendir::Error>(())
/// ```
///
/// [`WalkDirs::options`] configures a walk, and [`run_parallel`](Self::run_parallel) runs it on
/// several threads.
///
/// A `Dir` is valid only until the next call to `next`, so `for dir in walk` does not compile. To
/// list a tree entry by entry, use [`walk`](crate::walk()).
///
/// # Guarantees
///
/// - **Order.** A directory is yielded before its subdirectories. Everything below one subdirectory
///   comes before the next subdirectory. Entries are in the kernel's order or, after
///   [`Dir::read_into`], in the order of the [`Listing`](crate::Listing).
/// - **A directory is opened when it is yielded**, not when its entry is yielded. So the caller can
///   `chmod` it first.
/// - **Nothing is hidden.** If a [`Dir`] is dropped before its end, the walk reads the directory
///   again from the start. A directory that you have no permission to read is still yielded, and
///   the error occurs when you read it.
/// - **The walk never leaves the tree.** Each step opens one name relative to its parent and
///   refuses symbolic links, even a link that another process has just swapped in. Only
///   [`DirEntry::follow`] and [`Dir::follow_name`] follow a link.
/// - **Entries of unknown type are opened**, unless a query such as
///   [`Entry::file_type`](crate::Entry::file_type) has already returned the type. If such an entry
///   is not a directory, or is gone, the walk skips it without an error.
/// - **Errors do not end the walk.** Each error is reported once, with its path, after the entries
///   that were read before it.
/// - **The depth is not limited.** The walk does not recurse, and passes no long path to the
///   kernel.
/// - **The number of descriptors is bounded** by [`max_open`](WalkDirsOptions::max_open). The walk
///   holds two additional descriptors while it follows a link, and one additional descriptor for
///   the parent of the root with [second visits](WalkDirsOptions::second_visits).
/// - **Each directory is yielded once**, or twice with [second
///   visits](WalkDirsOptions::second_visits). If another process changes the tree, this guarantee
///   covers each directory that stays in its place and whose entry the kernel [returns
///   once](crate#what-the-kernel-promises).
///
/// # Performance
///
/// A directory that fits into the [`Buffer`](crate::Buffer) takes these system calls:
///
/// | | system calls |
/// |---|---|
/// | a directory | 4: `openat2`, `getdents64` twice, `close` |
/// | on ext4, btrfs, tmpfs (Linux 6.14), sysfs or cgroup2 | 3: `getdents64` only once |
/// | a root | an additional `fstatfs` |
/// | a directory on another mount than its parent | an additional `openat` and `fstatfs` |
/// | a directory that you have no permission to read | 3: `openat2`, `openat`, `close` |
/// | an entry of unknown type that is not a directory | 1: `openat2` |
/// | a level that is [closed early](WalkDirsOptions::max_open) and reopened | 5 additional ones |
///
/// The walk keeps the buffer, the path, each level with pending directories, and the names of these
/// directories in memory. Once this memory has grown, only errors, followed links, and levels that
/// are found again by name allocate.
#[doc(alias("fts", "nftw", "walkdir"))]
#[must_use = "a walk is lazy: nothing is read before `next`"]
pub struct WalkDirs<S = ()> {
    part: Part<S>,
    buffer: Buffer,
}

impl WalkDirs {
    /// Returns the default options.
    ///
    /// ```
    /// let mut walk = lendir::WalkDirs::options().max_depth(2).open("/sys/class")?;
    /// # assert!(walk.next()?.is_some());
    /// # Ok::<(), lendir::Error>(())
    /// ```
    pub fn options() -> WalkDirsOptions {
        WalkDirsOptions::default()
    }
}

impl<S: Clone> WalkDirs<S> {
    /// Returns the next directory, or `None` if no directory remains. The root comes first.
    ///
    /// Do not write `while let Ok(Some(dir)) = walk.next()`: that loop stops silently at the first
    /// error. [`next_or_report`](Self::next_or_report) is the usual loop.
    ///
    /// # Errors
    ///
    /// Each error has the path of the directory that it belongs to. The next call continues after
    /// the error.
    ///
    /// If a directory cannot be opened:
    ///
    /// - `ENOENT`: the directory [is gone](Error::is_gone).
    /// - `ESRCH`: the process of a directory in `/proc` is gone.
    /// - `EACCES`: you have no permission to search the parent.
    /// - `ENOTDIR`: another file has replaced the directory.
    /// - `ELOOP`: a [followed link](crate::DirEntry::follow) leads back to a directory on its own
    ///   path, or only to other links.
    /// - `EMFILE`, `ENFILE`: no descriptor is left.
    /// - `ESTALE`: an NFS server no longer knows the directory.
    ///
    /// Other errors:
    ///
    /// - If a level that was closed early cannot be found again, the errors of
    ///   [`max_open`](WalkDirsOptions::max_open).
    /// - If the previous [`Dir`] was dropped before its end, and the walk cannot read the directory
    ///   again, the errors of [`Dir::next`]. At the deepest level that
    ///   [`max_depth`](WalkDirsOptions::max_depth) allows, the walk does not read the directory
    ///   again.
    /// - If a root of [`open_all`](WalkDirsOptions::open_all) cannot be opened, the errors of
    ///   [`WalkDirsOptions::open`].
    /// - If the walk cannot enter a name that you passed to [`Dir::enter_name`] or
    ///   [`Dir::follow_name`], the errors of that method.
    #[inline(always)]
    pub fn next(&mut self) -> Result<Option<Dir<'_, S>>, Error> {
        // Everything from `openat2` to the first `getdents64` stays in the caller's frame: see
        // `Entries::find`.
        Ok(if self.part.advance(&mut self.buffer)? {
            Some(Dir::visit(&mut self.part, &mut self.buffer))
        } else {
            None
        })
    }

    /// Returns the next directory, or `None` if no directory remains. Calls `on_error` with each
    /// error before that directory, and continues.
    ///
    /// One closure can take the errors of the walk and of its directories:
    ///
    /// ```
    /// let mut errors = 0;
    /// let mut report = |error: lendir::Error| {
    ///     eprintln!("{error}");
    ///     errors += 1;
    /// };
    /// let mut walk = lendir::walk_dirs("/sys/class")?;
    /// while let Some(mut dir) = walk.next_or_report(&mut report) {
    ///     while let Some(entry) = dir.next_or_report(&mut report) {
    ///         println!("{:?}", entry.path());
    ///     }
    /// }
    /// println!("{errors} errors");
    /// # Ok::<(), lendir::Error>(())
    /// ```
    #[inline(always)]
    pub fn next_or_report(&mut self, on_error: impl FnMut(Error)) -> Option<Dir<'_, S>> {
        let Self { part, buffer } = self;
        skip_errors(|| part.advance(buffer), on_error).then(|| Dir::visit(part, buffer))
    }

    /// Walks on several threads. Each thread runs `work`, the usual loop, on a [`Worker`] of its
    /// own. Returns the results of all threads, in the order of [`Worker::index`].
    ///
    /// ```
    /// use lendir::{Error, WalkDirs};
    ///
    /// let counts = lendir::walk_dirs("/sys/class")?.run_parallel(2, |worker| {
    ///     let mut count = 0;
    ///     while let Some(mut dir) = worker.next()? {
    ///         while let Some(_entry) = dir.next()? {
    ///             count += 1;
    ///         }
    ///     }
    ///     Ok::<u64, Error>(count)
    /// });
    /// let count = counts.into_iter().sum::<Result<u64, Error>>()?;
    /// # assert!(count > 0);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// **The results contain the error of a `?` in `work`**, so the compiler warns if they are not
    /// used. If `work` returns nothing, write `let _ =`.
    ///
    /// # Number of threads
    ///
    /// `threads` is the maximum number of threads, including the calling thread. 0 means one
    /// thread for each core that this process may use, but at least 8. Threads that wait for a disk
    /// or a network need no core.
    ///
    /// - For work that keeps the cores busy, pass the number of cores.
    /// - For calls that wait for a server, pass the number of requests that the server answers at
    ///   once. This can be hundreds.
    ///
    /// A thread starts when there is a part of the work for it. So a small tree has fewer threads
    /// than `threads`, and fewer results. Do not let one closure wait for another closure, which
    /// may never begin. A narrow tree keeps few threads busy, because no two threads work on the
    /// same directory.
    ///
    /// Any thread can start the next one, which inherits its CPU affinity and signal mask. If a
    /// thread cannot be started, the walk starts no further threads, and the running threads walk
    /// the whole tree.
    ///
    /// # Order
    ///
    /// [`Worker::next`] yields each directory to exactly one thread. Which thread gets a directory,
    /// and when, is unspecified. But a directory still comes before the directories below it, and
    /// its [second visit](crate::WalkDirsOptions::second_visits) comes after their second visits.
    ///
    /// One thread reads all of a huge directory. To divide the work on its files among several
    /// threads, send the files over a channel, as [a
    /// recipe](crate::recipes#work-on-each-file-on-all-cores) does.
    ///
    /// # How the walk ends
    ///
    /// - [`Worker::next`] returns `None` on all threads once nothing is pending.
    /// - If a closure returns early, for example by `?`, only its thread ends. The other threads
    ///   walk the directories that are still pending for that thread. But the remaining entries of
    ///   the closure's last directory are not yielded.
    /// - [`Worker::stop`] ends the walk on all threads.
    /// - A panic ends the walk on all threads, too. `run_parallel` passes the panic on once all
    ///   threads have returned.
    ///
    /// A thread without work waits in `next` for a part of another thread's work. So do not hold a
    /// lock across `next` if another closure needs the lock: both threads would wait forever.
    ///
    /// # Performance
    ///
    /// - Each thread has a [`Buffer`](crate::Buffer), and holds at most
    ///   [`max_open`](crate::WalkDirsOptions::max_open) descriptors. 64 threads with 32 descriptors
    ///   each exceed a `ulimit -n` of 1024, so lower `max_open`. A part that no thread has taken
    ///   yet holds one additional descriptor.
    /// - The [state](crate::WalkDirsOptions::with_state) is cloned once or twice for each part that
    ///   a thread splits off for another one. With second visits, each level above the part takes
    ///   up to two additional clones, and each root that threads share takes an additional
    ///   descriptor.
    #[doc(alias("build_parallel", "parallel", "threads"))]
    #[must_use = "the returned values can contain the error of a `?` in a closure"]
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
        f.debug_struct("WalkDirs")
            .field("path", &self.part.cursor.path.as_path())
            .field("options", &self.part.cursor.options)
            .finish_non_exhaustive()
    }
}

/// A builder that configures a [`WalkDirs`]. [`WalkDirs::options`] returns the default options. Set
/// the options first. Then [`open`](Self::open), [`open_all`](Self::open_all) or
/// [`from_fd`](Self::from_fd) returns the walk.
///
/// ```
/// use lendir::WalkDirs;
///
/// let mut walk = WalkDirs::options().same_mount(true).max_depth(2).open("/sys/class")?;
/// while let Some(mut dir) = walk.next_or_report(|error| eprintln!("{error}")) {
///     while let Some(entry) = dir.next_or_report(|error| eprintln!("{error}")) {
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

/// Same as [`WalkDirs::options`].
impl Default for WalkDirsOptions {
    fn default() -> Self {
        Self { options: Options::default(), buffer_capacity: Buffer::DEFAULT_CAPACITY, state: () }
    }
}

impl<S> WalkDirsOptions<S> {
    common_options! {
        WalkDirs<S>,
        /// Sets whether the walk stays on the mount of each root: see
        /// [`WalkOptions::same_mount`](crate::WalkOptions::same_mount). The default is `false`.
        same_mount,
        /// Sets whether a root that is a symbolic link is followed: see
        /// [`WalkOptions::follow_root_links`](crate::WalkOptions::follow_root_links). The default
        /// is `true`.
        follow_root_links,
        /// Sets how many directories each thread may hold open at once: see
        /// [`WalkOptions::max_open`](crate::WalkOptions::max_open). The default is 32.
        max_open,
        /// Sets the depth of the deepest entries that are yielded: see
        /// [`WalkOptions::max_depth`](crate::WalkOptions::max_depth).
        max_depth,
        /// Sets whether directories keep their access times: see
        /// [`WalkOptions::no_atime`](crate::WalkOptions::no_atime). The default is `false`.
        no_atime,
        /// Opens the root `path`, and makes the walk of this tree: see
        /// [`WalkOptions::open`](crate::WalkOptions::open).
        ///
        /// # Errors
        ///
        /// The same as for [`WalkOptions::open`](crate::WalkOptions::open).
        open,
        /// Makes a walk of the trees at `paths`, one after another: see
        /// [`WalkOptions::open_all`](crate::WalkOptions::open_all).
        open_all,
        /// Makes a walk of the tree at a descriptor: see
        /// [`WalkOptions::from_fd`](crate::WalkOptions::from_fd).
        from_fd,
    }

    /// Sets whether each directory is yielded a second time, after everything below it. The default
    /// is `false`.
    ///
    /// At the second visit, a directory yields no entries. [`Dir::is_second_visit`] tells the two
    /// visits apart, and [`Dir::parent_and_name`] returns what a program needs to remove or rename
    /// the directory.
    ///
    /// ```
    /// let mut walk = lendir::WalkDirs::options().second_visits(true).open("/sys/class/net")?;
    /// while let Some(dir) = walk.next_or_report(|error| eprintln!("{error}")) {
    ///     let visit = if dir.is_second_visit() { "end" } else { "begin" };
    ///     println!("{visit} {:?}", dir.path());
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// Each first visit has a second visit, except at a level that is [lost](Self::max_open). On
    /// several threads, the second visit of a directory begins when the second visits of all
    /// directories below it have ended. So the last visit sees everything that the closures wrote
    /// at the earlier visits.
    ///
    /// A root that is opened by its path is opened through its parent directory. The parent's
    /// descriptor stays open until the walk is done with the root, and [`Dir::parent_and_name`]
    /// returns it.
    ///
    /// # Performance
    ///
    /// Every level on the current path needs a descriptor until its second visit. So in a tree
    /// deeper than [`max_open`](Self::max_open), the walk closes and reopens levels. Opening a root
    /// by its path takes an allocation, and an additional `openat` and `close`.
    #[doc(alias("depth_first", "contents_first", "post_order"))]
    pub fn second_visits(mut self, yes: bool) -> Self {
        self.options.second_visits = yes;
        self
    }

    /// Sets the size in bytes of the buffer of each thread. The default is
    /// [`Buffer::DEFAULT_CAPACITY`], 32 KiB.
    ///
    /// A larger buffer takes fewer system calls for directories of more than 1,000 entries. This
    /// matters if each call waits for the server of a FUSE file system: see
    /// [`Buffer::DEFAULT_CAPACITY`]. The size is clamped in the same way as the size of
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

    /// Sets a state that the walk passes down the tree. By default there is none.
    ///
    /// ```
    /// let mut walk = lendir::WalkDirs::options().with_state(None).open("/usr/share/doc")?;
    /// while let Some(mut dir) = walk.next_or_report(|error| eprintln!("{error}")) {
    ///     let depth = dir.depth();
    ///     while let Some(entry) = dir.next_or_report(|error| eprintln!("{error}")) {
    ///         if entry.name() == b".git" {
    ///             // This directory and those below it are in a repository.
    ///             *dir.state_mut() = Some(depth);
    ///         }
    ///     }
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// - Each root begins with a clone of `of_root`. Each directory begins with a clone of the
    ///   [`Dir::state`] that you left in its parent. So all directories in one parent begin with
    ///   the same state.
    /// - **If you do not set the state of a directory at its first visit, it keeps its parent's
    ///   state.** So set the state on every path through the loop, even after an error. Otherwise,
    ///   for example, a program that copies a tree may give a directory its parent's mode.
    /// - At its second visit, a directory has its own state again.
    /// - A state that contains an [`Arc`](std::sync::Arc) can also pass sums up the tree. Add to
    ///   the sum at second visits, as [a recipe](crate::recipes#add-up-sizes-on-all-cores) and the
    ///   example `du` do. To count per top-level directory, set an `Arc` of a counter at depth 1.
    ///   The whole subtree of the directory shares the counter.
    /// - Descriptors in a state do not count for [`max_open`](Self::max_open).
    /// - If you catch a panic of the state's `clone`, the walk can continue, and misses nothing.
    ///   After a panic of the state's `drop`, the walk can fail to report a lost level or a root
    ///   that could not be opened.
    ///
    /// # Performance
    ///
    /// The state is cloned once for each directory, except for the last directory in a parent. With
    /// second visits, the state is cloned for the last one, too. Each level keeps a state in
    /// memory. [`run_parallel`](WalkDirs::run_parallel) makes additional clones.
    pub fn with_state<T>(self, of_root: T) -> WalkDirsOptions<T> {
        let Self { options, buffer_capacity, .. } = self;
        WalkDirsOptions { options, buffer_capacity, state: of_root }
    }

    fn begin(self, roots: Roots, path: &Path) -> WalkDirs<S> {
        let mut part = Part::new(self.options, self.state);
        part.cursor.begin(roots, path);
        WalkDirs { part, buffer: Buffer::with_capacity(self.buffer_capacity) }
    }
}
