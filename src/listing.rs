//! `Listing`, `SortedEntry`, `Order`: a whole directory, sorted, in memory that is reused from directory to directory.

use crate::entry::{self, canonical_decimal, resolved};
use crate::sort::{self, Case, Place};
use crate::{Buffer, Entries, Error, FileType};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{OFlags, RawMode, Stat, Statx, StatxFlags};
use rustix::io::Errno;
use std::ffi::{CStr, OsStr};
use std::iter::FusedIterator;
use std::os::unix::ffi::OsStrExt;
use std::{fmt, io, slice};

/// A whole directory, sorted. Reuse it: its memory stays.
///
/// One [`Buffer`](crate::Buffer) serves a whole tree, and one `Listing` each of its levels.
///
/// ```
/// use lendir::{Buffer, Entries, Listing};
///
/// let mut buffer = Buffer::new();
/// let mut listing = Listing::new();
/// for path in ["/sys/class", "/sys/bus"] {
///     let dir = lendir::open(path)?;
///     listing.read(Entries::new(&dir, &mut buffer))?;
///     for entry in &listing {
///         println!("{path}/{}", entry.name().escape_ascii());
///     }
/// }
/// assert!(listing.find("pci").is_none_or(|entry| entry.name() == b"pci"));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # What it costs
///
/// The kernel writes its records into the listing's own memory, where the names stay. An entry takes what its record takes
/// in a [`Buffer`](crate::Buffer), and 16 bytes more: 40 bytes with a name of up to 4 bytes, 48 with one of up to 12, 56 with
/// one of up to 20. No allocation for a directory that is no larger than one it has held before.
///
/// The memory grows by doubling, from 37 KiB, and what grows is filled with zeros: a new listing for each directory costs more
/// than one that is reused.
#[derive(Default)]
pub struct Listing {
    /// Records as the kernel wrote them, batch after batch (`struct linux_dirent64`):
    ///
    /// ```text
    /// +-------+-------+----------+--------+--------------+-----+---------+
    /// | d_ino | d_off | d_reclen | d_type |     name     | NUL |         | ...
    /// +-------+-------+----------+--------+--------------+-----+---------+
    ///  8 bytes 8       2          1        ^ Place::start ^ Place::end    ^ a multiple of 8
    /// ```
    ///
    /// All of it is initialised, by zeros before the kernel writes. While [`Order::Path`] sorts, the NUL of a directory is a
    /// `/` and part of its name.
    arena: Vec<u8>,
    /// Where each name is, in the order of the listing. The tag is the type. Places from `len` on are left over from larger
    /// directories.
    places: Vec<Place>,
    /// Memory for the sort, as long as `places` at least. Before it, the first key of each name is here.
    keys: Vec<u64>,
    len: usize,
    order: Order,
    removed: bool,
}

/// How a [`Listing`] sorts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Order {
    /// By the bytes of the name, as `memcmp` compares them; a name comes before its own extensions. The order of
    /// `LC_ALL=C ls`.
    #[default]
    Bytes,
    /// By the bytes of the name, but a directory compares as if its name ended in `/`: `a-b`, `a.b`, `a/`, `ab`.
    ///
    /// Whole paths come out sorted by their bytes if each directory is followed by what is below it. It is the order of
    /// git's index and of its trees, in which a submodule counts as a file.
    ///
    /// The order depends on the type of each entry. Where the directory does not tell it,
    /// [`Listing::read`] asks the file system: one `fstatat` for each such entry.
    Path,
    /// By the bytes of the name, but `A` to `Z` compare as `a` to `z`. Names that differ only in case compare by their bytes.
    AsciiCaseless,
    /// By inode number, then by the bytes of the name.
    ///
    /// For rotating disks with cold caches, to open or stat each entry in the order in which inodes lie on the disk. Where
    /// nothing has to seek, it gains nothing over [`Directory`](Self::Directory): measure before you choose it.
    Inode,
    /// As the kernel gave them.
    Directory,
}

impl Order {
    /// How names compare, or `None` in an order that is not one of names.
    fn case(self) -> Option<Case> {
        match self {
            Self::Bytes | Self::Path => Some(Case::Sensitive),
            Self::AsciiCaseless => Some(Case::AsciiInsensitive),
            Self::Inode | Self::Directory => None,
        }
    }
}

