//! Contenders that read one directory. They do not know how they are measured.

use crate::contender::{Contender, Oracle, Reader, hash};
use crate::directories::{Answer, Directory};
use lendir::{Buffer, Entries, ListedEntry, Listing, Order};
use rustix::fs::{Dir, Mode, OFlags, RawDir, SeekFrom, seek};
use std::collections::BTreeSet;
use std::ffi::CStr;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;

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
#[cfg(target_arch = "x86_64")]
#[inline]
fn getdents64(dir: &OwnedFd, buffer: &mut [u8]) -> libc::c_long {
    let read;
    // SAFETY: the kernel writes at most `len` bytes to `buffer`, which is borrowed mutably, and
    // clobbers these registers.
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
    unsafe {
        libc::syscall(libc::SYS_getdents64, dir.as_raw_fd(), buffer.as_mut_ptr(), buffer.len())
    }
}

/// The bare loop: `open`, `getdents64` until it returns 0, `close`. It is the base of every other
/// contender.
pub fn bare_loop(dir: &Directory) -> Contender<'_> {
    let mut buffer = vec![0; Buffer::DEFAULT_CAPACITY];
    Contender::counting("bare loop", dir.oracle(Answer::Records), move || {
        bare(&open(dir.turn()), &mut buffer)
    })
}

/// A contender that reads by `RawDir` of rustix and skips the dots.
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
    lending("lendir", dir, Buffer::DEFAULT_CAPACITY)
}

/// Returns the bare loop, `lendir` with each useful capacity, and `lendir` with a buffer that is
/// not reused.
pub fn by_capacity(dir: &Directory) -> Vec<Contender<'_>> {
    let named = [
        (8, "8 KiB"),
        (16, "16 KiB"),
        (32, "32 KiB"),
        (64, "64 KiB"),
        (256, "256 KiB"),
        (1024, "1 MiB"),
    ];
    let mut all = vec![bare_loop(dir)];
    all.extend(named.map(|(kib, name)| lending(name, dir, kib * 1024)));
    all.push(Contender::reading("32 KiB, not reused", dir.oracle(Answer::Names), NotReused(dir)));
    all
}

fn lending<'a>(name: &'static str, dir: &'a Directory, capacity: usize) -> Contender<'a> {
    let reader = Lending { dir, buffer: Buffer::with_capacity(capacity) };
    Contender::reading(name, dir.oracle(Answer::Names), reader)
}

struct Lending<'a> {
    dir: &'a Directory,
    buffer: Buffer,
}

impl Reader for Lending<'_> {
    #[inline]
    fn read(&mut self, mut take: impl FnMut(&[u8])) {
        let dir = open(self.dir.turn());
        let mut entries = Entries::new(dir.as_fd(), &mut self.buffer);
        while let Some(entry) = entries.next().expect("cannot read the directory") {
            take(entry.name());
        }
    }
}

struct NotReused<'a>(&'a Directory);

impl Reader for NotReused<'_> {
    #[inline]
    fn read(&mut self, take: impl FnMut(&[u8])) {
        Lending { dir: self.0, buffer: Buffer::new() }.read(take);
    }
}

/// Returns a contender that reads into a `Listing`, which sorts.
pub fn listing<'a>(name: &'static str, dir: &'a Directory, listing: Listing) -> Contender<'a> {
    Contender::reading(name, dir.oracle(Answer::Sorted), Listed { dir, listing })
}

struct Listed<'a> {
    dir: &'a Directory,
    listing: Listing,
}

impl Reader for Listed<'_> {
    #[inline]
    fn read(&mut self, mut take: impl FnMut(&[u8])) {
        let dir = open(self.dir.turn());
        self.listing.read(&dir).expect("cannot read the directory");
        for entry in &self.listing {
            take(entry.name());
        }
    }
}

/// A contender that sorts the names of a listing in the usual way. It shows how much the sort of
/// `Listing` saves.
struct Resorted<'a, K> {
    dir: &'a Directory,
    listing: Listing,
    /// The memory of the names. It is empty between two readings.
    names: Vec<(K, &'static [u8])>,
    collect: Collect<K>,
}

/// Puts the names of a listing into a vector, each behind the key that it is sorted by.
type Collect<K> = for<'l> fn(&'l Listing, &mut Vec<(K, &'l [u8])>);

impl<K: Ord> Reader for Resorted<'_, K> {
    #[inline]
    fn read(&mut self, mut take: impl FnMut(&[u8])) {
        let dir = open(self.dir.turn());
        self.listing.read(&dir).expect("cannot read the directory");
        let mut names: Vec<(K, &[u8])> = mem::take(&mut self.names);
        (self.collect)(&self.listing, &mut names);
        names.sort_unstable();
        for (_, name) in &names {
            take(name);
        }
        names.clear();
        // `collect` reuses the memory, and no name outlives the listing.
        self.names = names.into_iter().map(|_| unreachable!("it is empty")).collect();
    }
}

