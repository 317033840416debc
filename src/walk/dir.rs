//! `Dir`: the current directory, and what the caller says of its entries.

use super::descent::Current;
use super::links::Links;
use super::notes::{Enters, Notes, Rest};
use super::pending::Kind;
use super::traversal::{Todo, Traversal, Visit};
use crate::buffer::Buffer;
use crate::entries::{Entries, find};
use crate::entry::{Directory, Entry};
use crate::error::Error;
use crate::listing::Listing;
use crate::records::{Phase, Records};
use rustix::fd::BorrowedFd;
use rustix::fs::{AtFlags, Stat, Statx, StatxFlags, fstat, statx};
use rustix::io::retry_on_intr;
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::{fmt, io};

/// An open directory of a [`Walk`](super::Walk), lent until the walk goes on. It lends the same [`Entry`] as [`Entries`].
///
/// **After a `break`, the walk also goes below directories that you never saw.** To find them, it reads the directory again from
/// the start, which costs one `lseek` and a copy of the names that were lent. To keep it from some of them, call
/// [`skip_name`](Self::skip_name) before the loop; to keep it from all, call [`skip_all`](Self::skip_all). A directory whose
/// first `getdents64` returns nothing is also read once more, because you may have read it [through the descriptor](Self::fd). If
/// a server lists entries only then, the walk enters them without lending them.
///
/// **What you say of a name holds**, before or after its entry is lent, and even if it is never lent; what you say last counts.
/// When the walk goes on, it visits the directories that were lent or listed, in that order; then those that you named and it did
/// not lend, in the order in which you last named them.
///
/// Two directories cannot be lent at once, because they share the buffer, nor can an entry be kept beyond the next call of
/// `next`:
///
/// ```compile_fail,E0499
/// # fn keep(walk: &mut lendir::Walk) -> Result<(), lendir::Error> {
/// let first = walk.next()?;
/// let second = walk.next()?; // error: `walk` is still borrowed by `first`
/// drop(first);
/// # Ok(())
/// # }
/// ```
///
/// ```compile_fail,E0499
/// # fn keep(mut dir: lendir::Dir<'_>) -> Result<(), lendir::Error> {
/// let first = dir.next()?;
/// let second = dir.next()?; // error: `dir` is still borrowed by `first`
/// drop(first);
/// # Ok(())
/// # }
/// ```
///
/// A reader of its own would move the position that the walk reads from:
///
/// ```compile_fail,E0277
/// # fn read(dir: lendir::Dir<'_>, listing: &mut lendir::Listing) -> Result<(), lendir::Error> {
/// listing.read(&dir)?; // error: `Dir` is no `AsFd`. `dir.read_into(listing)` reads it
/// # Ok(())
/// # }
/// ```
pub struct Dir<'a, S = ()> {
    entries: Entries<'a>,
    /// At a second visit.
    parent: Option<BorrowedFd<'a>>,
    /// Where its name begins in the path.
    name_at: usize,
    /// Where its names begin among the pending ones.
    names_at: usize,
    is_second_visit: bool,
    /// Whether it has entries to lend: at a second visit and below the maximum depth it has none.
    has_entries: bool,
    state: &'a mut S,
    /// With its NUL.
    path: &'a [u8],
    links: &'a Links,
    notes: &'a mut Notes,
}

