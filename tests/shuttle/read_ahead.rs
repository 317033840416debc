//! Checks that a walk yields the same in every schedule of the threads that read ahead.

use super::{explore, make};
use crate::tree::{Random, Tree};
use lendir::{Order, Walk};
use shuttle::rand::{Rng, thread_rng};
use std::path::{Path, PathBuf};

/// Returns the paths that this number of calls yields. The requests depend on `seed`.
fn read(tree: &mut Walk, seed: u64, calls: usize) -> Vec<Result<PathBuf, Option<PathBuf>>> {
    let mut come = Vec::new();
    while come.len() < calls {
        match tree.next() {
            Ok(None) => break,
            Err(error) => come.push(Err(error.path().map(Path::to_owned))),
            Ok(Some(entry)) => {
                match Random::of(&(seed, entry.path())).below(12) {
                    0 => entry.skip_subtree(),
                    1 => entry.skip_rest_of_dir(),
                    2 => entry.follow(),
                    _ => {}
                }
                come.push(Ok(entry.path().to_owned()));
            }
        }
    }
    come
}

#[test]
fn threads_that_read_ahead_change_nothing() {
    let tree = Tree::new(make);
    explore(2000, move || {
        let roots = ["", "m/m", "missing", "a"].map(|root| tree.path().join(root));
        let options =
            || Walk::options().order(Order::Bytes).max_open([4, 32][thread_rng().gen_range(0..2)]);
        let (seed, calls) = (thread_rng().gen_range(0..50), thread_rng().gen_range(0..100));
        let expected = read(&mut options().open_all(&roots), seed, calls);
        let ahead = options().read_ahead(thread_rng().gen_range(1..4)).eager();
        assert_eq!(read(&mut ahead.open_all(&roots), seed, calls), expected);
    });
}
