//! `FileType`: what kind of file an entry is. It does not know how the type was found.

use rustix::fs::FileType as RawType;

/// The type of an entry.
///
/// [`Entry::file_type`](crate::Entry::file_type) and
/// [`Metadata::file_type`](crate::Metadata::file_type) return it.
///
/// ```
/// use lendir::FileType;
///
/// let mut dir = lendir::read_dir("/dev")?;
/// while let Some(entry) = dir.next()? {
///     let mark = match entry.file_type()? {
///         FileType::Directory => "/",
///         FileType::Symlink => "@",
///         _ => "",
///     };
///     println!("{:?}{mark}", entry.file_name());
/// }
/// # Ok::<(), lendir::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(alias("d_type", "S_IFMT"))]
pub enum FileType {
    /// A regular file.
    RegularFile = 8,
    /// A directory.
    Directory = 4,
    /// A symbolic link.
    Symlink = 10,
    /// A FIFO, also called a named pipe.
    Fifo = 1,
    /// A socket.
    Socket = 12,
    /// A character device, such as a terminal.
    CharacterDevice = 2,
    /// A block device, such as a disk.
    BlockDevice = 6,
    /// Not told by the listing, or a type that Linux does not have.
    Unknown = 0,
}

impl FileType {
    /// Returns the type of this number in a record (`d_type`).
    #[inline]
    pub(crate) fn from_d_type(d_type: u8) -> Self {
        match d_type {
            8 => Self::RegularFile,
            4 => Self::Directory,
            10 => Self::Symlink,
            1 => Self::Fifo,
            12 => Self::Socket,
            2 => Self::CharacterDevice,
            6 => Self::BlockDevice,
            _ => Self::Unknown,
        }
    }

    /// Returns the type in a mode, whose 4 bits above the permissions are the number of the type.
    #[inline]
    pub(crate) fn from_mode(mode: u32) -> Self {
        Self::from_d_type((mode >> 12 & 0xf) as u8)
    }

    #[inline(always)]
    pub(crate) fn from_raw(raw: RawType) -> Self {
        match raw {
            RawType::RegularFile => Self::RegularFile,
            RawType::Directory => Self::Directory,
            RawType::Symlink => Self::Symlink,
            RawType::Fifo => Self::Fifo,
            RawType::Socket => Self::Socket,
            RawType::CharacterDevice => Self::CharacterDevice,
            RawType::BlockDevice => Self::BlockDevice,
            RawType::Unknown => Self::Unknown,
        }
    }

    /// Returns the number of the type in a record.
    pub(crate) fn d_type(self) -> u8 {
        self as u8
    }

    /// Tells whether it is a directory. A link to one is a symbolic link.
    #[inline]
    pub fn is_dir(self) -> bool {
        self == Self::Directory
    }

    /// Tells whether it is a regular file.
    #[inline]
    pub fn is_file(self) -> bool {
        self == Self::RegularFile
    }

    /// Tells whether it is a symbolic link.
    #[inline]
    pub fn is_symlink(self) -> bool {
        self == Self::Symlink
    }

    /// Tells whether it is a FIFO.
    #[inline]
    pub fn is_fifo(self) -> bool {
        self == Self::Fifo
    }

    /// Tells whether it is a socket.
    #[inline]
    pub fn is_socket(self) -> bool {
        self == Self::Socket
    }

    /// Tells whether it is a block device.
    #[inline]
    pub fn is_block_device(self) -> bool {
        self == Self::BlockDevice
    }

    /// Tells whether it is a character device.
    #[inline]
    pub fn is_char_device(self) -> bool {
        self == Self::CharacterDevice
    }
}

#[cfg(test)]
mod tests {
    use super::{FileType, RawType};

    #[test]
    fn types_agree_with_rustix() {
        for d_type in 0..=0xf {
            let file_type = FileType::from_d_type(d_type);
            let mode = u32::from(d_type) << 12 | 0o7777;
            assert_eq!(FileType::from_mode(mode), file_type);
            assert_eq!(FileType::from_raw(RawType::from_raw_mode(mode as _)), file_type);
            assert!([d_type, 0].contains(&file_type.d_type()));
        }
        assert_eq!(FileType::from_d_type(0x18), FileType::Unknown);
    }
}
