//! Compares `max_depth` with the `-maxdepth` of `find`, and checks a walk without roots.

use crate::fixture::{has_gnu, run};
use crate::support::machine::runs_long;
use crate::support::tree::{self, Tree};
use crate::visits::{Requests, Visit, What, collect_visits};
use lendir::{Order, Walk, WalkDirs, WalkDirsOptions, WalkOptions};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Returns the paths of the root and of all entries. Checks that no path occurs twice.
fn paths(visits: &[Visit]) -> BTreeSet<Vec<u8>> {
    let root = visits.iter().filter(|visit| visit.depth == 0 && visit.what != What::Second);
    let mut paths = BTreeSet::new();
    for path in root.map(|visit| visit.path.clone()).chain(visits.iter().flat_map(Visit::entries)) {
        assert!(paths.insert(path.into_os_string().into_encoded_bytes()), "a path occurs twice");
    }
    paths
}

#[test]
fn max_depth_agrees_with_find() {
    if !has_gnu("find", "walk_dirs_options::max_depth_agrees_with_find") {
        return;
    }
    for seed in 0..if runs_long() { 3 } else { 1 } {
        let tree = Tree::new(|at| tree::random(at, seed));
        for max_depth in [0, 1, 2, 3, 5, 9, 100] {
            let found = run(Command::new("find").arg(tree.path()).args([
                "-maxdepth",
                &max_depth.to_string(),
                "-print0",
            ]));
            let found: BTreeSet<_> = found
                .stdout
                .split(|byte| *byte == 0)
                .filter(|path| !path.is_empty())
                .map(<[u8]>::to_vec)
                .collect();
            for (is_sorted, second_visits, max_open) in [
                (false, false, 32),
                (true, false, 32),
                (false, true, 32),
                (true, true, 4),
                (false, false, 4),
            ] {
                let options = WalkDirs::options()
                    .max_open(max_open)
                    .second_visits(second_visits)
                    .max_depth(max_depth);
                let walk = || options.clone().open(tree.path()).unwrap();
                let requests =
                    if is_sorted { Requests::sorted(Order::Bytes) } else { Requests::ALL };
                let paths = paths(&collect_visits(&mut walk(), |_| requests));
                assert_eq!(paths, found, "max_depth {max_depth}, seed {seed}");
                let parts = walk().run_parallel(3, |worker| collect_visits(worker, |_| requests));
                let together = self::paths(&parts.concat());
                assert_eq!(together, paths, "max_depth {max_depth}, on 3 threads, seed {seed}");
            }
        }
    }
}

#[test]
fn walk_without_roots_is_at_its_end() {
    let mut walk = WalkDirs::options().open_all::<&Path>([]);
    assert!(walk.next().unwrap().is_none() && walk.next().unwrap().is_none());
    assert!(walk.next_ok(|_| unreachable!()).is_none());
    assert!(
        format!("{walk:?}").starts_with(r#"WalkDirs { path: "", options: Options { "#),
        "{walk:?}"
    );
    let is_at_end = walk.run_parallel(3, |worker| worker.next().unwrap().is_none());
    assert!(is_at_end.into_iter().all(|is_none| is_none));

    assert_eq!(format!("{:?}", WalkDirsOptions::default()), format!("{:?}", WalkDirs::options()));
    assert_eq!(format!("{:?}", WalkOptions::default()), format!("{:?}", Walk::options()));
}
