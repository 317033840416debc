//! `Dir`: the current directory, its entries, and the requests of the caller. It does not know
//! which directory comes next, nor how a directory is opened.

use super::part::{LevelWork, Part, Visit};
use super::subdirs::Subdirs;
use crate::cursor::Cursor;
use crate::cursor::links::Links;
use crate::cursor::opener::last_component_start;
use crate::cursor::stack::Level;
use crate::error::Error;
use crate::listing::Listing;
use crate::name::Name;
use crate::open::open_again;
use crate::read_dir::buffer::Buffer;
use crate::read_dir::entries::{Entries, find};
use crate::read_dir::entry::{Directory, Entry};
use crate::read_dir::entry_state::{EntryState, EntryUpdates};
use crate::read_dir::records::Phase;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{AtFlags, SeekFrom, Stat, Statx, StatxFlags, fstat, seek, statx};
use rustix::io::{Errno, retry_on_intr};
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::{fmt, io};

/// An open directory of a [`WalkDirs`](crate::WalkDirs), borrowed until the next call to
/// [`WalkDirs::next`](crate::WalkDirs::next). It yields its entries in the same way as [`Entries`].
///
/// ```
/// let mut walk = lendir::walk_dirs("/sys/class")?;
/// while let Some(mut dir) = walk.next_ok(|error| eprintln!("{error}")) {
///     println!("{:?}:", dir.path());
///     while let Some(entry) = dir.next_ok(|error| eprintln!("{error}")) {
///         println!("    {:?}", entry.name_os());
///     }
/// }
/// # Ok::<(), lendir::Error>(())
/// ```
///
/// The compiler refuses to keep a `Dir`, or one of its entries, beyond the next call to `next`.
/// Copy whatever you want to keep.
///
/// **If you leave the loop early, the walk still descends into the directories that were not
/// yielded.** To find these directories, the walk reads the directory again from the start. To skip
/// some directories, call [`skip_name`](Self::skip_name) before the loop. To skip all, call
/// [`skip_subdirs`](Self::skip_subdirs).
///
/// **You can make requests by name**: [`skip_name`](Self::skip_name),
/// [`follow_name`](Self::follow_name) and [`enter`](Self::enter). A request holds before and after
/// its entry is yielded, even if the entry is never yielded. If there are several requests for a
/// name, including those on its [`Entry`], the last one wins.
///
/// When the walk continues, it visits the directories that were yielded or listed, in that order.
/// Then it visits the other directories that you named, in the order of the last request for each.
pub struct Dir<'a, S = ()> {
    entries: Entries<'a>,
    /// The directory that the name is relative to, at a second visit.
    parent: Option<BorrowedFd<'a>>,
    is_second_visit: bool,
    /// Whether the directory yields entries. A second visit and a directory at the maximum depth
    /// yield no entries.
    has_entries: bool,
    /// The reason why the directory cannot be read.
    unreadable: Option<Errno>,
    state: &'a mut S,
    /// The path of the directory, with its NUL.
    path: &'a [u8],
    links: &'a Links,
    subdirs: &'a mut Subdirs,
    /// The updates of the entry yielded last.
    updates: &'a EntryUpdates,
}

impl<'a, S> Dir<'a, S> {
    /// Begins a visit of the part's current directory, which is read into `buffer`.
    #[inline(always)]
    pub(crate) fn visit(part: &'a mut Part<S>, buffer: &'a mut Buffer) -> Self {
        let Part { cursor, subdirs, updates, .. } = part;
        let Cursor { options, root_parent, stack, links, path, unreadable, .. } = cursor;
        let (top, above) = stack.levels.split_last_mut().expect("BUG: there is no level");
        let bounds = top.bounds;
        let is_second_visit = top.remaining.visit == Visit::Second;
        let parent = match above.last() {
            _ if !is_second_visit => None,
            _ if bounds.depth == 0 => root_parent.as_deref().map(AsFd::as_fd),
            // Another directory's descriptor would make the name act elsewhere.
            above => above
                .filter(|above| above.bounds.depth + 1 == bounds.depth)
                .and_then(Level::open_dir),
        };
        let has_entries = !is_second_visit && bounds.depth < options.max_depth;
        let unreadable = unreadable.filter(|_| has_entries);
        let is_dead_end = is_second_visit || bounds.depth + 1 >= options.max_depth;
        subdirs.begin(is_dead_end, unreadable);
        let end_marker = top.end_marker;
        let (directory, LevelWork { state, .. }) = top.directory_and_remaining(path);
        let mut entries = Entries::of(directory, buffer, end_marker);
        if !has_entries || unreadable.is_some() {
            entries.phase = Phase::Ended;
        }
        Self {
            entries,
            parent,
            is_second_visit,
            has_entries,
            unreadable,
            state,
            path: path.as_bytes_with_nul(),
            links,
            subdirs,
            updates,
        }
    }