impl Listing {
    /// An empty listing in [`Order::Bytes`].
    ///
    /// Costs: nothing; memory comes with the first [`read`](Self::read).
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty listing in the order given.
    ///
    /// ```
    /// use lendir::{Buffer, Entries, Listing, Order};
    ///
    /// let fds = lendir::open("/proc/self/fd")?;
    /// let mut buffer = Buffer::new();
    /// let mut listing = Listing::with_order(Order::Inode);
    /// listing.read(Entries::new(&fds, &mut buffer))?;
    /// assert!(listing.iter().is_sorted_by_key(|fd| fd.ino()));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn with_order(order: Order) -> Self {
        Self { order, ..Self::default() }
    }

    /// Replaces the content of the listing by the rest of `entries`, sorted.
    ///
    /// **A second reading of one descriptor is empty, without an error**, because the first one left it at the end: read
    /// [`Entries::rewound`] instead. Entries with the same name, which a broken file system can give, all stay, in the order
    /// of the directory.
    ///
    /// Costs: the system calls of [`Entries::next`], and in [`Order::Path`] one `fstatat` for each entry of type
    /// [`Unknown`](FileType::Unknown); no allocation for a directory that is no larger than one read before.
    ///
    /// # Errors
    ///
    /// After each of them the listing holds, sorted, what was read before it.
    ///
    /// - Those of [`Entries::next`].
    /// - [`OutOfMemory`](io::ErrorKind::OutOfMemory).
    /// - In [`Order::Path`] the first error of [`SortedEntry::resolve_file_type`], without the name, after everything has been
    ///   read. An entry without an answer stays `Unknown` and sorts as a file. `ENOENT` is no error here: the entry has been
    ///   removed since.
    #[allow(
        clippy::inline_always,
        reason = "out of line, or where it does not know whether there is an `EndMarker`, it costs a small directory more"
    )]
    #[inline(always)]
    pub fn read(&mut self, mut entries: Entries<'_>) -> io::Result<()> {
        self.read_rest(&mut entries)
    }

    #[allow(clippy::inline_always, reason = "see `read`")]
    #[inline(always)]
    pub(crate) fn read_rest(&mut self, entries: &mut Entries<'_>) -> io::Result<()> {
        // Keep the system call in the caller's frame: after a system call, returning from an outer frame mispredicts.
        let filled = self.fill(entries);
        self.removed = entries.removed();
        let finished = self.finish(entries.as_fd()); // after an error too: it sorts what came before
        filled.and(finished)
    }

    /// Reads the records.
    #[allow(clippy::inline_always, reason = "see `read`")]
    #[inline(always)]
    fn fill(&mut self, entries: &mut Entries<'_>) -> io::Result<()> {
        self.len = 0;
        let mut used = 0;
        if entries.has_begun() {
            used = self.copy_left(entries)?;
        }
        while entries.is_reading() {
            used += self.read_batch(entries, used)?;
        }
        Ok(())
    }

    /// Reads a batch into the arena, from `used` on. Returns how many bytes it takes, 0 if it has no entries.
    #[allow(clippy::inline_always, reason = "see `read`")]
    #[inline(always)]
    fn read_batch(&mut self, entries: &mut Entries<'_>, used: usize) -> io::Result<usize> {
        let Self { arena, places, keys, len, .. } = self;
        let room = room(arena, used)?;
        if places.len() < *len + MIN_PLACES {
            grow(keys, *len + room.len() / MIN_RECORD)?;
            grow(places, *len + room.len() / MIN_RECORD)?;
        }
        // There is a place for each name that may come, so the loop below need not make places grow.
        let room_for_all = (places.len() - *len) * MIN_RECORD;
        let batch = room.len().min(room_for_all);
        let room = &mut room[..batch];
        let start = room.as_ptr().addr() - used;
        let (places, keys) = (&mut places[*len..], &mut keys[*len..]);
        let mut free = places.iter_mut();
        let read = entries.read_batch(room, |entry| {
            let name = entry.name();
            let place = free.next().expect("BUG: more names than the batch has room for");
            *place = Place::new(name.as_ptr().addr() - start, name.len(), 0);
        });
        let unused = free.len();
        let count = places.len() - unused;
        if count == 0 {
            return read.map(|_| 0); // Nothing but dots, which a broken server can send without end.
        }
        write_tags_and_keys(&mut places[..count], keys, arena);
        *len += count;
        read
    }

    /// Takes over what is left in the `Buffer` of `entries`, in records as the kernel makes them. Returns how many bytes they
    /// take.
    #[cold]
    fn copy_left(&mut self, entries: &mut Entries<'_>) -> io::Result<usize> {
        let mut used = 0;
        while let Some(entry) = entries.next_left()? {
            let name = entry.name_cstr().to_bytes_with_nul();
            let start = used + HEADER;
            let end = start + name.len();
            let arena = grow(&mut self.arena, end)?;
            arena[used..][..INO_SIZE].copy_from_slice(&entry.ino().to_ne_bytes());
            arena[start..end].copy_from_slice(name);
            let place = Place::new(start, name.len() - 1, tag(entry.file_type()));
            let key = place.key(0, arena);
            if self.len == self.places.len() {
                grow(&mut self.keys, self.len + 1)?;
                grow(&mut self.places, self.len + 1)?;
            }
            (self.places[self.len], self.keys[self.len]) = (place, key);
            self.len += 1;
            used = end;
        }
        Ok(used)
    }

    /// Resolves the types that the order needs, and sorts.
    #[inline(never)]
    fn finish(&mut self, dir: BorrowedFd<'_>) -> io::Result<()> {
        if self.places.len() < self.len + MIN_PLACES {
            // Reading the same directory again, in other batches, must take no memory. If there is none now, that reading
            // takes it.
            let grown = grow(&mut self.keys, self.len + MIN_PLACES).is_ok();
            let _ = grown && grow(&mut self.places, self.len + MIN_PLACES).is_ok();
        }
        let resolved = if self.order == Order::Path { self.resolve_file_types(dir) } else { Ok(()) };
        if self.len > 1 {
            self.sort();
        }
        resolved
    }

    /// Asks for each type that the directory did not say. Returns the first error, after asking for all.
    fn resolve_file_types(&mut self, dir: BorrowedFd<'_>) -> io::Result<()> {
        let mut result = Ok(());
        for place in self.places[..self.len].iter_mut().filter(|place| file_type(**place) == FileType::Unknown) {
            let entry = SortedEntry { place: *place, arena: &self.arena };
            match resolved(entry.file_type(), dir, entry.name_cstr()) {
                Ok(file_type) => *place = Place::new(place.start(), place.len(), tag(file_type)),
                Err(Errno::NOENT) => {}
                Err(errno) => result = result.and(Err(errno.into())),
            }
        }
        result
    }

    fn sort(&mut self) {
        let Self { arena, places, keys, len, order, .. } = self;
        let (places, keys) = (&mut places[..*len], &mut keys[..*len]);
        let Some(case) = order.case() else {
            if *order == Order::Inode {
                places.sort_unstable_by(|a, b| {
                    let by_name = || (a.name(arena), a).cmp(&(b.name(arena), b));
                    ino(*a, arena).cmp(&ino(*b, arena)).then_with(by_name)
                });
            }
            return;
        };
        if *order != Order::Path {
            return sort::sort(places, keys, arena, case);
        }
        // While the names are sorted, the NUL of each directory is a `/` and part of its name.
        for (place, key) in places.iter_mut().zip(&mut *keys).filter(|(place, _)| is_dir(**place)) {
            arena[place.end()] = b'/';
            *place = Place::new(place.start(), place.len() + 1, place.tag());
            *key = place.key(0, arena);
        }
        sort::sort(places, keys, arena, case);
        for place in places.iter_mut().filter(|place| is_dir(**place)) {
            *place = Place::new(place.start(), place.len() - 1, place.tag());
            arena[place.end()] = 0;
        }
    }

    /// The order that it sorts in.
    #[must_use]
    pub fn order(&self) -> Order {
        self.order
    }

    /// Whether the directory was removed before or while it was read: see [`Entries::removed`].
    #[must_use]
    pub fn removed(&self) -> bool {
        self.removed
    }

    /// The number of entries.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no entry.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The entry at `index` in the order of the listing, if there are that many.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> Option<SortedEntry<'_>> {
        self.places().get(index).map(|&place| SortedEntry { place, arena: &self.arena })
    }

    /// The entry with this name; of several, the first in the order of the listing.
    ///
    /// Names are compared byte by byte in every order, so in [`Order::AsciiCaseless`] too `Version` does not find `version`.
    ///
    /// Costs: log2(n) comparisons of names, twice that in [`Order::Path`], n in [`Order::Inode`] and [`Order::Directory`].
    ///
    /// ```
    /// # use lendir::{Buffer, Entries, Listing};
    /// # let proc = lendir::open("/proc")?;
    /// # let mut buffer = Buffer::new();
    /// # let mut listing = Listing::new();
    /// # listing.read(Entries::new(&proc, &mut buffer))?;
    /// assert!(listing.find("version").is_some());
    /// assert!(listing.find(b"Version").is_none());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn find(&self, name: impl AsRef<[u8]>) -> Option<SortedEntry<'_>> {
        let name = name.as_ref();
        match self.order.case() {
            None => self.iter().find(|entry| entry.name() == name),
            Some(_) if self.order == Order::Path => {
                // The name stands at one place as a file, and at another as a directory.
                let path = |name, is_dir: bool| <[u8]>::iter(name).chain(is_dir.then_some(&b'/'));
                let find = |wanted_dir| {
                    let wanted = || path(name, wanted_dir);
                    self.find_after(name, |place| path(place.name(&self.arena), is_dir(*place)).lt(wanted()))
                };
                find(false).or_else(|| find(true))
            }
            Some(case) => self.find_after(name, |place| case.compare(place.name(&self.arena), name).is_lt()),
        }
    }

    /// The first entry that is not `before`, if it has this name.
    fn find_after(&self, name: &[u8], before: impl Fn(&Place) -> bool) -> Option<SortedEntry<'_>> {
        self.get(self.places().partition_point(before)).filter(|entry| entry.name() == name)
    }

    /// The entries in the order of the listing.
    #[inline]
    pub fn iter(&self) -> SortedEntries<'_> {
        SortedEntries { places: self.places().iter(), arena: &self.arena }
    }

    /// Forgets the entries and keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
        self.removed = false;
    }

    #[inline]
    fn places(&self) -> &[Place] {
        &self.places[..self.len]
    }
}

