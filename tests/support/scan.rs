//! A scan: everything that one reading of a directory delivered, and how it ended.
#![allow(dead_code, reason = "no test uses all of it")]

use lendir::{Entries, Entry, FileType, Listing, Order};
use std::ffi::c_int;
use std::io;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scan {
    pub found: Vec<Found>,
    pub end: End,
}

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
    /// `ENOENT`, as `Entries::removed` says.
    Removed,
    Error(c_int),
}

impl From<Entry<'_>> for Found {
    fn from(entry: Entry<'_>) -> Self {
        Self { name: entry.name().to_vec(), file_type: entry.file_type(), ino: entry.ino(), cookie: entry.cookie() }
    }
}

impl PartialEq<Entry<'_>> for Found {
    fn eq(&self, entry: &Entry<'_>) -> bool {
        self.name == entry.name()
            && self.file_type == entry.file_type()
            && self.ino == entry.ino()
            && self.cookie == entry.cookie()
    }
}

impl Scan {
    /// By `Entries`, to the end and a little further: it is fused.
    pub fn of(entries: &mut Entries<'_>) -> Self {
        let mut found = Vec::new();
        let end = loop {
            match entries.next() {
                Ok(Some(entry)) => {
                    assert_eq!(entry.name_cstr().to_bytes(), entry.name());
                    assert!(!matches!(entry.name(), b"" | b"." | b".."));
                    found.push(entry.into());
                }
                Ok(None) => break End::Complete,
                Err(error) => break End::Error(errno(&error)),
            }
        };
        let end = if entries.removed() { End::Removed } else { end };
        for _ in 0..3 {
            assert!(entries.next().expect("an error comes once").is_none());
            assert_eq!(entries.removed(), end == End::Removed);
        }
        Self { found, end }
    }

    /// By a `Listing`, whatever it held before.
    pub fn by(listing: &mut Listing, entries: Entries<'_>) -> Self {
        let end = match listing.read(entries) {
            Err(error) => End::Error(errno(&error)),
            Ok(()) if listing.removed() => End::Removed,
            Ok(()) => End::Complete,
        };
        let listed = listing.iter().map(|entry| {
            assert_eq!(entry.name_cstr().to_bytes(), entry.name());
            Found { name: entry.name().to_vec(), ino: entry.ino(), file_type: entry.file_type(), cookie: 0 }
        });
        let found: Vec<_> = listed.collect();
        for entry in [found.first(), found.last()].into_iter().flatten() {
            assert_eq!(listing.find(&entry.name).expect("it is there").name(), entry.name);
        }
        Self { found, end }
    }

    /// The same as a `Listing` has it: in order, and without cookies.
    pub fn listed(&self, order: Order) -> Self {
        let mut found = self.found.clone();
        match order {
            Order::Bytes => found.sort_by(|a, b| a.name.cmp(&b.name)),
            Order::AsciiCaseless => found.sort_by_key(|entry| (entry.name.to_ascii_lowercase(), entry.name.clone())),
            Order::Inode => found.sort_by_key(|entry| (entry.ino, entry.name.clone())),
            Order::Directory => {}
            _ => panic!("no oracle for {order:?}"),
        }
        for entry in &mut found {
            entry.cookie = 0;
        }
        Self { found, end: self.end }
    }
}

pub fn errno(error: &io::Error) -> c_int {
    error.raw_os_error().expect("an error of the kernel's")
}
