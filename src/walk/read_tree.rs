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
//! its place, as in a [`Walk`](super::Walk). If it must stay, for an error that waits or because the level above is closed, it has
//! given up its entries. The steps through the tree are those of the walk: see [`descent`](super::descent).

use super::WalkOptions;
use super::descent::{Current, Descent};
use super::lender::until_ok;
use super::opener::Found;
use super::pending::Kind;
use super::roots::Roots;
use super::stack::Level;
use super::tree_entry::{Then, TreeEntry};
use crate::entry::Directory;
use crate::error::Error;
use crate::listing::{Extent, Listing, Order};
use rustix::fd::OwnedFd;
use std::cell::Cell;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{fmt, io, iter};

/// Reads the tree at `path` in one loop, with the default options.
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
/// Those of [`WalkOptions::read_tree`], which also says what it costs.
#[doc(alias("walkdir", "fts", "nftw", "find"))]
pub fn read_tree(path: impl AsRef<Path>) -> Result<ReadTree, Error> {
    WalkOptions::default().read_tree(path)
}

/// Every entry of a tree in one loop, each right before what is below it: the order of walkdir, `fts`, `find` and `tree`.
///
/// ```
/// let mut tree = lendir::read_tree("/sys/class")?;
/// while let Some(entry) = tree.next_ok(|error| eprintln!("{error}")) {
///     if entry.name() == b".git" {
///         entry.skip_below(); // nothing below it comes
///     } else if entry.name().ends_with(b".conf") {
///         println!("{:?}", entry.path());
///     }
/// }
/// # Ok::<(), lendir::Error>(())
/// ```
///
/// With options, it begins by [`WalkOptions::read_tree`].
///
/// It lends, and so it is no [`Iterator`], and there is no `for entry in tree`: instead of that, write the loop above, or go over
/// what you make of each entry, by [`filter_map`](Self::filter_map) or [`paths`](Self::paths). An entry cannot be kept beyond the
/// next call of `next`, so copy what you keep: `entry.path().to_owned()`.
///
/// ```compile_fail,E0499
/// # fn keep(tree: &mut lendir::ReadTree) -> Result<(), lendir::Error> {
/// let first = tree.next()?;
/// let second = tree.next()?; // error: `tree` is still borrowed by `first`
/// drop(first);
/// # Ok(())
/// # }
/// ```
///
/// A value for each level, such as rules, an indent or a sum, goes into a `Vec` of yours that you cut to
/// [`depth`](TreeEntry::depth): [recipes](crate::recipes#trees) do. For threads, for [second
/// visits](WalkOptions::second_visits), and for what you do with a directory as a whole, there is [`Walk`](super::Walk).
///
/// # Guarantees
///
/// Those of a [`Walk`](super::Walk#guarantees) that concern the tree: it never leaves the tree, unless you call
/// [`follow`](TreeEntry::follow); unknown types are opened; errors end nothing; any depth; once each. And:
///
/// - **Order.** After each entry comes at once what is below it, then the next one of its directory: in the kernel's order, or in
///   that of [`with_order`](Self::with_order). The root is no entry.
/// - **The entry of a directory is lent before the directory is opened**: you can `chmod` it first. If it cannot be entered, the
///   error comes right after its entry.
/// - **A directory is read whole before its first entry comes.** If reading it fails midway, the entries before the error come
///   first, with all that is below them, and then the error.
///
/// # What it costs
///
/// System calls as a [`Walk`](super::Walk#what-it-costs): 3 or 4 for a directory. No allocation for an entry, and none for a
/// directory once the memory has grown, except where you follow links or a level is found by names.
///
/// In memory: the path; for each level that has entries left 104 bytes, its descriptor, of which at most
/// [`max_open`](WalkOptions::max_open) are open, and all of its entries and both dots, as in a [`Listing`]. A level that stays
/// without entries, because an error of reading it waits, or, as in a [`Walk`](super::Walk#what-it-costs), the level above was
/// closed early, takes 104 bytes. [Following a link](TreeEntry::follow) takes memory for the directories above it. Ten million files in one
/// directory take some 500 MB, and [`find`](Self::find) returns none of them before all have been read. A [`Walk`](super::Walk)
/// reads such a directory in 32 KiB.
#[doc(alias("walkdir", "fts", "nftw"))]
#[must_use = "nothing is read before `next`"]
pub struct ReadTree {
    descent: Descent<Left>,
    /// The entries of all levels, those of each behind those of the level above.
    listing: Listing,
    /// Errors of reading, each with the depth of its directory: they wait until the entries read before them have been lent.
    late_errors: Vec<(usize, io::Error)>,
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

impl Left {
    /// No entries, behind those of the levels above the last of `levels`.
    #[inline]
    fn behind(levels: &[Level<Self>]) -> Self {
        let end = if let [.., above, _] = levels { above.left.end } else { Extent::default() };
        Self { next: end.entries, end }
    }
}

impl WalkOptions {
    /// Reads the tree at `path` in one loop. The paths of the entries begin with `path`, as it is written here.
    /// [`second_visits`](Self::second_visits) changes nothing.
    ///
    /// ```
    /// use lendir::{Order, Walk};
    ///
    /// // The options come before, the order after.
    /// let mut tree = Walk::options().max_depth(2).same_mount(true).read_tree("/sys/class")?.with_order(Order::Bytes);
    /// while let Some(entry) = tree.next_ok(|error| eprintln!("{error}")) {
    ///     assert!(entry.depth() <= 2);
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// Costs: one `openat` and one `fstatfs`. The memory comes with the tree.
    ///
    /// # Errors
    ///
    /// Those of [`open`](Self::open): `ENOENT` for nothing or a dangling link, `ENOTDIR` for a file. If the root may not be read,
    /// [`ReadTree::next`] returns the error.
    pub fn read_tree(self, path: impl AsRef<Path>) -> Result<ReadTree, Error> {
        let path = path.as_ref().as_os_str().as_bytes();
        let root = Found::root(path, self.options.follow_roots).map_err(|errno| Error::new(path, 0, errno))?;
        Ok(ReadTree::new(&self, Roots::open(root), path))
    }

