//! The system calls of reading a directory.

use crate::support::fixture::numbered;
use crate::support::machine::{has_types, marked};
use crate::support::strace::{Counted, calls};
use lendir::{Buffer, Entries, Listing, ReadDir};
use std::os::fd::AsFd;

/// A description, the expected calls, and the function that makes them, with one [`Counted`].
type Case = (&'static str, &'static [&'static str], fn());

const CASES: [Case; 7] = [
    ("a small directory", &["openat", "getdents64", "getdents64", "close"], || {
        let dir = numbered(16);
        let mut buffer = Buffer::new();
        let _counted = Counted::begin();
        let dir = lendir::open(dir.path()).unwrap();
        assert_eq!(Entries::new(dir.as_fd(), &mut buffer).count().unwrap(), 16);
    }),
    ("a batch, and known types", &["getdents64"; 5], || {
        let dir = numbered(1024); // 24 bytes each, more than three times 8 KiB
        let fd = lendir::open(dir.path()).unwrap();
        let mut buffer = Buffer::with_capacity(Buffer::MIN_CAPACITY);
        let mut entries = Entries::new(fd.as_fd(), &mut buffer);
        let _counted = Counted::begin();
        while let Some(entry) = entries.next().unwrap() {
            entry.file_type().unwrap();
        }
    }),
    ("a rescan", &["lseek", "getdents64", "getdents64"], || {
        let dir = numbered(16);
        let fd = lendir::open(dir.path()).unwrap();
        let mut buffer = Buffer::new();
        let mut entries = Entries::new(fd.as_fd(), &mut buffer);
        let _counted = Counted::begin();
        entries.rewind().unwrap();
        while entries.next().unwrap().is_some() {}
    }),
    ("a listing of a fresh `ReadDir`", &["openat", "getdents64", "getdents64", "close"], || {
        let (dir, mut listing) = (numbered(16), Listing::new());
        let _counted = Counted::begin();
        lendir::read_dir(dir.path()).unwrap().read_into(&mut listing).unwrap();
    }),
    ("a listing of any other", &["openat", "getdents64", "getdents64", "close"], || {
        let (dir, mut listing) = (numbered(16), Listing::new());
        let mut dir = ReadDir::from_fd(lendir::open(dir.path()).unwrap(), "");
        let _counted = Counted::begin();
        dir.read_into(&mut listing).unwrap();
    }),
    ("a large directory, into a new listing", &["getdents64"; 4], || {
        // 96 KiB of records, in batches of 32, 32 and 64 KiB, and the end.
        let dir = numbered(4096);
        let fd = lendir::open(dir.path()).unwrap();
        let mut listing = Listing::new();
        let _counted = Counted::begin();
        listing.read(&fd).unwrap();
        assert_eq!(listing.len(), 4096);
    }),
    ("an error, and nothing after it", &["getdents64"], || {
        let file = tempfile::tempfile().unwrap();
        let mut buffer = Buffer::new();
        let mut entries = Entries::new(file.as_fd(), &mut buffer);
        let _counted = Counted::begin();
        assert!(entries.next().is_err());
        for _ in 0..10 {
            assert!(entries.next().unwrap().is_none());
        }
    }),
];

#[test]
fn directory_takes_the_documented_calls() {
    const TEST: &str = "system_calls::directory_takes_the_documented_calls";
    if !has_types(TEST, numbered(1).path()) {
        return;
    }
    let Some(parts) = calls(TEST, || CASES.iter().for_each(|(_, _, read)| read())) else { return };
    assert_eq!(parts.len(), CASES.len());
    for ((what, expected, _), calls) in CASES.iter().zip(parts) {
        assert_eq!(calls, *expected, "{what}");
    }
}

#[test]
fn end_marker_saves_one_call_after_rewind() {
    const TEST: &str = "system_calls::end_marker_saves_one_call_after_rewind";
    let Some(path) = marked(TEST) else { return };
    let parts = calls(TEST, || {
        let mut entries = lendir::read_dir(path).unwrap();
        for _ in 0..3 {
            let _counted = Counted::begin();
            while entries.next().unwrap().is_some() {}
            assert!(entries.next().unwrap().is_none());
            entries.rewind().unwrap();
        }
    });
    let Some(parts) = parts else { return };
    let expected: [&[&str]; 3] = [
        &["getdents64", "getdents64", "lseek", "fstatfs"],
        &["getdents64", "lseek"],
        &["getdents64", "lseek"],
    ];
    assert_eq!(parts, expected);
}
