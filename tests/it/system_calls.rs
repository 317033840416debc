//! The exact system calls, counted by strace.

use crate::fixture::numbered;
use crate::support::machine::{can_trace, skip};
use crate::support::process;
use crate::support::tree::{self, Tree};
use crate::walk_bounds::leave_room;
use lendir::{Buffer, Dir, EndMarker, Entries, FileType, Listing, Walk};
use std::collections::BTreeMap;
use std::fs;
use std::iter;
use std::path::Path;
use std::process::Command;

/// System calls are counted while this lives.
pub struct Counted;

impl Counted {
    // Paths that nobody else asks for: in the log they mark where the counted part begins and ends.
    const BEGIN: &str = "/begin of the counted part";
    const END: &str = "/end of the counted part";

    pub fn begin() -> Self {
        let _ = fs::symlink_metadata(Self::BEGIN);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let _ = fs::symlink_metadata(Self::END);
    }
}

/// The lines of strace, run with these options, for the system calls that `part` makes in a process of its own while its
/// [`Counted`] lives. `test` is named with its module.
///
/// `None` where strace is missing, which is reported.
pub fn log(test: &str, options: &[&str], part: impl FnOnce()) -> Option<Vec<String>> {
    process::part(test, 60, part);
    if !can_trace(test) {
        return None;
    }
    // A log for each thread, where no line is cut in two by another thread.
    let logs = tempfile::tempdir().unwrap();
    let mut strace = Command::new("strace");
    strace.args(["-ff", "-qq"]).args(options).arg("-o").arg(logs.path().join("thread"));
    process::run_under(strace, test);
    let mut texts = fs::read_dir(logs.path()).unwrap().map(|log| fs::read_to_string(log.unwrap().path()).unwrap());
    let log = texts.find(|log| log.contains(Counted::BEGIN)).expect("no log has the counted part");
    let counted = log.lines().skip_while(|line| !line.contains(Counted::BEGIN)).skip(1);
    let lines = counted.take_while(|line| !line.contains(Counted::END)).map(str::to_owned);
    Some(lines.filter(|line| !OF_OTHERS.contains(&name_of(line))).collect())
}

/// The names of the system calls that `part` makes, as [`log`] has them.
fn system_calls(test: &str, part: impl FnOnce()) -> Option<Vec<String>> {
    let lines = log(&format!("system_calls::{test}"), &[], part)?;
    Some(lines.iter().map(|line| name_of(line).to_owned()).collect())
}

/// `malloc` gets and returns memory, and takes a lock; `rustix` looks once for the vDSO in a 32-bit process; and
/// before it closes a descriptor, `std` asserts that it is open, if debug assertions are on.
const OF_OTHERS: [&str; 7] =
    ["brk", "futex", "mmap", "mremap", "munmap", "prctl", if cfg!(debug_assertions) { "fcntl" } else { "" }];

/// The name of the call in a line of strace, as a 64-bit process has it.
pub fn name_of(line: &str) -> &str {
    match line.split('(').next().unwrap() {
        "_llseek" => "lseek",
        "fcntl64" => "fcntl",
        "fstatfs64" => "fstatfs",
        "mmap2" => "mmap",
        call => call,
    }
}

/// Asserts that `part` makes the `expected` calls and no others.
fn assert_calls(test: &str, expected: &[&str], part: impl FnOnce()) {
    if let Some(calls) = system_calls(test, part) {
        assert_eq!(calls, expected);
    }
}

fn read_all(path: &Path, buffer: &mut Buffer) {
    let dir = lendir::open(path).unwrap();
    assert_eq!(Entries::new(&dir, buffer).count().unwrap(), 16);
}

/// A directory of a file system with an end marker; where there is none, reports that `test` is skipped.
fn marked(test: &str) -> Option<(&'static Path, EndMarker)> {
    let path = Path::new("/sys/class");
    let marker = lendir::open(path).and_then(EndMarker::of).ok().filter(|marker| *marker != EndMarker::NONE);
    if marker.is_none() {
        skip(test, "sysfs on /sys");
    }
    Some((path, marker?))
}

