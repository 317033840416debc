//! Contenders that read one directory. They do not know how they are measured.

use crate::contender::Contender;
use crate::directories::{Answer, Directory};
use crate::reader;
use lendir::{Buffer, Entries, Listing, Order};
use rustix::fs::{Mode, OFlags, RawDir, SeekFrom, seek};
use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

pub const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

fn open(path: &CStr) -> OwnedFd {
    rustix::fs::open(path, FLAGS, Mode::empty()).expect("cannot open the directory")
}

pub fn is_dots(name: &[u8]) -> bool {
    matches!(name, b"." | b"..")
}

/// Calls `getdents64` until it returns 0, and looks at no entry.
#[inline]
pub fn bare(dir: &OwnedFd, buffer: &mut [u8]) -> u64 {
    let mut bytes = 0;
    loop {
        match u64::try_from(getdents64(dir, buffer)).expect("getdents64 failed") {
            0 => return bytes,
            read => bytes += read,
        }
    }
}

/// Calls `getdents64` in the caller's frame, without the function `syscall` of libc. After a system
/// call, returning from a function is slow.
#[inline]
fn getdents64(dir: &OwnedFd, buffer: &mut [u8]) -> libc::c_long {
    let (dir, start, len) = (dir.as_raw_fd(), buffer.as_mut_ptr(), buffer.len());
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: the kernel writes at most `len` bytes to `buffer`, which is borrowed mutably.
    let read = unsafe { libc::syscall(libc::SYS_getdents64, dir, start, len) };
    #[cfg(target_arch = "x86_64")]
    let read;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the same, and the kernel clobbers these registers.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") libc::SYS_getdents64 => read,
            in("rdi") dir,
            in("rsi") start,
            in("rdx") len,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    read
}

/// The bare loop: `open`, `getdents64` until it returns 0, `close`. It is the base of every other
/// contender.
pub fn bare_loop(dir: &Directory) -> Contender<'_> {
    let mut buffer = vec![0; Buffer::DEFAULT_CAPACITY];
    Contender::counting("bare loop", dir.oracle(Answer::Records), move || {
        bare(&open(dir.turn()), &mut buffer)
    })
}

reader!(
    /// Skips the dots.
    Raw { dir: &'a Directory, buffer: Vec<u8> } |take| {
        let dir = open(dir.turn());
        let mut entries = RawDir::new(&dir, buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let entry = entry.expect("cannot read the directory");
            let name = entry.file_name().to_bytes();
            if !is_dots(name) {
                take(name);
            }
        }
    }
);

reader!(Lending { dir: &'a Directory, buffer: Buffer } |take| {
    let dir = open(dir.turn());
    let mut entries = Entries::new(dir.as_fd(), buffer);
    while let Some(entry) = entries.next().expect("cannot read the directory") {
        take(entry.name());
    }
});

reader!(NotReused { dir: &'a Directory } |take| {
    Lending { dir, buffer: Buffer::new() }.read(&mut take);
});

reader!(Rewinding { dir: OwnedFd, buffer: Buffer, _of: &'a Directory } |take| {
    let mut entries = Entries::new(dir.as_fd(), buffer);
    entries.rewind().expect("cannot rewind the directory");
    while let Some(entry) = entries.next().expect("cannot read the directory") {
        take(entry.name());
    }
});

reader!(Listed { dir: &'a Directory, listing: Listing } |take| {
    let dir = open(dir.turn());
    listing.read(&dir).expect("cannot read the directory");
    for entry in &*listing {
        take(entry.name());
    }
});

reader!(Libc { dir: &'a Directory } |take| {
    // SAFETY: the path ends with NUL, only this function uses the stream, and no entry is used after
    // the next one is requested.
    unsafe {
        let stream = libc::opendir(dir.turn().as_ptr());
        assert!(!stream.is_null(), "opendir failed");
        loop {
            let entry = libc::readdir64(stream);
            if entry.is_null() {
                break;
            }
            let name = CStr::from_ptr((*entry).d_name.as_ptr()).to_bytes();
            if !is_dots(name) {
                take(name);
            }
        }
        libc::closedir(stream);
    }
});

reader!(Std { dir: &'a Directory } |take| {
    for entry in std::fs::read_dir(dir.turn_path()).expect("cannot open the directory") {
        take(entry.expect("cannot read the directory").file_name().as_bytes());
    }
});

