//! `WayBack`: how the walk finds a level again after closing its descriptor.
//!
//! It goes by `..` from the directory below, or else by names from the base, which stays open. Either way it accepts a directory
//! only if that has the [`Identity`] noted when the level was closed: others may have moved either one meanwhile.
//!
//! A failed route is not tried again for the levels above: `..` goes on from where it led, and no name is tried again at or below
//! the first that led elsewhere. So the number of system calls on the way back grows with the depth, whatever was moved. Only
//! above a followed link, through which `..` does not lead back, each level takes a way by names.

use super::bounds::Bounds;
use super::identity::{FileId, Identity};
use super::links::Links;
use super::openat;
use super::path::TreePath;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use std::ffi::CString;

/// How far the last way back came, for the levels above one that was lost.
#[derive(Debug, Default)]
pub(super) struct WayBack {
    /// Where `..` led instead of the level lost last, and the depth of that level.
    reached: Option<(OwnedFd, usize)>,
    /// The first name that leads elsewhere: where it ends in the path, and what the kernel said there.
    broken_at: Option<(usize, Errno)>,
}

/// An open directory to begin at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start<'a> {
    pub(super) dir: BorrowedFd<'a>,
    pub(super) bounds: Bounds,
}

impl WayBack {
    /// Opens the level at `bounds`. `below` is the directory below it, unless that was lost too. `by_names` returns where the way
    /// by names begins, and the levels from there to this one, each with its identity.
    pub(super) fn reopen<'t, Way: IntoIterator<Item = (Bounds, Result<Identity, Errno>)>>(
        &mut self,
        (bounds, identity): (Bounds, Result<Identity, Errno>),
        below: Option<Start<'_>>,
        path: &TreePath,
        links: &Links,
        same_mount: bool,
        by_names: impl FnOnce() -> (Start<'t>, Way),
    ) -> Result<OwnedFd, Errno> {
        // A new way begins at a level that is open; otherwise the last way goes on.
        if below.is_some() {
            *self = Self::default();
        }
        let identity = identity?;
        let last_reached = self.reached.take();
        let start = match (below, &last_reached) {
            (Some(below), _) => Some((below.dir, below.bounds.depth)),
            (None, Some((dir, depth))) => Some((dir.as_fd(), *depth)),
            (None, None) => None,
        };
        // Below a followed link, `..` is the parent of the link's target, not of the link.
        let start = start.filter(|(_, depth)| !links.is_between(bounds.depth, *depth));
        let by_dots = || start.map_or(Err(Errno::NOENT), |(dir, depth)| openat::again_above(dir, depth - bounds.depth));
        let reached = match by_dots() {
            Ok(dir) if identity.confirm(dir.as_fd(), same_mount).is_ok() => return Ok(dir),
            reached => reached,
        };
        let broken = self.broken_at.filter(|(end, _)| *end <= bounds.path_end);
        let (reached, errno) = if let Some((_, errno)) = broken {
            (reached, errno)
        } else {
            // With the base and the start, the way by names takes four descriptors. This would be the fifth.
            let led_elsewhere = reached.map(drop);
            match self.go_down(bounds, path, links, same_mount, by_names()) {
                Ok(dir) => return Ok(dir),
                Err(errno) => (led_elsewhere.and_then(|()| by_dots()), errno),
            }
        };
        self.reached = match reached {
            Ok(dir) => Some((dir, bounds.depth)),
            Err(errno) if openat::lacks_descriptor(errno) => last_reached, // it may still lead to the levels above
            Err(_) => None,
        };
        Err(errno)
    }

    /// Goes down by names from the base to the level at `bounds`, through those of `levels`.
    fn go_down(
        &mut self,
        bounds: Bounds,
        path: &TreePath,
        links: &Links,
        same_mount: bool,
        (base, levels): (Start<'_>, impl IntoIterator<Item = (Bounds, Result<Identity, Errno>)>),
    ) -> Result<OwnedFd, Errno> {
        let mut names = Names { base: base.dir, reached: None, at: base.bounds.path_end, depth: base.bounds.depth };
        for (level, identity) in levels {
            let is_goal = level.path_end == bounds.path_end;
            let confirmed =
                names.go_to(level, path, links, is_goal).and_then(|()| identity?.confirm(names.dir(), same_mount));
            if let Err(errno) = confirmed {
                if !openat::lacks_descriptor(errno) {
                    self.broken_at = Some((names.at, errno));
                }
                return Err(errno);
            }
        }
        names.reached.map_or_else(|| fcntl_dupfd_cloexec(base.dir, 0), Ok)
    }
}

/// A directory on the way down by names.
struct Names<'t> {
    base: BorrowedFd<'t>,
    /// `None` at the base.
    reached: Option<OwnedFd>,
    /// Where its path ends.
    at: usize,
    depth: usize,
}

impl Names<'_> {
    fn dir(&self) -> BorrowedFd<'_> {
        self.reached.as_ref().map_or(self.base, AsFd::as_fd)
    }

    /// Goes down to the level at `bounds`, through no symbolic links but those that the walk followed, which must lead where they
    /// led before. After an error, `at` is the end of the name that leads elsewhere.
    fn go_to(&mut self, bounds: Bounds, path: &TreePath, links: &Links, is_goal: bool) -> Result<(), Errno> {
        let path = path.until(bounds.path_end);
        while self.at < path.len() {
            let begin = self.at + usize::from(path[self.at] == b'/');
            let end = path[begin..].iter().position(|byte| *byte == b'/').map_or(path.len(), |slash| begin + slash);
            let name = CString::new(&path[begin..end]).map_err(|_| Errno::INVAL)?;
            (self.at, self.depth) = (end, self.depth + 1);
            self.reached = Some(match links.target(self.depth) {
                None if is_goal && end == path.len() => openat::again_at(self.dir(), &name, openat::NOFOLLOW)?,
                None => openat::path_at(self.dir(), &name, openat::NOFOLLOW)?,
                Some(target) => {
                    let dir = openat::again_at(self.dir(), &name, openat::DIRECTORY)?;
                    if FileId::of(dir.as_fd())? != target {
                        return Err(Errno::NOENT);
                    }
                    dir
                }
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Bounds, Errno, Links, Start, TreePath, WayBack};
    use rustix::fd::AsFd;

    /// Where the last way ended may be above the next level: it is no way back from below.
    #[test]
    #[cfg_attr(miri, ignore = "opens a directory")]
    fn a_level_without_identity_ends_the_last_way() {
        let dir = crate::open("/").unwrap();
        let reached = Some((crate::open("/").unwrap(), 1));
        let mut way = WayBack { reached, ..WayBack::default() };
        let [bounds, below] = [5, 6].map(|depth| Bounds { depth, ..Bounds::default() });
        let (path, links) = (TreePath::default(), Links::default());
        let below = Start { dir: dir.as_fd(), bounds: below };
        let by_names = || -> (Start<'_>, Vec<_>) { unreachable!("a level without identity is looked for") };
        let found = way.reopen((bounds, Err(Errno::IO)), Some(below), &path, &links, false, by_names);
        assert_eq!(found.unwrap_err(), Errno::IO);
        assert!(way.reached.is_none());
    }
}
