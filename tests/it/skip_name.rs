//! What is said of names, before and after they are lent, has the effect that a model tells. In the order in which they were lent,
//! names are found without a search.

use crate::support::machine::{passed, runs_long};
use crate::support::scan::ORDERS;
use crate::support::tree::{Random, Tree};
use lendir::{Dir, FileType, Listing, Walk};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;

/// Files and directories that alternate in the order of names.
fn make(at: &Path, count: usize) {
    for number in 0..count {
        File::create(at.join(format!("{number:06}f"))).unwrap();
        fs::create_dir(at.join(format!("{number:06}d"))).unwrap();
    }
}

/// What is said of a name; the last word counts.
#[derive(Clone, Copy, PartialEq)]
enum Word {
    Lent,
    Skipped,
    Entered,
    Followed,
}

/// What is said of each name that the walk knows of.
#[derive(Default)]
struct Model {
    words: BTreeMap<Vec<u8>, Word>,
    /// How often a name was entered that no entry can have.
    no_names: usize,
    lent: usize,
    last: Option<Vec<u8>>,
    is_at_end: bool,
    is_listed: bool,
}

fn is_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && !name.contains(&b'/') && !name.contains(&0)
}

impl Model {
    /// A name that comes after something was said of it keeps that.
    fn lend(&mut self, name: &[u8], file_type: FileType) {
        self.lent += 1;
        let is_noted = matches!(file_type, FileType::Directory | FileType::Symlink);
        self.last = is_noted.then(|| name.to_vec());
        if is_noted {
            self.words.entry(name.to_vec()).or_insert(Word::Lent);
        }
    }

    /// What [`Dir::skip_name`] must return.
    fn skip(&mut self, name: &[u8]) -> bool {
        let is_noted = self.words.contains_key(name) || !self.is_at_end && is_name(name);
        if is_noted {
            self.words.insert(name.to_vec(), Word::Skipped);
        }
        is_noted
    }

    fn enter(&mut self, name: &[u8], word: Word) {
        if is_name(name) {
            self.words.insert(name.to_vec(), word);
        } else {
            self.no_names += 1;
        }
    }

    fn end(&mut self) {
        (self.last, self.is_at_end) = (None, true);
    }

    fn follow(&mut self, name: &[u8]) {
        if !(name.ends_with(b"d") && self.words.get(name) == Some(&Word::Lent)) {
            self.enter(name, Word::Followed);
        }
    }

    /// The names that are entered, of these that exist, and how many errors there are.
    fn entered(&self, names: &[Vec<u8>]) -> (Vec<Vec<u8>>, usize) {
        let is_directory = |name: &[u8]| name.ends_with(b"d") && names.iter().any(|other| other == name);
        let is_entered = |name: &&Vec<u8>| match self.words.get(*name) {
            None | Some(Word::Lent | Word::Entered) => is_directory(name),
            Some(Word::Skipped) => false,
            Some(Word::Followed) => !name.ends_with(b"f"),
        };
        let mut entered: Vec<_> = names.iter().filter(is_entered).cloned().collect();
        entered.sort_unstable();
        let is_error = |(name, word): &(&Vec<u8>, &Word)| match word {
            Word::Lent | Word::Skipped => false,
            Word::Entered => !is_directory(name),
            Word::Followed => name.len() > 255,
        };
        (entered, self.no_names + self.words.iter().filter(is_error).count())
    }
}

