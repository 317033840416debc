//! `open`, `openat`: how users open directories.

use crate::error::Error;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::retry_on_intr;
use rustix::path::Arg;
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

pub(crate) const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens the directory `path` for reading: `openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)`.
///
/// Costs: one system call, and a copy of `path` with its NUL: on the stack if it is under 256 bytes, else in an allocation.
///
/// # Errors
///
/// What [open(2)] can fail with, with `path`: `ENOENT` if it does not exist, `ENOTDIR` if it is not a directory, `EACCES`
/// without permission, `ELOOP` for too many symbolic links, `EMFILE` and `ENFILE` when descriptors run out. `EINVAL` for a
/// path with a NUL inside. `EINTR` is retried.
///
/// [open(2)]: https://man7.org/linux/man-pages/man2/open.2.html
#[doc(alias = "opendir")]
pub fn open(path: impl AsRef<Path>) -> Result<OwnedFd, Error> {
    let path = path.as_ref();
    let opened = path.into_with_c_str(|path| Ok(open_c_str(CWD, path)));
    opened.unwrap_or_else(|errno| Err(Error::new(path, errno))) // a NUL inside
}

/// Opens as [`open`], but looks `path` up from the directory `dirfd`: also `EBADF` or `ENOTDIR`, if that is closed or not a
/// directory, and `ESRCH` if it is that of a process that has ended.
///
/// For a name, the kernel walks one component instead of all those of an absolute path, and still finds the entry of the
/// directory that you meant if that is renamed meanwhile. Names go straight from an [`Entry`](crate::Entry) to here:
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
/// A symbolic link is followed. Where others may put one in place of the directory, call
/// [`Entry::open`](crate::Entry::open)`(OFlags::DIRECTORY)`, which refuses it. For other flags, such as `NOATIME`, call
/// `rustix::fs::openat`.
///
/// Costs: one system call. A `&CStr` is not copied; another path takes an allocation for its NUL. In the error of a path with a
/// NUL inside, bytes that are not UTF-8 are replaced.
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
