//! `Handover`: what busy threads hand over to idle ones, and the end when all of them are idle.
//!
//! A busy thread touches no queue. An idle thread raises flags and waits; a busy one looks at a flag, and takes the lock only to
//! give. It gives parts of the walk, and jobs, which are closures of the caller's. An idle thread prefers jobs: they hold
//! descriptors and memory.
//!
//! Every job in the queue begins, even if the thread that gave it does nothing more. It is queued only while a thread is in
//! [`take`](Handover::take), and that thread does not leave while a job is queued. If it is busy with a job of its own, that job
//! ends: it may wait for jobs that it gave, but a job queues another only if an idle thread takes it at once.

use super::jobs::{Job, JobQueue};
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use crate::sync::{Condvar, Mutex, MutexGuard, PoisonError, thread};
use std::collections::VecDeque;
use std::mem;

pub(crate) struct Handover<'env, W> {
    /// How many more parts of the walk idle threads would take; 1 if all is over. Only a hint: the truth is under the lock.
    asked: AtomicUsize,
    /// Whether a job would be queued. A hint too.
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
    /// How many of those are in [`take`](Handover::take): they are idle or run a job.
    taking: usize,
    /// How many are idle, and how many of these sleep and have not been woken.
    idle: usize,
    asleep: usize,
    /// Whether more jobs are asked for: from when a thread is idle, or few jobs are left, until the queue is full.
    lacks_jobs: bool,
    /// Whether somebody stopped it: then jobs are dropped.
    is_stopped: bool,
}

/// The queue may hold this many jobs, and two more for each thread. With fewer, threads would be woken for one short job at a
/// time, and would find none while the thread that gives runs a job itself.
const JOBS_AHEAD: usize = 16;

/// How many times an idle thread polls before it sleeps. To sleep and to be woken takes longer than a short job.
const PATIENCE: u32 = 32;

impl<'env, W> Handover<'env, W> {
    /// Without any thread yet.
    pub(crate) fn new() -> Self {
        let (work, jobs) = (Vec::new(), VecDeque::new());
        let queue =
            Queue { work, jobs, threads: 0, taking: 0, idle: 0, asleep: 0, lacks_jobs: false, is_stopped: false };
        let [is_job_wanted, has_task, is_over] = [(); 3].map(|()| AtomicBool::new(false));
        let (asked, queue, changed) = (AtomicUsize::new(0), Mutex::new(queue), Condvar::new());
        Self { asked, is_job_wanted, has_task, is_over, queue, changed }
    }

