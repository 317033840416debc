//! `Walk`, `WalkOptions`, `walk`: the entries of a tree in one loop, each directory right before
//! its contents.
//!
//! This module does not know how a directory is opened, nor how a closed level is found again.
//!
//! ```text
//! stack     levels with remaining entries   /usr               share          doc
//! listing   their entries, in one arena     bin | lib share    doc | man      adduser | apt bash
//!                                           yielded remaining
//! path      of the entry yielded last       /usr/share/doc/adduser
//! ```
//!
//! In the listing, a directory's entries come after the entries of the levels above. A sorted walk,
//! and one that reads ahead, reads a directory whole. In the kernel's order, [`Rest`] says what is
//! still to be read: the next batch takes the place of the entries that were yielded, and is read
//! while one entry remains, so that the last entry is known to be the last.
//!
//! The last child of a level replaces the level, because no entries remain there. If the level
//! above is closed, the level stays, and so do its entries.

mod read_ahead;
mod walk_entry;

pub use walk_entry::WalkEntry;

use crate::allocate::try_box;
use crate::cursor::Cursor;
use crate::cursor::entry_state::{EntryState, EntryUpdates};
use crate::cursor::opener::{OpenDir, RootEntry};
use crate::cursor::options::{Options, common_options};
use crate::cursor::path::{ABOVE_ROOT, PathBounds};
use crate::cursor::roots::Roots;
use crate::cursor::skip_errors;
use crate::cursor::stack::{Level, Work};
use crate::error::Error;
use crate::file_type::FileType;
use crate::listing::{Extent, FIRST_BATCH, Listing, MAX_STREAM_BATCH, Order, Source};
use crate::metadata::Metadata;
use crate::read_dir::entry::Entry;
use crate::read_dir::mount::Mount;
use crate::read_dir::owned::{OwnedEntries, OwnedEntry};
use crate::read_dir::records::Phase;
use read_ahead::ReadAhead;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::AtFlags;
use rustix::io::Errno;
use std::iter::{self, FusedIterator};
use std::mem;
use std::path::Path;

/// Walks the tree at `path`, entry by entry, with the default options.
///
/// ```
/// let mut walk = lendir::walk("/sys/class")?;
/// while let Some(entry) = walk.next_or_report(|error| eprintln!("{error}")) {
///     println!("{:?}", entry.path()); // {:?} escapes control characters
/// }
/// # Ok::<(), lendir::Error>(())
/// ```
///
/// # Errors
///
/// The same as for [`WalkOptions::open`].
#[doc(alias("walkdir", "fts", "nftw", "find"))]
pub fn walk(path: impl AsRef<Path>) -> Result<Walk, Error> {
    Walk::options().open(path)
}

/// An iterator over the entries of a directory tree. Each directory comes right before its
/// contents, which is the order of walkdir, `fts` and `find`.
///
/// ```
/// let mut walk = lendir::walk("/etc")?;
/// while let Some(entry) = walk.next_or_report(|error| eprintln!("{error}")) {
///     if entry.name() == b".git" {
///         entry.skip_subtree();
///     } else if entry.name().ends_with(b".conf") {
///         println!("{:?}", entry.path());
///     }
/// }
/// # Ok::<(), lendir::Error>(())
/// ```
///
/// The next call to `next` overwrites the entry: copy what you keep, by `entry.path().to_owned()`.
/// A loop by `for` yields entries that you can keep, each an [`OwnedEntry`] that takes one
/// allocation:
///
/// ```
/// let mut paths: Vec<_> = lendir::walk("src")?.into_iter().flatten().collect();
/// // The lines of `find src -mindepth 1 | LC_ALL=C sort`:
/// paths.sort_unstable_by(|a, b| a.path().as_os_str().cmp(b.path().as_os_str()));
/// # assert!(paths.iter().any(|entry| entry.path() == "src/walk/mod.rs"));
/// # Ok::<(), lendir::Error>(())
/// ```
///
/// `next` is better where you skip or follow entries, or act on them by descriptor.
///
/// [`Walk::options`] has the rest: sorting, metadata, depth, mounts, helper threads. A program that
/// acts on directories as a whole, after their contents, or on many threads in any order, wants a
/// [`WalkDirs`](crate::WalkDirs).
///
/// # Guarantees
///
/// - **Order.** A directory, then its contents, then the next entry of its parent. Within a
///   directory, [`WalkOptions::order`] replaces the kernel's order. The root itself is an entry
///   only with [`WalkOptions::yield_roots`].
/// - **A directory is yielded before it is opened**, except with
///   [`read_ahead`](WalkOptions::read_ahead). You can `chmod` it first.
/// - **No link below a root is followed unless you ask**, not even one that another process has
///   just put in place of a directory. A directory that is moved out of the tree while the walk is
///   inside it is still read. [Security](crate::security) says what else an attacker can do.
/// - **Errors do not end the walk.** Each is reported once, with its path, and the next call
///   continues. Your own failed query does not hide an error of the walk.
/// - **Each directory that stays in its place is entered once**, provided that the kernel [lists it
///   once](crate#kernel-promises) and that no link which you follow points to it.
/// - **Depth is not limited**, but open directories are, by [`max_open`](WalkOptions::max_open).
///
/// # What is read when
///
/// In the kernel's order, the walk streams: it reads a batch of entries, yields them, and reads the
/// next. The first entry comes at once, and a directory takes bounded memory, however large, unless
/// [`max_open`](WalkOptions::max_open) closes it midway. If reading fails, the entries before the
/// error come first.
///
/// A walk that sorts or [reads ahead](WalkOptions::read_ahead) reads each directory whole before it
/// yields the first entry. It holds the entries of every directory on the path in memory, about 50
/// bytes each, and reports a read error before the entries that were read.
///
/// A directory that is removed while it is read ends like any other. If you have to know, use a
/// `WalkDirs`, and ask [`Dir::is_removed`](crate::Dir::is_removed).
///
/// A child process shares the walk's position after `fork`, and the two would take entries from
/// each other: let it begin a walk of its own.
///
/// # Changing the tree
///
/// Your loop can remove what it gets: a local file system still yields each entry that stays
/// [exactly once](crate#kernel-promises). But in the kernel's order the directory is still being
/// read, and two kinds of loop are not safe:
///
/// - **Renaming, moving or making entries**, which ext4 and xfs can [yield
///   again](crate#kernel-promises), even without end.
/// - **Removing on some servers** of FUSE, 9p and NFS, where from the second batch on each removal
///   hides an entry.
///
/// [Sorting](WalkOptions::order) makes both safe, because the directory is read first. In any
/// order, a directory that you rename when its entry comes is not found again. Rename, move and
/// remove directories at the [second visits](crate::WalkDirsOptions::second_visits) of a
/// `WalkDirs`.
///
/// # Performance
///
/// The system calls and allocations are those of a [`WalkDirs`](crate::WalkDirs#performance),
/// except that a directory that is read ahead allocates as well.
#[doc(alias("walkdir", "fts", "nftw", "du", "lending", "memory", "toctou"))]
#[must_use = "nothing is read before `next`"]
pub struct Walk {
    cursor: Cursor<Remaining>,
    /// The entries of all levels. The entries of a level come after the entries of the level above.
    listing: Listing,
    /// The state of the entry yielded last, if the walk may descend into it.
    state: Option<EntryState>,
    /// The caller's findings and requests about the same entry.
    updates: EntryUpdates,
    ahead: Option<ReadAhead>,
}

