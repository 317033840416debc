//! `Metadata`: what the kernel knows of a file besides its name. It does not know which entry of a
//! walk is asked, nor when.

use crate::file_type::FileType;
use rustix::fd::BorrowedFd;
use rustix::fs::{AtFlags, Stat, Statx, StatxAttributes, StatxFlags, makedev, statat, statx};
use rustix::io::{Errno, retry_on_intr};
use std::ffi::CStr;
use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The metadata of a file: its type, size, times, owner and more.
///
/// [`Entry::metadata`](crate::Entry::metadata) and [`Dir::metadata`](crate::Dir::metadata) ask for
/// it. A [`std::fs::Metadata`] belongs to a path or to an open file, and no call of `std` asks for
/// a name in an open directory. This type is for such names. Its methods are named as in `std` and
/// its [extension](std::os::unix::fs::MetadataExt), with the same types on every target.
///
/// ```
/// use std::time::{Duration, SystemTime};
///
/// let day_ago = SystemTime::now() - Duration::from_secs(24 * 60 * 60);
/// let mut dir = lendir::read_dir("src")?;
/// while let Some(entry) = dir.next()? {
///     let metadata = entry.metadata()?;
///     if metadata.is_file() && metadata.modified().is_ok_and(|time| time > day_ago) {
///         println!("{:8} {:?}", metadata.len(), entry.file_name());
///     }
/// }
/// # Ok::<(), lendir::Error>(())
/// ```
///
/// Two names with the same [`dev`](Self::dev) and [`ino`](Self::ino) belong to the same file.
#[derive(Clone, Debug)]
#[doc(alias("Stat", "Statx", "stat", "statx"))]
pub struct Metadata {
    dev: u64,
    ino: u64,
    rdev: u64,
    len: u64,
    blocks: u64,
    /// The four times, by the constants below.
    seconds: [i64; 4],
    nanoseconds: [u32; 4],
    mode: u32,
    nlink: u32,
    uid: u32,
    gid: u32,
    blksize: u32,
    has_birth: bool,
    is_mount_point: Option<bool>,
}

const ACCESSED: usize = 0;
const MODIFIED: usize = 1;
const CHANGED: usize = 2;
const CREATED: usize = 3;

/// Writes methods that return a field, or an item of one.
macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $field:ident $([$which:ident])?,)*) => {
        $(
            $(#[$doc])*
            #[inline]
            pub fn $name(&self) -> $type {
                self.$field$([$which])?.into()
            }
        )*
    };
}

impl Metadata {
    /// Asks for the metadata of `name` in `dir`.
    ///
    /// Kernels before 4.11 lack `statx`, and a seccomp filter can refuse it with any number. So
    /// whatever its error is, the answer of `fstatat` counts.
    pub(crate) fn query(dir: BorrowedFd<'_>, name: &CStr, flags: AtFlags) -> Result<Self, Errno> {
        let mask = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
        match retry_on_intr(|| statx(dir, name, flags, mask)) {
            Ok(found) => Ok(Self::from_statx(&found)),
            Err(_) => {
                retry_on_intr(|| statat(dir, name, flags)).map(|found| Self::from_stat(&found))
            }
        }
    }

