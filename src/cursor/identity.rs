//! `Identity`, `FileId`: how a walk recognises a directory, and which mount it is on.

use crate::file_system::FileSystem;
use rustix::fd::BorrowedFd;
use rustix::fs::{AtFlags, StatxFlags, fstat, makedev, statx};
use rustix::io::{Errno, retry_on_intr};
use rustix::time::{ClockId, DynamicClockId, clock_gettime_dynamic};
use std::thread;
use std::time::Duration;

/// A device and an inode number. Two directories that exist at the same time differ in one of them.
pub(crate) type FileId = (u64, u64);

/// The facts by which the walk recognises a directory whose descriptor was closed. A file system
/// may give the inode number to another directory at once, so the birth time is part of the
/// identity where no user can change it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Identity {
    pub(crate) id: FileId,
    /// Seconds since 1970, and nanoseconds. `None` if the file system has no birth time, like
    /// /proc, or [can change it](has_fixed_births), like overlay.
    birth: Option<(i64, u32)>,
    /// The number of the mount or, before Linux 5.8, of the device, which bind mounts of one file
    /// system share.
    pub(crate) mount: u64,
}

impl Identity {
    /// Queries the identity by one system call.
    #[cold]
    pub(crate) fn of(dir: BorrowedFd<'_>) -> Result<Self, Errno> {
        let mask = StatxFlags::INO | StatxFlags::BTIME | StatxFlags::MNT_ID;
        match retry_on_intr(|| statx(dir, c"", AtFlags::EMPTY_PATH, mask)) {
            Ok(stat) => {
                let has = |field: StatxFlags| stat.stx_mask & field.bits() != 0;
                let device = makedev(stat.stx_dev_major, stat.stx_dev_minor);
                let birth = (stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec);
                let birth = has(StatxFlags::BTIME).then_some(birth);
                let mount = if has(StatxFlags::MNT_ID) { stat.stx_mnt_id } else { device };
                Ok(Self { id: (device, stat.stx_ino), birth, mount })
            }
            // Before Linux 4.11, and under some seccomp filters.
            Err(Errno::NOSYS | Errno::PERM) => {
                let stat = retry_on_intr(|| fstat(dir))?;
                Ok(Self { id: (stat.st_dev, stat.st_ino), birth: None, mount: stat.st_dev })
            }
            Err(errno) => Err(errno),
        }
    }

    /// Returns the identity of a directory that is still open, and is about to be closed or shared.
    /// Where births are [fixed](has_fixed_births), no later directory has the same.
    ///
    /// While the clock can stamp the same birth time again, another process can replace the
    /// directory by a twin with the same inode number and birth time. So this [waits](wait_past)
    /// until the next tick of the clock.
    pub(crate) fn lasting(dir: BorrowedFd<'_>) -> Result<Self, Errno> {
        let now = Self::of(dir)?;
        let is_unique = |&(seconds, nanoseconds): &_| {
            let birth = Duration::new(u64::try_from(seconds).unwrap_or_default(), nanoseconds);
            has_fixed_births(dir) && wait_past(birth, read_clock)
        };
        Ok(Self { birth: now.birth.filter(is_unique), ..now })
    }

    /// Returns `ENOENT` if `dir` is another directory. The mount counts under `same_mount` only: a
    /// mount over a directory can have the same root.
    pub(crate) fn confirm(&self, dir: BorrowedFd<'_>, same_mount: bool) -> Result<(), Errno> {
        let now = Self::of(dir)?;
        let is_same = now.id == self.id
            && (self.birth.is_none() || now.birth == self.birth)
            && (!same_mount || now.mount == self.mount);
        if is_same { Ok(()) } else { Err(Errno::NOENT) }
    }
}

