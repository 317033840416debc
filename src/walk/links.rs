//! `Links`: the symbolic links that the walk has followed on its way, and the ancestors by which it recognises a loop.

use super::identity::FileId;
use super::open::open_path_above;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;

/// Empty in a walk that follows nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Links {
    /// Those on the path of the current directory. Deeper ones may be left over.
    followed: Vec<Followed>,
    /// The ancestors of the directory that was asked about last: those above the root too, and those that the walk came to
    /// through links. Depths above the root are negative.
    ancestors: Vec<FileId>,
    /// The depth of the first of them.
    top_depth: isize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Followed {
    /// Of the directory that the link leads to.
    depth: usize,
    target: FileId,
}

#[allow(clippy::cast_possible_wrap, reason = "no tree has so many levels")]
impl Links {
    pub(super) fn clear(&mut self) {
        self.followed.clear();
        self.ancestors.clear();
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.followed.is_empty()
    }

    /// The walk is about to enter `dir`, at this depth and not through a link. `ELOOP` if the walk is in it already: below
    /// a link, a directory can be above itself.
    #[cold]
    pub(super) fn check(&mut self, dir: BorrowedFd<'_>, depth: usize) -> Result<(), Errno> {
        self.forget_from(depth);
        let Some(link) = self.followed.last() else { return Ok(()) };
        // It is below the link's target and all directories that the walk came through since, so it is none of these.
        let above_link = usize::try_from(link.depth as isize - self.top_depth).unwrap_or(0);
        let id = FileId::of(dir)?;
        if self.ancestors.iter().take(above_link).any(|above| *above == id) { Err(Errno::LOOP) } else { Ok(()) }
    }

    /// Forgets the links that led to this depth or deeper.
    #[cold]
    #[inline(never)]
    pub(super) fn forget_from(&mut self, depth: usize) {
        let kept = self.followed.partition_point(|link| link.depth < depth);
        if let Some(link) = self.followed.get(kept) {
            // The walk may come to the same directory again, as deep but not through this link. It has other ancestors then.
            let above = usize::try_from(link.depth as isize - self.top_depth).unwrap_or(0);
            self.ancestors.truncate(above);
            self.followed.truncate(kept);
        }
    }

    /// The links down to the level of this depth, that one included.
    pub(super) fn down_to(&self, depth: usize) -> Self {
        let mut links = Self::default();
        if !self.followed.is_empty() {
            links.clone_from(self);
            links.forget_from(depth + 1);
        }
        links
    }

    /// Whether a link leads from a level of depth `above` to one of depth `below`.
    pub(super) fn is_between(&self, above: usize, below: usize) -> bool {
        self.followed.iter().any(|link| above < link.depth && link.depth <= below)
    }

    /// The target of the link through which the walk came to the directory of this depth.
    pub(super) fn target(&self, depth: usize) -> Option<FileId> {
        let at = self.followed.binary_search_by_key(&depth, |link| link.depth).ok()?;
        Some(self.followed[at].target)
    }

    /// The walk is about to enter `target` through a link in `dir`, which has this depth. `ELOOP` if it is `dir` or above it.
    pub(super) fn follow(
        &mut self,
        dir: BorrowedFd<'_>,
        depth: usize,
        target: BorrowedFd<'_>,
    ) -> Result<Followed, Errno> {
        self.forget_from(depth + 1);
        self.find_ancestors(dir, depth as isize)?;
        let target = FileId::of(target)?;
        if self.ancestors.contains(&target) {
            return Err(Errno::LOOP);
        }
        Ok(Followed { depth: depth + 1, target })
    }

    /// The walk has entered the directory that this link leads to.
    pub(super) fn push(&mut self, link: Followed) {
        self.followed.push(link);
    }

