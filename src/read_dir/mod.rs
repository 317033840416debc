//! `ReadDir`: reads a directory through a descriptor and memory of its own.

pub(crate) mod buffer;
pub(crate) mod entries;
pub(crate) mod entry;
pub(crate) mod mount;
pub(crate) mod owned;
pub(crate) mod records;

pub use buffer::Buffer;
pub use entries::Entries;
pub use entry::Entry;
pub use owned::{OwnedEntries, OwnedEntry};

use crate::error::Error;
use crate::open::{open, open_again};
use entries::find;
use entry::Directory;
use mount::Mount;
use records::{Phase, Records};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ffi::OsStr;
use std::io;
use std::iter::{self, FusedIterator};
use std::mem::{self, MaybeUninit, transmute};
use std::os::unix::ffi::OsStrExt;
use std::panic::UnwindSafe;
use std::path::Path;

/// Opens the directory `path`, to iterate over its entries.
///
/// ```
/// let mut dir = lendir::read_dir("/proc")?;
/// while let Some(entry) = dir.next()? {
///     println!("{}", entry.name().escape_ascii());
/// }
/// # Ok::<(), lendir::Error>(())
/// ```
///
/// # Errors
///
/// The same as for [`open`]. [`ReadDir::next`] returns the errors of reading.
///
/// # Performance
///
/// Each call allocates a path and a [`Buffer`]. For many directories, use
/// [`Entries`](crate::Entries) with one buffer.
#[doc(alias("opendir", "scandir", "listdir"))]
pub fn read_dir(path: impl AsRef<Path>) -> Result<ReadDir, Error> {
    let path = path.as_ref();
    let dir = open(path).map_err(|error| Error::of_root(path, error.into_io_error()))?;
    Ok(ReadDir { phase: Phase::Fresh, ..ReadDir::from_fd(dir, path) })
}

/// An iterator over the entries of a directory. It owns its descriptor and its memory: you can keep
/// it in a struct.
///
/// [`read_dir`] opens a directory by its path, and [`from_fd`](Self::from_fd) takes a descriptor.
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
/// Nothing is allocated for an entry, because the next call to `next` overwrites it. Copy what you
/// keep. A loop by `for` does it for you: its [`OwnedEntry`] takes one allocation. The compiler
/// refuses an entry that is kept longer:
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
/// [`Entries`](crate::Entries#guarantees) has the guarantees and the costs.
#[doc(alias("lending", "scandir"))]
#[must_use = "nothing is read before `next`"]
pub struct ReadDir {
    /// The reader of the records, which borrows `_buffer` and the number of `dir`. `'static` stands
    /// for a lifetime that Rust cannot express. So nothing borrowed from the reader may be
    /// returned, except with the lifetime of a `&mut self`. See [`records`](Self::records).
    records: MaybeUninit<Records<'static>>,
    pub(crate) phase: Phase,
    dir: OwnedFd,
    /// Whether the mount was queried.
    is_marked: bool,
    path: Vec<u8>,
    _buffer: Buffer,
}

