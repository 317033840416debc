//! What a [`ReadTree`] lends, and what it must lend according to `std::fs`: one model for all tests.

use super::scan::{Found, sorted, type_by_std};
use super::tree::Random;
use super::visits::{Visit, What, is_entered};
use lendir::{Error, FileType, Order, ReadTree, TreeEntry, Walk, WalkOptions};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// One answer of [`ReadTree::next`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub path: PathBuf,
    pub depth: usize,
    /// Whether it is the last entry of its directory, or the number of the error.
    pub what: Result<bool, i32>,
}

/// What a caller says of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    SkipBelow,
    SkipRest,
    Follow,
}

impl Word {
    pub fn say(self, entry: &TreeEntry<'_>) {
        match self {
            Self::SkipBelow => entry.skip_below(),
            Self::SkipRest => entry.skip_rest(),
            Self::Follow => entry.follow(),
        }
    }
}

/// A way to read a tree, and what its caller says.
#[derive(Clone, Copy, Debug)]
pub struct PreOrder {
    pub order: Order,
    pub max_depth: usize,
    pub max_open: usize,
    /// Whether it follows everything.
    pub follows: bool,
    /// For [`words`](Self::words).
    pub seed: Option<u64>,
}

pub const PRE_ORDER: PreOrder =
    PreOrder { order: Order::Unsorted, max_depth: usize::MAX, max_open: 32, follows: false, seed: None };

impl PreOrder {
    /// One after another, of the entry at `path`.
    pub fn words(&self, path: &Path) -> Vec<Word> {
        let mut random = self.seed.map(|seed| Random::of(&(seed, path)));
        let mut word =
            |_| [Word::SkipBelow, Word::SkipRest, Word::Follow][random.as_mut().map_or(2, |random| random.below(3))];
        let count =
            self.seed.map_or(usize::from(self.follows), |seed| Random::of(&(path, seed)).below(8).saturating_sub(4));
        (0..count).map(&mut word).collect()
    }

    /// Sort the tree that they read by [`order`](Self::order).
    pub fn options(&self) -> WalkOptions {
        Walk::options().max_depth(self.max_depth).max_open(self.max_open)
    }

    pub fn read(&self, root: impl AsRef<Path>) -> Vec<Answer> {
        self.all(&mut self.options().read_tree(root).unwrap().with_order(self.order))
    }

    /// All that is left.
    pub fn all(&self, tree: &mut ReadTree) -> Vec<Answer> {
        let mut answers = Vec::new();
        while let Some(answer) = next(tree, |entry| self.words(entry.path()).iter().for_each(|word| word.say(entry))) {
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
            Err(error) => return answers.push(Answer::error(dir, depth, error.raw_os_error().unwrap())),
        };
        let found = entries.map(|entry| Found { file_type: type_by_std(&entry), ..Found::by_std(&entry) });
        let found = sorted(found.collect(), self.order);
        for (at, Found { name, file_type, .. }) in found.iter().enumerate() {
            let (path, depth) = (dir.join(OsStr::from_bytes(name)), depth + 1);
            answers.push(Answer { path: path.clone(), depth, what: Ok(at + 1 == found.len()) });
            let (word, is_followed) = match self.words(&path).pop() {
                Some(Word::SkipRest) => break,
                word => (word, word == Some(Word::Follow) && *file_type == FileType::Symlink),
            };
            let may_be_entered = *file_type == FileType::Directory || is_followed;
            if word == Some(Word::SkipBelow) || depth >= self.max_depth || !may_be_entered {
                continue;
            }
            // Below a followed link a directory can be a loop, too.
            let follows_any = self.follows || self.seed.is_some();
            match if follows_any { is_entered(&path, depth - 1) } else { Ok(true) } {
                Ok(true) => self.below(&path, depth, answers),
                Ok(false) => {}
                Err(errno) => answers.push(Answer::error(&path, depth, errno)),
            }
        }
    }
}

