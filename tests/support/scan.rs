//! The result of reading one directory, and the order in which a [`Listing`] sorts entries.

use lendir::{Entries, Entry, Error, FileType, ListedEntry, Listing, Order, ReadDir};
use rustix::fd::AsFd;
use rustix::fs::{AtFlags, statat};
use std::ffi::c_int;
use std::fs::{self, DirEntry};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{DirEntryExt, FileTypeExt};
use std::path::Path;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    pub found: Vec<Found>,
    pub end: End,
}

/// An entry as a reader saw it. The cookie is 0 if the reader has none. The type is unknown if the
/// directory lists no types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub name: Vec<u8>,
    pub ino: u64,
    pub file_type: FileType,
    pub cookie: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Complete,
    /// `ENOENT`, which [`Entries::is_removed`] reports.
    Removed,
    Error(c_int),
}

impl Scan {
    /// Reads `entries` to the end. Three further calls check that the iterator is fused.
    pub fn of(entries: &mut Entries<'_>) -> Self {
        let mut found = Vec::new();
        let end = loop {
            match entries.next() {
                Ok(Some(entry)) => {
                    assert_eq!(entry.name_cstr().to_bytes(), entry.name());
                    assert!(!matches!(entry.name(), b"" | b"." | b".."), "{entry:?}");
                    found.push(Found::from(&entry));
                }
                Ok(None) => break End::Complete,
                Err(error) => break End::Error(errno(&error)),
            }
        };
        let end = if entries.is_removed() { End::Removed } else { end };
        for _ in 0..3 {
            assert!(entries.next().expect("an error came twice").is_none());
            assert_eq!(entries.is_removed(), end == End::Removed);
        }
        Self { found, end }
    }

    /// Reads `dir` into a `Listing` from the current position of `dir`, whatever the listing held
    /// before.
    pub fn from_listing(listing: &mut Listing, dir: impl AsFd) -> Self {
        let end = match listing.read(dir) {
            Err(error) => End::Error(errno(&error)),
            Ok(()) if listing.is_removed() => End::Removed,
            Ok(()) => End::Complete,
        };
        Self { found: listed(listing), end }
    }

    /// Reads the names and inode numbers with `std::fs::read_dir`.
    pub fn from_std(path: &Path) -> Self {
        let mut found = Vec::new();
        for entry in fs::read_dir(path).unwrap() {
            match entry {
                Ok(entry) => found.push(Found::from_std(&entry)),
                Err(error) => {
                    let errno = error.raw_os_error().expect("the error has no errno");
                    return Self { found, end: End::Error(errno) };
                }
            }
        }
        Self { found, end: End::Complete }
    }

    /// Returns the same scan by a reader that returns only names and inode numbers.
    pub fn bare(mut self) -> Self {
        self.found.iter_mut().for_each(Found::clear_unknown_to_std);
        self
    }

    /// Returns the same scan by a reader that queries the types that the directory does not list.
    pub fn resolved(mut self, file_type: impl Fn(&Found) -> FileType) -> Self {
        for entry in self.found.iter_mut().filter(|entry| entry.file_type == FileType::Unknown) {
            entry.file_type = file_type(entry);
        }
        self
    }

    /// Returns the same scan by a `Listing` of this order.
    pub fn sorted(self, order: Order) -> Self {
        Self { found: sorted(self.found, order), ..self }
    }
}

/// Reads all entries from a `ReadDir` after `rewind`. Such a reader knows the end marker.
pub fn all_again(mut dir: ReadDir) -> Vec<Found> {
    let mut found = Vec::new();
    dir.rewind().unwrap();
    while let Some(entry) = dir.next().unwrap() {
        found.push(Found::from(&entry));
    }
    found
}

/// Reads all remaining entries. Panics at an error.
pub fn all(entries: &mut Entries<'_>) -> Vec<Found> {
    let scan = Scan::of(entries);
    assert_eq!(scan.end, End::Complete);
    scan.found
}

