//! `WalkError`: an error of a walk, and the path that it belongs to.

use std::error::Error;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{fmt, io};

/// An error of a [`Walk`](crate::Walk), with the path and the depth that it belongs to.
///
/// It is displayed as `path: cause`, and as the cause alone if the path is empty. `?` turns it into an [`io::Error`] of the
/// same [kind](io::Error::kind), which displays the same and has the `WalkError` inside it ([`io::Error::downcast`]).
///
/// ```
/// let error = lendir::Walk::open("/no/such/directory").unwrap_err();
/// assert_eq!(error.path(), std::path::Path::new("/no/such/directory"));
/// assert_eq!(error.io_error().kind(), std::io::ErrorKind::NotFound);
/// assert_eq!(error.to_string(), "/no/such/directory: No such file or directory (os error 2)");
/// ```
///
/// Costs: two allocations for each error, and two more for `?` into an [`io::Error`]; none where there is no error.
pub struct WalkError(Box<Inner>);

struct Inner {
    path: PathBuf,
    depth: usize,
    cause: io::Error,
}

impl WalkError {
    #[cold]
    #[inline(never)]
    pub(crate) fn new(path: &[u8], depth: usize, cause: impl Into<io::Error>) -> Self {
        Self(Box::new(Inner { path: OsStr::from_bytes(path).into(), depth, cause: cause.into() }))
    }

    /// The directory that could not be opened, read or reopened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// How many levels that directory is below the root, which has depth 0.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.0.depth
    }

    /// The error as the kernel gave it.
    #[must_use]
    pub fn io_error(&self) -> &io::Error {
        &self.0.cause
    }
}

impl fmt::Debug for WalkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { path, depth, cause } = &*self.0;
        f.debug_struct("WalkError").field("path", path).field("depth", depth).field("io_error", cause).finish()
    }
}

impl fmt::Display for WalkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { path, cause, .. } = &*self.0;
        if path.as_os_str().is_empty() { write!(f, "{cause}") } else { write!(f, "{}: {cause}", path.display()) }
    }
}

impl Error for WalkError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0.cause)
    }
}

impl From<WalkError> for io::Error {
    fn from(error: WalkError) -> Self {
        Self::new(error.0.cause.kind(), error)
    }
}
