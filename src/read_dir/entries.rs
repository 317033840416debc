//! `Entries`: yields the entries of an open directory, and states the contract of reading. It does
//! not know the path of the directory, nor that there are trees.

use super::buffer::Buffer;
use super::end_marker::EndMarker;
use super::entry::{Directory, Entry, Record};
use super::records::{Phase, Records};
use crate::error::Error;
use rustix::fd::{AsFd, BorrowedFd};
use std::fmt;

/// An iterator over the entries of an open directory. An `Entries` borrows the descriptor and a
/// [`Buffer`], so many directories can be read into the same memory.
///
/// ```
/// use lendir::{Buffer, Entries};
///
/// let proc = lendir::open("/proc")?;
/// let mut buffer = Buffer::new();
/// let mut entries = Entries::new(&proc, &mut buffer);
/// while let Some(entry) = entries.next()? {
///     println!("{}", entry.name().escape_ascii());
/// }
/// # Ok::<(), lendir::Error>(())
/// ```
///
/// An entry is borrowed until the next call to `next`, so there is no `for entry in entries`. The
/// compiler refuses to keep two entries at once, because the second may overwrite the name of the
/// first.
///
/// The descriptor stays usable in the loop, for calls such as [`openat`](crate::openat). An
/// `Entries` does not know the path of the directory. If you need paths, use
/// [`read_dir`](crate::read_dir()) or [`ReadDir::from_fd`](crate::ReadDir::from_fd).
///
/// # Guarantees
///
/// - `.` and `..` are never yielded, wherever the file system lists them, and however often.
/// - Every other entry is yielded unchanged, as often as the kernel returned it. Names need not
///   be UTF-8, and an inode number can be 0.
/// - **Fused**: after the end or an error, [`next`](Self::next) returns `Ok(None)` without a system
///   call, until you call [`rewind`](Self::rewind) or [`seek`](Self::seek).
/// - Entries that the kernel returned before an error are yielded before the error.
/// - `EINTR` is retried. So a signal does not interrupt a call that waits for a network or FUSE
///   server. Such a call ends when the server answers or the process is killed.
/// - `ENOENT` counts as the end of the directory, like in glibc.
///   [`is_removed`](Self::is_removed) then returns `true`.
/// - Two `Entries` on the same descriptor, or on duplicates of it, share one position. If an
///   `Entries` is dropped midway, the next one begins after the last entry that the kernel
///   *returned*. To continue after the last entry that was *yielded*, call [`seek`](Self::seek)
///   with its [`cookie`](Entry::cookie).
///
/// # Performance
///
/// A batch of entries takes one `getdents64`, and the end of the directory takes one more. Nothing
/// is allocated.
///
/// An entry takes 24 bytes of the buffer if its name has up to 4 bytes. With up to 12 bytes it
/// takes 32, and with up to 20 bytes it takes 40.
#[doc(alias("getdents64", "readdir", "read_dir"))]
#[must_use = "iterators are lazy: nothing is read before `next`"]
pub struct Entries<'a> {
    pub(crate) records: Records<'a>,
    pub(crate) phase: Phase,
    pub(crate) directory: Directory<'a>,
}

impl<'a> Entries<'a> {
    /// Returns an iterator over the entries of the open directory `dir`, which reads into `buffer`.
    /// Reading begins at the current position of the descriptor. This function makes no system
    /// call.
    ///
    /// A descriptor that has just been opened is at the beginning. A descriptor that has been read
    /// is at the end, so call [`rewind`](Self::rewind) before you read a directory again.
    ///
    /// `dir` is borrowed. If it is the result of a call, such as [`Dir::fd`](crate::Dir::fd), bind
    /// the result to a variable first.
    pub fn new(dir: &'a (impl AsFd + ?Sized), buffer: &'a mut Buffer) -> Self {
        let directory = Directory { fd: dir.as_fd(), path: b"", depth: 0 };
        Self::of(directory, buffer, EndMarker::NONE)
    }

    /// Returns the entries of `directory`, from the position of its descriptor on.
    #[inline]
    pub(crate) fn of(
        directory: Directory<'a>,
        buffer: &'a mut Buffer,
        end_marker: EndMarker,
    ) -> Self {
        let records = Records::new(directory.fd, buffer.memory(), end_marker);
        Self { records, phase: Phase::Reading, directory }
    }