impl ReadDir {
    /// Makes an iterator over the entries of the open directory `dir`, from the current position of
    /// the descriptor on.
    ///
    /// A descriptor that has been read, even through a duplicate, is at the end: call
    /// [`rewind`](Self::rewind) to read the directory again.
    ///
    /// The paths of entries and errors begin with `path`, which is never looked up. With `""`, they
    /// are the names alone.
    ///
    /// ```
    /// let proc = lendir::open("/proc/self")?;
    /// let dir = lendir::openat(&proc, "task")?;
    /// let mut threads = lendir::ReadDir::from_fd(dir, "/proc/self/task");
    /// let thread = threads.next()?.expect("a thread");
    /// assert!(thread.path().starts_with("/proc/self/task"));
    /// # Ok::<(), lendir::Error>(())
    /// ```
    #[doc(alias = "fdopendir")]
    pub fn from_fd(dir: impl Into<OwnedFd>, path: impl AsRef<Path>) -> Self {
        let (dir, path) = (dir.into(), path.as_ref().as_os_str().as_bytes().into());
        let mut buffer = Buffer::new();
        let records = Records::new(dir.as_fd(), buffer.memory(), Mount::PLAIN);
        // SAFETY: `MaybeUninit<T>` has the layout of `T`, and a lifetime does not change a layout.
        // The records borrow two values, which are in the same struct and live as long as the
        // records:
        // - The elements of the buffer's `Vec`. They stay in place when the `Vec` moves, and only
        //   `records` uses them.
        // - The number of `dir`. It is closed only when `dir` is dropped or is moved out of the
        //   struct. The `&mut` to the elements is in a `MaybeUninit`, so it asserts nothing when a
        //   `ReadDir` is moved, passed or dropped. Only `records()` asserts that this `&mut` is
        //   valid, and that function needs a `ReadDir` that exists.
        #[allow(unsafe_code, reason = "a field cannot borrow from another one")]
        let records = unsafe { transmute::<Records<'_>, MaybeUninit<Records<'static>>>(records) };
        Self { records, phase: Phase::Reading, dir, is_marked: false, path, _buffer: buffer }
    }

