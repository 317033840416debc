//! The cost of requests by name, in instructions, because requests make no system calls.

use crate::instructions::of_calls;
use crate::support::process;
use crate::support::tree::{self, Tree};
use lendir::{Listing, Order, WalkDirs};
use std::path::Path;

const TEST: &str = "skip_name::skip_name_costs_linear_instructions";

#[derive(Clone, Copy, Debug)]
enum Names {
    /// Names that were not yielded yet.
    Before,
    AsYielded,
    AsListed(Order),
}

/// Returns the names, and which directories the caller skips: every one, every second one, and so
/// on.
fn cases() -> impl Iterator<Item = (Names, usize)> {
    let names = [
        Names::Before,
        Names::AsYielded,
        Names::AsListed(Order::Bytes),
        Names::AsListed(Order::Unsorted),
    ];
    names.into_iter().flat_map(|names| [1, 2, 7].map(|step| (names, step)))
}

/// Reads a directory, skips names in it, and continues the walk.
#[inline(never)]
fn measured(walk: &mut WalkDirs, all: &[Vec<u8>], which: Names, step: usize) {
    let mut dir = walk.next().unwrap().unwrap();
    let mut names = Vec::new();
    match which {
        Names::Before => names.extend_from_slice(all),
        Names::AsYielded => {
            while let Some(entry) = dir.next().unwrap() {
                names.push(entry.name().to_vec());
            }
        }
        Names::AsListed(order) => {
            let mut listing = Listing::with_order(order);
            dir.read_into(&mut listing).unwrap();
            names.extend(listing.iter().map(|entry| entry.name().to_vec()));
        }
    }
    for name in names.iter().filter(|name| name.ends_with(b"d")).step_by(step) {
        dir.skip_name(name);
    }
    assert_eq!(walk.next().unwrap().is_some(), step > 1);
}

fn skip(tree: &Path, which: Names, step: usize) {
    let all = lendir::read_dir(tree).unwrap().filter_map(|entry| Some(entry.name().to_vec()));
    let all: Vec<_> = all.map(Result::unwrap).collect();
    measured(&mut lendir::walk_dirs(tree).unwrap(), &all, which, step);
}

/// `skip_name` costs about the same for each name, in whatever order. Four times as many names take
/// about four times as many instructions; they would take 16 times as many if each call looked at
/// all names.
#[test]
fn skip_name_costs_linear_instructions() {
    const FEW: usize = 200;
    process::part(TEST, 120, || {
        // Files and directories that alternate in the order of names.
        let paths = |count| {
            (0..count).flat_map(|number| [format!("{number:06}f"), format!("{number:06}d/")])
        };
        let trees = [FEW, 4 * FEW]
            .map(|count| Tree::new(|at| tree::make(at, &paths(count).collect::<Vec<_>>())));
        for (names, step) in cases() {
            for tree in &trees {
                skip(tree.path(), names, step);
            }
        }
    });
    let Some(counts) = of_calls(TEST, 2 * cases().count()) else { return };
    for ((names, step), counts) in cases().zip(counts.chunks(2)) {
        let [few, many] = [counts[0], counts[1]];
        assert!(
            many < 6 * few,
            "{names:?}, step {step}: {few} instructions, {many} for 4 times as many names"
        );
    }
}
