//! `Stack`, `Level`: the levels on the path from the root to the current directory.
//!
//! The stack opens nothing, and does not know what remains to do at a level.
//!
//! ```text
//! levels   /usr     share    doc      python3   examples
//!          open     closed   closed   open      open
//!          bottom                               top, the current directory
//! ```
//!
//! When as many levels are open as the walk may hold, the stack closes the shallowest open one
//! between the bottom and the top. The walk reopens a closed level when nothing remains to do below
//! it. A level that cannot be found again is lost: this thread does nothing more there, and returns
//! to the level above it. A shared level that this thread leaves to the other threads is lost to
//! this thread in the same way.

use super::identity::Identity;
use super::options::Options;
use super::path::{PathBounds, TreePath};
use super::spare::SPARE_COUNT;
use crate::allocate::try_collect;
use crate::read_dir::entry::Directory;
use crate::read_dir::mount::Mount;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::mem;
use std::sync::Arc;

/// The fewest levels that are open when a level is entered: the bottom, the parent, and the level.
const LEAST_OPEN: usize = 3;

/// A stack of levels, from the bottom to the top.
pub(crate) struct Stack<T> {
    pub(crate) levels: Vec<Level<T>>,
    /// The number of levels that may be open. It falls below the caller's `max_open` once the
    /// system has refused a descriptor.
    pub(super) limit: usize,
    /// The index after the last closed level. The levels before this index are closed, except the
    /// bottom, and the levels from this index on are open or lost.
    closed_end_index: usize,
}

/// A directory on the path from the root to the current directory.
pub(crate) struct Level<T> {
    pub(super) state: LevelState,
    pub(crate) bounds: PathBounds,
    pub(crate) mount: Mount,
    /// The work that remains there, which only a `WalkDirs` or a `Walk` understands.
    pub(crate) remaining: T,
}

/// The state of a level's descriptor.
pub(crate) enum LevelState {
    Open(OwnedFd),
    /// Open, and parts of its work were split off for other threads.
    Shared(Arc<OwnedFd>),
    /// The identity by which the walk recognises it, or the error of `statx`.
    Closed(Result<Identity, Errno>),
    /// It was not found again, or this thread has left it to the other threads there.
    Lost(Option<DeadEnd>),
}

/// A level whose descriptor was closed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClosedLevel {
    pub(crate) bounds: PathBounds,
    /// The identity by which the walk recognises it, or the error of `statx`.
    pub(crate) identity: Result<Identity, Errno>,
}

/// The directory and the bounds of the open level that a search by names starts from, and the
/// closed levels from there to the goal.
pub(crate) type PathByNames<'t> = (BorrowedFd<'t>, PathBounds, Vec<ClosedLevel>);

/// A name on the path that leads to another directory, or to none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeadEnd {
    /// The offset at which the name ends in the path.
    pub(super) name_end: usize,
    /// The answer of the kernel.
    pub(super) errno: Errno,
}

impl LevelState {
    #[inline]
    fn open_dir(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Open(dir) => Some(dir.as_fd()),
            Self::Shared(dir) => Some(dir.as_fd()),
            Self::Closed(_) | Self::Lost(_) => None,
        }
    }
}

