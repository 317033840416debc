//! Directories that exist but may not be read: a walk lends them like any other, and whoever reads one gets the error, once.

use crate::spread::THREADS;
use crate::strace::{Counted, calls, total};
use crate::support::machine::Watchdog;
use crate::support::process::as_nobody;
use crate::support::scan::errno;
use crate::support::tree::{self, Tree};
use lendir::{Dir, Error, Listing, Walk};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

fn forbid(dir: &Path) {
    fs::set_permissions(dir, Permissions::from_mode(0o300)).unwrap();
}

/// What the caller does with the directory, and how many errors it gets: by its own calls, then by the walk.
type Case = (&'static str, fn(&mut Dir<'_>) -> Vec<Error>, [usize; 2]);

fn next(dir: &mut Dir<'_>) -> Vec<Error> {
    (0..3).filter_map(|_| dir.next().err()).collect()
}

const CASES: [Case; 10] = [
    ("next", next, [1, 0]),
    (
        "next_ok",
        |dir| {
            let mut errors = Vec::new();
            (0..3).for_each(|_| assert!(dir.next_ok(|error| errors.push(error)).is_none()));
            errors
        },
        [1, 0],
    ),
    ("find", |dir| (0..3).filter_map(|_| dir.find(|_| true).err()).collect(), [1, 0]),
    (
        "read_into",
        |dir| {
            let mut listing = Listing::new();
            listing.read(lendir::open("/").unwrap()).unwrap();
            let error = dir.read_into(&mut listing).unwrap_err();
            assert!(listing.is_empty() && dir.next().unwrap().is_none());
            vec![error]
        },
        [1, 0],
    ),
    (
        "read_into after next",
        |dir| {
            let error = dir.next().unwrap_err();
            let _ = dir.read_into(&mut Listing::new()).inspect_err(|error| assert_eq!(errno(error), libc::EACCES));
            vec![error]
        },
        [1, 0],
    ),
    ("nothing", |_| vec![], [0, 1]),
    (
        "skip_name",
        |dir| {
            dir.skip_name("below");
            vec![]
        },
        [0, 1],
    ),
    (
        "skip_all",
        |dir| {
            dir.skip_all();
            vec![]
        },
        [0, 0],
    ),
    (
        "next after skip_all",
        |dir| {
            dir.skip_all();
            next(dir)
        },
        [1, 0],
    ),
    (
        "skip_all after next",
        |dir| {
            let errors = next(dir);
            dir.skip_all();
            errors
        },
        [1, 0],
    ),
];

/// Walks a tree with such a directory between two others, or with a link to it.
fn check((what, read, told): Case, second_visits: bool, same_mount: bool, is_link: bool) {
    let tree = Tree::of(&["a/", "secret/below/", "z/"]);
    let mut secret = tree.path().join("secret");
    forbid(&secret);
    if is_link {
        secret = tree.path().join("link");
        symlink("secret", &secret).unwrap();
    }
    let options = Walk::options().second_visits(second_visits).same_mount(same_mount);
    let mut walk = options.open(tree.path()).unwrap();
    let mut root = walk.next().unwrap().unwrap();
    if is_link {
        root.skip_all();
        for name in ["a", "link", "z"] {
            assert!(root.follow_name(name));
        }
    }
    let (mut visits, mut errors, mut of_walk) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(mut dir) = walk.next_ok(|error| of_walk.push(error)) {
        if dir.path() == secret {
            assert_eq!(dir.stat().unwrap().st_ino, fs::metadata(&secret).unwrap().ino(), "another directory is lent");
            if dir.is_second_visit() {
                assert!(dir.parent_and_name().is_some() && dir.next().unwrap().is_none());
            } else {
                errors = read(&mut dir);
            }
        }
        visits.push((dir.path().to_owned(), dir.is_second_visit()));
    }
    let what = format!("{what}, second visits {second_visits}, same mount {same_mount}, link {is_link}");
    assert_eq!([errors.len(), of_walk.len()], told, "{what}");
    for error in errors.iter().chain(&of_walk) {
        assert_eq!((error.path(), error.depth(), errno(error)), (&*secret, 1, libc::EACCES), "{what}");
    }
    visits.sort();
    let mut expected = Vec::new();
    for name in ["a", secret.file_name().unwrap().to_str().unwrap(), "z"] {
        expected.push((tree.path().join(name), false));
        expected.extend(second_visits.then(|| (tree.path().join(name), true)));
    }
    expected.extend(second_visits.then(|| (tree.path().to_owned(), true)));
    expected.sort();
    assert_eq!(visits, expected, "{what}");
}

