//! Every error on every system call: what came before it is delivered, it comes once and unchanged, and then nothing more.

#![cfg(any(target_arch = "x86_64", target_arch = "aarch64"))] // where `trap` knows the registers

mod child;
mod machine;
mod scan;
mod trap;

use lendir::{Buffer, EndMarker, Entries, FileType, Listing, OFlags, Order};
use libc::{
    EACCES, EAGAIN, EBADF, EINTR, EINVAL, EIO, ELOOP, ENOENT, ENOMEM, ENOSYS, ENOTDIR, EOVERFLOW, EPERM, ESTALE,
    SYS_fstatfs, SYS_getdents64, SYS_lseek, SYS_newfstatat, SYS_openat, c_int, c_long,
};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, RawDir};
use scan::{End, Found, Scan, errno};
use std::env;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use tempfile::TempDir;

const ERRNOS: [c_int; 13] =
    [EIO, EINTR, EAGAIN, ENOENT, ESTALE, EACCES, EINVAL, EOVERFLOW, ENOMEM, ENOTDIR, EBADF, ENOSYS, ELOOP];

/// How often in a row a call is interrupted.
const BURST: u32 = 100;

/// Which calls fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    First,
    Second,
    Last,
    Every,
}

impl At {
    const ALL: [Self; 4] = [Self::First, Self::Second, Self::Last, Self::Every];

    /// The number of the first call that fails, of `calls`.
    fn call(self, calls: u32) -> u32 {
        match self {
            Self::First | Self::Every => 1,
            Self::Second => 2,
            Self::Last => calls,
        }
    }

    /// Makes `call` fail with `errno` here; an interruption comes in a burst.
    fn fail(self, call: c_long, errno: c_int, calls: u32) {
        let first = self.call(calls);
        trap::fail(call, errno, move |number| match (errno, self) {
            (EINTR, Self::Every) => number % (BURST + 1) != 0,
            (EINTR, _) => (first..first + BURST).contains(&number),
            (_, Self::Every) => true,
            _ => number == first,
        });
    }

    /// How many interruptions `calls` calls then see.
    fn interruptions(self, calls: u32) -> u32 {
        if self == Self::Every { BURST * calls } else { BURST }
    }
}

/// A directory of some ten batches at the smallest buffer.
struct Crowd {
    path: TempDir,
    /// As rustix delivers it: the entries of each `getdents64` but the last, which finds none.
    batches: Vec<Vec<Found>>,
}

impl Crowd {
    fn new() -> Self {
        let path = tempfile::tempdir().unwrap();
        for number in 0..2000 {
            File::create(path.path().join(format!("entry-{number:010}"))).unwrap();
        }
        let dir = lendir::open(path.path()).unwrap();
        let mut memory = vec![MaybeUninit::uninit(); Buffer::MIN_CAPACITY];
        let mut records = RawDir::new(&dir, &mut memory);
        let mut batches = Vec::new();
        loop {
            let begins = records.is_buffer_empty();
            let Some(record) = records.next() else { break };
            let record = record.unwrap();
            let name = record.file_name().to_bytes().to_vec();
            let (file_type, cookie) = (record.file_type(), record.next_entry_cookie());
            let found = Found { name, ino: record.ino(), file_type, cookie };
            if begins {
                batches.push(Vec::new());
            }
            if !matches!(&found.name[..], b"." | b"..") {
                batches.last_mut().expect("BUG: one has begun").push(found);
            }
        }
        assert!(batches.len() > 2 && batches.concat().len() == 2000);
        Self { path, batches }
    }

    fn open(&self) -> OwnedFd {
        lendir::open(self.path.path()).unwrap()
    }

    fn all(&self) -> Scan {
        Scan { found: self.batches.concat(), end: End::Complete }
    }

    /// What is to be seen when the `call`th `getdents64` fails with `errno`.
    fn until(&self, call: u32, errno: c_int) -> Scan {
        let end = match errno {
            EINTR => return self.all(),
            ENOENT => End::Removed,
            _ => End::Error(errno),
        };
        Scan { found: self.batches[..call as usize - 1].concat(), end }
    }
}

