//! `Unread`: the entries of the current directory in which the walk has not looked for directories.

use rustix::io::Errno;
use std::io;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    Nothing,
    /// Those after the ones that were lent.
    Rest,
    /// There was no memory to note a directory. The caller does not know yet.
    OutOfMemory,
    /// The directory may not be read, and whoever reads it is told. If `is_due`, the caller is told even if it does not.
    Refused {
        errno: Errno,
        is_due: bool,
    },
    /// The caller stopped the walk.
    Stopped,
}

impl Unread {
    /// The rest has been read, or need not be. Returns what the caller does not know yet.
    #[inline]
    pub(super) fn end(&mut self) -> Option<io::Error> {
        match *self {
            Self::Nothing | Self::Rest => {
                *self = Self::Nothing;
                None
            }
            _ => self.tell(),
        }
    }

    /// The walk need not look for directories here.
    #[inline]
    pub(super) fn skip(&mut self) {
        match self {
            Self::Refused { is_due, .. } => *is_due = false,
            _ => drop(self.end()),
        }
    }

    #[cold]
    fn tell(&mut self) -> Option<io::Error> {
        let error = match *self {
            Self::OutOfMemory => Some(io::ErrorKind::OutOfMemory.into()),
            Self::Refused { errno, .. } => Some(errno.into()),
            _ => return None, // a stopped walk stays so
        };
        *self = Self::Nothing;
        error
    }
}
