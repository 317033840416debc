//! `Name`: the types that users can pass as the name of an entry. It does not check the bytes.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// A type that can be passed as the name of an entry: strings, byte strings and C strings, owned or
/// borrowed.
///
/// ```
/// # let mut walk = lendir::walk_dirs("/sys/class")?;
/// # let mut dir = walk.next()?.unwrap();
/// let entry = dir.next()?.expect("an entry");
/// let (bytes, string) = (entry.name().to_vec(), entry.name_os().to_owned());
/// dir.skip_name(bytes);
/// dir.skip_name(&string);
/// dir.skip_name("net");
/// # Ok::<(), lendir::Error>(())
/// ```
///
/// The methods `name`, `name_os` and `name_cstr` of an entry return such types. No other type can
/// implement this trait.
pub trait Name: sealed::Bytes {}

impl<N: sealed::Bytes + ?Sized> Name for N {}

mod sealed {
    pub trait Bytes {
        fn bytes(&self) -> &[u8];
    }
}

impl<N: sealed::Bytes + ?Sized> sealed::Bytes for &N {
    fn bytes(&self) -> &[u8] {
        (**self).bytes()
    }
}

impl<const LEN: usize> sealed::Bytes for [u8; LEN] {
    fn bytes(&self) -> &[u8] {
        self
    }
}

macro_rules! names {
    ($($name:ty: $bytes:path;)*) => {
        $(impl sealed::Bytes for $name {
            fn bytes(&self) -> &[u8] {
                $bytes(self)
            }
        })*
    };
}

names! {
    [u8]: AsRef::as_ref;
    Vec<u8>: AsRef::as_ref;
    str: str::as_bytes;
    String: str::as_bytes;
    OsStr: OsStr::as_bytes;
    OsString: OsStr::as_bytes;
    CStr: CStr::to_bytes;
    CString: CStr::to_bytes;
}
