//! `Error`: what the kernel answered, and the path that it belongs to.

use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{fmt, io};

/// What the kernel answered, and the path that it belongs to.
///
/// It displays as `path: cause`, as the cause alone if the path is empty, and a loop as `path: leads back to ancestor`.
/// Control characters in a path, which a terminal would obey, display as `?`. The text has the path already. The cause is
/// part of that text, so [`source`](std::error::Error::source) is `None`, and a chain of errors prints it once.
///
/// `{:?}` is the same text, because a `main` that returns an error prints it so; `{:#?}` shows the fields.
///
/// **`?` into an [`io::Error`] keeps path and [kind](io::Error::kind), and loses the
/// [`raw_os_error`](io::Error::raw_os_error)**: ask [`is_gone`](Self::is_gone) before.
/// [`into_io_error`](Self::into_io_error) keeps the number and has no path.
///
/// ```
/// let error = lendir::walk_dirs("/no/such/directory").unwrap_err();
/// assert_eq!(error.path(), std::path::Path::new("/no/such/directory"));
/// assert!(error.is_gone());
/// assert_eq!(error.raw_os_error(), Some(2));
/// assert_eq!(error.to_string(), "/no/such/directory: No such file or directory (os error 2)");
/// ```
///
/// Costs: two allocations for each error whose path is known, and two more for `?` into an [`io::Error`]; none where there is
/// no error.
pub struct Error {
    io_error: io::Error,
    /// `None` where nothing is known.
    known: Option<Box<Known>>,
}

struct Known {
    path: PathBuf,
    depth: usize,
    loop_ancestor: Option<LoopAncestor>,
}

/// The path of the ancestor begins that of the error. It is only looked for there when it is asked for.
#[derive(Clone, Copy)]
struct LoopAncestor {
    depth: usize,
    /// How long the path of the root is.
    root: usize,
}

impl Error {
    #[cold]
    pub(crate) fn new(path: &[u8], depth: usize, cause: impl Into<io::Error>) -> Self {
        Self::at(OsStr::from_bytes(path).into(), depth, cause)
    }

    #[cold]
    pub(crate) fn at(path: PathBuf, depth: usize, cause: impl Into<io::Error>) -> Self {
        let is_known = depth > 0 || !path.as_os_str().is_empty();
        let known = is_known.then(|| Box::new(Known { path, depth, loop_ancestor: None }));
        let error =
            cause.into().downcast().unwrap_or_else(|io_error| Self { io_error, known: None });
        // One of this crate may have its path already.
        Self { known: error.known.or(known), ..error }
    }

    /// Notes that a link leads back to the [ancestor](Self::loop_ancestor) of this depth. The path of the root is `root` bytes long.
    pub(crate) fn with_loop_ancestor(mut self, depth: usize, root: usize) -> Self {
        if let Some(known) = &mut self.known {
            known.loop_ancestor = Some(LoopAncestor { depth, root });
        }
        self
    }

    /// The directory or entry that the call was about. It is empty for a descriptor whose path is not known.
    pub fn path(&self) -> &Path {
        self.known.as_deref().map_or(Path::new(""), |known| &known.path)
    }

    /// How many levels the [path](Self::path) is below what was opened: 0 for the root of a walk, or for the directory of a
    /// [`ReadDir`](crate::ReadDir), and 1 for its entries.
    pub fn depth(&self) -> usize {
        self.known.as_deref().map_or(0, |known| known.depth)
    }

    /// The cause.
    pub fn io_error(&self) -> &io::Error {
        &self.io_error
    }

    /// The kind of the cause: [`io::Error::kind`].
    pub fn kind(&self) -> io::ErrorKind {
        self.io_error.kind()
    }

    /// The `errno` of the cause. `None` if that is not the kernel's: [`OutOfMemory`](io::ErrorKind::OutOfMemory), or one of
    /// yours.
    pub fn raw_os_error(&self) -> Option<i32> {
        self.io_error.raw_os_error()
    }

    /// Whether what was listed is not there any more: `ENOENT`, or `ESRCH`, which /proc answers in the directory of a process that
    /// has ended. As a rule, that is nothing to report, and no reason to end a loop:
    ///
    /// ```
    /// let mut tasks = lendir::read_dir("/proc")?;
    /// while let Some(process) = tasks.find(|entry| entry.numeric_name().is_some())? {
    ///     match process.stat() {
    ///         Ok(stat) => println!("{} {:?}", stat.st_uid, process.name_os()),
    ///         Err(error) if error.is_gone() => {} // it has ended since it was listed
    ///         Err(error) => eprintln!("{error}"),
    ///     }
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// **Report it in a walk that must be whole**: a level that others moved away is [lost](crate::WalkDirsOptions::max_open) with
    /// `ENOENT`, and with it what was left there. For a call that follows links, `ENOENT` can mean that a link leads to nothing.
    ///
    /// No other number says that something is gone: for `ENOTDIR` and `ELOOP` something else has the name now; for `ESTALE` the
    /// server has forgotten it, which looking it up again may mend; and what a process answers that has ended and waits for its
    /// parent, `EACCES` or `EINVAL`, others answer too.
    pub fn is_gone(&self) -> bool {
        matches!(Errno::from_io_error(&self.io_error), Some(Errno::NOENT | Errno::SRCH))
    }