reader!(StdSorted { dir: &'a Directory } |take| {
    let entries = std::fs::read_dir(dir.turn_path()).expect("cannot open the directory");
    let mut names: Vec<_> =
        entries.map(|entry| entry.expect("cannot read the directory").file_name()).collect();
    names.sort_unstable();
    for name in &names {
        take(name.as_bytes());
    }
});

reader!(
    /// Sorts names in memory that is not reused.
    LibcSorted { dir: &'a Directory } |take| {
        let mut names = Vec::new();
        Libc { dir }.read(|name| names.push(name.to_vec()));
        names.sort_unstable();
        for name in &names {
            take(name);
        }
    }
);

pub fn standard(dir: &Directory) -> Contender<'_> {
    Contender::reading("std::fs::read_dir", dir.oracle(Answer::Names), Std { dir })
}

pub fn standard_sorted(dir: &Directory) -> Contender<'_> {
    Contender::reading("std::fs::read_dir", dir.oracle(Answer::Sorted), StdSorted { dir })
}

pub fn lendir(dir: &Directory) -> Contender<'_> {
    with_capacity("lendir", dir, Buffer::DEFAULT_CAPACITY)
}

fn with_capacity<'a>(name: &'static str, dir: &'a Directory, capacity: usize) -> Contender<'a> {
    let reader = Lending { dir, buffer: Buffer::with_capacity(capacity) };
    Contender::reading(name, dir.oracle(Answer::Names), reader)
}

/// Returns a contender that reads into a `Listing`, whose order decides the answer.
pub fn listing<'a>(name: &'static str, dir: &'a Directory, order: Order) -> Contender<'a> {
    let answer = if order == Order::Unsorted { Answer::Names } else { Answer::Sorted };
    let listing = Listing::with_order(order);
    Contender::reading(name, dir.oracle(answer), Listed { dir, listing })
}

/// Returns the contenders that open the directory, read it and close it, the bare loop first.
pub fn all(dir: &Directory) -> Vec<Contender<'_>> {
    let names = || dir.oracle(Answer::Names);
    let raw = Raw { dir, buffer: Vec::with_capacity(Buffer::DEFAULT_CAPACITY) };
    vec![
        bare_loop(dir),
        standard(dir),
        lendir(dir),
        Contender::reading("RawDir", names(), raw),
        Contender::reading("readdir of libc", names(), Libc { dir }),
    ]
}

/// Returns the bare loop, and the contenders that sort by the bytes of the names.
pub fn sorted(dir: &Directory) -> Vec<Contender<'_>> {
    let libc = LibcSorted { dir };
    vec![
        bare_loop(dir),
        standard_sorted(dir),
        listing("lendir", dir, Order::Bytes),
        Contender::reading("readdir of libc", dir.oracle(Answer::Sorted), libc),
    ]
}

/// The bare rescan: `lseek` to the beginning, and `getdents64` until it returns 0.
fn bare_rescan(dir: &Directory) -> Contender<'_> {
    let fd = open(dir.turn());
    let mut buffer = vec![0; Buffer::DEFAULT_CAPACITY];
    Contender::counting("bare rescan", dir.oracle(Answer::Records), move || {
        seek(&fd, SeekFrom::Start(0)).expect("cannot rewind the directory");
        bare(&fd, &mut buffer)
    })
}

pub fn lendir_rescan(dir: &Directory) -> Contender<'_> {
    let reader = Rewinding { dir: open(dir.turn()), buffer: Buffer::new(), _of: dir };
    Contender::reading("lendir, read again", dir.oracle(Answer::Names), reader)
}

/// Returns the bare loop, and the contenders that read the same directory each time: without opening
/// it, with buffers of several capacities, and with one that is not reused.
pub fn rescans_and_capacities(dir: &Directory) -> Vec<Contender<'_>> {
    let mut base = bare_loop(dir);
    base.name = "bare loop, one directory";
    let mut all = vec![base, bare_rescan(dir), lendir_rescan(dir)];
    let names = ["8 KiB", "16 KiB", "32 KiB", "64 KiB", "256 KiB", "1 MiB"];
    for (name, kib) in names.into_iter().zip([8, 16, 32, 64, 256, 1024]) {
        all.push(with_capacity(name, dir, kib * 1024));
    }
    let names = dir.oracle(Answer::Names);
    all.push(Contender::reading("32 KiB, not reused", names, NotReused { dir }));
    all
}
