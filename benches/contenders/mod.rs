//! Every way to read a directory, behind one shape: called a number of times, it answers and says how long it took.

#![allow(dead_code, reason = "each benchmark uses a part")]

use crate::directories::Directory;
use lendir::{Buffer, EndMarker, Entries, Listing, Order};
use rustix::fs::{Dir, Mode, OFlags, RawDir};
use std::ffi::CStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::hint::black_box;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::time::{Duration, Instant};

pub struct Contender<'a> {
    pub name: &'static str,
    answer: Answer,
    read: Box<dyn Read + 'a>,
}

trait Read {
    /// The time that `times` readings take.
    fn time(&mut self, times: u64) -> Duration;
    /// Reads once and answers.
    fn answer(&mut self) -> u64;
}

/// Reads into `memory`; `answer` looks at it, untimed.
struct Reading<M, R, A> {
    memory: M,
    read: R,
    answer: A,
}

impl<M, R: FnMut(&mut M), A: Fn(&M) -> u64> Read for Reading<M, R, A> {
    // Monomorphised, so that nothing stands between the reading and the loop that times it.
    fn time(&mut self, times: u64) -> Duration {
        let begin = Instant::now();
        for _ in 0..times {
            (self.read)(&mut self.memory);
            black_box(&mut self.memory);
        }
        begin.elapsed()
    }

    fn answer(&mut self) -> u64 {
        (self.read)(&mut self.memory);
        (self.answer)(&self.memory)
    }
}

/// Times itself, in another process.
struct Elsewhere<R>(R);

impl<R: FnMut(u64) -> (Duration, u64)> Read for Elsewhere<R> {
    fn time(&mut self, times: u64) -> Duration {
        (self.0)(times).0
    }

    fn answer(&mut self) -> u64 {
        (self.0)(1).1
    }
}

/// What the number means that a contender answers with.
#[derive(Clone, Copy)]
pub enum Answer {
    /// The bytes of all names.
    Names,
    /// The number of entries.
    Entries,
    /// The bytes of all records, dots too: the loop that looks at nothing knows no more.
    Records,
    /// A hash of all names, in the order of the directory.
    Listing,
    /// A hash of all names, sorted.
    Sorted,
    /// What this function answers.
    By(fn(&Directory) -> u64),
}

impl Answer {
    /// As `std::fs::read_dir` would have it.
    fn by_std(self, dir: &Directory) -> u64 {
        if let Self::By(answer) = self {
            return answer(dir);
        }
        let names =
            std::fs::read_dir(dir.path()).expect("a directory").map(|entry| entry.expect("an entry").file_name());
        if matches!(self, Self::Listing | Self::Sorted) {
            let mut names: Vec<_> = names.collect();
            if matches!(self, Self::Sorted) {
                names.sort();
            }
            return hash(names.iter().map(|name| name.as_bytes()));
        }
        let of_name = |len: usize| match self {
            Self::Names => len,
            Self::Records => (19 + len + 1).next_multiple_of(8),
            _ => 1,
        };
        let dots = if matches!(self, Self::Records) { of_name(1) + of_name(2) } else { 0 };
        (dots + names.map(|name| of_name(name.len())).sum::<usize>()) as u64
    }
}

fn hash<'n>(names: impl Iterator<Item = &'n [u8]>) -> u64 {
    let mut hasher = DefaultHasher::new();
    names.for_each(|name| name.hash(&mut hasher));
    hasher.finish()
}

impl<'a> Contender<'a> {
    /// One that only counts, as it goes.
    pub fn new(name: &'static str, answer: Answer, mut read: impl FnMut() -> u64 + 'a) -> Self {
        let read = Reading { memory: 0, read: move |count: &mut u64| *count = read(), answer: |count: &u64| *count };
        Self { name, answer, read: Box::new(read) }
    }

