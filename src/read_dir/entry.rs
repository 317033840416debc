//! `Entry`, and `NamedEntry`, which queries the file system for each kind of entry. This module does not know where an entry comes
//! from, nor what a walk makes of an outcome.

use super::entry_state::{EntryState, EntryUpdates};
use crate::error::Error;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDirEntry, Stat, Statx, StatxFlags};
use rustix::io::retry_on_intr;
use std::ffi::{CStr, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::{fmt, io};

/// One entry of a directory. [`Entries`](crate::Entries), [`ReadDir`](crate::ReadDir) and [`Dir`](crate::Dir) lend it until the
/// next call of their `next`.
///
/// Its name lives no longer than the entry does. The kernel's listing holds the name, the inode number and mostly the type:
/// these cost nothing. [`stat`](Self::stat), [`statx`](Self::statx), [`read_link`](Self::read_link), [`open`](Self::open)
/// and, where the listing has no type, [`file_type`](Self::file_type) query the file system, each by a call relative to the
/// directory, retried after `EINTR`; their errors have the [`path`](Self::path).
///
/// ```
/// use lendir::{Entry, Error, FileType};
///
/// fn line(entry: &Entry<'_>) -> Result<String, Error> {
///     let mark = if entry.file_type()?.is_dir() { "/" } else { "" };
///     Ok(format!("{:8} {}{mark}", entry.stat()?.st_size, entry.name().escape_ascii()))
/// }
/// ```
#[doc(alias = "dirent")]
pub struct Entry<'a> {
    pub(crate) record: RawDirEntry<'a>,
    pub(crate) directory: Directory<'a>,
    /// The cell that collects updates for a walk. `None` without a walk.
    pub(crate) updates: Option<&'a EntryUpdates>,
}

/// The directory that entries are in.
#[derive(Clone, Copy)]
pub(crate) struct Directory<'a> {
    pub(crate) fd: BorrowedFd<'a>,
    /// The path, or an empty one if it is not known.
    pub(crate) path: &'a [u8],
    /// The number of levels below the root of a walk.
    pub(crate) depth: usize,
}

impl Directory<'_> {
    /// Returns an error of the directory itself.
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

/// The flags that query the entry itself: no link is followed, nothing is mounted.
const NOT_BEYOND: AtFlags = AtFlags::SYMLINK_NOFOLLOW.union(AtFlags::NO_AUTOMOUNT);

/// The path of an entry.
pub(crate) fn join(directory: &[u8], name: &[u8]) -> PathBuf {
    let mut path = PathBuf::with_capacity(directory.len() + 1 + name.len());
    path.push(OsStr::from_bytes(directory));
    path.push(OsStr::from_bytes(name));
    path
}

impl<'a> Entry<'a> {
    /// The name: any bytes but NUL and `/`, at least one, not necessarily UTF-8.
    #[doc(alias("d_name", "file_name"))]
    #[inline]
    pub fn name(&self) -> &[u8] {
        self.record.file_name().to_bytes()
    }

    /// The name with its NUL, which goes straight into `openat`, `statat`, `unlinkat` or `readlinkat`: no copy.
    #[inline]
    pub fn name_cstr(&self) -> &CStr {
        self.record.file_name()
    }

    /// The name for `std`: `Path::new(entry.name_os())`.
    #[inline]
    pub fn name_os(&self) -> &OsStr {
        OsStr::from_bytes(self.name())
    }

    /// The path of the entry: that of its directory, as [`WalkDirs`](crate::WalkDirs) or [`read_dir`](crate::read_dir()) was given it,
    /// and the name. **From [`Entries`](crate::Entries) it is the name alone**, because a descriptor has no path.
    ///
    /// **A walk stays inside its tree; this path does not**, if others replace a directory on it by a link. It is for people to
    /// read. To change or remove the entry, or to read a file that others may swap, use [`open`](Self::open), or `*at` calls
    /// with [`dir_fd`](Self::dir_fd) and [`name_cstr`](Self::name_cstr).
    ///
    /// Costs: one allocation.
    pub fn path(&self) -> PathBuf {
        join(self.directory.path, self.name())
    }

