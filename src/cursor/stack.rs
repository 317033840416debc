//! `Stack`, `Level`: the levels on the way from the root to the current directory that have something to do.
//!
//! ```text
//! levels   /usr     share    doc      python3   examples
//!          open     closed   closed   open      open
//!          base                                 top, the current directory
//! ```
//!
//! The shallowest level is the base. When as many levels are open as may be, the shallowest open one between the base and the top
//! is closed. The walk comes back to a closed level when it has nothing left to do below it. If it does not find the level, that level is lost: this thread
//! does nothing more there, and goes up past it. A shared level that this thread leaves to others is lost to it in the same way.
//!
//! The stack opens nothing, and does not know what is left to do at a level.

use super::identity::Identity;
use super::options::MIN_OPEN;
use super::path::PathBounds;
use super::reopen::{ClosedLevel, DeadEnd, LevelBelow, OpenLevel};
use crate::read_dir::end_marker::EndMarker;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;

pub(crate) struct Stack<T> {
    /// The base first, the top last.
    levels: Vec<Level<T>>,
    /// How many of them are open.
    open: usize,
    /// How many may be open. Less than the caller's `max_open` once the system has refused a descriptor.
    limit: usize,
    /// Of the levels before this one, only the base is open.
    closed_end_index: usize,
}

pub(crate) struct Level<T> {
    /// Private, so only the stack changes it, and counts.
    state: LevelState,
    pub(crate) bounds: PathBounds,
    pub(crate) end_marker: EndMarker,
    /// What is left to do there. Only a `WalkDirs` or a `Walk` knows what that is.
    pub(crate) remaining: T,
}

/// What the walk has of a level.
pub(crate) enum LevelState {
    Open(OwnedFd),
    /// How to know it again, or the error of `statx`.
    Closed(Result<Identity, Errno>),
    /// This thread does not come back to it: it was not found, or is left to the other threads there.
    Lost(Option<DeadEnd>),
}

impl<T> Level<T> {
    #[inline]
    pub(crate) fn new(
        state: LevelState,
        bounds: PathBounds,
        end_marker: EndMarker,
        remaining: T,
    ) -> Self {
        Self { state, bounds, end_marker, remaining }
    }

    #[inline]
    pub(crate) fn open_dir(&self) -> Option<BorrowedFd<'_>> {
        if let LevelState::Open(dir) = &self.state { Some(dir.as_fd()) } else { None }
    }

    #[inline]
    pub(crate) fn dir(&self) -> BorrowedFd<'_> {
        self.open_dir().expect("BUG: the level is not open")
    }

    /// For its visit.
    #[inline]
    pub(crate) fn dir_and_remaining(&mut self) -> (BorrowedFd<'_>, &mut T) {
        let LevelState::Open(dir) = &self.state else { panic!("BUG: the level is not open") };
        (dir.as_fd(), &mut self.remaining)
    }

    /// The identity of a level that is not lost: noted when it was closed, or now.
    pub(crate) fn identity(&self) -> Option<Result<Identity, Errno>> {
        match &self.state {
            LevelState::Open(dir) => Some(Identity::note(dir.as_fd())),
            LevelState::Closed(identity) => Some(*identity),
            LevelState::Lost(_) => None,
        }
    }

    /// What the way back to the level above can begin at.
    pub(crate) fn below(&self) -> LevelBelow<'_> {
        match &self.state {
            LevelState::Open(dir) => {
                LevelBelow::Open(OpenLevel { dir: dir.as_fd(), bounds: self.bounds })
            }
            LevelState::Closed(_) => LevelBelow::Lost(None),
            LevelState::Lost(dead_end) => LevelBelow::Lost(*dead_end),
        }
    }

    #[inline]
    fn is_open(&self) -> bool {
        matches!(self.state, LevelState::Open(_))
    }
}

impl<T> Stack<T> {
    pub(crate) const fn new(limit: usize) -> Self {
        Self { levels: Vec::new(), open: 0, limit, closed_end_index: 0 }
    }

