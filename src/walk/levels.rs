//! `Levels`, `Known`, `AtHand`, `Step`: one thread's way from the root to the current directory, and what is still to
//! do along it.
//!
//! ```text
//! stack     the levels with something to do     usr            usr/share           usr/share/doc
//! pending   their names still to do             lib sbin src   icons man           adduser apt bash
//! closed    how to know a closed one again                     dev, inode, birth
//! path      of the current directory            usr/share/doc
//! ```
//!
//! A level stays on the stack while it has names pending. Its last child takes its place, and its descriptor is closed as soon
//! as that child is open: a chain of directories is one level, however long it is. In post-order a level stays until its second
//! visit.
//!
//! When too many descriptors are open, the shallowest level but the first is closed. So the closed levels are those right after
//! the first, and the walk comes back to the last of them first: see [`WayBack`]. A level that is not found is lost: it stays
//! on the stack, without names, until the walk has gone up past it.
//!
//! What holds between two steps is in [`Levels::check`].

use super::dir::Unread;
use super::identity::Identity;
use super::level::{Level, Spot, State};
use super::links::Links;
use super::mounts::{Mounts, with_end_marker};
use super::open::open_path_below;
use super::options::{MIN_OPEN, Options};
use super::path::TreePath;
use super::pending::{Kind, Pending, Record};
use super::shared::Shared;
use super::way_back::{From, WayBack};
use crate::EndMarker;
use crate::error::Error;
use crate::sync::Arc;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::SeekFrom;
use rustix::io::{Errno, retry_on_intr};
use std::io;
use std::mem;

#[derive(Debug)]
pub(super) struct Levels<S> {
    pub(super) options: Options,
    pub(super) known: Known,
    /// Of a tree that has not begun.
    root: Option<OwnedFd>,
    /// Empty when nothing is left.
    pub(super) stack: Vec<Level<S>>,
    /// One for each closed level, `stack[1..=closed.len()]`: its identity, or the error of `statx`.
    pub(super) closed: Vec<Result<Identity, Errno>>,
    way_back: WayBack,
    pub(super) links: Links,
    pub(super) pending: Pending,
    /// Of the current directory.
    pub(super) path: TreePath,
    pub(super) unread: Unread,
}

/// What the walk has learned, or what is settled for this tree. Each thread has its own copy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) mounts: Mounts,
    pub(super) post_order: bool,
    /// How many descriptors a thread may hold: `max_open`, or fewer once the system has refused one.
    pub(super) max_open: usize,
}

/// The parts of [`Levels`] that a [`Dir`](super::Dir) borrows.
pub(super) struct AtHand<'a, S> {
    pub(super) dir: BorrowedFd<'a>,
    pub(super) end_marker: EndMarker,
    pub(super) is_second_visit: bool,
    /// At a second visit.
    pub(super) parent: Option<BorrowedFd<'a>>,
    pub(super) spot: &'a Spot,
    pub(super) has_entries: bool,
    /// Whether its entries are the deepest ones that are lent.
    pub(super) is_deepest: bool,
    pub(super) value: &'a mut S,
    pub(super) pending: &'a mut Pending,
    /// With its NUL.
    pub(super) path: &'a [u8],
    pub(super) unread: &'a mut Unread,
}

/// What [`Levels::step`] came to.
pub(super) enum Step {
    /// There is a directory to lend, for its first visit or its second.
    AtHand,
    /// There is another step to take.
    More,
    /// Nothing is left.
    Done,
}

impl<S> Levels<S> {
    /// No levels.
    pub(super) fn new(options: Options) -> Self {
        let known = Known { mounts: Mounts::default(), post_order: options.post_order, max_open: options.max_open() };
        Self {
            options,
            known,
            root: None,
            stack: Vec::new(),
            closed: Vec::new(),
            way_back: WayBack::default(),
            links: Links::default(),
            pending: Pending::default(),
            path: TreePath::default(),
            unread: Unread::Nothing,
        }
    }

    /// No levels, for another thread of the same walk.
    pub(super) fn of_another_thread(&self) -> Self {
        Self { known: self.known, ..Self::new(self.options) }
    }

