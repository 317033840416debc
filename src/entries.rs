//! `Entries`: the lending iterator over an open directory, and its whole contract.

use crate::{Buffer, EndMarker, Entry};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{RawDir, SeekFrom};
use rustix::io::{Errno, retry_on_intr};
use std::mem::MaybeUninit;
use std::{fmt, io, ptr};

/// A lending iterator over an open directory: each [`Entry`] borrows its name from the [`Buffer`] until the next turn.
///
/// It is not an [`Iterator`], which cannot lend: use `while let`, not `for`, and copy what must stay instead of `collect`.
/// It borrows the descriptor and the buffer and owns neither, so the descriptor stays usable, for
/// [`openat`](crate::openat) above all, while an entry lives.
///
/// # What holds
///
/// - `.` and `..` are skipped, wherever the file system puts them, even if it doubles or forgets them.
/// - Every other entry is yielded as the kernel returned it, once for each time the kernel returned it: `d_ino` 0, any
///   `d_type`, any cookie, names that are not UTF-8.
/// - **Fused**: after the end, and after an error, [`next`](Self::next) returns `Ok(None)` without a system call, until
///   [`rewind`](Self::rewind) or [`seek`](Self::seek).
/// - Entries that the kernel returned before an error are yielded before it.
/// - `EINTR` is retried: the kernel keeps the position. So a signal does not end a read that hangs on a network or FUSE
///   server; only the server does, or the end of the process.
/// - `ENOENT` is an end, as in glibc: the directory was removed, or the process of a `/proc/PID` directory is gone.
///   [`removed`](Self::removed) distinguishes this end, because the entries read may then not be all.
/// - The position belongs to the open file description: two `Entries` on one descriptor, or on `dup`s of it, share one
///   position. After an `Entries` is dropped midway, the next one on that descriptor begins after the last entry that was
///   *fetched*; to go on after the last one *yielded*, [`seek`](Self::seek) to its [`cookie`](Entry::cookie).
///
/// # What it costs
///
/// One `getdents64` for each buffer filled and one that finds no more, which an [`EndMarker`] saves; no allocation. A
/// record takes 24 bytes of the buffer for a name of up to 4 bytes, 32 for one of up to 12, 40 for one of up to 20.
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
/// Two entries cannot live at once, because the second may overwrite the first one's name:
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
    /// Its path, where it is known.
    above: &'a [u8],
    /// How many levels its entries are below the root of a walk.
    depth: usize,
    marker: EndMarker,
    /// A record that ends at or before this address leaves room in the buffer for the largest one.
    room_until: usize,
    last: Last,
    state: State,
}

/// What is kept of the last record, dots included. The default stands for no record: 0 is no marker.
#[derive(Clone, Copy, Default)]
struct Last {
    cookie: u64,
    /// The address of the NUL after its name. The record ends there, rounded up.
    nul: usize,
}

impl Last {
    #[inline]
    fn is_none(self) -> bool {
        self.nul == 0
    }

    /// The address at which the record ends.
    #[inline]
    fn end(self) -> usize {
        (self.nul + 1).next_multiple_of(RECORD_ALIGN)
    }

    /// Whether the directory ends with this record, if its batch does.
    ///
    /// Inlined, it would be computed for every entry. With `&Entries` for its argument, all of `Entries` would stay in memory.
    /// Either costs some 10 instructions an entry.
    #[cold]
    #[inline(never)]
    fn is_end(self, marker: EndMarker, room_until: usize) -> bool {
        marker.is(self.cookie) && self.end() <= room_until
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Reading,
    /// The kernel had no more, or answered with an error.
    Ended,
    /// The kernel answered `ENOENT`.
    Removed,
}

/// A record is `d_ino`, `d_off`, `d_reclen`, `d_type` (19 bytes), the name and its NUL, rounded up to 8.
const RECORD_ALIGN: usize = 8;
/// With a name of 4095 bytes. See [`Buffer::MIN_CAPACITY`].
const MAX_RECORD: usize = (19 + 4095 + 1usize).next_multiple_of(RECORD_ALIGN);
const _: () = assert!(MAX_RECORD == 4120 && Buffer::MIN_CAPACITY > MAX_RECORD);

/// A descriptor that is borrowed for `'a`: a reference to anything that is [`AsFd`], or a [`BorrowedFd`].
///
/// With it, [`Entries::new`] takes both, and a function that is handed a `BorrowedFd` can return the iterator:
///
/// ```
/// use lendir::{Buffer, Entries};
/// use std::os::fd::BorrowedFd;
///
/// fn scan<'a>(dir: BorrowedFd<'a>, buffer: &'a mut Buffer) -> Entries<'a> {
///     Entries::new(dir, buffer)
/// }
/// ```
///
/// It is sealed: no other type implements it.
pub trait BorrowFd<'a>: sealed::Sealed {
    /// The descriptor. Costs: nothing.
    fn borrow_fd(self) -> BorrowedFd<'a>;
}

