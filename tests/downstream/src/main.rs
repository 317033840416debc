//! A program that reads a directory and a tree with all kinds of loops.
//!
//! It reads the directory with `Entries` and with rustix's `RawDir`, whose caller skips the dots,
//! and the tree with `WalkDirs`, with `Walk` and with `RawDir`.
//!
//! `lendir-downstream DIRECTORY TREE` prints a line for each loop: the reader, the loop, and the
//! number of entries. Each loop runs in one call of `measured`, so callgrind can count the
//! instructions of that call alone.

/// The loop itself. Each function below that contains it is one way to write the code around it.
macro_rules! read_all {
    ($entries:expr, $seen:ident) => {
        while let Some(entry) = $entries.next()? {
            crate::look_at(entry.name(), entry.ino(), entry.d_type());
            $seen += 1;
        }
    };
}

mod entries;
mod raw_dir;
mod walk;

use lendir::Buffer;
use std::hint::black_box;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

/// The input of a loop, and memory of the same size for each reader.
struct Input {
    dir: OwnedFd,
    buffer: Buffer,
    memory: Box<[MaybeUninit<u8>]>,
}

/// A loop over all entries, which returns their number.
type Loop = fn(&mut Input) -> io::Result<u64>;

/// The body of each loop. The compiler must compute all three values.
#[inline]
fn look_at<T>(name: &[u8], ino: u64, file_type: T) {
    black_box((name, ino, file_type));
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
    for (reader, path, loops) in [
        ("RawDir", &dir, raw_dir::LOOPS),
        ("Entries", &dir, entries::LOOPS),
        ("RawDir", &tree, walk::BY_HAND),
        ("WalkDirs", &tree, walk::LOOPS),
        ("Walk", &tree, walk::ENTRIES),
    ] {
        for &(name, read) in loops {
            input.dir = lendir::open(path)?;
            println!("{reader} {name} {}", measured(black_box(read), &mut input)?);
        }
    }
    Ok(())
}
