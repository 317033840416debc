//! `Listing`: reads a whole directory into memory that is reused, and sorts it.
//!
//! A batch of records is read right after the previous batch, and the position of each name is
//! noted in a [`Span`]. The records stay where the kernel wrote them; only the spans are sorted.
//!
//! `arena.rs` has the memory of the records, and `sort.rs` sorts names. This module adds what an
//! [`Order`] compares besides the names: the `/` at the end of a directory.

mod arena;
pub(crate) mod listed_entry;
mod sort;
mod span;

pub use listed_entry::{ListedEntries, ListedEntry};

use crate::allocate::try_push;
use crate::error::Error;
use crate::file_type::FileType;
use crate::metadata::Metadata;
use crate::open::{open_again, path_on_mount};
use crate::read_dir::entry::{Directory, NOT_BEYOND, query_type};
use crate::read_dir::mount::Mount;
use crate::read_dir::records::{HEADER, MAX_RECORD, MIN_RECORD, Phase};
use crate::read_dir::{ReadDir, read_dir};
use crate::sync::Arc;
use crate::sync::atomic::AtomicBool;
use arena::{Answer, Arena, FIRST_ROOM, MAX_BATCH, MIN_ROOM, grow, refused};
pub(crate) use arena::{FIRST_BATCH, MAX_STREAM_BATCH};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::AtFlags;
use rustix::io::Errno;
use span::Span;
use std::iter::{self, Peekable};
use std::path::Path;

/// Lists the directory at `path`, sorted by the bytes of the names.
///
/// ```
/// for entry in &lendir::list("/sys/class")? {
///     println!("{:?}", entry.file_name());
/// }
/// # Ok::<(), lendir::Error>(())
/// ```
///
/// # Errors
///
/// The same as for [`read_dir`](crate::read_dir()) and [`Listing::read`], even if some entries were
/// read before the error: [`ReadDir::read_into`](crate::ReadDir::read_into) keeps them.
#[doc(alias("scandir", "listdir", "ls"))]
pub fn list(path: impl AsRef<Path>) -> Result<Listing, Error> {
    let mut listing = Listing::new();
    read_dir(path)?.read_into(&mut listing)?;
    Ok(listing)
}

/// All entries of a directory, sorted by name, in memory that the next directory reuses.
///
/// [`list`] makes one of a path. [`ReadDir::read_into`](crate::ReadDir::read_into),
/// [`Dir::read_into`](crate::Dir::read_into) and [`read`](Self::read) fill a listing.
///
/// ```
/// let mut listing = lendir::Listing::new();
/// for path in ["/sys/class", "/sys/bus"] {
///     lendir::read_dir(path)?.read_into(&mut listing)?;
///     for entry in &listing {
///         println!("{path}/{}", entry.name().escape_ascii());
///     }
/// }
/// assert!(listing.by_name("pci").is_none_or(|entry| entry.name() == b"pci"));
/// # Ok::<(), lendir::Error>(())
/// ```
///
/// A listing is read to its end before you see an entry. On a server, that is [too late to
/// query](crate::WalkOptions::metadata) entries cheaply: use
/// [`with_metadata`](Self::with_metadata) there.
///
/// # Performance
///
/// Keep a listing and read into it again: a directory that is no larger than an earlier one takes
/// no allocation, while a new listing takes 54 KiB, filled with zeros. An entry takes about 50
/// bytes, more if its name is long, and the memory doubles when it grows.
#[doc(alias("scandir", "listdir", "sort"))]
pub struct Listing {
    /// The records, as the kernel wrote them.
    arena: Arena,
    /// The offset in the arena at which the records end.
    records_end: usize,
    /// The position of each name in the arena, in the order of the listing.
    spans: Vec<Span>,
    /// The memory in which the sort keeps its keys. Empty in [`Order::Unsorted`].
    keys: Vec<u64>,
    pub(crate) order: Order,
    /// Whether the metadata of each entry is fetched right after its batch.
    pub(crate) has_metadata: bool,
    /// Whether no directory is asked for anything if something is mounted on it: a server that does
    /// not answer would hold up its caller.
    pub(crate) is_on_one_mount: bool,
    /// The first error of a query that [`Order::Path`] needs.
    type_error: Option<(Span, Errno)>,
    /// The phase in which reading ended.
    pub(crate) phase: Phase,
}

/// The part of a listing's memory that is in use.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Extent {
    /// The number of entries.
    pub(crate) entries: usize,
    /// The offset in the arena at which their records end.
    records_end: usize,
}

