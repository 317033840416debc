//! Collects the subdirectories of the current directory in the order in which the walk enters them.
//! [`EntryState::resolve`] decides about each. This module does not know how a directory is read or
//! opened.
//!
//! ```text
//! note       an entry that can be entered is yielded: its name and state are pushed to `pending`
//! merge      the caller has queried or requested something about that entry: its state changes
//! request    the caller requests something for a name: it is pushed to `name_requests`
//! resolve    the walk continues: `pending` becomes the names to enter, and `name_requests` empty
//! ```

use super::pending::Pending;
use crate::cursor::report::Reading;
use crate::listing::Listing;
use crate::read_dir::entry::Entry;
use crate::read_dir::entry_state::{EntryState, EntryUpdates};
use std::ffi::CStr;

/// The subdirectories of the current directory that the walk enters, after the pending ones of the
/// levels above.
#[derive(Default)]
pub(crate) struct Subdirs {
    pub(crate) pending: Pending,
    /// The offset in `pending` at which the names of the current directory start.
    level_start: usize,
    /// The offset in `pending` of the name noted last.
    last_start: usize,
    /// Whether `pending` may differ from the directories to enter: it may contain names to skip, or
    /// lack names that the caller requested.
    pub(crate) is_unresolved: bool,
    name_requests: NameRequests,
    candidates: Candidates,
    pub(crate) reading: Reading,
    /// Whether the current directory has yielded an entry.
    pub(crate) has_yielded: bool,
}

/// The subdirectories that the walk may enter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Candidates {
    /// Those that are yielded, and those that the caller names.
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
    pub(crate) fn begin(&mut self, is_dead_end: bool, unreadable: Option<rustix::io::Errno>) {
        self.candidates = if is_dead_end { Candidates::None } else { Candidates::Yielded };
        self.reading = Reading { is_unread: !is_dead_end, unreadable };
        self.has_yielded = false;
        self.level_start = self.pending.len();
    }

    /// Notes an entry that is yielded.
    #[inline(always)]
    pub(crate) fn note(&mut self, entry: &Entry<'_>) {
        if let Some(state) = EntryState::from_type(entry.d_type()) {
            self.note_name(state, entry.name_cstr(), entry.updates);
        }
        self.has_yielded = true; // last, because this saves instructions for each entry
    }

    /// Notes a name, after the `updates` of the name noted before.
    #[inline(never)] // In the frame that reads a directory, registers are scarce.
    fn note_name(&mut self, state: EntryState, name: &CStr, updates: Option<&EntryUpdates>) {
        if let Some(updates) = updates {
            self.merge(updates);
        }
        if self.candidates == Candidates::Yielded {
            self.last_start = self.pending.len();
            self.pending.push(state, name);
            // A link is pending only until it is known whether it is followed.
            self.is_unresolved |= !state.can_be_directory();
        }
    }

    /// Notes the entries of `listing`, in its order, in place of the entries noted before.
    #[inline(never)]
    pub(crate) fn note_all(&mut self, listing: &Listing) {
        self.reading.is_unread = false;
        self.begin_again();
        for entry in listing {
            if let Some(state) = EntryState::from_type(entry.d_type()) {
                self.note_name(state, entry.name_cstr(), None);
            }
        }
    }

    /// Merges the updates into the state of the name noted last. They are never about another one.
    #[inline]
    pub(crate) fn merge(&mut self, updates: &EntryUpdates) {
        let updates = updates.take();
        if !updates.is_empty() && self.candidates == Candidates::Yielded {
            self.merge_into_last(updates);
        }
    }

    #[cold]
    #[inline(never)]
    fn merge_into_last(&mut self, updates: EntryState) {
        let state = self.pending.merge(self.last_start, updates);
        self.is_unresolved |= state.resolve().is_none();
        // Of the requests for a name and for its entry, the last one counts.
        if !self.name_requests.requests.is_empty() && !updates.request().is_empty() {
            let name = self.pending.get(self.last_start).name.to_bytes();
            self.name_requests.push(updates.request(), name, false);
        }
    }

    /// Notes a request for a name. Returns whether the walk may enter any subdirectory here.
    pub(crate) fn request(&mut self, name: &[u8], request: EntryState) -> bool {
        if self.candidates == Candidates::None {
            return false;
        }
        self.name_requests.push(request, name, false);
        self.is_unresolved = true;
        true
    }

    /// Removes all names and requests of the current directory. From now on the walk enters only
    /// what the caller names.
    #[inline]
    pub(crate) fn skip_all(&mut self) {
        self.reading.is_unread = false;
        self.pending.truncate(self.level_start);
        self.name_requests.clear();
        if self.candidates == Candidates::Yielded {
            self.candidates = Candidates::Named;
        }
    }

    /// Removes the names of the current directory, because its entries are noted again from the
    /// first one. Keeps the caller's requests and the outcomes of queries, by name.
    pub(crate) fn begin_again(&mut self) {
        let Self { pending, name_requests, .. } = self;
        pending.rewrite(self.level_start, |state, name| {
            if !state.updates().is_empty() {
                name_requests.push(state.updates(), name, true);
            }
            None
        });
        self.is_unresolved |= !self.name_requests.requests.is_empty();
    }

    /// Reduces the names of the current directory to those that the walk enters, in this order:
    ///
    /// - the pending names, unless the caller requested otherwise;
    /// - the names that were not yielded, and that the caller requested to enter or to follow, in
    ///   the order of the last request for each.
    #[cold]
    pub(crate) fn resolve(&mut self) {
        if !self.is_unresolved {
            return;
        }
        let Self { pending, name_requests, .. } = self;
        name_requests.sort();
        pending.rewrite(self.level_start, |state, name| {
            name_requests.merge_into(state, name).resolve()
        });
        for (updates, name) in name_requests.not_pending() {
            let state = if is_valid_name(name) {
                EntryState::UNKNOWN.merge(updates).resolve()
            } else {
                Some(EntryState::INVALID_NAME)
            };
            if let Some(state) = state {
                pending.push_requested(state, name);
            }
        }
        name_requests.clear();
        self.is_unresolved = false;
    }
}

