//! Errors of each system call of a single reader.

use crate::errnos::ERRNOS;
use crate::support::prelude::*;
use crate::trap::{self, At, Fault, trapped};
use libc::{
    SYS_fstatfs, SYS_getdents64, SYS_lseek, SYS_newfstatat, SYS_openat, SYS_readlinkat, SYS_statx,
    c_int, c_long,
};
use rustix::fs::{RawDir, SeekFrom, seek};
use std::mem::MaybeUninit;

/// A directory of about ten batches at the smallest capacity of a buffer.
struct Crowd<'a> {
    path: &'a Path,
    /// The entries of each `getdents64` by rustix, except the last call, which finds none.
    batches: Vec<Vec<Found>>,
}

impl<'a> Crowd<'a> {
    fn new(path: &'a Path) -> Self {
        for number in 0..2000 {
            File::create(path.join(format!("entry-{number:010}"))).unwrap();
        }
        let dir = lendir::open(path).unwrap();
        let mut memory = vec![MaybeUninit::uninit(); Buffer::MIN_CAPACITY];
        let mut records = RawDir::new(&dir, &mut memory);
        let mut batches = Vec::new();
        loop {
            let begins = records.is_buffer_empty();
            let Some(record) = records.next() else { break };
            let record = record.unwrap();
            let name = record.file_name().to_bytes().to_vec();
            let file_type = type_of_mode(record.file_type().as_raw_mode());
            let cookie = record.next_entry_cookie();
            let found = Found { name, ino: record.ino(), file_type, cookie };
            if begins {
                batches.push(Vec::new());
            }
            if !matches!(&found.name[..], b"." | b"..") {
                batches.last_mut().expect("BUG: no batch has begun").push(found);
            }
        }
        assert!(batches.len() > 2, "{} batches", batches.len());
        assert_eq!(batches.concat().len(), 2000);
        Self { path, batches }
    }

    fn open(&self) -> OwnedFd {
        lendir::open(self.path).unwrap()
    }

    fn all(&self) -> Scan {
        Scan { found: self.batches.concat(), end: End::Complete }
    }

    /// Returns the expected scan if the `getdents64` of this number fails with `errno`.
    fn until(&self, call: u32, errno: c_int) -> Scan {
        let end = match errno {
            EINTR => return self.all(),
            ENOENT => End::Removed,
            _ => End::Error(errno),
        };
        Scan { found: self.batches[..call as usize - 1].concat(), end }
    }
}

/// If `getdents64` fails, `Entries` yield what was read before, then the error once, and then
/// nothing more. A rewind starts again.
#[test]
fn entries_report_each_failed_read_once() {
    trapped("faults::entries_report_each_failed_read_once", &[SYS_getdents64], |scratch| {
        let crowd = Crowd::new(scratch);
        let dir = crowd.open();
        let mut buffer = Buffer::with_capacity(0);
        trap::count(SYS_getdents64);
        assert_eq!(Scan::of(&mut rewound(&dir, &mut buffer)), crowd.all());
        let calls = trap::made();
        for fault in Fault::sweep(SYS_getdents64, calls) {
            let expected = crowd.until(fault.first(), fault.errno);
            let expected_calls =
                if fault.errno == EINTR { calls + fault.interruptions() } else { fault.first() };

            fault.set();
            let mut entries = rewound(&dir, &mut buffer);
            assert_eq!(Scan::of(&mut entries), expected, "{fault}");
            assert_eq!(trap::made(), expected_calls, "{fault}: fused without a system call");
            if fault.at == At::Every {
                fault.set();
                entries.rewind().unwrap();
                assert_eq!(Scan::of(&mut entries), expected, "{fault}: again after a rewind");
            }
            trap::count(SYS_getdents64);
            entries.rewind().unwrap();
            let seen = Scan::of(&mut entries);
            assert_eq!(seen, crowd.all(), "{fault}: entries are missing after a rewind");
            assert_eq!(trap::made(), calls, "{fault}");

            fault.set();
            let count = rewound(&dir, &mut buffer).count();
            assert_eq!(trap::made(), expected_calls, "{fault}");
            match expected.end {
                End::Error(_) => assert_eq!(errno(&count.unwrap_err()), fault.errno, "{fault}"),
                End::Complete | End::Removed => {
                    assert_eq!(count.unwrap(), expected.found.len() as u64, "{fault}");
                }
            }
        }
    });
}

/// If `getdents64` fails, a `Listing` keeps the entries that it read before. Its batches are as
/// large as its memory allows.
#[test]
fn listing_keeps_entries_before_a_failed_read() {
    trapped("faults::listing_keeps_entries_before_a_failed_read", &[SYS_getdents64], |scratch| {
        let crowd = Crowd::new(scratch);
        let dir = crowd.open();
        let rewound = || {
            seek(&dir, SeekFrom::Start(0)).unwrap();
            &dir
        };
        let mut listing = Listing::new();
        listing.read(rewound()).unwrap();
        trap::count(SYS_getdents64);
        listing.read(rewound()).unwrap();
        let calls = trap::made();
        assert!(calls > 2, "only {calls} calls");
        for fault in Fault::sweep(SYS_getdents64, calls) {
            fault.set();
            let listed = Scan::from_listing(&mut listing, rewound());
            let mut expected = crowd.all();
            let mut expected_calls = calls + fault.interruptions();
            if fault.errno != EINTR {
                let came_before = listed.found.len();
                assert_eq!(came_before > 0, fault.first() > 1, "{fault}");
                expected = Scan { end: crowd.until(1, fault.errno).end, ..expected };
                expected.found.truncate(came_before);
                expected_calls = fault.first();
            }
            assert_eq!(
                listed,
                expected.sorted(Order::Bytes),
                "{fault}: other entries than before the error, sorted"
            );
            assert_eq!(trap::made(), expected_calls, "{fault}");
            trap::count(SYS_getdents64);
            let listed = Scan::from_listing(&mut listing, rewound());
            let seen = listed;
            assert_eq!(seen, crowd.all().sorted(Order::Bytes), "{fault}: the listing is reusable");
            assert_eq!(trap::made(), calls, "{fault}");
        }
    });
}

