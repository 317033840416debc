//! Reads Linux directories at the speed of the kernel, and walks trees of them.
//!
//! - [`read_dir`](read_dir()) opens one directory: a [`ReadDir`] lends each [`Entry`] until the next call of `next`.
//! - [`walk`] lends every entry of a tree in one loop: each [`WalkEntry`] comes right before what is below it.
//! - [`WalkDirs`] lends each [`Dir`] of a tree, on one thread or several, and a `Dir` lends entries.
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
//!     match entry.stat() {
//!         Ok(stat) => println!("{:8} {:?}", stat.st_size, entry.name_os()),
//!         Err(error) if error.is_gone() => {} // removed since it was listed
//!         Err(error) => return Err(error),
//!     }
//! }
//! # Ok::<(), lendir::Error>(())
//! ```
//!
//! For a tree, the same loop. Errors do not end it: a closure gets each one.
//!
//! ```
//! let mut tree = lendir::walk("/sys/class")?;
//! while let Some(entry) = tree.next_ok(|error| eprintln!("{error}")) {
//!     println!("{:?}", entry.path()); // {:?} escapes what a terminal would obey
//! }
//! # Ok::<(), lendir::Error>(())
//! ```
//!
//! An [`Iterator`] cannot lend, so over entries there is no `for` and no `collect`: copy what you keep
//! (`entry.name().to_vec()`, `entry.path().to_owned()`). Types and flags of [`rustix`](https://docs.rs/rustix/1) are in the
//! signatures; it is re-exported as `lendir::rustix`. Use only its `fs`, `io`, `fd` and `path`: a later version of this crate
//! may not enable its other modules.
//!
//! # `walk` or `WalkDirs`?
//!
//! | | [`walk`] | [`WalkDirs`] |
//! |---|---|---|
//! | loops | one, over all entries | two, over directories and their entries |
//! | what is below an entry comes | right after it, as with walkdir, `fts` and `find` | after all entries of its directory |
//! | path of an entry | lent | made by [`Entry::path`] |
//! | threads | one, and others that [read ahead](WalkOptions::read_ahead) | any number: [`WalkDirs::run_parallel`] |
//! | a value for each level | in a `Vec` of yours, cut to [`depth`](WalkEntry::depth) | [`with_state`](WalkDirsOptions::with_state), on any thread |
//! | after all that is below | the next entry that is no deeper | [second visits](WalkDirsOptions::second_visits), the shorter way to sums and removal |
//! | what is entered | [`skip_subtree`](WalkEntry::skip_subtree), [`follow`](WalkEntry::follow) | by name too, before or without reading: [`Dir::skip_name`], [`Dir::enter`] |
//! | a directory is read | whole, before its first entry comes | while its entries are lent, in 32 KiB |
//! | a call on the directory itself | through an entry's [`dir_fd`](WalkEntry::dir_fd) | [`Dir::fd`], [`Dir::stat`], empty ones too |
//! | a directory that is removed while it is read | ends silently | [`Dir::is_removed`] |
//! | time, sorted or not | 1.0 to 1.1 times as long as a `WalkDirs`; 2.1 times in a tree far deeper than [`max_open`](WalkOptions::max_open) | |
//!
//! # Which call do I want?
//!
//! | I want to | call |
//! |---|---|
//! | return the first entry that matches | [`ReadDir::find`], [`Walk::find`], [`Dir::find`] |
//! | keep a directory in a struct, and read it again | [`ReadDir`], [`ReadDir::rewind`] |
//! | list PIDs, TIDs or descriptors | [`Entry::numeric_name`] |
//! | use `for`, `collect` or an adapter | [`ReadDir::filter_map`], [`Walk::filter_map`]; for paths [`Walk::paths`] |
//! | have the descriptor and the `stat` of a tree's root | `let root = `[`open`](open())`(path)?`, `rustix::fs::fstat(&root)`, `root.try_clone()`, then `Walk::options().from_fd(root, path)`; of a `WalkDirs`, [`Dir::fd`], [`Dir::stat`] |
//! | begin from a descriptor | [`ReadDir::from_fd`], [`WalkOptions::from_fd`], [`WalkDirsOptions::from_fd`] |
//! | have the entries sorted, or find one by name | [`ReadDir::read_into`], [`WalkOptions::order`], [`Dir::read_into`]; [`Listing::by_name`]; the paths of files as git and `sort` order them, [`Order::Path`] |
//! | compare two directories, or two trees | the loop at [`Listing::by_name`]; [a recipe](recipes#trees) |
//! | tell directories from files | `entry.file_type()?.is_dir()`: [`Entry::file_type`]; after a `stat`, [`FileType::from_raw_mode`](https://docs.rs/rustix/1/rustix/fs/enum.FileType.html#method.from_raw_mode)`(stat.st_mode).is_dir()`; as the kernel's listing has it, perhaps unknown, [`Entry::d_type`] |
//! | know where a link leads | [`Entry::read_link`] |
//! | stat what a link leads to | `rustix::fs::statat(entry.dir_fd(), entry.name_cstr(), AtFlags::empty())`: `ENOENT` if to nothing |
//! | stat, open, remove or change an entry | [`Entry::stat`], [`Entry::open`]; `*at` calls with its [`dir_fd`](Entry::dir_fd) and [`name_cstr`](Entry::name_cstr) |
//! | only count; go on later where I stopped | [`ReadDir::count`]; [`Entry::cookie`], [`ReadDir::seek`]: [a recipe](recipes#one-directory) |
//! | report errors, go on, and exit with 1; copy a tree; have times as `SystemTime` | [`recipes`] |
//! | go on where an entry is gone by now | [`Error::is_gone`] |
//! | know whether a directory was removed while I read | [`ReadDir::is_removed`] |
//! | read thousands of directories in the same memory | [`Entries::new`] on one [`Buffer`]; [`WalkDirs`], which often takes a system call less |
//! | not go below an entry, or a directory | [`WalkEntry::skip_subtree`]; [`Entry::skip_subtree`], [`Dir::skip_name`], [`Dir::skip_subdirs`] |
//! | follow a link; enter a directory by name | [`WalkEntry::follow`]; [`Entry::follow`], [`Dir::follow_name`]; [`Dir::enter`] |
//! | go no deeper than some levels, stay on one mount | `max_depth`, `same_mount` of [`WalkOptions`] and [`WalkDirsOptions`] |
//! | visit a directory after everything below it, to remove it | [`WalkDirsOptions::second_visits`], [`Dir::is_second_visit`], [`Dir::parent_and_name`] |
//! | have what is below an entry right after it | [`walk`] |
//! | carry a value down: rules, a depth, a node of your own tree; sums up | [`WalkDirsOptions::with_state`], [`Dir::state`]; [recipes](recipes#trees) |
//! | walk on several threads | [`WalkDirs::run_parallel`]; in order, [`WalkOptions::read_ahead`]; to work on each file, cancel: [recipes](recipes#threads) |
//! | end at the first error; stop early | [`WalkDirs::next`], [`Dir::next`]; `break`, [`Worker::stop`] |
//! | walk several trees | [`WalkOptions::open_all`], [`WalkDirsOptions::open_all`] |
//!
//! [`recipes`] has programs to copy from. [`coming_from`] translates the calls of `std`, walkdir, ignore, `RawDir` and `fts`.
//!
//! # What the kernel promises while the directory changes
//!
//! On local file systems it returns an entry that stays throughout a scan exactly once, so a loop may remove the entries that it
//! has read. There are two exceptions. If all entries that tmpfs has yet to return are removed between two `getdents64`, it returns
//! the remaining entries once more. And `/proc/PID/task` can leave out threads that stay while other threads end. `std` loses
//! the same threads; a larger [`Buffer`] makes that less likely. An entry that is made, removed or renamed meanwhile may or may not come. Hashed ext4 can
//! return a renamed one twice; NFS, 9p and CIFS even one that stays. A program that makes an entry for each one it reads may
//! never end on xfs and on ext4 without `dir_index`. btrfs shows an entry made after `open` only after `rewind`. lendir does
//! not hide this: it would have to remember every name.
//!
//! # What it costs
//!
//! A small directory takes four system calls: `openat`, two `getdents64` and `close`. In a tree it often takes
//! [three](WalkDirs#what-it-costs). Nearly all of the time is the kernel's. A [`Buffer`] is one allocation; a [`Listing`], a
//! [`Walk`] and a [`WalkDirs`] keep their memory, and allocate nothing once it has grown to what they read. `cargo bench`
//! measures time, and `cargo bench --bench counts` counts system calls and allocations. Costs, here and at each item,
//! are those of this version. They may change with any version.
//!
//! # Under `LD_PRELOAD`
//!
//! `rustix` by default makes system calls without the C library, and so does this crate. fakeroot and fakechroot replace
//! functions of the C library, so they do not reach it: [`Entry::stat`] returns the real owner of a file, and paths lead where
//! they lead without fakechroot.
//!
//! # Under seccomp filters
//!
//! The walks call `openat2`, and `openat` where the kernel or a filter refuses `openat2` with an error. Android's filter does not
//! return an error: it kills the process. A program that is built for Android never calls `openat2`. A program that is built for
//! glibc or musl is killed if it runs under that filter, in `proot` too, which does not translate the call.
#![deny(unsafe_code)]
#![allow(
    clippy::inline_always,
    reason = "after a system call, returns from outer frames mispredict: see `find`"
)]
#![allow(clippy::should_implement_trait, reason = "`Iterator` cannot lend")]
#![allow(clippy::must_use_candidate, reason = "an answer that nobody looks at does no harm")]
#![allow(
    clippy::missing_panics_doc,
    reason = "where misuse panics, `# Panics` says so; any other panic is a bug"
)]
#![allow(clippy::missing_errors_doc, reason = "many have the errors of another, and say so")]
#![warn(missing_docs, missing_debug_implementations, unreachable_pub)]

#[cfg(not(any(target_os = "linux", target_os = "android")))]
compile_error!(
    "lendir wraps the Linux system call getdents64: it builds for Linux and Android only"
);

mod error;
mod file_system;
mod name;
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
pub use name::Name;
pub use open::{open, openat};
pub use read_dir::{Buffer, Entries, Entry, ReadDir, read_dir};
pub use walk::{Walk, WalkEntry, WalkOptions, walk};
pub use walk_dirs::{Dir, WalkDirs, WalkDirsOptions, Worker, walk_dirs};

pub use rustix;
#[doc(no_inline)]
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