/// Returns `true` if an entry can have this name.
fn is_valid_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && !name.iter().any(|byte| matches!(byte, 0 | b'/'))
}

/// The requests for names, in the order of the calls. If the directory is read again, also the
/// updates of the entries that were noted before.
#[derive(Default)]
struct NameRequests {
    requests: Vec<NameRequest>,
    /// The names, each with a NUL, so no two start at the same offset.
    names: Vec<u8>,
}

#[derive(Clone, Copy)]
struct NameRequest {
    name_start: usize,
    name_end: usize,
    updates: EntryState,
    /// Whether the updates are the state of an entry before the directory was read again. Requests
    /// for the name count after this state, in the order of the calls.
    is_from_earlier_reading: bool,
    /// Whether an entry of this name is pending.
    is_pending: bool,
}

impl NameRequests {
    #[inline]
    fn clear(&mut self) {
        self.requests.clear();
        self.names.clear();
    }

    /// Pushes a request of the caller. If `is_from_earlier_reading` is `true`, pushes the updates
    /// of an entry that will be noted again.
    fn push(&mut self, updates: EntryState, name: &[u8], is_from_earlier_reading: bool) {
        let name_start = self.names.len();
        self.names.extend_from_slice(name);
        let name_end = self.names.len();
        self.names.push(0);
        self.requests.push(NameRequest {
            name_start,
            name_end,
            updates,
            is_from_earlier_reading,
            is_pending: false,
        });
    }

    /// Sorts the requests by name, and merges those for the same name into the last one.
    fn sort(&mut self) {
        let Self { requests, names } = self;
        let name = |request: &NameRequest| &names[request.name_start..request.name_end];
        requests.sort_unstable_by_key(|request| {
            (name(request), !request.is_from_earlier_reading, request.name_start)
        });
        requests.dedup_by(|later, request| {
            let is_same = name(later) == name(request);
            if is_same {
                *request = NameRequest { updates: request.updates.merge(later.updates), ..*later };
            }
            is_same
        });
    }

    /// Returns the state of a pending name after the requests for it. They must be
    /// [sorted](Self::sort).
    #[inline]
    fn merge_into(&mut self, state: EntryState, name: &[u8]) -> EntryState {
        let Self { requests, names } = self;
        let found = requests
            .binary_search_by(|request| names[request.name_start..request.name_end].cmp(name));
        let Ok(index) = found else { return state };
        requests[index].is_pending = true;
        state.merge(requests[index].updates)
    }

    /// Returns the names of which no entry is pending, and that are to be entered or followed, in
    /// the order of the last request for each.
    fn not_pending(&mut self) -> impl Iterator<Item = (EntryState, &[u8])> {
        self.requests.retain(|request| {
            let is_entered =
                request.updates.is_named() || request.updates.request() == EntryState::FOLLOW;
            !request.is_pending && is_entered
        });
        self.requests.sort_unstable_by_key(|request| request.name_start);
        self.requests
            .iter()
            .map(|request| (request.updates, &self.names[request.name_start..request.name_end]))
    }
}
