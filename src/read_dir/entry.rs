//! `Entry`: what can be asked of an entry of a directory, whatever yields it.
//!
//! This module does not know who yields an entry, nor what becomes of the answers.

use super::records::HEADER;
use crate::error::{Error, join_into, try_join};
use crate::file_system::FileSystem;
use crate::file_type::FileType;
use crate::metadata::Metadata;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RawDirEntry, StatxFlags};
use rustix::io::{Errno, retry_on_intr};
use rustix::path::DecInt;
use std::cell::Cell;
use std::ffi::{CStr, OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::{io, str};

/// A name in an open directory, and what can be asked about it.
///
/// A function that takes an `&Entry` works with every reader of this crate: [`ReadDir`] and
/// [`Entries`] yield it, [`DirEntry`] and [`WalkEntry`] dereference to it, and
/// [`ListedEntry::in_dir`] makes it.
///
/// ```
/// use lendir::{Entry, Error};
///
/// fn line(entry: &Entry<'_>) -> Result<String, Error> {
///     let mark = if entry.file_type()?.is_dir() { "/" } else { "" };
///     Ok(format!("{:8} {}{mark}", entry.metadata()?.len(), entry.name().escape_ascii()))
/// }
///
/// let mut dir = lendir::read_dir("/sys/class")?;
/// while let Some(entry) = dir.next()? {
///     println!("{}", line(&entry)?);
/// }
/// let mut walk = lendir::walk("/sys/class")?;
/// while let Some(entry) = walk.next()? {
///     println!("{}", line(&entry)?);
/// }
/// # Ok::<(), Error>(())
/// ```
///
/// The name, the inode number and, on most file systems, the type come with the listing, and cost
/// nothing. Everything else asks the kernel: [`metadata`](Self::metadata), unless the reader [has
/// fetched it](crate::WalkOptions::metadata), [`read_link`](Self::read_link),
/// [`open_file`](Self::open_file), [`remove_file`](Self::remove_file) and
/// [`remove_dir`](Self::remove_dir). These act on the name in the open directory, because a path
/// may resolve to another file by now. The [`path`](Self::path) is in their errors, and `EINTR` is
/// retried.
///
/// An entry borrows from its reader, and stays on its thread. To work elsewhere, send a copy of the
/// name, or what [`open_file`](Self::open_file) returns.
///
/// [`ReadDir`]: crate::ReadDir
/// [`Entries`]: crate::Entries
/// [`DirEntry`]: crate::DirEntry
/// [`WalkEntry`]: crate::WalkEntry
/// [`ListedEntry::in_dir`]: crate::ListedEntry::in_dir
#[doc(alias = "dirent")]
pub struct Entry<'a> {
    pub(crate) record: Record<'a>,
    pub(crate) directory: Directory<'a>,
    /// Gets the type that a query finds, for the reader that yields the entry. `None` if that
    /// reader needs no types.
    pub(crate) queried: Option<&'a Cell<Option<FileType>>>,
}

/// The kernel's record of an entry: where the kernel wrote it, or in memory of ours.
pub(crate) enum Record<'a> {
    Raw(RawDirEntry<'a>),
    Kept {
        /// The record up to the NUL of its name, in the layout of `struct linux_dirent64`.
        bytes: &'a [u8],
        /// The metadata that was fetched when the record was read.
        metadata: Option<&'a Metadata>,
    },
}

impl Record<'_> {
    #[inline(always)]
    pub(crate) fn d_type(&self) -> FileType {
        match self {
            Self::Raw(raw) => FileType::from_mode(raw.file_type().as_raw_mode()),
            Self::Kept { bytes, .. } => FileType::from_d_type(bytes[HEADER - 1]),
        }
    }
}

/// Returns a field of 8 bytes in a kept record.
#[inline]
pub(crate) fn kept_field(bytes: &[u8], start: usize) -> u64 {
    u64::from_ne_bytes(*bytes[start..].first_chunk().expect("BUG: a record without its header"))
}

/// The directory that an entry is in.
#[derive(Clone, Copy)]
pub(crate) struct Directory<'a> {
    pub(crate) fd: BorrowedFd<'a>,
    /// The path. Empty if the path is not known.
    pub(crate) path: &'a [u8],
    /// The [`depth`](Error::depth) of an error about the directory.
    pub(crate) depth: usize,
}

