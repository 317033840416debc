//! `SharedLevel`: a level that several threads walk, with second visits, and how the last of them knows that it is the last.
//!
//! Each thread at the level or below it holds an [`Arc`] of it, and a level holds one of the level above. A thread that is done
//! gives up its `Arc`, and [`Arc::into_inner`] is `Some` for exactly one of them, the last. That thread makes the second visit,
//! unless one of them has lost the level, and then holds the level above. `Arc::into_inner` has an acquire fence, so that thread
//! sees all that the others did.
//!
//! It does not know which names are left to do there, nor how many threads there are.

use crate::cursor::reopen::{ClosedLevel, OpenLevel};
use crate::sync::atomic::{AtomicBool, Ordering::Relaxed};
use crate::sync::{Arc, Mutex, PoisonError};
use rustix::fd::{AsFd, OwnedFd};
use std::iter;

pub(crate) struct SharedLevel<S> {
    /// `None` for the root.
    pub(crate) above: Option<Arc<Self>>,
    pub(crate) level: ClosedLevel,
    /// For the root only: a descriptor from which to go down by names.
    root: Option<OwnedFd>,
    /// Whether a thread did not find it on its way back.
    is_lost: AtomicBool,
    /// The caller's. Behind a lock because it need not be `Sync`.
    state: Mutex<S>,
}

impl<S> SharedLevel<S> {
    pub(crate) fn root(root: OwnedFd, level: ClosedLevel, state: S) -> Arc<Self> {
        let (is_lost, state) = (AtomicBool::new(false), Mutex::new(state));
        Arc::new(Self { above: None, level, root: Some(root), is_lost, state })
    }

    pub(crate) fn below(above: Arc<Self>, level: ClosedLevel, state: S) -> Arc<Self> {
        let (is_lost, state) = (AtomicBool::new(false), Mutex::new(state));
        Arc::new(Self { above: Some(above), level, root: None, is_lost, state })
    }

    /// The way down by names to this level: its start, and the levels on it.
    pub(crate) fn path_by_names(
        &self,
    ) -> Option<(OpenLevel<'_>, impl Iterator<Item = ClosedLevel>)> {
        let mut levels: Vec<_> =
            iter::successors(Some(self), |level| level.above.as_deref()).collect();
        let root = levels.pop()?;
        let start = OpenLevel { dir: root.root.as_ref()?.as_fd(), bounds: root.level.bounds };
        Some((start, levels.into_iter().rev().map(|level| level.level)))
    }

    /// Notes that a thread did not find this level on its way back: it has no second visit then. Returns whether it is the
    /// first to notice, which reports it.
    pub(crate) fn lose(&self) -> bool {
        !self.is_lost.swap(true, Relaxed)
    }

    /// For the last thread there.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost.load(Relaxed)
    }

    /// The state of the level above.
    pub(crate) fn state_above(&self) -> Option<S>
    where
        S: Clone,
    {
        let above = self.above.as_ref()?;
        Some(above.state.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

/// Without recursion, because there may be any number of levels above.
impl<S> Drop for SharedLevel<S> {
    fn drop(&mut self) {
        let mut above = self.above.take();
        while let Some(mut last) = above.and_then(Arc::into_inner) {
            above = last.above.take();
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
        SharedLevel::root(std::fs::File::open("/dev/null").unwrap().into(), level(), ())
    }

    fn below(above: Arc<SharedLevel<()>>) -> Arc<SharedLevel<()>> {
        SharedLevel::below(above, level(), ())
    }

    /// A level and the root above it. One thread came down to the level, and shared it with the others. The last one sees what
    /// the others did, and one of them is the last at the root.
    #[test]
    #[cfg_attr(miri, ignore = "opens a file")]
    fn one_thread_is_the_last_and_sees_what_all_did() {
        const THREADS: usize = 3;
        for _ in 0..20 {
            let root = root();
            let level = below(Arc::clone(&root));
            let done = [const { AtomicBool::new(false) }; THREADS];
            let are_done = || done.iter().all(|done| done.load(Relaxed));
            let (last_there, last_at_root) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let work = |number: usize, level: Arc<SharedLevel<()>>, root: Option<_>| {
                done[number].store(true, Relaxed);
                let above = Arc::into_inner(level).inspect(|_| {
                    assert!(are_done());
                    last_there.fetch_add(1, Relaxed);
                });
                // The thread that came down already has the root.
                if root
                    .or(above.and_then(|mut last| last.above.take()))
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
        let levels = (0..20_000).fold(root(), |above, _| below(above));
        assert_eq!(levels.path_by_names().unwrap().1.count(), 20_000);
        thread::Builder::new()
            .stack_size(64 * 1024)
            .spawn(|| drop(levels))
            .unwrap()
            .join()
            .unwrap();
    }
}
