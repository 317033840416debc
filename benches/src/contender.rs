//! A contender: one way to do a piece of work. It can be timed, and its answer can be checked.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::hint::black_box;
use std::time::{Duration, Instant};

pub struct Contender<'a> {
    pub name: &'static str,
    oracle: Oracle<'a>,
    work: Box<dyn Work + 'a>,
}

/// Knows the answer that a contender must give.
pub struct Oracle<'a> {
    /// What is read, for messages.
    subject: &'a str,
    /// Whether other processes change it while it is read, as they do `/proc`.
    changes: bool,
    /// How many directories are read in turn.
    many: usize,
    answer: Box<dyn Fn() -> u64 + 'a>,
}

/// What a contender does.
pub trait Work {
    /// Does it `times` times, and returns how long that took.
    fn time(&mut self, times: u64) -> Duration;
    /// Does it once, and returns the answer.
    fn answer(&mut self) -> u64;
}

/// Reads a directory or a tree.
pub trait Reader {
    /// Calls `take` with the name of each entry, except `.` and `..`.
    fn read(&mut self, take: impl FnMut(&[u8]));
}

/// When timed, it sums up the lengths of the names. Its answer is their hash.
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

/// Fills `memory`. `answer`, which is not timed, looks at it.
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

/// The hash of names in an order.
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

    /// `oracle` must answer with a hash of names.
    pub fn reading(name: &'static str, oracle: Oracle<'a>, reader: impl Reader + 'a) -> Self {
        Self::new(name, oracle, Reading(reader))
    }

    /// Answers with the number that `count` returns.
    pub fn counting(
        name: &'static str,
        oracle: Oracle<'a>,
        mut count: impl FnMut() -> u64 + 'a,
    ) -> Self {
        Self::filling(name, oracle, 0, move |counted| *counted = count(), |counted| *counted)
    }

    /// Fills the same memory each time. `answer`, which is not timed, looks at it.
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

    /// How long it takes to do it `times` times.
    pub fn time(&mut self, times: u64) -> Duration {
        self.work.time(times)
    }

    /// Panics unless it gives the oracle's answers, the second time too, and for each directory that is read in turn.
    ///
    /// If other processes change what is read, a comparison counts only if the oracle gives the same answer before and after it.
    /// Three of five must match: a process may come and go in between.
    pub fn check(&mut self) {
        let Oracle { subject, changes, many, answer: expected } = &self.oracle;
        let (tries, needed) = if *changes { (5, 3) } else { (1 + many, 1 + many) };
        let (mut done, mut agreed) = (0, 0);
        // For a single directory that nobody changes, the answer is always the same.
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

    /// This many directories are read in turn. The answer is that of the next one.
    #[must_use]
    pub fn of_many(self, many: usize) -> Self {
        Self { many, ..self }
    }
}
