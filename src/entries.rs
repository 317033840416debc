//! `Entries`: the lending iterator over an open directory, and its whole contract.

use crate::{Buffer, EndMarker, Entry};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{RawDir, SeekFrom};
use rustix::io::{Errno, retry_on_intr};
use std::{fmt, io};

/// A lending iterator over an open directory: each [`Entry`] borrows its name from the [`Buffer`] until the next turn.
///
/// It borrows the descriptor and the buffer and owns neither, so that the descriptor stays usable, for
/// [`openat`](crate::openat) above all, while an entry lives.
///
/// # What holds
///
/// - `.` and `..` are never delivered, wherever the file system puts them, or if it doubles or forgets them.
/// - Every other entry is delivered as the kernel gave it, once for each time the kernel gave it: `d_ino` 0, any `d_type`,
///   any cookie, names that are not UTF-8.
/// - **Fused**: after the end, and after an error, [`next`](Self::next) answers `Ok(None)` without a system call, until
///   [`rewind`](Self::rewind) or [`seek`](Self::seek).
/// - Entries that the kernel returned before an error are delivered before it.
/// - `EINTR` is never seen: the call is repeated, the kernel has kept the position. So a signal does not end a read that
///   hangs on a network or FUSE server; the server does, or the end of the process.
/// - `ENOENT` is an end, as in glibc: the directory was removed, or the process of a `/proc/PID` directory is gone.
///   [`removed`](Self::removed) tells it apart, for what was read may then not be all.
/// - The position belongs to the open file description: two `Entries` on one descriptor, or on `dup`s of it, take turns at
///   the same entries. After an `Entries` is dropped midway, the next one on that descriptor begins after the last entry
///   that was *fetched*; to go on after the last one *seen*, [`seek`](Self::seek) to its [`cookie`](Entry::cookie).
///
/// # What it costs
///
/// One `getdents64` for each buffer filled and one to hear that there is no more, which an [`EndMarker`] saves; no
/// allocation at all. A record takes 24 bytes of the buffer with the name of a PID, 40 with one of 16 bytes.
///
/// ```
/// use lendir::{Buffer, Entries};
///
/// let proc = lendir::open("/proc")?;
/// let mut buffer = Buffer::new();
/// let mut entries = Entries::new(&proc, &mut buffer);
/// while let Some(entry) = entries.next()? {
///     if let Some(pid) = entry.numeric_name() {
///         println!("{pid}");
///     }
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// Two entries cannot live at once, because the second may be read to where the first one's name was:
///
/// ```compile_fail,E0499
/// # use lendir::{Buffer, Entries};
/// # let dir = lendir::open("/proc")?;
/// # let mut buffer = Buffer::new();
/// # let mut entries = Entries::new(&dir, &mut buffer);
/// let first = entries.next()?;
/// let second = entries.next()?; // error: `entries` is still borrowed by `first`
/// drop(first);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// Nor can one be kept beyond its turn:
///
/// ```compile_fail,E0499
/// # use lendir::{Buffer, Entries};
/// # let dir = lendir::open("/proc")?;
/// # let mut buffer = Buffer::new();
/// # let mut entries = Entries::new(&dir, &mut buffer);
/// let mut last = None;
/// while let Some(entry) = entries.next()? {
///     last = Some(entry); // error: kept while `entries` moves on
/// }
/// drop(last);
/// # Ok::<(), std::io::Error>(())
/// ```
#[doc(alias = "getdents64")]
#[doc(alias = "readdir")]
#[doc(alias = "read_dir")]
#[must_use = "iterators are lazy: nothing is read before `next`"]
pub struct Entries<'a> {
    records: RawDir<'a, BorrowedFd<'a>>,
    dir: BorrowedFd<'a>,
    marker: EndMarker,
    /// The address up to which a batch may reach and still leave room for the largest record.
    room_until: usize,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Reading,
    /// The last record carried the end marker: when no more follow it in this batch, it was the last of the directory.
    AtMarker,
    /// The kernel had no more, or answered with an error.
    Ended,
    /// The kernel answered `ENOENT`.
    Removed,
}