mod sealed {
    use rustix::fd::{AsFd, BorrowedFd};

    pub trait Sealed {}
    impl<Fd: AsFd + ?Sized> Sealed for &Fd {}
    impl<Fd: AsFd + ?Sized> Sealed for &mut Fd {}
    impl Sealed for BorrowedFd<'_> {}
}

impl<'a, Fd: AsFd + ?Sized> BorrowFd<'a> for &'a Fd {
    #[inline]
    fn borrow_fd(self) -> BorrowedFd<'a> {
        self.as_fd()
    }
}

impl<'a, Fd: AsFd + ?Sized> BorrowFd<'a> for &'a mut Fd {
    #[inline]
    fn borrow_fd(self) -> BorrowedFd<'a> {
        let shared: &'a Fd = self;
        shared.as_fd()
    }
}

impl<'a> BorrowFd<'a> for BorrowedFd<'a> {
    #[inline]
    fn borrow_fd(self) -> BorrowedFd<'a> {
        self
    }
}

impl<'a> Entries<'a> {
    /// Reads `dir` from its current position, which is the beginning if it has just been opened.
    ///
    /// **A second reading of one descriptor is empty, without an error**, because the first one left it at the end:
    /// [`rewound`](Self::rewound) reads from the beginning.
    ///
    /// Costs: nothing; the first system call is that of [`next`](Self::next).
    #[inline]
    pub fn new(dir: impl BorrowFd<'a>, buffer: &'a mut Buffer) -> Self {
        Self::in_memory(dir.borrow_fd(), buffer.memory())
    }

    /// In memory of at least [`Buffer::MIN_CAPACITY`] bytes.
    #[inline]
    fn in_memory(dir: BorrowedFd<'a>, memory: &'a mut [MaybeUninit<u8>]) -> Self {
        let room_until = memory.as_ptr_range().end as usize - MAX_RECORD;
        let records = RawDir::new(dir, memory);
        Self {
            records,
            dir,
            above: b"",
            depth: 0,
            marker: EndMarker::NONE,
            room_until,
            last: Last::default(),
            state: State::Reading,
        }
    }

    /// Reads `dir` from its beginning, whatever its position: [`new`](Self::new) and [`rewind`](Self::rewind).
    ///
    /// ```
    /// use lendir::{Buffer, Entries, Listing};
    ///
    /// let dir = lendir::open("/sys/class")?;
    /// let (mut buffer, mut listing) = (Buffer::new(), Listing::new());
    /// for _ in 0..2 {
    ///     listing.read(Entries::rewound(&dir, &mut buffer)?)?;
    ///     assert!(!listing.is_empty());
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// Costs: one `lseek`.
    ///
    /// # Errors
    ///
    /// Those of [`seek`](Self::seek).
    #[inline]
    pub fn rewound(dir: impl BorrowFd<'a>, buffer: &'a mut Buffer) -> io::Result<Self> {
        let mut entries = Self::new(dir, buffer);
        entries.rewind()?;
        Ok(entries)
    }

    /// Takes the cookie `marker` as the end, and leaves out the `getdents64` that would confirm it.
    ///
    /// The marker must be [that](EndMarker::of) of this directory's own file system: on another one, its cookie can come
    /// in the middle. It is believed only on the last record of a batch, and only if that batch left room for the largest
    /// record (4120 bytes): otherwise the next record may simply not have fitted. A batch that ends early because a signal
    /// is pending needs no such care: its last cookie is not the marker.
    #[inline]
    pub fn with_end_marker(mut self, marker: EndMarker) -> Self {
        self.marker = marker;
        self
    }

