//! Collects the subdirectories of the current directory in the order in which the walk enters them.
//! [`EntryState`] decides about each.

use super::pending::Pending;
use crate::cursor::entry_state::EntryState;
use crate::listing::ListedEntry;
use rustix::io::Errno;
use std::io;

/// The subdirectories of the current directory that the walk enters, after the pending ones of the
/// levels above.
pub(crate) struct Subdirs {
    pub(crate) pending: Pending,
    /// The offset in `pending` at which the names of the current directory start.
    level_start: usize,
    candidates: Candidates,
    /// The request about every entry.
    request: EntryState,
}

/// The subdirectories that the walk may enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Candidates {
    /// Those that are yielded.
    Yielded,
    /// Those that the caller names.
    Named,
    None,
}

impl Subdirs {
    /// Creates the subdirectories of no directory, where the caller makes this `request` about each
    /// entry.
    pub(crate) fn new(request: EntryState) -> Self {
        let (pending, candidates) = (Pending::default(), Candidates::None);
        Self { pending, level_start: 0, candidates, request }
    }

    /// Begins a directory. Its names are pushed after all others. In a dead end nothing can be
    /// entered.
    #[inline]
    pub(crate) fn begin(&mut self, is_dead_end: bool) {
        self.candidates = if is_dead_end { Candidates::None } else { Candidates::Yielded };
        self.level_start = self.pending.len();
    }

    /// Returns `false` in a dead end.
    pub(crate) fn can_enter(&self) -> bool {
        self.candidates != Candidates::None
    }

    /// Returns `true` if the walk needs the entries that the caller does not read.
    #[inline]
    pub(crate) fn needs_rest(&self) -> bool {
        self.candidates == Candidates::Yielded
    }

    /// Notes an entry, if it is entered in the state that `update` returns. Fails if memory for its
    /// name is refused.
    #[inline]
    pub(crate) fn note(
        &mut self,
        entry: ListedEntry<'_>,
        update: impl FnOnce(EntryState) -> EntryState,
    ) -> io::Result<()> {
        if let (Some(state), true) = (EntryState::from_type(entry.d_type()), self.needs_rest()) {
            let state = update(state).with_request(self.request);
            if state.is_entered() {
                self.pending.push(state, entry.name())?;
            }
        }
        Ok(())
    }

    /// Removes the names of the entries that were noted, but none that the caller has named.
    pub(crate) fn forget_passed(&mut self) {
        if self.needs_rest() {
            self.pending.truncate(self.level_start);
        }
    }

    /// Removes all names of the current directory. From now on the walk enters only those that the
    /// caller names.
    #[inline]
    pub(crate) fn skip_all(&mut self) {
        self.pending.truncate(self.level_start);
        if self.candidates == Candidates::Yielded {
            self.candidates = Candidates::Named;
        }
    }

    /// Pushes a name that the caller wants to be entered. Returns `false` where nothing can be
    /// entered, and an error without [`skip_all`](Self::skip_all) or if no entry has such a name.
    pub(crate) fn name(&mut self, name: &[u8]) -> io::Result<bool> {
        let is_invalid =
            matches!(name, b"" | b"." | b"..") || name.contains(&0) || name.contains(&b'/');
        if is_invalid {
            return Err(Errno::INVAL.into());
        }
        match self.candidates {
            Candidates::None => Ok(false),
            Candidates::Named => {
                let state = match self.request {
                    EntryState::FOLLOWED => EntryState::NAMED_FOLLOWED,
                    _ => EntryState::NAMED_DIRECTORY,
                };
                self.pending.push(state, name)?;
                Ok(true)
            }
            Candidates::Yielded => {
                let why = "a directory is named without `skip_subdirs`, and would be entered twice";
                Err(io::Error::new(io::ErrorKind::InvalidInput, why))
            }
        }
    }
}
