//! `Dir`: the current directory, its entries, and the requests of the caller. It does not know which directory comes next, nor how
//! one is opened.

use super::part::{LevelWork, Part, Visit};
use super::subdirs::Subdirs;
use crate::cursor::Cursor;
use crate::cursor::links::Links;
use crate::cursor::opener::last_component_start;
use crate::cursor::stack::Level;
use crate::error::Error;
use crate::listing::Listing;
use crate::name::Name;
use crate::read_dir::buffer::Buffer;
use crate::read_dir::entries::{Entries, find};
use crate::read_dir::entry::{Directory, Entry};
use crate::read_dir::entry_state::{EntryState, EntryUpdates};
use crate::read_dir::records::Phase;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{AtFlags, Stat, Statx, StatxFlags, fstat, statx};
use rustix::io::{Errno, retry_on_intr};
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::{fmt, io};

/// An open directory of a [`WalkDirs`](crate::WalkDirs), lent until the walk goes on. It lends the same [`Entry`] as [`Entries`].
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
/// Two directories cannot be lent at once, because they share the buffer, nor can an entry be kept beyond the next call of
/// `next`: the compiler refuses it.
///
/// **After a `break`, the walk also goes below directories that it has not lent.** To find them, it reads the directory again
/// from the start, which costs one `lseek`. To keep it from some of them, call [`skip_name`](Self::skip_name) before the
/// loop; to keep it from all, call [`skip_subdirs`](Self::skip_subdirs). A directory whose first `getdents64` returns nothing is also
/// read once more, because you may have read it [through the descriptor](Self::fd).
///
/// **Each call for a name holds**, before or after its entry is lent, and even if it is never lent; the last one counts. When
/// the walk goes on, it visits the directories that were lent or listed, in that order; then those that you named and it did
/// not lend, in the order in which you last named them.
pub struct Dir<'a, S = ()> {
    entries: Entries<'a>,
    /// The directory that its name is relative to, at a second visit.
    parent: Option<BorrowedFd<'a>>,
    /// The offset of its name in the path.
    name_start: usize,
    is_second_visit: bool,
    /// Whether it yields entries. At a second visit and below the maximum depth it yields none.
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
            above => above.and_then(Level::open_dir),
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
            name_start: bounds.name_start,
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

    /// The next entry of this directory, or `None` at its end. While the entry is in use, this `Dir` is borrowed: take
    /// [`path`](Self::path), [`depth`](Self::depth) and a clone of the [`state`](Self::state) before the loop.
    ///
    /// Never `while let Ok(Some(entry))`: it takes an error for the end.
    ///
    /// Costs: as [`Entries::next`]; the name of a directory or a link is copied, that of a file is not.
    ///
    /// # Errors
    ///
    /// At most one, then `Ok(None)`. The walk still goes below the directories that came before it. If the `Dir` is dropped
    /// earlier, [`WalkDirs::next`](crate::WalkDirs::next) returns the error.
    ///
    /// - What [`Entries::next`] can fail with.
    /// - For a directory that exists and cannot be opened for reading, what the kernel answered: `EACCES` as a rule, or `EPERM`,
    ///   `ESTALE`, `EINVAL` or `EXDEV`.
    #[inline(always)]
    pub fn next(&mut self) -> Result<Option<Entry<'_>>, Error> {
        let Self { entries: Entries { records, phase, directory }, subdirs, updates, .. } = self;
        match find(records, phase, || *directory, || Some(*updates), |_| true) {
            Ok(Some(entry)) => {
                subdirs.note(&entry); // not in the closure, as in `find`: 2.6 instructions fewer an entry
                Ok(Some(entry))
            }
            end => Self::report_end(end.err(), *phase, subdirs, *directory).map(|()| None),
        }
    }

    /// The next entry, or `None` at the end and after an error, which `on_error` gets: [`Entries::next_ok`].
    #[inline(always)]
    pub fn next_ok(&mut self, on_error: impl FnOnce(Error)) -> Option<Entry<'_>> {
        self.next().map_err(on_error).unwrap_or(None)
    }

    /// The next entry that is `wanted`, or `None` at the end: see [`Entries::find`]. The walk goes below those before it too.
    ///
    /// # Errors
    ///
    /// What [`next`](Self::next) can fail with. With `?`, the first directory that may not be read ends the search of the tree.
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

    /// Reads to the end and counts the entries that were left: see [`Entries::count`]. The walk goes below them.
    ///
    /// # Errors
    ///
    /// What [`next`](Self::next) can fail with. The count up to an error is lost.
    #[inline]
    pub fn count(&mut self) -> Result<u64, Error> {
        let mut count = 0;
        while self.next()?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    /// Ends the entries. Returns the error to report: `error`, or why the directory cannot be read.
    #[inline]
    fn report_end(
        error: Option<Error>,
        phase: Phase,
        subdirs: &mut Subdirs,
        directory: Directory<'_>,
    ) -> Result<(), Error> {
        // If the first batch is empty, the walk reads the directory once more before the next one.
        let unreadable = if phase == Phase::Empty { None } else { subdirs.end_reading() };
        error.or_else(|| unreadable.map(|errno| directory.error(errno))).map_or(Ok(()), Err)
    }

    /// Reads this directory into `listing`, sorted: all of it, whatever was lent before. The walk goes below it in that
    /// order, and not below what was lent before and is missing from it.
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
    /// Costs: as [`Listing::read`], and one `lseek` if an entry was lent before. It copies the names of directories and of
    /// symbolic links, and the path of the directory. So where every level of a chain is read like this, the time grows with
    /// the square of the depth. [`walk`](crate::walk) does not copy the path.
    ///
    /// # Errors
    ///
    /// What [`Listing::read`] and [`next`](Self::next) can fail with. The listing then holds the entries before the error,
    /// and the walk goes below these.
    #[doc(alias = "sort_by")]
    #[inline(always)]
    pub fn read_into(&mut self, listing: &mut Listing) -> Result<(), Error> {
        self.subdirs.merge(self.updates);
        let Entries { records, phase, .. } = &self.entries;
        if (*phase != Phase::Reading || records.has_begun())
            && !self.prepare_to_read_again(listing)?
        {
            return Ok(());
        }
        let result = listing.read_known(self.entries.directory, self.entries.records.end_marker);
        self.entries.phase = Phase::ended(listing.is_removed());
        self.subdirs.note_all(listing);
        result
    }

    /// Rewinds the directory for [`read_into`](Self::read_into). Returns whether it has entries.
    #[cold]
    fn prepare_to_read_again(&mut self, listing: &mut Listing) -> Result<bool, Error> {
        listing.clear();
        if let Some(errno) = self.unreadable {
            self.subdirs.end_reading(); // reported here
            return Err(self.wrap_error(errno));
        }
        if self.has_entries {
            // If the first batch was empty, the position is presumably still at the first entry.
            let is_empty = self.entries.phase == Phase::Empty;
            let rewound =
                self.entries.rewind().or_else(|error| if is_empty { Ok(()) } else { Err(error) });
            rewound.inspect_err(|_| self.subdirs.is_unread = false)?; // reported here
        }
        Ok(self.has_entries)
    }

    /// Keeps the walk from going below any entry of this name, before or after it is lent. Of this,
    /// [`follow_name`](Self::follow_name), [`enter`](Self::enter) and the calls of its [`Entry`], the last one for a name
    /// counts.
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
    /// Names are compared byte by byte, in a case-insensitive directory too: `skip_name("Foo")` does not skip an entry `foo`.
    ///
    /// Costs: a copy of the name. When the walk goes on, the n names that were given are sorted, and each directory and link that
    /// was lent is looked up among them: log2(n) comparisons.
    pub fn skip_name(&mut self, name: impl Name) {
        self.request(name.bytes(), EntryState::SKIP);
    }

    /// As [`Entry::follow`], by name: see [`enter`](Self::enter), also for what it returns and costs. A name that is not lent is
    /// tried as well; if nothing has it, or neither a directory nor a link to one, that is no error.
    pub fn follow_name(&mut self, name: impl Name) -> bool {
        self.request(name.bytes(), EntryState::FOLLOW)
    }

    /// Goes below the directory `name` in this one, lent or not, even if it was skipped before. Returns `false`, and enters
    /// nothing, at a [second visit](Self::is_second_visit) and where [`max_depth`](crate::WalkDirsOptions::max_depth) allows nothing
    /// below. A name is walked once, however often it is given. Names are compared byte by byte: in a case-insensitive directory,
    /// a name that differs from the entry's only in case can make the walk enter the directory twice.
    ///
    /// After [`skip_subdirs`](Self::skip_subdirs) only what is named is walked, in the order in which it is named. Then a walk need not
    /// even read a directory whose entries are already known.
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
    /// Costs: as [`skip_name`](Self::skip_name). [`WalkDirs::next`](crate::WalkDirs::next) returns the errors, with the path: `ENOENT` if
    /// there is no such entry, `ENOTDIR` for a symbolic link and all else that is no directory, `EINVAL` if no entry can have the
    /// name: empty, `.`, `..`, with a slash or a NUL, which the path shows as `\0`; and those of any directory, such as `EACCES`
    /// and `ENAMETOOLONG`. Under [`same_mount`](crate::WalkDirsOptions::same_mount) a mount point is not entered, without an error.
    pub fn enter(&mut self, name: impl Name) -> bool {
        self.request(name.bytes(), EntryState::ENTER)
    }

    fn request(&mut self, name: &[u8], request: EntryState) -> bool {
        self.subdirs.merge(self.updates);
        self.subdirs.request(name, request)
    }

    /// Keeps the walk from going below any entry of this directory, and takes back all calls for names before this one.
    /// [`next`](Self::next) still lends entries, and [`enter`](Self::enter) still enters. If the `Dir` is then dropped before
    /// its end, the rest is not read.
    #[doc(alias = "skip_current_dir")]
    #[inline]
    pub fn skip_subdirs(&mut self) {
        self.updates.take();
        self.subdirs.skip_all();
    }

    /// The state that the walk carries down: see [`WalkDirsOptions::with_state`](crate::WalkDirsOptions::with_state).
    #[inline]
    pub fn state(&self) -> &S {
        self.state
    }

    /// The state, to be changed for this directory and those below it.
    #[inline]
    pub fn state_mut(&mut self) -> &mut S {
        self.state
    }

    /// Its path: that of the root, as it was given to the walk, and the names from there to here. **It is for people to read**:
    /// if others move directories, it can lead elsewhere, and it can be longer than `PATH_MAX` (4096 bytes), which no system
    /// call takes. To act on the directory, use [`fd`](Self::fd). It borrows from the walk, not from this `Dir`: take it before
    /// the inner loop, where an entry borrows the `Dir`. Costs nothing.
    #[inline]
    pub fn path(&self) -> &'a Path {
        Path::new(OsStr::from_bytes(self.entries.directory.path))
    }

    /// Its name, as [`Entry::name`]. For a root, what [`Path::file_name`] makes of its path, or the whole path where that is
    /// `None`: `/`, `.`, `a/..`, or an empty one.
    #[inline]
    pub fn name(&self) -> &'a [u8] {
        let of_root = if self.depth() == 0 { self.path().file_name() } else { None };
        of_root.map_or(&self.entries.directory.path[self.name_start..], OsStr::as_bytes)
    }

    /// Its name for `std`.
    #[inline]
    pub fn name_os(&self) -> &'a OsStr {
        OsStr::from_bytes(self.name())
    }

    /// How many levels it is below the root, whose depth is 0.
    #[inline]
    pub fn depth(&self) -> usize {
        self.entries.directory.depth
    }

    /// Whether it was visited before, and everything below it after that: see
    /// [`second_visits`](crate::WalkDirsOptions::second_visits). It has no entries then.
    #[inline]
    pub fn is_second_visit(&self) -> bool {
        self.is_second_visit
    }

    /// Whether its own entry is a symbolic link that the caller told the walk to follow. Never for a root.
    pub fn is_link(&self) -> bool {
        self.links.target(self.depth()).is_some()
    }

    /// Its descriptor, for `*at` calls on its entries, and for calls on the directory itself. `fchmod` refuses it if the
    /// directory may not be read, because then it is opened with `O_PATH`. It borrows from the walk, as [`path`](Self::path)
    /// does.
    ///
    /// **Reading through it moves the position that [`next`](Self::next) reads from**, and the walk does not go below what you
    /// read so. To read the directory yourself, open `c"."` in it. If you have read it to its end before the first `next`,
    /// `next` lends nothing, [`read_into`](Self::read_into) gives all of it, and the walk reads it again.
    #[doc(alias = "as_fd")]
    #[inline]
    pub fn fd(&self) -> BorrowedFd<'a> {
        self.entries.directory.fd
    }

    /// What the file system knows of this directory. Costs: one `fstat`.
    ///
    /// # Errors
    ///
    /// What [fstat(2)] can fail with, with the path. A server can return any error, such as `EIO` or `ESTALE`.
    ///
    /// [fstat(2)]: https://man7.org/linux/man-pages/man2/fstat.2.html
    #[doc(alias = "metadata")]
    pub fn stat(&self) -> Result<Stat, Error> {
        retry_on_intr(|| fstat(self.fd())).map_err(|errno| self.wrap_error(errno))
    }

    /// As [`Entry::statx`], of this directory.
    ///
    /// # Errors
    ///
    /// What [`stat`](Self::stat) can fail with, and `ENOSYS` before Linux 4.11.
    pub fn statx(&self, mask: StatxFlags) -> Result<Statx, Error> {
        retry_on_intr(|| statx(self.fd(), c"", AtFlags::EMPTY_PATH, mask))
            .map_err(|errno| self.wrap_error(errno))
    }

    /// Returns an [`Error`] with this directory's [`path`](Self::path) and [`depth`](Self::depth), for calls that you make
    /// yourself. `cause` is anything that converts into a [`std::io::Error`]; see [`Error::new`].
    #[cold]
    #[must_use = "this makes an error, and reports nothing"]
    pub fn wrap_error(&self, cause: impl Into<io::Error>) -> Error {
        self.entries.directory.error(cause)
    }

    /// Returns its open parent directory and its name there, for calls such as `unlinkat` and `renameat`, at a
    /// [second visit](Self::is_second_visit).
    ///
    /// A root that was opened by a path was opened through its parent. So the call acts in that directory, wherever the path
    /// leads by then. The name is the last component of the path as it was given, such as `dir`, `dir/`, `..` or `/`.
    ///
    /// Do not pass the name to `chmodat` or `chownat`: they follow a symbolic link that another process has put in place of
    /// the directory. To change the directory itself, call `fchmod` or `fchown` on its [`fd`](Self::fd).
    ///
    /// Returns `None`:
    ///
    /// - at a first visit, when its parent may already be closed for good;
    /// - for a root that was passed [as a descriptor](crate::WalkDirsOptions::from_fd);
    /// - if the level above is [lost](crate::WalkDirsOptions::max_open). [`WalkDirs::next`](crate::WalkDirs::next) has reported
    ///   that error.
    ///
    /// # Performance
    ///
    /// Scans the name for its NUL.
    #[doc(alias("parent", "name_cstr"))]
    pub fn parent_and_name(&self) -> Option<(BorrowedFd<'a>, &'a CStr)> {
        let parent = self.parent?;
        let is_root = self.depth() == 0;
        let path = self.entries.directory.path;
        let name_start = if is_root { last_component_start(path) } else { self.name_start };
        let name = CStr::from_bytes_until_nul(&self.path[name_start..]);
        Some((parent, name.expect("BUG: a path without its NUL")))
    }

    /// Whether it turned out to be removed while it was read: see [`Entries::is_removed`].
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
