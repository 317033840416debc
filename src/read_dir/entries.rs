//! `Entries`: yields the entries of an open directory, and states the contract of reading.

use super::buffer::Buffer;
use super::entry::{Directory, Entry, Record};
use super::mount::Mount;
use super::records::{Phase, Records};
use crate::error::Error;
use rustix::fd::BorrowedFd;

/// An iterator over the entries of an open directory. It borrows the descriptor and a [`Buffer`],
/// so that many directories can be read into the same memory.
///
/// ```
/// use lendir::{Buffer, Entries};
/// use std::os::fd::AsFd;
///
/// let proc = lendir::open("/proc")?;
/// let mut buffer = Buffer::new();
/// let mut entries = Entries::new(proc.as_fd(), &mut buffer);
/// while let Some(entry) = entries.next()? {
///     println!("{}", entry.name().escape_ascii());
/// }
/// # Ok::<(), lendir::Error>(())
/// ```
///
/// The next call to `next` overwrites the entry. The descriptor stays usable in the loop, for calls
/// such as [`openat`](crate::openat), but has no path. If you need paths, use
/// [`ReadDir::from_fd`](crate::ReadDir::from_fd).
///
/// # Guarantees
///
/// - **You get every entry that the kernel returns**, unchanged and as often, no matter how odd its
///   name. Only `.` and `..` are dropped.
/// - **An error comes last**, after the entries that the kernel returned before it.
/// - **Fused**: after the end or an error, [`next`](Self::next) returns `Ok(None)` without a system
///   call, until you call [`rewind`](Self::rewind) or [`seek`](Self::seek).
/// - **`EINTR` is retried.** Only the server's answer or a fatal signal ends a call that waits.
/// - **`ENOENT` is the end of the directory**, like in glibc, and [`is_removed`](Self::is_removed)
///   returns `true`.
/// - **The position belongs to the descriptor**, which shares it with its duplicates, even in a
///   child process after `fork`. Another `Entries` begins after the last entry that the kernel
///   *returned*; to continue after the last one that was *yielded*, [`seek`](Self::seek) to its
///   [`cookie`](Entry::cookie).
///
/// # Performance
///
/// A batch of entries takes one `getdents64`, and the end of the directory one more. Nothing is
/// allocated.
#[doc(alias("getdents64", "readdir", "read_dir", "lending"))]
#[must_use = "iterators are lazy: nothing is read before `next`"]
pub struct Entries<'a> {
    pub(crate) records: Records<'a>,
    pub(crate) phase: Phase,
    pub(crate) directory: Directory<'a>,
}

impl<'a> Entries<'a> {
    /// Makes an iterator over the entries of the open directory `dir`, which reads into `buffer`
    /// from the current position of the descriptor on. It makes no system call.
    ///
    /// A descriptor that has been read is at the end: call [`rewind`](Self::rewind) to read the
    /// directory again.
    #[doc(alias("fdopendir", "BorrowedFd", "AsFd"))]
    #[inline]
    pub fn new(dir: BorrowedFd<'a>, buffer: &'a mut Buffer) -> Self {
        let records = Records::new(dir, buffer.memory(), Mount::PLAIN);
        let directory = Directory { fd: dir, path: b"", depth: 0 };
        Self { records, phase: Phase::Reading, directory }
    }

