//! What is said of names, beside what `said_model` shows: in which order what is entered comes, and what `Dir` says of itself.

use crate::support::scan::errno;
use crate::support::tree::Tree;
use lendir::{Buffer, Dir, Entries, Listing, Walk};
use std::os::unix::fs::symlink;
use std::path::Path;

/// The names of the directories below the root, in the order in which the walk comes to them. `say` is called in the root.
fn in_order(root: &Path, say: impl FnOnce(&mut Dir<'_>)) -> Vec<String> {
    let mut walk = Walk::open(root).unwrap();
    say(&mut walk.next().unwrap().unwrap());
    let mut names = Vec::new();
    while let Some(dir) = walk.next().unwrap() {
        names.push(dir.name_os().to_str().unwrap().to_owned());
    }
    names
}

/// What is said, and what is then entered.
type Case<'a> = (&'a dyn Fn(&mut Dir<'_>), &'a [&'a str]);

/// Those that were lent come in that order; after them, those that were not, in the order in which they were last named.
#[test]
fn what_is_entered_comes_in_the_order_in_which_it_was_lent_or_said() {
    let tree = Tree::of(&["a/", "b/", "c/", "d/"]);
    for link in ["aa", "ca", "cb"] {
        symlink("/proc/self/fdinfo", tree.path().join(link)).unwrap();
    }
    let read = |dir: &mut Dir<'_>| dir.read_into(&mut Listing::new()).unwrap();
    let cases: [Case<'_>; 7] = [
        (&read, &["a", "b", "c", "d"]),
        (
            &|dir| {
                read(dir);
                assert!(dir.follow_name("cb") && dir.enter("d") && dir.follow_name("aa") && dir.follow_name("a"));
                dir.skip_name("b");
            },
            &["a", "aa", "c", "cb", "d"],
        ),
        (
            &|dir| {
                assert!(dir.enter("d") && dir.follow_name("ca"));
                dir.skip_name("a");
                read(dir);
                assert!(dir.enter("a"));
            },
            &["a", "b", "c", "ca", "d"],
        ),
        (
            &|dir| {
                dir.skip_all();
                read(dir);
                assert!(["c", "a", "cb", "c", "b"].into_iter().all(|name| dir.follow_name(name)));
            },
            &["a", "cb", "c", "b"],
        ),
        (
            &|dir| {
                dir.skip_all();
                dir.enter("b");
                dir.enter("a");
                dir.skip_name("a");
                dir.enter("a");
                dir.skip_name("b");
            },
            &["a"],
        ),
        (
            &|dir| {
                dir.skip_all();
                dir.enter("b");
                dir.enter("a");
                dir.skip_name("a");
                dir.enter("a");
                dir.skip_name("b");
                dir.skip_name("a");
            },
            &[],
        ),
        (
            &|dir| {
                dir.enter("a");
                dir.skip_all();
                dir.skip_name("b");
                read(dir);
            },
            &[],
        ),
    ];
    for (number, (say, expected)) in cases.into_iter().enumerate() {
        assert_eq!(in_order(tree.path(), say), expected, "case {number}");
    }
    let mut lent = Vec::new();
    let seen = in_order(tree.path(), |dir| {
        while let Some(entry) = dir.next().unwrap() {
            lent.push(entry.name_os().to_str().unwrap().to_owned());
        }
        lent.iter().rev().for_each(|name| assert!(dir.follow_name(name)));
    });
    assert_eq!(seen, lent, "in the order of the directory");
}

/// The descriptor of a lent directory can be read from: the walk loses nothing, whether it lends entries after that or not.
#[test]
fn whoever_reads_a_lent_directory_loses_nothing() {
    let (tree, with_link) = (Tree::of(&["a/b/c/", "d/e/", "f"]), Tree::of(&["a/", "b/"]));
    symlink("/proc/self/fdinfo", with_link.path().join("link")).unwrap();
    let mut buffer = Buffer::new();
    let mut read_by_entries = |dir: &Dir<'_>| _ = Entries::new(&dir.fd(), &mut buffer).count().unwrap();
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
        // What the caller says holds, though there is no entry left that could come.
        let mut entered = in_order(with_link.path(), |dir| {
            read(dir);
            assert!(dir.next().unwrap().is_none());
            dir.skip_name("a");
            assert!(dir.follow_name("link"));
        });
        entered.sort();
        assert_eq!(entered, ["b", "link"]);
        for then in thens {
            let mut walk = Walk::open(tree.path()).unwrap();
            let mut visits = 0;
            while let Some(mut dir) = walk.next().unwrap() {
                read(&dir);
                then(&mut dir);
                visits += 1;
            }
            assert_eq!(visits, 6);
        }
    }
    let (mut dir, mut listing) = (lendir::read_dir(tree.path()).unwrap(), Listing::new());
    for _ in 0..2 {
        listing.read(dir.fd()).unwrap();
        assert_eq!(listing.len(), 3);
    }
    dir.read_into(&mut listing).unwrap();
    assert_eq!(listing.len(), 3);
}

#[test]
fn calls_on_a_directory_are_about_that_directory() {
    let tree = Tree::of(&["a/b/", "file"]);
    let mut walk = Walk::open(tree.path()).unwrap();
    while let Some(mut dir) = walk.next().unwrap() {
        let (path, depth) = (dir.path(), dir.depth());
        let stat = dir.stat().unwrap();
        assert_eq!(stat.st_ino, rustix::fs::stat(path).unwrap().st_ino);
        assert_eq!(dir.statx(lendir::StatxFlags::INO).unwrap().stx_ino, stat.st_ino);
        let error = dir.error(rustix::io::Errno::PERM);
        assert_eq!((error.path(), error.depth(), errno(&error)), (path, depth, libc::EPERM));
        while let Some(entry) = dir.next().unwrap() {
            let error = entry.error(rustix::io::Errno::PERM);
            assert_eq!((error.path(), error.depth()), (&*entry.path(), entry.depth()));
            assert_eq!((&*entry.path(), entry.depth()), (&*path.join(entry.name_os()), depth + 1));
        }
        assert_eq!(dir.count().unwrap(), 0, "entries after the end");
    }
    let mut walk = Walk::open(tree.path()).unwrap();
    let mut counts = Vec::new();
    while let Some(mut dir) = walk.next().unwrap() {
        counts.push((dir.name_os().to_owned(), dir.count().unwrap()));
    }
    let root = tree.path().file_name().unwrap().to_owned();
    assert_eq!(counts, [(root, 2), ("a".into(), 1), ("b".into(), 0)]);
}
