//! `Walk`: a tree, directory by directory, and the contract of the walk.

mod dir;
mod handover;
mod identity;
mod level;
mod levels;
mod links;
mod mounts;
mod open;
mod options;
mod path;
mod pending;
mod share;
mod shared;
mod spread;
mod way_back;

pub use dir::Dir;

use crate::Buffer;
use crate::error::Error;
use crate::sync::Arc;
#[cfg(doc)]
use crate::{EndMarker, Entries, Entry, Listing};
use dir::Unread;
use levels::{Levels, Step};
use options::Options;
use rustix::fd::OwnedFd;
use spread::Worker;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::{fmt, io, mem};

/// A tree, directory by directory: the walk lends directories, and a directory lends the same [`Entry`] as [`Entries`].
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
/// # What holds
///
/// - **Order.** A directory is lent before those below it, depth first, and its entries stand together, as in `ls -R`.
///   Directories and entries come in the kernel's order, or, after [`Dir::read_into`], in that of the [`Listing`]. With
///   [`post_order`](Self::post_order), each directory is lent once more after everything below it.
/// - **A directory is opened when `next` comes to it**, not when its entry is lent: the caller can `chmod` it first.
/// - **Nothing is hidden.** If a [`Dir`] is dropped before its end, `next` reads the rest, to find the directories in it.
///   [`Dir::skip_all`] says that it need not.
/// - **It never leaves the tree.** Each step opens one name, relative to the directory that was read, and refuses symbolic
///   links (`O_NOFOLLOW`). Links are lent and not followed, except the root's own path. If others swap directories for links,
///   or move them, while the walk is on, it misses them or reports an error. Only [`Dir::follow_entry`] and
///   [`Dir::follow_name`] follow a link, where the caller says so, and below it this promise begins again at the directory that
///   the link led to.
/// - **Unknown types are opened.** Where the directory does not say whether an entry is a directory
///   ([`FileType::Unknown`](crate::FileType::Unknown)), opening it finds out; there is no `fstatat`. Whatever answers
///   `ENOTDIR` or `ELOOP` then is passed over. An entry that was a directory, and no longer is when the walk opens it, is an
///   error, `ENOTDIR`: it was replaced.
/// - **Errors end nothing.** Each comes once, as an [`Error`] with its path, after the entries that were read before it.
///   The next call goes on with the rest of the tree.
/// - **Any depth**: no recursion, no path given to the kernel, and at most [`max_open`](Self::max_open) descriptors.
///
/// While others change the tree, a directory that stays where it is, below directories that stay, is lent exactly once, if the
/// kernel returns its entry exactly once: see [the crate's
/// page](crate#what-the-kernel-promises-while-others-change-the-directory). If a directory is moved while the walk is below
/// it, the walk goes on in it, under its old path.
///
/// A tree that nobody changes comes to an end: directories have no hard links, and bind mounts are finite. A FUSE server can
/// invent levels without end, and so can a process that makes directories faster than the walk reads them.
/// [`Dir::depth`] tells how deep it is, and [`max_depth`](Self::max_depth) bounds it.
///
/// # What it costs
///
/// | | system calls |
/// |---|---|
/// | a directory that fits into the [`Buffer`], with an [`EndMarker`] on its file system | 3: `openat2`, `getdents64`, `close` |
/// | one where it has none | 4: a second `getdents64` |
/// | the root | `openat` instead of `openat2`, and an `fstatfs` more, for its `EndMarker` |
/// | a directory on another mount | an `openat` and an `fstatfs` more, for the `EndMarker` there |
/// | an entry of unknown type that is no directory | 1: `openat2` |
/// | a level closed early, for lack of descriptors | 4 more: `statx`, `close`, then `openat` and `statx` to come back |
///
/// `openat2` with `RESOLVE_NO_XDEV` tells that a directory is on the mount of the one above it, so the `EndMarker` still holds.
/// Before Linux 5.6, under seccomp filters that refuse it with `ENOSYS` or `EPERM`, and on Android, `openat` takes its place
/// and no `EndMarker` is passed down: 4 calls a directory.
///
/// | in memory, which doubles when it grows | bytes |
/// |---|---|
/// | the [`Buffer`] | 32 KiB |
/// | the path of the directory at hand | its length |
/// | each level above it that has directories left to do; in post-order each level | 64, and the size of its value |
/// | one of these that was closed early | 56 more |
/// | the names of directories left to do | their length and 2 each, at most twice as many as are left |
///
/// A huge directory of files takes no memory but the name of one symbolic link in it, and a chain of directories none but its
/// path. Nothing is allocated once the memory has grown to what the tree takes; [`reset`](Self::reset) and
/// [`reopen`](Self::reopen) keep it for the next tree.
#[doc(alias = "fts")]
#[doc(alias = "nftw")]
#[doc(alias = "walkdir")]
#[must_use = "a walk is lazy: nothing is read before `next`"]
pub struct Walk<S = ()> {
    buffer: Buffer,
    levels: Levels<S>,
    of_the_root: S,
    /// `Some` for a thread of [`spread`](Self::spread).
    worker: Option<Arc<Worker<S>>>,
}

