//! `Cursor`: a position in a tree. It can enter a child, return to the level above, and enter the
//! next root.
//!
//! It does not know what work remains at a level, nor the order of that work. A walk keeps the
//! remaining work in a value of type `T` at each level.
//!
//! A level is a directory on the path from the root to the current directory. A level stays while
//! work remains there. The last child of a level replaces the level, whose descriptor is closed as
//! soon as the child is open. So a chain of directories is one level, however long the chain is.
//! The level right below a closed level stays, because its `..` is the closed level. If a child
//! replaced that level, the process might have no permission to open `..` in the child.

pub(crate) mod entry_state;
pub(crate) mod identity;
pub(crate) mod links;
pub(crate) mod opener;
pub(crate) mod options;
pub(crate) mod path;
mod reopen;
pub(crate) mod roots;
pub(crate) mod spare;
pub(crate) mod stack;

use crate::error::{Error, try_join};
use crate::open;
use crate::read_dir::entry::query_type;
use crate::read_dir::mount::Mount;
use entry_state::EntryState;
use links::{Links, Refusal};
use opener::{OpenDir, Opener, Root, RootEntry};
use options::Options;
use path::{PathBounds, TreePath};
use roots::Roots;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use spare::Spare;
use stack::{ClosedLevel, Level, LevelState, Stack, Work};
use std::ffi::CStr;
use std::os::unix::ffi::OsStrExt;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;

/// A position in a tree. `T` is the type of the work that remains at a level.
pub(crate) struct Cursor<T: Work> {
    pub(crate) options: Options,
    /// Opens the children of the current directory.
    pub(crate) opener: Opener,
    pub(crate) roots: Roots,
    /// The directory that contains the current root, if the root was opened through it.
    pub(crate) root_parent: Option<Arc<OwnedFd>>,
    /// The entry of the current root, if only the directory that contains it was opened.
    pub(crate) root_entry: Option<RootEntry>,
    /// The levels. Empty before the first root, and after the last level of a root.
    pub(crate) stack: Stack<T>,
    pub(crate) links: Links,
    /// The path of the directory or name that was set last.
    pub(crate) path: TreePath,
    /// The reason why the directory that was entered last cannot be read.
    pub(crate) unreadable: Option<Errno>,
    spare: Spare,
    /// Closes descriptors that do not belong to a level. Returns `false` if none can be closed.
    pub(crate) free_descriptor: Option<FreeDescriptor>,
}

/// A function that closes descriptors that belong to no level, such as those open ahead.
pub(crate) type FreeDescriptor = AssertUnwindSafe<Box<dyn Fn() -> bool + Send + Sync>>;

impl<T: Work> Cursor<T> {
    /// Returns a cursor without levels or roots.
    pub(crate) fn new(options: Options) -> Self {
        Self {
            options,
            opener: Opener::new(options),
            roots: Roots::default(),
            root_parent: None,
            root_entry: None,
            stack: Stack::new(options.max_open),
            links: Links::default(),
            path: TreePath::default(),
            unreadable: None,
            spare: Spare::new(),
            free_descriptor: None,
        }
    }

    /// Sets the roots of a cursor that has none. If the first root is open already, `path` is its
    /// path.
    pub(crate) fn begin(&mut self, roots: Roots, path: &Path) {
        self.path.begin(path.as_os_str().as_bytes());
        self.roots = roots;
    }

    /// Enters the next root. `remaining` creates its work. Returns `false` if no root remains.
    #[cold]
    pub(crate) fn open_root(&mut self, remaining: impl FnOnce() -> T) -> Result<bool, Error> {
        if self.roots.is_empty() {
            return Ok(false);
        }
        let remaining = remaining(); // first: if it panics, nothing is lost
        self.stack.limit = self.options.max_open;
        self.links = Links::default();
        self.root_parent = None;
        let Root { found, parent, entry } = if let Some(root) = self.roots.open.take() {
            root.found.mount.move_fixed_end(&root.found.dir);
            root
        } else {
            let path = self.roots.paths.pop_front().expect("BUG: there is no root");
            if !self.path.reserve_root(&path) {
                return Err(Error::of_root(try_join(&path, b""), Errno::NOMEM));
            }
            self.path.begin(&path);
            loop {
                match Root::open(&path, &self.options) {
                    Err(errno) if self.close_some(errno) => {}
                    root => break root.map_err(|errno| self.error_of_root(errno))?,
                }
            }
        };
        self.reserve().map_err(|errno| self.error_of_root(errno))?;
        self.push(found, remaining);
        (self.root_parent, self.root_entry) = (parent, entry);
        Ok(true)
    }

