//! `WalkDirs::run_parallel` on real trees, under a scheduler that decides at each lock, atomic and
//! start of a thread which thread continues.
//!
//! shuttle runs thousands of schedules, and can repeat each of them. It knows all threads, so it
//! also detects deadlocks. `LENDIR_LONG=1` runs 20 times as many schedules. They are the same in
//! each run.

#[path = "../it/parallel/endings.rs"]
mod endings;
mod ends;
#[allow(dead_code, reason = "`tests/it` uses the rest")]
#[path = "../support/fuses.rs"]
mod fuses;
#[allow(dead_code, reason = "`tests/it` uses the rest")]
#[path = "../support/machine.rs"]
mod machine;
mod read_ahead;
#[allow(dead_code, reason = "`tests/it` uses the rest")]
#[path = "../support/scratch.rs"]
mod scratch;
mod stamps;
#[allow(dead_code, reason = "`tests/it` uses the rest")]
#[path = "../support/tree.rs"]
mod tree;

use lendir::{Dir, WalkDirs};
use shuttle::Config;
use shuttle::rand::{Rng, thread_rng};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::thread;
use stamps::{Clock, read_all};
use std::collections::HashSet;
use std::fs;
use std::iter;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use tree::Tree;

/// Runs `test` under this number of random schedules, and under as many that follow priorities of
/// threads.
fn explore(schedules: usize, test: impl Fn() + Send + Sync + 'static) {
    let schedules = if machine::runs_long() { 20 * schedules } else { schedules };
    let test = Arc::new(test);
    let run = |scheduler: Box<dyn Scheduler + Send>| {
        let mut config = Config::new();
        config.stack_size = 1 << 20;
        config.silence_warnings = true; // that every atomic counts as `SeqCst`
        let test = Arc::clone(&test);
        shuttle::Runner::new(scheduler, config).run(move || test());
    };
    run(Box::new(RandomScheduler::new_from_seed(1, schedules)));
    for depth in [2, 5] {
        run(Box::new(PctScheduler::new_from_seed(1, depth, schedules / 2)));
    }
}

/// Makes more levels with pending directories than four descriptors allow, and one level unlike the
/// others.
fn make(at: &Path) {
    tree::comb(at, 6);
    tree::make(at, &["a/b/c/", "a/d/", "z/file", "m/m/file"]);
}

const DIRECTORIES: usize = 1 + 6 * 3 + 3;

/// The number of cores in `std.rs`.
const CORES: usize = 10;

fn begin(tree: &Tree, second_visits: bool, max_open: usize) -> WalkDirs {
    WalkDirs::options().max_open(max_open).second_visits(second_visits).open(tree.path()).unwrap()
}

const OPTIONS: [(bool, usize); 4] = [(false, 32), (false, 4), (true, 32), (true, 4)];

fn any_way() -> (bool, usize) {
    OPTIONS[thread_rng().gen_range(0..OPTIONS.len())]
}

/// A walk on 0 threads starts a thread for each core, more than the eight that always start. A
/// thread keeps its directory for a while, so the other threads begin.
#[test]
fn walk_starts_a_thread_for_each_core() {
    let tree = Tree::new(|at| tree::wide(at, 40, 0));
    let most = Arc::new(AtomicUsize::new(0));
    let most_so_far = Arc::clone(&most);
    explore(50, move || {
        let begun = AtomicUsize::new(0);
        let parts = begin(&tree, false, 32).run_parallel(0, |worker| {
            begun.fetch_add(1, SeqCst);
            let mut visits = 0;
            while let Some(_dir) = worker.next().unwrap() {
                visits += 1;
                (0..20)
                    .take_while(|_| begun.load(SeqCst) < CORES)
                    .for_each(|_| thread::yield_now());
            }
            visits
        });
        assert!(parts.len() <= CORES, "{} threads", parts.len());
        assert_eq!(parts.iter().sum::<usize>(), 1 + 40);
        most_so_far.fetch_max(parts.len(), SeqCst);
    });
    assert_eq!(most.load(SeqCst), CORES);
}