    /// Returns the next entry, or `None` at the end of the directory.
    ///
    /// Do not write `while let Ok(Some(entry)) = entries.next()`, which rustc suggests: that loop
    /// stops silently at the first error. Write `while let Some(entry) = entries.next()? {`. This
    /// goes for every `next` of this crate.
    ///
    /// # Errors
    ///
    /// Returns an error if [getdents64(2)] fails. The entries that were read before the error are
    /// yielded first. After the error, every call returns `Ok(None)`. The file system can answer
    /// any number, such as:
    ///
    /// - `EBADF`: the descriptor is closed, or was opened with `O_PATH`.
    /// - `ENOTDIR`: the descriptor is not a directory.
    /// - `EIO` or `ESTALE`: a disk or a server failed.
    /// - `EIO`: a broken FUSE server sent an empty name, or a name that begins with NUL. With
    ///   `AT_EMPTY_PATH`, such a name would mean the directory itself.
    /// - `EACCES`: the directory is `/proc/PID/map_files`, and the reading process has no
    ///   permission to trace the process `PID`.
    /// - `EINVAL`: the directory is `/proc/PID/net`, and the process has ended but was not reaped.
    ///
    /// [getdents64(2)]: https://man7.org/linux/man-pages/man2/getdents.2.html
    #[inline(always)]
    pub fn next(&mut self) -> Result<Option<Entry<'_>>, Error> {
        self.find(|_| true)
    }

    /// Returns the next entry, or `None` at the end of the directory and after an error. Calls
    /// `on_error` with that error. There is at most one error, and it comes last.
    #[inline(always)]
    pub fn next_or_report(&mut self, on_error: impl FnOnce(Error)) -> Option<Entry<'_>> {
        self.next().map_err(on_error).unwrap_or(None)
    }

    /// Returns the next entry for which `wanted` returns `true`, or `None` if there is none.
    ///
    /// The search begins after the entry that was yielded last. To look up several names, read a
    /// [`Listing`](crate::Listing) and call [`by_name`](crate::Listing::by_name).
    ///
    /// A function can return the entry that this method returns. The borrow checker rejects the
    /// same function with a loop around [`next`](Self::next).
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
    /// Same as [`next`](Self::next).
    #[inline(always)]
    pub fn find(
        &mut self,
        wanted: impl FnMut(&Entry<'_>) -> bool,
    ) -> Result<Option<Entry<'_>>, Error> {
        let Self { records, phase, directory } = self;
        let entry = |record| Entry { record, directory: *directory, queried: None };
        find(records, phase, || *directory, entry, wanted)
    }

    /// Rewinds to the beginning of the directory, even after the end or an error. Reading a
    /// directory again in this way is cheaper than opening it again.
    ///
    /// ```
    /// use lendir::{Buffer, Entries};
    ///
    /// let fds = lendir::open("/proc/self/fd")?;
    /// let mut buffer = Buffer::new();
    /// let mut entries = Entries::new(&fds, &mut buffer);
    /// for _ in 0..3 {
    ///     entries.rewind()?;
    ///     println!("{} descriptors are open", entries.count()?);
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// On btrfs, entries that were created after the directory was opened are yielded only after a
    /// rewind.
    ///
    /// **Some servers ignore it**, among them 9p servers such as WSL's and some FUSE servers: reading
    /// then goes on where it was, and entries are missing without an error. Open `.` in the directory
    /// and read that descriptor instead, which works everywhere.
    ///
    /// # Errors
    ///
    /// Same as [`seek`](Self::seek).
    #[doc(alias = "rewinddir")]
    #[inline]
    pub fn rewind(&mut self) -> Result<(), Error> {
        self.seek(0)
    }

    /// Sets the position to just after the entry that had this [`cookie`](Entry::cookie).
    /// Reading continues there, even after the end or an error. The entries that remain in the
    /// buffer are dropped.
    ///
    /// ```
    /// use lendir::{Buffer, Entries};
    ///
    /// let proc = lendir::open("/proc")?;
    /// let mut buffer = Buffer::new();
    /// let mut entries = Entries::new(&proc, &mut buffer);
    /// let first = entries.next()?.expect("an entry");
    /// let (name, cookie) = (first.name().to_vec(), first.cookie());
    /// entries.seek(cookie)?;
    /// assert!(entries.next()?.is_some_and(|second| second.name() != name));
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// **A cookie is valid for the descriptor that returned it, until that descriptor is rewound.**
    /// On ramfs and in `/proc/PID/task`, even such a cookie is only a count of entries.
    ///
    /// A server that opens the directory again for each request uses cookies of an earlier
    /// descriptor. If entries were created or removed in between, the file system decides what such
    /// a cookie means:
    ///
    /// - On ext4, xfs and btrfs, and on tmpfs since Linux 6.6, it is the same place, even after a
    ///   new mount.
    /// - On an overlay, in a directory that is merged from several layers, it is a count of
    ///   entries. Each earlier entry that was removed hides a later one, without an error. Each
    ///   earlier entry that was created can repeat an entry.
    /// - On an overlay, in a directory of one layer, it is the same as on that layer.
    /// - On NFS, FUSE and other network file systems, the server decides.
    ///
    /// If you do not know the file system, continue after a name, in the same way as
    /// [a recipe](crate::recipes#serve-a-directory-in-pages) does.
    ///
    /// - If the number is neither 0 nor a cookie of this directory, the file system decides where
    ///   reading continues. On tracefs, this is also true of its own cookies.
    /// - On ext4, do not begin with a seek to the cookie of the last entry: a new descriptor then
    ///   reads nothing, even after a [`rewind`](Self::rewind).
    ///
    /// # Errors
    ///
    /// Returns an error if [lseek(2)] fails. The position and the remaining entries then stay
    /// unchanged.
    ///
    /// - `EINVAL`: the file system refuses the cookie, such as one above `i64::MAX`.
    /// - `EBADF`: the descriptor is closed.
    ///
    /// [lseek(2)]: https://man7.org/linux/man-pages/man2/lseek.2.html
    #[doc(alias = "seekdir")]
    #[inline]
    pub fn seek(&mut self, cookie: u64) -> Result<(), Error> {
        let Self { records, phase, directory } = self;
        records.seek(directory.fd, phase, cookie).map_err(|errno| directory.error(errno))
    }

    /// Returns the number of remaining entries. Reads the directory to its end.
    ///
    /// # Errors
    ///
    /// Same as [`next`](Self::next). After an error, the number of entries before it is lost.
    #[inline]
    pub fn count(&mut self) -> Result<u64, Error> {
        let mut count = 0;
        while self.next()?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    /// Returns `true` if the directory ended because it no longer exists. Then some of its entries
    /// may be missing.
    ///
    /// A directory below `/proc/PID` also ends like this if the process has ended. The directories
    /// `task` and `fd` of a killed process end normally until the process is reaped.
    pub fn is_removed(&self) -> bool {
        self.phase == Phase::Removed
    }

    /// Returns the descriptor of the directory, for `*at` calls.
    ///
    /// Do not read the directory through this descriptor: that changes the position that
    /// [`next`](Self::next) reads from. This is also why `Entries` does not implement [`AsFd`],
    /// which [`Listing::read`](crate::Listing::read) takes.
    #[doc(alias = "as_fd")]
    #[inline]
    pub fn fd(&self) -> BorrowedFd<'a> {
        self.directory.fd
    }
}

/// Finds the next record for which `wanted` returns `true`, as the kind of entry that `entry` makes
/// of it. `directory` is a closure, because the compiler would otherwise load its fields for every
/// entry.
#[inline(always)]
pub(crate) fn find<'e, E>(
    records: &'e mut Records<'_>,
    phase: &mut Phase,
    directory: impl Fn() -> Directory<'e>,
    entry: impl Fn(Record<'e>) -> E,
    mut wanted: impl FnMut(&E) -> bool,
) -> Result<Option<E>, Error> {
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
        match records.next_record(phase) {
            Ok(Some(record)) => {
                let entry = entry(Record::Raw(record));
                if wanted(&entry) {
                    return Ok(Some(entry));
                }
            }
            Ok(None) => {}
            Err(errno) => return Err(directory().error(errno)),
        }
    }
    Ok(None)
}

impl fmt::Debug for Entries<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entries")
            .field("dir", &self.directory.fd)
            .field("phase", &self.phase)
            .finish_non_exhaustive()
    }
}
