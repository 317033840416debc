//! `Entries`: yields the entries of an open directory, and states the contract of reading. It does not know the path of the
//! directory, nor that there are trees.

use super::buffer::Buffer;
use super::end_marker::EndMarker;
use super::entry::{Directory, Entry};
use super::entry_state::EntryUpdates;
use super::records::{Phase, Records};
use crate::error::Error;
use rustix::fd::{AsFd, BorrowedFd};
use std::fmt;

/// A lending iterator over an open directory: each [`Entry`] borrows its name from the [`Buffer`] until the next call of
/// `next`.
///
/// It owns neither the buffer nor the descriptor, which stays usable while an entry lives: for [`openat`](crate::openat)
/// above all. It knows no path: entries of [`ReadDir::from_fd`](crate::ReadDir::from_fd) have one.
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
/// Two entries cannot live at once, because the second may overwrite the first one's name: the compiler refuses it.
///
/// # Guarantees
///
/// - `.` and `..` are skipped, wherever the file system puts them, even if it doubles or forgets them.
/// - Every other entry is lent as often as the kernel returned it, and as it did: `d_ino` 0, any `d_type`, any cookie,
///   names that are not UTF-8.
/// - **Fused**: after the end, and after an error, [`next`](Self::next) returns `Ok(None)` without a system call, until
///   [`rewind`](Self::rewind) or [`seek`](Self::seek).
/// - Entries that the kernel returned before an error are lent before it.
/// - `EINTR` is retried. So a signal does not end a read that hangs on a network or FUSE server; only the server does, or the
///   end of the process.
/// - `ENOENT` is an end, as in glibc; [`is_removed`](Self::is_removed) distinguishes it.
/// - The position belongs to the open file description: two `Entries` on one descriptor, or on `dup`s of it, share it. After
///   an `Entries` is dropped midway, the next one on that descriptor begins after the last entry that was *fetched*; to go on
///   after the last one *lent*, [`seek`](Self::seek) to its [`cookie`](Entry::cookie).
///
/// # What it costs
///
/// One `getdents64` for each buffer filled and one that finds no more; no allocation. An
/// entry takes 24 bytes of the buffer for a name of up to 4 bytes, 32 for one of up to 12, 40 for one of up to 20.
#[doc(alias("getdents64", "readdir", "read_dir"))]
#[must_use = "iterators are lazy: nothing is read before `next`"]
pub struct Entries<'a> {
    pub(crate) records: Records<'a>,
    pub(crate) phase: Phase,
    pub(crate) directory: Directory<'a>,
}

impl<'a> Entries<'a> {
    /// Reads `dir` from its current position, which is the beginning if it has just been opened, and the end if it has been
    /// read: [`rewind`](Self::rewind) before a second reading. Makes no system call. `dir` is borrowed: bind what
    /// [`Dir::fd`](crate::Dir::fd) returns to a name first.
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

