//! Tests that any machine can run, without root. Where they lack a program, they say SKIPPED. Each module is a topic. To see what
//! a test looks like, begin with `plain`. A new test belongs in
//!
//! - `contract`: a promise of `Entries`, `Entry` or `Buffer`;
//! - `read_dir`: a promise of `ReadDir`; `listing`: one of `Listing`;
//! - `entry`: what an entry queries of the file system; `types`: the traits of every public type (`Send`, covariant);
//! - `errors`: an error of a call with a wrong argument;
//! - `oracle`: a directory that `std::fs::read_dir` and `lendir` must read alike;
//! - `walk_dirs`: a promise of `WalkDirs` or `Dir`; `roots`: what a root may be; `walk_dirs_options`: an option, or a walk without a tree;
//!   `walk_dirs_bounds`: a deep tree, few descriptors, or the way back up; `walk_dirs_errors`: an error of a walk;
//!   `walk`: a promise of `Walk` or `WalkEntry`, or what it costs; `unreadable`: a directory that may not be read;
//!   `state`: what a walk carries down; `clone_panics`: a state whose clone panics;
//! - `requests`, `follow`: what a walk enters because the caller requested it; `run_parallel`: a walk on several threads; `model`: what holds
//!   of every walk, whatever the caller chooses and the tree does;
//! - `costs`, `walk_dirs_costs`: allocations; `system_calls`, `walk_dirs_system_calls`; `instructions`: those of a user's loop;
//! - `attack_costs`, `skip_name`: a cost of a walk that must not grow with the square of the tree; `link_costs`: the cost of
//!   followed links;
//!   `kept_open`: the descriptors that a walk keeps;
//! - `examples`: the examples, run as programs; `rm`: the one that must remove nothing else.
//!
//! `fixture` makes directories to read, and runs the examples; `strace` shows system calls.
//! `support` is shared with the other test binaries: it skips a test, runs a part of one in another process, finds the examples,
//! makes trees and removes them, holds the result of one reading, and states what a walk must lend (`support::visits`), and what a
//! `Walk` must (`support::pre_order`). A test that mounts, injects faults or needs a hostile file system belongs in
//! `tests/kernel`.

mod attack_costs;
mod clone_panics;
mod contract;
mod costs;
mod entry;
mod errors;
mod examples;
mod fixture;
mod follow;
mod instructions;
mod kept_open;
mod link_costs;
mod listing;
mod model;
mod oracle;
mod parallel;
mod plain;
mod read_dir;
mod requests;
mod rm;
mod roots;
mod skip_name;
mod state;
mod strace;
#[allow(dead_code, reason = "`tests/kernel` uses the rest")]
#[path = "../support/mod.rs"]
mod support;
mod system_calls;
mod types;
mod unreadable;
mod walk;
mod walk_dirs;
mod walk_dirs_bounds;
mod walk_dirs_costs;
mod walk_dirs_errors;
mod walk_dirs_options;
mod walk_dirs_system_calls;

use support::{machine, visits};
