//! `Listing`, `SortedEntry`, `Order`: a whole directory, sorted, in memory that is reused from directory to directory.

use crate::entry::{canonical_decimal, resolved};
use crate::sort::{self, Case, Place};
use crate::{Entries, FileType};
use rustix::fd::AsFd;
use rustix::fs::RawMode;
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
/// assert!(listing.find(b"pci").is_none_or(|entry| entry.name() == b"pci"));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # What it costs
///
/// 16 bytes an entry beside its name, the name's NUL and its inode number, in memory that grows by doubling. Once it has held
/// a directory as large, nothing is allocated.
#[derive(Default)]
pub struct Listing {
    /// Of each entry its inode number, 8 bytes, then its name with the NUL, in the order of the directory.
    ///
    /// The other layout, where the kernel writes its records to where they stay, spares the copy: without any sort it takes
    /// 0.04 to 0.08 of the bare loop less for 32 and for 1024 names, and 0.01 less for 100,000 (v4 in `benches/ladder`). But
    /// a record has 11 bytes more, so that an entry would take 27 bytes beside its name and inode number instead of 16, and
    /// names would be read back from where the kernel wrote, which is not to be had without `unsafe`.
    arena: Vec<u8>,
    /// Where each name is, in the order asked for; beyond `len`, of an earlier directory.
    places: Vec<Place>,
    len: usize,
    /// The first [key](Place::key) of each name, and what else the sort writes there.
    words: Vec<u64>,
    order: Order,
    removed: bool,
}

/// How a [`Listing`] sorts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Order {
    /// By the bytes of the name, as `memcmp` compares them; a name stands before those it is the beginning of. That is
    /// the order of `LC_ALL=C ls`, and of git's index but for directories.
    #[default]
    Bytes,
    /// By the bytes of the name with `A` to `Z` taken for `a` to `z`; names that differ in nothing else, by their bytes.
    AsciiCaseless,
    /// By inode number, then by the bytes of the name: for who opens or stats each entry next.
    Inode,
    /// As the kernel gave them.
    Directory,
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

    /// Reads what is left of `entries` and sorts it, in place of what the listing held.
    ///
    /// Entries with the same name, which a broken file system can give, all stay, in the order of the directory.
    ///
    /// Costs: the system calls of [`Entries::next`]; no allocation where the directory is no larger than one read before.
    ///
    /// # Errors
    ///
    /// Those of [`Entries::next`], and [`OutOfMemory`](io::ErrorKind::OutOfMemory). What was read before the error is then
    /// what the listing holds, sorted: whoever wants the part can have it.
    #[allow(
        clippy::inline_always,
        reason = "the loop is a tenth faster where it knows whether there is an `EndMarker`"
    )]
    #[inline(always)]
    pub fn read(&mut self, mut entries: Entries<'_>) -> io::Result<()> {
        self.read_rest(&mut entries)
    }

    #[allow(clippy::inline_always, reason = "see `read`")]
    #[inline(always)]
    pub(crate) fn read_rest(&mut self, entries: &mut Entries<'_>) -> io::Result<()> {
        let result = self.fill(entries);
        self.removed = entries.removed();
        self.sort();
        result
    }

    #[allow(clippy::inline_always, reason = "see `read`")]
    #[inline(always)]
    fn fill(&mut self, entries: &mut Entries<'_>) -> io::Result<()> {
        self.len = 0;
        let (mut used, mut len) = (0, 0);
        while let Some(entry) = entries.next()? {
            let name = entry.name_cstr().to_bytes_with_nul();
            let end = used + INO_SIZE + name.len();
            let (ino, copy) = match record(&mut self.arena, used, name.len()) {
                Some(record) => record,
                None => record(grow(&mut self.arena, end)?, used, name.len()).expect("BUG: it did not grow"),
            };
            let (place, word) = if let (Some(place), Some(word)) = (self.places.get_mut(len), self.words.get_mut(len)) {
                (place, word)
            } else {
                let words = grow(&mut self.words, len + 1)?;
                (&mut grow(&mut self.places, len + 1)?[len], &mut words[len])
            };
            *ino = entry.ino().to_ne_bytes();
            *word = copy_name(copy, name);
            #[allow(clippy::cast_possible_truncation, reason = "`d_type` is the 4 bits above the permissions")]
            let d_type = (entry.file_type().as_raw_mode() >> 12) as u16;
            *place = Place::new(used + INO_SIZE, name.len() - 1, d_type);
            used = end;
            len += 1;
            self.len = len;
        }
        Ok(())
    }

    #[inline(never)]
    fn sort(&mut self) {
        let Self { arena, places, len, words, order, .. } = self;
        let (places, words) = (&mut places[..*len], &mut words[..*len]);
        let case = match order {
            Order::Bytes => Case::Sensitive,
            Order::AsciiCaseless => Case::AsciiInsensitive,
            Order::Inode => {
                return places.sort_unstable_by(|a, b| {
                    let by_name = || (a.name(arena), a).cmp(&(b.name(arena), b));
                    ino(*a, arena).cmp(&ino(*b, arena)).then_with(by_name)
                });
            }
            Order::Directory => return,
        };
        sort::sort(places, words, arena, case);
    }

    /// The order that it sorts in.
    #[must_use]
    pub fn order(&self) -> Order {
        self.order
    }

    /// Whether the directory went away while it was read: see [`Entries::removed`].
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

    /// The entry at place `index` in the order of the listing, if there are as many.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> Option<SortedEntry<'_>> {
        self.places().get(index).map(|&place| SortedEntry { place, arena: &self.arena })
    }

    /// The entry with this very name; of several, the first in the order of the listing.
    ///
    /// Costs: log2(n) comparisons of names in [`Order::Bytes`] and [`Order::AsciiCaseless`], n in the others.
    ///
    /// ```
    /// # use lendir::{Buffer, Entries, Listing};
    /// # let proc = lendir::open("/proc")?;
    /// # let mut buffer = Buffer::new();
    /// # let mut listing = Listing::new();
    /// # listing.read(Entries::new(&proc, &mut buffer))?;
    /// assert!(listing.find(b"version").is_some());
    /// assert!(listing.find(b"Version").is_none());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn find(&self, name: &[u8]) -> Option<SortedEntry<'_>> {
        let places = self.places();
        let first_from =
            |case: Case| places.partition_point(|place| case.compare(place.name(&self.arena), name).is_lt());
        let index = match self.order {
            Order::Bytes => first_from(Case::Sensitive),
            Order::AsciiCaseless => first_from(Case::AsciiInsensitive),
            Order::Inode | Order::Directory => places.iter().position(|place| place.name(&self.arena) == name)?,
        };
        self.get(index).filter(|entry| entry.name() == name)
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