/// Random calls.
fn any_calls(dir: &mut Dir<'_>, model: &mut Model, (names, there): (&[Vec<u8>], usize), random: &mut Random) {
    let mut listing = Listing::with_order(ORDERS[random.below(ORDERS.len())]);
    for _ in 0..random.below(600) {
        let name = &names[random.below(names.len())];
        match random.below(12) {
            0..5 => match dir.next().unwrap() {
                Some(entry) => model.lend(entry.name(), entry.file_type()),
                None => model.end(),
            },
            // Where the last entry has an end marker, none can come after it. Elsewhere one more call tells.
            _ if !model.is_at_end && model.lent == there => {
                assert!(dir.next().unwrap().is_none());
                model.end();
            }
            5 | 6 if model.is_listed => {}
            5 => {
                dir.skip_entry();
                if let Some(name) = model.last.clone() {
                    assert!(model.skip(&name));
                }
            }
            6 => {
                dir.follow_entry();
                if let Some(name) = model.last.clone() {
                    model.follow(&name);
                }
            }
            7 if random.below(20) == 0 => {
                dir.read_into(&mut listing).unwrap();
                for entry in &listing {
                    model.lend(entry.name(), entry.file_type());
                }
                model.end();
                model.is_listed = true;
            }
            8 => {
                assert!(dir.enter(name));
                model.enter(name, Word::Entered);
            }
            9 => {
                assert!(dir.follow_name(name));
                model.follow(name);
            }
            _ => {
                // A link of which nothing was said may be forgotten.
                let may_be_forgotten = name.ends_with(b"l") && model.words.get(name) == Some(&Word::Lent);
                let (is_noted, expected) = (dir.skip_name(name), model.skip(name));
                assert!(is_noted == expected || may_be_forgotten && model.is_at_end, "{}", name.escape_ascii());
            }
        }
    }
    if random.below(2) == 0 {
        // In the order of the names, or backwards.
        while let Some(entry) = dir.next().unwrap() {
            model.lend(entry.name(), entry.file_type());
        }
        model.end();
        let mut known: Vec<_> = model.words.keys().cloned().collect();
        if random.below(2) == 0 {
            known.reverse();
        }
        known.truncate(random.below(known.len() + 1));
        for name in known {
            assert!(model.skip(&name) && (dir.skip_name(&name) || name.ends_with(b"l")), "{}", name.escape_ascii());
        }
    }
}

#[test]
fn any_calls_enter_what_the_model_enters() {
    const COUNT: usize = 100;
    let (tree, outside) = (Tree::new(|at| make(at, COUNT)), Tree::of(&["below/"]));
    for number in 0..COUNT {
        symlink(outside.path().join("below"), tree.path().join(format!("{number:06}l"))).unwrap();
    }
    let there: Vec<_> =
        fs::read_dir(tree.path()).unwrap().map(|entry| entry.unwrap().file_name().into_encoded_bytes()).collect();
    // Names that are never lent, some of which are prefixes or extensions of others.
    let others = ["", ".", "..", "000000", "000000d/", "000000dd", "zzz", "0", "000001d\0", &"x".repeat(300)];
    let names: Vec<_> = there.iter().cloned().chain(others.map(Vec::from)).collect();
    let mut skipped = 0;
    for seed in 0..if runs_long() { 4000 } else { 200 } {
        for is_post_order in [false, true] {
            let mut random = Random(1 + seed);
            let mut walk = Walk::options().second_visits(is_post_order).open(tree.path()).unwrap();
            let mut model = Model::default();
            any_calls(&mut walk.next().unwrap().unwrap(), &mut model, (&names, there.len()), &mut random);
            skipped += model.words.values().filter(|word| **word == Word::Skipped).count();
            let (mut entered, mut errors) = (Vec::new(), 0);
            while let Some(dir) = walk.next_ok(|_| errors += 1) {
                if dir.depth() > 0 && !dir.is_second_visit() {
                    entered.push(dir.name().to_vec());
                }
            }
            entered.sort_unstable();
            assert_eq!((entered, errors), model.entered(&there), "seed {seed}, post order {is_post_order}");
        }
    }
    assert!(skipped > 5000, "only {skipped} skips");
    passed(
        "walk: `skip_name`, `follow_name`, `enter`",
        skipped,
        "names skipped, among others that are entered, as a model says",
    );
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

    fn skip(tree: &Path, which: Names, step: usize) {
        let mut walk = Walk::open(tree).unwrap();
        let mut dir = walk.next().unwrap().unwrap();
        let mut names = Vec::new();
        match which {
            Names::Before => {
                let all = lendir::read_dir(tree).unwrap().filter_map(|entry| Some(entry.name().to_vec()));
                names.extend(all.map(Result::unwrap));
            }
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
        names.retain(|name| name.ends_with(b"d"));
        measured(&mut dir, step, &names);
    }

    #[inline(never)]
    fn measured(dir: &mut Dir<'_>, step: usize, names: &[Vec<u8>]) {
        for name in names.iter().step_by(step) {
            assert!(black_box(&mut *dir).skip_name(name));
        }
        dir.count().unwrap();
    }

    /// Four times as many if each name is looked at about once, 16 times if each call looks at all names.
    #[test]
    fn grow_with_the_directory_not_with_its_square() {
        const FEW: usize = 80;
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
        let what = "ways: 4 times the names take less than 6 times as many";
        passed("walk: instructions of `skip_name`", cases().count(), what);
    }
}
