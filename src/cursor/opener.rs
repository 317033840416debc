//! `Opener`, `Root`, `OpenDir`: open a root and each directory below it, and find out whether a
//! directory is on another mount than its parent. They do not know levels, nor links that were
//! followed.
//!
//! `openat2` with `RESOLVE_NO_XDEV` opens only a directory on its parent's mount, so the parent's
//! [`Mount`] still holds. `EXDEV` means another mount. If `openat2` is refused, children
//! inherit nothing of it.
//!
//! A directory that exists but cannot be opened for reading is opened with `O_PATH`, and is
//! yielded. The error occurs when the directory is read. If `next` returned the error instead, the
//! directory would have no visits and no state. Then a caller could not remove it at its second
//! visit, which the kernel allows if it is empty.

use super::identity::Identity;
use super::options::Options;
use crate::file_type::FileType;
use crate::metadata::Metadata;
use crate::open;
use crate::read_dir::entry::NOT_BEYOND;
use crate::read_dir::mount::Mount;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, OFlags};
use rustix::io::Errno;
use rustix::path::Arg;
use std::ffi::CStr;
use std::sync::Arc;

/// A way to open the directories below a root.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opener {
    options: Options,
    /// Whether the kernel has `openat2`. `false` before Linux 5.6 and under some seccomp filters.
    /// The filters of Android kill the process, so on Android `openat2` is never called.
    pub(crate) has_openat2: bool,
    /// Whether `openat2` has succeeded after its first error, which was thus not a filter's.
    is_openat2_proven: bool,
}

/// An open root.
pub(crate) struct Root {
    pub(crate) found: OpenDir,
    /// The directory that contains the last component of its path, for all threads in its tree.
    pub(crate) parent: Option<Arc<OwnedFd>>,
    /// The entry of the root, if only the directory that contains it is open.
    pub(crate) entry: Option<RootEntry>,
}

/// A root as an entry of the directory that contains it.
#[derive(Clone, Copy)]
pub(crate) struct RootEntry {
    /// The offset in the path at which its name starts.
    pub(crate) name_start: usize,
    pub(crate) file_type: FileType,
    pub(crate) ino: u64,
}

impl Root {
    /// Opens the root at `path`. A root that is yielded is only found, whatever its type is, and
    /// the directory that contains it is opened.
    ///
    /// With second visits, this opens the parent by the path, and then the root by the last
    /// component. So a caller that removes the root removes it from the same parent, wherever the
    /// path leads by then.
    pub(crate) fn open(path: &[u8], options: &Options) -> Result<Self, Errno> {
        let Options { second_visits, yield_roots, follow_root_links, flags, .. } = *options;
        let keeps_parent = second_visits || yield_roots;
        let name_start = if keeps_parent { last_component_start(path) } else { 0 };
        let (parent, name) = path.split_at(name_start);
        let parent = if parent.is_empty() { b"." } else { parent };
        let open_parent =
            || parent.into_with_c_str(|path| open::path_at(CWD, path, open::DIRECTORY));
        let parent = keeps_parent.then(open_parent).transpose()?;
        let dir = parent.as_ref().map_or(CWD, AsFd::as_fd);
        if !yield_roots {
            let open = |name: &CStr| OpenDir::of_root(dir, name, follow_root_links, flags);
            let found = name.into_with_c_str(open)?;
            return Ok(Self { found, parent: parent.map(Arc::new), entry: None });
        }
        let metadata = name.into_with_c_str(|name| Metadata::query(dir, name, NOT_BEYOND))?;
        let (file_type, ino) = (metadata.file_type(), metadata.ino());
        let dir = parent.expect("BUG: a root is yielded without its parent");
        let found = OpenDir { dir, mount: Mount::PLAIN, unreadable: None };
        Ok(Self { found, parent: None, entry: Some(RootEntry { name_start, file_type, ino }) })
    }
}

/// Returns the offset at which the last component of `path` starts. The component includes any
/// slashes after it. The path `/` is a component of its own.
pub(crate) fn last_component_start(path: &[u8]) -> usize {
    let name_end = path.iter().rposition(|byte| *byte != b'/').unwrap_or(0);
    path[..name_end].iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1)
}

/// A directory that was opened, for reading or with `O_PATH`.
pub(crate) struct OpenDir {
    pub(crate) dir: OwnedFd,
    pub(crate) mount: Mount,
    /// The reason why the directory cannot be read. Then `dir` is a descriptor with `O_PATH`.
    pub(crate) unreadable: Option<Errno>,
}

impl OpenDir {
    /// Opens a directory by `open`, which takes extra flags. If that can be read, `query` asks
    /// for its mount.
    fn open(
        open: impl Fn(OFlags) -> Result<OwnedFd, Errno>,
        query: impl FnOnce(BorrowedFd<'_>) -> Mount,
    ) -> Result<Self, Errno> {
        open(OFlags::empty())
            .map(|dir| Self { mount: query(dir.as_fd()), dir, unreadable: None })
            .or_else(|errno| Self::unreadable(errno, || open(OFlags::PATH)))
    }

    /// Opens the root `name` in `dir`.
    pub(crate) fn of_root(
        dir: BorrowedFd<'_>,
        name: &CStr,
        follows: bool,
        flags: OFlags,
    ) -> Result<Self, Errno> {
        let flags = flags | if follows { open::DIRECTORY } else { open::NOFOLLOW };
        let open = |extra| open::at(dir, name, flags | extra);
        Self::open(open, |root| Mount::of(root))
    }

    /// Queries the mount that `dir` is on.
    pub(crate) fn query(dir: OwnedFd) -> Self {
        Self { mount: Mount::of(&dir), dir, unreadable: None }
    }

    /// Calls `path` to open with `O_PATH` a directory that could not be opened for reading. Returns
    /// `errno` instead if it means that there is no such directory, or no descriptor left. Returns
    /// `EXDEV` if `path` finds a mount point.
    fn unreadable(
        errno: Errno,
        path: impl FnOnce() -> Result<OwnedFd, Errno>,
    ) -> Result<Self, Errno> {
        if matches!(errno, Errno::NOENT | Errno::NOTDIR | Errno::LOOP)
            || open::lacks_descriptor(errno)
        {
            return Err(errno);
        }
        let is_reported = |second| open::lacks_descriptor(second) || second == Errno::XDEV;
        let dir = path().map_err(|second| if is_reported(second) { second } else { errno })?;
        Ok(Self { dir, mount: Mount::PLAIN, unreadable: Some(errno) })
    }
}

impl Opener {
    pub(crate) fn new(options: Options) -> Self {
        Self { options, has_openat2: !cfg!(target_os = "android"), is_openat2_proven: false }
    }

