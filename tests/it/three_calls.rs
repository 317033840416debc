//! The system calls of a walk by default: three for a directory where the file system marks the end, four elsewhere.

use crate::support::machine::skip;
use crate::support::tree::{self, Tree};
use crate::system_calls::{Counted, log, name_of};
use lendir::{EndMarker, Walk};
use std::collections::BTreeMap;
use std::path::Path;

/// Walks `path` as a whole, and checks how many calls that takes. `reads` is how many it takes to read a directory.
fn check(test: &str, path: &Path, reads: usize, options: fn(Walk) -> Walk) {
    let test = format!("three_calls::{test}");
    let lines = log(&test, &[], || {
        let _counted = Counted::begin();
        let mut walk = options(Walk::open(path).unwrap());
        while let Some(mut dir) = walk.next().unwrap() {
            while dir.next().unwrap().is_some() {}
        }
    });
    let Some(lines) = lines else { return };
    let mut totals = BTreeMap::new();
    for line in &lines {
        *totals.entry(name_of(line)).or_default() += 1;
    }
    let below: usize = totals["openat2"];
    let dirs = below + 1;
    let expected = [("close", dirs), ("fstatfs", 1), ("getdents64", reads * dirs), ("openat", 1), ("openat2", below)];
    assert!(totals.iter().map(|(call, times)| (*call, *times)).eq(expected), "{totals:?}");
    assert!(below >= 3, "{below} directories");
}

fn has_marker(path: &Path) -> bool {
    lendir::open(path).and_then(EndMarker::of).is_ok_and(|marker| marker != EndMarker::NONE)
}

const SYSFS: &str = "/sys/class";

#[test]
fn directory_of_sysfs_takes_three_calls() {
    const TEST: &str = "directory_of_sysfs_takes_three_calls";
    if !has_marker(Path::new(SYSFS)) {
        return skip(TEST, "sysfs on /sys");
    }
    check(TEST, Path::new(SYSFS), 1, |walk| walk);
}

#[test]
fn directory_on_disk_takes_three_calls() {
    const TEST: &str = "directory_on_disk_takes_three_calls";
    let tree = Tree::on_disk(|at| tree::comb(at, 10));
    if !has_marker(tree.path()) {
        return skip(TEST, "a temporary directory on a file system with an end marker");
    }
    check(TEST, tree.path(), 1, |walk| walk);
}

#[test]
fn post_order_takes_no_more() {
    const TEST: &str = "post_order_takes_no_more";
    if !has_marker(Path::new(SYSFS)) {
        return skip(TEST, "sysfs on /sys");
    }
    check(TEST, Path::new(SYSFS), 1, |walk| walk.post_order(true));
}

#[test]
fn directory_of_proc_takes_four_calls() {
    check("directory_of_proc_takes_four_calls", Path::new("/proc/sys/net/ipv4"), 2, |walk| walk);
}

#[test]
fn one_mount_takes_the_same() {
    check("one_mount_takes_the_same", Path::new("/proc/sys/net/ipv4"), 2, |walk| walk.same_mount(true));
}
