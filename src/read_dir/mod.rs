//! `ReadDir`: reads a directory through a descriptor and memory of its own. It does not know that
//! there are trees, nor how entries are sorted.

pub(crate) mod buffer;
pub(crate) mod end_marker;
pub(crate) mod entries;
pub(crate) mod entry;
pub(crate) mod entry_state;
pub(crate) mod records;

pub use buffer::Buffer;
pub use entries::Entries;
pub use entry::Entry;

use crate::error::Error;
use crate::open::open;
use end_marker::EndMarker;
use entries::find;
use entry::Directory;
use records::{Phase, Records};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ffi::OsStr;
use std::iter::{self, FusedIterator};
use std::mem::{self, MaybeUninit, transmute};
use std::os::unix::ffi::OsStrExt;
use std::panic::UnwindSafe;
use std::path::Path;
use std::{fmt, io};

/// Opens the directory `path`, to read its entries.
///
/// Costs: one `openat`, and two allocations, for the path and for a [`Buffer`]; a path of 256 bytes or more takes a third.
/// Nothing is read yet.
///
/// # Errors
///
/// What [`open`] can fail with, with the path.
#[doc(alias = "opendir")]
pub fn read_dir(path: impl AsRef<Path>) -> Result<ReadDir, Error> {
    let path = path.as_ref();
    Ok(ReadDir { is_fresh: true, ..ReadDir::from_fd(open(path)?, path) })
}

/// One directory, which owns its descriptor and its memory, so it can be kept in a struct. It comes from [`read_dir`], or from
/// a descriptor by [`from_fd`](Self::from_fd).
///
/// ```
/// use lendir::{Error, ReadDir};
///
/// fn highest(fds: &mut ReadDir) -> Result<Option<u32>, Error> {
///     let mut highest = None;
///     fds.rewind()?;
///     while let Some(fd) = fds.next()? {
///         highest = highest.max(fd.numeric_name());
///     }
///     Ok(highest)
/// }
///
/// let mut of_this_process = lendir::read_dir("/proc/self/fd")?;
/// assert!(highest(&mut of_this_process)? >= Some(2));
/// # Ok::<(), Error>(())
/// ```
///
/// The [guarantees](crate::Entries#guarantees) of [`Entries`](crate::Entries) apply here too. Methods of the same name cost the
/// same.
///
/// For a tree, or thousands of directories, [`WalkDirs`](crate::WalkDirs), or [`Entries`](crate::Entries) on one [`Buffer`], save two
/// allocations for each.
///
/// An entry cannot be kept while the directory is read on, or beyond it:
///
/// ```compile_fail,E0499
/// let mut dir = lendir::read_dir("/proc").unwrap();
/// let two = (dir.next(), dir.next()); // error: the first borrows `dir`
/// ```
///
/// ```compile_fail,E0505
/// let mut dir = lendir::read_dir("/proc").unwrap();
/// let kept = (dir.next(), drop(dir)); // error: the first borrows `dir`
/// ```
///
/// It is no [`AsFd`]: another reader of its descriptor would move the position that it reads from.
#[must_use = "nothing is read before `next`"]
pub struct ReadDir {
    /// Borrows `buffer` and the number of `dir`. `'static` stands for a lifetime that cannot be written: nothing made from it
    /// may leave without the lifetime of a `&mut self`. See [`records`](Self::records).
    records: MaybeUninit<Records<'static>>,
    phase: Phase,
    dir: OwnedFd,
    /// Whether the position was at the beginning when the directory was opened here, or sought last.
    is_fresh: bool,
    /// Whether the end marker was queried.
    is_marked: bool,
    path: Vec<u8>,
    _buffer: Buffer,
}

impl ReadDir {
    /// Reads the directory `dir` from the current position of the descriptor, which is the beginning if it has just been
    /// opened, and the end if it has been read, also through a duplicate of it: [`rewind`](Self::rewind) it then. Its entries
    /// and errors have paths that begin with `path`, which nothing looks up; with `""` entries have their names alone.
    ///
    /// Costs: the two allocations of [`read_dir`].
    pub fn from_fd(dir: impl Into<OwnedFd>, path: impl AsRef<Path>) -> Self {
        let (dir, path) = (dir.into(), path.as_ref().as_os_str().as_bytes().into());
        let mut buffer = Buffer::new();
        let records = Records::new(dir.as_fd(), buffer.memory(), EndMarker::NONE);
        // SAFETY: `MaybeUninit<T>` has the layout of `T`, and a lifetime has none. What is borrowed lives as long as it is used,
        // in the same struct:
        // - the elements of the buffer's `Vec`. They stay in place when it moves, and nothing but `records` reaches them.
        // - the number of `dir`, which is closed only when `dir` is dropped, or taken out of the struct by value.
        // In a `MaybeUninit`, the `&mut` to the elements makes no promise where a `ReadDir` is moved, passed or dropped: only
        // `records()` asserts that it is valid, and that needs a `ReadDir` which exists.
        #[allow(unsafe_code, reason = "a field cannot borrow from another one")]
        let records = unsafe { transmute::<Records<'_>, MaybeUninit<Records<'static>>>(records) };
        Self {
            records,
            phase: Phase::Reading,
            dir,
            is_fresh: false,
            is_marked: false,
            path,
            _buffer: buffer,
        }
    }

