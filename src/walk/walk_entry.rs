//! `WalkEntry`: an entry of a `Walk`, and the requests of the caller. It does not know what the walk makes of them.

use crate::cursor::path::TreePath;
use crate::error::Error;
use crate::listing::listed_entry::ListedEntry;
use crate::read_dir::entry::{Directory, NamedEntry};
use crate::read_dir::entry_state::{EntryState, EntryUpdates};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::{FileType, OFlags, Stat, Statx, StatxFlags};
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{fmt, io};

/// An entry of a [`Walk`](crate::Walk), lent until the next call of its `next`: an [`Entry`](crate::Entry) that lends its
/// whole path too, and by which its caller says how the tree goes on.
///
/// Of [`skip_subtree`](Self::skip_subtree), [`skip_rest_of_dir`](Self::skip_rest_of_dir) and [`follow`](Self::follow), the one called last counts.
/// They take effect at the next call of `next`, cost nothing, and work inside of closures, as of
/// [`filter_map`](crate::Walk::filter_map), too.
///
/// It has no [cookie](crate::Entry::cookie), because its directory has been read to its end.
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
            #[doc = concat!("Same as [`Entry::", stringify!($name), "`](crate::Entry::", stringify!($name), ").")]
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
        /// In [`Order::Path`](crate::Order::Path), which needs the type, it was queried if the kernel's listing has none.
        d_type() -> FileType;
    }

    /// Its path: that of the root, as it was given to the tree, and the names from there to here. **It is for people to read**:
    /// see [`Entry::path`](crate::Entry::path). For a terminal, print it by `{:?}`, which escapes control characters; for another
    /// program, write the bytes of its [`as_os_str`](Path::as_os_str). To keep it, call [`to_owned`](ToOwned::to_owned). Costs
    /// nothing.
    #[inline]
    pub fn path(&self) -> &'a Path {
        Path::new(OsStr::from_bytes(self.path.as_bytes()))
    }

    /// Its path without that of the root, as an archive has it. Costs nothing.
    ///
    /// ```
    /// let mut tree = lendir::walk("/sys/class")?;
    /// while let Some(entry) = tree.next()? {
    ///     assert_eq!(entry.relative_path(), entry.path().strip_prefix("/sys/class").unwrap());
    /// #   entry.skip_subtree();
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    #[inline]
    pub fn relative_path(&self) -> &'a Path {
        Path::new(OsStr::from_bytes(self.path.relative_to_root()))
    }

    /// How many levels it is below the root: 1 in the root, which is no entry itself.
    #[doc(alias = "min_depth")]
    #[inline]
    pub fn depth(&self) -> usize {
        self.directory.depth + 1
    }

    /// Whether no entry of its directory comes after it. Costs nothing.
    #[inline]
    pub fn is_last(&self) -> bool {
        self.is_last
    }

    /// Same as [`Entry::file_type`](crate::Entry::file_type).
    #[doc(alias("is_dir", "is_file", "is_symlink"))]
    #[inline]
    pub fn file_type(&self) -> Result<FileType, Error> {
        match self.d_type() {
            FileType::Unknown => self.named().query_type(),
            known => Ok(known),
        }
    }

    same_as_entry! { self => self.named();
        /// The walk acts on the outcome.
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

    /// Does not go below this entry. If its type is unknown, it is not opened to find out whether it is a directory. Of this,
    /// [`follow`](Self::follow) and [`skip_rest_of_dir`](Self::skip_rest_of_dir), the last call counts, on a file too.
    #[doc(alias("prune", "filter_entry"))]
    #[inline]
    pub fn skip_subtree(&self) {
        self.updates.merge(EntryState::SKIP);
    }

    /// Leaves its directory: does not go below this entry, and lends none of its directory after it.
    #[doc(alias = "skip_current_dir")]
    #[inline]
    pub fn skip_rest_of_dir(&self) {
        self.updates.merge(EntryState::SKIP_REST);
    }

    /// Goes below this entry even through a link. A link to a file, or to nothing, is no error. Where it is no link, this
    /// only takes back [`skip_subtree`](Self::skip_subtree) and [`skip_rest_of_dir`](Self::skip_rest_of_dir). [`file_type`](Self::file_type)
    /// and [`stat`](Self::stat) still answer for the link itself.
    ///
    /// **Below this link, the tree no longer promises to stay inside its root**, and links multiply:
    /// [`Entry::follow`](crate::Entry::follow) says what is a loop, what it costs, and how to limit it.
    ///
    /// ```
    /// let mut tree = lendir::walk("/sys/class/net")?;
    /// while let Some(entry) = tree.next_ok(|error| eprintln!("{error}")) {
    ///     if entry.depth() == 1 {
    ///         entry.follow(); // to the devices, and no further
    ///     }
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
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
