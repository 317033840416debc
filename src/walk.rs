//! `Walk`, `Dir`: a tree, directory by directory, and the contract of the walk.

mod handover;
mod identity;
mod levels;
mod pending;
mod split;
mod spread;

use crate::error::Error;
use crate::sync::Arc;
use crate::{Buffer, EndMarker, Entries, Entry, Listing};
use levels::{AtHand, Level, Levels, Mounts, Step, Unread};
use pending::{Kind, Pending};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use spread::Part;
use std::collections::BTreeSet;
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::{fmt, mem};

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
pub struct Walk {
    buffer: Buffer,
    levels: Levels,
    /// With the other threads of [`spread`](Self::spread).
    part: Option<Arc<Part>>,
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
        let mut levels = Levels::default();
        levels.begin(root, path);
        Self { buffer: Buffer::new(), levels, part: None }
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
        self.levels.mounts = if yes { Mounts::One(EndMarker::NONE) } else { Mounts::All };
        self
    }

    /// Lends each directory once more, after everything below it: see [`Dir::is_second_visit`] and [`Dir::parent`].
    ///
    /// A directory that cannot be opened for reading has its error, and then its second visit, if it is still there and a
    /// descriptor is to be had.
    ///
    /// Costs: a level keeps its descriptor until its second visit, so that in a tree deeper than [`max_open`](Self::max_open)
    /// the walk closes levels early.
    #[doc(alias = "depth_first")]
    pub fn post_order(mut self, yes: bool) -> Self {
        self.levels.is_post_order = yes;
        self
    }

    /// Sets how many descriptors the walk may hold at once: 32 by default, and 4 at least.
    ///
    /// It holds one for the directory at hand, and one for each level above that has directories left to do (in post-order for
    /// each level). Beyond the limit it closes the shallowest levels, and reopens them by `..` on the way back. It believes
    /// `..` only if the device, inode number and birth time are those of the directory that it closed; otherwise it goes down
    /// by names from the topmost level, which stays open. If neither leads there, the level was moved or removed. That is one
    /// error: `ENOENT`, `ENOTDIR` if something else has its name, or `EACCES` if the way there may not be searched any more.
    /// The directories left there are lost, and so is its second visit.
    ///
    /// When the process (`EMFILE`) or the system (`ENFILE`) runs out of descriptors, the walk does the same, and keeps fewer
    /// from then on.
    pub fn max_open(mut self, descriptors: usize) -> Self {
        self.levels.limit_open(descriptors);
        self
    }

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
    pub fn next(&mut self) -> Result<Option<Dir<'_>>, Error> {
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
    pub fn next_or(&mut self, mut on_error: impl FnMut(Error)) -> Option<Dir<'_>> {
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
            if self.part.as_ref().is_some_and(|part| part.is_asked()) {
                self.share();
            }
            loop {
                match self.levels.step()? {
                    Step::AtHand => break,
                    Step::On => {}
                    Step::Done => match self.take_share()? {
                        Step::AtHand => break,
                        Step::On => {}
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
        match mem::replace(&mut self.levels.unread, Unread::Nothing) {
            Unread::Nothing => {}
            Unread::Root => {
                self.levels.note_end_marker();
                return Ok(true);
            }
            Unread::All => {
                let mut all = self.lend();
                while all.next()?.is_some() {}
            }
            Unread::Rest => {
                let noted = self.levels.rewind()?;
                let noted: BTreeSet<_> = noted.names().collect();
                let mut again = self.lend();
                while let Some(entry) = again.next()? {
                    if noted.contains(entry.name_cstr()) {
                        again.pending.truncate(again.last);
                    }
                }
            }
            Unread::Stopped => self.stop(),
        }
        Ok(false)
    }

    #[allow(clippy::inline_always, reason = "see `next`")]
    #[inline(always)]
    fn lend(&mut self) -> Dir<'_> {
        let end_marker = self.levels.end_marker();
        let AtHand { level, dir, parent, pending, path, unread } = self.levels.at_hand();
        let mut entries = Entries::new(dir, &mut self.buffer)
            .with_end_marker(end_marker)
            .with_path(level.path(path), level.depth + 1);
        *unread = if level.is_left() {
            entries.end();
            Unread::Nothing
        } else {
            Unread::All
        };
        let (last, names) = (pending.len(), level.names());
        Dir { entries, parent, level, path, pending, last, names, goes_below: true, unread }
    }
}

impl fmt::Debug for Walk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Walk").field("levels", &self.levels).finish_non_exhaustive()
    }
}