impl Walk {
    /// A walk of the tree at `path`. The paths that it lends begin with `path`, as it is written here.
    ///
    /// If `path` is a symbolic link to a directory, that directory is the root.
    ///
    /// Costs: one `openat`, and the memory of [`new`](Self::new).
    ///
    /// # Errors
    ///
    /// Those of [`open`](crate::open), with the path: `ENOENT` for nothing or a dangling link, `ENOTDIR` for a file or a FIFO,
    /// `EACCES` for a directory that may not be read.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref().as_os_str().as_bytes();
        let root = crate::open(path).map_err(|error| Error::new(path, 0, error.into_io_error()))?;
        Ok(Self::begin(root, path))
    }

    /// A walk of the tree at `root`, from [`open`](crate::open) or [`openat`](crate::openat). The paths that it lends begin
    /// with `path`, which nothing looks up; with `""` they are relative to the root.
    ///
    /// The root is read from its current position: **a descriptor that was read before gives an empty root, without an error**.
    ///
    /// Costs: three allocations, for the [`Buffer`], the path and the first level; the rest of the memory comes with the tree.
    pub fn new(root: impl Into<OwnedFd>, path: impl AsRef<Path>) -> Self {
        Self::begin(root.into(), path.as_ref().as_os_str().as_bytes())
    }

    fn begin(root: OwnedFd, path: &[u8]) -> Self {
        let mut walk = Self::default();
        walk.levels.begin(root, path);
        walk
    }
}

/// A walk without a tree: [`next`](Walk::next) is `None` until [`reopen`](Walk::reopen) or [`reset`](Walk::reset) begins one.
impl Default for Walk {
    fn default() -> Self {
        Self { buffer: Buffer::new(), levels: Levels::new(Options::default()), of_the_root: (), worker: None }
    }
}

impl<S> Walk<S> {
    /// Carries a value down the tree. The root begins with `of_the_root`, and each directory with a clone of its parent's
    /// value, as the caller left it there. [`Dir::state`] and [`Dir::state_mut`] give it. At its second visit a directory has
    /// its own value again.
    ///
    /// The value follows the work to other threads, and outlives a level's descriptor. In an [`Arc`](std::sync::Arc) it also
    /// carries sums up, as in the example `du`. Here it carries the depth of the nearest `.git` down:
    ///
    /// ```
    /// use lendir::Walk;
    ///
    /// let mut walk = Walk::open("/usr/share/doc")?.with_state(None);
    /// while let Some(mut dir) = walk.next_ok(|error| eprintln!("{error}")) {
    ///     let depth = dir.depth();
    ///     while let Some(entry) = dir.next_ok(|error| eprintln!("{error}")) {
    ///         if entry.name() == b".git" {
    ///             *dir.state_mut() = Some(depth); // this directory and those below it are in a repository
    ///         }
    ///     }
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// Call it before the first [`next`](Self::next): a tree that has begun is abandoned. [`reset`](Self::reset) and
    /// [`reopen`](Self::reopen) begin with a clone of `of_the_root` again.
    ///
    /// Costs: one clone for each directory that is not the last of its parent's (in post-order, for each directory), and the
    /// size of the value for each level. Without a value, nothing.
    pub fn with_state<T>(mut self, of_the_root: T) -> Walk<T> {
        self.leave();
        let levels = mem::replace(&mut self.levels, Levels::new(Options::default()));
        Walk { buffer: mem::take(&mut self.buffer), levels: levels.with_values_of(), of_the_root, worker: None }
    }

