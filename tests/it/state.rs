//! `WalkOptions::with_state`: with what state a directory begins, and what it has at its second visit, against a model that knows
//! nothing of orders and threads.

use crate::spread::Next;
use crate::spread::THREADS;
use crate::support::machine::{Watchdog, passed, runs_long};
use crate::support::tree::{self, Random, Tree};
use lendir::{Dir, Listing, Walk};
use std::cell::Cell;
use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Threads may hand it over, but not share it.
#[derive(Clone, Debug)]
struct Value(Cell<u64>);

const OF_THE_ROOT: u64 = 1;

/// What the caller does in each directory.
#[derive(Clone, Copy)]
struct Model<'a> {
    root: &'a Path,
    seed: u64,
}

impl Model<'_> {
    fn random(self, path: &Path) -> Random {
        let mut hasher = DefaultHasher::new();
        (self.seed, path).hash(&mut hasher);
        Random(hasher.finish())
    }

    /// The value with which a directory begins.
    fn begun(self, path: &Path) -> u64 {
        if path == self.root { OF_THE_ROOT } else { self.left(path.parent().unwrap()) }
    }

    /// The value in which a directory is left: another one, or that with which it began.
    fn left(self, path: &Path) -> u64 {
        let mut random = self.random(path);
        if random.below(4) == 0 { self.begun(path) } else { random.0 }
    }

    /// Checks the value, changes it before, between or after the entries, and reads all of them, some, or none. Returns whether
    /// this was a first visit.
    fn look(self, dir: &mut Dir<'_, Value>, listing: &mut Listing) -> bool {
        let path = dir.path();
        let left = self.left(path);
        if dir.is_second_visit() {
            assert_eq!(dir.state().0.get(), left, "{dir:?}");
            dir.state_mut().0.set(0); // nobody sees this
            return false;
        }
        assert_eq!(dir.state().0.get(), self.begun(path), "{dir:?}");
        let mut random = self.random(path);
        let (change_at, lend) = ((random.below(6), random.below(7)), [0, 1, 3, usize::MAX][random.below(4)]);
        for at in 0.. {
            if at == change_at.0 {
                dir.state().0.set(left);
            }
            if at == lend || dir.next().unwrap().is_none() {
                break;
            }
        }
        if change_at.1 == 0 {
            dir.read_into(listing).unwrap();
        }
        *dir.state_mut() = Value(Cell::new(left));
        true
    }

    /// All that is left of the walk: the directories at their first visit.
    fn walk(self, walk: &mut impl Next<Value>) -> Vec<PathBuf> {
        let (mut listing, mut paths) = (Listing::new(), Vec::new());
        while let Some(mut dir) = walk.next_dir().unwrap() {
            if self.look(&mut dir, &mut listing) {
                paths.push(dir.path().to_owned());
            }
        }
        paths
    }
}

fn begin(root: &Path, max_open: usize, is_post_order: bool) -> Walk<Value> {
    let options = Walk::options().max_open(max_open).post_order(is_post_order);
    options.with_state(Value(Cell::new(OF_THE_ROOT))).open(root).unwrap()
}

/// All directories, by `std`.
fn directories(root: &Path) -> HashSet<PathBuf> {
    let (mut found, mut to_do) = (HashSet::new(), vec![root.to_owned()]);
    while let Some(dir) = to_do.pop() {
        let entries = fs::read_dir(&dir).unwrap().map(Result::unwrap);
        to_do.extend(entries.filter(|entry| entry.file_type().unwrap().is_dir()).map(|entry| entry.path()));
        found.insert(dir);
    }
    found
}

fn assert_all(paths: Vec<PathBuf>, expected: &HashSet<PathBuf>) {
    assert_eq!(paths.len(), expected.len());
    assert!(paths.into_iter().collect::<HashSet<_>>() == *expected);
}

fn trees() -> impl Iterator<Item = Tree> {
    let seeds = 0..if runs_long() { 20 } else { 1 };
    seeds.map(|seed| Tree::new(|at| tree::random(at, seed))).chain([Tree::new(|at| tree::comb(at, 40))])
}

const WAYS: [(usize, bool); 4] = [(32, false), (32, true), (4, false), (4, true)];

