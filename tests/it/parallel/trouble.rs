//! Trees that change during a walk, and missing rights.

use super::{PathOf, paths_of};
use crate::support::machine::{self, Watchdog};
use crate::support::options::{POST, THREADS, TIGHT};
use crate::support::process::as_nobody;
use crate::support::scan::errno;
use crate::support::tree::{self, Tree};
use lendir::{Dir, Listing};
use rustix::fs::{Mode, fchmod};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

/// A directory has a second visit even if its thread has no permission to read the directory any
/// more.
#[test]
fn second_visit_needs_no_permission_to_read() {
    let _watchdog = Watchdog::new(60);
    as_nobody(|| {
        for options in [POST, TIGHT] {
            for threads in THREADS {
                let tree = Tree::new(|at| tree::comb(at, 40));
                let parts = options.begin(tree.path()).run_parallel(threads, |worker| {
                    let mut second_visits = 0;
                    while let Some(dir) = worker.next().unwrap() {
                        if dir.is_second_visit() {
                            second_visits += 1;
                        } else {
                            fchmod(dir.fd(), Mode::WUSR | Mode::XUSR).unwrap();
                        }
                    }
                    second_visits
                });
                assert_eq!(
                    parts.into_iter().sum::<u32>(),
                    1 + 3 * 40,
                    "{options:?}, {threads} threads"
                );
            }
        }
    });
}

/// A level `L` with pending directories of two threads, which is moved away. The contents of `L`
/// are moved elsewhere.
struct Loss {
    tree: &'static [&'static str],
    moved: &'static [&'static str],
    /// The second thread gets a part at or above this level.
    begins_at: &'static str,
    /// The first thread moves everything at its first visit of this depth, when the second thread
    /// is at its first directory. `L` is closed by then.
    moves_at: usize,
    /// Whether the second thread is the first to return to `L`. The other thread waits until the
    /// loss is reported.
    is_second_first: bool,
    /// Whether everything is moved back then.
    moves_back: bool,
}

const TWO_LEVELS: Loss = Loss {
    tree: &["L/M/x/x1/x2/x3/x4/", "L/M/y/y1/", "L/M/z/z1/"],
    moved: &["L/M", "L"],
    begins_at: "L/M",
    moves_at: 4,
    is_second_first: false,
    moves_back: false,
};

const LOSSES: [(&str, Loss); 4] = [
    ("neither thread can reopen it", TWO_LEVELS),
    ("the second thread reopens it, moved back", Loss { moves_back: true, ..TWO_LEVELS }),
    ("the second thread has it open", Loss { tree: &["L/M/y/y1/", "L/w/"], ..TWO_LEVELS }),
    (
        "the second thread reports it, and the first cannot reopen it",
        Loss {
            tree: &["L/M/N/O/x/", "L/M/N/O/y/", "L/w/w1/w2/w3/w4/"],
            moved: &["L/M", "L/w", "L"],
            begins_at: "L/M/N/O",
            moves_at: 6,
            is_second_first: true,
            moves_back: false,
        },
    ),
];

impl Loss {
    /// Walks. Returns the visits and the paths of the errors, relative to the root.
    fn happen(&self) -> (Vec<PathOf>, Vec<PathBuf>) {
        let (tree, aside) = (Tree::of(self.tree), Tree::of(&[]));
        let places = |(number, path): (usize, &&str)| {
            (tree.path().join(path), aside.path().join(number.to_string()))
        };
        let places: Vec<_> = self.moved.iter().enumerate().map(places).collect();
        let relative = |path: &Path| path.strip_prefix(tree.path()).unwrap().to_owned();
        let visit = |dir: &Dir<'_>| (relative(dir.path()).into_os_string(), dir.is_second_visit());
        let mut walk = TIGHT.begin(tree.path());
        let (mut visits, mut listing) = (Vec::new(), Listing::new());
        while visits.last().is_none_or(|(path, _)| path != self.begins_at) {
            let mut dir = walk.next().unwrap().unwrap();
            dir.read_into(&mut listing).unwrap(); // `M` before `w`
            visits.push(visit(&dir));
        }
        let [has_part, is_moved, is_told] = [(); 3].map(|()| AtomicBool::new(false));
        let wait = |flag| machine::wait(flag, Duration::from_secs(10));
        let parts = walk.run_parallel(2, |worker| {
            let is_first_thread = worker.index() == 0;
            let (mut visits, mut errors, mut is_next) = (Vec::new(), Vec::new(), true);
            loop {
                let dir = match worker.next() {
                    Ok(Some(dir)) => dir,
                    Ok(None) => return (visits, errors),
                    Err(error) => {
                        assert_eq!(errno(&error), libc::ENOENT);
                        errors.push(relative(error.path()));
                        if self.moves_back && !is_told.load(SeqCst) {
                            places
                                .iter()
                                .rev()
                                .for_each(|(at, aside)| fs::rename(aside, at).unwrap());
                        }
                        is_told.store(true, SeqCst);
                        continue;
                    }
                };
                visits.push(visit(&dir));
                if dir.is_second_visit()
                    || is_first_thread && dir.depth() != self.moves_at
                    || !is_next
                {
                    continue;
                }
                is_next = false;
                if !is_first_thread {
                    has_part.store(true, SeqCst);
                    wait(if self.is_second_first { &is_moved } else { &is_told });
                    continue;
                }
                wait(&has_part);
                for (at, aside) in &places {
                    fs::rename(at, aside).unwrap();
                }
                is_moved.store(true, SeqCst);
                if self.is_second_first {
                    wait(&is_told);
                }
            }
        });
        let mut errors = Vec::new();
        for part in parts {
            visits.extend(part.0);
            errors.extend(part.1);
        }
        visits.sort();
        (visits, errors)
    }
}

/// A level that a thread loses is reported once and has no second visit, whether or not the other
/// thread can reopen it.
#[test]
fn threads_report_a_lost_level_once() {
    let _watchdog = Watchdog::new(60);
    for (what, loss) in LOSSES {
        let all = paths_of(&POST.expected_visits(Tree::of(loss.tree).path()));
        let (visits, errors) = loss.happen();
        assert_eq!(errors, [Path::new("L")], "{what}");
        let of_lost = visits.iter().filter(|(path, _)| path == "L").collect::<Vec<_>>();
        assert_eq!(of_lost, [&("L".into(), false)], "{what}");
        assert_eq!(visits.len(), all.len() - 1, "{what}");
    }
}