#[test]
fn small_directory_takes_four_calls() {
    assert_calls("small_directory_takes_four_calls", &["openat", "getdents64", "getdents64", "close"], || {
        let dir = numbered(16);
        let mut buffer = Buffer::new();
        let _counted = Counted::begin();
        read_all(dir.path(), &mut buffer);
    });
}

#[test]
fn end_marker_saves_one_call() {
    const TEST: &str = "end_marker_saves_one_call";
    let Some((path, marker)) = marked(TEST) else { return };
    assert_calls(TEST, &["openat", "getdents64", "close"], || {
        let mut buffer = Buffer::new();
        let _counted = Counted::begin();
        let dir = lendir::open(path).unwrap();
        let mut entries = Entries::new(&dir, &mut buffer).with_end_marker(marker);
        while entries.next().unwrap().is_some() {}
        assert!(entries.next().unwrap().is_none());
    });
}

#[test]
fn end_marker_of_takes_one_call() {
    assert_calls("end_marker_of_takes_one_call", &["fstatfs"], || {
        let dir = lendir::open("/sys").unwrap();
        let _counted = Counted::begin();
        assert!(EndMarker::of(&dir).is_ok());
    });
}

#[test]
fn rescan_adds_one_lseek() {
    assert_calls("rescan_adds_one_lseek", &["lseek", "getdents64", "getdents64"], || {
        let dir = numbered(16);
        let fd = lendir::open(dir.path()).unwrap();
        let mut buffer = Buffer::new();
        let mut entries = Entries::new(&fd, &mut buffer);
        let _counted = Counted::begin();
        entries.rewind().unwrap();
        while entries.next().unwrap().is_some() {}
    });
}

#[test]
fn rescan_with_end_marker_takes_two_calls() {
    const TEST: &str = "rescan_with_end_marker_takes_two_calls";
    let Some((path, marker)) = marked(TEST) else { return };
    assert_calls(TEST, &["lseek", "getdents64"], || {
        let fd = lendir::open(path).unwrap();
        let mut buffer = Buffer::new();
        let mut entries = Entries::new(&fd, &mut buffer).with_end_marker(marker);
        let _counted = Counted::begin();
        entries.rewind().unwrap();
        while entries.next().unwrap().is_some() {}
    });
}

#[test]
fn error_is_followed_by_no_call() {
    assert_calls("error_is_followed_by_no_call", &["getdents64"], || {
        let file = tempfile::tempfile().unwrap();
        let mut buffer = Buffer::new();
        let mut entries = Entries::new(&file, &mut buffer);
        let _counted = Counted::begin();
        assert!(entries.next().is_err());
        for _ in 0..10 {
            assert!(entries.next().unwrap().is_none());
        }
    });
}

fn temporary_directories_have_types() -> bool {
    let dir = numbered(1);
    let fd = lendir::open(dir.path()).unwrap();
    Entries::new(&fd, &mut Buffer::new()).next().unwrap().unwrap().file_type() != FileType::Unknown
}

#[test]
fn large_directory_takes_one_call_a_batch_and_none_for_known_types() {
    const TEST: &str = "large_directory_takes_one_call_a_batch_and_none_for_known_types";
    if !temporary_directories_have_types() {
        return skip(TEST, "a temporary directory whose file system has types");
    }
    assert_calls(TEST, &["getdents64"; 5], || {
        let dir = numbered(1024); // 24 bytes each, three times 8 KiB and some
        let fd = lendir::open(dir.path()).unwrap();
        let mut buffer = Buffer::with_capacity(Buffer::MIN_CAPACITY);
        let mut entries = Entries::new(&fd, &mut buffer);
        let _counted = Counted::begin();
        while let Some(entry) = entries.next().unwrap() {
            entry.resolve_file_type().unwrap();
        }
    });
}

