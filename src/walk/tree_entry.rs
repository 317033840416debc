//! `TreeEntry`: what a `ReadTree` lends, and what its caller says of it.

use super::path::TreePath;
use super::pending::Kind;
use crate::entry::{Directory, canonical_decimal};
use crate::error::Error;
use crate::listed_entry::ListedEntry;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::{FileType, OFlags, Stat, Statx, StatxFlags};
use std::cell::Cell;
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{fmt, io};

/// An entry of a [`ReadTree`](super::ReadTree), lent until the next call of its `next`: an [`Entry`](crate::Entry) that lends its
/// whole path too, and by which its caller says how the tree goes on.
///
/// Of [`skip_below`](Self::skip_below), [`skip_rest`](Self::skip_rest) and [`follow`](Self::follow), the one called last counts.
/// They take effect at the next call of `next`, cost nothing, and work inside of closures, as of
/// [`filter_map`](super::ReadTree::filter_map), too.
///
/// It has no [cookie](crate::Entry::cookie), because its directory has been read to its end.
pub struct TreeEntry<'a> {
    pub(super) entry: ListedEntry<'a>,
    pub(super) directory: Directory<'a>,
    /// Of the entry.
    pub(super) path: &'a TreePath,
    pub(super) is_last: bool,
    /// Whether it is above the maximum depth.
    pub(super) may_enter: bool,
    pub(super) then: &'a Cell<Then>,
}

/// What comes after an entry.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Then {
    /// The next one of its directory.
    #[default]
    Next,
    /// What is below it.
    Below(Kind),
    /// What comes after its directory.
    Leave,
}

impl Then {
    /// Unless the caller says otherwise.
    #[inline]
    pub(super) fn after(d_type: FileType, may_enter: bool) -> Self {
        Kind::of(d_type).filter(|kind| may_enter && kind.is_entered()).map_or(Self::Next, Self::Below)
    }
}

