//! `Pending`: the names of directories that are still to do.

use crate::FileType;
use std::ffi::CStr;
use std::iter;
use std::ops::Range;

/// Names of directories that are still to do, in runs: the names of a level stand behind those of the level above it.
///
/// ```text
/// record            record
/// kind name    NUL  kind name NUL
/// D    adduser 0    D    apt  0
/// ```
#[derive(Debug, Default)]
pub(super) struct Pending(Vec<u8>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// A directory, by its `d_type`.
    Directory = b'D',
    /// It may be one.
    Unknown = b'U',
    /// The caller does not want to go below it.
    Skipped = b'S',
}

impl Kind {
    /// `None` for an entry that is no directory.
    #[inline]
    pub(super) fn of(file_type: FileType) -> Option<Self> {
        match file_type {
            FileType::Directory => Some(Self::Directory),
            FileType::Unknown => Some(Self::Unknown),
            _ => None,
        }
    }
}

impl Pending {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    pub(super) fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    #[inline]
    pub(super) fn push(&mut self, kind: Kind, name: &CStr) {
        self.0.push(kind as u8);
        self.0.extend_from_slice(name.to_bytes_with_nul());
    }

    /// The record that begins at `at`.
    #[inline]
    pub(super) fn at(&self, at: usize) -> (Kind, &CStr) {
        let (kind, name) = self.0[at..].split_first().expect("BUG: no name is left");
        let kind = match *kind {
            b'D' => Kind::Directory,
            b'U' => Kind::Unknown,
            _ => Kind::Skipped,
        };
        (kind, CStr::from_bytes_until_nul(name).expect("BUG: a name without its NUL"))
    }

    /// Where the second half of the names in `run` begins; the end of `run` if that is one name.
    pub(super) fn half(&self, run: Range<usize>) -> usize {
        let middle = run.start.midpoint(run.end);
        let end_before = self.0[run.start..middle].iter().rposition(|byte| *byte == 0).map(|nul| run.start + nul);
        let end_behind = || self.0[middle..].iter().position(|byte| *byte == 0).map(|nul| middle + nul);
        end_before.or_else(end_behind).expect("BUG: a name without its NUL") + 1
    }

    pub(super) fn copy(&self, run: Range<usize>) -> Self {
        Self(self.0[run].to_vec())
    }

    /// Drops the records from `names` to `behind` once they take more than those that follow. Returns where these begin.
    #[inline]
    pub(super) fn forget(&mut self, names: usize, behind: usize) -> usize {
        let left = self.0.len() - behind;
        if behind - names <= left {
            return behind;
        }
        self.0.copy_within(behind.., names);
        self.0.truncate(names + left);
        names
    }

    /// Marks the record that begins at `at` as skipped, if there is one.
    #[inline]
    pub(super) fn skip_at(&mut self, at: usize) {
        if let Some(kind) = self.0.get_mut(at) {
            *kind = Kind::Skipped as u8;
        }
    }

    /// Looks for `name` from `at` on where it is not skipped yet, and marks it as skipped. Returns where the next record begins.
    pub(super) fn skip(&mut self, at: usize, name: &[u8]) -> Option<usize> {
        let is_wanted = |at: usize, found: &CStr| found.to_bytes() == name && self.at(at).0 != Kind::Skipped;
        let (at, found) = self.records(at).find(|(at, found)| is_wanted(*at, found))?;
        let behind = at + 1 + found.to_bytes_with_nul().len();
        self.skip_at(at);
        Some(behind)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &CStr> {
        self.records(0).map(|(_, name)| name)
    }

    /// From the record that begins at `at` on, where each begins, and its name.
    fn records(&self, mut at: usize) -> impl Iterator<Item = (usize, &CStr)> {
        iter::from_fn(move || {
            let begin = at;
            let name = (begin < self.len()).then(|| self.at(begin).1)?;
            at += 1 + name.to_bytes_with_nul().len();
            Some((begin, name))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Pending};
    use std::ffi::CString;
    use std::ops::Range;

    fn pending(names: &[&str]) -> Pending {
        let mut pending = Pending::default();
        for name in names {
            pending.push(Kind::Directory, &CString::new(*name).unwrap());
        }
        pending
    }

    fn names(pending: &Pending, run: Range<usize>) -> Vec<String> {
        let mut names = Vec::new();
        let mut at = run.start;
        while at < run.end {
            let (_, name) = pending.at(at);
            names.push(name.to_str().unwrap().to_owned());
            at += 1 + name.to_bytes_with_nul().len();
        }
        assert_eq!(at, run.end, "a run ends where a record does");
        names
    }

    #[test]
    fn half_divides_a_run_between_names() {
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
                let half = pending.half(start..end);
                let (first, second) = (names(&pending, start..half), names(&pending, half..end));
                assert!([first.clone(), second.clone()].concat() == all[index..], "{first:?} {second:?}");
                assert!(!first.is_empty() && second.is_empty() == (index + 1 == all.len()), "{first:?} {second:?}");
                assert_eq!(names(&pending.copy(start..half), 0..half - start), first);
                start += name.len() + 2;
            }
        }
    }

    #[test]
    fn forget_drops_names_that_are_done_once_they_are_more_than_the_rest() {
        let mut pending = pending(&["above", "a", "b", "c", "d"]);
        let begin = "above".len() + 2;
        assert_eq!((pending.forget(begin, begin + 3), pending.len()), (begin + 3, begin + 12), "three are left");
        assert_eq!((pending.forget(begin, begin + 9), pending.len()), (begin, begin + 3));
        assert_eq!(names(&pending, 0..begin + 3), ["above", "d"]);
    }

    #[test]
    fn skip_marks_whole_names_only() {
        let mut pending = pending(&["ab", "a", "b"]);
        assert_eq!(pending.skip(0, b"a"), Some(4 + 3));
        assert_eq!([0, 4, 7].map(|at| pending.at(at).0), [Kind::Directory, Kind::Skipped, Kind::Directory]);
        assert_eq!(pending.skip(7, b"ab"), None);
        assert_eq!(pending.skip(0, b""), None);
    }

    #[test]
    fn skip_marks_each_of_equal_names() {
        let mut pending = pending(&["a", "b", "a"]);
        assert_eq!([0, 0, 0].map(|at| pending.skip(at, b"a")), [Some(3), Some(9), None]);
        assert_eq!([0, 3, 6].map(|at| pending.at(at).0), [Kind::Skipped, Kind::Directory, Kind::Skipped]);
    }
}
