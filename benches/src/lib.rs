//! What the benchmarks share: contenders, what they read, and how they are measured.
//!
//! - [`contender`]: one way to do a piece of work. It can be timed, and its answer is checked against an oracle.
//! - [`directories`] and [`trees`]: what is read, and the oracles over it.
//! - [`readers`], [`ladder`] and [`walkers`]: the contenders that read a directory, sort it, and walk a tree.
//! - [`turns`]: measures contenders in turn. [`table`] prints ratios of what was measured.

#![allow(clippy::missing_panics_doc, clippy::must_use_candidate, reason = "a benchmark that cannot run panics")]

pub mod contender;
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
