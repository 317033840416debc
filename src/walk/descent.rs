//! `Descent`: where a thread is in a tree, and its steps there: down to a name, back to a level that was closed, up, and on to the
//! next root. It does not know what is left to do at a level, and in which order: `Traversal` and `ReadTree` do.
//!
//! A level is a directory, from the root to the current one, that has something left to do. The last child of a level takes its
//! place, and the level's descriptor is closed as soon as that child is open: a chain of directories is one level, however long it
//! is. The level right below a closed one stays, because `..` leads back from there.

use super::links::{Links, Refusal};
use super::opener::{Found, Opener};
use super::options::Options;
use super::path::Bounds;
use super::path::TreePath;
use super::pending::Kind;
use super::raw_open;
use super::roots::Roots;
use super::stack::{Handle, Level, Stack};
use super::way_back::{self, NotFound};
use crate::error::Error;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::ffi::{CStr, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;

/// `T` is what is left to do at a level.
pub(super) struct Descent<T> {
    pub(super) options: Options,
    pub(super) opener: Opener,
    pub(super) roots: Roots,
    /// Empty before the first root, and when nothing is left of one.
    pub(super) stack: Stack<T>,
    pub(super) links: Links,
    /// Of the directory or the name that was gone to last.
    pub(super) path: TreePath,
    /// Why the directory entered last may not be read.
    pub(super) unreadable: Option<Errno>,
}

/// A directory in the current one, open and not yet entered. The path ends with its name.
pub(super) struct Child {
    found: Found,
    /// Where its name begins in the path.
    name_at: usize,
}

impl<T> Descent<T> {
    /// No levels, and no roots.
    pub(super) fn new(options: Options) -> Self {
        Self {
            options,
            opener: Opener::new(options.same_mount),
            roots: Roots::default(),
            stack: Stack::new(options.max_open),
            links: Links::default(),
            path: TreePath::default(),
            unreadable: None,
        }
    }

    /// Abandons what is left. The memory stays for the next tree.
    pub(super) fn clear(&mut self) {
        self.roots = Roots::default();
        self.links.clear();
        self.stack.clear(self.options.max_open); // last: if a state panics when it is dropped, nothing else is left
    }

    /// Begins with these roots, where nothing is left. If the first is open already, `path` is its path.
    pub(super) fn begin(&mut self, roots: Roots, path: &[u8]) {
        self.path.begin(path);
        self.roots = roots;
    }

    pub(super) fn is_done(&self) -> bool {
        self.roots.is_empty() && self.stack.levels().is_empty()
    }

    /// An error of the current directory.
    pub(super) fn error(&self, cause: impl Into<io::Error>) -> Error {
        self.error_at(self.stack.top().bounds, cause)
    }

    /// An error of the level at `bounds`, which is the current one or above it.
    #[cold]
    pub(super) fn error_at(&self, bounds: Bounds, cause: impl Into<io::Error>) -> Error {
        bounds.error(self.path.as_bytes_with_nul(), cause)
    }

    /// Enters the next root, where `left` is left to do. Returns whether there was one.
    #[cold]
    pub(super) fn open_root(&mut self, left: T) -> Result<bool, Error> {
        if self.roots.is_empty() {
            return Ok(false);
        }
        self.stack.clear(self.options.max_open);
        self.links.clear();
        self.opener.leave_mount();
        let found = if let Some(root) = self.roots.open.take() {
            root
        } else {
            let path = self.roots.paths.pop_front().expect("BUG: there is no root");
            self.path.begin(&path);
            Found::root(&path, self.options.follow_roots).map_err(|errno| Error::new(&path, 0, errno))?
        };
        let bounds = Bounds { depth: 0, name_at: 0, path_end: self.path.len() };
        self.stack.push(Level::new(Handle::Open(found.dir), bounds, found.end_marker, left));
        self.unreadable = found.unreadable;
        Ok(true)
    }

    /// Opens `name` in the current directory. `None` if there is no directory to enter.
    #[inline(always)]
    pub(super) fn open(&mut self, kind: Kind, name: &CStr) -> Result<Option<Child>, Error> {
        // Before it opens another one, so there are never more than `max_open`.
        if self.stack.is_full() {
            self.stack.close_first();
        }
        let Self { opener, stack, links, path, .. } = self;
        let top = stack.top();
        let name_at = path.go_down(top.bounds.path_end, name.to_bytes_with_nul());
        if !kind.is_plain() {
            return self.open_otherwise(kind, name_at, None);
        }
        match opener.open(top.dir(), name) {
            Ok(dir) if links.is_empty() => {
                let end_marker = opener.pass_down(top.end_marker);
                Ok(Some(Child { found: Found { dir, end_marker, unreadable: None }, name_at }))
            }
            opened => self.open_otherwise(kind, name_at, Some(opened)),
        }
    }

    /// As [`open`](Self::open), where one call is not enough: for a name that is not plain, below a link, and after an error.
    /// `opened` is what [`Opener::open`] answered, if it was called.
    #[cold]
    fn open_otherwise(
        &mut self,
        kind: Kind,
        name_at: usize,
        mut opened: Option<Result<OwnedFd, Errno>>,
    ) -> Result<Option<Child>, Error> {
        loop {
            return match self.find_child(kind, name_at, opened.take()) {
                Ok(found) => Ok(found.map(|found| Child { found, name_at })),
                Err(Refusal::Kernel(Errno::NOTDIR | Errno::LOOP)) if kind == Kind::UNKNOWN => Ok(None),
                Err(Refusal::Kernel(errno)) if raw_open::lacks_descriptor(errno) && self.stack.lower_limit() => {
                    continue;
                }
                Err(refusal) => Err(self.refusal(refusal)),
            };
        }
    }

    /// The directory that the name at the end of the path is, or that it leads to. `None` if there is none to enter.
    fn find_child(
        &mut self,
        kind: Kind,
        name_at: usize,
        opened: Option<Result<OwnedFd, Errno>>,
    ) -> Result<Option<Found>, Refusal> {
        let Self { opener, stack, links, path, .. } = self;
        let (top, name) = (stack.top(), path.from(name_at));
        match kind {
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

    /// Why the name at the end of the path is not entered.
    #[cold]
    fn refusal(&self, refusal: Refusal) -> Error {
        let (path, depth) = (&self.path, self.stack.top().bounds.depth + 1);
        let error = |errno| Error::new(path.as_bytes(), depth, errno);
        match refusal {
            Refusal::Kernel(errno) => error(errno),
            Refusal::Loop(above) => {
                error(Errno::LOOP).with_loop_ancestor(OsStr::from_bytes(path.at_depth(above)).into())
            }
        }
    }

    /// Whether a child may take the place of the current directory, where nothing is left to do. Not right below a closed level:
    /// `..` from here leads back there, whereas the child may not be searchable.
    #[inline]
    pub(super) fn may_replace_top(&self) -> bool {
        !self.stack.is_closed_above_top()
    }

    #[inline(always)]
    fn bounds(&self, child: &Child) -> Bounds {
        Bounds { depth: self.stack.top().bounds.depth + 1, name_at: child.name_at, path_end: self.path.len() }
    }

    /// Enters `child`, where `left` is left to do. The level above stays.
    #[inline(always)]
    pub(super) fn push(&mut self, child: Child, left: T) {
        let bounds = self.bounds(&child);
        let Found { dir, end_marker, unreadable } = child.found;
        self.stack.push(Level::new(Handle::Open(dir), bounds, end_marker, left));
        self.unreadable = unreadable;
    }

    /// Enters `child` in place of the current directory. Returns what was left to do there.
    #[inline(always)]
    pub(super) fn replace_top(&mut self, child: Child) -> &mut T {
        let bounds = self.bounds(&child);
        let Found { dir, end_marker, unreadable } = child.found;
        self.unreadable = unreadable;
        self.stack.replace_top(dir, bounds, end_marker)
    }

    /// The current directory is done: reopens the level right above it, if that was closed. If it cannot be found, it is lost:
    /// `lose` gets that level and the current one, and says whether that is to be reported.
    #[cold]
    pub(super) fn come_back(&mut self, lose: impl FnOnce(&mut [Level<T>]) -> bool) -> Result<(), Error> {
        let Self { options, stack, links, path, .. } = self;
        let Some(closed) = stack.closed_above_top() else { return Ok(()) };
        let below = stack.top().below();
        match way_back::find(closed, below, path, links, options.same_mount, || stack.way_down()) {
            Ok(dir) => {
                stack.found_above_top(dir);
                Ok(())
            }
            Err(NotFound { errno, broken }) => {
                let is_news = lose(stack.lose_above_top(broken));
                if is_news { Err(self.error_at(closed.bounds, errno)) } else { Ok(()) }
            }
        }
    }
}