/// In half of the walks, each closure but one returns after some directories. The closures read a
/// directory in full, in part, or not at all. The threads still visit each directory once, in order.
#[test]
fn threads_visit_each_directory_once_in_order() {
    let tree = Tree::new(make);
    explore(2000, move || {
        let (second_visits, max_open) = any_way();
        let (clock, one_stays) = (Clock::new(), AtomicBool::new(false));
        let all_stay = thread_rng().gen_bool(0.5);
        let parts = begin(&tree, second_visits, max_open).run_parallel(
            thread_rng().gen_range(2..5),
            |worker| {
                let stays = !one_stays.swap(true, SeqCst) || all_stay;
                let steps = if stays { usize::MAX } else { thread_rng().gen_range(0..8) };
                let visit = || {
                    let look: fn(Dir<'_>) = match thread_rng().gen_range(0..3) {
                        0 => |_| (),
                        1 => |mut dir| assert!(dir.next().is_ok()),
                        _ => read_all,
                    };
                    clock.visit(worker, tree.path(), look).unwrap()
                };
                iter::from_fn(visit).take(steps).collect::<Vec<_>>()
            },
        );
        let stamps: Vec<_> = parts.into_iter().flatten().collect();
        assert_eq!(stamps.len(), if second_visits { 2 * DIRECTORIES } else { DIRECTORIES });
        stamps::check(tree.path(), second_visits, &stamps);
    });
}

/// A level is moved away, and its subtree to another place, so a thread that has to return can
/// reopen the level neither by `..` nor by name. The level is lost, once for all threads, even if it
/// is moved back then. The levels above still have their second visits, after everything below them.
#[test]
fn levels_above_a_lost_level_have_second_visits() {
    let tree = Tree::new(make);
    let aside = Tree::new(|_| ());
    let moves = [("m/m/m/m", "below"), ("m/m/m", "level")]
        .map(|(from, to)| (tree.path().join(from), aside.path().join(to)));
    let lost = Arc::new(AtomicUsize::new(0));
    let lost_so_far = Arc::clone(&lost);
    explore(2000, move || {
        let (clock, errors) = (Clock::new(), AtomicUsize::new(0));
        let move_at = tree
            .path()
            .join(["m/m/m/m/m", "m/m/m/m/z", "m/m/m/m/m/m"][thread_rng().gen_range(0..3)]);
        let max_open = [4, 32][thread_rng().gen_range(0..2)];
        let (moves_back, is_back) = (thread_rng().gen_bool(0.5), AtomicBool::new(false));
        let move_back = || {
            if !is_back.swap(true, SeqCst) {
                moves.iter().rev().for_each(|(from, to)| fs::rename(to, from).unwrap());
            }
        };
        let parts =
            begin(&tree, true, max_open).run_parallel(thread_rng().gen_range(1..5), |worker| {
                let look = |dir: Dir<'_>| {
                    if dir.path() == move_at && !dir.is_second_visit() {
                        moves.iter().for_each(|(from, to)| fs::rename(from, to).unwrap());
                    }
                    read_all(dir);
                };
                let mut stamps = Vec::new();
                loop {
                    match clock.visit(worker, tree.path(), look) {
                        Ok(Some(stamp)) => stamps.push(stamp),
                        Ok(None) => break stamps,
                        Err(error) => {
                            assert_eq!(error.path(), Some(&*moves[1].0));
                            errors.fetch_add(1, SeqCst);
                            if moves_back {
                                move_back();
                            }
                        }
                    }
                }
            });
        move_back();
        let stamps: Vec<_> = parts.into_iter().flatten().collect();
        stamps::check(tree.path(), true, &stamps);
        for stamp in stamps.iter().filter(|stamp| stamp.path != moves[1].0) {
            let visits = stamps.iter().filter(|other| other.path == stamp.path).count();
            assert_eq!(visits, 2, "{:?}", stamp.path);
        }
        let errors = errors.into_inner();
        let comes_again =
            stamps.iter().any(|stamp| stamp.path == moves[1].0 && stamp.is_second_visit);
        assert_eq!(
            errors,
            usize::from(!comes_again),
            "a level is reported once or has a second visit"
        );
        lost_so_far.fetch_add(errors, SeqCst);
    });
    assert!(lost.load(SeqCst) > 100, "only {lost:?} levels were lost");
}

