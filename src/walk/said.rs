//! `Said`: what the caller says of names in the current directory, until that is settled.

use super::pending::Kind;

/// A word for each call, in the order in which they came. [`sort`](Self::sort) keeps the one that counts for each name.
#[derive(Default)]
pub(super) struct Said {
    words: Vec<Word>,
    /// The names of all words, each with a NUL, so no two begin at the same place.
    names: Vec<u8>,
}

struct Word {
    start: usize,
    end: usize,
    /// `SKIPPED`, `ENTERED` or `ANY`; of an entry that was lent, what it has become.
    kind: Kind,
    /// Whether the caller said it. Otherwise it is the kind of an entry that was lent and comes again, which counts less.
    is_by_name: bool,
    /// Whether an entry of this name is pending.
    is_pending: bool,
}

impl Said {
    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.words.clear();
        self.names.clear();
    }

    pub(super) fn push(&mut self, kind: Kind, name: &[u8], is_by_name: bool) {
        let start = self.names.len();
        self.names.extend_from_slice(name);
        self.words.push(Word { start, end: self.names.len(), kind, is_by_name, is_pending: false });
        self.names.push(0);
    }

    /// Sorts the words by name, and of each name keeps the one that counts: the last that is by name. Without one it is the first:
    /// after a listing, nothing is said of an entry any more.
    pub(super) fn sort(&mut self) {
        let Self { words, names } = self;
        let name = |word: &Word| &names[word.start..word.end];
        let counts = |a: &Word, b: &Word| match (a.is_by_name, b.is_by_name) {
            (true, true) => b.start.cmp(&a.start),
            (false, false) => a.start.cmp(&b.start),
            (a, b) => b.cmp(&a),
        };
        words.sort_unstable_by(|a, b| name(a).cmp(name(b)).then_with(|| counts(a, b)));
        words.dedup_by(|next, word| name(next) == name(word));
    }

    /// What becomes of a pending item of this name. The words are sorted.
    pub(super) fn apply(&mut self, kind: Kind, name: &[u8]) -> Kind {
        let Self { words, names } = self;
        let Ok(found) = words.binary_search_by(|word| names[word.start..word.end].cmp(name)) else { return kind };
        words[found].is_pending = true;
        kind.said(words[found].kind)
    }

    /// The names of which no entry is pending, in the order in which they were said.
    pub(super) fn not_pending(&mut self) -> impl Iterator<Item = (Kind, &[u8])> {
        self.words.retain(|word| !word.is_pending);
        self.words.sort_unstable_by_key(|word| word.start);
        self.words.iter().map(|word| (word.kind, &self.names[word.start..word.end]))
    }
}