impl<'a, S> Dir<'a, S> {
    /// Lends the current directory, which is read into `buffer`.
    #[inline(always)]
    pub(super) fn lend(traversal: &'a mut Traversal<S>, buffer: &'a mut Buffer) -> Self {
        let Traversal { descent, notes, .. } = traversal;
        let max_depth = descent.options().max_depth;
        let Current { dir, bounds, end_marker, unreadable, left, parent, path, links } = descent.visit();
        let Todo { names_at, state, .. } = left;
        let is_second_visit = left.visit == Visit::Second;
        let has_entries = !is_second_visit && bounds.depth < max_depth;
        notes.unreadable = unreadable.filter(|_| has_entries);
        // Where nothing is entered, there is nothing to find in what the caller does not read.
        let is_dead_end = is_second_visit || bounds.depth + 1 >= max_depth;
        notes.lend(if is_dead_end { (Rest::Waived, Enters::Nothing) } else { (Rest::Owed, Enters::Lent) });
        let phase = if has_entries && notes.unreadable.is_none() { Phase::Reading } else { Phase::Ended };
        let path = path.as_bytes_with_nul();
        let directory = Directory { fd: dir, path: bounds.path(path), depth: bounds.depth };
        let entries = Entries { records: Records::new(dir, buffer.memory(), end_marker), phase, directory };
        let (parent, names_at) = (parent.filter(|_| is_second_visit), *names_at);
        Self {
            entries,
            parent,
            name_at: bounds.name_at,
            names_at,
            is_second_visit,
            has_entries,
            state,
            path,
            links,
            notes,
        }
    }

