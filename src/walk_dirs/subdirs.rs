//! Collects the subdirectories of the current directory in the order in which the walk enters them.
//! [`EntryState`] decides about each. This module does not know how a directory is read or opened.
//!
//! ```text
//! note         an entry that may be entered is yielded: its name and state go to `pending`
//! update_last  the caller has queried that entry, or requested something: its state changes
//! name         the caller names the subdirectories itself: `pending` has these names alone
//! resolve      the walk continues: `pending` becomes the names to enter
//! ```

use super::pending::{Pending, PendingName};
use crate::cursor::entry_state::{EntryState, EntryUpdates};
use crate::listing::Listing;
use crate::read_dir::end_marker::EndMarker;
use crate::read_dir::entry::{Entry, query_type};
use rustix::fd::BorrowedFd;
use rustix::fs::FileType;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::{io, mem};

/// The subdirectories of the current directory that the walk enters, after the pending ones of the
/// levels above.
#[derive(Default)]
#[allow(clippy::struct_excessive_bools, reason = "they are independent")]
pub(crate) struct Subdirs {
    pub(crate) pending: Pending,
    /// The offset in `pending` at which the names of the current directory start.
    level_start: usize,
    /// The offset in `pending` of the name noted last.
    last_start: usize,
    /// Whether `pending` may contain names that are not entered.
    is_unresolved: bool,
    /// Whether the type of the name noted last is still unknown.
    is_last_unknown: bool,
    /// Whether each entry is queried: see [`EndMarker::needs_queries`].
    needs_queries: bool,
    candidates: Candidates,
    /// Whether the walk reads the remaining entries before the next directory.
    pub(crate) is_unread: bool,
    /// The reason why the directory cannot be read, until it is reported.
    unreadable: Option<Errno>,
    /// Whether the current directory has yielded an entry.
    pub(crate) has_yielded: bool,
    /// The names that the caller has queried, skipped or followed before the directory was read
    /// again.
    updated: BTreeMap<CString, EntryState>,
}

/// The subdirectories that the walk may enter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Candidates {
    /// Those that are yielded.
    Yielded,
    /// Those that the caller names.
    Named,
    #[default]
    None,
}

impl Subdirs {
    /// Begins a directory. Its names are pushed after all others. In a dead end nothing can be
    /// entered, so the walk does not need the entries that the caller does not read.
    #[inline]
    pub(crate) fn begin(
        &mut self,
        is_dead_end: bool,
        unreadable: Option<Errno>,
        end_marker: EndMarker,
    ) {
        self.needs_queries = end_marker.needs_queries();
        self.candidates = if is_dead_end { Candidates::None } else { Candidates::Yielded };
        (self.is_unread, self.unreadable) = (!is_dead_end, unreadable);
        self.has_yielded = false;
        self.level_start = self.pending.len();
    }

    /// Returns `false` in a dead end.
    pub(crate) fn can_enter(&self) -> bool {
        self.candidates != Candidates::None
    }

    /// Ends reading. Returns why the directory cannot be read, if that is still to be reported.
    #[inline]
    pub(crate) fn end_reading(&mut self) -> Option<Errno> {
        self.is_unread = false;
        self.unreadable.take()
    }

    /// Notes an entry that is yielded, after the `updates` of the entry noted before.
    #[inline(always)]
    pub(crate) fn note(&mut self, entry: &Entry<'_>, updates: &EntryUpdates) {
        if EntryState::from_type(entry.d_type()).is_some() || self.needs_queries {
            self.note_entry(entry.d_type(), entry.name_cstr(), entry.dir_fd(), updates);
        }
        self.has_yielded = true; // last, because this saves instructions for each entry
    }

    #[inline(never)] // In the frame that reads a directory, registers are scarce.
    fn note_entry(
        &mut self,
        d_type: FileType,
        name: &CStr,
        dir: BorrowedFd<'_>,
        updates: &EntryUpdates,
    ) {
        if self.needs_queries {
            let _ = query_type(dir, name);
        }
        if let Some(state) = EntryState::from_type(d_type) {
            self.update_last(updates, dir);
            self.note_name(state, name);
        }
    }

