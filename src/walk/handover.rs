//! `Handover`, `Task`: what busy threads hand over to idle ones, and the end when all of them are idle.
//!
//! A busy thread touches no queue. An idle thread raises flags and waits; a busy one looks at a flag, and takes the lock only to
//! give. There are two kinds of tasks: parts of the walk, and jobs, which are closures of the caller's. An idle thread prefers
//! jobs: they hold descriptors and memory.

use super::jobs::{Job, JobQueue};
use crate::sync::atomic::{AtomicBool, Ordering::Relaxed};
use crate::sync::{Condvar, Mutex, MutexGuard, PoisonError, thread};
use std::collections::VecDeque;
use std::mem;

pub(crate) struct Handover<'env, W> {
    /// Whether an idle thread would take a part of the walk, or all is over. Only a hint: the truth is under the lock.
    is_asked: AtomicBool,
    /// Whether an idle thread would take a job. A hint too.
    is_job_wanted: AtomicBool,
    /// Whether there is a task, or all is over. A hint for an idle thread.
    has_task: AtomicBool,
    /// Changes under the lock only. A busy thread need not take it to look.
    is_over: AtomicBool,
    queue: Mutex<Queue<'env, W>>,
    changed: Condvar,
}

struct Queue<'env, W> {
    work: Vec<W>,
    jobs: VecDeque<Job<'env>>,
    /// How many threads have not left.
    threads: usize,
    /// How many of those are idle, and how many of these sleep and have not been woken.
    idle: usize,
    asleep: usize,
    /// Whether a thread has been idle, or few jobs were left, since there were jobs enough.
    lacks_jobs: bool,
    /// Whether it is over because somebody ended it: then jobs are dropped.
    is_ended: bool,
}

/// For an idle thread.
pub(crate) enum Task<'env, W> {
    Work(W),
    Job(Job<'env>),
}

/// So many jobs are given in advance, and two more for each thread. To wake a thread for each takes longer than a short job, and
/// while the thread that gives does a job itself, nobody gives.
const JOBS_AHEAD: usize = 16;

/// So often an idle thread looks for a task before it sleeps. To sleep and to be woken takes longer than a short job.
const PATIENCE: u32 = 32;

impl<'env, W> Handover<'env, W> {
    /// Without any thread yet.
    pub(crate) fn new() -> Self {
        let queue = Queue {
            work: Vec::new(),
            jobs: VecDeque::new(),
            threads: 0,
            idle: 0,
            asleep: 0,
            lacks_jobs: false,
            is_ended: false,
        };
        let [is_asked, is_job_wanted, has_task, is_over] = [(); 4].map(|()| AtomicBool::new(false));
        Self { is_asked, is_job_wanted, has_task, is_over, queue: Mutex::new(queue), changed: Condvar::new() }
    }

