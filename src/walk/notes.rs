//! `Notes`, `Unfinished`: what the walk notes of the current directory's entries, and what the caller says of them; what it has
//! still to do about this directory before it goes on.
//!
//! What the caller says of a name holds, before or after it is lent, and a name is noted once. The names of directories and
//! links are noted in the order in which they are lent. A name that the caller gives before is noted at once, and an index
//! remembers it: when the entry comes, it is not noted again.

use super::pending::{Kind, Pending};
use crate::entry::Entry;
use crate::listing::Listing;
use rustix::io::Errno;
use std::ffi::CStr;
use std::mem;

/// The names of the current directory are the last ones in `pending`.
#[derive(Default)]
pub(super) struct Notes {
    pub(super) pending: Pending,
    pub(super) unfinished: Unfinished,
    /// Where the names of the current directory begin.
    names_at: usize,
    /// Where its names begin that are not all in the index.
    lent_at: usize,
    /// Where the name of the entry lent last is, if it is pending; otherwise where the pending names end.
    last_at: usize,
    /// Where the symbolic link is that was noted last.
    link_at: usize,
    /// Where a search for a name begins: after the one that was found last.
    search_at: usize,
    /// If the walk [enters](Enters::Indexed) by it: where the names are that were noted before they are lent, sorted by name.
    index: Vec<usize>,
    enters: Enters,
    /// Whether the directory was read into a listing, so no entry is the one lent last.
    pub(super) is_listed: bool,
}

/// Which directories in this one the walk enters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Enters {
    /// Those that are lent.
    Lent,
    /// Those that are lent. Some names were noted before.
    Indexed,
    /// Those that the caller names.
    Named,
    #[default]
    Nothing,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Unfinished {
    #[default]
    Nothing,
    /// To look for directories among the entries that were not lent.
    Rest,
    /// To report why the directory may not be read.
    Unreadable { errno: Errno, report: Report },
}

/// Whether the caller gets the error of a directory that may not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Report {
    Due,
    IfRead,
    Done,
}

impl Unfinished {
    /// The rest has been read, or need not be. Returns why the directory may not be read, unless that was reported.
    #[inline]
    pub(super) fn finish(&mut self) -> Option<Errno> {
        if let Self::Unreadable { .. } = self {
            return self.take_errno();
        }
        *self = Self::Nothing;
        None
    }

    #[cold]
    fn take_errno(&mut self) -> Option<Errno> {
        let Self::Unreadable { errno, report } = self else { return None };
        (mem::replace(report, Report::Done) != Report::Done).then_some(*errno)
    }

    /// The walk need not look for directories here.
    #[inline]
    pub(super) fn skip(&mut self) {
        match self {
            Self::Unreadable { report: report @ Report::Due, .. } => *report = Report::IfRead,
            Self::Unreadable { .. } => {}
            _ => *self = Self::Nothing,
        }
    }
}

impl Notes {
    pub(super) fn clear(&mut self) {
        self.pending.truncate(0);
        self.unfinished = Unfinished::Nothing;
    }

    /// A directory is lent, whose names begin at `names_at`.
    #[inline]
    pub(super) fn lend(&mut self, names_at: usize, enters: Enters) {
        (self.names_at, self.is_listed) = (names_at, false);
        self.begin(enters);
    }

    /// The names of this directory that are pending now were lent before.
    #[inline]
    fn begin(&mut self, enters: Enters) {
        let end = self.pending.len();
        (self.lent_at, self.search_at) = (self.names_at, self.names_at);
        (self.last_at, self.link_at, self.enters) = (end, end, enters);
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
        self.check();
        if self.enters == Enters::Lent || self.enters == Enters::Indexed && !self.is_noted(name) {
            if kind == Kind::LINK {
                self.link_at = self.pending.drop_link(self.link_at);
                self.last_at = self.link_at;
            }
            self.pending.push(kind, name);
        }
    }

    /// Whether the name that is lent is in the index.
    #[cold]
    fn is_noted(&mut self, name: &CStr) -> bool {
        self.look_up(name.to_bytes()).is_ok_and(|index| {
            self.last_at = self.index[index];
            true
        })
    }

    /// No entry is left. Returns why, unless the caller knows. If the first batch `is_empty`, the caller may have read the
    /// directory through the descriptor: then there is still something unfinished.
    #[inline]
    pub(super) fn finish(&mut self, is_empty: bool) -> Option<Errno> {
        self.last_at = self.pending.len();
        if is_empty { None } else { self.unfinished.finish() }
    }

    /// The directory will be read again: its names that are noted are not noted again.
    pub(super) fn index_all(&mut self) {
        let Self { pending, index, .. } = self;
        let items = pending.items_from(self.names_at).filter(|(_, item)| item.kind != Kind::NO_NAME);
        index.clear();
        index.extend(items.map(|(at, _)| at));
        index.sort_unstable_by_key(|at| pending.at(*at).name);
        (self.link_at, self.enters) = (pending.len(), Enters::Indexed);
    }

