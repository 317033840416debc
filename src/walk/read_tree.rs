//! `ReadTree`, `read_tree`: every entry of a tree in one loop, each right before what is below it.
//!
//! ```text
//! stack     levels with entries left       /usr             share          doc
//! listing   their entries, in one memory   bin | lib share  doc | man      adduser | apt bash
//!                                          lent  left       lent  left     lent      left
//! path      of the entry lent last         /usr/share/doc/adduser
//! ```
//!
//! A directory is read whole, behind the entries of those above it. A level without entries left is not kept: its last child takes
//! its place, as in a [`Walk`](super::Walk).

use super::mounts::Found;
use super::options::WalkOptions;
use super::pending::Kind;
use super::roots::Roots;
use super::stack::Visit;
use super::traversal::{Step, Traversal};
use super::tree_entry::{Then, TreeEntry};
use crate::error::Error;
use crate::listing::{Extent, Listing, Order};
use rustix::fd::OwnedFd;
use std::cell::Cell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{fmt, iter};

/// Reads the tree at `path` with the default options: see [`WalkOptions::read_tree`] for costs and errors.
///
/// ```
/// let mut tree = lendir::read_tree("/sys/class")?;
/// while let Some(entry) = tree.next_ok(|error| eprintln!("{error}")) {
///     println!("{:?}", entry.path()); // {:?} escapes control characters, which a terminal would obey
/// }
/// # Ok::<(), lendir::Error>(())
/// ```
///
/// # Errors
///
/// Those of [`WalkOptions::read_tree`].
#[doc(alias("walkdir", "fts", "nftw", "find"))]
pub fn read_tree(path: impl AsRef<Path>) -> Result<ReadTree, Error> {
    WalkOptions::default().read_tree(path)
}

pub struct ReadTree {
    traversal: Traversal<Left>,
    /// The entries of all levels, those of each behind those of the level above.
    listing: Listing,
    /// Errors of reading, each with the depth of its directory: they wait until the entries read before them have been lent.
    owed: Vec<(usize, Error)>,
    /// What the tree does next about the entry lent last.
    then: Cell<Then>,
}

/// The entries of a level that are left.
#[derive(Clone, Copy, Debug, Default)]
struct Left {
    /// The first of them in the listing.
    next: usize,
    /// Where they end there.
    end: Extent,
}

impl WalkOptions {
    pub fn read_tree(self, path: impl AsRef<Path>) -> Result<ReadTree, Error> {
        let path = path.as_ref().as_os_str().as_bytes();
        let root = Found::root(path, self.options.follow_roots).map_err(|errno| Error::new(path, 0, errno))?;
        Ok(ReadTree::new(&self, Roots::open(root), path))
    }

    pub fn read_trees<P: AsRef<Path>>(self, paths: impl IntoIterator<Item = P>) -> ReadTree {
        ReadTree::new(&self, Roots::at(paths), b"")
    }

    pub fn read_tree_from_fd(self, root: impl Into<OwnedFd>, path: impl AsRef<Path>) -> ReadTree {
        ReadTree::new(&self, Roots::from_fd(root.into()), path.as_ref().as_os_str().as_bytes())
    }
}

impl ReadTree {
    fn new(options: &WalkOptions, roots: Roots, path: &[u8]) -> Self {
        let mut traversal = Traversal::new(options.options, Left::default());
        traversal.begin(roots, path);
        Self { traversal, listing: Listing::with_order(Order::Unsorted), owed: Vec::new(), then: Cell::default() }
    }

    pub fn with_order(mut self, order: Order) -> Self {
        self.listing.set_order(order);
        self
    }