/// A directory to read, and which of its entries are asked for their types right after their batch.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) dir: BorrowedFd<'a>,
    mount: Mount,
    /// Those whose records do not tell. A query that fails is left to whoever opens the entry.
    asks_unknown: bool,
    /// All, because the kernel then goes on to fetch the types with the names.
    asks_all: bool,
}

impl<'a> Source<'a> {
    /// Makes the source of a directory that is read whole. It needs no types unless the walk
    /// `enters` something.
    pub(crate) fn whole(dir: BorrowedFd<'a>, mount: Mount, enters: bool) -> Self {
        Self { dir, mount, asks_unknown: enters, asks_all: enters && mount.needs_queries() }
    }

    /// Makes the source of a directory that is read in parts. A walk that passes an entry of an
    /// unknown type asks for it then.
    pub(crate) fn in_parts(dir: BorrowedFd<'a>, mount: Mount) -> Self {
        Self { dir, mount, asks_unknown: false, asks_all: mount.needs_queries() }
    }
}

/// The order in which the entries of a directory are sorted.
///
/// A [`Listing`] sorts by [`Bytes`](Self::Bytes) by default, and a [`Walk`](crate::Walk) does not
/// sort. [`Listing::with_order`] and [`WalkOptions::order`](crate::WalkOptions::order) change that.
///
/// ```
/// use lendir::{Listing, Order, Walk};
///
/// let mut listing = Listing::with_order(Order::Path);
/// lendir::read_dir("/etc")?.read_into(&mut listing)?;
///
/// let mut walk = Walk::options().order(Order::Path).open("/sys/class")?;
/// println!("{:?}", walk.next()?.map(|first| first.path()));
/// # Ok::<(), lendir::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Order {
    /// Sorts by the bytes of the names, like `LC_ALL=C ls`: `ab` before `abc`.
    ///
    /// A [`Walk`](crate::Walk) in this order yields a tree in the order of
    /// [`Path::cmp`](std::path::Path#impl-Ord-for-Path) on
    /// [`relative_path`](crate::WalkEntry::relative_path).
    Bytes,
    /// Sorts by the bytes of the names, but compares the name of a directory with a `/` at its end:
    /// `a-b`, `a.b`, `a/`, `ab`.
    ///
    /// A [`Walk`](crate::Walk) in this order yields files by the bytes of their paths, like git's
    /// index, except below links that it [follows](crate::WalkEntry::follow): a link compares like
    /// a file. `find | LC_ALL=C sort` differs, because it puts the directory `a` before `a-b`.
    ///
    /// # Performance
    ///
    /// Reading queries each entry of a type that the kernel does not tell.
    Path,
    /// Keeps the order in which the kernel lists the entries. This is the default of a walk.
    Unsorted,
}

impl Listing {
    /// Creates an empty listing that sorts by [`Order::Bytes`]. It allocates nothing before it
    /// reads.
    pub fn new() -> Self {
        Self::with_order(Order::Bytes)
    }

    /// Creates an empty listing that sorts by `order`.
    pub fn with_order(order: Order) -> Self {
        Self {
            arena: Arena::default(),
            records_end: 0,
            spans: Vec::new(),
            keys: Vec::new(),
            order,
            has_metadata: false,
            is_on_one_mount: false,
            type_error: None,
            phase: Phase::default(),
        }
    }

    /// Fetches the metadata of each entry while the directory is read, for
    /// [`ListedEntry::metadata`] to return.
    ///
    /// Use it for directories on a server, for [the reason that a walk
    /// has](crate::WalkOptions::metadata), and where another thread than the one that reads needs
    /// the metadata.
    ///
    /// ```
    /// let mut listing = lendir::Listing::new().with_metadata();
    /// lendir::read_dir("src")?.read_into(&mut listing)?;
    /// for entry in &listing {
    ///     println!("{:8} {:?}", entry.metadata()?.len(), entry.file_name());
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    #[doc(alias("nfs", "READDIRPLUS", "size", "mtime"))]
    #[must_use]
    pub fn with_metadata(mut self) -> Self {
        self.has_metadata = true;
        self
    }

    /// Lets reading fail after so many bytes, or once `is_over`.
    pub(crate) fn with_limit(mut self, bytes: usize, is_over: Arc<AtomicBool>) -> Self {
        self.arena.limit = Some((bytes, is_over));
        self
    }

    /// Returns a copy of the entries, without unused memory.
    pub(crate) fn compact_copy(&self) -> Result<Self, Errno> {
        let mut copy = Self { order: self.order, phase: self.phase, ..Self::default() };
        copy.try_append(self)?;
        Ok(copy)
    }

    /// Copies the entries of another listing, in their order, after the entries up to `above`, and
    /// its phase.
    pub(crate) fn append(&mut self, above: Extent, other: &Self) {
        self.truncate(above);
        self.phase = self.try_append(other).map_or_else(Phase::Failed, |()| other.phase);
    }

