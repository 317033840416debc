//! `ListedEntry`, `ListedEntries`: an entry of a listing, and the iterator over them. They do not
//! know the descriptor of their directory.

use super::arena::Arena;
use super::span::Span;
use crate::error::{Error, try_join};
use crate::file_type::FileType;
use crate::metadata::Metadata;
use crate::read_dir::entry::{Directory, Entry, Record, canonical_decimal, kept_field};
use crate::read_dir::records::HEADER;
use rustix::fd::BorrowedFd;
use std::cmp::Ordering;
use std::ffi::{CStr, OsStr};
use std::iter::FusedIterator;
use std::os::unix::ffi::OsStrExt;
use std::{fmt, slice};

/// An entry of a [`Listing`](crate::Listing), from which it borrows its name.
///
/// ```
/// let mut listing = lendir::Listing::new();
/// let mut dir = lendir::read_dir("/sys/class")?;
/// dir.read_into(&mut listing)?;
/// for entry in &listing {
///     println!("{:?} {:?}", entry.file_name(), entry.in_dir(dir.fd()).file_type()?);
/// }
/// # Ok::<(), lendir::Error>(())
/// ```
///
/// It knows what the listing says. To ask for more, bring the descriptor of the directory:
/// [`in_dir`](Self::in_dir) makes an [`Entry`] of both.
///
/// Entries compare by the bytes of their names.
#[derive(Clone, Copy)]
pub struct ListedEntry<'a> {
    pub(crate) span: Span,
    pub(crate) arena: &'a Arena,
}

impl<'a> ListedEntry<'a> {
    /// Returns the name: see [`Entry::name`].
    #[inline]
    pub fn name(&self) -> &'a [u8] {
        self.span.name(&self.arena.memory)
    }

    /// Returns the name with its NUL, which it scans the name for.
    #[inline]
    pub(crate) fn name_cstr(&self) -> &'a CStr {
        CStr::from_bytes_until_nul(self.name_with_nul()).expect("BUG: a name without its NUL")
    }

    /// Returns the name as an `OsStr`, for `std`.
    #[inline]
    pub fn file_name(&self) -> &'a OsStr {
        OsStr::from_bytes(self.name())
    }

    /// Parses the name as a number: see [`Entry::numeric_name`].
    #[inline]
    pub fn numeric_name(&self) -> Option<u32> {
        canonical_decimal(self.name())
    }

    /// Returns the type in the listing: see [`Entry::d_type`]. In
    /// [`Order::Path`](crate::Order::Path), reading has already queried each type that the kernel
    /// does not tell.
    #[inline]
    pub fn d_type(&self) -> FileType {
        self.arena.d_type(self.span)
    }

    /// Returns the inode number in the listing: see [`Entry::ino`].
    #[inline]
    pub fn ino(&self) -> u64 {
        kept_field(&self.arena.memory, self.span.start() - HEADER)
    }

    /// Returns the metadata that [`Listing::with_metadata`](crate::Listing::with_metadata) has
    /// fetched.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](std::io::ErrorKind::Unsupported): it was not fetched, because you did not
    /// ask for it, the query failed, or something may be [mounted](crate::WalkOptions::metadata) on
    /// the directory. [`in_dir`](Self::in_dir) can ask again.
    #[inline]
    pub fn metadata(&self) -> Result<&'a Metadata, Error> {
        let Arena { path, depth, .. } = self.arena;
        let path = || try_join(path, self.name());
        let error = || Error::at_depth(path(), depth + 1, Metadata::not_fetched());
        self.arena.metadata(self.span).ok_or_else(error)
    }

    /// Makes an [`Entry`] of it, which can be queried and opened. `dir` is the directory that was
    /// read, and the paths begin as in the reading: after [`Listing::read`](crate::Listing::read),
    /// which knows no path, they are the names alone.
    ///
    /// ```
    /// let mut dir = lendir::read_dir("src")?;
    /// let mut listing = lendir::Listing::new();
    /// dir.read_into(&mut listing)?;
    /// let entry = listing.by_name("lib.rs").expect("the crate's root");
    /// assert!(entry.in_dir(dir.fd()).metadata()?.len() > 0);
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// `dir` may also be another directory, in which you look for the same name. That is why the
    /// entry never returns metadata that the listing has fetched, but asks the kernel. Its type and
    /// its inode number remain those of the listing.
    #[inline]
    pub fn in_dir<'e>(&self, dir: BorrowedFd<'e>) -> Entry<'e>
    where
        'a: 'e,
    {
        let Arena { path, depth, .. } = self.arena;
        let directory = Directory { fd: dir, path, depth: *depth };
        let record = Record::Kept { bytes: self.bytes(), metadata: None };
        Entry { record, directory, queried: None }
    }

    #[inline]
    pub(crate) fn record(&self) -> Record<'a> {
        Record::Kept { bytes: self.bytes(), metadata: self.arena.metadata(self.span) }
    }

    /// Returns the record up to the NUL of its name.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> &'a [u8] {
        &self.arena.memory[self.span.start() - HEADER..=self.span.end()]
    }

    /// Returns the name with its NUL. Unlike [`name_cstr`](Self::name_cstr), this method does not
    /// scan the name.
    #[inline]
    pub(crate) fn name_with_nul(&self) -> &'a [u8] {
        &self.arena.memory[self.span.start()..=self.span.end()]
    }
}

impl PartialEq for ListedEntry<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for ListedEntry<'_> {}

impl PartialOrd for ListedEntry<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ListedEntry<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name().cmp(other.name())
    }
}

debug!(ListedEntry<'_>, |entry| name: entry.name_cstr(), d_type: entry.d_type(), ino: entry.ino());

/// An iterator over the entries of a [`Listing`](crate::Listing), in its order or backwards.
///
/// ```
/// let mut listing = lendir::Listing::new();
/// lendir::read_dir("/sys/class")?.read_into(&mut listing)?;
/// let last_two: Vec<_> = listing.iter().rev().take(2).map(|entry| entry.file_name()).collect();
/// println!("{last_two:?}");
/// # assert_eq!(last_two.len(), 2);
/// # Ok::<(), lendir::Error>(())
/// ```
#[derive(Clone)]
#[must_use = "iterators are lazy"]
pub struct ListedEntries<'a> {
    pub(crate) spans: slice::Iter<'a, Span>,
    pub(crate) arena: &'a Arena,
}

impl<'a> Iterator for ListedEntries<'a> {
    type Item = ListedEntry<'a>;

    fn next(&mut self) -> Option<ListedEntry<'a>> {
        self.spans.next().map(|&span| ListedEntry { span, arena: self.arena })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.spans.size_hint()
    }
}

impl DoubleEndedIterator for ListedEntries<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.spans.next_back().map(|&span| ListedEntry { span, arena: self.arena })
    }
}

impl ExactSizeIterator for ListedEntries<'_> {}

impl FusedIterator for ListedEntries<'_> {}

impl fmt::Debug for ListedEntries<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}