/// If `lseek` fails, `Entries` stay where they are: in the middle of a batch, at the end, and after
/// an error.
#[test]
fn failed_seek_keeps_position() {
    trapped("faults::failed_seek_keeps_position", &[SYS_lseek, SYS_getdents64], |scratch| {
        let crowd = Crowd::new(scratch);
        let dir = crowd.open();
        let mut buffer = Buffer::with_capacity(0);
        for fault in
            Fault::sweep(SYS_lseek, 1).filter(|fault| fault.at == At::Every && fault.errno != EINTR)
        {
            let fail_to_rewind = |entries: &mut Entries<'_>| {
                fault.set();
                assert_eq!(errno(&entries.rewind().unwrap_err()), fault.errno);
                assert_eq!(trap::made(), 1);
                trap::count(SYS_getdents64);
            };
            let mut entries = rewound(&dir, &mut buffer);
            let first = entries.next().unwrap().unwrap().name().to_vec();
            fail_to_rewind(&mut entries);
            let rest = Scan::of(&mut entries);
            let seen = (first, rest.found);
            assert_eq!(seen, (crowd.all().found[0].name.clone(), crowd.all().found[1..].to_vec()));

            fail_to_rewind(&mut entries);
            assert_eq!(Scan::of(&mut entries), Scan { found: vec![], end: End::Complete });
            assert_eq!(trap::made(), 0, "read again after the end");

            entries.rewind().unwrap();
            trap::fail(SYS_getdents64, EIO, |_| true);
            entries.next().unwrap_err();
            fail_to_rewind(&mut entries);
            assert_eq!(Scan::of(&mut entries), Scan { found: vec![], end: End::Complete });
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
        let crowd = Crowd::new(scratch);
        let (dir, mut listing) = (crowd.open(), Listing::new());
        assert_eq!(Scan::of(&mut Entries::new(dir.as_fd(), &mut Buffer::new())), crowd.all());
        let mut from_outside = ReadDir::from_fd(crowd.open(), "");
        for fault in
            Fault::sweep(SYS_lseek, 1).filter(|fault| fault.at == At::Every && fault.errno != EINTR)
        {
            fault.set();
            trap::refuse(SYS_openat, EACCES);
            assert_eq!(errno(&listing.read(&dir).unwrap_err()), EACCES, "{fault}");
            assert_eq!((listing.len(), trap::made()), (0, 1), "{fault}");
            for _ in 0..2 {
                assert_eq!(errno(&from_outside.read_into(&mut listing).unwrap_err()), EACCES);
            }
            trap::count(SYS_lseek);
            trap::refuse(SYS_openat, EACCES);
            from_outside.read_into(&mut listing).unwrap();
            assert_eq!((listing.len(), trap::made()), (2000, 1));
            assert!(from_outside.next().unwrap().is_none());
        }
    });
}

type Operation<'a> = &'a mut dyn FnMut() -> Result<(), Error>;

/// An operation of one call returns the exact error of that call and does not affect the next
/// operation.
#[test]
fn other_failed_calls_return_their_error() {
    const CALLS: [c_long; 6] =
        [SYS_openat, SYS_fstatfs, SYS_lseek, SYS_newfstatat, SYS_readlinkat, SYS_getdents64];
    trapped("faults::other_failed_calls_return_their_error", &CALLS, |scratch| {
        let crowd = Crowd::new(scratch);
        let path = crowd.path;
        let parent = lendir::open(path.parent().unwrap()).unwrap();
        let name = path.file_name().unwrap();
        let (dir, mut buffer) = (crowd.open(), Buffer::new());
        let (beside, mut memory) = (crowd.open(), Buffer::new());
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
                let (dir, mut buffer) = (crowd.open(), Buffer::new());
                let mut entries = Entries::new(dir.as_fd(), &mut buffer);
                let entry = entries.next()?.expect("the directory lists no entry");
                assert_eq!(entry.d_type(), FileType::Unknown);
                assert_eq!(entry.file_type()?, FileType::RegularFile);
                Ok(())
            }),
        ];
        for (title, call, operation) in &mut table {
            for fault in Fault::sweep(*call, 3) {
                fault.set();
                let answers = [(); 3].map(|()| operation().map_err(|error| errno(&error)));
                let expected = [1, 2, 3]
                    .map(|number| if fault.is_seen_at(number) { Err(fault.errno) } else { Ok(()) });
                assert_eq!(answers, expected, "{title}: {fault}");
                assert_eq!(trap::made(), 3 + fault.interruptions(), "{title}: {fault}");
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
        let crowd = Crowd::new(scratch);
        let mut walk = lendir::walk_dirs(crowd.path).unwrap();
        let dir = walk.next().unwrap().expect("a walk has a root");
        let ask = |entry: &Entry<'_>| entry.metadata().unwrap();
        let mut owned = lendir::read_dir(crowd.path).unwrap();
        let entry = owned.next().unwrap().expect("the directory lists no entry");
        let known = [dir.metadata().unwrap(), ask(&entry)];
        for (_, errno) in ERRNOS.into_iter().filter(|(_, errno)| *errno != EINTR) {
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

fn rewound<'a>(dir: &'a OwnedFd, buffer: &'a mut Buffer) -> Entries<'a> {
    let mut entries = Entries::new(dir.as_fd(), buffer);
    entries.rewind().unwrap();
    entries
}
