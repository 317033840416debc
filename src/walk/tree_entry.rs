//! `TreeEntry`: what a `ReadTree` lends, and what its caller says of it.

use super::path::TreePath;
use super::pending::Kind;
use crate::entry::{canonical_decimal, open, resolved, stat, statx};
use crate::error::Error;
use crate::listed_entry::ListedEntry;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::{FileType, OFlags, Stat, Statx, StatxFlags};
use std::cell::Cell;
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::{fmt, io};

/// An entry of a [`ReadTree`](super::ReadTree), lent until the next call of `next`.
pub struct TreeEntry<'a> {
    pub(super) entry: ListedEntry<'a>,
    pub(super) dir: BorrowedFd<'a>,
    pub(super) path: &'a TreePath,
    pub(super) depth: usize,
    pub(super) is_last: bool,
    /// Whether the walk may go below it.
    pub(super) may_enter: bool,
    pub(super) then: &'a Cell<Then>,
}

/// What comes after an entry.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Then {
    /// The next one of its directory.
    #[default]
    Next,
    /// What is below it.
    Below(Kind),
    /// What comes after its directory.
    Leave,
}

impl Then {
    /// Unless the caller says otherwise.
    #[inline]
    pub(super) fn after(file_type: FileType, may_enter: bool) -> Self {
        Kind::of(file_type).filter(|kind| may_enter && kind.is_entered()).map_or(Self::Next, Self::Below)
    }
}

impl<'a> TreeEntry<'a> {
    /// The name.
    #[inline]
    pub fn name(&self) -> &'a [u8] {
        self.entry.name()
    }

    /// name cstr
    #[inline]
    pub fn name_cstr(&self) -> &'a CStr {
        self.entry.name_cstr()
    }

    /// name os
    #[inline]
    pub fn name_os(&self) -> &'a OsStr {
        OsStr::from_bytes(self.name())
    }

    /// path
    #[inline]
    pub fn path(&self) -> &'a Path {
        Path::new(OsStr::from_bytes(self.path.as_bytes()))
    }

    /// relative
    #[inline]
    pub fn relative_path(&self) -> &'a Path {
        Path::new(OsStr::from_bytes(self.path.below_root()))
    }

    /// depth
    #[inline]
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// last
    #[inline]
    pub fn is_last(&self) -> bool {
        self.is_last
    }

    /// number
    #[inline]
    pub fn numeric_name(&self) -> Option<u32> {
        canonical_decimal(self.name())
    }

    /// `d_type`
    #[inline]
    pub fn d_type(&self) -> FileType {
        self.entry.file_type()
    }

    /// type
    #[inline]
    pub fn file_type(&self) -> Result<FileType, Error> {
        resolved(self.d_type(), self.dir, self.name_cstr()).map_err(|error| self.error(error))
    }

    /// dir
    #[inline]
    pub fn dir_fd(&self) -> BorrowedFd<'a> {
        self.dir
    }

    /// stat
    pub fn stat(&self) -> Result<Stat, Error> {
        stat(self.dir, self.name_cstr()).map_err(|error| self.error(error))
    }

    /// statx
    pub fn statx(&self, mask: StatxFlags) -> Result<Statx, Error> {
        statx(self.dir, self.name_cstr(), mask).map_err(|error| self.error(error))
    }

    /// open
    pub fn open(&self, flags: OFlags) -> Result<OwnedFd, Error> {
        open(self.dir, self.name_cstr(), flags).map_err(|error| self.error(error))
    }

    /// ino
    #[inline]
    pub fn ino(&self) -> u64 {
        self.entry.ino()
    }

    /// error
    #[cold]
    pub fn error(&self, cause: impl Into<io::Error>) -> Error {
        Error::new(self.path.as_bytes(), self.depth, cause)
    }

    /// Does not go below
    #[inline]
    pub fn skip_below(&self) {
        self.then.set(Then::Next);
    }

    /// Leaves
    #[inline]
    pub fn skip_rest(&self) {
        self.then.set(Then::Leave);
    }

    /// follow
    #[inline]
    pub fn follow(&self) {
        let kind = Kind::of(self.d_type()).filter(|_| self.may_enter);
        self.then.set(kind.map_or(Then::Next, |kind| Then::Below(kind.said(Kind::ANY))));
    }
}

impl fmt::Debug for TreeEntry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TreeEntry").field("path", &self.path()).field("d_type", &self.d_type()).finish_non_exhaustive()
    }
}