    /// Returns the initialised records. It takes the field rather than `self`, so the other fields stay borrowable.
    #[inline]
    fn records<'a>(records: &'a mut MaybeUninit<Records<'static>>) -> &'a mut Records<'static> {
        // SAFETY: `from_fd` is the one function that makes the field, from a value, and nothing else writes to it.
        #[allow(unsafe_code, reason = "see `from_fd`")]
        unsafe {
            records.assume_init_mut()
        }
    }

    /// The next entry, or `None` at the end: see [`Entries::next`](crate::Entries::next). Never `while let Ok(Some(entry))`:
    /// it takes an error for the end.
    ///
    /// # Errors
    ///
    /// At most one, then `Ok(None)`: what [`Entries::next`](crate::Entries::next) can fail with, with the path.
    #[inline(always)]
    pub fn next(&mut self) -> Result<Option<Entry<'_>>, Error> {
        self.find(|_| true)
    }

    /// The next entry, or `None` at the end and after an error, which `on_error` gets:
    /// [`Entries::next_ok`](crate::Entries::next_ok).
    #[inline(always)]
    pub fn next_ok(&mut self, on_error: impl FnOnce(Error)) -> Option<Entry<'_>> {
        self.next().map_err(on_error).unwrap_or(None)
    }

    /// The next entry that is `wanted`, or `None` at the end: [`Entries::find`](crate::Entries::find).
    ///
    /// # Errors
    ///
    /// What [`next`](Self::next) can fail with.
    #[inline(always)]
    pub fn find(
        &mut self,
        wanted: impl FnMut(&Entry<'_>) -> bool,
    ) -> Result<Option<Entry<'_>>, Error> {
        let (dir, path) = (&self.dir, &self.path);
        let directory = || Directory { fd: dir.as_fd(), path, depth: 0 };
        find(Self::records(&mut self.records), &mut self.phase, directory, || None, wanted)
    }

    /// Reads to the end and counts the entries that were left: [`Entries::count`](crate::Entries::count).
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

    /// An iterator over what `f` makes of the entries, without those for which that is `None`. What `f` makes is no longer lent,
    /// so `for` and `collect` take it.
    ///
    /// ```
    /// let pids = lendir::read_dir("/proc")?.filter_map(|entry| entry.numeric_name());
    /// let mut pids: Vec<u32> = pids.collect::<Result<_, _>>()?;
    /// pids.sort_unstable();
    /// assert!(pids.contains(&std::process::id()));
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// An error, of which there is at most one, comes last. It costs what [`next`](Self::next) does, and
    /// has the same errors.
    #[doc(alias = "iter")]
    #[inline]
    pub fn filter_map<T>(
        mut self,
        mut f: impl FnMut(Entry<'_>) -> Option<T>,
    ) -> impl FusedIterator<Item = Result<T, Error>> {
        iter::from_fn(move || {
            while let Some(entry) = self.next().transpose() {
                if let Some(made) = entry.map(&mut f).transpose() {
                    return Some(made);
                }
            }
            None
        })
        .fuse()
    }

    /// Seeks to the beginning, to read the whole directory. Returns `None` if the directory is known to be empty.
    #[inline(always)]
    pub(crate) fn begin_whole(&mut self) -> Result<Option<(Directory<'_>, EndMarker)>, Error> {
        if !self.is_fresh
            || self.phase != Phase::Reading
            || Self::records(&mut self.records).has_begun()
        {
            // If the first batch was empty at the beginning, an error of `seek` hides no entry.
            let is_empty = self.is_fresh && self.phase == Phase::Empty;
            match self.seek(0) {
                Err(_) if is_empty => return Ok(None),
                rewound => rewound?,
            }
        }
        let directory = Directory { fd: self.dir.as_fd(), path: &self.path, depth: 0 };
        Ok(Some((directory, Self::records(&mut self.records).end_marker)))
    }

    /// Sets the phase after the whole directory has been read.
    #[inline]
    pub(crate) fn end_whole(&mut self, is_removed: bool) {
        self.phase = Phase::ended(is_removed);
    }

    /// Goes back to the beginning, even after the end or an error, by one `lseek`: [`Entries::rewind`](crate::Entries::rewind). The
    /// first time also one `fstatfs`: where the file system marks a directory's last entry, each reading from then on takes one
    /// `getdents64` less.
    ///
    /// # Errors
    ///
    /// What [`seek`](Self::seek) can fail with.
    #[doc(alias = "rewinddir")]
    #[inline]
    pub fn rewind(&mut self) -> Result<(), Error> {
        self.seek(0)?;
        if !mem::replace(&mut self.is_marked, true) {
            Self::records(&mut self.records).end_marker = EndMarker::of(&self.dir);
        }
        Ok(())
    }

    /// Goes to the position after the entry that had this [`cookie`](Entry::cookie): [`Entries::seek`](crate::Entries::seek),
    /// which says how long a cookie holds.
    ///
    /// # Errors
    ///
    /// What [`Entries::seek`](crate::Entries::seek) can fail with, with the path. After an error, position and entries stay
    /// as they are.
    #[doc(alias = "seekdir")]
    #[inline]
    pub fn seek(&mut self, cookie: u64) -> Result<(), Error> {
        let sought =
            Self::records(&mut self.records).seek(self.dir.as_fd(), &mut self.phase, cookie);
        sought.map_err(|errno| self.wrap_error(errno))?;
        self.is_fresh = cookie == 0;
        Ok(())
    }

    /// Its path, as [`read_dir`] or [`from_fd`](Self::from_fd) was given it.
    pub fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.path))
    }

    /// Returns an [`Error`] with the directory's [`path`](Self::path), for calls that you make yourself. `cause` is anything
    /// that converts into a [`std::io::Error`]; see [`Error::new`].
    ///
    /// ```
    /// use lendir::{Error, ReadDir};
    ///
    /// fn inode(dir: &ReadDir) -> Result<u64, Error> {
    ///     let stat = lendir::rustix::fs::fstat(dir.fd());
    ///     stat.map(|stat| stat.st_ino).map_err(|errno| dir.wrap_error(errno))
    /// }
    /// ```
    #[cold]
    #[must_use = "this makes an error, and reports nothing"]
    pub fn wrap_error(&self, cause: impl Into<io::Error>) -> Error {
        Error::new(self.path(), cause)
    }

    /// The descriptor of the directory, for `*at` calls: [`Entries::fd`](crate::Entries::fd).
    #[doc(alias = "as_fd")]
    #[inline]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// Returns the descriptor, without what is left in the buffer.
    ///
    /// **Its position is after the last entry that was fetched, not after the last one that was lent**: rewind it, or
    /// [`seek`](Self::seek) first, before it is read again.
    pub fn into_fd(self) -> OwnedFd {
        self.dir
    }

    /// Whether the end came because the directory itself is gone: [`Entries::is_removed`](crate::Entries::is_removed).
    pub fn is_removed(&self) -> bool {
        self.phase == Phase::Removed
    }
}