    /// For a busy thread: whether to [`give`](Self::give) some of its work, or to stop if [it is over](Self::is_over).
    #[inline]
    pub(crate) fn is_asked(&self) -> bool {
        self.is_asked.load(Relaxed)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Relaxed)
    }

    pub(crate) fn give(&self, work: W) {
        let mut queue = self.lock();
        // Even if it is over: nobody takes it then, and it is dropped with the queue.
        queue.work.push(work);
        self.wake_one(&mut queue);
        self.settle(&mut queue);
    }

    /// For an idle thread: waits for a task. `None` once all threads are idle, or the [end](Self::end) was called.
    pub(crate) fn take(&self) -> Option<Task<'env, W>> {
        let mut queue = self.lock();
        queue.idle += 1;
        let mut patience = PATIENCE;
        let task = loop {
            // Only here can the last busy thread become idle, and so end it for all.
            self.settle(&mut queue);
            if self.is_over() {
                self.changed.notify_all();
                break None;
            }
            if let Some(task) = queue.take() {
                break Some(task);
            }
            if patience > 0 {
                // It counts as idle all the while, so the others know that it would take something.
                drop(queue);
                while patience > 0 && !self.has_task.load(Relaxed) {
                    patience -= 1;
                    thread::yield_now();
                }
                queue = self.lock();
                continue;
            }
            // Nothing was given since it looked, as it has held the lock. So whoever gives next sees that it sleeps.
            queue.asleep += 1;
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        };
        queue.idle -= 1;
        self.settle(&mut queue);
        task
    }

    /// Adds a thread, before it starts.
    pub(crate) fn join(&self) {
        self.lock().threads += 1;
    }

    /// Removes a thread that no longer takes part. The last one gets the jobs that are left instead, one by one.
    #[must_use]
    pub(crate) fn leave(&self) -> Option<Job<'env>> {
        let mut queue = self.lock();
        if queue.threads == 1 && !queue.jobs.is_empty() {
            return queue.jobs.pop_front();
        }
        queue.threads -= 1;
        self.settle(&mut queue);
        if self.is_over() {
            self.changed.notify_all();
        }
        None
    }

    /// Ends it for all threads. What nobody has begun is dropped.
    pub(crate) fn end(&self) {
        let mut queue = self.lock();
        self.is_over.store(true, Relaxed);
        queue.is_ended = true;
        let tasks = (mem::take(&mut queue.work), mem::take(&mut queue.jobs));
        self.settle(&mut queue);
        self.changed.notify_all();
        drop(queue); // what the caller's closures own is dropped without the lock
        drop(tasks);
    }

    /// Call this after each change.
    fn settle(&self, queue: &mut Queue<'env, W>) {
        let tasks = queue.work.len() + queue.jobs.len();
        // A thread that runs a job is not idle: the job may hold up the end, but what it does cannot be missed.
        if tasks == 0 && queue.idle >= queue.threads {
            self.is_over.store(true, Relaxed);
        }
        self.is_asked.store(self.is_over() || queue.idle > tasks, Relaxed);
        // Once a thread was idle, jobs are given until there are enough, even if it has taken one meanwhile. Otherwise each
        // thread would be woken for one job at a time.
        queue.lacks_jobs =
            queue.jobs.len() < JOBS_AHEAD + 2 * queue.threads && (queue.lacks_jobs || queue.idle > tasks);
        self.has_task.store(self.is_over() || tasks > 0, Relaxed);
        self.is_job_wanted.store(!self.is_over() && queue.lacks_jobs, Relaxed);
    }

    /// A sleeping thread wakes for each task, as long as there is one.
    fn wake_one(&self, queue: &mut Queue<'env, W>) {
        // The one who wakes counts it off, not the one who is woken: two tasks given in a row wake two threads. A thread that wakes
        // by itself stays counted, which costs one vain notification.
        if queue.asleep > 0 {
            queue.asleep -= 1;
            self.changed.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue<'env, W>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'env, W: Send> JobQueue<'env> for Handover<'env, W> {
    fn is_wanted(&self) -> &AtomicBool {
        &self.is_job_wanted
    }

    fn give_job(&self, job: Job<'env>) {
        let mut queue = self.lock();
        if self.is_over() {
            // No thread takes it any more. A thread of the caller's own can come here once all of the walk's are idle.
            let is_ended = queue.is_ended;
            drop(queue);
            return if is_ended { drop(job) } else { job() };
        }
        queue.jobs.push_back(job);
        self.wake_one(&mut queue);
        self.settle(&mut queue);
    }
}

impl<'env, W> Queue<'env, W> {
    fn take(&mut self) -> Option<Task<'env, W>> {
        let Some(job) = self.jobs.pop_front() else { return self.work.pop().map(Task::Work) };
        // More are asked for before the last one is taken: the thread that gives may be busy with a job of its own.
        self.lacks_jobs |= self.jobs.len() < self.threads;
        Some(Task::Job(job))
    }
}
#[cfg(test)]
mod tests {
    use super::{Handover, JobQueue, Relaxed, Task};
    use std::ops::Range;
    use std::sync::Mutex;
    use std::thread;

    /// The work of a task. A job is run.
    fn work<W>(task: Task<'_, W>) -> Option<W> {
        match task {
            Task::Work(work) => Some(work),
            Task::Job(job) => {
                job();
                None
            }
        }
    }

    /// Work is a range of numbers. A thread gives away half of its own when asked, and each number as a job when that is wanted.
    /// Every number is done once.
    #[test]
    fn all_work_is_done_once_and_then_all_threads_end() {
        for threads in [1, 2, 4] {
            let done = Mutex::new(Vec::new());
            let note = |number: u32| done.lock().unwrap().push(number);
            let handover = Handover::<Range<u32>>::new();
            let walk = || {
                while let Some(task) = handover.take() {
                    let Some(mut range) = work(task) else { continue };
                    while let Some(number) = range.next() {
                        if handover.is_asked() && range.len() > 1 {
                            let middle = range.start.midpoint(range.end);
                            handover.give(middle..range.end);
                            range.end = middle;
                        }
                        if handover.is_wanted().load(Relaxed) {
                            handover.give_job(Box::new(move || note(number)));
                        } else {
                            note(number);
                        }
                    }
                }
                assert!(handover.take().is_none() && handover.is_over());
            };
            handover.join();
            handover.give(0..200);
            thread::scope(|scope| {
                for _ in 1..threads {
                    handover.join();
                    scope.spawn(walk);
                }
                walk();
            });
            drop(handover);
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
            let other = scope.spawn(|| (handover.take().and_then(work), handover.take().is_none()));
            handover.give("the rest");
            assert!(handover.leave().is_none());
            assert_eq!(other.join().unwrap(), (Some("the rest"), true));
        });
    }

    #[test]
    fn the_last_to_leave_gets_the_jobs() {
        let handover = Handover::<()>::new();
        handover.join();
        handover.join();
        handover.give_job(Box::new(|| ()));
        assert!(handover.leave().is_none());
        assert!(handover.leave().is_some() && handover.leave().is_none());
    }

    #[test]
    fn the_end_wakes_all_and_drops_what_has_not_begun() {
        let handover = Handover::<()>::new();
        thread::scope(|scope| {
            for _ in 0..3 {
                handover.join();
                scope.spawn(|| assert!(handover.take().is_none()));
            }
            handover.end();
        });
        assert!(handover.is_asked() && handover.is_over() && !handover.is_wanted().load(Relaxed));
        handover.give_job(Box::new(|| panic!("a job ran after the end")));
        assert!(handover.take().is_none());
    }
}