    fn try_append(&mut self, other: &Self) -> Result<(), Errno> {
        let Self { arena, records_end: len, spans, .. } = other;
        let (start, end) = (self.records_end, self.records_end + len);
        grow(&mut self.arena.memory, end)?;
        self.spans.try_reserve(spans.len()).map_err(refused)?;
        self.arena.answers.try_reserve_exact(arena.answers.len()).map_err(refused)?;
        self.arena.memory[start..end].copy_from_slice(&arena.memory[..*len]);
        for Answer { name_start, metadata } in &arena.answers {
            self.arena.push_metadata(start + name_start, metadata.clone());
        }
        self.spans.extend(spans.iter().map(|span| span.moved(start)));
        self.records_end = end;
        Ok(())
    }

    /// Replaces the contents of the listing with the entries of `dir`, sorted.
    ///
    /// ```
    /// let dir = lendir::open("/sys/class")?;
    /// let mut listing = lendir::Listing::new();
    /// listing.read(&dir)?;
    /// for entry in &listing {
    ///     println!("{:?} {:?}", entry.file_name(), entry.d_type());
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// Reading begins at the position of the descriptor. If that is at the end, the whole directory
    /// is read, through another descriptor or, if that is refused, after a rewind.
    ///
    /// A broken file system can return several entries of the same name. All of them stay, in the
    /// order of the directory.
    ///
    /// # Errors
    ///
    /// The listing then holds the entries that were read before the error, sorted.
    ///
    /// - The errors of [`Entries::next`](crate::Entries::next).
    /// - [`OutOfMemory`](std::io::ErrorKind::OutOfMemory): an allocation is refused.
    /// - The errors of [`open`](crate::open()): the descriptor is at the end, and the directory can
    ///   neither be opened again nor be trusted to rewind, like on many servers of FUSE and 9p.
    /// - In [`Order::Path`], the first error of [`Entry::file_type`](crate::Entry::file_type), with
    ///   the path of the entry, unless that is [gone](Error::is_gone). The whole directory has been
    ///   read then, and the entry is sorted like a file.
    #[inline(always)]
    pub fn read(&mut self, dir: impl AsFd) -> Result<(), Error> {
        let directory = Directory { fd: dir.as_fd(), path: b"", depth: 0 };
        self.read_known(directory, Source::whole(directory.fd, Mount::PLAIN, false))
    }

    /// Reads like [`read`](Self::read), but knows the path of the directory, and how to read it.
    #[inline(always)]
    pub(crate) fn read_known(
        &mut self,
        directory: Directory<'_>,
        source: Source<'_>,
    ) -> Result<(), Error> {
        self.clear();
        self.arena.set_directory(directory).map_err(|errno| directory.error(errno))?;
        self.fill_whole(Extent::default(), source);
        if self.phase == Phase::Empty {
            self.read_again(source);
        }
        self.phase.take_error().map_err(|errno| directory.error(errno))?;
        self.type_error(directory).map_or(Ok(()), Err)
    }

    /// Reads the whole directory after the entries up to `above`, which stay unchanged. Even after
    /// an error, the entries that were read before it are sorted.
    #[inline(always)]
    pub(crate) fn fill_whole(&mut self, above: Extent, source: Source<'_>) {
        self.truncate(above);
        self.phase = Phase::Fresh;
        while self.phase.is_reading() {
            let batch = MAX_BATCH.min(FIRST_BATCH + self.records_end - above.records_end);
            // A reply with metadata brings few names, so batches into the rest of the memory would
            // become ever smaller.
            let least = if self.has_metadata { batch } else { MIN_ROOM };
            // Keep the system call in the caller's frame: after a system call, returning from an
            // outer frame mispredicts.
            self.fill(source, batch, [least, batch]);
        }
        self.sort(above.entries);
    }

    /// Reads the directory once more from its beginning, after an empty first batch: either the
    /// descriptor stood at the end, or the directory has neither entries nor dots.
    #[cold]
    fn read_again(&mut self, source: Source<'_>) {
        match open_again(source.dir) {
            Ok(again) => {
                let dir = again.as_ref().map_or(source.dir, AsFd::as_fd);
                self.fill_whole(Extent::default(), Source { dir, ..source });
            }
            Err(errno) => self.phase = Phase::Failed(errno),
        }
    }

