//! `FileType`: what kind of file an entry is. It does not know how the type was found.

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

/// Writes methods that compare the type with one.
macro_rules! predicates {
    ($($(#[$doc:meta])* $name:ident: $variant:ident,)*) => {
        $(
            $(#[$doc])*
            #[inline]
            pub fn $name(self) -> bool {
                self == Self::$variant
            }
        )*
    };
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
    #[inline(always)]
    pub(crate) fn from_mode(mode: impl Into<u32>) -> Self {
        Self::from_d_type((mode.into() >> 12 & 0xf) as u8)
    }

    predicates! {
        /// Tells whether it is a directory. A link to one is a symbolic link.
        is_dir: Directory,
        /// Tells whether it is a regular file.
        is_file: RegularFile,
        /// Tells whether it is a symbolic link.
        is_symlink: Symlink,
        /// Tells whether it is a FIFO.
        is_fifo: Fifo,
        /// Tells whether it is a socket.
        is_socket: Socket,
        /// Tells whether it is a block device.
        is_block_device: BlockDevice,
        /// Tells whether it is a character device.
        is_char_device: CharacterDevice,
    }
}

#[cfg(test)]
mod tests {
    use super::FileType;
    use rustix::fs::FileType as RawType;

    #[test]
    fn types_agree_with_rustix() {
        for d_type in 0..=0xf {
            let file_type = FileType::from_d_type(d_type);
            let mode = u32::from(d_type) << 12 | 0o7777;
            assert_eq!(FileType::from_mode(mode), file_type);
            assert_eq!(
                FileType::from_mode(RawType::from_raw_mode(mode as _).as_raw_mode()),
                file_type
            );
            assert!([d_type, 0].contains(&(file_type as u8)));
        }
        assert_eq!(FileType::from_d_type(0x18), FileType::Unknown);
    }
}
