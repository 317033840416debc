//! `ReadDir`: a directory that owns its descriptor and its memory.

use crate::{Buffer, Entries, Entry, Error, Listing};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::path::Arg;
use std::ffi::OsStr;
use std::fmt;
use std::mem::{ManuallyDrop, transmute};
use std::os::unix::ffi::OsStrExt;
use std::panic::UnwindSafe;
use std::path::Path;

/// Opens the directory `path`, to read its entries.
///
/// ```
/// let mut proc = lendir::read_dir("/proc")?;
/// while let Some(entry) = proc.next()? {
///     if let Some(pid) = entry.numeric_name() {
///         println!("{pid}");
///     }
/// }
/// # Ok::<(), lendir::Error>(())
/// ```
///
/// Costs: one `openat`, and two allocations, for the path and for a [`Buffer`]. Nothing is read before
/// [`next`](ReadDir::next).
///
/// # Errors
///
/// Those of [`open`](crate::open), with the path.
#[doc(alias = "opendir")]
#[allow(clippy::needless_pass_by_value, reason = "as `open` takes it")]
pub fn read_dir(path: impl Arg) -> Result<ReadDir, Error> {
    let path = match path.as_cow_c_str() {
        Ok(path) => path.into_owned(),
        Err(error) => return Err(Error::new(path.to_string_lossy().as_bytes(), 0, error)),
    };
    match crate::open(path.as_c_str()) {
        Ok(dir) => Ok(ReadDir::new(dir, path.into_bytes())),
        Err(error) => Err(Error::new(path.to_bytes(), 0, error)),
    }
}

/// One directory, which owns its descriptor and its memory. What [`Entries`] borrows is inside, so a `ReadDir` can be kept in a
/// struct. It comes from [`read_dir`], or from a descriptor.
///
/// What holds of [`Entries`] holds here: no dots, `EINTR` retried, fused, and nothing read before the first
/// [`next`](Self::next). Its entries, and its errors, know their path.
///
/// ```
/// use lendir::{Error, ReadDir};
///
/// struct Descriptors {
///     dir: ReadDir,
/// }
///
/// impl Descriptors {
///     fn highest(&mut self) -> Result<Option<u32>, Error> {
///         let mut highest = None;
///         self.dir.rewind()?;
///         while let Some(entry) = self.dir.next()? {
///             highest = highest.max(entry.numeric_name());
///         }
///         Ok(highest)
///     }
/// }
///
/// let mut of_this_process = Descriptors { dir: lendir::read_dir("/proc/self/fd")? };
/// assert!(of_this_process.highest()? >= Some(2));
/// # Ok::<(), Error>(())
/// ```
///
/// It takes 2 or 3 instructions an entry more than [`Entries`] with its 45 (`cargo test --test it instructions`). For a tree,
/// or thousands of directories, [`Walk`](crate::Walk), or [`Entries`] on one [`Buffer`], save two allocations for each.
///
/// An entry cannot be kept while the directory is read on, or beyond it:
///
/// ```compile_fail,E0499
/// let mut dir = lendir::read_dir("/proc")?;
/// let first = dir.next()?;
/// let second = dir.next()?; // error: `dir` is still borrowed by `first`
/// drop(first);
/// # Ok::<(), lendir::Error>(())
/// ```
///
/// ```compile_fail,E0505
/// let mut dir = lendir::read_dir("/proc")?;
/// let first = dir.next()?;
/// drop(dir); // error: it is still borrowed by `first`
/// drop(first);
/// # Ok::<(), lendir::Error>(())
/// ```
#[must_use = "nothing is read before `next`"]
pub struct ReadDir {
    /// Borrows the other fields, and not for `'static`: nothing made from it may leave without the lifetime of a `&self`.
    ///
    /// As `ManuallyDrop`, because a `&mut` in a struct that is an argument must stay valid until the function returns, and a
    /// function may drop the `ReadDir` before.
    entries: ManuallyDrop<Entries<'static>>,
    dir: OwnedFd,
    path: Vec<u8>,
    _buffer: Buffer,
}

impl ReadDir {
    fn new(dir: OwnedFd, path: Vec<u8>) -> Self {
        let mut buffer = Buffer::new();
        let entries = Entries::new(&dir, &mut buffer).with_path(&path, 0);
        // SAFETY: only a lifetime changes. What `entries` borrows lives as long as it is used, in the same struct:
        // - the elements of two `Vec`s, of the path and of the buffer. They stay in place when their `Vec` moves. Nothing
        //   changes those of the path; nothing but `entries` reaches those of the buffer.
        // - the number of `dir`, which is closed only when `dir` is dropped.
        // `entries` is private, and what a method lends from it borrows from that method's `&self`.
        #[allow(unsafe_code, reason = "a field cannot borrow from another one")]
        let entries = unsafe { transmute::<Entries<'_>, Entries<'static>>(entries) };
        Self { entries: ManuallyDrop::new(entries), dir, path, _buffer: buffer }
    }