    /// Reads a batch of about `batch` bytes after the entries, and queries its entries. Memory
    /// grows as in [`make_room`](Self::make_room).
    #[inline(always)]
    fn fill(&mut self, source: Source<'_>, batch: usize, growth: [usize; 2]) {
        let Source { dir, mount, asks_unknown, asks_all } = source;
        let (first, records_end) = (self.spans.len(), self.records_end);
        let room = match self.make_room(batch, growth) {
            Ok(room) => room,
            Err(errno) => return self.phase = Phase::Failed(errno),
        };
        let Self { arena, spans, .. } = self;
        let mut phase = self.phase;
        let memory_start = arena.memory.as_ptr().addr();
        let mut records = arena.records(records_end, room, dir, mount);
        while phase.is_reading() && !records.is_used_up() {
            if let Some(record) = records.next_record(&mut phase) {
                let name = record.file_name().to_bytes();
                spans.push(Span::new(name.as_ptr().addr() - memory_start, name.len()));
            }
        }
        if phase.is_reading() {
            let has_ended = mount.end_cookie.is_some() && records.has_ended(phase);
            phase = if has_ended { Phase::Ended } else { Phase::Reading };
        }
        // A batch without names is overwritten, because a broken server can send dots without end.
        if let Some(end) = records.end_address().filter(|_| spans.len() > first) {
            let end = end.wrapping_sub(memory_start);
            // The spans are right only if rustix yields names where the kernel wrote them.
            assert!(
                end.wrapping_sub(records_end) <= room,
                "BUG: names are not in the memory of the listing"
            );
            self.records_end = end;
        }
        self.phase = phase;
        if asks_unknown || asks_all || self.has_metadata || self.order == Order::Path {
            if let Err(errno) = self.query_batch(first, source) {
                self.phase = Phase::Failed(errno);
            }
        }
    }

    /// Makes room for a batch of about `batch` bytes after the records: if there is no room of
    /// `least` bytes, `grown`. Returns the number of bytes. Reading the batch never allocates.
    #[inline(always)]
    pub(crate) fn make_room(
        &mut self,
        batch: usize,
        [least, grown]: [usize; 2],
    ) -> Result<usize, Errno> {
        let Self { arena, records_end, spans, keys, .. } = self;
        arena.check_limit(*records_end)?;
        if arena.room(*records_end) < least {
            grow(&mut arena.memory, *records_end + grown)?;
        }
        let mut room = arena.room(*records_end);
        // If too little memory for another batch would remain, this batch gets all of it. So the
        // arena does not grow when the same directory is read again, even if its mount saves the
        // last, empty batch.
        if room >= batch + MIN_ROOM {
            room = batch;
        }
        // The keys first: if memory for the spans is refused, each span still has a key.
        if self.order != Order::Unsorted {
            keys.clear();
            keys.try_reserve(spans.len() + room / MIN_RECORD).map_err(refused)?;
        }
        spans.try_reserve(room / MIN_RECORD).map_err(refused)?;
        Ok(room)
    }

    /// Queries the entries from index `first` on, which were read last. A query that fails leaves
    /// the entry as it was.
    #[cold]
    #[inline(never)]
    fn query_batch(&mut self, first: usize, source: Source<'_>) -> Result<(), Errno> {
        let Source { dir, asks_unknown, asks_all, .. } = source;
        let (has_metadata, is_path) = (self.has_metadata, self.order == Order::Path);
        if has_metadata {
            // Exactly, because it is most of the memory of a listing.
            let count = self.spans.len() - first;
            self.arena.answers.try_reserve_exact(count).map_err(refused)?;
        }
        for index in first..self.spans.len() {
            self.arena.check_limit(0)?;
            let span = self.spans[index];
            let entry = ListedEntry { span, arena: &self.arena };
            let is_unknown = entry.d_type() == FileType::Unknown;
            let needs_type = is_unknown && (is_path || asks_unknown);
            if !has_metadata && !needs_type && !asks_all {
                continue;
            }
            let may_be_mount = self.is_on_one_mount && (is_unknown || entry.d_type().is_dir());
            let opened = may_be_mount.then(|| path_on_mount(dir, entry.name_cstr()));
            let (dir, name) = match &opened {
                Some(Ok(entry)) => (entry.as_fd(), c""),
                Some(Err(errno)) if *errno == Errno::XDEV || !needs_type => continue,
                _ => (dir, entry.name_cstr()),
            };
            let found = if has_metadata && !matches!(opened, Some(Err(_))) {
                #[cfg(test)]
                crate::read_dir::mount::tests::count_query();
                Metadata::query(dir, name, NOT_BEYOND | AtFlags::EMPTY_PATH).map(|metadata| {
                    let file_type = metadata.file_type();
                    self.arena.push_metadata(span.start(), metadata);
                    file_type
                })
            } else {
                query_type(dir, name)
            };
            match found {
                Ok(file_type) if is_unknown => {
                    self.arena.memory[span.start() - 1] = file_type as u8;
                }
                Err(errno) if needs_type => _ = self.type_error.get_or_insert((span, errno)),
                _ => {}
            }
        }
        Ok(())
    }