    /// One that lists the directory in `memory`, where `names` finds what it listed.
    pub fn listing<M: 'a>(
        name: &'static str,
        answer: Answer,
        memory: M,
        read: impl FnMut(&mut M) + 'a,
        names: fn(&M) -> Vec<&[u8]>,
    ) -> Self {
        let answer_of = move |memory: &M| hash(names(memory).into_iter());
        Self { name, answer, read: Box::new(Reading { memory, read, answer: answer_of }) }
    }

    /// One that times itself, in another process: called a number of times, it says how long it took, and the answer.
    pub fn elsewhere(name: &'static str, answer: Answer, read: impl FnMut(u64) -> (Duration, u64) + 'a) -> Self {
        Self { name, answer, read: Box::new(Elsewhere(read)) }
    }

    /// The time that `times` readings take.
    pub fn time(&mut self, times: u64) -> Duration {
        self.read.time(times)
    }

    /// Panics unless it answers as `std` does; where processes come and go it may take some tries.
    pub fn check(&mut self, dir: &Directory) {
        let agrees = (0..100).any(|_| self.read.answer() == self.answer.by_std(dir));
        assert!(
            agrees,
            "{} on {} answers {}, not {}",
            self.name,
            dir.label,
            self.read.answer(),
            self.answer.by_std(dir)
        );
    }
}

pub const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

fn open(path: &CStr) -> OwnedFd {
    rustix::fs::open(path, FLAGS, Mode::empty()).expect("a directory")
}

/// Reads to the end and looks at nothing.
fn bare(dir: BorrowedFd<'_>, buffer: &mut [u8]) -> u64 {
    let mut bytes = 0;
    loop {
        // SAFETY: the kernel writes at most `len` bytes to `buffer`, which is borrowed mutably.
        let read = unsafe { libc::syscall(libc::SYS_getdents64, dir.as_raw_fd(), buffer.as_mut_ptr(), buffer.len()) };
        match u64::try_from(read).expect("no error") {
            0 => return bytes,
            read => bytes += read,
        }
    }
}

#[inline]
fn name_bytes(mut entries: Entries<'_>) -> u64 {
    let mut bytes = 0;
    while let Some(entry) = entries.next().expect("an entry") {
        bytes += entry.name().len() as u64;
    }
    bytes
}

/// open, `getdents64` until it says 0, close: what every other contender is measured against.
pub fn bare_loop(dir: &Directory) -> Contender<'_> {
    bare_loop_over("bare loop", || open(&dir.path))
}

pub fn bare_loop_over<'a>(name: &'static str, mut open: impl FnMut() -> OwnedFd + 'a) -> Contender<'a> {
    let mut buffer = vec![0; Buffer::DEFAULT_CAPACITY];
    Contender::new(name, Answer::Records, move || bare(open().as_fd(), &mut buffer))
}

pub fn raw_dir(dir: &Directory) -> Contender<'_> {
    let mut buffer = Vec::with_capacity(Buffer::DEFAULT_CAPACITY);
    Contender::new("rustix RawDir", Answer::Names, move || {
        let dir = open(&dir.path);
        let mut entries = RawDir::new(&dir, buffer.spare_capacity_mut());
        let mut bytes = 0;
        while let Some(entry) = entries.next() {
            let entry = entry.expect("an entry");
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                bytes += name.len() as u64;
            }
        }
        bytes
    })
}

fn open_lendir(dir: &Directory) -> OwnedFd {
    lendir::open(&*dir.path).expect("a directory")
}

pub fn lendir(dir: &Directory) -> Contender<'_> {
    lendir_over("lendir", Buffer::DEFAULT_CAPACITY, || open_lendir(dir))
}

pub fn lendir_over<'a>(name: &'static str, capacity: usize, mut open: impl FnMut() -> OwnedFd + 'a) -> Contender<'a> {
    let mut buffer = Buffer::with_capacity(capacity);
    Contender::new(name, Answer::Names, move || name_bytes(Entries::new(&open(), &mut buffer)))
}

/// In the order of `listing`, by which its answer is looked at.
pub fn listing_over<'a>(
    name: &'static str,
    listing: Listing,
    marker: EndMarker,
    mut open: impl FnMut() -> OwnedFd + 'a,
) -> Contender<'a> {
    let answer = if listing.order() == Order::Directory { Answer::Listing } else { Answer::Sorted };
    let mut buffer = Buffer::new();
    let read = move |listing: &mut Listing| {
        listing.read(Entries::new(&open(), &mut buffer).with_end_marker(marker)).expect("all entries");
    };
    Contender::listing(name, answer, listing, read, |listing| listing.iter().map(|entry| entry.name()).collect())
}

pub fn listing<'a>(name: &'static str, dir: &'a Directory) -> Contender<'a> {
    listing_over(name, Listing::new(), EndMarker::NONE, || open_lendir(dir))
}

