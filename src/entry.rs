//! `Entry`, and the answers that it shares with `SortedEntry`: numbers, and types that are asked of the file system.

#[cfg(doc)]
use crate::Entries;
use crate::FileType;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{AtFlags, RawDirEntry};
use rustix::io::retry_on_intr;
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::{fmt, io};

/// One entry of a directory, lent by [`Entries::next`] until its next turn.
///
/// Its name borrows from the entry, and so lives no longer than the entry does. The accessors never make a system call and
/// never allocate, [`resolve_file_type`](Self::resolve_file_type) apart.
#[doc(alias = "dirent")]
pub struct Entry<'a> {
    pub(crate) record: RawDirEntry<'a>,
    pub(crate) dir: BorrowedFd<'a>,
    /// The path of the directory, where it is known.
    pub(crate) above: &'a [u8],
}

impl Entry<'_> {
    /// The name: any bytes but NUL and `/`, at least one, not necessarily UTF-8.
    #[doc(alias = "d_name")]
    #[doc(alias = "file_name")]
    #[inline]
    #[must_use]
    pub fn name(&self) -> &[u8] {
        self.record.file_name().to_bytes()
    }

    /// The name with its NUL, which goes straight into `openat`, `statat`, `unlinkat` or `readlinkat`: no copy.
    ///
    /// ```
    /// # use lendir::{Buffer, Entries};
    /// # use rustix::fs::{statat, AtFlags};
    /// # let dir = lendir::open("/proc/self")?;
    /// # let mut buffer = Buffer::new();
    /// # let mut entries = Entries::new(&dir, &mut buffer);
    /// while let Some(entry) = entries.next()? {
    ///     let stat = statat(&dir, entry.name_cstr(), AtFlags::SYMLINK_NOFOLLOW)?;
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn name_cstr(&self) -> &CStr {
        self.record.file_name()
    }

    /// The name for `std`: `Path::new(entry.name_os())`.
    #[inline]
    #[must_use]
    pub fn name_os(&self) -> &OsStr {
        OsStr::from_bytes(self.name())
    }

    /// The path of the entry: that of its directory, as the walk was given it, and the name. From [`Entries`], which know no
    /// path, the name alone.
    ///
    /// ```
    /// let mut walk = lendir::Walk::open("/sys/class")?;
    /// let mut root = walk.next()?.expect("it is the root");
    /// while let Some(entry) = root.next()? {
    ///     assert!(entry.path().starts_with("/sys/class"));
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// Costs: one allocation.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        let mut path = PathBuf::with_capacity(self.above.len() + 1 + self.name().len());
        path.push(OsStr::from_bytes(self.above));
        path.push(self.name_os());
        path
    }

    /// The number that the name is, if it is one in canonical decimal: a PID, a TID, a descriptor.
    ///
    /// No sign, no leading zero, at most `u32::MAX`; `None` for every other name.
    ///
    /// ```
    /// # use lendir::{Buffer, Entries};
    /// # let dir = lendir::open("/proc")?;
    /// # let mut buffer = Buffer::new();
    /// # let mut entries = Entries::new(&dir, &mut buffer);
    /// while let Some(entry) = entries.next()? {
    ///     if let Some(pid) = entry.numeric_name() {
    ///         assert_eq!(pid.to_string().as_bytes(), entry.name());
    ///     }
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn numeric_name(&self) -> Option<u32> {
        canonical_decimal(self.name())
    }

    /// The type as the directory has it (`d_type`); of a symbolic link, the link's own.
    ///
    /// [`FileType::Unknown`] is a real answer: some file systems never say, and a FUSE server can say anything.
    #[doc(alias = "d_type")]
    #[inline]
    #[must_use]
    pub fn file_type(&self) -> FileType {
        self.record.file_type()
    }

    /// The directory that the entry is in, for `*at` calls in the loop, where [`Entries`] itself is borrowed.
    ///
    /// ```
    /// use lendir::Entry;
    /// use rustix::fs::{AtFlags, statat};
    ///
    /// fn size(entry: &Entry<'_>) -> std::io::Result<i64> {
    ///     Ok(statat(entry.dir(), entry.name_cstr(), AtFlags::SYMLINK_NOFOLLOW)?.st_size)
    /// }
    /// ```
    ///
    /// Costs: nothing.
    #[inline]
    #[must_use]
    pub fn dir(&self) -> BorrowedFd<'_> {
        self.dir
    }

    /// The type, asked of the file system where the directory does not have it. Never follows a symbolic link.
    ///
    /// Costs: nothing where [`file_type`](Self::file_type) is known, else one `fstatat`, relative to the directory.
    ///
    /// # Errors
    ///
    /// Those of [fstatat(2)]: `ENOENT` if the entry is gone by now, `EACCES` without search permission. `EINTR` is retried.
    ///
    /// [fstatat(2)]: https://man7.org/linux/man-pages/man2/fstatat.2.html
    pub fn resolve_file_type(&self) -> io::Result<FileType> {
        resolved(self.file_type(), self.dir, self.name_cstr())
    }

    /// The inode number (`d_ino`). At a mount point, that of the directory underneath; 0 is a number like any other.
    #[doc(alias = "d_ino")]
    #[doc(alias = "inode_number")]
    #[inline]
    #[must_use]
    pub fn ino(&self) -> u64 {
        self.record.ino()
    }

    /// The position after this entry (`d_off`), for [`Entries::seek`].
    ///
    /// Opaque: neither ascending nor dense, and on some file systems a hash.
    #[doc(alias = "d_off")]
    #[doc(alias = "telldir")]
    #[inline]
    #[must_use]
    pub fn cookie(&self) -> u64 {
        self.record.next_entry_cookie()
    }
}

impl fmt::Debug for Entry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("name", &self.name_cstr())
            .field("file_type", &self.file_type())
            .field("ino", &self.ino())
            .field("cookie", &self.cookie())
            .finish()
    }
}

pub(crate) fn resolved(file_type: FileType, dir: impl AsFd, name: &CStr) -> io::Result<FileType> {
    match file_type {
        FileType::Unknown => {
            let stat = retry_on_intr(|| rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW))?;
            Ok(FileType::from_raw_mode(stat.st_mode))
        }
        known => Ok(known),
    }
}

#[inline]
pub(crate) fn canonical_decimal(name: &[u8]) -> Option<u32> {
    // More digits than a `u32` has are too many; ten of them may be.
    if name.is_empty() || name.len() > 10 || name[0] == b'0' && name.len() > 1 {
        return None;
    }
    let mut number = 0;
    for byte in name {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number * 10 + u64::from(digit);
    }
    u32::try_from(number).ok()
}

#[cfg(test)]
mod tests {
    use super::canonical_decimal;

    #[test]
    fn only_canonical_decimals_are_numbers() {
        for number in [0, 1, 9, 10, 4_194_304, 999_999_999, 1_000_000_000, u32::MAX - 1, u32::MAX] {
            assert_eq!(canonical_decimal(number.to_string().as_bytes()), Some(number));
        }
        for name in
            ["", "00", "01", "+1", "-1", " 1", "1 ", "1a", "a1", "0x1", "1.", "4294967296", "9999999999", "99999999999"]
        {
            assert_eq!(canonical_decimal(name.as_bytes()), None, "{name:?}");
        }
        assert_eq!(canonical_decimal("١".as_bytes()), None);
        assert_eq!(canonical_decimal(&[b'1', 0xff]), None);
        assert_eq!(canonical_decimal(&[b'9'; 4095]), None);
    }
}
