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
//! `..` does not lead back through a followed link, so each level right above one that was closed takes a way by names. Such levels
//! are closed last, and a way begins at the deepest open one. If there are more of them than descriptors, a way leaves open some
//! of those that it passes: the one half way down, that with a quarter of the way left, and so on. So n of them take some n log n
//! steps, unless there is no descriptor to spare, or what is below each of them follows as many links and takes the descriptors.

use super::identity::{FileId, Identity};
use super::links::Links;
use super::path::{Bounds, TreePath};
use super::raw_open;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use std::ffi::CString;

/// A level whose descriptor was closed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Closed {
    pub(super) bounds: Bounds,
    /// How to know it again, or the error of `statx`.
    pub(super) identity: Result<Identity, Errno>,
}

/// An open directory to begin at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start<'a> {
    pub(super) dir: BorrowedFd<'a>,
    pub(super) bounds: Bounds,
}

/// The level below the one to find.
#[derive(Clone, Copy, Debug)]
pub(super) enum Below<'a> {
    Open(Start<'a>),
    /// And where a way by names to it broke, if one did.
    Lost(Option<Broken>),
}

/// A name that leads elsewhere.
#[derive(Clone, Copy, Debug)]
pub(super) struct Broken {
    /// Where it ends in the path.
    end: usize,
    /// What the kernel answered there.
    errno: Errno,
}

/// Why a level is lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct NotFound {
    pub(super) errno: Errno,
    pub(super) broken: Option<Broken>,
}

/// A level, and the levels that a way to it has left open, with their depths.
pub(super) struct Reached {
    pub(super) dir: OwnedFd,
    pub(super) passed: Vec<(usize, OwnedFd)>,
}

/// Opens a closed level. `by_names` returns where the way by names begins, and the levels from there to this one, unless there is no
/// such way. It may leave as many levels open as there is `room` for.
pub(super) fn find<'t, Way: IntoIterator<Item = Closed>>(
    level: Closed,
    below: Below<'_>,
    path: &TreePath,
    links: &Links,
    same_mount: bool,
    room: usize,
    by_names: impl Fn() -> Option<(Start<'t>, Way)>,
) -> Result<Reached, NotFound> {
    let bounds = level.bounds;
    let broken = if let Below::Lost(broken) = below { broken } else { None };
    let identity = level.identity.map_err(|errno| NotFound { errno, broken })?;
    match below {
        // Below a followed link, `..` is the parent of the link's target, not of the link.
        Below::Open(start) if !links.is_between(bounds.depth, start.bounds.depth) => {
            let reached = raw_open::again_above(start.dir, start.bounds.depth - bounds.depth);
            if let Some(dir) = reached.ok().filter(|dir| identity.confirm(dir.as_fd(), same_mount).is_ok()) {
                return Ok(Reached { dir, passed: Vec::new() });
            }
        }
        _ => {}
    }
    if let Some(Broken { errno, .. }) = broken.filter(|broken| broken.end <= bounds.path_end) {
        return Err(NotFound { errno, broken });
    }
    let go = |room| {
        let Some((start, levels)) = by_names() else { return Err(NotFound { errno: Errno::NOENT, broken: None }) };
        let at = start.bounds.path_end;
        let way = WayDown { start, reached: None, passed: Vec::new(), at, depth: start.bounds.depth };
        way.go_down(levels, bounds, path, links, same_mount, room)
    };
    // Others may have taken the descriptors.
    go(room).or_else(|lost| if room > 0 && raw_open::lacks_descriptor(lost.errno) { go(0) } else { Err(lost) })
}

/// A directory on the way down by names.
struct WayDown<'t> {
    start: Start<'t>,
    /// `None` at the start, and at a level that was passed last.
    reached: Option<OwnedFd>,
    passed: Vec<(usize, OwnedFd)>,
    /// Where its path ends.
    at: usize,
    depth: usize,
}

impl WayDown<'_> {
    fn dir(&self) -> BorrowedFd<'_> {
        let passed = self.passed.last().map(|(_, dir)| dir);
        self.reached.as_ref().or(passed).map_or(self.start.dir, AsFd::as_fd)
    }

    /// Goes down to each of these levels, of which the last is the goal.
    fn go_down(
        mut self,
        levels: impl IntoIterator<Item = Closed>,
        goal: Bounds,
        path: &TreePath,
        links: &Links,
        same_mount: bool,
        room: usize,
    ) -> Result<Reached, NotFound> {
        let mut levels = levels.into_iter().peekable();
        let mut links_left = links.count_between(self.depth, goal.depth);
        while let Some(level) = levels.next() {
            let Bounds { depth, path_end, .. } = level.bounds;
            let left = links.count_between(depth, goal.depth);
            let is_above_link = levels.peek().is_some_and(|below| links.is_between(depth, below.bounds.depth));
            let stays_open = is_above_link && self.passed.len() < room && 2 * left <= links_left;
            let gone = self.go_to(path.until(path_end), links, stays_open || path_end == goal.path_end);
            let confirmed = gone.and_then(|()| level.identity?.confirm(self.dir(), same_mount));
            if let Err(errno) = confirmed {
                let broken = (!raw_open::lacks_descriptor(errno)).then_some(Broken { end: self.at, errno });
                return Err(NotFound { errno, broken });
            }
            if stays_open {
                links_left = left;
                self.passed.extend(self.reached.take().map(|dir| (depth, dir)));
            }
        }
        let dir = self.reached.map_or_else(|| fcntl_dupfd_cloexec(self.start.dir, 0), Ok);
        let dir = dir.map_err(|errno| NotFound { errno, broken: None })?;
        Ok(Reached { dir, passed: self.passed })
    }

    /// Goes down to the level at `path`, through no symbolic links but those that the walk followed, which must lead where they
    /// led before. Opens it for reading if it `stays_open`. After an error, `at` is the end of the name that leads elsewhere.
    fn go_to(&mut self, path: &[u8], links: &Links, stays_open: bool) -> Result<(), Errno> {
        while self.at < path.len() {
            let begin = self.at + usize::from(path[self.at] == b'/');
            let end = path[begin..].iter().position(|byte| *byte == b'/').map_or(path.len(), |slash| begin + slash);
            let name = CString::new(&path[begin..end]).map_err(|_| Errno::INVAL)?;
            (self.at, self.depth) = (end, self.depth + 1);
            self.reached = Some(match links.target(self.depth) {
                None if stays_open && end == path.len() => raw_open::again_at(self.dir(), &name, raw_open::NOFOLLOW)?,
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