    /// The same tree with values of another type. A tree that has begun is abandoned.
    pub(super) fn with_values_of<T>(self) -> Levels<T> {
        let Self { options, known, root, path, unread, .. } = self;
        let unread = if root.is_some() { unread } else { Unread::Nothing };
        Levels { known, root, path, unread, ..Levels::new(options) }
    }

    /// Abandons the tree. The memory stays for the next one.
    pub(super) fn clear(&mut self) {
        self.root = None;
        self.stack.clear();
        self.closed.clear();
        self.way_back = WayBack::default();
        self.links.clear();
        self.pending.truncate(0);
        self.unread = Unread::Nothing;
    }

    /// Begins a tree at `root`, whose paths begin with `path`.
    pub(super) fn begin(&mut self, root: OwnedFd, path: &[u8]) {
        self.clear();
        self.known.mounts.forget();
        self.path.begin(path);
        self.root = Some(root);
        self.unread = Unread::Root;
    }

    /// The root becomes the current directory, with this value.
    pub(super) fn enter_root(&mut self, value: S) {
        let (root, end_marker) = with_end_marker(self.root.take().expect("BUG: the tree has begun"));
        let spot = Spot { depth: 0, name_at: 0, path_end: self.path.len(), names_at: 0 };
        self.known.post_order = self.options.post_order;
        self.stack.push(Level::new(State::First(root), spot, end_marker, value));
    }

    pub(super) fn stay_on_mount(&mut self, yes: bool) {
        self.options.same_mount = yes;
        self.known.mounts.forget();
    }

    pub(super) fn limit_open(&mut self, descriptors: usize) {
        self.options.set_max_open(descriptors);
        self.known.max_open = self.options.max_open();
    }

    /// The path of the current directory.
    pub(super) fn path(&self) -> &[u8] {
        self.path.until(self.path.len())
    }

    /// Of the current directory, or 0.
    pub(super) fn depth(&self) -> usize {
        self.stack.last().map_or(0, |top| top.spot.depth)
    }

    /// An error of the current directory.
    pub(super) fn error(&self, cause: impl Into<io::Error>) -> Error {
        self.error_at(self.top().spot, cause)
    }

    /// An error of the level at `spot`, which is the current one or above it.
    #[cold]
    fn error_at(&self, spot: Spot, cause: impl Into<io::Error>) -> Error {
        spot.error(self.path.as_bytes_with_nul(), cause)
    }

    /// Rewinds the current directory. Returns the names in it that are noted.
    pub(super) fn rewind(&self) -> Result<Pending, Error> {
        let top = self.top();
        match retry_on_intr(|| rustix::fs::seek(top.dir(), SeekFrom::Start(0))) {
            Ok(_) => Ok(self.pending.copy(top.spot.names_at..self.pending.len())),
            Err(errno) => Err(self.error(errno)),
        }
    }

