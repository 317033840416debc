//! Decides whether a walk enters an entry: by what the entry can be, what queries told the caller
//! about it, and what the caller requested. This module does not know how an entry is opened, nor
//! when a walk merges the updates.
//!
//! The other conditions are decided elsewhere: `max_depth` in `walk_dirs/dir.rs` and `walk/mod.rs`,
//! `same_mount` in `cursor/opener.rs`, and loops in `cursor/links.rs`.
//!
//! ```text
//! state   = EntryState::from_type(type in the kernel's record)   None: no walk enters the entry
//! updates = last outcome of a query | last request               collected in EntryUpdates
//! state.merge(updates).resolve()                                 None: the walk does not enter it
//! ```

use rustix::fs::FileType;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// A set of bits that says what is known of an entry or a name. The state of an entry that a walk
/// may enter is never empty.
///
/// ```text
/// bit   7              6 5 4     3             2         1         0
///       invalid name   request   query failed  queried   can be:   can be:
///                                                        link      directory
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EntryState(pub(crate) u8);

impl EntryState {
    pub(crate) const DIRECTORY: Self = Self(1);
    const LINK: Self = Self(1 << 1);
    pub(crate) const UNKNOWN: Self = Self(Self::DIRECTORY.0 | Self::LINK.0);
    /// A query told the caller the type. Otherwise the type is from the kernel's record.
    const QUERIED: Self = Self(1 << 2);
    const QUERY_FAILED: Self = Self(1 << 3);
    /// The state of a name that the caller wants to enter and that no entry can have.
    pub(crate) const INVALID_NAME: Self = Self(1 << 7);

    // The requests of the caller, of which the last one counts.
    pub(crate) const SKIP: Self = Self(1 << 4);
    /// Skip the entry and the rest of its directory. Only a `Walk` has this request.
    pub(crate) const SKIP_REST: Self = Self(2 << 4);
    /// Enter the entry even if it is a symbolic link.
    pub(crate) const FOLLOW: Self = Self(3 << 4);
    /// Enter the entry whatever it seems to be, because the caller has named it.
    pub(crate) const ENTER: Self = Self(4 << 4);
    /// Follow the entry because the caller has named it.
    pub(crate) const FOLLOW_NAME: Self = Self(Self::ENTER.0 | Self::FOLLOW.0);
    const REQUESTS: u8 = 7 << 4;

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

    #[inline]
    fn has(self, bits: Self) -> bool {
        self.0 & bits.0 != 0
    }

    #[inline]
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[inline]
    pub(crate) fn request(self) -> Self {
        Self(self.0 & Self::REQUESTS)
    }

    /// Returns the updates that were merged into this state: all but a type from the kernel's
    /// record.
    pub(crate) fn updates(self) -> Self {
        let from_record = if self.has(Self::QUERIED) { 0 } else { Self::UNKNOWN.0 };
        Self(self.0 & !from_record)
    }

    /// Merges later updates into this state. An outcome replaces the last outcome, and a request
    /// the last request.
    #[inline]
    pub(crate) fn merge(self, updates: Self) -> Self {
        let outcome =
            if updates.has(Self::QUERIED) { Self::UNKNOWN.0 | Self::QUERY_FAILED.0 } else { 0 };
        let request = if updates.request().is_empty() { 0 } else { Self::REQUESTS };
        Self(self.0 & !(outcome | request) | updates.0)
    }

    /// Returns the state that the walk acts on, or `None` if it does not try to enter the entry.
    #[inline]
    pub(crate) fn resolve(self) -> Option<Self> {
        match self.request() {
            Self::SKIP | Self::SKIP_REST => None,
            Self::ENTER => Some(Self(Self::DIRECTORY.0 | Self::ENTER.0)),
            _ => (self.can_be_directory() || self.is_followed()).then_some(self),
        }
    }

    #[inline]
    pub(crate) fn can_be_directory(self) -> bool {
        self.has(Self::DIRECTORY)
    }

    pub(crate) fn can_be_link(self) -> bool {
        self.has(Self::LINK)
    }

    /// Returns `true` if the entry can be a symbolic link, and is entered even if it is one.
    #[inline]
    pub(crate) fn is_followed(self) -> bool {
        self.can_be_link() && matches!(self.request(), Self::FOLLOW | Self::FOLLOW_NAME)
    }

    /// Returns `true` if the caller has named the entry.
    pub(crate) fn is_named(self) -> bool {
        matches!(self.request(), Self::ENTER | Self::FOLLOW_NAME)
    }

    /// Returns `true` if the caller's last query of the entry failed.
    pub(crate) fn query_failed(self) -> bool {
        self.has(Self::QUERY_FAILED)
    }
}

/// A cell that collects, for the entry yielded last, the outcomes of queries and the request of the
/// caller. It is atomic only because an [`Entry`](crate::Entry) is `Sync`.
#[derive(Debug, Default)]
pub(crate) struct EntryUpdates(AtomicU8);

impl EntryUpdates {
    /// Sets the outcome of a query: the type, or `None` for an error, which keeps the type of an
    /// earlier query.
    pub(crate) fn set_outcome(&self, file_type: Option<FileType>) {
        let type_state = file_type.and_then(EntryState::from_type).unwrap_or_default();
        let outcome =
            if file_type.is_some() { EntryState::QUERIED } else { EntryState::QUERY_FAILED };
        self.merge(EntryState(outcome.0 | type_state.0));
    }

    /// Merges later updates. A request is an update, too.
    pub(crate) fn merge(&self, updates: EntryState) {
        let merge = |state| Some(EntryState(state).merge(updates).0);
        let _ = self.0.fetch_update(Relaxed, Relaxed, merge);
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.load(Relaxed) == 0
    }

    /// Removes and returns the updates.
    #[inline]
    pub(crate) fn take(&self) -> EntryState {
        let updates = EntryState(self.0.load(Relaxed));
        if !updates.is_empty() {
            self.0.store(0, Relaxed);
        }
        updates
    }
}