/// The remaining entries of a level.
#[derive(Default)]
struct Remaining {
    /// The index of the first remaining entry in the listing.
    next: usize,
    /// The extent of the listing up to the last remaining entry.
    end: Extent,
    /// Whether `ReadAhead` has looked at the remaining entries. It looks at each entry once, even
    /// if it later gives up the directories among them.
    is_listed: bool,
    rest: Rest,
}

/// The part of a directory that comes after its entries in the listing.
#[derive(Default)]
enum Rest {
    #[default]
    Nothing,
    /// Entries that were not read. The next batch has about `batch` bytes; before the first batch,
    /// `batch` is 0.
    Unread { batch: usize },
    /// Entries that were read before the level was closed, or read ahead.
    Kept(Box<[Listing; 1]>),
    /// The error that ended reading.
    Error(Errno),
}

impl Rest {
    /// A whole directory, of which nothing was read.
    const ALL: Self = Self::Unread { batch: 0 };

    /// Returns the rest after what was read into `listing`. The next batch has about `batch` bytes.
    fn after(listing: &Listing, batch: usize) -> Self {
        match listing.phase {
            phase if phase.is_reading() => Self::Unread { batch },
            Phase::Failed(errno) => Self::Error(errno),
            _ => Self::Nothing,
        }
    }
}

impl Remaining {
    /// Returns the number of remaining entries in the listing.
    fn count(&self) -> usize {
        self.end.entries - self.next
    }

    /// Returns `true` if the level can be given up.
    fn is_finished(&self) -> bool {
        self.count() == 0 && matches!(self.rest, Rest::Nothing)
    }

    fn skip_all(&mut self) {
        self.next = self.end.entries;
        self.rest = Rest::Nothing;
    }
}

impl Work for Remaining {
    /// Reads the entries that were not read, which a closed level cannot.
    fn before_close(&mut self, dir: BorrowedFd<'_>, mount: Mount, options: &Options) {
        if let Rest::Unread { .. } = self.rest {
            let mut listing = options.listing(Order::Unsorted);
            listing.fill_whole(Extent::default(), Source::whole(dir, mount, true));
            // If memory for a copy is refused, the unused memory stays.
            let listing = listing.compact_copy().unwrap_or(listing);
            self.rest = try_box(listing).map_or_else(Rest::Error, Rest::Kept);
        }
    }
}

impl Walk {
    /// Starts from the default options, like [`WalkOptions::new`].
    pub fn options() -> WalkOptions {
        WalkOptions::new()
    }

