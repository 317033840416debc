//! `Notes`, `Rest`: which names in the current directory the walk is to enter, and whether it has to read the rest of this
//! directory before it goes on.
//!
//! The names of directories and links are noted in the order in which they are lent. What the caller says by name is collected
//! beside them in [`Said`]. When the walk goes on, both are settled, once: the names that stay are those to enter.

use super::pending::{Kind, Pending};
use super::said::Said;
use crate::entry::Entry;
use crate::listing::Listing;
use rustix::io::Errno;
use std::ffi::CStr;
use std::mem;

/// The names of the current directory are the last ones in `pending`, from `names_at` on, where a call takes that.
#[derive(Default)]
pub(super) struct Notes {
    pub(super) pending: Pending,
    pub(super) rest: Rest,
    /// Why the current directory may not be read.
    pub(super) unreadable: Option<Errno>,
    /// What the caller said by name, and what it said of an entry after that. Where the directory is read again, the names that
    /// were lent before, too.
    said: Said,
    /// Whether something was said, or a link was noted, so the pending names are not yet those to enter.
    pub(super) is_unsettled: bool,
    last: Last,
    enters: Enters,
}

/// What is left of the current directory for the walk to read, in case it has directories that were not lent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Rest {
    /// Nothing: it was read to its end.
    #[default]
    Done,
    /// The walk need not look for them.
    Waived,
    /// It is read before the walk goes on.
    Owed,
}

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

/// The entry lent last. Written for each entry, so it is a single number: where its name is among the pending ones; where these
/// end, if its name is not pending; or a number beyond all names.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Last(usize);

impl Last {
    const NOTHING: Self = Self(usize::MAX);
    /// All were lent at once.
    const LISTED: Self = Self(usize::MAX - 1);
}

impl Notes {
    pub(super) fn clear(&mut self) {
        self.pending.truncate(0);
        self.said.clear();
        (self.rest, self.is_unsettled) = (Rest::Done, false);
    }

    /// Whether there is something to do before the walk goes on.
    #[inline]
    pub(super) fn is_unfinished(&self) -> bool {
        self.is_unsettled || self.rest == Rest::Owed
    }

    /// A directory is lent.
    #[inline]
    pub(super) fn lend(&mut self, (rest, enters): (Rest, Enters)) {
        (self.rest, self.enters, self.last) = (rest, enters, Last::NOTHING);
    }

    /// Whether an entry was lent since.
    pub(super) fn has_lent(&self) -> bool {
        self.last != Last::NOTHING
    }

    /// The directory is read into a listing: from now on no entry is the one lent last.
    #[inline]
    pub(super) fn list(&mut self) {
        self.last = Last::LISTED;
    }

    pub(super) fn is_listed(&self) -> bool {
        self.last == Last::LISTED
    }

    #[inline]
    fn none_is_last(&mut self) {
        if !self.is_listed() {
            self.last = Last(self.pending.len());
        }
    }

    /// The rest has been read, or an error ended it. Returns why the directory may not be read, unless that was reported.
    #[inline]
    pub(super) fn done(&mut self) -> Option<Errno> {
        let rest = mem::replace(&mut self.rest, Rest::Done);
        self.unreadable.filter(|_| rest != Rest::Done)
    }

    /// The walk need not look for directories here.
    #[inline]
    pub(super) fn waive(&mut self) {
        if self.rest == Rest::Owed {
            self.rest = Rest::Waived;
        }
    }

    /// Notes an entry that is lent.
    #[inline(always)]
    pub(super) fn note(&mut self, entry: &Entry<'_>) {
        self.last = Last(self.pending.len());
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

    /// Notes the directories of `listing`, in its order, in place of what was noted before.
    #[inline(never)]
    pub(super) fn note_all(&mut self, listing: &Listing, names_at: usize) {
        self.done();
        self.begin_again(names_at);
        for entry in listing {
            if let Some(kind) = Kind::of(entry.d_type()) {
                self.note_kind(kind, entry.name_cstr());
            }
        }
    }

    /// No entry is left. Returns what [`done`](Self::done) does. If the first batch `is_empty`, there is still something to do.
    #[inline]
    pub(super) fn at_end(&mut self, is_empty: bool) -> Option<Errno> {
        if is_empty {
            return None;
        }
        self.none_is_last();
        self.done()
    }

    /// The entries come again, from the first on. Keeps the names of those that were lent, in case one does not come again, and
    /// what was said of them.
    pub(super) fn begin_again(&mut self, names_at: usize) {
        if self.pending.len() > names_at {
            let Self { pending, said, .. } = self;
            let sorted = said.sort();
            pending.rewrite(names_at, |kind, name| {
                said.keep(sorted, kind, name);
                Kind::SKIPPED // so no item stays
            });
            self.is_unsettled = true;
        }
    }

    /// The caller says something of the entry lent last.
    #[inline]
    pub(super) fn say_of_last(&mut self, word: Kind) {
        let Last(at) = self.last;
        if at >= self.pending.len() {
            return;
        }
        self.is_unsettled = true;
        if self.said.is_empty() {
            self.pending.say(at, word);
        } else {
            self.said.push(word, self.pending.at(at).name.to_bytes());
        }
    }

    /// The caller says something by name. Returns whether the walk may enter anything here.
    pub(super) fn say(&mut self, name: &[u8], word: Kind) -> bool {
        if self.enters == Enters::Nothing {
            return false;
        }
        self.said.push(word, name);
        self.is_unsettled = true;
        true
    }

    /// Forgets what was noted and said. From now on only what the caller names is entered.
    #[inline]
    pub(super) fn skip_all(&mut self, names_at: usize) {
        self.waive();
        self.pending.truncate(names_at);
        self.said.clear();
        self.none_is_last();
        if self.enters == Enters::Lent {
            self.enters = Enters::Named;
        }
    }

    /// Settles which names are entered, in this order:
    ///
    /// - those that are pending, as the caller said of them last;
    /// - those that were lent, and did not come when the directory was read again;
    /// - those that were not lent, and that the caller said to enter or to follow, in the order in which it said so.
    #[cold]
    pub(super) fn settle(&mut self, names_at: usize) {
        let Self { pending, said, .. } = self;
        said.sort();
        pending.rewrite(names_at, |kind, name| said.apply(kind, name));
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