    /// Opens `name` in the current directory. The path already ends with this name. Returns `None`
    /// if `name` is not a directory to enter.
    #[inline(always)]
    pub(crate) fn open(
        &mut self,
        state: EntryState,
        name: &CStr,
    ) -> Result<Option<OpenDir>, Error> {
        self.stack.close_excess(&self.options);
        self.reserve().map_err(|errno| self.error_of(errno.into()))?;
        match self.try_open(state, name) {
            Ok(found) if self.links.is_empty() => Ok(Some(found)),
            opened => self.open_child_slow(state, name, opened),
        }
    }

    /// Reserves memory for a level at the end of the path, and for the names in it.
    #[inline(always)]
    fn reserve(&mut self) -> Result<(), Errno> {
        let is_reserved = self.stack.levels.try_reserve(1).is_ok() && self.path.reserve_name();
        if is_reserved { Ok(()) } else { Err(Errno::NOMEM) }
    }

    /// Opens `name` with one call. Returns `ENOTDIR` if `name` cannot be a directory.
    #[inline(always)]
    fn try_open(&mut self, state: EntryState, name: &CStr) -> Result<OpenDir, Errno> {
        if !state.can_be_directory() {
            return Err(Errno::NOTDIR);
        }
        let top = self.stack.top();
        self.opener.open(top.dir(), top.mount, name)
    }

    /// Prepares to enter `dir`, a child of the current directory that is open already. Returns an
    /// error if that would cause a loop.
    #[cold]
    pub(crate) fn prepare(&mut self, dir: BorrowedFd<'_>) -> Result<(), Error> {
        let (reserved, depth) = (self.reserve(), self.stack.next_depth());
        let checked =
            reserved.map_err(Refusal::from).and_then(|()| self.links.check_loop(dir, depth));
        checked.map_err(|refusal| self.error_of(refusal))
    }

    /// Continues [`open`](Self::open) after an error, or if a link on the path was followed.
    #[cold]
    fn open_child_slow(
        &mut self,
        state: EntryState,
        name: &CStr,
        mut opened: Result<OpenDir, Errno>,
    ) -> Result<Option<OpenDir>, Error> {
        loop {
            match self.resolve_child(state, name, opened) {
                Err(Refusal::Kernel(errno)) if self.close_some(errno) => {
                    opened = self.try_open(state, name);
                }
                resolved => return resolved.map_err(|refusal| self.error_of(refusal)),
            }
        }
    }

    /// Closes descriptors if `errno` means that the system has none left. Returns `false` for
    /// another error, or if no descriptor can be closed.
    #[cold]
    pub(crate) fn close_some(&mut self, errno: Errno) -> bool {
        open::lacks_descriptor(errno)
            && (self.free_ahead() || self.stack.lower_limit(&self.options, true))
    }

    /// Closes descriptors that do not belong to a level. Returns `false` if there are none.
    #[cold]
    fn free_ahead(&self) -> bool {
        self.free_descriptor.as_ref().is_some_and(|free| (free.0)())
    }

    /// Returns the directory at `name`, or the target of a followed link. Returns `None` if the
    /// walk does not enter `name`.
    fn resolve_child(
        &mut self,
        state: EntryState,
        name: &CStr,
        opened: Result<OpenDir, Errno>,
    ) -> Result<Option<OpenDir>, Refusal> {
        let Self { options, opener, stack, links, .. } = self;
        let top = stack.top();
        match opener.examine(opened, top.dir(), name) {
            // At a mount point, this query answers for what is mounted there, so it never fails
            // with `EXDEV`, unlike the lookup of a server.
            Err(Errno::XDEV)
                if options.same_mount
                    && !state.has(EntryState::NAMED)
                    && query_type(top.dir(), name) != Err(Errno::XDEV) =>
            {
                return Ok(None);
            }
            Err(Errno::NOTDIR | Errno::LOOP | Errno::NOENT) if state.is_followed() => {}
            Err(Errno::NOTDIR | Errno::LOOP | Errno::NOENT) if state.has(EntryState::LINK) => {
                return Ok(None);
            } // the name is not a directory, or is gone
            examined => {
                let child = examined?;
                links.check_loop(child.dir.as_fd(), top.bounds.depth + 1)?;
                return Ok(Some(child));
            }
        }
        match opener.follow(top.dir(), top.mount, name) {
            Err(Errno::NOTDIR | Errno::NOENT) => Ok(None), // the target is a file, or gone
            Err(Errno::XDEV) if options.same_mount && !state.has(EntryState::NAMED) => Ok(None),
            followed => {
                let target = followed?;
                links.follow(top.dir(), top.bounds.depth, target.dir.as_fd())?;
                Ok(Some(target))
            }
        }
    }

    #[cold]
    pub(crate) fn error_of_root(&self, errno: Errno) -> Error {
        Error::of_root(try_join(self.path.as_bytes(), b""), errno)
    }

