//! `Traversal`, `Step`: where one thread is in the tree, what it has still to do there, and the steps that it takes: down, up,
//! back to a level that was closed, and on to the next root. A level is a directory, from the root to the current one, that has
//! something to do.
//!
//! ```text
//! roots     the trees to do after this one     /var
//! stack     the levels with something to do    /usr           share         doc
//! pending   their names still to do            lib sbin src   icons man     adduser apt bash
//! path      of the current directory           /usr/share/doc
//! ```
//!
//! A level stays on the stack while it has names pending. Its last child takes its place, and its descriptor is closed as soon
//! as that child is open: a chain of directories is one level, however long it is. With second visits a level stays until its
//! own. The level right below a closed one stays too, because `..` leads back from there.
//!
//! What a call of `Walk::next` or `Worker::next` does, in this order, and where. `ReadTree` calls the steps one by one:
//!
//! ```text
//! finish  reads the entries that were not lent, in case they are directories       cursor, dir
//! settle  decides which of the names that were noted are entered                   notes, said
//! share   splits off a part of the names for each thread that waits                split, work_queue
//! step    takes the next name that is pending:                                     pending
//!           opens that directory, and puts its level on the stack                  open_child, links, stack
//!         or, when none is pending at the current level:
//!           finds the level above again, if that was closed                        way_back
//!           makes the second visit, or leaves it to other threads                  shared_level
//!           goes up, or on to the next root                                        stack, roots
//! lend    lends the directory, to be read                                          dir
//! ```

use super::bounds::Bounds;
use super::links::{Links, Refusal};
use super::notes::Notes;
use super::open_child::{Found, Opener};
use super::options::Options;
use super::path::TreePath;
use super::pending::{Item, Kind};
use super::raw_open;
use super::roots::Roots;
use super::shared_level::SharedLevel;
use super::stack::{Handle, Level, Stack, Visit};
use super::way_back::{self, NotFound};
use crate::end_marker::EndMarker;
use crate::error::Error;
use crate::sync::Arc;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;

pub(super) struct Traversal<S> {
    pub(super) options: Options,
    pub(super) opener: Opener,
    pub(super) roots: Roots,
    /// What each root begins with.
    pub(super) root_state: S,
    /// Empty before the first root, and when nothing is left of one.
    pub(super) stack: Stack<S>,
    pub(super) links: Links,
    pub(super) notes: Notes,
    /// Of the current directory.
    pub(super) path: TreePath,
    /// How many bytes of its path this thread may copy for others.
    pub(super) path_credit: usize,
}

/// What a step came to.
pub(super) enum Step {
    /// There is a directory to lend, for its first visit or its second.
    Lend,
    /// There is another step to take.
    More,
    /// Nothing is left.
    Done,
}

/// A name on its way from the pending ones to the stack.
#[derive(Clone, Copy)]
struct Child {
    kind: Kind,
    /// Where its name begins in the path, which it ends.
    name_at: usize,
    /// Where its item ends.
    end: usize,
}

impl<S> Traversal<S> {
    /// No levels, and no roots.
    pub(super) fn new(options: Options, root_state: S) -> Self {
        Self {
            options,
            opener: Opener::new(options.same_mount),
            roots: Roots::default(),
            root_state,
            stack: Stack::new(options.max_open),
            links: Links::default(),
            notes: Notes::default(),
            path: TreePath::default(),
            path_credit: 0,
        }
    }

    /// Abandons what is left. The memory stays for the next tree.
    pub(super) fn clear(&mut self) {
        self.roots = Roots::default();
        self.links.clear();
        self.notes.clear();
        self.stack.clear(self.options.max_open); // last: if a state panics when it is dropped, nothing else is left
    }

    /// Begins with these roots, where nothing is left. If the first is open already, `path` is its path.
    pub(super) fn begin(&mut self, roots: Roots, path: &[u8]) {
        self.path.begin(path);
        self.roots = roots;
    }

    /// An error of the current directory.
    pub(super) fn error(&self, cause: impl Into<io::Error>) -> Error {
        self.error_at(self.stack.top().bounds, cause)
    }