    /// Returns the next entry of this directory, or `None` at its end.
    ///
    /// Do not write `while let Ok(Some(entry)) = dir.next()`: that loop stops silently at the first
    /// error. [`next_ok`](Self::next_ok) is the usual loop.
    ///
    /// On btrfs, entries that are created after the walk has opened the directory are missing.
    /// [`read_into`](Self::read_into) has those that were created before the call.
    ///
    /// While an entry is in use, this `Dir` is borrowed. So take [`path`](Self::path),
    /// [`depth`](Self::depth) and a clone of the [`state`](Self::state) before the loop.
    ///
    /// # Errors
    ///
    /// Returns at most one error, and then `Ok(None)`. The walk still descends into the directories
    /// that came before the error. If the `Dir` is dropped before the error,
    /// [`WalkDirs::next`](crate::WalkDirs::next) returns the error.
    ///
    /// - If reading fails, the same as [`Entries::next`].
    /// - If the directory exists but cannot be opened for reading, the error of opening: usually
    ///   `EACCES`, sometimes `EPERM`, `ESTALE`, `EINVAL` or `EXDEV`.
    #[inline(always)]
    pub fn next(&mut self) -> Result<Option<Entry<'_>>, Error> {
        let Self { entries: Entries { records, phase, directory }, subdirs, updates, .. } = self;
        match find(records, phase, || *directory, || Some(*updates), |_| true) {
            Ok(Some(entry)) => {
                // Not in the closure, unlike `find`: this saves 2.6 instructions for each entry.
                subdirs.note(&entry);
                Ok(Some(entry))
            }
            end => Self::report_end(end.err(), *phase, subdirs, *directory).map(|()| None),
        }
    }

    /// Returns the next entry, or `None` at the end and after an error. Calls `on_error` with the
    /// error, of which there is at most one.
    #[inline(always)]
    pub fn next_ok(&mut self, on_error: impl FnOnce(Error)) -> Option<Entry<'_>> {
        self.next().map_err(on_error).unwrap_or(None)
    }

    /// Returns the next entry for which `wanted` returns `true`, or `None` if there is none. The
    /// walk also descends into the directories before this entry.
    ///
    /// ```
    /// let mut walk = lendir::walk_dirs("/sys/class/net")?;
    /// while let Some(mut dir) = walk.next_ok(|error| eprintln!("{error}")) {
    ///     let path = dir.path();
    ///     match dir.find(|entry| entry.name() == b"address") {
    ///         Ok(Some(_)) => println!("{path:?}"),
    ///         Ok(None) => {}
    ///         Err(error) => eprintln!("{error}"),
    ///     }
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Same as [`next`](Self::next). With `?`, the first directory that you have no permission to
    /// read ends the search of the tree.
    #[inline(always)]
    pub fn find(
        &mut self,
        mut wanted: impl FnMut(&Entry<'_>) -> bool,
    ) -> Result<Option<Entry<'_>>, Error> {
        let Self { entries: Entries { records, phase, directory }, subdirs, updates, .. } = self;
        let wanted = |entry: &Entry<'_>| {
            subdirs.note(entry);
            wanted(entry)
        };
        match find(records, phase, || *directory, || Some(*updates), wanted) {
            Ok(Some(entry)) => Ok(Some(entry)),
            end => Self::report_end(end.err(), *phase, subdirs, *directory).map(|()| None),
        }
    }

    /// Reads the directory to its end, and returns the number of entries that remained. The walk
    /// descends into the directories among these entries.
    ///
    /// # Errors
    ///
    /// Same as [`next`](Self::next). The count up to the error is lost.
    #[inline]
    pub fn count(&mut self) -> Result<u64, Error> {
        let mut count = 0;
        while self.next()?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    /// Ends the entries. Returns the error to report: `error`, or the reason why the directory
    /// cannot be read.
    #[inline]
    fn report_end(
        error: Option<Error>,
        phase: Phase,
        subdirs: &mut Subdirs,
        directory: Directory<'_>,
    ) -> Result<(), Error> {
        // If the first batch is empty, the walk reads the directory once more before the next one.
        let unreadable = if phase == Phase::Empty { None } else { subdirs.reading.end() };
        error.or_else(|| unreadable.map(|errno| directory.error(errno))).map_or(Ok(()), Err)
    }

    /// Reads the whole directory into `listing`, sorted. It does not matter which entries were
    /// yielded before. Afterwards [`next`](Self::next) is at the end.
    ///
    /// The walk descends into the directories in the order of the listing. It does not descend into
    /// a directory that was yielded before but is missing from the listing.
    ///
    /// ```
    /// use lendir::{Listing, WalkDirs};
    ///
    /// let mut listing = Listing::new();
    /// let mut walk = lendir::walk_dirs("/sys/class/net")?;
    /// while let Some(mut dir) = walk.next()? {
    ///     dir.read_into(&mut listing)?;
    ///     for entry in &listing {
    ///         if entry.name() == b"statistics" {
    ///             dir.skip_name(entry.name());
    ///         }
    ///     }
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Same as [`ReadDir::read_into`](crate::ReadDir::read_into) and [`next`](Self::next). After an
    /// error, the listing holds the entries that were read before the error. The walk descends into
    /// the directories among these entries.
    ///
    /// # Performance
    ///
    /// In addition to [`Listing::read`], this method opens the directory again if an entry was
    /// yielded before. It also copies the path of the directory. So if you read every directory of a
    /// deep chain by this method, the time grows with the square of the depth.
    /// [`walk`](crate::walk()) does not copy the path.
    #[doc(alias = "sort_by")]
    #[inline(always)]
    pub fn read_into(&mut self, listing: &mut Listing) -> Result<(), Error> {
        self.subdirs.merge(self.updates);
        let Entries { records, phase, directory } = &self.entries;
        if *phase != Phase::Reading || records.has_begun() {
            return self.read_again_into(listing);
        }
        if records.end_marker.is_fixed_by_open() {
            let _ = seek(directory.fd, SeekFrom::Start(0));
        }
        self.read_at(directory.fd, listing)
    }

    /// Reads the directory into `listing` from the position of `fd` on.
    #[inline(always)]
    fn read_at(&mut self, fd: BorrowedFd<'_>, listing: &mut Listing) -> Result<(), Error> {
        let Entries { records, directory, .. } = &self.entries;
        let result = listing.read_known(Directory { fd, ..*directory }, records.end_marker);
        self.entries.phase = Phase::ended(listing.is_removed());
        self.subdirs.note_all(listing);
        result
    }

    /// Reads the directory into `listing` from its beginning, after entries were read.
    #[cold]
    fn read_again_into(&mut self, listing: &mut Listing) -> Result<(), Error> {
        listing.clear();
        if let Some(errno) = self.unreadable {
            self.subdirs.reading.end(); // reported here
            return Err(self.wrap_error(errno));
        }
        if !self.has_entries {
            return Ok(());
        }
        let again = open_again(self.fd()).map_err(|errno| {
            self.subdirs.reading.is_unread = false; // reported here
            self.wrap_error(errno)
        })?;
        self.read_at(again.as_ref().map_or(self.fd(), AsFd::as_fd), listing)
    }

    /// Tells the walk not to descend into any entry of this name.
    ///
    /// The request holds before and after the entry is yielded. If there are several requests for a
    /// name, the last one wins: see [`Dir`].
    ///
    /// ```
    /// let mut walk = lendir::walk_dirs("/usr/share/doc")?;
    /// let mut entries = 0;
    /// while let Some(mut dir) = walk.next()? {
    ///     dir.skip_name(".git");
    ///     entries += dir.count()?;
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// Names are compared byte by byte. So `skip_name("Foo")` does not skip an entry `foo`, even in
    /// a case-insensitive directory.
    ///
    /// # Performance
    ///
    /// Each request copies the name. When the walk continues, it sorts the names, and looks up each
    /// yielded directory and link among them by a binary search.
    pub fn skip_name(&mut self, name: impl Name) {
        self.request(name.bytes(), EntryState::SKIP);
    }

    /// Tells the walk to descend into the entry `name`, even if it is a symbolic link: see
    /// [`Entry::follow`].
    ///
    /// The walk also tries a name that is not yielded. A name that does not exist, or that is
    /// neither a directory nor a link to one, is not an error. Under
    /// [`same_mount`](crate::WalkDirsOptions::same_mount), a name that is on another mount, or a
    /// link to one, is an error `EXDEV`. Returns `false` in the same cases as
    /// [`enter`](Self::enter).
    ///
    /// ```
    /// let mut walk = lendir::walk_dirs("/sys/class/net")?;
    /// if let Some(mut dir) = walk.next()? {
    ///     dir.follow_name("lo"); // a link to the directory of this device
    /// }
    /// # assert!(walk.next()?.is_some_and(|dir| dir.is_link()));
    /// # Ok::<(), lendir::Error>(())
    /// ```
    pub fn follow_name(&mut self, name: impl Name) -> bool {
        self.request(name.bytes(), EntryState::FOLLOW_NAME)
    }

    /// Tells the walk to descend into the directory `name`, even if it is never yielded or was
    /// skipped before.
    ///
    /// Returns `false`, and requests nothing, at a [second visit](Self::is_second_visit), or if
    /// [`max_depth`](crate::WalkDirsOptions::max_depth) does not allow opening a directory below
    /// this one.
    ///
    /// After [`skip_subdirs`](Self::skip_subdirs), the walk enters only the directories that you
    /// name, in the order in which you name them. So a directory whose entries you know need not
    /// even be read:
    ///
    /// ```
    /// # let mut walk = lendir::walk_dirs("/sys/class")?;
    /// # let mut dir = walk.next()?.unwrap();
    /// dir.skip_subdirs(); // and `next` was not called, so nothing is read
    /// dir.enter("net");
    /// # assert_eq!(walk.next()?.unwrap().name(), b"net");
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// The walk enters a name once, however often you pass it. Names are compared byte by byte. In
    /// a case-insensitive directory, a name that differs from its entry's name only in case can
    /// make the walk enter the directory twice.
    ///
    /// # Errors
    ///
    /// [`WalkDirs::next`](crate::WalkDirs::next) returns the error, with the path:
    ///
    /// - `ENOENT` if there is no such entry.
    /// - `ENOTDIR` if the entry is a symbolic link or a file.
    /// - `EXDEV` if the entry is a mount point, under
    ///   [`same_mount`](crate::WalkDirsOptions::same_mount).
    /// - `EINVAL` if no entry can have the name: an empty name, `.`, `..`, or a name that contains
    ///   a slash or a NUL. The path of the error shows a NUL as `\0`.
    /// - The errors of any directory that cannot be opened, such as `EACCES` and `ENAMETOOLONG`.
    ///
    /// # Performance
    ///
    /// Same as [`skip_name`](Self::skip_name).
    pub fn enter(&mut self, name: impl Name) -> bool {
        self.request(name.bytes(), EntryState::ENTER)
    }

    fn request(&mut self, name: &[u8], request: EntryState) -> bool {
        self.subdirs.merge(self.updates);
        self.subdirs.request(name, request)
    }

    /// Tells the walk not to descend into any entry of this directory. Cancels all earlier requests
    /// for its entries and names.
    ///
    /// [`next`](Self::next) still yields entries, and a later [`enter`](Self::enter) or
    /// [`follow_name`](Self::follow_name) still works. If the `Dir` is then dropped before its end,
    /// its remaining entries are not read.
    ///
    /// ```
    /// let mut walk = lendir::walk_dirs("/sys/class")?;
    /// while let Some(mut dir) = walk.next_ok(|error| eprintln!("{error}")) {
    ///     if dir.name() == b"net" {
    ///         dir.skip_subdirs();
    ///     }
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    #[doc(alias = "skip_current_dir")]
    #[inline]
    pub fn skip_subdirs(&mut self) {
        self.updates.take();
        self.subdirs.skip_all();
    }

    /// Returns the state that the walk passes down the tree: see
    /// [`WalkDirsOptions::with_state`](crate::WalkDirsOptions::with_state).
    #[inline]
    pub fn state(&self) -> &S {
        self.state
    }

    /// Returns a mutable reference to the state. A change applies to this directory and to
    /// everything below it.
    ///
    /// ```
    /// // Counts the directories on the path that are called `net`.
    /// let mut walk = lendir::WalkDirs::options().with_state(0).open("/sys/class")?;
    /// while let Some(mut dir) = walk.next_ok(|error| eprintln!("{error}")) {
    ///     if dir.name() == b"net" {
    ///         *dir.state_mut() += 1;
    ///     }
    ///     println!("{} {:?}", dir.state(), dir.path());
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    #[inline]
    pub fn state_mut(&mut self) -> &mut S {
        self.state
    }

    /// Returns the path of this directory. It begins with the root's path, as it was passed to the
    /// walk.
    ///
    /// **Use the path only in messages.** If another process moves directories, the path can lead
    /// elsewhere. The path can also be longer than `PATH_MAX` (4096 bytes), which no system call
    /// accepts. To act on the directory, use [`fd`](Self::fd).
    ///
    /// The path borrows from the walk, not from this `Dir`. So take it before the inner loop, where
    /// an entry borrows the `Dir`:
    ///
    /// ```
    /// let mut walk = lendir::walk_dirs("/sys/class")?;
    /// while let Some(mut dir) = walk.next_ok(|error| eprintln!("{error}")) {
    ///     let path = dir.path();
    ///     while let Some(entry) = dir.next_ok(|error| eprintln!("{error}")) {
    ///         println!("{:?} in {path:?}", entry.name_os());
    ///     }
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    #[inline]
    pub fn path(&self) -> &'a Path {
        Path::new(OsStr::from_bytes(self.entries.directory.path))
    }

    /// Returns the name of this directory.
    ///
    /// For a root, this is the [`Path::file_name`] of its path. If its path has no file name, such
    /// as `/`, `.`, `a/..` or an empty path, this is the whole path.
    #[inline]
    pub fn name(&self) -> &'a [u8] {
        self.path().file_name().map_or(self.entries.directory.path, OsStr::as_bytes)
    }

    /// Returns the [`name`](Self::name) as an `OsStr`, for `std`.
    #[inline]
    pub fn name_os(&self) -> &'a OsStr {
        OsStr::from_bytes(self.name())
    }

    /// Returns the number of levels from the root to this directory. The root has depth 0.
    #[inline]
    pub fn depth(&self) -> usize {
        self.entries.directory.depth
    }

    /// Returns `true` if this is the second visit of the directory, after everything below it: see
    /// [`second_visits`](crate::WalkDirsOptions::second_visits). Then the directory yields no
    /// entries.
    #[inline]
    pub fn is_second_visit(&self) -> bool {
        self.is_second_visit
    }

    /// Returns `true` if the entry of this directory is a symbolic link that you told the walk to
    /// follow. Returns `false` for a root.
    pub fn is_link(&self) -> bool {
        self.links.target(self.depth()).is_some()
    }

    /// Returns the descriptor of this directory, for `*at` calls on its entries and for calls on
    /// the directory itself. The descriptor borrows from the walk, in the same way as
    /// [`path`](Self::path).
    ///
    /// If you have no permission to read the directory, it is opened with `O_PATH`. Calls such as
    /// `fchmod` refuse such a descriptor.
    ///
    /// A lock by `flock` ends when the walk closes the descriptor, which it can do as soon as it
    /// continues.
    ///
    /// **Do not read the directory through this descriptor**: that moves the position from which
    /// [`next`](Self::next) reads. The walk would not descend into the directories that you read.
    /// Open `.` in the directory instead:
    ///
    /// ```
    /// # let mut walk = lendir::walk_dirs("/sys/class")?;
    /// # let dir = walk.next()?.unwrap();
    /// let mut listing = lendir::Listing::new();
    /// listing.read(lendir::openat(dir.fd(), c".")?)?;
    /// # assert!(!listing.is_empty());
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// If you read through the descriptor to the end before the first `next`, then `next` yields
    /// nothing. [`read_into`](Self::read_into) still reads the whole directory, and the walk reads
    /// the directory again before it continues.
    #[doc(alias = "as_fd")]
    #[inline]
    pub fn fd(&self) -> BorrowedFd<'a> {
        self.entries.directory.fd
    }

    /// Returns the metadata of this directory, such as its owner, mode and times, by one `fstat`.
    ///
    /// # Errors
    ///
    /// Returns an error if [fstat(2)] fails, with the path. A server can answer with any error,
    /// such as `EIO` or `ESTALE`.
    ///
    /// [fstat(2)]: https://man7.org/linux/man-pages/man2/fstat.2.html
    #[doc(alias = "metadata")]
    pub fn stat(&self) -> Result<Stat, Error> {
        retry_on_intr(|| fstat(self.fd())).map_err(|errno| self.wrap_error(errno))
    }

    /// Returns the metadata of this directory that `mask` selects: see [`Entry::statx`].
    ///
    /// # Errors
    ///
    /// Same as [`stat`](Self::stat), and `ENOSYS` before Linux 4.11.
    pub fn statx(&self, mask: StatxFlags) -> Result<Statx, Error> {
        retry_on_intr(|| statx(self.fd(), c"", AtFlags::EMPTY_PATH, mask))
            .map_err(|errno| self.wrap_error(errno))
    }

    /// Returns an [`Error`] with this directory's [`path`](Self::path) and [`depth`](Self::depth),
    /// for calls that you make yourself. `cause` is any value that converts into a
    /// [`std::io::Error`]: see [`Error::new`].
    #[cold]
    #[must_use = "this call creates an error, but does not report it"]
    pub fn wrap_error(&self, cause: impl Into<io::Error>) -> Error {
        self.entries.directory.error(cause)
    }

    /// Returns the open parent of this directory and its name there, at a [second
    /// visit](Self::is_second_visit). Pass both to calls such as `unlinkat` and `renameat`.
    ///
    /// ```
    /// use lendir::rustix::fs::{AtFlags, unlinkat};
    /// use lendir::{Dir, Error};
    ///
    /// /// Removes a directory whose contents have been removed before.
    /// fn remove(dir: &Dir<'_>) -> Result<(), Error> {
    ///     let Some((parent, name)) = dir.parent_and_name() else { return Ok(()) };
    ///     unlinkat(parent, name, AtFlags::REMOVEDIR).map_err(|errno| dir.wrap_error(errno))
    /// }
    /// ```
    ///
    /// A root that is opened by its path is opened through its parent. So `unlinkat` acts in this
    /// parent, even if the path leads elsewhere in the meantime. The name is the last component of
    /// the path as you passed it, such as `dir`, `dir/`, `..` or `/`.
    ///
    /// Do not pass the name to `chmodat` or `chownat`: these calls follow a symbolic link if
    /// another process has put one in place of the directory. To change the directory itself, call
    /// `fchmod` or `fchown` on its [`fd`](Self::fd).
    ///
    /// Returns `None`:
    ///
    /// - at a first visit, because the parent may already be closed for good;
    /// - for a root that was passed [as a descriptor](crate::WalkDirsOptions::from_fd);
    /// - if the level above is [lost](crate::WalkDirsOptions::max_open).
    ///   [`WalkDirs::next`](crate::WalkDirs::next) has already reported this loss.
    #[doc(alias("parent", "name_cstr"))]
    pub fn parent_and_name(&self) -> Option<(BorrowedFd<'a>, &'a CStr)> {
        let parent = self.parent?;
        let name_start = last_component_start(self.entries.directory.path);
        let name = CStr::from_bytes_until_nul(&self.path[name_start..]);
        Some((parent, name.expect("BUG: a path without its NUL")))
    }

    /// Returns `true` if the directory was removed before or while it was read: see
    /// [`Entries::is_removed`].
    pub fn is_removed(&self) -> bool {
        self.entries.is_removed()
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