    #[inline]
    pub(super) fn at_hand(&mut self) -> AtHand<'_, S> {
        let Self { options, stack, pending, path, unread, .. } = self;
        let (top, above) = stack.split_last_mut().expect("BUG: there is no level");
        let Level { state, spot, end_marker, value, .. } = top;
        let state: &State = state;
        let (dir, is_second_visit) = match state {
            State::First(dir) => (dir.as_fd(), false),
            State::Second(dir) => (dir.as_fd(), true),
            State::Closed | State::Lost => panic!("BUG: the level is closed"),
        };
        let parent = above.last().filter(|above| is_second_visit && above.spot.depth + 1 == spot.depth);
        AtHand {
            dir,
            end_marker: *end_marker,
            is_second_visit,
            parent: parent.and_then(Level::open_dir),
            has_entries: !is_second_visit && spot.depth < options.max_depth,
            is_deepest: spot.depth + 1 >= options.max_depth,
            spot,
            value,
            pending,
            path: path.as_bytes_with_nul(),
            unread,
        }
    }

    /// Closes the current directory.
    #[inline]
    fn pop(&mut self) {
        let level = self.stack.pop().expect("BUG: there is no level");
        self.pending.truncate(level.spot.names_at);
    }

    /// Whether the level above the current one is closed.
    #[inline]
    fn is_closed_above(&self) -> bool {
        !self.closed.is_empty() && self.closed.len() + 2 == self.stack.len()
    }

    /// Lost levels count too: while there are any, nothing else is opened.
    #[inline]
    fn open_count(&self) -> usize {
        self.stack.len() - self.closed.len()
    }

    fn top(&self) -> &Level<S> {
        self.stack.last().expect("BUG: there is no level")
    }

    pub(super) fn is_stopped(&self) -> bool {
        matches!(self.unread, Unread::Stopped)
    }

    pub(super) fn has_work(&self) -> bool {
        self.root.is_some() || !self.stack.is_empty()
    }

    /// What holds between two steps. It looks at the deepest levels only, because a tree may have any number of levels.
    fn check(&self) {
        let Some(top) = self.stack.last() else {
            assert!(self.closed.is_empty() && self.pending.len() == 0, "nothing is left");
            return;
        };
        assert!(!matches!(top.state, State::Closed), "the level at hand is open or lost");
        assert!(top.spot.names_at <= top.next_at && top.next_at <= self.pending.len(), "its names are the last ones");
        assert!(self.closed.len() < self.stack.len().max(1), "the first level and the one at hand are not closed");
        let is_closed = |level: &Level<S>| matches!(level.state, State::Closed);
        assert!(
            self.stack.iter().skip(1).take(self.closed.len().min(1)).all(is_closed),
            "closed levels follow the first"
        );
        assert!(self.closed.is_empty() || is_closed(&self.stack[self.closed.len()]), "and lie side by side");
        assert!(!self.stack.get(self.closed.len() + 1).is_some_and(is_closed), "there are no other ones");
        if let [.., above, top] = &self.stack[..] {
            assert!(above.spot.depth < top.spot.depth && above.spot.path_end <= top.spot.path_end, "a level is below");
            assert!(above.next_at <= top.spot.names_at, "names of a level stand after those of the one above");
        }
    }
}

impl<S: Clone> Levels<S> {
    /// Opens the next directory, or takes a step towards it.
    #[allow(clippy::inline_always, reason = "see `Walk::next`")]
    #[inline(always)]
    pub(super) fn step(&mut self) -> Result<Step, Error> {
        if cfg!(debug_assertions) {
            self.check();
        }
        let Some(top) = self.stack.last() else { return Ok(Step::Done) };
        if top.next_at < self.pending.len() {
            self.enter()
        } else if self.known.post_order && !matches!(top.state, State::Second(_)) {
            self.visit_again()
        } else if self.is_closed_above() {
            self.come_back().map(|()| Step::More)
        } else {
            self.pop();
            Ok(Step::More)
        }
    }

    /// Opens the first directory that is pending in the current one.
    #[allow(clippy::inline_always, reason = "see `Walk::next`")]
    #[inline(always)]
    fn enter(&mut self) -> Result<Step, Error> {
        // More than one if the limit was lowered midway.
        while self.open_count() >= self.known.max_open && self.close_shallowest() {}
        let Self { options, known, stack, links, pending, path, .. } = self;
        let top = stack.last_mut().expect("BUG: there is no level");
        let Record { kind, name, end } = pending.at(top.next_at);
        if !kind.is_plain() {
            return self.enter_unlike_others();
        }
        let name_at = path.enter(top.spot.path_end, name);
        let opened = known.mounts.open(top.dir(), name, options.same_mount);
        top.next_at = pending.forget(top.spot.names_at, end);
        match opened {
            Ok(dir) => {
                let end_marker = known.mounts.pass_down(top.end_marker);
                if links.is_empty() {
                    Ok(self.push(dir, name_at, end_marker))
                } else {
                    self.push_below_link(dir, name_at, end_marker)
                }
            }
            Err(errno) => self.refused(errno, kind, name_at),
        }
    }

    /// Makes the directory whose name ends the path the current one, as `dir`.
    #[allow(clippy::inline_always, reason = "see `Walk::next`")]
    #[inline(always)]
    fn push(&mut self, dir: OwnedFd, name_at: usize, end_marker: EndMarker) -> Step {
        let Self { known, stack, pending, path, .. } = self;
        let top = stack.last_mut().expect("BUG: there is no level");
        let spot = Spot { depth: top.spot.depth + 1, name_at, path_end: path.len(), names_at: pending.len() };
        if top.next_at == spot.names_at && !known.post_order {
            // It replaces the level above, and inherits its value. That level's descriptor is closed.
            top.state = State::First(dir);
            (top.spot, top.next_at, top.end_marker) = (spot, spot.names_at, end_marker);
        } else {
            let value = top.value.clone();
            stack.push(Level::new(State::First(dir), spot, end_marker, value));
        }
        Step::AtHand
    }

