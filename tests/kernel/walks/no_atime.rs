//! The option `no_atime`, which leaves the access times of directories unchanged if the kernel
//! permits it.

use crate::mounted::run_isolated;
use crate::support::prelude::*;
use crate::support::process::NOBODY;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, statat, utimensat};
use rustix::mount::{MountFlags, mount};
use std::os::unix::fs::chown;

/// The directories that a walk opens as the root, by name, at a mount point, and through a followed
/// link.
const DIRS: [&str; 6] = ["", "a", "a/b", "mount", "mount/c", "target"];

/// The number of entries that each walk yields.
const ENTRIES: usize = DIRS.len() + 2; // two files and a link, but not the root

type Read = fn(&Path, bool) -> usize;

const READERS: [(&str, Read); 4] = [
    ("a walk", |root, no_atime| read(Walk::options().no_atime(no_atime).open(root).unwrap())),
    ("a walk of all roots", |root, no_atime| {
        read(Walk::options().no_atime(no_atime).open_all([root]))
    }),
    ("reading ahead", |root, no_atime| {
        read(Walk::options().no_atime(no_atime).read_ahead(2).eager().open(root).unwrap())
    }),
    ("second visits by several threads", |root, no_atime| {
        let options = WalkDirs::options().no_atime(no_atime).second_visits(true);
        read_dirs(options.open(root).unwrap())
    }),
];

fn read(mut walk: Walk) -> usize {
    let mut count = 0;
    while let Some(entry) = walk.next().unwrap() {
        entry.follow();
        count += 1;
    }
    count
}

fn read_dirs(walk: WalkDirs) -> usize {
    let counts = walk.run_parallel(2, |worker| {
        let mut count = 0;
        while let Some(mut dir) = worker.next().unwrap() {
            while let Some(entry) = dir.next().unwrap() {
                entry.follow();
                count += 1;
            }
        }
        count
    });
    counts.into_iter().sum()
}

/// Makes a tree in which a mount and a link lead to other directories. Returns its root.
fn make_tree(scratch: &Path) -> PathBuf {
    let root = scratch.join("root");
    make(&root, &[""]);
    mount("none", &root, "tmpfs", MountFlags::STRICTATIME, c"").unwrap();
    make(&root, &["a/b/", "mount/", "target/file"]);
    mount("none", root.join("mount"), "tmpfs", MountFlags::STRICTATIME, c"").unwrap();
    make(&root, &["mount/c/"]);
    symlink("../target", root.join("a/link")).unwrap();
    root
}

/// Sets all access times to 1 and reads. Returns the directories whose access times have changed.
fn changed(root: &Path, read: impl FnOnce() -> usize) -> Vec<&'static str> {
    let time = Timespec { tv_sec: 1, tv_nsec: 0 };
    let times = Timestamps { last_access: time, last_modification: time };
    for dir in DIRS {
        utimensat(CWD, root.join(dir), &times, AtFlags::empty()).unwrap();
    }
    assert_eq!(read(), ENTRIES);
    let stat = |dir: &str| statat(CWD, root.join(dir), AtFlags::empty()).unwrap();
    DIRS.into_iter().filter(|dir| stat(dir).st_atime != 1).collect()
}

#[test]
fn no_atime_keeps_access_times() {
    run_isolated("walk: access times", |scratch| {
        let root = make_tree(scratch);
        for (reader, read) in READERS {
            assert_eq!(changed(&root, || read(&root, false)), DIRS, "{reader}, by default");
            assert_eq!(changed(&root, || read(&root, true)), [""; 0], "{reader}, with `no_atime`");
        }
    });
}

/// The kernel refuses the flag to users who do not own a directory. Each directory is opened all
/// the same, and a directory of the user below the others keeps its access time.
#[test]
fn refused_no_atime_reads_all_the_same() {
    run_isolated("walk: access times of others", |scratch| {
        let root = make_tree(scratch);
        chown(root.join("a/b"), Some(NOBODY), Some(NOBODY)).unwrap();
        let others = ["", "a", "mount", "mount/c", "target"];
        for (reader, read) in READERS {
            let changed = changed(&root, || as_nobody(|| read(&root, true)));
            assert_eq!(changed, others, "{reader}");
        }
    });
}