#[test]
fn getdents64() {
    trapped("getdents64", || {
        let crowd = Crowd::new();
        let dir = crowd.open();
        let mut buffer = Buffer::with_capacity(0);
        let mut listing = Listing::new();
        let mut cases = 0;
        for marker in [EndMarker::NONE, EndMarker::of(&dir).unwrap()] {
            trap::count(SYS_getdents64);
            assert_eq!(Scan::of(&mut rewound(&dir, &mut buffer, marker)), crowd.all());
            let calls = trap::made();
            for (errno, at) in ERRNOS.into_iter().flat_map(|errno| At::ALL.map(|at| (errno, at))) {
                let expected = crowd.until(at.call(calls), errno);
                let expected_calls = match errno {
                    EINTR => calls + at.interruptions(calls),
                    _ => at.call(calls),
                };
                let case = format!("{} at {at:?} of {calls}", io::Error::from_raw_os_error(errno));
                let fail = || at.fail(SYS_getdents64, errno, calls);

                fail();
                let mut entries = rewound(&dir, &mut buffer, marker);
                assert!(Scan::of(&mut entries) == expected, "{case}");
                assert_eq!(trap::made(), expected_calls, "{case}: fused without a system call");
                if at == At::Every {
                    fail();
                    entries.rewind().unwrap();
                    assert!(Scan::of(&mut entries) == expected, "{case}: again after a rewind");
                }
                trap::count(SYS_getdents64);
                entries.rewind().unwrap();
                assert!(Scan::of(&mut entries) == crowd.all(), "{case}: a rewind heals");
                assert_eq!(trap::made(), calls, "{case}");

                fail();
                let count = rewound(&dir, &mut buffer, marker).count();
                assert_eq!(trap::made(), expected_calls, "{case}");
                match expected.end {
                    End::Error(_) => assert_eq!(scan::errno(&count.unwrap_err()), errno, "{case}"),
                    _ => assert_eq!(count.unwrap(), expected.found.len() as u64, "{case}"),
                }

                fail();
                let listed = Scan::by(&mut listing, rewound(&dir, &mut buffer, marker));
                assert!(listed == expected.listed(Order::Bytes), "{case}: what came before, sorted");
                assert_eq!(trap::made(), expected_calls, "{case}");
                trap::count(SYS_getdents64);
                let listed = Scan::by(&mut listing, rewound(&dir, &mut buffer, marker));
                assert!(listed == crowd.all().listed(Order::Bytes), "{case}: the listing is reusable");
                cases += 3;
            }
        }
        let what = "readings by `Entries`, `count` and `Listing`: 13 errors on the first, second, last and every call";
        report("`getdents64` fails", cases, what);
    });
}

/// A failed `seek` leaves the iterator where it was: in the middle of a batch, at the end, or behind an error.
#[test]
fn seek_in_vain() {
    trapped("seek_in_vain", || {
        let crowd = Crowd::new();
        let dir = crowd.open();
        let mut buffer = Buffer::with_capacity(0);
        let mut cases = 0;
        for errno in ERRNOS.into_iter().filter(|&errno| errno != EINTR) {
            let mut fail_to_rewind = |entries: &mut Entries<'_>| {
                At::Every.fail(SYS_lseek, errno, 1);
                assert_eq!(scan::errno(&entries.rewind().unwrap_err()), errno);
                assert_eq!(trap::made(), 1);
                trap::count(SYS_getdents64);
                cases += 1;
            };
            let mut entries = rewound(&dir, &mut buffer, EndMarker::NONE);
            let first = entries.next().unwrap().unwrap().name().to_vec();
            fail_to_rewind(&mut entries);
            let rest = Scan::of(&mut entries);
            assert!(first == crowd.all().found[0].name && rest.found == crowd.all().found[1..]);

            fail_to_rewind(&mut entries);
            assert_eq!(Scan::of(&mut entries), Scan { found: vec![], end: End::Complete });
            assert_eq!(trap::made(), 0, "the end holds");

            entries.rewind().unwrap();
            At::First.fail(SYS_getdents64, EIO, 1);
            entries.next().unwrap_err();
            fail_to_rewind(&mut entries);
            assert_eq!(Scan::of(&mut entries), Scan { found: vec![], end: End::Complete });
            assert_eq!(trap::made(), 0, "fused as before");
        }
        report("`lseek` fails", cases, "times the iterator stays as it was: midway, at the end, behind an error");
    });
}

type Operation<'a> = &'a mut dyn FnMut() -> io::Result<()>;