/// With each capacity in KiB that is worth a question.
pub fn lendir_by_capacity(dir: &Directory) -> impl Iterator<Item = (usize, Contender<'_>)> {
    let named = [
        (8, "lendir, 8 KiB"),
        (16, "lendir, 16 KiB"),
        (32, "lendir, 32 KiB"),
        (64, "lendir, 64 KiB"),
        (256, "lendir, 256 KiB"),
        (1024, "lendir, 1 MiB"),
    ];
    named.into_iter().map(move |(kib, name)| (kib, lendir_over(name, kib * 1024, || open_lendir(dir))))
}

/// `None` where the file system has no end marker.
pub fn lendir_marked(dir: &Directory) -> Option<Contender<'_>> {
    let marker = marker(dir)?;
    let mut buffer = Buffer::new();
    Some(Contender::new("lendir, EndMarker", Answer::Names, move || {
        name_bytes(Entries::new(&open_lendir(dir), &mut buffer).with_end_marker(marker))
    }))
}

pub fn bare_rescan(dir: &Directory) -> Contender<'_> {
    let dir = open(&dir.path);
    let mut buffer = vec![0; Buffer::DEFAULT_CAPACITY];
    Contender::new("bare rescan", Answer::Records, move || {
        rustix::fs::seek(&dir, rustix::fs::SeekFrom::Start(0)).expect("the beginning");
        bare(dir.as_fd(), &mut buffer)
    })
}

pub fn lendir_rescan(dir: &Directory) -> Contender<'_> {
    rescan("lendir, rewind", dir, EndMarker::NONE)
}

/// `None` where the file system has no end marker.
pub fn lendir_marked_rescan(dir: &Directory) -> Option<Contender<'_>> {
    Some(rescan("lendir, rewind, EndMarker", dir, marker(dir)?))
}

fn rescan<'a>(name: &'static str, dir: &'a Directory, marker: EndMarker) -> Contender<'a> {
    let dir = open(&dir.path);
    let mut buffer = Buffer::new();
    Contender::new(name, Answer::Names, move || {
        let mut entries = Entries::new(&dir, &mut buffer).with_end_marker(marker);
        entries.rewind().expect("the beginning");
        name_bytes(entries)
    })
}

pub fn marker(dir: &Directory) -> Option<EndMarker> {
    Some(EndMarker::of(open(&dir.path)).expect("a file system")).filter(|marker| *marker != EndMarker::NONE)
}

pub fn rustix_dir(dir: &Directory) -> Contender<'_> {
    Contender::new("rustix Dir", Answer::Names, move || {
        let mut bytes = 0;
        for entry in Dir::new(open(&dir.path)).expect("a directory") {
            let entry = entry.expect("an entry");
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                bytes += name.len() as u64;
            }
        }
        bytes
    })
}

pub fn libc_readdir(dir: &Directory) -> Contender<'_> {
    Contender::new("libc readdir", Answer::Names, move || {
        let mut bytes = 0;
        // SAFETY: the path ends with NUL; an entry is looked at before the next is asked for, a stream until it is closed.
        unsafe {
            let stream = libc::opendir(dir.path.as_ptr());
            assert!(!stream.is_null());
            loop {
                let entry = libc::readdir64(stream);
                if entry.is_null() {
                    break;
                }
                let name = CStr::from_ptr((*entry).d_name.as_ptr()).to_bytes();
                if name != b"." && name != b".." {
                    bytes += name.len() as u64;
                }
            }
            libc::closedir(stream);
        }
        bytes
    })
}

pub fn std_names(dir: &Directory) -> Contender<'_> {
    let path = dir.path();
    Contender::new("std::fs::read_dir", Answer::Names, move || {
        std::fs::read_dir(path).expect("a directory").map(|e| e.expect("an entry").file_name().len() as u64).sum()
    })
}

pub fn std_entries(dir: &Directory) -> Contender<'_> {
    let path = dir.path();
    Contender::new("std, names unused", Answer::Entries, move || {
        std::fs::read_dir(path).expect("a directory").map(|e| u64::from(e.is_ok())).sum()
    })
}

/// All that open, read and close, the bare loop first.
pub fn all(dir: &Directory) -> Vec<Contender<'_>> {
    let mut all = vec![bare_loop(dir), raw_dir(dir), lendir(dir)];
    all.extend(lendir_marked(dir));
    all.extend([rustix_dir(dir), libc_readdir(dir), std_names(dir), std_entries(dir)]);
    all
}

/// All that go over an open directory again.
pub fn rescans(dir: &Directory) -> Vec<Contender<'_>> {
    let mut all = vec![bare_rescan(dir), lendir_rescan(dir)];
    all.extend(lendir_marked_rescan(dir));
    all
}
