//! `Walk`: a tree, directory by directory, and the contract of the walk.

mod dir;
mod handover;
mod identity;
mod levels;
mod links;
mod mounts;
mod options;
mod path;
mod pending;
mod shared;
mod way_back;

pub use dir::Dir;

use crate::Buffer;
use crate::error::Error;
use crate::sync::Arc;
#[cfg(doc)]
use crate::{EndMarker, Entries, Entry, Listing};
use levels::{Levels, Step, Unread};
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
/// fn count(path: &str) -> std::io::Result<u64> {
///     let mut walk = lendir::Walk::open(path)?;
///     let mut count = 0;
///     while let Some(mut dir) = walk.next()? {
///         while let Some(entry) = dir.next()? {
///             if entry.name() == b".git" {
///                 dir.skip_entry(); // do not go below it
///             }
///             count += 1;
///         }
///     }
///     Ok(count)
/// }
/// # assert!(count("/sys/class")? > 0);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # What holds
///
/// - **Order.** A directory is lent before those below it, depth first, and its entries stand together, as in `ls -R`.
///   Directories and entries come in the kernel's order, or, after [`Dir::read`], in that of the [`Listing`]. With
///   [`post_order`](Self::post_order), each directory is lent once more after everything below it.
/// - **A directory is opened when `next` comes to it**, not when its entry is lent: the caller can `chmod` it first.
/// - **Nothing is hidden.** If a [`Dir`] is dropped before its end, `next` reads the rest, to find the directories in it.
///   [`Dir::skip_all`] says that it need not.
/// - **It never leaves the tree.** Each step is one `openat` of a name, relative to the directory that was read, and refuses
///   symbolic links (`O_NOFOLLOW`). Links are lent and never followed, the root's own path apart. If others swap directories
///   for links, or move them, while the walk is on, it misses them or reports an error.
/// - **Unknown types are opened.** Where the directory does not say whether an entry is a directory
///   ([`FileType::Unknown`](crate::FileType::Unknown)), `openat` finds out; there is no `fstatat`. An entry that was a
///   directory and is none when it is opened is an error, `ENOTDIR`: it was replaced.
/// - **Errors end nothing.** Each comes once, as an [`Error`] with its path, after the entries that were read before it.
///   The next call goes on with the rest of the tree.
/// - **Any depth**: no recursion, no path given to the kernel, and at most [`max_open`](Self::max_open) descriptors.
///
/// While others change the tree, a directory that stays where it is, below directories that stay, is lent exactly once, if the
/// kernel returns its entry exactly once: see [the crate's
/// page](crate#what-the-kernel-promises-while-others-change-the-directory). If a directory is moved while the walk is below
/// it, the walk goes on in it, under its old path.
///
/// A tree that stays as it is ends: directories have no hard links, and bind mounts are finite. A FUSE server can invent levels
/// for ever, and so can a process that makes directories faster than the walk reads them; [`Dir::depth`] tells how deep it is.
///
/// # What it costs
///
/// | | system calls |
/// |---|---|
/// | a directory that fits into the [`Buffer`] | 4: `openat`, `getdents64` twice, `close` |
/// | the same under [`same_mount`](Self::same_mount), where there is an [`EndMarker`] | 3: `openat2`, `getdents64`, `close` |
/// | an entry of unknown type that is no directory | 1: `openat` |
/// | a level closed early, for lack of descriptors | 4 more: `statx`, `close`, then `openat` and `statx` to come back |
///
/// In memory, which grows by doubling, are a [`Buffer`], the path of the directory at hand, 56 bytes for each level above it
/// that has directories left to do (in post-order for each level), 40 more if it was closed early, and the names of these
/// directories, 2 bytes more each; at most twice as many names as are left. A huge directory of files takes no memory, nor
/// does a chain of directories, beside its path. Nothing is allocated once the memory has grown to what the tree takes;
/// [`reset`](Self::reset) keeps it for the next tree.
#[doc(alias = "fts")]
#[doc(alias = "nftw")]
#[doc(alias = "walkdir")]
#[must_use = "a walk is lazy: nothing is read before `next`"]
pub struct Walk<S = ()> {
    buffer: Buffer,
    levels: Levels<S>,
    of_the_root: S,
    /// If it is one of the threads of [`spread`](Self::spread).
    worker: Option<Arc<Worker<S>>>,
}

