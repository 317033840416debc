//! `Links`: the symbolic links that the walk has followed on its way, and what is a loop. It does not know their names, nor how one is
//! opened.

use super::ancestors::Ancestors;
use super::identity::FileId;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, Ordering::Relaxed};
use rustix::fd::BorrowedFd;
use rustix::io::Errno;

/// Empty in a walk that follows nothing.
#[derive(Debug, Default)]
pub(super) struct Links {
    /// Those on the path of the current directory. Deeper ones may be left over.
    followed: Vec<Followed>,
    ancestors: Ancestors,
    /// Whether any thread has followed one. `None` as long as one thread knows.
    any_followed: Option<Arc<AtomicBool>>,
}

/// A level on a way by names takes three system calls. They count as this many bytes.
const NAME: usize = 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Followed {
    /// Of the directory that the link leads to.
    depth: usize,
    target: FileId,
}

/// Why a directory is not entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
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
    pub(super) fn clear(&mut self) {
        self.followed.clear();
        self.ancestors.forget_from(0);
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.followed.is_empty()
    }

    /// Refuses a loop: the walk is about to enter `dir`, at this depth and not through a link. Below a followed link, `dir` can
    /// be an ancestor of that link.
    #[cold]
    pub(super) fn check_loop(&mut self, dir: BorrowedFd<'_>, depth: usize) -> Result<(), Refusal> {
        self.forget_from(depth);
        let Some(link) = self.followed.last() else { return Ok(()) };
        // From the link's target down to `dir` there is no link, so `dir` is none of these. What is above the link remains.
        refuse(self.ancestors.depth_of(FileId::of(dir)?).filter(|depth| *depth < link.depth))
    }

    /// Forgets the links that led to this depth or deeper.
    fn forget_from(&mut self, depth: usize) {
        let kept = self.followed.partition_point(|link| link.depth < depth);
        if let Some(link) = self.followed.get(kept) {
            // The walk may come to the same directory again, as deep but not through this link. It has other ancestors then.
            self.ancestors.forget_from(link.depth);
            self.followed.truncate(kept);
        }
    }

    /// For another thread, which goes on at the level of this depth, open as `dir`.
    ///
    /// Once any thread has followed a link, the ancestors of `dir` go along: in a deep chain, each thread would query all of
    /// them again, and the system calls would grow with the square of the depth.
    pub(super) fn copy_until(&mut self, dir: BorrowedFd<'_>, depth: usize) -> Self {
        let with_ancestors = self.has_any_followed();
        let any_followed = self.any_followed.get_or_insert_with(|| Arc::new(AtomicBool::new(with_ancestors)));
        let any_followed = Some(Arc::clone(any_followed));
        // Above a link they are known. An error is left to whoever follows a link there.
        if with_ancestors && self.last_link() <= depth {
            let _ = self.ancestors.find(dir, depth, self.last_link());
        }
        let followed = self.followed.partition_point(|link| link.depth <= depth);
        let ancestors = if with_ancestors { self.ancestors.copy_until(depth) } else { Ancestors::default() };
        Self { followed: self.followed[..followed].into(), ancestors, any_followed }
    }

    /// What [`copy_until`](Self::copy_until) costs, in bytes: those that it copies, and the way by names to the last link, where the
    /// other thread may have to come back to what is above.
    pub(super) fn cost_until(&self, depth: usize, comes_back: bool) -> usize {
        let ancestors = if self.has_any_followed() { depth + 1 } else { 0 };
        let followed = &self.followed[..self.followed.partition_point(|link| link.depth <= depth)];
        let names = followed.last().filter(|_| comes_back).map_or(0, |link| link.depth);
        ancestors * Ancestors::SIZE + size_of_val(followed) + names * NAME
    }

    fn has_any_followed(&self) -> bool {
        self.any_followed.as_ref().map_or(!self.ancestors.is_empty(), |any_followed| any_followed.load(Relaxed))
    }

    /// How many links lead from a level of depth `above` to one of depth `below`.
    pub(super) fn count_between(&self, above: usize, below: usize) -> usize {
        let [above, below] = [above, below].map(|depth| self.followed.partition_point(|link| link.depth <= depth));
        below - above
    }

    pub(super) fn is_between(&self, above: usize, below: usize) -> bool {
        self.count_between(above, below) > 0
    }

    /// The target of the link through which the walk came to the directory of this depth.
    pub(super) fn target(&self, depth: usize) -> Option<FileId> {
        let at = self.followed.binary_search_by_key(&depth, |link| link.depth).ok()?;
        Some(self.followed[at].target)
    }

    /// The walk is about to enter `target` through a link in `dir`, which has this depth.
    pub(super) fn follow(&mut self, dir: BorrowedFd<'_>, depth: usize, target: BorrowedFd<'_>) -> Result<(), Refusal> {
        if let Some(any_followed) = &self.any_followed {
            any_followed.store(true, Relaxed);
        }
        self.forget_from(depth + 1);
        self.ancestors.find(dir, depth, self.last_link())?;
        self.ancestors.forget_from(depth + 1);
        let target = FileId::of(target)?;
        refuse(self.ancestors.depth_of(target))?;
        self.followed.push(Followed { depth: depth + 1, target });
        Ok(())
    }

    /// The depth of the target of the last link, below which `..` leads up. Without a link, that of the root.
    fn last_link(&self) -> usize {
        self.followed.last().map_or(0, |link| link.depth)
    }
}