#[test]
fn whoever_reads_it_gets_one_error() {
    as_nobody(|| {
        for case in CASES {
            for second_visits in [false, true] {
                for same_mount in [false, true] {
                    for is_link in [false, true] {
                        check(case, second_visits, same_mount, is_link);
                    }
                }
            }
        }
    });
}

/// Such a directory may be searched, so the caller can enter what it names there.
#[test]
fn what_is_named_in_it_is_entered() {
    as_nobody(|| {
        let tree = Tree::of(&["secret/below/"]);
        forbid(&tree.path().join("secret"));
        let mut walk = Walk::open(tree.path()).unwrap();
        let (mut names, mut errors) = (Vec::new(), 0);
        while let Some(mut dir) = walk.next_ok(|_| errors += 1) {
            names.push(dir.name().to_vec());
            if dir.name() == b"secret" {
                dir.skip_all();
                dir.enter("below");
            }
        }
        assert_eq!((&names[1..], errors), (&[b"secret".to_vec(), b"below".to_vec()][..], 0));
    });
}

/// The bytes of a directory's files, with everything below it, which are complete at the second visit.
#[derive(Debug, Default)]
struct Node {
    path: PathBuf,
    bytes: AtomicU64,
    above: Option<Arc<Node>>,
}

/// The usual way to sum up: the first visit makes a node, the second adds it to the parent's.
#[test]
fn sums_are_right_around_it() {
    let _watchdog = Watchdog::new(60);
    as_nobody(|| {
        let tree = Tree::new(|at| {
            for number in 0..40 {
                tree::make(at, &[format!("{number}/a/file"), format!("{number}/secret/file"), format!("{number}/z/")]);
                fs::write(at.join(format!("{number}/a/file")), [0; 1000]).unwrap();
                fs::write(at.join(format!("{number}/file")), [0; 5000]).unwrap();
                forbid(&at.join(format!("{number}/secret")));
            }
        });
        for max_open in [4, 32] {
            for threads in THREADS {
                let top = Arc::new(Node::default());
                let options = Walk::options().second_visits(true).max_open(max_open).with_state(Arc::clone(&top));
                let parts = options.open(tree.path()).unwrap().spread(threads, |worker| {
                    let (mut sums, mut errors) = (BTreeMap::new(), 0);
                    while let Some(mut dir) = worker.next_ok(|error| panic!("{error}")) {
                        let node = Arc::clone(dir.state());
                        if dir.is_second_visit() {
                            assert_eq!(node.path, dir.path(), "the state is that of another directory");
                            let bytes = node.bytes.load(Relaxed);
                            node.above.as_ref().unwrap().bytes.fetch_add(bytes, Relaxed);
                            sums.insert(dir.path().to_owned(), bytes);
                            continue;
                        }
                        let mut bytes = 0;
                        while let Some(entry) = dir.next_ok(|_| errors += 1) {
                            let stat = entry.stat().unwrap();
                            bytes += if stat.st_mode & libc::S_IFMT == libc::S_IFREG { stat.st_size } else { 0 };
                        }
                        let bytes = AtomicU64::new(bytes.try_into().unwrap());
                        *dir.state_mut() = Arc::new(Node { path: dir.path().to_owned(), bytes, above: Some(node) });
                    }
                    (sums, errors)
                });
                assert_eq!(parts.iter().map(|part| part.1).sum::<usize>(), 40);
                let sums: BTreeMap<_, _> = parts.into_iter().flat_map(|part| part.0).collect();
                assert_eq!(sums.len(), 1 + 40 * 4);
                assert_eq!((sums[tree.path()], sums[&tree.path().join("7")]), (40 * 6000, 6000), "{threads} threads");
                assert_eq!(top.bytes.load(Relaxed), 40 * 6000);
                assert_eq!(Arc::strong_count(&top), 1, "a state outlives the walk");
            }
        }
    });
}

