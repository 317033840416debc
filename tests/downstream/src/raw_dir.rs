//! Loops with `RawDir`, which also returns the dots.

use crate::{Input, Loop, look_at};
use rustix::fs::{AtFlags, FileType, RawDir, RawDirEntry, statat};
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

pub const LOOPS: &[(&str, Loop)] = &[
    ("plain", plain),
    ("filtered", filtered),
    ("closure", closure),
    ("boxed", boxed),
    ("generic", generic),
    ("count", count),
    ("typed", typed),
];

/// The loop itself. The caller skips the dots.
macro_rules! read_all {
    ($records:expr, $seen:ident) => {
        while let Some(record) = $records.next() {
            let record = record?;
            if !is_dot(&record) {
                look_at(record.file_name().to_bytes(), record.ino(), record.file_type());
                $seen += 1;
            }
        }
    };
}

type Records<'a> = RawDir<'a, BorrowedFd<'a>>;

fn records(input: &mut Input) -> Records<'_> {
    RawDir::new(input.dir.as_fd(), &mut input.memory)
}

fn is_dot(record: &RawDirEntry) -> bool {
    matches!(record.file_name().to_bytes(), b"." | b"..")
}

fn plain(input: &mut Input) -> io::Result<u64> {
    let mut records = records(input);
    let mut seen = 0;
    read_all!(records, seen);
    Ok(seen)
}

fn filtered(input: &mut Input) -> io::Result<u64> {
    let mut records = records(input);
    let mut seen = 0;
    while let Some(record) = records.next() {
        let record = record?;
        if !is_dot(&record) && !record.file_name().to_bytes().ends_with(b"~") {
            look_at(record.file_name().to_bytes(), record.ino(), record.file_type());
            seen += 1;
        }
    }
    Ok(seen)
}

fn closure(input: &mut Input) -> io::Result<u64> {
    let mut records = records(input);
    let mut seen = 0;
    let mut read = || -> io::Result<()> {
        read_all!(records, seen);
        Ok(())
    };
    read()?;
    Ok(seen)
}

fn boxed(input: &mut Input) -> io::Result<u64> {
    let mut records = records(input);
    let mut read: Box<dyn FnMut() -> io::Result<u64>> = Box::new(move || {
        let mut seen = 0;
        read_all!(records, seen);
        Ok(seen)
    });
    std::hint::black_box(&mut read)()
}

fn generic(input: &mut Input) -> io::Result<u64> {
    let mut seen = 0;
    for_each(&mut records(input), |record| {
        look_at(record.file_name().to_bytes(), record.ino(), record.file_type());
        seen += 1;
    })?;
    Ok(seen)
}

fn for_each(records: &mut Records<'_>, mut work: impl FnMut(&RawDirEntry)) -> io::Result<()> {
    while let Some(record) = records.next() {
        let record = record?;
        if !is_dot(&record) {
            work(&record);
        }
    }
    Ok(())
}

fn count(input: &mut Input) -> io::Result<u64> {
    let mut records = records(input);
    let mut seen = 0;
    while let Some(record) = records.next() {
        seen += u64::from(!is_dot(&record?));
    }
    Ok(seen)
}

fn typed(input: &mut Input) -> io::Result<u64> {
    let mut records = RawDir::new(&input.dir, &mut input.memory);
    let mut seen = 0;
    while let Some(record) = records.next() {
        let record = record?;
        if !is_dot(&record) {
            let file_type = match record.file_type() {
                FileType::Unknown => type_of(&input.dir, record.file_name())?,
                known => known,
            };
            look_at(record.file_name().to_bytes(), record.ino(), file_type);
            seen += 1;
        }
    }
    Ok(seen)
}

#[cold]
fn type_of(dir: impl AsFd, name: &CStr) -> io::Result<FileType> {
    Ok(FileType::from_raw_mode(statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode))
}
