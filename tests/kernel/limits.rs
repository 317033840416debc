//! The machine's limits: no descriptor left, and directories nested deeper than any path or stack can follow.

use crate::file_systems::FileSystem;
use crate::support::machine;
use crate::support::process;
use crate::support::scan::errno;
use crate::support::tree::chain;
use crate::walk::remove_contents;
use lendir::{Buffer, Entries, Walk};
use libc::EMFILE;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
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

        setrlimit(Resource::Nofile, Rlimit { current: Some(0), ..getrlimit(Resource::Nofile) }).unwrap();
        for refused in [lendir::open("/"), lendir::openat(&dir, ".")] {
            assert_eq!(errno(&refused.unwrap_err()), EMFILE);
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

fn descend_and_remove(path: &Path, depth: usize) {
    let test = || {
        chain(path, depth);
        let open_before = open_descriptors();
        let mut walk = Walk::open(path).unwrap();
        let mut directories = 0;
        while let Some(dir) = walk.next().unwrap() {
            directories += 1;
            if dir.depth() % 100 == 0 {
                assert!(open_descriptors() <= open_before + 2);
            }
        }
        assert_eq!(directories, 1 + depth);
        remove_contents(lendir::open(path).unwrap()).unwrap();
        assert_eq!(Entries::new(&lendir::open(path).unwrap(), &mut Buffer::new()).count().unwrap(), 0);
        assert_eq!(open_descriptors(), open_before);
    };
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(64 * 1024);
        thread.spawn_scoped(scope, test).unwrap();
    });
}

fn open_descriptors() -> u64 {
    Entries::new(&lendir::open("/proc/self/fd").unwrap(), &mut Buffer::with_capacity(0)).count().unwrap()
}
