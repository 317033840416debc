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

/// The caller can read the descriptor of a yielded directory to its end. The `Dir` yields each entry
/// all the same, and the walk loses nothing.
#[test]
fn reading_the_descriptor_loses_no_directory() {
    let tree = Tree::of(&["a/b/c/", "d/e/", "f"]);
    let mut buffer = Buffer::new();
    let mut read_by_entries =
        |dir: &Dir<'_>| _ = Entries::new(dir.fd(), &mut buffer).count().unwrap();
    let mut listing = Listing::new();
    let mut read_by_listing = |dir: &Dir<'_>| listing.read(dir.fd()).unwrap();
    let readers: [&mut dyn FnMut(&Dir<'_>); 2] = [&mut read_by_entries, &mut read_by_listing];
    let thens: [fn(&mut Dir<'_>) -> u64; 4] = [
        |_| 6,
        |dir| {
            let mut listing = Listing::new();
            dir.read_into(&mut listing).unwrap();
            listing.len() as u64
        },
        |dir| dir.count().unwrap(),
        |dir| u64::from(dir.next().unwrap().is_some()) + dir.count().unwrap(),
    ];
    for read in readers {
        for then in thens {
            let mut walk = lendir::walk_dirs(tree.path()).unwrap();
            let (mut visits, mut entries) = (0, 0);
            while let Some(mut dir) = walk.next().unwrap() {
                read(&dir);
                entries += then(&mut dir);
                visits += 1;
            }
            assert_eq!((visits, entries.min(6)), (6, 6));
        }
    }
}

/// A name is entered whoever has read the directory.
#[test]
fn names_are_entered_after_the_descriptor_was_read() {
    let tree = Tree::of(&["a/", "b/"]);
    symlink("/proc/self/fdinfo", tree.path().join("link")).unwrap();
    let mut walk = WalkDirs::options().follow_links(true).open(tree.path()).unwrap();
    let mut dir = walk.next().unwrap().unwrap();
    Listing::new().read(dir.fd()).unwrap();
    dir.skip_subdirs();
    assert!(dir.enter_name("b").unwrap() && dir.enter_name("link").unwrap());
    let visits = collect_visits(&mut walk, |_| Requests::ALL);
    assert_eq!(directories(&visits), ["b", "link"].map(|name| tree.path().join(name)));
}

/// Whatever was yielded before, a listing gets the whole directory, and the walk enters the
/// directories in its order, each once. A name that was passed before stays.
#[test]
fn listing_gets_the_whole_directory() {
    const COUNT: usize = 1000; // several of the smallest batches
    let tree = Tree::new(|at| tree::wide(at, COUNT, 8));
    for yielded in [0, 1, 2, 500, COUNT] {
        for is_named in [false, true] {
            let mut walk = WalkDirs::options()
                .buffer_capacity(Buffer::MIN_CAPACITY)
                .open(tree.path())
                .unwrap();
            let mut root = walk.next().unwrap().unwrap();
            let mut first = None;
            for _ in 0..yielded {
                let entry = root.next().unwrap().unwrap();
                first.get_or_insert(entry.name().to_vec());
                entry.skip_subtree(); // a listing forgets it
            }
            if is_named {
                root.skip_subdirs();
                if let Some(name) = &first {
                    assert!(root.enter_name(name).unwrap());
                }
            }
            let mut listing = Listing::new();
            for _ in 0..2 {
                root.read_into(&mut listing).unwrap();
                assert!(listing.len() == COUNT && root.next().unwrap().is_none());
            }
            let names: Vec<_> = listing.iter().map(|entry| entry.name().to_vec()).collect();
            let mut entered = Vec::new();
            for_each(&mut walk, |dir| entered.push(dir.name().to_vec()));
            let expected = if is_named { first.into_iter().collect() } else { names };
            assert!(entered.is_sorted() && entered == expected, "{yielded} yielded");
        }
    }
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