    fn from_statx(found: &Statx) -> Self {
        let times = [found.stx_atime, found.stx_mtime, found.stx_ctime, found.stx_btime];
        let knows_mounts = found.stx_attributes_mask.contains(StatxAttributes::MOUNT_ROOT);
        let is_mount_point = found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT);
        Self {
            dev: makedev(found.stx_dev_major, found.stx_dev_minor),
            ino: found.stx_ino,
            rdev: makedev(found.stx_rdev_major, found.stx_rdev_minor),
            len: found.stx_size,
            blocks: found.stx_blocks,
            seconds: times.map(|time| time.tv_sec),
            nanoseconds: times.map(|time| time.tv_nsec),
            mode: found.stx_mode.into(),
            nlink: found.stx_nlink,
            uid: found.stx_uid,
            gid: found.stx_gid,
            blksize: found.stx_blksize,
            has_birth: found.stx_mask & StatxFlags::BTIME.bits() != 0,
            is_mount_point: knows_mounts.then_some(is_mount_point),
        }
    }

    #[allow(
        clippy::cast_lossless,
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        clippy::unnecessary_cast,
        trivial_numeric_casts,
        reason = "the types differ by target, but the kernel has the same numbers"
    )]
    fn from_stat(found: &Stat) -> Self {
        Self {
            dev: found.st_dev as u64,
            ino: found.st_ino as u64,
            rdev: found.st_rdev as u64,
            len: found.st_size as u64,
            blocks: found.st_blocks as u64,
            seconds: [found.st_atime as i64, found.st_mtime as i64, found.st_ctime as i64, 0],
            nanoseconds: [
                found.st_atime_nsec as u32,
                found.st_mtime_nsec as u32,
                found.st_ctime_nsec as u32,
                0,
            ],
            mode: found.st_mode as u32,
            nlink: found.st_nlink as u32,
            uid: found.st_uid,
            gid: found.st_gid,
            blksize: found.st_blksize as u32,
            has_birth: false,
            is_mount_point: None,
        }
    }

    /// Returns the error of an entry whose metadata was not fetched.
    #[cold]
    pub(crate) fn not_fetched() -> io::Error {
        io::Error::new(io::ErrorKind::Unsupported, "metadata was not fetched")
    }

    /// Returns the type. It is certain, even where [`Entry::d_type`](crate::Entry::d_type) is not.
    #[inline]
    pub fn file_type(&self) -> FileType {
        FileType::from_mode(self.mode)
    }

    /// Tells whether it is a directory.
    #[inline]
    pub fn is_dir(&self) -> bool {
        self.file_type().is_dir()
    }

    /// Tells whether it is a regular file.
    #[inline]
    pub fn is_file(&self) -> bool {
        self.file_type().is_file()
    }

    /// Tells whether it is a symbolic link.
    #[inline]
    pub fn is_symlink(&self) -> bool {
        self.file_type().is_symlink()
    }

    fields! {
        /// Tells whether something is mounted here. `None` if the kernel does not say (before Linux
        /// 5.8, or if `statx` is refused).
        ///
        /// A file can be a mount point as well, as in most containers. The rest of the metadata is
        /// about what is mounted.
        #[doc(alias = "STATX_ATTR_MOUNT_ROOT")]
        is_mount_point: Option<bool> = is_mount_point,
        /// Returns the length in bytes. A symbolic link is as long as its target's path.
        #[allow(clippy::len_without_is_empty, reason = "as in std")]
        len: u64 = len,
        /// Returns the length in bytes, like [`len`](Self::len).
        size: u64 = len,
    }

    /// Returns the time of the last change of the contents. It can be before 1970.
    ///
    /// # Errors
    ///
    /// [`InvalidData`](io::ErrorKind::InvalidData): a `SystemTime` cannot hold the time, which only
    /// a broken file system returns.
    #[doc(alias("mtime", "old files"))]
    pub fn modified(&self) -> io::Result<SystemTime> {
        time(self.seconds[MODIFIED], self.nanoseconds[MODIFIED])
    }

    /// Returns the time of the last access, which most file systems keep only roughly.
    ///
    /// # Errors
    ///
    /// The same as for [`modified`](Self::modified).
    #[doc(alias = "atime")]
    pub fn accessed(&self) -> io::Result<SystemTime> {
        time(self.seconds[ACCESSED], self.nanoseconds[ACCESSED])
    }

    /// Returns the birth time.
    ///
    /// # Errors
    ///
    /// The same as for [`modified`](Self::modified), and
    /// [`Unsupported`](io::ErrorKind::Unsupported): the file system has no birth times, like /proc
    /// and NFS 3, or `statx` is refused.
    #[doc(alias("birth", "btime"))]
    pub fn created(&self) -> io::Result<SystemTime> {
        if self.has_birth {
            time(self.seconds[CREATED], self.nanoseconds[CREATED])
        } else {
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    fields! {
        /// Returns the number of the device that the file is on.
        dev: u64 = dev,
        /// Returns the inode number, which at a mount point differs from
        /// [`Entry::ino`](crate::Entry::ino).
        ino: u64 = ino,
        /// Returns the permissions (`mode() & 0o7777`) and, above them, the bits of the type.
        #[doc(alias = "permissions")]
        mode: u32 = mode,
        /// Returns the number of names (hard links) that the file has.
        nlink: u64 = nlink,
        /// Returns the number of the owner.
        uid: u32 = uid,
        /// Returns the number of the group.
        gid: u32 = gid,
        /// Returns the number of the device that a device file stands for.
        rdev: u64 = rdev,
        /// Returns the size of a block that is good for reading and writing.
        blksize: u64 = blksize,
        /// Returns the disk space that the file takes, always in units of 512 bytes. `du` adds
        /// these up.
        blocks: u64 = blocks,
        /// Returns the seconds from 1970 to the last access, rounded down.
        atime: i64 = seconds[ACCESSED],
        /// Returns the nanoseconds to be added to [`atime`](Self::atime).
        atime_nsec: i64 = nanoseconds[ACCESSED],
        /// Returns the seconds from 1970 to the last change of the contents, rounded down.
        mtime: i64 = seconds[MODIFIED],
        /// Returns the nanoseconds to be added to [`mtime`](Self::mtime).
        mtime_nsec: i64 = nanoseconds[MODIFIED],
        /// Returns the seconds from 1970 to the last change of the contents or the metadata,
        /// rounded down.
        ctime: i64 = seconds[CHANGED],
        /// Returns the nanoseconds to be added to [`ctime`](Self::ctime).
        ctime_nsec: i64 = nanoseconds[CHANGED],
    }
}

/// Returns a time that is so many seconds and nanoseconds after 1970. The seconds can be negative.
fn time(seconds: i64, nanoseconds: u32) -> io::Result<SystemTime> {
    let distance = Duration::from_secs(seconds.unsigned_abs());
    let second = match seconds {
        ..0 => UNIX_EPOCH.checked_sub(distance),
        _ => UNIX_EPOCH.checked_add(distance),
    };
    second
        .and_then(|second| second.checked_add(Duration::from_nanos(nanoseconds.into())))
        .ok_or_else(|| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::{Metadata, time};
    use std::io::ErrorKind;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn metadata_is_small() {
        assert!(size_of::<Metadata>() <= 112, "{} bytes", size_of::<Metadata>());
    }

    #[test]
    fn times_before_1970_are_right() {
        let before = |nanoseconds| UNIX_EPOCH - Duration::from_nanos(nanoseconds);
        assert_eq!(time(-1, 999_999_999).unwrap(), before(1));
        assert_eq!(time(-2, 500_000_000).unwrap(), before(1_500_000_000));
        assert_eq!(time(-1, 0).unwrap(), before(1_000_000_000));
        assert_eq!(time(0, 1).unwrap(), UNIX_EPOCH + Duration::from_nanos(1));
        assert!(time(i64::MIN, 0).is_ok());
        assert!(time(i64::MAX, 999_999_999).is_ok());
        assert_eq!(time(i64::MAX, u32::MAX).unwrap_err().kind(), ErrorKind::InvalidData);
    }
}
