//! `Level`, `State`, `Spot`: one directory on the way from the root to the current directory.

use super::shared::Shared;
use super::way_back::From;
use crate::EndMarker;
use crate::error::Error;
use crate::sync::Arc;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;

#[derive(Debug)]
pub(super) struct Level<S> {
    pub(super) state: State,
    pub(super) spot: Spot,
    /// Where the first of its names still to do begins.
    pub(super) next_at: usize,
    pub(super) end_marker: EndMarker,
    /// `Some` if several threads walk it.
    pub(super) shared: Option<Arc<Shared<S>>>,
    /// The caller's value.
    pub(super) value: S,
}

#[derive(Debug)]
pub(super) enum State {
    First(OwnedFd),
    /// At its second visit.
    Second(OwnedFd),
    Closed,
    /// The walk did not find it on the way back.
    Lost,
}

/// Where a level is: in the tree, in the path, and among the pending names.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spot {
    pub(super) depth: usize,
    /// Where its name begins in the path.
    pub(super) name_at: usize,
    /// Where its path ends.
    pub(super) path_end: usize,
    /// Where its names begin in [`Pending`].
    pub(super) names_at: usize,
}

impl<S> Level<S> {
    #[inline]
    pub(super) fn new(state: State, spot: Spot, end_marker: EndMarker, value: S) -> Self {
        Self { state, spot, next_at: spot.names_at, end_marker, shared: None, value }
    }

    #[inline]
    pub(super) fn open_dir(&self) -> Option<BorrowedFd<'_>> {
        match &self.state {
            State::First(dir) | State::Second(dir) => Some(dir.as_fd()),
            State::Closed | State::Lost => None,
        }
    }

    #[inline]
    pub(super) fn dir(&self) -> BorrowedFd<'_> {
        self.open_dir().expect("BUG: the level is closed")
    }

    pub(super) fn from(&self) -> Option<From<'_>> {
        self.open_dir().map(|dir| From { dir, spot: self.spot })
    }
}

impl Spot {
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