    /// An error of the level at `bounds`, which is the current one or above it.
    #[cold]
    fn error_at(&self, bounds: Bounds, cause: impl Into<io::Error>) -> Error {
        bounds.error(self.path.as_bytes_with_nul(), cause)
    }

    pub(super) fn has_work(&self) -> bool {
        !self.roots.is_empty() || !self.stack.levels().is_empty()
    }

    /// Settles which names in the current directory are entered.
    #[cold]
    pub(super) fn settle(&mut self) {
        if self.notes.is_unsettled {
            self.notes.settle(self.stack.top().bounds.names_at);
        }
    }

    /// Closes the current directory.
    #[inline]
    pub(super) fn pop(&mut self) {
        let level = self.stack.pop();
        self.notes.pending.truncate(level.bounds.names_at);
    }
}

impl<S: Clone> Traversal<S> {
    /// Opens the next directory, or takes a step towards it.
    #[inline(always)]
    pub(super) fn step(&mut self) -> Result<Step, Error> {
        if cfg!(debug_assertions) {
            self.stack.check(self.notes.pending.len());
        }
        let Some(top) = self.stack.levels().last() else { return self.open_root() };
        if top.next_at < self.notes.pending.len() {
            self.descend()
        } else if top.visit == Visit::First {
            self.visit_again()
        } else if self.stack.is_closed_above_top() {
            self.come_back().map(|()| Step::More)
        } else {
            self.pop();
            Ok(Step::More)
        }
    }

    /// Opens the next root.
    #[cold]
    pub(super) fn open_root(&mut self) -> Result<Step, Error> {
        if self.roots.is_empty() {
            return Ok(Step::Done);
        }
        let state = self.root_state.clone(); // first: if it panics, nothing is lost
        self.stack.clear(self.options.max_open);
        self.links.clear();
        self.opener.forget();
        let found = if let Some(root) = self.roots.open.take() {
            root
        } else {
            let path = self.roots.paths.pop_front().expect("BUG: there is no root");
            self.path.begin(&path);
            Found::root(&path, self.options.follow_roots).map_err(|errno| Error::new(&path, 0, errno))?
        };
        let bounds = Bounds { depth: 0, name_at: 0, path_end: self.path.len(), names_at: 0 };
        self.stack.push(Level::new(Handle::Open(found.dir), self.options.visit(), bounds, found.end_marker, state));
        self.notes.unreadable = found.unreadable;
        Ok(Step::Lend)
    }

    /// Opens the first directory that is pending in the current one.
    #[inline(always)]
    pub(super) fn descend(&mut self) -> Result<Step, Error> {
        // Before it opens another one, so there are never more than `max_open`.
        if self.stack.is_full() {
            self.stack.close_shallowest();
        }
        let Self { opener, stack, links, notes, path, .. } = self;
        let pending = &mut notes.pending;
        let top = stack.top();
        let Item { kind, name, end } = pending.at(top.next_at);
        if !kind.is_plain() {
            return self.descend_otherwise(None);
        }
        // The name stays pending until the directory is open and on the stack: whatever panics or fails on the way, it is not
        // lost.
        let child = Child { kind, name_at: path.go_down(top.bounds.path_end, name.to_bytes_with_nul()), end };
        match opener.open(top.dir(), name) {
            Ok(dir) if links.is_empty() => {
                notes.unreadable = None;
                let end_marker = opener.pass_down(top.end_marker);
                Ok(self.push(child, dir, end_marker))
            }
            opened => self.descend_otherwise(Some(opened)),
        }
    }