    /// Goes up from `dir` by `..`, until a directory is known already, or was entered through a link, or is `/`.
    fn find_ancestors(&mut self, dir: BorrowedFd<'_>, mut depth: isize) -> Result<(), Errno> {
        let last_link = self.followed.last().map(|link| link.depth as isize);
        let (mut found, mut top_depth) = (Vec::new(), depth);
        let mut reached: Option<OwnedFd> = None;
        let known = loop {
            let here = reached.as_ref().map_or(dir, AsFd::as_fd);
            let id = FileId::of(here)?;
            if found.last() == Some(&id) {
                break None; // `/` is above itself
            }
            let index = usize::try_from(depth - self.top_depth).ok();
            let is_known = index.is_some_and(|index| self.ancestors.get(index) == Some(&id));
            found.push(id);
            top_depth = depth;
            if is_known || last_link == Some(depth) {
                break index;
            }
            reached = match open_path_above(here) {
                Ok(above) => Some(above),
                Err(errno @ (Errno::MFILE | Errno::NFILE)) => return Err(errno),
                Err(_) if depth <= 0 => break None, // the directories above the root may be out of reach
                Err(errno) => return Err(errno),
            };
            depth -= 1;
        };
        if known.is_none() {
            self.top_depth = top_depth;
        }
        self.ancestors.truncate(known.unwrap_or(0));
        self.ancestors.extend(found.into_iter().rev());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{FileId, Links};
    use rustix::fd::AsFd;
    use rustix::io::Errno;
    use std::fs;

    /// The ancestors of a directory are those in its real path, whatever was asked before.
    #[test]
    #[cfg_attr(miri, ignore = "asks the kernel")]
    fn ancestors_are_those_of_the_real_path() {
        let root = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(root.path()).unwrap();
        fs::create_dir_all(path.join("a/b/c")).unwrap();
        fs::create_dir_all(path.join("a/d/e/f")).unwrap();
        let mut links = Links::default();
        for name in ["", "a/b/c", "a/d/e/f", "a/d", "a/b", "a/d/e/f", ""] {
            let dir = path.join(name);
            let depth = name.split('/').filter(|name| !name.is_empty()).count();
            links.find_ancestors(lendir::open(&dir).as_fd(), isize::try_from(depth).unwrap()).unwrap();
            let mut expected: Vec<_> =
                dir.ancestors().map(|dir| FileId::of(lendir::open(dir).as_fd()).unwrap()).collect();
            expected.reverse();
            assert_eq!(links.ancestors, expected, "{name}");
            let above_root = path.ancestors().count() - 1;
            assert_eq!(links.top_depth, -isize::try_from(above_root).unwrap());
        }
    }

    mod lendir {
        pub(super) fn open(path: impl rustix::path::Arg) -> rustix::fd::OwnedFd {
            crate::open(path).unwrap()
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "asks the kernel")]
    fn whoever_is_above_is_a_loop() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("a/b")).unwrap();
        fs::create_dir_all(root.path().join("z/y")).unwrap();
        let open = |name: &str| crate::open(root.path().join(name)).unwrap();
        let mut links = Links::default();
        let (b, y) = (open("a/b"), open("z/y"));
        for above in ["a/b", "a", "", "/"] {
            assert_eq!(links.follow(b.as_fd(), 2, open(above).as_fd()), Err(Errno::LOOP), "{above}");
        }
        let link = links.follow(b.as_fd(), 2, y.as_fd()).unwrap();
        links.push(link);
        assert!(links.is_between(2, 3) && !links.is_between(3, 4));
        // From z/y, entered through the link: a/b and what is above it lead back, and z does not.
        for above in ["z/y", "a/b", "a", "", "/"] {
            assert_eq!(links.follow(y.as_fd(), 3, open(above).as_fd()), Err(Errno::LOOP), "{above}");
        }
        let link = links.follow(y.as_fd(), 3, open("z").as_fd()).unwrap();
        links.push(link);
        assert_eq!(links.down_to(3).followed.len(), 1);
        // Below the links, a directory that is above itself.
        assert_eq!(links.check(b.as_fd(), 5), Err(Errno::LOOP));
        assert_eq!(links.check(open("z").as_fd(), 5), Ok(()), "the link leads there, and it is not below itself");
        links.check(b.as_fd(), 2).unwrap();
        assert!(links.is_empty() && links.target(3).is_none());
    }
}
