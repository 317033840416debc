//! `WorkQueue`: the parts that busy threads split off their work for idle ones, and the end when all threads are idle.
//!
//! A busy thread looks at a number, and takes the lock only to push. The queue does not know what a part is.

use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use crate::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::mem;

pub(crate) struct WorkQueue<W> {
    /// How many more parts idle threads would pop; 1 if all is over. Only a hint: the truth is under the lock.
    wanted: AtomicUsize,
    /// Changes under the lock only. A busy thread need not take it to look.
    is_over: AtomicBool,
    state: Mutex<State<W>>,
    changed: Condvar,
}

struct State<W> {
    parts: Vec<W>,
    /// How many threads have not left.
    threads: usize,
    /// How many of those are idle.
    idle: usize,
}

impl<W> WorkQueue<W> {
    /// Without any thread yet.
    pub(crate) fn new() -> Self {
        let state = Mutex::new(State { parts: Vec::new(), threads: 0, idle: 0 });
        Self { wanted: AtomicUsize::new(0), is_over: AtomicBool::new(false), state, changed: Condvar::new() }
    }

    /// For a busy thread: how many parts of its work to [`push`](Self::push). Not 0 if [it is over](Self::is_over).
    #[inline]
    pub(crate) fn wanted(&self) -> usize {
        self.wanted.load(Relaxed)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Relaxed)
    }

    pub(crate) fn push(&self, part: W) {
        let mut state = self.lock();
        // Even if it is over: nobody pops it then, and it is dropped with the queue.
        state.parts.push(part);
        self.recount(&state);
        // An idle thread that was woken for an earlier part, and does not run yet, is still counted as idle.
        if state.idle >= state.parts.len() {
            self.changed.notify_one();
        }
    }

    /// For an idle thread: waits for a part. `None` once all threads are idle, or after [`stop`](Self::stop).
    pub(crate) fn pop(&self) -> Option<W> {
        let mut state = self.lock();
        state.idle += 1;
        // If this was the last busy thread, the walk ends here.
        self.recount(&state);
        while state.parts.is_empty() && !self.is_over() {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.idle -= 1;
        let part = if self.is_over() { None } else { state.parts.pop() };
        self.recount(&state);
        part
    }

    /// Adds a thread, before it starts.
    pub(crate) fn join(&self) {
        self.lock().threads += 1;
    }

    /// Removes a thread that no longer takes part.
    pub(crate) fn leave(&self) {
        let mut state = self.lock();
        state.threads -= 1;
        self.recount(&state);
    }

    /// Ends it for all threads, and drops the parts that nobody has popped.
    pub(crate) fn stop(&self) {
        let mut state = self.lock();
        let parts = mem::take(&mut state.parts);
        self.end();
        drop(state); // what a part owns is dropped without the lock
        drop(parts);
    }

    /// Call this after each change.
    fn recount(&self, state: &State<W>) {
        if !self.is_over() {
            self.wanted.store(state.idle.saturating_sub(state.parts.len()), Relaxed);
            if state.parts.is_empty() && state.idle >= state.threads {
                self.end();
            }
        }
    }

    /// Call this with the lock.
    fn end(&self) {
        self.is_over.store(true, Relaxed);
        self.wanted.store(1, Relaxed);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State<W>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::WorkQueue;
    use std::ops::Range;
    use std::sync::Mutex;
    use std::thread;

    /// Work is a range of numbers. A thread splits off parts of its own while others want some. Every number is done once.
    #[test]
    fn all_work_is_done_once_and_then_all_threads_end() {
        for threads in [1, 2, 4] {
            let done = Mutex::new(Vec::new());
            let queue = WorkQueue::<Range<u32>>::new();
            let walk = || {
                while let Some(mut range) = queue.pop() {
                    while let Some(number) = range.next() {
                        while queue.wanted() > 0 && range.len() > 1 {
                            let middle = range.start.midpoint(range.end);
                            queue.push(middle..range.end);
                            range.end = middle;
                        }
                        done.lock().unwrap().push(number);
                    }
                }
                assert!(queue.pop().is_none() && queue.is_over());
            };
            queue.join();
            queue.push(0..200);
            thread::scope(|scope| {
                for _ in 1..threads {
                    queue.join();
                    scope.spawn(walk);
                }
                walk();
            });
            let mut done = done.into_inner().unwrap();
            done.sort_unstable();
            assert!(done.into_iter().eq(0..200));
        }
    }

    #[test]
    fn whoever_leaves_leaves_the_rest_to_the_others() {
        let queue = WorkQueue::new();
        queue.join();
        queue.join();
        thread::scope(|scope| {
            let other = scope.spawn(|| (queue.pop(), queue.pop().is_none()));
            queue.push("the rest");
            queue.leave();
            assert_eq!(other.join().unwrap(), (Some("the rest"), true));
        });
    }

    /// Each of two idle threads wakes for a part, though the first may not run yet when the second part is pushed.
    #[test]
    fn a_part_is_wanted_for_each_idle_thread() {
        let queue = WorkQueue::new();
        queue.join();
        thread::scope(|scope| {
            let others = [1, 2].map(|_| {
                queue.join();
                scope.spawn(|| queue.pop())
            });
            while queue.wanted() < 2 {
                thread::yield_now();
            }
            queue.push(());
            queue.push(());
            assert_eq!(others.map(|other| other.join().unwrap()), [Some(()); 2]);
            assert_eq!(queue.wanted(), 0);
        });
    }

    #[test]
    fn the_end_wakes_all() {
        let queue = WorkQueue::<()>::new();
        thread::scope(|scope| {
            for _ in 0..3 {
                queue.join();
                scope.spawn(|| assert!(queue.pop().is_none()));
            }
            queue.stop();
        });
        assert!(queue.wanted() > 0 && queue.is_over());
        queue.push(());
        assert!(queue.pop().is_none());
    }
}