#[test]
fn directory_begins_with_what_the_one_above_was_left_in() {
    let mut cases = 0;
    for tree in trees() {
        let root = tree.path();
        let expected = directories(root);
        for (max_open, is_post_order) in WAYS {
            let mut walk = begin(root, max_open, is_post_order);
            for seed in 0..3 {
                let model = Model { root, seed };
                assert_all(model.walk(&mut walk), &expected);
                // Half a tree, and the whole from its beginning.
                let (mut listing, mut steps) = (Listing::new(), 0);
                walk.reopen(root).unwrap();
                while let Some(mut dir) = walk.next().unwrap().filter(|_| steps < 50) {
                    model.look(&mut dir, &mut listing);
                    steps += 1;
                }
                walk.reopen_fd(lendir::open(root).unwrap(), root);
                cases += 1;
            }
        }
    }
    passed(
        "walk: a value for each directory",
        cases,
        "walks where each begins with what the directory above was left in",
    );
}

/// Some closures leave early: what is left to them goes to the others, with its values.
#[test]
fn values_go_along_to_other_threads() {
    let _watchdog = Watchdog::new(300);
    let mut cases = 0;
    for tree in trees() {
        let root = tree.path();
        let expected = directories(root);
        for (max_open, is_post_order) in WAYS {
            for threads in THREADS {
                for leaves in [false, true] {
                    let model = Model { root, seed: cases as u64 };
                    let stays = AtomicUsize::new(0);
                    let parts = begin(root, max_open, is_post_order).spread(threads, |worker| {
                        if !leaves || stays.fetch_add(1, Relaxed) == 0 {
                            return model.walk(worker);
                        }
                        let (mut listing, mut paths) = (Listing::new(), Vec::new());
                        for _ in 0..5 {
                            let Some(mut dir) = worker.next().unwrap() else { break };
                            if model.look(&mut dir, &mut listing) {
                                paths.push(dir.path().to_owned());
                            }
                        }
                        paths
                    });
                    assert_all(parts.into_iter().flatten().collect(), &expected);
                    cases += 1;
                }
            }
        }
    }
    passed("spread: a value for each directory", cases, "walks by 1 to 8 threads, some of which leave early");
}

/// The sum of a directory and all below it. It is complete at the second visit.
#[derive(Debug, Default)]
struct Sum {
    entries: AtomicUsize,
    above: Option<Arc<Sum>>,
}

#[test]
fn sums_come_up_in_an_arc() {
    let _watchdog = Watchdog::new(300);
    let tree = Tree::new(|at| tree::random(at, 9));
    let below = |path: &Path| {
        let dirs = directories(path);
        dirs.iter().map(|dir| fs::read_dir(dir).unwrap().count()).sum::<usize>()
    };
    let expected: Vec<_> = directories(tree.path()).into_iter().map(|dir| (below(&dir), dir)).collect();
    let expected: HashSet<_> = expected.into_iter().collect();
    for max_open in [4, 32] {
        for threads in [1, 2, 8] {
            let top = Arc::new(Sum::default());
            let options = Walk::options().post_order(true).max_open(max_open).with_state(Arc::clone(&top));
            let parts = options.open(tree.path()).unwrap().spread(threads, |worker| {
                let mut sums = Vec::new();
                while let Some(mut dir) = worker.next().unwrap() {
                    if dir.is_second_visit() {
                        let sum = dir.state().entries.load(Relaxed);
                        dir.state().above.as_ref().unwrap().entries.fetch_add(sum, Relaxed);
                        sums.push((sum, dir.path().to_owned()));
                        continue;
                    }
                    let own = Sum { above: Some(Arc::clone(dir.state())), ..Sum::default() };
                    *dir.state_mut() = Arc::new(own);
                    let mut count = 0;
                    while dir.next().unwrap().is_some() {
                        count += 1;
                    }
                    dir.state().entries.fetch_add(count, Relaxed);
                }
                sums
            });
            let sums: Vec<_> = parts.into_iter().flatten().collect();
            assert_eq!(sums.len(), expected.len());
            assert!(sums.into_iter().collect::<HashSet<_>>() == expected, "{threads} threads, {max_open} open");
            assert_eq!(top.entries.load(Relaxed), below(tree.path()));
            assert_eq!(Arc::strong_count(&top), 1, "a value is left over");
        }
    }
}