/// An open directory of a [`Walk`], lent until the walk goes on.
///
/// It lends the same [`Entry`] as [`Entries`], from the kernel's buffer. It is a directory's first visit, or, with
/// [`Walk::post_order`], [its second](Self::is_second_visit), when it has no entries. [`AsFd`] gives its descriptor, for `*at` calls
/// on its entries. At a second visit it is one with `O_PATH` if the directory may not be read. Whoever reads entries through
/// the descriptor, or a duplicate, moves the position that the walk reads from: open the directory anew for that, as
/// `openat(&dir, c".")`.
///
/// If it is dropped midway, the walk reads the directory again from its beginning, to find the directories that it has not seen
/// yet: one `lseek`, and memory for the names of those that it has. It does not go on from a cookie: on tracefs cookies lead
/// elsewhere, and on ramfs too, once an entry before them is removed.
///
/// Two directories cannot be lent at once, because they share the buffer:
///
/// ```compile_fail,E0499
/// # fn main() -> std::io::Result<()> {
/// let mut walk = lendir::Walk::open("/sys/class")?;
/// let first = walk.next()?;
/// let second = walk.next()?; // error: `walk` is still borrowed by `first`
/// drop(first);
/// # Ok(())
/// # }
/// ```
///
/// Nor can an entry be kept beyond its turn:
///
/// ```compile_fail,E0499
/// # fn keep(mut dir: lendir::Dir<'_>) -> std::io::Result<()> {
/// let first = dir.next()?;
/// let second = dir.next()?; // error: `dir` is still borrowed by `first`
/// drop(first);
/// # Ok(())
/// # }
/// ```
pub struct Dir<'a> {
    entries: Entries<'a>,
    parent: Option<BorrowedFd<'a>>,
    level: &'a Level,
    path: &'a [u8],
    pending: &'a mut Pending,
    /// Where the name of the entry lent last stands among the pending ones, if it does.
    last: usize,
    /// Where [`skip_name`](Self::skip_name) begins to look.
    names: usize,
    goes_below: bool,
    unread: &'a mut Unread,
}

