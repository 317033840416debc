//! [`Cursor::reopen`]: finds a level again after its descriptor was closed.
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

use super::Cursor;
use super::identity::Identity;
use super::path::PathBounds;
use super::stack::{ClosedLevel, DeadEnd, LevelState, Work};
use crate::open;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::OFlags;
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use std::ffi::CStr;

impl<T: Work> Cursor<T> {
    /// Reopens `level`, the closed level right above the current directory. If it is not found,
    /// returns why, and the dead end on its path if there is one.
    pub(super) fn reopen(&self, level: ClosedLevel) -> Result<OwnedFd, (Errno, Option<DeadEnd>)> {
        let Self { options, stack, links, .. } = self;
        let (top, bounds) = (stack.top(), level.bounds);
        let dead_end = if let LevelState::Lost(dead_end) = top.state { dead_end } else { None };
        let identity = level.identity.map_err(|errno| (errno, dead_end))?;
        let below = top.open_dir();
        let above = below
            .filter(|_| !links.is_between(bounds.depth, top.bounds.depth))
            .and_then(|dir| again_above(dir, top.bounds.depth - bounds.depth).ok())
            .filter(|dir| identity.confirm(dir.as_fd(), options.same_mount).is_ok());
        if let Some(dir) = above {
            return Ok(dir);
        }
        let is_on_path = |dead_end: &DeadEnd| dead_end.name_end <= bounds.path_end;
        if let Some(DeadEnd { errno, .. }) = dead_end.filter(is_on_path) {
            return Err((errno, dead_end));
        }
        let (start, mut reached, levels) = stack.path_by_names().map_err(|errno| (errno, None))?;
        self.descend_again(start, &mut reached, levels).map_err(|errno| {
            let dead_end = DeadEnd { name_end: reached.path_end, errno };
            let may_pass = open::lacks_descriptor(errno) || errno == Errno::NOMEM;
            (errno, Some(dead_end).filter(|_| !may_pass))
        })
    }

    /// Opens each directory on the path from `start` through the closed `levels`, and returns the
    /// last one, open for reading. Refuses symbolic links, except those that the walk followed,
    /// which must lead to the same target again. `reached` has the bounds of `start`, and those of
    /// the name that caused the error after one.
    fn descend_again(
        &self,
        start: BorrowedFd<'_>,
        reached: &mut PathBounds,
        levels: Vec<ClosedLevel>,
    ) -> Result<OwnedFd, Errno> {
        let Self { options, links, path, .. } = self;
        let goal_end = levels.last().map(|goal| goal.bounds.path_end);
        let (mut opened, mut name) = (None::<OwnedFd>, Vec::new());
        for ClosedLevel { bounds, identity } in levels {
            let path = path.prefix(bounds.path_end);
            while reached.path_end < path.len() {
                let name_start = reached.path_end + usize::from(path[reached.path_end] == b'/');
                let slash = path[name_start..].iter().position(|byte| *byte == b'/');
                let name_end = slash.map_or(path.len(), |slash| name_start + slash);
                name.clear();
                name.try_reserve(name_end - name_start + 1).map_err(|_| Errno::NOMEM)?;
                name.extend_from_slice(&path[name_start..name_end]);
                name.push(0);
                let name = CStr::from_bytes_with_nul(&name).map_err(|_| Errno::INVAL)?;
                *reached = PathBounds { depth: reached.depth + 1, path_end: name_end };
                let target = links.target(reached.depth);
                let flags = if target.is_some() { open::DIRECTORY } else { open::NOFOLLOW };
                let is_goal = Some(name_end) == goal_end;
                let open = if is_goal { again_at } else { open::path_at };
                let dir = open(opened.as_ref().map_or(start, AsFd::as_fd), name, flags)?;
                if target.is_some() && target != Some(Identity::of(dir.as_fd())?.id) {
                    return Err(Errno::NOENT);
                }
                opened = Some(dir);
            }
            let dir = opened.as_ref().map_or(start, AsFd::as_fd);
            identity?.confirm(dir, options.same_mount)?;
        }
        opened.map_or_else(|| fcntl_dupfd_cloexec(start, 0), Ok)
    }
}

/// Opens a directory that was open before. If the process no longer has permission to read it,
/// opens it with `O_PATH`.
fn again_at(dir: BorrowedFd<'_>, name: &CStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    match open::at(dir, name, flags) {
        Err(Errno::ACCESS) => open::path_at(dir, name, flags),
        answer => answer,
    }
}

/// Reopens the directory that is `levels` levels above `dir`, by `..`.
fn again_above(dir: BorrowedFd<'_>, levels: usize) -> Result<OwnedFd, Errno> {
    let mut reached: Option<OwnedFd> = None;
    for _ in 1..levels {
        let below = reached.as_ref().map_or(dir, AsFd::as_fd);
        reached = Some(open::path_at(below, c"..", open::DIRECTORY)?);
    }
    again_at(reached.as_ref().map_or(dir, AsFd::as_fd), c"..", open::DIRECTORY)
}
