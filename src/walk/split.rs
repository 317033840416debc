//! `Split`: a level in post-order that several threads have a part in, and the one of them that visits it again.
//!
//! The last thread to be done with its part makes the second visit. One thread came down to the level, and has a part in the
//! level above too; the others were given theirs. If the one that came down is not the last, it leaves another part in the
//! level above to the one that will be. That thread goes up after the visit, and is done with this part in turn.

use crate::sync::Arc;
use crate::sync::atomic::{
    AtomicUsize,
    Ordering::{AcqRel, Relaxed},
};

#[derive(Debug)]
pub(crate) struct Split<T> {
    parts: AtomicUsize,
    above: Option<Arc<Self>>,
    /// How to come back to it.
    pub(crate) place: T,
}

impl<T> Split<T> {
    /// A level that one thread has a part in.
    pub(crate) fn new(place: T, above: Option<Arc<Self>>) -> Arc<Self> {
        Arc::new(Self { parts: AtomicUsize::new(1), above, place })
    }

    /// The level above. `None` for the root.
    pub(crate) fn above(&self) -> Option<&Arc<Self>> {
        self.above.as_ref()
    }

    /// For a thread that has a part, and gives another one away.
    pub(crate) fn add_part(&self) {
        self.parts.fetch_add(1, Relaxed);
    }

    /// For a thread that is done here, and whether it [came down](self). Returns whether it was the last.
    pub(crate) fn give_up_part(&self, came_down: bool) -> bool {
        let above = self.above.as_ref().filter(|_| came_down);
        // Before the others can find that they are the last.
        if let Some(above) = above {
            above.add_part();
        }
        let is_last = self.parts.fetch_sub(1, AcqRel) == 1;
        if let (Some(above), true) = (above, is_last) {
            above.parts.fetch_sub(1, Relaxed);
        }
        is_last
    }
}

/// Without recursion, as there may be any number of levels above.
impl<T> Drop for Split<T> {
    fn drop(&mut self) {
        let mut above = self.above.take();
        while let Some(split) = above {
            above = Arc::into_inner(split).and_then(|mut split| split.above.take());
        }
    }
}
