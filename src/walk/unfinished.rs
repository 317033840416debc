//! `Unfinished`: what the walk has still to do about the current directory before it goes on.

use rustix::io::Errno;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Unfinished {
    #[default]
    Nothing,
    /// To look for directories among the entries that were not lent.
    Rest,
    /// To tell why the directory may not be read.
    Refused { errno: Errno, tell: Tell },
}

/// Whether the caller is told why a directory may not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tell {
    Always,
    IfRead,
    NoMore,
}

impl Unfinished {
    /// The rest has been read, or need not be. Returns why the directory may not be read, unless the caller was told.
    #[inline]
    pub(super) fn end(&mut self) -> Option<Errno> {
        match self {
            Self::Nothing | Self::Rest => {
                *self = Self::Nothing;
                None
            }
            _ => self.tell(),
        }
    }

    #[cold]
    fn tell(&mut self) -> Option<Errno> {
        match self {
            Self::Refused { errno, tell: tell @ (Tell::Always | Tell::IfRead) } => {
                *tell = Tell::NoMore;
                Some(*errno)
            }
            _ => None,
        }
    }

    /// The walk need not look for directories here.
    #[inline]
    pub(super) fn skip(&mut self) {
        match self {
            Self::Refused { tell, .. } if *tell == Tell::Always => *tell = Tell::IfRead,
            Self::Nothing | Self::Rest => *self = Self::Nothing,
            _ => {}
        }
    }
}