/// Returns two contenders that sort the same listing by `slice::sort_unstable`: the names, or keys
/// of 8 bytes beside the names.
pub fn resorted(dir: &Directory) -> [Contender<'_>; 2] {
    fn resorted<'a, K: Ord + 'static>(
        name: &'static str,
        dir: &'a Directory,
        collect: Collect<K>,
    ) -> Contender<'a> {
        let listing = Listing::with_order(Order::Unsorted);
        let reader = Resorted { dir, listing, names: Vec::new(), collect };
        Contender::reading(name, dir.oracle(Answer::Sorted), reader)
    }
    [
        resorted("lendir, sort_unstable of names", dir, |listing, names| {
            names.extend(listing.iter().map(|entry| ((), entry.name())));
        }),
        resorted("lendir, sort_unstable of keys", dir, |listing, names| {
            let shared = common_prefix(listing);
            let key = |name: &[u8]| {
                let mut key = [0; 8];
                let rest = &name[shared..name.len().min(shared + 8)];
                key[..rest.len()].copy_from_slice(rest);
                u64::from_be_bytes(key)
            };
            names.extend(listing.iter().map(|entry| (key(entry.name()), entry.name())));
        }),
    ]
}

/// Returns the length of the prefix that all names share.
fn common_prefix(listing: &Listing) -> usize {
    let mut names = listing.iter().map(|entry| entry.name());
    let Some(first) = names.next() else { return 0 };
    names.fold(first.len(), |shared, name| {
        first[..shared].iter().zip(name).take_while(|(a, b)| a == b).count()
    })
}

/// The bare rescan: `lseek` to the beginning, and `getdents64` until it returns 0.
pub fn bare_rescan(dir: &Directory) -> Contender<'_> {
    let fd = open(&dir.path);
    let mut buffer = vec![0; Buffer::DEFAULT_CAPACITY];
    Contender::counting("bare rescan", dir.oracle(Answer::Records), move || {
        seek(&fd, SeekFrom::Start(0)).expect("cannot rewind the directory");
        bare(&fd, &mut buffer)
    })
}

pub fn lendir_rescan(dir: &Directory) -> Contender<'_> {
    let reader = Rewinding { dir: open(&dir.path), buffer: Buffer::new() };
    Contender::reading("lendir", dir.oracle(Answer::Names), reader)
}

struct Rewinding {
    dir: OwnedFd,
    buffer: Buffer,
}

impl Reader for Rewinding {
    #[inline]
    fn read(&mut self, mut take: impl FnMut(&[u8])) {
        let mut entries = Entries::new(self.dir.as_fd(), &mut self.buffer);
        entries.rewind().expect("cannot rewind the directory");
        while let Some(entry) = entries.next().expect("cannot read the directory") {
            take(entry.name());
        }
    }
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

struct Libc<'a>(&'a Directory);

impl Reader for Libc<'_> {
    #[inline]
    fn read(&mut self, mut take: impl FnMut(&[u8])) {
        // SAFETY: the path ends with NUL, and the stream is new.
        unsafe { drain(libc::opendir(self.0.turn().as_ptr()), |name| take(name.to_bytes())) };
    }
}

/// Passes each name of the stream except the dots to `take`, and closes the stream.
///
/// # Safety
///
/// The stream must be open, and no other thread may use it.
#[inline]
pub unsafe fn drain(stream: *mut libc::DIR, mut take: impl FnMut(&CStr)) {
    assert!(!stream.is_null(), "opendir failed");
    // SAFETY: the caller's promise; and no entry is used after the next one is requested.
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

struct Std<'a>(&'a Directory);

impl Reader for Std<'_> {
    #[inline]
    fn read(&mut self, mut take: impl FnMut(&[u8])) {
        for entry in std::fs::read_dir(self.0.turn_path()).expect("cannot open the directory") {
            take(entry.expect("cannot read the directory").file_name().as_bytes());
        }
    }
}

/// A contender that reads names in the same way as another one, and sorts them in memory that is
/// not reused.
struct Collected<R>(R);

impl<R: Reader> Reader for Collected<R> {
    fn read(&mut self, mut take: impl FnMut(&[u8])) {
        let mut names = Vec::new();
        self.0.read(|name| names.push(name.to_vec()));
        names.sort_unstable();
        for name in &names {
            take(name);
        }
    }
}

