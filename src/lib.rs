//! Lists Linux directories as fast as the kernel can, and walks trees of any depth.
//!
//! ```
//! fn main() -> Result<(), lendir::Error> {
//!     let root = std::env::args_os().nth(1).unwrap_or(".".into());
//!     let mut walk = lendir::WalkOptions::new().order(lendir::Order::Path).open(root)?;
//!     while let Some(entry) = walk.next_or_report(|error| eprintln!("{error}")) {
//!         println!("{:?}", entry.path());
//!     }
//!     Ok(())
//! }
//! ```
//!
//! Most programs that walk a tree trust a path to be what they have just listed. It does not
//! deserve that trust: anyone who can write to the tree can put a link in the place of a directory.
//! lendir opens each name in the directory that listed it, and refuses a link unless you chose to
//! follow it.
//!
//! # Which call
//!
//! | You want | Use |
//! |---|---|
//! | the entries of a tree, one after another | [`walk`](walk()) |
//! | the directories of a tree, on one or several threads | [`walk_dirs`](walk_dirs()) |
//! | the entries of one directory | [`read_dir`](read_dir()) |
//! | the entries of one directory, sorted | [`list`](list()) |
//! | many directories that are not one tree, in the same memory | [`Entries`] with a [`Buffer`] |
//!
//! Begin with `walk`, which yields a directory right before its contents, like `find`. `walk_dirs`
//! takes two loops: each step of the outer one is a whole directory, whose entries the inner one
//! yields. Take it to [visit a directory again](WalkDirsOptions::second_visits) after its contents,
//! to [pass a value down](WalkDirsOptions::with_state), or to [use
//! threads](WalkDirs::run_parallel) that take directories in any order. The numbers give the order
//! of the entries:
//!
//! ```text
//!                     walk    walk_dirs
//! src                         1st directory, yields three entries
//! ├── walk            1       1    2nd directory, yields two
//! │   ├── ahead.rs    2       4
//! │   └── mod.rs      3       5
//! ├── lib.rs          4       2
//! └── open.rs         5       3
//! ```
//!
//! The root is the first directory of `walk_dirs`, and no entry of `walk`, unless you ask for it by
//! [`yield_roots`](WalkOptions::yield_roots).
//!
//! [`coming_from`] has the calls of other libraries and of `find` beside these. [`recipes`] has
//! whole programs that remove, copy, compare, watch and hash trees.
//!
//! # A program to keep
//!
//! `println!` panics when its output is closed, as by `| head`, and the program above ends with
//! success even if half of the tree could not be read. One that people keep should do neither. This
//! one accepts files as roots, and exits like `ls`: with 1 if anything failed, and with 2 if a root
//! did.
//!
//! ```no_run
//! use std::io::{ErrorKind, Write, stdout};
//!
//! fn main() -> std::process::ExitCode {
//!     let (mut status, mut roots) = (0, Vec::from_iter(std::env::args_os().skip(1)));
//!     if roots.is_empty() {
//!         roots.push(".".into());
//!     }
//!     let mut walk = lendir::WalkOptions::new().yield_roots(true).open_all(roots);
//!     while let Some(entry) = walk.next_or_report(|error| {
//!         eprintln!("{error}");
//!         status = status.max(if error.is_root() { 2 } else { 1 });
//!     }) {
//!         if let Err(error) = writeln!(stdout(), "{:?}", entry.path()) {
//!             status = status.max(u8::from(error.kind() != ErrorKind::BrokenPipe)); // `| head`
//!             break;
//!         }
//!     }
//!     status.into()
//! }
//! ```
//!
//! A path can hold any byte but NUL. `{:?}` escapes what could confuse a terminal; another program
//! wants `path.as_os_str().as_bytes()`.
//!
//! # Concepts
//!
//! **An entry is lent.** The next call to `next` overwrites it. That is why nothing is allocated
//! for it, why the loop is a `while let`, and why the compiler does not let you keep an entry: copy
//! what you need, as in `entry.path().to_owned()`. Where that is a burden, write `for entry in
//! lendir::walk(root)?`. It yields an [`OwnedEntry`], at one allocation each.
//!
//! **An entry is a name in an open directory.** The kernel's record has this name, usually the
//! type, and an inode number. Everything else is a query: a system call on the name in that
//! directory, wherever the directory has been moved. A path is for people: by the time you use it,
//! it may resolve to something else.
//!
//! **An error has the path that it is about**, unless you passed a descriptor and no path. In a
//! walk it ends at most one directory: `next_or_report` passes it to your closure and continues,
//! while `?` stops at the first. [A recipe](recipes#report-errors) tells an entry that vanished
//! ([`Error::is_gone`]) from a root that cannot be read ([`Error::is_root`]).
//!
//! **Most readers stream.** A reader yields a batch of entries, then reads the next. So memory
//! [rarely](Walk#what-is-read-when) grows with the directory, and an error comes after what was
//! read. A [`Listing`], and a `walk` that [sorts](WalkOptions::order) or [reads
//! ahead](WalkOptions::read_ahead), read to the end first.
//!
//! **On a server, query early.** Many servers send metadata along with the names, but only while
//! the kernel sees you ask. Once the names are read, each query is a request of its own.
//! [`WalkOptions::metadata`] asks in time, even in a walk that sorts.
//!
//! # One directory
//!
//! | Task | Call |
//! |---|---|
//! | find the first entry that matches | [`ReadDir::find`] |
//! | list processes, threads or descriptors | [`Entry::numeric_name`] |
//! | use `for`, `collect` or an adapter | [`OwnedEntries`], [`ReadDir::filter_map`] |
//! | tell directories from files | [`Entry::file_type`] |
//! | query each entry: size, times, owner | [`Entry::metadata`] |
//! | query each entry on a server, sorted | [`Listing::with_metadata`] |
//! | open a file to read it | [`Entry::open_file`] |
//! | remove an entry | [`Entry::remove_file`], [`Entry::remove_dir`] |
//! | read the target of a link | [`Entry::read_link`] |
//! | make an `*at` call of your own | [`Entry::dir_fd`] |
//! | read the directory again | [`ReadDir::rewind`] |
//! | continue later at the same position | [`Entry::cookie`] |
//! | sort the entries | [`ReadDir::read_into`] |
//! | find an entry by name | [`Listing::by_name`] |
//! | compare two directories | [`Listing::zip_by_name`] |
//! | know whether the directory was removed | [`ReadDir::is_removed`] |
//!
//! # Trees
//!
//! | Task | Call |
//! |---|---|
//! | use `for`, `collect`, an adapter or rayon | [`OwnedEntries`] |
//! | find the first entry that matches | [`Walk::find`] |
//! | skip the contents of a directory | [`WalkEntry::skip_subtree`] |
//! | follow a symbolic link, or all | [`WalkEntry::follow`], [`WalkOptions::follow_links`] |
//! | limit the depth | [`WalkOptions::max_depth`] |
//! | stay on one mount | [`WalkOptions::same_mount`] |
//! | sort | [`WalkOptions::order`] |
//! | query each entry: size, times, owner | [`Entry::metadata`] |
//! | query each entry on a server, sorted | [`WalkOptions::metadata`] |
//! | walk several trees | [`WalkOptions::open_all`] |
//! | yield the roots, or accept files as roots | [`WalkOptions::yield_roots`] |
//! | start from a descriptor | [`WalkOptions::from_fd`] |
//! | choose which directories to enter, and in which order | [`Dir::enter_name`] |
//! | remove a directory after its contents | [`Dir::remove_dir`] |
//! | act on a directory after its contents | [`WalkDirsOptions::second_visits`] |
//! | pass a value down the tree | [`WalkDirsOptions::with_state`] |
//!
//! # Threads
//!
//! | Task | Call |
//! |---|---|
//! | walk on several threads, in any order | [`WalkDirs::run_parallel`] |
//! | keep the order while calls wait for a disk or a server | [`WalkOptions::read_ahead`] |
//! | query each entry ahead, in order | [`WalkOptions::metadata`] |
//! | stop all threads | [`Worker::stop`] |
//! | work on each file | [a recipe](recipes#files-on-all-cores) |
//!
//! # Kernel promises
//!
//! While a directory changes, a local file system returns each entry that stays exactly once. What
//! is created, removed or renamed meanwhile may be returned or left out. There are exceptions, and
//! lendir hides none of them:
//!
//! - tmpfs returns entries a second time if all later ones are removed between two calls.
//! - ext4 and xfs can return a renamed entry twice; NFS, 9p and CIFS can do so with any entry.
//! - `/proc/PID/task` can miss threads that stay while others end, unless one batch holds them all.
//!   A larger [`Buffer`] helps; in a walk, sorting leaves less time between two batches.
//! - xfs, and ext4 without `dir_index`, may never end if the loop creates an entry for each that it
//!   reads.
//! - On btrfs, what is created after the directory was opened is missing until a `rewind`.
//!
//! [`Walk`](Walk#changing-the-tree) says which loops may change the tree that they list.
//!
//! # Questions
//!
//! ## How safe is a walk?
//!
//! [`Walk`](Walk#guarantees) says what it guarantees, and [`security`] what an attacker can do.
//!
//! ## When not to use it
//!
//! lendir builds for Linux and Android only. Where `std::fs::read_dir` is fast enough, nothing is
//! gained. For `.gitignore` rules, you have to bring a matcher to [this
//! recipe](recipes#apply-ignore-rules).
//!
//! ## Systems and Rust
//!
//! Linux and Android, on 32 and 64 bits, with glibc or musl, and Rust 1.85 or later. The walks have
//! substitutes for `openat2` (Linux 5.6) and `statx` (Linux 4.11); where the substitute promises
//! less, the documentation says so.
//!
//! ## fakeroot, `LD_PRELOAD`
//!
//! Tools like fakeroot replace functions of the C library, and lendir makes its system calls
//! without it, by `rustix`: [`Entry::metadata`] has the real owner of a file. That changes as soon
//! as one crate of your program enables rustix's feature `use-libc`, because Cargo unifies
//! features. `MemorySanitizer` does not see these calls either, and takes what the kernel wrote for
//! uninitialised memory.
//!
//! ## What about seccomp?
//!
//! Where a filter refuses `openat2` with an error from the beginning, the walks call `openat`. A
//! filter that kills instead, such as Android's for applications, kills programs built for glibc or
//! musl; those built for Android never call `openat2`.
#![deny(unsafe_code)]
#![doc(test(attr(deny(unused_imports, unused_variables, unused_mut))))]
#![warn(missing_docs, missing_debug_implementations, unreachable_pub)]

