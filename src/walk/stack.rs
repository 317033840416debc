//! `Stack`, `Level`: the levels on the way from the root to the current directory that have something to do.
//!
//! ```text
//! levels   /usr     share    doc      python3   examples
//!          open     closed   closed   open      open
//!          base                                 top, the current directory
//! closed            their identities
//! ```
//!
//! The shallowest level is the base. When too many descriptors are open, the shallowest level but the base is closed. So the
//! closed levels are those right after the base, and the walk comes back to the last of them first. A level that is not found is
//! lost: it stays on the stack, with nothing to do, until the walk has gone up past it.

use super::bounds::Bounds;
use super::identity::Identity;
use super::options::MIN_OPEN;
use super::shared_level::SharedLevel;
use super::way_back::Start;
use crate::end_marker::EndMarker;
use crate::sync::Arc;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;

pub(super) struct Stack<S> {
    /// The base first, the top last.
    pub(super) levels: Vec<Level<S>>,
    /// How many of them may be open. Less than the caller's `max_open` once the system has refused a descriptor.
    limit: usize,
    /// One for each closed level, `levels[1..=closed.len()]`: its identity, or the error of `statx`.
    closed: Vec<Result<Identity, Errno>>,
}

pub(super) struct Level<S> {
    /// `None` if it is closed, or if the walk did not find it on the way back.
    pub(super) fd: Option<OwnedFd>,
    pub(super) is_second_visit: bool,
    pub(super) bounds: Bounds,
    /// Where the first of its names still to do begins.
    pub(super) next_at: usize,
    pub(super) end_marker: EndMarker,
    /// `Some` if several threads walk it.
    pub(super) shared: Option<Arc<SharedLevel<S>>>,
    /// The caller's.
    pub(super) state: S,
}

impl<S> Level<S> {
    #[inline]
    pub(super) fn new(fd: Option<OwnedFd>, bounds: Bounds, end_marker: EndMarker, state: S) -> Self {
        Self { fd, is_second_visit: false, bounds, next_at: bounds.names_at, end_marker, shared: None, state }
    }

    #[inline]
    pub(super) fn open_dir(&self) -> Option<BorrowedFd<'_>> {
        self.fd.as_ref().map(AsFd::as_fd)
    }

    #[inline]
    pub(super) fn dir(&self) -> BorrowedFd<'_> {
        self.open_dir().expect("BUG: the level is closed")
    }

    /// Where a way back can begin, if it is open.
    pub(super) fn start(&self) -> Option<Start<'_>> {
        self.open_dir().map(|dir| Start { dir, bounds: self.bounds })
    }
}

impl<S> Stack<S> {
    pub(super) const fn new(limit: usize) -> Self {
        Self { levels: Vec::new(), limit, closed: Vec::new() }
    }

    /// The memory stays.
    pub(super) fn clear(&mut self, limit: usize) {
        self.limit = limit;
        self.levels.clear();
        self.closed.clear();
    }

    #[inline]
    pub(super) fn top(&self) -> &Level<S> {
        self.levels.last().expect("BUG: there is no level")
    }

    #[inline]
    pub(super) fn top_mut(&mut self) -> &mut Level<S> {
        self.levels.last_mut().expect("BUG: there is no level")
    }

    /// Makes `level`, which is above the base, the new base.
    pub(super) fn put_base(&mut self, level: Level<S>) {
        assert!(self.closed.is_empty(), "BUG: a closed level would not come right after the base");
        self.levels.insert(0, level);
    }