    /// Makes `child`, open as `dir`, the current directory.
    #[inline(always)]
    fn push(&mut self, child: Child, dir: OwnedFd, end_marker: EndMarker) -> Step {
        let Self { options, stack, notes, path, .. } = self;
        let pending = &mut notes.pending;
        let takes_place =
            child.end == pending.len() && stack.top().visit == Visit::Only && !stack.is_closed_above_top();
        let top = stack.top_mut();
        let bounds =
            |names_at| Bounds { depth: top.bounds.depth + 1, name_at: child.name_at, path_end: path.len(), names_at };
        if takes_place {
            // It is the last child, so nothing is left to do in the level above: it takes that one's place and inherits its
            // state, and that level's descriptor is closed. Not if the walk comes back for a second visit. Nor right below a
            // closed level: `..` from here leads back there, whereas the child may not be searchable.
            pending.truncate(top.bounds.names_at);
            let bounds = bounds(pending.len());
            stack.replace_top(dir, bounds, end_marker);
        } else {
            let state = top.state.clone(); // first: if it panics, nothing is lost
            let next_at = pending.forget(top.bounds.names_at, child.end);
            let bounds = bounds(pending.len());
            top.next_at = next_at;
            stack.push(Level::new(Handle::Open(dir), options.visit(), bounds, end_marker, state));
        }
        Step::Lend
    }

    /// Drops the item of `child`, which is not entered.
    fn forget(&mut self, child: Child) {
        let top = self.stack.top_mut();
        top.next_at = self.notes.pending.forget(top.bounds.names_at, child.end);
    }

    /// As [`descend`](Self::descend), where one call is not enough: for a name that is not plain, below a link, and after an error.
    /// `opened` is what [`Opener::open`] answered, if it was called.
    #[cold]
    fn descend_otherwise(&mut self, mut opened: Option<Result<OwnedFd, Errno>>) -> Result<Step, Error> {
        let top = self.stack.top();
        let Item { kind, name, end } = self.notes.pending.at(top.next_at);
        let child = Child { kind, name_at: self.path.go_down(top.bounds.path_end, name.to_bytes_with_nul()), end };
        loop {
            match self.find_child(child, opened.take()) {
                Ok(Some(found)) => {
                    let step = self.push(child, found.dir, found.end_marker);
                    self.notes.unreadable = found.unreadable;
                    return Ok(step);
                }
                Ok(None) => break,
                Err(Refusal::Kernel(Errno::NOTDIR | Errno::LOOP)) if child.kind == Kind::UNKNOWN => break,
                Err(Refusal::Kernel(errno)) if raw_open::lacks_descriptor(errno) && self.stack.lower_limit() => {}
                Err(refusal) => return Err(self.refuse(child, refusal)),
            }
        }
        self.forget(child);
        Ok(Step::More)
    }

    /// The directory that `child` is, or that it leads to. `None` if there is none to enter.
    fn find_child(&mut self, child: Child, opened: Option<Result<OwnedFd, Errno>>) -> Result<Option<Found>, Refusal> {
        let Self { opener, stack, links, path, .. } = self;
        let (top, name) = (stack.top(), path.from(child.name_at));
        match child.kind {
            Kind::NO_NAME => return Err(Errno::INVAL.into()),
            Kind::FOLLOWED => {}
            kind => {
                let opened = opened.unwrap_or_else(|| opener.open(top.dir(), name));
                match opener.look_again(opened, (top.dir(), top.end_marker), name) {
                    Err(Errno::NOTDIR | Errno::LOOP | Errno::NOENT) if kind == Kind::ANY => {}
                    found => {
                        let found = found?;
                        if let Some(found) = &found {
                            links.check_loop(found.dir.as_fd(), top.bounds.depth + 1)?;
                        }
                        return Ok(found);
                    }
                }
            }
        }
        match opener.follow(top.dir(), name) {
            Err(Errno::NOTDIR | Errno::NOENT) => Ok(None), // it leads to a file, or to nothing
            found => {
                let found = found?;
                if let Some(found) = &found {
                    links.follow(top.dir(), top.bounds.depth, found.dir.as_fd())?;
                }
                Ok(found)
            }
        }
    }

    /// `child` is not entered: the error that says why.
    #[cold]
    fn refuse(&mut self, child: Child, refusal: Refusal) -> Error {
        self.forget(child);
        let (path, depth) = (&self.path, self.stack.top().bounds.depth + 1);
        let error = |errno| Error::new(path.as_bytes(), depth, errno);
        match refusal {
            Refusal::Kernel(errno) => error(errno),
            Refusal::Loop(above) => {
                error(Errno::LOOP).with_loop_ancestor(OsStr::from_bytes(path.at_depth(above)).into())
            }
        }
    }