    #[inline(always)]
    pub fn next(&mut self) -> Result<Option<TreeEntry<'_>>, Error> {
        Ok(if self.advance()? { Some(self.lend()) } else { None })
    }

    #[inline(always)]
    pub fn next_ok(&mut self, mut on_error: impl FnMut(Error)) -> Option<TreeEntry<'_>> {
        loop {
            match self.advance() {
                Ok(true) => return Some(self.lend()),
                Ok(false) => return None,
                Err(error) => on_error(error),
            }
        }
    }

    #[inline(always)]
    pub fn find(&mut self, mut wanted: impl FnMut(&TreeEntry<'_>) -> bool) -> Result<Option<TreeEntry<'_>>, Error> {
        while self.advance()? {
            if wanted(&self.lend()) {
                return Ok(Some(self.lend()));
            }
        }
        Ok(None)
    }

    pub fn filter_map<T>(
        mut self,
        mut f: impl FnMut(TreeEntry<'_>) -> Option<T>,
    ) -> impl Iterator<Item = Result<T, Error>> {
        iter::from_fn(move || {
            while let Some(entry) = self.next().transpose() {
                if let Some(made) = entry.map(&mut f).transpose() {
                    return Some(made);
                }
            }
            None
        })
    }

    pub fn paths(self) -> impl Iterator<Item = Result<PathBuf, Error>> {
        self.filter_map(|entry| Some(entry.path().to_owned()))
    }

    /// Lends the entry that the tree has come to.
    #[inline(always)]
    fn lend(&mut self) -> TreeEntry<'_> {
        let Traversal { stack, path, options, .. } = &self.traversal;
        let top = stack.top();
        let Left { next, end } = top.state;
        TreeEntry {
            entry: self.listing.get(next - 1).expect("BUG: no entry was lent"),
            dir: top.dir(),
            path,
            depth: top.bounds.depth + 1,
            is_last: next == end.entries,
            may_enter: top.bounds.depth + 1 < options.max_depth,
            then: &self.then,
        }
    }

    /// Goes to the next entry. Returns whether there is one.
    #[inline(always)]
    fn advance(&mut self) -> Result<bool, Error> {
        match self.then.take() {
            Then::Next => {}
            Then::Below(kind) => self.go_below(kind)?,
            Then::Leave => self.leave(),
        }
        while !self.go_on() {
            if !self.go_up()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Goes to the next entry of the current directory, if that has one left.
    #[inline(always)]
    fn go_on(&mut self) -> bool {
        let Traversal { stack, path, options, .. } = &mut self.traversal;
        let Some(top) = stack.levels_mut().last_mut().filter(|top| top.open_dir().is_some()) else { return false };
        let Left { next, end } = &mut top.state;
        if *next == end.entries {
            return false;
        }
        let entry = self.listing.get(*next).expect("BUG: an entry is missing");
        *next += 1;
        path.go_down(top.bounds.path_end, entry.name_with_nul());
        self.then.set(Then::after(entry.file_type(), top.bounds.depth + 1 < options.max_depth));
        true
    }

    /// Goes below the entry lent last, and reads that directory.
    #[inline(always)]
    fn go_below(&mut self, kind: Kind) -> Result<(), Error> {
        let is_owed = self.is_owed();
        let Traversal { stack, notes, .. } = &mut self.traversal;
        let top = stack.top_mut();
        let Left { next, end } = top.state;
        top.visit = if next < end.entries || is_owed { Visit::First } else { Visit::Only };
        let entry = self.listing.get(next - 1).expect("BUG: no entry was lent");
        notes.pending.push(kind, entry.name_cstr());
        match self.traversal.descend()? {
            Step::Lend => self.read(),
            Step::More | Step::Done => Ok(()),
        }
    }

    /// Reads the directory that was just opened, behind the entries of those above.
    #[inline(always)]
    fn read(&mut self) -> Result<(), Error> {
        let Self { traversal, listing, owed, .. } = self;
        let above = if let [.., above, _] = traversal.stack.levels() { above.state.end } else { Extent::default() };
        let is_read = traversal.stack.top().bounds.depth < traversal.options.max_depth;
        let unreadable = traversal.notes.unreadable.filter(|_| is_read);
        let top = traversal.stack.top_mut();
        top.state = Left { next: above.entries, end: above };
        if let Some(errno) = unreadable {
            return Err(traversal.error(errno));
        }
        if is_read {
            let result = listing.read_behind(above, top.dir(), top.end_marker);
            top.state.end = listing.extent();
            if let Err(error) = result {
                let depth = top.bounds.depth;
                owed.push((depth, traversal.error(error)));
            }
        }
        Ok(())
    }

    /// Whether an error of the current directory is still to be told.
    #[inline]
    fn is_owed(&self) -> bool {
        self.owed.last().is_some_and(|(depth, _)| *depth == self.traversal.stack.top().bounds.depth)
    }

    /// Nothing is left in the current directory: goes up, or to the next root. Returns whether there is one.
    #[inline(never)]
    fn go_up(&mut self) -> Result<bool, Error> {
        if self.traversal.stack.levels().is_empty() {
            let step = self.traversal.open_root()?;
            return if matches!(step, Step::Done) { Ok(false) } else { self.read().map(|()| true) };
        }
        if self.is_owed() {
            return Err(self.owed.pop().expect("BUG: no error is owed").1);
        }
        self.traversal.come_back()?;
        self.traversal.pop();
        Ok(true)
    }

    /// Drops what is left of the current directory.
    fn leave(&mut self) {
        let left = &mut self.traversal.stack.top_mut().state;
        left.next = left.end.entries;
    }
}

impl fmt::Debug for ReadTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Traversal { path, options, .. } = &self.traversal;
        let path = Path::new(OsStr::from_bytes(path.as_bytes()));
        f.debug_struct("ReadTree").field("path", &path).field("options", options).finish_non_exhaustive()
    }
}