    /// Replaces the contents with the entry `name` of `dir`, which is queried like those that are
    /// read.
    #[cold]
    pub(crate) fn set_one(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &[u8],
        file_type: FileType,
        ino: u64,
    ) -> Result<(), Errno> {
        self.clear();
        let name_end = HEADER + name.len();
        self.records_end = (name_end + 1).next_multiple_of(8);
        grow(&mut self.arena.memory, self.records_end)?;
        let record = &mut self.arena.memory[..self.records_end];
        record.fill(0);
        record[..8].copy_from_slice(&ino.to_ne_bytes());
        record[HEADER - 1] = file_type as u8;
        record[HEADER..name_end].copy_from_slice(name);
        try_push(&mut self.spans, Span::new(HEADER, name.len()))?;
        self.query_batch(0, Source::whole(dir, Mount::PLAIN, false))
    }

    /// Returns the first error of a query that [`Order::Path`] needs, unless the entry is gone.
    fn type_error(&self, directory: Directory<'_>) -> Option<Error> {
        let (span, errno) = self.type_error.filter(|_| self.order == Order::Path)?;
        let error = directory.error_at(span.name(&self.arena.memory), errno);
        (!error.is_gone()).then_some(error)
    }

    /// Removes the entries behind `above`.
    #[inline]
    pub(crate) fn truncate(&mut self, above: Extent) {
        self.spans.truncate(above.entries);
        self.records_end = above.records_end;
        let is_above = |answer: &Answer| answer.name_start < above.records_end;
        let answer_count = self.arena.answers.partition_point(is_above);
        self.arena.answers.truncate(answer_count);
        self.type_error = None;
    }

    /// Removes the entries behind `above` except the last one.
    #[cold]
    pub(crate) fn keep_last(&mut self, above: Extent) {
        let last = *self.spans.last().expect("BUG: there is no entry");
        let metadata = self.arena.metadata(last).cloned();
        let (start, end, to) = (last.start() - HEADER, self.records_end, above.records_end);
        self.truncate(above);
        self.arena.memory.copy_within(start..end, to);
        self.spans.push(Span::new(to + HEADER, last.len()));
        if let Some(metadata) = metadata {
            self.arena.push_metadata(to + HEADER, metadata);
        }
        self.records_end = to + end - start;
    }

    /// Reads the next batch that has entries, of about `batch` bytes, after the entries. `phase`
    /// is the phase before.
    #[inline(always)]
    pub(crate) fn fill_batch(&mut self, source: Source<'_>, batch: usize, phase: Phase) {
        // If a large batch falls short of a whole page, a FUSE server's replies lose a tenth. The
        // others fit into what memory there is. Where one call can show the end, a walk of a few
        // small directories need not fill 32 KiB with zeros.
        let growth = match batch {
            _ if batch > FIRST_BATCH => [batch; 2],
            _ if source.mount.end_cookie.is_some() => [MIN_ROOM, FIRST_ROOM.min(batch)],
            _ => [MIN_ROOM, batch],
        };
        let (count, records_start) = (self.len(), self.records_end);
        self.phase = phase;
        while self.phase.is_reading() && self.len() == count {
            self.fill(source, batch, growth);
        }
        if self.phase.is_reading() && self.arena.room(self.records_end) < MAX_RECORD {
            // If memory is refused, the next batch is small as well.
            let _ = grow(&mut self.arena.memory, records_start + batch);
        }
    }

    fn sort(&mut self, first: usize) {
        let Self { arena, spans, keys, order, .. } = self;
        let spans = &mut spans[first..];
        if *order != Order::Unsorted {
            keys.resize(spans.len(), 0); // the memory is reserved
        }
        match order {
            Order::Bytes => sort::sort(spans, keys, &arena.memory),
            Order::Path => sort_by_path(spans, keys, arena),
            Order::Unsorted => {}
        }
    }

    /// Tells whether the directory was removed before or while it was read: see
    /// [`Entries::is_removed`](crate::Entries::is_removed).
    pub fn is_removed(&self) -> bool {
        self.phase == Phase::Removed
    }

    /// Counts the entries.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns the part of the memory that is in use.
    pub(crate) fn extent(&self) -> Extent {
        Extent { entries: self.len(), records_end: self.records_end }
    }