    /// Returns the initialised records. This function takes the field rather than `self`, so that
    /// the other fields can be borrowed.
    #[inline]
    fn records<'a>(records: &'a mut MaybeUninit<Records<'static>>) -> &'a mut Records<'static> {
        // SAFETY: only `from_fd` creates the field, from a value, and nothing else writes to the
        // field.
        #[allow(unsafe_code, reason = "see `from_fd`")]
        unsafe {
            records.assume_init_mut()
        }
    }

    /// Advances to the next entry, or returns `None` at the end of the directory.
    ///
    /// # Errors
    ///
    /// The same as for [`Entries::next`](crate::Entries::next), with the path.
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
    /// ```
    /// let mut proc = lendir::read_dir("/proc")?;
    /// while let Some(process) = proc.find(|entry| entry.numeric_name().is_some())? {
    ///     println!("{:?}", process.path());
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// To look up several names, read a [`Listing`](crate::Listing) and call
    /// [`by_name`](crate::Listing::by_name).
    ///
    /// # Errors
    ///
    /// The same as for [`next`](Self::next).
    #[inline(always)]
    pub fn find(
        &mut self,
        wanted: impl FnMut(&Entry<'_>) -> bool,
    ) -> Result<Option<Entry<'_>>, Error> {
        let (dir, path) = (&self.dir, &self.path);
        let directory = || Directory { fd: dir.as_fd(), path, depth: 0 };
        let records = Self::records(&mut self.records);
        find(records, &mut self.phase, directory, wanted)
    }

    /// Counts the entries that remain, by reading the directory to its end. For the number of
    /// descriptors of a process, Linux 6.2 has a faster way: `st_size` of its `/proc/PID/fd`.
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

    /// Turns the reader into an ordinary iterator, which calls `f` on each entry and yields what
    /// `f` returns in `Some`. An error is an item too, and it comes last.
    ///
    /// ```
    /// let pids = lendir::read_dir("/proc")?.filter_map(|entry| entry.numeric_name());
    /// let mut pids: Vec<u32> = pids.collect::<Result<_, _>>()?;
    /// pids.sort_unstable();
    /// assert!(pids.contains(&std::process::id()));
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The same as for [`next`](Self::next).
    #[doc(alias("iter", "collect"))]
    #[inline]
    pub fn filter_map<T>(
        mut self,
        mut f: impl FnMut(Entry<'_>) -> Option<T>,
    ) -> impl FusedIterator<Item = Result<T, Error>> {
        iter::from_fn(move || Some(self.next().transpose()?.map(&mut f)))
            .fuse()
            .filter_map(Result::transpose)
    }

    /// Returns the directory and its mount, and unless the reader is at the beginning, another
    /// descriptor that is.
    #[inline(always)]
    pub(crate) fn begin_again(&mut self) -> Result<(Option<OwnedFd>, Directory<'_>, Mount), Error> {
        let records = Self::records(&mut self.records);
        let is_at_beginning = self.phase == Phase::Fresh && !records.has_begun();
        let mount = records.mount;
        let directory = self.directory();
        let again = if is_at_beginning { Ok(None) } else { open_again(directory.fd) };
        Ok((again.map_err(|errno| directory.error(errno))?, directory, mount))
    }

    /// Goes back to the beginning of the directory, even after the end or an error. That is
    /// cheaper than opening it again. [Some servers](crate::Entries::rewind) ignore it.
    ///
    /// # Errors
    ///
    /// The same as for [`seek`](Self::seek).
    ///
    /// # Performance
    ///
    /// One `lseek`, and at the first call an `fstatfs` (on NFS, also a `statx` and a look at
    /// `/proc/self/mountinfo`). Where the file system marks the last entry of a directory, each
    /// reading from then on takes one `getdents64` less.
    #[doc(alias("rewinddir", "watch"))]
    #[inline]
    pub fn rewind(&mut self) -> Result<(), Error> {
        self.seek(0)?;
        if !mem::replace(&mut self.is_marked, true) {
            Self::records(&mut self.records).mount = Mount::of(&self.dir);
        }
        Ok(())
    }

    /// Goes to just after the entry that had this [`cookie`](Entry::cookie), even after the end or
    /// an error. [`Entries::seek`](crate::Entries::seek) says how long a cookie is valid.
    ///
    /// # Errors
    ///
    /// The same as for [`Entries::seek`](crate::Entries::seek), with the path.
    #[doc(alias = "seekdir")]
    #[inline]
    pub fn seek(&mut self, cookie: u64) -> Result<(), Error> {
        let sought =
            Self::records(&mut self.records).seek(self.dir.as_fd(), &mut self.phase, cookie);
        sought.map_err(|errno| self.directory().error(errno))
    }

    /// Returns the path that was passed to [`read_dir`] or [`from_fd`](Self::from_fd).
    pub fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.path))
    }

    /// Turns the error of your own call into an [`Error`] with the directory's
    /// [`path`](Self::path): see [`Error::new`].
    ///
    /// ```
    /// use lendir::{Error, ReadDir};
    ///
    /// fn inode(dir: &ReadDir) -> Result<u64, Error> {
    ///     let stat = rustix::fs::fstat(dir.fd());
    ///     stat.map(|stat| stat.st_ino).map_err(|errno| dir.wrap_error(errno))
    /// }
    /// ```
    #[cold]
    #[must_use = "this makes an error, and reports nothing"]
    pub fn wrap_error(&self, cause: impl Into<io::Error>) -> Error {
        Error::new(self.path(), cause)
    }

    fn directory(&self) -> Directory<'_> {
        Directory { fd: self.dir.as_fd(), path: &self.path, depth: 0 }
    }

    /// Returns the descriptor of the directory, for `*at` calls. Do not [read the directory through
    /// it](Entry::dir_fd).
    #[doc(alias = "as_fd")]
    #[inline]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// Gives the descriptor back. The entries that remain in the buffer are dropped.
    ///
    /// **Its position is after the last entry that the kernel returned**, not after the last one
    /// that was yielded. If the descriptor will be read again, call [`rewind`](Self::rewind) or
    /// [`seek`](Self::seek) first.
    pub fn into_fd(self) -> OwnedFd {
        self.dir
    }

    /// Tells whether the directory ended because it no longer exists: see
    /// [`Entries::is_removed`](crate::Entries::is_removed).
    pub fn is_removed(&self) -> bool {
        self.phase == Phase::Removed
    }
}

/// If a closure of the caller panics, reading continues after the entry that the closure was called
/// with.
impl UnwindSafe for ReadDir {}

debug!(ReadDir, |dir| path: dir.path(), dir: dir.dir, phase: dir.phase);

#[cfg(test)]
mod tests {
    use super::{Phase, ReadDir};
    use std::os::unix::net::UnixStream;
    use std::{mem, thread};

    /// Miri cannot call `getdents64`, but it checks which pointers are valid.
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
