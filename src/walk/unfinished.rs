//! `Unfinished`: the entries of the current directory in which the walk has not looked for directories.

use rustix::io::Errno;
use std::io;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unfinished {
    Nothing,
    /// Those after the ones that were lent.
    Rest,
    /// There was no memory to note a directory. The caller does not know yet.
    OutOfMemory,
    /// The directory may not be read.
    Refused {
        errno: Errno,
        tell: Tell,
    },
    /// The caller stopped the walk.
    Stopped,
}

/// Whether the caller is told why a directory may not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tell {
    Always,
    IfRead,
    NoMore,
}

impl Unfinished {
    /// The rest has been read, or need not be. Returns what the caller does not know yet.
    #[inline]
    pub(super) fn end(&mut self) -> Option<io::Error> {
        match self {
            Self::Nothing | Self::Rest => {
                *self = Self::Nothing;
                None
            }
            _ => self.tell(),
        }
    }

    #[cold]
    fn tell(&mut self) -> Option<io::Error> {
        match self {
            Self::OutOfMemory => {
                *self = Self::Nothing;
                Some(io::ErrorKind::OutOfMemory.into())
            }
            Self::Refused { errno, tell: tell @ (Tell::Always | Tell::IfRead) } => {
                *tell = Tell::NoMore;
                Some((*errno).into())
            }
            _ => None, // a stopped walk stays so
        }
    }

    /// The walk need not look for directories here.
    #[inline]
    pub(super) fn skip(&mut self) {
        match self {
            Self::Refused { tell, .. } if *tell == Tell::Always => *tell = Tell::IfRead,
            Self::Refused { .. } => {}
            _ => drop(self.end()),
        }
    }
}