/// Calls that are made once a time: the exact error, and the next one is on its own.
#[test]
fn other_calls() {
    trapped("other_calls", || {
        let crowd = Crowd::new();
        let path = crowd.path.path();
        let parent = lendir::open(path.parent().unwrap()).unwrap();
        let name = path.file_name().unwrap();
        let (dir, mut buffer) = (crowd.open(), Buffer::new());
        let (beside, mut memory) = (crowd.open(), Buffer::new());
        let mut entries = Entries::new(&beside, &mut memory);
        let mut table: [(&str, c_long, Operation<'_>); 8] = [
            ("open", SYS_openat, &mut || lendir::open(path).map(drop)),
            ("openat", SYS_openat, &mut || lendir::openat(&parent, name).map(drop)),
            ("openat_with NOFOLLOW", SYS_openat, &mut || {
                lendir::openat_with(&parent, name, OFlags::NOFOLLOW).map(drop)
            }),
            ("openat_with NOATIME", SYS_openat, &mut || lendir::openat_with(CWD, path, OFlags::NOATIME).map(drop)),
            ("EndMarker::of", SYS_fstatfs, &mut || EndMarker::of(&dir).map(drop)),
            ("Entries::rewind", SYS_lseek, &mut || entries.rewind()),
            ("Entries::seek", SYS_lseek, &mut || Entries::new(&dir, &mut buffer).seek(0)),
            ("Entry::resolve_file_type", SYS_newfstatat, &mut || {
                trap::hide_types();
                let (dir, mut buffer) = (crowd.open(), Buffer::new());
                let mut entries = Entries::new(&dir, &mut buffer);
                let entry = entries.next()?.expect("there are entries");
                assert_eq!(entry.file_type(), FileType::Unknown);
                assert_eq!(entry.resolve_file_type()?, FileType::RegularFile);
                Ok(())
            }),
        ];
        let mut cases = 0;
        for (title, call, operation) in &mut table {
            for (errno, at) in ERRNOS.into_iter().flat_map(|errno| At::ALL.map(|at| (errno, at))) {
                at.fail(*call, errno, 3);
                let answers = [(); 3].map(|()| operation().map_err(|error| scan::errno(&error)));
                let fails = |number| errno != EINTR && (at == At::Every || number == at.call(3));
                let expected = [1, 2, 3].map(|number| if fails(number) { Err(errno) } else { Ok(()) });
                assert_eq!(answers, expected, "{title}: {} at {at:?}", io::Error::from_raw_os_error(errno));
                let interruptions = if errno == EINTR { at.interruptions(3) } else { 0 };
                assert_eq!(trap::made(), 3 + interruptions, "{title}: {}", io::Error::from_raw_os_error(errno));
                cases += 1;
            }
        }

        let open_quietly = || lendir::openat_with(CWD, path, OFlags::NOATIME).map(drop);
        trap::fail(SYS_openat, EPERM, |number| number == 1);
        open_quietly().unwrap();
        assert_eq!(trap::made(), 2, "EPERM for NOATIME: once more without");
        trap::fail(SYS_openat, EPERM, |_| true);
        assert_eq!(errno(&open_quietly().unwrap_err()), EPERM);
        assert_eq!(trap::made(), 2, "and no more than that");
        trap::fail(SYS_openat, EPERM, |_| true);
        assert_eq!(errno(&lendir::open(path).unwrap_err()), EPERM);
        assert_eq!(trap::made(), 1);
        trap::count(SYS_openat); // let go, lest the scoreboard be refused too
        let what = "times the exact error, once: `openat`, `lseek`, `fstatfs`, `newfstatat`";
        report("other calls fail", cases + 3, what);
    });
}

/// Some rows once more with errors that another program makes, lest the trap deceive itself.
#[test]
fn strace_agrees() {
    const TEST: &str = "strace_agrees";
    const DIRECTORY: &str = "LENDIR_DIRECTORY";
    const EXPECTED: &str = "LENDIR_EXPECTED";
    let in_words = |scan: &Scan| format!("{} entries, {:?}", scan.found.len(), scan.end);
    if let Some(directory) = env::var_os(DIRECTORY) {
        return child::run(TEST, 60, || {
            let dir = lendir::open(directory).unwrap();
            let scan = Scan::of(&mut Entries::new(&dir, &mut Buffer::with_capacity(0)));
            assert_eq!(in_words(&scan), env::var(EXPECTED).unwrap());
        });
    }
    if !machine::can_trace(TEST) {
        return;
    }
    let crowd = Crowd::new();
    let calls = crowd.batches.len() + 1;
    let last = format!("error=EOVERFLOW:when={calls}");
    let table = [
        ("error=ENOTDIR:when=1", ENOTDIR, 1),
        ("error=EIO:when=2", EIO, 2),
        (&last, EOVERFLOW, calls),
        ("error=ESTALE:when=1+", ESTALE, 1),
        ("error=ESTALE:when=3+", ESTALE, 3),
        ("error=ENOENT:when=2", ENOENT, 2),
        ("error=EINTR:when=1..50", EINTR, 1),
        ("error=EINTR:when=1+2", EINTR, 1),
    ];
    for (injection, errno, call) in table {
        let expected = in_words(&crowd.until(u32::try_from(call).unwrap(), errno));
        let set = |name, value| format!("--env={name}={value}");
        child::run_under(
            &[
                "strace",
                "-fqq",
                "--output=/dev/null",
                "--trace=getdents64",
                &format!("--inject=getdents64:{injection}"),
                &set(DIRECTORY, crowd.path.path().to_str().unwrap()),
                &set(EXPECTED, &expected),
            ],
            TEST,
            60,
            || unreachable!("it has the directory"),
        );
    }
    report("strace agrees", table.len(), "of the same errors, injected by strace");
}

fn rewound<'a>(dir: &'a OwnedFd, buffer: &'a mut Buffer, marker: EndMarker) -> Entries<'a> {
    let mut entries = Entries::new(dir, buffer).with_end_marker(marker);
    entries.rewind().unwrap();
    entries
}

/// Runs `body` in a process of its own, with the trap set.
fn trapped(test: &str, body: impl FnOnce()) {
    child::run(test, 60, || match trap::set_for_good() {
        Ok(()) => body(),
        Err(error) => machine::skip(test, &format!("a seccomp filter ({error})")),
    });
}

fn report(test: &str, cases: usize, what: &str) {
    machine::passed(&format!("faults: {test}"), cases, what);
}
