//! `Error`: what the kernel answered, and the path that it belongs to.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{fmt, io};

/// What the kernel answered, and the path that it belongs to.
///
/// It displays as `path: cause`, or as the cause alone if the path is empty. The cause is part of that text, so
/// [`source`](std::error::Error::source) is `None`, and a chain of errors prints it once.
///
/// `?` turns it into an [`io::Error`] of the same [kind](io::Error::kind) that displays the same. Such an error has no
/// [`raw_os_error`](io::Error::raw_os_error) any more: ask for [that of this one](Self::raw_os_error) before, or take the cause
/// by [`into_io_error`](Self::into_io_error).
///
/// ```
/// let error = lendir::Walk::open("/no/such/directory").unwrap_err();
/// assert_eq!(error.path(), std::path::Path::new("/no/such/directory"));
/// assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
/// assert_eq!(error.raw_os_error(), Some(2));
/// assert_eq!(error.to_string(), "/no/such/directory: No such file or directory (os error 2)");
/// ```
///
/// Costs: two allocations for each error, and two more for `?` into an [`io::Error`]; none where there is no error.
pub struct Error(Box<Inner>);

struct Inner {
    path: PathBuf,
    depth: usize,
    cause: io::Error,
    loop_ancestor: Option<PathBuf>,
}

impl Error {
    #[cold]
    #[inline(never)]
    pub(crate) fn new(path: &[u8], depth: usize, cause: impl Into<io::Error>) -> Self {
        Self::at(OsStr::from_bytes(path).into(), depth, cause)
    }

    pub(crate) fn at(path: PathBuf, depth: usize, cause: impl Into<io::Error>) -> Self {
        Self(Box::new(Inner { path, depth, cause: cause.into(), loop_ancestor: None }))
    }

    pub(crate) fn with_loop_ancestor(mut self, ancestor: PathBuf) -> Self {
        self.0.loop_ancestor = Some(ancestor);
        self
    }

    /// The directory or entry that the call was about. It is empty for a descriptor whose path is not known.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// How many levels the [path](Self::path) is below the root of the walk, whose depth is 0. Without a walk it is 0.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.0.depth
    }

    /// The cause, as the kernel gave it.
    #[must_use]
    pub fn io_error(&self) -> &io::Error {
        &self.0.cause
    }

    /// The kind of the cause: [`io::Error::kind`].
    #[must_use]
    pub fn kind(&self) -> io::ErrorKind {
        self.0.cause.kind()
    }

    /// The `errno` of the cause: [`io::Error::raw_os_error`]. `None` for
    /// [`OutOfMemory`](io::ErrorKind::OutOfMemory), which is not the kernel's.
    #[must_use]
    pub fn raw_os_error(&self) -> Option<i32> {
        self.0.cause.raw_os_error()
    }

    /// The directory above that the link leads back to: for a loop in a walk that follows links (`ELOOP`).
    #[must_use]
    pub fn loop_ancestor(&self) -> Option<&Path> {
        self.0.loop_ancestor.as_deref()
    }

    /// The cause alone, without the path.
    #[must_use]
    pub fn into_io_error(self) -> io::Error {
        self.0.cause
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { path, depth, cause, loop_ancestor } = &*self.0;
        let mut f = f.debug_struct("Error");
        f.field("path", path).field("depth", depth).field("io_error", cause);
        if let Some(ancestor) = loop_ancestor {
            f.field("loop_ancestor", ancestor);
        }
        f.finish()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { path, cause, .. } = &*self.0;
        if path.as_os_str().is_empty() { write!(f, "{cause}") } else { write!(f, "{}: {cause}", path.display()) }
    }
}

impl std::error::Error for Error {}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        Self::new(error.kind(), error)
    }
}