    /// Tells whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the entry at `index` in the order of the listing, or `None` after the last one.
    #[inline]
    pub fn get(&self, index: usize) -> Option<ListedEntry<'_>> {
        self.spans.get(index).map(|&span| ListedEntry { span, arena: &self.arena })
    }

    /// Finds the entry with this name, or the first of them if the name occurs more than once. To
    /// compare two listings, [`zip_by_name`](Self::zip_by_name) is much faster.
    ///
    /// # Performance
    ///
    /// A binary search. In [`Order::Unsorted`], each entry is compared.
    #[doc(alias("exists", "contains"))]
    pub fn by_name(&self, name: impl AsRef<[u8]>) -> Option<ListedEntry<'_>> {
        let name = name.as_ref();
        match self.order {
            Order::Bytes => self.find_after(name, |span| span.name(&self.arena.memory) < name),
            Order::Path => {
                // The name sorts differently as a file and as a directory.
                let path = |name, is_dir: bool| <[u8]>::iter(name).chain(is_dir.then_some(&b'/'));
                let path_of = |span: &Span| {
                    path(span.name(&self.arena.memory), self.arena.d_type(*span).is_dir())
                };
                let find =
                    |is_dir| self.find_after(name, |span| path_of(span).lt(path(name, is_dir)));
                find(false).or_else(|| find(true))
            }
            Order::Unsorted => self.iter().find(|entry| entry.name() == name),
        }
    }

    /// Returns the first entry for which `before` returns `false`, if that entry has this name.
    fn find_after(&self, name: &[u8], before: impl Fn(&Span) -> bool) -> Option<ListedEntry<'_>> {
        self.get(self.spans.partition_point(before)).filter(|entry| entry.name() == name)
    }

    /// Goes through two listings at once, and yields for each name the entry of this listing and
    /// the entry of the other one.
    ///
    /// ```
    /// let (old, new) = (lendir::list("src/walk")?, lendir::list("src/walk_dirs")?);
    /// # let mut added = Vec::new();
    /// for sides in old.zip_by_name(&new) {
    ///     match sides {
    ///         (Some(old), None) => println!("- {:?}", old.file_name()),
    ///         (None, Some(new)) => println!("+ {:?}", new.file_name()),
    ///         _ => {} // the name is in both
    ///     }
    /// #   added.extend(sides.1.filter(|_| sides.0.is_none()).map(|entry| entry.name().to_vec()));
    /// }
    /// # assert!(added.contains(&b"dir.rs".to_vec()) && !added.contains(&b"mod.rs".to_vec()));
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// If one of the listings has a name twice, each of these entries is yielded.
    ///
    /// # Panics
    ///
    /// Panics unless both listings are in [`Order::Bytes`], because names in another order cannot
    /// be compared in one pass.
    #[doc(alias("merge_join_by", "diff"))]
    pub fn zip_by_name<'a>(
        &'a self,
        other: &'a Self,
    ) -> impl Iterator<Item = (Option<ListedEntry<'a>>, Option<ListedEntry<'a>>)> {
        let orders = [self.order, other.order];
        assert_eq!(orders, [Order::Bytes; 2], "`zip_by_name` needs two listings in `Order::Bytes`");
        let mut sides = [self, other].map(|listing| listing.iter().peekable());
        iter::from_fn(move || {
            let name = sides.iter_mut().filter_map(Peekable::peek).min()?.name();
            let [this, other] =
                sides.each_mut().map(|side| side.next_if(|entry| entry.name() == name));
            Some((this, other))
        })
    }

    /// Iterates over the entries, in the order of the listing.
    #[inline]
    pub fn iter(&self) -> ListedEntries<'_> {
        ListedEntries { spans: self.spans.iter(), arena: &self.arena }
    }

    /// Removes all entries and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.truncate(Extent::default());
        self.phase = Phase::Ended;
    }
}

/// Sorts the spans by [`Order::Path`].
#[inline(never)] // The frame of the usual orders stays small.
fn sort_by_path(spans: &mut [Span], keys: &mut [u64], arena: &mut Arena) {
    // While the names are sorted, the NUL of each directory is a `/` and part of its name.
    for span in &mut *spans {
        if arena.d_type(*span).is_dir() {
            arena.memory[span.end()] = b'/';
            *span = Span::new(span.start(), span.len() + 1);
        }
    }
    sort::sort(spans, keys, &arena.memory);
    for span in spans {
        if arena.d_type(*span).is_dir() {
            *span = Span::new(span.start(), span.len() - 1);
            arena.memory[span.end()] = 0;
        }
    }
}

impl<'a> IntoIterator for &'a Listing {
    type Item = ListedEntry<'a>;
    type IntoIter = ListedEntries<'a>;

