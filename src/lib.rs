//! Reads Linux directories at the speed of the kernel, and walks trees of them.
//!
//! - [`open`], [`openat`] and [`openat_with`] open a directory.
//! - [`Buffer`] is the memory that the kernel writes entries to; one serves thousands of directories.
//! - [`Entries`] is the iterator over one directory: it lends each [`Entry`], its name still in the buffer, until the next
//!   turn.
//! - [`EndMarker`] lets it skip the last system call where the file system marks the last entry.
//! - [`Listing`] is a whole directory, sorted, in memory that is reused from directory to directory. [`Order`] is how it sorts;
//!   [`SortedEntry`] is one of its entries, [`SortedEntries`] the iterator over them.
//! - [`Walk`] is a tree, directory by directory, on one thread or several: it lends each [`Dir`], and a directory lends
//!   entries. [`Error`] is an error with its path.
//!
//! ```
//! use lendir::{Buffer, Entries};
//!
//! let proc = lendir::open("/proc")?;
//! let mut buffer = Buffer::new();
//! let mut entries = Entries::new(&proc, &mut buffer);
//! while let Some(entry) = entries.next()? {
//!     if let Some(pid) = entry.numeric_name() {
//!         println!("{pid}");
//!     }
//! }
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! A tree is the same loop in another one:
//!
//! ```
//! let mut walk = lendir::Walk::open("/sys/class")?;
//! while let Some(mut dir) = walk.next()? {
//!     let path = dir.path();
//!     while let Some(entry) = dir.next()? {
//!         println!("{}", path.join(entry.name_os()).display());
//!     }
//! }
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! [`Entries`], [`Walk`] and [`Dir`] lend, so they are no [`Iterator`]: there is no `for` and no `collect`. Write
//! `while let Some(entry) = entries.next()? {`, and copy what you keep (`entry.name().to_vec()`).
//!
//! # Which call do I want?
//!
//! | I want to | call |
//! |---|---|
//! | look at each entry of a directory | [`Entries::next`] in a `while let` |
//! | return the first entry that matches | [`Entries::find`] |
//! | only count | [`Entries::count`] |
//! | list PIDs, TIDs or descriptors | [`Entry::numeric_name`] |
//! | have the entries sorted, or find one by name | [`Listing::read`], [`Listing::find`] |
//! | have them in the order of whole paths, as git has | [`Order::Path`] |
//! | read one descriptor again | [`Entries::rewound`]; [`Entries::rewind`] if the iterator is still there |
//! | go on later where I stopped | [`Entry::cookie`], [`Entries::seek`] |
//! | tell directories from files | [`Entry::file_type`]; [`Entry::resolve_file_type`], [`SortedEntry::resolve_file_type`] if it must be certain |
//! | open, stat or remove an entry | its [`name_cstr`](Entry::name_cstr) relative to its [`dir`](Entry::dir); [`openat`] for directories |
//! | read many small directories of one local file system | [`EndMarker::of`] once, [`Entries::with_end_marker`] |
//! | know whether a directory was removed while I read | [`Entries::removed`], [`Dir::removed`] |
//! | walk a tree | [`Walk::open`], [`Walk::next`], [`Dir::next`] |
//! | walk it sorted | [`Dir::read`] |
//! | not go below an entry, or a directory | [`Dir::skip_entry`], [`Dir::skip_name`]; [`Dir::skip_all`] |
//! | stay on one file system | [`Walk::same_mount`] |
//! | visit a directory after everything below it | [`Walk::post_order`], [`Dir::is_second_visit`] |
//! | walk on all cores | [`Walk::spread`] |
//! | stop early | drop the walk; [`Dir::stop`] on several threads |
//! | walk many trees in the same memory | [`Walk::reset`] |
//!
//! # Recipes
//!
//! Where a recipe uses `rustix`, add `rustix = { version = "1.1", features = ["fs"] }` to your dependencies; `tempfile` makes
//! the temporary directories.
//!
//! **Scan again and again**, with directory and buffer in a struct. Two fields are borrowed side by side if `self` is taken
//! apart first:
//!
//! ```
//! use lendir::{Buffer, Entries};
//! use std::io;
//! use std::os::fd::OwnedFd;
//!
//! struct Inbox {
//!     dir: OwnedFd,
//!     buffer: Buffer,
//!     letters: u64,
//! }
//!
//! impl Inbox {
//!     fn scan(&mut self) -> io::Result<()> {
//!         let Self { dir, buffer, letters } = self;
//!         *letters = 0;
//!         let mut entries = Entries::rewound(dir, buffer)?;
//!         while let Some(entry) = entries.next()? {
//!             *letters += u64::from(entry.name().ends_with(b".eml"));
//!         }
//!         Ok(())
//!     }
//! }
//!
//! let path = tempfile::tempdir()?;
//! let mut inbox = Inbox { dir: lendir::open(path.path())?, buffer: Buffer::new(), letters: 0 };
//! std::fs::write(path.path().join("1.eml"), "")?;
//! for _ in 0..2 {
//!     inbox.scan()?;
//!     assert_eq!(inbox.letters, 1);
//! }
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! **Read a file** relative to its directory. [`openat`] of this crate opens directories; `rustix::fs::openat` opens anything:
//!
//! ```
//! use lendir::{Buffer, Entries};
//! use rustix::fs::{Mode, OFlags};
//! use std::fs::File;
//! use std::io::Read;
//!
//! let proc = lendir::open("/proc/self")?;
//! let mut buffer = Buffer::new();
//! let mut entries = Entries::new(&proc, &mut buffer);
//! let mut text = String::new();
//! if let Some(entry) = entries.find(|entry| entry.name() == b"comm")? {
//!     let file = rustix::fs::openat(entry.dir(), entry.name_cstr(), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
//!     File::from(file).read_to_string(&mut text)?;
//! }
//! assert!(!text.is_empty());
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! **Total size** of a tree on one mount. It prints errors and goes on. The example `du` counts hard links once and uses all
//! cores.
//!
//! ```
//! use lendir::Walk;
//! use rustix::fs::{AtFlags, statat};
//! use std::io;
//!
//! let mut walk = Walk::open("/etc")?.same_mount(true);
//! let mut bytes = 0;
//! while let Some(dir) = walk.next().transpose() {
//!     let Ok(mut dir) = dir.inspect_err(|error| eprintln!("{error}")) else { continue };
//!     while let Some(entry) = dir.next().transpose() {
//!         let stat = entry.map_err(io::Error::from).and_then(|entry| {
//!             Ok(statat(entry.dir(), entry.name_cstr(), AtFlags::SYMLINK_NOFOLLOW)?)
//!         });
//!         match stat {
//!             Ok(stat) => bytes += stat.st_size,
//!             Err(error) => eprintln!("{error}"),
//!         }
//!     }
//! }
//! println!("{bytes} bytes");
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! **Find and prune by name.** [`Dir::skip_entry`] is for the entry just lent. The example `find` is a whole program.
//!
//! ```
//! let mut walk = lendir::Walk::open("/usr/share/doc")?;
//! while let Some(mut dir) = walk.next()? {
//!     let path = dir.path();
//!     while let Some(entry) = dir.next()? {
//!         if entry.name().starts_with(b"copyright") {
//!             println!("{}", path.join(entry.name_os()).display());
//!         } else if entry.name() == b".git" {
//!             dir.skip_entry();
//!         }
//!     }
//! }
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! **Sorted**: the entries of each directory, and the directories below it, in the order of the [`Listing`]. Whole paths come
//! out in the order of `git ls-files` in strict pre-order (below) with [`Order::Path`].
//!
//! ```
//! use lendir::{Listing, Walk};
//!
//! let mut listing = Listing::new();
//! let mut walk = Walk::open("/sys/class/net")?;
//! while let Some(mut dir) = walk.next()? {
//!     dir.read(&mut listing)?;
//!     for entry in &listing {
//!         println!("{}", dir.path().join(entry.name_os()).display());
//!         if entry.name() == b"power" {
//!             dir.skip_name(entry.name()); // prune here, too
//!         }
//!     }
//! }
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! **Remove a tree**, however deep, and safe against others who swap directories for links: [`Walk::open`] would follow a link
//! at `path` itself, so that the root is opened without. The example `rm` says more of its errors.
//!
//! ```
//! use lendir::{FileType, OFlags, Walk};
//! use rustix::fs::{AtFlags, CWD, unlinkat};
//!
//! fn remove_tree(path: &std::path::Path) -> std::io::Result<()> {
//!     let root = lendir::openat_with(CWD, path, OFlags::NOFOLLOW)?;
//!     let mut walk = Walk::new(root, path).post_order(true);
//!     while let Some(mut dir) = walk.next()? {
//!         if let Some(parent) = dir.parent() {
//!             unlinkat(parent, dir.name_cstr(), AtFlags::REMOVEDIR)?; // a second visit: it is empty by now
//!         }
//!         while let Some(entry) = dir.next()? {
//!             if entry.resolve_file_type()? != FileType::Directory {
//!                 unlinkat(entry.dir(), entry.name_cstr(), AtFlags::empty())?;
//!                 dir.skip_entry(); // where the directory does not tell types, the walk would look for a directory here
//!             }
//!         }
//!     }
//!     std::fs::remove_dir(path)
//! }
//! # let dir = tempfile::tempdir()?;
//! # std::fs::create_dir_all(dir.path().join("a/b/c"))?;
//! # std::fs::write(dir.path().join("a/b/file"), "")?;
//! # remove_tree(&dir.path().join("a"))?;
//! # assert_eq!(std::fs::read_dir(dir.path())?.count(), 0);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! **`chmod` before entering.** A directory is opened only when the walk comes to it. Do this only in a tree that nobody else
//! can change, because `chmodat` follows links:
//!
//! ```
//! use lendir::{FileType, Walk};
//! use rustix::fs::{AtFlags, Mode, chmodat};
//!
//! # let made = tempfile::tempdir()?;
//! # std::fs::create_dir(made.path().join("locked"))?;
//! # let path = made.path();
//! let mut walk = Walk::open(path)?;
//! while let Some(mut dir) = walk.next()? {
//!     while let Some(entry) = dir.next()? {
//!         if entry.file_type() == FileType::Directory {
//!             chmodat(entry.dir(), entry.name_cstr(), Mode::RWXU, AtFlags::empty())?;
//!         }
//!     }
//! }
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! **Strict pre-order**, where the entries below a directory stand right behind it, as `tree` prints them: a [`Walk`] lends all
//! entries of a directory first. This one keeps a [`Listing`] and a descriptor for each level that is open:
//!
//! ```
//! use lendir::{Buffer, Entries, FileType, Listing, OFlags};
//! use std::io::{self, ErrorKind};
//! use std::os::fd::OwnedFd;
//!
//! fn print(dir: &OwnedFd, depth: usize, buffer: &mut Buffer, spare: &mut Vec<Listing>) -> io::Result<()> {
//!     let mut listing = spare.pop().unwrap_or_default();
//!     listing.read(Entries::new(dir, buffer))?;
//!     for entry in &listing {
//!         println!("{:depth$}{}", "", entry.name().escape_ascii());
//!         if matches!(entry.file_type(), FileType::Directory | FileType::Unknown) {
//!             match lendir::openat_with(dir, entry.name_cstr(), OFlags::NOFOLLOW) {
//!                 Ok(below) => print(&below, depth + 1, buffer, spare)?,
//!                 // No directory, gone since it was read, or not to be entered.
//!                 Err(error) if matches!(error.kind(), ErrorKind::NotADirectory | ErrorKind::NotFound) => {}
//!                 Err(error) if error.kind() == ErrorKind::PermissionDenied => eprintln!("{error}"),
//!                 Err(error) => return Err(error),
//!             }
//!         }
//!     }
//!     spare.push(listing);
//!     Ok(())
//! }
//!
//! print(&lendir::open("/sys/class/net")?, 0, &mut Buffer::new(), &mut Vec::new())?;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! **Compare with a sorted list** of names, in one pass over both:
//!
//! ```
//! use lendir::{Buffer, Entries, Listing};
//! use std::cmp::Ordering;
//!
//! let index: [&[u8]; 3] = [b"cmdline", b"no longer here", b"version"];
//! let (mut buffer, mut listing) = (Buffer::new(), Listing::new());
//! listing.read(Entries::new(&lendir::open("/proc")?, &mut buffer))?;
//! let (mut old, mut new) = (index.iter().peekable(), listing.iter().peekable());
//! let (mut removed, mut added) = (0, 0);
//! loop {
//!     let order = match (old.peek(), new.peek()) {
//!         (None, None) => break,
//!         (Some(_), None) => Ordering::Less,
//!         (None, Some(_)) => Ordering::Greater,
//!         (Some(old), Some(new)) => (**old).cmp(new.name()),
//!     };
//!     removed += u32::from(order.is_lt());
//!     added += u32::from(order.is_gt());
//!     if order.is_le() { old.next(); }
//!     if order.is_ge() { new.next(); }
//! }
//! println!("{removed} removed, {added} added");
//! # assert_eq!(removed, 1);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! **Tell directories from files** also where `d_type` is unknown: one `fstatat`, and only for those.
//!
//! ```
//! use lendir::{Buffer, Entries, FileType};
//!
//! let etc = lendir::open("/etc")?;
//! let mut buffer = Buffer::new();
//! let mut entries = Entries::new(&etc, &mut buffer);
//! let mut directories = 0;
//! while let Some(entry) = entries.next()? {
//!     match entry.resolve_file_type() {
//!         Ok(FileType::Directory) => directories += 1,
//!         Ok(_) => {}
//!         Err(error) if error.kind() == std::io::ErrorKind::NotFound => {} // gone since it was read
//!         Err(error) => return Err(error),
//!     }
//! }
//! println!("{directories} directories in /etc");
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! **Remove what matches**, while reading: entries already in the buffer are not disturbed.
//!
//! ```
//! use lendir::{Buffer, Entries};
//! use rustix::fs::{unlinkat, AtFlags};
//!
//! let cache = tempfile::tempdir()?;
//! # std::fs::write(cache.path().join("old.tmp"), "")?;
//! let dir = lendir::open(cache.path())?;
//! let mut buffer = Buffer::new();
//! let mut entries = Entries::new(&dir, &mut buffer);
//! while let Some(entry) = entries.next()? {
//!     if entry.name().ends_with(b".tmp") {
//!         unlinkat(&dir, entry.name_cstr(), AtFlags::empty())?;
//!     }
//! }
//! # assert!(std::fs::read_dir(cache.path())?.next().is_none());
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! The examples are programs to start from: `pids` scans /proc, `ls` sorts, `watch` rescans; `find`, `rm` and `du` walk.
//!
//! # What the kernel promises while others change the directory
//!
//! On local file systems the kernel returns an entry that stays throughout a scan exactly once, with one exception: if
//! all entries that tmpfs has not returned yet are removed between two `getdents64`, those that stay come again. An entry
//! that is made, removed or renamed meanwhile may come or not; hashed ext4 can return a renamed one twice, NFS, 9p and
//! CIFS even one that stays. A program that makes an entry for each one it reads may never end on xfs and on ext4 without
//! `dir_index`. btrfs shows an entry made after `open` only after `rewind`. lendir does not hide this: that would mean
//! remembering every name.
//!
//! # What it costs
//!
//! A small directory takes `openat`, two `getdents64` and `close`, and nearly all of the time is the kernel's. Reading never
//! allocates; a [`Buffer`] is one allocation, and a [`Listing`] and a [`Walk`] stop allocating once they have held as much.
//! Each item says what it costs; `cargo bench --bench counts` counts and `cargo bench --bench ratios` times.
#![deny(unsafe_code)]
#![warn(missing_docs, missing_debug_implementations, unreachable_pub)]

#[cfg(not(any(target_os = "linux", target_os = "android")))]
compile_error!("lendir wraps the Linux system call getdents64: it builds for Linux and Android only");

// Elsewhere nothing is left of the crate, so that error stands alone.
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
mod listing;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod open;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod sort;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod walk;

/// What threads share goes by these names, so that `tests/shuttle` can run it under a scheduler of its own.
#[cfg(all(not(lendir_shuttle), any(target_os = "linux", target_os = "android")))]
use std::{sync, thread};

#[cfg(lendir_shuttle)]
#[path = "../tests/shuttle/std.rs"]
mod scheduled;
#[cfg(lendir_shuttle)]
use scheduled::{sync, thread};

#[cfg(any(target_os = "linux", target_os = "android"))]
pub use {
    buffer::Buffer,
    end_marker::EndMarker,
    entries::{BorrowFd, Entries},
    entry::Entry,
    error::Error,
    listing::{Listing, Order, SortedEntries, SortedEntry},
    open::{open, open_with, openat, openat_with},
    walk::{Dir, Walk},
};

pub use rustix;
#[doc(no_inline)]
#[cfg(any(target_os = "linux", target_os = "android"))]
pub use rustix::fs::{FileType, OFlags};

/// The README's programs compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
