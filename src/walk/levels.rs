//! `Levels`: the path from the root to the directory at hand, the names still to do along it, and the way back up.
//!
//! ```text
//! stack     the levels with something to do     usr            usr/share           usr/share/doc
//! pending   their names still to do             lib sbin src   icons man           adduser apt bash
//! closed    how to know a closed one again                     dev, inode, birth
//! path      of the directory at hand            usr/share/doc
//! ```
//!
//! A level stays on the stack for as long as it has names pending. Its last child takes its place, and its descriptor is
//! closed as soon as that child is open: a chain of directories is one level, however long it is. In post-order a level
//! stays until its second visit.
//!
//! When too many descriptors are open, the shallowest level but the first is closed. So the closed levels lie side by side
//! behind the first, and the walk comes back to the last of them first. It opens `..` of the directory below, or else goes
//! by names from the first level, and believes what it finds only if device, inode number and birth time are those that it
//! noted when it closed the level.

use super::identity::{Identity, Mount};
use super::pending::{Kind, Pending};
use super::split::Split;
use crate::EndMarker;
use crate::error::Error;
use crate::open::{open_below, open_below_on_mount, open_path_below, reopen_above, reopen_below};
use crate::sync::Arc;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::SeekFrom;
use rustix::io::{Errno, fcntl_dupfd_cloexec, retry_on_intr};
use std::ffi::{CStr, CString};
use std::io;
use std::ops::Range;

/// The first level, the one at hand, and two more on the way by names to a closed one.
const MIN_OPEN: usize = 4;
const DEFAULT_OPEN: usize = 32;

#[derive(Debug)]
pub(super) struct Levels {
    /// Empty when nothing is left.
    stack: Vec<Level>,
    /// One for each closed level, `stack[1..=closed.len()]`: its identity, or the error of `statx`.
    closed: Vec<Result<Identity, Errno>>,
    lost: Vec<Lost>,
    pending: Pending,
    /// The path of the directory at hand, and a NUL.
    path: Vec<u8>,
    pub(super) unread: Unread,
    max_open: usize,
    pub(super) mounts: Mounts,
    pub(super) is_post_order: bool,
}

/// The entries of the directory at hand that have not been looked at for directories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    Nothing,
    /// All: it is the root, and has not been lent.
    Root,
    /// All: none has been asked for.
    All,
    /// Those behind the ones that were lent.
    Rest,
    /// They are of no interest, nor is the rest of the tree.
    Stopped,
}

impl Unread {
    /// An entry was lent.
    #[inline]
    pub(super) fn begin(&mut self) {
        if *self == Self::All {
            *self = Self::Rest;
        }
    }

    /// The rest has been read, or is of no interest.
    #[inline]
    pub(super) fn end(&mut self) {
        if matches!(self, Self::All | Self::Rest) {
            *self = Self::Nothing;
        }
    }
}

#[derive(Debug)]
pub(super) struct Level {
    /// `None` while it is closed.
    dir: Option<OwnedFd>,
    pub(super) depth: usize,
    /// Where its name begins in the path.
    name: usize,
    /// Where its path ends.
    path_end: usize,
    /// Where its names begin in `pending`.
    names: usize,
    /// Where the first of them begins that is still to do.
    next: usize,
    /// Whether the walk is at its second visit.
    is_left: bool,
    split: Option<Arc<Split<Place>>>,
}

/// How to come back to a level that several threads have a part in.
#[derive(Debug)]
struct Place {
    identity: Result<Identity, Errno>,
    /// If it is the root, a descriptor to go down from by names.
    root: Result<OwnedFd, Errno>,
    depth: usize,
    name: usize,
    path_end: usize,
}

/// A level that this thread has a part in, and did not find when it came back.
#[derive(Debug)]
struct Lost {
    split: Arc<Split<Place>>,
    /// Of the level.
    path: Vec<u8>,
}

/// Which directories the walk goes below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mounts {
    All,
    /// Those on the mount of the root, as `openat2` tells. It has one file system, and so one end marker.
    One(EndMarker),
    /// The same where `openat2` is refused: those on this mount, which each directory is asked for once it is open.
    Compared(Mount),
}

/// The parts of [`Levels`] that a [`Dir`](super::Dir) borrows.
pub(super) struct AtHand<'a> {
    pub(super) level: &'a Level,
    pub(super) dir: BorrowedFd<'a>,
    /// At a second visit.
    pub(super) parent: Option<BorrowedFd<'a>>,
    pub(super) pending: &'a mut Pending,
    /// With its NUL.
    pub(super) path: &'a [u8],
    pub(super) unread: &'a mut Unread,
}

