//! Decides which errors a walk reports: each error once. A place that could report an error asks
//! here whether it has to. This module does not know where an error comes from, nor how it reaches
//! the caller.
//!
//! | an error of | is reported by | unless |
//! |---|---|---|
//! | reading a directory: [`Reading`] | its `Dir`, or the walk if the `Dir` is dropped before | it is reported already |
//! | opening an entry: [`is_open_error_reported`] | the walk | the caller's query of the entry has failed |
//! | reopening a closed level: [`Loss`] | the thread that notices first | |

use super::raw_open::lacks_descriptor;
use crate::read_dir::entry_state::EntryState;
use crate::sync::atomic::{AtomicBool, Ordering::Relaxed};
use rustix::io::Errno;

/// How much of the current directory remains to be read, and thereby who reports an error of
/// reading it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Reading {
    pub(crate) remainder: Remainder,
    /// Why the directory cannot be read.
    pub(crate) unreadable: Option<Errno>,
}

/// What the walk does with the entries that a directory has not yielded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Remainder {
    /// The directory was read to its end, or an error of reading it was reported.
    #[default]
    Read,
    /// The walk does not need the remaining entries. If the caller reads them, an error is
    /// reported.
    Skipped,
    /// The walk reads the remaining entries before the next directory, and reports an error.
    Unread,
}

impl Reading {
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

    /// Notes that the directory has been read to its end or to an error. Returns why the directory
    /// cannot be read, if that is still to be reported.
    #[inline]
    pub(crate) fn end(&mut self) -> Option<Errno> {
        let unreported = if self.remainder == Remainder::Read { None } else { self.unreadable };
        self.remainder = Remainder::Read;
        unreported
    }
}

/// Returns `true` if the walk reports that it cannot open an entry. If the caller's query of the
/// entry has failed, the caller knows already. But a lack of descriptors is not an error of a
/// query.
pub(crate) fn is_open_error_reported(state: EntryState, errno: Errno) -> bool {
    !state.query_failed() || lacks_descriptor(errno)
}

/// Whether a level that several threads share is lost.
#[derive(Default)]
pub(crate) struct Loss(AtomicBool);

impl Loss {
    /// Notes that a thread did not find the level. Returns `true` if this thread reports it.
    pub(crate) fn note(&self) -> bool {
        !self.0.swap(true, Relaxed)
    }

    pub(crate) fn is_noted(&self) -> bool {
        self.0.load(Relaxed)
    }
}
