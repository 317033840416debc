//! Checks `Walk` and `WalkEntry`: each directory is followed by its contents, and each error is in
//! its place.

mod lost;
mod roots;

use crate::support::prelude::*;
use lendir::walk;

/// Compares a walk with its model: in each order, with few descriptors, with threads that read
/// ahead, and with metadata. Returns the items in the kernel's order.
fn check(root: &Path, options: EntryWalk, what: &str) -> Vec<Visit> {
    for order in ORDERS {
        let few: &[_] = if order == Order::Unsorted {
            &[(4, 0), (5, 0), (1000, 0), (4, 1), (4, 3)]
        } else {
            &[]
        };
        for (max_open, read_ahead) in few.iter().copied().chain([(32, 0), (32, 2)]) {
            for metadata in [false, true] {
                let options = EntryWalk { order, max_open, read_ahead, metadata, ..options };
                assert_eq!(options.read(root), options.expected(root), "{what}, {options:?}");
            }
        }
    }
    options.expected(root)
}

#[test]
fn walk_agrees_with_std_on_random_trees() {
    for seed in 0..if runs_long() { 50 } else { 2 } {
        let make = |at: &Path| tree::random(at, seed);
        let tree = if seed == 0 { Tree::on_disk(make) } else { Tree::new(make) };
        let all = check(tree.path(), ENTRY_WALK, &format!("tree {seed}"));
        assert!(all.len() > 700, "{} entries", all.len());
    }
}

