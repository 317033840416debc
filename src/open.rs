//! `open`, `open_with`, `openat`, `openat_with`: the one place where `O_*` flags are chosen.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::{Errno, retry_on_intr};
use rustix::path::Arg;
use std::ffi::CStr;
use std::io;

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const BELOW: OFlags = DIRECTORY.union(OFlags::NOFOLLOW);

/// Opens the directory `path` for reading: `openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)`.
///
/// Costs: one system call; no allocation for a path under 256 bytes or one that is a `&CStr`.
///
/// ```
/// let proc = lendir::open("/proc")?;
/// let same = lendir::open(c"/proc")?; // already NUL-terminated: not even a copy
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
///
/// Those of [open(2)]: `ENOENT` if there is nothing, `ENOTDIR` if it is not a directory, `EACCES` without permission, `ELOOP`
/// for too many symbolic links, `EMFILE` and `ENFILE` when descriptors run out, `EINVAL` for a path with a NUL inside.
/// `EINTR` is retried.
///
/// [open(2)]: https://man7.org/linux/man-pages/man2/open.2.html
#[doc(alias = "opendir")]
#[inline]
pub fn open(path: impl Arg) -> io::Result<OwnedFd> {
    openat(CWD, path)
}

/// Opens as [`open`] does, with the flags `extra` too: see [`openat_with`].
///
/// ```
/// use lendir::OFlags;
///
/// let error = lendir::open_with("/proc/self", OFlags::NOFOLLOW).unwrap_err(); // a symbolic link
/// assert_eq!(error.kind(), std::io::ErrorKind::NotADirectory);
/// ```
///
/// Costs: as [`openat_with`].
///
/// # Errors
///
/// Those of [`openat_with`].
#[inline]
pub fn open_with(path: impl Arg, extra: OFlags) -> io::Result<OwnedFd> {
    openat_with(CWD, path, extra)
}

/// Opens the directory `path`, looked up from the directory `dirfd`.
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
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// Costs: as [`open`], with a shorter walk; see [openat(2)].
///
/// [openat(2)]: https://man7.org/linux/man-pages/man2/openat.2.html
///
/// # Errors
///
/// As [`open`]; also `EBADF` or `ENOTDIR`, for a `dirfd` that is closed or not a directory.
#[inline]
pub fn openat(dirfd: impl AsFd, path: impl Arg) -> io::Result<OwnedFd> {
    openat_with(dirfd, path, OFlags::empty())
}

/// Opens as [`openat`] does, with the flags `extra` too.
///
/// [`OFlags::NOFOLLOW`] refuses a symbolic link in the last component. [`OFlags::NOATIME`] leaves the access time alone. The
/// kernel grants that only to the directory's owner (and to `CAP_FOWNER`), so after `EPERM` this opens without it.
///
/// ```
/// use lendir::OFlags;
/// use lendir::rustix::fs::CWD;
///
/// let dir = lendir::openat_with(CWD, "/etc", OFlags::NOFOLLOW | OFlags::NOATIME)?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// Costs: as [`openat`]; a second one where `NOATIME` is refused.
///
/// # Errors
///
/// As [`openat`]; with `NOFOLLOW`, a symbolic link is `ENOTDIR`. A descriptor opened with [`OFlags::PATH`] cannot be read:
/// [`Entries::next`](crate::Entries::next) answers `EBADF`.
#[inline]
pub fn openat_with(dirfd: impl AsFd, path: impl Arg, extra: OFlags) -> io::Result<OwnedFd> {
    let flags = DIRECTORY | extra;
    let dir = path.into_with_c_str(|path| {
        let open = |flags| retry_on_intr(|| rustix::fs::openat(&dirfd, path, flags, Mode::empty()));
        match open(flags) {
            Err(Errno::PERM) if flags.contains(OFlags::NOATIME) => open(flags - OFlags::NOATIME),
            answer => answer,
        }
    })?;
    Ok(dir)
}

