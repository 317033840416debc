//! `WalkEntry`: an entry of a `Walk`, and the requests of the caller. It does not know what the
//! walk makes of them.

use crate::cursor::entry_state::{EntryState, EntryUpdates};
use crate::cursor::path::TreePath;
use crate::read_dir::entry::Entry;
use std::ops::Deref;
use std::path::Path;

/// An entry of a [`Walk`](crate::Walk): an [`Entry`] with its path at hand, and with methods that
/// tell the walk what to do with it.
///
/// ```
/// let mut walk = lendir::walk(".")?;
/// while let Some(entry) = walk.next_or_report(|error| eprintln!("{error}")) {
///     if entry.name() == b".git" {
///         entry.skip_subtree();
///     } else {
///         println!("{:?} has depth {}", entry.path(), entry.depth());
///     }
/// }
/// # Ok::<(), lendir::Error>(())
/// ```
///
/// [`skip_subtree`](Self::skip_subtree), [`skip_rest_of_dir`](Self::skip_rest_of_dir) and
/// [`follow`](Self::follow) take effect at the next call to `next`, and the last of them counts.
pub struct WalkEntry<'a> {
    pub(super) entry: Entry<'a>,
    /// The path of the entry.
    pub(super) path: &'a TreePath,
    pub(super) is_last: bool,
    pub(super) updates: &'a EntryUpdates,
}

impl<'a> WalkEntry<'a> {
    /// Returns the path, which begins with the root's as you wrote it.
    ///
    /// ```
    /// let mut walk = lendir::walk("/sys/class")?;
    /// let first = walk.next()?.map(|entry| entry.path().to_owned()); // to keep it
    /// assert!(first.is_some_and(|path| path.starts_with("/sys/class")));
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// On a terminal, print it by `{:?}`, which escapes control characters; to another program,
    /// write the bytes of [`as_os_str`](Path::as_os_str). [`Entry::path`] says why not to change or
    /// remove the entry by its path.
    #[doc(alias("escape"))]
    #[inline]
    pub fn path(&self) -> &'a Path {
        self.path.as_path()
    }

    /// Returns the path relative to the root, as archives store it.
    ///
    /// ```
    /// let mut walk = lendir::walk("/sys/class")?;
    /// while let Some(entry) = walk.next_or_report(|error| eprintln!("{error}")) {
    ///     println!("{:?}", entry.relative_path()); // such as "net/lo"
    /// #   assert_eq!(entry.relative_path(), entry.path().strip_prefix("/sys/class").unwrap());
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    #[doc(alias("strip_prefix", "tar"))]
    #[inline]
    pub fn relative_path(&self) -> &'a Path {
        self.path.relative_to_root()
    }

    /// Returns the depth below the root: 1 for an entry of the root, and 0 for the root itself, if
    /// it is [yielded](crate::WalkOptions::yield_roots).
    #[doc(alias = "min_depth")]
    #[inline]
    pub fn depth(&self) -> usize {
        self.entry.directory.depth.wrapping_add(1) // a root is in a directory above depth 0
    }

    /// Tells whether the entry is the last one of its directory, as `└──` in a drawing of the tree
    /// needs. Entries that you leave out count as well: [a recipe](crate::recipes#draw-a-tree)
    /// draws with a filter.
    #[inline]
    pub fn is_last(&self) -> bool {
        self.is_last
    }

    /// Tells the walk not to descend into this entry. If its type is unknown, it is not even opened
    /// to find out.
    #[doc(alias("hidden", "prune", "filter_entry", "skip_current_dir"))]
    #[inline]
    pub fn skip_subtree(&self) {
        self.updates.request.set(EntryState::SKIPPED);
    }

    /// Tells the walk to leave this directory: it neither descends into this entry nor yields a
    /// later one of the same directory.
    ///
    /// ```
    /// let mut walk = lendir::walk("/sys/class")?;
    /// while let Some(entry) = walk.next_or_report(|error| eprintln!("{error}")) {
    ///     println!("{:?}", entry.path()); // at most one of each subdirectory
    ///     if entry.depth() > 1 {
    ///         entry.skip_rest_of_dir();
    ///     }
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    #[doc(alias = "skip_current_dir")]
    #[inline]
    pub fn skip_rest_of_dir(&self) {
        self.updates.request.set(EntryState::REST_SKIPPED);
    }

    /// Tells the walk to descend into this entry even if it is a symbolic link.
    ///
    /// ```
    /// let mut walk = lendir::walk("/sys/class/net")?;
    /// while let Some(entry) = walk.next_or_report(|error| eprintln!("{error}")) {
    ///     println!("{:?}", entry.path());
    ///     if entry.depth() == 1 {
    ///         entry.follow(); // links to devices; links below them are not followed
    ///     }
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// If the entry is not a link, `follow` only cancels an earlier
    /// [`skip_subtree`](Self::skip_subtree) or [`skip_rest_of_dir`](Self::skip_rest_of_dir).
    ///
    /// [`DirEntry::follow`](crate::DirEntry::follow) says why the walk can then leave its tree, how
    /// to limit that, and which errors the walk reports.
    #[doc(alias = "symlink")]
    #[inline]
    pub fn follow(&self) {
        self.updates.request.set(EntryState::FOLLOWED);
    }
}

impl<'a> Deref for WalkEntry<'a> {
    type Target = Entry<'a>;

    #[inline]
    fn deref(&self) -> &Entry<'a> {
        &self.entry
    }
}

debug!(WalkEntry<'_>, |entry| path: entry.path(), d_type: entry.d_type(), ino: entry.ino());
