//! `Ancestors`: the directories above the one that a link is in, by which a walk recognises a loop. How it finds them, and what it
//! remembers of them. It does not know which links were followed.

use super::identity::{FileId, Mount};
use super::raw_open;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::collections::BTreeMap;

/// With its mount, because a directory that is mounted twice has other ancestors there.
type Ancestor = (FileId, Mount);

#[derive(Clone, Debug, Default)]
pub(super) struct Ancestors {
    /// The directory that was queried last and those above it, indexed by depth: the root first.
    known: Vec<Ancestor>,
    /// The depth of each, of one that is known twice the lesser. In a tree, because a server can choose the numbers, and a hash
    /// map would need random ones.
    depths: BTreeMap<FileId, usize>,
    cut_off: Option<CutOff>,
}

/// Directories from which no way leads up. Without these, each link below would try the way again.
#[derive(Clone, Debug)]
struct CutOff {
    /// Of the first.
    depth: usize,
    /// Indexed by what their depth is more.
    dirs: Vec<Ancestor>,
    /// Why there is no way up from the first.
    errno: Errno,
}

/// Where a way up met directories that are known already.
enum Met {
    /// Or the end of the way.
    Known,
    CutOff,
}

impl Ancestors {
    /// What is copied for each.
    pub(super) const SIZE: usize = size_of::<Ancestor>() + size_of::<(FileId, usize)>();

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty() && self.cut_off.is_none()
    }

    /// The depth of the directory that has this identity.
    pub(super) fn depth_of(&self, id: FileId) -> Option<usize> {
        self.depths.get(&id).copied()
    }

    /// Forgets those of this depth and deeper, and which are cut off.
    pub(super) fn forget_from(&mut self, depth: usize) {
        while self.known.len() > depth {
            let (id, _) = self.known.pop().expect("BUG: more than none is none");
            if self.depths.get(&id) == Some(&self.known.len()) {
                self.depths.remove(&id);
            }
        }
        self.cut_off = None;
    }

    /// Finds those above `dir`, which has this depth. Goes up by `..` until a directory is known already, or is the one of depth
    /// `end`. If `dir` is known, so are those known below it.
    pub(super) fn find(&mut self, dir: BorrowedFd<'_>, depth: usize, end: usize) -> Result<(), Errno> {
        let mut found = Vec::new();
        let met = self.go_up(dir, depth, end, &mut found);
        let first = depth + 1 - found.len();
        match met {
            Ok(Met::Known) => {
                if !found.is_empty() {
                    self.forget_from(first);
                    self.extend(found.into_iter().rev());
                }
                Ok(())
            }
            Ok(Met::CutOff) => {
                let cut_off = self.cut_off.as_mut().expect("BUG: nothing is cut off");
                if !found.is_empty() {
                    cut_off.dirs.truncate(first - cut_off.depth);
                    cut_off.dirs.extend(found.into_iter().rev());
                }
                Err(cut_off.errno)
            }
            Err(errno) => {
                if !raw_open::lacks_descriptor(errno) {
                    found.reverse();
                    self.cut_off = Some(CutOff { depth: first, dirs: found, errno });
                }
                Err(errno)
            }
        }
    }

    /// The directories on the way that are not known go to `found`, from `dir` on.
    fn go_up(
        &self,
        dir: BorrowedFd<'_>,
        mut depth: usize,
        end: usize,
        found: &mut Vec<Ancestor>,
    ) -> Result<Met, Errno> {
        let mut reached: Option<OwnedFd> = None;
        loop {
            let here = reached.as_ref().map_or(dir, AsFd::as_fd);
            let ancestor = FileId::and_mount(here)?;
            if self.known.get(depth) == Some(&ancestor) {
                return Ok(Met::Known);
            }
            if self.cut_off.as_ref().is_some_and(|cut_off| cut_off.has(&ancestor, depth)) {
                return Ok(Met::CutOff);
            }
            found.push(ancestor);
            if depth <= end {
                return Ok(Met::Known);
            }
            reached = Some(raw_open::path_at(here, c"..", raw_open::DIRECTORY)?);
            depth -= 1;
        }
    }

    fn extend(&mut self, below: impl IntoIterator<Item = Ancestor>) {
        for ancestor in below {
            self.depths.entry(ancestor.0).or_insert(self.known.len());
            self.known.push(ancestor);
        }
    }

    /// Those of this depth and less, for another thread.
    pub(super) fn copy_until(&self, depth: usize) -> Self {
        let mut copy = Self::default();
        copy.extend(self.known.iter().take(depth + 1).copied());
        copy.cut_off = self.cut_off.as_ref().and_then(|cut_off| cut_off.copy_until(depth));
        copy
    }
}

impl CutOff {
    fn has(&self, ancestor: &Ancestor, depth: usize) -> bool {
        depth.checked_sub(self.depth).and_then(|index| self.dirs.get(index)) == Some(ancestor)
    }

    fn copy_until(&self, depth: usize) -> Option<Self> {
        let count = (depth + 1).checked_sub(self.depth)?;
        Some(Self { dirs: self.dirs.iter().take(count).copied().collect(), ..*self })
    }
}