    /// Advances to the next entry, or returns `None` if no entry remains.
    ///
    /// [`next_or_report`](Self::next_or_report) is the usual loop, and
    /// [`Entries::next`](crate::Entries::next) warns of one that loses errors.
    ///
    /// # Errors
    ///
    /// Each error has the path of the directory that it is about, and the next call continues. The
    /// errors of [`WalkDirs::next`](crate::WalkDirs::next), right after the entry of the directory,
    /// say that it cannot be opened. Those of [`Dir::next`](crate::Dir::next) say that it cannot be
    /// read, and [may come first](Self#what-is-read-when).
    #[inline(always)]
    pub fn next(&mut self) -> Result<Option<WalkEntry<'_>>, Error> {
        Ok(if self.advance()? { Some(self.entry()) } else { None })
    }

    /// Advances to the next entry, or returns `None` if no entry remains. Each error on the way is
    /// passed to `on_error`, and the walk continues.
    ///
    /// Inside the loop, a `?` after a method of the entry would end the walk. Use `match`:
    ///
    /// ```
    /// let mut walk = lendir::walk("/sys/class")?;
    /// while let Some(entry) = walk.next_or_report(|error| eprintln!("{error}")) {
    ///     match entry.file_type() {
    ///         Ok(file_type) if file_type.is_dir() => println!("{:?}", entry.path()),
    ///         Ok(_) => {}
    ///         Err(error) => eprintln!("{error}"),
    ///     }
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    #[inline(always)]
    pub fn next_or_report(&mut self, on_error: impl FnMut(Error)) -> Option<WalkEntry<'_>> {
        skip_errors(|| self.advance(), on_error).then(|| self.entry())
    }

    /// Finds the next entry for which `wanted` returns `true`. The closure can
    /// [skip](WalkEntry::skip_subtree) the contents of directories that it rejects.
    ///
    /// ```
    /// let mut walk = lendir::walk("/sys/class")?;
    /// let net = walk.find(|entry| entry.name() == b"net")?.map(|entry| entry.path().to_owned());
    /// println!("{net:?}");
    /// # assert_eq!(net, Some("/sys/class/net".into()));
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The same as for [`next`](Self::next): with `?`, the first of them ends the search. To go on,
    /// use [`next_or_report`](Self::next_or_report) and `break`.
    #[inline(always)]
    pub fn find(
        &mut self,
        mut wanted: impl FnMut(&WalkEntry<'_>) -> bool,
    ) -> Result<Option<WalkEntry<'_>>, Error> {
        while self.advance()? {
            if wanted(&self.entry()) {
                return Ok(Some(self.entry()));
            }
        }
        Ok(None)
    }

    /// Turns the walk into an ordinary iterator, which calls `f` on each entry and yields what `f`
    /// returns in `Some`. Errors are items too.
    ///
    /// ```
    /// let mut sources = lendir::walk(".")?.filter_map(|entry| {
    ///     if entry.name() == b"target" || entry.name() == b".git" {
    ///         entry.skip_subtree();
    ///     }
    ///     entry.name().ends_with(b".rs").then(|| entry.relative_path().to_owned())
    /// });
    /// assert!(sources.any(|path| path.is_ok_and(|path| path.ends_with("src/lib.rs"))));
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// If the closure returns a `Result`, flatten the nested results:
    ///
    /// ```
    /// let sizes = lendir::walk("src")?.filter_map(|entry| match entry.metadata() {
    ///     Err(error) if error.is_gone() => None, // removed since it was listed
    ///     metadata => Some(metadata.map(|metadata| metadata.len())),
    /// });
    /// let bytes: u64 = sizes.map(|size| size.and_then(|size| size)).sum::<Result<_, _>>()?;
    /// # assert!(bytes > 100_000);
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// To match a glob, bring the crate `globset`:
    ///
    /// ```ignore
    /// let glob = globset::Glob::new("*.rs")?.compile_matcher();
    /// let found = lendir::walk("src")?
    ///     .filter_map(|entry| glob.is_match(entry.path()).then(|| entry.path().to_owned()));
    /// ```
    ///
    /// # Errors
    ///
    /// The same as for [`next`](Self::next).
    #[doc(alias("iter", "collect", "extension", "glob"))]
    pub fn filter_map<T>(
        mut self,
        mut f: impl FnMut(WalkEntry<'_>) -> Option<T>,
    ) -> impl FusedIterator<Item = Result<T, Error>> {
        iter::from_fn(move || Some(self.next().transpose()?.map(&mut f)))
            .fuse()
            .filter_map(Result::transpose)
    }

    /// Returns the entry that [`advance`](Self::advance) has set.
    #[inline(always)]
    fn entry(&mut self) -> WalkEntry<'_> {
        let Self { cursor: Cursor { stack, path, .. }, listing, state, updates, .. } = self;
        let (directory, _, Remaining { next, end, .. }) = stack.top_mut().parts(path);
        let record = listing.get(*next - 1).expect("BUG: no entry was yielded").record();
        let queried = state.map(|_| &updates.queried);
        let entry = Entry { record, directory, queried };
        WalkEntry { entry, path, is_last: *next == end.entries, updates }
    }

    /// Advances to the next entry. Returns `false` if no entry remains.
    #[inline(always)]
    fn advance(&mut self) -> Result<bool, Error> {
        if self.updates.request.get() == EntryState::REST_SKIPPED {
            self.cursor.stack.top_mut().remaining.skip_all();
        }
        match self.state.take().map(|state| self.updates.apply_to(state)) {
            Some(state) if state.is_entered() => self.descend(state)?,
            Some(state) if state.is_entered_root() => self.enter_root(state)?,
            Some(_) => {}
            None => self.updates.request.set(EntryState::NO_REQUEST), // about this entry alone
        }
        while !self.next_entry() {
            let top = self.cursor.stack.levels.last();
            if top.is_some_and(|top| !top.remaining.is_finished()) {
                self.read_rest()?;
            } else if let Some(is_there) = self.ascend()? {
                return Ok(is_there);
            }
        }
        Ok(true)
    }

    /// Advances to the next entry of the current directory, if it is in the listing. With more to
    /// read, one entry stays there, so that the last entry is known to be the last.
    #[inline(always)]
    fn next_entry(&mut self) -> bool {
        let Self { cursor: Cursor { options, stack, path, .. }, listing, state, .. } = self;
        let Some(top) = stack.levels.last_mut() else { return false };
        let Level { bounds, remaining: Remaining { next, end, rest, .. }, .. } = top;
        let has_more = || matches!(rest, Rest::Unread { .. } | Rest::Kept(_));
        if *next + 1 >= end.entries && (*next == end.entries || has_more()) {
            return false;
        }
        let entry = listing.get(*next).expect("BUG: an entry is missing");
        *next += 1;
        path.set_name(bounds.path_end, entry.name_with_nul());
        if options.enters_below(bounds.depth) {
            let found = EntryState::from_type(entry.d_type());
            *state = found.map(|found| found.with_request(options.request));
        }
        true
    }

    /// Reads entries of the current directory. Of those in the listing at most one remains.
    #[inline(always)]
    fn read_rest(&mut self) -> Result<(), Error> {
        let Self { cursor, listing, ahead, .. } = self;
        let above = end_above(&cursor.stack.levels);
        let (directory, mount, remaining) = cursor.stack.top_mut().parts(&cursor.path);
        match mem::take(&mut remaining.rest) {
            Rest::Nothing => return Ok(()),
            Rest::Error(errno) => return Err(directory.error(errno)),
            Rest::Kept(kept) => {
                listing.append(remaining.end, &kept[0]);
                remaining.rest = Rest::after(listing, 0);
            }
            Rest::Unread { .. } if ahead.is_some() || listing.order != Order::Unsorted => {
                let enters = cursor.options.enters_below(directory.depth);
                listing.fill_whole(above, Source::whole(directory.fd, mount, enters));
                remaining.end = listing.extent();
                if let Some(ahead) = ahead {
                    ahead.measure(remaining.count());
                }
                return listing.phase.take_error().map_err(|errno| directory.error(errno));
            }
            Rest::Unread { batch } => {
                listing.truncate(remaining.end); // with the answers of the levels below
                if batch > FIRST_BATCH {
                    listing.keep_last(above);
                    remaining.next = above.entries;
                }
                let phase = if batch == 0 { Phase::Fresh } else { Phase::Reading };
                let source = Source::in_parts(directory.fd, mount);
                listing.fill_batch(source, batch.max(FIRST_BATCH), phase);
                // An error comes after the entries before it.
                let batch = (2 * batch).clamp(FIRST_BATCH, MAX_STREAM_BATCH);
                remaining.rest = Rest::after(listing, batch);
            }
        }
        remaining.end = listing.extent();
        Ok(())
    }

    /// Descends into the entry yielded last.
    #[inline(always)]
    fn descend(&mut self, state: EntryState) -> Result<(), Error> {
        if self.ahead.is_some() && self.enter_ahead(state)? {
            return Ok(());
        }
        let Self { cursor, listing, .. } = self;
        let top = cursor.stack.top();
        let entry = listing.get(top.remaining.next - 1).expect("BUG: no entry was yielded");
        let (mut state, name) = (state, entry.name_cstr());
        if state.has(EntryState::LINK) {
            state = state.resolve(top.dir(), name);
            if !state.is_entered() {
                return Ok(());
            }
        }
        // Keep the system calls in the caller's frame: returning from an outer frame mispredicts.
        if let Some(child) = cursor.open(state, name)? {
            self.enter(child, Rest::ALL);
        }
        Ok(())
    }

    /// Descends into the entry yielded last if that directory was read ahead. Returns `false` if
    /// that directory was not read ahead.
    #[inline(never)]
    fn enter_ahead(&mut self, state: EntryState) -> Result<bool, Error> {
        let Self { cursor, listing, ahead: Some(ahead), .. } = self else { return Ok(false) };
        cursor.stack.close_excess(&cursor.options);
        let taken = ahead.take(cursor, listing, state.can_be_directory());
        let Some((found, content)) = taken else { return Ok(false) };
        cursor.prepare(found.dir.as_fd())?;
        self.enter(found, Rest::Kept(content));
        Ok(true)
    }

    /// Enters `child`, of which `rest` remains.
    #[inline(always)]
    fn enter(&mut self, child: OpenDir, rest: Rest) {
        let stack = &mut self.cursor.stack;
        if stack.top().remaining.is_finished() && stack.closed_level_above().is_none() {
            self.cursor.replace_top(child);
        } else {
            let above = end_above(&stack.levels);
            let remaining = &mut stack.top_mut().remaining;
            if remaining.count() == 0 {
                // The level stays for an error, or for the level above. Its entries are not needed.
                (remaining.next, remaining.end) = (above.entries, above);
            }
            self.cursor.push(child, Remaining::default());
        }
        self.begin_level(rest);
    }

    /// Sets what remains of the directory that was just entered, if it can be read.
    #[inline(always)]
    fn begin_level(&mut self, rest: Rest) {
        let Cursor { options, stack, unreadable, .. } = &mut self.cursor;
        let end = end_above(&stack.levels);
        let Level { bounds, remaining, .. } = stack.top_mut();
        let is_listed = matches!(rest, Rest::Kept(_));
        let is_read = bounds.depth < options.max_depth;
        let rest = if is_read { unreadable.map_or(rest, Rest::Error) } else { Rest::Nothing };
        *remaining = Remaining { next: end.entries, end, is_listed, rest };
    }

    /// Returns to the parent of the current directory, in which no entry remains. After the last
    /// level, begins the next root. Returns whether there is an entry if that is known: the root
    /// itself, or none if no root remains.
    #[inline(never)]
    fn ascend(&mut self) -> Result<Option<bool>, Error> {
        if self.cursor.stack.levels.is_empty() {
            if let Some(ahead) = &mut self.ahead {
                ahead.clear();
            }
            if !self.cursor.open_root(Remaining::default)? {
                return Ok(Some(false));
            }
            if self.cursor.options.yield_roots {
                return self.yield_root().map(|()| Some(true));
            }
            self.begin_level(Rest::ALL);
            return Ok(None);
        }
        let lose = |[above, _]: [&mut Remaining; 2]| {
            above.skip_all();
            true
        };
        self.cursor.reopen_level_above(lose)?;
        self.cursor.stack.pop();
        Ok(None)
    }

    /// Makes an entry of the root that was just begun, in the directory that contains it, which is
    /// the current one for now. A root that came as a descriptor contains itself.
    #[cold]
    fn yield_root(&mut self) -> Result<(), Error> {
        let Self { cursor, listing, state, .. } = self;
        let path = &cursor.path;
        let top = cursor.stack.top_mut();
        let (name, path_end, file_type, ino) = if let Some(entry) = cursor.root_entry {
            let RootEntry { name_start, file_type, ino } = entry;
            (&path.as_bytes()[name_start..], name_start, file_type, ino)
        } else {
            let found = Metadata::query(top.dir(), c"", AtFlags::EMPTY_PATH);
            let ino = found.map_or(0, |metadata| metadata.ino());
            (&b"."[..], path.len(), FileType::Directory, ino)
        };
        top.bounds = PathBounds { depth: ABOVE_ROOT, path_end };
        let set = listing.set_one(top.dir(), name, file_type, ino);
        let end = listing.extent();
        top.remaining = Remaining { next: end.entries, end, ..Remaining::default() };
        set.map_err(|errno| cursor.error_of_root(errno))?;
        let can_enter = matches!(file_type, FileType::Directory | FileType::Symlink);
        *state = (can_enter && cursor.options.max_depth > 0).then_some(EntryState::ROOT);
        Ok(())
    }

    /// Enters the root that was yielded last, unless it turns out not to be a directory.
    #[cold]
    fn enter_root(&mut self, state: EntryState) -> Result<(), Error> {
        let Self { cursor, listing, .. } = self;
        let Some(RootEntry { file_type, .. }) = cursor.root_entry else {
            let (depth, path_end) = (0, cursor.path.len()); // it is open already
            cursor.stack.top_mut().bounds = PathBounds { depth, path_end };
            self.begin_level(Rest::ALL);
            return Ok(());
        };
        let entry = listing.get(0).expect("BUG: no root was yielded");
        let Options { flags, follow_root_links, .. } = cursor.options;
        let (is_link, follows) =
            (file_type.is_symlink(), follow_root_links || state.has(EntryState::FOLLOWED));
        if is_link && !follows {
            return Ok(());
        }
        let found = loop {
            match OpenDir::of_root(cursor.stack.top().dir(), entry.name_cstr(), follows, flags) {
                Err(errno) if cursor.close_some(errno) => {}
                // A link to a file, or to nothing.
                Err(Errno::NOTDIR | Errno::NOENT) if is_link => return Ok(()),
                found => break found.map_err(|errno| cursor.error_of_root(errno))?,
            }
        };
        self.enter(found, Rest::ALL);
        Ok(())
    }
}

