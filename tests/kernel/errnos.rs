//! The errors with which tests make system calls fail.

use crate::support::prelude::*;
use libc::{EAGAIN, EBADF, ENOMEM, EOVERFLOW, ESTALE, c_int};

pub const ERRNOS: [(&str, c_int); 13] = [
    ("EIO", EIO),
    ("EINTR", EINTR),
    ("EAGAIN", EAGAIN),
    ("ENOENT", ENOENT),
    ("ESTALE", ESTALE),
    ("EACCES", EACCES),
    ("EINVAL", EINVAL),
    ("EOVERFLOW", EOVERFLOW),
    ("ENOMEM", ENOMEM),
    ("ENOTDIR", ENOTDIR),
    ("EBADF", EBADF),
    ("ENOSYS", ENOSYS),
    ("ELOOP", ELOOP),
];

pub fn name_of(errno: c_int) -> &'static str {
    ERRNOS.iter().find(|(_, number)| *number == errno).expect("BUG: the errno is not in `ERRNOS`").0
}
