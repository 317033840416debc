//! Makes the `openat` and `openat2` calls of a walk. They open a root, a name in a directory, the
//! directory above, or a directory whose descriptor was closed. This module does not know what an
//! error means for the walk.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::{Errno, retry_on_intr};
use rustix::path::Arg;
use std::ffi::CStr;

/// The flags for [`at`] that open a directory, even through symbolic links.
pub(crate) use crate::open::DIRECTORY;
/// The flags that open a directory itself. The kernel refuses a symbolic link with `ENOTDIR`, and
/// an old kernel with `ELOOP`.
pub(crate) const NOFOLLOW: OFlags = DIRECTORY.union(OFlags::NOFOLLOW);

/// Returns `true` if the process (`EMFILE`) or the system (`ENFILE`) has no descriptor left.
pub(crate) fn lacks_descriptor(errno: Errno) -> bool {
    matches!(errno, Errno::MFILE | Errno::NFILE)
}

/// Opens the root at `path`, relative to `dir`, with the additional flags `extra`.
pub(crate) fn root(
    dir: BorrowedFd<'_>,
    path: &[u8],
    follow: bool,
    extra: OFlags,
) -> Result<OwnedFd, Errno> {
    let flags = extra | if follow { DIRECTORY } else { NOFOLLOW };
    path.into_with_c_str(|path| at(dir, path, flags))
}

/// Opens the directory at `path` in the same way as [`path_at`]. If `path` is empty, opens the
/// current directory of the process.
pub(crate) fn parent(path: &[u8]) -> Result<OwnedFd, Errno> {
    let path = if path.is_empty() { b"." } else { path };
    path.into_with_c_str(|path| path_at(CWD, path, DIRECTORY))
}

/// Calls `open` with `flags`. The kernel permits `O_NOATIME` to the owner only. If the kernel
/// refuses the flag, this calls `open` without the flag.
#[inline]
fn open_with(
    flags: OFlags,
    open: impl Fn(OFlags) -> Result<OwnedFd, Errno>,
) -> Result<OwnedFd, Errno> {
    match retry_on_intr(|| open(flags)) {
        Err(Errno::PERM) if flags.contains(OFlags::NOATIME) => {
            retry_on_intr(|| open(flags.difference(OFlags::NOATIME)))
        }
        opened => opened,
    }
}

/// Opens `name` in `dir` by `openat`.
#[inline]
pub(crate) fn at(dir: BorrowedFd<'_>, name: &CStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    open_with(flags, |flags| rustix::fs::openat(dir, name, flags, Mode::empty()))
}

/// Opens `name` in `dir` in the same way as [`at`], but for `*at` calls and `..` only. This needs
/// no permission to read the directory.
pub(crate) fn path_at(dir: BorrowedFd<'_>, name: &CStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    at(dir, name, flags.union(OFlags::PATH))
}

/// Opens a directory that was open before, in the same way as [`at`]. If the process no longer has
/// permission to read it, opens it in the same way as [`path_at`].
pub(crate) fn again_at(dir: BorrowedFd<'_>, name: &CStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    match at(dir, name, flags) {
        Err(Errno::ACCESS) => path_at(dir, name, flags),
        answer => answer,
    }
}

/// Opens `name` in `dir` in the same way as [`at`] with [`NOFOLLOW`] and `extra`, but returns
/// `EXDEV` for a mount point. Returns `ENOSYS` before Linux 5.6.
#[inline]
pub(crate) fn below_on_mount(
    dir: BorrowedFd<'_>,
    name: &CStr,
    extra: OFlags,
) -> Result<OwnedFd, Errno> {
    open_with(NOFOLLOW | extra, |flags| {
        rustix::fs::openat2(dir, name, flags, Mode::empty(), ResolveFlags::NO_XDEV)
    })
}

/// Reopens the directory that is `levels` levels above `dir`, by `..`.
pub(crate) fn again_above(dir: BorrowedFd<'_>, levels: usize) -> Result<OwnedFd, Errno> {
    const UP: &[u8; 3] = b"../";
    /// The greatest number of `../` that fit in `PATH_MAX`.
    const AT_ONCE: usize = (4096 - 1) / UP.len();
    /// The path `../../…` and a NUL. A suffix of it is the path for fewer levels.
    static PATH: [[u8; UP.len()]; AT_ONCE + 1] = {
        let mut path = [*UP; AT_ONCE + 1];
        path[AT_ONCE] = [0; UP.len()];
        path
    };
    let up = |levels: usize| {
        let path = PATH[AT_ONCE - levels..].as_flattened();
        CStr::from_bytes_until_nul(path).expect("BUG: a path without its NUL")
    };
    let mut levels = levels;
    let mut reached: Option<OwnedFd> = None;
    while levels > AT_ONCE {
        reached = Some(path_at(reached.as_ref().map_or(dir, AsFd::as_fd), up(AT_ONCE), DIRECTORY)?);
        levels -= AT_ONCE;
    }
    again_at(reached.as_ref().map_or(dir, AsFd::as_fd), up(levels), DIRECTORY)
}