/// Returns the extent of the entries of the levels above the current directory.
#[inline(always)]
fn end_above(levels: &[Level<Remaining>]) -> Extent {
    if let [.., above, _] = levels { above.remaining.end } else { Extent::default() }
}

impl Iterator for OwnedEntries<Walk> {
    type Item = Result<OwnedEntry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.0.next().transpose()?;
        Some(entry.map(|entry| OwnedEntry::new(&entry, entry.path().to_owned(), entry.depth())))
    }
}

impl FusedIterator for OwnedEntries<Walk> {}

/// Yields owned entries: `for entry in lendir::walk(path)? { let entry = entry?; … }`.
impl IntoIterator for Walk {
    type Item = Result<OwnedEntry, Error>;
    type IntoIter = OwnedEntries<Self>;

    fn into_iter(self) -> OwnedEntries<Self> {
        OwnedEntries(self)
    }
}

debug!(Walk, |walk| path: walk.cursor.path.as_path(), options: walk.cursor.options);

/// Configures a [`Walk`]. Begin with [`new`](Self::new) or [`Walk::options`], set what you need,
/// and let [`open`](Self::open), [`open_all`](Self::open_all) or [`from_fd`](Self::from_fd) make
/// the walk.
///
/// ```
/// use lendir::{Order, Walk};
///
/// let options = Walk::options().max_depth(2).same_mount(true).order(Order::Bytes);
/// let mut walk = options.open("/sys/class")?;
/// while let Some(entry) = walk.next_or_report(|error| eprintln!("{error}")) {
///     println!("{:?}", entry.path());
/// #   assert!(entry.depth() <= 2);
/// }
/// # Ok::<(), lendir::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "it does nothing before `open`, `open_all` or `from_fd`"]
pub struct WalkOptions {
    options: Options,
    order: Order,
    read_ahead: usize,
    is_eager: bool,
}