/// What comes before the name in a record. It begins with the inode number.
const HEADER: usize = 19;
const INO_SIZE: usize = size_of::<u64>();
const _: () = assert!(HEADER >= 8, "the sort reads up to 8 bytes before a name");
/// With a name of up to 4 bytes.
const MIN_RECORD: usize = 24;
/// A tag that no type has.
const UNKNOWN: u8 = 15;

const MIN_BATCH: usize = Buffer::MIN_CAPACITY;
/// For the names of a batch that small.
const MIN_PLACES: usize = MIN_BATCH.div_ceil(MIN_RECORD);
/// The kernel holds the directory's lock while it writes a batch.
const MAX_BATCH: usize = 32 * 1024;

#[inline]
fn ino(place: Place, arena: &[u8]) -> u64 {
    let bytes = arena[place.start() - HEADER..].first_chunk().expect("BUG: not 8 bytes");
    u64::from_ne_bytes(*bytes)
}

/// The type as the tag of a place: the 4 bits above the permissions in `st_mode`.
#[allow(clippy::cast_possible_truncation, reason = "4 bits")]
#[inline]
fn tag(file_type: FileType) -> u8 {
    (file_type.as_raw_mode() >> 12) as u8
}

#[inline]
fn file_type(place: Place) -> FileType {
    FileType::from_raw_mode(RawMode::from(place.tag()) << 12)
}

