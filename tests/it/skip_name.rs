//! What is said of names costs about the same for each, in whatever order they are named.

use std::fs::{self, File};
use std::path::Path;

/// Files and directories that alternate in the order of names.
fn make(at: &Path, count: usize) {
    for number in 0..count {
        File::create(at.join(format!("{number:06}f"))).unwrap();
        fs::create_dir(at.join(format!("{number:06}d"))).unwrap();
    }
}

/// Which directories a loop hands to `skip_name`: every one, every second one, and so on.
const STEPS: [usize; 3] = [1, 2, 7];

/// Counts instructions, because the skips make no system calls.
mod instructions {
    use super::{STEPS, make};
    use crate::instructions::{callgrind, has_valgrind, of_call};
    use crate::support::process;
    use crate::support::scratch::Scratch;
    use crate::support::tree::Tree;
    use lendir::{Listing, Order, Walk};
    use std::path::Path;

    const TEST: &str = "skip_name::instructions::grow_with_the_directory_not_with_its_square";

    #[derive(Clone, Copy, Debug)]
    enum Names {
        /// Before they are lent.
        Before,
        AsLent,
        AsListed(Order),
    }

    fn cases() -> impl Iterator<Item = (Names, usize)> {
        let names = [Names::Before, Names::AsLent, Names::AsListed(Order::Bytes), Names::AsListed(Order::Inode)];
        names.into_iter().flat_map(|names| STEPS.map(|step| (names, step)))
    }

    /// Reads a directory, skips names of it, and goes on.
    #[inline(never)]
    fn measured(walk: &mut Walk, all: &[Vec<u8>], which: Names, step: usize) {
        let mut dir = walk.next().unwrap().unwrap();
        let mut names = Vec::new();
        match which {
            Names::Before => names.extend_from_slice(all),
            Names::AsLent => {
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
        measured(&mut Walk::open(tree).unwrap(), &all, which, step);
    }

    /// Some four times as many if each name is sorted and looked up, 16 times if each call looks at all names.
    #[test]
    fn grow_with_the_directory_not_with_its_square() {
        const FEW: usize = 200;
        process::part(TEST, 120, || {
            let trees = [FEW, 4 * FEW].map(|count| Tree::new(|at| make(at, count)));
            for (names, step) in cases() {
                for tree in &trees {
                    skip(tree.path(), names, step);
                }
            }
        });
        if !has_valgrind(TEST) {
            return;
        }
        let counts = Scratch::new();
        let file = counts.path().join("out");
        process::run_under(callgrind(&file), TEST);
        let mut calls = 1..;
        for (names, step) in cases() {
            let [few, many] = [(); 2].map(|()| of_call(&file, calls.next().expect("calls without end")).1);
            assert!(many < 6 * few, "{names:?}, step {step}: {few} instructions, {many} for 4 times as many names");
        }
    }
}
