//! What reading a tree costs: no allocation once warm, and memory and system calls that grow with the tree.

use crate::costs::{Allocated, allocated};
use crate::strace::{Counted, totals};
use crate::support::machine::runs_long;
use crate::support::scan::ORDERS;
use crate::support::tree::{self, Tree};
use lendir::{Listing, Order, ReadTree, Walk};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::Path;

/// Reads to the end. Returns how many entries there are.
fn read_all(tree: &mut ReadTree) -> usize {
    let mut count = 0;
    while let Some(entry) = tree.next().unwrap() {
        black_box((entry.path(), entry.relative_path(), entry.name(), entry.depth(), entry.is_last()));
        count += 1;
    }
    count
}

fn entries(tree: &mut ReadTree, most: usize) {
    for _ in 0..most {
        black_box(tree.next().unwrap().unwrap().name());
    }
}

#[test]
fn nothing_is_allocated_once_warm() {
    let trees = [
        Tree::new(|at| tree::comb(at, 60)),
        Tree::new(|at| tree::wide(at, 2000, 20)),
        Tree::new(|at| tree::bushy(at, 10)),
        Tree::of(&["only/f", "g"]),
    ];
    let count: usize = trees.iter().map(|tree| read_all(&mut lendir::read_tree(tree.path()).unwrap())).sum();
    for order in ORDERS {
        for max_open in [4, 1000] {
            let roots = trees.iter().map(Tree::path).cycle().take(8 * trees.len());
            let mut tree = Walk::options().max_open(max_open).read_trees(roots).with_order(order);
            entries(&mut tree, 2 * count);
            let costs = allocated(|| entries(&mut tree, 6 * count));
            assert_eq!(costs.times, 0, "{order:?}, {max_open} open: {costs:?}"); // the paths of roots are freed
            assert!(tree.next().unwrap().is_none());
        }
    }
}

/// What a `Vec` takes that has grown to so many elements, by doubling.
const fn grown(count: usize, size: usize) -> usize {
    count.next_power_of_two() * size
}

/// As much as the documentation states, doubled, because memory doubles when it grows; and all that was ever allocated is a small
/// multiple of it. A path that is copied for each directory would take the square.
#[test]
fn memory_grows_with_what_is_left() {
    const LEVEL: usize = 136;
    const ENTRY: usize = 24 + 16;
    let levels = if runs_long() { 20_000 } else { 4000 };
    let cost = |make: fn(&Path, usize), max_open: usize| {
        let tree = Tree::new(|at| make(at, levels));
        let mut read = Walk::options().max_open(max_open).read_tree_from_fd(lendir::open(tree.path()).unwrap(), "");
        let mut count = 0;
        let costs = allocated(|| count = read_all(&mut read));
        (costs, count)
    };
    let path = grown(levels * "m/".len(), 1);
    let listing = 37 * 1024 + 64 * 1024;
    for (shape, make, max_open, beside, promised) in [
        ("a chain", tree::chain as fn(&Path, usize), 32, 1, path),
        ("a comb", tree::comb, 4, 3, path + grown(levels, LEVEL) + 2 * 3 * levels * ENTRY),
        ("a comb, 32 open", tree::comb, 32, 3, path + grown(levels, LEVEL) + 2 * 3 * levels * ENTRY),
    ] {
        let (Allocated { bytes, freed, .. }, count) = cost(make, max_open);
        assert_eq!(count, beside * levels, "{shape}");
        let taken = bytes - freed;
        assert!(taken <= promised + listing, "{shape}: {taken} bytes taken, {promised} promised");
        assert!(bytes <= 3 * (promised + listing), "{shape}: {bytes} bytes ever allocated, {promised} promised");
    }
}

/// The calls of a `Walk` that reads each directory into a listing, if nothing but directories is in it; and those of twice as many
/// levels are twice as many.
#[test]
fn system_calls_are_those_of_a_walk_and_grow_with_the_tree() {
    const TEST: &str = "read_tree::costs::system_calls_are_those_of_a_walk_and_grow_with_the_tree";
    const LEVELS: usize = 100;
    let shapes: [(fn(&Path, usize), usize); 3] = [(tree::chain, 32), (tree::comb, 1000), (tree::comb, 4)];
    let parts = totals(TEST, || {
        for (make, max_open) in shapes {
            for levels in [LEVELS, 2 * LEVELS] {
                let tree = Tree::new(|at| make(at, levels));
                let options = Walk::options().max_open(max_open);
                {
                    let _counted = Counted::begin();
                    let mut walk = options.clone().open(tree.path()).unwrap();
                    let mut listing = Listing::with_order(Order::Bytes);
                    while let Some(mut dir) = walk.next().unwrap() {
                        dir.read_into(&mut listing).unwrap();
                    }
                }
                let _counted = Counted::begin();
                read_all(&mut options.read_tree(tree.path()).unwrap().with_order(Order::Bytes));
            }
        }
    });
    let Some(parts) = parts else { return };
    for (shape, parts) in parts.chunks(4).enumerate() {
        let [walk, read, twice_walk, twice_read] = parts else { panic!("BUG: a part is missing") };
        assert_eq!((read, twice_read), (walk, twice_walk), "shape {shape}");
        let sum = |totals: &BTreeMap<String, usize>| totals.values().sum::<usize>();
        assert!(sum(twice_read) <= 2 * sum(read) + 50, "shape {shape}: {read:?}, {twice_read:?}");
    }
}