    /// As [`push`](Self::push), if the walk may have followed links. `ELOOP` for a directory that is above itself.
    #[cold]
    #[inline(never)]
    fn push_below_link(&mut self, dir: OwnedFd, name_at: usize, end_marker: EndMarker) -> Result<Step, Error> {
        let depth = self.top().spot.depth + 1;
        match self.links.check(dir.as_fd(), depth) {
            Ok(()) => Ok(self.push(dir, name_at, end_marker)),
            Err(errno) => Err(self.error_below(errno)),
        }
    }

    /// Follows a link if the caller asked for that, or passes over what is not entered.
    #[cold]
    #[inline(never)]
    fn enter_unlike_others(&mut self) -> Result<Step, Error> {
        let Self { pending, stack, path, .. } = self;
        let top = stack.last_mut().expect("BUG: there is no level");
        let Record { kind, name, end } = pending.at(top.next_at);
        let name_at = (!kind.is_passed_over()).then(|| path.enter(top.spot.path_end, name));
        top.next_at = pending.forget(top.spot.names_at, end);
        match name_at {
            None => Ok(Step::More),
            Some(_) if kind == Kind::NO_NAME => Err(self.error_below(Errno::INVAL)),
            Some(name_at) => self.follow(name_at),
        }
    }

    /// Enters the directory that a link leads to. The link's name ends the path.
    fn follow(&mut self, name_at: usize) -> Result<Step, Error> {
        loop {
            let Self { options, known, stack, links, path, .. } = self;
            let top = stack.last().expect("BUG: there is no level");
            let followed = known.mounts.follow(top.dir(), path.from(name_at), options.same_mount).and_then(|target| {
                let Some((target, end_marker)) = target else { return Ok(None) };
                let link = links.follow(top.dir(), top.spot.depth, target.as_fd())?;
                Ok(Some((target, end_marker, link)))
            });
            match followed {
                Ok(Some((target, end_marker, link))) => {
                    let step = self.push(target, name_at, end_marker);
                    self.links.push(link);
                    return Ok(step);
                }
                // It leads to another mount, to a file, or to nothing.
                Ok(None) | Err(Errno::NOTDIR | Errno::NOENT) => return Ok(Step::More),
                Err(Errno::MFILE | Errno::NFILE) if self.keep_fewer_open() => {}
                Err(errno) => return Err(self.error_below(errno)),
            }
        }
    }

    /// Deals with `errno`, the answer to opening the directory whose name ends the path.
    #[cold]
    #[inline(never)]
    fn refused(&mut self, mut errno: Errno, kind: Kind, name_at: usize) -> Result<Step, Error> {
        loop {
            let Self { options, known, stack, path, .. } = self;
            let top = stack.last().expect("BUG: there is no level");
            let (dir, name) = (top.dir(), path.from(name_at));
            match known.mounts.open_otherwise(errno, dir, name, options.same_mount) {
                Ok(Some((dir, end_marker))) => return self.push_below_link(dir, name_at, end_marker),
                Ok(None) => return Ok(Step::More),
                Err(Errno::NOTDIR | Errno::LOOP) if kind == Kind::UNKNOWN => return Ok(Step::More),
                Err(Errno::MFILE | Errno::NFILE) if self.keep_fewer_open() => {}
                Err(last) => {
                    errno = last;
                    break;
                }
            }
            let Self { options, known, stack, path, .. } = self;
            let top = stack.last().expect("BUG: there is no level");
            match known.mounts.open(top.dir(), path.from(name_at), options.same_mount) {
                Ok(dir) => {
                    let end_marker = known.mounts.pass_down(top.end_marker);
                    return self.push_below_link(dir, name_at, end_marker);
                }
                Err(again) => errno = again,
            }
        }
        let error = self.error_below(errno);
        if self.known.post_order {
            // A directory that cannot be read still has its second visit.
            if let Ok(dir) = open_path_below(self.top().dir(), self.path.from(name_at)) {
                self.links.forget_from(self.top().spot.depth + 1);
                self.push(dir, name_at, EndMarker::NONE);
            }
        }
        Err(error)
    }