    /// The next entry, or `None` at the end. The loop is `while let Some(entry) = entries.next()? {`.
    ///
    /// **`while let Ok(Some(entry)) = entries.next()`, which rustc suggests, silently takes an error for the end.** The same
    /// goes for every `next` in this crate.
    ///
    /// Costs: at most one `getdents64`, when every entry in the buffer has been lent (more only after `EINTR` and for
    /// batches of nothing but dots); no allocation.
    ///
    /// # Errors
    ///
    /// Once, after the entries that came before it, then `Ok(None)`. What [getdents64(2)] and the file system can fail with:
    /// `EBADF` for a descriptor that is closed or opened with `O_PATH`, `ENOTDIR` for one that is not a directory, `EIO`,
    /// `ESTALE`, `EINVAL` (`/proc/PID/net` of a zombie), `EACCES` (`/proc/PID/map_files`, after the dots, unless the reading
    /// process, not the one that opened it, may trace the target). An empty name, which only a broken FUSE server sends (as
    /// a name that begins with NUL), is `EIO`: it would stand for the directory itself under `AT_EMPTY_PATH`.
    ///
    /// [getdents64(2)]: https://man7.org/linux/man-pages/man2/getdents.2.html
    #[inline(always)]
    pub fn next(&mut self) -> Result<Option<Entry<'_>>, Error> {
        self.find(|_| true)
    }

    /// The next entry, or `None` at the end and after an error. `on_error` gets that error: at most one, and it comes last.
    #[inline(always)]
    pub fn next_ok(&mut self, on_error: impl FnOnce(Error)) -> Option<Entry<'_>> {
        self.next().map_err(on_error).unwrap_or(None)
    }

    /// The next entry that is `wanted`, or `None` at the end. It goes on from the entry lent last, so to look up several names,
    /// use [`Listing::by_name`](crate::Listing::by_name). Each entry passed over costs a [`next`](Self::next), and the errors
    /// are those of `next`.
    ///
    /// With it a function can return the first match. The borrow checker rejects the same function with [`next`](Self::next)
    /// in a loop of its own.
    ///
    /// ```
    /// use lendir::{Entries, Entry, Error};
    ///
    /// fn first_hidden<'e>(entries: &'e mut Entries<'_>) -> Result<Option<Entry<'e>>, Error> {
    ///     entries.find(|entry| entry.name().starts_with(b"."))
    /// }
    /// ```
    #[inline(always)]
    pub fn find(
        &mut self,
        wanted: impl FnMut(&Entry<'_>) -> bool,
    ) -> Result<Option<Entry<'_>>, Error> {
        let directory = &self.directory;
        find(&mut self.records, &mut self.phase, || *directory, || None, wanted)
    }

    /// Goes back to the beginning, as [`seek`](Self::seek) to 0, with its costs and errors: the cheap rescan, without open and
    /// close. btrfs shows entries made after the directory was opened only from here on.
    #[doc(alias = "rewinddir")]
    #[inline]
    pub fn rewind(&mut self) -> Result<(), Error> {
        self.seek(0)
    }

    /// Goes to the position after the entry that had this [`cookie`](Entry::cookie). Drops the entries left in the buffer and
    /// reads on from there, even after the end or an error.
    ///
    /// **A cookie is good for the descriptor that gave it, until that is rewound.** If others change the directory meanwhile, a
    /// cookie of another descriptor, such as that of an earlier request,
    ///
    /// | on | |
    /// |---|---|
    /// | ext4, xfs, btrfs; tmpfs since Linux 6.6 | leads to the same place, after a new mount too |
    /// | a directory that an overlay merges from several layers | is a count: each entry before it that is removed hides one after it, without an error; each that is made can show one twice |
    /// | an overlay's directory that only one layer has | is as on that layer |
    /// | ramfs, /proc/PID/task | is a count, even for its own descriptor |
    /// | NFS, FUSE and other servers | is what the server makes of it |
    ///
    /// Where the file system is not known, go on after a name: [a recipe](crate::recipes#serve-a-directory-in-pages) does.
    ///
    /// A number that is neither 0 nor a cookie of this directory leads wherever the file system likes. On tracefs, even its own
    /// cookies do. On ext4, a fresh descriptor that first seeks to the cookie of the last entry reads nothing, even after a
    /// [`rewind`](Self::rewind).
    ///
    /// Costs: one `lseek`, and a step over each record left in the buffer; then [`next`](Self::next) calls `getdents64`.
    ///
    /// # Errors
    ///
    /// What [lseek(2)] can fail with: `EINVAL` for a cookie that the file system refuses, such as one beyond `i64::MAX`;
    /// `EBADF`. After an error the iterator keeps its position and its entries.
    ///
    /// [lseek(2)]: https://man7.org/linux/man-pages/man2/lseek.2.html
    #[doc(alias = "seekdir")]
    #[inline]
    pub fn seek(&mut self, cookie: u64) -> Result<(), Error> {
        let Self { records, phase, directory } = self;
        records.seek(directory.fd, phase, cookie).map_err(|errno| directory.error(errno))
    }

    /// Reads to the end and counts the remaining entries. Costs: as that many calls of [`next`](Self::next).
    ///
    /// # Errors
    ///
    /// What [`next`](Self::next) can fail with. The count up to an error is lost.
    #[inline]
    pub fn count(&mut self) -> Result<u64, Error> {
        let mut count = 0;
        while self.next()?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    /// Whether the end came because the directory itself is gone (`ENOENT`), or the process of a `/proc/PID` directory: then
    /// the entries read may not be all it had.
    ///
    /// The `task` and `fd` directories of a process that is killed end normally until it has been reaped.
    pub fn is_removed(&self) -> bool {
        self.phase == Phase::Removed
    }

    /// The descriptor of the directory, for `*at` calls.
    ///
    /// **Reading through it moves the position that [`next`](Self::next) reads from**, so this is no [`AsFd`], which
    /// [`Listing::read`](crate::Listing::read) takes.
    #[doc(alias = "as_fd")]
    #[inline]
    pub fn fd(&self) -> BorrowedFd<'a> {
        self.directory.fd
    }
}

/// Returns the next entry of `directory` for which `wanted` returns `true`. `directory` and `updates` are closures because the
/// compiler would load values for every entry: 3 instructions with `opt-level = "s"`.
#[inline(always)]
pub(crate) fn find<'e>(
    records: &'e mut Records<'_>,
    phase: &mut Phase,
    directory: impl Fn() -> Directory<'e>,
    updates: impl Fn() -> Option<&'e EntryUpdates>,
    mut wanted: impl FnMut(&Entry<'_>) -> bool,
) -> Result<Option<Entry<'e>>, Error> {
    // Keep the system call in the caller's frame: after a system call, returning from an outer frame mispredicts.
    while !records.has_ended(*phase) {
        #[cfg(lendir_polonius)]
        let records = &mut *records;
        // SAFETY:
        // - The pointer is made from `&mut *records`: it is valid, aligned and unique.
        // - The borrow made from it lives no longer than that of `records`, and nothing else reaches them meanwhile: the
        //   record made through it is returned at once, or dropped before the loop turns.
        // The borrow checker rejects the plain borrow because it takes one that is returned on one path to be live on all
        // of them (NLL problem case 3). `RUSTFLAGS="-Zpolonius=next --cfg lendir_polonius" cargo +nightly check`
        // accepts it.
        #[cfg(not(lendir_polonius))]
        #[allow(
            unsafe_code,
            clippy::deref_addrof,
            reason = "`&mut *records` would be the borrow itself"
        )]
        let records = unsafe { &mut *(&raw mut *records) };
        match records.next_record(phase) {
            Ok(Some(record)) => {
                let entry = Entry { record, directory: directory(), updates: updates() };
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
