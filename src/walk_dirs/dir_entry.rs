//! `DirEntry`: an entry of a `Dir`, and the requests of the caller. It does not know what the walk
//! makes of them.

use crate::cursor::entry_state::{EntryState, EntryUpdates};
use crate::read_dir::entry::{Directory, Entry, Record};
use std::ops::Deref;

/// An entry of a [`Dir`](crate::Dir): an [`Entry`], and what you can tell the walk about it.
///
/// ```
/// let mut walk = lendir::walk_dirs(".")?;
/// while let Some(mut dir) = walk.next_or_report(|error| eprintln!("{error}")) {
///     while let Some(entry) = dir.next_or_report(|error| eprintln!("{error}")) {
///         println!("{:?}", entry.path());
///         if entry.name() == b".git" {
///             entry.skip_subtree();
///         }
///     }
/// }
/// # Ok::<(), lendir::Error>(())
/// ```
///
/// The last call of [`skip_subtree`](Self::skip_subtree) or [`follow`](Self::follow) counts. After
/// [`Dir::skip_subdirs`](crate::Dir::skip_subdirs) the walk enters only what you name.
pub struct DirEntry<'a> {
    pub(super) entry: Entry<'a>,
    /// `None` if the walk enters no entry of this type.
    updates: Option<&'a EntryUpdates>,
}

impl<'a> DirEntry<'a> {
    #[inline(always)]
    pub(super) fn new(
        record: Record<'a>,
        directory: Directory<'a>,
        updates: &'a EntryUpdates,
    ) -> Self {
        let updates = EntryState::from_type(record.d_type()).map(|_| updates);
        let queried = updates.map(|updates| &updates.queried);
        Self { entry: Entry { record, directory, queried }, updates }
    }

    /// Returns the depth below the root: 1 for an entry of the root.
    #[doc(alias = "min_depth")]
    #[inline]
    pub fn depth(&self) -> usize {
        self.entry.directory.depth + 1
    }

    /// Tells the walk not to descend into this entry. If its type is unknown, it is not even opened
    /// to find out.
    #[doc(alias("hidden", "prune", "filter_entry"))]
    #[inline]
    pub fn skip_subtree(&self) {
        self.request(EntryState::SKIPPED);
    }

    /// Tells the walk to descend into this entry even if it is a symbolic link.
    ///
    /// ```
    /// let mut walk = lendir::walk_dirs("/sys/class/net")?;
    /// while let Some(mut dir) = walk.next_or_report(|error| eprintln!("{error}")) {
    ///     println!("{:?}", dir.path());
    ///     let is_root = dir.depth() == 0;
    ///     while let Some(entry) = dir.next_or_report(|error| eprintln!("{error}")) {
    ///         if is_root {
    ///             entry.follow(); // links to devices; links below them are not followed
    ///         }
    ///     }
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// A link to a file, or to nothing, is not an error, and one to another mount is not entered
    /// under [`same_mount`](crate::WalkOptions::same_mount). [`file_type`](Entry::file_type) and
    /// [`metadata`](Entry::metadata) still describe the link itself. If the entry is not a link,
    /// `follow` only cancels an earlier [`skip_subtree`](Self::skip_subtree).
    ///
    /// **Below a followed link, the walk can leave its tree**, because any process that can change
    /// the link decides where it points. To limit this, check each directory before you read it:
    /// `if !is_allowed(dir.fd()) { dir.skip_subdirs(); continue }`. Links also multiply the work,
    /// [even without a loop](crate::security#followed-links), which
    /// [`max_depth`](crate::WalkOptions::max_depth) bounds.
    ///
    /// # Errors
    ///
    /// The walk reports each link that it cannot enter:
    ///
    /// - `ELOOP`: a directory that is already on the path would be entered again, which
    ///   [`Error::loop_ancestor`](crate::Error::loop_ancestor) returns. A link that points only to
    ///   other links has the same number, but no such directory.
    /// - `EACCES` or another error: the walk cannot tell whether the link makes a loop, because a
    ///   directory above it can no longer be searched, or a server does not answer. It is not
    ///   entered, even if the target can be read.
    ///
    /// # Performance
    ///
    /// To find loops, the walk queries each directory above the link once, and each below it. While
    /// it is inside, it holds two descriptors beyond [`max_open`](crate::WalkOptions::max_open).
    #[doc(alias = "symlink")]
    #[inline]
    pub fn follow(&self) {
        self.request(EntryState::FOLLOWED);
    }

    #[inline]
    fn request(&self, request: EntryState) {
        if let Some(updates) = self.updates {
            updates.request.set(request);
        }
    }
}

impl<'a> Deref for DirEntry<'a> {
    type Target = Entry<'a>;

    #[inline]
    fn deref(&self) -> &Entry<'a> {
        &self.entry
    }
}

debug!(DirEntry<'_>, |entry| name: entry.name_cstr(), d_type: entry.d_type(), ino: entry.ino());