    #[inline]
    fn into_iter(self) -> ListedEntries<'a> {
        self.iter()
    }
}

/// Same as [`Listing::new`].
impl Default for Listing {
    fn default() -> Self {
        Self::new()
    }
}

debug!(Listing, |listing| order: listing.order, entries: listing.iter());

impl ReadDir {
    /// Reads the whole directory into `listing`, sorted, whatever was yielded before. Afterwards
    /// [`next`](Self::next) is at the end.
    ///
    /// # Errors
    ///
    /// The errors of [`Listing::read`], with the path of the directory. A reader that has begun, or
    /// that [`from_fd`](Self::from_fd) has made, counts as one at the end.
    ///
    /// # Performance
    ///
    /// A reader that has begun opens the directory again, because some servers ignore `lseek`. On
    /// other file systems, call [`rewind`](Self::rewind) first, which takes less time.
    #[inline(always)]
    pub fn read_into(&mut self, listing: &mut Listing) -> Result<(), Error> {
        listing.clear();
        let (again, directory, mount) = self.begin_again()?;
        let fd = again.as_ref().map_or(directory.fd, AsFd::as_fd);
        let read = listing.read_known(directory, Source::whole(fd, mount, false));
        self.phase = listing.phase;
        read
    }
}

#[cfg(test)]
mod tests {
    use super::{Directory, ListedEntry, Listing, Mount, Order, Source};
    use crate::FileType;
    use crate::listing::sort::tests::Random;
    use crate::listing::span::Span;
    use crate::read_dir::records::HEADER;
    use std::os::fd::AsFd;

    /// Returns a listing of these entries in the given order, whose inode numbers count up from 1.
    fn unsorted(entries: &[(Vec<u8>, FileType)], order: Order) -> Listing {
        let mut listing = Listing::with_order(order);
        for (ino, (name, file_type)) in (1_u64..).zip(entries) {
            listing.arena.memory.extend_from_slice(&ino.to_ne_bytes());
            listing.arena.memory.extend_from_slice(&[0xff; HEADER - size_of::<u64>()]);
            let span = Span::new(listing.arena.memory.len(), name.len());
            listing.arena.memory[span.start() - 1] = *file_type as u8;
            listing.spans.push(span);
            listing.arena.memory.extend_from_slice(name);
            listing.arena.memory.push(0);
        }
        listing
    }

    /// Each name comes as often as in the listing that has more of it, in order.
    #[test]
    fn zip_by_name_agrees_with_a_model() {
        let mut random = Random(1);
        let rounds = if cfg!(miri) { 10 } else { 200 };
        for _ in 0..rounds {
            let counts = [(); 2].map(|()| [(); 26].map(|()| random.below(3)));
            let listings = counts.map(|counts| {
                let names = (b'a'..=b'z').zip(counts);
                let names =
                    names.flat_map(|(name, count)| vec![(vec![name], FileType::Fifo); count]);
                unsorted(&names.collect::<Vec<_>>(), Order::Bytes)
            });
            let mut expected = Vec::new();
            for (name, both) in (b'a'..=b'z').zip(counts[0].into_iter().zip(counts[1])) {
                let at = |index, count| (index < count).then_some(vec![name]);
                expected.extend((0..both.0.max(both.1)).map(|i| (at(i, both.0), at(i, both.1))));
            }
            let name = |entry: ListedEntry<'_>| entry.name().to_vec();
            let zipped = listings[0].zip_by_name(&listings[1]);
            let zipped: Vec<_> = zipped.map(|(a, b)| (a.map(name), b.map(name))).collect();
            assert_eq!(zipped, expected);
        }
    }

    #[test]
    fn names_given_twice_stay_and_the_first_is_found() {
        let mut entries: Vec<_> = ["bb", "BB", "aa", "bb", "cc", "Bb", "bb"]
            .map(|name| (name.into(), FileType::RegularFile))
            .into();
        // Twelve copies have 36 names that are equal, which is more than `SMALL` in `sort.rs`.
        for copies in [1, if cfg!(miri) { 12 } else { 100 }] {
            entries = entries.iter().cloned().cycle().take(copies * entries.len()).collect();
            for order in [Order::Bytes, Order::Path, Order::Unsorted] {
                let mut listing = unsorted(&entries, order);
                listing.sort(0);
                let inos: Vec<_> = listing
                    .iter()
                    .filter(|entry| entry.name() == b"bb")
                    .map(|entry| entry.ino())
                    .collect();
                assert_eq!(inos.len(), 3 * copies);
                assert!(inos.is_sorted(), "{order:?}");
                assert_eq!(listing.by_name("bb").unwrap().ino(), 1, "{order:?}");
                assert_eq!(listing.by_name(b"Bb").unwrap().ino(), 6, "{order:?}");
                assert!(listing.by_name("bB").is_none(), "{order:?}");
            }
        }
    }