#[test]
fn every_descriptor_is_closed() {
    let calls = system_calls("every_descriptor_is_closed", || {
        let dir = numbered(16);
        let mut buffer = Buffer::new();
        let _counted = Counted::begin();
        read_all(dir.path(), &mut buffer);
        assert!(lendir::open("/nowhere").is_err());
        let fd = lendir::open(dir.path()).unwrap();
        assert!(lendir::openat(&fd, "1").is_err());
        let mut entries = Entries::new(&fd, &mut buffer);
        assert!(entries.next().unwrap().is_some());
        assert!(entries.seek(u64::MAX).is_err());
        let child = lendir::openat(&fd, ".").unwrap();
        assert!(EndMarker::of(&child).is_ok());
    });
    if let Some(calls) = calls {
        let count = |name: &str| calls.iter().filter(|call| *call == name).count();
        assert_eq!((count("openat"), count("close")), (5, 3), "two of the five are refused: {calls:?}");
    }
}

/// How often `part` makes each call, or `None` as [`system_calls`] has it.
fn totals(test: &str, part: impl FnOnce()) -> Option<BTreeMap<String, usize>> {
    let mut totals = BTreeMap::new();
    for call in system_calls(test, part)? {
        *totals.entry(call).or_default() += 1;
    }
    Some(totals)
}

fn assert_totals(test: &str, expected: &[(&str, usize)], part: impl FnOnce()) {
    if let Some(totals) = totals(test, part) {
        assert!(totals.iter().map(|(call, times)| (call.as_str(), *times)).eq(expected.iter().copied()), "{totals:?}");
    }
}