    /// Notes the directories of `listing`, in its order, and then what else was noted before.
    #[inline(never)]
    pub(super) fn note_all(&mut self, listing: &Listing) {
        self.unfinished.finish();
        if matches!(self.enters, Enters::Lent | Enters::Indexed) {
            self.index_all();
            let end = self.pending.len();
            for entry in listing {
                let Some(kind) = Kind::of(entry.file_type()) else { continue };
                match self.look_up(entry.name()) {
                    Ok(index) => _ = self.pending.move_to_end(self.index[index]),
                    Err(_) => self.pending.push(kind, entry.name_cstr()),
                }
            }
            let mut rest = self.names_at;
            while rest < end {
                rest = self.pending.move_to_end(rest);
            }
            self.pending.drop_moved(self.names_at..end);
            self.begin(Enters::Lent);
        }
    }

    /// Notes that the walk is to enter this name, lent or not: `say` changes the kind of an item. Returns whether it is noted.
    pub(super) fn enter(&mut self, name: &[u8], say: fn(Kind) -> Kind) -> bool {
        // After `skip_all` nothing is looked for, so each name is an item.
        let found = if self.enters == Enters::Named { None } else { self.find(name) };
        match found {
            Some(at) => self.pending.say(at, say),
            None if self.enters == Enters::Nothing => return false,
            None => self.note_named(say(Kind::UNKNOWN), name),
        }
        true
    }

    /// Notes that the walk is not to enter this name, lent or not. Returns whether there is such an item, or, as long as `more`
    /// entries may be lent, can be one.
    pub(super) fn skip(&mut self, name: &[u8], more: bool) -> bool {
        match self.find(name) {
            Some(at) => self.pending.say(at, |_| Kind::SKIPPED),
            None if !more || !is_name(name) => return false,
            None if matches!(self.enters, Enters::Lent | Enters::Indexed) => self.note_named(Kind::SKIPPED, name),
            None => {}
        }
        true
    }

    /// Says something of the entry lent last.
    #[inline]
    pub(super) fn say_of_last(&mut self, say: fn(Kind) -> Kind) {
        if self.last_at < self.pending.len() {
            self.pending.say(self.last_at, say);
        }
    }

    /// Notes a name that the caller gives, which stays apart from the entry lent last.
    fn note_named(&mut self, kind: Kind, name: &[u8]) {
        let (at, is_name) = (self.pending.len(), is_name(name));
        self.pending.push_named(if is_name { kind } else { Kind::NO_NAME }, name);
        let end = self.pending.len();
        if self.last_at == at {
            self.last_at = end;
        }
        if self.enters == Enters::Lent {
            self.index.clear();
            self.enters = Enters::Indexed;
        }
        if self.enters == Enters::Indexed {
            if self.lent_at == at {
                (self.lent_at, self.search_at) = (end, end);
            }
            if let (true, Err(index)) = (is_name, self.look_up(name)) {
                self.index.insert(index, at);
            }
        }
        self.check();
    }

    /// Where the item of this name begins. One that follows the item found last is found at once.
    fn find(&mut self, name: &[u8]) -> Option<usize> {
        if self.enters == Enters::Indexed {
            if let Ok(index) = self.look_up(name) {
                return Some(self.index[index]);
            }
        }
        let mut items = self.pending.items_from(self.search_at).chain(self.pending.items_from(self.lent_at));
        let (at, item) = items.find(|(_, item)| item.name.to_bytes() == name && item.kind != Kind::NO_NAME)?;
        self.search_at = item.end;
        Some(at)
    }

    /// Where this name is in the index, or would be.
    fn look_up(&self, name: &[u8]) -> Result<usize, usize> {
        self.index.binary_search_by(|at| self.pending.at(*at).name.to_bytes().cmp(name))
    }

    /// Forgets what was noted, and notes nothing but what the caller names.
    #[inline]
    pub(super) fn skip_all(&mut self) {
        self.unfinished.skip();
        self.pending.truncate(self.names_at);
        self.begin(if self.enters == Enters::Nothing { Enters::Nothing } else { Enters::Named });
    }

    /// What holds between two calls. Of the index it looks at a few names, because there may be any number.
    fn check(&self) {
        let Self { pending, names_at, lent_at, search_at, index, .. } = self;
        let is_name = |at: &usize| names_at <= at && pending.is_boundary(*at);
        let all = [lent_at, search_at, &self.last_at, &self.link_at];
        debug_assert!(all.into_iter().all(is_name), "no name of this directory begins there: {all:?}");
        debug_assert!(lent_at <= search_at, "a search begins among names that the index has");
        let mut few = index[..index.len().min(4)].iter().filter(|_| self.enters == Enters::Indexed);
        debug_assert!(few.all(is_name), "the index points elsewhere: {index:?}");
    }
}

/// Whether an entry can have this name.
fn is_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && !name.iter().any(|byte| matches!(byte, 0 | b'/'))
}
