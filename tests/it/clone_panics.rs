//! If `Clone` or `Drop` of the caller's state panics, nothing hangs, and a caller who catches the panic loses no directory and gets
//! none twice.

use crate::support::machine::Watchdog;
use crate::support::tree::{self, Tree};
use crate::visits::Next;
use lendir::{WalkDirs, WalkDirsOptions};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

/// After so many clones it panics once.
#[derive(Debug)]
struct Fuse(Arc<AtomicUsize>);

const BLOWN: &str = "on purpose";

impl Fuse {
    fn new(clones: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(clones + 1)))
    }
}

impl Clone for Fuse {
    fn clone(&self) -> Self {
        if self.0.fetch_sub(1, SeqCst) == 1 {
            resume_unwind(Box::new(BLOWN)); // without a message
        }
        Self(Arc::clone(&self.0))
    }
}

/// After so many drops it panics once.
#[derive(Clone)]
struct Bomb(Arc<AtomicUsize>);

impl Drop for Bomb {
    fn drop(&mut self) {
        if self.0.fetch_sub(1, SeqCst) == 1 && !thread::panicking() {
            resume_unwind(Box::new(BLOWN));
        }
    }
}

fn is_blown(panic: &dyn Any) -> bool {
    panic.downcast_ref() == Some(&BLOWN)
}

fn ways() -> impl Iterator<Item = WalkDirsOptions> {
    let options = |second_visits| WalkDirs::options().second_visits(second_visits);
    [false, true]
        .into_iter()
        .flat_map(move |is| [4, 32].map(|max_open| options(is).max_open(max_open)))
}

/// The rest of a walk. Each panic is caught.
fn rest<S>(walk: &mut impl Next<S>) -> Vec<(PathBuf, bool)> {
    let mut visits = Vec::new();
    loop {
        let next = catch_unwind(AssertUnwindSafe(|| {
            walk.next_dir().unwrap().map(|mut dir| {
                while dir.next().unwrap().is_some() {}
                (dir.path().to_owned(), dir.is_second_visit())
            })
        }));
        match next {
            Ok(Some(visit)) => visits.push(visit),
            Ok(None) => return visits,
            Err(panic) => assert!(is_blown(&*panic)),
        }
    }
}

fn sorted(mut visits: Vec<(PathBuf, bool)>) -> Vec<(PathBuf, bool)> {
    visits.sort();
    visits
}

/// What a walk lends if no clone panics.
fn all(options: &WalkDirsOptions, tree: &Tree) -> Vec<(PathBuf, bool)> {
    sorted(rest(
        &mut options.clone().with_state(Fuse::new(usize::MAX - 1)).open(tree.path()).unwrap(),
    ))
}

#[test]
fn no_directory_is_lost_if_it_is_caught() {
    let tree = Tree::new(|at| tree::comb(at, 12));
    for options in ways() {
        let expected = all(&options, &tree);
        assert!(expected.len() >= 37);
        for clones in 0..expected.len() {
            let mut walk = options.clone().with_state(Fuse::new(clones)).open(tree.path()).unwrap();
            assert_eq!(sorted(rest(&mut walk)), expected, "{options:?}, {clones} clones");
        }
    }
}

/// The panic comes in one of the threads.
#[test]
fn threads_end_and_lose_nothing_if_it_is_caught() {
    let _watchdog = Watchdog::new(60);
    let tree = Tree::new(|at| tree::comb(at, 12));
    for options in ways() {
        let expected = all(&options, &tree);
        for clones in 0..40 {
            for catches in [false, true] {
                let fuse = Fuse::new(clones);
                let left_of_fuse = Arc::clone(&fuse.0);
                let walk = options.clone().with_state(fuse).open(tree.path()).unwrap();
                let parallel = AssertUnwindSafe(|| {
                    walk.run_parallel(4, |worker| {
                        if catches {
                            return rest(worker);
                        }
                        while worker.next().unwrap().is_some() {}
                        vec![]
                    })
                });
                let what = format!("{options:?}, {clones} clones, caught {catches}");
                match catch_unwind(parallel) {
                    Ok(parts) if catches => {
                        assert_eq!(
                            sorted(parts.into_iter().flatten().collect()),
                            expected,
                            "{what}"
                        );
                    }
                    // Fewer clones were made.
                    Ok(_) => {
                        let left = left_of_fuse.load(SeqCst);
                        assert!((1..=clones + 1).contains(&left), "{what}: {left} left");
                    }
                    Err(panic) => assert!(is_blown(&*panic) && !catches, "{what}"),
                }
            }
        }
    }
}

#[test]
fn second_visits_come_once_if_a_destructor_panics() {
    let _watchdog = Watchdog::new(60);
    let tree = Tree::new(|at| tree::comb(at, 12));
    let options = WalkDirs::options().second_visits(true).max_open(4);
    let expected = all(&options, &tree);
    for drops in 1..200 {
        let walk = options
            .clone()
            .with_state(Bomb(Arc::new(AtomicUsize::new(drops))))
            .open(tree.path())
            .unwrap();
        match catch_unwind(AssertUnwindSafe(|| walk.run_parallel(4, |worker| rest(worker)))) {
            Ok(parts) => {
                assert_eq!(
                    sorted(parts.into_iter().flatten().collect()),
                    expected,
                    "{drops} drops"
                );
            }
            Err(panic) => assert!(is_blown(&*panic)),
        }
    }
}