    /// The current directory is done: reopens the level right above it. A level that cannot be found is lost: that is reported,
    /// unless another thread has reported it.
    #[cold]
    pub(super) fn come_back(&mut self) -> Result<(), Error> {
        let Self { options, stack, links, path, notes, .. } = self;
        let Some(closed) = stack.closed_above_top() else { return Ok(()) };
        let below = stack.top().below();
        match way_back::reopen(closed, below, path, links, options.same_mount, || stack.way_down()) {
            Ok(dir) => {
                stack.reopen_above_top(dir);
                Ok(())
            }
            Err(NotFound { errno, broken }) => {
                notes.pending.truncate(closed.bounds.names_at);
                let is_news = stack.lose_above_top(closed.bounds.names_at, broken);
                if is_news { Err(self.error_at(closed.bounds, errno)) } else { Ok(()) }
            }
        }
    }

    /// The current directory is done for its first visit: makes it ready for its second one, with its parent open. If other
    /// threads are still below it, the visit is theirs. A lost level has none.
    #[cold]
    fn visit_again(&mut self) -> Result<Step, Error> {
        // The parent first: `Dir::parent` lends it, and `..` leads to it only while the child is open.
        if self.stack.is_closed_above_top() {
            self.come_back()?;
        }
        self.give_up_share()?;
        let top = self.stack.top_mut();
        if top.open_dir().is_none() {
            self.pop();
            return Ok(Step::More);
        }
        top.visit = Visit::Second;
        // Names that were split off may still be there.
        top.next_at = top.bounds.names_at;
        self.notes.pending.truncate(top.bounds.names_at);
        self.path.come_up(top.bounds.path_end);
        Ok(Step::Lend)
    }

    /// Gives up the current level if this thread shares it. As long as others are at the level or below it, it is lost to this
    /// one. If this thread is the last and came to it from another one, the level above is put on the stack.
    fn give_up_share(&mut self) -> Result<(), Error> {
        let is_first = self.stack.levels().len() == 1;
        let top = self.stack.top_mut();
        // Cloned first: if it panics, nothing is lost.
        let state_above = top.shared.as_ref().filter(|_| is_first).and_then(|shared| shared.state_above());
        // Taken, so it is given up only once: if a panic or an error comes after this, this is called again.
        let Some(shared) = top.shared.take() else { return Ok(()) };
        let Some(mut last) = Arc::into_inner(shared) else {
            self.stack.lose_top();
            return Ok(());
        };
        // The shared level held its parent. Now this thread holds the parent, and gives it up in turn when it is done there.
        let above = last.above.take().zip(state_above);
        let came_up = above.map_or(Ok(()), |(above, state)| self.come_up(above, state));
        if last.is_lost() {
            self.stack.lose_top(); // only now: until here, `..` began there
        }
        came_up
    }

    /// Puts `level`, which is above the base, on the stack. A level that cannot be found is lost, as in
    /// [`come_back`](Self::come_back).
    fn come_up(&mut self, level: Arc<SharedLevel<S>>, state: S) -> Result<(), Error> {
        let Self { options, stack, links, path, .. } = self;
        let below = stack.top().below();
        let found = way_back::reopen(level.level, below, path, links, options.same_mount, || level.way_down());
        let bounds = Bounds { names_at: 0, ..level.level.bounds };
        let (handle, result) = match found {
            Ok(dir) => (Handle::Open(dir), Ok(())),
            Err(NotFound { errno, broken }) => {
                let is_news = level.lose();
                (Handle::Lost(broken), if is_news { Err(self.error_at(bounds, errno)) } else { Ok(()) })
            }
        };
        let mut above = Level::new(handle, Visit::First, bounds, EndMarker::NONE, state);
        above.shared = Some(level);
        self.stack.put_base(above);
        result
    }
}
