//! Checks that opening and reading return the errors of the kernel, with the known paths.

use crate::support::prelude::*;
use rustix::fs::{CWD, FileType, Mode, mknodat, openat};
use rustix::io::{FdFlags, fcntl_getfd};

fn errno<T>(result: Result<T, Error>) -> Option<i32> {
    result.err().map(|error| scan::errno(&error))
}

/// Returns a descriptor that is not open: its number is far above any that a test has open.
fn closed() -> BorrowedFd<'static> {
    // SAFETY: no descriptor has this number, because no test opens a million of them: every call on
    // it is refused.
    unsafe { BorrowedFd::borrow_raw(1 << 20) }
}

#[test]
fn open_returns_the_error_of_the_kernel() {
    let dir = numbered(1);
    let path = |name: &str| dir.path().join(name);
    symlink("nowhere", path("dangling")).unwrap();
    symlink("loop", path("loop")).unwrap();
    symlink(".", path("link")).unwrap();
    mknodat(CWD, path("fifo"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    for (bad, expected) in [
        (path("missing"), libc::ENOENT),
        (PathBuf::new(), libc::ENOENT),
        (path("dangling"), libc::ENOENT),
        (path("1"), libc::ENOTDIR),
        (path("1/below"), libc::ENOTDIR),
        (path("fifo"), libc::ENOTDIR),
        (path("loop"), libc::ELOOP),
        ("inner\0nul".into(), libc::EINVAL),
        (path(&"n".repeat(256)), libc::ENAMETOOLONG),
        ("/".repeat(4096).into(), libc::ENAMETOOLONG),
    ] {
        // It refuses links.
        let by_name = if bad.is_symlink() { libc::ENOTDIR } else { expected };
        let errors = [
            (lendir::openat(CWD, bad.as_os_str().as_bytes()).err(), by_name),
            (lendir::open(&bad).err(), expected),
            (lendir::read_dir(&bad).err(), expected),
            (lendir::walk(&bad).err(), expected),
            (lendir::walk_dirs(&bad).err(), expected),
        ];
        for (error, expected) in errors {
            let error = error.expect("it was opened");
            let found = (scan::path(&error), error.depth(), error.raw_os_error());
            assert_eq!(found, (&*bad, 0, Some(expected)));
            let cause = io::Error::from_raw_os_error(expected);
            let shown = bad.to_str().unwrap().replace('\0', r"\0");
            let path = if shown.is_empty() { String::new() } else { format!("{shown}: ") };
            assert_eq!(error.to_string(), format!("{path}{cause}"));
        }
    }
    let opened = lendir::open(path("link")).unwrap();
    assert_eq!(errno(lendir::openat(&opened, "link")), Some(libc::ENOTDIR));
    let file = File::open(path("1")).unwrap();
    assert_eq!(errno(lendir::openat(&file, "below")), Some(libc::ENOTDIR));
    assert_eq!(errno(lendir::openat(closed(), "below")), Some(libc::EBADF));
}

/// `Display` escapes every character that `char::escape_debug` escapes, and every byte that is not
/// UTF-8. The test omits `'`, because its escape depends on the version of Rust.
#[test]
fn display_escapes_what_debug_escapes() {
    let shown = |path: &[u8]| {
        Error::new(OsStr::from_bytes(path), io::ErrorKind::Other)
            .to_string()
            .strip_suffix(": other error")
            .unwrap()
            .to_owned()
    };
    let chars: Vec<char> = (char::MIN..=char::MAX).filter(|char| *char != '\'').collect();
    for chars in chars.chunks(1000) {
        let path: String = chars.iter().collect();
        let escaped: String = chars.iter().flat_map(|char| char.escape_debug()).collect();
        assert_eq!(shown(path.as_bytes()), escaped);
    }
    for byte in 0x80..=0xff {
        assert_eq!(shown(&[b'a', byte]), format!(r"a\x{byte:X}"));
    }
}

/// `tests/it/entry.rs` and `walk_dirs.rs` check the methods of `Entry` and `Dir`.
#[test]
fn read_dir_adds_its_path_to_a_cause() {
    let dir = numbered(1);
    let cause = || io::Error::from_raw_os_error(libc::EPERM);
    let error = lendir::read_dir(dir.path()).unwrap().wrap_error(cause());
    let found = (error.path(), error.depth(), error.raw_os_error());
    assert_eq!(found, (Some(dir.path()), 0, Some(libc::EPERM)));
    let unknown = ReadDir::from_fd(lendir::open(dir.path()).unwrap(), "").wrap_error(cause());
    assert_eq!(unknown.path(), None);
}

#[test]
fn reading_returns_the_error_of_the_kernel() {
    let dir = numbered(1);
    let only_a_path = openat(CWD, dir.path(), OFlags::PATH, Mode::empty()).unwrap();
    let file = File::open(dir.path().join("1")).unwrap();
    let (mut buffer, mut listing) = (Buffer::new(), Listing::new());
    for (descriptor, expected) in
        [(only_a_path.as_fd(), libc::EBADF), (file.as_fd(), libc::ENOTDIR), (closed(), libc::EBADF)]
    {
        let mut entries = Entries::new(descriptor.as_fd(), &mut buffer);
        assert_eq!(errno(entries.next()), Some(expected));
        assert_eq!(errno(entries.next()), None, "the error came twice");
        assert_eq!(errno(Entries::new(descriptor.as_fd(), &mut buffer).count()), Some(expected));
        listing.read(lendir::open(dir.path()).unwrap()).unwrap();
        assert_eq!(errno(listing.read(descriptor)), Some(expected));
        assert!(listing.is_empty(), "entries of another directory remain");
    }
    assert_eq!(errno(Entries::new(closed().as_fd(), &mut buffer).rewind()), Some(libc::EBADF));
}

#[test]
fn descriptors_are_closed_on_exec() {
    let dir = lendir::open("/").unwrap();
    for dir in [lendir::open("/").unwrap(), lendir::openat(&dir, "proc").unwrap()] {
        assert_eq!(fcntl_getfd(dir).unwrap(), FdFlags::CLOEXEC);
    }
}