    /// An error of the directory whose name ends the path, in the current one.
    #[cold]
    fn error_below(&self, errno: Errno) -> Error {
        Error::new(self.path(), self.top().spot.depth + 1, errno)
    }

    /// Descriptors have run out: gives one back, and makes do with fewer from now on.
    fn keep_fewer_open(&mut self) -> bool {
        let is_closed = self.close_shallowest();
        self.known.max_open = (self.open_count() + 1).max(MIN_OPEN);
        is_closed
    }

    /// Closes the shallowest level but the first, unless it is the current one.
    #[cold]
    #[inline(never)]
    fn close_shallowest(&mut self) -> bool {
        let (_, others) = self.stack.split_last_mut().expect("BUG: there is no level");
        let Some(level) = others.get_mut(1 + self.closed.len()) else { return false };
        self.closed.push(Identity::note(level.dir(), self.options.same_mount));
        level.state = State::Closed;
        true
    }

    /// The current directory is done: reopens the level above it. A level that cannot be found is lost.
    #[cold]
    #[inline(never)]
    fn come_back(&mut self) -> Result<(), Error> {
        let Self { stack, closed, way_back, links, path, pending, .. } = self;
        let (at, last) = (closed.len(), closed.last().expect("BUG: no level is closed"));
        let spot = stack[at].spot;
        let found = last.and_then(|identity| {
            let by_names = || {
                let top = stack[0].from().expect("BUG: the first level is closed");
                let levels = stack[1..=at].iter().map(|level| level.spot);
                (top, levels.zip(closed.iter().copied()))
            };
            way_back.find((spot, identity), stack[at + 1].from(), path, links, by_names)
        });
        closed.pop();
        match found {
            Ok(dir) => {
                stack[at].state = State::First(dir);
                Ok(())
            }
            Err(errno) => {
                pending.truncate(spot.names_at);
                stack[at].state = State::Lost;
                for level in &mut stack[at..] {
                    (level.spot.names_at, level.next_at) = (spot.names_at, spot.names_at);
                }
                Err(self.error_at(spot, errno))
            }
        }
    }

    /// Makes the current directory ready for its second visit, with its parent open. If other threads are still below it, the
    /// visit is theirs. A lost level has none.
    #[cold]
    #[inline(never)]
    fn visit_again(&mut self) -> Result<Step, Error> {
        if self.is_closed_above() {
            self.come_back()?;
        }
        if let Some(shared) = self.stack.last_mut().and_then(|top| top.shared.take()) {
            let Some(last) = Shared::give_up(shared) else {
                self.pop();
                return Ok(Step::More);
            };
            if let (1, Some(above)) = (self.stack.len(), last.above) {
                self.come_up(above)?;
            }
        }
        let top = self.stack.last_mut().expect("BUG: there is no level");
        let State::First(dir) = mem::replace(&mut top.state, State::Lost) else {
            self.pop();
            return Ok(Step::More);
        };
        top.state = State::Second(dir);
        // What was given to other threads may still stand among the names.
        top.next_at = top.spot.names_at;
        self.pending.truncate(top.spot.names_at);
        self.path.come_up(top.spot.path_end);
        Ok(Step::AtHand)
    }

    /// Puts `level`, which is above the first one, on the stack. A level that cannot be found is lost.
    fn come_up(&mut self, level: Arc<Shared<S>>) -> Result<(), Error> {
        let Self { stack, way_back, links, path, .. } = self;
        let spot = Spot { names_at: 0, ..level.spot };
        let found = level.identity.and_then(|identity| {
            let by_names = || {
                let levels = level.all_from_root();
                let top =
                    From { dir: levels[0].root_dir().expect("BUG: the root has no descriptor"), spot: levels[0].spot };
                (top, levels.into_iter().skip(1).map(|level| (level.spot, level.identity)))
            };
            way_back.find((spot, identity), stack[0].from(), path, links, by_names)
        });
        let (state, result) = match found {
            Ok(dir) => (State::First(dir), Ok(())),
            Err(errno) => (State::Lost, Err(self.error_at(spot, errno))),
        };
        let value = level.state();
        self.stack.insert(0, Level { shared: Some(level), ..Level::new(state, spot, EndMarker::NONE, value) });
        result
    }
}