/// A name of 4095 bytes, its NUL and the 19 bytes before it, rounded up to 8. See [`Buffer::MIN_CAPACITY`].
const MAX_RECORD: usize = (19 + 4095 + 1usize).next_multiple_of(8);
const _: () = assert!(MAX_RECORD == 4120 && Buffer::MIN_CAPACITY > MAX_RECORD);

impl<'a> Entries<'a> {
    /// Reads `dir` from where it stands, which is its beginning if it has just been opened.
    ///
    /// Costs: nothing; the first system call is that of [`next`](Self::next).
    #[inline]
    pub fn new<Fd: AsFd + ?Sized>(dir: &'a Fd, buffer: &'a mut Buffer) -> Self {
        let dir = dir.as_fd();
        let memory = buffer.memory();
        let room_until = memory.as_ptr_range().end as usize - MAX_RECORD;
        Self { records: RawDir::new(dir, memory), dir, marker: EndMarker::NONE, room_until, state: State::Reading }
    }

    /// Takes the cookie `marker` for the end, and leaves out the `getdents64` that would confirm it.
    ///
    /// The marker must be [that](EndMarker::of) of this directory's own file system: on another, its cookie can stand in
    /// the middle. It is believed only at the end of a batch that left room for the largest record, because a batch also
    /// ends early when a signal is pending.
    #[inline]
    pub fn with_end_marker(mut self, marker: EndMarker) -> Self {
        self.marker = marker;
        self
    }