    /// Whether as many levels are open as may be.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.open_count() >= self.limit
    }

    /// The system has refused a descriptor: gives one back, and makes do with fewer from now on. Returns whether it could.
    pub(super) fn lower_limit(&mut self) -> bool {
        let is_closed = self.close_shallowest();
        self.limit = (self.open_count() + 1).max(MIN_OPEN);
        is_closed
    }

    /// Lost levels count as open. That limits nothing: while there is one, the walk opens no directory.
    #[inline]
    fn open_count(&self) -> usize {
        self.levels.len() - self.closed.len()
    }

    /// Whether the level right above the top is closed.
    #[inline]
    pub(super) fn is_closed_above_top(&self) -> bool {
        !self.closed.is_empty() && self.closed.len() + 2 == self.levels.len()
    }

    pub(super) fn has_no_closed(&self) -> bool {
        self.closed.is_empty()
    }

    /// The index of the first open level after the closed ones.
    pub(super) fn first_below_closed(&self) -> usize {
        1 + self.closed.len()
    }

    pub(super) fn is_closed(&self, index: usize) -> bool {
        (1..=self.closed.len()).contains(&index)
    }

    /// Closes the shallowest level but the base, unless it is the top. Returns whether it did.
    #[cold]
    pub(super) fn close_shallowest(&mut self) -> bool {
        let index = self.first_below_closed();
        if index + 1 >= self.levels.len() {
            return false;
        }
        // Before it is closed, as this needs its descriptor. An error of `statx` is reported when the walk comes back.
        self.closed.push(self.identity(index));
        self.levels[index].fd = None;
        true
    }

    /// The identity of this level: noted when it was closed, or now.
    pub(super) fn identity(&self, index: usize) -> Result<Identity, Errno> {
        match self.levels[index].open_dir() {
            Some(dir) => Identity::note(dir),
            None => self.closed[index - 1],
        }
    }

    /// The closed level that the walk comes back to next, and the level below it, unless that is lost.
    pub(super) fn last_closed(&self) -> (Bounds, Result<Identity, Errno>, Option<Start<'_>>) {
        let index = self.closed.len();
        (self.levels[index].bounds, self.closed[index - 1], self.levels[index + 1].start())
    }

    /// The way down by names to the last closed level: its start, and the levels on it.
    pub(super) fn way_down(&self) -> (Start<'_>, impl Iterator<Item = (Bounds, Result<Identity, Errno>)>) {
        let start = self.levels[0].start().expect("BUG: the base is closed");
        (start, self.levels[1..].iter().map(|level| level.bounds).zip(self.closed.iter().copied()))
    }

    /// The last closed level is open again.
    pub(super) fn reopen(&mut self, dir: OwnedFd) {
        self.levels[self.closed.len()].fd = Some(dir);
        self.closed.pop();
    }

    /// The last closed level, right above the top, cannot be found: its names cannot be opened any more, and those of the top are
    /// done. The names from `names_at` on are to be dropped. Returns whether that is to be reported.
    pub(super) fn lose(&mut self, names_at: usize) -> bool {
        let index = self.closed.len();
        self.levels[index].fd = None;
        for level in &mut self.levels[index..] {
            (level.bounds.names_at, level.next_at) = (names_at, names_at);
        }
        self.closed.pop();
        self.levels[index].shared.as_ref().is_none_or(|shared| shared.lose())
    }

    /// What holds between two steps. It looks at few levels, because a tree may have any number. `names` is where the pending
    /// names end.
    pub(super) fn check(&self, names: usize) {
        let Self { levels, closed, .. } = self;
        let Some(top) = levels.last() else {
            assert!(closed.is_empty() && names == 0, "nothing is left, but there are closed levels or names");
            return;
        };
        assert!(top.bounds.names_at <= top.next_at && top.next_at <= names, "the top's next name is elsewhere");
        assert!(closed.len() < levels.len(), "the current directory is closed");
        if let [first, .., last] | [first @ last] = &levels[1..=closed.len()] {
            assert!(
                first.fd.is_none() && last.fd.is_none(),
                "a level right after the base is open, and counts as closed"
            );
        }
        if let [.., above, top] = &levels[..] {
            assert!(above.bounds.depth < top.bounds.depth, "a level is not below the one before it");
            assert!(
                above.bounds.path_end <= top.bounds.path_end,
                "the path of a level does not begin with that of the one above"
            );
            assert!(above.next_at <= top.bounds.names_at, "a level's names do not come after those of the one above");
        }
    }
}
