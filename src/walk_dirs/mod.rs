//! `WalkDirs`, `WalkDirsOptions`, `walk_dirs`: the directories of a tree, in one loop.
//!
//! This module is the public contract of the walk. It does not know which directory comes next, nor
//! how a directory is opened or read: see [`part`].
//!
//! These are the system calls of a directory that fits into the buffer:
//!
//! ```text
//! a directory                             openat2, getdents64 twice, close
//! where the last entry is marked          openat2, getdents64, close
//! a root                                  an fstatfs more; on NFS also a statx and mountinfo
//! on another mount than its parent        an openat more, and what a root takes more
//! on btrfs, or an overlay                 an lseek more
//! without permission to read it           openat2, openat, close
//! an entry of unknown type, or on NFS 3   a statx, unless the caller has queried it
//! a level that was closed and reopened    5 more
//! the first error of openat2 in a walk    openat2 of `.` and close more
//! ```

mod batch;
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
use std::path::Path;

/// Walks the tree at `path`, directory by directory, with the default options.
///
/// ```
/// let mut walk = lendir::walk_dirs("/sys/class")?;
/// while let Some(mut dir) = walk.next_or_report(|error| eprintln!("{error}")) {
///     match dir.count() {
///         Ok(count) => println!("{count} entries in {:?}", dir.path()),
///         Err(error) => eprintln!("{error}"),
///     }
/// }
/// # Ok::<(), lendir::Error>(())
/// ```
///
/// # Errors
///
/// The same as for [`WalkOptions::open`](crate::WalkOptions::open).
pub fn walk_dirs(path: impl AsRef<Path>) -> Result<WalkDirs, Error> {
    WalkDirs::options().open(path)
}

/// An iterator over the directories of a tree. Each call to [`next`](Self::next) yields a [`Dir`],
/// which in turn yields its entries.
///
/// ```
/// let mut walk = lendir::walk_dirs(".")?;
/// let mut count = 0;
/// while let Some(mut dir) = walk.next_or_report(|error| eprintln!("{error}")) {
///     while let Some(entry) = dir.next_or_report(|error| eprintln!("{error}")) {
///         if entry.name() == b".git" {
///             entry.skip_subtree();
///         }
///         count += 1;
///     }
/// }
/// println!("{count} entries");
/// # Ok::<(), lendir::Error>(())
/// ```
///
/// A [`walk`](crate::walk()) is shorter, but some programs work on directories rather than on
/// entries. A `WalkDirs` shows you all entries before you choose subdirectories
/// ([`Dir::read_into`]), comes back after the contents
/// ([`second_visits`](WalkDirsOptions::second_visits)), hands a value down the tree
/// ([`with_state`](WalkDirsOptions::with_state)), and runs on many threads
/// ([`run_parallel`](Self::run_parallel)).
///
/// # Guarantees
///
/// What a [`Walk`](crate::Walk#guarantees) guarantees about links, errors and depth holds here as
/// well. Besides:
///
/// - **Order.** A directory comes before its subdirectories, and everything below one subdirectory
///   before the next. Entries are in the kernel's order or, after [`Dir::read_into`], in the order
///   of the [`Listing`](crate::Listing).
/// - **A directory is opened when it is yielded**, not when its entry is. You can `chmod` it
///   before.
/// - **You may leave a `Dir` early.** The walk reads on from there to find the subdirectories that
///   you have not seen, or reports why it cannot.
/// - **A directory that you have no permission to read is yielded**, and the error comes when you
///   read it. A read error comes after the entries before it.
/// - **Each directory that a `Walk` enters once is yielded once**, or twice with
///   [`second_visits`](WalkDirsOptions::second_visits).
///
/// [`Walk`](crate::Walk#changing-the-tree) says which loops may change the tree that they list.
/// Here, [`Dir::read_into`] does what sorting does there.
///
/// # Performance
///
/// A directory that fits into the buffer takes four system calls: `openat2`, two `getdents64`, and
/// `close`. On ext4, tmpfs (Linux 6.14), sysfs and cgroup2, which mark the last entry, it takes
/// three. Where the kernel does not tell the type of an entry, the walk asks for it, and passes
/// over one that is gone.
///
/// Once the buffer, the path and the memory for names have grown, a directory allocates only if it
/// fails, is the target of a link, is closed early, or begins a mount of NFS.
#[doc(alias("fts", "nftw", "walkdir", "du", "lending", "toctou"))]
#[must_use = "a walk is lazy: nothing is read before `next`"]
pub struct WalkDirs<S = ()> {
    part: Part<S>,
}

