//! The machine's limits: no descriptor left, and directories nested deeper than any path or stack can follow.

use crate::file_systems::FileSystem;
use crate::support::machine;
use crate::support::process;
use lendir::{Buffer, Entries, Entry, FileType, OFlags};
use rustix::fs::{AtFlags, Mode, fstat, mkdirat, mknodat, unlinkat};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::{io, thread};

/// Opening says so; an iterator that is under way does not notice.
#[test]
fn running_out_of_descriptors_is_an_error_of_open() {
    // The limit is that of a whole process.
    process::run("limits::running_out_of_descriptors_is_an_error_of_open", 60, || {
        let dir = lendir::open("/proc/sys/kernel").unwrap();
        let mut buffer = Buffer::with_capacity(0);
        let expected = Entries::new(&dir, &mut buffer).count().unwrap();
        let mut entries = Entries::new(&dir, &mut buffer);
        entries.rewind().unwrap();
        assert!(entries.next().unwrap().is_some());

        setrlimit(Resource::Nofile, Rlimit { current: Some(0), ..getrlimit(Resource::Nofile) }).unwrap();
        for refused in [lendir::open("/"), lendir::openat(&dir, ".")] {
            assert_eq!(Errno::from_io_error(&refused.unwrap_err()), Some(Errno::MFILE));
        }
        assert_eq!(entries.count().unwrap(), expected - 1);
    });
    let what = "calls: two that open are refused, the iterator under way goes on";
    machine::passed("limits: no descriptor is left", 3, what);
}

#[test]
fn any_depth_takes_two_descriptors_and_little_stack() {
    // Descriptors are counted, so no other test may open any.
    const TEST: &str = "limits::any_depth_takes_two_descriptors_and_little_stack";
    process::run(TEST, if machine::runs_long() { 1800 } else { 300 }, || {
        let depth = if machine::runs_long() { 100_000 } else { 10_000 };
        let row = "limits: however deep";
        match FileSystem::named("tmpfs").mounted(|_, _| {}, |mounted| descend_and_remove(&mounted.at, depth)) {
            Ok(()) => {
                let what = "levels read and removed with two descriptors and a stack of 64 KiB";
                machine::passed(row, depth, what);
            }
            Err(missing) => machine::skip(row, &missing),
        }
    });
}

fn descend_and_remove(path: &Path, depth: usize) {
    let test = || {
        nest(path, depth);
        let open_before = open_descriptors();
        let mut buffer = Buffer::new();
        let (mut directories, mut files) = (0, 0);
        let count = |entry: &Entry<'_>| {
            if entry.file_type() == FileType::Directory {
                directories += 1;
            } else {
                files += 1;
                assert!(open_descriptors() <= open_before + 2);
            }
        };
        walk(lendir::open(path).unwrap(), &mut buffer, count).unwrap();
        assert_eq!((directories, files), (depth, depth / FILE_EVERY));
        remove_contents(lendir::open(path).unwrap(), &mut buffer).unwrap();
        assert_eq!(Entries::new(&lendir::open(path).unwrap(), &mut buffer).count().unwrap(), 0);
        assert_eq!(open_descriptors(), open_before);
    };
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(64 * 1024);
        thread.spawn_scoped(scope, test).unwrap();
    });
}

/// Every so many levels there is a file too, which tmpfs lists after the directory that is made later.
const FILE_EVERY: usize = 100;

fn nest(path: &Path, depth: usize) {
    let mut dir = lendir::open(path).unwrap();
    for level in 0..depth {
        if level % FILE_EVERY == 0 {
            mknodat(&dir, c"file", FileType::RegularFile, Mode::RUSR, 0).unwrap();
        }
        mkdirat(&dir, c"directory", Mode::RWXU).unwrap();
        dir = lendir::openat(&dir, c"directory").unwrap();
    }
}

fn open_descriptors() -> u64 {
    Entries::new(&lendir::open("/proc/self/fd").unwrap(), &mut Buffer::with_capacity(0)).count().unwrap()
}

/// Visits everything below `dir`, however deep it is: with two descriptors, one buffer, and 24 bytes for each level.
///
/// A level is left by its name and entered again by `..`; its cookie says where to go on. Each return reads a batch
/// again, so that a small buffer serves wide directories better.
fn walk(mut dir: OwnedFd, buffer: &mut Buffer, mut visit: impl FnMut(&Entry<'_>)) -> io::Result<()> {
    let mut levels = Vec::new();
    let mut position = 0;
    loop {
        let mut entries = Entries::new(&dir, buffer);
        entries.seek(position)?;
        let mut child = None;
        while let Some(entry) = entries.next()? {
            visit(&entry);
            if entry.resolve_file_type()? == FileType::Directory {
                child = Some((lendir::openat_with(&dir, entry.name_cstr(), OFlags::NOFOLLOW)?, entry.cookie()));
                break;
            }
        }
        if let Some((child, cookie)) = child {
            levels.push((identity(&dir)?, cookie));
            (dir, position) = (child, 0);
        } else if let Some((parent, cookie)) = levels.pop() {
            (dir, position) = (leave(&dir, parent)?, cookie);
        } else {
            return Ok(());
        }
    }
}

/// Removes everything below `dir`, however deep it is, in the same way.
///
/// It needs no cookies: what was there before a child was entered is gone, and the child, empty now, comes first.
fn remove_contents(mut dir: OwnedFd, buffer: &mut Buffer) -> io::Result<()> {
    let mut levels = Vec::new();
    loop {
        let mut entries = Entries::new(&dir, buffer);
        let mut child = None;
        while let Some(entry) = entries.next()? {
            let is_directory = entry.resolve_file_type()? == FileType::Directory;
            let flags = if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
            match unlinkat(&dir, entry.name_cstr(), flags) {
                Err(Errno::NOTEMPTY) => {
                    child = Some(lendir::openat_with(&dir, entry.name_cstr(), OFlags::NOFOLLOW)?);
                    break;
                }
                answer => answer?,
            }
        }
        if let Some(child) = child {
            levels.push(identity(&dir)?);
            dir = child;
        } else if let Some(parent) = levels.pop() {
            dir = leave(&dir, parent)?;
        } else {
            return Ok(());
        }
    }
}

/// Opens the parent of `dir`, unless `dir` was moved away from it meanwhile.
fn leave(dir: &OwnedFd, parent: (u64, u64)) -> io::Result<OwnedFd> {
    let above = lendir::openat(dir, c"..")?;
    if identity(&above)? == parent {
        Ok(above)
    } else {
        Err(io::Error::other("a directory was moved while it was read"))
    }
}

fn identity(dir: &OwnedFd) -> io::Result<(u64, u64)> {
    let stat = fstat(dir)?;
    Ok((stat.st_dev, stat.st_ino))
}
