//! `SortedEntry`, `SortedEntries`: what a listing lends.

use crate::Error;
use crate::arena::{Arena, file_type};
use crate::entry::{self, canonical_decimal, join, resolved};
use crate::place::Place;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{FileType, OFlags, Stat, Statx, StatxFlags};
use rustix::io::Errno;
use std::ffi::{CStr, OsStr};
use std::iter::FusedIterator;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::{fmt, slice};

/// One entry of a [`Listing`](crate::Listing), lent until the listing is next changed.
///
/// What the record holds costs no system call and no allocation. [`stat`](Self::stat), [`statx`](Self::statx),
/// [`open`](Self::open) and [`resolve_file_type`](Self::resolve_file_type) ask the file system, and their errors have the
/// [`path`](Self::path). The cookie is not kept.
#[derive(Clone, Copy)]
pub struct SortedEntry<'a> {
    pub(crate) place: Place,
    pub(crate) arena: &'a Arena,
}

impl<'a> SortedEntry<'a> {
    /// The name: any bytes but NUL and `/`, at least one, not necessarily UTF-8.
    #[doc(alias = "d_name")]
    #[doc(alias = "file_name")]
    #[inline]
    #[must_use]
    pub fn name(&self) -> &'a [u8] {
        self.place.name(&self.arena.memory)
    }

    /// The name with its NUL, which goes straight into `openat`, `statat`, `unlinkat` or `readlinkat`: no copy.
    ///
    /// Costs: one scan of the name for its NUL.
    #[inline]
    #[must_use]
    pub fn name_cstr(&self) -> &'a CStr {
        CStr::from_bytes_until_nul(&self.arena.memory[self.place.start()..]).expect("BUG: a name without its NUL")
    }

    /// The name for `std`: `Path::new(entry.name_os())`.
    #[inline]
    #[must_use]
    pub fn name_os(&self) -> &'a OsStr {
        OsStr::from_bytes(self.name())
    }

    /// The path of the entry: that of its directory, where [`ReadDir`](crate::ReadDir) or a [`Dir`](crate::Dir) read it, and the
    /// name; the name alone where [`Listing::read`](crate::Listing::read) did.
    ///
    /// Costs: one allocation.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        join(&self.arena.path, self.name())
    }

    /// The name as a number, if it is one in canonical decimal, as
    /// [`Entry::numeric_name`](crate::Entry::numeric_name).
    #[inline]
    #[must_use]
    pub fn numeric_name(&self) -> Option<u32> {
        canonical_decimal(self.name())
    }

    /// The type in the record (`d_type`), as [`Entry::file_type`](crate::Entry::file_type). In
    /// [`Order::Path`](crate::Order::Path), the file system's where the record does not have it.
    #[doc(alias = "d_type")]
    #[must_use]
    pub fn file_type(&self) -> FileType {
        file_type(self.place)
    }

    /// The type, from the file system where the record does not have it, as
    /// [`Entry::resolve_file_type`](crate::Entry::resolve_file_type). `dir` is the directory that was read.
    ///
    /// Costs: nothing where [`file_type`](Self::file_type) is known, else one `fstatat`.
    ///
    /// # Errors
    ///
    /// Those of [`Entry::resolve_file_type`](crate::Entry::resolve_file_type), with the [path](Self::path).
    pub fn resolve_file_type(&self, dir: impl AsFd) -> Result<FileType, Error> {
        resolved(self.file_type(), dir, self.name_cstr()).map_err(|error| self.error(error))
    }

    /// The inode number (`d_ino`), as [`Entry::ino`](crate::Entry::ino).
    #[doc(alias = "d_ino")]
    #[doc(alias = "inode_number")]
    #[inline]
    #[must_use]
    pub fn ino(&self) -> u64 {
        self.arena.ino(self.place)
    }

    /// As [`Entry::stat`](crate::Entry::stat); `dir` is the directory that was read.
    ///
    /// Costs: one `fstatat`.
    ///
    /// # Errors
    ///
    /// Those of [`Entry::stat`](crate::Entry::stat), with the [path](Self::path).
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
    /// Those of [`Entry::statx`](crate::Entry::statx), with the [path](Self::path).
    pub fn statx(&self, dir: impl AsFd, mask: StatxFlags) -> Result<Statx, Error> {
        entry::statx(dir, self.name_cstr(), mask).map_err(|error| self.error(error))
    }

    /// As [`Entry::open`](crate::Entry::open); `dir` is the directory that was read.
    ///
    /// Costs: one `openat`.
    ///
    /// # Errors
    ///
    /// Those of [`Entry::open`](crate::Entry::open), with the [path](Self::path).
    pub fn open(&self, dir: impl AsFd, flags: OFlags) -> Result<OwnedFd, Error> {
        entry::open(dir, self.name_cstr(), flags).map_err(|error| self.error(error))
    }

    #[cold]
    fn error(&self, errno: Errno) -> Error {
        Error::at(self.path(), self.arena.depth, errno)
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

/// An iterator over the entries of a [`Listing`](crate::Listing), in its order.
#[derive(Clone)]
#[must_use = "iterators are lazy"]
pub struct SortedEntries<'a> {
    pub(crate) places: slice::Iter<'a, Place>,
    pub(crate) arena: &'a Arena,
}

impl<'a> Iterator for SortedEntries<'a> {
    type Item = SortedEntry<'a>;

    fn next(&mut self) -> Option<SortedEntry<'a>> {
        self.places.next().map(|&place| SortedEntry { place, arena: self.arena })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.places.size_hint()
    }

    #[inline]
    fn nth(&mut self, n: usize) -> Option<SortedEntry<'a>> {
        self.places.nth(n).map(|&place| SortedEntry { place, arena: self.arena })
    }
}

impl DoubleEndedIterator for SortedEntries<'_> {
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
