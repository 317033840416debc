//! What links that are followed cost, where no level above them is closed: it grows with the tree, not with its square.

use crate::instructions::of_calls;
use crate::strace::{Counted, totals};
use crate::support::machine::runs_long;
use crate::support::tree::{self, Tree};
use lendir::{Walk, WalkDirs};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, mkdirat, symlinkat};
use std::fs;
use std::iter;
use std::os::unix::fs::symlink;
use std::path::Path;

const TEST: &str = "link_costs::links_cost_the_same_each_however_deep_the_tree_is";

/// The size of the smaller of two trees. The other one is 4 times as large.
const SIZE: usize = 40;

/// Where links stand, and where they lead.
struct Shape {
    what: &'static str,
    /// Makes `root`, the tree, of this size. `empty` is beside it.
    make: fn(&Path, usize),
    /// How many directories are lent, and how many errors come.
    comes_to: fn(usize) -> (usize, usize),
}

/// A chain with two links at each level, one before the next level and one behind it.
fn linked_chain(at: &Path, depth: usize, [before, behind]: [&Path; 2]) {
    let link = |dir: &OwnedFd, target, name| symlinkat(target, dir, name).unwrap();
    let end = tree::nest_with(at, depth, |dir, _| {
        link(dir, before, "before");
        mkdirat(dir, "m", Mode::RWXU).unwrap();
        link(dir, behind, "behind");
    });
    link(&end, before, "before");
    link(&end, behind, "behind");
}

/// A chain with links at its end.
fn links_at_the_end(at: &Path, depth: usize, count: usize, target: &Path) {
    let end = tree::nest(at, iter::repeat_n(tree::CHAIN, depth));
    (0..count).for_each(|number| symlinkat(target, &end, number.to_string()).unwrap());
}

const SHAPES: &[Shape] = &[
    Shape {
        what: "links at each level",
        make: |at, size| linked_chain(&at.join("root"), size, [&at.join("empty"); 2]),
        comes_to: |size| (3 * (size + 1), 0),
    },
    Shape {
        what: "links at each level, one of them to the other",
        make: |at, size| {
            linked_chain(&at.join("root"), size, [&at.join("empty"), Path::new("before")]);
        },
        comes_to: |size| (3 * (size + 1), 0),
    },
    Shape {
        what: "links at each level, that lead back there",
        make: |at, size| linked_chain(&at.join("root"), size, [Path::new("."); 2]),
        comes_to: |size| (size + 1, 2 * (size + 1)),
    },
    Shape {
        what: "links at each level, below a link",
        make: |at, size| {
            fs::create_dir(at.join("chain")).unwrap();
            symlink("../chain", at.join("root/l")).unwrap();
            linked_chain(&at.join("chain"), size, [&at.join("empty"); 2]);
        },
        comes_to: |size| (1 + 3 * (size + 1), 0),
    },
    Shape {
        what: "a link at the end, to many directories",
        make: |at, size| {
            let many = at.join("many");
            fs::create_dir(&many).unwrap();
            tree::wide(&many, size, 4);
            links_at_the_end(&at.join("root"), size, 1, &many);
        },
        comes_to: |size| (size + 1 + 1 + size, 0),
    },
    Shape {
        what: "many links at the end",
        make: |at, size| links_at_the_end(&at.join("root"), size, size, &at.join("empty")),
        comes_to: |size| (2 * size + 1, 0),
    },
];

/// How a tree is read: returns how many directories were lent, and how many errors came.
type Read = fn(Given, &Path) -> (usize, usize);

/// Second visits, and how many descriptors.
type Given = (bool, usize);

const READS: [Read; 2] = [
    |(second_visits, max_open), root| {
        let options = WalkDirs::options().second_visits(second_visits).max_open(max_open);
        let (mut walk, mut lent, mut errors) = (options.open(root).unwrap(), 0, 0);
        while let Some(mut dir) = walk.next_ok(|_| errors += 1) {
            lent += usize::from(!dir.is_second_visit());
            while let Some(entry) = dir.next().unwrap() {
                entry.follow();
            }
        }
        (lent, errors)
    },
    |(_, max_open), root| {
        let options = Walk::options().max_open(max_open);
        let (mut tree, mut lent, mut errors) = (options.open(root).unwrap(), 1, 0);
        while let Some(entry) = tree.next_ok(|_| errors += 1) {
            entry.follow();
            lent += 1;
        }
        (lent - errors, errors)
    },
];

/// Alone, so callgrind can count its instructions.
#[inline(never)]
fn measured(read: Read, given: Given, root: &Path) -> (usize, usize) {
    let _counted = Counted::begin();
    read(given, root)
}

/// How: `READS`, second visits, descriptors.
const WAYS: [(usize, bool, usize); 3] = [(0, false, 32), (0, true, 12), (1, false, 12)];

/// The short form reads each shape in one of the ways.
fn ways(shape: usize) -> impl Iterator<Item = (usize, bool, usize)> {
    WAYS.into_iter()
        .enumerate()
        .filter(move |(way, _)| runs_long() || *way == shape % 3)
        .map(|(_, way)| way)
}

/// Reads trees of both sizes.
fn read_all() {
    for (number, Shape { what, make, comes_to }) in SHAPES.iter().enumerate() {
        let trees = [SIZE, 4 * SIZE].map(|size| {
            let make = |at: &Path| {
                tree::make(at, &["root/", "empty/"]);
                make(at, size);
            };
            (size, Tree::new(make))
        });
        for (read, second_visits, max_open) in ways(number) {
            for (size, tree) in &trees {
                let root = tree.path().join("root");
                let came_to = measured(READS[read], (second_visits, max_open), &root);
                assert_eq!(
                    came_to,
                    comes_to(*size),
                    "{what}, {read}, second visits {second_visits}, {max_open} open"
                );
            }
        }
    }
}

#[test]
fn links_cost_the_same_each_however_deep_the_tree_is() {
    let Some(parts) = totals(TEST, read_all) else { return };
    let cases = || {
        SHAPES
            .iter()
            .enumerate()
            .flat_map(|(number, shape)| ways(number).map(|way| (shape.what, way)))
    };
    let assert_linear = |what: &str, counts: &[usize]| {
        for (case, counts) in cases().zip(counts.chunks(2)) {
            let [few, many] = [counts[0], counts[1]];
            assert!(
                2 * many <= 11 * few,
                "{case:?}: {few} {what}, {many} for a tree 4 times as large"
            );
        }
    };
    assert_linear(
        "system calls",
        &parts.iter().map(|totals| totals.values().sum()).collect::<Vec<_>>(),
    );
    let Some(counts) = of_calls(TEST, parts.len()) else { return };
    assert_linear("instructions", &counts);
}
