//! Promises of `WalkDirs::run_parallel`. Each module is a topic:
//!
//! - `yields`: the threads together yield what one thread yields, and all of them work;
//! - `ends`: a closure returns early, stops or panics; `endings` has what `tests/shuttle` shares;
//! - `limits`: few descriptors, threads or rights.

mod endings;
mod ends;
mod limits;
mod yields;

use crate::support::prelude::*;
use std::ffi::OsString;

impl TestOptions {
    pub fn begin(self, root: &Path) -> WalkDirs {
        self.build().open(root).unwrap()
    }

    /// Returns the visits that all threads together must yield.
    fn expected_visits(self, root: &Path) -> Vec<Visit> {
        in_one_order(expected_visits(root, self.second_visits, |_| self.requests()))
    }
}

/// The path of a visit, and whether it is the second. A `PathBuf` would be compared name by name,
/// which takes longer than the walk.
type PathOf = (OsString, bool);

fn path_of(dir: &Dir<'_>) -> PathOf {
    (dir.path().into(), dir.is_second_visit())
}

fn paths_of(visits: &[Visit]) -> Vec<PathOf> {
    let mut paths: Vec<_> = visits
        .iter()
        .map(|visit| (visit.path.clone().into(), visit.what == What::Second))
        .collect();
    paths.sort();
    paths
}

fn paths_left(walk: &mut impl Next) -> Vec<PathOf> {
    let mut paths = Vec::new();
    while let Some(dir) = walk.next_dir().unwrap() {
        paths.push(path_of(&dir));
    }
    paths
}

/// The ways in which a thread leaves its last directory: without reading it, or read to the end.
const STOP_READING: [fn(Dir<'_>); 2] = [|_| (), |mut dir| while dir.next().unwrap().is_some() {}];