impl Walk {
    /// A walk of the tree at `path`. The paths that it lends begin with `path`, as it is written here.
    ///
    /// If `path` is a symbolic link to a directory, that directory is the root.
    ///
    /// Costs: one `openat`; the memory of [`new`](Self::new).
    ///
    /// # Errors
    ///
    /// Those of [`open`](crate::open), with the path: `ENOENT` for nothing or a dangling link, `ENOTDIR` for a file or a FIFO,
    /// `EACCES` for a directory that may not be read.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref().as_os_str().as_bytes();
        let root = crate::open(path).map_err(|error| Error::new(path, 0, error))?;
        Ok(Self::begin(root, path))
    }

    /// A walk of the tree at `root`, from [`open`](crate::open) or [`openat`](crate::openat). The paths that it lends begin with
    /// `path`, which nothing looks up; with `""` they are relative to the root.
    ///
    /// It is read from its current position: **a descriptor that was read before gives an empty root, without an error**.
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

/// A walk without a tree, as if its tree had been walked: [`next`](Walk::next) is `None` until [`reopen`](Walk::reopen) or
/// [`reset`](Walk::reset) begins one.
impl Default for Walk {
    fn default() -> Self {
        Self { buffer: Buffer::new(), levels: Levels::new(Options::default()), of_the_root: (), worker: None }
    }
}

impl<S> Walk<S> {
    /// Carries a value down the tree: the root begins with `of_the_root`, and each directory with a clone of the value of the
    /// directory that it is in, as that was left when the walk went on. [`Dir::state`] and [`Dir::state_mut`] give it. At its
    /// second visit a directory has its own value again.
    ///
    /// The value goes along to other threads, and is there again when a level was closed early. In an [`Arc`](std::sync::Arc) it carries
    /// sums up as well: the example `du` does. Here it carries the depth of the nearest `.git` down:
    ///
    /// ```
    /// use lendir::Walk;
    ///
    /// let mut walk = Walk::open("/usr/share/doc")?.with_state(None);
    /// while let Some(mut dir) = walk.next_or(|error| eprintln!("{error}")) {
    ///     let depth = dir.depth();
    ///     while let Some(entry) = dir.next_or(|error| eprintln!("{error}")) {
    ///         if entry.name() == b".git" {
    ///             *dir.state_mut() = Some(depth); // this directory and those below it are in a repository
    ///         }
    ///     }
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// To be called before the first [`next`](Self::next): if the tree has begun, its rest is left. [`reset`](Self::reset) and
    /// [`reopen`](Self::reopen) begin with a clone of `of_the_root` again.
    ///
    /// Costs: a clone for each directory that is not the last one in its own directory (in post-order for each), and the size of
    /// the value for each level. Without a value, nothing.
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
    /// In a closure of [`spread`](Self::spread), the rest of the previous tree goes to the other threads, with its descriptors,
    /// which count beside theirs until one of them takes it. This thread walks the new tree alone, and nobody waits for it.
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
    /// Those of [`open`](Self::open). The previous tree is left then too, and [`next`](Self::next) is `None`.
    pub fn reopen(&mut self, path: impl AsRef<Path>) -> Result<(), Error> {
        self.leave();
        self.levels.clear();
        let path = path.as_ref().as_os_str().as_bytes();
        let root = crate::open(path).map_err(|error| Error::new(path, 0, error))?;
        self.levels.begin(root, path);
        Ok(())
    }

    /// Stays on the mount of the root: the directory that a file system is mounted on is lent as an entry and not entered.
    ///
    /// The mount point of a bind mount is not entered either, even if it shows the same file system. A btrfs subvolume is
    /// entered, as it is no mount. `find -xdev` does the opposite of both, because it compares `st_dev`.
    ///
    /// Costs: one `fstatfs` for the tree, to know its [`EndMarker`], which saves a `getdents64` a directory where there is one.
    /// `openat2` refuses mount points by itself ([`RESOLVE_NO_XDEV`]). Where it is refused, before Linux 5.6 and under some
    /// seccomp filters, `openat` and one `statx` a directory do the same, without the marker. Before Linux 5.8 they can tell
    /// devices only, so that bind mounts of the same file system are entered.
    ///
    /// [`RESOLVE_NO_XDEV`]: https://man7.org/linux/man-pages/man2/openat2.2.html
    #[doc(alias = "xdev")]
    pub fn same_mount(mut self, yes: bool) -> Self {
        self.levels.stay_on_mount(yes);
        self
    }

