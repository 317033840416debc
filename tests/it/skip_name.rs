//! `Dir::skip_name` skips what a model skips. In the order in which they were lent, names are found without a search.

use crate::support::machine::{passed, runs_long};
use crate::support::scan::ORDERS;
use crate::support::tree::{Random, Tree};
use lendir::{Dir, FileType, Listing, Walk};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::mem;
use std::path::Path;

/// Files and directories that alternate in the order of names.
fn make(at: &Path, count: usize) {
    for number in 0..count {
        File::create(at.join(format!("{number:06}f"))).unwrap();
        fs::create_dir(at.join(format!("{number:06}d"))).unwrap();
    }
}

/// For each known name: whether the walk would go below it.
#[derive(Default)]
struct Model(BTreeMap<Vec<u8>, bool>);

impl Model {
    /// A name that is read again stays skipped.
    fn lend(&mut self, name: &[u8], file_type: FileType) {
        self.0.entry(name.to_vec()).or_insert(file_type == FileType::Directory);
    }

    /// What [`Dir::skip_name`] must return.
    fn skip(&mut self, name: &[u8]) -> bool {
        self.0.get_mut(name).is_some_and(mem::take)
    }

    fn entered(&self) -> Vec<Vec<u8>> {
        self.0.iter().filter(|(_, is_entered)| **is_entered).map(|(name, _)| name.clone()).collect()
    }
}

/// Random calls. Returns how many skips had an effect.
fn any_calls(dir: &mut Dir<'_>, model: &mut Model, names: &[Vec<u8>], random: &mut Random) -> usize {
    let mut listing = Listing::with_order(ORDERS[random.below(ORDERS.len())]);
    let mut skipped = 0;
    let mut last = None;
    for _ in 0..random.below(600) {
        match random.below(10) {
            0..5 => {
                last = dir.next().unwrap().map(|entry| {
                    model.lend(entry.name(), entry.file_type());
                    entry.name().to_vec()
                });
            }
            5 => {
                dir.skip_entry();
                if let Some(name) = &last {
                    skipped += usize::from(model.skip(name));
                }
            }
            6 if random.below(20) == 0 => {
                last = None;
                dir.read_into(&mut listing).unwrap();
                for entry in &listing {
                    model.lend(entry.name(), entry.file_type());
                }
            }
            _ => {
                let name = &names[random.below(names.len())];
                let expected = model.skip(name);
                assert_eq!(dir.skip_name(name), expected, "{}", name.escape_ascii());
                skipped += usize::from(expected);
            }
        }
    }
    if random.below(2) == 0 {
        // In the order of the names, or backwards.
        while let Some(entry) = dir.next().unwrap() {
            model.lend(entry.name(), entry.file_type());
        }
        let mut known: Vec<_> = model.0.keys().cloned().collect();
        if random.below(2) == 0 {
            known.reverse();
        }
        known.truncate(random.below(known.len() + 1));
        for name in known {
            let expected = model.skip(&name);
            assert_eq!(dir.skip_name(&name), expected, "{}", name.escape_ascii());
            skipped += usize::from(expected);
        }
    }
    skipped
}

#[test]
fn any_calls_skip_what_the_model_skips() {
    const COUNT: usize = 100;
    let tree = Tree::new(|at| make(at, COUNT));
    let mut names: Vec<_> =
        fs::read_dir(tree.path()).unwrap().map(|entry| entry.unwrap().file_name().into_encoded_bytes()).collect();
    // Names that are never lent, some of which are prefixes or extensions of others.
    for name in ["", ".", "..", "000000", "000000d/", "000000dd", "zzz", "0"] {
        names.push(name.into());
    }
    names.push(vec![b'x'; 300]);
    names.push(b"000001d\0".to_vec());
    let mut skipped = 0;
    for seed in 0..if runs_long() { 400 } else { 80 } {
        for is_post_order in [false, true] {
            let mut random = Random(seed);
            let mut walk = Walk::options().second_visits(is_post_order).open(tree.path()).unwrap();
            let mut model = Model::default();
            skipped += any_calls(&mut walk.next().unwrap().unwrap(), &mut model, &names, &mut random);

            // What was not lent is not skipped.
            for name in fs::read_dir(tree.path()).unwrap().map(|entry| entry.unwrap().file_name()) {
                let name = name.into_encoded_bytes();
                let is_directory = name.ends_with(b"d");
                model.0.entry(name).or_insert(is_directory);
            }
            let mut entered = Vec::new();
            while let Some(dir) = walk.next().unwrap() {
                if dir.depth() > 0 && !dir.is_second_visit() {
                    entered.push(dir.name().to_vec());
                }
            }
            entered.sort_unstable();
            assert_eq!(entered, model.entered(), "seed {seed}, post order {is_post_order}");
        }
    }
    assert!(skipped > 5000, "only {skipped} skips");
    passed("walk: `skip_name`", skipped, "names skipped, as a model says");
}

/// Which directories a loop hands to `skip_name`: every one, every second one, and so on.
const STEPS: [usize; 3] = [1, 2, 7];

/// Counts instructions, because the skips make no system calls.
mod instructions {
    use super::{STEPS, make};
    use crate::instructions::{callgrind, has_valgrind, of_call};
    use crate::support::machine::passed;
    use crate::support::process;
    use crate::support::scratch::Scratch;
    use crate::support::tree::Tree;
    use lendir::{Dir, Listing, Order, Walk};
    use std::hint::black_box;
    use std::path::Path;

    const TEST: &str = "skip_name::instructions::grow_with_the_directory_not_with_its_square";

    /// The names are those of a listing, or, without an `Order`, come as they are lent.
    fn cases() -> impl Iterator<Item = (Option<Order>, usize)> {
        let orders = [None, Some(Order::Bytes), Some(Order::Inode)];
        orders.into_iter().flat_map(|order| STEPS.map(|step| (order, step)))
    }

    fn skip(tree: &Path, order: Option<Order>, step: usize) {
        let mut walk = Walk::open(tree).unwrap();
        let mut dir = walk.next().unwrap().unwrap();
        let mut names = Vec::new();
        if let Some(order) = order {
            let mut listing = Listing::with_order(order);
            dir.read_into(&mut listing).unwrap();
            names.extend(listing.iter().map(|entry| entry.name().to_vec()));
        } else {
            while let Some(entry) = dir.next().unwrap() {
                names.push(entry.name().to_vec());
            }
        }
        names.retain(|name| name.ends_with(b"d"));
        measured(&mut dir, step, &names);
    }

    #[inline(never)]
    fn measured(dir: &mut Dir<'_>, step: usize, names: &[Vec<u8>]) {
        for name in names.iter().step_by(step) {
            assert!(black_box(&mut *dir).skip_name(name));
        }
    }

    /// Four times as many if each name is looked at about once, 16 times if each call looks at all names.
    #[test]
    fn grow_with_the_directory_not_with_its_square() {
        const FEW: usize = 80;
        process::part(TEST, 120, || {
            let trees = [FEW, 4 * FEW].map(|count| Tree::new(|at| make(at, count)));
            for (order, step) in cases() {
                for tree in &trees {
                    skip(tree.path(), order, step);
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
        for (order, step) in cases() {
            let [few, many] = [(); 2].map(|()| of_call(&file, calls.next().expect("calls without end")).1);
            assert!(many < 6 * few, "{order:?}, step {step}: {few} instructions, {many} for 4 times as many names");
        }
        let what = "ways: 4 times the names take less than 6 times as many";
        passed("walk: instructions of `skip_name`", cases().count(), what);
    }
}
