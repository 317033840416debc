//! `open` and `openat`: the functions with which users open directories; and what the walks open
//! directories with.

use crate::error::Error;
use crate::file_system::FileSystem;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, SeekFrom, fcntl_getfl, seek};
use rustix::io::{Errno, retry_on_intr};
use rustix::path::Arg;
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The flags with which a directory is opened for reading.
pub(crate) const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The flags that open a directory itself. The kernel refuses a symbolic link with `ENOTDIR`, and
/// an old kernel with `ELOOP`.
pub(crate) const NOFOLLOW: OFlags = DIRECTORY.union(OFlags::NOFOLLOW);

/// Opens the directory `path` for reading.
///
/// ```
/// use lendir::{Buffer, Entries};
/// use std::os::fd::AsFd;
///
/// let dir = lendir::open("/proc/self/fd")?;
/// let mut buffer = Buffer::new();
/// println!("{} descriptors are open", Entries::new(dir.as_fd(), &mut buffer).count()?);
/// # Ok::<(), lendir::Error>(())
/// ```
///
/// The flags are `O_RDONLY | O_DIRECTORY | O_CLOEXEC`. If you need others, call `rustix::fs::open`.
///
/// # Errors
///
/// The errors of [open(2)], with `path`. `EINTR` is retried.
///
/// - `ENOENT`: `path` does not exist.
/// - `ENOTDIR`: `path` is not a directory.
/// - `EACCES`: you have no permission to read the directory, or to search a directory on the way.
/// - `ELOOP`: there are too many symbolic links on the way.
/// - `EMFILE` or `ENFILE`: the process or the system has no descriptor left.
/// - `EINVAL`: `path` has a NUL inside.
///
/// [open(2)]: https://man7.org/linux/man-pages/man2/open.2.html
#[doc(alias = "opendir")]
pub fn open(path: impl AsRef<Path>) -> Result<OwnedFd, Error> {
    open_path(CWD, path.as_ref().as_os_str().as_bytes(), DIRECTORY)
}

/// Opens the directory `name` in the directory `dirfd`, and refuses a symbolic link.
///
/// This is the call for a name from a listing. A path can be led elsewhere by a link that another
/// process has put in place of one of its directories. Here the kernel looks up one name, in the
/// directory that listed it:
///
/// ```
/// use lendir::{Buffer, Entries, FileType};
/// use std::os::fd::AsFd;
///
/// let dir = lendir::open("/sys/class")?;
/// let mut buffer = Buffer::new();
/// let mut entries = Entries::new(dir.as_fd(), &mut buffer);
/// while let Some(entry) = entries.next()? {
///     if entry.file_type()? == FileType::Directory {
///         let child = lendir::openat(entry.dir_fd(), entry.name())?;
///         println!("{:?} {child:?}", entry.file_name());
///     }
/// }
/// # Ok::<(), lendir::Error>(())
/// ```
///
/// The flags are `O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC`. Only a link in the last
/// component is refused: pass one name, and not a path such as `a/b`.
///
/// # Errors
///
/// The same as for [`open`], with these differences:
///
/// - `ENOTDIR`: `name` is a symbolic link (`ELOOP` on old kernels) or another file, or `dirfd` is
///   not a directory.
/// - `EBADF`: `dirfd` is not an open descriptor.
/// - `ESRCH`: `dirfd` is the directory of a process that has ended.
#[doc(alias("cap_std", "toctou"))]
#[inline]
pub fn openat(dirfd: impl AsFd, name: impl AsRef<[u8]>) -> Result<OwnedFd, Error> {
    open_path(dirfd.as_fd(), name.as_ref(), NOFOLLOW)
}

fn open_path(dirfd: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd, Error> {
    path.into_with_c_str(|path| at(dirfd, path, flags))
        .map_err(|errno| Error::new(OsStr::from_bytes(path), errno))
}

/// Returns `true` if the process (`EMFILE`) or the system (`ENFILE`) has no descriptor left.
pub(crate) fn lacks_descriptor(errno: Errno) -> bool {
    matches!(errno, Errno::MFILE | Errno::NFILE)
}

/// Calls `open` with `flags`, in the frame of its caller: after a system call, returning from an
/// outer frame mispredicts. If the kernel refuses `O_NOATIME`, which it permits to the owner only,
/// calls `open` without it.
#[inline(always)]
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

/// Opens `name` in `dir` like [`at`], but for `*at` calls and `..` only. This needs no permission
/// to read the directory.
pub(crate) fn path_at(dir: BorrowedFd<'_>, name: &CStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    at(dir, name, flags.union(OFlags::PATH))
}

/// Opens `name` in `dir` by `openat2`. Returns `EXDEV` for a mount point, which is asked for
/// nothing, and `ENOSYS` before Linux 5.6.
#[inline(always)]
pub(crate) fn on_mount(dir: BorrowedFd<'_>, name: &CStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::NO_XDEV;
    open_with(flags, |flags| rustix::fs::openat2(dir, name, flags, Mode::empty(), resolve))
}

/// Opens `name` in `dir` with `O_PATH` like [`on_mount`], whatever it is. The filters of Android
/// kill a process for `openat2`.
#[cold]
pub(crate) fn path_on_mount(dir: BorrowedFd<'_>, name: &CStr) -> Result<OwnedFd, Errno> {
    if cfg!(target_os = "android") {
        return Err(Errno::NOSYS);
    }
    on_mount(dir, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC)
}

/// Lets the next reading of `dir` begin at the beginning, unless its server ignores that.
pub(crate) fn rewind(dir: impl AsFd) -> Result<(), Errno> {
    retry_on_intr(|| seek(&dir, SeekFrom::Start(0))).map(drop)
}

/// Opens the directory `dir` anew, so that it has a position of its own, at the beginning.
#[cold]
pub(crate) fn open_anew(dir: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let no_atime = fcntl_getfl(dir).unwrap_or(OFlags::empty()) & OFlags::NOATIME;
    at(dir, c".", DIRECTORY | no_atime)
}

/// Opens the directory `dir` anew, to read it from its beginning. If that is refused, rewinds `dir`
/// and returns `None`. Servers of FUSE and 9p can ignore `lseek`. There, this does not rewind for
/// want of a descriptor, which the caller may be able to free.
#[cold]
pub(crate) fn open_again(dir: BorrowedFd<'_>) -> Result<Option<OwnedFd>, Errno> {
    open_anew(dir).map(Some).or_else(|errno| {
        let ignores_seeks = |system| matches!(system, FileSystem::FUSE | FileSystem::V9FS);
        let is_trusted = !lacks_descriptor(errno) || !FileSystem::of(dir).is_ok_and(ignores_seeks);
        if is_trusted && rewind(dir).is_ok() { Ok(None) } else { Err(errno) }
    })
}