/// Owned entries say the same as those that the walk lends, and each error is an item.
#[test]
fn owned_entries_say_what_was_lent() {
    let tree = Tree::new(|at| tree::random(at, 4));
    let file = tree.path().join("a_file_as_root");
    File::create(&file).unwrap();
    let roots = [tree.path(), Path::new("missing"), &file];
    for (metadata, yields) in [(false, true), (true, true), (true, false)] {
        let options = Walk::options().metadata(metadata).yield_roots(yields);
        let mut walk = options.clone().open_all(roots);
        let (mut owned, mut count) = (options.open_all(roots).into_iter(), 0);
        loop {
            count += 1;
            match (walk.next(), owned.next()) {
                (Ok(None), None) => break,
                (Err(error), Some(Err(same))) => assert_eq!(same.to_string(), error.to_string()),
                (Ok(Some(entry)), Some(Ok(same))) => {
                    assert_eq!(same.path(), entry.path());
                    assert_eq!(same.file_name(), entry.file_name());
                    assert_eq!(same.file_type().unwrap(), entry.file_type().unwrap());
                    assert_eq!(same.depth(), entry.depth());
                    match same.metadata() {
                        Ok(found) => assert_eq!(found.ino(), entry.metadata().unwrap().ino()),
                        Err(error) => assert_eq!(error.kind(), io::ErrorKind::Unsupported),
                    }
                    assert_eq!(same.metadata().is_ok(), metadata);
                    assert_eq!(same.clone().into_path(), entry.path());
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(count > 700 && owned.next().is_none(), "{count}");
    }
    let mut dir = lendir::read_dir(tree.path()).unwrap();
    for entry in lendir::read_dir(tree.path()).unwrap() {
        let (same, entry) = (entry.unwrap(), dir.next().unwrap().unwrap());
        assert_eq!((same.path(), same.file_name()), (&*entry.path(), entry.file_name()));
        assert_eq!((same.file_type().unwrap(), same.depth()), (entry.file_type().unwrap(), 1));
    }
    let root = lendir::open(tree.path()).unwrap();
    let root = Walk::options().yield_roots(true).from_fd(root, "x/").into_iter().next();
    assert_eq!(root.unwrap().unwrap().file_name(), "x/");
}

#[test]
fn unreadable_directory_is_an_error_after_its_entry() {
    as_nobody(|| {
        let mut errors = 0;
        for seed in 0..if runs_long() { 50 } else { 2 } {
            let tree = Tree::new(|at| tree::random(at, seed));
            let mut random = Random(seed);
            // The deepest come first, because the contents of a locked directory are out of reach.
            for Visit { path, .. } in ENTRY_WALK.expected(tree.path()).into_iter().rev() {
                if fs::symlink_metadata(&path).unwrap().is_dir() {
                    let mode = [0o100, 0o000, 0o400, 0o300]
                        .get(random.below(12))
                        .copied()
                        .unwrap_or(0o700);
                    chmod(path, mode);
                }
            }
            let all = check(tree.path(), ENTRY_WALK, &format!("tree {seed}"));
            errors += all.iter().filter(|item| item.errno() == Some(libc::EACCES)).count();
        }
        assert!(errors > 80, "{errors} errors");
        // A directory that is the last entry of its parent, and the root.
        let tree = Tree::of(&["a/b/"]);
        for dir in ["a/b", "a", ""] {
            chmod(tree.path().join(dir), 0o300);
            let items = check(tree.path(), ENTRY_WALK, dir);
            assert_eq!(items.last().unwrap().errno(), Some(libc::EACCES), "{dir}");
        }
    });
}

/// The walk opens a directory at the call of `next` that follows its entry.
#[test]
fn caller_may_make_a_yielded_directory_readable() {
    as_nobody(|| {
        let tree = Tree::of(&["a/f"]);
        let dir = tree.path().join("a");
        chmod(&dir, 0o000);
        let mut tree = walk(tree.path()).unwrap();
        assert_eq!(tree.next().unwrap().unwrap().path(), dir);
        chmod(&dir, 0o700);
        assert_eq!(tree.next().unwrap().unwrap().name(), b"f");
    });
}

#[test]
fn loop_is_an_error_after_the_followed_link() {
    let mut loops = 0;
    for seed in 0..if runs_long() { 500 } else { 8 } {
        let (_tree, root) = tree::linked(seed);
        for max_depth in [3, usize::MAX] {
            let all = check(
                &root,
                EntryWalk { about: About::Follow, max_depth, ..ENTRY_WALK },
                &format!("tree {seed}"),
            );
            let by_option = Walk::options().follow_links(true).max_depth(max_depth);
            assert_eq!(ENTRY_WALK.rest(&mut by_option.open(&root).unwrap()), all);
            loops += all.iter().filter(|item| item.errno() == Some(libc::ELOOP)).count();
        }
    }
    assert!(loops > 20, "{loops} loops");
}

/// The caller makes up to three requests for each file, directory and link.
#[test]
fn last_request_about_an_entry_wins() {
    let random = Tree::new(|at| {
        fs::create_dir(at.join("root")).unwrap(); // links of a random tree lead to its parent
        tree::random(&at.join("root"), 1);
    });
    for seed in 0..if runs_long() { 500 } else { 6 } {
        let (_tree, made) = tree::linked(seed);
        for root in [&random.path().join("root"), &made] {
            for max_depth in [usize::MAX, 1 + usize::try_from(seed).unwrap() % 5] {
                let read_ahead = usize::try_from(seed).unwrap() % 3;
                let options =
                    EntryWalk { about: About::Random(seed), max_depth, read_ahead, ..ENTRY_WALK };
                check(root, options, "requests");
                let expected = options
                    .expected(root)
                    .into_iter()
                    .map(|item| (item.path.clone(), item.errno()));
                let expected: Vec<_> = expected.collect();
                let of_error =
                    |error: lendir::Error| (error.path().unwrap().to_owned(), error.raw_os_error());

                // The closures of `filter_map` and `find` make the same requests.
                let found = options.begin(root).filter_map(|entry| {
                    options.requests().make(&entry);
                    Some((entry.path().to_owned(), None))
                });
                let found: Vec<_> = found.map(|item| item.unwrap_or_else(of_error)).collect();
                assert_eq!(found, expected, "filter_map, {options:?}");
                let (mut tree, mut passed) = (options.begin(root), Vec::new());
                loop {
                    let step = tree.find(|entry| {
                        passed.push((entry.path().to_owned(), None));
                        options.requests().make(entry);
                        passed.len() % 3 == 0
                    });
                    match step {
                        Ok(None) => break,
                        Ok(Some(entry)) => assert_eq!(entry.path(), passed.last().unwrap().0),
                        Err(error) => passed.push(of_error(error)),
                    }
                }
                assert_eq!(passed, expected, "find, {options:?}");
            }
        }
    }
    let paths = walk(random.path())
        .unwrap()
        .into_iter()
        .map(|entry| entry.unwrap().into_path())
        .collect::<Vec<_>>();
    assert_eq!(
        paths,
        ENTRY_WALK.expected(random.path()).into_iter().map(|item| item.path).collect::<Vec<_>>()
    );
}

#[test]
fn walk_yields_roots_in_turn_and_reports_missing_ones() {
    let tree = Tree::of(&["a/b/c/f", "a/d", "z/y/x"]);
    let at = |name: &str| tree.path().join(name);
    symlink("a", at("link")).unwrap();
    for (max_depth, read_ahead) in [(1, 0), (usize::MAX, 0), (usize::MAX, 2)] {
        let options = EntryWalk { max_depth, read_ahead, ..ENTRY_WALK };
        let roots = ["a", "missing", "z", "a/d", "link", "z/y"].map(at);
        let expected: Vec<_> = roots.iter().flat_map(|root| options.expected(root)).collect();
        assert_eq!(options.rest(&mut options.build().open_all(&roots)), expected);
        let errors: Vec<_> = expected.iter().filter_map(Visit::errno).collect();
        assert_eq!(errors, [libc::ENOENT, libc::ENOTDIR]);
    }
    assert!(ENTRY_WALK.rest(&mut Walk::options().open_all::<&str>([])).is_empty());
    for (path, errno) in [("missing", libc::ENOENT), ("a/d", libc::ENOTDIR)] {
        assert_eq!(walk(at(path)).unwrap_err().raw_os_error(), Some(errno));
    }
    let refused = Walk::options().follow_root_links(false).open(at("link")).unwrap_err();
    assert!(matches!(refused.raw_os_error(), Some(libc::ENOTDIR | libc::ELOOP)), "{refused}");
}

#[test]
fn path_begins_with_the_root_as_written() {
    let tree = Tree::of(&["d/e/f", "d/g"]);
    let dir = tree.path().join("d").into_os_string().into_string().unwrap();
    let options = || Walk::options().order(Order::Bytes);
    let opened = ["", "/", "//", "/."]
        .map(|end| (format!("{dir}{end}"), options().open(format!("{dir}{end}")).unwrap()));
    let from_fds = ["", ".", "/", "name", "dir/"]
        .map(|path| (path.to_owned(), options().from_fd(lendir::open(&dir).unwrap(), path)));
    for (root, mut tree) in opened.into_iter().chain(from_fds) {
        for (relative, depth, is_last) in [("e", 1, false), ("e/f", 2, true), ("g", 1, true)] {
            let entry = tree.next_or_report(|error| panic!("{error}")).unwrap();
            assert_eq!(entry.path().as_os_str(), Path::new(&root).join(relative), "{root}");
            assert_eq!(Some(entry.file_name()), Path::new(relative).file_name(), "{root}");
            assert_eq!(entry.relative_path().as_os_str(), relative, "{root}");
            assert_eq!((entry.depth(), entry.is_last()), (depth, is_last), "{root}");
            assert_eq!(entry.wrap_error(io::ErrorKind::Other).path(), Some(entry.path()));
        }
        assert!(tree.next().unwrap().is_none());
    }
    for root in [".", "./src", "/", "/etc"] {
        let mut tree = Walk::options().max_depth(1).open(root).unwrap();
        while let Some(entry) = tree.next().unwrap() {
            assert_eq!(entry.relative_path(), entry.path().strip_prefix(root).unwrap());
        }
    }
}
