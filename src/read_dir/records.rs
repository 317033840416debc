//! `Records`: reads the kernel's records of a directory into memory, batch by batch, up to the end.

use super::buffer::Buffer;
use super::mount::Mount;
use rustix::fd::BorrowedFd;
use rustix::fs::{RawDir, RawDirEntry, SeekFrom};
use rustix::io::{Errno, retry_on_intr};
use std::mem::MaybeUninit;

/// The number of bytes before the name in a record: `d_ino`, `d_off`, `d_reclen`, `d_type`.
pub(crate) const HEADER: usize = 8 + 8 + 2 + 1;
/// The alignment of a record, which is its header, the name and a NUL, rounded up.
const RECORD_ALIGN: usize = 8;
/// The size of a record with a name of up to 4 bytes.
pub(crate) const MIN_RECORD: usize = (HEADER + 4 + 1).next_multiple_of(RECORD_ALIGN);
/// The size of a record with a name of 4095 bytes. See [`Buffer::MIN_CAPACITY`].
pub(crate) const MAX_RECORD: usize = (HEADER + 4095 + 1).next_multiple_of(RECORD_ALIGN);
const _: () = assert!(MIN_RECORD == 24 && MAX_RECORD == 4120 && Buffer::MIN_CAPACITY > MAX_RECORD);

/// The records of one directory, in memory that holds one batch.
pub(crate) struct Records<'a> {
    raw: RawDir<'a, BorrowedFd<'a>>,
    pub(crate) mount: Mount,
    /// The highest address at which a record can end and leave room in the memory for the largest
    /// one.
    room_end: usize,
    last: Last,
}

/// The phase of reading a directory. The reader keeps it, because its memory may change from batch
/// to batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing was read since the descriptor was opened or rewound.
    Fresh,
    #[default]
    Reading,
    /// The first batch was empty: the directory is empty and has no dots, or the position was at
    /// the end.
    Empty,
    /// The kernel returned no more records, or an error that was reported.
    Ended,
    /// The kernel returned `ENOENT`.
    Removed,
    /// Reading has failed, and the error was not reported.
    Failed(Errno),
}

impl Phase {
    /// Returns `true` if more may follow.
    #[inline(always)]
    pub(crate) fn is_reading(self) -> bool {
        matches!(self, Self::Fresh | Self::Reading)
    }

    /// Returns the error, which is reported by the caller, once.
    #[inline(always)]
    pub(crate) fn take_error(&mut self) -> Result<(), Errno> {
        if let Self::Failed(errno) = *self {
            *self = Self::Ended;
            return Err(errno);
        }
        Ok(())
    }
}

/// The last record, which may be a dot. The default stands for no record, because 0 marks no end.
#[derive(Clone, Copy, Default)]
struct Last {
    cookie: u64,
    /// The address of the NUL after its name. The record ends there, rounded up.
    nul: usize,
}

impl Last {
    /// Returns the address at which the record ends.
    fn end_address(self) -> usize {
        (self.nul | (RECORD_ALIGN - 1)) + 1
    }

    /// Returns `true` if the directory ends with this record, provided that its batch does.
    ///
    /// Where the compiler knows that no cookie marks the end, it inlines this, and no call is left.
    /// Elsewhere the two calls make it too long to inline. The same condition in the caller, or
    /// inlined, costs 3 to 12 instructions an entry. So does `&Records` for the argument: all of
    /// the reader would stay in memory.
    #[cold]
    fn is_end(self, mount: Mount, room_end: usize) -> bool {
        mount.end_cookie.is_some() && self.has(mount) && self.leaves_room(room_end)
    }

    #[cold]
    #[inline(never)]
    fn has(self, mount: Mount) -> bool {
        mount.end_cookie.is_some_and(|end| end.is(self.cookie))
    }

    /// Returns `true` if the largest record fits after this one. Otherwise the batch may have
    /// ended because the next record did not fit.
    #[cold]
    #[inline(never)]
    fn leaves_room(self, room_end: usize) -> bool {
        self.end_address() <= room_end
    }
}

impl<'a> Records<'a> {
    /// Reads `dir` from its current position into `memory` of at least [`Buffer::MIN_CAPACITY`]
    /// bytes.
    #[inline]
    pub(crate) fn new(
        dir: BorrowedFd<'a>,
        memory: &'a mut [MaybeUninit<u8>],
        mount: Mount,
    ) -> Self {
        let room_end = memory.as_ptr_range().end as usize - MAX_RECORD;
        let (raw, last) = (RawDir::new(dir, memory), Last::default());
        Self { raw, mount, room_end, last }
    }

