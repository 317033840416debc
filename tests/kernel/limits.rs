//! The machine's limits: no descriptor left, and directories nested deeper than any path or stack can follow.

use crate::file_systems::FileSystem;
use crate::support::machine;
use crate::support::process;
use crate::walk::{Told, WAYS, Way, comb, remove_contents};
use lendir::{Buffer, Entries, FileType, Walk};
use rustix::fs::{Mode, mkdirat, mknodat};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::thread;

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

        set_descriptors(0);
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
                let what = "levels walked with two descriptors, and removed, on a stack of 64 KiB";
                machine::passed(row, depth, what);
            }
            Err(missing) => machine::skip(row, &missing),
        }
    });
}

/// What others have open counts as well: the walk closes levels early until there is room, and comes back to them.
#[test]
fn walk_needs_three_descriptors_of_those_that_are_left() {
    const TEST: &str = "limits::walk_needs_three_descriptors_of_those_that_are_left";
    process::run(TEST, 60, || {
        let tree = tempfile::tempdir().unwrap();
        let tree = tree.path();
        comb(tree, 40);
        let expected = Told::by_std(tree).unwrap();
        let open_before = open_descriptors();
        let lowest_free = u64::try_from(File::open(tree).unwrap().as_raw_fd()).unwrap();
        for left in 3..=16 {
            for way in WAYS {
                // Level by level closed, whatever the walk is told.
                for way in [way, Way { max_open: None, ..way }] {
                    set_descriptors(lowest_free + left);
                    let told = way.walk(tree);
                    set_descriptors(1024);
                    assert_eq!(told.sorted(), expected, "{left} descriptors are left, {way:?}");
                    let mut abandoned = way.begin(tree);
                    abandoned.until("d/d/d");
                    drop(abandoned);
                    assert_eq!(open_descriptors(), open_before, "{way:?}");
                }
            }
        }
        let what = "walks of 40 levels that return to each of them, with 3 to 16 descriptors for all: complete";
        machine::passed("limits: few descriptors are left", 14 * 2 * WAYS.len(), what);
    });
}

fn set_descriptors(limit: u64) {
    setrlimit(Resource::Nofile, Rlimit { current: Some(limit), ..getrlimit(Resource::Nofile) }).unwrap();
}

fn descend_and_remove(path: &Path, depth: usize) {
    let test = || {
        nest(path, depth);
        let open_before = open_descriptors();
        let (mut directories, mut files) = (0, 0);
        let mut walk = Walk::open(path).unwrap();
        while let Some(mut dir) = walk.next().unwrap() {
            while let Some(entry) = dir.next().unwrap() {
                if entry.file_type() == FileType::Directory {
                    directories += 1;
                } else {
                    files += 1;
                    assert!(open_descriptors() <= open_before + 2);
                }
            }
        }
        assert_eq!((directories, files), (depth, depth / FILE_EVERY));
        remove_contents(lendir::open(path).unwrap()).unwrap();
        assert_eq!(Entries::new(&lendir::open(path).unwrap(), &mut Buffer::new()).count().unwrap(), 0);
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