impl WalkDirs {
    /// Starts from the default options, like [`WalkDirsOptions::new`].
    pub fn options() -> WalkDirsOptions {
        WalkDirsOptions::new()
    }
}

impl<S: Clone> WalkDirs<S> {
    /// Advances to the next directory, or returns `None` if no directory remains. The root comes
    /// first.
    ///
    /// [`next_or_report`](Self::next_or_report) is the usual loop, and
    /// [`Entries::next`](crate::Entries::next) warns of one that loses errors.
    ///
    /// # Errors
    ///
    /// Each error has the path of the directory that it is about, and the next call continues. If a
    /// directory cannot be opened ([openat2(2)]):
    ///
    /// - `ENOENT`, `ESRCH`: the directory or its process [is gone](Error::is_gone).
    /// - `EACCES`: you have no permission to search the parent.
    /// - `ENOTDIR`: another file has replaced the directory.
    /// - `ELOOP`: a [followed link](crate::DirEntry::follow) makes a loop.
    /// - `EMFILE`, `ENFILE`: no descriptor is left.
    /// - `ESTALE`: an NFS server no longer knows the directory.
    ///
    /// And if the walk cannot go on as planned:
    ///
    /// - A directory that was closed early is [lost](crate::WalkOptions::max_open).
    /// - You dropped a [`Dir`] before its end, and the walk cannot read the rest: the errors of
    ///   [`Dir::next`].
    /// - A root of [`open_all`](WalkDirsOptions::open_all) cannot be opened: the errors of
    ///   [`WalkOptions::open`](crate::WalkOptions::open).
    /// - A name that you passed to [`Dir::enter_name`] cannot be entered.
    ///
    /// [openat2(2)]: https://man7.org/linux/man-pages/man2/openat2.2.html
    #[inline(always)]
    pub fn next(&mut self) -> Result<Option<Dir<'_, S>>, Error> {
        // Everything from `openat2` to the first `getdents64` stays in the caller's frame: see
        // `Entries::find`.
        Ok(if self.part.advance()? { Some(Dir::visit(&mut self.part)) } else { None })
    }

    /// Advances to the next directory, or returns `None` if no directory remains. Each error on the
    /// way is passed to `on_error`, and the walk continues. One closure can take the errors of the
    /// walk and of its directories:
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
        skip_errors(|| self.part.advance(), on_error).then(|| Dir::visit(&mut self.part))
    }

    /// Walks on several threads. Each runs `work`, the usual loop, on a [`Worker`] of its own, and
    /// the results come back in the order of [`Worker::index`].
    ///
    /// ```
    /// let counts = lendir::walk_dirs("/sys/class")?.run_parallel(2, |worker| {
    ///     let mut count = 0;
    ///     while let Some(mut dir) = worker.next_or_report(|error| eprintln!("{error}")) {
    ///         while let Some(_entry) = dir.next_or_report(|error| eprintln!("{error}")) {
    ///             count += 1;
    ///         }
    ///     }
    ///     count
    /// });
    /// println!("{} entries", counts.into_iter().sum::<u64>());
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// The compiler warns if you drop the results, because the error of a `?` in `work` is in them.
    /// If `work` returns nothing, write `let _ =`.
    ///
    /// # Number of threads
    ///
    /// How many threads help depends on what they wait for. If your work keeps the cores busy, pass
    /// their number; the calling thread counts. If a server has to answer, pass the number of calls
    /// that it answers at once, perhaps hundreds. 0 means one for each core that this process may
    /// use, but at least 8, because threads that wait for a disk need no core. Beyond 8, a walk
    /// that only reads names in small directories gains nothing: opening and closing them locks the
    /// process's one table of descriptors.
    ///
    /// Threads start on demand. A small tree, or a system that refuses threads, gets fewer closures
    /// (and results) than you asked for: never make one wait for another. A new thread inherits the
    /// CPU affinity and the signal mask of the thread that starts it, which can be any.
    ///
    /// Only one thread reads a directory, however large. [A
    /// recipe](crate::recipes#files-on-all-cores) spreads its files.
    ///
    /// # Order
    ///
    /// Each directory goes to exactly one thread, and you cannot know which. It still comes before
    /// the directories below it, and its [second visit](WalkDirsOptions::second_visits) after
    /// theirs.
    ///
    /// # How the walk ends
    ///
    /// - [`Worker::next`] returns `None` on all threads once nothing is left to enter.
    /// - A closure that returns early, for example by `?`, leaves the walk. The other threads walk
    ///   what it had not entered, but the rest of its last directory is not yielded. The closure's
    ///   thread stays until the threads that it has started end.
    /// - [`Worker::stop`] ends the walk on all threads. So does a panic, which `run_parallel`
    ///   passes on when all threads have returned.
    ///
    /// A thread without work waits inside `next` until another thread gives it some. Do not hold a
    /// lock across `next` if another closure needs it: both would wait forever.
    ///
    /// # Performance
    ///
    /// Each thread has a [buffer](WalkDirsOptions::buffer_capacity) and up to
    /// [`max_open`](crate::WalkOptions::max_open) descriptors, which for 64 threads exceeds a
    /// `ulimit -n` of 1024: lower `max_open` then. Below 256, fewer threads start, and each holds
    /// fewer directories open.
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
        parallel::run(self.part, threads, work)
    }
}