    /// The memory stays. A state may panic when it is dropped: that comes last.
    pub(crate) fn clear(&mut self, limit: usize) {
        (self.open, self.limit, self.closed_end_index) = (0, limit, 0);
        self.levels.clear();
    }

    #[inline]
    pub(crate) fn levels(&self) -> &[Level<T>] {
        &self.levels
    }

    #[inline]
    pub(crate) fn levels_mut(&mut self) -> &mut [Level<T>] {
        &mut self.levels
    }

    #[inline]
    pub(crate) fn top(&self) -> &Level<T> {
        self.levels.last().expect("BUG: there is no level")
    }

    #[inline]
    pub(crate) fn top_mut(&mut self) -> &mut Level<T> {
        self.levels.last_mut().expect("BUG: there is no level")
    }

    #[inline]
    pub(crate) fn push(&mut self, level: Level<T>) {
        self.open += usize::from(level.is_open());
        self.levels.push(level);
    }

    /// The child that is open as `dir` takes the place of the top, and inherits what is left there.
    #[inline]
    pub(crate) fn replace_top(
        &mut self,
        dir: OwnedFd,
        bounds: PathBounds,
        end_marker: EndMarker,
    ) -> &mut T {
        let top = self.levels.last_mut().expect("BUG: there is no level");
        self.open += usize::from(!top.is_open());
        (top.state, top.bounds, top.end_marker) = (LevelState::Open(dir), bounds, end_marker);
        &mut top.remaining
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Level<T> {
        let level = self.levels.pop().expect("BUG: there is no level");
        self.open -= usize::from(level.is_open());
        self.closed_end_index = self.closed_end_index.min(self.levels.len().saturating_sub(1));
        level
    }

    /// Makes `level`, which is above the base, the new base.
    pub(crate) fn insert_bottom(&mut self, level: Level<T>) {
        self.open += usize::from(level.is_open());
        self.closed_end_index = 0;
        self.levels.insert(0, level);
    }

    /// Whether as many levels are open as may be.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.open >= self.limit
    }

    /// The system has refused a descriptor: gives one back, and makes do with fewer from now on. Returns whether it could.
    pub(crate) fn lower_limit(&mut self) -> bool {
        let is_closed = self.close_shallowest();
        self.limit = (self.open + 1).max(MIN_OPEN);
        is_closed
    }

    /// The shallowest open level that the walk may close, or share: neither the base nor the top.
    pub(crate) fn shallowest_open_index(&self) -> Option<usize> {
        let top = self.levels.len().checked_sub(1)?;
        (self.closed_end_index.max(1)..top).find(|index| self.levels[*index].is_open())
    }

    /// Closes the first level that may be closed. Returns whether there was one.
    #[cold]
    pub(crate) fn close_shallowest(&mut self) -> bool {
        // Before it is closed, as this needs its descriptor. An error of `statx` is reported when the walk comes back.
        let first = self
            .shallowest_open_index()
            .and_then(|index| Some((index, self.levels[index].identity()?)));
        let Some((index, identity)) = first else { return false };
        self.set(index, LevelState::Closed(identity));
        self.closed_end_index = index;
        true
    }

    /// Whether the level right above the top is closed.
    #[inline]
    pub(crate) fn is_level_above_closed(&self) -> bool {
        matches!(self.levels[..], [.., Level { state: LevelState::Closed(_), .. }, _])
    }

    /// The closed level right above the top.
    pub(crate) fn closed_level_above(&self) -> Option<ClosedLevel> {
        let [.., Level { state: LevelState::Closed(identity), bounds, .. }, _] = &self.levels[..]
        else {
            return None;
        };
        Some(ClosedLevel { bounds: *bounds, identity: *identity })
    }

