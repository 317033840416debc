//! Errors of opening and reading: those of the kernel, never a panic.

use crate::fixture::numbered;
use crate::support::process::as_nobody;
use crate::support::scan;
use lendir::{Buffer, EndMarker, Entries, OFlags};
use rustix::fs::{CWD, fcntl_getfl};
use rustix::io::{FdFlags, fcntl_getfd};
use std::fs::{File, Permissions, create_dir, remove_dir, set_permissions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{PermissionsExt, symlink};

fn errno<T>(result: io::Result<T>) -> Option<i32> {
    result.err().map(|error| scan::errno(&error))
}

/// A number far beyond any descriptor that a test has open.
fn closed() -> BorrowedFd<'static> {
    // SAFETY: no descriptor has this number, because no test opens a million of them: every call on it is refused.
    unsafe { BorrowedFd::borrow_raw(1 << 20) }
}

#[test]
fn open_returns_the_error_of_the_kernel() {
    let dir = numbered(1);
    let path = |name: &str| dir.path().join(name);
    symlink("loop", path("loop")).unwrap();
    symlink(".", path("link")).unwrap();

    assert_eq!(errno(lendir::open(path("missing"))), Some(libc::ENOENT));
    assert_eq!(errno(lendir::open("")), Some(libc::ENOENT));
    assert_eq!(errno(lendir::open(path("1"))), Some(libc::ENOTDIR));
    assert_eq!(errno(lendir::open(path("1").join("below"))), Some(libc::ENOTDIR));
    assert_eq!(errno(lendir::open(path("loop"))), Some(libc::ELOOP));
    assert_eq!(errno(lendir::open("inner\0nul")), Some(libc::EINVAL));
    assert_eq!(errno(lendir::open("n".repeat(256))), Some(libc::ENAMETOOLONG));
    assert_eq!(errno(lendir::open("/".repeat(4096))), Some(libc::ENAMETOOLONG));

    assert_eq!(errno(lendir::open(path("link"))), None);
    assert_eq!(errno(lendir::openat_with(CWD, path("link"), OFlags::NOFOLLOW)), Some(libc::ENOTDIR));

    let file = File::open(path("1")).unwrap();
    assert_eq!(errno(lendir::openat(&file, "below")), Some(libc::ENOTDIR));
    assert_eq!(errno(lendir::openat(closed(), "below")), Some(libc::EBADF));
}

#[test]
fn reading_returns_the_error_of_the_kernel() {
    let dir = numbered(1);
    let only_a_path = lendir::openat_with(CWD, dir.path(), OFlags::PATH).unwrap();
    let file = File::open(dir.path().join("1")).unwrap();
    let mut buffer = Buffer::new();
    for (descriptor, expected) in
        [(only_a_path.as_fd(), libc::EBADF), (file.as_fd(), libc::ENOTDIR), (closed(), libc::EBADF)]
    {
        let mut entries = Entries::new(descriptor, &mut buffer);
        assert_eq!(errno(entries.next()), Some(expected));
        assert_eq!(errno(entries.next()), None, "the error came twice");
        assert_eq!(errno(Entries::new(descriptor, &mut buffer).count()), Some(expected));
    }
    assert_eq!(errno(Entries::new(closed(), &mut buffer).rewind()), Some(libc::EBADF));
    assert_eq!(errno(EndMarker::of(closed())), Some(libc::EBADF));
}

#[test]
fn forbidden_directory_is_eacces() {
    let dir = numbered(0);
    set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let secret = dir.path().join("secret");
    create_dir(&secret).unwrap();
    set_permissions(&secret, Permissions::from_mode(0o000)).unwrap();
    as_nobody(|| assert_eq!(errno(lendir::open(&secret)), Some(libc::EACCES)));
    remove_dir(&secret).unwrap(); // `TempDir` would open it first
}

#[test]
fn noatime_is_given_up_where_refused() {
    let own = numbered(0);
    let noatime = |path: &std::path::Path| {
        let dir = lendir::openat_with(CWD, path, OFlags::NOATIME).expect("neither with O_NOATIME nor without");
        fcntl_getfl(dir).unwrap().contains(OFlags::NOATIME)
    };
    assert!(noatime(own.path()));
    as_nobody(|| assert!(!noatime("/".as_ref()), "another user's directory"));
}

#[test]
fn descriptors_are_closed_on_exec() {
    let dir = lendir::open("/").unwrap();
    for dir in [
        lendir::open("/").unwrap(),
        lendir::openat(&dir, "proc").unwrap(),
        lendir::openat_with(&dir, "proc", OFlags::NOFOLLOW | OFlags::NOATIME).unwrap(),
    ] {
        assert_eq!(fcntl_getfd(dir).unwrap(), FdFlags::CLOEXEC);
    }
}
