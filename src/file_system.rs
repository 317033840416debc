//! `FileSystem`: the kind of file system that a directory is on.

use rustix::fd::AsFd;
use rustix::io::{Errno, retry_on_intr};

/// The `f_type` of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileSystem(u32);

impl FileSystem {
    /// ext2 and ext3 have the same number.
    pub(crate) const EXT4: Self = Self(0xef53);
    /// devtmpfs has the same number.
    pub(crate) const TMPFS: Self = Self(0x0102_1994);
    pub(crate) const BTRFS: Self = Self(0x9123_683e);
    pub(crate) const OVERLAY: Self = Self(0x794c_7630);
    pub(crate) const XFS: Self = Self(0x5846_5342);
    pub(crate) const F2FS: Self = Self(0xf2f5_2010);
    pub(crate) const SYSFS: Self = Self(0x6265_6572);
    pub(crate) const NFS: Self = Self(0x6969);
    pub(crate) const CGROUP2: Self = Self(0x6367_7270);
    pub(crate) const FUSE: Self = Self(0x6573_5546);
    pub(crate) const PROC: Self = Self(0x9fa0);
    /// 9p, unless the server names another.
    pub(crate) const V9FS: Self = Self(0x0102_1997);

    /// Returns the kind of the file system that `dir` is on, by one `fstatfs`.
    pub(crate) fn of(dir: impl AsFd) -> Result<Self, Errno> {
        let f_type = retry_on_intr(|| rustix::fs::fstatfs(&dir))?.f_type;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the kernel uses 32 bits of it on every target"
        )]
        Ok(Self(f_type as u32))
    }
}
