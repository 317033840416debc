//! `Links`: the symbolic links that the walk has followed on its way, and what is a loop. It does not know their names, nor how one is
//! opened.

use super::identity::{FileId, Mount};
use super::raw_open;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;

/// Empty in a walk that follows nothing.
#[derive(Debug, Default)]
pub(crate) struct Links {
    /// Those on the path of the current directory. Deeper ones may be left over.
    followed: Vec<Followed>,
    /// The directory that was queried last and those above it, indexed by depth: the root first. With its mount, because a directory
    /// that is mounted twice has other ancestors there.
    ancestors: Vec<(FileId, Mount)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Followed {
    /// Of the directory that the link leads to.
    depth: usize,
    target: FileId,
}

/// Why a directory is not entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Kernel(Errno),
    /// The walk is in it already: it is the directory of this depth.
    Loop(usize),
}

impl From<Errno> for Refusal {
    fn from(errno: Errno) -> Self {
        Self::Kernel(errno)
    }
}

impl Links {
    pub(crate) fn clear(&mut self) {
        self.followed.clear();
        self.ancestors.clear();
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.followed.is_empty()
    }

    /// Refuses a loop: the walk is about to enter `dir`, at this depth and not through a link. LevelBelow a followed link, `dir` can
    /// be an ancestor of that link.
    #[cold]
    pub(crate) fn check_loop(&mut self, dir: BorrowedFd<'_>, depth: usize) -> Result<(), Refusal> {
        self.forget_from(depth);
        let Some(link) = self.followed.last() else { return Ok(()) };
        // From the link's target down to `dir` there is no link, so `dir` is none of these. What is above the link remains.
        refuse(&self.ancestors[..link.depth], FileId::of(dir)?)
    }

    /// Forgets the links that led to this depth or deeper.
    fn forget_from(&mut self, depth: usize) {
        let kept = self.followed.partition_point(|link| link.depth < depth);
        if let Some(link) = self.followed.get(kept) {
            // The walk may come to the same directory again, as deep but not through this link. It has other ancestors then.
            self.ancestors.truncate(link.depth);
            self.followed.truncate(kept);
        }
    }

    /// For another thread, which goes on at the level of this depth.
    pub(crate) fn copy_prefix(&self, depth: usize) -> Self {
        let followed = self.followed.partition_point(|link| link.depth <= depth);
        let ancestors = self.ancestors.len().min(depth + 1);
        Self {
            followed: self.followed[..followed].into(),
            ancestors: self.ancestors[..ancestors].into(),
        }
    }

    /// Whether a link leads from a level of depth `above` to one of depth `below`.
    pub(crate) fn is_between(&self, above: usize, below: usize) -> bool {
        self.followed.iter().any(|link| above < link.depth && link.depth <= below)
    }

    /// The target of the link through which the walk came to the directory of this depth.
    pub(crate) fn target(&self, depth: usize) -> Option<FileId> {
        let at = self.followed.binary_search_by_key(&depth, |link| link.depth).ok()?;
        Some(self.followed[at].target)
    }

    /// The walk is about to enter `target` through a link in `dir`, which has this depth.
    pub(crate) fn follow(
        &mut self,
        dir: BorrowedFd<'_>,
        depth: usize,
        target: BorrowedFd<'_>,
    ) -> Result<(), Refusal> {
        self.forget_from(depth + 1);
        self.find_ancestors(dir, depth)?;
        let target = FileId::of(target)?;
        refuse(&self.ancestors, target)?;
        self.followed.push(Followed { depth: depth + 1, target });
        Ok(())
    }

    /// Finds those of `dir`, which has this depth. Goes up by `..` until a directory is known already, or is the target of the last
    /// link, or the root: what is above that link is known.
    fn find_ancestors(&mut self, dir: BorrowedFd<'_>, depth: usize) -> Result<(), Errno> {
        let end = self.followed.last().map_or(0, |link| link.depth);
        let (mut found, mut reached): (Vec<_>, Option<OwnedFd>) = (Vec::new(), None);
        for depth in (end..=depth).rev() {
            let here = reached.as_ref().map_or(dir, AsFd::as_fd);
            let ancestor = FileId::with_mount(here)?;
            if self.ancestors.get(depth) == Some(&ancestor) {
                break;
            }
            found.push(ancestor);
            if depth > end {
                reached = Some(raw_open::path_at(here, c"..", raw_open::DIRECTORY)?);
            }
        }
        self.ancestors.truncate(depth + 1 - found.len());
        self.ancestors.extend(found.into_iter().rev());
        Ok(())
    }
}