    /// The test compares with a plain sort of `name` and `name/`, even if a broken file system
    /// returns a name as both.
    #[test]
    fn in_order_path_a_directory_compares_with_a_slash() {
        let mut random = Random(6);
        let (rounds, max_count, longest) = if cfg!(miri) { (20, 12, 60) } else { (60, 100, 4095) };
        let types = [
            FileType::Directory,
            FileType::Directory,
            FileType::RegularFile,
            FileType::Symlink,
            FileType::Unknown,
        ];
        for round in 0..rounds {
            let max_len = [2, 3, 9, 20, longest][round % 5];
            let shared = random.below(max_len);
            let prefix = random.name(shared, b"a.0");
            let entries: Vec<_> = (0..random.below(max_count))
                .map(|_| {
                    let len = 1 + random.below(3.min(max_len - shared));
                    let name = [&prefix[..], &random.name(len, b"\x01-.0a\xff")].concat();
                    (name, types[random.below(types.len())])
                })
                .collect();
            let path = |(name, file_type): &(Vec<u8>, FileType)| match file_type {
                FileType::Directory => [&name[..], b"/"].concat(),
                _ => name.clone(),
            };
            let mut expected: Vec<_> = (1_u64..).zip(&entries).collect();
            expected.sort_by_cached_key(|(_, entry)| path(entry));

            let mut listing = unsorted(&entries, Order::Path);
            listing.sort(0);
            assert_eq!(listing.len(), expected.len());
            for (entry, (ino, (name, file_type))) in listing.iter().zip(&expected) {
                assert_eq!(
                    (entry.name(), entry.ino(), entry.d_type()),
                    (&name[..], *ino, *file_type)
                );
                assert_eq!(entry.name_cstr().to_bytes(), name);
                let first = expected.iter().find(|(_, (other, _))| other == name).unwrap();
                assert_eq!(listing.by_name(name).unwrap().ino(), first.0);
                assert!(listing.by_name(path(&(name.clone(), FileType::Directory))).is_none());
                assert!(listing.by_name([&name[..], b"z"].concat()).is_none());
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "queries the kernel")]
    fn order_path_queries_types_that_are_not_listed() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("a")).unwrap();
        std::fs::File::create(dir.path().join("a.b")).unwrap();
        let entries = ["a", "gone", "ab", "a.b"].map(|name| (name.into(), FileType::Unknown));
        std::fs::create_dir(dir.path().join("ab")).unwrap();
        let names = |listing: &Listing| {
            listing.iter().map(|entry| entry.name().to_vec()).collect::<Vec<_>>()
        };

        let mut listing = unsorted(&entries, Order::Path);
        let opened = crate::open(dir.path()).unwrap();
        listing.query_batch(0, Source::whole(opened.as_fd(), Mount::PLAIN, false)).unwrap();
        listing.sort(0);
        assert_eq!(names(&listing), ["a.b", "a", "ab", "gone"].map(Vec::from));
        let opened = crate::open(dir.path()).unwrap();
        let error =
            listing.by_name("gone").unwrap().in_dir(opened.as_fd()).file_type().unwrap_err();
        assert_eq!(error.path(), Some("gone".as_ref()));
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
        let types: Vec<_> = listing.iter().map(|entry| entry.d_type()).collect();
        assert_eq!(
            types,
            [FileType::RegularFile, FileType::Directory, FileType::Directory, FileType::Unknown]
        );

        // Nothing can be queried relative to a file. The entries are all there, sorted like files.
        let file = std::fs::File::open("/dev/null").unwrap();
        let mut listing = unsorted(&entries, Order::Path);
        listing.query_batch(0, Source::whole(file.as_fd(), Mount::PLAIN, false)).unwrap();
        listing.sort(0);
        let directory = Directory { fd: file.as_fd(), path: b"", depth: 0 };
        let error = listing.type_error(directory).unwrap();
        assert_eq!(error.raw_os_error(), Some(libc::ENOTDIR));
        assert_eq!(error.path(), Some("a".as_ref()));
        assert_eq!(names(&listing), ["a", "a.b", "ab", "gone"].map(Vec::from));

        // No other order queries types.
        let mut listing = unsorted(&entries, Order::Bytes);
        listing.query_batch(0, Source::whole(file.as_fd(), Mount::PLAIN, false)).unwrap();
        listing.sort(0);
        assert_eq!(names(&listing), ["a", "a.b", "ab", "gone"].map(Vec::from));
    }
}