const INO_SIZE: usize = size_of::<u64>();

#[inline]
fn ino(place: Place, arena: &[u8]) -> u64 {
    let bytes = arena[place.start() - INO_SIZE..place.start()].try_into().expect("BUG: not 8 bytes");
    u64::from_ne_bytes(bytes)
}

/// Where an inode number goes, and after it a name of `len` bytes with its NUL.
#[inline]
fn record(arena: &mut [u8], start: usize, len: usize) -> Option<(&mut [u8; INO_SIZE], &mut [u8])> {
    let (ino, name) = arena.get_mut(start..)?.split_first_chunk_mut()?;
    Some((ino, name.get_mut(..len)?))
}

/// Copies a name with its NUL, and gives the first of its [keys](Place::key), of bytes that the copy has at hand.
///
/// The copy is of two halves that overlap where `memcpy` would be a call for a few bytes.
#[inline]
fn copy_name(to: &mut [u8], name: &[u8]) -> u64 {
    if name.len() > 32 {
        to.copy_from_slice(name);
        return u64::from_be_bytes(*name.first_chunk().expect("BUG: more than 32 bytes"));
    }
    if let Some((head, _)) = copy_ends::<16>(to, name) {
        return u64::from_be_bytes(*head.first_chunk().expect("BUG: 16 bytes"));
    }
    if let Some((head, _)) = copy_ends::<8>(to, name) {
        return u64::from_be_bytes(head);
    }
    let behind = 8 * (8 - name.len());
    if let Some((head, tail)) = copy_ends::<4>(to, name) {
        return u64::from(u32::from_be_bytes(head)) << 32 | u64::from(u32::from_be_bytes(tail)) << behind;
    }
    copy_ends::<2>(to, name).map_or(0, |(head, tail)| {
        u64::from(u16::from_be_bytes(head)) << 48 | u64::from(u16::from_be_bytes(tail)) << behind
    })
}

#[inline]
fn copy_ends<const N: usize>(to: &mut [u8], from: &[u8]) -> Option<([u8; N], [u8; N])> {
    let (head, tail) = (*from.first_chunk()?, *from.last_chunk()?);
    *to.first_chunk_mut()? = head;
    *to.last_chunk_mut()? = tail;
    Some((head, tail))
}

/// Makes `memory` at least `len` long. Its capacity doubles, of which 64 KiB at a time are written to.
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

