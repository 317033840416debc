//! `open` and `openat`: the functions with which users open directories, and [`open_again`]. They do
//! not know how a directory is read.

use crate::error::Error;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, SeekFrom, fcntl_getfl, seek};
use rustix::io::{Errno, retry_on_intr};
use rustix::path::Arg;
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The flags with which a directory is opened for reading.
pub(crate) const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens the directory `path` for reading and returns the descriptor.
///
/// ```
/// use lendir::{Buffer, Entries};
///
/// let dir = lendir::open("/proc/self/fd")?;
/// let mut buffer = Buffer::new();
/// println!("{} descriptors are open", Entries::new(&dir, &mut buffer).count()?);
/// # Ok::<(), lendir::Error>(())
/// ```
///
/// The flags are `O_RDONLY | O_DIRECTORY | O_CLOEXEC`. If you need other flags, call
/// `rustix::fs::open`.
///
/// # Errors
///
/// Returns an error if [open(2)] fails, with `path`. `EINTR` is retried.
///
/// - `ENOENT`: `path` does not exist.
/// - `ENOTDIR`: `path` is not a directory.
/// - `EACCES`: the caller has no permission to read the directory, or to search a directory on the
///   way.
/// - `ELOOP`: there are too many symbolic links on the way.
/// - `EMFILE` or `ENFILE`: the process or the system has no descriptor left.
/// - `EINVAL`: `path` has a NUL inside.
///
/// [open(2)]: https://man7.org/linux/man-pages/man2/open.2.html
#[doc(alias = "opendir")]
pub fn open(path: impl AsRef<Path>) -> Result<OwnedFd, Error> {
    let path = path.as_ref();
    let opened = path.into_with_c_str(|path| Ok(open_c_str(CWD, path)));
    opened.unwrap_or_else(|errno| Err(Error::new(path, errno))) // a NUL inside
}

/// Opens the directory `path`, which is relative to the directory `dirfd`, and returns the
/// descriptor.
///
/// Pass the name of an [`Entry`](crate::Entry) to open a subdirectory. The kernel then looks up one
/// component instead of a whole path, and finds the directory even if the parent was renamed:
///
/// ```
/// use lendir::{Buffer, Entries, FileType};
///
/// let dir = lendir::open("/sys/class")?;
/// let mut buffer = Buffer::new();
/// let mut entries = Entries::new(&dir, &mut buffer);
/// while let Some(entry) = entries.next()? {
///     if entry.file_type()? == FileType::Directory {
///         let child = lendir::openat(&dir, entry.name_cstr())?;
///     }
/// }
/// # Ok::<(), lendir::Error>(())
/// ```
///
/// A symbolic link is followed. If another process can replace the directory by a link, call
/// [`Entry::open`](crate::Entry::open)`(OFlags::DIRECTORY)` instead, which refuses links. If you
/// need other flags, call `rustix::fs::openat`.
///
/// # Errors
///
/// Same as [`open`], and in addition:
///
/// - `EBADF`: `dirfd` is not an open descriptor.
/// - `ENOTDIR`: `dirfd` is not a directory.
/// - `ESRCH`: `dirfd` is the directory of a process that has ended.
///
/// If the path has a NUL inside, bytes that are not UTF-8 are replaced by U+FFFD in the path of the
/// error.
///
/// # Performance
///
/// A `&CStr`, such as [`Entry::name_cstr`](crate::Entry::name_cstr), is not copied. Any other path
/// takes an allocation.
#[inline]
#[allow(clippy::needless_pass_by_value, reason = "as rustix takes it")]
pub fn openat(dirfd: impl AsFd, path: impl Arg) -> Result<OwnedFd, Error> {
    match path.as_cow_c_str() {
        Ok(path) => open_c_str(dirfd.as_fd(), &path),
        Err(errno) => Err(Error::new(&*path.to_string_lossy(), errno)), // a NUL inside
    }
}

#[inline]
fn open_c_str(dirfd: BorrowedFd<'_>, path: &CStr) -> Result<OwnedFd, Error> {
    let opened = retry_on_intr(|| rustix::fs::openat(dirfd, path, DIRECTORY, Mode::empty()));
    opened.map_err(|errno| Error::new(OsStr::from_bytes(path.to_bytes()), errno))
}

/// Opens the directory `dir` anew, to read it from its beginning. Some servers ignore `lseek`, and
/// duplicates of `dir` share its position. If opening is refused, rewinds `dir` and returns `None`.
#[cold]
pub(crate) fn open_again(dir: BorrowedFd<'_>) -> Result<Option<OwnedFd>, Errno> {
    let no_atime = fcntl_getfl(dir).unwrap_or(OFlags::empty()) & OFlags::NOATIME;
    let open = || rustix::fs::openat(dir, c".", DIRECTORY | no_atime, Mode::empty());
    retry_on_intr(open)
        .map(Some)
        .or_else(|_| retry_on_intr(|| seek(dir, SeekFrom::Start(0))).map(|_| None))
}
