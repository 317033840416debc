//! Directories that cannot be searched. `walk_dirs_errors` has those that cannot be read.

use crate::support::prelude::*;
use crate::support::strace::total;
use rustix::fs::{AtFlags, Mode, chmodat, mkdirat};

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
