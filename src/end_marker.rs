//! `EndMarker`: which cookie means "no more" on which file system.

use crate::error::Error;
use crate::file_system::FileSystem;
use rustix::fd::AsFd;

/// The cookie that the last entry of a directory carries on this file system, if it carries one.
///
/// A reader normally learns that a directory is at its end from one more `getdents64`, which returns nothing. Some file systems
/// say so earlier, in the cookie (`d_off`) of the last entry: ext2, ext3 and ext4 with hashed directories say `i64::MAX`
/// (`i32::MAX` to a 32-bit process); tmpfs (Linux 6.14 and later), btrfs, sysfs, cgroup2 and devtmpfs say `i32::MAX`.
/// [`Entries::with_end_marker`](crate::Entries::with_end_marker) and
/// [`Listing::with_end_marker`](crate::Listing::with_end_marker) rely on them and leave out the last `getdents64`.
///
/// A marker holds for every directory of one mount: query it once for a whole tree. Do not carry it across a mount point: xfs,
/// ramfs, proc, overlay, FUSE and network file systems have no such cookie, and there `i32::MAX` can be an ordinary position.
/// On 9p, the server names the file system type, so it decides about the marker.
///
/// ```
/// use lendir::{Buffer, EndMarker, Entries};
///
/// let class = lendir::open("/sys/class")?;
/// let marker = EndMarker::of(&class)?; // one fstatfs, for all of sysfs
/// let mut buffer = Buffer::new();
/// for path in ["net", "block"] {
///     let Ok(dir) = lendir::openat(&class, path) else { continue };
///     println!("{path}: {}", Entries::new(&dir, &mut buffer).with_end_marker(marker).count()?);
/// }
/// # Ok::<(), lendir::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EndMarker(
    /// 0 for no marker.
    u64,
);

impl EndMarker {
    /// No marker, which is the default: only an empty `getdents64` is the end. Right everywhere.
    pub const NONE: Self = Self(0);

    /// The marker of the file system that `dir` is on: [`NONE`](Self::NONE) if it has none, or is unknown.
    ///
    /// Costs: one `fstatfs`, no allocation.
    ///
    /// # Errors
    ///
    /// What [fstatfs(2)] can fail with, without a path: `EBADF` for a closed descriptor, `EIO`, `ENOSYS`; `ENOENT` for a
    /// removed directory on some FUSE file systems (bindfs). `EINTR` is retried.
    ///
    /// [fstatfs(2)]: https://man7.org/linux/man-pages/man2/fstatfs.2.html
    pub fn of(dir: impl AsFd) -> Result<Self, Error> {
        let file_system = FileSystem::of(dir).map_err(|errno| Error::new(b"", 0, errno))?;
        Ok(Self(match file_system {
            FileSystem::EXT4 => isize::MAX as u64, // `ext4_get_htree_eof`: 32-bit hashes to a 32-bit process
            FileSystem::TMPFS | FileSystem::BTRFS | FileSystem::SYSFS | FileSystem::CGROUP2 => i32::MAX as u64,
            _ => 0,
        }))
    }

    /// The marker of no file system.
    #[cfg(test)]
    pub(crate) fn made_up(cookie: u64) -> Self {
        Self(cookie)
    }

    pub(crate) fn is(self, cookie: u64) -> bool {
        cookie == self.0 && cookie != 0
    }
}