    /// How many levels it is below the root of the walk: 1 in the root. Without a walk it is 1.
    #[doc(alias = "min_depth")]
    #[inline]
    pub fn depth(&self) -> usize {
        self.directory.depth + 1
    }

    /// The name as a number, if it is one in canonical decimal: a PID, a TID, a descriptor.
    ///
    /// No sign, no leading zero, at most `u32::MAX`; `None` for any other name.
    #[inline]
    pub fn numeric_name(&self) -> Option<u32> {
        canonical_decimal(self.name())
    }

    /// The type of the entry itself: of a link, `Symlink`. On most file systems the kernel's listing has it, and this costs
    /// nothing and cannot fail.
    ///
    /// Where the listing has none, this is a [`stat`](Self::stat): it costs one `fstatat`, and a walk relies on the answer.
    ///
    /// # Errors
    ///
    /// Where the listing has no type, what [`stat`](Self::stat) can fail with.
    #[doc(alias("is_dir", "is_file", "is_symlink"))]
    #[inline]
    pub fn file_type(&self) -> Result<FileType, Error> {
        match self.d_type() {
            FileType::Unknown => self.named().query_type(),
            known => Ok(known),
        }
    }

    /// The type in the kernel's listing. To tell directories from files, use [`file_type`](Self::file_type).
    ///
    /// `FileType::Unknown` is a real answer: some file systems never tell the type, and a FUSE server can tell anything. At a
    /// mount point it is the type of the mount point itself, not of what is mounted there.
    #[doc(alias = "DT_UNKNOWN")]
    #[inline]
    pub fn d_type(&self) -> FileType {
        self.record.file_type()
    }