/// Opens the directory `name` in `dir` for a walk: a symbolic link is refused with `ENOTDIR`, or `ELOOP` by old kernels.
#[inline]
pub(crate) fn open_below(dir: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    retry_on_intr(|| rustix::fs::openat(dir, name, BELOW, Mode::empty()))
}

/// As [`open_below`], but refuses a mount point with `EXDEV`. `ENOSYS` before Linux 5.6.
#[inline]
pub(crate) fn open_below_on_mount(dir: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    retry_on_intr(|| rustix::fs::openat2(dir, name, BELOW, Mode::empty(), ResolveFlags::NO_XDEV))
}

/// As [`open_below`], for `*at` calls and `..` only: such a descriptor needs no permission to read.
pub(crate) fn open_path_below(dir: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    retry_on_intr(|| rustix::fs::openat(dir, name, BELOW.union(OFlags::PATH), Mode::empty()))
}

/// The directory above `dir`, for `*at` calls and `..` only.
pub(crate) fn open_path_above(dir: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    retry_on_intr(|| rustix::fs::openat(dir, c"..", DIRECTORY.union(OFlags::PATH), Mode::empty()))
}

/// Opens the directory that `name` in `dir` leads to, even through symbolic links.
pub(crate) fn open_through(dir: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    retry_on_intr(|| rustix::fs::openat(dir, name, DIRECTORY, Mode::empty()))
}

/// Opens a directory again, by `open` with more flags. Falls back to `O_PATH` if reading is no longer permitted; such a
/// descriptor still serves `*at` calls and `..`.
fn reopen(open: impl Fn(OFlags) -> Result<OwnedFd, Errno>) -> Result<OwnedFd, Errno> {
    match open(OFlags::empty()) {
        Err(Errno::ACCESS) => open(OFlags::PATH),
        answer => answer,
    }
}

/// As [`open_below`], for a directory that was open before.
pub(crate) fn reopen_below(dir: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    reopen(|flags| retry_on_intr(|| rustix::fs::openat(dir, name, BELOW.union(flags), Mode::empty())))
}

/// As [`open_through`], for a directory that was open before.
pub(crate) fn reopen_through(dir: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    reopen(|flags| retry_on_intr(|| rustix::fs::openat(dir, name, DIRECTORY.union(flags), Mode::empty())))
}

/// Reopens the directory `levels` above `dir`, by `..`.
pub(crate) fn reopen_above(dir: BorrowedFd<'_>, levels: usize) -> Result<OwnedFd, Errno> {
    const UP: &[u8; 3] = b"../";
    /// The most `../` that fit in `PATH_MAX`.
    const AT_ONCE: usize = (4096 - 1) / UP.len();
    /// `../../…` and a NUL; each suffix is the path for fewer levels.
    static PATH: [u8; AT_ONCE * UP.len() + 1] = {
        let mut path = [0; AT_ONCE * UP.len() + 1];
        let mut at = 0;
        while at < AT_ONCE * UP.len() {
            path[at] = UP[at % UP.len()];
            at += 1;
        }
        path
    };
    let up = |dir: BorrowedFd<'_>, levels: usize, flags| {
        let path = &PATH[(AT_ONCE - levels) * UP.len()..];
        let path = CStr::from_bytes_with_nul(path).expect("BUG: a path without its NUL");
        retry_on_intr(|| rustix::fs::openat(dir, path, DIRECTORY.union(flags), Mode::empty()))
    };
    let mut levels = levels;
    let mut reached: Option<OwnedFd> = None;
    while levels > AT_ONCE {
        reached = Some(up(reached.as_ref().map_or(dir, AsFd::as_fd), AT_ONCE, OFlags::PATH)?);
        levels -= AT_ONCE;
    }
    reopen(|flags| up(reached.as_ref().map_or(dir, AsFd::as_fd), levels, flags))
}
