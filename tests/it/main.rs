//! Tests that any machine can run, without root. They print SKIPPED if they lack a program. `plain`
//! shows what a test looks like. Each module is a topic:
//!
//! - `contract`: what `Debug` shows of the public types;
//! - `read_dir`: a promise of `ReadDir`; `listing`: a promise of `Listing`;
//! - `entry`: a query of an entry; `types`: the traits of every public type (`Send`, covariant);
//! - `errors`: an error of a call with a wrong argument;
//! - `oracle`: a directory that `std::fs::read_dir` and `lendir` must read alike;
//! - `walk`: a promise of `Walk` or `WalkEntry`;
//! - `walk_dirs`: a promise of `WalkDirs` or `Dir`; `parallel`: a walk on several threads;
//! - `roots`: the kinds of roots, or no root;
//! - `walk_dirs_bounds`: a deep tree, few descriptors, or closed levels;
//! - `walk_dirs_errors`: an error of a walk, or a directory that cannot be read; `unreadable`: one that
//!   cannot be searched;
//! - `requests`, `follow`: what a walk enters on request, or after a change;
//! - `clone_panics`: a state that panics;
//! - `model`: what holds for every walk, whatever the caller requests and the tree does;
//! - `budgets`: what reading may cost: system calls, allocations, memory and instructions;
//! - `examples`: the examples, run as programs; `rm`: the example that must not remove anything
//!   else; `recipes`: the programs of `src/recipes.md`.
//!
//! No module imports another. What they share is in `support`, which all test binaries share: it
//! skips tests, runs a part of a test in another process, shows system calls, finds the examples,
//! makes and removes trees, and keeps the result of one reading. It also has the model of both walks
//! (`support::visits`) and their caller (`support::requests`), whose seeds the tests choose. Most
//! tests import `support::prelude`. A test that mounts, injects faults or needs a hostile file
//! system belongs in `tests/kernel`.

mod budgets;
mod clone_panics;
mod contract;
mod entry;
mod errors;
mod examples;
mod follow;
mod listing;
mod model;
mod oracle;
mod parallel;
mod plain;
mod read_dir;
mod recipes;
mod requests;
mod rm;
mod roots;
#[allow(dead_code, reason = "`tests/kernel` uses the rest")]
#[path = "../support/mod.rs"]
mod support;
mod types;
mod unreadable;
mod walk;
mod walk_dirs;
mod walk_dirs_bounds;
mod walk_dirs_errors;

use support::fixture; // for the tests of the examples