    /// Returns the next record, for which it calls `getdents64` if the batch is used up. Returns
    /// `None` for a dot, for `EINTR` (call again), and at the end or an error, which `phase` then
    /// says.
    #[inline(always)]
    pub(crate) fn next_record(&mut self, phase: &mut Phase) -> Option<RawDirEntry<'_>> {
        *phase = match self.raw.next() {
            Some(Ok(record)) => {
                let name = record.file_name().to_bytes();
                // The length first, and before `last` is set: 7 instructions fewer an entry.
                let is_dot = name.len() <= 2 && matches!(name, b"." | b"..");
                if !name.is_empty() {
                    self.last = Last {
                        cookie: record.next_entry_cookie(),
                        nul: name.as_ptr_range().end as usize,
                    };
                    return (!is_dot).then_some(record);
                }
                Phase::Failed(Errno::IO)
            }
            None if *phase == Phase::Fresh && self.last.nul == 0 => Phase::Empty,
            None => Phase::Ended,
            Some(Err(Errno::INTR)) => return None,
            Some(Err(Errno::NOENT)) => Phase::Removed,
            Some(Err(errno)) => Phase::Failed(errno),
        };
        None
    }

    /// Returns `true` at the end, which the cookie may say before the kernel does.
    #[inline]
    pub(crate) fn has_ended(&self, phase: Phase) -> bool {
        !phase.is_reading()
            || self.raw.is_buffer_empty() && self.last.is_end(self.mount, self.room_end)
    }

    /// Returns `true` if there has been a record since the beginning or the last
    /// [`seek`](Self::seek).
    pub(crate) fn has_begun(&self) -> bool {
        self.last.nul != 0
    }

    /// Returns `true` if the batch is at its end: the next record would overwrite it. Before the
    /// first record there is no batch.
    pub(crate) fn is_used_up(&self) -> bool {
        self.raw.is_buffer_empty() && self.has_begun()
    }

    /// Returns the address at which the last record ends, if there was one.
    pub(crate) fn end_address(&self) -> Option<usize> {
        self.has_begun().then(|| self.last.end_address())
    }

    /// Sets the position of `dir` to `cookie`, and drops the remaining records of the batch. After
    /// an error nothing has changed.
    #[inline]
    pub(crate) fn seek(
        &mut self,
        dir: BorrowedFd<'_>,
        phase: &mut Phase,
        cookie: u64,
    ) -> Result<(), Errno> {
        retry_on_intr(|| rustix::fs::seek(dir, SeekFrom::Start(cookie)))?;
        while !self.raw.is_buffer_empty() {
            self.raw.next();
        }
        self.last = Last::default();
        *phase = if cookie == 0 { Phase::Fresh } else { Phase::Reading };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Last, MAX_RECORD, Mount, Phase, Records};
    use crate::{Buffer, Entries};
    use rustix::fd::AsFd;
    use std::fs::File;
    use tempfile::TempDir;

    fn with_files(names: &[&str]) -> TempDir {
        let dir = tempfile::tempdir().unwrap();
        for name in names {
            File::create_new(dir.path().join(name)).unwrap();
        }
        dir
    }

    /// The end cookie of another file system is an ordinary cookie here.
    #[test]
    #[cfg_attr(miri, ignore = "reads a directory")]
    fn wrong_cookie_inside_a_batch_is_not_the_end() {
        let made = with_files(&["a", "b", "c"]);
        let dir = crate::open(made.path()).unwrap();
        let (mut buffer, mut cookies) = (Buffer::new(), vec![0]);
        let mut entries = Entries::new(dir.as_fd(), &mut buffer);
        while let Some(entry) = entries.next().unwrap() {
            cookies.push(entry.cookie());
        }
        for cookie in cookies {
            let dir = crate::open(made.path()).unwrap();
            let mut entries = Entries::new(dir.as_fd(), &mut buffer);
            entries.records.mount = Mount::made_up(cookie);
            assert_eq!(entries.count().unwrap(), 3, "end cookie {cookie}");
        }
    }

    /// A batch ends early if the next record does not fit.
    #[test]
    #[cfg_attr(miri, ignore = "reads a directory")]
    fn end_cookie_counts_only_with_room_for_largest_record() {
        let made = with_files(&["file"]);
        let mut buffer = Buffer::new();
        let start = buffer.memory().as_ptr().addr();
        // Reads one batch. Returns its last record, and whether that is the end.
        let mut read = |len: usize, mount| {
            let dir = crate::open(made.path()).unwrap();
            let mut phase = Phase::Reading;
            let mut records = Records::new(dir.as_fd(), &mut buffer.memory()[..len], mount);
            while !records.is_used_up() {
                records.next_record(&mut phase);
            }
            (records.last, records.has_ended(phase))
        };
        let (Last { cookie, .. }, has_ended) = read(Buffer::MIN_CAPACITY, Mount::PLAIN);
        assert!(!has_ended, "an end without a cookie");
        let mount = Mount::made_up(cookie);
        let used = read(Buffer::MIN_CAPACITY, mount).0.end_address() - start;
        for (spare, expected) in
            [(MAX_RECORD - 1, false), (MAX_RECORD, true), (MAX_RECORD + 1, true)]
        {
            assert_eq!(read(used + spare, mount).1, expected, "{spare} bytes are left");
        }
        assert!(
            !read(used + MAX_RECORD, Mount::made_up(cookie.wrapping_add(1))).1,
            "another cookie"
        );
    }
}
