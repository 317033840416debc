//! `Contender`: one way to do a piece of work. It can be timed, and its answer can be checked. It
//! does not know the work.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::hint::black_box;
use std::time::{Duration, Instant};

pub struct Contender<'a> {
    pub name: &'static str,
    oracle: Oracle<'a>,
    work: Box<dyn Work + 'a>,
}

/// The answer that a contender must give, and how often it must be checked.
pub struct Oracle<'a> {
    /// The name of the directory or tree, for messages.
    subject: &'a str,
    /// Whether other processes change it while it is read, like `/proc`.
    changes: bool,
    /// The number of directories that are read in turn.
    many: usize,
    answer: Box<dyn Fn() -> u64 + 'a>,
}

/// The work of a contender.
pub trait Work {
    /// Does the work `times` times, and returns the duration.
    fn time(&mut self, times: u64) -> Duration;
    /// Does the work once, and returns the answer.
    fn answer(&mut self) -> u64;
}

/// A reader of a directory or a tree.
pub trait Reader {
    /// Calls `take` with the name of each entry, except `.` and `..`.
    fn read(&mut self, take: impl FnMut(&[u8]));
}

/// Work that adds up the lengths of the names when it is timed. Its answer is the hash of the
/// names.
struct Reading<R>(R);

impl<R: Reader> Work for Reading<R> {
    // Monomorphised, so the reader, the loop over the names and the timed loop can be one frame.
    fn time(&mut self, times: u64) -> Duration {
        let begin = Instant::now();
        for _ in 0..times {
            let mut bytes = 0;
            self.0.read(|name| bytes += name.len());
            black_box(bytes);
        }
        begin.elapsed()
    }

    fn answer(&mut self) -> u64 {
        let mut hasher = NamesHasher::default();
        self.0.read(|name| hasher.add(name));
        hasher.finish()
    }
}

/// Work that fills `memory`. `answer`, which is not timed, reads this memory.
struct Filling<M, F, A> {
    memory: M,
    fill: F,
    answer: A,
}

impl<M, F: FnMut(&mut M), A: Fn(&M) -> u64> Work for Filling<M, F, A> {
    fn time(&mut self, times: u64) -> Duration {
        let begin = Instant::now();
        for _ in 0..times {
            (self.fill)(&mut self.memory);
            black_box(&mut self.memory);
        }
        begin.elapsed()
    }

    fn answer(&mut self) -> u64 {
        (self.fill)(&mut self.memory);
        (self.answer)(&self.memory)
    }
}

/// A hasher of names, whose order counts.
#[derive(Default)]
pub struct NamesHasher(DefaultHasher);

impl NamesHasher {
    pub fn add(&mut self, name: &[u8]) {
        name.hash(&mut self.0);
    }

    pub fn finish(self) -> u64 {
        self.0.finish()
    }
}

pub fn hash<N: AsRef<[u8]>>(names: impl IntoIterator<Item = N>) -> u64 {
    let mut hasher = NamesHasher::default();
    names.into_iter().for_each(|name| hasher.add(name.as_ref()));
    hasher.finish()
}

impl<'a> Contender<'a> {
    pub fn new(name: &'static str, oracle: Oracle<'a>, work: impl Work + 'a) -> Self {
        Self { name, oracle, work: Box::new(work) }
    }

    /// Creates a contender that reads names. `oracle` must answer with a hash of names.
    pub fn reading(name: &'static str, oracle: Oracle<'a>, reader: impl Reader + 'a) -> Self {
        Self::new(name, oracle, Reading(reader))
    }

    /// Creates a contender that answers with the number that `count` returns.
    pub fn counting(
        name: &'static str,
        oracle: Oracle<'a>,
        mut count: impl FnMut() -> u64 + 'a,
    ) -> Self {
        Self::filling(name, oracle, 0, move |counted| *counted = count(), |counted| *counted)
    }

    /// Creates a contender that fills the same memory each time. `answer`, which is not timed,
    /// reads this memory.
    pub fn filling<M: 'a>(
        name: &'static str,
        oracle: Oracle<'a>,
        memory: M,
        fill: impl FnMut(&mut M) + 'a,
        answer: impl Fn(&M) -> u64 + 'a,
    ) -> Self {
        Self::new(name, oracle, Filling { memory, fill, answer })
    }

    #[must_use]
    pub fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// Returns the time that the contender takes to do its work `times` times.
    pub fn time(&mut self, times: u64) -> Duration {
        self.work.time(times)
    }

    /// Panics unless the contender gives the oracle's answer twice for each directory that is read
    /// in turn.
    ///
    /// If other processes change the directory, a comparison counts only if the oracle gives the
    /// same answer before and after it. Three of five comparisons must match, because a process can
    /// start and end in between.
    pub fn check(&mut self) {
        let Oracle { subject, changes, many, answer: expected } = &self.oracle;
        let (tries, needed) = if *changes { (5, 3) } else { (1 + many, 1 + many) };
        let (mut done, mut agreed) = (0, 0);
        // The answer for a single directory is always the same, unless another process changes the
        // directory.
        let always = (!changes && *many == 1).then(expected);
        for _ in 0..1000 * many {
            let before = always.unwrap_or_else(expected);
            let answer = self.work.answer();
            if !changes || expected() == before {
                done += 1;
                agreed += usize::from(answer == before);
            }
            if done == tries {
                break;
            }
        }
        assert!(
            agreed >= needed,
            "{} on {subject} is right only {agreed} times out of {done}",
            self.name
        );
    }
}

impl<'a> Oracle<'a> {
    pub fn new(subject: &'a str, changes: bool, answer: impl Fn() -> u64 + 'a) -> Self {
        Self { subject, changes, many: 1, answer: Box::new(answer) }
    }

    /// Sets the number of directories that are read in turn. The answer is about the next
    /// directory.
    #[must_use]
    pub fn of_many(self, many: usize) -> Self {
        Self { many, ..self }
    }
}