struct StdSorted<'a>(&'a Directory);

impl Reader for StdSorted<'_> {
    fn read(&mut self, mut take: impl FnMut(&[u8])) {
        let entries = std::fs::read_dir(self.0.turn_path()).expect("cannot open the directory");
        let mut names: Vec<_> =
            entries.map(|entry| entry.expect("cannot read the directory").file_name()).collect();
        names.sort_unstable();
        for name in &names {
            take(name.as_bytes());
        }
    }
}

/// Returns the contenders that open the directory, read it and close it, the bare loop first.
pub fn all(dir: &Directory) -> Vec<Contender<'_>> {
    let names = || dir.oracle(Answer::Names);
    let raw = Raw { dir, buffer: Vec::with_capacity(Buffer::DEFAULT_CAPACITY) };
    let mut all = vec![
        bare_loop(dir),
        Contender::reading("std::fs::read_dir", names(), Std(dir)),
        lendir(dir),
    ];
    all.push(Contender::reading("RawDir", names(), raw));
    all.push(Contender::reading("readdir of libc", names(), Libc(dir)));
    all.push(Contender::reading("rustix::fs::Dir", names(), Rustix(dir)));
    all
}

/// Returns the bare loop, and the contenders that sort by the bytes of the names.
pub fn sorted(dir: &Directory) -> Vec<Contender<'_>> {
    let by_std =
        Contender::reading("std::fs::read_dir", dir.oracle(Answer::Sorted), StdSorted(dir));
    let mut all = vec![bare_loop(dir), by_std, listing("lendir", dir, Listing::new())];
    all.push(Contender::reading(
        "readdir of libc",
        dir.oracle(Answer::Sorted),
        Collected(Libc(dir)),
    ));
    all
}

/// Returns the parts of a sorted reading: a listing without a sort, and only reading.
pub fn not_sorted(dir: &Directory) -> [Contender<'_>; 2] {
    let listing = Listed { dir, listing: Listing::with_order(Order::Unsorted) };
    let listing = Contender::reading("lendir, not sorted", dir.oracle(Answer::Names), listing);
    [listing, lendir(dir).named("lendir, only read")]
}

/// Returns the bare loop, then the contenders that read an open directory again.
pub fn rescans(dir: &Directory) -> Vec<Contender<'_>> {
    vec![bare_loop(dir), bare_rescan(dir), lendir_rescan(dir)]
}

/// Returns two contenders that find the names that only one of two directories has: by looking up
/// each name of one in the other, and by one loop through both.
pub fn compared(dir: &Directory) -> Vec<Contender<'_>> {
    let both = Rc::new([0, 1].map(|number| {
        let mut listing = Listing::new();
        let path = dir.paths().nth(number).expect("BUG: no two directories");
        lendir::open(path).and_then(|dir| listing.read(dir)).expect("cannot read the directory");
        listing
    }));
    let looked_up = |both: &[Listing; 2], found: &mut Vec<Vec<u8>>| {
        for [here, there] in [[0, 1], [1, 0]] {
            let only_here =
                both[here].iter().filter(|entry| both[there].by_name(entry.name()).is_none());
            found.extend(only_here.map(|entry| entry.name().to_vec()));
        }
    };
    let stepped = |both: &[Listing; 2], found: &mut Vec<Vec<u8>>| {
        let [mut olds, mut news] = both.each_ref().map(|listing| listing.iter().peekable());
        while let Some(name) =
            olds.peek().into_iter().chain(news.peek()).map(ListedEntry::name).min()
        {
            let sides =
                [&mut olds, &mut news].map(|side| side.next_if(|entry| entry.name() == name));
            if sides.iter().any(Option::is_none) {
                found.push(name.to_vec());
            }
        }
    };
    let ways: [(_, fn(&_, &mut _)); 2] =
        [("by_name", looked_up), ("one loop through both", stepped)];
    let contenders = ways.map(|(name, compare)| {
        let (both, of_oracle) = (both.clone(), both.clone());
        let answer = move || {
            let [old, new] = of_oracle
                .each_ref()
                .map(|it| it.iter().map(|entry| entry.name()).collect::<BTreeSet<_>>());
            hash(old.symmetric_difference(&new))
        };
        let fill = move |found: &mut Vec<Vec<u8>>| {
            found.clear();
            compare(&both, found);
        };
        let sorted = |found: &Vec<Vec<u8>>| hash(found.iter().collect::<BTreeSet<_>>());
        Contender::filling(name, Oracle::new(&dir.label, false, answer), Vec::new(), fill, sorted)
    });
    contenders.into()
}
