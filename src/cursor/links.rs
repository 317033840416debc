//! `Links`: the symbolic links that the walk has followed on its path, and which of them lead back.

use super::identity::{FileId, Identity};
use crate::allocate::{try_collect, try_push};
use crate::open;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;

/// The followed links on the path. Empty in a walk that follows none.
#[derive(Debug, Default)]
pub(crate) struct Links {
    /// The links on the path of the current directory. Deeper links may remain from earlier
    /// directories.
    followed: Vec<Followed>,
    /// The directory that was queried last and its ancestors, indexed by depth. Each with its
    /// mount, because a directory that is mounted twice has two chains of ancestors.
    ancestors: Vec<(FileId, u64)>,
}

/// A link that was followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Followed {
    /// The depth of the directory that the link leads to.
    depth: usize,
    target: FileId,
}

/// The reason why a directory is not entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Kernel(Errno),
    /// The directory is on the path already, at this depth.
    Loop(usize),
}

impl From<Errno> for Refusal {
    fn from(errno: Errno) -> Self {
        Self::Kernel(errno)
    }
}

impl Links {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.followed.is_empty()
    }

    /// Refuses a loop: the walk is about to enter `dir`, at this depth and not through a link.
    /// Below a followed link, `dir` can be an ancestor of that link.
    #[cold]
    pub(crate) fn check_loop(&mut self, dir: BorrowedFd<'_>, depth: usize) -> Result<(), Refusal> {
        self.remove_from(depth);
        let Some(link) = self.followed.last() else { return Ok(()) };
        // Between the link's target and `dir` there is no link, so only the ancestors of the link
        // can be `dir` again.
        refuse(&self.ancestors[..link.depth], Identity::of(dir)?.id)
    }

    /// Removes the links that led to this depth or deeper.
    fn remove_from(&mut self, depth: usize) {
        let kept = self.followed.partition_point(|link| link.depth < depth);
        if let Some(link) = self.followed.get(kept) {
            // The walk may reach the same directory at the same depth without this link. It has
            // other ancestors then.
            self.ancestors.truncate(link.depth);
            self.followed.truncate(kept);
        }
    }

    /// Returns a copy of what belongs to levels up to this depth, for another thread.
    pub(crate) fn copy_to_depth(&self, depth: usize) -> Result<Self, Errno> {
        let followed = self.followed.partition_point(|link| link.depth <= depth);
        let ancestors = self.ancestors.len().min(depth + 1);
        Ok(Self {
            followed: try_collect(self.followed[..followed].iter().copied())?,
            ancestors: try_collect(self.ancestors[..ancestors].iter().copied())?,
        })
    }

    /// Returns `true` if a link leads from a level of depth `above` to a level of depth `below`.
    pub(crate) fn is_between(&self, above: usize, below: usize) -> bool {
        self.followed.iter().any(|link| above < link.depth && link.depth <= below)
    }

    /// Returns the target of the link through which the directory of this depth was reached.
    pub(crate) fn target(&self, depth: usize) -> Option<FileId> {
        let at = self.followed.binary_search_by_key(&depth, |link| link.depth).ok()?;
        Some(self.followed[at].target)
    }

    /// Notes that the walk follows a link in `dir`, which has this depth, to `target`. Refuses a
    /// loop.
    pub(crate) fn follow(
        &mut self,
        dir: BorrowedFd<'_>,
        depth: usize,
        target: BorrowedFd<'_>,
    ) -> Result<(), Refusal> {
        self.remove_from(depth + 1);
        self.query_ancestors(dir, depth)?;
        let target = Identity::of(target)?.id;
        refuse(&self.ancestors, target)?;
        Ok(try_push(&mut self.followed, Followed { depth: depth + 1, target })?)
    }

    /// Queries the ancestors of `dir`, which has this depth. Opens `..` until an ancestor is known
    /// already, or is the target of the last link, or the root. The ancestors of that link are
    /// known.
    fn query_ancestors(&mut self, dir: BorrowedFd<'_>, depth: usize) -> Result<(), Errno> {
        let end = self.followed.last().map_or(0, |link| link.depth);
        let mut found = Vec::new();
        let mut opened: Option<OwnedFd> = None;
        for depth in (end..=depth).rev() {
            let current = opened.as_ref().map_or(dir, AsFd::as_fd);
            let Identity { id, mount, .. } = Identity::of(current)?;
            let ancestor = (id, mount);
            if self.ancestors.get(depth) == Some(&ancestor) {
                break;
            }
            try_push(&mut found, ancestor)?;
            if depth > end {
                opened = Some(open::path_at(current, c"..", open::DIRECTORY)?);
            }
        }
        self.ancestors.try_reserve(found.len()).map_err(|_| Errno::NOMEM)?;
        self.ancestors.truncate(depth + 1 - found.len());
        self.ancestors.extend(found.into_iter().rev());
        Ok(())
    }
}

