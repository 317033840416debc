//! `open`, `open_with`, `openat`, `openat_with`: how users open directories.

use crate::error::Error;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};
use rustix::path::Arg;

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens the directory `path` for reading: `openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)`.
///
/// Costs: one system call; no allocation for a path under 256 bytes, or for a `&CStr`, which is not even copied.
///
/// # Errors
///
/// Those of [open(2)], with `path`: `ENOENT` if it does not exist, `ENOTDIR` if it is not a directory, `EACCES` without
/// permission, `ELOOP` for too many symbolic links, `EMFILE` and `ENFILE` when descriptors run out. `EINVAL` for a path with a
/// NUL inside; that error has no path. `EINTR` is retried.
///
/// [open(2)]: https://man7.org/linux/man-pages/man2/open.2.html
#[doc(alias = "opendir")]
pub fn open(path: impl Arg) -> Result<OwnedFd, Error> {
    openat(CWD, path)
}

/// Opens as [`open`], with the flags `extra` too: see [`openat_with`].
pub fn open_with(path: impl Arg, extra: OFlags) -> Result<OwnedFd, Error> {
    openat_with(CWD, path, extra)
}

/// Opens as [`open`], but looks `path` up from the directory `dirfd`: also `EBADF` or `ENOTDIR`, if that is closed or not a
/// directory.
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
///     if entry.file_type() == FileType::Directory {
///         let child = lendir::openat(&dir, entry.name_cstr())?;
///     }
/// }
/// # Ok::<(), lendir::Error>(())
/// ```
pub fn openat(dirfd: impl AsFd, path: impl Arg) -> Result<OwnedFd, Error> {
    openat_with(dirfd, path, OFlags::empty())
}

/// Opens as [`openat`], with the flags `extra` too.
///
/// [`OFlags::NOFOLLOW`] refuses a symbolic link in the last component, with `ENOTDIR`, or `ELOOP` on old kernels.
/// [`OFlags::NOATIME`] leaves the access time alone. The kernel grants that only to the directory's owner (and to `CAP_FOWNER`),
/// so after `EPERM` this opens without it, by a second call. A descriptor opened with [`OFlags::PATH`] cannot be read:
/// [`Entries::next`](crate::Entries::next) answers `EBADF`.
#[inline]
pub fn openat_with(dirfd: impl AsFd, path: impl Arg, extra: OFlags) -> Result<OwnedFd, Error> {
    let flags = DIRECTORY | extra;
    let opened = path.into_with_c_str(|path| {
        let open = |flags| retry_on_intr(|| rustix::fs::openat(&dirfd, path, flags, Mode::empty()));
        let opened = match open(flags) {
            Err(Errno::PERM) if flags.contains(OFlags::NOATIME) => open(flags - OFlags::NOATIME),
            answer => answer,
        };
        Ok(opened.map_err(|errno| Error::new(path.to_bytes(), 0, errno)))
    });
    opened.unwrap_or_else(|errno| Err(Error::new(b"", 0, errno))) // a NUL inside
}
