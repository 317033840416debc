//! Cases that remove a directory while it is read, or its entries while they are walked.

use super::contents::{Doomed, remove_directories};
use super::reading::all;
use crate::mounted::Mounted;
use crate::support::prelude::*;
use rustix::fs::{AtFlags, unlinkat};

/// A `ReadDir` that knows the end marker does not notice that the directory was removed after its
/// last entry. Without a marker, the next call notices.
pub fn end_marker_saves_the_last_call(mounted: &Mounted) {
    let path = Doomed::path(mounted).join("saved");
    fs::create_dir(path.join("child")).unwrap();
    let mut entries = lendir::read_dir(&path).unwrap();
    let count = entries.count().unwrap();
    entries.rewind().unwrap();
    for _ in 0..count {
        assert!(entries.next().unwrap().is_some());
    }
    remove_directories(&path);
    assert!(entries.next().unwrap().is_none());
    assert_eq!(entries.is_removed(), mounted.system.end_cookie().is_none());
}

/// A directory is removed before it is read, midway and after its end.
pub fn is_removed_reports_a_removed_directory(mounted: &Mounted) {
    let doomed = Doomed::path(mounted);
    let mut buffer = Buffer::with_capacity(0);
    let path = doomed.join("before");
    let dir = lendir::open(&path).unwrap();
    remove_directories(&path);
    assert_gone(&mut Entries::new(dir.as_fd(), &mut buffer));

    let path = doomed.join("midway");
    let expected = all(&path);
    let dir = lendir::open(&path).unwrap();
    let mut entries = Entries::new(dir.as_fd(), &mut buffer);
    let mut found =
        vec![Found::from(&entries.next().unwrap().expect("the directory lists no entry"))];
    remove_directories(&path);
    let rest = Scan::of(&mut entries);
    found.extend(rest.found);
    let is_right = found.len() < expected.len() && expected.starts_with(&found);
    assert!(is_right, "not what was in the buffer: {found:?}");
    assert_eq!(rest.end, End::Removed);

    let path = doomed.join("after");
    let dir = lendir::open(&path).unwrap();
    let mut entries = Entries::new(dir.as_fd(), &mut buffer);
    while entries.next().unwrap().is_some() {}
    remove_directories(&path);
    let is_right = entries.next().unwrap().is_none() && !entries.is_removed();
    assert!(is_right, "an end before the removal counts as removed");
    entries.rewind().unwrap();
    assert_gone(&mut entries);
}

fn assert_gone(entries: &mut Entries<'_>) {
    for _ in 0..2 {
        assert!(entries.next().unwrap().is_none());
        assert!(entries.is_removed());
        entries.rewind().unwrap();
        assert!(!entries.is_removed());
    }
}

/// A walk finds all remaining directories, although the removal of an entry may change the cookies
/// of other entries.
pub fn half_removed_directories_hide_nothing(mounted: &Mounted) {
    const COUNT: usize = 60;
    for removed in [1, 10, COUNT / 2] {
        let path = Doomed::path(mounted).join("half").join(removed.to_string());
        for number in 0..COUNT {
            fs::create_dir_all(path.join(number.to_string())).unwrap();
        }
        let mut walk = lendir::walk_dirs(&path).unwrap();
        let mut root = walk.next().unwrap().expect("the walk did not yield the root");
        let mut left = removed;
        while left > 0 {
            let entry = root.next().unwrap().expect("the directory ended early");
            // cgroup2 creates files there.
            if entry.file_type().unwrap() == FileType::Directory {
                unlinkat(entry.dir_fd(), entry.name_cstr(), AtFlags::REMOVEDIR).unwrap();
                entry.skip_subtree();
                left -= 1;
            }
        }
        let mut visited = 0;
        while walk.next().unwrap().is_some() {
            visited += 1;
        }
        assert_eq!(visited, COUNT - removed, "directories remain after the removal of {removed}");
    }
}
