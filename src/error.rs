//! `Error`: the error that the kernel returned, and the path that the error is about.

use crate::allocate::try_box;
use rustix::io::Errno;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::{fmt, io};

/// An error, and the path that it is about.
///
/// ```
/// let error = lendir::walk_dirs("/no/such/directory").unwrap_err();
/// assert_eq!(error.path(), Some("/no/such/directory".as_ref()));
/// assert!(error.is_root() && !error.is_gone()); // a mistyped path must not pass in silence
/// assert_eq!(error.raw_os_error(), Some(2));
/// assert_eq!(error.to_string(), "/no/such/directory: No such file or directory (os error 2)");
/// ```
///
/// `{}` and `{:?}` both print `path: cause`, or the cause alone if there is no path; for a loop of
/// symbolic links, `path: leads back to ancestor`. Because the text has the cause already,
/// [`source`](std::error::Error::source) returns `None`. Otherwise a program that prints a chain of
/// errors would print the cause twice.
///
/// The text is safe to print to a terminal. An attacker who chooses a name cannot move the cursor,
/// because paths are escaped like by `{:?}`: control characters, `"`, `\`, and bytes that are not
/// UTF-8. Nothing escapes the text of a cause that you pass to [`new`](Self::new). Keep names out
/// of it.
///
/// # As an `io::Error`
///
/// `?` makes an [`io::Error`] of it with the same text and [`kind`](io::Error::kind), but without
/// [`raw_os_error`](io::Error::raw_os_error). Call [`is_gone`](Self::is_gone) before, or
/// [`into_io_error`](Self::into_io_error) to keep the number and drop the path.
///
/// Write `fn main() -> Result<(), lendir::Error>`. From a `main` that returns an [`io::Result`],
/// Rust prints `Custom { kind: NotFound, error: … }`.
#[doc(alias = "escape")]
pub struct Error {
    cause: io::Error,
    is_root: bool,
    /// `None` if neither the path nor the depth is known.
    known: Option<Box<[Known; 1]>>,
}

/// The facts about an error that are known if its path or its depth is.
struct Known {
    path: PathBuf,
    depth: usize,
    /// The directory that a loop of links leads back to.
    loop_ancestor: Option<PathBuf>,
}

impl Error {
    /// Makes an error with the path that a call of your own was about.
    ///
    /// ```
    /// use lendir::Error;
    ///
    /// fn read_config(path: &str) -> Result<String, Error> {
    ///     std::fs::read_to_string(path).map_err(|error| Error::new(path, error))
    /// }
    ///
    /// let error = read_config("/no/such/file").unwrap_err();
    /// assert_eq!(error.to_string(), "/no/such/file: No such file or directory (os error 2)");
    /// ```
    ///
    /// `cause` is anything that converts into a [`std::io::Error`], such as an `Errno` of `rustix`;
    /// an error of this crate keeps the path that it has. An empty `path` means that the path is
    /// not known. The [`depth`](Self::depth) is 0.
    ///
    /// [`Entry::wrap_error`](crate::Entry::wrap_error), [`Dir::wrap_error`](crate::Dir::wrap_error)
    /// and [`ReadDir::wrap_error`](crate::ReadDir::wrap_error) fill in the path and the depth.
    #[cold]
    #[must_use = "this makes an error, and reports nothing"]
    pub fn new(path: impl Into<PathBuf>, cause: impl Into<io::Error>) -> Self {
        Self::at_depth(path, 0, cause)
    }

    /// Returns an error with this path and depth, unless `cause` is an error of this crate that has
    /// them.
    #[cold]
    pub(crate) fn at_depth(
        path: impl Into<PathBuf>,
        depth: usize,
        cause: impl Into<io::Error>,
    ) -> Self {
        let path = path.into();
        let mut error = cause.into().downcast().unwrap_or_else(|cause| Self {
            cause,
            is_root: false,
            known: None,
        });
        // An error of this crate may already have a path.
        if error.path().is_none() && (depth > 0 || !path.as_os_str().is_empty()) {
            // Without memory, an error without its path is better than an abort.
            error.known = try_box(Known { path, depth, loop_ancestor: None }).ok();
        }
        error
    }

    /// Returns an error of opening or reading the directory that the caller has passed.
    #[cold]
    pub(crate) fn of_root(path: impl Into<PathBuf>, cause: impl Into<io::Error>) -> Self {
        Self { is_root: true, ..Self::at_depth(path, 0, cause) }
    }

