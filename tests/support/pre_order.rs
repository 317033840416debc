//! What a [`Walk`] lends, and what it must lend according to `std::fs`: one model for all tests.

use super::scan::{Found, sorted, type_by_std};
use super::tree::Random;
use super::visits::{Visit, What, is_entered};
use lendir::{FileType, Order, Walk, WalkEntry, WalkOptions};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// One answer of [`Walk::next`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub path: PathBuf,
    pub depth: usize,
    /// Whether it is the last entry of its directory, or the number of the error.
    pub what: Result<bool, i32>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    SkipBelow,
    SkipRest,
    Follow,
    /// No word: a question.
    Stat,
}

/// What a caller says of each entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    Nothing,
    Follow,
    /// Up to three random words, which depend only on this seed and the path.
    Any(u64),
}

/// A way to read a tree.
#[derive(Clone, Copy, Debug)]
pub struct PreOrder {
    pub order: Order,
    pub max_depth: usize,
    pub max_open: usize,
    pub read_ahead: usize,
    pub says: Says,
}

pub const PRE_ORDER: PreOrder = PreOrder {
    order: Order::Unsorted,
    max_depth: usize::MAX,
    max_open: 32,
    read_ahead: 0,
    says: Says::Nothing,
};

impl PreOrder {
    fn words(&self, path: &Path) -> Vec<Word> {
        match self.says {
            Says::Nothing => vec![],
            Says::Follow => vec![Word::Follow],
            Says::Any(seed) => {
                let mut random = Random::of(&(seed, path));
                let count = random.below(8).saturating_sub(4);
                (0..count)
                    .map(|_| {
                        [Word::SkipBelow, Word::SkipRest, Word::Follow, Word::Stat][random.below(4)]
                    })
                    .collect()
            }
        }
    }

    pub fn say(&self, entry: &WalkEntry<'_>) {
        for word in self.words(entry.path()) {
            match word {
                Word::SkipBelow => entry.skip_subtree(),
                Word::SkipRest => entry.skip_rest_of_dir(),
                Word::Follow => entry.follow(),
                Word::Stat => drop(entry.stat().unwrap()),
            }
        }
    }

    pub fn options(&self) -> WalkOptions {
        let options = Walk::options().max_depth(self.max_depth).max_open(self.max_open);
        options.order(self.order).read_ahead(self.read_ahead)
    }

    pub fn begin(&self, root: impl AsRef<Path>) -> Walk {
        self.options().open(root).unwrap()
    }

    pub fn read(&self, root: impl AsRef<Path>) -> Vec<Answer> {
        self.all(&mut self.begin(root))
    }

    /// All that is left.
    pub fn all(&self, tree: &mut Walk) -> Vec<Answer> {
        let mut answers = Vec::new();
        while let Some(answer) = next(tree, |entry| self.say(entry)) {
            answers.push(answer);
            assert!(answers.len() < 1_000_000, "answers without end");
        }
        assert!(tree.next().unwrap().is_none(), "the tree goes on after its end");
        answers
    }

    /// What must come: a recursion over `std::fs::read_dir`.
    pub fn by_std(&self, root: impl AsRef<Path>) -> Vec<Answer> {
        let mut answers = Vec::new();
        if self.max_depth > 0 {
            self.below(root.as_ref(), 0, &mut answers);
        }
        answers
    }

    fn below(&self, dir: &Path, depth: usize, answers: &mut Vec<Answer>) {
        let entries = match fs::read_dir(dir) {
            Ok(entries) => entries.map(Result::unwrap),
            Err(error) => {
                return answers.push(answer(dir, depth, Err(error.raw_os_error().unwrap())));
            }
        };
        let found =
            entries.map(|entry| Found { file_type: type_by_std(&entry), ..Found::by_std(&entry) });
        let found = sorted(found.collect(), self.order);
        for (at, Found { name, file_type, .. }) in found.iter().enumerate() {
            let (path, depth) = (dir.join(OsStr::from_bytes(name)), depth + 1);
            answers.push(answer(&path, depth, Ok(at + 1 == found.len())));
            let is_to_enter = match self.words(&path).into_iter().rfind(|word| *word != Word::Stat)
            {
                Some(Word::SkipRest) => break,
                Some(Word::SkipBelow) => false,
                Some(Word::Follow) => matches!(file_type, FileType::Directory | FileType::Symlink),
                _ => *file_type == FileType::Directory,
            };
            if is_to_enter && depth < self.max_depth {
                // Below a followed link a directory can be a loop, too.
                match if self.says == Says::Nothing {
                    Ok(true)
                } else {
                    is_entered(&path, depth - 1)
                } {
                    Ok(true) => self.below(&path, depth, answers),
                    Ok(false) => {}
                    Err(errno) => answers.push(answer(&path, depth, Err(errno))),
                }
            }
        }
    }
}

fn answer(path: &Path, depth: usize, what: Result<bool, i32>) -> Answer {
    Answer { path: path.into(), depth, what }
}

/// The next answer, after `say` of its entry, which is checked.
pub fn next(tree: &mut Walk, say: impl FnOnce(&WalkEntry<'_>)) -> Option<Answer> {
    match tree.next() {
        Ok(None) => None,
        Err(error) => match Visit::from(&error) {
            Visit { path, depth, what: What::Error(errno) } => {
                Some(answer(&path, depth, Err(errno)))
            }
            visit => panic!("BUG: {visit:?} is no error"),
        },
        Ok(Some(entry)) => {
            assert!(
                entry.path().as_os_str().as_bytes().ends_with(entry.name_cstr().to_bytes()),
                "{entry:?}"
            );
            assert!(entry.path().ends_with(entry.relative_path()), "{entry:?}");
            assert_eq!(entry.relative_path().iter().count(), entry.depth(), "{entry:?}");
            say(&entry);
            Some(answer(entry.path(), entry.depth(), Ok(entry.is_last())))
        }
    }
}

/// The errors, after a check of what holds in any trouble: entries come in the order of `all`, nothing comes twice, an error comes
/// right after what was read of its directory and what is below, and, unless `may_be_silent`, all that is missing is below one.
pub fn errors_between(
    answers: &[Answer],
    all: &[Answer],
    may_be_silent: bool,
    what: &str,
) -> Vec<(PathBuf, i32)> {
    let mut expected = all.iter().map(|answer| &answer.path);
    let (mut come, mut errors) = (HashSet::new(), Vec::new());
    for (at, Answer { path, depth, what: answer }) in answers.iter().enumerate() {
        let Err(errno) = answer else {
            assert!(
                expected.any(|next| next == path),
                "{what}: {} comes twice or astray",
                path.display()
            );
            come.insert(path);
            continue;
        };
        let is_right_after = *depth == 0 || at > 0 && answers[at - 1].path.starts_with(path);
        let is_below = |answer: &Answer| answer.path.starts_with(path) && answer.path != *path;
        let is_between =
            answers[..at].iter().any(is_below) && answers[at + 1..].iter().any(is_below);
        assert!(
            is_right_after && !is_between,
            "{what}: the error of {} is not in its place",
            path.display()
        );
        errors.push((path.clone(), *errno));
    }
    let is_told = |path: &Path| {
        path.ancestors().skip(1).any(|dir| errors.iter().any(|(path, _)| path == dir))
    };
    let silent =
        all.iter().map(|answer| &answer.path).find(|path| !come.contains(path) && !is_told(path));
    assert!(
        may_be_silent || silent.is_none(),
        "{what}: {silent:?} is lost without an error: {errors:?}"
    );
    errors
}