/// Same as [`WalkOptions::new`].
impl Default for WalkOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl WalkOptions {
    /// Starts from the default options.
    ///
    /// ```
    /// use lendir::WalkOptions;
    ///
    /// for entry in WalkOptions::new().max_depth(2).open("/sys/class")? {
    ///     println!("{:?}", entry?.path());
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    pub fn new() -> Self {
        Self { options: Options::default(), order: Order::Unsorted, read_ahead: 0, is_eager: false }
    }

    common_options! {
        Walk,
        /// Opens the root `path`, and makes the walk of this tree. Its paths begin with `path` as
        /// you wrote it.
        ///
        /// # Errors
        ///
        /// The errors of [`lendir::open`](crate::open()), with the path, such as `ENOTDIR` for a
        /// file, unless [`yield_roots`](Self::yield_roots) accepts it. If you have no permission to
        /// read the root, the error comes only when the walk reads it.
        open,
        {
            /// Sets the order of the entries of each directory. The default is
            /// [`Order::Unsorted`], the order of the kernel.
            ///
            /// ```
            /// let mut walk = lendir::Walk::options().order(lendir::Order::Bytes).open("src")?;
            /// while let Some(entry) = walk.next_or_report(|error| eprintln!("{error}")) {
            ///     println!("{:?}", entry.path()); // "src/coming_from.md" comes first
            /// }
            /// # Ok::<(), lendir::Error>(())
            /// ```
            ///
            /// A sorted walk reads each directory [whole](Walk#what-is-read-when). Your queries
            /// come after that, too late to be cheap on a server: set [`metadata`](Self::metadata)
            /// there.
            #[doc(alias("sort_by", "sort_by_file_name", "sort"))]
            pub fn order(mut self, order: Order) -> Self {
                self.order = order;
                self
            }
        }
        /// Sets the depth of the deepest entries that are yielded, like `find -maxdepth`: the
        /// entries of a root have depth 1. There is no limit by default.
        ///
        /// A directory at the maximum depth is yielded, but not opened. With 0, a
        /// [`WalkDirs`](crate::WalkDirs) yields each root without entries.
        max_depth,
        /// Sets whether every symbolic link is followed, as if you called
        /// [`follow`](crate::WalkEntry::follow) for each entry. The default is `false`.
        ///
        /// **With this, the walk can leave its tree**, and links multiply the work:
        /// [`DirEntry::follow`](crate::DirEntry::follow) says how to limit both.
        /// [`skip_subtree`](crate::WalkEntry::skip_subtree) still leaves out what a link points to.
        ///
        /// ```
        /// let mut walk = lendir::WalkOptions::new().follow_links(true).open("/sys/class/net")?;
        /// while let Some(entry) = walk.next_or_report(|error| eprintln!("{error}")) {
        ///     if entry.depth() > 1 {
        ///         entry.skip_subtree(); // in /sys, links point everywhere
        ///     }
        ///     println!("{:?}", entry.path());
        /// }
        /// # Ok::<(), lendir::Error>(())
        /// ```
        ///
        /// Unlike in walkdir, [`file_type`](crate::Entry::file_type) and queries still describe the
        /// link itself. A link to a file, or to nothing, is yielded like any other entry.
        follow_links,
        /// Sets whether the walk itself queries each entry as soon as it has listed it. The default
        /// is `false`.
        ///
        /// On NFS or FUSE, a sorted walk that queries entries pays one request for each, and with
        /// this one for hundreds. Such a server can send metadata together with the names, but
        /// the kernel asks for it only while it sees entries queried before the next names are
        /// read. In the kernel's order your queries are in time. A walk that sorts or [reads
        /// ahead](Self::read_ahead) has read all names by the time you ask.
        ///
        /// ```
        /// use lendir::{Order, Walk};
        ///
        /// let mut walk = Walk::options().order(Order::Bytes).metadata(true).open("src")?;
        /// while let Some(entry) = walk.next_or_report(|error| eprintln!("{error}")) {
        ///     match entry.metadata() {
        ///         Ok(metadata) => println!("{:8} {:?}", metadata.len(), entry.path()),
        ///         Err(error) => eprintln!("{error}"),
        ///     }
        /// }
        /// # Ok::<(), lendir::Error>(())
        /// ```
        ///
        /// [`Entry::metadata`](crate::Entry::metadata) returns what was fetched. Where that failed,
        /// it asks again, and you see the error. An answer is as old as the listing of its entry.
        ///
        /// A server that does not answer holds up its callers, and not even `SIGKILL` helps. That
        /// is why under [`same_mount`](Self::same_mount), and by helper threads, nothing that is
        /// mounted on a directory is asked, and nothing is fetched for that directory. Your own
        /// query of it does ask. Where `openat2` is refused (before Linux 5.6, on Android, under
        /// some seccomp filters), nothing is then fetched for any directory.
        ///
        /// # Performance
        ///
        /// On a local file system nothing is gained, because the same calls are made, only earlier.
        /// Where mounts are not asked, each directory takes two calls more. An entry takes 120
        /// bytes more, for as long as its directory is being walked.
        metadata,
        /// Sets whether the walk stays on the mount of each root. The default is `false`.
        ///
        /// With `true`, a directory on which something else is mounted is yielded, but not entered.
        /// Mounts count rather than devices: a bind mount of the same file system is left out,
        /// while a btrfs subvolume is entered. `find -xdev` does the opposite in both cases, and a
        /// walk before Linux 5.8 may do so.
        ///
        /// A file can be a mount point as well, as in most containers, and is yielded like any
        /// other. [`Metadata::is_mount_point`](crate::Metadata::is_mount_point) recognises both.
        ///
        /// # Performance
        ///
        /// With `openat2` (Linux 5.6), only a followed link costs more: two `statx`. Without it,
        /// every directory does.
        same_mount,
        /// Sets whether a root that is a symbolic link to a directory is followed. The default is
        /// `true`.
        ///
        /// With `false`, such a root is an error (`ENOTDIR`, or `ELOOP` on old kernels), unless
        /// [`yield_roots`](Self::yield_roots) makes it an entry. But **`link/` and `link/.` are
        /// followed all the same**, because only the last component of the path counts. A program
        /// that removes files strips such endings first, by `path.components().as_path()`.
        follow_root_links,
        /// Sets how many directories each thread of the walk may hold open at once. The default is
        /// 32, and the minimum is 4.
        ///
        /// Trees can be deeper than a process may have descriptors. Above this number the walk
        /// closes the directories nearest the root, and reopens them on the way back. It also gives
        /// up [some of its own](crate::security#descriptors) if the process has few descriptors
        /// left, or the system none, so that your loop can still open a file.
        ///
        /// The price is that **a directory can be lost while it is closed**, because the walk does
        /// not find it again, or not [as the one it was](crate::security#closed-directories). The
        /// walk then returns one error with the path, skips the rest there (and the second visit of
        /// a `WalkDirs`), and goes on above. If directories are moved around in the tree while you
        /// walk, raise the number above its depth.
        ///
        /// - `ENOENT`: the directory was moved or removed, or something was mounted on it or on a
        ///   directory above it.
        /// - `EACCES`: a directory on the path can no longer be searched.
        /// - The other errors of [`WalkDirs::next`](crate::WalkDirs::next).
        max_open,
        /// Sets whether directories are opened with `O_NOATIME`, so that a backup or an index
        /// leaves their access times alone. The default is `false`.
        ///
        /// The kernel grants this to the owner of a directory and to `CAP_FOWNER`. For other users,
        /// for a root that you pass to [`from_fd`](Self::from_fd), and where a server sets the
        /// access times, nothing changes.
        no_atime,
        /// Makes a walk of the trees at `paths`, one after another. It collects the paths at once.
        /// [`WalkDirs::run_parallel`](crate::WalkDirs::run_parallel) walks several at once.
        ///
        /// Each root is opened only when the walk comes to it. If that fails, the walk returns the
        /// error, for which [`is_root`](crate::Error::is_root) is `true`, and continues with the
        /// next root.
        ///
        /// ```
        /// let roots = ["/sys/class", "/no/such/directory", "/sys/bus"];
        /// let mut walk = lendir::Walk::options().open_all(roots);
        /// let mut errors = 0;
        /// while walk.next_or_report(|_| errors += 1).is_some() {}
        /// assert_eq!(errors, 1);
        /// ```
        open_all,
        /// Makes a walk of the tree at a descriptor. Its paths begin with `path`, which is never
        /// looked up; with `""` they are relative to the root.
        ///
        /// ```
        /// let root = lendir::open("/sys/class")?;
        /// let mut walk = lendir::Walk::options().from_fd(root, "class");
        /// assert!(walk.next()?.is_some_and(|entry| entry.path().starts_with("class")));
        /// # Ok::<(), lendir::Error>(())
        /// ```
        ///
        /// Duplicates of a descriptor share one position, and two readers would take entries from
        /// each other. That is why the walk opens `.` in `root` and reads that. Only without
        /// permission to read or search the root does it read `root` itself.
        from_fd,
    }

