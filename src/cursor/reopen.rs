//! How the walk finds a level again after closing its descriptor: [`find`]. It does not know what is left to do at a level, nor which
//! other levels are open.
//!
//! It goes up by `..` from the level below. If that does not lead there, it goes down by names: from the deepest open level above it,
//! or, where the last thread at a shared level goes on above its own base, from the root. Either way it accepts a directory only if
//! that has the [`Identity`] noted when the level was closed or shared, because others can move directories meanwhile.
//!
//! Above a lost level there is no descriptor for `..` to begin at, so only names are left. Once a name has led elsewhere, neither
//! that name nor one below it is tried again. So the number of system calls on the way back grows in proportion to the depth,
//! whatever was moved.
//!
//! `..` does not lead back through a followed link, so each level right above one that was closed takes a way by names.

use super::identity::{FileId, Identity};
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
    /// How to know it again, or the error of `statx`.
    pub(crate) identity: Result<Identity, Errno>,
}

/// An open directory to begin at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenLevel<'a> {
    pub(crate) dir: BorrowedFd<'a>,
    pub(crate) bounds: PathBounds,
}

/// The level below the one to find.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LevelBelow<'a> {
    Open(OpenLevel<'a>),
    /// And where a way by names to it broke, if one did.
    Lost(Option<DeadEnd>),
}

/// A name that leads elsewhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeadEnd {
    /// Where it ends in the path.
    end: usize,
    /// What the kernel answered there.
    errno: Errno,
}

/// Why a level is lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NotFound {
    pub(crate) errno: Errno,
    pub(crate) dead_end: Option<DeadEnd>,
}

/// Opens a closed level. `by_names` returns where the way by names begins, and the levels from there to this one, unless there is no
/// such way.
pub(crate) fn reopen<'t, Way: IntoIterator<Item = ClosedLevel>>(
    level: ClosedLevel,
    below: LevelBelow<'_>,
    path: &TreePath,
    links: &Links,
    same_mount: bool,
    by_names: impl Fn() -> Option<(OpenLevel<'t>, Way)>,
) -> Result<OwnedFd, NotFound> {
    let bounds = level.bounds;
    let dead_end = if let LevelBelow::Lost(dead_end) = below { dead_end } else { None };
    let identity = level.identity.map_err(|errno| NotFound { errno, dead_end })?;
    match below {
        // LevelBelow a followed link, `..` is the parent of the link's target, not of the link.
        LevelBelow::Open(start) if !links.is_between(bounds.depth, start.bounds.depth) => {
            let reached = raw_open::again_above(start.dir, start.bounds.depth - bounds.depth);
            if let Some(dir) =
                reached.ok().filter(|dir| identity.confirm(dir.as_fd(), same_mount).is_ok())
            {
                return Ok(dir);
            }
        }
        _ => {}
    }
    if let Some(DeadEnd { errno, .. }) = dead_end.filter(|dead_end| dead_end.end <= bounds.path_end)
    {
        return Err(NotFound { errno, dead_end });
    }
    let Some((start, levels)) = by_names() else {
        return Err(NotFound { errno: Errno::NOENT, dead_end: None });
    };
    let mut way = NameDescent {
        start: start.dir,
        reached: None,
        at: start.bounds.path_end,
        depth: start.bounds.depth,
    };
    for ClosedLevel { bounds: passed, identity } in levels {
        let gone = way.set_name(path.prefix(passed.path_end), links, bounds.path_end);
        let confirmed = gone.and_then(|()| identity?.confirm(way.dir(), same_mount));
        if let Err(errno) = confirmed {
            let dead_end =
                (!raw_open::lacks_descriptor(errno)).then_some(DeadEnd { end: way.at, errno });
            return Err(NotFound { errno, dead_end });
        }
    }
    let dir = way.reached.map_or_else(|| fcntl_dupfd_cloexec(start.dir, 0), Ok);
    dir.map_err(|errno| NotFound { errno, dead_end: None })
}

/// A directory on the way down by names.
struct NameDescent<'t> {
    start: BorrowedFd<'t>,
    /// `None` at the start.
    reached: Option<OwnedFd>,
    /// Where its path ends.
    at: usize,
    depth: usize,
}

impl NameDescent<'_> {
    fn dir(&self) -> BorrowedFd<'_> {
        self.reached.as_ref().map_or(self.start, AsFd::as_fd)
    }

    /// Goes down to the level at `path`, through no symbolic links but those that the walk followed, which must lead where they
    /// led before. Opens the `goal`, whose path ends there, for reading. After an error, `at` is the end of the name that leads
    /// elsewhere.
    fn set_name(&mut self, path: &[u8], links: &Links, goal: usize) -> Result<(), Errno> {
        while self.at < path.len() {
            let begin = self.at + usize::from(path[self.at] == b'/');
            let end = path[begin..]
                .iter()
                .position(|byte| *byte == b'/')
                .map_or(path.len(), |slash| begin + slash);
            let name = CString::new(&path[begin..end]).map_err(|_| Errno::INVAL)?;
            (self.at, self.depth) = (end, self.depth + 1);
            self.reached = Some(match links.target(self.depth) {
                None if end == goal => raw_open::again_at(self.dir(), &name, raw_open::NOFOLLOW)?,
                None => raw_open::path_at(self.dir(), &name, raw_open::NOFOLLOW)?,
                Some(target) => {
                    let dir = raw_open::again_at(self.dir(), &name, raw_open::DIRECTORY)?;
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