#[inline]
fn is_dir(place: Place) -> bool {
    file_type(place) == FileType::Directory
}

/// The second half of [`Listing::read_batch`], while the names are still in the cache: the types and the first keys.
#[inline(never)] // In the frame that reads a directory, registers are scarce.
fn write_tags_and_keys(places: &mut [Place], keys: &mut [u64], arena: &[u8]) {
    for (place, key) in places.iter_mut().zip(keys) {
        *key = place.first_key(arena);
        *place = place.with_tag(arena[place.start() - 1].min(UNKNOWN)); // `d_type` is the tag.
    }
}

/// The memory for the next batch, from `used` on.
#[inline]
fn room(arena: &mut Vec<u8>, used: usize) -> io::Result<&mut [u8]> {
    if arena.len() < used + MIN_BATCH {
        grow(arena, used + MIN_BATCH)?;
    }
    let room = &mut arena[used..];
    // What would be too little for another batch belongs to this one. So a directory that has once been read to its end does
    // not make the arena grow again, not even with an `EndMarker`.
    let len = if room.len() < MAX_BATCH + MIN_BATCH { room.len() } else { MAX_BATCH };
    Ok(&mut room[..len])
}

/// Makes `memory` at least `len` long. Its capacity doubles, but at most 64 KiB beyond `len` are written to in advance.
#[cold]
fn grow<T: Copy + Default>(memory: &mut Vec<T>, len: usize) -> io::Result<&mut [T]> {
    if len > memory.len() {
        let len = len + len.min(64 * 1024 / size_of::<T>());
        if len as u64 > Place::MAX_START {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        memory.try_reserve(len - memory.len())?;
        memory.resize(len, T::default());
    }
    Ok(memory)
}

impl<'a> IntoIterator for &'a Listing {
    type Item = SortedEntry<'a>;
    type IntoIter = SortedEntries<'a>;

    #[inline]
    fn into_iter(self) -> SortedEntries<'a> {
        self.iter()
    }
}

