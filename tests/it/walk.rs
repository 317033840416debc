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

/// The caller makes no request, follows each link, or makes up to three requests for each entry, of
/// which the last wins. The error of a loop comes after its link, and that of a directory which
/// cannot be read or searched after its entry.
#[test]
fn walk_agrees_with_the_model() {
    let random = |at: &Path, seed| {
        fs::create_dir(at.join("root")).unwrap(); // links of a random tree lead to its parent
        tree::random(&at.join("root"), seed);
    };
    as_nobody(|| {
        let trees = [Tree::on_disk(|at| random(at, 0)), Tree::new(|at| random(at, 1))];
        let (mut loops, mut forbidden, mut most) = (0, 0, 0);
        for seed in 0..if runs_long() { 500 } else { 8 } {
            let ((_tree, made), size) = (tree::linked(seed), usize::try_from(seed).unwrap());
            let random = trees[size.min(1)].path().join("root");
            if seed >= 4 {
                forbid_some(&random, seed);
                forbid_some(&made, seed);
            }
            for (root, about) in [&random, &made]
                .into_iter()
                .flat_map(|root| [(root, About::Follow), (root, About::Random(seed))])
                .chain([(&random, About::Nothing)])
            {
                for max_depth in [usize::MAX, 1 + size % 5] {
                    let options =
                        EntryWalk { about, max_depth, read_ahead: size % 3, ..ENTRY_WALK };
                    let all = check(root, options, "requests");
                    let count =
                        |errno| all.iter().filter(|item| item.errno() == Some(errno)).count();
                    loops += count(libc::ELOOP);
                    forbidden += count(libc::EACCES);
                    most = all.len().max(most);
                    if matches!(about, About::Follow) {
                        let by_option = Walk::options().follow_links(true).max_depth(max_depth);
                        assert_eq!(ENTRY_WALK.rest(&mut by_option.open(root).unwrap()), all);
                    }
                    let expected = all.into_iter().map(|item| (item.path.clone(), item.errno()));
                    check_closures(options, root, &expected.collect::<Vec<_>>());
                }
            }
        }
        let found = [loops, forbidden, most];
        assert!(loops > 20 && forbidden > 80 && most > 700, "{found:?}");
    });
}

/// The closures of `filter_map` and `find` make the same requests.
fn check_closures(options: EntryWalk, root: &Path, expected: &[(PathBuf, Option<i32>)]) {
    let of_error = |error: Error| (error.path().unwrap().to_owned(), error.raw_os_error());
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
