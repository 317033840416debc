//! Directories that exist but cannot be read.

use crate::support::prelude::*;
use crate::support::strace::total;
use rustix::fs::{AtFlags, Mode, chmodat, mkdirat};

/// A name, a function that reads the directory and collects errors, the number of these errors, and
/// the number of errors that the walk reports.
type Case = (&'static str, fn(&mut Dir<'_>, &mut Vec<Error>), [usize; 2]);

fn next(dir: &mut Dir<'_>, errors: &mut Vec<Error>) {
    errors.extend((0..3).filter_map(|_| dir.next().err()));
}

const CASES: [Case; 9] = [
    ("next", next, [1, 0]),
    (
        "next_or_report",
        |dir, errors| {
            (0..3).for_each(|_| assert!(dir.next_or_report(|error| errors.push(error)).is_none()));
        },
        [1, 0],
    ),
    ("find", |dir, errors| errors.extend((0..3).filter_map(|_| dir.find(|_| true).err())), [1, 0]),
    (
        "read_into",
        |dir, errors| {
            let mut listing = Listing::new();
            listing.read(lendir::open("/").unwrap()).unwrap();
            errors.push(dir.read_into(&mut listing).unwrap_err());
            assert!(listing.is_empty() && dir.next().unwrap().is_none());
        },
        [1, 0],
    ),
    (
        "read_into after next",
        |dir, errors| {
            errors.push(dir.next().unwrap_err());
            let _ = dir
                .read_into(&mut Listing::new())
                .inspect_err(|error| assert_eq!(errno(error), libc::EACCES));
        },
        [1, 0],
    ),
    ("nothing", |_, _| (), [0, 1]),
    ("skip_subdirs", |dir, _| dir.skip_subdirs(), [0, 0]),
    (
        "next after skip_subdirs",
        |dir, errors| {
            dir.skip_subdirs();
            next(dir, errors);
        },
        [1, 0],
    ),
    (
        "skip_subdirs after next",
        |dir, errors| {
            next(dir, errors);
            dir.skip_subdirs();
        },
        [1, 0],
    ),
];