    /// Returns an error for the name at the end of the path.
    #[cold]
    fn error_of(&self, refusal: Refusal) -> Error {
        let (path, depth) = (&self.path, self.stack.next_depth());
        let error = |errno| Error::at_depth(try_join(path.as_bytes(), b""), depth, errno);
        match refusal {
            Refusal::Kernel(errno) => error(errno),
            Refusal::Loop(above) => error(Errno::LOOP).with_loop_ancestor(path.ancestor(above)),
        }
    }

    /// Enters `found`, a child of the current directory or a root, with `remaining` as its work.
    /// Keeps the current directory as the level above.
    #[inline(always)]
    pub(crate) fn push(&mut self, found: OpenDir, remaining: T) {
        let bounds = PathBounds { depth: self.stack.next_depth(), path_end: self.path.len() };
        let OpenDir { dir, mount, unreadable } = found;
        let state = LevelState::Open(dir);
        self.stack.levels.push(Level { state, bounds, mount, remaining });
        self.unreadable = unreadable;
        self.leave_spare();
    }

    /// Enters `found`, a child of the current directory, and replaces the current directory with
    /// `found`. Returns the remaining work, for the caller to change.
    #[inline(always)]
    pub(crate) fn replace_top(&mut self, found: OpenDir) -> &mut T {
        let bounds = PathBounds { depth: self.stack.next_depth(), path_end: self.path.len() };
        self.unreadable = found.unreadable;
        let top = self.stack.top_mut();
        top.state = LevelState::Open(found.dir);
        top.bounds = bounds;
        top.mount = found.mount;
        self.leave_spare();
        &mut self.stack.top_mut().remaining
    }

    /// Closes levels if the level that was just entered has one of the last descriptors.
    #[inline(always)]
    fn leave_spare(&mut self) {
        if self.spare.is_taken_by(self.stack.top().dir()) {
            let _ = self.free_ahead() || self.stack.lower_limit(&self.options, false);
        }
    }

    /// Reopens the level right above the current directory, if that level is closed. If that level
    /// cannot be found, it is lost. Then `lose` gets the remaining work of that level and of the
    /// current directory, and returns `true` if the walk must report the error.
    #[cold]
    pub(crate) fn reopen_level_above(
        &mut self,
        lose: impl FnOnce([&mut T; 2]) -> bool,
    ) -> Result<(), Error> {
        loop {
            let above = self.stack.closed_level_above();
            let Some(closed) = above.map(Level::closed) else { return Ok(()) };
            match self.reopen(closed) {
                Ok(dir) => {
                    self.stack.set_level_above(LevelState::Open(dir));
                    return Ok(());
                }
                Err((errno, _)) if self.close_some(errno) => {}
                Err((errno, dead_end)) => {
                    if !lose(self.stack.set_level_above(LevelState::Lost(dead_end))) {
                        return Ok(());
                    }
                    let path = try_join(self.path.prefix(closed.bounds.path_end), b"");
                    return Err(Error::at_depth(path, closed.bounds.depth, errno));
                }
            }
        }
    }

    /// Lets the walk hold no more than `max_open` levels open.
    pub(crate) fn lower_max_open(&mut self, max_open: usize) {
        self.options.max_open = self.options.max_open.min(max_open);
        self.stack.limit = self.stack.limit.min(max_open);
    }

    /// Inserts the closed `level` at the bottom of the stack. In the tree, `level` is above the old
    /// bottom.
    pub(crate) fn insert_level_above(&mut self, level: ClosedLevel, remaining: T) {
        let ClosedLevel { bounds, identity } = level;
        let state = LevelState::Closed(identity);
        let level = Level { state, bounds, mount: Mount::PLAIN, remaining };
        self.stack.levels.insert(0, level);
    }

    /// Returns a cursor at one of the open levels, for another thread. They share the descriptor.
    /// Returns `None` if memory is refused.
    pub(crate) fn split_off_level(&mut self, index: usize, remaining: T) -> Option<Self> {
        let Self { options, opener, root_parent, stack, links, path, .. } = self;
        let Level { bounds, mount, .. } = stack.levels[index];
        let dir = stack.levels[index].share()?;
        let mut part = Self {
            opener: *opener,
            root_parent: root_parent.clone(),
            links: links.copy_to_depth(bounds.depth).ok()?,
            path: path.copy_prefix(bounds.path_end)?,
            ..Self::new(*options)
        };
        // One more, so that `insert_level_above` does not allocate.
        part.stack.levels.try_reserve(2).ok()?;
        let state = LevelState::Shared(dir);
        part.stack.levels.push(Level { state, bounds, mount, remaining });
        Some(part)
    }
}

/// Calls `advance` until it succeeds, and `on_error` with each error. Returns what `advance`
/// returned.
#[inline(always)]
pub(crate) fn skip_errors(
    mut advance: impl FnMut() -> Result<bool, Error>,
    mut on_error: impl FnMut(Error),
) -> bool {
    loop {
        match advance() {
            Ok(is_there) => return is_there,
            Err(error) => on_error(error),
        }
    }
}
