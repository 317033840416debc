//! `Identity`, `FileId`, `Mount`: how a walk recognises a directory, and knows which mount it is on.

use crate::file_system::FileSystem;
use rustix::fd::BorrowedFd;
use rustix::fs::{AtFlags, StatxFlags, fstat, major, minor, statx};
use rustix::io::{Errno, retry_on_intr};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Device and inode number. No two directories have the same while both exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileId {
    device: (u32, u32),
    ino: u64,
}

impl FileId {
    pub(super) fn of(dir: BorrowedFd<'_>) -> Result<Self, Errno> {
        Ok(ask(dir)?.id)
    }

    pub(super) fn and_mount(dir: BorrowedFd<'_>) -> Result<(Self, Mount), Errno> {
        ask(dir).map(|Identity { id, mount, .. }| (id, mount))
    }
}

/// By this the walk recognises a directory after closing its descriptor. A file system may give its inode number to another
/// directory at once, so the birth time is part of it where it is fixed: nobody can set that.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity {
    id: FileId,
    /// Since 1970. `None` where the file system has none, as on /proc, or [does not fix it](fixes_births), as overlay.
    birth: Option<(i64, u32)>,
    mount: Mount,
    /// Whether the mount counts, because the walk stays on one: a mount over a directory can have the same root.
    same_mount: bool,
}

/// The longest tick of the clock that stamps births, with `CONFIG_HZ=100`, and a margin.
const TICK: Duration = Duration::from_millis(11);

impl Identity {
    /// The identity of a directory that is still open and is about to be closed.
    ///
    /// Birth times are only as fine as the clock's tick. Within the tick of its birth, a directory could be replaced by a twin
    /// of the same inode number and birth, so this waits for the next tick: it sleeps 11 ms if the directory is younger than
    /// that.
    pub(super) fn note(dir: BorrowedFd<'_>, same_mount: bool) -> Result<Self, Errno> {
        let now = ask(dir)?;
        let identity = Self { birth: now.birth.filter(|_| fixes_births(dir)), same_mount, ..now };
        if identity.is_young() {
            thread::sleep(TICK);
        }
        Ok(identity)
    }

    /// `ENOENT` if `dir` is another directory.
    pub(super) fn confirm(&self, dir: BorrowedFd<'_>) -> Result<(), Errno> {
        let now = ask(dir)?;
        let is_same = now.id == self.id
            && (self.birth.is_none() || now.birth == self.birth)
            && (!self.same_mount || now.mount == self.mount);
        if is_same { Ok(()) } else { Err(Errno::NOENT) }
    }

    fn is_young(&self) -> bool {
        let since_1970 =
            |(seconds, nanoseconds): (i64, u32)| Some(Duration::new(seconds.try_into().ok()?, nanoseconds));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok();
        let (Some(birth), Some(now)) = (self.birth.and_then(since_1970), now) else { return false };
        birth.abs_diff(now) <= TICK
    }
}

/// Whether the file system stamps a directory's birth by this machine's clock and never changes it. Overlayfs changes it when it
/// copies the directory up. A server tells what it likes: Samba can take it from the time of the last change.
///
/// These are trusted, and no others: one too many would lose directories that nobody has moved, while one too few loses only
/// the defence against another directory with the freed inode number. vfat and exfat need none: they count their numbers up.
#[cold]
fn fixes_births(dir: BorrowedFd<'_>) -> bool {
    let trusted = [FileSystem::EXT4, FileSystem::XFS, FileSystem::BTRFS, FileSystem::F2FS, FileSystem::TMPFS];
    FileSystem::of(dir).is_ok_and(|file_system| trusted.contains(&file_system))
}

/// A mount: its number, or before Linux 5.8 that of its device, which bind mounts of one file system share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mount {
    Id(u64),
    Device(u32, u32),
}

impl Mount {
    pub(super) fn of(dir: BorrowedFd<'_>) -> Result<Self, Errno> {
        Ok(ask(dir)?.mount)
    }
}

/// All that the kernel tells.
#[cold]
fn ask(dir: BorrowedFd<'_>) -> Result<Identity, Errno> {
    let wanted = StatxFlags::INO | StatxFlags::BTIME | StatxFlags::MNT_ID;
    match retry_on_intr(|| statx(dir, c"", AtFlags::EMPTY_PATH, wanted)) {
        Ok(stat) => {
            let has = |field: StatxFlags| stat.stx_mask & field.bits() != 0;
            let device = (stat.stx_dev_major, stat.stx_dev_minor);
            let birth = has(StatxFlags::BTIME).then_some((stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec));
            let mount =
                if has(StatxFlags::MNT_ID) { Mount::Id(stat.stx_mnt_id) } else { Mount::Device(device.0, device.1) };
            Ok(Identity { id: FileId { device, ino: stat.stx_ino }, birth, mount, same_mount: false })
        }
        // Before Linux 4.11, and under some seccomp filters.
        Err(Errno::NOSYS | Errno::PERM) => {
            let stat = retry_on_intr(|| fstat(dir))?;
            let device = (major(stat.st_dev), minor(stat.st_dev));
            let mount = Mount::Device(device.0, device.1);
            Ok(Identity { id: FileId { device, ino: stat.st_ino }, birth: None, mount, same_mount: false })
        }
        Err(errno) => Err(errno),
    }
}
