//! `Buffer`: the reusable memory that `getdents64` writes to, its least size and the reason for it.

use std::fmt;
use std::mem::MaybeUninit;

/// Memory for `getdents64`: make one, read thousands of directories.
///
/// [`Entries`](crate::Entries) borrows it only while it reads, so one buffer serves any number of directories one after the
/// other, and a whole tree if each level is read to its end before the next is opened.
///
/// Costs: one allocation when it is made, never zeroed and never grown. If it is refused, the process aborts, as with any `Vec`.
///
/// ```
/// use lendir::{Buffer, Entries};
///
/// let mut buffer = Buffer::new();
/// for path in ["/proc/self/fd", "/proc/self/task"] {
///     let dir = lendir::open(path)?;
///     assert!(Entries::new(&dir, &mut buffer).count()? > 0);
/// }
/// # Ok::<(), lendir::Error>(())
/// ```
///
/// Two directories cannot be read into it at once: the compiler refuses it.
pub struct Buffer(
    /// Not a `Box`, which must not move while [`ReadDir`](crate::ReadDir) borrows from it.
    Vec<MaybeUninit<u8>>,
);

impl Buffer {
    /// 8 KiB, twice what the largest record needs.
    ///
    /// A record is at most 4120 bytes long: the kernel refuses names of `PATH_MAX` (4096) bytes and more, and FUSE does give
    /// names of 4095. If the next record does not fit, most file systems answer `EINVAL`, FUSE ends silently, and CIFS loses
    /// files even with 4 KiB ([golang/go#24015](https://github.com/golang/go/issues/24015)). From this size on, no answer
    /// means "buffer too small".
    pub const MIN_CAPACITY: usize = 8 * 1024;

    /// 32 KiB, as in glibc's `readdir`: room for 1000 to 1300 entries of `/proc`. No size from 8 KiB to 1 MiB reads noticeably
    /// faster (`LENDIR_LONG=1 cargo bench -- capacity`).
    pub const DEFAULT_CAPACITY: usize = 32 * 1024;

    /// A buffer of [`DEFAULT_CAPACITY`](Self::DEFAULT_CAPACITY) bytes.
    pub fn new() -> Self {
        Self::with_capacity(Self::DEFAULT_CAPACITY)
    }

    /// A buffer of `bytes` bytes, clamped to the sizes that `getdents64` works with: from
    /// [`MIN_CAPACITY`](Self::MIN_CAPACITY) to `i32::MAX`, above which it answers `EINVAL`.
    pub fn with_capacity(bytes: usize) -> Self {
        Self(Box::new_uninit_slice(bytes.clamp(Self::MIN_CAPACITY, i32::MAX as usize)).into_vec())
    }

    /// The size in bytes.
    pub fn capacity(&self) -> usize {
        self.0.len()
    }

    #[inline]
    pub(crate) fn memory(&mut self) -> &mut [MaybeUninit<u8>] {
        &mut self.0
    }
}

impl Default for Buffer {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer").field("capacity", &self.capacity()).finish()
    }
}
