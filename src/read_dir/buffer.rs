//! `Buffer`: the reusable memory that `getdents64` writes to, and the sizes that it may have. It
//! does not know what is written.

use std::fmt;
use std::mem::MaybeUninit;

/// Reusable memory for [`Entries`](crate::Entries), which the kernel writes directory entries to.
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
/// One buffer serves any number of directories, one after another. One buffer also serves a whole
/// tree, if each directory is read to its end before the next one is opened. Two directories cannot
/// be read into one buffer at the same time, because [`Entries`](crate::Entries) borrows the
/// buffer.
///
/// # Performance
///
/// A buffer is one allocation, which never grows and is not filled with zeros. If the allocation is
/// refused, the process aborts, in the same way as with a `Vec`.
pub struct Buffer(
    /// The memory. A `Box` must not move while [`ReadDir`](crate::ReadDir) borrows from it, but a
    /// `Vec` may.
    Vec<MaybeUninit<u8>>,
);

impl Buffer {
    /// The least capacity: 8 KiB, which is enough for every record.
    ///
    /// A record takes at most 4,120 bytes, because FUSE delivers names of up to 4,095 bytes. If the
    /// next record does not fit into a buffer, most file systems answer `EINVAL`, but FUSE silently
    /// ends the directory. CIFS loses files even with 4 KiB
    /// ([golang/go#24015](https://github.com/golang/go/issues/24015)).
    pub const MIN_CAPACITY: usize = 8 * 1024;

    /// The default capacity: 32 KiB, the same as in glibc's `readdir`. 32 KiB have room for 1,000
    /// to 1,300 entries of `/proc`.
    ///
    /// On local file systems and NFS, a larger buffer is not faster. On FUSE, a larger buffer helps
    /// if each request waits for a server. On Linux 6.18, 20,000 names take 21 requests with 32
    /// KiB, and 2 with 1 MiB. Older kernels request less at once.
    pub const DEFAULT_CAPACITY: usize = 32 * 1024;

    /// Creates a buffer of [`DEFAULT_CAPACITY`](Self::DEFAULT_CAPACITY) bytes.
    pub fn new() -> Self {
        Self::with_capacity(Self::DEFAULT_CAPACITY)
    }

    /// Creates a buffer of `bytes` bytes, but of at least [`MIN_CAPACITY`](Self::MIN_CAPACITY).
    ///
    /// ```
    /// assert_eq!(lendir::Buffer::with_capacity(1024 * 1024).capacity(), 1024 * 1024);
    /// assert_eq!(lendir::Buffer::with_capacity(0).capacity(), lendir::Buffer::MIN_CAPACITY);
    /// ```
    ///
    /// The greatest capacity is `i32::MAX`, because `getdents64` answers `EINVAL` for larger sizes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self(Box::new_uninit_slice(bytes.clamp(Self::MIN_CAPACITY, i32::MAX as usize)).into_vec())
    }

    /// Returns the capacity in bytes.
    pub fn capacity(&self) -> usize {
        self.0.len()
    }

    /// Returns the memory for the kernel to write to.
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
