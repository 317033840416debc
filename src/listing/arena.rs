//! `Arena`: the memory of a `Listing`, which holds the kernel's records and the path of their
//! directory.

use super::span::Span;
use crate::file_type::FileType;
use crate::metadata::Metadata;
use crate::read_dir::buffer::Buffer;
use crate::read_dir::entry::Directory;
use crate::read_dir::mount::Mount;
use crate::read_dir::records::Records;
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, Ordering::Relaxed};
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use std::collections::TryReserveError;
use std::mem::MaybeUninit;
use std::ptr;

/// The records of a listing, and the directory that they are from.
#[derive(Default)]
pub(crate) struct Arena {
    /// The records, in the layout of `struct linux_dirent64`, batch after batch:
    ///
    /// ```text
    /// +-------+-------+----------+--------+--------------+-----+---------+
    /// | d_ino | d_off | d_reclen | d_type |     name     | NUL |         | ...
    /// +-------+-------+----------+--------+--------------+-----+---------+
    ///  8 bytes 8       2          1        ^ Span::start ^ Span::end    ^ a multiple of 8
    /// ```
    ///
    /// All bytes are initialised: they are zero until the kernel writes to them. While
    /// [`Order::Path`](crate::Order::Path) sorts, a `/` replaces the NUL of each directory.
    pub(crate) memory: Vec<u8>,
    /// The path of the directory that was read.
    pub(crate) path: Vec<u8>,
    /// The depth of that directory.
    pub(crate) depth: usize,
    /// The most bytes to read, and whether another thread no longer needs the directory. Both are
    /// checked before each batch, and the latter before each query, so at most one call is under
    /// way.
    pub(crate) limit: Option<(usize, Arc<AtomicBool>)>,
    /// The answers to queries, in the order of their records.
    pub(crate) answers: Vec<Answer>,
}

/// The metadata of an entry, fetched when its batch was read.
pub(crate) struct Answer {
    /// The start of the entry's [`Span`].
    pub(crate) name_start: usize,
    pub(crate) metadata: Metadata,
}

/// The number of bytes from `d_reclen` to the name.
const RECLEN: usize = 3;
/// The number of indices that `d_reclen` can tell apart.
const INDICES: usize = 1 << 16;

/// The least size of the memory that a batch is read into.
pub(crate) const MIN_ROOM: usize = Buffer::MIN_CAPACITY;
/// The size of the first memory of a walk, which holds some 250 names. It grows once a directory
/// has more.
pub(crate) const FIRST_ROOM: usize = 12 * 1024;
/// The size of the first batch of a directory. Each later batch is twice as large, so a server
/// gets few requests.
pub(crate) const FIRST_BATCH: usize = Buffer::DEFAULT_CAPACITY;
/// The size of the largest batches of a directory that is not read whole. A server gets an eighth
/// of the requests of 32 KiB, and larger batches save little more.
pub(crate) const MAX_STREAM_BATCH: usize = 256 * 1024;
/// The size of the largest batches of a directory that is read whole.
pub(crate) const MAX_BATCH: usize = 1024 * 1024;

impl Arena {
    /// Sets the directory that is read next. Fails if memory for its path is refused.
    #[inline]
    pub(crate) fn set_directory(&mut self, directory: Directory<'_>) -> Result<(), Errno> {
        self.path.clear();
        self.path.try_reserve(directory.path.len()).map_err(refused)?;
        self.path.extend_from_slice(directory.path);
        self.depth = directory.depth;
        Ok(())
    }

    /// Returns the number of bytes after the records.
    #[inline]
    pub(crate) fn room(&self, records_end: usize) -> usize {
        self.memory.len() - records_end
    }

    /// Returns an error if another thread no longer needs the directory, or if it is too large.
    #[inline]
    pub(crate) fn check_limit(&self, len: usize) -> Result<(), Errno> {
        match &self.limit {
            Some((max_len, is_over)) if len > *max_len || is_over.load(Relaxed) => {
                Err(Errno::CANCELED)
            }
            _ => Ok(()),
        }
    }