    /// Begins the tree at `root` as [`new`](Self::new) does, in the same memory and with the same options. The previous tree
    /// may be unfinished.
    ///
    /// ```
    /// use lendir::Walk;
    ///
    /// let mut walk = Walk::open("/sys/class")?;
    /// for path in ["/sys/bus", "/sys/block"] {
    ///     let mut directories = 0;
    ///     while let Some(_dir) = walk.next()? {
    ///         directories += 1;
    ///     }
    ///     println!("{directories} directories");
    ///     walk.reopen(path)?;
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// In a closure of [`spread`](Self::spread), the rest of the previous tree goes to the other threads. Its descriptors stay
    /// open, in addition to theirs, until one of them takes it. This thread walks the new tree alone, and nobody waits for it.
    ///
    /// Costs: the descriptors of the previous tree are closed; no allocation.
    pub fn reset(&mut self, root: impl Into<OwnedFd>, path: impl AsRef<Path>) {
        self.leave();
        self.levels.begin(root.into(), path.as_ref().as_os_str().as_bytes());
    }

    /// Begins the tree at `path` as [`open`](Self::open) does, in the same memory and with the same options.
    ///
    /// Costs: as [`reset`](Self::reset), and one `openat`.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open). The previous tree is abandoned then too, and [`next`](Self::next) is `None`.
    pub fn reopen(&mut self, path: impl AsRef<Path>) -> Result<(), Error> {
        self.leave();
        self.levels.clear();
        let path = path.as_ref().as_os_str().as_bytes();
        let root = crate::open(path).map_err(|error| Error::new(path, 0, error.into_io_error()))?;
        self.levels.begin(root, path);
        Ok(())
    }

    /// Stays on the mount of the root: the directory that a file system is mounted on is lent as an entry and not entered.
    ///
    /// A bind mount is not entered either, even if it shows the same file system. A btrfs subvolume is entered, because it is
    /// not a mount. `find -xdev` does the opposite of both, because it compares `st_dev`.
    ///
    /// A directory whose opening is refused with `EXDEV` is passed over in silence, even if it is a FUSE server that says so.
    /// To name the directories that were passed over, ask each directory's entry by [`Entry::statx`] whether it is the root of
    /// a mount (`STATX_ATTR_MOUNT_ROOT`, since Linux 5.8), as the example `rm -x` does.
    ///
    /// Costs: nothing, where there is `openat2`: [`RESOLVE_NO_XDEV`] refuses mount points by itself. Elsewhere one `statx` more
    /// for each directory. Before Linux 5.8 that can tell devices only, so bind mounts of the same file system are entered.
    ///
    /// [`RESOLVE_NO_XDEV`]: https://man7.org/linux/man-pages/man2/openat2.2.html
    #[doc(alias = "xdev")]
    #[doc(alias = "same_file_system")]
    pub fn same_mount(mut self, yes: bool) -> Self {
        self.levels.stay_on_mount(yes);
        self
    }

    /// Lends each directory once more, after everything below it: see [`Dir::is_second_visit`] and [`Dir::parent`]. If it is
    /// set after the root was lent, it holds from the next tree on.
    ///
    /// A directory that cannot be opened for reading has its error, and then its second visit, if it is still there and
    /// descriptors have not run out.
    ///
    /// Costs: a level keeps its descriptor until its second visit, so in a tree deeper than [`max_open`](Self::max_open)
    /// the walk closes levels early.
    #[doc(alias = "depth_first")]
    #[doc(alias = "contents_first")]
    pub fn post_order(mut self, yes: bool) -> Self {
        self.levels.options.post_order = yes;
        self
    }

    /// Sets how many descriptors the walk may hold at once: 32 by default, and 4 at least.
    ///
    /// It holds one for the current directory, and one for each level above that has directories left to do (in post-order, for
    /// each level). Beyond the limit it closes the shallowest levels, and reopens them by `..` on the way back. It believes
    /// `..` only if the device, inode number and birth time are those of the directory that it closed, and under
    /// [`same_mount`](Self::same_mount) the mount too. Otherwise it goes down by names from the topmost level, which stays
    /// open. If neither leads there, the level was moved or removed. That is one error: `ENOENT`, `ENOTDIR` if something else
    /// has its name, `EACCES` if a directory on the way can no longer be searched, or `EMFILE` or `ENFILE` if no descriptor is
    /// left to reopen it. The rest of that level is skipped, including its second visit.
    ///
    /// Birth times are only as fine as the clock's tick. So before the walk closes a level that is less than 11 ms old, it
    /// sleeps for 11 ms. Where there is no birth time, a directory that was removed and replaced by one of the same inode
    /// number is taken for the same: see `SECURITY.md`.
    ///
    /// When the process (`EMFILE`) or the system (`ENFILE`) runs out of descriptors on the way down, the walk does the same,
    /// and keeps fewer from then on.
    pub fn max_open(mut self, descriptors: usize) -> Self {
        self.levels.limit_open(descriptors);
        self
    }