impl fmt::Debug for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listing").field("order", &self.order).field("entries", &self.iter()).finish_non_exhaustive()
    }
}

/// An iterator over the entries of a [`Listing`], in its order.
#[derive(Clone)]
#[must_use = "iterators are lazy"]
pub struct SortedEntries<'a> {
    places: slice::Iter<'a, Place>,
    arena: &'a [u8],
}

impl<'a> Iterator for SortedEntries<'a> {
    type Item = SortedEntry<'a>;

    #[inline]
    fn next(&mut self) -> Option<SortedEntry<'a>> {
        self.places.next().map(|&place| SortedEntry { place, arena: self.arena })
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.places.size_hint()
    }

    #[inline]
    fn nth(&mut self, n: usize) -> Option<SortedEntry<'a>> {
        self.places.nth(n).map(|&place| SortedEntry { place, arena: self.arena })
    }
}

impl DoubleEndedIterator for SortedEntries<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        self.places.next_back().map(|&place| SortedEntry { place, arena: self.arena })
    }
}

impl ExactSizeIterator for SortedEntries<'_> {}

impl FusedIterator for SortedEntries<'_> {}

impl fmt::Debug for SortedEntries<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

/// One entry of a [`Listing`], lent until the listing is next changed.
///
/// What the directory itself tells costs no system call and no allocation. [`stat`](Self::stat), [`statx`](Self::statx),
/// [`open`](Self::open) and [`resolve_file_type`](Self::resolve_file_type) ask the file system, and their errors have the name
/// for their path. The cookie is not kept.
#[derive(Clone, Copy)]
pub struct SortedEntry<'a> {
    place: Place,
    arena: &'a [u8],
}