/// The answer of [`Levels::step`].
pub(super) enum Step {
    /// A directory is at hand, for its first visit or its second.
    AtHand,
    /// There is another step to take.
    On,
    /// Nothing is left.
    Done,
}

impl Default for Levels {
    fn default() -> Self {
        Self {
            stack: Vec::new(),
            closed: Vec::new(),
            lost: Vec::new(),
            pending: Pending::default(),
            path: Vec::new(),
            unread: Unread::Nothing,
            max_open: DEFAULT_OPEN,
            mounts: Mounts::All,
            is_post_order: false,
        }
    }
}

impl Levels {
    /// Leaves the tree. The memory stays for the next one.
    pub(super) fn clear(&mut self) {
        self.stack.clear();
        self.closed.clear();
        self.lost.clear();
        self.pending.truncate(0);
        self.unread = Unread::Nothing;
    }

    /// Begins a tree at `root`, whose paths begin with `path`.
    pub(super) fn begin(&mut self, root: OwnedFd, path: &[u8]) {
        self.clear();
        self.path.clear();
        self.path.extend_from_slice(path);
        self.path.push(0);
        self.stack.push(Level::new(root, 0, 0, path.len(), 0));
        self.unread = Unread::Root;
        if self.mounts != Mounts::All {
            self.mounts = Mounts::One(EndMarker::NONE);
        }
    }

    /// The root is at hand: notes the end marker of its mount, if the walk stays there.
    pub(super) fn note_end_marker(&mut self) {
        if let Mounts::One(_) = self.mounts {
            self.mounts = Mounts::One(EndMarker::of(self.top().dir()).unwrap_or(EndMarker::NONE));
        }
    }

    #[inline]
    pub(super) fn end_marker(&self) -> EndMarker {
        if let Mounts::One(end_marker) = self.mounts { end_marker } else { EndMarker::NONE }
    }

    pub(super) fn limit_open(&mut self, descriptors: usize) {
        self.max_open = descriptors.max(MIN_OPEN);
    }

    /// Rewinds the directory at hand. Returns the names that are noted of it.
    pub(super) fn rewind(&self) -> Result<Pending, Error> {
        let top = self.top();
        match retry_on_intr(|| rustix::fs::seek(top.dir(), SeekFrom::Start(0))) {
            Ok(_) => Ok(self.pending.copy(top.names..self.pending.len())),
            Err(errno) => Err(top.error(&self.path, errno)),
        }
    }