impl<'a> Dir<'a> {
    /// The next entry of this directory, or `None` at its end. See [`Entries::next`].
    ///
    /// Costs: as [`Entries::next`]; the name of a directory is copied, that of a file is not.
    ///
    /// # Errors
    ///
    /// Those of [`Entries::next`], with the path of this directory: once, then `Ok(None)`. The walk then goes below the
    /// directories that came before the error.
    #[allow(clippy::should_implement_trait, reason = "`Iterator` cannot lend")]
    #[allow(clippy::inline_always, reason = "see `Walk::next`")]
    #[inline(always)]
    pub fn next(&mut self) -> Result<Option<Entry<'_>>, Error> {
        self.last = self.pending.len();
        match self.entries.next() {
            Ok(Some(entry)) => {
                self.unread.begin();
                if let (Some(kind), true) = (Kind::of(entry.file_type()), self.goes_below) {
                    self.pending.push(kind, entry.name_cstr());
                }
                Ok(Some(entry))
            }
            Ok(None) => {
                self.unread.end();
                Ok(None)
            }
            Err(error) => {
                self.unread.end();
                Err(self.level.error(self.path, error))
            }
        }
    }

    /// The next entry of this directory, or `None` at its end. An error is handed to `on_error`, after the entries that came
    /// before it; there is at most one.
    ///
    /// Costs: as [`next`](Self::next).
    #[allow(clippy::inline_always, reason = "see `Walk::next`")]
    #[inline(always)]
    pub fn next_or(&mut self, on_error: impl FnOnce(Error)) -> Option<Entry<'_>> {
        match self.next() {
            Ok(entry) => entry,
            Err(error) => {
                on_error(error);
                None
            }
        }
    }

    /// Reads the rest of this directory into `listing`, sorted. The walk goes below it in that order.
    ///
    /// ```
    /// use lendir::{Listing, Walk};
    ///
    /// let mut listing = Listing::new();
    /// let mut walk = Walk::open("/sys/class/net")?;
    /// while let Some(mut dir) = walk.next()? {
    ///     dir.read(&mut listing)?;
    ///     for entry in &listing {
    ///         println!("{}", dir.path().join(entry.name_os()).display());
    ///         if entry.name() == b"statistics" {
    ///             dir.skip_name(entry.name());
    ///         }
    ///     }
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// Costs: those of [`Listing::read`].
    ///
    /// # Errors
    ///
    /// Those of [`Listing::read`], with the path of this directory. The listing then holds the entries before the error, and
    /// the walk goes below these.
    #[allow(clippy::inline_always, reason = "see `Listing::read`")]
    #[inline(always)]
    pub fn read(&mut self, listing: &mut Listing) -> Result<(), Error> {
        let result = listing.read_rest(&mut self.entries);
        self.unread.end();
        if self.goes_below {
            for entry in &*listing {
                if let Some(kind) = Kind::of(entry.file_type()) {
                    self.pending.push(kind, entry.name_cstr());
                }
            }
        }
        self.last = self.pending.len();
        result.map_err(|error| self.level.error(self.path, error))
    }

    /// Does not go below the entry that was just lent. For a file it does nothing, nor does it after the end.
    ///
    /// Costs: nothing.
    #[doc(alias = "prune")]
    #[inline]
    pub fn skip_entry(&mut self) {
        self.pending.skip_at(self.last);
    }

    /// Does not go below the entry of this name, if it has been lent or [read](Self::read). Returns whether that changed
    /// anything: not for a file, nor for a name that was skipped before. If a broken file system gives the
    /// name twice, each call skips one of the two.
    ///
    /// Costs: a search through the names of the directories found here. It begins behind the name that the last call skipped,
    /// and wraps around: if names are skipped in the order in which they were found, each is looked at about once.
    pub fn skip_name(&mut self, name: impl AsRef<[u8]>) -> bool {
        let name = name.as_ref();
        let found = self.pending.skip(self.names, name).or_else(|| self.pending.skip(self.level.names(), name));
        self.names = found.unwrap_or(self.names);
        found.is_some()
    }

    /// Does not go below this directory at all. [`next`](Self::next) still lends its entries, and [`Walk::post_order`] its
    /// second visit.
    ///
    /// ```
    /// const MAX_DEPTH: usize = 2;
    ///
    /// let mut walk = lendir::Walk::open("/sys/class")?;
    /// while let Some(mut dir) = walk.next()? {
    ///     if dir.depth() == MAX_DEPTH {
    ///         dir.skip_all();
    ///     }
    ///     let path = dir.path();
    ///     while let Some(entry) = dir.next()? {
    ///         println!("{}", path.join(entry.name_os()).display());
    ///     }
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// Costs: nothing, and if the `Dir` is dropped before its end, the rest is not read.
    #[inline]
    pub fn skip_all(&mut self) {
        self.goes_below = false;
        self.unread.end();
        self.pending.truncate(self.level.names());
        self.last = self.level.names();
    }

    /// Ends the walk: [`Walk::next`] is `None` from here on. [`next`](Self::next) still lends the entries of this directory.
    /// The other threads of [`Walk::spread`] end once this one calls [`Walk::next`] or its closure returns.
    ///
    /// Costs: nothing. The descriptors are closed by the next call of [`Walk::next`], or when the walk is dropped.
    #[inline]
    pub fn stop(&mut self) {
        self.skip_all();
        *self.unread = Unread::Stopped;
    }

    /// Its path: that of the root, as [`Walk::open`] was given it, and the names from there to here. Empty for the root of
    /// [`Walk::new`].
    ///
    /// It may be longer than `PATH_MAX` (4096 bytes), which no system call takes: use the descriptor.
    ///
    /// Costs: nothing; the path is there, as the walk adds a name when it goes down and takes it away when it comes up.
    #[inline]
    #[must_use]
    pub fn path(&self) -> &'a Path {
        Path::new(OsStr::from_bytes(self.level.path(self.path)))
    }

    /// Its name, as [`Entry::name`]. For the root, its path.
    #[inline]
    #[must_use]
    pub fn name(&self) -> &'a [u8] {
        self.name_cstr().to_bytes()
    }

    /// Its name with a NUL, for `*at` calls relative to [`parent`](Self::parent).
    #[inline]
    #[must_use]
    pub fn name_cstr(&self) -> &'a CStr {
        self.level.name(self.path)
    }

    /// Its name for `std`.
    #[inline]
    #[must_use]
    pub fn name_os(&self) -> &'a OsStr {
        OsStr::from_bytes(self.name())
    }

    /// How many levels it is below the root, which has depth 0.
    #[inline]
    #[must_use]
    pub fn depth(&self) -> usize {
        self.level.depth
    }

    /// Whether this is its second visit, after everything below it, under [`Walk::post_order`].
    #[inline]
    #[must_use]
    pub fn is_second_visit(&self) -> bool {
        self.level.is_left()
    }

    /// At a second visit, the directory that it is in, for `unlinkat`, `fchmodat` and the like. `None` for the root, at a first
    /// visit, and if that directory could not be reopened.
    #[inline]
    #[must_use]
    pub fn parent(&self) -> Option<BorrowedFd<'a>> {
        self.parent
    }

    /// Whether it was found to be removed while it was read: see [`Entries::removed`].
    #[must_use]
    pub fn removed(&self) -> bool {
        self.entries.removed()
    }
}

impl AsFd for Dir<'_> {
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.entries.as_fd()
    }
}

impl fmt::Debug for Dir<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dir")
            .field("path", &self.path())
            .field("depth", &self.depth())
            .field("is_second_visit", &self.is_second_visit())
            .finish_non_exhaustive()
    }
}
