//! The `openat` and `openat2` calls of a walk: for a name in a directory, for the directory
//! above, and for a directory whose descriptor was closed. They do not know what an error
//! means for the walk.

use crate::open::open_with;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::ffi::CStr;

/// `DIRECTORY`: the flags for [`at`] that open a directory, even through symbolic links.
pub(crate) use crate::open::{DIRECTORY, at, lacks_descriptor};

/// The flags that open a directory itself. The kernel refuses a symbolic link with `ENOTDIR`, and
/// an old kernel with `ELOOP`.
pub(crate) const NOFOLLOW: OFlags = DIRECTORY.union(OFlags::NOFOLLOW);

/// Opens `name` in `dir` like [`at`], but for `*at` calls and `..` only. This needs
/// no permission to read the directory.
pub(crate) fn path_at(dir: BorrowedFd<'_>, name: &CStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    at(dir, name, flags.union(OFlags::PATH))
}

/// Opens a directory that was open before, like [`at`]. If the process no longer has
/// permission to read it, opens it like [`path_at`].
pub(crate) fn again_at(dir: BorrowedFd<'_>, name: &CStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    match at(dir, name, flags) {
        Err(Errno::ACCESS) => path_at(dir, name, flags),
        answer => answer,
    }
}

/// Opens `name` in `dir` like [`at`] with [`NOFOLLOW`] and `extra`, but returns
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
    let mut reached: Option<OwnedFd> = None;
    for _ in 1..levels {
        reached = Some(path_at(reached.as_ref().map_or(dir, AsFd::as_fd), c"..", DIRECTORY)?);
    }
    again_at(reached.as_ref().map_or(dir, AsFd::as_fd), c"..", DIRECTORY)
}
