//! Contenders that read one directory, in the order in which the kernel returns it.

use crate::contender::{Contender, Reader, hash};
use crate::directories::{Answer, Directory};
use lendir::{Buffer, EndMarker, Entries, Listing, Order};
use rustix::fs::{Dir, Mode, OFlags, RawDir, SeekFrom, seek};
use std::ffi::CStr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

pub const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Bytes of a record whose name has 4095.
const MAX_RECORD: u64 = 4120;

fn open(path: &CStr) -> OwnedFd {
    rustix::fs::open(path, FLAGS, Mode::empty()).expect("cannot open the directory")
}

pub fn is_dots(name: &[u8]) -> bool {
    matches!(name, b"." | b"..")
}

/// Calls `getdents64` until it returns 0, and looks at nothing.
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

/// As [`bare`], but it leaves out the last `getdents64`: the end comes with the first batch that leaves room for the
/// largest record.
#[inline]
pub fn bare_marked(dir: &OwnedFd, buffer: &mut [u8]) -> u64 {
    let mut bytes = 0;
    loop {
        let read = u64::try_from(getdents64(dir, buffer)).expect("getdents64 failed");
        bytes += read;
        if read + MAX_RECORD <= buffer.len() as u64 {
            return bytes;
        }
    }
}

/// In the caller's frame, without libc's function `syscall`: after a system call, returning from a function is slow.
#[cfg(target_arch = "x86_64")]
#[inline]
fn getdents64(dir: &OwnedFd, buffer: &mut [u8]) -> libc::c_long {
    let read;
    // SAFETY: the kernel writes at most `len` bytes to `buffer`, which is borrowed mutably, and clobbers these registers.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") libc::SYS_getdents64 => read,
            in("rdi") dir.as_raw_fd(),
            in("rsi") buffer.as_mut_ptr(),
            in("rdx") buffer.len(),
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    read
}

#[cfg(not(target_arch = "x86_64"))]
fn getdents64(dir: &OwnedFd, buffer: &mut [u8]) -> libc::c_long {
    // SAFETY: the kernel writes at most `len` bytes to `buffer`, which is borrowed mutably.
    unsafe { libc::syscall(libc::SYS_getdents64, dir.as_raw_fd(), buffer.as_mut_ptr(), buffer.len()) }
}

/// open, `getdents64` until it returns 0, close: what every other contender is measured against.
pub fn bare_loop(dir: &Directory) -> Contender<'_> {
    bare_loop_over("bare loop", dir, || open(dir.turn()))
}

pub fn bare_loop_over<'a>(
    name: &'static str,
    dir: &'a Directory,
    mut open: impl FnMut() -> OwnedFd + 'a,
) -> Contender<'a> {
    let mut buffer = vec![0; Buffer::DEFAULT_CAPACITY];
    Contender::counting(name, dir.oracle(Answer::Records), move || bare(&open(), &mut buffer))
}

/// `RawDir` of rustix, with a caller that skips the dots.
pub fn raw_dir(dir: &Directory) -> Contender<'_> {
    let buffer = Vec::with_capacity(Buffer::DEFAULT_CAPACITY);
    Contender::reading("RawDir", dir.oracle(Answer::Names), Raw { dir, buffer })
}

struct Raw<'a> {
    dir: &'a Directory,
    buffer: Vec<u8>,
}

impl Reader for Raw<'_> {
    #[inline]
    fn read(&mut self, mut take: impl FnMut(&[u8])) {
        let dir = open(self.dir.turn());
        let mut entries = RawDir::new(&dir, self.buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let entry = entry.expect("cannot read the directory");
            let name = entry.file_name().to_bytes();
            if !is_dots(name) {
                take(name);
            }
        }
    }
}

pub fn lendir(dir: &Directory) -> Contender<'_> {
    lendir_over("lendir", dir, Buffer::DEFAULT_CAPACITY, || {
        lendir::open(dir.turn()).expect("cannot open the directory")
    })
}

pub fn lendir_over<'a>(
    name: &'static str,
    dir: &'a Directory,
    capacity: usize,
    open: impl FnMut() -> OwnedFd + 'a,
) -> Contender<'a> {
    lending(name, dir, capacity, open, |entries| entries)
}