impl<'a> SortedEntry<'a> {
    /// The name: any bytes but NUL and `/`, at least one, not necessarily UTF-8.
    #[doc(alias = "d_name")]
    #[doc(alias = "file_name")]
    #[inline]
    #[must_use]
    pub fn name(&self) -> &'a [u8] {
        self.place.name(self.arena)
    }

    /// The name with its NUL, which goes straight into `openat`, `statat`, `unlinkat` or `readlinkat`: no copy.
    ///
    /// Costs: one scan of the name for its NUL.
    #[allow(clippy::missing_panics_doc, reason = "only a bug would")]
    #[inline]
    #[must_use]
    pub fn name_cstr(&self) -> &'a CStr {
        CStr::from_bytes_until_nul(&self.arena[self.place.start()..]).expect("BUG: a name without its NUL")
    }

    /// The name for `std`: `Path::new(entry.name_os())`.
    #[inline]
    #[must_use]
    pub fn name_os(&self) -> &'a OsStr {
        OsStr::from_bytes(self.name())
    }

    /// The name as a number, if it is one in canonical decimal, as
    /// [`Entry::numeric_name`](crate::Entry::numeric_name).
    #[inline]
    #[must_use]
    pub fn numeric_name(&self) -> Option<u32> {
        canonical_decimal(self.name())
    }

    /// The type as the directory has it (`d_type`), as [`Entry::file_type`](crate::Entry::file_type). In [`Order::Path`],
    /// the type that [`Listing::read`] was told where the directory did not have it.
    #[doc(alias = "d_type")]
    #[inline]
    #[must_use]
    pub fn file_type(&self) -> FileType {
        file_type(self.place)
    }

    /// The type, from the file system if the directory did not have it, as
    /// [`Entry::resolve_file_type`](crate::Entry::resolve_file_type). `dir` is the directory that was read.
    ///
    /// Costs: nothing where [`file_type`](Self::file_type) is known, else one `fstatat`.
    ///
    /// # Errors
    ///
    /// Those of [`Entry::resolve_file_type`](crate::Entry::resolve_file_type), with the name for their path.
    pub fn resolve_file_type(&self, dir: impl AsFd) -> Result<FileType, Error> {
        resolved(self.file_type(), dir, self.name_cstr()).map_err(|error| self.error(error))
    }

    /// The inode number (`d_ino`), as [`Entry::ino`](crate::Entry::ino).
    #[doc(alias = "d_ino")]
    #[doc(alias = "inode_number")]
    #[inline]
    #[must_use]
    pub fn ino(&self) -> u64 {
        ino(self.place, self.arena)
    }

    /// As [`Entry::stat`](crate::Entry::stat); `dir` is the directory that was read.
    ///
    /// Costs: one `fstatat`.
    ///
    /// # Errors
    ///
    /// Those of [`Entry::stat`](crate::Entry::stat), with the name for their path.
    #[doc(alias = "metadata")]
    pub fn stat(&self, dir: impl AsFd) -> Result<Stat, Error> {
        entry::stat(dir, self.name_cstr()).map_err(|error| self.error(error))
    }

    /// As [`Entry::statx`](crate::Entry::statx); `dir` is the directory that was read.
    ///
    /// Costs: one `statx`.
    ///
    /// # Errors
    ///
    /// Those of [`Entry::statx`](crate::Entry::statx), with the name for their path.
    pub fn statx(&self, dir: impl AsFd, mask: StatxFlags) -> Result<Statx, Error> {
        entry::statx(dir, self.name_cstr(), mask).map_err(|error| self.error(error))
    }

    /// As [`Entry::open`](crate::Entry::open); `dir` is the directory that was read.
    ///
    /// Costs: one `openat`.
    ///
    /// # Errors
    ///
    /// Those of [`Entry::open`](crate::Entry::open), with the name for their path.
    pub fn open(&self, dir: impl AsFd, flags: OFlags) -> Result<OwnedFd, Error> {
        entry::open(dir, self.name_cstr(), flags).map_err(|error| self.error(error))
    }

    #[cold]
    fn error(&self, errno: Errno) -> Error {
        Error::new(self.name(), 0, errno)
    }
}