    /// Lends no entries deeper than `depth`, like `find -maxdepth`: with 1 only those of the root, with 0 the root and no
    /// entries.
    pub fn max_depth(mut self, depth: usize) -> Self {
        self.levels.options.max_depth = depth;
        self
    }
}

impl<S: Clone> Walk<S> {
    /// Opens the next directory and lends it; the root first. `None` when nothing is left.
    ///
    /// **`while let Ok(Some(dir)) = walk.next()` ends silently at the first error**; `?` ends there too, and returns it. An
    /// ordinary user would see only a few directories of /proc. [`next_ok`](Self::next_ok) is the usual loop.
    ///
    /// Costs: `openat2`, and `close` for a level that is done; see [the table](Self#what-it-costs). A [`Dir`] that was dropped
    /// before its end is read to its end first. It allocates only while its memory grows, for an error, and to read such a
    /// `Dir` again.
    ///
    /// # Errors
    ///
    /// - Those of [`openat`](crate::openat) for the next directory: `EACCES` if it may not be read, `ENOENT` if it is gone by
    ///   now, `ENOTDIR` (`ELOOP` on old kernels) if it was replaced. Under [`same_mount`](Self::same_mount), where `openat2` is
    ///   refused, those of `statx` too.
    /// - Those of `lseek` and of [`Entries::next`] for the rest of a [`Dir`] that was dropped midway.
    /// - `ENOENT` and others for a level that cannot be reopened: see [`max_open`](Self::max_open).
    ///
    /// Each comes once, and the next call goes on.
    #[allow(clippy::should_implement_trait, reason = "`Iterator` cannot lend")]
    #[allow(clippy::inline_always, reason = "see below")]
    #[inline(always)]
    pub fn next(&mut self) -> Result<Option<Dir<'_, S>>, Error> {
        // Everything from `openat2` to the first `getdents64` stays in the caller's frame: see `Entries::find`.
        Ok(if self.advance()? { Some(self.lend()) } else { None })
    }

    /// The next directory that can be opened. `on_error` gets each error before it, and none of them ends the walk.
    ///
    /// ```
    /// let mut walk = lendir::Walk::open("/proc/self")?;
    /// while let Some(mut dir) = walk.next_ok(|error| eprintln!("{error}")) {
    ///     while let Some(entry) = dir.next_ok(|error| eprintln!("{error}")) {
    ///         println!("{}", entry.path().display());
    ///     }
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// Costs: as [`next`](Self::next), for each directory that it tries.
    #[allow(clippy::inline_always, reason = "see `next`")]
    #[inline(always)]
    pub fn next_ok(&mut self, mut on_error: impl FnMut(Error)) -> Option<Dir<'_, S>> {
        loop {
            match self.advance() {
                Ok(true) => return Some(self.lend()),
                Ok(false) => return None,
                Err(error) => on_error(error),
            }
        }
    }

    /// Walks on several threads: each runs `work`, the usual loop, on a `Walk` of its own. Returns what they return.
    ///
    /// [`next`](Self::next) lends each directory to exactly one of the threads, and is `None` for all of them once nothing is
    /// left. Which thread gets a directory is left to chance. So is the order, except that a directory is lent before those
    /// below it, and under [`post_order`](Self::post_order) once more after them. To add up, let each thread return its part
    /// and fold:
    ///
    /// ```
    /// use lendir::{Error, Walk};
    ///
    /// let parts = Walk::open("/sys/class")?.spread(2, |walk| {
    ///     let mut count = 0;
    ///     while let Some(mut dir) = walk.next()? {
    ///         while let Some(_entry) = dir.next()? {
    ///             count += 1;
    ///         }
    ///     }
    ///     Ok::<u64, Error>(count)
    /// });
    /// let mut count = 0;
    /// for part in parts {
    ///     count += part?;
    /// }
    /// # assert!(count > 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// [`next`](Self::next) waits where another thread is busy and this one has nothing to do. So do not hold a lock across
    /// `next` that another closure needs. A closure that waits for the others without calling `next` hangs them all, because
    /// they wait for it in turn. So does a pool of threads that call `spread` with closures that use the same pool (rayon, two
    /// threads): no thread is left for what the closures wait for.
    ///
    /// If a closure returns early, the directories left to its thread go to the others: an error that `?` returns ends one
    /// thread, not the walk. The same happens if a closure puts another walk in the place of its own, or drops it. Once all
    /// closures have returned, the walk is over, and what is left is not walked; **a walk that was moved out of its closure
    /// lends nothing more**. [`Dir::stop`] ends it for all. A panic in one of them ends it for all, and is passed on once they
    /// have returned.
    ///
    /// `threads` 0 takes one for each core that this process may use. More pay where each call waits: on network file systems,
    /// and on FUSE (with 1 ms a call, 16 threads take a tenth of the time of one). A local disk gains nothing beyond about 8,
    /// a rotating one nothing beyond the first. A chain of directories, or one huge directory, is read by one thread at a time.
    ///
    /// Costs: `threads - 1` threads, as one of them is the caller's; for each a [`Buffer`], at most
    /// [`max_open`](Self::max_open) descriptors, and one more for what another thread gives it; in post-order, one for the
    /// root. A thread without work raises a flag and sleeps. Another one, which looks at the flag once a directory, gives it
    /// half of the directories that are left at its shallowest open level, with a copy of their names, the part of the path
    /// that has not been given before, and a duplicate of that level's descriptor; in post-order with a `statx` and an
    /// allocation for each level above that no thread shares yet. One thread costs what [`next`](Self::next) costs without
    /// this. If a thread cannot be started, the walk continues with fewer threads and returns fewer results.
    #[doc(alias = "build_parallel")]
    pub fn spread<R: Send>(self, threads: usize, work: impl Fn(&mut Self) -> R + Sync) -> Vec<R>
    where
        S: Send,
    {
        spread::spread(self, threads, work)
    }

    /// Goes to the next directory. Returns whether there is one.
    #[allow(clippy::inline_always, reason = "see `next`")]
    #[inline(always)]
    fn advance(&mut self) -> Result<bool, Error> {
        if matches!(self.levels.unread, Unread::Nothing) || !self.resume()? {
            if self.worker.as_ref().is_some_and(|worker| worker.is_asked()) {
                self.give_share();
            }
            loop {
                match self.levels.step()? {
                    Step::AtHand => break,
                    Step::More => {}
                    Step::Done => match self.take_work()? {
                        Step::AtHand => break,
                        Step::More => {}
                        Step::Done => return Ok(false),
                    },
                }
            }
        }
        Ok(true)
    }

    /// Reads what is unread of the current directory. Returns whether that is the root, which has yet to be lent.
    #[cold]
    #[inline(never)]
    fn resume(&mut self) -> Result<bool, Error> {
        if self.worker.as_ref().is_some_and(|worker| worker.is_over()) {
            self.levels.clear();
        }
        match mem::replace(&mut self.levels.unread, Unread::Nothing) {
            Unread::Nothing => {}
            Unread::Root => {
                self.levels.enter_root(self.of_the_root.clone());
                return Ok(true);
            }
            Unread::All => self.lend().read_for_directories(&BTreeSet::new())?,
            Unread::Rest => {
                let noted = self.levels.rewind()?;
                self.lend().read_for_directories(&noted.names().collect())?;
            }
            Unread::OutOfMemory => return Err(self.levels.error(io::ErrorKind::OutOfMemory)),
            Unread::Stopped => self.stop(),
        }
        Ok(false)
    }

    #[allow(clippy::inline_always, reason = "see `next`")]
    #[inline(always)]
    fn lend(&mut self) -> Dir<'_, S> {
        Dir::lend(self.levels.at_hand(), &mut self.buffer)
    }
}

impl<S> Drop for Walk<S> {
    /// If the caller puts another walk in its place, a thread of [`spread`](Self::spread) leaves the rest to the others.
    #[inline]
    fn drop(&mut self) {
        if self.worker.is_some() {
            self.leave();
        }
    }
}

impl<S> fmt::Debug for Walk<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Walk");
        shown.field("path", &Path::new(OsStr::from_bytes(self.levels.path())));
        shown.field("depth", &self.levels.depth()).field("options", &self.levels.options).finish_non_exhaustive()
    }
}