    /// Sets whether each root is an entry, of depth 0, before its contents, as in walkdir and
    /// `find`. The default is `false`.
    ///
    /// Use it in a program that takes paths from its user, because a root that is not a directory
    /// is then an entry, and no error.
    ///
    /// ```
    /// let mut walk = lendir::WalkOptions::new().yield_roots(true).open_all(["src", "Cargo.toml"]);
    /// let mut files = Vec::new();
    /// while let Some(entry) = walk.next_or_report(|error| eprintln!("{error}")) {
    ///     if entry.file_type()?.is_file() {
    ///         files.push(entry.path().to_owned());
    ///     }
    /// }
    /// assert!(files.contains(&"Cargo.toml".into()) && files.contains(&"src/lib.rs".into()));
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// The entry is the last component of the path as you wrote it, such as `dir`, `dir/`, `..` or
    /// `/`, in the directory that contains it. Like any entry, it can be queried, opened, removed
    /// and skipped. A root that is a link to a directory is a `Symlink`, and unless
    /// [`follow_root_links`](Self::follow_root_links) is `false`, its contents follow.
    ///
    /// A root of [`from_fd`](Self::from_fd) is `.` in itself, which the kernel does not remove.
    /// Look at the [depth](WalkEntry::depth) first if you skip names with a dot in front.
    #[doc(alias("min_depth", "file"))]
    pub fn yield_roots(mut self, yes: bool) -> Self {
        self.options.yield_roots = yes;
        self
    }

