//! `Spare`: whether the last descriptors of the process are left to the program. It does not know
//! what a descriptor is open for.
//!
//! A new descriptor gets the lowest free number, so one with a high number shows that few remain.

use super::options::MIN_OPEN;
use rustix::fd::{AsRawFd, BorrowedFd, RawFd};
use rustix::io::fcntl_dupfd_cloexec;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// The number of descriptors that a walk leaves to its program.
pub(crate) const SPARE_COUNT: u16 = 8;
/// The first number that is asked about. Under a limit of less than 20, the walk closes levels only
/// when a descriptor is refused.
const FIRST_ASKED: RawFd = 12;
/// The number that is tried first. Up to this number, no table of descriptors grows.
const FIRST_TRIED: RawFd = 63;

/// The number of descriptors below which threads share them out before they start.
const FEW: RawFd = 256;

/// The numbers that leave descriptors to the program.
#[derive(Debug)]
pub(crate) struct Spare {
    /// Numbers below this one are known to leave enough.
    end: AtomicI32,
}

impl Spare {
    pub(crate) const fn new() -> Self {
        Self { end: AtomicI32::new(FIRST_ASKED) }
    }

    /// Returns `true` if `fd`, which was just opened, is one of the last that the process may open.
    #[inline]
    pub(crate) fn is_taken_by(&self, fd: BorrowedFd<'_>) -> bool {
        fd.as_raw_fd() >= self.end.load(Relaxed) && !self.is_left_by(fd)
    }

    #[cold]
    fn is_left_by(&self, fd: BorrowedFd<'_>) -> bool {
        let least = fd.as_raw_fd().saturating_add(RawFd::from(SPARE_COUNT));
        let ample = least.saturating_add(fd.as_raw_fd()).max(FIRST_TRIED);
        let may_open = |number: &RawFd| fcntl_dupfd_cloexec(fd, *number).is_ok();
        let Some(number) = [ample, least].into_iter().find(may_open) else { return false };
        self.end.store(number - RawFd::from(SPARE_COUNT) + 1, Relaxed);
        true
    }
}

/// Returns the number of threads, at most `threads`, and of directories that each may hold open, at
/// most `max_open`, if the process may open few files. `fd` has the lowest number that was free.
pub(crate) fn divide(fd: BorrowedFd<'_>, threads: usize, max_open: usize) -> Option<[usize; 2]> {
    let is_free = |number: &RawFd| fcntl_dupfd_cloexec(fd, *number).is_ok();
    if is_free(&(FEW - 1)) {
        return None;
    }
    let last = (fd.as_raw_fd()..FEW).rfind(is_free).unwrap_or(fd.as_raw_fd());
    let count = last - fd.as_raw_fd() - RawFd::from(SPARE_COUNT);
    let count = usize::try_from(count).unwrap_or(0);
    let threads = threads.min(count / MIN_OPEN).max(1);
    Some([threads, max_open.min(count / threads).max(MIN_OPEN)])
}
