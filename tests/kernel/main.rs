//! Tests that mount, inject faults or serve a hostile file system. They say SKIPPED where they lack root or a program of
//! `.ci/packages`. Each module is a topic; a new test belongs in
//!
//! - `suite`: a case that every file system must pass, alone, while signals come, or while others change it;
//! - `faults`: a system call that ends with an error;
//! - `hostile`: a server that answers with whatever it likes;
//! - `examples`: the examples, as programs, where directories list no types;
//! - `procfs`: processes that come and go, or belong to others;
//! - `walks`: a walk in any of these conditions; `walk::walk`: a `Walk`.
//!
//! A new file system is a line of `file_systems`.
//!
//! Support: `mounted` mounts file systems in a namespace of one test, `fuse` is the hostile server, `trap` makes system calls
//! fail, `errnos` has their errors, `signals` interrupts them, and `support` is shared with the other test binaries. All tests run
//! as threads of one process: whatever changes the whole process, or counts its descriptors or its memory, goes into another one
//! by `support::process`. A test that any machine can run belongs in `tests/it`.

mod errnos;
mod examples;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))] // where `trap` knows the registers
mod faults;
mod file_systems;
mod fuse;
mod hostile;
mod mounted;
mod procfs;
mod signals;
mod suite;
#[path = "../support/mod.rs"]
mod support;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod trap;
mod walks;