    #[inline]
    pub(super) fn at_hand(&mut self) -> AtHand<'_> {
        let Self { stack, pending, path, unread, .. } = self;
        let (level, above) = stack.split_last().expect("BUG: there is no level");
        let parent = above.last().filter(|above| level.is_left && above.depth + 1 == level.depth);
        AtHand { level, dir: level.dir(), parent: parent.map(Level::dir), pending, path, unread }
    }

    /// Opens the next directory, or takes a step towards it.
    #[allow(clippy::inline_always, reason = "see `Walk::next`")]
    #[inline(always)]
    pub(super) fn step(&mut self) -> Result<Step, Error> {
        let Some(top) = self.stack.last() else { return self.come_up_from_lost() };
        if top.next < self.pending.len() {
            self.enter()
        } else if self.is_post_order && !top.is_left {
            self.visit_again()
        } else if self.is_closed_above() {
            self.come_back().map(|()| Step::On)
        } else {
            self.pop();
            Ok(Step::On)
        }
    }

    /// Closes the directory at hand.
    #[inline]
    fn pop(&mut self) {
        let level = self.stack.pop().expect("BUG: there is no level");
        self.pending.truncate(level.names);
    }

    /// Opens the first directory that is pending in the level at hand.
    #[allow(clippy::inline_always, reason = "see `Walk::next`")]
    #[inline(always)]
    fn enter(&mut self) -> Result<Step, Error> {
        // More than one if the limit was lowered midway.
        while self.open_count() >= self.max_open && self.close_shallowest() {}
        let Self { stack, pending, path, mounts, .. } = self;
        let top = stack.last_mut().expect("BUG: there is no level");
        let (kind, name) = pending.at(top.next);
        let behind = top.next + 1 + name.to_bytes_with_nul().len();
        if kind == Kind::Skipped {
            top.next = pending.forget(top.names, behind);
            return Ok(Step::On);
        }

        path.truncate(top.path_end);
        if path.last().is_some_and(|last| *last != b'/') {
            path.push(b'/');
        }
        let name_at = path.len();
        path.extend_from_slice(name.to_bytes_with_nul());

        let opened = mounts.open(top.dir(), name);
        top.next = pending.forget(top.names, behind);
        match opened {
            Ok(dir) => Ok(self.push(dir, name_at)),
            Err(errno) => self.refused(errno, kind, name_at),
        }
    }

    /// The directory whose name is at the end of the path is at hand now, as `dir`.
    #[inline]
    fn push(&mut self, dir: OwnedFd, name: usize) -> Step {
        let names = self.pending.len();
        let top = self.stack.last_mut().expect("BUG: there is no level");
        let level = Level::new(dir, top.depth + 1, name, self.path.len() - 1, names);
        if top.next == names && !self.is_post_order {
            *top = level; // and its descriptor is closed
        } else {
            self.stack.push(level);
        }
        Step::AtHand
    }

    /// Deals with `errno`, the answer to opening the directory whose name is at the end of the path.
    #[cold]
    #[inline(never)]
    fn refused(&mut self, mut errno: Errno, kind: Kind, name: usize) -> Result<Step, Error> {
        loop {
            let is_mended = match errno {
                Errno::XDEV if self.mounts != Mounts::All => return Ok(Step::On),
                Errno::NOTDIR | Errno::LOOP if kind == Kind::Unknown => return Ok(Step::On),
                Errno::MFILE | Errno::NFILE => self.keep_fewer_open(),
                Errno::NOSYS | Errno::PERM => self.do_without_openat2(),
                _ => false,
            };
            if !is_mended {
                break;
            }
            match self.mounts.open(self.top().dir(), self.name(name)) {
                Ok(dir) => return Ok(self.push(dir, name)),
                Err(error) => errno = error,
            }
        }
        let error = Error::new(self.name(0).to_bytes(), self.top().depth + 1, errno);
        if self.is_post_order {
            // A directory that cannot be read has its second visit all the same.
            if let Ok(dir) = open_path_below(self.top().dir(), self.name(name)) {
                self.push(dir, name);
            }
        }
        Err(error)
    }

    /// Does with `openat` and `statx` from now on. Old kernels and seccomp filters refuse `openat2` with `ENOSYS` or `EPERM`.
    /// If it was the directory that they refused, `openat` fails too.
    fn do_without_openat2(&mut self) -> bool {
        if !matches!(self.mounts, Mounts::One(_)) {
            return false;
        }
        let Ok(mount) = Mount::of(self.top().dir()) else { return false };
        self.mounts = Mounts::Compared(mount);
        true
    }

    /// No descriptor is to be had: gives one back and does with fewer from now on.
    fn keep_fewer_open(&mut self) -> bool {
        let is_closed = self.close_shallowest();
        self.limit_open(self.open_count() + 1);
        is_closed
    }

    /// Closes the shallowest level but the first, unless it is the one at hand.
    #[cold]
    #[inline(never)]
    fn close_shallowest(&mut self) -> bool {
        let (_, others) = self.stack.split_last_mut().expect("BUG: there is no level");
        let Some(level) = others.get_mut(1 + self.closed.len()) else { return false };
        self.closed.push(Identity::of(level.dir()));
        level.dir = None;
        true
    }

    /// Opens again the level above the one at hand, below which nothing is left. It is lost if it cannot be found.
    #[cold]
    #[inline(never)]
    fn come_back(&mut self) -> Result<(), Error> {
        let Self { stack, closed, lost, pending, path, .. } = self;
        let [first, .., level, below] = &mut stack[..] else { panic!("BUG: the first level is never closed") };
        let noted = closed.pop().expect("BUG: no level is closed");
        let found = noted.and_then(|identity| {
            let by_dots = reopen_above(below.dir(), below.depth - level.depth);
            identity.find(by_dots, || open_by_names(first.dir(), &path[first.path_end..level.path_end]))
        });
        match found {
            Ok(dir) => {
                level.dir = Some(dir);
                Ok(())
            }
            Err(errno) => {
                pending.truncate(level.names);
                (below.names, below.next) = (level.names, level.names);
                let error = level.error(path, errno);
                let Level { split, path_end, .. } = stack.remove(stack.len() - 2);
                if let Some(split) = split {
                    // The last thread in the lost level goes on above it, and needs a part there.
                    if let Some(above) = split.above() {
                        above.add_part();
                    }
                    lost.push(Lost { split, path: path[..path_end].to_vec() });
                }
                Err(error)
            }
        }
    }

    /// Makes the directory at hand ready for its second visit, with the one above it open. If other threads are still below
    /// it, the visit is theirs.
    #[cold]
    #[inline(never)]
    fn visit_again(&mut self) -> Result<Step, Error> {
        if self.is_closed_above() {
            self.come_back()?;
        }
        let is_first = self.stack.len() == 1;
        if let Some(split) = self.stack.last_mut().and_then(|top| top.split.take()) {
            if !split.give_up_part(!is_first) {
                self.pop();
                return Ok(Step::On);
            }
            if let (true, Some(above)) = (is_first, split.above()) {
                self.come_up(above)?;
            }
        }
        let top = self.stack.last_mut().expect("BUG: there is no level");
        top.is_left = true;
        self.path.truncate(top.path_end);
        self.path.push(0);
        Ok(Step::AtHand)
    }

    /// Makes the level above the first one the first: this thread has a part in it now. It goes by `..`, or else by names from
    /// the root.
    fn come_up(&mut self, split: &Arc<Split<Place>>) -> Result<(), Error> {
        let Place { identity, depth, name, path_end, .. } = split.place;
        let path = &self.path[..path_end];
        let found = identity.and_then(|identity| {
            let first = self.stack.first().ok_or(Errno::NOENT);
            let by_dots = first.and_then(|first| reopen_above(first.dir(), first.depth - depth));
            identity.find(by_dots, || open_from_root(split, path))
        });
        match found {
            Ok(dir) => {
                let split = Some(Arc::clone(split));
                self.stack.insert(0, Level { split, ..Level::new(dir, depth, name, path_end, 0) });
                Ok(())
            }
            Err(errno) => {
                let error = Error::new(path, depth, errno);
                self.lost.push(Lost { split: Arc::clone(split), path: path.to_vec() });
                Err(error)
            }
        }
    }

    /// Nothing is left here but parts in levels that were lost. If no other thread has one, goes on above.
    #[cold]
    #[inline(never)]
    fn come_up_from_lost(&mut self) -> Result<Step, Error> {
        let Some(Lost { split, path }) = self.lost.pop() else { return Ok(Step::Done) };
        if let (true, Some(above)) = (split.give_up_part(false), split.above()) {
            self.path = path;
            self.come_up(above)?;
        }
        Ok(Step::On)
    }

    /// No levels, for a thread that has nothing to do yet.
    pub(super) fn without_work(&self) -> Self {
        let Self { max_open, mounts, is_post_order, .. } = *self;
        Self { max_open, mounts, is_post_order, ..Self::default() }
    }

    pub(super) fn is_stopped(&self) -> bool {
        matches!(self.unread, Unread::Stopped)
    }

    pub(super) fn has_work(&self) -> bool {
        !(self.stack.is_empty() && self.lost.is_empty())
    }

    /// Takes half of the directories that are pending at the shallowest level that is open, for another thread. A
    /// single one is given away only if others are left. The level's descriptor is duplicated.
    pub(super) fn split(&mut self) -> Option<Self> {
        let shallowest = self.pending_from(0)?;
        let is_closed = (1..=self.closed.len()).contains(&shallowest.0);
        let below_closed = || self.pending_from(self.stack[self.closed.len() + 1].names);
        let (index, names) = if is_closed { below_closed()? } else { shallowest };
        let behind = self.pending.half(names.clone());
        if behind == names.end && !is_closed && self.pending_from(names.end).is_none() {
            return None;
        }
        let level = &self.stack[index];
        let dir = fcntl_dupfd_cloexec(level.dir(), 0).ok()?;

        let mut part = self.without_work();
        part.pending = self.pending.copy(names.start..behind);
        part.path = [level.path(&self.path), &[0]].concat();
        part.stack.push(Level::new(dir, level.depth, level.name, level.path_end, 0));
        if self.is_post_order {
            part.stack[0].split = Some(self.share(index));
        }
        self.stack[index].next = behind;
        Some(part)
    }

    /// The shallowest level that has names still to do, of those whose names begin at `at` or behind, and where these are. It
    /// looks at levels with names only: a chain in post-order has any number of levels without.
    fn pending_from(&self, mut at: usize) -> Option<(usize, Range<usize>)> {
        while at < self.pending.len() {
            let below = self.stack.partition_point(|level| level.names <= at);
            let end = self.stack.get(below).map_or(self.pending.len(), |level| level.names);
            let next = self.stack[below - 1].next;
            if next < end {
                return Some((below - 1, next..end));
            }
            at = end;
        }
        None
    }

    /// Makes the level at `index` one that several threads have a part in, and so those above it.
    fn share(&mut self, index: usize) -> Arc<Split<Place>> {
        let Self { stack, closed, .. } = self;
        let last_shared = stack[..=index].iter().rposition(|level| level.split.is_some());
        let mut shared = last_shared.and_then(|at| stack[at].split.clone());
        for at in last_shared.map_or(0, |at| at + 1)..=index {
            let level = &mut stack[at];
            let identity = match &level.dir {
                Some(dir) => Identity::of(dir.as_fd()),
                None => closed[at - 1],
            };
            let root = if at == 0 { fcntl_dupfd_cloexec(level.dir(), 0) } else { Err(Errno::NOENT) };
            let (depth, name, path_end) = (level.depth, level.name, level.path_end);
            shared = Some(Split::new(Place { identity, root, depth, name, path_end }, shared));
            level.split.clone_from(&shared);
        }
        let split = shared.expect("BUG: no level to share");
        split.add_part();
        split
    }

    /// Whether the level above the one at hand is closed.
    #[inline]
    fn is_closed_above(&self) -> bool {
        !self.closed.is_empty() && self.closed.len() + 2 == self.stack.len()
    }

    #[inline]
    fn open_count(&self) -> usize {
        self.stack.len() - self.closed.len()
    }

    fn top(&self) -> &Level {
        self.stack.last().expect("BUG: there is no level")
    }

    /// What the path has from `at` on.
    fn name(&self, at: usize) -> &CStr {
        CStr::from_bytes_with_nul(&self.path[at..]).expect("BUG: a path without its NUL")
    }
}