impl Directory<'_> {
    /// Returns an error of opening or reading the directory itself.
    #[cold]
    pub(crate) fn error(self, cause: impl Into<io::Error>) -> Error {
        if self.depth > 0 {
            return self.wrap_error(cause);
        }
        Error::of_root(try_join(self.path, b""), cause)
    }

    /// Returns an error of a call that the caller has made on the directory.
    #[cold]
    pub(crate) fn wrap_error(self, cause: impl Into<io::Error>) -> Error {
        Error::at_depth(try_join(self.path, b""), self.depth, cause)
    }

    /// Returns an error about an entry of this name.
    #[cold]
    pub(crate) fn error_at(self, name: &[u8], cause: impl Into<io::Error>) -> Error {
        Error::at_depth(try_join(self.path, name), self.depth.wrapping_add(1), cause)
    }

    /// Queries the type of an entry whose record has none. It takes the parts of the entry, because
    /// the entry of the caller's loop stays in registers.
    #[cold]
    #[inline(never)]
    fn query_type(self, name: &CStr) -> Result<FileType, Error> {
        let stat = retry_on_intr(|| rustix::fs::statat(self.fd, name, NOT_BEYOND))
            .map_err(|errno| self.error_at(name.to_bytes(), errno))?;
        Ok(FileType::from_mode(stat.st_mode))
    }
}

/// The flags to query an entry itself: no link is followed, and nothing is mounted.
pub(crate) const NOT_BEYOND: AtFlags = AtFlags::SYMLINK_NOFOLLOW.union(AtFlags::NO_AUTOMOUNT);

/// `AT_STATX_DONT_SYNC`, which rustix does not define for each C library: the kernel may answer
/// from its cache.
pub(crate) const DONT_SYNC: AtFlags = AtFlags::from_bits_retain(0x4000);

/// The flags to read a file. A terminal does not become the controlling one.
const FILE: OFlags = OFlags::RDONLY.union(OFlags::NOCTTY);

/// Asks only for the type of an entry, which no server needs to confirm. Like
/// [`Metadata::query`], it takes the answer of `fstatat`, whatever the error of `statx` is.
#[cold]
#[inline(never)]
pub(crate) fn query_type(dir: BorrowedFd<'_>, name: &CStr) -> Result<FileType, Errno> {
    #[cfg(test)]
    super::mount::tests::count_query();
    // The name is empty if `dir` is the entry itself.
    let flags = NOT_BEYOND | AtFlags::EMPTY_PATH;
    match retry_on_intr(|| rustix::fs::statx(dir, name, flags | DONT_SYNC, StatxFlags::TYPE)) {
        Ok(statx) => Ok(FileType::from_mode(statx.stx_mode)),
        Err(_) => retry_on_intr(|| rustix::fs::statat(dir, name, flags))
            .map(|stat| FileType::from_mode(stat.st_mode)),
    }
}

impl<'a> Entry<'a> {
    /// Returns the name, which has at least one byte, no NUL and no `/`. It need not be UTF-8.
    ///
    /// Only the name of a [yielded root](crate::WalkOptions::yield_roots) can have slashes at its
    /// end, or be `/`, `.` or `..`.
    #[doc(alias("d_name", "extension"))]
    #[inline]
    pub fn name(&self) -> &[u8] {
        match &self.record {
            Record::Raw(raw) => raw.file_name().to_bytes(),
            Record::Kept { bytes, .. } => &bytes[HEADER..bytes.len() - 1],
        }
    }

    /// Returns the name with its NUL, which calls such as `openat`, `statat` and `unlinkat` take
    /// without copying it.
    #[inline]
    pub fn name_cstr(&self) -> &CStr {
        match &self.record {
            Record::Raw(raw) => raw.file_name(),
            Record::Kept { bytes, .. } => {
                CStr::from_bytes_until_nul(&bytes[HEADER..]).expect("BUG: a name without its NUL")
            }
        }
    }

    /// Returns the name as an `OsStr`, for `std`. Unlike `std::fs::DirEntry`, it borrows the name.
    #[doc(alias("to_str", "utf8"))]
    #[inline]
    pub fn file_name(&self) -> &OsStr {
        OsStr::from_bytes(self.name())
    }

