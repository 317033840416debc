//! `Mounts`: opens the next directory of a walk, and knows whether that is on another mount.
//!
//! `openat2` with `RESOLVE_NO_XDEV` opens only a directory on its parent's mount, so the parent's [`EndMarker`] still holds.
//! `EXDEV` means another mount. Where `openat2` is refused, no marker is passed down.

use super::identity::Mount;
use super::open::{open_below, open_below_on_mount, open_path_below, open_through};
use crate::EndMarker;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::ffi::CStr;

#[derive(Clone, Copy, Debug)]
pub(super) struct Mounts {
    /// `false` before Linux 5.6 and under some seccomp filters. Android's kill the process, so there it is never called.
    has_openat2: bool,
    /// The mount to stay on, once a comparison has needed it.
    only: Option<Mount>,
}

impl Default for Mounts {
    fn default() -> Self {
        Self { has_openat2: !cfg!(target_os = "android"), only: None }
    }
}

impl Mounts {
    /// Another tree begins, or from now on the walk stays on the mount where it is.
    pub(super) fn forget(&mut self) {
        self.only = None;
    }

    /// Opens `name`, a directory in `dir`. If that fails, ask [`open_otherwise`](Self::open_otherwise).
    #[allow(clippy::inline_always, reason = "see `Walk::next`")]
    #[inline(always)]
    pub(super) fn open(&mut self, dir: BorrowedFd<'_>, name: &CStr, same_mount: bool) -> Result<OwnedFd, Errno> {
        if self.has_openat2 { open_below_on_mount(dir, name) } else { self.open_without_openat2(dir, name, same_mount) }
    }

    /// The end marker of a directory that [`open`](Self::open) opened, given that of its parent.
    #[inline]
    pub(super) fn pass_down(self, end_marker: EndMarker) -> EndMarker {
        if self.has_openat2 { end_marker } else { EndMarker::NONE }
    }

    /// Opens `name` in `dir` if [`open`](Self::open) answered `errno`, and finds its end marker. `None` for another mount under
    /// `same_mount`.
    #[cold]
    #[inline(never)]
    pub(super) fn open_otherwise(
        &mut self,
        errno: Errno,
        dir: BorrowedFd<'_>,
        name: &CStr,
        same_mount: bool,
    ) -> Result<Option<(OwnedFd, EndMarker)>, Errno> {
        match errno {
            Errno::XDEV if same_mount => Ok(None),
            Errno::XDEV => Ok(Some(with_end_marker(open_below(dir, name)?))),
            Errno::NOSYS | Errno::PERM if self.has_openat2 => {
                let opened = self.open_without_openat2(dir, name, same_mount);
                self.has_openat2 = !matches!(opened, Ok(_) | Err(Errno::XDEV)); // or `openat` would be refused too
                match opened {
                    Err(Errno::XDEV) if same_mount => Ok(None),
                    opened => Ok(Some((opened?, EndMarker::NONE))),
                }
            }
            errno => Err(errno),
        }
    }

    /// Opens by `openat`. Under `same_mount`, `EXDEV` means another mount here too.
    #[inline]
    fn open_without_openat2(&mut self, dir: BorrowedFd<'_>, name: &CStr, same_mount: bool) -> Result<OwnedFd, Errno> {
        let opened = open_below(dir, name);
        if same_mount { self.compare(dir, name, opened) } else { opened }
    }

    #[cold]
    #[inline(never)]
    fn compare(&mut self, dir: BorrowedFd<'_>, name: &CStr, opened: Result<OwnedFd, Errno>) -> Result<OwnedFd, Errno> {
        let stays = match &opened {
            Ok(opened) => self.stays_on_mount(dir, opened.as_fd())?,
            // An unreadable mount point is passed over like any other.
            Err(Errno::ACCESS) => self.stays_on_mount(dir, open_path_below(dir, name)?.as_fd())?,
            Err(errno) => return Err(*errno),
        };
        if stays { opened } else { Err(Errno::XDEV) }
    }

    /// Opens `name` in `dir`, even if it is a symbolic link. `None` for another mount under `same_mount`.
    pub(super) fn follow(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &CStr,
        same_mount: bool,
    ) -> Result<Option<(OwnedFd, EndMarker)>, Errno> {
        let opened = open_through(dir, name)?;
        if same_mount && !self.stays_on_mount(dir, opened.as_fd())? {
            return Ok(None);
        }
        Ok(Some(with_end_marker(opened)))
    }

    /// Whether `below` is on the mount that the walk stays on, which is the mount of `dir`.
    fn stays_on_mount(&mut self, dir: BorrowedFd<'_>, below: BorrowedFd<'_>) -> Result<bool, Errno> {
        let only = match self.only {
            Some(only) => only,
            None => *self.only.insert(Mount::of(dir)?),
        };
        Ok(Mount::of(below)? == only)
    }
}

/// A directory with the end marker of its file system, or without one where the file system cannot be asked.
pub(super) fn with_end_marker(dir: OwnedFd) -> (OwnedFd, EndMarker) {
    let end_marker = EndMarker::of(&dir).unwrap_or(EndMarker::NONE);
    (dir, end_marker)
}