    /// Returns a reader that writes to the `room` bytes after the records.
    #[inline]
    pub(crate) fn records<'a>(
        &'a mut self,
        records_end: usize,
        room: usize,
        dir: BorrowedFd<'a>,
        mount: Mount,
    ) -> Records<'a> {
        let room = &mut self.memory[records_end..][..room];
        // SAFETY:
        // - `MaybeUninit<u8>` has the size and alignment of `u8`. The pointer is made from a unique
        //   borrow, and the new borrow does not outlive that one.
        // - The memory stays initialised: only `RawDir` gets the new borrow, and only the kernel
        //   writes to it.
        #[allow(unsafe_code)]
        let room = unsafe { &mut *(ptr::from_mut(room) as *mut [MaybeUninit<u8>]) };
        Records::new(dir, room, mount)
    }

    /// Returns the type in the record.
    #[inline]
    pub(crate) fn d_type(&self, span: Span) -> FileType {
        FileType::from_d_type(self.memory[span.start() - 1])
    }

    /// Returns the metadata of an entry, if it was fetched.
    #[inline]
    pub(crate) fn metadata(&self, span: Span) -> Option<&Metadata> {
        if self.answers.is_empty() { None } else { self.search_metadata(span.start()) }
    }

    #[inline(never)]
    fn search_metadata(&self, name_start: usize) -> Option<&Metadata> {
        let index = u16::from_ne_bytes(*self.memory[name_start - RECLEN..].first_chunk()?);
        let mut answers = self.answers.get(usize::from(index)..)?.iter().step_by(INDICES);
        Some(&answers.find(|answer| answer.name_start == name_start)?.metadata)
    }

    /// Adds the metadata of the entry whose name starts at `name_start`. Memory is reserved. The
    /// last bits of its index take the place of `d_reclen`, which is not read again. A binary
    /// search instead would take a tenth of the time of the query.
    #[allow(clippy::cast_possible_truncation, reason = "the last bits")]
    pub(crate) fn push_metadata(&mut self, name_start: usize, metadata: Metadata) {
        let index = self.answers.len() as u16;
        self.memory[name_start - RECLEN..][..2].copy_from_slice(&index.to_ne_bytes());
        self.answers.push(Answer { name_start, metadata });
    }
}

/// Returns the error for memory that was refused.
pub(crate) fn refused(_: TryReserveError) -> Errno {
    Errno::NOMEM
}

/// Grows `memory` to at least `len` elements.
#[cold]
pub(crate) fn grow<T: Copy + Default>(memory: &mut Vec<T>, len: usize) -> Result<(), Errno> {
    if len as u64 > Span::MAX_START {
        return Err(Errno::NOMEM);
    }
    if len > memory.len() {
        memory.try_reserve(len - memory.len()).map_err(refused)?; // at least doubles the capacity
        memory.resize(len, T::default());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Arc, Arena, Errno, INDICES, MIN_ROOM, Metadata, Span, grow};
    use crate::listing::Listing;
    use crate::read_dir::records::HEADER;
    use rustix::fd::AsFd;
    use rustix::fs::AtFlags;
    use std::ptr;

    #[test]
    fn room_beyond_the_limit_is_refused() {
        let mut listing = Listing::new().with_limit(MIN_ROOM, Arc::default());
        for used in [0, MIN_ROOM] {
            listing.records_end = used;
            assert!(listing.make_room(MIN_ROOM, [MIN_ROOM; 2]).is_ok(), "{used}");
        }
        listing.records_end = MIN_ROOM + 1;
        assert!(listing.make_room(MIN_ROOM, [MIN_ROOM; 2]).is_err());
    }

    /// More answers than `d_reclen` can tell apart. Every other entry has one.
    #[test]
    #[cfg_attr(miri, ignore = "queries the kernel")]
    fn metadata_is_found_among_many() {
        let root = crate::open("/").unwrap();
        let metadata = Metadata::query(root.as_fd(), c"", AtFlags::EMPTY_PATH).unwrap();
        let name_start = |index: usize| 24 * index + HEADER;
        let count = 4 * INDICES;
        let mut arena = Arena { memory: vec![0; name_start(count)], ..Arena::default() };
        (0..count).step_by(2).for_each(|it| arena.push_metadata(name_start(it), metadata.clone()));
        for index in 0..count {
            let found = arena.metadata(Span::new(name_start(index), 1));
            let place = found.map(|found| ptr::from_ref(found).addr());
            let answer = arena.answers.get(index / 2).filter(|_| index % 2 == 0);
            assert_eq!(place, answer.map(|answer| ptr::from_ref(&answer.metadata).addr()));
        }
    }

    #[test]
    fn memory_that_no_span_can_point_to_is_refused() {
        if let Ok(len) = usize::try_from(Span::MAX_START + 1) {
            assert_eq!(grow(&mut Vec::<u8>::new(), len), Err(Errno::NOMEM));
        }
        assert_eq!(grow(&mut Vec::<u64>::new(), usize::MAX / 8), Err(Errno::NOMEM));
    }
}