    /// Notes that a link leads back to this [ancestor](Self::loop_ancestor).
    pub(crate) fn with_loop_ancestor(mut self, ancestor: &Path) -> Self {
        if let Some([known]) = self.known.as_deref_mut() {
            let copy = try_join(ancestor.as_os_str().as_bytes(), b"");
            known.loop_ancestor = Some(copy).filter(|copy| copy == ancestor); // unless refused
        }
        self
    }

    /// Returns the path that the failed call was about, or `None` if you passed the directory as a
    /// descriptor, or if memory for it was refused.
    pub fn path(&self) -> Option<&Path> {
        let path = &self.known()?.path;
        (!path.as_os_str().is_empty()).then_some(path)
    }

    /// Tells whether the error is about a directory that you named yourself: a root of a walk, or
    /// the directory of a reader, that could not be opened or read.
    ///
    /// Many programs then exit with another status, like `ls` with 2 instead of 1, because nothing
    /// of that tree was seen, or not all. The error of your own call is never one of these, even at
    /// the root.
    pub fn is_root(&self) -> bool {
        self.is_root
    }

    /// Returns the depth of the [`path`](Self::path) below the root. The root of a walk and the
    /// directory of a [`ReadDir`](crate::ReadDir) have depth 0, and their entries have depth 1.
    pub fn depth(&self) -> usize {
        self.known().map_or(0, |known| known.depth)
    }

    /// Borrows the cause.
    pub fn io_error(&self) -> &io::Error {
        &self.cause
    }

    /// Returns the kind of the cause, like [`io::Error::kind`].
    pub fn kind(&self) -> io::ErrorKind {
        self.cause.kind()
    }

    /// Returns the `errno` of the cause, or `None` if the cause that you passed has no number.
    pub fn raw_os_error(&self) -> Option<i32> {
        self.cause.raw_os_error()
    }

    /// Tells whether the entry no longer exists, which most programs ignore:
    ///
    /// ```
    /// let mut processes = lendir::read_dir("/proc")?;
    /// while let Some(process) = processes.find(|entry| entry.numeric_name().is_some())? {
    ///     match process.metadata() {
    ///         Ok(metadata) => println!("{} {:?}", metadata.uid(), process.file_name()),
    ///         Err(error) if error.is_gone() => {} // the process has ended since it was listed
    ///         Err(error) => eprintln!("{error}"),
    ///     }
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// **It is `false` for every error that [`is_root`](Self::is_root)**, because a path that you
    /// named yourself may be mistyped. A program that reads `/proc/PID` by its path compares
    /// [`raw_os_error`](Self::raw_os_error) there.
    ///
    /// Do report it in a walk that must be complete: if another process moves a directory away, the
    /// walk may [lose](crate::WalkOptions::max_open) it with `ENOENT`, and entries are missing.
    ///
    /// These causes count:
    ///
    /// - `ENOENT`: no entry has the name any more.
    /// - `ESRCH`: the process of a directory in `/proc` has ended.
    /// - `ENODEV`: the device or cgroup of an open file in sysfs or cgroup2 was removed.
    /// - [`NotFound`](io::ErrorKind::NotFound) of a cause without a number.
    ///
    /// Causes that can also mean something else do not count. After `ENOTDIR`, `ELOOP` or `ESTALE`,
    /// another file may have the name. `EACCES` and `EINVAL` can come from a process that has ended
    /// but was not reaped.
    ///
    /// In calls of your own, even these numbers can mean something that still exists, like `ENOENT`
    /// in a call that follows a link to nothing.
    pub fn is_gone(&self) -> bool {
        match Errno::from_io_error(&self.cause) {
            _ if self.is_root => false,
            Some(errno) => matches!(errno, Errno::NOENT | Errno::SRCH | Errno::NODEV),
            None => self.kind() == io::ErrorKind::NotFound,
        }
    }

    /// Returns the directory that a symbolic link points back to, or `None` if the error is not
    /// such a loop. Only a walk that follows links has them, with the cause `ELOOP`.
    pub fn loop_ancestor(&self) -> Option<&Path> {
        self.known()?.loop_ancestor.as_deref()
    }

    fn known(&self) -> Option<&Known> {
        self.known.as_deref().map(|[known]| known)
    }

    /// Gives up the path and returns the cause.
    pub fn into_io_error(self) -> io::Error {
        self.cause
    }
}

