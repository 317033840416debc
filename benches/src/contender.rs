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
    name: &'a str,
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

/// Defines a [`Reader`]: a struct with these fields, and how it reads. `take` gets each name.
#[macro_export]
macro_rules! reader {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty),+ } |$take:ident| $body:block) => {
        $(#[$doc])*
        struct $name<'a> { $($field: $type),+ }

        impl $crate::contender::Reader for $name<'_> {
            #[inline]
            fn read(&mut self, mut $take: impl FnMut(&[u8])) {
                let Self { $($field),+ } = self;
                $body
            }
        }
    };
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
        let mut hasher = DefaultHasher::new();
        self.0.read(|name| name.hash(&mut hasher));
        hasher.finish()
    }
}

/// Work that is timed by its whole answer, a number.
struct Counting<F>(F);

impl<F: FnMut() -> u64> Work for Counting<F> {
    fn time(&mut self, times: u64) -> Duration {
        let begin = Instant::now();
        for _ in 0..times {
            black_box((self.0)());
        }
        begin.elapsed()
    }

    fn answer(&mut self) -> u64 {
        (self.0)()
    }
}

/// Returns the hash of names, whose order counts.
pub fn hash<N: AsRef<[u8]>>(names: impl IntoIterator<Item = N>) -> u64 {
    let mut hasher = DefaultHasher::new();
    names.into_iter().for_each(|name| name.as_ref().hash(&mut hasher));
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
    pub fn counting<F: FnMut() -> u64 + 'a>(
        name: &'static str,
        oracle: Oracle<'a>,
        count: F,
    ) -> Self {
        Self::new(name, oracle, Counting(count))
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
        let Oracle { name: subject, changes, many, answer: expected } = &self.oracle;
        let (tries, needed) = if *changes { (5, 3) } else { (1 + many, 1 + many) };
        let (mut done, mut agreed) = (0, 0);
        // One directory has always the same answer, unless another process changes it.
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
        let name = self.name;
        assert!(agreed >= needed, "{name} on {subject} is right {agreed} times out of {done}");
    }
}

impl<'a> Oracle<'a> {
    /// Creates an oracle for `many` directories. Its answer is about the next one.
    pub fn new<F: Fn() -> u64 + 'a>(name: &'a str, changes: bool, many: usize, answer: F) -> Self {
        Self { name, changes, many, answer: Box::new(answer) }
    }
}
