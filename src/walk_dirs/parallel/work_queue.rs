//! `WorkQueue`: the parts that busy threads split off for idle ones, and the end of the walk when
//! all threads are idle.
//!
//! A thread is started for a part if no idle thread can take it. No more threads are being started
//! than are busy: while new ones wait for a core, the threads that have one take the parts.
//!
//! A busy thread looks at a number, and takes the lock only to push.

use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use crate::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::panic::AssertUnwindSafe;

/// The queue of parts of type `W`.
pub(crate) struct WorkQueue<W> {
    /// The number of parts that idle and new threads would pop; 1 if the walk is over. It is a
    /// hint: the exact numbers are under the lock.
    wanted: AtomicUsize,
    /// Whether the walk is over. It changes only under the lock, and is read without.
    is_over: AtomicBool,
    /// The number of directories that each thread may hold open, if the process may open few.
    max_open: AtomicUsize,
    state: Mutex<State<W>>,
    changed: Condvar,
}

/// The state under the lock: the parts, and the numbers of threads.
struct State<W> {
    parts: Vec<W>,
    busy: usize,
    idle: usize,
    /// The number of idle threads that were started and have not begun.
    starting: usize,
    /// The number of threads that can still be started.
    unstarted: usize,
}

/// The queue that all workers share, and the function that starts another one.
pub(crate) struct Workers<'scope, W> {
    pub(crate) queue: &'scope WorkQueue<W>,
    /// Starts a thread, which [begins](WorkQueue::begin), or [fails](WorkQueue::start_failed).
    pub(crate) start: AssertUnwindSafe<&'scope dyn Fn()>,
}

impl<W> Workers<'_, W> {
    pub(crate) fn push(&self, part: W) {
        self.queue.push(part);
        self.start_next();
    }

    /// Starts a thread if one is needed. Each thread calls this once when it has begun.
    pub(crate) fn start_next(&self) {
        if self.queue.claim_thread() {
            (self.start.0)();
        }
    }
}

impl<W> WorkQueue<W> {
    /// Creates the queue of up to `threads` threads, of which one is busy, and the others can be
    /// started.
    pub(crate) fn new(threads: usize) -> Self {
        let unstarted = threads - 1;
        let state = State { parts: Vec::new(), busy: 1, idle: 0, starting: 0, unstarted };
        Self {
            wanted: AtomicUsize::new(unstarted),
            is_over: AtomicBool::new(false),
            max_open: AtomicUsize::new(usize::MAX),
            state: Mutex::new(state),
            changed: Condvar::new(),
        }
    }

