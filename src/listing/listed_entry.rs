//! `ListedEntry`, `ListedEntries`: an entry of a listing, and the iterator over them. They do not
//! know the descriptor of their directory.

use super::arena::Arena;
use super::span::Span;
use crate::error::Error;
use crate::read_dir::entry::{Directory, NamedEntry, canonical_decimal, file_type, join};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FileType, OFlags, Stat, Statx, StatxFlags};
use std::ffi::{CStr, OsStr};
use std::iter::FusedIterator;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::{fmt, io, slice};

/// An entry of a [`Listing`](crate::Listing), which borrows its name from the listing.
///
/// ```
/// let mut listing = lendir::Listing::new();
/// let dir = lendir::open("/sys/class")?;
/// listing.read(&dir)?;
/// for entry in &listing {
///     println!("{:?} {:?}", entry.name_os(), entry.file_type(&dir)?);
/// }
/// # Ok::<(), lendir::Error>(())
/// ```
///
/// A `ListedEntry` has the methods of an [`Entry`](crate::Entry), with two differences:
///
/// - A listed entry does not know the descriptor of its directory. The methods that query the file
///   system take the descriptor as an argument.
/// - A listed entry has no [`cookie`](crate::Entry::cookie).
#[derive(Clone, Copy)]
pub struct ListedEntry<'a> {
    pub(crate) span: Span,
    pub(crate) arena: &'a Arena,
}

impl<'a> ListedEntry<'a> {
    /// Same as [`Entry::name`](crate::Entry::name).
    #[inline]
    pub fn name(&self) -> &'a [u8] {
        self.span.name(&self.arena.memory)
    }

    /// Returns the name with its NUL. Unlike [`name_cstr`](Self::name_cstr), this method does not
    /// scan the name.
    #[inline]
    pub(crate) fn name_with_nul(&self) -> &'a [u8] {
        &self.arena.memory[self.span.start()..=self.span.end()]
    }

    /// Same as [`Entry::name_cstr`](crate::Entry::name_cstr).
    ///
    /// # Performance
    ///
    /// This method scans the name for its NUL.
    #[inline]
    pub fn name_cstr(&self) -> &'a CStr {
        CStr::from_bytes_until_nul(&self.arena.memory[self.span.start()..])
            .expect("BUG: a name without its NUL")
    }

    /// Same as [`Entry::name_os`](crate::Entry::name_os).
    #[inline]
    pub fn name_os(&self) -> &'a OsStr {
        OsStr::from_bytes(self.name())
    }

    /// Same as [`Entry::path`](crate::Entry::path). After [`Listing::read`](crate::Listing::read),
    /// **the path is the name alone**, because a descriptor has no path.
    pub fn path(&self) -> PathBuf {
        join(&self.arena.path, self.name())
    }

    /// Same as [`Entry::depth`](crate::Entry::depth).
    #[inline]
    pub fn depth(&self) -> usize {
        self.arena.depth + 1
    }

    /// Same as [`Entry::numeric_name`](crate::Entry::numeric_name).
    #[inline]
    pub fn numeric_name(&self) -> Option<u32> {
        canonical_decimal(self.name())
    }

    /// Same as [`Entry::file_type`](crate::Entry::file_type). `dir` is the directory that was read.
    #[inline]
    pub fn file_type(&self, dir: impl AsFd) -> Result<FileType, Error> {
        file_type(self.d_type(), || self.named(&dir))
    }

    /// Same as [`Entry::d_type`](crate::Entry::d_type). In [`Order::Path`](crate::Order::Path),
    /// reading has already queried each type that the kernel's record does not tell.
    #[inline]
    pub fn d_type(&self) -> FileType {
        self.arena.d_type(self.span)
    }

    /// Same as [`Entry::ino`](crate::Entry::ino).
    #[inline]
    pub fn ino(&self) -> u64 {
        self.arena.ino(self.span)
    }

    /// Same as [`Entry::stat`](crate::Entry::stat). `dir` is the directory that was read.
    pub fn stat(&self, dir: impl AsFd) -> Result<Stat, Error> {
        self.named(&dir).stat()
    }

    /// Same as [`Entry::statx`](crate::Entry::statx). `dir` is the directory that was read.
    pub fn statx(&self, dir: impl AsFd, mask: StatxFlags) -> Result<Statx, Error> {
        self.named(&dir).statx(mask)
    }

    /// Same as [`Entry::read_link`](crate::Entry::read_link). `dir` is the directory that was read.
    pub fn read_link(&self, dir: impl AsFd) -> Result<PathBuf, Error> {
        self.named(&dir).read_link()
    }

    /// Same as [`Entry::open`](crate::Entry::open). `dir` is the directory that was read.
    pub fn open(&self, dir: impl AsFd, flags: OFlags) -> Result<OwnedFd, Error> {
        self.named(&dir).open(flags)
    }

    #[inline]
    fn named<'e>(&'e self, dir: &'e impl AsFd) -> NamedEntry<'e> {
        let Arena { path, depth, .. } = self.arena;
        let directory = Directory { fd: dir.as_fd(), path, depth: *depth };
        NamedEntry { directory, name: self.name_cstr(), updates: None }
    }

    /// Same as [`Entry::wrap_error`](crate::Entry::wrap_error).
    #[cold]
    #[must_use = "this makes an error, and reports nothing"]
    pub fn wrap_error(&self, cause: impl Into<io::Error>) -> Error {
        Error::at_depth(self.path(), self.depth(), cause)
    }
}

impl fmt::Debug for ListedEntry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListedEntry")
            .field("name", &self.name_cstr())
            .field("d_type", &self.d_type())
            .field("ino", &self.ino())
            .finish()
    }
}

/// An iterator over the entries of a [`Listing`](crate::Listing), in the order of the listing.
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
