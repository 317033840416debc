//! Decides whether a walk enters an entry: by what the entry can be, what queries told the caller,
//! and what the caller requested.
//!
//! The other conditions are decided elsewhere: `max_depth` by `Options::enters_below`, `same_mount`
//! where the directory is opened (`cursor/opener.rs`) and its error judged (`cursor/mod.rs`), and
//! loops in `cursor/links.rs`.

use crate::file_type::FileType;
use crate::read_dir::entry::query_type;
use rustix::fd::BorrowedFd;
use std::cell::Cell;
use std::ffi::CStr;

/// A set of bits that says what is known of an entry, and what the caller wants. It is never empty,
/// unless it stands for no request.
///
/// ```text
/// bit   6      5         4       3         2          1         0
///       root   rest      named   skipped   followed   can be:   can be:
///              skipped                                link      directory
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EntryState(pub(crate) u8);

impl EntryState {
    pub(crate) const DIRECTORY: Self = Self(1);
    pub(crate) const LINK: Self = Self(1 << 1);
    pub(crate) const UNKNOWN: Self = Self(Self::DIRECTORY.0 | Self::LINK.0);
    /// The caller wants the entry to be entered even if it is a symbolic link.
    pub(crate) const FOLLOWED: Self = Self(1 << 2);
    pub(crate) const SKIPPED: Self = Self(1 << 3);
    /// The caller has passed the name, so whatever prevents the walk from entering it is an error.
    pub(crate) const NAMED: Self = Self(1 << 4);
    pub(crate) const NAMED_DIRECTORY: Self = Self(Self::DIRECTORY.0 | Self::NAMED.0);
    pub(crate) const NAMED_FOLLOWED: Self =
        Self(Self::UNKNOWN.0 | Self::FOLLOWED.0 | Self::NAMED.0);
    /// The entry is a root, which no other bit but the requests describes.
    pub(crate) const ROOT: Self = Self(1 << 6);
    pub(crate) const NO_REQUEST: Self = Self(0);
    /// The caller skips the entry and the rest of its directory. Only a `Walk` has this request.
    pub(crate) const REST_SKIPPED: Self = Self(Self::SKIPPED.0 | 1 << 5);

    /// Returns the state of an entry of this type, or `None` if no walk enters such an entry.
    #[inline]
    pub(crate) fn from_type(file_type: FileType) -> Option<Self> {
        match file_type {
            FileType::Directory => Some(Self::DIRECTORY),
            FileType::Unknown => Some(Self::UNKNOWN),
            FileType::Symlink => Some(Self::LINK),
            _ => None,
        }
    }

    /// Returns `true` if one of these bits is set.
    #[inline]
    pub(crate) fn has(self, bits: Self) -> bool {
        self.0 & bits.0 != 0
    }

    #[inline]
    pub(crate) fn can_be_directory(self) -> bool {
        self.has(Self::DIRECTORY)
    }

    /// Returns `true` if the entry can be a symbolic link, and is entered even if it is one.
    #[inline]
    pub(crate) fn is_followed(self) -> bool {
        self.has(Self::LINK) && self.has(Self::FOLLOWED)
    }

    #[inline]
    pub(crate) fn is_unknown(self) -> bool {
        self.can_be_directory() && self.has(Self::LINK)
    }

    /// Returns the state after the type was asked for, if it is not known and matters. If the query
    /// fails, the state stays the same, and opening the entry tells.
    #[cold]
    #[inline(never)]
    pub(crate) fn resolve(self, dir: BorrowedFd<'_>, name: &CStr) -> Self {
        if !self.is_unknown() || !self.is_entered() {
            return self;
        }
        query_type(dir, name).map_or(self, |file_type| self.with_type(file_type))
    }

    /// Returns the state of an entry that was found to have this type.
    fn with_type(self, file_type: FileType) -> Self {
        let types = Self::from_type(file_type).unwrap_or(Self::SKIPPED);
        if self.has(Self::ROOT) {
            return Self(self.0 | types.0 & Self::SKIPPED.0);
        }
        Self(self.0 & !Self::UNKNOWN.0 | types.0)
    }

    /// Returns the state after one more request, which a request to skip outweighs.
    #[inline]
    pub(crate) fn with_request(self, request: Self) -> Self {
        Self(self.0 | request.0)
    }

    /// Returns `true` if the entry is a root that is not skipped.
    pub(crate) fn is_entered_root(self) -> bool {
        self.has(Self::ROOT) && !self.has(Self::SKIPPED)
    }

    /// Returns `true` if the walk tries to enter the entry.
    #[inline]
    pub(crate) fn is_entered(self) -> bool {
        !self.has(Self::SKIPPED) && (self.can_be_directory() || self.is_followed())
    }
}

/// The caller's findings and requests about the entry yielded last.
#[derive(Debug, Default)]
pub(crate) struct EntryUpdates {
    /// The type that a query found last.
    pub(crate) queried: Cell<Option<FileType>>,
    /// The last request: `FOLLOWED`, `SKIPPED`, `REST_SKIPPED` or `NO_REQUEST`.
    pub(crate) request: Cell<EntryState>,
}

impl EntryUpdates {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.queried.get().is_none() && self.request.get() == EntryState::NO_REQUEST
    }

    pub(crate) fn clear(&self) {
        self.queried.set(None);
        self.request.set(EntryState::NO_REQUEST);
    }

    /// Takes the updates. Returns the new state of the entry, which had `state` before.
    #[inline]
    pub(crate) fn apply_to(&self, state: EntryState) -> EntryState {
        let types = self.queried.take().map_or(state, |queried| state.with_type(queried));
        EntryState(types.0 | self.request.take().0)
    }
}