    /// Lets up to `threads` helper threads open and read directories before the walk gets there,
    /// without changing the order of entries. The default is 0.
    ///
    /// Use it when the file system is slow: pass the number of requests that the server answers at
    /// once, or 16 for a local disk. On a warm cache the threads stay idle. With
    /// [`metadata`](Self::metadata), they also fetch what you would query.
    ///
    /// ```
    /// use lendir::{Order, Walk};
    ///
    /// let mut walk = Walk::options().order(Order::Path).read_ahead(16).open("/sys/class")?;
    /// while let Some(entry) = walk.next_or_report(|error| eprintln!("{error}")) {
    ///     println!("{:?}", entry.path()); // the same lines as without `read_ahead`
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// Entries and errors are the same as without it, because what cannot be read ahead is tried
    /// again when the walk gets there. But directories are read *earlier*:
    ///
    /// - **A directory may be read before its entry is yielded**, even one that you then skip, and
    ///   what your loop changes there does not show. One that could not be opened ahead can still
    ///   be mended by `chmod` when its entry comes.
    /// - **A directory that is moved out of the tree after it was listed** may still be read, with
    ///   all that is created there later.
    /// - **Mount points are left to the walk itself**, but [old
    ///   kernels](crate::security#automounts) may mount an automount point that you then skip.
    /// - **Each helper has the credentials and mounts of the thread that starts it**, yours or
    ///   another helper.
    /// - **Dropping the walk waits** for the helpers' calls: if a server hangs, so does the drop.
    ///
    /// Without `openat2` (before Linux 5.6, on Android, under some seccomp filters) nothing is read
    /// ahead, nor is a directory of more than some 8,000 names.
    ///
    /// # Performance
    ///
    /// Up to `max_open + 8 * threads` directories are open besides the walk's own. Each of them
    /// can take a few MiB of memory, and so can each thread.
    pub fn read_ahead(mut self, threads: usize) -> Self {
        self.read_ahead = threads;
        self
    }

