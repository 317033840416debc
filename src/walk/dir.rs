//! `Dir`, `Unread`: the current directory, what the caller says of its entries, and which of them are unread.

use super::level::Spot;
use super::levels::AtHand;
use super::pending::{Kind, Pending, Search};
use crate::error::Error;
use crate::{Buffer, EndMarker, Entries, Entry, Listing};
use rustix::fd::{AsFd, BorrowedFd};
use std::collections::BTreeSet;
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::{fmt, io};

/// An open directory of a [`Walk`](super::Walk), lent until the walk goes on.
///
/// ```
/// let mut walk = lendir::Walk::open("/sys/class")?;
/// while let Some(mut dir) = walk.next_ok(|error| eprintln!("{error}")) {
///     println!("{}:", dir.path().display());
///     while let Some(entry) = dir.next_ok(|error| eprintln!("{error}")) {
///         println!("  {}", entry.name().escape_ascii());
///         if entry.name() == b"power" {
///             dir.skip_entry(); // do not go below it
///         }
///     }
/// }
/// # Ok::<(), lendir::Error>(())
/// ```
///
/// It lends the same [`Entry`] as [`Entries`], from the kernel's buffer. It is a directory's first visit, or, with
/// [`Walk::post_order`](super::Walk::post_order), [its second](Self::is_second_visit), when it has no entries.
///
/// [`AsFd`] gives its descriptor, for `*at` calls on its entries. At a second visit it is one with `O_PATH` if the directory
/// may not be read. Reading through this descriptor, or a duplicate, moves the walk's position. To read the directory yourself,
/// reopen it: `openat(&dir, c".")`.
///
/// If it is dropped midway, the walk reads the directory again from the start, to find the directories that it has not seen
/// yet: one `lseek`, and memory for the names of those that it has. It cannot resume at a cookie: on tracefs cookies lead
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
pub struct Dir<'a, S = ()> {
    entries: Entries<'a>,
    end_marker: EndMarker,
    parent: Option<BorrowedFd<'a>>,
    spot: &'a Spot,
    is_second_visit: bool,
    state: &'a mut S,
    /// With its NUL.
    path: &'a [u8],
    pending: &'a mut Pending,
    /// Where the name of the entry lent last is among the pending ones, if it is pending.
    last_at: usize,
    /// Where the last symbolic link is there.
    link_at: usize,
    search: Search,
    below: Below,
    unread: &'a mut Unread,
}

/// Which directories in this one the walk enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Below {
    /// Those that are lent.
    Lent,
    /// Those that the caller enters by name.
    Named,
    None,
}

/// The entries of the current directory in which the walk has not looked for directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    Nothing,
    /// All: it is the root, which has not been lent.
    Root,
    /// All: none has been asked for.
    All,
    /// Those after the ones that were lent.
    Rest,
    /// There was no memory to note a directory. The caller does not know yet.
    OutOfMemory,
    /// The caller stopped the walk.
    Stopped,
}

impl Unread {
    /// An entry was lent.
    #[inline]
    pub(super) fn begin(&mut self) {
        if *self == Self::All {
            *self = Self::Rest;
        }
    }

    /// The rest has been read, or need not be. Returns whether memory ran out meanwhile.
    #[inline]
    pub(super) fn end(&mut self) -> bool {
        let was_out_of_memory = *self == Self::OutOfMemory;
        if *self != Self::Stopped {
            *self = Self::Nothing;
        }
        was_out_of_memory
    }
}

