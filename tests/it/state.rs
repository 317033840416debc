//! `WalkDirsOptions::with_state`: the state at the first and second visit of a directory, with a
//! model that does not know orders or threads.

use crate::support::machine::{runs_long, watchdog};
use crate::support::options::{PLAIN, POST, THREADS, TIGHT, TestOptions};
use crate::support::requests::{Next, Requests};
use crate::support::tree::{self, Random, Tree};
use crate::support::visits::{Visit, directories, expected_visits};
use lendir::{Dir, Listing, WalkDirs};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A state that is `Send`, but not `Sync`.
#[derive(Clone, Debug)]
struct Value(Cell<u64>);

const OF_THE_ROOT: u64 = 1;

/// A seed that determines what the caller does in each directory.
#[derive(Clone, Copy)]
struct Model<'a> {
    root: &'a Path,
    seed: u64,
}

impl Model<'_> {
    fn random(self, path: &Path) -> Random {
        Random::of(&(self.seed, path))
    }

    /// Returns the state at the first visit of a directory.
    fn begun(self, path: &Path) -> u64 {
        if path == self.root { OF_THE_ROOT } else { self.left(path.parent().unwrap()) }
    }

    /// Returns the state that the caller leaves in a directory: the inherited one or another.
    fn left(self, path: &Path) -> u64 {
        let mut random = self.random(path);
        if random.below(4) == 0 { self.begun(path) } else { random.0 }
    }

    /// Checks the state, changes it before, between or after the entries, and reads all, some or
    /// none of the entries. Returns `true` at a first visit.
    fn look(self, dir: &mut Dir<'_, Value>, listing: &mut Listing) -> bool {
        let path = dir.path();
        let left = self.left(path);
        if dir.is_second_visit() {
            assert_eq!(dir.state().0.get(), left, "{dir:?}");
            dir.state_mut().0.set(0); // no visit sees this value
            return false;
        }
        assert_eq!(dir.state().0.get(), self.begun(path), "{dir:?}");
        let mut random = self.random(path);
        let (change_at, entry_count) =
            ((random.below(6), random.below(7)), [0, 1, 3, usize::MAX][random.below(4)]);
        for at in 0.. {
            if at == change_at.0 {
                dir.state().0.set(left);
            }
            if at == entry_count || dir.next().unwrap().is_none() {
                break;
            }
        }
        if change_at.1 == 0 {
            dir.read_into(listing).unwrap();
        }
        *dir.state_mut() = Value(Cell::new(left));
        true
    }

    /// Takes at most `most` visits. Returns the directories of the first visits.
    fn walk(self, walk: &mut impl Next<Value>, most: usize) -> Vec<PathBuf> {
        let (mut listing, mut paths) = (Listing::new(), Vec::new());
        for _ in 0..most {
            let Some(mut dir) = walk.next_dir().unwrap() else { break };
            if self.look(&mut dir, &mut listing) {
                paths.push(dir.path().to_owned());
            }
        }
        paths
    }
}

fn begin(root: &Path, options: TestOptions) -> WalkDirs<Value> {
    options.build().with_state(Value(Cell::new(OF_THE_ROOT))).open(root).unwrap()
}

fn assert_all(mut paths: Vec<PathBuf>, expected: &[Visit]) {
    paths.sort_unstable_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
    assert_eq!(paths, directories(expected));
}

fn trees() -> impl Iterator<Item = Tree> {
    let seeds = 0..if runs_long() { 20 } else { 1 };
    seeds
        .map(|seed| Tree::new(|at| tree::random(at, seed)))
        .chain([Tree::new(|at| tree::comb(at, 40))])
}

const OPTIONS: [TestOptions; 4] = [PLAIN, POST, TestOptions { max_open: 4, ..PLAIN }, TIGHT];

/// A directory inherits the state that the caller left in its parent, on one thread and on several.
/// If a closure returns early, its directories go to other threads with their states.
#[test]
fn children_inherit_the_state() {
    let _watchdog = watchdog();
    let mut seeds = 0..;
    for tree in trees() {
        let root = tree.path();
        let expected = expected_visits(root, false, |_| Requests::ALL);
        for options in OPTIONS {
            let model = Model { root, seed: seeds.next().expect("BUG: seeds without end") };
            assert_all(model.walk(&mut begin(root, options), usize::MAX), &expected);
            for threads in THREADS {
                for leaves in [false, true] {
                    let model = Model { root, seed: seeds.next().expect("BUG: seeds without end") };
                    let stays = AtomicUsize::new(0);
                    let parts = begin(root, options).run_parallel(threads, |worker| {
                        let stays = !leaves || stays.fetch_add(1, Relaxed) == 0;
                        model.walk(worker, if stays { usize::MAX } else { 5 })
                    });
                    assert_all(parts.into_iter().flatten().collect(), &expected);
                }
            }
        }
    }
}