debug!([S] WalkDirs<S>, |walk|
    path: walk.part.cursor.path.as_path(), options: walk.part.cursor.options);

/// Configures a [`WalkDirs`]. Begin with [`new`](Self::new) or [`WalkDirs::options`], set what you
/// need, and let [`open`](Self::open), [`open_all`](Self::open_all) or [`from_fd`](Self::from_fd)
/// make the walk.
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
///
/// The options that a [`WalkOptions`](crate::WalkOptions) has as well are documented there.
#[derive(Clone, Debug)]
#[must_use = "it does nothing before `open`, `open_all` or `from_fd`"]
pub struct WalkDirsOptions<S = ()> {
    options: Options,
    buffer_capacity: usize,
    state: S,
}

/// Same as [`WalkDirsOptions::new`].
impl Default for WalkDirsOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl WalkDirsOptions {
    /// Starts from the default options.
    ///
    /// ```
    /// use lendir::WalkDirsOptions;
    ///
    /// let mut walk = WalkDirsOptions::new().second_visits(true).open("/sys/class")?;
    /// while let Some(dir) = walk.next()? {
    ///     println!("{:?}", dir.path());
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    pub fn new() -> Self {
        Self { options: Options::default(), buffer_capacity: Buffer::DEFAULT_CAPACITY, state: () }
    }
}