/// Walks a tree with such a directory between two others, or with a link to it.
fn check((what, read, expected_counts): Case, [second_visits, same_mount, is_link]: [bool; 3]) {
    let tree = Tree::of(&["a/", "secret/below/", "z/"]);
    let mut secret = tree.path().join("secret");
    chmod(&secret, 0o300);
    if is_link {
        secret = tree.path().join("link");
        symlink("secret", &secret).unwrap();
    }
    let options = WalkDirs::options().second_visits(second_visits).same_mount(same_mount);
    let mut walk = options.follow_links(is_link).open(tree.path()).unwrap();
    let mut root = walk.next().unwrap().unwrap();
    if is_link {
        root.skip_subdirs();
        for name in ["a", "link", "z"] {
            assert!(root.enter_name(name).unwrap());
        }
    }
    let (mut visits, mut errors, mut of_walk) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(mut dir) = walk.next_or_report(|error| of_walk.push(error)) {
        if dir.path() == secret {
            let found = dir.metadata().unwrap().ino();
            assert_eq!(found, fs::metadata(&secret).unwrap().ino(), "another directory is yielded");
            if dir.is_second_visit() {
                assert!(dir.parent_and_name().is_some() && dir.next().unwrap().is_none());
            } else {
                read(&mut dir, &mut errors);
            }
        }
        visits.push((dir.path().to_owned(), dir.is_second_visit()));
    }
    let what =
        format!("{what}, second visits {second_visits}, same mount {same_mount}, link {is_link}");
    assert_eq!([errors.len(), of_walk.len()], expected_counts, "{what}");
    for error in errors.iter().chain(&of_walk) {
        let found = (error.path(), error.depth(), errno(error));
        assert_eq!(found, (Some(&*secret), 1, libc::EACCES), "{what}");
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

/// A walk yields an unreadable directory like any other. Its error comes once: to the caller that
/// reads it, or else from the walk.
#[test]
fn reader_gets_one_error() {
    as_nobody(|| {
        for case in CASES {
            for number in 0..8 {
                check(case, [1, 2, 4].map(|bit| number & bit != 0));
            }
        }
    });
}

/// Makes a chain in which each level also has a directory that can be read, but not searched.
fn chain_of_names_that_cannot_be_opened(at: &Path, depth: usize) {
    tree::nest_with(at, depth, |dir, _| {
        for name in ["m", "u", "u/1", "u/2", "u/3", "u/4", "u/5", "u/6", "u/7", "u/8"] {
            mkdirat(dir, name, Mode::RWXU).unwrap();
        }
        chmodat(dir, "u", Mode::from_raw_mode(0o600), AtFlags::empty()).unwrap();
    });
}

/// A walk queries the identity of a level a bounded number of times, however many names below the
/// level cannot be opened, on one thread and on several.
#[test]
fn names_that_fail_to_open_cost_no_queries() {
    const LEVELS: usize = 200;
    const THREADS: [usize; 2] = [1, 8];
    let calls = total("unreadable::names_that_fail_to_open_cost_no_queries", "statx", || {
        as_nobody(|| {
            for threads in THREADS {
                let tree = Tree::new(|at| chain_of_names_that_cannot_be_opened(at, LEVELS));
                let walk = WalkDirs::options().second_visits(true).open(tree.path()).unwrap();
                let parts = walk.run_parallel(threads, |worker| {
                    let (mut visits, mut errors) = (0, 0);
                    while let Some(dir) = worker.next_or_report(|error| {
                        errors += usize::from(errno(&error) == libc::EACCES);
                    }) {
                        visits += 1;
                        if dir.name() == b"u" {
                            // The other threads begin to wait meanwhile.
                            thread::sleep(Duration::from_micros(500));
                        }
                    }
                    [visits, errors]
                });
                let sum = |index| parts.iter().map(|part: &[usize; 2]| part[index]).sum::<usize>();
                assert_eq!([sum(0), sum(1)], [2 * (2 * LEVELS + 1), 8 * LEVELS]);
            }
        });
    });
    // To close or share a level, and to reopen it.
    let most = 6 * LEVELS * THREADS.len();
    assert!(calls.is_none_or(|calls| calls <= most), "{calls:?} `statx`, not {most}");
}

/// Directories below a level that cannot be searched any more still go to other threads.
#[test]
fn threads_share_an_unsearchable_level() {
    let _watchdog = watchdog();
    as_nobody(|| {
        let tree = Tree::new(|at| {
            tree::make(at, &["u/x/", "u/y/", "u/z/"]);
            tree::wide(&at.join("u/x"), 200, 3);
        });
        let mut walk = WalkDirs::options().second_visits(true).open(tree.path()).unwrap();
        let mut listing = Listing::new();
        for name in [tree.path().file_name().unwrap(), OsStr::new("u"), OsStr::new("x")] {
            let mut dir = walk.next().unwrap().unwrap();
            assert_eq!(dir.file_name(), name);
            dir.read_into(&mut listing).unwrap();
        }
        chmod(tree.path().join("u"), 0o600);
        let is_given = AtomicBool::new(false);
        let parts = walk.run_parallel(2, |worker| {
            let (mut visits, is_first) = (0, worker.index() == 0);
            while worker.next_or_report(|error| assert_eq!(errno(&error), libc::EACCES)).is_some() {
                visits += 1;
                is_given.fetch_or(!is_first, Relaxed);
                if !is_given.load(Relaxed) {
                    thread::sleep(Duration::from_millis(1)); // the other thread begins to wait
                }
            }
            visits
        });
        assert!(parts[1] > 0 && parts[0] + parts[1] == 2 * 200 + 3, "{parts:?}");
    });
}
