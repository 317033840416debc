//! The number of levels that a walk keeps open when the process runs out of descriptors.

use crate::support::machine::runs_long;
use crate::support::process;
use crate::support::process::{leave_room, open_descriptors};
use crate::support::tree::{self, Tree};
use lendir::{Listing, WalkDirs};
use std::cell::Cell;

const DEPTH: usize = 24;

/// Returns the depth of each visit, whether it is the second, and how many levels are open. Calls
/// `look` with each depth.
fn counts(
    walk: &mut WalkDirs,
    before: &Cell<usize>,
    mut look: impl FnMut(usize),
) -> Vec<(usize, bool, usize)> {
    let mut listing = Listing::new();
    let mut counts = Vec::new();
    while let Some(mut dir) = walk.next().unwrap() {
        counts.push((dir.depth(), dir.is_second_visit(), open_descriptors() - before.get()));
        dir.read_into(&mut listing).unwrap();
        look(dir.depth());
    }
    counts
}

fn rooms() -> impl Iterator<Item = usize> {
    (4..=DEPTH + 2).step_by(if runs_long() { 1 } else { 3 })
}

/// If the process has no more descriptors, a walk keeps as many levels open as under the same
/// `max_open`.
#[test]
fn walk_keeps_all_available_descriptors() {
    process::run("kept_open::walk_keeps_all_available_descriptors", 60, || {
        let tree = Tree::new(|at| tree::comb(at, DEPTH));
        for second_visits in [false, true] {
            let begin = |most| {
                WalkDirs::options()
                    .max_open(most)
                    .second_visits(second_visits)
                    .open(tree.path())
                    .unwrap()
            };
            let parents = usize::from(second_visits); // the descriptor of the root's parent
            for room in rooms() {
                let before = Cell::new(open_descriptors() + parents);
                let expected = counts(&mut begin(room), &before, |_| ());
                let most = expected.iter().map(|count| count.2).max();
                assert_eq!(
                    most,
                    Some(room.min(DEPTH + 1)),
                    "descriptors open under the limit {room}"
                );
                let others = leave_room(room + parents);
                let before = Cell::new(open_descriptors() + parents);
                let counts = counts(&mut begin(1000), &before, |_| ());
                let what = format!("room for {room}, second visits {second_visits}");
                for (at, (count, expected)) in counts.iter().zip(&expected).enumerate() {
                    assert_eq!(count, expected, "{what}, visit {at}");
                }
                assert_eq!(counts.len(), expected.len(), "{what}");
                drop(others);
            }
        }
    });
}