    /// The next entry, or `None` at the end.
    ///
    /// Made for `while let Some(entry) = entries.next()? {`, where an error cannot be mistaken for the end.
    ///
    /// Costs: at most one `getdents64`, when all that is in the buffer has been lent (`EINTR` and batches of nothing but
    /// dots apart); no allocation.
    ///
    /// # Errors
    ///
    /// Once, after the entries that came before it, then `Ok(None)`. Those of [getdents64(2)] and of the file system:
    /// `EBADF` for a descriptor that is closed or opened with `O_PATH`, `ENOTDIR` for one that is no directory, `EIO`,
    /// `ESTALE`, `EINVAL` (`/proc/PID/net` of a zombie), `EACCES` (`/proc/PID/map_files`, after the dots, unless who reads,
    /// whoever opened it, may trace the process). A name that is empty, which only a broken FUSE server sends (as a name
    /// that begins with NUL), is `EIO`: the name would stand for the directory itself under `AT_EMPTY_PATH`.
    ///
    /// [getdents64(2)]: https://man7.org/linux/man-pages/man2/getdents.2.html
    #[allow(clippy::should_implement_trait, reason = "`Iterator` cannot lend")]
    #[inline]
    pub fn next(&mut self) -> io::Result<Option<Entry<'_>>> {
        // Everything from the system call to the caller's loop is inlined into one frame: behind a system call a `ret` out
        // of a frame entered before it is mispredicted, which costs a small directory more than all of its entries.
        loop {
            match self.state {
                State::Reading => {}
                State::AtMarker if !self.records.is_buffer_empty() => {}
                _ => return Ok(None),
            }
            #[cfg(lendir_polonius)]
            let records = &mut self.records;
            // SAFETY: the pointer is to `self.records`: valid, and borrowed by nobody else for as long as the lifetime of
            // `&mut self`, which is what is given out. A record is either returned under that lifetime at once, or no
            // longer used when the loop turns. The borrow checker rejects this only because it takes a borrow that is
            // returned on one path for live on all of them (NLL problem case 3).
            // `RUSTFLAGS="-Zpolonius=next --cfg lendir_polonius" cargo +nightly check` accepts it without `unsafe`.
            #[cfg(not(lendir_polonius))]
            #[allow(unsafe_code, clippy::deref_addrof, reason = "`&mut self.records` would be the borrow itself")]
            let records = unsafe { &mut *(&raw mut self.records) };
            match records.next() {
                Some(Ok(record)) => {
                    let name = record.file_name().to_bytes();
                    let is_marked = self.marker.is(record.next_entry_cookie())
                        && name.as_ptr_range().end as usize <= self.room_until;
                    self.state = if is_marked { State::AtMarker } else { State::Reading };
                    if name.len() <= 2 {
                        match name {
                            b"." | b".." => continue,
                            b"" => {
                                self.state = State::Ended;
                                return Err(Errno::IO.into());
                            }
                            _ => {}
                        }
                    }
                    return Ok(Some(Entry { record, dir: self.dir }));
                }
                None => self.state = State::Ended,
                Some(Err(Errno::INTR)) => {}
                Some(Err(Errno::NOENT)) => self.state = State::Removed,
                Some(Err(error)) => {
                    self.state = State::Ended;
                    return Err(error.into());
                }
            }
        }
    }

    /// Goes back to the beginning: the cheap rescan, without open and close.
    ///
    /// Drops what is in the buffer and starts again, even after the end or an error. Entries made after the directory was
    /// opened may be seen only from here on (btrfs).
    ///
    /// Costs: one `lseek`; then `next` calls `getdents64` as for a directory just opened.
    ///
    /// ```
    /// use lendir::{Buffer, Entries};
    ///
    /// let fds = lendir::open("/proc/self/fd")?;
    /// let mut buffer = Buffer::new();
    /// let mut entries = Entries::new(&fds, &mut buffer);
    /// for _ in 0..3 {
    ///     entries.rewind()?;
    ///     while let Some(fd) = entries.next()? {
    ///         assert!(fd.numeric_name().is_some());
    ///     }
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`seek`](Self::seek).
    #[doc(alias = "rewinddir")]
    #[inline]
    pub fn rewind(&mut self) -> io::Result<()> {
        self.seek(0)
    }

    /// Goes to the position after the entry that had this [`cookie`](Entry::cookie).
    ///
    /// Drops what is in the buffer and starts again, even after the end or an error. Any other number than a cookie of
    /// this very directory, or 0, leads to a place of the file system's choice.
    ///
    /// Costs: one `lseek`.
    ///
    /// # Errors
    ///
    /// Those of [lseek(2)]: `EINVAL` for a cookie the file system does not take, above all one beyond `i64::MAX`; `EBADF`.
    /// Then nothing is dropped and the iterator stands where it was.
    ///
    /// [lseek(2)]: https://man7.org/linux/man-pages/man2/lseek.2.html
    #[doc(alias = "seekdir")]
    #[inline]
    pub fn seek(&mut self, cookie: u64) -> io::Result<()> {
        retry_on_intr(|| rustix::fs::seek(self.dir, SeekFrom::Start(cookie)))?;
        while !self.records.is_buffer_empty() {
            self.records.next();
        }
        self.state = State::Reading;
        Ok(())
    }

    /// The number of entries that are left.
    ///
    /// Costs: as reading them, a little less than looking at each.
    ///
    /// # Errors
    ///
    /// As [`next`](Self::next); the count up to there is lost.
    pub fn count(mut self) -> io::Result<u64> {
        let mut count = 0;
        while self.next()?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    /// Whether the end came because the directory itself went away (`ENOENT`): what was read may not be all it had.
    ///
    /// The `task` and `fd` of a process that is killed just end; they are gone only when it has been waited for.
    ///
    /// ```
    /// use lendir::{Buffer, Entries};
    ///
    /// let parent = tempfile::tempdir()?;
    /// let path = parent.path().join("gone");
    /// std::fs::create_dir(&path)?;
    /// let dir = lendir::open(&path)?;
    /// std::fs::remove_dir(&path)?;
    ///
    /// let mut buffer = Buffer::new();
    /// let mut entries = Entries::new(&dir, &mut buffer);
    /// assert!(entries.next()?.is_none());
    /// assert!(entries.removed());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn removed(&self) -> bool {
        self.state == State::Removed
    }
}

/// The directory that is read.
impl AsFd for Entries<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.dir
    }
}

impl fmt::Debug for Entries<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entries")
            .field("dir", &self.dir)
            .field("end_marker", &self.marker)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}