#[cfg(not(any(target_os = "linux", target_os = "android")))]
compile_error!(
    "lendir wraps the Linux system call getdents64: it builds for Linux and Android only"
);

#[macro_use]
mod debug;
mod allocate;
mod error;
mod file_system;
mod file_type;
mod metadata;
mod open;
mod sync;

// The layers, from the lowest to the highest. rustdoc lists methods in this order.
mod read_dir;

mod listing;

mod cursor;

mod walk;
mod walk_dirs;

pub use error::Error;
pub use file_type::FileType;
pub use listing::{ListedEntries, ListedEntry, Listing, Order, list};
pub use metadata::Metadata;
pub use open::{open, openat};
pub use read_dir::{Buffer, Entries, Entry, OwnedEntries, OwnedEntry, ReadDir, read_dir};
pub use walk::{Walk, WalkEntry, WalkOptions, walk};
pub use walk_dirs::{Dir, DirEntry, WalkDirs, WalkDirsOptions, Worker, walk_dirs};

#[cfg(doc)]
#[doc = include_str!("recipes.md")]
#[doc(alias("async", "cancel", "chmod", "chown", "copy", "delete", "diff", "du", "gitignore"))]
#[doc(alias("hash", "inotify", "modified", "mtime", "page", "progress", "remove"))]
#[doc(alias("remove_dir_all", "rm", "size", "tokio", "tree", "watch"))]
#[doc(alias("duplicates", "stream", "timeout"))]
pub mod recipes {}

#[cfg(doc)]
#[doc = include_str!("coming_from.md")]
#[doc(alias("getdents", "ignore", "jwalk", "lending", "listdir", "metadata"))]
#[doc(alias("RawDir", "scandir", "walkdir"))]
pub mod coming_from {}

/// Says what an attacker can do to a walk, what the crate trusts, and why its `unsafe` is sound.
#[cfg(doc)]
#[doc = include_str!("../.github/SECURITY.md")]
#[doc(alias("attack", "cap_std", "race", "symlink", "toctou", "unsafe"))]
pub mod security {}

/// The README's programs compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