/// With each capacity, in KiB, that may be worth choosing.
pub fn lendir_by_capacity(dir: &Directory) -> impl Iterator<Item = (usize, Contender<'_>)> {
    let named = [(8, "8 KiB"), (16, "16 KiB"), (32, "32 KiB"), (64, "64 KiB"), (256, "256 KiB"), (1024, "1 MiB")];
    named.into_iter().map(move |(kib, name)| {
        (kib, lendir_over(name, dir, kib * 1024, || lendir::open(dir.turn()).expect("cannot open the directory")))
    })
}

/// `None` where the file system has no end marker.
pub fn lendir_marked(dir: &Directory) -> Option<Contender<'_>> {
    let marker = marker(dir)?;
    let open = || lendir::open(dir.turn()).expect("cannot open the directory");
    Some(lending("lendir, EndMarker", dir, Buffer::DEFAULT_CAPACITY, open, move |e| e.with_end_marker(marker)))
}

/// `set_up` may set an end marker. Where it does not, the compiler knows that there is none, as it does in a user's loop.
fn lending<'a>(
    name: &'static str,
    dir: &'a Directory,
    capacity: usize,
    open: impl FnMut() -> OwnedFd + 'a,
    set_up: impl Fn(Entries<'_>) -> Entries<'_> + 'a,
) -> Contender<'a> {
    let reader = Lending { open, buffer: Buffer::with_capacity(capacity), set_up };
    Contender::reading(name, dir.oracle(Answer::Names), reader)
}

struct Lending<O, S> {
    open: O,
    buffer: Buffer,
    set_up: S,
}

impl<O: FnMut() -> OwnedFd, S: Fn(Entries<'_>) -> Entries<'_>> Reader for Lending<O, S> {
    #[inline]
    fn read(&mut self, mut take: impl FnMut(&[u8])) {
        let dir = (self.open)();
        let mut entries = (self.set_up)(Entries::new(&dir, &mut self.buffer));
        while let Some(entry) = entries.next().expect("cannot read the directory") {
            take(entry.name());
        }
    }
}

/// The marker of the directory's file system, if it has one.
pub fn marker(dir: &Directory) -> Option<EndMarker> {
    Some(EndMarker::of(open(&dir.path)).expect("fstatfs failed")).filter(|marker| *marker != EndMarker::NONE)
}

/// In the order of `listing`.
pub fn listing_over<'a>(
    name: &'static str,
    dir: &'a Directory,
    listing: Listing,
    marker: EndMarker,
    mut open: impl FnMut() -> OwnedFd + 'a,
) -> Contender<'a> {
    let answer = if listing.order() == Order::Directory { Answer::Names } else { Answer::Sorted };
    let mut buffer = Buffer::new();
    let fill = move |listing: &mut Listing| {
        listing.read(Entries::new(&open(), &mut buffer).with_end_marker(marker)).expect("cannot read the directory");
    };
    let oracle = dir.oracle(answer);
    Contender::filling(name, oracle, listing, fill, |listing| hash(listing.iter().map(|entry| entry.name())))
}

pub fn listing<'a>(name: &'static str, dir: &'a Directory) -> Contender<'a> {
    listing_over(name, dir, Listing::new(), EndMarker::NONE, || {
        lendir::open(dir.turn()).expect("cannot open the directory")
    })
}

/// `lseek` to the beginning, and `getdents64` until it returns 0.
pub fn bare_rescan(dir: &Directory) -> Contender<'_> {
    let fd = open(&dir.path);
    let mut buffer = vec![0; Buffer::DEFAULT_CAPACITY];
    Contender::counting("bare rescan", dir.oracle(Answer::Records), move || {
        seek(&fd, SeekFrom::Start(0)).expect("cannot rewind the directory");
        bare(&fd, &mut buffer)
    })
}

pub fn lendir_rescan(dir: &Directory) -> Contender<'_> {
    rescan("rewind", dir, |entries| entries)
}