impl fmt::Debug for SortedEntry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SortedEntry")
            .field("name", &self.name_cstr())
            .field("file_type", &self.file_type())
            .field("ino", &self.ino())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::{FileType, HEADER, INO_SIZE, Listing, Order, grow, tag};
    use crate::sort::{Place, tests::Random};
    use std::io;
    use std::os::fd::AsFd;

    /// A listing of these entries, whose inode numbers count up from 1, still in the order of the directory.
    fn unsorted(entries: &[(Vec<u8>, FileType)], order: Order) -> Listing {
        let mut listing = Listing::with_order(order);
        for (ino, (name, file_type)) in (1_u64..).zip(entries) {
            listing.arena.extend_from_slice(&ino.to_ne_bytes());
            listing.arena.extend_from_slice(&[0xff; HEADER - INO_SIZE]);
            listing.places.push(Place::new(listing.arena.len(), name.len(), tag(*file_type)));
            listing.arena.extend_from_slice(name);
            listing.arena.push(0);
        }
        listing.len = entries.len();
        listing.keys = listing.places.iter().map(|place| place.key(0, &listing.arena)).collect();
        listing
    }

    #[test]
    fn names_given_twice_stay_and_the_first_is_found() {
        let mut entries: Vec<_> =
            ["bb", "BB", "aa", "bb", "cc", "Bb", "bb"].map(|name| (name.into(), FileType::RegularFile)).into();
        for copies in [1, 100] {
            entries = entries.iter().cloned().cycle().take(copies * entries.len()).collect();
            for order in [Order::Bytes, Order::Path, Order::AsciiCaseless, Order::Inode, Order::Directory] {
                let mut listing = unsorted(&entries, order);
                listing.sort();
                let inos: Vec<_> =
                    listing.iter().filter(|entry| entry.name() == b"bb").map(|entry| entry.ino()).collect();
                assert_eq!(inos.len(), 3 * copies);
                assert!(inos.is_sorted(), "{order:?}");
                assert_eq!(listing.find("bb").unwrap().ino(), 1, "{order:?}");
                assert_eq!(listing.find(b"Bb").unwrap().ino(), 6, "{order:?}");
                assert!(listing.find("bB").is_none(), "{order:?}");
            }
        }
    }

    /// Against a plain comparison of `name` and `name/`, even where a broken file system gives a name as both.
    #[test]
    fn in_order_path_a_directory_compares_with_a_slash() {
        let mut random = Random(6);
        let (rounds, max_count, longest) = if cfg!(miri) { (20, 12, 60) } else { (60, 100, 4095) };
        let types =
            [FileType::Directory, FileType::Directory, FileType::RegularFile, FileType::Symlink, FileType::Unknown];
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
            listing.sort();
            assert_eq!(listing.len(), expected.len());
            for (entry, (ino, (name, file_type))) in listing.iter().zip(&expected) {
                assert_eq!((entry.name(), entry.ino(), entry.file_type()), (&name[..], *ino, *file_type));
                assert_eq!(entry.name_cstr().to_bytes(), name);
                let first = expected.iter().find(|(_, (other, _))| other == name).unwrap();
                assert_eq!(listing.find(name).unwrap().ino(), first.0);
                assert!(listing.find(path(&(name.clone(), FileType::Directory))).is_none());
                assert!(listing.find([&name[..], b"z"].concat()).is_none());
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks the kernel")]
    fn order_path_asks_for_types_that_the_directory_does_not_say() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("a")).unwrap();
        std::fs::File::create(dir.path().join("a.b")).unwrap();
        let entries = ["a", "gone", "ab", "a.b"].map(|name| (name.into(), FileType::Unknown));
        std::fs::create_dir(dir.path().join("ab")).unwrap();
        let names = |listing: &Listing| listing.iter().map(|entry| entry.name().to_vec()).collect::<Vec<_>>();

        let mut listing = unsorted(&entries, Order::Path);
        listing.finish(crate::open(dir.path()).unwrap().as_fd()).unwrap();
        assert_eq!(names(&listing), ["a.b", "a", "ab", "gone"].map(Vec::from));
        let error = listing.find("gone").unwrap().resolve_file_type(crate::open(dir.path()).unwrap()).unwrap_err();
        assert_eq!((error.path().to_str(), error.raw_os_error()), (Some("gone"), Some(libc::ENOENT)));
        let types: Vec<_> = listing.iter().map(|entry| entry.file_type()).collect();
        assert_eq!(types, [FileType::RegularFile, FileType::Directory, FileType::Directory, FileType::Unknown]);

        // Nothing can be asked relative to a file. The entries are all there, and sorted as files.
        let file = std::fs::File::open("/dev/null").unwrap();
        let mut listing = unsorted(&entries, Order::Path);
        let error = listing.finish(file.as_fd()).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOTDIR));
        assert_eq!(names(&listing), ["a", "a.b", "ab", "gone"].map(Vec::from));

        // No other order asks.
        let mut listing = unsorted(&entries, Order::Bytes);
        listing.finish(file.as_fd()).unwrap();
        assert_eq!(names(&listing), ["a", "a.b", "ab", "gone"].map(Vec::from));
    }

    #[test]
    fn memory_that_no_place_can_point_to_is_refused() {
        if let Ok(len) = usize::try_from(Place::MAX_START + 1) {
            let error = grow(&mut Vec::<u8>::new(), len).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
        }
        let error = grow(&mut Vec::<u64>::new(), usize::MAX / 8).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
    }
}
