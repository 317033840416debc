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
//!         let task = lendir::openat(&proc, entry.name_cstr()); // `proc` stays usable while `entry` lives
//!         println!("{pid} {}", if task.is_ok() { "is here" } else { "is gone" });
//!     }
//! }
//! # Ok::<(), std::io::Error>(())
//! ```
#![deny(unsafe_code)]
#![warn(missing_docs, missing_debug_implementations, unreachable_pub)]

#[cfg(not(any(target_os = "linux", target_os = "android")))]
compile_error!("lendir wraps the Linux system call getdents64: it builds for Linux and Android only");

mod buffer;
mod end_marker;
mod entries;
mod listing;
mod open;
mod prefix;

pub use buffer::Buffer;
pub use end_marker::EndMarker;
pub use entries::{Entries, Entry};
pub use listing::{Listing, Order, SortedEntries, SortedEntry};
pub use open::{open, openat, openat_with};
pub use rustix::fs::{FileType, OFlags};

/// The README's programs compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
