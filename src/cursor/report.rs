//! Decides which errors a walk reports, so that each error is reported once. This module does not
//! know where an error comes from, nor how it reaches the caller.
//!
//! | an error of | is reported by | unless |
//! |---|---|---|
//! | reading a directory: [`Reading`] | its `Dir`, or the walk after it | it was reported before |
//! | opening an entry: [`is_open_error_reported`] | the walk | a query of the entry has failed |
//! | reopening a closed level: [`Loss`] | the thread that notices first | |

use super::raw_open::lacks_descriptor;
use crate::read_dir::entry_state::EntryState;
use crate::sync::atomic::{AtomicBool, Ordering::Relaxed};
use rustix::io::Errno;

/// The progress in reading the current directory. The progress decides whether the `Dir` or the
/// walk reports an error of reading.
#[derive(Clone, Copy, Default)]
pub(crate) struct Reading {
    /// The entries that remain to be read.
    pub(crate) remainder: Remainder,
    /// The reason why the directory cannot be read.
    pub(crate) unreadable: Option<Errno>,
}

/// The entries that a directory has not yielded, and whether the walk needs them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Remainder {
    /// The directory was read to its end, or an error of reading it was reported.
    #[default]
    Read,
    /// The walk does not need the remaining entries. An error is reported only if the caller reads
    /// them.
    Skipped,
    /// The walk reads the remaining entries before the next directory, and reports an error.
    Unread,
}

impl Reading {
    /// Returns `true` if the walk has to read the remaining entries.
    #[inline]
    pub(crate) fn is_unread(self) -> bool {
        self.remainder == Remainder::Unread
    }

    /// Notes that the walk does not need the remaining entries.
    #[inline]
    pub(crate) fn skip(&mut self) {
        if self.is_unread() {
            self.remainder = Remainder::Skipped;
        }
    }

    /// Notes that the directory has been read to its end or to an error. Returns the reason why the
    /// directory cannot be read, unless that reason has been reported.
    #[inline]
    pub(crate) fn end(&mut self) -> Option<Errno> {
        let unreported = if self.remainder == Remainder::Read { None } else { self.unreadable };
        self.remainder = Remainder::Read;
        unreported
    }
}

/// Returns `true` if the walk reports that it cannot open an entry. If a query of the entry has
/// failed, the caller knows that error. But no query fails for lack of descriptors, so that error
/// is always reported.
pub(crate) fn is_open_error_reported(state: EntryState, errno: Errno) -> bool {
    !state.query_failed() || lacks_descriptor(errno)
}

/// A flag that is set when a level that several threads share is lost.
#[derive(Default)]
pub(crate) struct Loss(AtomicBool);

impl Loss {
    /// Notes that a thread did not find the level. Returns `true` if this thread is the first,
    /// which reports the error.
    pub(crate) fn note(&self) -> bool {
        !self.0.swap(true, Relaxed)
    }

    pub(crate) fn is_noted(&self) -> bool {
        self.0.load(Relaxed)
    }
}
