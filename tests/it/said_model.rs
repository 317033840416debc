//! Whatever is said of names, in whatever order, the walk enters what a model says.

use crate::spread::THREADS;
use crate::support::machine::{Watchdog, runs_long};
use crate::support::scan::ORDERS;
use crate::support::tree::{Random, Tree};
use lendir::{Dir, Entry, FileType, Listing, StatxFlags, Walk};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Mutex;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Word {
    Skipped,
    Entered,
    Followed,
}

/// What was said.
#[derive(Default)]
struct Model {
    /// The last word counts.
    words: BTreeMap<Vec<u8>, Word>,
    /// Whether only what is named is entered.
    only_named: bool,
}

impl Model {
    /// Up to three random calls about an entry. It is a directory, a link or a file, and its record says so.
    fn about(&mut self, entry: &Entry<'_>, random: &mut Random) {
        let is_noted = entry.d_type() != FileType::RegularFile && !self.only_named;
        for _ in 0..random.below(4) {
            let word = match random.below(4) {
                0 => {
                    entry.skip_below();
                    Word::Skipped
                }
                1 => {
                    entry.follow();
                    Word::Followed
                }
                2 => {
                    entry.stat().unwrap();
                    continue;
                }
                _ => {
                    entry.statx(StatxFlags::TYPE).unwrap();
                    continue;
                }
            };
            if is_noted {
                self.say(entry.name(), word);
            }
        }
    }

    fn say(&mut self, name: &[u8], word: Word) {
        self.words.insert(name.to_vec(), word);
    }

    fn skip_all(&mut self) {
        (self.words, self.only_named) = (BTreeMap::new(), true);
    }

    /// The names that are entered, sorted, of these that exist, and how many errors there are.
    fn entered(&self, there: &[Vec<u8>]) -> (Vec<Vec<u8>>, usize) {
        let is_entered = |name: &&Vec<u8>| match self.words.get(*name) {
            Some(Word::Skipped) => false,
            Some(Word::Entered) => name.ends_with(b"d"),
            Some(Word::Followed) => !name.ends_with(b"f"),
            None => !self.only_named && name.ends_with(b"d"),
        };
        let mut entered: Vec<_> = there.iter().filter(is_entered).cloned().collect();
        entered.sort_unstable();
        let is_error = |(name, word): &(&Vec<u8>, &Word)| match word {
            Word::Skipped => false,
            Word::Entered => !entered.contains(name),
            Word::Followed => !is_name(name) || name.len() > 255,
        };
        (entered.clone(), self.words.iter().filter(is_error).count())
    }
}

fn is_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && !name.contains(&b'/') && !name.contains(&0)
}

/// Up to this many random calls.
fn any_calls<S>(dir: &mut Dir<'_, S>, most: usize, names: &[Vec<u8>], random: &mut Random) -> Model {
    let mut model = Model::default();
    let mut listing = Listing::with_order(ORDERS[random.below(ORDERS.len())]);
    for _ in 0..random.below(most) {
        let name = &names[random.below(names.len())];
        match random.below(12) {
            0..5 => {
                if let Some(entry) = dir.next().unwrap() {
                    model.about(&entry, random);
                }
            }
            7 => match random.below(60) {
                0 => {
                    dir.skip_all();
                    model.skip_all();
                }
                1..4 => (0..=random.below(3)).for_each(|_| dir.read_into(&mut listing).unwrap()),
                4..7 => {
                    let wanted = |entry: &Entry<'_>| {
                        model.about(entry, random);
                        entry.name() == name
                    };
                    dir.find(wanted).unwrap();
                }
                7 => drop(dir.count().unwrap()),
                _ => {}
            },
            8 => {
                assert!(dir.enter(name));
                model.say(name, Word::Entered);
            }
            9 => {
                assert!(dir.follow_name(name));
                model.say(name, Word::Followed);
            }
            _ => {
                dir.skip_name(name);
                model.say(name, Word::Skipped);
            }
        }
    }
    model
}

/// A directory, a file and a link of each number.
fn make(at: &Path, count: usize, target: &Path) {
    for number in 0..count {
        fs::create_dir(at.join(format!("{number:03}d"))).unwrap();
        File::create(at.join(format!("{number:03}f"))).unwrap();
        symlink(target, at.join(format!("{number:03}l"))).unwrap();
    }
}

#[test]
fn any_calls_enter_what_the_model_enters() {
    let _watchdog = Watchdog::new(300);
    let outside = Tree::of(&["below/"]);
    for count in [2, 60] {
        let tree = Tree::new(|at| make(at, count, &outside.path().join("below")));
        let there: Vec<_> =
            fs::read_dir(tree.path()).unwrap().map(|entry| entry.unwrap().file_name().into_encoded_bytes()).collect();
        // Names that are never lent, some of which are prefixes or extensions of others.
        let others =
            ["", ".", "..", "000", "000d/", "000dd", "zzz", "0", "001d\0", "001\0d", "a\\0b", &"x".repeat(300)];
        let names: Vec<_> = there.iter().cloned().chain(others.map(Vec::from)).collect();
        for seed in 0..if runs_long() { 4000 } else { 60 } {
            for (threads, second_visits) in THREADS.map(|threads| (threads, true)).into_iter().chain([(1, false)]) {
                let walk = Walk::options().max_open(4).second_visits(second_visits).open(tree.path()).unwrap();
                let (model, entered, errors) = (Mutex::default(), Mutex::new(Vec::new()), Mutex::new(0));
                let _ = walk.spread(threads, |worker| {
                    while let Some(mut dir) = worker.next_ok(|_| *errors.lock().unwrap() += 1) {
                        if dir.is_second_visit() {
                            assert!(!dir.enter("000d") && !dir.follow_name("000l"));
                        } else if dir.depth() > 0 {
                            entered.lock().unwrap().push(dir.name().to_vec());
                        } else {
                            let mut random = Random(1 + seed);
                            let most = [600, 1, 2, 4, 30, 300][random.below(6)];
                            *model.lock().unwrap() = any_calls(&mut dir, most, &names, &mut random);
                        }
                    }
                });
                let mut entered = entered.into_inner().unwrap();
                entered.sort();
                let expected = model.into_inner().unwrap().entered(&there);
                let what = format!("{count}, seed {seed}, {threads} threads, second visits {second_visits}");
                assert_eq!((entered, errors.into_inner().unwrap()), expected, "{what}");
            }
        }
    }
}
