//! `Pending`: the names of the directories that the walk still has to enter. It does not know which
//! names belong to which level, because the callers keep the offsets.

use crate::cursor::entry_state::EntryState;
use std::collections::TryReserveError;
use std::ffi::CStr;
use std::ops::Range;

/// The names of pending directories, in one range per level. The names of a level come after the
/// names of its parent.
///
/// ```text
/// name               name
/// state bytes   NUL  state bytes NUL
/// 1     adduser 0    1     apt   0
/// ```
#[derive(Debug, Default)]
pub(crate) struct Pending {
    bytes: Vec<u8>,
    /// The offset of the first name that may still be split off for another thread. A search for
    /// such a name begins at this offset.
    pub(crate) unsplit_start: usize,
}

/// A name in [`Pending`].
pub(crate) struct PendingName<'p> {
    pub(crate) state: EntryState,
    pub(crate) name: &'p CStr,
    /// The offset at which the next name starts.
    pub(crate) end: usize,
}

/// The minimum number of bytes to grow by: about 30 names.
const MIN_GROWTH: usize = 512;

impl Pending {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    #[inline]
    pub(crate) fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
        self.unsplit_start = self.unsplit_start.min(len);
    }

    #[inline]
    pub(crate) fn push(&mut self, state: EntryState, name: &[u8]) -> Result<(), TryReserveError> {
        if self.bytes.capacity() - self.bytes.len() < name.len() + 2 {
            self.bytes.try_reserve(MIN_GROWTH.max(name.len() + 2))?;
        }
        self.bytes.push(state.0);
        self.bytes.extend_from_slice(name);
        self.bytes.push(0);
        Ok(())
    }

    /// Returns the name that starts at this offset.
    #[inline]
    pub(crate) fn get(&self, start: usize) -> PendingName<'_> {
        let (state, name) = self.bytes[start..].split_first().expect("BUG: no name is pending");
        let name = CStr::from_bytes_until_nul(name).expect("BUG: a name without its NUL");
        let end = start + 1 + name.to_bytes_with_nul().len();
        PendingName { state: EntryState(*state), name, end }
    }

    /// Divides the names in `range` into `parts` parts of about equal size. Returns the end offset
    /// of the first part, which has at least one name.
    pub(crate) fn part_end(&self, range: Range<usize>, parts: usize) -> usize {
        let middle = range.start + range.len() / parts;
        let is_nul = |byte: &u8| *byte == 0;
        let nul_before = self.bytes[range.start..middle].iter().rposition(is_nul);
        let nul_after = || self.bytes[middle..].iter().position(is_nul).map(|nul| middle + nul);
        let nul = nul_before.map(|nul| range.start + nul).or_else(nul_after);
        nul.expect("BUG: a name without its NUL") + 1
    }

    pub(crate) fn copy(&self, range: Range<usize>) -> Result<Self, TryReserveError> {
        let mut copy = Self::default();
        copy.bytes.try_reserve_exact(range.len())?;
        copy.bytes.extend_from_slice(&self.bytes[range]);
        Ok(copy)
    }

    /// Removes the finished names from `names_start` to `next_start` once they take more bytes than
    /// the names after them. Returns the new `next_start`.
    #[inline]
    pub(crate) fn remove_finished(&mut self, names_start: usize, next_start: usize) -> usize {
        if next_start - names_start <= self.bytes.len() - next_start {
            return next_start;
        }
        self.bytes.drain(names_start..next_start);
        names_start
    }
}

#[cfg(test)]
mod tests {
    use super::{EntryState, Pending};
    use std::ops::Range;

    fn pending(names: &[&str]) -> Pending {
        let mut pending = Pending::default();
        for name in names {
            pending.push(EntryState::DIRECTORY, name.as_bytes()).unwrap();
        }
        pending
    }

    fn names(pending: &Pending, range: Range<usize>) -> Vec<String> {
        let mut names = Vec::new();
        let mut start = range.start;
        while start < range.end {
            let item = pending.get(start);
            names.push(item.name.to_str().unwrap().to_owned());
            start = item.end;
        }
        assert_eq!(start, range.end, "a range ends at the end of a name");
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
                let half = pending.part_end(start..end, 2);
                let (first, second) = (names(&pending, start..half), names(&pending, half..end));
                assert_eq!([first.clone(), second.clone()].concat(), all[index..]);
                assert!(
                    !first.is_empty() && second.is_empty() == (index + 1 == all.len()),
                    "{first:?} {second:?}"
                );
                assert_eq!(names(&pending.copy(start..half).unwrap(), 0..half - start), first);
                start += name.len() + 2;
            }
        }
    }

    #[test]
    fn finished_names_are_removed_once_they_are_longer() {
        let mut pending = pending(&["above", "a", "b", "c", "d"]);
        let begin = "above".len() + 2;
        assert_eq!(
            (pending.remove_finished(begin, begin + 3), pending.len()),
            (begin + 3, begin + 12),
            "three names remain"
        );
        assert_eq!((pending.remove_finished(begin, begin + 9), pending.len()), (begin, begin + 3));
        assert_eq!(names(&pending, 0..begin + 3), ["above", "d"]);
    }
}