impl<T> Level<T> {
    #[inline]
    pub(crate) fn open_dir(&self) -> Option<BorrowedFd<'_>> {
        self.state.open_dir()
    }

    /// Returns the descriptor of an open level, which is shared from now on.
    pub(super) fn share(&mut self) -> Option<Arc<OwnedFd>> {
        self.state = match mem::replace(&mut self.state, LevelState::Lost(None)) {
            LevelState::Open(dir) => LevelState::Shared(Arc::new(dir)),
            state => state,
        };
        if let LevelState::Shared(dir) = &self.state { Some(Arc::clone(dir)) } else { None }
    }

    #[inline]
    pub(crate) fn dir(&self) -> BorrowedFd<'_> {
        self.open_dir().expect("BUG: the level is not open")
    }

    /// Returns the directory of an open level, its mount, and what remains to do there. `path` is
    /// the path of this level or of one below it.
    #[inline]
    pub(crate) fn parts<'a>(&'a mut self, path: &'a TreePath) -> (Directory<'a>, Mount, &'a mut T) {
        let fd = self.state.open_dir().expect("BUG: the level is not open");
        let PathBounds { depth, path_end, .. } = self.bounds;
        let directory = Directory { fd, path: path.prefix(path_end), depth };
        (directory, self.mount, &mut self.remaining)
    }

    /// Returns the level as it is known once it is closed. A lost level has no identity.
    pub(crate) fn closed(&self) -> ClosedLevel {
        let identity = match &self.state {
            LevelState::Closed(identity) => *identity,
            state => state.open_dir().ok_or(Errno::NOENT).and_then(Identity::lasting),
        };
        ClosedLevel { bounds: self.bounds, identity }
    }
}

/// The work that remains at a level.
pub(crate) trait Work {
    /// Does what needs the level's descriptor, which is about to be closed.
    fn before_close(&mut self, _dir: BorrowedFd<'_>, _mount: Mount, _options: &Options) {}

    /// Returns how to reach a bottom level that is closed.
    fn path_by_names(&self) -> Result<PathByNames<'_>, Errno> {
        Err(Errno::NOENT)
    }
}

impl<T: Work> Stack<T> {
    pub(super) const fn new(limit: usize) -> Self {
        Self { levels: Vec::new(), limit, closed_end_index: 1 }
    }

    #[inline]
    pub(crate) fn top(&self) -> &Level<T> {
        self.levels.last().expect("BUG: there is no level")
    }

    #[inline]
    pub(crate) fn top_mut(&mut self) -> &mut Level<T> {
        self.levels.last_mut().expect("BUG: there is no level")
    }

    /// Returns the depth of a child of the current directory, or 0 if there is no level.
    #[inline]
    pub(super) fn next_depth(&self) -> usize {
        self.levels.last().map_or(0, |top| top.bounds.depth.wrapping_add(1))
    }

    /// Removes the top. The level above it is not closed.
    #[inline]
    pub(crate) fn pop(&mut self) -> T {
        self.levels.pop().expect("BUG: there is no level").remaining
    }

    /// Returns the number of open levels, or more if levels are lost.
    #[inline]
    fn open_count(&self) -> usize {
        self.levels.len() + 1 - self.closed_end_index
    }

    /// Closes a level if no other one may be open, because a directory is about to be opened.
    #[inline]
    pub(crate) fn close_excess(&mut self, options: &Options) {
        if self.open_count() >= self.limit {
            self.close_shallowest(options);
        }
    }

    /// Closes levels and lowers the limit, because the system has refused a descriptor for another
    /// level, or few remain. Leaves half of those that are open to the program, but not more than
    /// [`SPARE_COUNT`]. Returns `false` if no level can be closed.
    #[cold]
    pub(super) fn lower_limit(&mut self, options: &Options, needs_another: bool) -> bool {
        let open_count = self.open_count();
        let spare_count = usize::from(SPARE_COUNT).min(open_count.div_ceil(2));
        self.limit = self.limit.min((open_count - spare_count).max(LEAST_OPEN));
        let least_count = self.limit - usize::from(needs_another);
        while self.open_count() > least_count && self.close_shallowest(options) {}
        self.open_count() < open_count
    }

    /// Returns the index of the shallowest open level between the bottom and the top.
    pub(crate) fn shallowest_open_index(&self) -> Option<usize> {
        let top = self.levels.len().checked_sub(1)?;
        (self.closed_end_index..top).find(|index| self.levels[*index].open_dir().is_some())
    }

