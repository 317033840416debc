//! `Opener`, `Root`, `OpenDir`: open a root and each directory below it, and find out whether a
//! directory is on another mount than its parent. They do not know levels, nor links that were
//! followed.
//!
//! `openat2` with `RESOLVE_NO_XDEV` opens only a directory on its parent's mount, so the parent's
//! [`EndMarker`] still holds. `EXDEV` means another mount. If `openat2` is refused, children
//! inherit no marker.
//!
//! A directory that exists but cannot be opened for reading is opened with `O_PATH`, and is
//! yielded. The error occurs when the directory is read. If `next` returned the error instead, the
//! directory would have no visits and no state. Then a caller could not remove it at its second
//! visit, which the kernel allows if it is empty.

use super::identity::Mount;
use super::options::Options;
use super::raw_open;
use crate::read_dir::end_marker::EndMarker;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, OFlags};
use rustix::io::Errno;
use std::ffi::CStr;
use std::sync::Arc;

/// A way to open the directories below a root.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opener {
    /// Whether the walk stays on one mount.
    same_mount: bool,
    /// The additional flags of the [`Options`].
    flags: OFlags,
    /// Whether the kernel has `openat2`. `false` before Linux 5.6 and under some seccomp filters.
    /// The filters of Android kill the process, so on Android `openat2` is never called.
    has_openat2: bool,
    /// The mount to stay on. `None` until a comparison needs it.
    only: Option<Mount>,
}

/// An open root.
#[derive(Debug)]
pub(crate) struct Root {
    pub(crate) found: OpenDir,
    /// The directory that contains the last component of its path, for all threads in its tree.
    pub(crate) parent: Option<Arc<OwnedFd>>,
}

impl Root {
    /// Opens the root at `path`.
    ///
    /// With `keep_root_parent`, this opens the parent by the path, and then the root by the last
    /// component. So a caller that removes the root removes it from the same parent, wherever the
    /// path leads by then.
    pub(crate) fn open(path: &[u8], options: &Options) -> Result<Self, Errno> {
        let Options { keep_root_parent: keep_parent, follow_root_links, flags, .. } = *options;
        let name_start = if keep_parent { last_component_start(path) } else { 0 };
        let (parent_path, name) = path.split_at(name_start);
        let parent = keep_parent.then(|| raw_open::parent(parent_path)).transpose()?;
        let dir = parent.as_ref().map_or(CWD, AsFd::as_fd);
        let found =
            OpenDir::open(|extra| raw_open::root(dir, name, follow_root_links, flags | extra))?;
        Ok(Self { found, parent: parent.map(Arc::new) })
    }
}

/// Returns the offset at which the last component of `path` starts. The component includes any
/// slashes after it. The path `/` is a component of its own.
pub(crate) fn last_component_start(path: &[u8]) -> usize {
    let name_end = path.iter().rposition(|byte| *byte != b'/').unwrap_or(0);
    path[..name_end].iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1)
}

/// A directory that was opened, for reading or with `O_PATH`.
#[derive(Debug)]
pub(crate) struct OpenDir {
    pub(crate) dir: OwnedFd,
    pub(crate) end_marker: EndMarker,
    /// The reason why the directory cannot be read. Then `dir` is a descriptor with `O_PATH`.
    pub(crate) unreadable: Option<Errno>,
}

impl OpenDir {
    /// Opens a directory by `open`, which takes additional flags.
    fn open(open: impl Fn(OFlags) -> Result<OwnedFd, Errno>) -> Result<Self, Errno> {
        open(OFlags::empty())
            .map(Self::query)
            .or_else(|errno| Self::unreadable(errno, || open(OFlags::PATH)))
    }

    /// Queries the end marker of the file system that `dir` is on. If the query fails, there is no
    /// marker.
    pub(crate) fn query(dir: OwnedFd) -> Self {
        let end_marker = EndMarker::of(&dir);
        Self { dir, end_marker, unreadable: None }
    }

    /// Calls `path` to open with `O_PATH` a directory that could not be opened for reading. Returns
    /// `errno` instead if it means that there is no such directory, or no descriptor left.
    fn unreadable(
        errno: Errno,
        path: impl FnOnce() -> Result<OwnedFd, Errno>,
    ) -> Result<Self, Errno> {
        if matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::LOOP)
            || raw_open::lacks_descriptor(errno)
        {
            return Err(errno);
        }
        let dir = path()
            .map_err(|second| if raw_open::lacks_descriptor(second) { second } else { errno })?;
        Ok(Self { dir, end_marker: EndMarker::NONE, unreadable: Some(errno) })
    }
}

impl Opener {
    pub(crate) fn new(options: &Options) -> Self {
        let Options { same_mount, flags, .. } = *options;
        Self { same_mount, flags, has_openat2: !cfg!(target_os = "android"), only: None }
    }