impl Level {
    #[inline]
    fn new(dir: OwnedFd, depth: usize, name: usize, path_end: usize, names: usize) -> Self {
        Self { dir: Some(dir), depth, name, path_end, names, next: names, is_left: false, split: None }
    }

    #[inline]
    fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_ref().expect("BUG: the level is closed").as_fd()
    }

    /// Its path, where `path` is that of the directory at hand, which is this one or below it.
    #[inline]
    pub(super) fn path<'p>(&self, path: &'p [u8]) -> &'p [u8] {
        &path[..self.path_end]
    }

    /// An error that belongs to it, where `path` is as for [`path`](Self::path).
    #[cold]
    pub(super) fn error(&self, path: &[u8], cause: impl Into<io::Error>) -> Error {
        Error::new(self.path(path), self.depth, cause)
    }

    /// Its name, where `path` is its own.
    #[inline]
    pub(super) fn name<'p>(&self, path: &'p [u8]) -> &'p CStr {
        CStr::from_bytes_with_nul(&path[self.name..]).expect("BUG: a path without its NUL")
    }

    #[inline]
    pub(super) fn is_left(&self) -> bool {
        self.is_left
    }

    /// Where the names of its directories begin in [`Pending`].
    #[inline]
    pub(super) fn names(&self) -> usize {
        self.names
    }
}