    /// Joins the path of the directory with the name. It begins with what you passed to
    /// [`read_dir`](crate::read_dir()) or to the walk; **an entry of [`Entries`](crate::Entries)
    /// has only its name**, because a descriptor has no path.
    ///
    /// Use the path in messages. It resolves to something else as soon as one of its directories is
    /// replaced with a link, whereas the descriptor stays the directory that was read. To act on
    /// the entry, use [`open_file`](Self::open_file), [`remove_file`](Self::remove_file), or `*at`
    /// calls with [`dir_fd`](Self::dir_fd) and [`name_cstr`](Self::name_cstr).
    ///
    /// # Performance
    ///
    /// Each call takes an allocation.
    pub fn path(&self) -> PathBuf {
        let (directory, name) = (self.directory.path, self.name());
        let mut path = Vec::with_capacity(directory.len() + 1 + name.len());
        join_into(&mut path, directory, name);
        OsString::from_vec(path).into()
    }

    /// Parses the name as a number, such as a PID, a TID or a descriptor. Only a decimal number up
    /// to `u32::MAX` counts, without a sign or a leading zero.
    #[doc(alias("pid", "proc"))]
    #[inline]
    pub fn numeric_name(&self) -> Option<u32> {
        canonical_decimal(self.name())
    }

    /// Tells the type of the entry itself: a symbolic link is a `Symlink`.
    ///
    /// On most file systems the listing has the type, and nothing is asked. At a mount point it is
    /// the type of what is covered: a device that is mounted over a file, as in containers, still
    /// counts as a file.
    ///
    /// # Errors
    ///
    /// The errors of [`metadata`](Self::metadata), if the listing does not have the type.
    #[doc(alias("is_dir", "is_file", "is_symlink", "path_is_symlink"))]
    #[inline]
    pub fn file_type(&self) -> Result<FileType, Error> {
        match self.d_type() {
            FileType::Unknown => {
                let queried = self.directory.query_type(self.name_cstr())?;
                self.note_type(queried);
                Ok(queried)
            }
            known => Ok(known),
        }
    }

    /// Returns the type in the listing. It can be `Unknown`: some file systems never tell it. Use
    /// [`file_type`](Self::file_type) to tell directories from files.
    #[doc(alias = "DT_UNKNOWN")]
    #[inline]
    pub fn d_type(&self) -> FileType {
        self.record.d_type()
    }