impl<'a, S> Dir<'a, S> {
    /// Lends the current directory, which is read into `buffer`.
    #[allow(clippy::inline_always, reason = "see `Walk::next`")]
    #[inline(always)]
    pub(super) fn lend(at_hand: AtHand<'a, S>, buffer: &'a mut Buffer) -> Self {
        let AtHand {
            dir,
            end_marker,
            is_second_visit,
            parent,
            spot,
            has_entries,
            is_deepest,
            value,
            pending,
            path,
            unread,
        } = at_hand;
        let mut entries =
            Entries::new(dir, buffer).with_end_marker(end_marker).with_path(spot.path(path), spot.depth + 1);
        if !has_entries {
            entries.end();
        }
        // At the deepest level there is nothing to find in what the caller does not read.
        let is_dead_end = !has_entries || is_deepest;
        *unread = if is_dead_end { Unread::Nothing } else { Unread::All };
        Dir {
            entries,
            end_marker,
            parent,
            spot,
            is_second_visit,
            state: value,
            path,
            last_at: pending.len(),
            link_at: pending.len(),
            search: Search::new(spot.names_at),
            pending,
            below: if is_dead_end { Below::None } else { Below::Lent },
            unread,
        }
    }

    /// The next entry of this directory, or `None` at its end. See [`Entries::next`].
    ///
    /// Costs: as [`Entries::next`]; the name of a directory is copied, that of a file is not.
    ///
    /// # Errors
    ///
    /// Those of [`Entries::next`], with the path of this directory: once, then `Ok(None)`. The walk then goes below the
    /// directories that came before the error.
    ///
    /// [`OutOfMemory`](io::ErrorKind::OutOfMemory), once, after the last entry, if there was no memory to note the names of all
    /// directories: the walk goes below those that were noted. If the `Dir` is dropped before that,
    /// [`Walk::next`](super::Walk::next) returns it.
    #[allow(clippy::should_implement_trait, reason = "`Iterator` cannot lend")]
    #[allow(clippy::inline_always, reason = "see `Walk::next`")]
    #[inline(always)]
    pub fn next(&mut self) -> Result<Option<Entry<'_>>, Error> {
        self.last_at = self.pending.len();
        match self.entries.next() {
            Ok(Some(entry)) => {
                self.unread.begin();
                if let (Some(kind), Below::Lent) = (Kind::of(entry.file_type()), self.below) {
                    if kind == Kind::LINK {
                        self.link_at = self.pending.drop_link(self.link_at);
                        self.last_at = self.link_at;
                    }
                    if self.pending.push(kind, entry.name_cstr()).is_err() {
                        (self.below, *self.unread) = (Below::None, Unread::OutOfMemory);
                    }
                }
                Ok(Some(entry))
            }
            Ok(None) if self.unread.end() => Err(self.spot.error(self.path, io::ErrorKind::OutOfMemory)),
            Ok(None) => Ok(None),
            Err(error) => {
                self.unread.end();
                Err(error)
            }
        }
    }

    /// Reads all entries, to find the directories among them that are not `noted`.
    pub(super) fn read_for_directories(&mut self, noted: &BTreeSet<&CStr>) -> Result<(), Error> {
        while let Some(entry) = self.next()? {
            if noted.contains(entry.name_cstr()) {
                self.pending.truncate(self.last_at);
            }
        }
        Ok(())
    }

    /// The next entry of this directory, or `None` at its end. `on_error` gets the error, of which there is at most one, after
    /// the entries that came before it.
    ///
    /// Costs: as [`next`](Self::next).
    #[allow(clippy::inline_always, reason = "see `Walk::next`")]
    #[inline(always)]
    pub fn next_ok(&mut self, on_error: impl FnOnce(Error)) -> Option<Entry<'_>> {
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
    ///     dir.read_into(&mut listing)?;
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
    /// the walk goes below these. [`OutOfMemory`](io::ErrorKind::OutOfMemory) also where there is no memory to note the names
    /// of directories: the walk goes below those that were noted. In [`Order::Path`](crate::Order::Path) the first failed
    /// `fstatat` of an entry of unknown type has the path of this directory too, although the listing is complete; the walk
    /// then tries to enter that entry, and may report it again with its own path.
    #[allow(clippy::inline_always, reason = "see `Listing::read`")]
    #[inline(always)]
    pub fn read_into(&mut self, listing: &mut Listing) -> Result<(), Error> {
        if self.is_second_visit {
            listing.clear();
            return Ok(());
        }
        let path = self.spot.path(self.path);
        if *self.unread != Unread::All {
            self.entries.rewind()?;
            if self.below == Below::Lent {
                self.pending.truncate(self.spot.names_at);
            }
        }
        let mut result = listing.read_known(self.entries.as_fd(), self.end_marker, path, self.spot.depth + 1);
        self.entries.end_as(listing.removed());
        if self.unread.end() {
            result = Err(self.spot.error(self.path, io::ErrorKind::OutOfMemory)); // for an entry that was lent before
        }
        if self.below == Below::Lent {
            for entry in &*listing {
                if let Some(kind) = Kind::of(entry.file_type()) {
                    if self.pending.push(kind, entry.name_cstr()).is_err() {
                        result = Err(self.spot.error(self.path, io::ErrorKind::OutOfMemory));
                        break;
                    }
                }
            }
        }
        self.last_at = self.pending.len();
        result
    }

    /// Does not go below the entry that was just lent. It does nothing for a file, before the first entry, after the end, or
    /// after [`read_into`](Self::read_into), which lends none: use [`skip_name`](Self::skip_name) for a listing, and
    /// [`skip_all`](Self::skip_all) for the whole directory.
    ///
    /// Costs: nothing.
    #[doc(alias = "prune")]
    #[doc(alias = "filter_entry")]
    #[inline]
    pub fn skip_entry(&mut self) {
        self.pending.set_kind(self.last_at, Kind::SKIPPED);
    }

    /// Does not go below the entry of this name, if it has been lent or [read](Self::read_into). Returns whether that changed
    /// anything: `false` for what the walk would not enter, and for a name that was skipped before. If a broken file system gives
    /// the name twice, each call skips one of the two.
    ///
    /// Costs: next to nothing for the directory that was lent or listed right after the one skipped last. Once the
    /// directory has been read to its end, any other name takes a binary search in an index. The first such search makes it: 8
    /// bytes for each directory in this one, sorted. Before the end, it takes a scan of all directories lent: use
    /// [`skip_entry`](Self::skip_entry) there.
    pub fn skip_name(&mut self, name: impl AsRef<[u8]>) -> bool {
        self.mark(name.as_ref(), Kind::SKIPPED, |kind| !kind.is_passed_over())
    }

    /// Goes below the entry that was just lent even if it is a symbolic link. A link to a file, or to nothing, is no error.
    ///
    /// **Below this link, the walk no longer promises to stay in its tree**: anyone who can change the link decides where it
    /// leads. Links below it are lent and not followed, as everywhere. A directory that the walk is in already, or one above
    /// the root, is not entered again: it is one error, `ELOOP`, with the path by which it came again. Under
    /// [`Walk::same_mount`](super::Walk::same_mount), a link to another mount is not entered.
    ///
    /// It does nothing when [`skip_entry`](Self::skip_entry) does nothing, after [`skip_all`](Self::skip_all), and at
    /// [`Walk::max_depth`](super::Walk::max_depth).
    ///
    /// ```
    /// use lendir::{FileType, Walk};
    ///
    /// let mut walk = Walk::open("/sys/class/net")?;
    /// while let Some(mut dir) = walk.next_ok(|error| eprintln!("{error}")) {
    ///     let is_root = dir.depth() == 0;
    ///     while let Some(entry) = dir.next_ok(|error| eprintln!("{error}")) {
    ///         println!("{}", entry.path().display());
    ///         if is_root && entry.file_type() == FileType::Symlink {
    ///             dir.follow_entry(); // to the devices, and no further
    ///         }
    ///     }
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// Costs: for each link, instead of `openat2`: `openat`, `fstatfs`, and `statx` of the directory and of each ancestor that
    /// the walk has not asked about yet, with an `openat` and a `close` for each; a comparison with each ancestor; and
    /// meanwhile two descriptors more than [`Walk::max_open`](super::Walk::max_open). Below a link, one `statx` for each
    /// directory, to tell it from those above the link.
    #[doc(alias = "follow_links")]
    #[inline]
    pub fn follow_entry(&mut self) {
        self.pending.follow(self.last_at);
    }

    /// Goes below the entry of this name, which was [read](Self::read_into) or lent, even if it is a symbolic link: see
    /// [`follow_entry`](Self::follow_entry). Of links that were lent by [`next`](Self::next), only the last one is known by
    /// name. Returns whether that changed anything: `true` for a link, or an entry of unknown type, that was neither followed
    /// nor skipped before.
    ///
    /// Costs: as [`skip_name`](Self::skip_name).
    pub fn follow_name(&mut self, name: impl AsRef<[u8]>) -> bool {
        self.mark(name.as_ref(), Kind::FOLLOWED, |kind| matches!(kind, Kind::LINK | Kind::UNKNOWN))
    }

    fn mark(&mut self, name: &[u8], mark: Kind, wanted: fn(Kind) -> bool) -> bool {
        let is_complete = *self.unread == Unread::Nothing;
        let found = self.search.find(self.pending, name, is_complete, wanted);
        found.inspect(|at| self.pending.set_kind(*at, mark)).is_some()
    }

    /// Goes below the directory `name` in this one, whether it was lent or not. If it is lent as well, and not skipped, it is
    /// walked twice: call [`skip_all`](Self::skip_all) first.
    ///
    /// With `skip_all`, a walk need not read a directory whose entries are already known:
    ///
    /// ```
    /// let mut walk = lendir::Walk::open("/sys/class")?;
    /// while let Some(mut dir) = walk.next_ok(|error| eprintln!("{error}")) {
    ///     if dir.depth() == 0 {
    ///         dir.skip_all(); // and `next` was not called, so nothing is read
    ///         dir.enter("net");
    ///     }
    ///     println!("{}", dir.path().display());
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// [`Walk::next`](super::Walk::next) has its errors, with the path: `ENOENT` if there is no such entry, `ENOTDIR` if it is
    /// no directory, which a symbolic link is not, `EINVAL` for an invalid name: empty, `.`, `..`, or with a slash or a NUL. It
    /// does nothing at [`Walk::max_depth`](super::Walk::max_depth).
    ///
    /// Costs: the name is copied.
    #[allow(clippy::missing_panics_doc, reason = "only a bug would")]
    pub fn enter(&mut self, name: impl AsRef<[u8]>) {
        let mut name = name.as_ref().to_vec();
        let is_name =
            !matches!(name[..], [] | [b'.'] | [b'.', b'.']) && !name.iter().any(|byte| matches!(byte, 0 | b'/'));
        name.retain(|byte| *byte != 0);
        name.push(0);
        let name = CStr::from_bytes_with_nul(&name).expect("BUG: a NUL inside");
        if self.below != Below::None {
            self.unread.begin();
            let kind = if is_name { Kind::DIRECTORY } else { Kind::NO_NAME };
            if self.pending.push(kind, name).is_err() {
                (self.below, *self.unread) = (Below::None, Unread::OutOfMemory);
            }
            self.last_at = self.pending.len();
        }
    }

    /// Goes below none of the entries of this directory, not even those lent so far. [`next`](Self::next) still lends entries,
    /// and [`Walk::post_order`](super::Walk::post_order) the second visit; [`enter`](Self::enter) still enters. It holds
    /// wherever it is called: before the first entry, after [`read_into`](Self::read_into), at the end.
    ///
    /// ```
    /// let mut walk = lendir::Walk::open("/sys/class")?;
    /// while let Some(mut dir) = walk.next_ok(|error| eprintln!("{error}")) {
    ///     if dir.name() == b"power" {
    ///         dir.skip_all();
    ///     }
    ///     while let Some(entry) = dir.next_ok(|error| eprintln!("{error}")) {
    ///         println!("{}", entry.path().display());
    ///     }
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// Costs: nothing, and if the `Dir` is dropped before its end, the rest is not read.
    #[doc(alias = "skip_current_dir")]
    #[inline]
    pub fn skip_all(&mut self) {
        if self.below == Below::Lent {
            self.below = Below::Named;
        }
        self.unread.end();
        self.pending.truncate(self.spot.names_at);
        self.last_at = self.spot.names_at;
        self.search = Search::new(self.spot.names_at);
    }

    /// Ends the walk: [`Walk::next`](super::Walk::next) is `None` from now on. [`next`](Self::next) still lends the entries of
    /// this directory. The other threads of [`Walk::spread`](super::Walk::spread) end once this one calls
    /// [`Walk::next`](super::Walk::next) or its closure returns.
    ///
    /// Costs: nothing. The descriptors are closed by the next call of [`Walk::next`](super::Walk::next), or when the walk is
    /// dropped.
    #[inline]
    pub fn stop(&mut self) {
        self.skip_all();
        (self.below, *self.unread) = (Below::None, Unread::Stopped);
    }

    /// The value that the walk carries down: see [`Walk::with_state`](super::Walk::with_state).
    #[inline]
    #[must_use]
    pub fn state(&self) -> &S {
        self.state
    }

    /// The value, to be changed for this directory and those below it.
    #[inline]
    pub fn state_mut(&mut self) -> &mut S {
        self.state
    }

    /// Its path: that of the root, as it was given to the walk, and the names from there to here.
    ///
    /// It borrows from the walk, not from this `Dir`. Take it before the inner loop, where an entry borrows the `Dir`;
    /// [`Entry::path`] joins it with the name.
    ///
    /// It may be longer than `PATH_MAX` (4096 bytes), which no system call takes: use the descriptor.
    ///
    /// Costs: nothing, because the walk keeps the path: it adds a name on the way down, and removes it on the way up.
    #[inline]
    #[must_use]
    pub fn path(&self) -> &'a Path {
        Path::new(OsStr::from_bytes(self.spot.path(self.path)))
    }

    /// Its name, as [`Entry::name`]. For the root, its path.
    #[inline]
    #[must_use]
    pub fn name(&self) -> &'a [u8] {
        self.name_cstr().to_bytes()
    }

    /// Its name with a NUL, for `*at` calls relative to [`parent`](Self::parent).
    #[allow(clippy::missing_panics_doc, reason = "only a bug would")]
    #[inline]
    #[must_use]
    pub fn name_cstr(&self) -> &'a CStr {
        CStr::from_bytes_with_nul(&self.path[self.spot.name_at..]).expect("BUG: a path without its NUL")
    }

    /// Its name for `std`.
    #[inline]
    #[must_use]
    pub fn name_os(&self) -> &'a OsStr {
        OsStr::from_bytes(self.name())
    }

    /// How many levels it is below the root, whose depth is 0.
    #[inline]
    #[must_use]
    pub fn depth(&self) -> usize {
        self.spot.depth
    }

    /// Whether this is its second visit, after everything below it, under [`Walk::post_order`](super::Walk::post_order).
    #[inline]
    #[must_use]
    pub fn is_second_visit(&self) -> bool {
        self.is_second_visit
    }

    /// Its parent directory, at a second visit, for `unlinkat`, `fchmodat` and the like. `None` for the root, at a first visit,
    /// and if the parent could not be reopened.
    #[inline]
    #[must_use]
    pub fn parent(&self) -> Option<BorrowedFd<'a>> {
        self.parent
    }

    /// Whether it turned out to be removed while it was read: see [`Entries::removed`].
    #[must_use]
    pub fn removed(&self) -> bool {
        self.entries.removed()
    }
}

impl<S> AsFd for Dir<'_, S> {
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.entries.as_fd()
    }
}

impl<S> fmt::Debug for Dir<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dir")
            .field("path", &self.path())
            .field("depth", &self.depth())
            .field("is_second_visit", &self.is_second_visit())
            .finish_non_exhaustive()
    }
}
