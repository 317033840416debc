//! `Pending`: the names of directories still to do. It does not know at which levels they are: whoever calls it keeps the positions.

use crate::read_dir::entry_state::EntryState;
use std::ffi::CStr;
use std::ops::Range;
use std::slice;

/// The names of directories still to do, in runs: those of a level come after those of the level above it.
///
/// ```text
/// item              item
/// state name    NUL  state name NUL
/// 1    adduser 0    1    apt  0
/// ```
#[derive(Debug, Default)]
pub(crate) struct Pending {
    items: Vec<u8>,
    /// All names before this have been split off for other threads, or cannot be. A search for names to split off begins here.
    pub(crate) split_until: usize,
}

/// An item of [`Pending`].
pub(crate) struct Item<'p> {
    pub(crate) state: EntryState,
    pub(crate) name: &'p CStr,
    /// Where the next one begins.
    pub(crate) end: usize,
}

/// It grows by at least this many bytes: some 30 names.
const AT_ONCE: usize = 512;

impl Pending {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    #[inline]
    pub(crate) fn truncate(&mut self, len: usize) {
        self.items.truncate(len);
        self.split_until = self.split_until.min(len);
    }

    #[inline]
    pub(crate) fn push(&mut self, state: EntryState, name: &CStr) {
        let name = name.to_bytes_with_nul();
        if self.items.capacity() - self.items.len() <= name.len() {
            self.items.reserve(AT_ONCE.max(1 + name.len()));
        }
        self.items.push(state.to_byte());
        self.items.extend_from_slice(name);
    }

    /// As [`push`](Self::push), for a name that the caller gives. A NUL in it becomes `\\0`.
    pub(crate) fn push_named(&mut self, state: EntryState, name: &[u8]) {
        self.items.push(state.to_byte());
        for byte in name {
            self.items.extend_from_slice(if *byte == 0 { b"\\0" } else { slice::from_ref(byte) });
        }
        self.items.push(0);
    }

    /// The item that begins at `at`.
    #[inline]
    pub(crate) fn at(&self, at: usize) -> Item<'_> {
        let (state, name) = self.items[at..].split_first().expect("BUG: no name is remaining");
        let name = CStr::from_bytes_until_nul(name).expect("BUG: a name without its NUL");
        Item {
            state: EntryState::from_byte(*state),
            name,
            end: at + 1 + name.to_bytes_with_nul().len(),
        }
    }

    /// Splits the names in `run` into this many parts of about equal size. Returns where the first one, of at least one name,
    /// ends.
    pub(crate) fn part(&self, run: Range<usize>, parts: usize) -> usize {
        let wanted = run.start + run.len() / parts;
        let is_nul = |byte: &u8| *byte == 0;
        let end_before =
            self.items[run.start..wanted].iter().rposition(is_nul).map(|nul| run.start + nul);
        let end_after = || self.items[wanted..].iter().position(is_nul).map(|nul| wanted + nul);
        end_before.or_else(end_after).expect("BUG: a name without its NUL") + 1
    }

    pub(crate) fn copy(&self, run: Range<usize>) -> Self {
        Self { items: self.items[run].to_vec(), ..Self::default() }
    }

    /// Drops the items from `names_at` to `next_at` once they take more bytes than the rest. Returns where the rest begins.
    #[inline]
    pub(crate) fn drop_done(&mut self, names_at: usize, next_at: usize) -> usize {
        let remaining = self.items.len() - next_at;
        if next_at - names_at <= remaining {
            return next_at;
        }
        self.items.copy_within(next_at.., names_at);
        self.items.truncate(names_at + remaining);
        names_at
    }

    /// Changes the state of the item that begins at `at`. Returns it.
    pub(crate) fn change(
        &mut self,
        at: usize,
        change: impl FnOnce(EntryState) -> EntryState,
    ) -> EntryState {
        let state = change(EntryState::from_byte(self.items[at]));
        self.items[at] = state.to_byte();
        state
    }

    /// Gives each item from the one that begins at `at` on the state that `change` returns, and drops those without one.
    pub(crate) fn rewrite(
        &mut self,
        mut at: usize,
        mut change: impl FnMut(EntryState, &[u8]) -> Option<EntryState>,
    ) {
        let mut kept = at;
        while at < self.items.len() {
            let Item { state, name, end } = self.at(at);
            if let Some(state) = change(state, name.to_bytes()) {
                self.items.copy_within(at..end, kept);
                self.items[kept] = state.to_byte();
                kept += end - at;
            }
            at = end;
        }
        self.truncate(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::{EntryState, Pending};
    use std::ffi::CString;
    use std::ops::Range;

    fn pending(names: &[&str]) -> Pending {
        let mut pending = Pending::default();
        for name in names {
            pending.push(EntryState::DIRECTORY, &CString::new(*name).unwrap());
        }
        pending
    }

    fn names(pending: &Pending, run: Range<usize>) -> Vec<String> {
        let mut names = Vec::new();
        let mut at = run.start;
        while at < run.end {
            let item = pending.at(at);
            names.push(item.name.to_str().unwrap().to_owned());
            at = item.end;
        }
        assert_eq!(at, run.end, "a run ends where an item does");
        names
    }

    #[test]
    fn part_ends_between_names() {
        let long = "n".repeat(100);
        for all in [
            &["a", "b", "c", "d", "e", "f"][..],
            &["one"],
            &[&long, "a"],
            &["a", &long],
            &["a", &long, "b"],
            &[&long, "a", "b", "c"],
            &["a", "b", "c", &long],
        ] {
            let pending = pending(all);
            let mut start = 0;
            for (index, name) in all.iter().enumerate() {
                let end = pending.len();
                let half = pending.part(start..end, 2);
                let (first, second) = (names(&pending, start..half), names(&pending, half..end));
                assert_eq!([first.clone(), second.clone()].concat(), all[index..]);
                assert!(
                    !first.is_empty() && second.is_empty() == (index + 1 == all.len()),
                    "{first:?} {second:?}"
                );
                assert_eq!(names(&pending.copy(start..half), 0..half - start), first);
                start += name.len() + 2;
            }
        }
    }

    #[test]
    fn drop_done_drops_names_that_are_done_once_they_are_more_than_the_rest() {
        let mut pending = pending(&["above", "a", "b", "c", "d"]);
        let begin = "above".len() + 2;
        assert_eq!(
            (pending.drop_done(begin, begin + 3), pending.len()),
            (begin + 3, begin + 12),
            "three are remaining"
        );
        assert_eq!((pending.drop_done(begin, begin + 9), pending.len()), (begin, begin + 3));
        assert_eq!(names(&pending, 0..begin + 3), ["above", "d"]);
    }
}
