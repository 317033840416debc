//! What the caller says of a name holds, before or after it is lent, and for that name alone.

use crate::support::scan::errno;
use crate::support::tree::Tree;
use lendir::{Buffer, Dir, Entries, Listing, Walk};
use std::fs;
use std::os::unix::fs::symlink;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// The names of the directories that the walk comes to below its root, and its errors.
fn below(walk: &mut Walk) -> (Vec<String>, Vec<i32>) {
    let (mut names, mut errors) = (Vec::new(), Vec::new());
    while let Some(dir) = walk.next_ok(|error| errors.push(errno(&error))) {
        names.push(dir.name_os().to_str().unwrap().to_owned());
    }
    names.sort();
    (names, errors)
}

/// What `say` does in the root of a tree with these entries, and the directories that are then entered.
fn entered(entries: &[&str], say: impl FnOnce(&mut Dir<'_>)) -> (Vec<String>, Vec<i32>) {
    let tree = Tree::of(entries);
    symlink("/proc/self/fdinfo", tree.path().join("link")).unwrap();
    let mut walk = Walk::open(tree.path()).unwrap();
    say(&mut walk.next().unwrap().unwrap());
    below(&mut walk)
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn nothing_is_said_after_the_end_of_a_search() {
    let sayings: [fn(&mut Dir<'_>); 2] = [|dir| dir.skip_entry(), |dir| dir.follow_entry()];
    for say in sayings {
        let entered = entered(&["a/", "b/", "file"], |dir| {
            assert!(dir.find(|entry| entry.name() == b"missing").unwrap().is_none());
            say(dir);
        });
        assert_eq!(entered, (names(&["a", "b"]), vec![]));
    }
}

/// Lends the entry of this name.
fn lend(dir: &mut Dir<'_>, name: &[u8]) {
    assert!(dir.find(|entry| entry.name() == name).unwrap().is_some());
}

#[test]
fn entry_lent_last_stays_so_when_another_name_is_entered() {
    let others: [fn(&mut Dir<'_>); 3] = [
        |dir| assert!(dir.enter("a/x")),
        |dir| assert!(dir.follow_name("missing")),
        |dir| {
            dir.skip_name("b");
            assert!(dir.enter("b"));
        },
    ];
    for (number, other) in others.into_iter().enumerate() {
        let (skipped, errors) = entered(&["a/x/", "b/"], |dir| {
            lend(dir, b"a");
            other(dir);
            dir.skip_entry();
        });
        assert_eq!(skipped, names(&["b"]), "case {number}");
        assert_eq!(errors, if number == 0 { vec![libc::EINVAL] } else { vec![] });

        let (followed, _) = entered(&["a/"], |dir| {
            lend(dir, b"link");
            other(dir);
            dir.follow_entry();
        });
        assert_eq!(followed, names(&["a", "link"]), "case {number}");
    }
}

/// A file has no directory to skip, so nothing is skipped in its stead.
#[test]
fn name_that_is_entered_is_not_taken_for_the_file_lent_last() {
    let entered = entered(&["a/", "file"], |dir| {
        dir.skip_all();
        lend(dir, b"file");
        dir.enter("a");
        dir.skip_entry();
    });
    assert_eq!(entered, (names(&["a"]), vec![]));
}

#[test]
fn name_with_a_nul_stays_apart_from_the_name_without_it() {
    for lends_first in [false, true] {
        let entered = entered(&["ab/", "b/"], |dir| {
            if lends_first {
                while dir.next().unwrap().is_some() {}
            }
            dir.enter(b"a\0b");
            while dir.next().unwrap().is_some() {}
            dir.skip_name("ab");
        });
        assert_eq!(entered, (names(&["b"]), vec![libc::EINVAL]));
    }
}

/// What is said before the first entry holds in each way to read, and for the entry itself when it comes.
#[test]
fn names_said_beforehand_hold_however_the_directory_is_read() {
    let reads: [fn(&mut Dir<'_>); 6] = [
        |_| (),
        |dir| while dir.next().unwrap().is_some() {},
        |dir| assert_eq!(dir.count().unwrap(), 6),
        |dir| assert!(dir.find(|entry| entry.name() == b"missing").unwrap().is_none()),
        |dir| assert!(dir.next().unwrap().is_some()), // and a `break`
        |dir| dir.read_into(&mut Listing::new()).unwrap(),
    ];
    for read in reads {
        let (entered, errors) = entered(&[".git/objects/", "a/", "b/", "c/", "file"], |dir| {
            for name in [".git", "a", "nothing"] {
                dir.skip_name(name);
            }
            assert!(dir.enter("a") && dir.enter("b") && dir.follow_name("b") && dir.enter("c"));
            assert!(dir.enter("link") && dir.follow_name("link"));
            read(dir);
            dir.skip_name("c");
        });
        assert_eq!((entered, errors), (names(&["a", "b", "link"]), vec![]));
    }
}

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

/// Also those that a listing after that does not have, whatever was said of them before.
#[test]
fn what_does_not_come_again_is_entered_in_the_order_in_which_it_was_lent() {
    let tree = Tree::of(&["root/a/", "root/b/", "root/c/", "root/d/", "aside/"]);
    let [root, aside] = ["root", "aside"].map(|name| tree.path().join(name));
    let mut lent = Vec::new();
    for entry in fs::read_dir(&root).unwrap() {
        lent.push(entry.unwrap().file_name().into_string().unwrap());
    }
    let move_all = |from: &Path, to: &Path| {
        for name in &lent {
            fs::rename(from.join(name), to.join(name)).unwrap();
        }
    };
    let seen = in_order(&root, |dir| {
        lent.iter().rev().for_each(|name| assert!(dir.enter(name)));
        while dir.next().unwrap().is_some() {}
        move_all(&root, &aside);
        dir.read_into(&mut Listing::new()).unwrap();
        move_all(&aside, &root);
    });
    assert_eq!(seen, lent);
}

/// What is said of an entry that is lent holds, however often the directory is read after that.
#[test]
fn what_is_said_of_an_entry_holds_in_each_listing_after_it() {
    for readings in 1..4 {
        for names_another in [false, true] {
            let (entered, errors) = entered(&["a/", "b/"], |dir| {
                while let Some(entry) = dir.next().unwrap() {
                    match entry.name() {
                        b"a" => dir.skip_entry(),
                        b"link" => dir.follow_entry(),
                        _ => {}
                    }
                }
                for _ in 0..readings {
                    dir.read_into(&mut Listing::new()).unwrap();
                    if names_another {
                        dir.skip_name("missing");
                    }
                }
            });
            assert_eq!((entered, errors), (names(&["b", "link"]), vec![]), "{readings} readings");
        }
    }
}

/// Whether other links have been lent since plays no part.
#[test]
fn last_word_counts_for_a_link_too() {
    for others in [0, 3] {
        let (entered, errors) = entered(&["a/"], |dir| {
            for number in 0..others {
                symlink("nowhere", dir.path().join(format!("other{number}"))).unwrap();
            }
            lend(dir, b"link");
            assert!(dir.enter("link"));
            while dir.next().unwrap().is_some() {}
            assert!(dir.follow_name("link"));
            dir.skip_name("link");
            assert!(dir.follow_name("link"));
        });
        assert_eq!((entered, errors), (names(&["a", "link"]), vec![]));
    }
}

#[test]
fn after_a_listing_no_entry_is_the_one_just_lent() {
    let tree = Tree::of(&["a/"]);
    let sayings: [fn(&mut Dir<'_>); 2] = [|dir| dir.skip_entry(), |dir| dir.follow_entry()];
    for (say, instead) in sayings.into_iter().zip(["skip_name", "follow_name"]) {
        let mut walk = Walk::open(tree.path()).unwrap();
        let mut dir = walk.next().unwrap().unwrap();
        say(&mut dir); // before the first entry
        dir.read_into(&mut Listing::new()).unwrap();
        for _ in 0..2 {
            let panic = catch_unwind(AssertUnwindSafe(|| say(&mut dir))).unwrap_err();
            assert!(panic.downcast::<&str>().unwrap().contains(instead));
            assert!(dir.next().unwrap().is_none());
        }
    }
}

/// The descriptor of a lent directory can be read from: the walk loses nothing, whether it lends entries after that or not.
#[test]
fn whoever_reads_a_lent_directory_loses_nothing() {
    let tree = Tree::of(&["a/b/c/", "d/e/", "f"]);
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
        let skipped = entered(&["a/", "b/"], |dir| {
            read(dir);
            assert!(dir.next().unwrap().is_none());
            dir.skip_name("a");
            assert!(dir.follow_name("link"));
        });
        assert_eq!(skipped, (names(&["b", "link"]), vec![]));
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
