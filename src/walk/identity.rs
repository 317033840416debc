//! `Identity`, `Mount`: how a walk knows that a directory is the one it was, and which mount it is on.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, StatxFlags, fstat, major, minor, statx};
use rustix::io::{Errno, retry_on_intr};

/// A directory, to be known again. File systems reuse inode numbers at once, so it has the birth time too, which nobody can
/// set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    device: (u32, u32),
    ino: u64,
    /// `None` where the file system has none, as /proc.
    birth: Option<(i64, u32)>,
}

impl Identity {
    pub(super) fn of(dir: BorrowedFd<'_>) -> Result<Self, Errno> {
        Ok(ask(dir)?.0)
    }

    /// This directory, if `by_dots` leads to it, or else `by_names`.
    pub(super) fn find(
        self,
        by_dots: Result<OwnedFd, Errno>,
        by_names: impl FnOnce() -> Result<OwnedFd, Errno>,
    ) -> Result<OwnedFd, Errno> {
        by_dots.and_then(|dir| self.confirm(dir)).or_else(|_| self.confirm(by_names()?))
    }

    /// `dir`, or `ENOENT` if it is another directory.
    fn confirm(self, dir: OwnedFd) -> Result<OwnedFd, Errno> {
        if Self::of(dir.as_fd())? == self { Ok(dir) } else { Err(Errno::NOENT) }
    }
}

/// A mount: its number, or before Linux 5.8 that of its device, which bind mounts of one file system share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mount {
    Id(u64),
    Device(u32, u32),
}

impl Mount {
    #[cold]
    #[inline(never)]
    pub(super) fn of(dir: BorrowedFd<'_>) -> Result<Self, Errno> {
        Ok(ask(dir)?.1)
    }
}

fn ask(dir: BorrowedFd<'_>) -> Result<(Identity, Mount), Errno> {
    let wanted = StatxFlags::INO | StatxFlags::BTIME | StatxFlags::MNT_ID;
    match retry_on_intr(|| statx(dir, c"", AtFlags::EMPTY_PATH, wanted)) {
        Ok(stat) => {
            let has = |field: StatxFlags| stat.stx_mask & field.bits() != 0;
            let device = (stat.stx_dev_major, stat.stx_dev_minor);
            let birth = has(StatxFlags::BTIME).then_some((stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec));
            let mount =
                if has(StatxFlags::MNT_ID) { Mount::Id(stat.stx_mnt_id) } else { Mount::Device(device.0, device.1) };
            Ok((Identity { device, ino: stat.stx_ino, birth }, mount))
        }
        // Before Linux 4.11, and by some seccomp filters.
        Err(Errno::NOSYS | Errno::PERM) => {
            let stat = retry_on_intr(|| fstat(dir))?;
            let device = (major(stat.st_dev), minor(stat.st_dev));
            Ok((Identity { device, ino: stat.st_ino, birth: None }, Mount::Device(device.0, device.1)))
        }
        Err(errno) => Err(errno),
    }
}
