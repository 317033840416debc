//! `WalkEntry`: an entry of a `Walk`, and the requests of the caller. It does not know what the
//! walk makes of them.

use crate::cursor::path::TreePath;
use crate::error::Error;
use crate::listing::listed_entry::ListedEntry;
use crate::read_dir::entry::{Directory, NamedEntry, file_type};
use crate::read_dir::entry_state::{EntryState, EntryUpdates};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::{FileType, OFlags, Stat, Statx, StatxFlags};
use std::ffi::{CStr, OsStr};
use std::path::{Path, PathBuf};
use std::{fmt, io};

/// An entry of a [`Walk`](crate::Walk), borrowed until the next call to `next`. A `WalkEntry` has
/// the methods of an [`Entry`](crate::Entry), and its [`path`](Self::path) takes no allocation.
///
/// ```
/// let mut walk = lendir::walk("/sys/class")?;
/// while let Some(entry) = walk.next_ok(|error| eprintln!("{error}")) {
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
/// [`follow`](Self::follow) are requests: they tell the walk how to continue. The last request for
/// an entry counts, and takes effect at the next call to `next`. Requests also work in closures,
/// such as the argument of [`filter_map`](crate::Walk::filter_map).
///
/// A `WalkEntry` has no [`cookie`](crate::Entry::cookie), because its directory has already been
/// read to the end.
pub struct WalkEntry<'a> {
    pub(crate) entry: ListedEntry<'a>,
    pub(crate) directory: Directory<'a>,
    /// The path of the entry.
    pub(crate) path: &'a TreePath,
    pub(crate) is_last: bool,
    pub(crate) updates: &'a EntryUpdates,
}

/// Writes methods that return the result of `$entry`'s method of the same name.
macro_rules! same_as_entry {
    ($self:ident => $entry:expr;
        $($(#[$attribute:meta])* $name:ident($($argument:ident: $type:ty)?) -> $result:ty;)*) => {
        $(
            #[doc = concat!(
                "Same as [`Entry::", stringify!($name), "`]",
                "(crate::Entry::", stringify!($name), ").",
            )]
            $(#[$attribute])*
            #[inline]
            pub fn $name(&$self $(, $argument: $type)?) -> $result {
                $entry.$name($($argument)?)
            }
        )*
    };
}

impl<'a> WalkEntry<'a> {
    same_as_entry! { self => self.entry;
        name() -> &'a [u8];
        name_cstr() -> &'a CStr;
        name_os() -> &'a OsStr;
        numeric_name() -> Option<u32>;
        ino() -> u64;
        /// In [`Order::Path`](crate::Order::Path), which needs the type, the walk has already
        /// queried a type that the kernel's record does not tell.
        d_type() -> FileType;
    }

    /// Returns the path: the path of the root, as it was passed to the walk, and the names from
    /// there to this entry.
    ///
    /// ```
    /// let mut walk = lendir::walk("/sys/class")?;
    /// let first = walk.next()?.map(|entry| entry.path().to_owned()); // to keep it
    /// assert!(first.is_some_and(|path| path.starts_with("/sys/class")));
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// - Print the path to a terminal by `{:?}`, which escapes control characters.
    /// - Write the bytes of [`as_os_str`](Path::as_os_str) to another program.
    /// - Do not use the path to change or remove the entry: it can lead elsewhere if another
    ///   process replaces a directory by a link. See [`Entry::path`](crate::Entry::path).
    #[inline]
    pub fn path(&self) -> &'a Path {
        self.path.as_path()
    }

    /// Returns the path relative to the root, such as an archive contains.
    ///
    /// ```
    /// let mut walk = lendir::walk("/sys/class")?;
    /// while let Some(entry) = walk.next()? {
    ///     assert_eq!(entry.relative_path(), entry.path().strip_prefix("/sys/class").unwrap());
    /// #   entry.skip_subtree();
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    #[inline]
    pub fn relative_path(&self) -> &'a Path {
        self.path.relative_to_root()
    }

    /// Returns the number of levels below the root. An entry of the root has depth 1. The root is
    /// not an entry.
    #[doc(alias = "min_depth")]
    #[inline]
    pub fn depth(&self) -> usize {
        self.directory.depth + 1
    }

    /// Returns `true` if the entry is the last one of its directory.
    #[inline]
    pub fn is_last(&self) -> bool {
        self.is_last
    }

    /// Same as [`Entry::file_type`](crate::Entry::file_type).
    #[doc(alias("is_dir", "is_file", "is_symlink"))]
    #[inline]
    pub fn file_type(&self) -> Result<FileType, Error> {
        file_type(self.d_type(), || self.named())
    }

    same_as_entry! { self => self.named();
        /// The outcome decides whether the walk descends into the entry.
        stat() -> Result<Stat, Error>;
        statx(mask: StatxFlags) -> Result<Statx, Error>;
        read_link() -> Result<PathBuf, Error>;
        open(flags: OFlags) -> Result<OwnedFd, Error>;
    }

    #[inline]
    fn named(&self) -> NamedEntry<'_> {
        let Self { directory, updates, .. } = *self;
        NamedEntry { directory, name: self.name_cstr(), updates: Some(updates) }
    }

    /// Same as [`Entry::dir_fd`](crate::Entry::dir_fd).
    #[doc(alias("dirfd", "dir"))]
    #[inline]
    pub fn dir_fd(&self) -> BorrowedFd<'a> {
        self.directory.fd
    }

    /// Same as [`Entry::wrap_error`](crate::Entry::wrap_error).
    #[cold]
    #[must_use = "this makes an error, and reports nothing"]
    pub fn wrap_error(&self, cause: impl Into<io::Error>) -> Error {
        self.named().error(cause)
    }

    /// Tells the walk not to descend into this entry.
    ///
    /// If the type of the entry is unknown, the entry is not opened to find its type.
    #[doc(alias("prune", "filter_entry"))]
    #[inline]
    pub fn skip_subtree(&self) {
        self.updates.merge(EntryState::SKIP);
    }

    /// Tells the walk to skip the rest of this directory. The walk neither descends into this entry
    /// nor yields any later entry of the directory.
    ///
    /// ```
    /// let mut walk = lendir::walk("/sys/class")?;
    /// while let Some(entry) = walk.next_ok(|error| eprintln!("{error}")) {
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
        self.updates.merge(EntryState::SKIP_REST);
    }

    /// Tells the walk to descend into this entry even if it is a symbolic link.
    ///
    /// ```
    /// let mut walk = lendir::walk("/sys/class/net")?;
    /// while let Some(entry) = walk.next_ok(|error| eprintln!("{error}")) {
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
    /// **Below a followed link, the walk can leave its tree, and links multiply the work.**
    /// [`Entry::follow`](crate::Entry::follow) says how to limit both, and which errors the walk
    /// reports.
    #[doc(alias = "follow_links")]
    #[inline]
    pub fn follow(&self) {
        self.updates.merge(EntryState::FOLLOW);
    }
}

impl fmt::Debug for WalkEntry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WalkEntry")
            .field("path", &self.path())
            .field("d_type", &self.d_type())
            .field("ino", &self.ino())
            .finish_non_exhaustive()
    }
}
