//! `Identity`, `Mount`: how a walk knows that a directory is the one it was, and which mount it is on.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Statx, StatxFlags, statx};
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
        let answer = ask(dir, StatxFlags::INO | StatxFlags::BTIME)?;
        let has_birth = answer.stx_mask & StatxFlags::BTIME.bits() != 0;
        Ok(Self {
            device: (answer.stx_dev_major, answer.stx_dev_minor),
            ino: answer.stx_ino,
            birth: has_birth.then_some((answer.stx_btime.tv_sec, answer.stx_btime.tv_nsec)),
        })
    }

    /// `dir`, or `ENOENT` if it is another directory.
    pub(super) fn confirm(self, dir: OwnedFd) -> Result<OwnedFd, Errno> {
        if Self::of(dir.as_fd())? == self { Ok(dir) } else { Err(Errno::NOENT) }
    }
}

fn ask(dir: BorrowedFd<'_>, what: StatxFlags) -> Result<Statx, Errno> {
    retry_on_intr(|| statx(dir, c"", AtFlags::EMPTY_PATH, what))
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
        let answer = ask(dir, StatxFlags::MNT_ID)?;
        Ok(if answer.stx_mask & StatxFlags::MNT_ID.bits() == 0 {
            Self::Device(answer.stx_dev_major, answer.stx_dev_minor)
        } else {
            Self::Id(answer.stx_mnt_id)
        })
    }
}
