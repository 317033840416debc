//! `Buffer`: the reusable memory that `getdents64` writes to, and the sizes that it may have. It does not know what is written.

use std::fmt;
use std::mem::MaybeUninit;

/// Reusable memory for [`Entries`](crate::Entries), which the kernel writes directory entries to.
///
/// One buffer serves any number of directories, one after the other. It also serves a whole tree, if each directory is read to
/// its end before the next one is opened. Two directories cannot be read into one buffer at the same time, because `Entries`
/// borrows the buffer.
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
/// # Performance
///
/// A buffer is one allocation, which never grows and is never filled with zeros. If the allocation is refused, the process
/// aborts, in the same way as with any `Vec`.
pub struct Buffer(
    /// The memory. A `Box` must not move while [`ReadDir`](crate::ReadDir) borrows from it, but a `Vec` may.
    Vec<MaybeUninit<u8>>,
);

impl Buffer {
    /// The least capacity: 8 KiB, which is twice the size of the largest record.
    ///
    /// A record takes at most 4,120 bytes, because FUSE delivers names of up to 4,095 bytes. If the next record does not fit into
    /// the buffer, most file systems answer `EINVAL`. FUSE silently ends the directory, and CIFS loses files even with 4 KiB
    /// ([golang/go#24015](https://github.com/golang/go/issues/24015)). From this capacity on, every record fits.
    pub const MIN_CAPACITY: usize = 8 * 1024;

    /// The default capacity: 32 KiB, the same as in glibc's `readdir`. It has room for 1,000 to 1,300 entries of `/proc`.
    ///
    /// On local file systems and NFS, a larger buffer reads no faster. FUSE passes the size on to the server (seen on Linux 6.18;
    /// older kernels request less). So if each request waits for the server, a larger buffer helps: with 32 KiB, 20,000 names
    /// take 21 requests, and with 1 MiB they take 2.
    pub const DEFAULT_CAPACITY: usize = 32 * 1024;

    /// Creates a buffer of [`DEFAULT_CAPACITY`](Self::DEFAULT_CAPACITY) bytes.
    pub fn new() -> Self {
        Self::with_capacity(Self::DEFAULT_CAPACITY)
    }

    /// Creates a buffer of `bytes` bytes. The size is clamped to the range from [`MIN_CAPACITY`](Self::MIN_CAPACITY) to `i32::MAX`,
    /// because `getdents64` answers `EINVAL` for larger sizes.
    ///
    /// ```
    /// assert_eq!(lendir::Buffer::with_capacity(1024 * 1024).capacity(), 1024 * 1024);
    /// assert_eq!(lendir::Buffer::with_capacity(0).capacity(), lendir::Buffer::MIN_CAPACITY);
    /// ```
    pub fn with_capacity(bytes: usize) -> Self {
        Self(Box::new_uninit_slice(bytes.clamp(Self::MIN_CAPACITY, i32::MAX as usize)).into_vec())
    }

    /// Returns the size in bytes.
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
