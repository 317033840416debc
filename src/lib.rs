//! Reads Linux directories at the speed of the kernel.
//!
//! - [`open`], [`openat`] and [`openat_with`] open a directory.
//! - [`Buffer`] is the memory that the kernel writes entries to; one serves thousands of directories.
//! - [`Entries`] is the iterator: it lends each [`Entry`], its name still in the buffer, until the next turn.
//! - [`EndMarker`] lets it skip the last system call where the file system says that there is no more.
//! - [`Listing`] is a whole directory, sorted, in memory that is reused from directory to directory.
//! - [`Order`] is how it sorts: by bytes, without regard to ASCII case, by inode, or not at all.
//! - [`SortedEntry`] is one of its entries, and [`SortedEntries`] the iterator over them.
//!
//! ```
//! use lendir::{Buffer, Entries};
//!
//! let proc = lendir::open("/proc")?;
//! let mut buffer = Buffer::new();
//! let mut entries = Entries::new(&proc, &mut buffer);
//! while let Some(entry) = entries.next()? {
//!     if let Some(pid) = entry.numeric_name() {
//!         let process = lendir::openat(&proc, entry.name_cstr()); // `proc` stays usable while `entry` lives
//!         println!("{pid} {}", if process.is_ok() { "is here" } else { "is gone" });
//!     }
//! }
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # Which call do I want?
//!
//! | I want to | call |
//! |---|---|
//! | look at each entry once | [`Entries::next`] in a `while let` |
//! | only count | [`Entries::count`] |
//! | list PIDs, TIDs or descriptors | [`Entry::numeric_name`] |
//! | have the entries sorted, or find one by name | [`Listing::read`], [`Listing::find`] |
//! | open or stat each entry next | [`Order::Inode`], or [`Entries`] as it comes |
//! | read the same directory every second | [`Entries::rewind`] |
//! | go on later where I stopped | [`Entry::cookie`], [`Entries::seek`] |
//! | go below | [`openat`] with [`Entry::name_cstr`]; [`openat_with`] and [`OFlags::NOFOLLOW`] where links are not trusted |
//! | tell directories from files | [`Entry::file_type`]; [`Entry::resolve_file_type`], [`SortedEntry::resolve_file_type`] where it must be certain |
//! | read many small directories of one local file system | [`EndMarker::of`] once, [`Entries::with_end_marker`] |
//! | know whether a directory was removed while I read | [`Entries::removed`] |
//!
//! # Recipes
//!
//! Where a recipe uses `rustix`, that is `rustix = { version = "1.1", features = ["fs"] }` among your own dependencies; the
//! temporary directories are those of `tempfile`.
//!
//! **Visit a tree** with one buffer, and one [`Listing`] for each level that is open: a directory is read to its end before
//! those below it are opened, relative to it, so that renames above it do no harm.
//!
//! ```
//! use lendir::{Buffer, Entries, FileType, Listing, OFlags};
//! use std::io::{self, ErrorKind};
//! use std::os::fd::OwnedFd;
//!
//! fn visit(dir: &OwnedFd, buffer: &mut Buffer, spare: &mut Vec<Listing>, found: &mut u64) -> io::Result<()> {
//!     let mut listing = spare.pop().unwrap_or_default();
//!     listing.read(Entries::new(dir, buffer))?;
//!     for entry in &listing {
//!         *found += 1;
//!         if matches!(entry.file_type(), FileType::Directory | FileType::Unknown) {
//!             match lendir::openat_with(dir, entry.name_cstr(), OFlags::NOFOLLOW) {
//!                 Ok(below) => visit(&below, buffer, spare, found)?,
//!                 // No directory, or gone since it was read.
//!                 Err(error) if matches!(error.kind(), ErrorKind::NotADirectory | ErrorKind::NotFound) => {}
//!                 Err(error) => return Err(error),
//!             }
//!         }
//!     }
//!     spare.push(listing);
//!     Ok(())
//! }
//!
//! let mut found = 0;
//! visit(&lendir::open("/sys/class")?, &mut Buffer::new(), &mut Vec::new(), &mut found)?;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! For trees of any depth, `tests/limits.rs` in the repository descends 100,000 levels with two descriptors and a 64 KiB
//! stack: it leaves a level by its cookie and enters it again by `..`.
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
//! **Count** without looking, and **rescan** one open descriptor instead of opening the directory again:
//!
//! ```
//! use lendir::{Buffer, Entries};
//!
//! let inbox = tempfile::tempdir()?;
//! let dir = lendir::open(inbox.path())?;
//! let mut buffer = Buffer::new();
//! assert_eq!(Entries::new(&dir, &mut buffer).count()?, 0);
//!
//! std::fs::write(inbox.path().join("letter"), "")?;
//! let mut entries = Entries::new(&dir, &mut buffer);
//! entries.rewind()?; // `dir` stood at the end
//! assert_eq!(entries.count()?, 1);
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
//! The examples `pids` (scan /proc), `ls` (sort, several directories) and `watch` (rescan) are programs to start from.
//!
//! # What the kernel promises while others change the directory
//!
//! On local file systems an entry that is there throughout a scan is returned exactly once. One that is made, removed or
//! renamed meanwhile may be returned or not; hashed ext4 can return a renamed one twice, NFS, 9p and CIFS even one that
//! stays. A program that makes an entry for each one it reads may never end on xfs and on ext4 without `dir_index`. btrfs
//! shows what was made after `open` only after `rewind`. None of this is mended here: it would take a memory of all names.
//!
//! # What it costs
//!
//! A small directory is `openat`, two `getdents64` and `close`, and nearly all of the time is the kernel's. Reading never
//! allocates; a [`Buffer`] is one allocation, and a [`Listing`] stops allocating once it has held as large a directory.
//! Each item says what it costs; `cargo bench --bench counts` counts reading and `cargo bench --bench ratios` times it.
#![deny(unsafe_code)]
#![warn(missing_docs, missing_debug_implementations, unreachable_pub)]

#[cfg(not(any(target_os = "linux", target_os = "android")))]
compile_error!("lendir wraps the Linux system call getdents64: it builds for Linux and Android only");

mod buffer;
mod end_marker;
mod entries;
mod entry;
mod listing;
mod open;
mod sort;
mod walk;

pub use buffer::Buffer;
pub use end_marker::EndMarker;
pub use entries::{BorrowFd, Entries};
pub use entry::Entry;
pub use listing::{Listing, Order, SortedEntries, SortedEntry};
pub use open::{open, openat, openat_with};
#[doc(no_inline)]
pub use rustix::fs::{FileType, OFlags};
pub use walk::{Dir, Walk, WalkError};

/// The README's programs compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