fn refuse(ancestor: Option<usize>) -> Result<(), Refusal> {
    ancestor.map_or(Ok(()), |depth| Err(Refusal::Loop(depth)))
}

#[cfg(test)]
mod tests {
    use super::{Ancestors, FileId, Links, NAME, Refusal};
    use rustix::fd::AsFd;
    use std::fs;

    /// The bytes that are copied, and three system calls for each name down to the last link.
    #[test]
    #[cfg_attr(miri, ignore = "queries the kernel")]
    fn what_another_thread_is_given_costs_what_it_copies_and_the_way_by_names() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("a/b/c/d")).unwrap();
        fs::create_dir_all(root.path().join("y/x")).unwrap();
        fs::create_dir_all(root.path().join("z")).unwrap();
        let open = |name: &str| crate::open(root.path().join(name)).unwrap();
        let mut links = Links::default();
        assert_eq!([false, true].map(|comes_back| links.cost_until(4, comes_back)), [0, 0], "nothing is followed");
        // The way a/b/c/d/LINK/x/LINK, through y and to z.
        links.follow(open("a/b/c/d").as_fd(), 4, open("y").as_fd()).unwrap();
        links.follow(open("y/x").as_fd(), 6, open("z").as_fd()).unwrap();
        let way = ["", "a", "a/b", "a/b/c", "a/b/c/d", "y", "y/x", "z"];
        for (depth, followed, names) in [(3, 0, 0), (4, 0, 0), (5, 1, 5), (6, 1, 5), (7, 2, 7)] {
            let costs = [false, true].map(|comes_back| links.cost_until(depth, comes_back));
            let copy = links.copy_until(open(way[depth]).as_fd(), depth);
            let copied = (depth + 1) * Ancestors::SIZE + size_of_val(&copy.followed[..]);
            assert_eq!(copy.followed.len(), followed, "until depth {depth}");
            let id = FileId::of(open(way[depth]).as_fd()).unwrap();
            assert_eq!(copy.ancestors.depth_of(id), Some(depth), "until depth {depth}");
            assert_eq!(costs, [copied, copied + names * NAME], "until depth {depth}");
        }
    }

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
            assert_eq!(links.follow(b.as_fd(), 2, open(above).as_fd()), Err(Refusal::Loop(depth)), "{above}");
        }
        assert!(links.follow(b.as_fd(), 2, open("/").as_fd()).is_ok());
        links.follow(b.as_fd(), 2, y.as_fd()).unwrap();
        assert!(links.is_between(2, 3) && !links.is_between(3, 4));
        // From z/y, entered through the link: a/b and what is above it lead back, and z does not.
        for (depth, above) in [(3, "z/y"), (2, "a/b"), (1, "a"), (0, "")] {
            assert_eq!(links.follow(y.as_fd(), 3, open(above).as_fd()), Err(Refusal::Loop(depth)), "{above}");
        }
        links.follow(y.as_fd(), 3, open("z").as_fd()).unwrap();
        assert_eq!(links.copy_until(y.as_fd(), 3).followed.len(), 1);
        // Below the links, a directory that is above itself.
        assert_eq!(links.check_loop(b.as_fd(), 5), Err(Refusal::Loop(2)));
        assert_eq!(links.check_loop(open("z").as_fd(), 5), Ok(()), "the link leads there, and it is not below itself");
        links.check_loop(b.as_fd(), 2).unwrap();
        assert!(links.is_empty() && links.target(3).is_none());
    }
}
