//! [`reopen`]: finds a level again after its descriptor was closed.
//!
//! It does not know what remains to do at a level, nor which other levels are open.
//!
//! ```text
//! 1. by `..`, from the level below, if that is open and no followed link lies between
//! 2. by names, from the deepest open level above; for a shared level, from the root
//! ```
//!
//! Either way it accepts a directory only if the [`Identity`] is the one noted when the level was
//! closed or shared, because another process can move directories meanwhile.
//!
//! Above a lost level there is no descriptor for `..`, so only names remain. Once a name has led to
//! another directory, neither that name nor a name below it is tried again: it is a dead end. So
//! the number of system calls grows in proportion to the depth, whatever was moved.
//!
//! Below a followed link, `..` is the parent of the link's target. So a level above the link is
//! found by names only.

use super::identity::Identity;
use super::links::Links;
use super::path::{PathBounds, TreePath};
use super::raw_open;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use std::ffi::CString;

/// A level whose descriptor was closed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClosedLevel {
    pub(crate) bounds: PathBounds,
    /// The identity by which the walk recognises it, or the error of `statx`.
    pub(crate) identity: Result<Identity, Errno>,
}

/// A level whose descriptor is open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenLevel<'a> {
    pub(crate) dir: BorrowedFd<'a>,
    pub(crate) bounds: PathBounds,
}

/// The open level that a search by names starts from, and the closed levels from there to the goal.
pub(crate) type PathByNames<'t> = (OpenLevel<'t>, Vec<ClosedLevel>);

/// A name on the path that leads to another directory, or to none.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeadEnd {
    /// The offset at which the name ends in the path.
    name_end: usize,
    /// The answer of the kernel.
    errno: Errno,
}

/// The reason why a level is lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NotFound {
    pub(crate) errno: Errno,
    pub(crate) dead_end: Option<DeadEnd>,
}

/// Reopens a closed level. `by_names` returns the open level to start from and the closed levels
/// from there down to this one, or `None` if no level above is open.
pub(crate) fn reopen<'t>(
    level: ClosedLevel,
    (below, dead_end): (Option<OpenLevel<'_>>, Option<DeadEnd>),
    path: &TreePath,
    links: &Links,
    same_mount: bool,
    by_names: impl FnOnce() -> Option<PathByNames<'t>>,
) -> Result<OwnedFd, NotFound> {
    let bounds = level.bounds;
    let identity = level.identity.map_err(|errno| NotFound { errno, dead_end })?;
    let below = below.filter(|below| !links.is_between(bounds.depth, below.bounds.depth));
    if let Some(below) = below {
        let above = raw_open::again_above(below.dir, below.bounds.depth - bounds.depth);
        let is_same = |dir: &OwnedFd| identity.confirm(dir.as_fd(), same_mount).is_ok();
        if let Some(dir) = above.ok().filter(is_same) {
            return Ok(dir);
        }
    }
    if let Some(DeadEnd { errno, .. }) = dead_end.filter(|name| name.name_end <= bounds.path_end) {
        return Err(NotFound { errno, dead_end });
    }
    let (start, levels) = by_names().ok_or(NotFound { errno: Errno::NOENT, dead_end: None })?;
    let mut descent = NameDescent {
        start: start.dir,
        opened: None,
        path_end: start.bounds.path_end,
        depth: start.bounds.depth,
    };
    for ClosedLevel { bounds: passed, identity } in levels {
        let descended = descent.descend_to(path.prefix(passed.path_end), links, bounds.path_end);
        let confirmed = descended.and_then(|()| identity?.confirm(descent.dir(), same_mount));
        if let Err(errno) = confirmed {
            let name_end = descent.path_end;
            let dead_end =
                (!raw_open::lacks_descriptor(errno)).then_some(DeadEnd { name_end, errno });
            return Err(NotFound { errno, dead_end });
        }
    }
    let dir = descent.opened.map_or_else(|| fcntl_dupfd_cloexec(start.dir, 0), Ok);
    dir.map_err(|errno| NotFound { errno, dead_end: None })
}

/// A directory on the path, reached name by name.
struct NameDescent<'t> {
    start: BorrowedFd<'t>,
    /// The current directory. `None` at the start.
    opened: Option<OwnedFd>,
    /// The offset at which the path of the current directory ends.
    path_end: usize,
    depth: usize,
}

impl NameDescent<'_> {
    fn dir(&self) -> BorrowedFd<'_> {
        self.opened.as_ref().map_or(self.start, AsFd::as_fd)
    }

    /// Opens each directory down to the level at `path`. It refuses symbolic links, except those
    /// that the walk followed, which must lead to the same target again. The directory whose path
    /// ends at `goal_end` is opened for reading. After an error, `path_end` is the end of the name
    /// that caused the error.
    fn descend_to(&mut self, path: &[u8], links: &Links, goal_end: usize) -> Result<(), Errno> {
        while self.path_end < path.len() {
            let name_start = self.path_end + usize::from(path[self.path_end] == b'/');
            let slash = path[name_start..].iter().position(|byte| *byte == b'/');
            let name_end = slash.map_or(path.len(), |slash| name_start + slash);
            let name = CString::new(&path[name_start..name_end]).map_err(|_| Errno::INVAL)?;
            self.path_end = name_end;
            self.depth += 1;
            let target = links.target(self.depth);
            let flags = if target.is_some() { raw_open::DIRECTORY } else { raw_open::NOFOLLOW };
            let open = if name_end == goal_end { raw_open::again_at } else { raw_open::path_at };
            let dir = open(self.dir(), &name, flags)?;
            if target.is_some() && target != Some(Identity::of(dir.as_fd())?.id) {
                return Err(Errno::NOENT);
            }
            self.opened = Some(dir);
        }
        Ok(())
    }
}