    fn note_name(&mut self, state: EntryState, name: &CStr) {
        if self.candidates == Candidates::Yielded {
            let state = self.updated.get(name).copied().unwrap_or(state);
            self.last_start = self.pending.len();
            self.pending.push(state, name.to_bytes());
            // A link is pending until it is known whether it is followed, and a name that was
            // skipped before the directory was read again, until it is resolved.
            self.is_unresolved |= !state.is_entered();
            self.is_last_unknown = state.is_unknown();
        }
    }

    /// Notes the entries of `listing`, in its order, in place of the entries noted before. Names
    /// that the caller has passed stay.
    #[inline(never)]
    pub(crate) fn note_all(&mut self, listing: &Listing) {
        self.is_unread = false;
        if self.candidates != Candidates::Yielded {
            return;
        }
        self.forget_names();
        for entry in listing {
            if let Some(state) = EntryState::from_type(entry.d_type()) {
                self.note_name(state, entry.name_cstr());
            }
        }
    }

    /// Applies the updates to the name noted last, and asks for its type if it is still unknown.
    /// `dir` is the current directory. The updates are never about another name.
    #[inline]
    pub(crate) fn update_last(&mut self, updates: &EntryUpdates, dir: BorrowedFd<'_>) {
        if !updates.is_empty() || self.is_last_unknown {
            self.update_last_slow(updates, dir);
        }
    }

    #[cold]
    #[inline(never)]
    fn update_last_slow(&mut self, updates: &EntryUpdates, dir: BorrowedFd<'_>) {
        self.is_last_unknown = false;
        if self.candidates == Candidates::Yielded {
            let last = self.pending.get(self.last_start);
            let state = updates.apply_to(last.state).resolve(dir, last.name);
            self.pending.set_state(self.last_start, state);
            self.is_unresolved |= !state.is_entered();
        } else {
            updates.clear();
        }
    }

    /// Returns `true` if something is left to do before the walk continues.
    #[inline]
    pub(crate) fn is_unfinished(&self) -> bool {
        self.is_unread || self.is_unresolved || self.is_last_unknown
    }

    /// Removes all names of the current directory. From now on the walk enters only those that the
    /// caller names.
    #[inline]
    pub(crate) fn skip_all(&mut self) {
        self.is_unread = false;
        self.forget_names();
        if self.candidates == Candidates::Yielded {
            self.candidates = Candidates::Named;
        }
    }

    fn forget_names(&mut self) {
        self.pending.truncate(self.level_start);
        self.is_last_unknown = false;
    }

    /// Pushes a name that the caller wants to be entered. Returns `false` where nothing can be
    /// entered, and an error without [`skip_all`](Self::skip_all) or if no entry has such a name.
    pub(crate) fn name(&mut self, state: EntryState, name: &[u8]) -> io::Result<bool> {
        let is_invalid =
            matches!(name, b"" | b"." | b"..") || name.contains(&0) || name.contains(&b'/');
        if is_invalid {
            return Err(Errno::INVAL.into());
        }
        match self.candidates {
            Candidates::None => Ok(false),
            Candidates::Named => {
                self.pending.push(state, name);
                Ok(true)
            }
            Candidates::Yielded => {
                let why = "a directory is named without `skip_subdirs`, and would be entered twice";
                Err(io::Error::new(io::ErrorKind::InvalidInput, why))
            }
        }
    }

    /// Removes the names of the current directory, because its entries are noted again from the
    /// first one. Those that the caller has queried, skipped or followed keep their states.
    pub(crate) fn begin_again(&mut self) {
        let Self { pending, level_start, updated, .. } = self;
        pending.retain(*level_start, |PendingName { state, name, .. }| {
            if state.is_updated() {
                updated.insert(name.to_owned(), state);
            }
            false
        });
        self.is_last_unknown = false;
        self.is_unresolved |= !self.updated.is_empty();
    }

    /// Reduces the names of the current directory to those that the walk enters.
    #[cold]
    pub(crate) fn resolve(&mut self) {
        if mem::take(&mut self.is_unresolved) {
            self.updated.clear();
            self.pending.retain(self.level_start, |name| name.state.is_entered());
        }
    }
}