/// Goes down from `dir` to a directory that was open before, by names with slashes between them, which lead through no
/// symbolic link.
fn open_by_names(dir: BorrowedFd<'_>, names: &[u8]) -> Result<OwnedFd, Errno> {
    let mut names = names.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).peekable();
    let mut reached: Option<OwnedFd> = None;
    while let Some(name) = names.next() {
        let name = CString::new(name).map_err(|_| Errno::INVAL)?;
        let open = if names.peek().is_some() { open_path_below } else { reopen_below };
        reached = Some(open(reached.as_ref().map_or(dir, AsFd::as_fd), &name)?);
    }
    reached.map_or_else(|| fcntl_dupfd_cloexec(dir, 0), Ok)
}

/// Goes down to the last of the names in `path`, which is that of `split`.
fn open_from_root(split: &Split<Place>, path: &[u8]) -> Result<OwnedFd, Errno> {
    let mut root = split;
    while let Some(above) = root.above() {
        root = above;
    }
    let Place { root: dir, path_end, .. } = &root.place;
    dir.as_ref().map_err(|errno| *errno).and_then(|dir| open_by_names(dir.as_fd(), &path[*path_end..]))
}

impl Mounts {
    #[allow(clippy::inline_always, reason = "see `Walk::next`")]
    #[inline(always)]
    fn open(self, dir: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
        match self {
            Self::All => open_below(dir, name),
            Self::One(_) => open_below_on_mount(dir, name),
            Self::Compared(mount) => {
                let is_mount_point = |dir: &OwnedFd| Ok(Mount::of(dir.as_fd())? != mount);
                match open_below(dir, name) {
                    Ok(dir) if is_mount_point(&dir)? => Err(Errno::XDEV),
                    Err(Errno::ACCESS) if is_mount_point(&open_path_below(dir, name)?)? => Err(Errno::XDEV),
                    answer => answer,
                }
            }
        }
    }
}
