//! `Entry`, and `NamedEntry`, which queries the file system for each kind of entry. The kinds are
//! `Entry` here, `ListedEntry` (`listing/listed_entry.rs`) and `WalkEntry` (`walk/walk_entry.rs`).
//!
//! This module does not know where an entry comes from, nor how a walk acts on an outcome.

use super::entry_state::{EntryState, EntryUpdates};
use crate::error::Error;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDirEntry, Stat, Statx, StatxFlags};
use rustix::io::retry_on_intr;
use std::ffi::{CStr, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::{fmt, io, str};

/// An entry of a directory. [`Entries`](crate::Entries), [`ReadDir`](crate::ReadDir) and
/// [`Dir`](crate::Dir) yield it, borrowed until the next call to their `next`.
///
/// ```
/// use lendir::{Entry, Error};
///
/// fn line(entry: &Entry<'_>) -> Result<String, Error> {
///     let mark = if entry.file_type()?.is_dir() { "/" } else { "" };
///     Ok(format!("{:8} {}{mark}", entry.stat()?.st_size, entry.name().escape_ascii()))
/// }
///
/// let mut dir = lendir::read_dir("/sys/class")?;
/// while let Some(entry) = dir.next()? {
///     match line(&entry) {
///         Ok(line) => println!("{line}"),
///         Err(error) => eprintln!("{error}"),
///     }
/// }
/// # Ok::<(), Error>(())
/// ```
///
/// The kernel's record holds the name, the inode number and, on most file systems, the type.
/// Reading these fields takes no system call.
///
/// [`stat`](Self::stat), [`statx`](Self::statx), [`read_link`](Self::read_link) and
/// [`open`](Self::open) make one system call each, relative to the directory.
/// [`file_type`](Self::file_type) makes one only if the record has no type, and
/// [`read_link`](Self::read_link) makes more for a long target. These calls are retried after
/// `EINTR`, and their errors have the [`path`](Self::path) of the entry.
#[doc(alias = "dirent")]
pub struct Entry<'a> {
    pub(crate) record: RawDirEntry<'a>,
    pub(crate) directory: Directory<'a>,
    /// The cell that collects updates for a walk. `None` without a walk.
    pub(crate) updates: Option<&'a EntryUpdates>,
}

/// The directory that an entry is in.
#[derive(Clone, Copy)]
pub(crate) struct Directory<'a> {
    pub(crate) fd: BorrowedFd<'a>,
    /// The path. Empty if the path is not known.
    pub(crate) path: &'a [u8],
    /// The number of levels below the root of a walk.
    pub(crate) depth: usize,
}

impl Directory<'_> {
    /// Returns an error for the directory itself.
    #[cold]
    pub(crate) fn error(self, cause: impl Into<io::Error>) -> Error {
        Error::at_depth(OsStr::from_bytes(self.path), self.depth, cause)
    }
}

/// The name of an entry in its directory, by which every kind of entry is queried.
#[derive(Clone, Copy)]
pub(crate) struct NamedEntry<'a> {
    pub(crate) directory: Directory<'a>,
    pub(crate) name: &'a CStr,
    /// The cell that gets the outcomes of queries. `None` if no walk acts on them.
    pub(crate) updates: Option<&'a EntryUpdates>,
}