    /// Reads the trees at `paths`, one after another. A root is opened when the loop comes to it: if it is missing, that is an error
    /// of [`ReadTree::next`], with its path and depth 0. A path that is given twice is read twice.
    ///
    /// ```
    /// let mut trees = lendir::Walk::options().read_trees(["/sys/class", "/no/such/directory", "/sys/bus"]);
    /// let mut errors = 0;
    /// while let Some(_entry) = trees.next_ok(|_| errors += 1) {}
    /// assert_eq!(errors, 1);
    /// ```
    ///
    /// Costs: a copy of each path.
    pub fn read_trees<P: AsRef<Path>>(self, paths: impl IntoIterator<Item = P>) -> ReadTree {
        ReadTree::new(&self, Roots::at(paths), b"")
    }

    /// Reads the tree at `root`, from [`open`](crate::open()) or [`openat`](crate::openat()), with paths that begin with `path`:
    /// see [`from_fd`](Self::from_fd), also for costs.
    pub fn read_tree_from_fd(self, root: impl Into<OwnedFd>, path: impl AsRef<Path>) -> ReadTree {
        ReadTree::new(&self, Roots::from_fd(root.into()), path.as_ref().as_os_str().as_bytes())
    }
}

impl ReadTree {
    fn new(options: &WalkOptions, roots: Roots, path: &[u8]) -> Self {
        let mut descent = Descent::new(options.options);
        descent.begin(roots, path);
        Self { descent, listing: Listing::with_order(Order::Unsorted), late_errors: Vec::new(), then: Cell::default() }
    }

    /// Sorts each directory that is read from now on. Without this call the entries come as the kernel gives them
    /// ([`Order::Unsorted`]).
    ///
    /// ```
    /// let mut tree = lendir::read_tree("src")?.with_order(lendir::Order::Bytes);
    /// let first = tree.next()?.expect("a source file");
    /// assert_eq!((first.name(), first.is_last()), (&b"arena.rs"[..], false));
    /// # Ok::<(), lendir::Error>(())
    /// ```
    #[doc(alias("sort_by", "sort_by_file_name"))]
    pub fn with_order(mut self, order: Order) -> Self {
        self.listing.set_order(order);
        self
    }

    /// Goes on to the next entry and lends it. `None` when nothing is left. [`Entries::next`](crate::Entries::next)
    /// warns of a loop that loses errors.
    ///
    /// # Errors
    ///
    /// With the path concerned. The next call continues.
    ///
    /// - Those of reading a directory, after the entries that were read before: those of [`Listing::read`] and, if it may not be
    ///   read, of [`Dir::next`](crate::Dir::next).
    /// - Those of [`Walk::next`](super::Walk::next): of a directory that cannot be opened, after its entry; of a level that was
    ///   closed early and cannot be found again; of a root of [`read_trees`](WalkOptions::read_trees).
    #[inline(always)]
    pub fn next(&mut self) -> Result<Option<TreeEntry<'_>>, Error> {
        Ok(if self.advance()? { Some(self.lend()) } else { None })
    }