fn walk_all(mut walk: Walk, mut look: impl FnMut(&mut Dir<'_>)) {
    while let Some(mut dir) = walk.next().unwrap() {
        look(&mut dir);
    }
}

fn read_all_of(dir: &mut Dir<'_>) {
    while dir.next().unwrap().is_some() {}
}

/// How many `getdents64` a small temporary directory takes: one where there is an end marker.
fn reads() -> usize {
    let tree = Tree::of(&["f"]);
    let end_marker = EndMarker::of(lendir::open(tree.path()).unwrap()).unwrap();
    if end_marker == EndMarker::NONE { 2 } else { 1 }
}

/// The root is opened by `openat` and asked for its end marker. Nothing is asked about an entry. What the caller does not read
/// the walk reads, and begins again where the caller stopped midway.
#[test]
fn walk_takes_three_calls_a_directory_or_four_without_an_end_marker() {
    const TEST: &str = "walk_takes_three_calls_a_directory_or_four_without_an_end_marker";
    if !temporary_directories_have_types() {
        return skip(TEST, "a temporary directory whose file system has types");
    }
    let looks: [fn(&mut Dir<'_>); 4] =
        [read_all_of, |dir| assert!(dir.next().is_ok()), |_| (), |dir| dir.read(&mut Listing::new()).unwrap()];
    let midway = 5; // of six directories one is empty
    let expected = [
        ("close", 4 * 6),
        ("fstatfs", 4),
        ("getdents64", 4 * reads() * 6 + midway),
        ("lseek", midway),
        ("openat", 4),
        ("openat2", 4 * 5),
    ];
    assert_totals(TEST, &expected, || {
        let tree = Tree::of(&["a/b/c/f", "a/d/", "e/f", "f"]);
        let _counted = Counted::begin();
        for look in looks {
            walk_all(Walk::open(tree.path()).unwrap(), look);
        }
    });
}

#[test]
fn walk_takes_two_calls_for_a_directory_it_leaves_and_none_for_one_it_skips() {
    const TEST: &str = "walk_takes_two_calls_for_a_directory_it_leaves_and_none_for_one_it_skips";
    let expected = [("close", 4), ("fstatfs", 1), ("getdents64", reads()), ("openat", 1), ("openat2", 3)];
    assert_totals(TEST, &expected, || {
        let tree = Tree::of(&["a/b/", "c/d/", "e/f/", "skipped/g/"]);
        let _counted = Counted::begin();
        walk_all(Walk::open(tree.path()).unwrap(), |dir| {
            if dir.depth() == 1 {
                dir.skip_all();
            }
            while dir.depth() == 0 && dir.next().unwrap().is_some() {
                dir.skip_name("skipped");
            }
        });
    });
}

#[test]
fn walk_of_one_mount_with_an_end_marker_takes_three_calls_a_directory() {
    const TEST: &str = "walk_of_one_mount_with_an_end_marker_takes_three_calls_a_directory";
    let Some((path, _)) = marked(TEST) else { return };
    let part = || {
        let _counted = Counted::begin();
        walk_all(Walk::open(path).unwrap().same_mount(true), read_all_of);
    };
    let Some(totals) = totals(TEST, part) else { return };
    let below = totals["openat2"];
    let expected = [("close", below + 1), ("fstatfs", 1), ("getdents64", below + 1), ("openat", 1), ("openat2", below)];
    assert!(totals.iter().map(|(call, times)| (call.as_str(), *times)).eq(expected), "{totals:?}");
    assert!(below > 10, "{below} directories");
}

/// A walk with `max_open`, in a process with room for `room` descriptors: on the way back it opens `hops` directories more
/// than the levels themselves, and `refused` opens fail.
fn assert_closed_levels(test: &str, make: fn(&Path), max_open: usize, room: usize, [hops, refused]: [usize; 2]) {
    let part = || {
        let tree = Tree::new(make);
        let _others = leave_room(room);
        let _counted = Counted::begin();
        walk_all(Walk::open(tree.path()).unwrap().max_open(max_open), |dir| dir.read(&mut Listing::new()).unwrap());
    };
    let Some(totals) = totals(test, part) else { return };
    let (dirs, closed) = (totals["getdents64"] / reads(), totals["statx"] / 2);
    let again = closed + hops;
    // Whether a birth time can be trusted is asked where there is one.
    let has_births = Tree::new(|_| {}).path().metadata().unwrap().created().is_ok();
    let mut expected = vec![
        ("close", dirs + again),
        ("fstatfs", 1 + if has_births { closed } else { 0 }),
        ("getdents64", reads() * dirs),
        ("openat", 1 + again),
        ("openat2", dirs - 1 + refused),
        ("statx", 2 * closed),
    ];
    if totals.contains_key("clock_nanosleep") {
        expected.insert(0, ("clock_nanosleep", totals["clock_nanosleep"])); // while a level is too young to be closed
    }
    assert!(totals.iter().map(|(call, times)| (call.as_str(), *times)).eq(expected), "{totals:?}");
    assert!(closed > 5, "{closed} levels");
}

#[test]
fn level_that_is_closed_early_takes_five_calls_more() {
    const TEST: &str = "level_that_is_closed_early_takes_five_calls_more";
    assert_closed_levels(TEST, |at| tree::comb(at, 40), 4, 32, [0, 0]);
}

#[test]
fn way_back_takes_one_call_for_each_path_full_of_dots() {
    const TEST: &str = "way_back_takes_one_call_for_each_path_full_of_dots";
    let make = |at: &Path| {
        let levels = [(tree::COMB, 6), (tree::CHAIN, 3 * 4096 / "../".len()), (tree::COMB, 6)];
        tree::nest(at, levels.into_iter().flat_map(|(names, count)| iter::repeat_n(names, count)));
    };
    assert_closed_levels(TEST, make, 4, 32, [3, 0]);
}

#[test]
fn walk_runs_out_of_descriptors_only_once() {
    const TEST: &str = "walk_runs_out_of_descriptors_only_once";
    assert_closed_levels(TEST, |at| tree::comb(at, 40), 32, 10, [0, 1]);
}