    /// The directory that the entry is in, for `*at` calls in the loop, where [`Entries`](crate::Entries) itself is borrowed.
    ///
    /// ```
    /// use lendir::rustix::fs::{AtFlags, Stat, statat};
    ///
    /// /// Of what it leads to, if it is a link.
    /// fn stat_behind(entry: &lendir::Entry<'_>) -> Result<Stat, lendir::Error> {
    ///     let stat = statat(entry.dir_fd(), entry.name_cstr(), AtFlags::empty());
    ///     stat.map_err(|errno| entry.wrap_error(errno))
    /// }
    /// ```
    #[doc(alias("dirfd", "dir"))]
    #[inline]
    pub fn dir_fd(&self) -> BorrowedFd<'a> {
        self.directory.fd
    }

    /// What the file system knows of the entry: its size, times, owner. A symbolic link is not followed, so in `/proc/PID/fd`
    /// each entry answers as a link; an automount point is not mounted. A mount point, which can be a file, answers for what is
    /// mounted there: `st_ino` is not [`ino`](Self::ino).
    ///
    /// **A walk relies on the answer**: it does not open what is no directory, or a link that you do not [`follow`](Self::follow).
    /// After an error it still tries to go below the entry, but if it cannot open it either, that is no second error. If it can,
    /// the errors of what is below come as any others. What you choose by [`Dir::enter`](crate::Dir::enter) is opened all the same.
    ///
    /// For a [`std::fs::Metadata`], call `File::from(entry.open(OFlags::PATH)?).metadata()`.
    ///
    /// Costs: one `fstatat`.
    ///
    /// # Errors
    ///
    /// What [fstatat(2)] can fail with: `ENOENT` if the entry [is gone](Error::is_gone) by now, or `ESRCH` with its process;
    /// `EACCES` without search permission.
    ///
    /// [fstatat(2)]: https://man7.org/linux/man-pages/man2/fstatat.2.html
    #[doc(alias("metadata", "fstatat"))]
    pub fn stat(&self) -> Result<Stat, Error> {
        self.named().stat()
    }

    /// As [`stat`](Self::stat), but by one `statx`: only what `mask` names, and what `stat` does not have, the time of birth
    /// and the mount. On a network file system, a query of less can mean waiting less. `ENOSYS` before Linux 4.11. A walk relies on
    /// an answer that has the type; an error changes nothing for it.
    pub fn statx(&self, mask: StatxFlags) -> Result<Statx, Error> {
        self.named().statx(mask)
    }

    /// Where the symbolic link leads, however long that is. A relative path leads from the directory of the entry, not from the
    /// current one. In /proc it can be a text that is no path, such as `socket:[8]`.
    ///
    /// Costs: one `readlinkat`, and an allocation; more of both for a path of 256 bytes or more.
    ///
    /// # Errors
    ///
    /// What [readlinkat(2)] can fail with: `EINVAL` for what is no link, `ENOENT` if the entry [is gone](Error::is_gone) by
    /// now, or `ESRCH` with its process; `EACCES` if you may not. In `/proc/PID/fd` it fails with `ENAMETOOLONG` for a file
    /// whose path is longer than `PATH_MAX` (4096 bytes).
    ///
    /// [readlinkat(2)]: https://man7.org/linux/man-pages/man2/readlinkat.2.html
    #[doc(alias("readlink", "readlinkat"))]
    pub fn read_link(&self) -> Result<PathBuf, Error> {
        self.named().read_link()
    }

    /// Opens the entry, with `O_NOFOLLOW` and `O_CLOEXEC` beside the [`OFlags`] given. [`File::from`](std::fs::File) makes a file
    /// of it.
    ///
    /// Opening a FIFO waits for its other end, unless `OFlags::NONBLOCK` is among the flags. `OFlags::PATH` opens the entry
    /// itself without side effects: it opens no device, mounts nothing at an automount point, and opens a symbolic link itself.
    ///
    /// Costs: one `openat`.
    ///
    /// # Errors
    ///
    /// What [openat(2)] can fail with: `ELOOP` for a symbolic link, `ENOTDIR` for all but a directory with
    /// `OFlags::DIRECTORY`, `ENXIO` for a socket, `ENOENT` if the entry [is gone](Error::is_gone) by now, or `ESRCH` with its
    /// process; `EACCES` if you may not.
    ///
    /// [openat(2)]: https://man7.org/linux/man-pages/man2/openat.2.html
    /// [`OFlags`]: https://docs.rs/rustix/1/rustix/fs/struct.OFlags.html
    #[doc(alias = "openat")]
    pub fn open(&self, flags: OFlags) -> Result<OwnedFd, Error> {
        self.named().open(flags)
    }

    /// Returns an [`Error`] with this entry's [`path`](Self::path) and [`depth`](Self::depth), for calls that you make
    /// yourself. `cause` is anything that converts into a [`std::io::Error`]; see [`Error::new`].
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
    #[must_use = "this makes an error, and reports nothing"]
    pub fn wrap_error(&self, cause: impl Into<io::Error>) -> Error {
        self.named().error(cause)
    }

    /// Keeps the walk from going below this entry. Of this, [`follow`](Self::follow), and the calls for its name, such as
    /// [`Dir::skip_name`](crate::Dir::skip_name), the last one counts. It works in closures too, as of
    /// [`Dir::find`](crate::Dir::find). It does nothing after [`Dir::skip_subdirs`](crate::Dir::skip_subdirs), nor for an entry of a
    /// [`ReadDir`](crate::ReadDir) or of [`Entries`](crate::Entries), which has nothing below it to skip.
    ///
    /// Costs nothing; in a directory in which you have named entries, what [`Dir::skip_name`](crate::Dir::skip_name) costs.
    #[doc(alias("hidden", "prune", "filter_entry"))]
    #[inline]
    pub fn skip_subtree(&self) {
        self.set_request(EntryState::SKIP);
    }

    /// Has the walk go below this entry even through a link. A link to a file, or to nothing, is no error.
    /// [`file_type`](Self::file_type) and [`stat`](Self::stat) still answer for the link itself. For an entry that is no
    /// link, this only takes back [`skip_subtree`](Self::skip_subtree), and it does nothing where that does nothing.
    ///
    /// **Below this link, the walk no longer promises to stay in its tree**: anyone who can change the link decides where it
    /// leads. To limit that, look where it led before anything is read: `if dir.is_link() && !is_allowed(dir.fd()) {
    /// dir.skip_subdirs(); continue }`. Links below it are lent and not followed. Under
    /// [`same_mount`](crate::WalkDirsOptions::same_mount), a link to another mount is not entered.
    ///
    /// A link that leads back to the root, or to a directory on the path to it, is a loop. Below a followed link, so is any
    /// directory that is already on that path. A loop is not entered. It is the error `ELOOP`, and
    /// [`loop_ancestor`](Error::loop_ancestor) is the directory to which the link leads back. A link that leads only to other
    /// links is `ELOOP` too, without such a directory.
    ///
    /// To recognise a loop, the walk goes up from the link by `..`. Where that fails, because a directory above may not be searched
    /// any more or a server does not answer, it does not enter what it cannot know to be no loop: the links below there are errors,
    /// such as `EACCES`, each with its own path, though the link, its directory and its target may be read.
    ///
    /// Without a loop, links still multiply: 54 entries in 18 layers, with two links to each next layer, are 524,287 visits.
    /// [`max_depth`](crate::WalkDirsOptions::max_depth) bounds that.
    ///
    /// ```
    /// let mut walk = lendir::walk_dirs("/sys/class/net")?;
    /// while let Some(mut dir) = walk.next_ok(|error| eprintln!("{error}")) {
    ///     let is_root = dir.depth() == 0;
    ///     while let Some(entry) = dir.next_ok(|error| eprintln!("{error}")) {
    ///         if is_root {
    ///             entry.follow(); // to the devices, and no further; for a file it does nothing
    ///         }
    ///     }
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// Costs: for each link, instead of `openat2`: `openat`, `fstatfs`, and `statx` of the directory and, with an `openat` and a
    /// `close`, of each ancestor that is not known from a link before; meanwhile two descriptors more than
    /// [`max_open`](crate::WalkDirsOptions::max_open). Below a link, one `statx` for each directory. To come back to a level that was
    /// closed early and is right above a link, an `openat` for each directory from the deepest open level above it to there, and a
    /// `statx` for each level and each link on that way. In memory, some 32 bytes for each directory above a link, and 24 for each
    /// link on the path.
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
        // A walk has no state of an entry that it never enters.
        let updates = self.updates.filter(|_| EntryState::from_type(self.d_type()).is_some());
        NamedEntry { directory: self.directory, name: self.name_cstr(), updates }
    }

    /// Returns the inode number in the kernel's listing (`d_ino`). 0 is a number like any other.
    ///
    /// Do not take the number for the file's identity: `st_dev` and `st_ino` of [`stat`](Self::stat) are that. `ino` differs
    /// from `st_ino` at a mount point, where it is the number of the covered directory, and can differ on an overlay. The
    /// numbers of two entries of one directory can belong to different devices: on an overlay, and where an entry is a btrfs
    /// subvolume.
    #[doc(alias("d_ino", "inode_number"))]
    #[inline]
    pub fn ino(&self) -> u64 {
        self.record.ino()
    }

    /// The position after this entry (`d_off`), for [`Entries::seek`](crate::Entries::seek), which says how long it holds.
    /// Opaque: neither ascending nor dense, and on some file systems a hash.
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
    match name {
        b"0" => Some(0),
        [b'1'..=b'9', ..] => name.iter().try_fold(0u32, |number, byte| {
            let digit = byte.is_ascii_digit().then(|| u32::from(byte - b'0'))?;
            number.checked_mul(10)?.checked_add(digit)
        }),
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
