//! `Bounds`: where a level is in the tree and in the path.

use crate::error::Error;
use std::io;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bounds {
    pub(super) depth: usize,
    /// Where its name begins in the path.
    pub(super) name_at: usize,
    /// Where its path ends.
    pub(super) path_end: usize,
}

impl Bounds {
    /// Its path. `path` is its own, or that of a directory below it.
    #[inline]
    pub(super) fn path<'p>(&self, path: &'p [u8]) -> &'p [u8] {
        &path[..self.path_end]
    }

    /// An error that belongs to it. `path` is as for [`path`](Self::path).
    #[cold]
    pub(super) fn error(&self, path: &[u8], cause: impl Into<io::Error>) -> Error {
        Error::new(self.path(path), self.depth, cause)
    }
}