/// Refuses a directory that is one of the `ancestors`.
fn refuse(ancestors: &[(FileId, u64)], id: FileId) -> Result<(), Refusal> {
    let found = ancestors.iter().position(|(ancestor, _)| *ancestor == id);
    found.map_or(Ok(()), |depth| Err(Refusal::Loop(depth)))
}

#[cfg(test)]
mod tests {
    use super::{FileId, Identity, Links, OwnedFd, Refusal, refuse};
    use rustix::fd::AsFd;
    use std::fs;

    #[test]
    #[cfg_attr(miri, ignore = "queries the kernel")]
    fn ancestor_up_to_the_root_is_a_loop() {
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
        // From z/y, entered through the link: a/b and its ancestors lead back, and z does not.
        for (depth, above) in [(3, "z/y"), (2, "a/b"), (1, "a"), (0, "")] {
            assert_eq!(
                links.follow(y.as_fd(), 3, open(above).as_fd()),
                Err(Refusal::Loop(depth)),
                "{above}"
            );
        }
        links.follow(y.as_fd(), 3, open("z").as_fd()).unwrap();
        let copy = links.copy_to_depth(3).unwrap();
        assert_eq!((copy.followed.len(), &copy.ancestors[..]), (1, &links.ancestors[..4]));
        // Below the links, a directory that is above itself.
        assert_eq!(links.check_loop(b.as_fd(), 5), Err(Refusal::Loop(2)));
        assert_eq!(
            links.check_loop(open("z").as_fd(), 5),
            Ok(()),
            "the link leads there, and it is not below itself"
        );
        links.check_loop(b.as_fd(), 2).unwrap();
        assert!(links.is_empty() && links.target(3).is_none());
    }

    fn ancestor(dir: &OwnedFd) -> (FileId, u64) {
        let Identity { id, mount, .. } = Identity::of(dir.as_fd()).unwrap();
        (id, mount)
    }

    /// Whatever was queried before.
    #[test]
    #[cfg_attr(miri, ignore = "queries the kernel")]
    fn ancestors_follow_the_real_path() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("a/b/c")).unwrap();
        fs::create_dir_all(root.path().join("a/d/e/f")).unwrap();
        let open = |path: &std::path::Path| -> OwnedFd { crate::open(path).unwrap() };
        let mut links = Links::default();
        for name in ["", "a/b/c", "a/d/e/f", "a/d", "a/b", "a/d/e/f", ""] {
            let dir = root.path().join(name);
            let depth = name.split('/').filter(|name| !name.is_empty()).count();
            links.query_ancestors(open(&dir).as_fd(), depth).unwrap();
            let above = dir.ancestors().take(depth + 1);
            let mut expected: Vec<_> = above.map(|dir| ancestor(&open(dir))).collect();
            expected.reverse();
            assert_eq!(links.ancestors, expected, "{name}");
        }
    }

    /// A bind mount can show a directory twice, and a server can give all directories one number.
    #[test]
    #[cfg_attr(miri, ignore = "queries the kernel")]
    fn first_of_two_equal_ancestors_counts() {
        let [dir, other] = ["/", "/proc"].map(|path| ancestor(&crate::open(path).unwrap()));
        let ancestors = [dir, other, dir, other];
        assert_eq!(
            [dir, other].map(|dir| refuse(&ancestors, dir.0)),
            [0, 1].map(|depth| Err(Refusal::Loop(depth)))
        );
    }
}
