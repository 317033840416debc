//! `Said`: what the caller says of names in the current directory, and, where it is read again, the names that were lent before.
//! When the walk goes on, [`Notes`](super::notes::Notes) settles by it which names are entered.

use super::pending::Kind;

/// A word is what the caller said of a name, or the name of an entry that was lent before the directory is read again. Words come
/// in the order of the calls; [`sort`](Self::sort) keeps, for each name, the one that counts.
#[derive(Default)]
pub(super) struct Said {
    words: Vec<Word>,
    /// The names of all words, each with a NUL, so no two begin at the same place.
    names: Vec<u8>,
    /// How many entries were kept.
    kept: usize,
}

/// What the caller said of a name, or that an entry of this name was lent and may not come again.
struct Word {
    start: usize,
    end: usize,
    /// `SKIPPED`, `ENTERED` or `ANY`; without a word of the caller's, the kind of the entry.
    kind: Kind,
    is_callers: bool,
    /// Which of the entries that were kept has this name.
    entry: Option<usize>,
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
        self.kept = 0;
    }

    /// The caller says something.
    pub(super) fn push(&mut self, kind: Kind, name: &[u8]) {
        self.push_word(kind, name, true, None);
    }

    /// Keeps the name of an entry that was lent. The words before `sorted` are sorted: of those, none is repeated, however often
    /// entries are kept.
    pub(super) fn keep(&mut self, sorted: usize, kind: Kind, name: &[u8]) {
        let entry = Some(self.kept);
        self.kept += 1;
        match self.find(sorted, name) {
            Some(found) => self.words[found].entry = self.words[found].entry.or(entry),
            None => self.push_word(kind, name, false, entry),
        }
    }

    fn push_word(&mut self, kind: Kind, name: &[u8], is_callers: bool, entry: Option<usize>) {
        let start = self.names.len();
        self.names.extend_from_slice(name);
        self.words.push(Word { start, end: self.names.len(), kind, is_callers, entry, is_pending: false });
        self.names.push(0);
    }

    /// Sorts the words by name, and of each name keeps the one that counts: the caller's last or, without one, the first entry's,
    /// because after a listing nothing is said of an entry any more. Returns how many are left.
    pub(super) fn sort(&mut self) -> usize {
        let Self { words, names, .. } = self;
        let name = |word: &Word| &names[word.start..word.end];
        let by_place = |a: &Word, b: &Word| if a.is_callers { b.start.cmp(&a.start) } else { a.start.cmp(&b.start) };
        let counts = |a: &Word, b: &Word| b.is_callers.cmp(&a.is_callers).then_with(|| by_place(a, b));
        words.sort_unstable_by(|a, b| name(a).cmp(name(b)).then_with(|| counts(a, b)));
        words.dedup_by(|next, word| {
            let is_same = name(next) == name(word);
            if is_same {
                word.entry = word.entry.into_iter().chain(next.entry).min();
            }
            is_same
        });
        words.len()
    }

    /// The word for this name among those before `sorted`, which are sorted.
    fn find(&self, sorted: usize, name: &[u8]) -> Option<usize> {
        self.words[..sorted].binary_search_by(|word| self.names[word.start..word.end].cmp(name)).ok()
    }

    /// What becomes of a pending item of this name. The words are sorted.
    pub(super) fn apply(&mut self, kind: Kind, name: &[u8]) -> Kind {
        let Some(found) = self.find(self.words.len(), name) else { return kind };
        self.words[found].is_pending = true;
        kind.said(self.words[found].kind)
    }

    /// The names of which no entry is pending: those of entries first, then the others in the order in which they were said.
    pub(super) fn not_pending(&mut self) -> impl Iterator<Item = (Kind, &[u8])> {
        self.words.retain(|word| !word.is_pending);
        self.words.sort_unstable_by_key(|word| (word.entry.is_none(), word.entry, word.start));
        self.words.iter().map(|word| (word.kind, &self.names[word.start..word.end]))
    }
}
