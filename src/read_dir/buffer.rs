//! `Buffer`: the reusable memory that `getdents64` writes to, and the sizes that it may have.

use std::mem::MaybeUninit;

/// The memory that the kernel writes directory entries to, for [`Entries`](crate::Entries).
///
/// ```
/// use lendir::{Buffer, Entries};
/// use std::os::fd::AsFd;
///
/// let mut buffer = Buffer::new();
/// for path in ["/proc/self/fd", "/proc/self/task"] {
///     let dir = lendir::open(path)?;
///     assert!(Entries::new(dir.as_fd(), &mut buffer).count()? > 0);
/// }
/// # Ok::<(), lendir::Error>(())
/// ```
///
/// One buffer serves any number of directories, one after another. Two directories at the same time
/// need two. It is one allocation, which never grows and is not filled with zeros.
pub struct Buffer(
    /// The memory. A `Box` must not move while [`ReadDir`](crate::ReadDir) borrows from it, but a
    /// `Vec` may.
    Vec<MaybeUninit<u8>>,
);

impl Buffer {
    /// The least capacity: 8 KiB, which holds every name. With less, a long name makes FUSE end the
    /// directory without an error, and CIFS loses files even with 4 KiB
    /// ([golang/go#24015](https://github.com/golang/go/issues/24015)).
    pub const MIN_CAPACITY: usize = 8 * 1024;

    /// The default capacity: 32 KiB, the same as in glibc's `readdir`.
    ///
    /// On a local file system and on NFS, a larger buffer is not faster. On FUSE it is, if each
    /// request waits for a server: on Linux 6.18, 20,000 names take 21 requests with 32 KiB, and 2
    /// with 1 MiB.
    pub const DEFAULT_CAPACITY: usize = 32 * 1024;

    /// Creates a buffer of [`DEFAULT_CAPACITY`](Self::DEFAULT_CAPACITY) bytes.
    pub fn new() -> Self {
        Self::with_capacity(Self::DEFAULT_CAPACITY)
    }

    /// Creates a buffer of `bytes` bytes, but not less than [`MIN_CAPACITY`](Self::MIN_CAPACITY),
    /// nor more than `i32::MAX`, above which `getdents64` answers `EINVAL`.
    pub fn with_capacity(bytes: usize) -> Self {
        Self(Box::new_uninit_slice(Self::clamp(bytes)).into_vec())
    }

    /// Returns the capacity nearest to `bytes` bytes.
    pub(crate) fn clamp(bytes: usize) -> usize {
        bytes.clamp(Self::MIN_CAPACITY, i32::MAX as usize)
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

debug!(Buffer, |buffer| capacity: buffer.0.len());
