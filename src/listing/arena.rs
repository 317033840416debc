//! `Arena`: the memory of a `Listing`, in which the kernel's records stay, and what is known of their directory.

use super::span::Span;
use crate::read_dir::buffer::Buffer;
use crate::read_dir::end_marker::EndMarker;
use crate::read_dir::entry::Directory;
use crate::read_dir::records::{HEADER, Records};
use rustix::fd::BorrowedFd;
use rustix::fs::{FileType, RawMode};
use std::mem::MaybeUninit;
use std::{io, ptr};

#[derive(Default)]
pub(crate) struct Arena {
    /// Records as the kernel wrote them, batch after batch (`struct linux_dirent64`):
    ///
    /// ```text
    /// +-------+-------+----------+--------+--------------+-----+---------+
    /// | d_ino | d_off | d_reclen | d_type |     name     | NUL |         | ...
    /// +-------+-------+----------+--------+--------------+-----+---------+
    ///  8 bytes 8       2          1        ^ Span::start ^ Span::end    ^ a multiple of 8
    /// ```
    ///
    /// All of it is initialised, by zeros before the kernel writes. While [`Order::Path`](crate::Order::Path) sorts, the NUL of
    /// a directory is a `/`.
    pub(crate) memory: Vec<u8>,
    /// Of the directory, as in [`Directory`](crate::read_dir::entry::Directory).
    pub(crate) path: Vec<u8>,
    pub(crate) depth: usize,
    /// How many bytes of records there may be.
    pub(crate) limit: Option<usize>,
}

pub(crate) const MIN_BATCH: usize = Buffer::MIN_CAPACITY;
/// The kernel holds the directory's lock while it writes a batch.
const MAX_BATCH: usize = 32 * 1024;

impl Arena {
    #[inline]
    pub(crate) fn set_directory(&mut self, directory: Directory<'_>) -> io::Result<()> {
        self.path.clear();
        self.path.try_reserve(directory.path.len())?;
        self.path.extend_from_slice(directory.path);
        self.depth = directory.depth;
        Ok(())
    }

    /// The directory that was read, for queries about its entries.
    pub(crate) fn directory<'a>(&'a self, fd: BorrowedFd<'a>) -> Directory<'a> {
        Directory { fd, path: &self.path, depth: self.depth }
    }

    /// The size of the next batch, for which there is memory from `used` on.
    #[inline]
    pub(crate) fn room(&mut self, used: usize) -> io::Result<usize> {
        if self.memory.len() < used + MIN_BATCH {
            self.grow(used + MIN_BATCH)?;
        }
        let room = self.memory.len() - used;
        // A rest too small for another batch is added to this one, so a directory that has once been read to its end does not
        // make the arena grow again, not even with an `EndMarker`.
        Ok(if room < MAX_BATCH + MIN_BATCH { room } else { MAX_BATCH })
    }

    /// Makes the memory at least this long.
    #[cold]
    pub(crate) fn grow(&mut self, len: usize) -> io::Result<()> {
        if self.limit.is_some_and(|limit| len > limit + MIN_BATCH) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        grow(&mut self.memory, len)
    }

    #[inline]
    pub(crate) fn records<'a>(
        &'a mut self,
        used: usize,
        room: usize,
        dir: BorrowedFd<'a>,
        end_marker: EndMarker,
    ) -> Records<'a> {
        let room = &mut self.memory[used..][..room];
        // SAFETY:
        // - `MaybeUninit<u8>` has the size and alignment of `u8`, and the pointer is made from a unique borrow that the new one
        //   does not outlive.
        // - The memory stays initialised: only `RawDir` gets the new borrow, and only has the kernel write to it.
        #[allow(unsafe_code)]
        let room = unsafe { &mut *(ptr::from_mut(room) as *mut [MaybeUninit<u8>]) };
        Records::new(dir, room, end_marker)
    }

    #[inline]
    pub(crate) fn ino(&self, span: Span) -> u64 {
        let bytes = self.memory[span.start() - HEADER..].first_chunk().expect("BUG: not 8 bytes");
        u64::from_ne_bytes(*bytes)
    }

    /// `d_type` is the 4 bits above the permissions in `st_mode`. No type is 15.
    #[inline]
    pub(crate) fn d_type(&self, span: Span) -> FileType {
        FileType::from_raw_mode(RawMode::from(self.memory[span.start() - 1].min(0xf)) << 12)
    }

    #[allow(clippy::cast_possible_truncation, reason = "4 bits")]
    pub(crate) fn set_d_type(&mut self, span: Span, file_type: FileType) {
        self.memory[span.start() - 1] = (file_type.as_raw_mode() >> 12) as u8;
    }
}

/// Makes `memory` at least `len` long. Its capacity doubles, but at most 64 KiB beyond `len` are written to in advance.
#[cold]
pub(crate) fn grow<T: Copy + Default>(memory: &mut Vec<T>, len: usize) -> io::Result<()> {
    if len > memory.len() {
        let len = len + len.min(64 * 1024 / size_of::<T>());
        if len as u64 > Span::MAX_START {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        memory.try_reserve(len - memory.len())?;
        memory.resize(len, T::default());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Arena, MIN_BATCH, Span, grow};
    use std::io;

    #[test]
    fn what_takes_more_than_the_limit_is_refused() {
        let mut arena = Arena { limit: Some(100), ..Arena::default() };
        assert!(arena.grow(100 + MIN_BATCH).is_ok());
        assert_eq!([1, 2].map(|more| arena.grow(100 + MIN_BATCH + more).is_ok()), [false; 2]);
    }

    #[test]
    fn at_most_64_kib_are_written_to_in_advance() {
        let mut memory = Vec::<u64>::new();
        grow(&mut memory, 100_000).unwrap();
        assert_eq!(memory.len(), 100_000 + 8192);
    }

    #[test]
    fn memory_that_no_span_can_point_to_is_refused() {
        if let Ok(len) = usize::try_from(Span::MAX_START + 1) {
            let error = grow(&mut Vec::<u8>::new(), len).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
        }
        let error = grow(&mut Vec::<u64>::new(), usize::MAX / 8).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
    }
}