    /// For a busy thread: how many parts of its work to [`give`](Self::give). Not 0 if [it is over](Self::is_over).
    #[inline]
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Relaxed)
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

    /// For an idle thread: waits for work, and runs jobs meanwhile. `None` once all threads are idle, or the [stop](Self::stop)
    /// was called.
    pub(crate) fn take(&self, run: impl Fn(Job<'env>)) -> Option<W> {
        let mut queue = self.lock();
        queue.taking += 1;
        queue.idle += 1;
        let mut patience = PATIENCE;
        let work = loop {
            // If this was the last busy thread, the walk ends here.
            self.settle(&mut queue);
            if self.is_over() {
                self.changed.notify_all();
                break None;
            }
            if let Some(job) = queue.take_job() {
                // A thread that runs a job is not idle, so the walk cannot end before the job does.
                queue.idle -= 1;
                self.settle(&mut queue);
                drop(queue);
                run(job);
                queue = self.lock();
                queue.idle += 1;
                patience = PATIENCE;
                continue;
            }
            if let Some(work) = queue.work.pop() {
                break Some(work);
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
        queue.taking -= 1;
        queue.idle -= 1;
        self.settle(&mut queue);
        work
    }

    /// Adds a thread, before it starts.
    pub(crate) fn join(&self) {
        self.lock().threads += 1;
    }

    /// Removes a thread that no longer takes part.
    pub(crate) fn leave(&self) {
        let mut queue = self.lock();
        queue.threads -= 1;
        self.settle(&mut queue);
        if self.is_over() {
            self.changed.notify_all();
        }
    }

    /// Call this after each change.
    fn settle(&self, queue: &mut Queue<'env, W>) {
        let tasks = queue.work.len() + queue.jobs.len();
        if tasks == 0 && queue.idle >= queue.threads {
            self.is_over.store(true, Relaxed);
        }
        let is_over = self.is_over();
        self.asked.store(if is_over { 1 } else { queue.idle.saturating_sub(tasks) }, Relaxed);
        // Once a thread was idle, jobs are given until there are enough, even if it has taken one meanwhile. Otherwise each
        // thread would be woken for one job at a time.
        queue.lacks_jobs = queue.jobs.len() < queue.most_jobs(false) && (queue.lacks_jobs || queue.idle > tasks);
        self.has_task.store(is_over || tasks > 0, Relaxed);
        self.is_job_wanted.store(queue.is_stopped || !is_over && queue.lacks_jobs, Relaxed);
    }

    /// A sleeping thread wakes for each task, as long as there is one.
    fn wake_one(&self, queue: &mut Queue<'env, W>) {
        // The waker decrements the count, not the sleeper, so two tasks given in a row wake two threads. After a spurious wake-up
        // the count is one too high, which costs a notification that wakes nobody.
        if queue.asleep > 0 {
            queue.asleep -= 1;
            self.changed.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue<'env, W>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'env, W> JobQueue<'env> for Handover<'env, W> {
    fn is_wanted(&self) -> &AtomicBool {
        &self.is_job_wanted
    }

    fn give_job(&self, job: Job<'env>, is_in_job: bool) -> Option<Job<'env>> {
        let mut queue = self.lock();
        if self.is_over() || queue.jobs.len() >= queue.most_jobs(is_in_job) {
            let is_stopped = queue.is_stopped;
            drop(queue); // what the job owns is dropped without the lock
            return (!is_stopped).then_some(job);
        }
        queue.jobs.push_back(job);
        self.wake_one(&mut queue);
        self.settle(&mut queue);
        None
    }

    /// Ends it for all threads. What nobody has begun is dropped.
    fn stop(&self) {
        let mut queue = self.lock();
        self.is_over.store(true, Relaxed);
        queue.is_stopped = true;
        let tasks = (mem::take(&mut queue.work), mem::take(&mut queue.jobs));
        self.settle(&mut queue);
        self.changed.notify_all();
        drop(queue); // what the caller's closures own is dropped without the lock
        drop(tasks);
    }
}

impl<'env, W> Queue<'env, W> {
    /// How many jobs may be queued.
    fn most_jobs(&self, is_in_job: bool) -> usize {
        match self.taking {
            0 => 0,
            _ if is_in_job => self.idle,
            _ => JOBS_AHEAD + 2 * self.threads,
        }
    }

    fn take_job(&mut self) -> Option<Job<'env>> {
        let job = self.jobs.pop_front()?;
        // More are asked for before the last one is taken: the thread that gives may be busy with a job of its own.
        self.lacks_jobs |= self.jobs.len() < self.threads;
        Some(job)
    }
}
#[cfg(test)]
mod tests {
    use super::{Handover, Job, JobQueue};
    use crate::walk::Jobs;
    use std::ops::Range;
    use std::sync::Mutex;
    use std::sync::mpsc::channel;
    use std::thread;

    /// Takes work, as thread 1.
    fn take<W>(handover: &Handover<'_, W>) -> Option<W> {
        handover.take(|job| job(Jobs::new(handover, 1).in_job()))
    }

    /// Work is a range of numbers. A thread gives away parts of its own when asked, and each number as a job when that is wanted.
    /// Every number is done once.
    #[test]
    fn all_work_is_done_once_and_then_all_threads_end() {
        for threads in [1, 2, 4] {
            let done = Mutex::new(Vec::new());
            let note = |number: u32| done.lock().unwrap().push(number);
            let handover = Handover::<Range<u32>>::new();
            let walk = || {
                while let Some(mut range) = take(&handover) {
                    while let Some(number) = range.next() {
                        while handover.asked() > 0 && range.len() > 1 {
                            let middle = range.start.midpoint(range.end);
                            handover.give(middle..range.end);
                            range.end = middle;
                        }
                        Jobs::new(&handover, 0).run(move |_| note(number));
                    }
                }
                assert!(take(&handover).is_none() && handover.is_over());
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
            let other = scope.spawn(|| (take(&handover), take(&handover).is_none()));
            handover.give("the rest");
            handover.leave();
            assert_eq!(other.join().unwrap(), (Some("the rest"), true));
        });
    }

    fn is_queued(handover: &Handover<'_, ()>, is_in_job: bool) -> bool {
        handover.give_job(Box::new(|_| ()), is_in_job).is_none()
    }

    /// Waits until this many threads are idle and have no task to take.
    fn wait_for_idle(handover: &Handover<'_, ()>, idle: usize) {
        while handover.asked() != idle {
            thread::yield_now();
        }
    }

    /// Nobody is idle or runs a job, then one does, then it is idle, then it has left.
    #[test]
    fn job_is_queued_only_where_a_thread_will_run_it() {
        let handover = Handover::new();
        handover.join();
        assert!(!is_queued(&handover, false) && !is_queued(&handover, true));
        handover.join();
        assert!(!is_queued(&handover, false), "the other thread has work");
        let (go, wait) = channel::<()>();
        let (tell, is_in_job) = channel();
        let job: Job<'_> = Box::new(move |_| {
            tell.send(()).unwrap();
            wait.recv().unwrap();
        });
        thread::scope(|scope| {
            scope.spawn(|| assert!(take(&handover).is_some()));
            wait_for_idle(&handover, 1);
            assert!(handover.give_job(job, false).is_none());
            is_in_job.recv().unwrap();
            let queued = (0..100).filter(|_| is_queued(&handover, false)).count();
            assert_eq!(queued, 16 + 2 * 2, "the length of the queue");
            assert!(!is_queued(&handover, true), "the thread may wait for the job that gives this one");
            go.send(()).unwrap();
            wait_for_idle(&handover, 1);
            handover.give(());
        });
        assert!(!is_queued(&handover, false), "the other thread has work again");
    }

    /// A job of the queue may wait for those that it gives, so a thread must take each at once.
    #[test]
    fn job_in_a_job_is_queued_only_if_a_thread_is_idle_for_each() {
        let handover = Handover::new();
        handover.join();
        thread::scope(|scope| {
            for _ in 0..2 {
                handover.join();
                scope.spawn(|| take(&handover));
            }
            wait_for_idle(&handover, 2);
            let queue = handover.lock();
            assert_eq!([queue.most_jobs(true), queue.most_jobs(false)], [2, 16 + 2 * 3]);
            drop(queue);
            handover.stop();
        });
    }

    #[test]
    fn the_end_wakes_all_and_drops_what_has_not_begun() {
        let handover = Handover::<()>::new();
        thread::scope(|scope| {
            for _ in 0..3 {
                handover.join();
                scope.spawn(|| assert!(take(&handover).is_none()));
            }
            handover.stop();
        });
        assert!(handover.asked() > 0 && handover.is_over());
        assert!(handover.give_job(Box::new(|_| panic!("a job ran after the end")), false).is_none());
        assert!(take(&handover).is_none());
    }
}
