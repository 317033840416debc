//! `Split`: a level that several threads walk in post-order.
//!
//! It counts its parts: the threads that are not done there. The last one makes the second visit, and then goes up. One thread
//! came down to the level, so that it has a part in the level above too; the others were given theirs. If the one that came
//! down is not the last, it adds a part to the level above, for the thread that will be.

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

#[cfg(test)]
mod tests {
    use super::Split;
    use crate::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
    use std::thread;

    /// A level and the root above it. One thread came down to the level, and gave parts to the others. Whichever is the last
    /// sees what the others did, and one of them is the last at the root.
    #[test]
    fn one_thread_is_the_last_and_sees_what_all_did() {
        const THREADS: usize = 3;
        for _ in 0..20 {
            let root = Split::new((), None);
            let level = Split::new((), Some(Arc::clone(&root)));
            let done = [const { AtomicBool::new(false) }; THREADS];
            let are_done = || done.iter().all(|done| done.load(Relaxed));
            let (last_there, last_at_root) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let work = &|number: usize| {
                let came_down = number == 0;
                done[number].store(true, Relaxed);
                let is_last = level.give_up_part(came_down);
                if is_last {
                    assert!(are_done());
                    last_there.fetch_add(1, Relaxed);
                }
                // The one that came down has a part in the root, and so has the last one.
                if (came_down || is_last) && root.give_up_part(false) {
                    assert!(are_done());
                    last_at_root.fetch_add(1, Relaxed);
                }
            };
            thread::scope(|scope| {
                for number in 1..THREADS {
                    level.add_part();
                    scope.spawn(move || work(number));
                }
                work(0);
            });
            assert_eq!((last_there.into_inner(), last_at_root.into_inner()), (1, 1));
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "20,000 levels are too many for Miri")]
    fn any_number_of_levels_is_dropped_on_a_small_stack() {
        let levels = (0..20_000).fold(Split::new((), None), |above, _| Split::new((), Some(above)));
        thread::Builder::new().stack_size(64 * 1024).spawn(|| drop(levels)).unwrap().join().unwrap();
    }
}