impl<S> WalkDirsOptions<S> {
    common_options! {
        WalkDirs<S>,
        /// Opens the root `path`, and makes the walk of this tree: see
        /// [`WalkOptions::open`](crate::WalkOptions::open), also for the errors.
        open,
        {}
        /// Sets the depth of the deepest entries that are yielded: see
        /// [`WalkOptions::max_depth`](crate::WalkOptions::max_depth).
        max_depth,
        /// Sets whether every symbolic link is followed: see
        /// [`WalkOptions::follow_links`](crate::WalkOptions::follow_links).
        ///
        /// [`Dir::enter_name`] then follows a link as well, and passes over a name that is gone, or
        /// is neither a directory nor a link to one.
        follow_links,
        /// Sets whether the walk fetches the metadata of each entry as soon as it has listed it:
        /// see [`WalkOptions::metadata`](crate::WalkOptions::metadata).
        ///
        /// Use it with [`run_parallel`](WalkDirs::run_parallel) if a server can send metadata
        /// together with the names, and you do not query entries in the loop that reads them.
        ///
        /// ```
        /// let mut walk = lendir::WalkDirs::options().metadata(true).open("src")?;
        /// while let Some(mut dir) = walk.next_or_report(|error| eprintln!("{error}")) {
        ///     while let Some(entry) = dir.next_or_report(|error| eprintln!("{error}")) {
        ///         match entry.metadata() {
        ///             Ok(metadata) => println!("{:8} {:?}", metadata.len(), entry.path()),
        ///             Err(error) => eprintln!("{error}"),
        ///         }
        ///     }
        /// }
        /// # Ok::<(), lendir::Error>(())
        /// ```
        ///
        /// # Performance
        ///
        /// A directory of more than a few hundred entries is read in batches of 256 KiB, so each
        /// thread can take up to 2 MiB.
        metadata,
        /// Sets whether the walk stays on the mount of each root: see
        /// [`WalkOptions::same_mount`](crate::WalkOptions::same_mount).
        same_mount,
        /// Sets whether a root that is a symbolic link is followed: see
        /// [`WalkOptions::follow_root_links`](crate::WalkOptions::follow_root_links).
        follow_root_links,
        /// Sets how many directories each thread may hold open at once: see
        /// [`WalkOptions::max_open`](crate::WalkOptions::max_open).
        max_open,
        /// Sets whether directories keep their access times: see
        /// [`WalkOptions::no_atime`](crate::WalkOptions::no_atime).
        no_atime,
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
    /// A directory can be removed, renamed or summed up only after its contents. At the second
    /// visit [`Dir::remove_dir`] removes it, and [`Dir::parent_and_name`] returns what `renameat`
    /// needs. [`Dir::is_second_visit`] tells the visits apart.
    ///
    /// ```
    /// let mut walk = lendir::WalkDirs::options().second_visits(true).open("src")?;
    /// while let Some(dir) = walk.next_or_report(|error| eprintln!("{error}")) {
    ///     let visit = if dir.is_second_visit() { "end" } else { "begin" };
    ///     println!("{visit} {:?}", dir.path());
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// Only a directory that is [lost](crate::WalkOptions::max_open) has no second visit. On
    /// several threads, the second visit begins when the second visits of all directories below
    /// have ended. The last one of all sees everything that the closures wrote.
    ///
    /// A root that you pass as a path is opened through its parent, whose descriptor stays open
    /// until the next root begins or the walk is dropped. Drop the walk before you unmount that
    /// file system.
    ///
    /// # Performance
    ///
    /// Every directory on the path keeps its descriptor until its second visit, and a tree deeper
    /// than [`max_open`](crate::WalkOptions::max_open) makes the walk close and reopen directories.
    #[doc(alias(
        "depth_first",
        "contents_first",
        "post_order",
        "remove",
        "delete",
        "remove_dir_all"
    ))]
    pub fn second_visits(mut self, yes: bool) -> Self {
        self.options.second_visits = yes;
        self
    }

    /// Sets the size in bytes of each thread's buffer, with the bounds of a
    /// [`Buffer`](crate::Buffer). The default is [`Buffer::DEFAULT_CAPACITY`], 32 KiB, which says
    /// when to ask for more. The positions of the names in it take a third more.
    ///
    /// ```
    /// let mut walk = lendir::WalkDirs::options().buffer_capacity(1 << 20).open("/sys/class")?;
    /// while let Some(mut dir) = walk.next()? {
    ///     println!("{} entries", dir.count()?);
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    pub fn buffer_capacity(mut self, bytes: usize) -> Self {
        self.buffer_capacity = bytes;
        self
    }

    /// Hands a value of yours down the tree. By default there is none.
    ///
    /// ```
    /// let mut walk = lendir::WalkDirs::options().with_state(false).open("/usr/share/doc")?;
    /// while let Some(mut dir) = walk.next_or_report(|error| eprintln!("{error}")) {
    ///     if dir.name() == b"examples" {
    ///         *dir.state_mut() = true; // for this directory and all below it
    ///     }
    ///     if *dir.state() {
    ///         println!("{:?}", dir.path());
    ///     }
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// Each root starts with a clone of `of_root`, and each directory with a clone of whatever
    /// [state](Dir::state) its parent was left with. **Forget to set it, and the child keeps its
    /// parent's**, even if an error made you skip that line. A copy program then gives it the wrong
    /// mode. At its second visit a directory has its own state again.
    ///
    /// Values go down the tree, but sums go up. Put an [`Arc`](std::sync::Arc) into the state for
    /// that, and add at second visits, as [a recipe](crate::recipes#sizes-on-all-cores)
    /// does. Descriptors in a state do not count for [`max_open`](Self::max_open).
    ///
    /// If you catch a panic of the state's `clone`, the walk continues and misses nothing. A panic
    /// of its `drop` can swallow an error of the walk.
    ///
    /// # Performance
    ///
    /// The state is cloned once for each directory, and up to twice more for each that
    /// [`run_parallel`](WalkDirs::run_parallel) passes to another thread, with second visits also
    /// for those above it.
    #[doc(alias = "copy")]
    pub fn with_state<T>(self, of_root: T) -> WalkDirsOptions<T> {
        let Self { options, buffer_capacity, .. } = self;
        WalkDirsOptions { options, buffer_capacity, state: of_root }
    }

    fn begin(self, roots: Roots, path: &Path) -> WalkDirs<S> {
        let mut part = Part::new(self.options, self.state, self.buffer_capacity);
        part.cursor.begin(roots, path);
        WalkDirs { part }
    }
}