    /// The next entry, or `None` at the end.
    ///
    /// Made for `while let Some(entry) = entries.next()? {`, where an error cannot be mistaken for the end.
    ///
    /// Costs: at most one `getdents64`, when every entry in the buffer has been yielded (more only after `EINTR` and for
    /// batches of nothing but dots); no allocation.
    ///
    /// # Errors
    ///
    /// Once, after the entries that came before it, then `Ok(None)`. Those of [getdents64(2)] and of the file system:
    /// `EBADF` for a descriptor that is closed or opened with `O_PATH`, `ENOTDIR` for one that is not a directory, `EIO`,
    /// `ESTALE`, `EINVAL` (`/proc/PID/net` of a zombie), `EACCES` (`/proc/PID/map_files`, after the dots, unless the reading
    /// process, not the one that opened it, may trace the target). An empty name, which only a broken FUSE server sends (as
    /// a name that begins with NUL), is `EIO`: it would stand for the directory itself under `AT_EMPTY_PATH`.
    ///
    /// [getdents64(2)]: https://man7.org/linux/man-pages/man2/getdents.2.html
    #[allow(clippy::should_implement_trait, reason = "`Iterator` cannot lend")]
    #[allow(
        clippy::inline_always,
        reason = "out of line it costs more than the entries of a small directory: see `find`"
    )]
    #[inline(always)]
    pub fn next(&mut self) -> io::Result<Option<Entry<'_>>> {
        self.find(|_| true)
    }

    /// The next entry that is `wanted`, or `None` at the end; those before it are passed over.
    ///
    /// With it a function can return the first match. The borrow checker rejects the same function with [`next`](Self::next)
    /// in a loop of its own.
    ///
    /// ```
    /// use lendir::{Entries, Entry, FileType};
    ///
    /// fn first_link<'e>(entries: &'e mut Entries<'_>) -> std::io::Result<Option<Entry<'e>>> {
    ///     entries.find(|entry| entry.file_type() == FileType::Symlink)
    /// }
    /// ```
    ///
    /// Costs: as [`next`](Self::next), as often as it passes over an entry.
    ///
    /// # Errors
    ///
    /// Those of [`next`](Self::next).
    #[allow(clippy::inline_always, reason = "see below")]
    #[inline(always)]
    pub fn find(&mut self, wanted: impl FnMut(&Entry<'_>) -> bool) -> io::Result<Option<Entry<'_>>> {
        self.find_within::<false>(wanted)
    }

    /// As [`find`](Self::find). With `IN_BATCH`, `None` at the end of a batch too.
    #[allow(clippy::inline_always, reason = "see below")]
    #[inline(always)]
    fn find_within<const IN_BATCH: bool>(
        &mut self,
        mut wanted: impl FnMut(&Entry<'_>) -> bool,
    ) -> io::Result<Option<Entry<'_>>> {
        // Keep the system call in the caller's frame: after a system call, returning from an outer frame mispredicts.
        loop {
            let is_over = if IN_BATCH { !self.is_reading() || self.is_used_up() } else { self.has_ended() };
            if is_over {
                return Ok(None);
            }
            #[cfg(lendir_polonius)]
            let records = &mut self.records;
            // SAFETY:
            // - The pointer is made from `&mut self.records`: it is valid, aligned and unique.
            // - The borrow made from it lives no longer than `&mut self`, and nothing else reaches `self.records` meanwhile:
            //   the record made through it is returned at once, or dropped before the loop turns.
            // The borrow checker rejects the plain borrow because it takes one that is returned on one path to be live on all
            // of them (NLL problem case 3). `RUSTFLAGS="-Zpolonius=next --cfg lendir_polonius" cargo +nightly check`
            // accepts it.
            #[cfg(not(lendir_polonius))]
            #[allow(unsafe_code, clippy::deref_addrof, reason = "`&mut self.records` would be the borrow itself")]
            let records = unsafe { &mut *(&raw mut self.records) };
            match records.next() {
                Some(Ok(record)) => {
                    let name = record.file_name().to_bytes();
                    // The length first, and before `last` is set: 7 instructions fewer an entry.
                    let is_dot = name.len() <= 2 && matches!(name, b"." | b"..");
                    if name.is_empty() {
                        self.state = State::Ended;
                        return Err(Errno::IO.into());
                    }
                    self.last = Last { cookie: record.next_entry_cookie(), nul: name.as_ptr_range().end as usize };
                    let entry = Entry { record, dir: self.dir, above: self.above, depth: self.depth };
                    if !is_dot && wanted(&entry) {
                        return Ok(Some(entry));
                    }
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
    /// Drops the entries left in the buffer and starts again, even after the end or an error. Entries made after the
    /// directory was opened may be seen only from here on (btrfs).
    ///
    /// Costs: one `lseek`, and a step over each record left in the buffer; then `next` calls `getdents64` as for a directory
    /// just opened.
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
    /// Drops the entries left in the buffer and starts again, even after the end or an error. Any number other than 0 or a
    /// cookie of this very directory leads to a place of the file system's choice. On tracefs even its own cookies do.
    ///
    /// Costs: one `lseek`, and a step over each record left in the buffer.
    ///
    /// # Errors
    ///
    /// Those of [lseek(2)]: `EINVAL` for a cookie that the file system refuses, such as one beyond `i64::MAX`; `EBADF`.
    /// After an error the iterator keeps its position and its entries.
    ///
    /// [lseek(2)]: https://man7.org/linux/man-pages/man2/lseek.2.html
    #[doc(alias = "seekdir")]
    #[inline]
    pub fn seek(&mut self, cookie: u64) -> io::Result<()> {
        retry_on_intr(|| rustix::fs::seek(self.dir, SeekFrom::Start(cookie)))?;
        while !self.records.is_buffer_empty() {
            self.records.next();
        }
        self.last = Last::default();
        self.state = State::Reading;
        Ok(())
    }

    /// Counts the entries that are left, and reads them all.
    ///
    /// Costs: what reading them costs, a little less than a loop that looks at each.
    ///
    /// # Errors
    ///
    /// Those of [`next`](Self::next); the count up to the error is lost.
    #[inline]
    pub fn count(&mut self) -> io::Result<u64> {
        let mut count = 0;
        while self.next()?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    /// Whether the end came because the directory itself is gone (`ENOENT`): then the entries read may not be all it had.
    ///
    /// The `task` and `fd` directories of a process that is killed end normally; `ENOENT` appears only once the process has
    /// been reaped.
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

/// For [`Listing`](crate::Listing): reads batches that stay in its own memory.
impl Entries<'_> {
    /// Calls `getdents64` once, and gives each entry of the batch to `take`. Returns how many bytes of `memory` the batch
    /// takes.
    ///
    /// Its records stay in `memory`, which must have at least [`Buffer::MIN_CAPACITY`] bytes. The `Buffer` must have no entries
    /// left: see [`next_left`](Self::next_left). An error ends the reading.
    #[allow(clippy::inline_always, reason = "see `find`")]
    #[inline(always)]
    pub(crate) fn read_batch(&mut self, memory: &mut [u8], mut take: impl FnMut(Entry<'_>)) -> io::Result<usize> {
        let start = memory.as_ptr().addr();
        // SAFETY:
        // - `MaybeUninit<u8>` has the size and alignment of `u8`, and the pointer is made from a unique borrow that the new one
        //   does not outlive.
        // - `memory` stays initialised: only `RawDir` gets the new borrow, and only has the kernel write to it.
        #[allow(unsafe_code)]
        let memory = unsafe { &mut *(ptr::from_mut(memory) as *mut [MaybeUninit<u8>]) };
        let mut batch = Entries { marker: self.marker, ..Entries::in_memory(self.dir, memory) };
        let result = loop {
            match batch.find_within::<true>(|_| true) {
                Ok(Some(entry)) => take(entry),
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        batch.end_by_marker();
        self.last = Last::default();
        self.state = batch.state;
        result.map(|()| if batch.last.is_none() { 0 } else { batch.last.end() - start })
    }

    /// The next entry that is left in the `Buffer`, without a system call.
    #[cold]
    pub(crate) fn next_left(&mut self) -> io::Result<Option<Entry<'_>>> {
        self.end_by_marker();
        self.find_within::<true>(|_| true)
    }

    /// Whether there has been a record since the beginning or the last [`seek`](Self::seek).
    #[inline]
    pub(crate) fn has_begun(&self) -> bool {
        !self.last.is_none()
    }

    /// Whether the end has not come yet.
    #[inline]
    pub(crate) fn is_reading(&self) -> bool {
        self.state == State::Reading
    }

    /// Whether the batch is at its end. If so, `RawDir` would overwrite it. Before the first record there is no batch.
    #[inline]
    fn is_used_up(&self) -> bool {
        self.records.is_buffer_empty() && !self.last.is_none()
    }

    #[inline]
    fn end_by_marker(&mut self) {
        if self.is_reading() && self.has_ended() {
            self.state = State::Ended;
        }
    }
}

impl<'a> Entries<'a> {
    /// Gives the entries the path of their directory, and their depth in a walk.
    #[inline]
    pub(crate) fn with_path(mut self, path: &'a [u8], depth: usize) -> Self {
        self.above = path;
        self.depth = depth;
        self
    }

    /// For the second visit of a [`Dir`](crate::Dir), which has no entries.
    #[inline]
    pub(crate) fn end(&mut self) {
        self.state = State::Ended;
    }

    #[inline]
    fn has_ended(&self) -> bool {
        match self.state {
            State::Reading => self.records.is_buffer_empty() && self.last.is_end(self.marker, self.room_until),
            State::Ended | State::Removed => true,
        }
    }
}

/// The descriptor of the directory.
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