impl NamedEntry<'_> {
    #[cold]
    pub(crate) fn error(self, cause: impl Into<io::Error>) -> Error {
        let Directory { path, depth, .. } = self.directory;
        Error::at_depth(join(path, self.name.to_bytes()), depth + 1, cause)
    }

    fn set_outcome(self, file_type: Option<FileType>) {
        if let Some(updates) = self.updates {
            updates.set_outcome(file_type);
        }
    }

    /// Returns the type of an entry whose record has none.
    #[cold]
    #[inline(never)]
    pub(crate) fn query_type(self) -> Result<FileType, Error> {
        Ok(FileType::from_raw_mode(self.stat()?.st_mode))
    }

    pub(crate) fn stat(self) -> Result<Stat, Error> {
        let stat = retry_on_intr(|| rustix::fs::statat(self.directory.fd, self.name, NOT_BEYOND));
        self.set_outcome(stat.ok().map(|stat| FileType::from_raw_mode(stat.st_mode)));
        stat.map_err(|errno| self.error(errno))
    }

    /// An error is not set as the outcome, because the kernel may refuse `statx` itself.
    pub(crate) fn statx(self, mask: StatxFlags) -> Result<Statx, Error> {
        let fd = self.directory.fd;
        let statx = retry_on_intr(|| rustix::fs::statx(fd, self.name, NOT_BEYOND, mask))
            .map_err(|errno| self.error(errno))?;
        if StatxFlags::from_bits_retain(statx.stx_mask).contains(StatxFlags::TYPE) {
            self.set_outcome(Some(FileType::from_raw_mode(statx.stx_mode.into())));
        }
        Ok(statx)
    }

    pub(crate) fn read_link(self) -> Result<PathBuf, Error> {
        let fd = self.directory.fd;
        let target = retry_on_intr(|| rustix::fs::readlinkat(fd, self.name, Vec::new()));
        let target = target.map_err(|errno| self.error(errno))?;
        Ok(OsString::from_vec(target.into_bytes()).into())
    }

    pub(crate) fn open(self, flags: OFlags) -> Result<OwnedFd, Error> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = self.directory.fd;
        let opened = retry_on_intr(|| rustix::fs::openat(fd, self.name, flags, Mode::empty()));
        opened.map_err(|errno| self.error(errno))
    }
}

/// Returns the type in the record of an entry. If that type is unknown, queries the entry.
#[inline]
pub(crate) fn file_type<'n>(
    d_type: FileType,
    named: impl FnOnce() -> NamedEntry<'n>,
) -> Result<FileType, Error> {
    if d_type == FileType::Unknown { named().query_type() } else { Ok(d_type) }
}

/// The flags to query an entry itself: no link is followed, and nothing is mounted.
const NOT_BEYOND: AtFlags = AtFlags::SYMLINK_NOFOLLOW.union(AtFlags::NO_AUTOMOUNT);

/// Returns the path of an entry.
pub(crate) fn join(directory: &[u8], name: &[u8]) -> PathBuf {
    let mut path = PathBuf::with_capacity(directory.len() + 1 + name.len());
    path.push(OsStr::from_bytes(directory));
    path.push(OsStr::from_bytes(name));
    path
}

impl<'a> Entry<'a> {
    /// Returns the name, which has at least one byte, no NUL and no `/`. A name need not be UTF-8.
    ///
    /// ```
    /// let mut dir = lendir::read_dir("/sys/class")?;
    /// while let Some(entry) = dir.next()? {
    ///     if entry.name().starts_with(b"net") {
    ///         println!("{}", entry.name().escape_ascii());
    ///     }
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    #[doc(alias("d_name", "file_name"))]
    #[inline]
    pub fn name(&self) -> &[u8] {
        self.record.file_name().to_bytes()
    }

    /// Returns the name with its NUL. Calls such as `openat`, `statat` and `unlinkat` take such a
    /// name without copying it.
    #[inline]
    pub fn name_cstr(&self) -> &CStr {
        self.record.file_name()
    }

    /// Returns the name as an `OsStr`, for `std`: `Path::new(entry.name_os())`.
    #[inline]
    pub fn name_os(&self) -> &OsStr {
        OsStr::from_bytes(self.name())
    }

    /// Returns the path of the directory, joined with the name. The result begins with the path
    /// that you passed to [`read_dir`](crate::read_dir()) or to the walk.
    ///
    /// **The path of an entry of [`Entries`](crate::Entries) is the name alone**, because a
    /// descriptor has no path.
    ///
    /// Use the path for messages. To change or remove the entry, or to read a file that another
    /// process can replace, use [`open`](Self::open), or `*at` calls with [`dir_fd`](Self::dir_fd)
    /// and [`name_cstr`](Self::name_cstr). A walk never leaves its tree. But a path leads elsewhere
    /// if another process replaces one of its directories with a link.
    ///
    /// # Performance
    ///
    /// Each call takes an allocation.
    pub fn path(&self) -> PathBuf {
        join(self.directory.path, self.name())
    }