impl<'a> TreeEntry<'a> {
    /// As [`Entry::name`](crate::Entry::name).
    #[inline]
    pub fn name(&self) -> &'a [u8] {
        self.entry.name()
    }

    /// As [`Entry::name_cstr`](crate::Entry::name_cstr).
    ///
    /// Costs: one scan of the name for its NUL.
    #[inline]
    pub fn name_cstr(&self) -> &'a CStr {
        self.entry.name_cstr()
    }

    /// As [`Entry::name_os`](crate::Entry::name_os).
    #[inline]
    pub fn name_os(&self) -> &'a OsStr {
        self.entry.name_os()
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
    /// let mut tree = lendir::read_tree("/sys/class")?;
    /// while let Some(entry) = tree.next()? {
    ///     assert_eq!(entry.relative_path(), entry.path().strip_prefix("/sys/class").unwrap());
    /// #   entry.skip_below();
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    #[inline]
    pub fn relative_path(&self) -> &'a Path {
        Path::new(OsStr::from_bytes(self.path.below_root()))
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

    /// As [`Entry::numeric_name`](crate::Entry::numeric_name).
    #[inline]
    pub fn numeric_name(&self) -> Option<u32> {
        canonical_decimal(self.name())
    }

    /// As [`Entry::file_type`](crate::Entry::file_type). Where the record has no type, the tree relies on the answer: it does not
    /// open what is no directory, and after an error it does not try, so that the error comes once.
    #[doc(alias("is_dir", "is_file", "is_symlink"))]
    #[inline]
    pub fn file_type(&self) -> Result<FileType, Error> {
        match self.d_type() {
            FileType::Unknown => self.learn(self.directory.type_of(self.name_cstr()), |file_type| *file_type),
            known => Ok(known),
        }
    }

    /// As [`Entry::d_type`](crate::Entry::d_type). In [`Order::Path`](crate::Order::Path), the file system's where the record
    /// has none.
    #[inline]
    pub fn d_type(&self) -> FileType {
        self.entry.d_type()
    }

    /// As [`Entry::dir_fd`](crate::Entry::dir_fd).
    #[doc(alias("dirfd", "dir"))]
    #[inline]
    pub fn dir_fd(&self) -> BorrowedFd<'a> {
        self.directory.fd
    }

    /// As [`Entry::stat`](crate::Entry::stat). Where the record has no type, the tree relies on the answer, as on that of
    /// [`file_type`](Self::file_type).
    #[doc(alias("metadata", "fstatat"))]
    pub fn stat(&self) -> Result<Stat, Error> {
        self.learn(self.directory.stat(self.name_cstr()), |stat| FileType::from_raw_mode(stat.st_mode))
    }

    /// As [`Entry::statx`](crate::Entry::statx).
    pub fn statx(&self, mask: StatxFlags) -> Result<Statx, Error> {
        self.directory.statx(self.name_cstr(), mask)
    }

    /// As [`Entry::read_link`](crate::Entry::read_link).
    #[doc(alias("readlink", "readlinkat"))]
    pub fn read_link(&self) -> Result<PathBuf, Error> {
        self.directory.read_link(self.name_cstr())
    }

    /// As [`Entry::open`](crate::Entry::open).
    #[doc(alias = "openat")]
    pub fn open(&self, flags: OFlags) -> Result<OwnedFd, Error> {
        self.directory.open(self.name_cstr(), flags)
    }

    /// As [`Entry::error`](crate::Entry::error).
    #[cold]
    pub fn error(&self, cause: impl Into<io::Error>) -> Error {
        self.directory.error_of(self.name_cstr(), cause)
    }

    /// What the caller was answered says whether there is anything below an entry of unknown type.
    #[inline]
    fn learn<T>(&self, answer: Result<T, Error>, file_type: impl FnOnce(&T) -> FileType) -> Result<T, Error> {
        if let Then::Below(unknown @ (Kind::UNKNOWN | Kind::ANY)) = self.then.get() {
            let kind = answer.as_ref().ok().and_then(|answer| Kind::of(file_type(answer)));
            let kind = kind.map(|kind| if unknown == Kind::ANY { kind.said(Kind::ANY) } else { kind });
            self.then.set(kind.filter(|kind| kind.is_entered()).map_or(Then::Next, Then::Below));
        }
        answer
    }

    /// As [`Entry::ino`](crate::Entry::ino).
    #[doc(alias("d_ino", "inode_number"))]
    #[inline]
    pub fn ino(&self) -> u64 {
        self.entry.ino()
    }

    /// Nothing below it comes. An entry of unknown type is then not opened to find out whether it is a directory. For an entry that
    /// has nothing below it, this only takes back [`skip_rest`](Self::skip_rest).
    #[doc(alias("prune", "filter_entry"))]
    #[inline]
    pub fn skip_below(&self) {
        self.then.set(Then::Next);
    }

    /// Leaves its directory: nothing below it comes, and no entry of its directory after it.
    ///
    /// An error of reading that directory still comes.
    #[doc(alias = "skip_current_dir")]
    #[inline]
    pub fn skip_rest(&self) {
        self.then.set(Then::Leave);
    }

    /// What is below it comes even if it is a symbolic link. A link to a file, or to nothing, is no error. For an entry that is no
    /// link, this only takes back [`skip_below`](Self::skip_below) and [`skip_rest`](Self::skip_rest).
    /// [`file_type`](Self::file_type) and [`stat`](Self::stat) still answer for the link itself.
    ///
    /// **Below this link, the tree no longer promises to stay inside its root**, and links multiply:
    /// [`Dir::follow_entry`](crate::Dir::follow_entry) says what is a loop, what it costs, and how to limit it.
    ///
    /// ```
    /// let mut tree = lendir::read_tree("/sys/class/net")?;
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
        let kind = Kind::of(self.d_type()).filter(|_| self.may_enter);
        self.then.set(kind.map_or(Then::Next, |kind| Then::Below(kind.said(Kind::ANY))));
    }
}

impl fmt::Debug for TreeEntry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TreeEntry")
            .field("path", &self.path())
            .field("d_type", &self.d_type())
            .field("ino", &self.ino())
            .finish_non_exhaustive()
    }
}
