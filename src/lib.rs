//! Reads Linux directories at the speed of the kernel, and walks trees of them.
//!
//! - [`read_dir`](read_dir()) opens one directory: a [`ReadDir`] lends each [`Entry`] until the next call of `next`.
//! - [`Walk`] lends each [`Dir`] of a tree, and a `Dir` lends entries.
//! - [`Listing`] is a whole directory, sorted, in memory that is reused.
//! - [`Entries`] reads directories into your own [`Buffer`]: for many that do not form a tree.
//!
//! ```
//! for pid in lendir::read_dir("/proc")?.filter_map(|entry| entry.numeric_name()) {
//!     println!("{}", pid?);
//! }
//! # Ok::<(), lendir::Error>(())
//! ```
//!
//! This `for` goes over what the closure of [`filter_map`](ReadDir::filter_map) returns for each entry: numbers. A `while let`
//! goes over the entries themselves:
//!
//! ```
//! let mut etc = lendir::read_dir("/etc")?;
//! while let Some(entry) = etc.next()? {
//!     println!("{:8} {:?}", entry.stat()?.st_size, entry.name_os());
//! }
//! # Ok::<(), lendir::Error>(())
//! ```
//!
//! For a tree, put that loop inside one over its directories. Errors do not end it: a closure gets each one.
//!
//! ```
//! let mut walk = lendir::Walk::open("/sys/class")?;
//! while let Some(mut dir) = walk.next_ok(|error| eprintln!("{error}")) {
//!     while let Some(entry) = dir.next_ok(|error| eprintln!("{error}")) {
//!         println!("{:?}", entry.path()); // {:?} escapes control characters, which a terminal would obey
//!     }
//! }
//! # Ok::<(), lendir::Error>(())
//! ```
//!
//! An [`Iterator`] cannot lend, so over entries there is no `for` and no `collect`: copy what you keep
//! (`entry.name().to_vec()`). **While an entry is in use, its [`Dir`] and [`Worker`] are borrowed**: [`Dir::next`] says what to
//! take before the inner loop. Types and flags of [`rustix`] are in the signatures; it is re-exported as `lendir::rustix`. Use
//! only its `fs`, `io`, `fd` and `path`: the crate may stop asking for its other modules.
//!
//! # Which call do I want?
//!
//! | I want to | call |
//! |---|---|
//! | return the first entry that matches | [`ReadDir::find`], [`Dir::find`] |
//! | keep a directory in a struct, and read it again | [`ReadDir`], [`ReadDir::rewind`] |
//! | list PIDs, TIDs or descriptors | [`Entry::numeric_name`] |
//! | use `for`, `collect` or an adapter | [`ReadDir::filter_map`] |
//! | begin from a descriptor | [`ReadDir::from_fd`], [`WalkOptions::from_fd`] |
//! | have the entries sorted, or find one by name | [`ReadDir::read_into`], [`Dir::read_into`]; [`Listing::by_name`]; as git sorts, [`Order::Path`] |
//! | tell directories from files | [`Entry::file_type`]; [`Entry::resolve_file_type`] if it must be certain |
//! | stat, open, remove or change an entry | [`Entry::stat`], [`Entry::open`]; `*at` calls with its [`dir`](Entry::dir) and [`name_cstr`](Entry::name_cstr) |
//! | only count; go on later where I stopped | [`ReadDir::count`]; [`Entry::cookie`], [`ReadDir::seek`]: [a recipe](recipes#one-directory) |
//! | know whether a directory was removed while I read | [`ReadDir::removed`] |
//! | read thousands of directories in the same memory | [`Entries::new`] on one [`Buffer`]; on one file system [`EndMarker::of`] once |
//! | not go below an entry, or a directory | [`Dir::skip_entry`], [`Dir::skip_name`]; [`Dir::skip_all`] |
//! | follow a link; enter a directory by name | [`Dir::follow_entry`], [`Dir::follow_name`]; [`Dir::enter`] |
//! | go no deeper than some levels, stay on one mount | [`WalkOptions::max_depth`], [`WalkOptions::same_mount`] |
//! | visit a directory after everything below it | [`WalkOptions::second_visits`], [`Dir::is_second_visit`] |
//! | have what is below an entry right after it; give each child its own value | [`Dir::enter`], one at a time: [recipes](recipes#trees) |
//! | carry a value down: rules, a depth, a node of your own tree; sums up | [`WalkOptions::with_state`], [`Dir::state`]; [recipes](recipes#trees) |
//! | walk on several threads | [`Walk::spread`]; to work on each file, cancel: [recipes](recipes#threads) |
//! | end at the first error; stop early | [`Walk::next`], [`Dir::next`]; `break`, [`Worker::stop`] |
//! | walk several trees | [`WalkOptions::open_all`]; one after another [`Walk::reopen`] |
//!
//! [`recipes`] has programs to copy from. [`coming_from`] translates the calls of `std`, walkdir, ignore, `RawDir` and `fts`.
//!
//! # What the kernel promises while others change the directory
//!
//! On local file systems it returns an entry that stays throughout a scan exactly once, with one exception: if all entries
//! that tmpfs has yet to return are removed between two `getdents64`, it returns those that are left once more. An entry that
//! is made, removed or renamed meanwhile may or may not come. Hashed ext4 can return a renamed one twice; NFS, 9p and CIFS
//! even one that stays. A program that makes an entry for each one it reads may never end on xfs and on ext4 without
//! `dir_index`. btrfs shows an entry made after `open` only after `rewind`. lendir does not hide this: it would have to
//! remember every name.
//!
//! # What it costs
//!
//! A small directory takes `openat`, two `getdents64` and `close`, in a [`Walk`] often [one less](Walk#what-it-costs), and
//! nearly all of the time is the kernel's. A [`Buffer`] is one allocation; a [`Listing`] and a [`Walk`] stop allocating once
//! they are large enough. `cargo bench` measures time, and `cargo bench --bench counts` counts system calls and allocations.
//! Costs, here and at each item, are those of this version, and no promises.
//!
//! # Under `LD_PRELOAD`
//!
//! Like `rustix` by default, the crate makes system calls without the C library, so it bypasses fakeroot and fakechroot: under
//! them, [`Entry::stat`] says who really owns a file, and paths are not redirected.
#![deny(unsafe_code)]
#![allow(clippy::inline_always, reason = "after a system call, returns from outer frames mispredict: see `find`")]
#![allow(clippy::should_implement_trait, reason = "`Iterator` cannot lend")]
#![allow(clippy::must_use_candidate, reason = "an answer that nobody looks at does no harm")]
#![allow(clippy::missing_panics_doc, reason = "where misuse panics, `# Panics` says so; any other panic is a bug")]
#![allow(clippy::missing_errors_doc, reason = "many have the errors of another, and say so")]
#![warn(missing_docs, missing_debug_implementations, unreachable_pub)]