    /// Returns the number of levels below the root of the walk. An entry of the root has depth 1.
    /// Without a walk, every entry has depth 1.
    #[doc(alias = "min_depth")]
    #[inline]
    pub fn depth(&self) -> usize {
        self.directory.depth + 1
    }

    /// Returns the name as a number, such as a PID, a TID or a descriptor. Returns `None` if the
    /// name is not such a number.
    ///
    /// The name must be a decimal number up to `u32::MAX`, without a sign or a leading zero.
    #[inline]
    pub fn numeric_name(&self) -> Option<u32> {
        canonical_decimal(self.name())
    }

    /// Returns the type of the entry itself. A symbolic link has the type `Symlink`.
    ///
    /// ```
    /// let mut dir = lendir::read_dir("/sys/class")?;
    /// while let Some(entry) = dir.next()? {
    ///     if entry.file_type()?.is_dir() {
    ///         println!("{}/", entry.name().escape_ascii());
    ///     }
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// On most file systems the kernel's record has the type. If the record has no type, this
    /// method calls [`stat`](Self::stat), and a walk acts on the outcome.
    ///
    /// # Errors
    ///
    /// Same as [`stat`](Self::stat), if the kernel's record has no type. Otherwise there is no
    /// error.
    #[doc(alias("is_dir", "is_file", "is_symlink"))]
    #[inline]
    pub fn file_type(&self) -> Result<FileType, Error> {
        file_type(self.d_type(), || self.named())
    }

    /// Returns the type in the kernel's record, which can be `Unknown`. To distinguish directories
    /// from files, use [`file_type`](Self::file_type).
    ///
    /// Some file systems never report the type, and a FUSE server can report any type. At a mount
    /// point, the record has the type of the covered file, not of the mounted file.
    #[doc(alias = "DT_UNKNOWN")]
    #[inline]
    pub fn d_type(&self) -> FileType {
        self.record.file_type()
    }