    /// Returns the descriptor of the directory that the entry is in, for `*at` calls in the loop.
    ///
    /// **Do not read the directory through it**, or through a duplicate: that takes entries from
    /// the loop, without an error. Read [`openat(fd, ".")`](crate::openat) instead.
    ///
    /// ```
    /// use rustix::fs::{AtFlags, StatxFlags, statx};
    ///
    /// /// Queries the number of the mount, which `Metadata` lacks.
    /// fn mount(entry: &lendir::Entry<'_>) -> Result<u64, lendir::Error> {
    ///     let (dir, name) = (entry.dir_fd(), entry.name_cstr());
    ///     match statx(dir, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::MNT_ID) {
    ///         Ok(found) => Ok(found.stx_mnt_id),
    ///         Err(errno) => Err(entry.wrap_error(errno)),
    ///     }
    /// }
    /// ```
    #[doc(alias("dirfd", "dir"))]
    #[inline]
    pub fn dir_fd(&self) -> BorrowedFd<'a> {
        self.directory.fd
    }

    /// Queries the metadata of the entry itself: its size, times, owner and more.
    ///
    /// ```
    /// let mut bytes = 0;
    /// let mut dir = lendir::read_dir("src")?;
    /// while let Some(entry) = dir.next()? {
    ///     match entry.metadata() {
    ///         Ok(metadata) => bytes += metadata.len(),
    ///         Err(error) if error.is_gone() => {} // removed since it was listed
    ///         Err(error) => return Err(error),
    ///     }
    /// }
    /// println!("{bytes} bytes");
    /// # assert!(bytes > 0);
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// A symbolic link is not followed, nor is an automount point mounted. At a mount point, which
    /// can also be a file, you see what is mounted there.
    ///
    /// A walk believes the answer, and does not try to enter what turns out not to be a directory.
    /// If the query fails, the walk still tries, and reports its own errors.
    ///
    /// # Errors
    ///
    /// The errors of [fstatat(2)], such as `EACCES` if you have no permission to search the
    /// directory. [`Error::is_gone`] recognises those of an entry that no longer exists.
    ///
    /// # Performance
    ///
    /// One `statx` and, where that fails, one `fstatat`, unless the walk has [fetched the
    /// metadata](crate::WalkOptions::metadata).
    ///
    /// [fstatat(2)]: https://man7.org/linux/man-pages/man2/fstatat.2.html
    #[doc(alias("stat", "statx", "fstatat", "lstat", "symlink_metadata", "size", "len"))]
    #[doc(alias("permissions", "uid", "nlink", "mtime", "modified", "btime", "created"))]
    pub fn metadata(&self) -> Result<Metadata, Error> {
        let metadata = match self.record {
            Record::Kept { metadata: Some(fetched), .. } => fetched.clone(),
            _ => self.call(|dir, name| Metadata::query(dir, name, NOT_BEYOND))?,
        };
        self.note_type(metadata.file_type());
        Ok(metadata)
    }

    /// Reads where the symbolic link points to, whatever the length of its target.
    ///
    /// ```
    /// let mut fds = lendir::read_dir("/proc/self/fd")?;
    /// while let Some(fd) = fds.next()? {
    ///     println!("{} -> {:?}", fd.name().escape_ascii(), fd.read_link()?);
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// A relative target is relative to the directory of the entry, not to the working directory.
    /// In `/proc` the target can be text that is not a path, such as `socket:[8]`.
    ///
    /// # Errors
    ///
    /// The errors of [readlinkat(2)]:
    ///
    /// - `EINVAL`: the entry is not a symbolic link.
    /// - `EACCES`: you have no permission to search the directory or, in `/proc`, to read the link.
    /// - `ENAMETOOLONG`: in `/proc/PID/fd`, the path of the file is longer than 4,096 bytes.
    ///
    /// # Performance
    ///
    /// Each call takes an allocation.
    ///
    /// [readlinkat(2)]: https://man7.org/linux/man-pages/man2/readlinkat.2.html
    #[doc(alias("readlink", "readlinkat"))]
    pub fn read_link(&self) -> Result<PathBuf, Error> {
        let target = self.call(|dir, name| rustix::fs::readlinkat(dir, name, Vec::new()))?;
        Ok(OsString::from_vec(target.into_bytes()).into())
    }

    /// Opens the regular file at this entry for reading.
    ///
    /// Opening alone can wake a writer that waits at a FIFO, or wait for one. That is why an entry
    /// is refused unopened if the listing, or else a query, says that it is not a regular file. The
    /// type is checked again after opening, because another process can swap the file in between.
    /// What it swaps in is opened for a moment, which neither waits at a FIFO nor makes a terminal
    /// the controlling one.
    ///
    /// ```
    /// use std::io::Read;
    ///
    /// let mut dir = lendir::read_dir("src")?;
    /// if let Some(entry) = dir.find(|entry| entry.name() == b"lib.rs")? {
    ///     let mut text = String::new();
    ///     let read = entry.open_file()?.read_to_string(&mut text);
    ///     read.map_err(|error| entry.wrap_error(error))?;
    /// #   assert!(text.contains("mod read_dir"));
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// If another process holds a lease on the file, as Samba and NFS servers do for their clients,
    /// this waits until the holder gives it up, like `File::open`. Do not open files that your
    /// process has locked: closing one drops all POSIX locks on it.
    ///
    /// # Errors
    ///
    /// - [`InvalidInput`](io::ErrorKind::InvalidInput): the entry is not a regular file.
    /// - The errors of [`file_type`](Self::file_type), and of [openat(2)], such as `EACCES`: you
    ///   have no permission to read the file.
    /// - `ELOOP` or `ENXIO`: another process has put a link or a socket in its place.
    /// - `EAGAIN`: the file has a lease, and /proc, which waiting needs, is not mounted.
    ///
    /// # Performance
    ///
    /// One `openat` and one `fstat`, and a query if the listing does not tell the type.
    ///
    /// [openat(2)]: https://man7.org/linux/man-pages/man2/openat.2.html
    #[doc(alias("open", "openat", "hash", "cap_std", "toctou", "O_NOCTTY", "EWOULDBLOCK"))]
    pub fn open_file(&self) -> Result<File, Error> {
        if !self.file_type()?.is_file() {
            return Err(self.not_a_file());
        }
        let opened = match self.open(FILE | OFlags::NONBLOCK) {
            Err(error) if error.raw_os_error() == Some(Errno::AGAIN.raw_os_error()) => {
                self.open_leased(error)
            }
            opened => opened,
        }?;
        self.check_file(&opened).map(|()| opened.into())
    }

    /// Opens the entry, unless it is a symbolic link.
    fn open(&self, flags: OFlags) -> Result<OwnedFd, Error> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        self.call(|dir, name| rustix::fs::openat(dir, name, flags, Mode::empty()))
    }

    /// Opens the file as soon as its lease is given up. Returns `refusal` without /proc.
    #[cold]
    fn open_leased(&self, refusal: Error) -> Result<OwnedFd, Error> {
        // By its descriptor, so that nothing that takes the name meanwhile is opened.
        let file = self.open(OFlags::PATH)?;
        self.check_file(&file)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fds = rustix::fs::openat(CWD, c"/proc/thread-self/fd", flags, Mode::empty());
        match fds.ok().filter(|fds| FileSystem::of(fds) == Ok(FileSystem::PROC)) {
            None => Err(refusal),
            Some(fds) => self.call(|_, _| {
                let number = DecInt::from_fd(&file);
                rustix::fs::openat(&fds, number.as_c_str(), FILE | OFlags::CLOEXEC, Mode::empty())
            }),
        }
    }

    /// Returns an error unless `fd` is a regular file.
    fn check_file(&self, fd: &OwnedFd) -> Result<(), Error> {
        let stat = self.call(|_, _| rustix::fs::fstat(fd))?;
        if FileType::from_mode(stat.st_mode).is_file() { Ok(()) } else { Err(self.not_a_file()) }
    }

    #[cold]
    fn not_a_file(&self) -> Error {
        self.wrap_error(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"))
    }

    /// Removes the entry, unless it is a directory: the name in the directory that listed it,
    /// wherever that has been moved, and whatever the path resolves to by now.
    ///
    /// ```
    /// fn remove_temporary(tree: &std::path::Path) -> Result<(), lendir::Error> {
    ///     let mut walk = lendir::walk(tree)?;
    ///     while let Some(entry) = walk.next_or_report(|error| eprintln!("{error}")) {
    ///         if entry.name().ends_with(b".tmp") && !entry.file_type()?.is_dir() {
    ///             entry.remove_file()?;
    ///         }
    ///     }
    ///     Ok(())
    /// }
    /// # let made = tempfile::tempdir()?;
    /// # std::fs::write(made.path().join("old.tmp"), "")?;
    /// # remove_temporary(made.path())?;
    /// # assert!(!made.path().join("old.tmp").exists());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// A symbolic link is removed itself. If another process has put another file in place of the
    /// entry, that file is removed, because the kernel removes by name.
    ///
    /// # Errors
    ///
    /// The errors of [unlinkat(2)]:
    ///
    /// - `EISDIR`: the entry is a directory.
    /// - `ENOENT`: the entry [is gone](Error::is_gone).
    /// - `EACCES` or `EPERM`: you have no permission to write to the directory, or it is sticky,
    ///   and neither it nor the entry is yours.
    /// - `EBUSY`: something is mounted on the entry.
    ///
    /// [unlinkat(2)]: https://man7.org/linux/man-pages/man2/unlinkat.2.html
    #[doc(alias("unlink", "unlinkat", "delete"))]
    pub fn remove_file(&self) -> Result<(), Error> {
        self.remove(AtFlags::empty())
    }

    /// Removes the entry if it is an empty directory, by its name in the directory that listed it:
    /// see [`remove_file`](Self::remove_file). A walk does not enter what you have removed.
    ///
    /// A tree is removed from its leaves up: [a recipe](crate::recipes#remove-a-tree) does that by
    /// [`Dir::remove_dir`](crate::Dir::remove_dir).
    ///
    /// # Errors
    ///
    /// The errors of [`remove_file`](Self::remove_file) except `EISDIR`, and these:
    ///
    /// - `ENOTEMPTY`: the directory has entries.
    /// - `ENOTDIR`: the entry is not a directory.
    #[doc(alias("rmdir", "unlinkat", "delete"))]
    pub fn remove_dir(&self) -> Result<(), Error> {
        self.remove(AtFlags::REMOVEDIR)
    }

    fn remove(&self, flags: AtFlags) -> Result<(), Error> {
        self.call(|dir, name| rustix::fs::unlinkat(dir, name, flags))?;
        self.note_type(FileType::RegularFile); // so that no walk enters what is gone
        Ok(())
    }

    /// Turns the error of your own call into an [`Error`] with the entry's [`path`](Self::path):
    /// see [`Error::new`].
    ///
    /// ```
    /// use rustix::fs::{Mode, OFlags, openat};
    /// use lendir::{Entry, Error};
    /// use std::os::fd::OwnedFd;
    ///
    /// fn open_fifo(entry: &Entry<'_>) -> Result<OwnedFd, Error> {
    ///     let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    ///     let opened = openat(entry.dir_fd(), entry.name_cstr(), flags, Mode::empty());
    ///     opened.map_err(|errno| entry.wrap_error(errno))
    /// }
    /// ```
    #[cold]
    #[must_use = "this makes an error, and reports nothing"]
    pub fn wrap_error(&self, cause: impl Into<io::Error>) -> Error {
        self.directory.error_at(self.name(), cause)
    }

    /// Calls `call` with the directory and the name, again after `EINTR`.
    fn call<T>(
        &self,
        call: impl Fn(BorrowedFd<'a>, &CStr) -> Result<T, Errno>,
    ) -> Result<T, Error> {
        let name = self.name_cstr();
        retry_on_intr(|| call(self.directory.fd, name)).map_err(|errno| self.wrap_error(errno))
    }

    fn note_type(&self, file_type: FileType) {
        if let Some(queried) = self.queried {
            queried.set(Some(file_type));
        }
    }

    /// Returns the inode number in the listing (`d_ino`), which can be 0.
    ///
    /// It does not identify a file: compare `dev` and `ino` of the [`metadata`](Self::metadata) for
    /// that. At a mount point it is the number of what is covered, and on an overlay two entries of
    /// one directory can have numbers from different devices.
    #[doc(alias("d_ino", "inode_number"))]
    #[inline]
    pub fn ino(&self) -> u64 {
        match &self.record {
            Record::Raw(raw) => raw.ino(),
            Record::Kept { bytes, .. } => kept_field(bytes, 0),
        }
    }

    /// Returns the position after this entry (`d_off`), for
    /// [`Entries::seek`](crate::Entries::seek), which says how long it is valid. Cookies need not
    /// ascend, because they are hashes on some file systems.
    #[doc(alias("d_off", "telldir"))]
    #[inline]
    pub fn cookie(&self) -> u64 {
        match &self.record {
            Record::Raw(raw) => raw.next_entry_cookie(),
            Record::Kept { bytes, .. } => kept_field(bytes, 8),
        }
    }
}

debug!(Entry<'_>, |entry| name: entry.name_cstr(), d_type: entry.d_type(), ino: entry.ino());

#[inline]
pub(crate) fn canonical_decimal(name: &[u8]) -> Option<u32> {
    // `parse` also accepts a sign and leading zeros, so the first byte decides.
    match name {
        b"0" | [b'1'..=b'9', ..] => str::from_utf8(name).ok()?.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::canonical_decimal;

    #[test]
    fn only_canonical_decimals_are_numbers() {
        for number in [0, 1, 9, 10, 4_194_304, 999_999_999, 1_000_000_000, u32::MAX - 1, u32::MAX] {
            assert_eq!(canonical_decimal(number.to_string().as_bytes()), Some(number));
        }
        for name in [
            "",
            "00",
            "01",
            "+1",
            "-1",
            " 1",
            "1 ",
            "1a",
            "a1",
            "0x1",
            "1.",
            "4294967296",
            "9999999999",
            "99999999999",
        ] {
            assert_eq!(canonical_decimal(name.as_bytes()), None, "{name:?}");
        }
        assert_eq!(canonical_decimal("١".as_bytes()), None);
        assert_eq!(canonical_decimal(&[b'1', 0xff]), None);
        assert_eq!(canonical_decimal(&[b'9'; 4095]), None);
    }
}