/// As [`ReadDir::from_fd`], without a path.
impl From<OwnedFd> for ReadDir {
    fn from(dir: OwnedFd) -> Self {
        Self::from_fd(dir, "")
    }
}

/// After a panic in a caller's closure, it goes on after the entry that the closure was given.
impl UnwindSafe for ReadDir {}

impl fmt::Debug for ReadDir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadDir")
            .field("path", &self.path())
            .field("dir", &self.dir)
            .field("phase", &self.phase)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::{Phase, ReadDir};
    use std::os::unix::net::UnixStream;
    use std::{mem, thread};

    /// For Miri, which makes no `getdents64` but sees who may point where.
    #[test]
    fn a_borrow_from_itself_survives_moves_and_drops() {
        let make = |path: &str| {
            let (socket, _) = UnixStream::pair().unwrap();
            ReadDir::from_fd(socket, path)
        };
        let (mut one, mut other) = (make("one"), make("other"));
        mem::swap(&mut one, &mut other);
        let mut boxed = Box::new(one);
        assert!(!boxed.is_removed() && !ReadDir::records(&mut boxed.records).has_begun());
        let mut many = vec![*boxed, other];
        many.reserve(100);
        for (dir, path) in many.iter_mut().zip(["other", "one"]) {
            assert_eq!(dir.path().to_str(), Some(path));
            assert!(!ReadDir::records(&mut dir.records).has_ended(dir.phase));
            dir.phase = Phase::Ended;
            assert!(dir.next().unwrap().is_none());
        }
        drop(many.pop());
        thread::spawn(move || many.pop().map(ReadDir::into_fd)).join().unwrap();
    }
}
