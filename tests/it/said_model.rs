//! Whatever is said of names, in whatever order, at a first visit and at second ones, the walk enters what a model says.

use crate::spread::THREADS;
use crate::support::machine::{Watchdog, passed, runs_long};
use crate::support::scan::ORDERS;
use crate::support::tree::{Random, Tree};
use lendir::{Dir, FileType, Listing, Walk};
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

/// What was said at one visit.
#[derive(Default)]
struct Model {
    /// The last word counts.
    words: BTreeMap<Vec<u8>, Word>,
    /// The entry lent last, if the walk notes it.
    last: Option<Vec<u8>>,
    /// Whether only what is named is entered.
    only_named: bool,
    is_listed: bool,
}

impl Model {
    fn lend(&mut self, name: &[u8], file_type: FileType) {
        let is_noted = matches!(file_type, FileType::Directory | FileType::Symlink) && !self.only_named;
        self.last = is_noted.then(|| name.to_vec());
    }

    fn say(&mut self, name: &[u8], word: Word) {
        self.words.insert(name.to_vec(), word);
    }

    fn say_of_last(&mut self, word: Word) {
        if let Some(name) = self.last.clone() {
            self.say(&name, word);
        }
    }

    fn skip_all(&mut self) {
        (self.words, self.last, self.only_named) = (BTreeMap::new(), None, true);
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

    /// Whether the directory is visited again after a second visit.
    fn goes_on(&self) -> bool {
        self.words.values().any(|word| *word != Word::Skipped)
    }
}

fn is_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && !name.contains(&b'/') && !name.contains(&0)
}

/// Up to this many random calls.
fn any_calls<S>(dir: &mut Dir<'_, S>, most: usize, names: &[Vec<u8>], random: &mut Random) -> Model {
    let mut model = Model { only_named: dir.is_second_visit(), ..Model::default() };
    let mut listing = Listing::with_order(ORDERS[random.below(ORDERS.len())]);
    for _ in 0..random.below(most) {
        let name = &names[random.below(names.len())];
        match random.below(12) {
            0..5 => match dir.next().unwrap() {
                Some(entry) => model.lend(entry.name(), entry.d_type()),
                None => model.last = None,
            },
            5 | 6 if model.is_listed => {}
            5 => {
                dir.skip_entry();
                model.say_of_last(Word::Skipped);
            }
            6 => {
                dir.follow_entry();
                model.say_of_last(Word::Followed);
            }
            7 => match random.below(60) {
                0 => {
                    dir.skip_all();
                    model.skip_all();
                }
                1..4 => {
                    dir.read_into(&mut listing).unwrap();
                    model.is_listed = true;
                }
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

/// The root is visited until nothing is entered. Its state is the number of the visit, which what is entered there gets.
#[test]
fn any_calls_enter_what_the_model_enters() {
    let _watchdog = Watchdog::new(300);
    let (outside, mut visits) = (Tree::of(&["below/"]), 0);
    for count in [2, 60] {
        let tree = Tree::new(|at| make(at, count, &outside.path().join("below")));
        let there: Vec<_> =
            fs::read_dir(tree.path()).unwrap().map(|entry| entry.unwrap().file_name().into_encoded_bytes()).collect();
        // Names that are never lent, some of which are prefixes or extensions of others.
        let others = ["", ".", "..", "000", "000d/", "000dd", "zzz", "0", "001d\0", "a\0b", "a\\0b", &"x".repeat(300)];
        let names: Vec<_> = there.iter().cloned().chain(others.map(Vec::from)).collect();
        for seed in 0..if runs_long() { 4000 } else { 60 } {
            for (threads, second_visits) in THREADS.map(|threads| (threads, true)).into_iter().chain([(1, false)]) {
                let what = format!("{count}, seed {seed}, {threads} threads, second visits {second_visits}");
                let options = Walk::options().max_open(4).second_visits(second_visits);
                let walk = options.with_state(0).open(tree.path()).unwrap();
                // What was said at each visit of the root, and what was then entered, with the visit that it belongs to.
                let said = Mutex::new(Vec::<Model>::new());
                let (entered, errors) = (Mutex::new(Vec::<(usize, Vec<u8>)>::new()), Mutex::new(0));
                let check = |round: usize| {
                    let (said, mut entered) = (said.lock().unwrap(), entered.lock().unwrap());
                    let mut names: Vec<_> = entered.drain(..).collect();
                    names.sort();
                    let (expected, failed) = said.last().unwrap().entered(&there);
                    assert!(
                        names.into_iter().eq(expected.into_iter().map(|name| (round, name))),
                        "{what}, visit {round}"
                    );
                    assert_eq!(std::mem::take(&mut *errors.lock().unwrap()), failed, "{what}, visit {round}");
                };
                let random = Mutex::new(Random(1 + seed));
                walk.spread(threads, |worker| {
                    while let Some(mut dir) = worker.next_ok(|_| *errors.lock().unwrap() += 1) {
                        let round = *dir.state();
                        if dir.depth() > 0 {
                            if !dir.is_second_visit() {
                                entered.lock().unwrap().push((round, dir.name().to_vec()));
                            }
                            continue;
                        }
                        assert_eq!(dir.is_second_visit(), round > 0, "{what}");
                        if round > 0 {
                            check(round);
                        }
                        *dir.state_mut() = round + 1;
                        let most = [600, 1, 2, 4, 30, 300][(round + usize::try_from(seed).unwrap()) % 6];
                        let model = any_calls(&mut dir, most, &names, &mut random.lock().unwrap());
                        let mut said = said.lock().unwrap();
                        assert!(round < 2 || said[round - 1].goes_on(), "{what}: visit {round}");
                        said.push(model);
                    }
                });
                let rounds = said.lock().unwrap().len();
                visits += rounds;
                if second_visits {
                    assert!(rounds > 1 && !said.lock().unwrap().last().unwrap().goes_on(), "{what}: {rounds} visits");
                } else {
                    check(1);
                }
            }
        }
    }
    passed("walk: `skip_name`, `follow_name`, `enter`", visits, "visits after any calls, as a model says");
}