/// Refuses a directory that is one of these `ancestors`.
fn refuse(ancestors: &[(FileId, Mount)], id: FileId) -> Result<(), Refusal> {
    ancestors
        .iter()
        .position(|(ancestor, _)| *ancestor == id)
        .map_or(Ok(()), |depth| Err(Refusal::Loop(depth)))
}

#[cfg(test)]
mod tests {
    use super::{FileId, Links, OwnedFd, Refusal, refuse};
    use rustix::fd::AsFd;
    use std::fs;

    #[test]
    #[cfg_attr(miri, ignore = "queries the kernel")]
    fn whoever_is_above_is_a_loop_and_what_is_above_the_root_is_none() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("a/b")).unwrap();
        fs::create_dir_all(root.path().join("z/y")).unwrap();
        let open = |name: &str| crate::open(root.path().join(name)).unwrap();
        let mut links = Links::default();
        let (b, y) = (open("a/b"), open("z/y"));
        for (depth, above) in [(2, "a/b"), (1, "a"), (0, "")] {
            assert_eq!(
                links.follow(b.as_fd(), 2, open(above).as_fd()),
                Err(Refusal::Loop(depth)),
                "{above}"
            );
        }
        assert!(links.follow(b.as_fd(), 2, open("/").as_fd()).is_ok());
        links.follow(b.as_fd(), 2, y.as_fd()).unwrap();
        assert!(links.is_between(2, 3) && !links.is_between(3, 4));
        // From z/y, entered through the link: a/b and what is above it lead back, and z does not.
        for (depth, above) in [(3, "z/y"), (2, "a/b"), (1, "a"), (0, "")] {
            assert_eq!(
                links.follow(y.as_fd(), 3, open(above).as_fd()),
                Err(Refusal::Loop(depth)),
                "{above}"
            );
        }
        links.follow(y.as_fd(), 3, open("z").as_fd()).unwrap();
        let copy = links.copy_prefix(3);
        assert_eq!((copy.followed.len(), &copy.ancestors[..]), (1, &links.ancestors[..4]));
        // LevelBelow the links, a directory that is above itself.
        assert_eq!(links.check_loop(b.as_fd(), 5), Err(Refusal::Loop(2)));
        assert_eq!(
            links.check_loop(open("z").as_fd(), 5),
            Ok(()),
            "the link leads there, and it is not below itself"
        );
        links.check_loop(b.as_fd(), 2).unwrap();
        assert!(links.is_empty() && links.target(3).is_none());
    }

    /// Those in its real path, whatever was queried before.
    #[test]
    #[cfg_attr(miri, ignore = "queries the kernel")]
    fn ancestors_are_those_of_the_real_path() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("a/b/c")).unwrap();
        fs::create_dir_all(root.path().join("a/d/e/f")).unwrap();
        let open = |path: &std::path::Path| -> OwnedFd { crate::open(path).unwrap() };
        let mut links = Links::default();
        for name in ["", "a/b/c", "a/d/e/f", "a/d", "a/b", "a/d/e/f", ""] {
            let dir = root.path().join(name);
            let depth = name.split('/').filter(|name| !name.is_empty()).count();
            links.find_ancestors(open(&dir).as_fd(), depth).unwrap();
            let above = dir.ancestors().take(depth + 1);
            let mut expected: Vec<_> =
                above.map(|dir| FileId::with_mount(open(dir).as_fd()).unwrap()).collect();
            expected.reverse();
            assert_eq!(links.ancestors, expected, "{name}");
        }
    }

    /// As through a bind mount, or on a server that gives all directories one number.
    #[test]
    #[cfg_attr(miri, ignore = "queries the kernel")]
    fn of_a_directory_that_is_above_twice_the_first_counts() {
        let [dir, other] = ["/", "/proc"]
            .map(|path| FileId::with_mount(crate::open(path).unwrap().as_fd()).unwrap());
        let ancestors = [dir, other, dir, other];
        assert_eq!(
            [dir, other].map(|(id, _)| refuse(&ancestors, id)),
            [0, 1].map(|depth| Err(Refusal::Loop(depth)))
        );
    }
}