    /// Returns the descriptor of the directory that the entry is in, for `*at` calls in the loop.
    ///
    /// ```
    /// use lendir::rustix::fs::{AtFlags, Stat, statat};
    ///
    /// /// Returns the metadata of the file that a symbolic link leads to.
    /// fn stat_target(entry: &lendir::Entry<'_>) -> Result<Stat, lendir::Error> {
    ///     let stat = statat(entry.dir_fd(), entry.name_cstr(), AtFlags::empty());
    ///     stat.map_err(|errno| entry.wrap_error(errno))
    /// }
    /// ```
    #[doc(alias("dirfd", "dir"))]
    #[inline]
    pub fn dir_fd(&self) -> BorrowedFd<'a> {
        self.directory.fd
    }

    /// Returns the metadata of the entry itself, such as its size, times and owner.
    ///
    /// ```
    /// let mut bytes = 0;
    /// let mut dir = lendir::read_dir("src")?;
    /// while let Some(entry) = dir.next()? {
    ///     match entry.stat() {
    ///         Ok(stat) => bytes += stat.st_size,
    ///         Err(error) if error.is_gone() => {} // removed since it was listed
    ///         Err(error) => return Err(error),
    ///     }
    /// }
    /// # assert!(bytes > 0);
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// A symbolic link is not followed. In `/proc/PID/fd`, each entry is such a link. An automount
    /// point is not mounted. For a mount point, which can also be a file, this method returns the
    /// metadata of the mounted file. So `st_ino` usually differs from [`ino`](Self::ino).
    ///
    /// For a [`std::fs::Metadata`], call `File::from(entry.open(OFlags::PATH)?).metadata()`.
    ///
    /// In a walk, **the outcome decides whether the walk enters the entry**:
    ///
    /// - An entry that is not a directory is not opened. Links that you [`follow`](Self::follow),
    ///   and names that you pass to [`Dir::enter`](crate::Dir::enter), are opened all the same.
    /// - After an error, the walk still tries to descend into the entry. If the entry cannot be
    ///   opened either, the walk does not report a second error, unless no descriptor is left.
    ///   Errors below the entry are reported in the usual way.
    ///
    /// # Errors
    ///
    /// Returns an error if [fstatat(2)] fails:
    ///
    /// - `ENOENT` or `ESRCH`: the entry or its process no longer exists. See [`Error::is_gone`].
    /// - `EACCES`: the caller has no permission to search the directory.
    ///
    /// [fstatat(2)]: https://man7.org/linux/man-pages/man2/fstatat.2.html
    #[doc(alias("metadata", "fstatat"))]
    pub fn stat(&self) -> Result<Stat, Error> {
        self.named().stat()
    }

    /// Returns the fields that `mask` selects from the metadata of the entry itself. Unlike
    /// [`stat`](Self::stat), this method can return the birth time and the mount.
    ///
    /// ```
    /// use lendir::StatxFlags;
    ///
    /// let mut dir = lendir::read_dir("src")?;
    /// let entry = dir.next()?.expect("a module");
    /// let statx = entry.statx(StatxFlags::BTIME)?;
    /// if StatxFlags::from_bits_retain(statx.stx_mask).contains(StatxFlags::BTIME) {
    ///     println!("born {} s after 1970", statx.stx_btime.tv_sec);
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// `stx_attributes` is always filled in, whatever the `mask`. `stx_size` is a `u64`, whereas
    /// `st_size` of [`stat`](Self::stat) is an `i64`.
    ///
    /// A walk acts on an outcome that has the type, in the same way as with `stat`. An error
    /// changes nothing for the walk.
    ///
    /// # Errors
    ///
    /// Same as [`stat`](Self::stat), and `ENOSYS` before Linux 4.11.
    ///
    /// # Performance
    ///
    /// On a network file system, a smaller `mask` can save a request to the server.
    pub fn statx(&self, mask: StatxFlags) -> Result<Statx, Error> {
        self.named().statx(mask)
    }

    /// Returns the target of the symbolic link, whatever its length.
    ///
    /// ```
    /// let mut fds = lendir::read_dir("/proc/self/fd")?;
    /// while let Some(fd) = fds.next()? {
    ///     println!("{} -> {:?}", fd.name().escape_ascii(), fd.read_link()?);
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// A relative target is relative to the directory of the entry, not to the working directory of
    /// the process. In `/proc` the target can be text that is not a path, such as `socket:[8]`.
    ///
    /// # Errors
    ///
    /// Returns an error if [readlinkat(2)] fails:
    ///
    /// - `EINVAL`: the entry is not a symbolic link.
    /// - `ENOENT` or `ESRCH`: the entry or its process no longer exists. See [`Error::is_gone`].
    /// - `EACCES`: the caller has no permission to search the directory or, in `/proc`, to read the
    ///   link.
    /// - `ENAMETOOLONG`: in `/proc/PID/fd`, the path of the file is longer than `PATH_MAX` (4,096
    ///   bytes).
    ///
    /// # Performance
    ///
    /// Each call takes an allocation. A target of 256 bytes or more takes additional system calls.
    ///
    /// [readlinkat(2)]: https://man7.org/linux/man-pages/man2/readlinkat.2.html
    #[doc(alias("readlink", "readlinkat"))]
    pub fn read_link(&self) -> Result<PathBuf, Error> {
        self.named().read_link()
    }

    /// Opens the entry with the given [`OFlags`] plus `O_NOFOLLOW` and `O_CLOEXEC`, and returns the
    /// descriptor.
    ///
    /// ```
    /// use lendir::OFlags;
    /// use std::fs::File;
    /// use std::io::Read;
    ///
    /// let mut dir = lendir::read_dir("src")?;
    /// if let Some(entry) = dir.find(|entry| entry.name() == b"lib.rs")? {
    ///     let mut text = String::new();
    ///     File::from(entry.open(OFlags::RDONLY)?).read_to_string(&mut text)?;
    /// #   assert!(text.contains("mod read_dir"));
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// - Opening a FIFO waits for its other end. To prevent this, add `OFlags::NONBLOCK`.
    /// - `OFlags::PATH` opens the entry itself without side effects, even a symbolic link. With
    ///   this flag, no device is opened, and nothing is mounted at an automount point.
    ///
    /// # Errors
    ///
    /// Returns an error if [openat(2)] fails:
    ///
    /// - `ELOOP`: the entry is a symbolic link.
    /// - `ENOTDIR`: `flags` contains `OFlags::DIRECTORY`, and the entry is not a directory.
    /// - `ENXIO`: the entry is a socket.
    /// - `ENOENT` or `ESRCH`: the entry or its process no longer exists. See [`Error::is_gone`].
    /// - `EACCES`: the caller has no permission to open the entry.
    ///
    /// [openat(2)]: https://man7.org/linux/man-pages/man2/openat.2.html
    /// [`OFlags`]: https://docs.rs/rustix/1/rustix/fs/struct.OFlags.html
    #[doc(alias = "openat")]
    pub fn open(&self, flags: OFlags) -> Result<OwnedFd, Error> {
        self.named().open(flags)
    }

    /// Returns an [`Error`] with the entry's [`path`](Self::path) and [`depth`](Self::depth), for
    /// calls that you make yourself. `cause` is anything that converts into a [`std::io::Error`];
    /// see [`Error::new`].
    ///
    /// ```
    /// use lendir::{Entry, Error};
    /// use lendir::rustix::fs::{AtFlags, unlinkat};
    ///
    /// fn remove(entry: &Entry<'_>) -> Result<(), Error> {
    ///     let removed = unlinkat(entry.dir_fd(), entry.name_cstr(), AtFlags::empty());
    ///     removed.map_err(|errno| entry.wrap_error(errno))
    /// }
    /// ```
    #[cold]
    #[must_use = "this call creates an error, but does not report it"]
    pub fn wrap_error(&self, cause: impl Into<io::Error>) -> Error {
        self.named().error(cause)
    }

    /// Tells the walk not to descend into this entry.
    ///
    /// ```
    /// let mut walk = lendir::walk_dirs("/sys/class")?;
    /// while let Some(mut dir) = walk.next_ok(|error| eprintln!("{error}")) {
    ///     while let Some(entry) = dir.next_ok(|error| eprintln!("{error}")) {
    ///         if entry.name() == b".git" {
    ///             entry.skip_subtree();
    ///         }
    ///     }
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// The last request for an entry counts. [`follow`](Self::follow) and the calls with a name,
    /// such as [`Dir::skip_name`](crate::Dir::skip_name), are requests, too. Requests also work in
    /// closures, such as the argument of [`Dir::find`](crate::Dir::find).
    ///
    /// The request has no effect after [`Dir::skip_subdirs`](crate::Dir::skip_subdirs), nor on an
    /// entry of a [`ReadDir`](crate::ReadDir) or [`Entries`](crate::Entries).
    #[doc(alias("hidden", "prune", "filter_entry"))]
    #[inline]
    pub fn skip_subtree(&self) {
        self.set_request(EntryState::SKIP);
    }

    /// Tells the walk to descend into this entry even if it is a symbolic link.
    ///
    /// ```
    /// let mut walk = lendir::walk_dirs("/sys/class/net")?;
    /// while let Some(mut dir) = walk.next_ok(|error| eprintln!("{error}")) {
    ///     let is_root = dir.depth() == 0;
    ///     while let Some(entry) = dir.next_ok(|error| eprintln!("{error}")) {
    ///         if is_root {
    ///             entry.follow(); // links to devices; links below them are not followed
    ///         }
    ///     }
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// - A link to a file, or to nothing, is not an error.
    /// - [`file_type`](Self::file_type) and [`stat`](Self::stat) still describe the link itself.
    /// - If the entry is not a link, `follow` only cancels an earlier
    ///   [`skip_subtree`](Self::skip_subtree). `follow` has no effect where `skip_subtree` has
    ///   none.
    /// - Under [`same_mount`](crate::WalkDirsOptions::same_mount), a link to another mount is not
    ///   entered.
    /// - Links below a followed link are yielded, but are not followed unless you call `follow` for
    ///   them, too.
    ///
    /// **Below a followed link, the walk can leave its tree.** Any process that can change the link
    /// decides where the link leads. To limit this, check the directory before you read it:
    /// `if dir.is_link() && !is_allowed(dir.fd()) { dir.skip_subdirs(); continue }`.
    ///
    /// **Links multiply the work**, even without a loop: 54 entries can cause 524,287 visits. Set
    /// [`max_depth`](crate::WalkDirsOptions::max_depth) to limit the number of visits.
    ///
    /// # Errors
    ///
    /// This method itself returns no error. The walk reports each link that it cannot enter:
    ///
    /// - `ELOOP`: the link leads back to the root, or to a directory on the path to the link. Then
    ///   [`Error::loop_ancestor`] returns that directory. Below a followed link, any directory that
    ///   is already on the path causes the same error. A link that leads only to other links causes
    ///   `ELOOP`, too, but then there is no such directory.
    /// - `EACCES` or another error: the walk cannot tell whether the link causes a loop. This
    ///   happens if a directory above the link can no longer be searched, or if a server does not
    ///   answer. The walk does not enter such a link, even if the target can be read.
    ///
    /// # Performance
    ///
    /// A followed link takes three system calls for each directory above it, unless the walk has
    /// already compared this directory with an earlier link. Below the link, each directory takes
    /// one additional system call.
    ///
    /// While the walk follows a link, it holds two descriptors beyond
    /// [`max_open`](crate::WalkDirsOptions::max_open).
    #[doc(alias = "follow_links")]
    #[inline]
    pub fn follow(&self) {
        self.set_request(EntryState::FOLLOW);
    }

    #[inline]
    fn set_request(&self, request: EntryState) {
        if let Some(updates) = self.named().updates {
            updates.merge(request);
        }
    }

    #[inline]
    fn named(&self) -> NamedEntry<'_> {
        // A walk has no state for an entry that it never enters.
        let updates = self.updates.filter(|_| EntryState::from_type(self.d_type()).is_some());
        NamedEntry { directory: self.directory, name: self.name_cstr(), updates }
    }

    /// Returns the inode number in the kernel's record (`d_ino`). The number can be 0.
    ///
    /// Do not identify a file by this number: compare `st_dev` and `st_ino` of [`stat`](Self::stat)
    /// instead.
    ///
    /// - At a mount point, `ino` is the number of the covered file or directory.
    /// - On an overlay, `ino` can differ from `st_ino`.
    /// - On an overlay, or with btrfs subvolumes, two entries of one directory can have numbers
    ///   from different devices.
    #[doc(alias("d_ino", "inode_number"))]
    #[inline]
    pub fn ino(&self) -> u64 {
        self.record.ino()
    }

    /// Returns the position after this entry (`d_off`), for
    /// [`Entries::seek`](crate::Entries::seek). The documentation of `seek` explains how long a
    /// cookie is valid.
    ///
    /// Cookies need not ascend, because they are hashes on some file systems.
    #[doc(alias("d_off", "telldir"))]
    #[inline]
    pub fn cookie(&self) -> u64 {
        self.record.next_entry_cookie()
    }
}

impl fmt::Debug for Entry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("name", &self.name_cstr())
            .field("d_type", &self.d_type())
            .field("ino", &self.ino())
            .field("cookie", &self.cookie())
            .finish()
    }
}

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