    /// The next entry, or `None` at the end.
    ///
    /// Costs: as [`Entries::next`]: at most one `getdents64`, and no allocation.
    ///
    /// # Errors
    ///
    /// Those of [`Entries::next`], with the path of the directory: once, after the entries that came before it, then
    /// `Ok(None)`.
    #[allow(clippy::should_implement_trait, reason = "`Iterator` cannot lend")]
    #[allow(clippy::inline_always, reason = "see `Entries::next`")]
    #[inline(always)]
    pub fn next(&mut self) -> Result<Option<Entry<'_>>, Error> {
        self.find(|_| true)
    }

    /// The next entry, or `None` at the end. `on_error` gets the error, of which there is at most one, after the entries that
    /// came before it.
    ///
    /// Costs: as [`next`](Self::next).
    #[allow(clippy::inline_always, reason = "see `Entries::next`")]
    #[inline(always)]
    pub fn next_or(&mut self, on_error: impl FnOnce(Error)) -> Option<Entry<'_>> {
        match self.next() {
            Ok(entry) => entry,
            Err(error) => {
                on_error(error);
                None
            }
        }
    }

    /// The next entry that is `wanted`, or `None` at the end; those before it are passed over. See [`Entries::find`].
    ///
    /// Costs: as [`next`](Self::next), as often as it passes over an entry.
    ///
    /// # Errors
    ///
    /// Those of [`next`](Self::next).
    #[allow(clippy::inline_always, reason = "see `Entries::next`")]
    #[inline(always)]
    pub fn find(&mut self, wanted: impl FnMut(&Entry<'_>) -> bool) -> Result<Option<Entry<'_>>, Error> {
        self.entries.find(wanted).map_err(|error| Error::new(&self.path, 0, error))
    }

    /// Reads the rest into `listing`, sorted.
    ///
    /// ```
    /// use lendir::Listing;
    ///
    /// let mut listing = Listing::new();
    /// lendir::read_dir("/sys/class")?.read(&mut listing)?;
    /// for entry in &listing {
    ///     println!("{}", entry.name().escape_ascii());
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// Costs: those of [`Listing::read`].
    ///
    /// # Errors
    ///
    /// Those of [`Listing::read`], with the path of the directory.
    #[allow(clippy::inline_always, reason = "see `Listing::read`")]
    #[inline(always)]
    pub fn read(&mut self, listing: &mut Listing) -> Result<(), Error> {
        listing.read_rest(&mut self.entries).map_err(|error| Error::new(&self.path, 0, error))
    }

    /// Goes back to the beginning, even after the end or an error: see [`Entries::rewind`].
    ///
    /// Costs: one `lseek`, and a step over each entry left in the memory.
    ///
    /// # Errors
    ///
    /// Those of [`Entries::seek`], with the path of the directory.
    #[doc(alias = "rewinddir")]
    #[inline]
    pub fn rewind(&mut self) -> Result<(), Error> {
        self.entries.rewind().map_err(|error| Error::new(&self.path, 0, error))
    }

    /// Its path, as [`read_dir`] was given it. Empty for one made from a descriptor.
    #[must_use]
    pub fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.path))
    }

    /// Whether the end came because the directory itself is gone: see [`Entries::removed`].
    #[must_use]
    pub fn removed(&self) -> bool {
        self.entries.removed()
    }
}

/// Reads from the current position of the descriptor, which is the beginning if it has just been opened.
impl From<OwnedFd> for ReadDir {
    fn from(dir: OwnedFd) -> Self {
        Self::new(dir, Vec::new())
    }
}

/// The descriptor's position is after the last entry that was fetched.
impl From<ReadDir> for OwnedFd {
    fn from(read_dir: ReadDir) -> Self {
        read_dir.dir
    }
}

/// The descriptor of the directory, for `*at` calls. Reading entries through it moves the position that this reads from.
impl AsFd for ReadDir {
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }
}

/// After a panic in a caller's closure, it goes on after the entry that the closure was given.
impl UnwindSafe for ReadDir {}

impl fmt::Debug for ReadDir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadDir").field("path", &self.path()).field("entries", &*self.entries).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::ReadDir;
    use rustix::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use std::{mem, thread};

    /// For Miri, which makes no `getdents64` but sees who may point where.
    #[test]
    fn a_borrow_from_itself_survives_moves_and_drops() {
        let make = |path: &str| {
            let (socket, _) = UnixStream::pair().unwrap();
            ReadDir::new(OwnedFd::from(socket), path.into())
        };
        let (mut one, mut other) = (make("one"), make("other"));
        mem::swap(&mut one, &mut other);
        let mut boxed = Box::new(one);
        assert!(!boxed.entries.removed());
        boxed.entries.end();
        let mut many = vec![*boxed, other];
        many.reserve(100);
        for (dir, path) in many.iter_mut().zip(["other", "one"]) {
            assert_eq!(dir.path().to_str(), Some(path));
            dir.entries.end();
            assert!(dir.next().unwrap().is_none());
        }
        drop(many.pop());
        thread::spawn(move || many.pop().map(OwnedFd::from)).join().unwrap();
    }
}
