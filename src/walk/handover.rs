//! `Handover`: work that busy threads hand over to idle ones, and the end when all of them are idle.
//!
//! A busy thread touches no shared queue. An idle thread raises a flag and waits; a busy one looks at the flag, and takes the
//! lock only to give.

use crate::sync::atomic::{AtomicBool, Ordering::Relaxed};
use crate::sync::{Condvar, Mutex, MutexGuard, PoisonError};

#[derive(Debug)]
pub(crate) struct Handover<T> {
    /// Whether a thread is still waiting for work, or all is over. Only a hint: the truth is under the lock.
    is_asked: AtomicBool,
    /// Changes under the lock only. A busy thread need not take it to look.
    is_over: AtomicBool,
    state: Mutex<State<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<T> {
    given: Vec<T>,
    /// How many threads have not left, and how many of those wait.
    threads: usize,
    waiting: usize,
}

impl<T> Handover<T> {
    /// Without any thread yet.
    pub(crate) fn new() -> Self {
        let state = State { given: Vec::new(), threads: 0, waiting: 0 };
        let [is_asked, is_over] = [(); 2].map(|()| AtomicBool::new(false));
        Self { is_asked, is_over, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// For a busy thread: whether to [`give`](Self::give) some of its work, or to stop if [it is over](Self::is_over).
    #[inline]
    pub(crate) fn is_asked(&self) -> bool {
        self.is_asked.load(Relaxed)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Relaxed)
    }

    pub(crate) fn give(&self, work: T) {
        let mut state = self.lock();
        state.given.push(work);
        self.settle(&mut state);
    }

    /// For an idle thread: waits for work. `None` once all threads wait, or the [end](Self::end) was called.
    pub(crate) fn take(&self) -> Option<T> {
        let mut state = self.lock();
        state.waiting += 1;
        let work = loop {
            self.settle(&mut state);
            if self.is_over() {
                break None;
            }
            if let Some(work) = state.given.pop() {
                break Some(work);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        };
        state.waiting -= 1;
        self.settle(&mut state);
        work
    }

    /// Adds a thread, before it starts.
    pub(crate) fn join(&self) {
        self.lock().threads += 1;
    }

    /// Removes a thread that no longer takes part.
    pub(crate) fn leave(&self) {
        let mut state = self.lock();
        state.threads -= 1;
        self.settle(&mut state);
    }

    /// Ends it for all threads.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        self.is_over.store(true, Relaxed);
        self.settle(&mut state);
    }

    /// Call this after each change.
    fn settle(&self, state: &mut State<T>) {
        if state.given.is_empty() && state.waiting >= state.threads {
            self.is_over.store(true, Relaxed);
        }
        self.is_asked.store(self.is_over() || state.waiting > state.given.len(), Relaxed);
        if self.is_over() {
            self.changed.notify_all();
        } else if !state.given.is_empty() {
            self.changed.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::Handover;
    use std::ops::Range;
    use std::sync::Mutex;
    use std::thread;

    /// Work is a range of numbers. A thread gives away half of its own when asked, and every number is done once.
    #[test]
    fn all_work_is_done_once_and_then_all_threads_end() {
        for threads in [1, 2, 4] {
            let handover = Handover::<Range<u32>>::new();
            let done = Mutex::new(Vec::new());
            let work = || {
                let mut done_here = Vec::new();
                while let Some(mut range) = handover.take() {
                    while let Some(number) = range.next() {
                        if handover.is_asked() && range.len() > 1 {
                            let middle = range.start.midpoint(range.end);
                            handover.give(middle..range.end);
                            range.end = middle;
                        }
                        done_here.push(number);
                    }
                }
                assert!(handover.take().is_none() && handover.is_over());
                done.lock().unwrap().append(&mut done_here);
            };
            handover.join();
            handover.give(0..200);
            thread::scope(|scope| {
                for _ in 1..threads {
                    handover.join();
                    scope.spawn(work);
                }
                work();
            });
            let mut done = done.into_inner().unwrap();
            done.sort_unstable();
            assert!(done.into_iter().eq(0..200));
        }
    }

    #[test]
    fn whoever_leaves_leaves_the_rest_to_the_others() {
        let handover = Handover::new();
        handover.join();
        handover.join();
        thread::scope(|scope| {
            let other = scope.spawn(|| (handover.take(), handover.take()));
            handover.give("the rest");
            handover.leave();
            assert_eq!(other.join().unwrap(), (Some("the rest"), None));
        });
    }

    #[test]
    fn the_end_wakes_all() {
        let handover = Handover::<()>::new();
        thread::scope(|scope| {
            for _ in 0..3 {
                handover.join();
                scope.spawn(|| assert!(handover.take().is_none()));
            }
            handover.end();
        });
        assert!(handover.is_asked() && handover.is_over());
    }
}
