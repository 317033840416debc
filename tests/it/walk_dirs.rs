//! Promises of `WalkDirs` and `Dir`: the order, skipping, when a directory is opened, and the
//! second visit.

use crate::support::machine::runs_long;
use crate::support::requests::{Requests, check_walk_dirs, collect_visits, walk};
use crate::support::scan::errno;
use crate::support::tree::{self, Tree};
use crate::support::visits::directories;
use lendir::{Buffer, Dir, DirEntry, Entries, Listing, WalkDirs};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

const BOUNDS: [usize; 4] = [1, 5, 32, 1000];

/// Calls `work` with each directory of `walk`, which must have no errors.
fn for_each(walk: &mut WalkDirs, mut work: impl FnMut(&mut Dir<'_>)) {
    while let Some(mut dir) = walk.next().unwrap() {
        work(&mut dir);
    }
}

/// Takes the root and calls `work` with each of its entries.
fn at_root(walk: &mut WalkDirs, mut work: impl FnMut(&DirEntry<'_>, &str)) {
    let mut root = walk.next().unwrap().unwrap();
    while let Some(entry) = root.next().unwrap() {
        let name = String::from_utf8(entry.name().to_vec()).unwrap();
        work(&entry, &name);
    }
}

/// Directories are read, half read, never read, skipped and sorted, and entries are skipped,
/// followed and named. The walk yields what follows from the documentation and the entries of `std`.
#[test]
fn mixed_calls_agree_with_the_model() {
    for seed in 0..if runs_long() { 1000 } else { 8 } {
        let make = |at: &Path| {
            fs::create_dir(at.join("root")).unwrap(); // links of a random tree lead to its parent
            tree::random(&at.join("root"), seed % 8);
        };
        let tree = if seed == 0 { Tree::on_disk(make) } else { Tree::new(make) };
        check_walk_dirs(tree.path(), &format!("requests {seed}"), |path| {
            Requests::random(seed, path)
        });
        if seed == 0 {
            check_walk_dirs(tree.path(), "all", |_| Requests::ALL);
        }
    }
}

/// The walk opens a directory only when it visits the directory, so the caller can change a
/// directory after its entry.
#[test]
fn walk_opens_a_directory_when_it_visits_it() {
    let tree = Tree::of(&["a/", "b/"]);
    for max_open in BOUNDS {
        let mut walk = walk(tree.path(), max_open, false);
        let late = format!("late-{max_open}");
        at_root(&mut walk, |_, name| fs::create_dir(tree.path().join(name).join(&late)).unwrap());
        let mut found = 0;
        for_each(&mut walk, |dir| found += usize::from(dir.path().ends_with(&late)));
        assert_eq!(found, 2);
    }
}

#[test]
fn is_removed_reports_a_removed_directory() {
    let tree = Tree::of(&["gone/", "z/"]);
    let mut walk = lendir::walk_dirs(tree.path()).unwrap();
    for_each(&mut walk, |dir| {
        let is_gone = dir.path().ends_with("gone");
        if is_gone {
            fs::remove_dir(dir.path()).unwrap();
        }
        while dir.next().unwrap().is_some() {}
        assert_eq!(dir.is_removed(), is_gone, "{dir:?}");
    });
}

/// Under `same_mount`, a walk does not enter another mount. Every machine has `/proc`.
#[test]
fn same_mount_skips_other_mounts() {
    for same_mount in [false, true] {
        let mut walk = WalkDirs::options().same_mount(same_mount).max_depth(2).open("/").unwrap();
        at_root(&mut walk, |entry, name| {
            if name != "proc" {
                entry.skip_subtree();
            }
        });
        let mut below = Vec::new();
        for_each(&mut walk, |dir| {
            assert!(dir.next().unwrap().is_some());
            below.push(dir.path().to_owned());
        });
        let expected = if same_mount { &[][..] } else { &[Path::new("/proc")] };
        assert_eq!(below, expected, "same mount {same_mount}");
    }
}

/// The caller can read the descriptor of a yielded directory. The walk loses nothing, whether or
/// not it yields entries after that.
#[test]
fn reading_the_descriptor_loses_no_directory() {
    let (tree, with_link) = (Tree::of(&["a/b/c/", "d/e/", "f"]), Tree::of(&["a/", "b/"]));
    symlink("/proc/self/fdinfo", with_link.path().join("link")).unwrap();
    let mut buffer = Buffer::new();
    let mut read_by_entries =
        |dir: &Dir<'_>| _ = Entries::new(&dir.fd(), &mut buffer).count().unwrap();
    let mut listing = Listing::new();
    let mut read_by_listing = |dir: &Dir<'_>| listing.read(dir.fd()).unwrap();
    let readers: [&mut dyn FnMut(&Dir<'_>); 2] = [&mut read_by_entries, &mut read_by_listing];
    let thens: [fn(&mut Dir<'_>); 5] = [
        |_| (),
        |dir| dir.read_into(&mut Listing::new()).unwrap(),
        |dir| while dir.next().unwrap().is_some() {},
        |dir| assert_eq!(dir.count().unwrap(), 0),
        |dir| assert!(dir.find(|_| true).unwrap().is_none()),
    ];
    for read in readers {
        // A name is entered even if no entry can come any more.
        let mut walk = lendir::walk_dirs(with_link.path()).unwrap();
        let mut dir = walk.next().unwrap().unwrap();
        read(&dir);
        assert!(dir.next().unwrap().is_none());
        dir.skip_subdirs();
        assert!(dir.enter_name("b").unwrap() && dir.follow_name("link").unwrap());
        let visits = collect_visits(&mut walk, |_| Requests::ALL);
        assert_eq!(directories(&visits), ["b", "link"].map(|name| with_link.path().join(name)));
        for then in thens {
            let mut walk = lendir::walk_dirs(tree.path()).unwrap();
            let mut visits = 0;
            while let Some(mut dir) = walk.next().unwrap() {
                read(&dir);
                then(&mut dir);
                visits += 1;
            }
            assert_eq!(visits, 6);
        }
    }
}

#[test]
fn calls_describe_the_yielded_directory() {
    let tree = Tree::of(&["a/b/", "file"]);
    let mut walk = lendir::walk_dirs(tree.path()).unwrap();
    while let Some(mut dir) = walk.next().unwrap() {
        let (path, depth) = (dir.path(), dir.depth());
        let stat = dir.stat().unwrap();
        assert_eq!(stat.st_ino, rustix::fs::stat(path).unwrap().st_ino);
        assert_eq!(dir.statx(lendir::StatxFlags::INO).unwrap().stx_ino, stat.st_ino);
        let error = dir.wrap_error(rustix::io::Errno::PERM);
        assert_eq!((error.path(), error.depth(), errno(&error)), (Some(path), depth, libc::EPERM));
        let error = dir.wrap_error_at("name", rustix::io::Errno::PERM);
        assert_eq!((error.path(), error.depth()), (Some(&*path.join("name")), depth + 1));
        while let Some(entry) = dir.next().unwrap() {
            let error = entry.wrap_error(rustix::io::Errno::PERM);
            assert_eq!((error.path(), error.depth()), (Some(&*entry.path()), entry.depth()));
            assert_eq!((&*entry.path(), entry.depth()), (&*path.join(entry.name_os()), depth + 1));
        }
        assert_eq!(dir.count().unwrap(), 0, "entries after the end");
    }
}