    /// Opens `name`, a directory in `dir` that is on the same mount. `mount` is the mount of
    /// `dir`. Returns `EXDEV` for another mount. Without `openat2` it does so under `same_mount`
    /// only.
    #[inline(always)]
    pub(crate) fn open(
        &mut self,
        dir: BorrowedFd<'_>,
        mount: Mount,
        name: &CStr,
    ) -> Result<OpenDir, Errno> {
        if self.has_openat2 {
            match open::on_mount(dir, name, open::NOFOLLOW | self.options.flags) {
                Err(errno) if self.may_be_refused(dir, errno) => {}
                opened => return opened.map(|dir| OpenDir { dir, mount, unreadable: None }),
            }
        }
        let dir = self.open_without_openat2(dir, name)?;
        Ok(OpenDir { dir, mount: Mount::UNKNOWN, unreadable: None })
    }

    /// Returns `true` if `errno`, an answer of `openat2`, may be the answer of a seccomp filter,
    /// which can choose any number. No filter refuses `openat2` if it opens `.` here.
    #[cold]
    fn may_be_refused(&mut self, dir: BorrowedFd<'_>, errno: Errno) -> bool {
        if open::lacks_descriptor(errno) {
            return false; // another thread may close one before `openat` is tried
        }
        self.is_openat2_proven = self.is_openat2_proven
            || open::on_mount(dir, c".", OFlags::PATH | open::NOFOLLOW).is_ok();
        !self.is_openat2_proven || matches!(errno, Errno::NOSYS | Errno::PERM)
    }

    #[cold]
    fn open_without_openat2(&mut self, dir: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
        let opened = open::at(dir, name, open::NOFOLLOW | self.options.flags)?;
        self.has_openat2 = false; // `openat` works, so only `openat2` was refused
        self.check_mount(dir, opened.as_fd()).map(|()| opened)
    }

    /// Returns the directory `name` in `dir`, after [`open`](Self::open) returned `opened`. Returns
    /// `EXDEV` for another mount under `same_mount`.
    pub(crate) fn examine(
        &self,
        opened: Result<OpenDir, Errno>,
        dir: BorrowedFd<'_>,
        name: &CStr,
    ) -> Result<OpenDir, Errno> {
        let flags = open::NOFOLLOW | self.options.flags;
        let found = match opened {
            Err(Errno::XDEV) if self.options.same_mount => {
                // Not a mount point, so `EXDEV` is the answer of the file system, or was a mount
                // point then. If something is mounted over `path` meanwhile, `.` is still below it.
                let path = self.open_path(dir, name)?;
                let found = open::at(path.as_fd(), c".", flags).map(OpenDir::query);
                return found.or_else(|errno| OpenDir::unreadable(errno, || Ok(path)));
            }
            Err(Errno::XDEV) => open::at(dir, name, flags).map(OpenDir::query),
            opened => opened,
        };
        found.or_else(|errno| OpenDir::unreadable(errno, || self.open_path(dir, name)))
    }

    /// Opens `name` in `dir` with `O_PATH`. Returns `EXDEV` for another mount under `same_mount`.
    fn open_path(&self, dir: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
        if self.options.same_mount && self.is_openat2_proven {
            // Unlike `openat`, this does not mount an automount point.
            match open::on_mount(dir, name, OFlags::PATH | open::NOFOLLOW) {
                Err(Errno::NOSYS | Errno::PERM) => {} // a filter, from some moment on
                opened => return opened,
            }
        }
        let path = open::path_at(dir, name, open::NOFOLLOW)?;
        self.check_mount(dir, path.as_fd()).map(|()| path)
    }

    /// Opens the directory to which `name` in `dir` leads, even through a symbolic link. Returns
    /// `EXDEV` for another mount under `same_mount`.
    pub(crate) fn follow(
        &self,
        dir: BorrowedFd<'_>,
        mount: Mount,
        name: &CStr,
    ) -> Result<OpenDir, Errno> {
        let open = |extra| open::at(dir, name, open::DIRECTORY | self.options.flags | extra);
        let found = OpenDir::open(open, |target| mount.of_target(dir, target))?;
        self.check_mount(dir, found.dir.as_fd()).map(|()| found)
    }

    /// Returns `EXDEV` if `child` is on another mount than `dir` under `same_mount`.
    fn check_mount(&self, dir: BorrowedFd<'_>, child: BorrowedFd<'_>) -> Result<(), Errno> {
        let mount = |dir| Identity::of(dir).map(|identity| identity.mount);
        let is_entered = !self.options.same_mount || mount(dir)? == mount(child)?;
        if is_entered { Ok(()) } else { Err(Errno::XDEV) }
    }
}