    /// Forgets the mount of the previous tree.
    pub(crate) fn forget_mount(&mut self) {
        self.only = None;
    }

    /// Opens the directory `name` in `dir`. After an error, call [`examine`](Self::examine).
    #[inline(always)]
    pub(crate) fn open(&mut self, dir: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
        if self.has_openat2 {
            raw_open::below_on_mount(dir, name, self.flags)
        } else {
            self.open_and_compare(dir, name)
        }
    }

    /// Returns the end marker of a directory that [`open`](Self::open) opened, from its parent's
    /// end marker.
    #[inline]
    pub(crate) fn inherited_marker(self, end_marker: EndMarker) -> EndMarker {
        if self.has_openat2 { end_marker } else { EndMarker::NONE }
    }

    /// Returns the directory `name` in `dir`, after [`open`](Self::open) returned `opened`. `above`
    /// is the end marker of `dir`. Returns `None` for another mount under `same_mount`.
    pub(crate) fn examine(
        &mut self,
        opened: Result<OwnedFd, Errno>,
        (dir, above): (BorrowedFd<'_>, EndMarker),
        name: &CStr,
    ) -> Result<Option<OpenDir>, Errno> {
        let found = match opened {
            Ok(dir) => {
                Ok(OpenDir { dir, end_marker: self.inherited_marker(above), unreadable: None })
            }
            Err(Errno::XDEV) if !self.same_mount => {
                raw_open::at(dir, name, raw_open::NOFOLLOW | self.flags).map(OpenDir::query)
            }
            Err(Errno::NOSYS | Errno::PERM) if self.has_openat2 => {
                let opened = self.open_and_compare(dir, name);
                // If `openat` works, only `openat2` is refused.
                self.has_openat2 = !matches!(opened, Ok(_) | Err(Errno::XDEV));
                opened.map(|dir| OpenDir { dir, end_marker: EndMarker::NONE, unreadable: None })
            }
            Err(errno) => Err(errno),
        };
        match found {
            Ok(found) => Ok(Some(found)),
            Err(Errno::XDEV) if self.same_mount => Ok(None),
            Err(errno) => {
                let found = OpenDir::unreadable(errno, || {
                    raw_open::path_at(dir, name, raw_open::NOFOLLOW)
                })?;
                self.on_mount(dir, found)
            }
        }
    }

    /// Opens the directory `name` in `dir` before the walk descends into it. `above` is the end
    /// marker of `dir`.
    ///
    /// Returns only a directory that can be read and that is on the mount of `dir`. If `openat2` is
    /// refused, the mount counts under `same_mount` only.
    pub(crate) fn open_ahead(
        &mut self,
        (dir, above): (BorrowedFd<'_>, EndMarker),
        name: &CStr,
    ) -> Result<Option<OpenDir>, Errno> {
        match self.open(dir, name) {
            opened @ (Ok(_) | Err(Errno::NOSYS | Errno::PERM)) => {
                let found = self.examine(opened, (dir, above), name)?;
                Ok(found.filter(|found| found.unreadable.is_none()))
            }
            Err(errno) => Err(errno),
        }
    }

    /// Opens the directory to which `name` in `dir` leads, even through a symbolic link. Returns
    /// `None` for another mount under `same_mount`.
    pub(crate) fn follow(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &CStr,
    ) -> Result<Option<OpenDir>, Errno> {
        let flags = raw_open::DIRECTORY | self.flags;
        let found = OpenDir::open(|extra| raw_open::at(dir, name, flags | extra))?;
        self.on_mount(dir, found)
    }

    /// Opens `name` in `dir` by `openat`. Under `same_mount`, `EXDEV` means another mount, in the
    /// same way as for `openat2`.
    #[inline(always)]
    fn open_and_compare(&mut self, dir: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
        let opened = raw_open::at(dir, name, raw_open::NOFOLLOW | self.flags)?;
        if self.same_mount && !self.is_same_mount(dir, opened.as_fd())? {
            Err(Errno::XDEV)
        } else {
            Ok(opened)
        }
    }

    /// Returns `found`, or `None` if it is on another mount than `dir` under `same_mount`.
    fn on_mount(&mut self, dir: BorrowedFd<'_>, found: OpenDir) -> Result<Option<OpenDir>, Errno> {
        Ok(if self.same_mount && !self.is_same_mount(dir, found.dir.as_fd())? {
            None
        } else {
            Some(found)
        })
    }

    /// Returns `true` if `below` is on the mount that the walk stays on, which is the mount of
    /// `dir`.
    #[cold]
    fn is_same_mount(&mut self, dir: BorrowedFd<'_>, below: BorrowedFd<'_>) -> Result<bool, Errno> {
        if self.only.is_none() {
            self.only = Some(Mount::of(dir)?);
        }
        Ok(self.only == Some(Mount::of(below)?))
    }
}
