//! `Opener`, `Root`, `OpenDir`: open a root and each directory below it, and find out whether a
//! directory is on another mount than its parent. They do not know levels or links that were
//! followed.
//!
//! `openat2` with `RESOLVE_NO_XDEV` opens only a directory on its parent's mount, so the parent's
//! [`EndMarker`] still holds. `EXDEV` means another mount. Where `openat2` is refused, no marker is
//! passed down.
//!
//! A directory that exists but may not be read is opened with `O_PATH`, and lent. Reading it is
//! then the error. If `next` returned the error instead, the directory would have no visits and no
//! state. A caller could not remove it at its second visit, which the kernel allows if it is empty.

use super::identity::Mount;
use super::options::Options;
use super::raw_open;
use crate::read_dir::end_marker::EndMarker;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, OFlags};
use rustix::io::Errno;
use std::ffi::CStr;
use std::sync::Arc;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Opener {
    /// Whether the walk stays on one mount.
    same_mount: bool,
    /// The additional flags of the [`Options`].
    flags: OFlags,
    /// `false` before Linux 5.6 and under some seccomp filters. Android's kill the process, so
    /// there it is never called.
    has_openat2: bool,
    /// The mount to stay on, once a comparison has needed it.
    only: Option<Mount>,
}

/// A root that is open.
#[derive(Debug)]
pub(crate) struct Root {
    pub(crate) found: OpenDir,
    /// The directory that contains the last component of its path, for all threads in its tree.
    pub(crate) parent: Option<Arc<OwnedFd>>,
}

impl Root {
    /// Opens the root at `path`.
    ///
    /// Under `keep_root_parent`, the path is looked up as far as its last component, and the root
    /// is opened from there. A caller that removes the root then removes it from the same
    /// directory, wherever the path leads by then.
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

/// Returns the offset of the last component, which includes any slashes after it. `/` is a
/// component of its own.
pub(crate) fn last_component_start(path: &[u8]) -> usize {
    let name_end = path.iter().rposition(|byte| *byte != b'/').unwrap_or(0);
    path[..name_end].iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1)
}

/// A directory that exists.
#[derive(Debug)]
pub(crate) struct OpenDir {
    pub(crate) dir: OwnedFd,
    pub(crate) end_marker: EndMarker,
    /// Why it may not be read: then `dir` is a descriptor with `O_PATH`.
    pub(crate) unreadable: Option<Errno>,
}

impl OpenDir {
    /// What `open` opens, which is given more flags.
    fn open(open: impl Fn(OFlags) -> Result<OwnedFd, Errno>) -> Result<Self, Errno> {
        open(OFlags::empty())
            .map(Self::query)
            .or_else(|errno| Self::unreadable(errno, || open(OFlags::PATH)))
    }

    /// Queries the end marker of the file system that `dir` is on. Without an answer there is none.
    pub(crate) fn query(dir: OwnedFd) -> Self {
        let end_marker = EndMarker::of(&dir);
        Self { dir, end_marker, unreadable: None }
    }

    /// Opens with `O_PATH` what could not be opened for reading, unless `errno` says that there is
    /// no such directory, or no descriptor left.
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

    /// Forgets the mount of the tree before.
    pub(crate) fn forget_mount(&mut self) {
        self.only = None;
    }

    /// Opens `name`, a directory in `dir`. If that fails, call [`examine`](Self::examine).
    #[inline(always)]
    pub(crate) fn open(&mut self, dir: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
        if self.has_openat2 {
            raw_open::below_on_mount(dir, name, self.flags)
        } else {
            self.open_and_compare(dir, name)
        }
    }

    /// The end marker of a directory that [`open`](Self::open) opened, given that of its parent.
    #[inline]
    pub(crate) fn inherited_marker(self, end_marker: EndMarker) -> EndMarker {
        if self.has_openat2 { end_marker } else { EndMarker::NONE }
    }

    /// The directory `name` in `dir`, after [`open`](Self::open) answered `opened`. `above` is the
    /// end marker of `dir`. `None` for another mount under `same_mount`.
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
                self.has_openat2 = !matches!(opened, Ok(_) | Err(Errno::XDEV)); // if `openat` works, only `openat2` is refused
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

    /// The directory `name` in `dir`, before anybody needs it: only if it may be read, and is on
    /// the same mount as `dir`, which without `openat2` counts under `same_mount` only. `above` is
    /// the end marker of `dir`.
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

    /// The directory that `name` in `dir` leads to, even if that is a symbolic link. `None` for
    /// another mount under `same_mount`.
    pub(crate) fn follow(
        &mut self,
        dir: BorrowedFd<'_>,
        name: &CStr,
    ) -> Result<Option<OpenDir>, Errno> {
        let flags = raw_open::DIRECTORY | self.flags;
        let found = OpenDir::open(|extra| raw_open::at(dir, name, flags | extra))?;
        self.on_mount(dir, found)
    }

    /// Opens by `openat`. Under `same_mount`, `EXDEV` means another mount here too.
    #[inline(always)]
    fn open_and_compare(&mut self, dir: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
        let opened = raw_open::at(dir, name, raw_open::NOFOLLOW | self.flags)?;
        if self.same_mount && !self.is_same_mount(dir, opened.as_fd())? {
            Err(Errno::XDEV)
        } else {
            Ok(opened)
        }
    }

    /// `found`, unless it is on another mount than `dir` under `same_mount`.
    fn on_mount(&mut self, dir: BorrowedFd<'_>, found: OpenDir) -> Result<Option<OpenDir>, Errno> {
        Ok(if self.same_mount && !self.is_same_mount(dir, found.dir.as_fd())? {
            None
        } else {
            Some(found)
        })
    }

    /// Whether `below` is on the mount that the walk stays on, which is the mount of `dir`.
    #[cold]
    fn is_same_mount(&mut self, dir: BorrowedFd<'_>, below: BorrowedFd<'_>) -> Result<bool, Errno> {
        if self.only.is_none() {
            self.only = Some(Mount::of(dir)?);
        }
        Ok(self.only == Some(Mount::of(below)?))
    }
}