    /// The next entry of this directory, or `None` at its end. While the entry is in use, this `Dir` is borrowed: take
    /// [`path`](Self::path), [`depth`](Self::depth) and a clone of the [`state`](Self::state) before the loop, and call
    /// [`skip_entry`](Self::skip_entry) after the last use of the entry.
    ///
    /// [`Entries::next`] warns of a loop that loses errors.
    ///
    /// Costs: as [`Entries::next`]; the name of a directory or a link is copied, that of a file is not.
    ///
    /// # Errors
    ///
    /// At most one, then `Ok(None)`. The walk still goes below the directories that came before it. If the `Dir` is dropped
    /// earlier, [`Walk::next`](super::Walk::next) returns the error.
    ///
    /// - Those of [`Entries::next`].
    /// - For a directory that exists and cannot be opened for reading, what the kernel answered: `EACCES` as a rule, or `EPERM`,
    ///   `ESTALE`, `EINVAL` or `EXDEV`.
    #[inline(always)]
    pub fn next(&mut self) -> Result<Option<Entry<'_>>, Error> {
        let Entries { records, phase, directory } = &mut self.entries;
        match find(records, phase, || *directory, |_| true) {
            Ok(Some(entry)) => {
                self.notes.note(&entry);
                Ok(Some(entry))
            }
            ended => Self::at_end(ended.err(), *phase, self.notes, *directory).map(|()| None),
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
    /// Those of [`next`](Self::next). With `?`, the first directory that may not be read ends the search of the tree.
    #[inline(always)]
    pub fn find(&mut self, mut wanted: impl FnMut(&Entry<'_>) -> bool) -> Result<Option<Entry<'_>>, Error> {
        let notes = &mut *self.notes;
        let Entries { records, phase, directory } = &mut self.entries;
        let wanted = |entry: &Entry<'_>| {
            notes.note(entry);
            wanted(entry)
        };
        match find(records, phase, || *directory, wanted) {
            Ok(Some(entry)) => Ok(Some(entry)),
            ended => Self::at_end(ended.err(), *phase, self.notes, *directory).map(|()| None),
        }
    }

    /// Reads to the end and counts the entries that were left: see [`Entries::count`]. The walk goes below them.
    ///
    /// # Errors
    ///
    /// Those of [`next`](Self::next). The count up to an error is lost.
    #[inline]
    pub fn count(&mut self) -> Result<u64, Error> {
        let mut count = 0;
        while self.next()?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    /// No entry is left, or the kernel answered with `error`.
    #[inline]
    fn at_end(error: Option<Error>, phase: Phase, notes: &mut Notes, directory: Directory<'_>) -> Result<(), Error> {
        match (error, notes.at_end(phase == Phase::Empty)) {
            (Some(error), _) => Err(error),
            (None, Some(errno)) => Err(directory.error(errno)),
            (None, None) => Ok(()),
        }
    }

    /// Reads all entries from the first on, to note the directories that were not lent.
    pub(super) fn read_again(&mut self, has_lent: bool) -> Result<(), Error> {
        self.rewind(has_lent)?;
        self.notes.begin_again(self.names_at);
        self.count().map(drop)
    }

    /// Goes back to the first entry. If that fails before any was lent, it stands there, as far as anybody knows.
    fn rewind(&mut self, has_lent: bool) -> Result<(), Error> {
        self.entries.rewind().or_else(|error| if has_lent { Err(error) } else { Ok(()) })
    }

    /// Reads this directory into `listing`, sorted: all of it, whatever was lent before. The walk goes below it in that
    /// order, and then below what was lent before and is missing from it.
    ///
    /// ```
    /// use lendir::{Listing, Walk};
    ///
    /// let mut listing = Listing::new();
    /// let mut walk = Walk::open("/sys/class/net")?;
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
    /// Costs: those of [`Listing::read`], and if an entry was lent before, one `lseek`. It copies the names of directories and of
    /// symbolic links, and the path of the directory. So where every level of a chain is read like this, the time grows with the
    /// square of the depth. [`read_tree`](crate::read_tree) does not copy the path.
    ///
    /// # Errors
    ///
    /// Those of [`Listing::read`] and of [`next`](Self::next). The listing then holds the entries before the error, and the walk
    /// goes below these.
    #[doc(alias = "sort_by")]
    #[inline(always)]
    pub fn read_into(&mut self, listing: &mut Listing) -> Result<(), Error> {
        self.notes.list();
        let Entries { records, phase, .. } = &self.entries;
        if (*phase != Phase::Reading || records.has_begun()) && !self.prepare_to_read_again(listing)? {
            return Ok(());
        }
        let result = listing.read_known(self.entries.directory, self.entries.records.end_marker);
        self.entries.phase = Phase::ended(listing.removed());
        self.notes.note_all(listing, self.names_at);
        result
    }

    /// Whether there is anything to read, from the beginning.
    #[cold]
    fn prepare_to_read_again(&mut self, listing: &mut Listing) -> Result<bool, Error> {
        listing.clear();
        if let Some(errno) = self.notes.unreadable {
            self.notes.done(); // `next` need not report it again
            return Err(self.error(errno));
        }
        if self.has_entries {
            let rewound = self.rewind(self.entries.phase != Phase::Empty);
            rewound.inspect_err(|_| self.notes.waive())?; // the walk need not report it again
        }
        Ok(self.has_entries)
    }

    /// Keeps the walk from going below the entry just lent. It does nothing before the first entry, after the end, after
    /// [`skip_all`](Self::skip_all), and for an entry whose [`d_type`](Entry::d_type) says that it is a file. Costs
    /// nothing; in a directory in which you have named entries, what [`skip_name`](Self::skip_name) costs.
    ///
    /// # Panics
    ///
    /// After [`read_into`](Self::read_into), where no entry is the one just lent: use [`skip_name`](Self::skip_name).
    #[doc(alias("hidden", "prune", "filter_entry"))]
    #[inline]
    #[track_caller]
    pub fn skip_entry(&mut self) {
        assert!(!self.notes.is_listed(), "`skip_entry` after `read_into`, which lends no entry: use `skip_name`");
        self.notes.say_of_last(Kind::SKIPPED);
    }

    /// Keeps the walk from going below any entry of this name, before or after it is lent. What is said of a name last counts,
    /// here and with [`follow_name`](Self::follow_name) and [`enter`](Self::enter).
    ///
    /// ```
    /// let mut walk = lendir::Walk::open("/usr/share/doc")?;
    /// let mut entries = 0;
    /// while let Some(mut dir) = walk.next()? {
    ///     dir.skip_name(".git");
    ///     entries += dir.count()?;
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// Costs: a copy of the name. When the walk goes on, the n names that were given are sorted, and each directory and link that
    /// was lent is looked up among them: log2(n) comparisons.
    pub fn skip_name(&mut self, name: impl AsRef<[u8]>) {
        self.notes.say(name.as_ref(), Kind::SKIPPED);
    }

    /// Goes below the entry that was just lent even if it is a symbolic link. A link to a file, or to nothing, is no error. It
    /// does nothing where [`skip_entry`](Self::skip_entry) does nothing.
    ///
    /// **Below this link, the walk no longer promises to stay in its tree**: anyone who can change the link decides where it
    /// leads. To limit that, look where it led before anything is read: `if dir.is_link() && !is_allowed(dir.fd()) {
    /// dir.skip_all(); continue }`. Links below it are lent and not followed. Under
    /// [`same_mount`](super::WalkOptions::same_mount), a link to another mount is not entered.
    ///
    /// A link that leads back to the root, or to a directory on the path to it, is a loop. Below a followed link, so is any
    /// directory that is already on that path. A loop is not entered. It is the error `ELOOP`, and
    /// [`loop_ancestor`](Error::loop_ancestor) is the directory to which the link leads back. A link that leads only to other
    /// links is `ELOOP` too, without such a directory.
    ///
    /// To recognise a loop, the walk goes up from the link by `..`. Where that fails, because a directory above may not be searched
    /// any more or a server does not answer, it does not enter what it cannot know to be no loop: the links below there are errors,
    /// such as `EACCES`, each with its own path, though the link, its directory and its target may be read.
    ///
    /// Without a loop, links still multiply: 54 entries in 18 layers, with two links to each next layer, are 524,287 visits.
    /// [`max_depth`](super::WalkOptions::max_depth) bounds that.
    ///
    /// ```
    /// let mut walk = lendir::Walk::open("/sys/class/net")?;
    /// while let Some(mut dir) = walk.next_ok(|error| eprintln!("{error}")) {
    ///     let is_root = dir.depth() == 0;
    ///     while let Some(_entry) = dir.next_ok(|error| eprintln!("{error}")) {
    ///         if is_root {
    ///             dir.follow_entry(); // to the devices, and no further; for a file it does nothing
    ///         }
    ///     }
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// Panics as [`skip_entry`](Self::skip_entry): after [`read_into`](Self::read_into), use [`follow_name`](Self::follow_name).
    ///
    /// Costs: for each link, instead of `openat2`: `openat`, `fstatfs`, and `statx` of the directory and, with an `openat` and a
    /// `close`, of each ancestor that is not known from a link before; meanwhile two descriptors more than
    /// [`max_open`](super::WalkOptions::max_open). Below a link, one `statx` for each directory. To come back to a level that was
    /// closed early and is right above a link, an `openat` for each directory from the deepest open level above it to there, and a
    /// `statx` for each level and each link on that way: only if more links are on the path than `max_open` minus 3. In memory,
    /// some 90 bytes for each directory above a link, and 24 for each link on the path.
    #[doc(alias = "follow_links")]
    #[inline]
    #[track_caller]
    pub fn follow_entry(&mut self) {
        assert!(!self.notes.is_listed(), "`follow_entry` after `read_into`, which lends no entry: use `follow_name`");
        self.notes.say_of_last(Kind::ANY);
    }

    /// As [`follow_entry`](Self::follow_entry), by name: see [`enter`](Self::enter), also for what it returns and costs. A name
    /// that is not lent is tried as well; if nothing has it, or neither a directory nor a link to one, that is no error.
    pub fn follow_name(&mut self, name: impl AsRef<[u8]>) -> bool {
        self.notes.say(name.as_ref(), Kind::ANY)
    }

    /// Goes below the directory `name` in this one, lent or not, even if it was skipped before. Returns `false`, and enters
    /// nothing, at a [second visit](Self::is_second_visit) and where [`max_depth`](super::WalkOptions::max_depth) allows nothing
    /// below. A name is walked once, however often it is given.
    ///
    /// After [`skip_all`](Self::skip_all) only what is named is walked, in the order in which it is named. Then a walk need not
    /// even read a directory whose entries are already known.
    ///
    /// ```
    /// # let mut walk = lendir::Walk::open("/sys/class")?;
    /// # let mut dir = walk.next()?.unwrap();
    /// dir.skip_all(); // and `next` was not called, so nothing is read
    /// dir.enter("net");
    /// # assert_eq!(walk.next()?.unwrap().name(), b"net");
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// Costs: as [`skip_name`](Self::skip_name). [`Walk::next`](super::Walk::next) returns the errors, with the path: `ENOENT` if
    /// there is no such entry, `ENOTDIR` for a symbolic link and all else that is no directory, `EINVAL` if no entry can have the
    /// name: empty, `.`, `..`, with a slash or a NUL, which the path shows as `\0`; and those of any directory, such as `EACCES`
    /// and `ENAMETOOLONG`. Under [`same_mount`](super::WalkOptions::same_mount) a mount point is not entered, without an error.
    pub fn enter(&mut self, name: impl AsRef<[u8]>) -> bool {
        self.notes.say(name.as_ref(), Kind::ENTERED)
    }

    /// Keeps the walk from going below any entry of this directory, and forgets what was said of names before.
    /// [`next`](Self::next) still lends entries, and [`enter`](Self::enter) still enters. If the `Dir` is then dropped before its
    /// end, the rest is not read.
    #[doc(alias = "skip_current_dir")]
    #[inline]
    pub fn skip_all(&mut self) {
        self.notes.skip_all(self.names_at);
    }

    /// The state that the walk carries down: see [`WalkOptions::with_state`](super::WalkOptions::with_state).
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
        of_root.map_or(&self.entries.directory.path[self.name_at..], OsStr::as_bytes)
    }

    /// Its name with a NUL, for `*at` calls relative to [`parent`](Self::parent). A root has no parent: for it, this
    /// is its path as it was given, up to the first NUL, for calls relative to the current directory.
    #[inline]
    pub fn name_cstr(&self) -> &'a CStr {
        CStr::from_bytes_until_nul(&self.path[self.name_at..]).expect("BUG: a path without its NUL")
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
    /// [`second_visits`](super::WalkOptions::second_visits). It has no entries then.
    #[inline]
    pub fn is_second_visit(&self) -> bool {
        self.is_second_visit
    }

    /// Whether its own entry is a symbolic link that the caller told the walk to follow. Never for a root.
    pub fn is_link(&self) -> bool {
        self.links.target(self.depth()).is_some()
    }

    /// Its descriptor, for `*at` calls on its entries. If the directory may not be read, it is one with `O_PATH`, which
    /// `fchmod` refuses. It borrows from the walk, as [`path`](Self::path) does.
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
    /// Those of [fstat(2)], with the path. A server can return any error, such as `EIO` or `ESTALE`.
    ///
    /// [fstat(2)]: https://man7.org/linux/man-pages/man2/fstat.2.html
    #[doc(alias = "metadata")]
    pub fn stat(&self) -> Result<Stat, Error> {
        retry_on_intr(|| fstat(self.fd())).map_err(|errno| self.error(errno))
    }

    /// As [`Entry::statx`], of this directory.
    ///
    /// # Errors
    ///
    /// Those of [`stat`](Self::stat), and `ENOSYS` before Linux 4.11.
    pub fn statx(&self, mask: StatxFlags) -> Result<Statx, Error> {
        retry_on_intr(|| statx(self.fd(), c"", AtFlags::EMPTY_PATH, mask)).map_err(|errno| self.error(errno))
    }

    /// Makes an [`Error`] from `cause`, with this directory's path and depth, for calls that you make yourself, as
    /// [`Entry::error`].
    #[cold]
    pub fn error(&self, cause: impl Into<io::Error>) -> Error {
        self.entries.directory.error(cause)
    }

    /// Its parent directory, at a second visit, for `unlinkat`, `fchmodat` and the like. `None` for a root, at a first visit,
    /// and if the parent could not be reopened, which was an error of [`Walk::next`](super::Walk::next) before.
    #[inline]
    pub fn parent(&self) -> Option<BorrowedFd<'a>> {
        self.parent
    }

    /// Whether it turned out to be removed while it was read: see [`Entries::removed`].
    pub fn removed(&self) -> bool {
        self.entries.removed()
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
