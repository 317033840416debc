//! Errors of each system call of a single reader.

use crate::errnos::ERRNOS;
use crate::support::prelude::*;
use crate::trap::{self, trapped};
use libc::{
    SYS_fstatfs, SYS_getdents64, SYS_lseek, SYS_newfstatat, SYS_openat, SYS_readlinkat, SYS_statx,
    c_int, c_long,
};

/// The number of files in the directory, more than one batch of any buffer here.
const FILES: usize = 2000;

fn crowd(path: &Path) -> OwnedFd {
    for number in 0..FILES {
        File::create(path.join(format!("entry-{number:010}"))).unwrap();
    }
    lendir::open(path).unwrap()
}

/// The errors that a caller sees. After `EINTR`, the call is made again.
fn seen_errnos() -> impl Iterator<Item = c_int> {
    ERRNOS.into_iter().map(|(_, errno)| errno).filter(|errno| *errno != EINTR)
}

/// If `lseek` fails, `Entries` stay where they are: in the middle of a batch, at the end, and after
/// an error.
#[test]
fn failed_seek_keeps_position() {
    trapped("faults::failed_seek_keeps_position", &[SYS_lseek, SYS_getdents64], |scratch| {
        let dir = crowd(scratch);
        let mut buffer = Buffer::with_capacity(0);
        let all = scan::all(&mut Entries::new(dir.as_fd(), &mut buffer));
        assert_eq!(all.len(), FILES);
        let ended = Scan { found: vec![], end: End::Complete };
        for error in seen_errnos() {
            let fail_to_rewind = |entries: &mut Entries<'_>| {
                trap::fail(SYS_lseek, error, |_| true);
                assert_eq!(errno(&entries.rewind().unwrap_err()), error);
                assert_eq!(trap::made(), 1);
                trap::count(SYS_getdents64);
            };
            let mut entries = Entries::new(dir.as_fd(), &mut buffer);
            entries.rewind().unwrap();
            let first = entries.next().unwrap().unwrap().name().to_vec();
            fail_to_rewind(&mut entries);
            assert_eq!((&first, &Scan::of(&mut entries).found[..]), (&all[0].name, &all[1..]));

            fail_to_rewind(&mut entries);
            assert_eq!(Scan::of(&mut entries), ended);
            assert_eq!(trap::made(), 0, "read again after the end");

            entries.rewind().unwrap();
            trap::fail(SYS_getdents64, EIO, |_| true);
            entries.next().unwrap_err();
            fail_to_rewind(&mut entries);
            assert_eq!(Scan::of(&mut entries), ended);
            assert_eq!(trap::made(), 0, "read again after the error");
        }
    });
}

/// If the first batch is empty, and the directory can be neither opened again nor rewound, why it
/// cannot be opened is the error.
#[test]
fn failed_rewind_leaves_an_empty_listing() {
    const TEST: &str = "faults::failed_rewind_leaves_an_empty_listing";
    trapped(TEST, &[SYS_lseek, SYS_openat], |scratch| {
        let (dir, mut listing) = (crowd(scratch), Listing::new());
        assert_eq!(scan::all(&mut Entries::new(dir.as_fd(), &mut Buffer::new())).len(), FILES);
        let mut from_outside = ReadDir::from_fd(lendir::open(scratch).unwrap(), "");
        for error in seen_errnos() {
            trap::fail(SYS_lseek, error, |_| true);
            trap::refuse(SYS_openat, EACCES);
            assert_eq!(errno(&listing.read(&dir).unwrap_err()), EACCES, "{error}");
            assert_eq!((listing.len(), trap::made()), (0, 1), "{error}");
            for _ in 0..2 {
                assert_eq!(errno(&from_outside.read_into(&mut listing).unwrap_err()), EACCES);
            }
            trap::count(SYS_lseek);
            trap::refuse(SYS_openat, EACCES);
            from_outside.read_into(&mut listing).unwrap();
            assert_eq!((listing.len(), trap::made()), (FILES, 1));
            assert!(from_outside.next().unwrap().is_none());
        }
    });
}

/// The number of interruptions of a call in a row.
const BURST: u32 = 100;

type Operation<'a> = &'a mut dyn FnMut() -> Result<(), Error>;

