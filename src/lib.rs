//! Reads Linux directories as fast as the kernel can list them, and walks directory trees.
//!
//! The iterators in this crate are *lending* iterators: each entry borrows its name from a buffer
//! that is reused. So reading a directory allocates nothing per entry.
//!
//! # First program
//!
//! This program prints every entry below `/usr/share`. It reports errors, continues after them, and
//! exits with status 1 if it reported any.
//!
//! ```no_run
//! use lendir::{Error, Walk};
//! use std::io::{self, BufWriter, Write};
//! use std::os::unix::ffi::OsStrExt;
//! use std::process::ExitCode;
//!
//! fn main() -> io::Result<ExitCode> {
//!     let mut status = ExitCode::SUCCESS;
//!     let mut report = |error: Error| {
//!         // An entry that is gone by now is not an error of this program. A missing root is.
//!         if !error.is_gone() || error.is_root() {
//!             eprintln!("{error}");
//!             status = ExitCode::FAILURE;
//!         }
//!     };
//!     let mut out = BufWriter::new(io::stdout().lock());
//!     let mut walk = Walk::options().open_all(["/usr/share"]);
//!     while let Some(entry) = walk.next_or_report(&mut report) {
//!         out.write_all(entry.path().as_os_str().as_bytes())?; // a path is bytes, not text
//!         out.write_all(b"\n")?;
//!     }
//!     out.flush()?;
//!     Ok(status)
//! }
//! ```
//!
//! An entry is valid only until the next call to `next` or `next_or_report`. So `for entry in walk`
//! does not compile, and you copy whatever you want to keep: `entry.path().to_owned()`.
//! [`Walk::paths`] and the `filter_map` methods return ordinary iterators.
//!
//! # Where to start
//!
//! | You want | Use |
//! |---|---|
//! | the entries of a tree, one after another | [`walk`](walk()) |
//! | the directories of a tree, on one or several threads | [`walk_dirs`](walk_dirs()) |
//! | the entries of one directory, in the kernel's order | [`read_dir`](read_dir()) |
//! | the entries of one directory, sorted | [`Listing`] |
//! | many directories that are not one tree, in the same memory | [`Entries`] with a [`Buffer`] |
//!
//! [`coming_from`] translates the calls of `std`, walkdir, ignore, jwalk, `RawDir`, `fts` and
//! `find`. [`recipes`] has programs to copy from, which remove, copy and compare trees, and work on
//! several threads.
//!
//! Both walks yield the same entries, in different orders:
//!
//! ```text
//!                     walk    walk_dirs
//! src
//! ├── walk            1       1
//! │   ├── ahead.rs    2       4
//! │   └── mod.rs      3       5
//! ├── lib.rs          4       2
//! └── open.rs         5       3
//! ```
//!
//! [`Walk`] yields each directory right before its contents. [`WalkDirs`] yields the directory
//! `src` with its three entries, and then the directory `walk` with its two. The root itself is not
//! an entry.
//!
//! Use `WalkDirs` to walk on several threads in any order ([`WalkDirs::run_parallel`]), or to pass
//! a value down the tree ([`WalkDirsOptions::with_state`]). `WalkDirs` also offers a second visit
//! after the contents of a directory ([`WalkDirsOptions::second_visits`]). A `WalkDirs` reads a
//! directory with any number of files in 32 KiB of memory. Use [`Walk`] for everything else.
//!
//! # One directory
//!
//! | Task | Call |
//! |---|---|
//! | return the first entry that matches | [`ReadDir::find`] |
//! | list processes, threads or descriptors | [`Entry::numeric_name`] |
//! | use `for`, `collect` or an adapter | [`ReadDir::filter_map`] |
//! | tell directories from files | [`Entry::file_type`] |
//! | query size, times and owner | [`Entry::stat`] |
//! | open a file | [`Entry::open_file`] |
//! | open anything else | [`Entry::open`] |
//! | read where a link leads | [`Entry::read_link`] |
//! | make your own `*at` call | [`Entry::dir_fd`] |
//! | read the same directory again | [`ReadDir::rewind`] |
//! | continue later at the same position | [`Entry::cookie`] |
//! | sort the entries | [`ReadDir::read_into`] |
//! | find an entry by name | [`Listing::by_name`] |
//! | know whether the directory was removed | [`ReadDir::is_removed`] |
//!
//! # Trees
//!
//! | Task | Call |
//! |---|---|
//! | collect paths | [`Walk::paths`] |
//! | return the first entry that matches | [`Walk::find`] |
//! | skip the contents of a directory | [`WalkEntry::skip_subtree`] |
//! | name the directories to enter | [`Dir::enter_name`] |
//! | follow a symbolic link | [`WalkEntry::follow`] |
//! | limit the depth | [`WalkOptions::max_depth`] |
//! | stay on one mount | [`WalkOptions::same_mount`] |
//! | sort | [`WalkOptions::order`] |
//! | walk several trees | [`WalkOptions::open_all`] |
//! | start from a descriptor | [`WalkOptions::from_fd`] |
//! | act on a directory after its contents | [`Dir::parent_and_name`] |
//! | pass a value down the tree | [`Dir::state`] |
//! | stop at the first error | [`Walk::next`] |
//!
//! # Threads
//!
//! | Task | Call |
//! |---|---|
//! | walk on several threads, in any order | [`WalkDirs::run_parallel`] |
//! | keep the order while calls wait for a disk or a server | [`WalkOptions::read_ahead`] |
//! | stop all threads | [`Worker::stop`] |
//! | work on each file | [a recipe](recipes#work-on-each-file-on-all-cores) |
//!
//! # Errors
//!
//! Every error has the path that it belongs to. [`Error::is_gone`] returns `true` if the file no
//! longer exists.
//!
//! `next` returns `Result<Option<_>>`, so `while let Some(entry) = dir.next()? {` stops at the
//! first error. An error does not end a walk, and the next call continues. So the usual loop is
//! `while let Some(entry) = walk.next_or_report(report) {`, where `report` is called with each
//! error. Do not write `while let Ok(Some(entry)) = walk.next()`: that loop stops silently at the
//! first error.
//!
//! # What the kernel promises
//!
//! While a directory changes, local file systems return each unaffected entry exactly once. So a
//! loop can remove the entries that it gets. An entry that is created, removed or renamed meanwhile
//! can be returned or omitted.
//!
//! `lendir` does not hide the following exceptions, because to hide them it would have to remember
//! every name:
//!
//! - tmpfs returns entries a second time if all entries that it has yet to return are removed
//!   between two calls.
//! - ext4 and xfs can return a renamed entry twice. NFS, 9p and CIFS can return even an unchanged
//!   entry twice.
//! - `/proc/PID/task` can miss threads that stay while other threads end. A larger [`Buffer`]
//!   helps.
//! - xfs, and ext4 without `dir_index`, may never reach the end if the loop creates an entry for
//!   each entry that it reads.
//! - On btrfs, an entry that was created after `open` is missing until a `rewind`.
//!
//! # Questions
//!
//! **Why can't I write `for entry in walk`?** A `for` loop could keep an entry, but the next call
//! overwrites the entry's name. Copy what you keep, or use [`Walk::filter_map`].
//!
//! **Where is the root?** A [`Walk`] does not yield the root. A [`WalkDirs`] yields the root as a
//! [`Dir`], before any other directory, and [`Dir::stat`] queries the root.
//!
//! **`open` or `open_all`?** `open` returns an error if the root is missing. `open_all` takes any
//! number of roots and reports a missing root in the loop, like any other error.
//!
//! **Which errors should end a program?** Usually none. Report each error, continue, and exit with
//! status 1.
//!
//! **Which call for several threads?** For work that keeps the cores busy, use
//! [`WalkDirs::run_parallel`] with the number of cores. For calls that wait for a server, use
//! `run_parallel` or [`WalkOptions::read_ahead`]. Pass the number of requests that the server
//! answers at once.
//!
//! **How do I write a path to another program?** As bytes: `path.as_os_str().as_bytes()`. For a
//! terminal, print `{:?}`, which escapes control characters.
//!
//! **What happens when entries vanish?** If an entry is gone when you query it, the query returns
//! an error for which [`Error::is_gone`] returns `true`. If a directory is removed while you read
//! it, its entries end without an error.
//!
//! **When should I not use this crate?** On macOS and Windows; for `.gitignore` rules, which the
//! ignore crate knows; and where `std::fs::read_dir` is fast enough and you want a `for` loop.
//!
//! # Performance
//!
//! A small directory takes four system calls: `openat`, two `getdents64` and `close`. In a tree it
//! often takes three. A [`Listing`], a [`Walk`] and a [`WalkDirs`] reuse their memory. Once this
//! memory has grown large enough, yielding an entry or a directory allocates nothing. `cargo bench`
//! measures time, and `cargo bench --bench counts` counts system calls and allocations.
//!
//! `rustix` makes system calls without the C library, and so does this crate. So fakeroot and other
//! tools that replace functions of the C library through `LD_PRELOAD` have no effect:
//! [`Entry::stat`] returns the real owner of a file.
//!
//! # System calls
//!
//! The walks call `openat2`. If the kernel or a filter refuses `openat2` with an error, the walks
//! call `openat` instead. Some seccomp filters, such as Android's filter for applications, kill the
//! process instead of returning an error. Under such a filter, a program that was built for glibc
//! or musl is killed. A program that was built for Android never calls `openat2`.
//!
//! # Versions
//!
//! Types and flags of [`rustix`](https://docs.rs/rustix/1) are in the signatures, so `rustix` is
//! re-exported as `lendir::rustix`. Use only its modules `fs`, `io`, `fd` and `path`, because a
//! later version of this crate may disable the other modules.
#![deny(unsafe_code)]
#![warn(missing_docs, missing_debug_implementations, unreachable_pub)]