#[cfg(not(any(target_os = "linux", target_os = "android")))]
compile_error!("lendir wraps the Linux system call getdents64: it builds for Linux and Android only");

// Elsewhere the rest of the crate is left out, so this is the only error.
#[cfg(any(target_os = "linux", target_os = "android"))]
mod arena;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod buffer;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod end_marker;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod entries;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod entry;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod error;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod file_system;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod listed_entry;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod listing;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod open;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod read_dir;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod records;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod sort;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod span;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod sync;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod walk;

#[cfg(any(target_os = "linux", target_os = "android"))]
pub use {
    buffer::Buffer,
    end_marker::EndMarker,
    entries::Entries,
    entry::Entry,
    error::Error,
    listed_entry::{ListedEntries, ListedEntry},
    listing::{Listing, Order},
    open::{open, open_with, openat, openat_with},
    read_dir::{ReadDir, read_dir},
    walk::{Dir, Walk, WalkOptions, Worker},
};

pub use rustix;
#[doc(no_inline)]
#[cfg(any(target_os = "linux", target_os = "android"))]
pub use rustix::fs::{FileType, OFlags, Stat, Statx, StatxFlags};

#[cfg(doc)]
#[doc = include_str!("recipes.md")]
pub mod recipes {}

#[cfg(doc)]
#[doc = include_str!("coming_from.md")]
pub mod coming_from {}

/// The README's programs compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// libtest names a test that has run for a minute, and waits on. This one, the first by its name, then ends the run.
#[cfg(all(test, not(miri)))]
#[test]
fn a_hang_ends_the_run() {
    use std::io::Write;
    use std::time::Duration;
    std::thread::spawn(|| {
        std::thread::sleep(Duration::from_secs(120));
        let _ = writeln!(std::io::stderr(), "FAILED: a test of the library has not ended after 120 s"); // past libtest
        std::process::exit(1);
    });
}
