//! `Notes`, `Unfinished`: what the walk notes of the current directory's entries, and what it has still to do about this
//! directory before it goes on.
//!
//! The names of directories and links are noted in the order in which they are lent. What the caller says by name is collected
//! beside them, and settled once, when the walk goes on: then the names that stay are those to enter.

use super::pending::{Kind, Pending};
use super::said::Said;
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
    /// What the caller said by name, and what it said of an entry after that.
    said: Said,
    /// Whether something was said, or a link was noted, so the pending names are not yet those to enter.
    pub(super) is_unsettled: bool,
    /// Where the names of the current directory begin.
    names_at: usize,
    /// Where the name of the entry lent last is, if it is pending; otherwise where the pending names end, or
    /// [`NOTHING_LENT`].
    last_at: usize,
    enters: Enters,
    /// Whether the directory was read into a listing, so no entry is the one lent last.
    pub(super) is_listed: bool,
}

/// Beyond all names.
const NOTHING_LENT: usize = usize::MAX;

/// Which directories in this one the walk enters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Enters {
    /// Those that are lent, and those that the caller names.
    Lent,
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
    pub(super) fn done(&mut self) -> Option<Errno> {
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
        self.said.clear();
        (self.unfinished, self.is_unsettled) = (Unfinished::Nothing, false);
    }

    /// Whether there is something to do before the walk goes on.
    #[inline]
    pub(super) fn is_unfinished(&self) -> bool {
        self.is_unsettled || !matches!(self.unfinished, Unfinished::Nothing)
    }

    /// A directory is lent, whose names begin at `names_at`.
    #[inline]
    pub(super) fn lend(&mut self, names_at: usize, enters: Enters) {
        (self.names_at, self.enters, self.is_listed) = (names_at, enters, false);
        self.last_at = NOTHING_LENT;
    }

    /// Whether an entry was lent since.
    pub(super) fn has_lent(&self) -> bool {
        self.last_at != NOTHING_LENT
    }

    /// Notes an entry that is lent.
    #[inline(always)]
    pub(super) fn note(&mut self, entry: &Entry<'_>) {
        self.last_at = self.pending.len();
        if let Some(kind) = Kind::of(entry.d_type()) {
            self.note_kind(kind, entry.name_cstr());
        }
    }

    #[inline(never)] // In the frame that reads a directory, registers are scarce.
    fn note_kind(&mut self, kind: Kind, name: &CStr) {
        if self.enters == Enters::Lent {
            self.pending.push(kind, name);
            self.is_unsettled |= kind == Kind::LINK;
        }
    }

    /// Notes the directories of `listing`, in its order.
    #[inline(never)]
    pub(super) fn note_all(&mut self, listing: &Listing) {
        self.unfinished.done();
        self.begin_again();
        for entry in listing {
            if let Some(kind) = Kind::of(entry.d_type()) {
                self.note_kind(kind, entry.name_cstr());
            }
        }
    }

    /// No entry is left. Returns what [`done`](Unfinished::done) does. If the first batch `is_empty`, there is still something to do.
    #[inline]
    pub(super) fn at_end(&mut self, is_empty: bool) -> Option<Errno> {
        if is_empty {
            return None;
        }
        self.last_at = self.pending.len();
        self.unfinished.done()
    }

    /// The entries come again, from the first on. Keeps the names of those that were lent, in case one does not come again, and
    /// what was said of them.
    pub(super) fn begin_again(&mut self) {
        let Self { pending, said, is_unsettled, .. } = self;
        pending.rewrite(self.names_at, |kind, name| {
            said.push(kind, name, false);
            *is_unsettled = true;
            Kind::SKIPPED // so no item stays
        });
    }

    /// The caller says something of the entry lent last.
    #[inline]
    pub(super) fn say_of_last(&mut self, word: Kind) {
        if self.last_at >= self.pending.len() {
            return;
        }
        self.is_unsettled = true;
        if self.said.is_empty() {
            self.pending.say(self.last_at, word);
        } else {
            self.said.push(word, self.pending.at(self.last_at).name.to_bytes(), true);
        }
    }

    /// The caller says something by name. Returns whether the walk may enter anything here.
    pub(super) fn say(&mut self, name: &[u8], word: Kind) -> bool {
        if self.enters == Enters::Nothing {
            return false;
        }
        self.said.push(word, name, true);
        self.is_unsettled = true;
        true
    }

    /// Forgets what was noted and said. From now on only what the caller names is entered.
    #[inline]
    pub(super) fn skip_all(&mut self) {
        self.unfinished.skip();
        self.pending.truncate(self.names_at);
        self.said.clear();
        self.last_at = self.pending.len();
        if self.enters == Enters::Lent {
            self.enters = Enters::Named;
        }
    }

    /// Settles which names are entered: of those that are pending, what the caller said of them last; after these, in the order
    /// in which they were said, those that are entered or followed though no entry is pending.
    #[cold]
    pub(super) fn settle(&mut self) {
        let Self { pending, said, .. } = self;
        said.sort();
        pending.rewrite(self.names_at, |kind, name| said.apply(kind, name));
        for (kind, name) in said.not_pending().filter(|(kind, _)| kind.is_entered()) {
            pending.push_named(if is_name(name) { kind } else { Kind::NO_NAME }, name);
        }
        said.clear();
        self.is_unsettled = false;
    }
}

/// Whether an entry can have this name.
fn is_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && !name.iter().any(|byte| matches!(byte, 0 | b'/'))
}