#[cfg(test)]
mod tests {
    use super::{Ancestors, CutOff, FileId};
    use crate::walk::identity::tests::COMPARISONS;
    use rustix::fd::{AsFd, OwnedFd};
    use rustix::io::Errno;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// Those in its real path, whatever was queried before.
    #[test]
    #[cfg_attr(miri, ignore = "queries the kernel")]
    fn ancestors_are_those_of_the_real_path() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("a/b/c")).unwrap();
        fs::create_dir_all(root.path().join("a/d/e/f")).unwrap();
        let open = |path: &std::path::Path| -> OwnedFd { crate::open(path).unwrap() };
        let mut ancestors = Ancestors::default();
        for name in ["", "a/b/c", "a/d/e/f", "a/d", "a/b", "a/d/e/f", ""] {
            let dir = root.path().join(name);
            let depth = name.split('/').filter(|name| !name.is_empty()).count();
            ancestors.find(open(&dir).as_fd(), depth, 0).unwrap();
            let above = dir.ancestors().take(depth + 1);
            let mut expected: Vec<_> = above.map(|dir| FileId::and_mount(open(dir).as_fd()).unwrap()).collect();
            expected.reverse();
            assert_eq!(ancestors.known[..=depth], expected, "{name}");
            let copy = ancestors.copy_until(depth);
            assert_eq!(copy.known, expected, "{name}");
            for (depth, (id, _)) in expected.iter().enumerate() {
                assert_eq!([&ancestors, &copy].map(|of| of.depth_of(*id)), [Some(depth); 2], "{name}");
            }
        }
        assert_eq!(ancestors.depths.len(), ancestors.known.len(), "what is forgotten is still there");
    }

    /// As through a bind mount, or on a server that gives all directories one number.
    #[test]
    #[cfg_attr(miri, ignore = "queries the kernel")]
    fn of_a_directory_that_is_above_twice_the_first_counts() {
        let [dir, other] = ["/", "/proc"].map(|path| FileId::and_mount(crate::open(path).unwrap().as_fd()).unwrap());
        let mut ancestors = Ancestors::default();
        ancestors.extend([dir, other, dir, other]);
        for (forgotten, [of_dir, of_other]) in
            [(4, [Some(0), Some(1)]), (3, [Some(0), Some(1)]), (1, [Some(0), None]), (0, [None, None])]
        {
            ancestors.forget_from(forgotten);
            assert_eq!([dir, other].map(|(id, _)| ancestors.depth_of(id)), [of_dir, of_other], "from {forgotten}");
        }
    }

    /// Links at each level of a chain, and one at its end that leads to as many directories. How many keys a search of the tree
    /// compares depends on the inode numbers: some 30 at most, where a search of a list would compare 200 on average.
    #[test]
    #[cfg_attr(miri, ignore = "opens directories")]
    fn a_loop_is_looked_for_by_few_comparisons_however_deep_the_tree_is() {
        const LEVELS: usize = 400;
        let (root, many) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let mut at = root.path().to_owned();
        for level in 0..LEVELS {
            fs::create_dir(many.path().join(level.to_string())).unwrap();
            symlink("/proc/self/fdinfo", at.join("link")).unwrap();
            at.push("m");
            fs::create_dir(&at).unwrap();
        }
        symlink(many.path(), at.join("many")).unwrap();
        let mut walk = crate::Walk::open(root.path()).unwrap();
        let (mut visits, before) = (0, COMPARISONS.get());
        while let Some(mut dir) = walk.next().unwrap() {
            visits += 1;
            while let Some(entry) = dir.next().unwrap() {
                entry.follow();
            }
        }
        assert_eq!(visits, 3 * LEVELS + 2);
        let comparisons = COMPARISONS.get() - before;
        assert!((LEVELS..60 * visits).contains(&comparisons), "{comparisons} comparisons for {visits} directories");
    }

    #[test]
    #[cfg_attr(miri, ignore = "queries the kernel")]
    fn a_way_up_that_failed_is_not_tried_again() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("a/b/c/d/e")).unwrap();
        let names = ["a", "a/b", "a/b/c", "a/b/c/d", "a/b/c/d/e"];
        let [a, b, c, d, deepest] = names.map(|name| crate::open(root.path().join(name)).unwrap());
        let dirs = [&b, &c].map(|dir| FileId::and_mount(dir.as_fd()).unwrap()).to_vec();
        let cut_off = Some(CutOff { depth: 2, dirs, errno: Errno::ACCESS });
        let mut ancestors = Ancestors { cut_off, ..Ancestors::default() };
        let cut_off = |ancestors: &Ancestors| ancestors.cut_off.as_ref().map_or(0, |cut_off| cut_off.dirs.len());
        for (dir, depth, known) in [(&b, 2, 2), (&d, 4, 3), (&c, 3, 3), (&deepest, 5, 4)] {
            assert_eq!(ancestors.find(dir.as_fd(), depth, 0), Err(Errno::ACCESS), "depth {depth}");
            assert_eq!(cut_off(&ancestors), known, "depth {depth}");
        }
        assert_eq!([1, 2, 3, 4, 5].map(|depth| cut_off(&ancestors.copy_until(depth))), [0, 1, 2, 3, 4]);
        // As deep, and another directory.
        assert_eq!(ancestors.find(d.as_fd(), 3, 0), Ok(()));
        assert_eq!(ancestors.find(a.as_fd(), 1, 0), Ok(()));
        assert_eq!((cut_off(&ancestors), ancestors.known.len()), (0, 2));
    }
}