/// Returns the path of `name` in `directory`, or an empty path if memory is refused: an attacker
/// decides how deep a tree is, and thus how long its paths are.
pub(crate) fn try_join(directory: &[u8], name: &[u8]) -> PathBuf {
    let mut path = Vec::new();
    let reserved = path.try_reserve_exact(directory.len() + 1 + name.len());
    if reserved.is_ok() {
        join_into(&mut path, directory, name);
    }
    OsString::from_vec(path).into()
}

/// Appends `name` to `directory` as text, even if it begins with a slash.
pub(crate) fn join_into(path: &mut Vec<u8>, directory: &[u8], name: &[u8]) {
    path.extend_from_slice(directory);
    if !name.is_empty() && directory.last().is_some_and(|last| *last != b'/') {
        path.push(b'/');
    }
    path.extend_from_slice(name);
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = self.path() {
            write!(f, "{}: ", escape(path))?;
        }
        match self.loop_ancestor() {
            Some(ancestor) => write!(f, "leads back to {}", escape(ancestor)),
            None => self.cause.fmt(f),
        }
    }
}

/// Returns the path as `{:?}` prints it, without the quotes. The empty path of a loop's ancestor is
/// that of a root that was passed as a descriptor.
#[allow(clippy::unnecessary_debug_formatting, reason = "it escapes")]
fn escape(path: &Path) -> String {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let quoted = format!("{path:?}");
    quoted[1..quoted.len() - 1].to_owned()
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
    fn error_keeps_path_and_depth() {
        let error = Error::at_depth("a/link", 2, Errno::LOOP);
        assert_eq!(error.path(), Some(Path::new("a/link")));
        assert_eq!(error.depth(), 2);
        assert_eq!(error.loop_ancestor(), None);
        let wrapped = Error::at_depth("b", 1, error);
        assert_eq!(wrapped.path(), Some(Path::new("a/link")));
        assert_eq!(wrapped.depth(), 2);

        let unknown = Error::new("", Errno::BADF);
        assert_eq!(unknown.path(), None);
        assert_eq!(unknown.depth(), 0);
        assert_eq!(unknown.to_string(), unknown.io_error().to_string());
        let cause = io::Error::from(Errno::BADF);
        assert_eq!(Error::new("b", unknown).to_string(), format!("b: {cause}"));
        assert_eq!(Error::at_depth("", 1, Errno::BADF).depth(), 1);
    }

    #[test]
    fn debug_shows_text() {
        let error = Error::at_depth("a\n", 1, Errno::NOENT);
        let text = error.to_string();
        assert_eq!(format!("{error:?}"), text);
        let io_error = io::Error::from(error);
        assert_eq!(format!("{io_error:?}"), format!("Custom {{ kind: NotFound, error: {text} }}"));
    }

    #[test]
    fn loop_shows_its_ancestor() {
        for (path, ancestor, text) in [
            ("a/link", "a", "a/link: leads back to a"),
            ("link", "", "link: leads back to ."),
            ("\n/link", "\n", r"\n/link: leads back to \n"),
        ] {
            let error = Error::at_depth(path, 2, Errno::LOOP);
            let error = error.with_loop_ancestor(Path::new(ancestor));
            assert_eq!(error.loop_ancestor(), Some(Path::new(ancestor)));
            assert_eq!(error.to_string(), text);
        }
    }

    #[test]
    fn only_an_error_of_a_root_is_one() {
        let root = Error::of_root("root", Errno::NOENT);
        assert!(root.is_root() && Error::at_depth("root/a", 1, root).is_root());
        assert!(!Error::new("root", Errno::NOENT).is_root());
    }

    /// So the usual filter does not hide a root that was mistyped.
    #[test]
    fn a_root_is_never_gone() {
        for errno in [Errno::NOENT, Errno::SRCH, Errno::NODEV] {
            let root = Error::of_root("mistyped", errno);
            assert!(!root.is_gone() && !Error::at_depth("a", 1, root).is_gone(), "{errno}");
        }
    }

    #[test]
    fn is_gone_counts_three_numbers_and_one_kind() {
        for errno in [Errno::NOENT, Errno::SRCH, Errno::NODEV] {
            assert!(Error::new("a", errno).is_gone(), "{errno}");
        }
        for errno in
            [Errno::NOTDIR, Errno::LOOP, Errno::STALE, Errno::ACCESS, Errno::INVAL, Errno::NXIO]
        {
            assert!(!Error::new("a", errno).is_gone(), "{errno}");
        }
        assert!(Error::new("a", io::ErrorKind::NotFound).is_gone());
        assert!(!Error::new("a", io::ErrorKind::OutOfMemory).is_gone());
    }
}
