//! `Entries` and `Listing` against a list of records: `cargo +nightly fuzz run --fuzz-dir tests/fuzz records`.
//!
//! rustix's `RawDir` calls `getdents64` itself, so `tests/fuzz/rustix` puts another in its place, which
//! hands over any records: names of any bytes and of up to 4095, empty names, dots, any type, inode
//! number and cookie, in batches of any length, with errors between them.
//!
//! No target has names without NUL, or a `d_reclen` that leads out of the batch. `RawDir` believes
//! both, and would read beyond its memory; but the kernel writes both itself, whatever a file system
//! or a server says.

#![no_main]

use lendir::{Buffer, Entries, Error, FileType, Listing, Order};
use libfuzzer_sys::fuzz_target;
use rustix::fd::AsFd;
use rustix::fs::{Answer, Record, answer};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fs::File;
use std::sync::LazyLock;

/// A directory that is open and never read.
static DIRECTORY: LazyLock<File> = LazyLock::new(|| File::open("/").expect("cannot open `/`"));

/// The steps are separated by NUL. The first byte says what happens, and the other bytes are a name.
fn answers(data: &[u8]) -> Vec<Answer> {
    let mut answers = vec![Ok(VecDeque::new())];
    for step in data.split(|byte| *byte == 0) {
        let Some((&how, name)) = step.split_first() else { continue };
        match how {
            0..4 => answers.extend([Err(Errno::INTR), Ok(VecDeque::new())]),
            4 => answers.extend([Err(Errno::IO), Ok(VecDeque::new())]),
            5 => answers.extend([Err(Errno::NOENT), Ok(VecDeque::new())]),
            6..12 => answers.push(Ok(VecDeque::new())),
            _ => {
                let copies = if how < 24 { usize::from(how) } else { 1 };
                let mut name = name.repeat(copies);
                name.truncate(4095);
                // `a/` and a directory `a` would be the same in `Order::Path`. Since 5.4, Linux
                // refuses every name with a `/`.
                name.truncate(name.len() - name.iter().rev().take_while(|it| **it == b'/').count());
                let d_type = [8, 4, 10, 1, 12, 2, 6, how][usize::from(how % 8)];
                let cookie = data.len() as u64 ^ u64::from(how) << 56;
                let record = Record { ino: name.len() as u64, cookie, d_type, name };
                if let Some(Ok(records)) = answers.last_mut() {
                    records.push_back(record);
                }
            }
        }
    }
    // An empty answer is the end of a directory.
    answers.retain(|answer| !answer.as_ref().is_ok_and(VecDeque::is_empty));
    answers
}

/// The entries that a reader must yield: names, types and inode numbers, and how it ends.
type Expected = (Vec<(Vec<u8>, FileType, u64)>, Option<Errno>);

fn expected(answers: &[Answer]) -> Expected {
    let mut all = Vec::new();
    for answer in answers {
        match answer {
            Ok(records) => {
                for Record { name, d_type, ino, .. } in records {
                    if name.is_empty() {
                        return (all, Some(Errno::IO));
                    }
                    if name != b"." && name != b".." {
                        all.push((name.clone(), file_type(*d_type), *ino));
                    }
                }
            }
            Err(Errno::INTR) => {}
            Err(Errno::NOENT) => return (all, None),
            Err(errno) => return (all, Some(*errno)),
        }
    }
    (all, None)
}

fn file_type(d_type: u8) -> FileType {
    let known = [
        FileType::RegularFile,
        FileType::Directory,
        FileType::Symlink,
        FileType::Fifo,
        FileType::Socket,
        FileType::CharacterDevice,
        FileType::BlockDevice,
    ];
    known.into_iter().find(|it| *it as u8 == d_type).unwrap_or(FileType::Unknown)
}

fn errno(error: &Error) -> Option<Errno> {
    error.raw_os_error().map(Errno::from_raw_os_error)
}

fn check(data: &[u8]) {
    let answers = answers(data);
    let (mut records, end) = expected(&answers);
    read_entries(&answers, &records, end);
    for order in [Order::Unsorted, Order::Bytes, Order::Path] {
        match order {
            Order::Unsorted => {}
            // Asks the kernel for the types that a record does not tell.
            Order::Path if records.iter().any(|it| it.1 == FileType::Unknown) => continue,
            Order::Path => records.sort_by_key(|(name, file_type, _)| path(name, *file_type)),
            _ => records.sort_by(|a, b| a.0.cmp(&b.0)),
        }
        answer(answers.iter().cloned());
        let mut listing = Listing::with_order(order);
        let result = listing.read(&*DIRECTORY);
        assert_eq!(result.err().and_then(|error| errno(&error)), end);
        assert_eq!(listing.len(), records.len());
        for (entry, (name, ..)) in listing.iter().zip(&records) {
            assert_eq!(entry.name(), name);
            let found = listing.by_name(name).expect("a name is not found");
            assert_eq!(found.name(), name);
        }
        let absent = [data, b"absent"].concat();
        if !records.iter().any(|it| it.0 == absent) {
            assert!(listing.by_name(&absent).is_none());
        }
        // Several entries can have the same name, in any order.
        let mut found: Vec<_> =
            listing.iter().map(|it| (it.name(), it.d_type() as u8, it.ino())).collect();
        let mut sorted: Vec<_> = records.iter().map(|it| (&*it.0, it.1 as u8, it.2)).collect();
        found.sort_unstable();
        sorted.sort_unstable();
        assert_eq!(found, sorted);
    }
}

fn path(name: &[u8], file_type: FileType) -> Vec<u8> {
    let slash: &[u8] = if file_type.is_dir() { b"/" } else { b"" };
    [name, slash].concat()
}

fn read_entries(answers: &[Answer], records: &[(Vec<u8>, FileType, u64)], end: Option<Errno>) {
    answer(answers.iter().cloned());
    let mut buffer = Buffer::with_capacity(Buffer::MIN_CAPACITY);
    let mut entries = Entries::new(DIRECTORY.as_fd(), &mut buffer);
    for (name, file_type, ino) in records {
        let entry = entries.next().expect("an early error").expect("an early end");
        assert_eq!((entry.name(), entry.d_type(), entry.ino()), (&**name, *file_type, *ino));
        let number = str::from_utf8(name).ok().and_then(|name| name.parse::<u32>().ok());
        let number = number.filter(|number| number.to_string().as_bytes() == name);
        assert_eq!(entry.numeric_name(), number);
    }
    let error = entries.next().map(|entry| assert!(entry.is_none(), "an entry too many")).err();
    assert_eq!(error.and_then(|error| errno(&error)), end);
    assert!(entries.next().is_ok_and(|entry| entry.is_none()), "not fused");
}

fuzz_target!(|data: &[u8]| check(data));