/// Another thread often makes the second visit. It gets the state that the first visit left, with
/// everything that was added in the subtree.
#[test]
fn second_visit_has_the_state_of_the_first() {
    let tree = Tree::new(make);
    explore(2000, move || {
        let max_open = [4, 32][thread_rng().gen_range(0..2)];
        let top = Arc::new((tree.path().to_owned(), AtomicUsize::new(0)));
        let options = WalkDirs::options()
            .second_visits(true)
            .max_open(max_open)
            .with_state(vec![Arc::clone(&top)]);
        let walk = options.open(tree.path()).unwrap();
        let parts = walk.run_parallel(thread_rng().gen_range(2..5), |worker| {
            let mut seconds = 0;
            while let Some(mut dir) = worker.next().unwrap() {
                let path = dir.path();
                if dir.is_second_visit() {
                    // Each directory on the path has a state, and the count of this directory is
                    // complete.
                    let [.., above, own] = &dir.state()[..] else {
                        panic!("{dir:?} has lost its value")
                    };
                    assert_eq!((&*own.0, path.strip_prefix(&above.0).is_ok()), (path, true));
                    assert_eq!(dir.state().len(), dir.depth() + 2);
                    let count = own.1.load(SeqCst);
                    assert_eq!(count, directories_in(path), "{dir:?}");
                    above.1.fetch_add(count, SeqCst);
                    seconds += 1;
                } else {
                    assert_eq!(dir.state().len(), dir.depth() + 1);
                    dir.state_mut().push(Arc::new((path.to_owned(), AtomicUsize::new(1))));
                    while thread_rng().gen_range(0..4) > 0 && dir.next().unwrap().is_some() {}
                }
            }
            seconds
        });
        assert_eq!(parts.into_iter().sum::<usize>(), DIRECTORIES);
        assert_eq!(top.1.load(SeqCst), DIRECTORIES);
        assert_eq!(Arc::strong_count(&top), 1, "a state outlives the walk");
    });
}

/// Returns the number of directories in the tree of [`make`] from this one on.
fn directories_in(path: &Path) -> usize {
    let dirs = fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_type().unwrap().is_dir());
    1 + dirs.map(|dir| directories_in(&dir.path())).sum::<usize>()
}

/// Any thread may walk any root, and each root comes once.
#[test]
fn threads_share_the_roots() {
    let tree = Tree::new(make);
    explore(1000, move || {
        let (second_visits, max_open) = any_way();
        let options = WalkDirs::options().second_visits(second_visits).max_open(max_open);
        let roots = ["a", "m/a", "m/m", "z", "m/z"].map(|name| tree.path().join(name));
        let walk = options.open_all(&roots);
        let parts = walk.run_parallel(thread_rng().gen_range(2..5), |worker| {
            let steps =
                if worker.index() == 0 { usize::MAX } else { thread_rng().gen_range(0..20) };
            let visit =
                || worker.next().unwrap().map(|dir| (dir.path().to_owned(), dir.is_second_visit()));
            iter::from_fn(visit).take(steps).collect::<Vec<_>>()
        });
        let visits: Vec<_> = parts.into_iter().flatten().collect();
        let expected = roots.iter().map(|root| directories_in(root)).sum::<usize>();
        assert_eq!(visits.len(), if second_visits { 2 * expected } else { expected });
        assert_eq!(
            visits.iter().collect::<HashSet<_>>().len(),
            visits.len(),
            "a visit comes twice"
        );
    });
}
