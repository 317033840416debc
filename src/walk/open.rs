//! The opens of a walk: below a directory, above it, and again.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::{Errno, retry_on_intr};
use rustix::path::Arg;
use std::ffi::CStr;

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const BELOW: OFlags = DIRECTORY.union(OFlags::NOFOLLOW);

/// Opens a root, with more flags.
pub(super) fn root(path: &[u8], follow: bool, extra: OFlags) -> Result<OwnedFd, Errno> {
    let flags = extra | if follow { DIRECTORY } else { BELOW };
    path.into_with_c_str(|path| retry_on_intr(|| rustix::fs::openat(CWD, path, flags, Mode::empty())))
}

/// Opens the directory `name` in `dir`: a symbolic link is refused with `ENOTDIR`, or `ELOOP` by old kernels.
#[inline]
pub(super) fn below(dir: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    retry_on_intr(|| rustix::fs::openat(dir, name, BELOW, Mode::empty()))
}

/// As [`below`], but refuses a mount point with `EXDEV`. `ENOSYS` before Linux 5.6.
#[inline]
pub(super) fn below_on_mount(dir: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    retry_on_intr(|| rustix::fs::openat2(dir, name, BELOW, Mode::empty(), ResolveFlags::NO_XDEV))
}

/// As [`below`], for `*at` calls and `..` only: such a descriptor needs no permission to read.
pub(super) fn path_below(dir: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    retry_on_intr(|| rustix::fs::openat(dir, name, BELOW.union(OFlags::PATH), Mode::empty()))
}

/// The directory above `dir`, for `*at` calls and `..` only.
pub(super) fn path_above(dir: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    retry_on_intr(|| rustix::fs::openat(dir, c"..", DIRECTORY.union(OFlags::PATH), Mode::empty()))
}

/// Opens the directory that `name` in `dir` leads to, even through symbolic links.
pub(super) fn through(dir: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    retry_on_intr(|| rustix::fs::openat(dir, name, DIRECTORY, Mode::empty()))
}

/// As [`through`], for `*at` calls and `..` only.
pub(super) fn path_through(dir: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    retry_on_intr(|| rustix::fs::openat(dir, name, DIRECTORY.union(OFlags::PATH), Mode::empty()))
}

/// As [`below`], for a directory that was open before.
pub(super) fn again_below(dir: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    or_path(below(dir, name), || path_below(dir, name))
}

/// As [`through`], for a directory that was open before.
pub(super) fn again_through(dir: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    or_path(through(dir, name), || path_through(dir, name))
}

/// Reopens the directory `levels` above `dir`, by `..`.
pub(super) fn again_above(dir: BorrowedFd<'_>, levels: usize) -> Result<OwnedFd, Errno> {
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
    let dir = reached.as_ref().map_or(dir, AsFd::as_fd);
    or_path(up(dir, levels, OFlags::empty()), || up(dir, levels, OFlags::PATH))
}

/// Falls back to `O_PATH` if reading is no longer permitted: such a descriptor still serves `*at` calls and `..`.
fn or_path(opened: Result<OwnedFd, Errno>, path: impl FnOnce() -> Result<OwnedFd, Errno>) -> Result<OwnedFd, Errno> {
    match opened {
        Err(Errno::ACCESS) => path(),
        answer => answer,
    }
}
