//! Panics of `Clone` and `Drop` of the caller's state.
//!
//! Nothing hangs, and a caller that catches the panic loses no directory and gets none twice.

use crate::support::fuses::{Fuses, is_blown};
use crate::support::prelude::*;

fn options() -> impl Iterator<Item = WalkDirsOptions> {
    let options = |second_visits| WalkDirs::options().second_visits(second_visits);
    [false, true]
        .into_iter()
        .flat_map(move |is| [4, 32].map(|max_open| options(is).max_open(max_open)))
}

fn begin(options: &WalkDirsOptions, tree: &Tree, counters: [usize; 2]) -> WalkDirs<Fuses> {
    options.clone().with_state(Fuses::new(counters)).open(tree.path()).unwrap()
}

/// Returns the remaining visits of a walk, and catches each panic.
fn rest(walk: &mut impl Next<Fuses>) -> Vec<(PathBuf, bool)> {
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
            Err(panic) => assert!(is_blown(&*panic), "another panic"),
        }
    }
}

fn sorted(mut visits: Vec<(PathBuf, bool)>) -> Vec<(PathBuf, bool)> {
    visits.sort();
    visits
}

/// A panic of a clone that is caught loses no directory, on one thread and on several. A panic that
/// is not caught ends all threads.
#[test]
fn panic_of_clone_loses_no_directory() {
    let _watchdog = watchdog();
    let tree = Tree::new(|at| tree::comb(at, 12));
    for options in options() {
        let expected = sorted(rest(&mut begin(&options, &tree, [0; 2])));
        assert!(expected.len() >= 37, "{} visits", expected.len());
        for clones in 1..=expected.len() {
            let what = format!("{options:?}, clone {clones}");
            let visits = sorted(rest(&mut begin(&options, &tree, [clones, 0])));
            assert_eq!(visits, expected, "{what}");
            for catches in [false, true] {
                let fuses = Fuses::new([clones, 0]);
                let counters = Arc::clone(&fuses.0);
                let walk = options.clone().with_state(fuses).open(tree.path()).unwrap();
                let parallel = AssertUnwindSafe(|| {
                    walk.run_parallel(4, |worker| {
                        if catches {
                            return rest(worker);
                        }
                        while worker.next().unwrap().is_some() {}
                        vec![]
                    })
                });
                match catch_unwind(parallel) {
                    Ok(parts) if catches => assert_eq!(sorted(parts.concat()), expected, "{what}"),
                    Ok(_) => {
                        // The walk made fewer clones.
                        let left = counters[0].load(SeqCst);
                        assert!((1..=clones).contains(&left), "{what}: the counter is {left}");
                    }
                    Err(panic) => assert!(is_blown(&*panic) && !catches, "{what}"),
                }
            }
        }
    }
}