    /// Returns the number of parts that a busy thread should [`push`](Self::push). It is not 0 if
    /// [the walk is over](Self::is_over).
    #[inline]
    pub(crate) fn wanted(&self) -> usize {
        self.wanted.load(Relaxed)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Relaxed)
    }

    fn push(&self, part: W) {
        self.change(|state| state.parts.push(part));
        self.changed.notify_one();
    }

    /// Returns `true` if the caller has to start a thread, which then counts as idle.
    fn claim_thread(&self) -> bool {
        let mut state = self.lock();
        let is_needed =
            state.idle < state.parts.len() && state.starting < state.busy && state.unstarted > 0;
        if is_needed {
            state.unstarted -= 1;
            state.starting += 1;
            state.idle += 1;
        }
        is_needed
    }

    /// Makes a busy thread idle, and waits for a part. Returns `None` once all threads are idle, or
    /// after [`stop`](Self::stop).
    pub(crate) fn pop(&self) -> Option<W> {
        let mut state = self.lock();
        state.busy -= 1;
        state.idle += 1;
        // If this was the last busy thread, the walk ends here.
        self.update_wanted(&state);
        self.wait(state)
    }

    /// Same as [`pop`](Self::pop), for a thread that was just started.
    pub(crate) fn begin(&self) -> Option<W> {
        let mut state = self.lock();
        state.starting -= 1;
        self.wait(state)
    }

    fn wait(&self, mut state: MutexGuard<'_, State<W>>) -> Option<W> {
        while state.parts.is_empty() && !self.is_over() {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.idle -= 1;
        state.busy += 1;
        let part = if self.is_over() { None } else { state.parts.pop() };
        self.update_wanted(&state);
        part
    }

    /// Returns the number of directories that each thread may hold open.
    pub(crate) fn max_open(&self) -> usize {
        self.max_open.load(Relaxed)
    }

    /// Lets at most `threads` more threads start, each of which may hold `max_open` directories.
    pub(crate) fn restrict(&self, threads: usize, max_open: usize) {
        self.max_open.store(max_open, Relaxed);
        self.change(|state| state.unstarted = state.unstarted.min(threads));
    }

    /// Lets `threads` more threads start than before, unless descriptors are few.
    pub(crate) fn add_threads(&self, threads: usize) {
        if self.max_open() == usize::MAX {
            self.change(|state| state.unstarted += threads);
        }
    }

    /// A thread could not be started. No other one is started.
    pub(crate) fn start_failed(&self) {
        self.change(|state| {
            state.idle -= 1;
            state.starting -= 1;
            state.unstarted = 0;
        });
    }

    /// Removes a thread that no longer takes part.
    pub(crate) fn leave(&self) {
        self.change(|state| state.busy -= 1);
    }

    /// Ends the walk for all threads. The parts that no thread has popped are dropped with the
    /// queue.
    pub(crate) fn stop(&self) {
        let mut state = self.lock();
        state.unstarted = 0;
        self.end();
    }

    /// Changes the state under the lock.
    fn change(&self, change: impl FnOnce(&mut State<W>)) {
        let mut state = self.lock();
        change(&mut state);
        self.update_wanted(&state);
    }

    /// Updates the number that busy threads look at. Call this after each change.
    fn update_wanted(&self, state: &State<W>) {
        if !self.is_over() {
            self.wanted
                .store((state.idle + state.unstarted).saturating_sub(state.parts.len()), Relaxed);
            if state.parts.is_empty() && state.busy == 0 {
                self.end();
            }
        }
    }

    /// Ends the walk. Call this with the lock.
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
    use super::{State, WorkQueue, Workers};
    use std::ops::Range;
    use std::panic::AssertUnwindSafe;
    use std::sync::{Barrier, Mutex};
    use std::thread::{self, Scope};

    /// Returns whether the caller has to start a thread.
    fn push<W>(queue: &WorkQueue<W>, part: W) -> bool {
        queue.push(part);
        queue.claim_thread()
    }

    /// Works through a range of numbers, and splits off parts of it while other threads want some.
    fn work<'scope>(
        scope: &'scope Scope<'scope, '_>,
        queue: &'scope WorkQueue<Range<u32>>,
        done: &'scope Mutex<Vec<u32>>,
        mut part: Option<Range<u32>>,
    ) {
        let start = || drop(scope.spawn(|| work(scope, queue, done, queue.begin())));
        let workers = Workers { queue, start: AssertUnwindSafe(&start) };
        workers.start_next();
        while let Some(mut range) = part {
            while let Some(number) = range.next() {
                while queue.wanted() > 0 && range.len() > 1 {
                    let middle = range.start.midpoint(range.end);
                    workers.push(middle..range.end);
                    range.end = middle;
                }
                done.lock().unwrap().push(number);
            }
            part = queue.pop();
        }
        assert!(queue.pop().is_none() && queue.is_over());
    }

    #[test]
    fn all_work_is_done_once_and_then_all_threads_end() {
        for threads in [1, 2, 4] {
            let (queue, done) = (WorkQueue::new(threads), Mutex::new(Vec::new()));
            thread::scope(|scope| work(scope, &queue, &done, Some(0..200)));
            let mut done = done.into_inner().unwrap();
            done.sort_unstable();
            assert_eq!(done, (0..200).collect::<Vec<_>>());
        }
    }

    /// They start only while there are more parts than idle threads.
    #[test]
    fn as_many_threads_start_as_are_busy() {
        let queue = WorkQueue::new(7);
        assert_eq!([(); 4].map(|()| push(&queue, ())), [true, false, false, false]);
        let begin = || {
            assert_eq!(queue.begin(), Some(()));
            [(); 3].map(|()| queue.claim_thread())
        };
        assert_eq!(
            [(); 4].map(|()| begin()),
            [[true, true, false], [true, false, false], [false; 3], [false; 3]]
        );
        assert_eq!(queue.wanted(), 2);
    }

    #[test]
    fn thread_that_leaves_leaves_its_part_to_others() {
        let queue = WorkQueue::new(2);
        assert!(push(&queue, "the rest"));
        thread::scope(|scope| {
            let other = scope.spawn(|| (queue.begin(), queue.pop().is_none()));
            queue.leave();
            assert_eq!(other.join().unwrap(), (Some("the rest"), true));
        });
    }

    /// Each of two idle threads wakes for a part, even if the first does not run yet when the
    /// second part is pushed.
    #[test]
    fn queue_wants_a_part_for_each_idle_thread() {
        let (queue, both) = (WorkQueue::new(3), Barrier::new(2));
        thread::scope(|scope| {
            let others = [1, 2].map(|number| {
                assert!(push(&queue, ()));
                assert_eq!(queue.wanted(), 2 - number, "a part is pushed for one of them");
                let other = scope.spawn(|| {
                    queue.begin().unwrap();
                    both.wait();
                    queue.pop()
                });
                while !queue.lock().parts.is_empty() {
                    thread::yield_now();
                }
                other
            });
            while queue.wanted() < 2 {
                thread::yield_now();
            }
            assert!(!push(&queue, ()) && !push(&queue, ()));
            assert_eq!(others.map(|other| other.join().unwrap()), [Some(()); 2]);
            assert_eq!(queue.wanted(), 0);
        });
    }

    #[test]
    fn threads_that_cannot_be_started_are_not_waited_for() {
        let queue = WorkQueue::new(usize::MAX);
        assert_eq!(queue.wanted(), usize::MAX - 1);
        assert!(push(&queue, ()));
        queue.start_failed();
        let State { idle, starting, unstarted, .. } = *queue.lock();
        assert_eq!([queue.wanted(), idle, starting, unstarted], [0; 4]);
        assert!(!push(&queue, ()));
        assert_eq!([(); 3].map(|()| queue.pop()), [Some(()), Some(()), None]);
    }

    #[test]
    fn the_end_wakes_all() {
        let queue = WorkQueue::new(5);
        thread::scope(|scope| {
            for _ in 0..3 {
                let mut state = queue.lock();
                (state.idle, state.starting) = (state.idle + 1, state.starting + 1);
                scope.spawn(|| assert!(queue.begin().is_none()));
            }
            queue.stop();
        });
        assert!(queue.wanted() > 0 && queue.is_over());
        assert!(!push(&queue, ()) && queue.pop().is_none());
    }
}