    /// Advances to the next entry, or returns `None` at the end of the directory.
    ///
    /// **Do not write `while let Ok(Some(entry)) = entries.next()`**, which rustc suggests if you
    /// forget the `?`. That loop stops silently at the first error, and in a walk most of the tree
    /// is missing. Write `while let Some(entry) = entries.next()? {`, or call
    /// [`next_or_report`](Self::next_or_report). This goes for every `next` of this crate.
    ///
    /// # Errors
    ///
    /// The error of [getdents64(2)], after the entries that were read before it; from then on
    /// `Ok(None)`. The file system can answer any number, such as:
    ///
    /// - `EBADF`: the descriptor is closed, or was opened with `O_PATH`.
    /// - `ENOTDIR`: the descriptor is not a directory.
    /// - `EIO` or `ESTALE`: a disk or a server failed, or a server sent an empty name or one that
    ///   begins with NUL.
    /// - `EACCES`: the directory is `/proc/PID/map_files`, and you have no permission to trace the
    ///   process.
    /// - `EINVAL`: the directory is `/proc/PID/net`, and the process has ended but was not reaped.
    ///
    /// [getdents64(2)]: https://man7.org/linux/man-pages/man2/getdents.2.html
    #[inline(always)]
    pub fn next(&mut self) -> Result<Option<Entry<'_>>, Error> {
        self.find(|_| true)
    }

    /// Advances to the next entry, or returns `None` at the end and after an error. `on_error` gets
    /// the error, of which there is at most one, after all entries.
    #[inline(always)]
    pub fn next_or_report(&mut self, on_error: impl FnOnce(Error)) -> Option<Entry<'_>> {
        self.next().map_err(on_error).unwrap_or(None)
    }

    /// Finds the next entry for which `wanted` returns `true`.
    ///
    /// A function can return what it finds. The borrow checker rejects the same function with a
    /// loop around [`next`](Self::next).
    ///
    /// ```
    /// use lendir::{Entries, Entry, Error};
    ///
    /// fn first_hidden<'e>(entries: &'e mut Entries<'_>) -> Result<Option<Entry<'e>>, Error> {
    ///     entries.find(|entry| entry.name().starts_with(b"."))
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// The same as for [`next`](Self::next).
    #[inline(always)]
    pub fn find(
        &mut self,
        wanted: impl FnMut(&Entry<'_>) -> bool,
    ) -> Result<Option<Entry<'_>>, Error> {
        let Self { records, phase, directory } = self;
        find(records, phase, || *directory, wanted)
    }

    /// Goes back to the beginning of the directory, even after the end or an error. That is
    /// cheaper than opening it again.
    ///
    /// **Some servers ignore it**, among them 9p servers such as WSL's and some FUSE servers.
    /// Reading then goes on where it was, and entries are missing without an error. Where that
    /// matters, open `.` in the directory and read that descriptor instead.
    ///
    /// # Errors
    ///
    /// The same as for [`seek`](Self::seek).
    #[doc(alias = "rewinddir")]
    #[inline]
    pub fn rewind(&mut self) -> Result<(), Error> {
        self.seek(0)
    }

    /// Goes to just after the entry that had this [`cookie`](Entry::cookie), even after the end or
    /// an error. The entries that remain in the buffer are dropped.
    ///
    /// ```
    /// use lendir::{Buffer, Entries};
    /// use std::os::fd::AsFd;
    ///
    /// let proc = lendir::open("/proc")?;
    /// let mut buffer = Buffer::new();
    /// let mut entries = Entries::new(proc.as_fd(), &mut buffer);
    /// let first = entries.next()?.expect("an entry");
    /// let (name, cookie) = (first.name().to_vec(), first.cookie());
    /// entries.seek(cookie)?;
    /// assert!(entries.next()?.is_some_and(|second| second.name() != name));
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// A cookie looks like something to store, but **it is valid only for the descriptor that
    /// returned it, until that descriptor is rewound**. To continue on any file system, begin again
    /// after a *name*, like [a recipe](crate::recipes#pages-of-a-directory). With the cookie
    /// of another descriptor, the file system decides:
    ///
    /// - On ext4, xfs and btrfs, and on tmpfs since Linux 6.6, it is the same place, even after a
    ///   new mount. But on ext4, do not begin with the cookie of the last entry: the descriptor
    ///   then reads nothing, even after a [`rewind`](Self::rewind).
    /// - On an overlay, in a directory that is merged from several layers, it counts entries. Each
    ///   earlier one that was removed hides a later one without an error, and each that was created
    ///   can repeat one. The same is true on ramfs and in `/proc/PID/task`, even with the same
    ///   descriptor.
    /// - On NFS, FUSE and other network file systems, and on tracefs, nothing is promised. Servers
    ///   that [ignore `rewind`](Self::rewind) ignore `seek` as well.
    ///
    /// # Errors
    ///
    /// The errors of [lseek(2)]. The position and the remaining entries then stay unchanged.
    ///
    /// - `EINVAL`: the file system refuses the cookie, such as one above `i64::MAX`.
    /// - `EBADF`: the descriptor is closed.
    ///
    /// [lseek(2)]: https://man7.org/linux/man-pages/man2/lseek.2.html
    #[doc(alias("seekdir", "page"))]
    #[inline]
    pub fn seek(&mut self, cookie: u64) -> Result<(), Error> {
        let Self { records, phase, directory } = self;
        records.seek(directory.fd, phase, cookie).map_err(|errno| directory.error(errno))
    }

    /// Counts the entries that remain, by reading the directory to its end.
    ///
    /// # Errors
    ///
    /// The same as for [`next`](Self::next). The count up to the error is lost.
    #[inline]
    pub fn count(&mut self) -> Result<u64, Error> {
        let mut count = 0;
        while self.next()?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    /// Tells whether the directory ended because it no longer exists, as the kernel or a server
    /// said. Some of its entries may be missing then.
    ///
    /// A directory below `/proc/PID` also ends like this if the process has ended; `task` and `fd`
    /// of a killed process do so only once it is reaped.
    pub fn is_removed(&self) -> bool {
        self.phase == Phase::Removed
    }
}

/// Finds the next entry that is `wanted`. `directory` is a closure, because the compiler would
/// otherwise load its fields for every entry.
#[inline(always)]
pub(crate) fn find<'e>(
    records: &'e mut Records<'_>,
    phase: &mut Phase,
    directory: impl Fn() -> Directory<'e>,
    mut wanted: impl FnMut(&Entry<'_>) -> bool,
) -> Result<Option<Entry<'e>>, Error> {
    // Keep the system call in the caller's frame: after a system call, returning from an outer
    // frame mispredicts.
    while !records.has_ended(*phase) {
        #[cfg(lendir_polonius)]
        let records = &mut *records;
        // SAFETY:
        // - The pointer is made from `&mut *records`, so the pointer is valid, aligned and unique.
        // - The new borrow lives no longer than the borrow of `records`, and nothing else uses the
        //   records meanwhile. The record that is read through the new borrow is returned at once,
        //   or dropped before the next turn of the loop. The borrow checker rejects the plain
        //   borrow: if one path returns a borrow, the borrow is considered live on all paths (NLL
        //   problem case 3).
        //   `RUSTFLAGS="-Zpolonius=next --cfg lendir_polonius" cargo +nightly check` accepts the
        //   plain borrow.
        #[cfg(not(lendir_polonius))]
        #[allow(
            unsafe_code,
            clippy::deref_addrof,
            reason = "`&mut *records` would be the borrow itself"
        )]
        let records = unsafe { &mut *(&raw mut *records) };
        if let Some(record) = records.next_record(phase) {
            let entry =
                Entry { record: Record::Raw(record), directory: directory(), queried: None };
            if wanted(&entry) {
                return Ok(Some(entry));
            }
        }
    }
    phase.take_error().map(|()| None).map_err(|errno| directory().error(errno))
}

debug!(Entries<'_>, |entries| dir: entries.directory.fd, phase: entries.phase);