/// A chain of directories, each with an empty one beside the next that may not be searched, and comes last.
fn closed_chain(at: &Path, depth: usize, mode: u32) {
    tree::nest(at, std::iter::repeat_n(["m", "z"].as_slice(), depth));
    let mut dir = at.to_owned();
    for _ in 0..depth {
        fs::set_permissions(dir.join("z"), Permissions::from_mode(mode)).unwrap();
        dir.push("m");
    }
}

/// The way back from it is that of its parent.
#[test]
fn directory_that_may_not_be_searched_costs_the_way_back_nothing() {
    const TEST: &str = "unreadable::directory_that_may_not_be_searched_costs_the_way_back_nothing";
    const LEVELS: usize = 60;
    let cases = || [false, true].into_iter().flat_map(|post| [0o755, 0o444, 0o000].map(|mode| (post, mode)));
    let parts = calls(TEST, || {
        as_nobody(|| {
            for (second_visits, mode) in cases() {
                for depth in [LEVELS, 2 * LEVELS] {
                    let tree = Tree::new(|at| closed_chain(at, depth, mode));
                    let mut walk = Walk::options().max_open(4).second_visits(second_visits).open(tree.path()).unwrap();
                    let (mut listing, mut visits, mut errors) = (Listing::new(), 0, 0);
                    let counted = Counted::begin();
                    while let Some(mut dir) = walk.next().unwrap() {
                        visits += 1;
                        errors += usize::from(dir.read_into(&mut listing).is_err());
                    }
                    drop(counted);
                    assert_eq!(visits, (2 * depth + 1) * if second_visits { 2 } else { 1 });
                    assert_eq!(errors, if mode == 0 { depth } else { 0 });
                }
            }
        });
    });
    let Some(parts) = parts else { return };
    let opens = |calls: &Vec<String>| calls.iter().filter(|call| call.starts_with("openat")).count();
    let counts: Vec<_> = parts.iter().map(opens).collect();
    for ((second_visits, mode), counts) in cases().zip(counts.chunks(2)) {
        // Two directories on each level, the way back to one, and where it may not be read, another call to open it.
        let [few, many] = [counts[0], counts[1]].map(|count| count / LEVELS);
        assert!(few <= 4 && many <= 8, "second visits {second_visits}, mode {mode:o}: {counts:?} opens");
    }
}

/// Beside the next level, each level has a directory that may be read, but not searched.
fn chain_of_names_that_cannot_be_opened(at: &Path, depth: usize) {
    tree::nest(at, std::iter::repeat_n(["m", "u"].as_slice(), depth));
    let mut dir = at.to_owned();
    for _ in 0..depth {
        tree::make(&dir.join("u"), &["1/", "2/", "3/", "4/", "5/", "6/", "7/", "8/"]);
        fs::set_permissions(dir.join("u"), Permissions::from_mode(0o600)).unwrap();
        dir.push("m");
    }
}

