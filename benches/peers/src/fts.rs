//! Walking a tree with `fts` of glibc, which the crate `libc` does not declare.

use lendir_benches::contender::Reader;
use libc::{c_char, c_int, c_long, c_short, c_ushort, c_void, dev_t, ino_t, nlink_t, stat};
use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

const FTS_NOCHDIR: c_int = 0x4;
const FTS_NOSTAT: c_int = 0x8;
const FTS_PHYSICAL: c_int = 0x10;
/// The visit to a directory after those below it.
const FTS_DP: c_ushort = 6;

/// Does not follow links, does not ask for attributes, and does not change the working directory: the fastest of its ways.
pub struct Fts<'a>(pub &'a Path);

/// Only glibc looks into it.
#[repr(C)]
struct Stream {
    _private: [u8; 0],
}

/// `FTSENT`. Its last field is an array that holds as many bytes as the name has, and a NUL.
#[repr(C)]
struct Entry {
    cycle: *mut Entry,
    parent: *mut Entry,
    link: *mut Entry,
    number: c_long,
    pointer: *mut c_void,
    accpath: *mut c_char,
    path: *mut c_char,
    errno: c_int,
    symfd: c_int,
    pathlen: c_ushort,
    namelen: c_ushort,
    ino: ino_t,
    dev: dev_t,
    nlink: nlink_t,
    level: c_short,
    info: c_ushort,
    flags: c_ushort,
    instr: c_ushort,
    statp: *mut stat,
    name: [c_char; 1],
}

type Compare = unsafe extern "C" fn(*const *const Entry, *const *const Entry) -> c_int;

unsafe extern "C" {
    fn fts_open(paths: *const *mut c_char, options: c_int, compare: Option<Compare>) -> *mut Stream;
    fn fts_read(stream: *mut Stream) -> *mut Entry;
    fn fts_close(stream: *mut Stream) -> c_int;
}

impl Reader for Fts<'_> {
    fn read(&mut self, mut take: impl FnMut(&[u8])) {
        let root = CString::new(self.0.as_os_str().as_bytes()).expect("BUG: a NUL inside the path");
        let paths = [root.as_ptr().cast_mut(), ptr::null_mut()];
        // SAFETY: `paths` ends with a null pointer. glibc copies the path in it, and does not write to it.
        let stream = unsafe { fts_open(paths.as_ptr(), FTS_PHYSICAL | FTS_NOCHDIR | FTS_NOSTAT, None) };
        assert!(!stream.is_null(), "fts_open failed");
        loop {
            // SAFETY: the stream is open.
            let entry = unsafe { fts_read(stream) };
            if entry.is_null() {
                break;
            }
            // SAFETY: the entry lives until the next `fts_read`. Its name ends with a NUL; no reference is made to the field,
            // which is shorter.
            let (level, info, name) =
                unsafe { ((*entry).level, (*entry).info, CStr::from_ptr((&raw const (*entry).name).cast())) };
            if level > 0 && info != FTS_DP {
                take(name.to_bytes());
            }
        }
        // SAFETY: the stream is open, and not used any more.
        unsafe { fts_close(stream) };
    }
}
