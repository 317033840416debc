//! Loops over a directory and over a tree of two levels, compiled as users compile theirs.
//! `tests/it/budgets` counts their instructions.
//!
//! `lendir-downstream DIRECTORY TREE` prints a line for each loop with the number of its entries.
//! Each loop runs in one call of `measured`, so callgrind can count the instructions of that call
//! alone.

use lendir::{Buffer, Entries, Entry, ReadDir, Walk, WalkDirs, Worker};
use rustix::fs::{FileType, Mode, OFlags, RawDir, openat};
use std::ffi::CStr;
use std::hint::black_box;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

/// The input of a loop, and memory of the same size for each reader.
struct Input {
    dir: OwnedFd,
    buffer: Buffer,
    memory: Box<[MaybeUninit<u8>]>,
}

/// A loop over all entries, which returns their number.
type Loop = fn(&mut Input) -> io::Result<u64>;

/// The loops over a directory. The first is the base of the others.
const OF_FILES: &[(&str, Loop)] = &[
    ("RawDir", |input| read_raw(&input.dir, &mut input.memory, &mut Vec::new())),
    ("Entries", plain),
    ("Entries, generic", generic),
    ("Entries, find", find),
    ("Entries, count", |input| Ok(entries(input).count()?)),
    ("ReadDir", owned),
];

const OF_TREES: &[(&str, Loop)] = &[
    ("RawDir, walk", walk_raw),
    ("WalkDirs", walk_dirs),
    ("run_parallel", parallel),
    ("Walk", walk),
];

/// The body of each loop. The compiler must compute all three values.
#[inline]
fn look_at<Type>(name: &[u8], ino: u64, file_type: Type) {
    black_box((name, ino, file_type));
}

/// The loop itself. Each function below that contains it is one way to write the code around it.
macro_rules! read_all {
    ($entries:expr, $seen:ident) => {
        while let Some(entry) = $entries.next()? {
            look_at(entry.name(), entry.ino(), entry.d_type());
            $seen += 1;
        }
    };
}

fn entries(input: &mut Input) -> Entries<'_> {
    Entries::new(input.dir.as_fd(), &mut input.buffer)
}

fn plain(input: &mut Input) -> io::Result<u64> {
    let (mut entries, mut seen) = (entries(input), 0);
    read_all!(entries, seen);
    Ok(seen)
}

fn generic(input: &mut Input) -> io::Result<u64> {
    let mut seen = 0;
    for_each(&mut entries(input), |entry| {
        look_at(entry.name(), entry.ino(), entry.d_type());
        seen += 1;
    })?;
    Ok(seen)
}

fn for_each(entries: &mut Entries<'_>, mut work: impl FnMut(&Entry)) -> Result<(), lendir::Error> {
    while let Some(entry) = entries.next()? {
        work(&entry);
    }
    Ok(())
}

fn find(input: &mut Input) -> io::Result<u64> {
    let (mut entries, mut seen) = (entries(input), 0);
    while let Some(entry) = entries.find(|entry| !entry.name().ends_with(b"~"))? {
        look_at(entry.name(), entry.ino(), entry.d_type());
        seen += 1;
    }
    Ok(seen)
}

fn owned(input: &mut Input) -> io::Result<u64> {
    let (mut dir, mut seen) = (ReadDir::from_fd(input.dir.try_clone()?, ""), 0);
    read_all!(dir, seen);
    Ok(seen)
}

fn begin(input: &Input) -> io::Result<WalkDirs> {
    Ok(WalkDirs::options().from_fd(input.dir.try_clone()?, ""))
}

fn walk_dirs(input: &mut Input) -> io::Result<u64> {
    let (mut walk, mut seen) = (begin(input)?, 0);
    while let Some(mut dir) = walk.next()? {
        read_all!(dir, seen);
    }
    Ok(seen)
}

fn parallel(input: &mut Input) -> io::Result<u64> {
    let work = |worker: &mut Worker| {
        let mut seen = 0;
        while let Some(mut dir) = worker.next()? {
            read_all!(dir, seen);
        }
        Ok(seen)
    };
    begin(input)?.run_parallel(1, work).pop().expect("BUG: no thread has run")
}

fn walk(input: &mut Input) -> io::Result<u64> {
    let (mut walk, mut seen) = (Walk::options().from_fd(input.dir.try_clone()?, ""), 0);
    read_all!(walk, seen);
    Ok(seen)
}

fn walk_raw(input: &mut Input) -> io::Result<u64> {
    let mut below = Vec::new();
    let mut seen = read_raw(&input.dir, &mut input.memory, &mut below)?;
    for name in below.split_inclusive(|byte| *byte == 0) {
        let name = CStr::from_bytes_with_nul(name).expect("BUG: a name without its NUL");
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dir = openat(&input.dir, name, flags, Mode::empty())?;
        seen += read_raw(&dir, &mut input.memory, &mut Vec::new())?;
    }
    Ok(seen)
}

/// Returns the number of entries, and appends the names of directories to `below`. The caller of
/// `RawDir` skips the dots.
#[inline]
fn read_raw(
    dir: impl AsFd,
    memory: &mut [MaybeUninit<u8>],
    below: &mut Vec<u8>,
) -> io::Result<u64> {
    let (mut records, mut seen) = (RawDir::new(dir, memory), 0);
    while let Some(record) = records.next() {
        let record = record?;
        let name = record.file_name();
        if !matches!(name.to_bytes(), b"." | b"..") {
            look_at(name.to_bytes(), record.ino(), record.file_type());
            if record.file_type() == FileType::Directory {
                below.extend_from_slice(name.to_bytes_with_nul());
            }
            seen += 1;
        }
    }
    Ok(seen)
}

#[inline(never)]
fn measured(read: Loop, input: &mut Input) -> io::Result<u64> {
    black_box(read(input))
}

fn main() -> io::Result<()> {
    let [dir, tree] = [1, 2]
        .map(|at| std::env::args_os().nth(at).expect("usage: lendir-downstream DIRECTORY TREE"));
    let mut input = Input {
        dir: lendir::open(&dir)?,
        buffer: Buffer::new(),
        memory: Box::new_uninit_slice(Buffer::DEFAULT_CAPACITY),
    };
    for (path, loops) in [(&dir, OF_FILES), (&tree, OF_TREES)] {
        for &(name, read) in loops {
            input.dir = lendir::open(path)?;
            println!("{name}: {}", measured(black_box(read), &mut input)?);
        }
    }
    Ok(())
}
