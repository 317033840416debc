//! `OwnedEntry`, `OwnedEntries`: what ordinary iteration yields. They do not know which reader the
//! entries come from, except a [`ReadDir`].

use super::ReadDir;
use super::entry::{Entry, Record};
use crate::error::Error;
use crate::file_type::FileType;
use crate::metadata::Metadata;
use rustix::io::Errno;
use std::ffi::OsStr;
use std::iter::FusedIterator;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// An entry that you can keep, or send to another thread: a path, and what was known about it.
///
/// Iteration over a [`Walk`](crate::Walk) or a [`ReadDir`] by `for` yields it.
///
/// ```
/// for entry in lendir::walk("src")? {
///     let entry = entry?;
///     if entry.file_type()?.is_dir() {
///         println!("{:?} has depth {}", entry.path(), entry.depth());
///     }
/// }
/// # Ok::<(), lendir::Error>(())
/// ```
///
/// Its path may resolve to another file by the time you use it. To query, open or remove an entry
/// safely, use the [`Entry`] that `next` lends.
#[derive(Clone)]
pub struct OwnedEntry {
    path: PathBuf,
    name_start: usize,
    file_type: Result<FileType, Errno>,
    depth: usize,
    metadata: Option<Metadata>,
}

impl OwnedEntry {
    /// Copies an entry of this path and depth. Asks for its type if the listing does not tell it.
    pub(crate) fn new(entry: &Entry<'_>, path: PathBuf, depth: usize) -> Self {
        let bytes = path.as_os_str().as_bytes();
        // The name of a root by descriptor is not in its path.
        let name_start = bytes.strip_suffix(entry.name()).map_or(0, <[u8]>::len);
        let file_type = entry
            .file_type()
            .map_err(|error| Errno::from_io_error(error.io_error()).unwrap_or(Errno::IO));
        let metadata = match entry.record {
            Record::Kept { metadata, .. } => metadata.cloned(),
            Record::Raw(_) => None,
        };
        Self { path, name_start, file_type, depth, metadata }
    }

    /// Returns the path, which begins with the root's as you wrote it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the path out of the entry.
    pub fn into_path(self) -> PathBuf {
        self.path
    }

    /// Returns the name: the last component of the path.
    pub fn file_name(&self) -> &OsStr {
        OsStr::from_bytes(&self.path.as_os_str().as_bytes()[self.name_start..])
    }

    /// Tells the type of the entry itself, like [`Entry::file_type`], when it was listed.
    ///
    /// # Errors
    ///
    /// The same as for [`Entry::file_type`].
    pub fn file_type(&self) -> Result<FileType, Error> {
        self.file_type.map_err(|errno| Error::at_depth(&self.path, self.depth, errno))
    }

    /// Returns the depth below the root: 1 for an entry of the root, or of a [`ReadDir`], and 0 for
    /// a root that is [yielded](crate::WalkOptions::yield_roots).
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Returns the metadata that the walk has [fetched](crate::WalkOptions::metadata).
    ///
    /// ```
    /// let mut bytes = 0;
    /// for entry in lendir::WalkOptions::new().metadata(true).open("src")? {
    ///     bytes += entry?.metadata()?.len();
    /// }
    /// # assert!(bytes > 0);
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Unsupported`](std::io::ErrorKind::Unsupported): it was not fetched, because you did not
    /// ask for it, the query failed, or something may be [mounted](crate::WalkOptions::metadata) on
    /// the directory.
    pub fn metadata(&self) -> Result<&Metadata, Error> {
        let error = || Error::at_depth(&self.path, self.depth, Metadata::not_fetched());
        self.metadata.as_ref().ok_or_else(error)
    }
}

debug!(OwnedEntry, |entry| path: entry.path, file_type: entry.file_type, depth: entry.depth);

/// An ordinary iterator over the entries of a [`Walk`](crate::Walk) or a [`ReadDir`], as
/// `into_iter` returns it. Errors are items too.
///
/// ```
/// let entries = lendir::read_dir("/etc")?.into_iter();
/// let names: Vec<_> = entries.flatten().map(|entry| entry.file_name().to_owned()).collect();
/// # assert!(!names.is_empty());
/// # Ok::<(), lendir::Error>(())
/// ```
///
/// An entry takes one allocation, where the `next` of the reader itself takes none. The iterator is
/// `Send`, and rayon's `par_bridge` takes it.
#[derive(Debug)]
#[must_use = "iterators are lazy"]
pub struct OwnedEntries<R>(pub(crate) R);

impl Iterator for OwnedEntries<ReadDir> {
    type Item = Result<OwnedEntry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let entry = self.0.next().transpose()?;
        Some(entry.map(|entry| OwnedEntry::new(&entry, entry.path(), 1)))
    }
}

impl FusedIterator for OwnedEntries<ReadDir> {}

/// Yields owned entries: `for entry in lendir::read_dir(path)? { let entry = entry?; … }`.
impl IntoIterator for ReadDir {
    type Item = Result<OwnedEntry, Error>;
    type IntoIter = OwnedEntries<Self>;

    fn into_iter(self) -> OwnedEntries<Self> {
        OwnedEntries(self)
    }
}
