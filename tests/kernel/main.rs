//! Tests that mount, inject faults or serve a hostile file system. They print SKIPPED if they lack
//! root or a program of `.ci/packages`.
//!
//! Each module is a topic:
//!
//! - `suite`: a case that every file system must pass, alone, during signals, or during changes;
//! - `faults`: a system call that fails;
//! - `hostile`: a server that sends any answer;
//! - `examples`: the examples, as programs, where directories list no types;
//! - `procfs`: processes that start and end, or belong to other users;
//! - `walks`: a walk under any of these conditions; `walks::walk`: a `Walk`.
//!
//! A new file system is a line of `file_systems`. A test that any machine can run belongs in
//! `tests/it`.
//!
//! No module of tests imports another. What they share: `mounted` mounts file systems in a namespace
//! of one test, `fuse` is the hostile server, `trap` makes system calls fail, `errnos` lists errors,
//! `signals` interrupts calls, and `report` is what a walk has yielded. All test binaries share
//! `support`. All tests run as threads of one process. A test that changes the whole process, or
//! counts its descriptors or its memory, must run in another process: see `support::process`.

mod errnos;
mod examples;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))] // where `trap` knows the registers
mod faults;
mod file_systems;
mod fuse;
mod hostile;
mod mounted;
mod procfs;
mod report;
mod signals;
mod suite;
#[allow(dead_code, reason = "`tests/it` uses the rest")]
#[path = "../support/mod.rs"]
mod support;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod trap;
mod walks;