#[cfg(not(any(target_os = "linux", target_os = "android")))]
compile_error!(
    "lendir wraps the Linux system call getdents64: it builds for Linux and Android only"
);

mod error;
mod file_system;
mod open;
mod sync;

// The layers, from the lowest to the highest. rustdoc lists methods in this order.
mod read_dir;

mod listing;

mod cursor;

mod walk;
mod walk_dirs;

pub use error::Error;
pub use listing::{ListedEntries, ListedEntry, Listing, Order};
pub use open::{open, openat};
pub use read_dir::{Buffer, Entries, Entry, ReadDir, read_dir};
pub use walk::{Walk, WalkEntry, WalkOptions, walk};
pub use walk_dirs::{Dir, DirEntry, WalkDirs, WalkDirsOptions, Worker, walk_dirs};

pub use rustix;
#[doc(no_inline)]
pub use rustix::fs::{FileType, OFlags, Stat, Statx, StatxFlags};

#[cfg(doc)]
#[doc = include_str!("recipes.md")]
pub mod recipes {}

#[cfg(doc)]
#[doc = include_str!("coming_from.md")]
pub mod coming_from {}

/// Says what an attacker can do to a walk, what the crate trusts, and why its `unsafe` is sound.
#[cfg(doc)]
#[doc = include_str!("../.github/SECURITY.md")]
pub mod security {}

/// The README's programs compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
