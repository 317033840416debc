//! Promises of `WalkDirs` and `Dir`: the order, skipping, when a directory is opened, and the
//! second visit.

use crate::support::prelude::*;
use crate::support::requests::check_walk_dirs;

/// Calls `work` with each directory of `walk`, which must have no errors.
fn for_each(walk: &mut WalkDirs, mut work: impl FnMut(&mut Dir<'_>)) {
    while let Some(mut dir) = walk.next().unwrap() {
        work(&mut dir);
    }
}

/// Directories are read, half read, never read, skipped and sorted, by the walk or from its
/// descriptor, entries are skipped and followed, and any names are entered. The walk yields what
/// follows from the documentation and the entries of `std`.
#[test]
fn mixed_calls_agree_with_the_model() {
    let _watchdog = watchdog();
    for seed in 0..if runs_long() { 1000 } else { 8 } {
        let make = |at: &Path| {
            fs::create_dir(at.join("root")).unwrap(); // links of a random tree lead to its parent
            tree::random(&at.join("root"), seed % 8);
        };
        let tree = if seed == 0 { Tree::on_disk(make) } else { Tree::new(make) };
        for follows in [false, true] {
            let options = WalkDirs::options().follow_links(follows);
            let what = format!("requests {seed}, follows {follows}");
            check_walk_dirs(&options, tree.path(), &what, |path| Requests {
                follows,
                ..Requests::random(seed, path)
            });
        }
    }
}

/// Trees of several shapes, to several depths.
#[test]
fn threads_yield_what_one_thread_yields() {
    let _watchdog = watchdog();
    let trees: [&dyn Fn(&Path); 6] = [
        &|_| (),
        &|at| tree::random(at, 0),
        &|at| tree::chain(at, 300),
        &|at| tree::comb(at, 100),
        &|at| tree::wide(at, 500, 3),
        &|at| (0..5000).for_each(|number| tree::make(at, &[&format!("file-{number}")])),
    ];
    for make in trees {
        let tree = Tree::new(make);
        for max_depth in [0, 1, 2, 5, usize::MAX] {
            for requests in [Requests::ALL, Requests::sorted(Order::Bytes)] {
                let requests = Requests { max_depth, ..requests };
                let options = WalkDirs::options().max_depth(max_depth);
                check_walk_dirs(&options, tree.path(), &format!("{requests:?}"), |_| requests);
            }
        }
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

#[test]
fn calls_describe_the_yielded_directory() {
    let tree = Tree::of(&["a/b/", "file"]);
    let mut walk = lendir::walk_dirs(tree.path()).unwrap();
    while let Some(mut dir) = walk.next().unwrap() {
        let (path, depth) = (dir.path(), dir.depth());
        assert_eq!(dir.metadata().unwrap().ino(), rustix::fs::stat(path).unwrap().st_ino);
        let error = dir.wrap_error(rustix::io::Errno::PERM);
        assert_eq!((error.path(), error.depth(), errno(&error)), (Some(path), depth, libc::EPERM));
        while let Some(entry) = dir.next().unwrap() {
            let error = entry.wrap_error(rustix::io::Errno::PERM);
            assert_eq!((error.path(), error.depth()), (Some(&*entry.path()), entry.depth()));
            let found = (&*entry.path(), entry.depth());
            assert_eq!(found, (&*path.join(entry.file_name()), depth + 1));
        }
        assert_eq!(dir.count().unwrap(), 0, "entries after the end");
    }
}

/// Metadata is fetched with the batch of its entry: what is written after that does not show.
#[test]
fn metadata_is_fetched_with_the_batch() {
    let tree = Tree::of(&["a", "b", "d/c", "d/e"]);
    for (is_fetched, len) in [(true, 0), (false, 1)] {
        for_each(&mut WalkDirs::options().metadata(is_fetched).open(tree.path()).unwrap(), |dir| {
            let (at, mut count) = (dir.path().to_owned(), 0);
            while let Some(entry) = dir.next().unwrap() {
                if count == 0 {
                    let files = ["a", "b", "c", "e"].map(|name| at.join(name));
                    files.iter().filter(|file| file.exists()).for_each(|file| {
                        fs::write(file, "1").unwrap();
                    });
                }
                count += 1;
                let metadata = entry.metadata().unwrap();
                assert!(!metadata.is_file() || metadata.len() == len, "{entry:?}");
            }
        });
        for name in ["a", "b", "d/c", "d/e"] {
            fs::write(tree.path().join(name), "").unwrap();
        }
    }
}
