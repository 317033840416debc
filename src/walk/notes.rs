//! `Notes`: what the walk notes of the current directory's entries, and what the caller says of them.

use super::pending::{Item, Kind, Pending, Search};
use super::unfinished::Unfinished;
use crate::entry::Entry;
use crate::listing::Listing;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::io;

/// Those of the current directory are the last of the pending names.
#[derive(Debug)]
pub(super) struct Notes {
    pub(super) pending: Pending,
    pub(super) unfinished: Unfinished,
    /// Where the names of the current directory begin.
    names_at: usize,
    /// Where the name of the entry lent last is, if it is pending. [`UNTOUCHED`] at first.
    last_at: usize,
    /// Where the last symbolic link is.
    link_at: usize,
    search: Search,
    below: Below,
}

/// Nothing was lent, and the caller has named nothing.
const UNTOUCHED: usize = usize::MAX;

/// Which directories in this one the walk enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Below {
    /// Those that are lent.
    Lent,
    /// Those that the caller names.
    Named,
    None,
}

impl Notes {
    pub(super) fn new() -> Self {
        Self {
            pending: Pending::default(),
            unfinished: Unfinished::Nothing,
            names_at: 0,
            last_at: 0,
            link_at: 0,
            search: Search::new(0),
            below: Below::None,
        }
    }

    pub(super) fn clear(&mut self) {
        self.pending.truncate(0);
        self.unfinished = Unfinished::Nothing;
    }

    /// A directory is lent, whose names begin at `names_at`.
    #[inline]
    pub(super) fn lend(&mut self, names_at: usize, below: Below) {
        // `last_at` says that nothing was lent, without a write for each entry.
        let end = self.pending.len();
        (self.names_at, self.last_at, self.link_at, self.below) = (names_at, UNTOUCHED, end, below);
        self.search = Search::new(names_at);
    }

    #[inline]
    pub(super) fn is_untouched(&self) -> bool {
        self.last_at == UNTOUCHED
    }

    /// An entry may be lent next.
    #[inline]
    pub(super) fn begin(&mut self) {
        self.last_at = self.pending.len();
    }

    /// Notes an entry that is lent, after [`begin`](Self::begin).
    #[inline(always)]
    pub(super) fn note(&mut self, entry: &Entry<'_>) {
        if let Some(kind) = Kind::of(entry.file_type()) {
            self.note_kind(kind, entry.name_cstr());
        }
    }

    #[inline(never)] // In the frame that reads a directory, registers are scarce.
    fn note_kind(&mut self, kind: Kind, name: &CStr) {
        if self.below == Below::Lent {
            if kind == Kind::LINK {
                self.link_at = self.pending.drop_link(self.link_at);
                self.last_at = self.link_at;
            }
            self.push(kind, name);
        }
    }

    /// Takes back what was noted last.
    pub(super) fn take_back(&mut self) {
        self.pending.truncate(self.last_at);
    }

    /// There are no more entries. Returns what the caller does not know yet.
    #[inline]
    pub(super) fn end(&mut self) -> Option<io::Error> {
        self.unfinished.end()
    }

    /// Notes the directories of `listing`, in its order. Those that were noted before keep what the caller said of them. Returns
    /// whether there was memory for all.
    #[inline(never)]
    pub(super) fn note_all(&mut self, listing: &Listing) -> bool {
        let mut is_noted = self.unfinished.end().is_none(); // or there was no memory for an entry that was lent before
        if self.below == Below::Lent {
            let before = self.pending.copy(self.names_at..self.pending.len());
            let mut known = kinds(&before);
            self.skip_all();
            self.below = Below::Lent;
            for entry in listing {
                let Some(kind) = Kind::of(entry.file_type()) else { continue };
                let name = entry.name_cstr();
                is_noted = is_noted && self.pending.push(known.remove(name).unwrap_or(kind), name).is_ok();
            }
            let no_names = before.items().filter(|item| item.kind == Kind::NO_NAME);
            for (name, kind) in known.into_iter().chain(no_names.map(|item| (item.name, item.kind))) {
                is_noted = is_noted && self.pending.push(kind, name).is_ok();
            }
        }
        self.last_at = self.pending.len();
        is_noted
    }

    /// Notes a name that the caller gives. Returns whether it is noted.
    pub(super) fn note_name(&mut self, kind: Kind, name: &[u8]) -> bool {
        if self.below == Below::None {
            return false;
        }
        let is_name = !matches!(name, b"" | b"." | b"..") && !name.iter().any(|byte| matches!(byte, 0 | b'/'));
        let kind = if is_name { kind } else { Kind::NO_NAME };
        let name: Vec<u8> = name.iter().copied().filter(|byte| *byte != 0).collect();
        let name = CString::new(name).expect("BUG: a NUL inside");
        let is_noted = self.push(kind, &name);
        self.last_at = self.pending.len();
        is_noted
    }

    #[inline]
    fn push(&mut self, kind: Kind, name: &CStr) -> bool {
        let is_pushed = self.pending.push(kind, name).is_ok();
        if !is_pushed {
            (self.below, self.unfinished) = (Below::None, Unfinished::OutOfMemory);
        }
        is_pushed
    }

    #[inline]
    pub(super) fn skip_last(&mut self) {
        self.pending.set_kind(self.last_at, Kind::SKIPPED);
    }

    #[inline]
    pub(super) fn follow_last(&mut self) {
        self.pending.follow(self.last_at);
    }

    /// Marks a item with this name and a `wanted` kind. Returns whether there is one.
    pub(super) fn mark(&mut self, name: &[u8], mark: Kind, wanted: fn(Kind) -> bool) -> bool {
        self.find(name, wanted).inspect(|at| self.pending.set_kind(*at, mark)).is_some()
    }

    /// Follows the link of this name. Returns whether that changes anything.
    pub(super) fn follow_name(&mut self, name: &[u8]) -> bool {
        if let Some(at) = self.find(name, |kind| kind.followed().is_some()) {
            self.pending.follow(at);
            return true;
        }
        self.find(name, |_| true).is_none() && self.note_name(Kind::ANY, name)
    }

    fn find(&mut self, name: &[u8], wanted: fn(Kind) -> bool) -> Option<usize> {
        let is_complete = self.unfinished == Unfinished::Nothing;
        self.search.find(&mut self.pending, name, is_complete, wanted)
    }

    /// Forgets what was noted, and notes nothing but what the caller names.
    #[inline]
    pub(super) fn skip_all(&mut self) {
        if self.below == Below::Lent {
            self.below = Below::Named;
        }
        self.unfinished.skip();
        self.pending.truncate(self.names_at);
        self.last_at = self.names_at;
        self.search = Search::new(self.names_at);
    }

    #[inline]
    pub(super) fn stop(&mut self) {
        self.skip_all();
        (self.below, self.unfinished) = (Below::None, Unfinished::Stopped);
    }
}

/// What the caller said of names. Those that are none are left out. A name that is there twice, and skipped once, is entered.
pub(super) fn kinds(noted: &Pending) -> BTreeMap<&CStr, Kind> {
    let mut kinds = BTreeMap::new();
    for Item { name, kind, .. } in noted.items().filter(|item| item.kind != Kind::NO_NAME) {
        let known = kinds.entry(name).or_insert(kind);
        if known.is_passed_over() {
            *known = kind;
        }
    }
    kinds
}