    /// Lends each directory once more, after everything below it: see [`Dir::is_second_visit`] and [`Dir::parent`]. Set after the
    /// root was lent, it holds from the next tree on.
    ///
    /// A directory that cannot be opened for reading has its error, and then its second visit, if it is still there and a
    /// descriptor is to be had.
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
    /// It holds one for the directory at hand, and one for each level above that has directories left to do (in post-order for
    /// each level). Beyond the limit it closes the shallowest levels, and reopens them by `..` on the way back. It believes
    /// `..` only if the device, inode number and birth time are those of the directory that it closed, and under
    /// [`same_mount`](Self::same_mount) the mount too; otherwise it goes down by names from the topmost level, which stays open.
    /// If neither leads there, the level was moved or removed. That is one
    /// error: `ENOENT`, `ENOTDIR` if something else has its name, `EACCES` if the way there may not be searched any more, or
    /// `EMFILE` or `ENFILE` if no descriptor is left to reopen it. The rest of that level is skipped, including its second visit.
    ///
    /// Birth times have the grain of the clock's tick. A level that is closed within 11 ms of its birth is therefore kept open
    /// until these have passed: the walk sleeps so long. Where there is no birth time, a directory that was removed and
    /// replaced by one of the same inode number is taken for the same: see `SECURITY.md`.
    ///
    /// When the process (`EMFILE`) or the system (`ENFILE`) runs out of descriptors on the way down, the walk does the same, and
    /// keeps fewer from then on.
    pub fn max_open(mut self, descriptors: usize) -> Self {
        self.levels.limit_open(descriptors);
        self
    }

    /// Lends no entries deeper than `depth`, as `find -maxdepth`: with 1 those of the root only, with 0 the root without any.
    pub fn max_depth(mut self, depth: usize) -> Self {
        self.levels.options.max_depth = depth;
        self
    }
}

impl<S: Clone> Walk<S> {
    /// Opens the next directory and lends it; the root first. `None` when nothing is left.
    ///
    /// **`while let Ok(Some(dir)) = walk.next()` ends at the first error without a sign**, and so does `?`, with one: of /proc an
    /// ordinary user would see a few directories. [`next_or`](Self::next_or) is the usual loop.
    ///
    /// Costs: `openat`, and `close` for a level that is done; see [the table](Self#what-it-costs). A [`Dir`] that was dropped
    /// before its end is read to its end first. It allocates only while its memory grows, for an error, and to read such a
    /// `Dir` again.
    ///
    /// # Errors
    ///
    /// Those of [`openat`](crate::openat) for the next directory: `EACCES` if it may not be read, `ENOENT` if it is gone by
    /// now, `ENOTDIR` (`ELOOP` on old kernels) if it was replaced; under [`same_mount`](Self::same_mount), where `openat2` is
    /// refused, those of `statx` too. Those of `lseek` and of [`Entries::next`] for the rest of a [`Dir`] that was dropped
    /// midway. `ENOENT` and others for a level that cannot be reopened: see [`max_open`](Self::max_open). Each comes once, and
    /// the next call goes on.
    #[allow(clippy::should_implement_trait, reason = "`Iterator` cannot lend")]
    #[allow(clippy::inline_always, reason = "see below")]
    #[inline(always)]
    pub fn next(&mut self) -> Result<Option<Dir<'_, S>>, Error> {
        // Keep the way through `openat` to the first `getdents64` in the caller's frame: see `Entries::find`.
        Ok(if self.advance()? { Some(self.lend()) } else { None })
    }

    /// The next directory that can be opened. Each error before it is handed to `on_error`, and ends nothing.
    ///
    /// ```
    /// let mut walk = lendir::Walk::open("/proc/self")?;
    /// while let Some(mut dir) = walk.next_or(|error| eprintln!("{error}")) {
    ///     while let Some(entry) = dir.next_or(|error| eprintln!("{error}")) {
    ///         println!("{}", entry.path().display());
    ///     }
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// Costs: as [`next`](Self::next), for each directory that it tries.
    #[allow(clippy::inline_always, reason = "see `next`")]
    #[inline(always)]
    pub fn next_or(&mut self, mut on_error: impl FnMut(Error)) -> Option<Dir<'_, S>> {
        loop {
            match self.advance() {
                Ok(true) => return Some(self.lend()),
                Ok(false) => return None,
                Err(error) => on_error(error),
            }
        }
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

    /// Reads what is unread of the directory at hand. Returns whether it is the root, which is to be lent first.
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
    /// A walk that was put in the place of one of [`spread`](Self::spread) leaves the rest to the other threads.
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

// After the rest of `Walk`, whose page begins with `open`.
mod spread;