/// The next answer, after `say` of its entry, which is checked.
pub fn next(tree: &mut ReadTree, say: impl FnOnce(&TreeEntry<'_>)) -> Option<Answer> {
    match tree.next() {
        Ok(None) => None,
        Err(error) => Some(Answer::from(&error)),
        Ok(Some(entry)) => {
            assert!(entry.path().as_os_str().as_bytes().ends_with(entry.name()), "{entry:?}");
            assert!(entry.path().ends_with(entry.relative_path()), "{entry:?}");
            assert_eq!(entry.relative_path().iter().count(), entry.depth(), "{entry:?}");
            assert_eq!(entry.name_cstr().to_bytes(), entry.name());
            let answer = Answer { path: entry.path().into(), depth: entry.depth(), what: Ok(entry.is_last()) };
            say(&entry);
            Some(answer)
        }
    }
}

impl Answer {
    pub fn error(path: &Path, depth: usize, errno: i32) -> Self {
        Self { path: path.into(), depth, what: Err(errno) }
    }

    /// As bytes: `Path` compares name by name, so `d/` would be `d`.
    pub fn bytes(&self) -> &[u8] {
        self.path.as_os_str().as_bytes()
    }

    /// Whether it belongs to the directory at `dir`, or is below it.
    fn is_at(&self, dir: &Self) -> bool {
        let rest = self.bytes().strip_prefix(dir.bytes());
        rest.is_some_and(|rest| dir.bytes().is_empty() || rest.is_empty() || rest[0] == b'/')
    }
}

impl From<&Error> for Answer {
    fn from(error: &Error) -> Self {
        let Visit { path, depth, what } = Visit::from(error);
        let What::Error(errno) = what else { panic!("BUG: an error is none") };
        Self { path, depth, what: Err(errno) }
    }
}

/// All answers, as a set.
pub fn as_set(mut answers: Vec<Answer>) -> Vec<Answer> {
    answers.sort_by(|a, b| (a.bytes(), a.what.is_err()).cmp(&(b.bytes(), b.what.is_err())));
    answers
}

/// The errors, after a check of what holds in any trouble: entries come in the order of `all`, nothing comes twice, each error is
/// the first of its directory and comes right after what was read of it and below, and, unless `may_be_silent`, all that is
/// missing is below one.
pub fn errors_between(answers: &[Answer], all: &[Answer], may_be_silent: bool, what: &str) -> Vec<(PathBuf, i32)> {
    let errors: Vec<_> = answers.iter().filter(|answer| answer.what.is_err()).collect();
    let entries: Vec<_> = answers.iter().filter(|answer| answer.what.is_ok()).map(Answer::bytes).collect();
    let mut expected = all.iter().map(Answer::bytes);
    for entry in &entries {
        assert!(expected.any(|path| path == *entry), "{what}: {} comes twice or astray", entry.escape_ascii());
    }
    let come: HashSet<_> = entries.into_iter().collect();
    let silent = all
        .iter()
        .filter(|answer| !come.contains(answer.bytes()))
        .find(|answer| !errors.iter().any(|error| answer.is_at(error) && answer.bytes() != error.bytes()));
    assert!(may_be_silent || silent.is_none(), "{what}: {silent:?} is lost without an error: {errors:?}");
    for (at, error) in answers.iter().enumerate().filter(|(_, answer)| answer.what.is_err()) {
        assert!(errors.iter().filter(|other| other.path == error.path).count() == 1, "{what}: {error:?} comes twice");
        let is_right_after = error.depth == 0 || at.checked_sub(1).is_some_and(|at| answers[at].is_at(error));
        assert!(is_right_after, "{what}: {error:?} comes before what is in it, or too late");
        let later = answers[at + 1..].iter().find(|answer| answer.is_at(error));
        assert!(later.is_none(), "{what}: after {error:?} comes {later:?}");
    }
    errors.into_iter().map(|error| (error.path.clone(), error.what.unwrap_err())).collect()
}
