//! `SharedLevel`: a level that several threads walk, with second visits, and how the last of them
//! knows that it is the last.
//!
//! Each thread at the level or below it holds an [`Arc`] of the level, and a level holds one of its
//! parent. A thread that has finished gives up its `Arc`, and [`Arc::into_inner`] is `Some` for
//! exactly one of them, the last. That thread makes the second visit, unless the level is lost, and
//! then holds the parent. `Arc::into_inner` has an acquire fence, so that thread sees all that the
//! others did.

use crate::allocate::try_collect;
use crate::cursor::stack::{ClosedLevel, PathByNames};
use crate::sync::atomic::AtomicBool;
use crate::sync::{Arc, Mutex, PoisonError};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::iter;

/// A level that several threads walk.
pub(crate) struct SharedLevel<S> {
    /// `None` for the root.
    pub(crate) parent: Option<Arc<Self>>,
    pub(crate) level: ClosedLevel,
    /// `Some` for the root: the descriptor from which levels are found by names.
    root: Option<OwnedFd>,
    /// Whether a thread did not find the level. The first such thread reports it, and the level has
    /// no second visit.
    pub(crate) is_lost: AtomicBool,
    /// The caller's state, behind a lock because it need not be `Sync`.
    state: Mutex<S>,
}

impl<S> SharedLevel<S> {
    /// Creates the level below `parent`, or the root's level, which has a descriptor of its own.
    pub(crate) fn new(
        parent: Option<Arc<Self>>,
        root: Option<OwnedFd>,
        level: ClosedLevel,
        state: S,
    ) -> Arc<Self> {
        Arc::new(Self {
            parent,
            level,
            root,
            is_lost: AtomicBool::new(false),
            state: Mutex::new(state),
        })
    }

    /// Returns the path by names to this level: its start, and the levels on it.
    pub(crate) fn path_by_names(&self) -> Result<PathByNames<'_>, Errno> {
        let levels = iter::successors(Some(self), |level| level.parent.as_deref());
        let mut levels = try_collect(levels)?;
        let root = levels.pop().expect("BUG: not even the level itself");
        let dir = root.root.as_ref().ok_or(Errno::NOENT)?;
        let levels = try_collect(levels.into_iter().rev().map(|level| level.level))?;
        Ok((dir.as_fd(), root.level.bounds, levels))
    }

    /// Returns a clone of the parent's state.
    pub(crate) fn parent_state(&self) -> Option<S>
    where
        S: Clone,
    {
        let parent = self.parent.as_ref()?;
        Some(parent.state.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

/// Drops the levels above without recursion, because there may be any number of them.
impl<S> Drop for SharedLevel<S> {
    fn drop(&mut self) {
        let mut parent = self.parent.take();
        while let Some(mut level) = parent.and_then(Arc::into_inner) {
            parent = level.parent.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ClosedLevel, SharedLevel};
    use crate::cursor::path::PathBounds;
    use crate::sync::Arc;
    use rustix::io::Errno;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
    use std::thread;

    fn level() -> ClosedLevel {
        ClosedLevel { bounds: PathBounds::default(), identity: Err(Errno::NOENT) }
    }

    fn root() -> Arc<SharedLevel<()>> {
        let root = std::fs::File::open("/dev/null").unwrap();
        SharedLevel::new(None, Some(root.into()), level(), ())
    }

    fn child(parent: Arc<SharedLevel<()>>) -> Arc<SharedLevel<()>> {
        SharedLevel::new(Some(parent), None, level(), ())
    }

    /// A level and the root above it. One thread came down to the level, and shared it with the
    /// others. The last one sees what the others did, and one of them is the last at the root.
    #[test]
    #[cfg_attr(miri, ignore = "opens a file")]
    fn one_thread_is_the_last_and_sees_what_all_did() {
        const THREADS: usize = 3;
        for _ in 0..20 {
            let root = root();
            let level = child(Arc::clone(&root));
            let done = [const { AtomicBool::new(false) }; THREADS];
            let are_done = || done.iter().all(|done| done.load(Relaxed));
            let (last_there, last_at_root) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let work = |number: usize, level: Arc<SharedLevel<()>>, root: Option<_>| {
                done[number].store(true, Relaxed);
                let last = Arc::into_inner(level).inspect(|_| {
                    assert!(are_done());
                    last_there.fetch_add(1, Relaxed);
                });
                // The thread that came down already has the root.
                if root
                    .or(last.and_then(|mut last| last.parent.take()))
                    .and_then(Arc::into_inner)
                    .is_some()
                {
                    assert!(are_done());
                    last_at_root.fetch_add(1, Relaxed);
                }
            };
            thread::scope(|scope| {
                for number in 1..THREADS {
                    let level = Arc::clone(&level);
                    scope.spawn(move || work(number, level, None));
                }
                work(0, level, Some(root));
            });
            assert_eq!((last_there.into_inner(), last_at_root.into_inner()), (1, 1));
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "opens a file")]
    fn any_number_of_levels_is_dropped_on_a_small_stack() {
        let levels = (0..20_000).fold(root(), |parent, _| child(parent));
        assert_eq!(levels.path_by_names().unwrap().2.len(), 20_000);
        thread::Builder::new()
            .stack_size(64 * 1024)
            .spawn(|| drop(levels))
            .unwrap()
            .join()
            .unwrap();
    }
}
