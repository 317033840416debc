//! What the benchmarks share: contenders, what they read, and how they are measured.
//!
//! - [`contender`]: one way to do a piece of work. It can be timed, and its answer is checked against an oracle.
//! - [`directories`] and [`trees`]: what is read, and the oracles over it.
//! - [`readers`], [`ladder`] and [`walkers`]: the contenders that read a directory, sort it, and walk a tree.
//! - [`turns`]: measures contenders in turn. [`table`] prints ratios of what was measured.
//! - [`counters`]: cycles and mispredicted branches, where the processor tells.

#![allow(clippy::missing_panics_doc, clippy::must_use_candidate, reason = "a benchmark that cannot run panics")]

pub mod contender;
pub mod counters;
pub mod directories;
pub mod ladder;
pub mod readers;
pub mod table;
pub mod trees;
pub mod turns;
pub mod walkers;

/// Whether `LENDIR_LONG=1` asks for the measurements that take long.
pub fn is_long() -> bool {
    std::env::var_os("LENDIR_LONG").is_some_and(|value| value == "1")
}

/// The arguments of the program: options, and words that choose rows.
pub struct Arguments {
    options: Vec<String>,
    words: Vec<String>,
}

impl Arguments {
    pub fn read() -> Self {
        let (options, words) = std::env::args().skip(1).partition(|arg| arg.starts_with("--"));
        Self { options, words }
    }

    pub fn has(&self, option: &str) -> bool {
        self.options.iter().any(|it| it == option)
    }

    /// One of the words is in `label`, or there are no words.
    pub fn ask_for(&self, label: &str) -> bool {
        self.words.is_empty() || self.words.iter().any(|word| label.contains(word))
    }
}