    /// The next entry, or `None` when nothing is left. `on_error` gets each error that comes before, and none ends the loop. Nor
    /// should an error of an entry, which a `?` in the loop would make of it:
    ///
    /// ```
    /// let mut tree = lendir::read_tree("/sys/class")?;
    /// while let Some(entry) = tree.next_ok(|error| eprintln!("{error}")) {
    ///     match entry.file_type() {
    ///         Ok(file_type) if file_type.is_dir() => println!("{:?}", entry.path()),
    ///         Ok(_) => {}
    ///         Err(error) => eprintln!("{error}"),
    ///     }
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    #[inline(always)]
    pub fn next_ok(&mut self, on_error: impl FnMut(Error)) -> Option<TreeEntry<'_>> {
        until_ok(|| self.advance(), on_error).then(|| self.lend())
    }

    /// The next entry that is `wanted`, or `None` when nothing is left. What it passes over can be
    /// [skipped](TreeEntry::skip_below) in the closure.
    ///
    /// ```
    /// let mut tree = lendir::read_tree("/sys/class")?;
    /// let net = tree.find(|entry| entry.name() == b"net")?.map(|entry| entry.path().to_owned());
    /// # assert_eq!(net, Some("/sys/class/net".into()));
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`next`](Self::next). **With `?`, the first directory that may not be read ends the search of the tree.** To report
    /// errors and go on, write the loop with [`next_ok`](Self::next_ok), and `break` at the entry.
    #[inline(always)]
    pub fn find(&mut self, mut wanted: impl FnMut(&TreeEntry<'_>) -> bool) -> Result<Option<TreeEntry<'_>>, Error> {
        while self.advance()? {
            if wanted(&self.lend()) {
                return Ok(Some(self.lend()));
            }
        }
        Ok(None)
    }

    /// An iterator over what `f` makes of the entries, without those for which that is `None`. Errors are items.
    ///
    /// ```
    /// let mut sources = lendir::read_tree(".")?.filter_map(|entry| {
    ///     if entry.name() == b"target" || entry.name() == b".git" {
    ///         entry.skip_below();
    ///     }
    ///     entry.name().ends_with(b".rs").then(|| entry.relative_path().to_owned())
    /// });
    /// assert!(sources.any(|path| path.is_ok_and(|path| path.ends_with("src/lib.rs"))));
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// If the closure can fail too, put its error into the same place by `.map(|made| made.and_then(|made| made))`:
    ///
    /// ```
    /// let sizes = lendir::read_tree("src")?.filter_map(|entry| Some(entry.stat().map(|stat| stat.st_size)));
    /// let bytes: i64 = sizes.map(|size| size.and_then(|size| size)).sum::<Result<_, _>>()?;
    /// # assert!(bytes > 100_000);
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// Costs and errors are those of [`next`](Self::next).
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

    /// An iterator of owned paths, with the errors between them.
    ///
    /// ```
    /// let mut paths: Vec<_> = lendir::read_tree("src")?.paths().collect::<Result<_, _>>()?;
    /// paths.sort_unstable_by(|a, b| a.as_os_str().cmp(b.as_os_str())); // the lines of `find | LC_ALL=C sort`
    /// # assert!(paths.contains(&"src/walk/read_tree.rs".into()));
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// It is `Send`, so rayon's `par_bridge` takes it. Costs: an allocation for each entry.
    pub fn paths(self) -> impl Iterator<Item = Result<PathBuf, Error>> {
        self.filter_map(|entry| Some(entry.path().to_owned()))
    }

    /// Lends the entry that the tree has come to.
    #[inline(always)]
    fn lend(&mut self) -> TreeEntry<'_> {
        let (top, path) = (self.descent.top(), self.descent.path());
        let Left { next, end } = top.left;
        TreeEntry {
            entry: self.listing.get(next - 1).expect("BUG: no entry was lent"),
            directory: Directory { fd: top.dir(), path: top.bounds.path(path.as_bytes()), depth: top.bounds.depth },
            path,
            is_last: next == end.entries,
            may_enter: self.descent.may_enter(),
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
        let Self { descent, listing, then, .. } = self;
        let d_type = descent.go_on(|Left { next, end }| {
            if *next == end.entries {
                return None;
            }
            let entry = listing.get(*next).expect("BUG: an entry is missing");
            *next += 1;
            Some((entry.name_with_nul(), entry.d_type()))
        });
        d_type.inspect(|d_type| then.set(Then::after(*d_type, descent.may_enter()))).is_some()
    }

    /// Goes below the entry lent last, and reads that directory.
    #[inline(always)]
    fn go_below(&mut self, kind: Kind) -> Result<(), Error> {
        let has_late_error = self.has_late_error();
        let Self { descent, listing, .. } = self;
        let Left { next, end } = descent.top().left;
        let entry = listing.get(next - 1).expect("BUG: no entry was lent");
        let Some(child) = descent.open(kind, entry.name_cstr())? else { return Ok(()) };
        let is_last = next == end.entries;
        if is_last && !has_late_error && descent.may_replace_top() {
            descent.replace_top(child);
        } else {
            if is_last {
                *descent.left_mut() = Left::behind(descent.levels());
            }
            descent.push(child, Left::default());
        }
        self.read()
    }

    /// Reads the directory that was just opened, behind the entries of those above.
    #[inline(always)]
    fn read(&mut self) -> Result<(), Error> {
        let Self { descent, listing, late_errors, .. } = self;
        let nothing = Left::behind(descent.levels());
        let max_depth = descent.options().max_depth;
        let Current { dir, bounds, end_marker, unreadable, left, .. } = descent.visit();
        *left = nothing;
        if bounds.depth >= max_depth {
            return Ok(());
        }
        if let Some(errno) = unreadable {
            return Err(descent.error(errno));
        }
        let result = listing.read_behind(nothing.end, dir, end_marker);
        left.end = listing.extent();
        if let Err(error) = result {
            late_errors.push((bounds.depth, error)); // without the path: those of all levels would take memory with its square
        }
        Ok(())
    }

    /// Whether an error of the current directory waits.
    #[inline]
    fn has_late_error(&self) -> bool {
        self.late_errors.last().is_some_and(|(depth, _)| *depth == self.descent.top().bounds.depth)
    }

    /// Nothing is left in the current directory: goes up, or to the next root. Returns whether there is one.
    #[inline(never)]
    fn go_up(&mut self) -> Result<bool, Error> {
        if self.descent.levels().is_empty() {
            let is_there = self.descent.open_root(Left::default())?;
            return if is_there { self.read().map(|()| true) } else { Ok(false) };
        }
        let late_error = if self.has_late_error() { self.late_errors.pop() } else { None };
        if let Some((_, error)) = late_error {
            return Err(self.descent.error(error));
        }
        self.descent.come_back(|_| true)?;
        self.descent.pop();
        Ok(true)
    }

    /// Drops what is left of the current directory.
    fn leave(&mut self) {
        let left = self.descent.left_mut();
        left.next = left.end.entries;
    }
}

impl fmt::Debug for ReadTree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = Path::new(OsStr::from_bytes(self.descent.path().as_bytes()));
        f.debug_struct("ReadTree").field("path", &path).field("options", self.descent.options()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{Order, read_tree};
    use std::fs;
    use std::io::Error;

    /// An error of each directory waits until all below it has been lent.
    #[test]
    #[cfg_attr(miri, ignore = "opens directories")]
    fn a_level_that_stays_for_its_error_gives_up_its_entries() {
        const LEVELS: usize = 20;
        let root = tempfile::tempdir().unwrap();
        for level in 0..LEVELS {
            let at = root.path().join("m/".repeat(level));
            fs::create_dir(at.join("m")).unwrap();
            for name in ["a", "b", "c"] {
                fs::write(at.join(name), "").unwrap();
            }
        }
        let mut tree = read_tree(root.path()).unwrap().with_order(Order::Bytes);
        let (mut entries, mut errors) = (0, 0);
        loop {
            let is_first = match tree.next() {
                Ok(None) => break,
                Ok(Some(entry)) => {
                    entries += 1;
                    entry.name() == b"a"
                }
                Err(error) => {
                    errors += 1;
                    assert_eq!(error.depth(), LEVELS - errors, "{error}");
                    false
                }
            };
            if is_first {
                let depth = tree.descent.top().bounds.depth;
                tree.late_errors.push((depth, Error::other("read")));
            }
            assert!(tree.listing.len() <= 4, "{} entries are kept", tree.listing.len());
        }
        assert_eq!((entries, errors), (4 * LEVELS, LEVELS));
    }
}