/// Returns the contents of a `Listing`, in its order.
pub fn listed(listing: &Listing) -> Vec<Found> {
    let found: Vec<_> = listing.iter().map(Found::from).collect();
    for entry in [found.first(), found.last()].into_iter().flatten() {
        assert_eq!(
            listing.by_name(&entry.name).expect("`by_name` misses a name that is listed").name(),
            entry.name
        );
    }
    found
}

pub const ORDERS: [Order; 3] = [Order::Bytes, Order::Path, Order::Unsorted];

/// Sorts entries as a `Listing` does: the model for all tests. A `Listing` has no cookies. For
/// [`Order::Path`], the types of `found` must be [resolved](Scan::resolved).
pub fn sorted(mut found: Vec<Found>, order: Order) -> Vec<Found> {
    match order {
        Order::Bytes => found.sort_by(|a, b| a.name.cmp(&b.name)),
        Order::Path => found.sort_by_cached_key(|entry| {
            let ending: &[u8] = if entry.file_type == FileType::Directory { b"/" } else { b"" };
            [&entry.name, ending].concat()
        }),
        Order::Unsorted => {}
        _ => panic!("the tests do not say how {order:?} sorts"),
    }
    for entry in &mut found {
        entry.cookie = 0;
    }
    found
}

pub fn names(found: &[Found]) -> Vec<&[u8]> {
    found.iter().map(|entry| &*entry.name).collect()
}

impl Found {
    pub fn from_std(entry: &DirEntry) -> Self {
        Self {
            name: entry.file_name().into_vec(),
            ino: entry.ino(),
            file_type: FileType::Unknown,
            cookie: 0,
        }
    }

    /// Keeps only what `std` reports of an entry.
    pub fn clear_unknown_to_std(&mut self) {
        self.file_type = FileType::Unknown;
        self.cookie = 0;
    }

    /// Queries the type from the file system.
    pub fn true_type(&self, dir: impl AsFd) -> FileType {
        type_of_mode(statat(dir, &*self.name, AtFlags::SYMLINK_NOFOLLOW).unwrap().st_mode)
    }
}

impl From<&Entry<'_>> for Found {
    fn from(entry: &Entry<'_>) -> Self {
        Self {
            name: entry.name().to_vec(),
            ino: entry.ino(),
            file_type: entry.d_type(),
            cookie: entry.cookie(),
        }
    }
}

impl From<ListedEntry<'_>> for Found {
    fn from(entry: ListedEntry<'_>) -> Self {
        Self { name: entry.name().to_vec(), ino: entry.ino(), file_type: entry.d_type(), cookie: 0 }
    }
}

/// Returns the type in a mode.
pub fn type_of_mode(mode: u32) -> FileType {
    match mode >> 12 {
        0o10 => FileType::RegularFile,
        0o04 => FileType::Directory,
        0o12 => FileType::Symlink,
        0o01 => FileType::Fifo,
        0o14 => FileType::Socket,
        0o02 => FileType::CharacterDevice,
        0o06 => FileType::BlockDevice,
        _ => FileType::Unknown,
    }
}

/// Returns the type of an entry according to `std`, which queries the file system if the directory
/// lists no types.
pub fn type_by_std(entry: &DirEntry) -> FileType {
    let file_type = entry.file_type().unwrap();
    let answers = [
        (file_type.is_file(), FileType::RegularFile),
        (file_type.is_dir(), FileType::Directory),
        (file_type.is_symlink(), FileType::Symlink),
        (file_type.is_fifo(), FileType::Fifo),
        (file_type.is_socket(), FileType::Socket),
        (file_type.is_char_device(), FileType::CharacterDevice),
        (file_type.is_block_device(), FileType::BlockDevice),
    ];
    answers.into_iter().find(|answer| answer.0).expect("`std` knows no type").1
}

/// Returns the path of the error, which is empty for a directory that was passed as a descriptor.
pub fn path(error: &Error) -> &Path {
    error.path().unwrap_or(Path::new(""))
}

pub fn errno(error: &Error) -> c_int {
    error.raw_os_error().expect("the error has no errno")
}
