//! `Notes`: what the walk notes of the current directory's entries, and what the caller says of them.

use super::pending::{Item, Kind, Pending};
use super::unfinished::Unfinished;
use crate::entry::Entry;
use crate::listing::Listing;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ffi::CStr;

/// The names of the current directory are the last ones in `pending`.
#[derive(Default)]
pub(super) struct Notes {
    pub(super) pending: Pending,
    pub(super) unfinished: Unfinished,
    /// Where the names of the current directory begin.
    names_at: usize,
    /// Where the name of the entry lent last is, if it is pending; otherwise where the pending names end.
    last_at: usize,
    /// Where the last symbolic link is.
    link_at: usize,
    /// Where a search for a name begins: after the one that was found last.
    search_at: usize,
    below: Below,
}

/// Which directories in this one the walk enters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Below {
    /// Those that are lent.
    Lent,
    /// Those that the caller names.
    Named,
    #[default]
    None,
}

impl Notes {
    pub(super) fn clear(&mut self) {
        self.pending.truncate(0);
        self.unfinished = Unfinished::Nothing;
    }

    /// A directory is lent, whose names begin at `names_at`.
    #[inline]
    pub(super) fn lend(&mut self, names_at: usize, below: Below) {
        let end = self.pending.len();
        (self.names_at, self.search_at) = (names_at, names_at);
        (self.last_at, self.link_at, self.below) = (end, end, below);
    }

    /// Notes an entry that is lent.
    #[inline(always)]
    pub(super) fn note(&mut self, entry: &Entry<'_>) {
        self.last_at = self.pending.len();
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
            self.pending.push(kind, name);
        }
    }

    /// A copy of what is noted in the current directory.
    pub(super) fn noted(&self) -> Pending {
        self.pending.copy(self.names_at..self.pending.len())
    }

    /// Takes back what was noted last.
    pub(super) fn take_back(&mut self) {
        self.pending.truncate(self.last_at);
    }

    /// No entry is left. Returns why, unless the caller knows.
    #[inline]
    pub(super) fn end(&mut self) -> Option<Errno> {
        self.last_at = self.pending.len();
        self.unfinished.end()
    }

    /// Notes the directories of `listing`, in its order. Those that were noted before keep what the caller said of them.
    #[inline(never)]
    pub(super) fn note_all(&mut self, listing: &Listing) {
        self.unfinished.end();
        if self.below == Below::Lent {
            let before = self.noted();
            let mut known = kinds(&before);
            self.skip_all();
            self.below = Below::Lent;
            for entry in listing {
                let Some(kind) = Kind::of(entry.file_type()) else { continue };
                let name = entry.name_cstr();
                self.pending.push(known.remove(name).unwrap_or(kind), name);
            }
            let no_names = before.items_from(0).map(|(_, item)| item).filter(|item| item.kind == Kind::NO_NAME);
            for (name, kind) in known.into_iter().chain(no_names.map(|item| (item.name, item.kind))) {
                self.pending.push(kind, name);
            }
        }
        self.last_at = self.pending.len();
    }

    /// Notes a name that the caller gives, which stays apart from the entry lent last. Returns whether it is noted.
    pub(super) fn note_name(&mut self, kind: Kind, name: &[u8]) -> bool {
        if self.below == Below::None {
            return false;
        }
        let is_name = !matches!(name, b"" | b"." | b"..") && !name.iter().any(|byte| matches!(byte, 0 | b'/'));
        let kind = if is_name { kind } else { Kind::NO_NAME };
        let is_last_pending = self.last_at < self.pending.len();
        self.pending.push_given(kind, name);
        if !is_last_pending {
            self.last_at = self.pending.len();
        }
        true
    }

    #[inline]
    pub(super) fn skip_last(&mut self) {
        self.pending.set_kind(self.last_at, Kind::SKIPPED);
    }

    #[inline]
    pub(super) fn follow_last(&mut self) {
        self.pending.follow(self.last_at);
    }

    /// Marks an item with this name and a `wanted` kind. Returns whether there is one.
    pub(super) fn mark(&mut self, name: &[u8], mark: Kind, wanted: fn(Kind) -> bool) -> bool {
        self.find(name, wanted).inspect(|at| self.pending.set_kind(*at, mark)).is_some()
    }

    /// Follows the link of this name. Returns whether that changes anything.
    pub(super) fn follow_name(&mut self, name: &[u8]) -> bool {
        if self.below == Below::Named {
            return self.note_name(Kind::ANY, name); // what was lent is not among the names, so a search would be in vain
        }
        if let Some(at) = self.find(name, |kind| kind.followed().is_some()) {
            self.pending.follow(at);
            return true;
        }
        self.find(name, |_| true).is_none() && self.note_name(Kind::ANY, name)
    }

    /// Where the item with this name and a `wanted` kind begins. One that follows the item found last is found at once.
    fn find(&mut self, name: &[u8], wanted: fn(Kind) -> bool) -> Option<usize> {
        let mut items = self.pending.items_from(self.search_at).chain(self.pending.items_from(self.names_at));
        let (at, item) =
            items.find(|(_, item)| item.name.to_bytes() == name && wanted(item.kind) && item.kind != Kind::NO_NAME)?;
        self.search_at = item.end;
        Some(at)
    }

    /// Forgets what was noted, and notes nothing but what the caller names.
    #[inline]
    pub(super) fn skip_all(&mut self) {
        if self.below == Below::Lent {
            self.below = Below::Named;
        }
        self.unfinished.skip();
        self.pending.truncate(self.names_at);
        (self.last_at, self.search_at) = (self.names_at, self.names_at);
    }

    #[inline]
    pub(super) fn stop(&mut self) {
        self.skip_all();
        (self.below, self.unfinished) = (Below::None, Unfinished::Stopped);
    }
}

/// What the caller said of each name, without those that no entry can have. A name that came twice and was skipped once is
/// entered.
pub(super) fn kinds(noted: &Pending) -> BTreeMap<&CStr, Kind> {
    let mut kinds = BTreeMap::new();
    for (_, Item { name, kind, .. }) in noted.items_from(0).filter(|(_, item)| item.kind != Kind::NO_NAME) {
        let known = kinds.entry(name).or_insert(kind);
        if known.is_passed_over() {
            *known = kind;
        }
    }
    kinds
}