    /// The directory above that the link leads back to: for a loop in a walk that follows links (`ELOOP`).
    pub fn loop_ancestor(&self) -> Option<&Path> {
        let Known { path, loop_ancestor, .. } = self.known.as_deref()?;
        let (path, LoopAncestor { depth, root }) = (path.as_os_str().as_bytes(), (*loop_ancestor)?);
        let mut slashes = (root + 1..path.len()).filter(|at| path[*at] == b'/');
        let end =
            depth.checked_sub(1).map_or(root, |names| slashes.nth(names).unwrap_or(path.len()));
        Some(Path::new(OsStr::from_bytes(&path[..end])))
    }

    /// The cause alone, without the path.
    pub fn into_io_error(self) -> io::Error {
        self.io_error
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !f.alternate() {
            return fmt::Display::fmt(self, f);
        }
        let mut f = f.debug_struct("Error");
        f.field("path", &self.path())
            .field("depth", &self.depth())
            .field("io_error", &self.io_error);
        f.field("loop_ancestor", &self.loop_ancestor()).finish_non_exhaustive()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path().as_os_str().is_empty() {
            write!(f, "{}: ", shown(self.path()))?;
        }
        match self.loop_ancestor() {
            Some(ancestor) => write!(f, "leads back to {}", shown(ancestor)),
            None => self.io_error.fmt(f),
        }
    }
}

/// For a terminal, which would obey control characters. The empty path is that of a root without one.
fn shown(path: &Path) -> String {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    path.to_string_lossy().replace(char::is_control, "?")
}

impl std::error::Error for Error {}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        Self::new(error.kind(), error)
    }
}

#[cfg(test)]
mod tests {
    use super::Error;
    use rustix::io::Errno;
    use std::io;
    use std::path::Path;

    #[test]
    fn an_error_has_what_is_known() {
        let error = Error::new(b"a/link", 2, Errno::LOOP);
        assert_eq!(
            (error.path(), error.depth(), error.loop_ancestor()),
            (Path::new("a/link"), 2, None)
        );
        let error = error.with_loop_ancestor(1, 0);
        assert_eq!(error.loop_ancestor(), Some(Path::new("a")));
        assert_eq!(error.to_string(), "a/link: leads back to a");
        let of_root = Error::new(b"link", 1, Errno::LOOP).with_loop_ancestor(0, 0);
        assert_eq!(of_root.to_string(), "link: leads back to .");
        for (root, ancestors) in [
            ("/", ["/", "/a", "/a/bc"]),
            ("", ["", "a", "a/bc"]),
            ("r/s", ["r/s", "r/s/a", "r/s/a/bc"]),
            ("r/", ["r/", "r/a", "r/a/bc"]),
        ] {
            for (depth, ancestor) in ancestors.iter().enumerate() {
                let path = format!("{}/l", ancestors[2]);
                let error = Error::new(path.as_bytes(), 3, Errno::LOOP)
                    .with_loop_ancestor(depth, root.len());
                assert_eq!(error.loop_ancestor(), Some(Path::new(ancestor)), "{path}");
            }
        }
        assert!(
            Error::new(b"a\x1b[31m\n\xff", 1, Errno::LOOP)
                .to_string()
                .starts_with("a?[31m?\u{fffd}: ")
        );

        let known = Error::at("b".into(), 1, error);
        assert_eq!(
            (known.path(), known.depth()),
            (Path::new("a/link"), 2),
            "the path that it has stays"
        );

        let unknown = Error::new(b"", 0, Errno::BADF);
        assert_eq!(
            (unknown.path(), unknown.depth(), unknown.loop_ancestor()),
            (Path::new(""), 0, None)
        );
        assert_eq!(unknown.to_string(), unknown.io_error().to_string());
        assert_eq!(
            Error::at("b".into(), 1, unknown).to_string(),
            format!("b: {}", io::Error::from(Errno::BADF))
        );
        assert_eq!(Error::new(b"", 1, Errno::BADF).depth(), 1);

        let error = Error::new(b"a\n", 1, Errno::NOENT);
        assert_eq!(format!("{error:?}"), error.to_string());
        let fields = ["path: \"a\\n\"", "depth: 1", "code: 2", "loop_ancestor: None"];
        assert!(fields.iter().all(|field| format!("{error:#?}").contains(field)), "{error:#?}");
    }

    #[test]
    fn gone_is_what_is_not_there() {
        for errno in [Errno::NOENT, Errno::SRCH] {
            assert!(Error::new(b"a", 1, errno).is_gone());
        }
        let others =
            [Errno::NOTDIR, Errno::LOOP, Errno::STALE, Errno::ACCESS, Errno::INVAL, Errno::NXIO];
        let others =
            others.map(io::Error::from).into_iter().chain([io::ErrorKind::OutOfMemory.into()]);
        others.for_each(|cause| assert!(!Error::new(b"a", 1, cause).is_gone()));
    }
}