/// Walks it with second visits. `test` is the one that calls this.
fn check_names_that_cannot_be_opened(test: &str, threads: usize) {
    const LEVELS: usize = 200;
    let calls = total(test, "statx", || {
        as_nobody(|| {
            let tree = Tree::new(|at| chain_of_names_that_cannot_be_opened(at, LEVELS));
            let parts = Walk::options().second_visits(true).open(tree.path()).unwrap().spread(threads, |worker| {
                let (mut visits, mut errors) = (0, 0);
                while let Some(dir) = worker.next_ok(|error| errors += usize::from(errno(&error) == libc::EACCES)) {
                    visits += 1;
                    if dir.name() == b"u" {
                        thread::sleep(Duration::from_micros(500)); // the others begin to wait
                    }
                }
                [visits, errors]
            });
            let sum = |index| parts.iter().map(|part: &[usize; 2]| part[index]).sum::<usize>();
            assert_eq!([sum(0), sum(1)], [2 * (2 * LEVELS + 1), 8 * LEVELS]);
        });
    });
    // To close a level or to share it, and to come back to it.
    let most = 6 * LEVELS;
    assert!(calls.is_none_or(|calls| calls <= most), "{threads} threads: {calls:?} `statx`, not {most}");
}

#[test]
fn names_that_cannot_be_opened_cost_the_way_back_nothing() {
    const TEST: &str = "unreadable::names_that_cannot_be_opened_cost_the_way_back_nothing";
    check_names_that_cannot_be_opened(TEST, 1);
}

#[test]
fn names_that_cannot_be_opened_cost_the_way_back_of_several_threads_nothing() {
    const TEST: &str = "unreadable::names_that_cannot_be_opened_cost_the_way_back_of_several_threads_nothing";
    check_names_that_cannot_be_opened(TEST, 8);
}

/// It hides nothing that is below it already.
#[test]
fn what_is_below_it_is_given_to_other_threads() {
    let _watchdog = Watchdog::new(60);
    as_nobody(|| {
        let tree = Tree::new(|at| {
            tree::make(at, &["u/x/", "u/y/", "u/z/"]);
            tree::wide(&at.join("u/x"), 200, 3);
        });
        let mut walk = Walk::options().second_visits(true).open(tree.path()).unwrap();
        let mut listing = Listing::new();
        for name in [tree.path().file_name().unwrap(), OsStr::new("u"), OsStr::new("x")] {
            let mut dir = walk.next().unwrap().unwrap();
            assert_eq!(dir.name_os(), name);
            dir.read_into(&mut listing).unwrap();
        }
        fs::set_permissions(tree.path().join("u"), Permissions::from_mode(0o600)).unwrap();
        let is_given = AtomicBool::new(false);
        let parts = walk.spread(2, |worker| {
            let (mut visits, is_first) = (0, worker.index() == 0);
            while worker.next_ok(|error| assert_eq!(errno(&error), libc::EACCES)).is_some() {
                visits += 1;
                is_given.fetch_or(!is_first, Relaxed);
                if !is_given.load(Relaxed) {
                    thread::sleep(Duration::from_millis(1)); // the other one begins to wait
                }
            }
            visits
        });
        assert!(parts[1] > 0 && parts[0] + parts[1] == 2 * 200 + 3, "{parts:?}");
    });
}

/// From the parent the walk goes up, wherever the levels above have been moved.
#[test]
fn levels_are_found_again_though_the_way_back_begins_where_nobody_may_search() {
    as_nobody(|| {
        for mode in [0o755, 0o444, 0o000] {
            for threads in [1, 3] {
                let tree = Tree::new(|at| closed_chain(at, 30, mode));
                let moved = tree.path().join("moved");
                let options = Walk::options().max_open(4);
                let visits: Vec<usize> = options.open(tree.path()).unwrap().spread(threads, |worker| {
                    let (mut listing, mut visits) = (Listing::new(), 0);
                    while let Some(mut dir) = worker.next().unwrap() {
                        let _ = dir.read_into(&mut listing);
                        if dir.depth() == 30 && dir.name() == b"z" {
                            fs::rename(tree.path().join("m"), &moved).unwrap();
                        }
                        visits += 1;
                    }
                    visits
                });
                assert_eq!(visits.iter().sum::<usize>(), 61, "mode {mode:o}, {threads} threads");
            }
        }
    });
}