/// One entry of a [`Listing`], which lends it for as long as it is not read anew.
///
/// The accessors never make a system call and never allocate, [`resolve_file_type`](Self::resolve_file_type) apart. The cookie
/// is not kept.
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
    /// Costs: one look through the name for its NUL.
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

    /// The number that the name is, if it is one in canonical decimal, as
    /// [`Entry::numeric_name`](crate::Entry::numeric_name).
    #[inline]
    #[must_use]
    pub fn numeric_name(&self) -> Option<u32> {
        canonical_decimal(self.name())
    }

    /// The type as the directory has it (`d_type`), as [`Entry::file_type`](crate::Entry::file_type).
    #[doc(alias = "d_type")]
    #[inline]
    #[must_use]
    pub fn file_type(&self) -> FileType {
        FileType::from_raw_mode(RawMode::from(self.place.tag()) << 12)
    }

    /// The type, asked of the file system where the directory, which is `dir`, did not have it, as
    /// [`Entry::resolve_file_type`](crate::Entry::resolve_file_type).
    ///
    /// Costs: nothing where [`file_type`](Self::file_type) is known, else one `fstatat`.
    ///
    /// # Errors
    ///
    /// Those of [`Entry::resolve_file_type`](crate::Entry::resolve_file_type).
    pub fn resolve_file_type(&self, dir: impl AsFd) -> io::Result<FileType> {
        resolved(self.file_type(), dir, self.name_cstr())
    }

    /// The inode number (`d_ino`), as [`Entry::ino`](crate::Entry::ino).
    #[doc(alias = "d_ino")]
    #[doc(alias = "inode_number")]
    #[inline]
    #[must_use]
    pub fn ino(&self) -> u64 {
        ino(self.place, self.arena)
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
    use super::{INO_SIZE, Listing, Order, copy_name, grow};
    use crate::sort::Place;

    /// As after reading a directory with these names, whose inode numbers count up from 1.
    fn listing_of(names: &[&[u8]], order: Order) -> Listing {
        let mut listing = Listing::with_order(order);
        for (ino, name) in (1_u64..).zip(names) {
            listing.arena.extend_from_slice(&ino.to_ne_bytes());
            listing.places.push(Place::new(listing.arena.len(), name.len(), 8));
            listing.arena.extend_from_slice(name);
            listing.arena.push(0);
        }
        listing.len = names.len();
        listing.words = listing.places.iter().map(|place| place.key(0, &listing.arena)).collect();
        listing.sort();
        listing
    }

    #[test]
    fn names_given_twice_stay_and_the_first_is_found() {
        let mut names: Vec<&[u8]> =
            [b"bb", b"BB", b"aa", b"bb", b"cc", b"Bb", b"bb"].map(|name: &[u8; 2]| &name[..]).into();
        for copies in [1, 100] {
            names = names.repeat(copies);
            for order in [Order::Bytes, Order::AsciiCaseless, Order::Inode, Order::Directory] {
                let listing = listing_of(&names, order);
                assert_eq!(listing.iter().filter(|entry| entry.name() == b"bb").count(), 3 * copies);
                let inos: Vec<_> =
                    listing.iter().filter(|entry| entry.name() == b"bb").map(|entry| entry.ino()).collect();
                assert!(inos.is_sorted(), "{order:?}");
                assert_eq!(listing.find(b"bb").unwrap().ino(), 1, "{order:?}");
                assert_eq!(listing.find(b"Bb").unwrap().ino(), 6, "{order:?}");
                assert!(listing.find(b"bB").is_none(), "{order:?}");
            }
        }
    }

    #[test]
    fn a_name_of_any_length_is_copied_and_its_key_made() {
        for len in (1..=40).chain([255, 4095]) {
            let name: Vec<_> = (1..=255).cycle().take(len).chain([0]).collect();
            let mut arena = vec![0xff; INO_SIZE + name.len()];
            let key = copy_name(&mut arena[INO_SIZE..], &name);
            assert_eq!(arena[INO_SIZE..], name);
            assert_eq!(key, Place::new(INO_SIZE, len, 0).key(0, &arena), "{len} bytes");
        }
    }

    #[test]
    fn beyond_what_a_place_can_say_is_an_error() {
        if let Ok(len) = usize::try_from(Place::MAX_START + 1) {
            let error = grow(&mut Vec::<u8>::new(), len).unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::OutOfMemory);
        }
        let error = grow(&mut Vec::<u64>::new(), usize::MAX / 8).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::OutOfMemory);
        const { assert!(INO_SIZE >= 8, "the sort reads up to 8 bytes before a name") }
    }
}