    /// Closes the shallowest open level between the bottom and the top. Returns `false` if there is
    /// none.
    #[cold]
    fn close_shallowest(&mut self, options: &Options) -> bool {
        // The identity first: it needs the descriptor. An error of `statx` is reported when the
        // level is reopened.
        let Some(index) = self.shallowest_open_index() else { return false };
        let ClosedLevel { identity, .. } = self.levels[index].closed();
        let Level { state, mount, remaining, .. } = &mut self.levels[index];
        if let LevelState::Open(dir) = mem::replace(state, LevelState::Closed(identity)) {
            remaining.before_close(dir.as_fd(), *mount, options);
        }
        self.closed_end_index = index + 1;
        true
    }

    /// Returns the level right above the top if that level is closed. A child must not replace the
    /// top then: `..` leads from the top to that level, and the process may be unable to search a
    /// child.
    #[inline]
    pub(crate) fn closed_level_above(&self) -> Option<&Level<T>> {
        let [.., above, _] = &self.levels[..] else { return None };
        matches!(above.state, LevelState::Closed(_)).then_some(above)
    }

    /// Returns how to reach the level right above the top by names: the deepest open level above
    /// that level, and the closed levels from there on. Returns `ENOENT` if no level above is open.
    pub(super) fn path_by_names(&self) -> Result<PathByNames<'_>, Errno> {
        let [above @ .., goal, _] = &self.levels[..] else { return Err(Errno::NOENT) };
        if above.is_empty() {
            return goal.remaining.path_by_names();
        }
        let at = above.iter().rposition(|level| level.open_dir().is_some()).ok_or(Errno::NOENT)?;
        let levels = try_collect(above[at + 1..].iter().chain([goal]).map(Level::closed))?;
        Ok((above[at].dir(), above[at].bounds, levels))
    }

    /// Notes that the top is lost to this thread.
    pub(crate) fn lose_top(&mut self) {
        self.top_mut().state = LevelState::Lost(None);
    }

    /// Sets the state of the level right above the top. Returns the remaining work of both levels.
    pub(super) fn set_level_above(&mut self, state: LevelState) -> [&mut T; 2] {
        let above_index = self.levels.len() - 2;
        self.closed_end_index = self.closed_end_index.min(above_index.max(1));
        let [.., above, top] = &mut self.levels[..] else {
            unreachable!("BUG: there is no level above the top")
        };
        above.state = state;
        [&mut above.remaining, &mut top.remaining]
    }
}

#[cfg(test)]
mod tests {
    use super::{Level, LevelState, Mount, Options, PathBounds, Stack, Work};
    use std::fs::File;

    impl Work for () {}

    fn open() -> LevelState {
        LevelState::Open(File::open("/dev/null").unwrap().into())
    }

    fn push(stack: &mut Stack<()>) {
        stack.close_excess(&Options::default());
        let depth = stack.levels.len();
        let bounds = PathBounds { depth, path_end: depth };
        stack.levels.push(Level { state: open(), bounds, mount: Mount::PLAIN, remaining: () });
    }

    /// Returns the number of open levels, of which the bottom is one.
    fn open_count(stack: &Stack<()>) -> usize {
        assert!(stack.levels[0].open_dir().is_some());
        stack.levels.iter().filter(|level| level.open_dir().is_some()).count()
    }

    /// Not one level more, and not one less.
    #[test]
    #[cfg_attr(miri, ignore = "opens files")]
    fn as_many_levels_stay_open_as_may() {
        const LIMIT: usize = 4;
        let mut stack = Stack::new(LIMIT);
        for _ in 0..3 {
            while stack.levels.len() < 20 {
                push(&mut stack);
                assert_eq!(open_count(&stack), stack.levels.len().min(LIMIT));
            }
            while stack.levels.len() > 1 {
                if stack.closed_level_above().is_some() {
                    stack.set_level_above(open());
                }
                stack.pop();
                let is_open = |level: &Level<()>| level.open_dir().is_some();
                assert!(stack.levels.last().is_some_and(is_open));
                assert_eq!(stack.open_count(), open_count(&stack));
            }
        }
    }
}