    /// Makes the threads of [`read_ahead`](Self::read_ahead) work even where no call waits, so that
    /// tests see them work. Only the tests of this repository have it: see .cargo/config.toml.
    #[cfg(any(test, lendir_eager, lendir_shuttle))]
    pub fn eager(mut self) -> Self {
        self.is_eager = true;
        self
    }

    /// Makes the walk of these roots.
    fn begin(self, roots: Roots, path: &Path) -> Walk {
        let mut cursor = Cursor::new(self.options);
        cursor.begin(roots, path);
        let listing = self.options.listing(self.order);
        let ahead = (self.read_ahead > 0).then(|| ReadAhead::new(self));
        cursor.free_descriptor = ahead.as_ref().map(ReadAhead::free_descriptor);
        Walk { cursor, listing, state: None, updates: EntryUpdates::default(), ahead }
    }
}

#[cfg(test)]
mod tests {
    use super::{Errno, Rest};
    use std::fs::create_dir_all;

    /// A level that only owes an error is not kept with its entries.
    #[test]
    #[cfg_attr(miri, ignore = "reads directories")]
    fn level_that_owes_an_error_takes_no_memory() {
        const DEPTH: usize = 30;
        let made = tempfile::tempdir().unwrap();
        create_dir_all(made.path().join("d/".repeat(DEPTH))).unwrap();
        let mut walk = crate::walk(made.path()).unwrap();
        let (mut entries, mut errors) = (0, 0);
        while walk.next_or_report(|_| errors += 1).is_some() {
            entries += 1;
            walk.cursor.stack.top_mut().remaining.rest = Rest::Error(Errno::IO);
            assert_eq!(walk.listing.len(), 1, "at depth {entries}");
        }
        assert_eq!((entries, errors), (DEPTH, DEPTH));
    }
}