/// An operation of one call returns the exact error of that call and does not affect the next
/// operation.
#[test]
fn other_failed_calls_return_their_error() {
    const CALLS: [c_long; 6] =
        [SYS_openat, SYS_fstatfs, SYS_lseek, SYS_newfstatat, SYS_readlinkat, SYS_getdents64];
    trapped("faults::other_failed_calls_return_their_error", &CALLS, |scratch| {
        let (dir, mut buffer) = (crowd(scratch), Buffer::new());
        let path = scratch;
        let parent = lendir::open(path.parent().unwrap()).unwrap();
        let name = path.file_name().unwrap();
        let (beside, mut memory) = (lendir::open(path).unwrap(), Buffer::new());
        let mut entries = Entries::new(beside.as_fd(), &mut memory);
        let mut rewinding = lendir::read_dir(path).unwrap();
        let mut process = lendir::read_dir("/proc/self").unwrap();
        let link = process
            .find(|entry| entry.name() == b"root")
            .unwrap()
            .expect("/proc/self has no `root`");
        let mut table: [(&str, c_long, Operation<'_>); 8] = [
            ("open", SYS_openat, &mut || lendir::open(path).map(drop)),
            ("openat", SYS_openat, &mut || {
                lendir::openat(&parent, name.as_encoded_bytes()).map(drop)
            }),
            ("Entries::rewind", SYS_lseek, &mut || entries.rewind()),
            ("Entries::seek", SYS_lseek, &mut || Entries::new(dir.as_fd(), &mut buffer).seek(0)),
            ("read_dir", SYS_openat, &mut || lendir::read_dir(path).map(drop)),
            ("ReadDir::rewind", SYS_lseek, &mut || rewinding.rewind()),
            ("Entry::read_link", SYS_readlinkat, &mut || link.read_link().map(drop)),
            ("Entry::file_type", SYS_newfstatat, &mut || {
                trap::hide_types();
                let (dir, mut buffer) = (lendir::open(path).unwrap(), Buffer::new());
                let mut entries = Entries::new(dir.as_fd(), &mut buffer);
                let entry = entries.next()?.expect("the directory lists no entry");
                assert_eq!(entry.d_type(), FileType::Unknown);
                assert_eq!(entry.file_type()?, FileType::RegularFile);
                Ok(())
            }),
        ];
        for (title, call, operation) in &mut table {
            for (_, error) in ERRNOS {
                for failing in [Some(1), Some(2), Some(3), None] {
                    let fails = move |number| failing.is_none_or(|failing| failing == number);
                    trap::fail(*call, error, move |number| match error {
                        EINTR => number % (BURST + 1) != 0,
                        _ => fails(number),
                    });
                    let answers = [(); 3].map(|()| operation().map_err(|error| errno(&error)));
                    let is_seen = |number| error != EINTR && fails(number);
                    let expected =
                        [1, 2, 3].map(|number| if is_seen(number) { Err(error) } else { Ok(()) });
                    assert_eq!(answers, expected, "{title}: {error} of {failing:?}");
                    let calls = if error == EINTR { 3 * (BURST + 1) } else { 3 };
                    assert_eq!(trap::made(), calls, "{title}: {error} of {failing:?}");
                }
            }
        }

        trap::fail(SYS_openat, EPERM, |_| true);
        assert_eq!(errno(&lendir::open(path).unwrap_err()), EPERM);
        assert_eq!(trap::made(), 1);
    });
}

/// A filter may refuse `statx` by any number. Then `fstatat` answers, and no birth is known.
#[test]
fn metadata_does_without_statx() {
    trapped("faults::metadata_does_without_statx", &[SYS_statx, SYS_newfstatat], |scratch| {
        make(scratch, &["file"]);
        let mut walk = lendir::walk_dirs(scratch).unwrap();
        let dir = walk.next().unwrap().expect("a walk has a root");
        let ask = |entry: &Entry<'_>| entry.metadata().unwrap();
        let mut owned = lendir::read_dir(scratch).unwrap();
        let entry = owned.next().unwrap().expect("the directory lists no entry");
        let known = [dir.metadata().unwrap(), ask(&entry)];
        for errno in seen_errnos() {
            trap::fail(SYS_statx, errno, |_| true);
            for (known, found) in known.iter().zip([dir.metadata().unwrap(), ask(&entry)]) {
                assert_eq!(found.created().unwrap_err().kind(), ErrorKind::Unsupported);
                assert_eq!(found.is_mount_point(), None);
                let same = |of: &Metadata| (of.dev(), of.ino(), of.mode(), of.modified().unwrap());
                assert_eq!(same(&found), same(known));
            }
        }
    });
}