/// `None` where the file system has no end marker.
pub fn lendir_marked_rescan(dir: &Directory) -> Option<Contender<'_>> {
    let marker = marker(dir)?;
    Some(rescan("rewind, EndMarker", dir, move |entries| entries.with_end_marker(marker)))
}

fn rescan<'a>(
    name: &'static str,
    dir: &'a Directory,
    set_up: impl Fn(Entries<'_>) -> Entries<'_> + 'a,
) -> Contender<'a> {
    let reader = Rewinding { dir: open(&dir.path), buffer: Buffer::new(), set_up };
    Contender::reading(name, dir.oracle(Answer::Names), reader)
}

struct Rewinding<S> {
    dir: OwnedFd,
    buffer: Buffer,
    set_up: S,
}

impl<S: Fn(Entries<'_>) -> Entries<'_>> Reader for Rewinding<S> {
    #[inline]
    fn read(&mut self, mut take: impl FnMut(&[u8])) {
        let mut entries = (self.set_up)(Entries::new(&self.dir, &mut self.buffer));
        entries.rewind().expect("cannot rewind the directory");
        while let Some(entry) = entries.next().expect("cannot read the directory") {
            take(entry.name());
        }
    }
}

pub fn rustix_dir(dir: &Directory) -> Contender<'_> {
    Contender::reading("rustix::fs::Dir", dir.oracle(Answer::Names), Rustix(dir))
}

struct Rustix<'a>(&'a Directory);

impl Reader for Rustix<'_> {
    #[inline]
    fn read(&mut self, mut take: impl FnMut(&[u8])) {
        for entry in Dir::new(open(self.0.turn())).expect("cannot open the directory") {
            let entry = entry.expect("cannot read the directory");
            let name = entry.file_name().to_bytes();
            if !is_dots(name) {
                take(name);
            }
        }
    }
}

pub fn libc_readdir(dir: &Directory) -> Contender<'_> {
    Contender::reading("readdir of libc", dir.oracle(Answer::Names), Libc(dir))
}

struct Libc<'a>(&'a Directory);

impl Reader for Libc<'_> {
    #[inline]
    fn read(&mut self, mut take: impl FnMut(&[u8])) {
        // SAFETY: the path ends with NUL, and the stream is new.
        unsafe { drain(libc::opendir(self.0.turn().as_ptr()), |name| take(name.to_bytes())) };
    }
}

/// Gives each name of the stream but the dots to `take`, and closes the stream.
///
/// # Safety
///
/// The stream is open, and nobody else uses it.
#[inline]
pub unsafe fn drain(stream: *mut libc::DIR, mut take: impl FnMut(&CStr)) {
    assert!(!stream.is_null(), "opendir failed");
    // SAFETY: as the caller promises; an entry is no longer used when the next one is asked for.
    unsafe {
        loop {
            let entry = libc::readdir64(stream);
            if entry.is_null() {
                break;
            }
            let name = CStr::from_ptr((*entry).d_name.as_ptr());
            if !is_dots(name.to_bytes()) {
                take(name);
            }
        }
        libc::closedir(stream);
    }
}

pub fn std_read_dir(dir: &Directory) -> Contender<'_> {
    Contender::reading("std::fs::read_dir", dir.oracle(Answer::Names), Std(dir))
}

struct Std<'a>(&'a Directory);

impl Reader for Std<'_> {
    #[inline]
    fn read(&mut self, mut take: impl FnMut(&[u8])) {
        for entry in std::fs::read_dir(self.0.turn_path()).expect("cannot open the directory") {
            take(entry.expect("cannot read the directory").file_name().as_bytes());
        }
    }
}

/// All that open the directory, read it and close it, the bare loop first.
pub fn all(dir: &Directory) -> Vec<Contender<'_>> {
    let mut all = vec![bare_loop(dir), raw_dir(dir), lendir(dir)];
    all.extend(lendir_marked(dir));
    all.extend([libc_readdir(dir), rustix_dir(dir), std_read_dir(dir)]);
    all
}

/// All that read an open directory again.
pub fn rescans(dir: &Directory) -> Vec<Contender<'_>> {
    let mut all = vec![bare_rescan(dir), lendir_rescan(dir)];
    all.extend(lendir_marked_rescan(dir));
    all
}
