//! Loops over a tree: with `WalkDirs`, with `Walk`, and by hand with `RawDir`.

use crate::{Input, Loop, look_at};
use lendir::{Walk, WalkDirs, Worker};
use rustix::fs::{FileType, Mode, OFlags, RawDir, openat};
use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;

pub const BY_HAND: &[(&str, Loop)] = &[("walk", by_hand)];

pub const LOOPS: &[(&str, Loop)] = &[
    ("walk_dirs", plain),
    ("walk_dirs_closure", closure),
    ("walk_dirs_boxed", boxed),
    ("walk_dirs_mount", same_mount),
    ("walk_dirs_parallel", parallel),
];

pub const ENTRIES: &[(&str, Loop)] = &[("walk", entries)];

fn begin(input: &Input) -> io::Result<WalkDirs> {
    Ok(WalkDirs::options().from_fd(input.dir.try_clone()?, ""))
}

fn plain(input: &mut Input) -> io::Result<u64> {
    let mut walk = begin(input)?;
    let mut seen = 0;
    while let Some(mut dir) = walk.next()? {
        read_all!(dir, seen);
    }
    Ok(seen)
}

fn closure(input: &mut Input) -> io::Result<u64> {
    let mut walk = begin(input)?;
    let mut seen = 0;
    let mut read = || -> io::Result<()> {
        while let Some(mut dir) = walk.next()? {
            read_all!(dir, seen);
        }
        Ok(())
    };
    read()?;
    Ok(seen)
}

fn boxed(input: &mut Input) -> io::Result<u64> {
    let mut walk = begin(input)?;
    let mut read: Box<dyn FnMut() -> io::Result<u64>> = Box::new(move || {
        let mut seen = 0;
        while let Some(mut dir) = walk.next()? {
            read_all!(dir, seen);
        }
        Ok(seen)
    });
    std::hint::black_box(&mut read)()
}

fn same_mount(input: &mut Input) -> io::Result<u64> {
    let mut walk = WalkDirs::options().same_mount(true).from_fd(input.dir.try_clone()?, "");
    let mut seen = 0;
    while let Some(mut dir) = walk.next()? {
        read_all!(dir, seen);
    }
    Ok(seen)
}

fn parallel(input: &mut Input) -> io::Result<u64> {
    let work = |worker: &mut Worker| {
        let mut seen = 0;
        while let Some(mut dir) = worker.next()? {
            read_all!(dir, seen);
        }
        Ok(seen)
    };
    begin(input)?.run_parallel(1, work).pop().expect("BUG: no thread has run")
}

fn entries(input: &mut Input) -> io::Result<u64> {
    let mut walk = Walk::options().from_fd(input.dir.try_clone()?, "");
    let mut seen = 0;
    read_all!(walk, seen);
    Ok(seen)
}

/// Reads a tree of two levels.
fn by_hand(input: &mut Input) -> io::Result<u64> {
    let mut below = Vec::new();
    let mut seen = read(&input.dir, &mut input.memory, &mut below)?;
    for name in below.split_inclusive(|byte| *byte == 0) {
        let name = CStr::from_bytes_with_nul(name).expect("BUG: a name without its NUL");
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dir = openat(&input.dir, name, flags, Mode::empty())?;
        seen += read(&dir, &mut input.memory, &mut Vec::new())?;
    }
    Ok(seen)
}

/// Returns the number of entries, and appends the names of directories to `below`.
fn read(dir: impl AsFd, memory: &mut [MaybeUninit<u8>], below: &mut Vec<u8>) -> io::Result<u64> {
    let mut records = RawDir::new(dir, memory);
    let mut seen = 0;
    while let Some(record) = records.next() {
        let record = record?;
        let name = record.file_name();
        if !matches!(name.to_bytes(), b"." | b"..") {
            look_at(name.to_bytes(), record.ino(), record.file_type());
            if record.file_type() == FileType::Directory {
                below.extend_from_slice(name.to_bytes_with_nul());
            }
            seen += 1;
        }
    }
    Ok(seen)
}