/// Waits until no directory can get this birth time any more. Returns `false` if a filter refuses
/// to tell the time.
///
/// The kernel stamps births by the coarse clock, which stands still between two ticks. From Linux
/// 6.13 on, a stamp can be finer and later than that clock, but never earlier than a previous one.
/// So a stamp can repeat only until the coarse clock is past it.
///
/// A birth later than the fine clock was stamped before the clock was set back. It is not waited
/// for.
fn wait_past(birth: Duration, read_clock: impl Fn(ClockId) -> Option<Duration>) -> bool {
    while let (Some(coarse), Some(fine)) =
        (read_clock(ClockId::RealtimeCoarse), read_clock(ClockId::Realtime))
    {
        if !(coarse..=fine).contains(&birth) {
            return true;
        }
        thread::yield_now(); // `sleep` panics where a seccomp filter refuses it
    }
    false
}

/// Returns the time of `clock`, or `None` if there is no vDSO and a seccomp filter refuses the
/// call.
pub(crate) fn read_clock(clock: ClockId) -> Option<Duration> {
    clock_gettime_dynamic(DynamicClockId::Known(clock)).ok()?.try_into().ok()
}

/// Returns `true` if the file system stamps a birth by the clock of this machine and never changes
/// it. Overlayfs changes it when it copies the directory up. A server can send anything: Samba can
/// send the time of the last change.
///
/// Trusting one file system too many loses directories that were not moved. Trusting one too few
/// only loses the defence against another directory with the freed inode number. vfat and exfat
/// count their numbers up, so they need no such defence.
#[cold]
fn has_fixed_births(dir: BorrowedFd<'_>) -> bool {
    let trusted =
        [FileSystem::EXT4, FileSystem::XFS, FileSystem::BTRFS, FileSystem::F2FS, FileSystem::TMPFS];
    FileSystem::of(dir).is_ok_and(|file_system| trusted.contains(&file_system))
}

#[cfg(test)]
mod tests {
    use super::{ClockId, Duration, read_clock, wait_past};
    use std::cell::Cell;

    #[test]
    #[cfg_attr(miri, ignore = "queries the kernel")]
    fn wait_lasts_until_the_clock_is_past_a_birth() {
        let now = || read_clock(ClockId::RealtimeCoarse).unwrap();
        let birth = now();
        assert!(wait_past(birth, read_clock) && now() > birth);
    }

    #[test]
    #[cfg_attr(miri, ignore = "queries the kernel")]
    fn birth_in_the_future_is_not_waited_for() {
        let birth = read_clock(ClockId::Realtime).unwrap() + Duration::from_secs(60);
        assert!(wait_past(birth, read_clock));
    }

    /// At HZ=100 the coarse clock stands still for 10 ms, and may lag by up to 20. Births are
    /// stamped by it, or by the fine one.
    #[test]
    fn wait_outlasts_a_clock_that_lags_by_two_ticks() {
        const TICK: u64 = 10;
        let coarse = |now: u64| (now / TICK - 1) * TICK;
        for (made, age) in [100, 101, 105, 109]
            .into_iter()
            .flat_map(|made| [0, 6, 11, 19, 25].map(|age| (made, age)))
        {
            for birth in [coarse(made), made] {
                let now = Cell::new(made + age);
                // It takes a millisecond to look at both clocks.
                let read_clock = |clock| {
                    let is_fine = clock == ClockId::Realtime;
                    let time = if is_fine { now.replace(now.get() + 1) } else { coarse(now.get()) };
                    Some(Duration::from_millis(time))
                };
                assert!(wait_past(Duration::from_millis(birth), read_clock));
                let waited = now.get() - 1 - made - age;
                let (is_past, was_past) =
                    (coarse(now.get() - 1) > birth, coarse(now.get() - 2) > birth);
                assert!(
                    is_past && (waited == 0 || !was_past),
                    "{birth}, made at {made}: {waited} ms at {age} ms"
                );
            }
        }
    }

    /// The clock is refused from the first call on, or from a later one.
    #[test]
    fn birth_proves_nothing_without_a_clock() {
        for answers in 0..4 {
            let remaining = Cell::new(answers);
            let read_clock =
                |_| (remaining.replace(remaining.get().max(1) - 1) > 0).then_some(Duration::ZERO);
            assert!(!wait_past(Duration::ZERO, read_clock), "after {answers} answers");
        }
    }
}
