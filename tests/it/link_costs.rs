//! The system calls that followed links cost, where no level above them is closed.

use crate::support::strace::{Counted, totals};
use crate::support::tree::{self, Tree};
use lendir::Walk;
use rustix::fs::{Mode, mkdirat, symlinkat};
use std::fs;
use std::iter;
use std::os::unix::fs::symlink;
use std::path::Path;

/// The size of the smaller of two trees. The other tree is four times as large.
const SIZE: usize = 40;

/// A tree with links, of any size.
struct Shape {
    what: &'static str,
    /// Makes the tree in `root`. The directory `empty` is beside it.
    make: fn(&Path, usize),
    /// The number of directories that a walk enters.
    directories: fn(usize) -> usize,
}

/// Makes a chain with a link to `target` before and behind the next directory at each level.
fn linked_chain(at: &Path, depth: usize, target: &Path) {
    tree::nest_with(at, depth, |dir, _| {
        symlinkat(target, dir, "before").unwrap();
        mkdirat(dir, "m", Mode::RWXU).unwrap();
        symlinkat(target, dir, "behind").unwrap();
    });
}

/// Makes a chain with links to `target` at its end.
fn links_at_the_end(at: &Path, depth: usize, count: usize, target: &Path) {
    let end = tree::nest(at, iter::repeat_n(tree::CHAIN, depth));
    (0..count).for_each(|number| symlinkat(target, &end, number.to_string()).unwrap());
}

const SHAPES: [Shape; 4] = [
    Shape {
        what: "links at each level",
        make: |at, size| linked_chain(&at.join("root"), size, &at.join("empty")),
        directories: |size| 1 + 3 * size,
    },
    Shape {
        what: "links at each level, below a link",
        make: |at, size| {
            fs::create_dir(at.join("chain")).unwrap();
            symlink("../chain", at.join("root/l")).unwrap();
            linked_chain(&at.join("chain"), size, &at.join("empty"));
        },
        directories: |size| 2 + 3 * size,
    },
    Shape {
        what: "a link at the end, to many directories",
        make: |at, size| {
            let many = at.join("many");
            fs::create_dir(&many).unwrap();
            tree::wide(&many, size, 4);
            links_at_the_end(&at.join("root"), size, 1, &many);
        },
        directories: |size| 2 + 2 * size,
    },
    Shape {
        what: "many links at the end",
        make: |at, size| links_at_the_end(&at.join("root"), size, size, &at.join("empty")),
        directories: |size| 1 + 2 * size,
    },
];

/// The walks, each of which follows all links and returns the number of directories.
const WALKS: [fn(&Path) -> usize; 2] = [
    |root| {
        let (mut walk, mut directories) = (lendir::walk_dirs(root).unwrap(), 0);
        while let Some(mut dir) = walk.next().unwrap() {
            directories += 1;
            while let Some(entry) = dir.next().unwrap() {
                entry.follow();
            }
        }
        directories
    },
    |root| {
        let (mut walk, mut directories) = (Walk::options().open(root).unwrap(), 1);
        while let Some(entry) = walk.next().unwrap() {
            entry.follow();
            directories += 1;
        }
        directories
    },
];

/// The number of system calls grows with the tree, not with its square.
#[test]
fn followed_links_cost_linear_calls() {
    let cases = || SHAPES.iter().flat_map(|shape| (0..WALKS.len()).map(move |walk| (shape, walk)));
    let parts = totals("link_costs::followed_links_cost_linear_calls", || {
        for (shape, walk) in cases() {
            for size in [SIZE, 4 * SIZE] {
                let tree = Tree::new(|at| {
                    tree::make(at, &["root/", "empty/"]);
                    (shape.make)(at, size);
                });
                let _counted = Counted::begin();
                let directories = WALKS[walk](&tree.path().join("root"));
                assert_eq!(directories, (shape.directories)(size), "{}, {walk}", shape.what);
            }
        }
    });
    let Some(parts) = parts else { return };
    let counts: Vec<usize> = parts.iter().map(|totals| totals.values().sum()).collect();
    for ((shape, walk), counts) in cases().zip(counts.chunks(2)) {
        let [few, many] = [counts[0], counts[1]];
        let what = format!("{}, walk {walk}", shape.what);
        assert!(2 * many <= 11 * few, "{what}: {few} calls, {many} for a tree four times as large");
    }
}
