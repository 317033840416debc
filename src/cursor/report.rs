//! Decides which errors a walk reports: each error once. A place that could report an error asks
//! here whether it has to. This module does not know where an error comes from, nor how it reaches
//! the caller.
//!
//! | an error of | is reported by | unless |
//! |---|---|---|
//! | reading: [`Reading`] | the `Dir`, or the walk if the `Dir` is dropped | it is reported |
//! | opening: [`is_open_error_reported`] | the walk | the caller's query has failed |
//! | reopening a closed level: [`Loss`] | the thread that notices first | |
//!
//! While the type of an entry is uncertain, an entry that is gone or is not a directory is not an
//! error: see `resolve_child` in `cursor/mod.rs`. A failed `statx` is not a failed query.

use super::raw_open::lacks_descriptor;
use crate::read_dir::entry_state::EntryState;
use crate::sync::atomic::{AtomicBool, Ordering::Relaxed};
use rustix::io::Errno;

/// The state of reading the current directory, which decides who reports an error of it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Reading {
    /// Whether the walk reads the remaining entries before the next directory.
    pub(crate) is_unread: bool,
    /// The reason why the directory cannot be read, until it is reported.
    pub(crate) unreadable: Option<Errno>,
}

impl Reading {
    /// Notes that the directory has been read to its end or to an error. Returns why the directory
    /// cannot be read, if that is still to be reported.
    #[inline]
    pub(crate) fn end(&mut self) -> Option<Errno> {
        self.is_unread = false;
        self.unreadable.take()
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