    /// The way down by names to the level right above the top: its start, which is the deepest open level above that, and the
    /// levels on it. `None` if there is no such level.
    pub(crate) fn path_by_names(
        &self,
    ) -> Option<(OpenLevel<'_>, impl Iterator<Item = ClosedLevel>)> {
        let [above @ .., goal, _] = &self.levels[..] else { return None };
        let at = above.iter().rposition(Level::is_open)?;
        let start = OpenLevel { dir: above[at].dir(), bounds: above[at].bounds };
        let closed = |level: &Level<T>| {
            let identity = level.identity().unwrap_or(Err(Errno::NOENT));
            ClosedLevel { bounds: level.bounds, identity }
        };
        Some((start, above[at + 1..].iter().chain([goal]).map(closed)))
    }

    /// The level right above the top is open again.
    pub(crate) fn reopen_level_above(&mut self, dir: OwnedFd) {
        self.set(self.levels.len() - 2, LevelState::Open(dir));
    }

    /// The level right above the top cannot be found. Returns what is left to do there and at the top.
    pub(crate) fn lose_level_above(&mut self, dead_end: Option<DeadEnd>) -> [&mut T; 2] {
        self.set(self.levels.len() - 2, LevelState::Lost(dead_end));
        let [.., above, top] = &mut self.levels[..] else {
            unreachable!("BUG: there is no level above the top")
        };
        [&mut above.remaining, &mut top.remaining]
    }

    /// The top is left to the other threads there, or one of them did not find it.
    pub(crate) fn lose_top(&mut self) {
        self.set(self.levels.len() - 1, LevelState::Lost(None));
    }

    fn set(&mut self, index: usize, state: LevelState) {
        let level = &mut self.levels[index];
        self.open -= usize::from(level.is_open());
        level.state = state;
        self.open += usize::from(level.is_open());
        self.closed_end_index = self.closed_end_index.min(index);
    }

    /// What holds between two steps. A tree may have any number of levels, so it looks at all of them only if they are few.
    pub(crate) fn check(&self) {
        let levels = &self.levels[..];
        let few = levels.len() <= 64;
        assert!(
            !few || self.open == levels.iter().filter(|level| level.is_open()).count(),
            "open levels are miscounted"
        );
        assert!(
            !few || levels.iter().take(self.closed_end_index).skip(1).all(|level| !level.is_open()),
            "a level is open, and would never be closed"
        );
        if let Some(top) = levels.last() {
            assert!(!matches!(top.state, LevelState::Closed(_)), "the current directory is closed");
        }
        if let [.., above, top] = levels {
            assert!(
                above.bounds.depth < top.bounds.depth,
                "a level is not below the one before it"
            );
            assert!(
                above.bounds.path_end <= top.bounds.path_end,
                "the path of a level does not begin with that of the one above"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{EndMarker, Errno, Level, LevelState, PathBounds, Stack};
    use std::fs::File;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// An open base, a closed level, and an open top.
    fn stack() -> Stack<()> {
        let mut stack = Stack::new(32);
        for depth in 0..3 {
            let dir = LevelState::Open(File::open("/dev/null").unwrap().into());
            let bounds = PathBounds { depth, name_start: 0, path_end: depth };
            stack.push(Level::new(dir, bounds, EndMarker::NONE, ()));
        }
        stack.levels[1].state = LevelState::Closed(Err(Errno::NOENT));
        (stack.open, stack.closed_end_index) = (2, 2);
        stack
    }

    #[test]
    #[cfg_attr(miri, ignore = "opens a file")]
    fn what_does_not_hold_is_noticed() {
        stack().check();
        let changes: [fn(&mut Stack<()>); 5] = [
            |stack| stack.open = 3,
            |stack| stack.closed_end_index = 3,
            |stack| {
                (stack.levels[2].state, stack.open) = (LevelState::Closed(Err(Errno::NOENT)), 1)
            },
            |stack| stack.levels[1].bounds.depth = 2,
            |stack| stack.levels[1].bounds.path_end = 3,
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut stack = stack();
            change(&mut stack);
            assert!(catch_unwind(AssertUnwindSafe(|| stack.check())).is_err(), "change {number}");
        }
    }
}
