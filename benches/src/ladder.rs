//! Contenders that sort: the ladder of the gitstatus article (`docs/listdir.md` in romkatv/gitstatus), rung by rung in Rust,
//! beside `std` and `lendir`.
//!
//! Each rung makes the system calls of the article and sorts by its comparison, with `core`'s unstable sort instead of
//! that of C++. All leave out `O_NOATIME` and skip `.` and `..`. From v3 on, a directory is opened relative to its parent, as
//! by `lendir` and the bare loop here.

use crate::contender::{Contender, hash};
use crate::directories::{Answer, Directory, Names, Shape, fastest_root, roots};
use crate::is_long;
use crate::readers::{FLAGS, bare_loop_over, drain, lendir_over, listing_over, marker};
use lendir::{Buffer, EndMarker, Listing, Order};
use rustix::fs::{Mode, openat};
use std::ffi::{CStr, OsString, c_char};
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::{mem, ptr};

/// The directories that are sorted. With `LENDIR_LONG=1` in the environment, some of a million entries too.
///
/// tmpfs lists the newest entry first, so names that were made in order come exactly backwards, and `core`'s sort only reverses
/// them. Photographs and processes are made in order, so this is worth measuring, but shuffled names tell more about the sort.
pub fn shapes() -> Vec<Shape> {
    let root = fastest_root();
    let mut shapes: Vec<_> = roots().iter().rev().map(|root| root.shape(32, Names::Sixteen)).collect();
    shapes.extend([8, 32, 128, 1024].map(|count| root.shape(count, Names::Source)));
    shapes.extend([
        root.shape(32, Names::Hex),
        root.shape(32, Names::Sixteen).shuffled(),
        root.shape(1024, Names::Pids),
        root.shape(1024, Names::Pids).shuffled(),
        root.shape(1024, Names::Photos),
        root.shape(100_000, Names::Photos),
        root.shape(100_000, Names::Hex),
        root.shape(32, Names::Photos).shuffled(),
        root.shape(1024, Names::Photos).shuffled(),
        root.shape(100_000, Names::Photos).shuffled(),
    ]);
    if is_long() {
        shapes.extend([root.shape(1_000_000, Names::Photos).shuffled(), root.shape(1_000_000, Names::Hex)]);
    }
    shapes
}

/// The bare loop, the ladder, `lendir` and `std`: no more than criterion has colours for.
pub fn rungs(dir: &Directory) -> Vec<Contender<'_>> {
    vec![
        bare_loop_over("bare loop", dir, opener(dir)),
        v1(dir),
        v2(dir),
        v3(dir),
        v4(dir),
        v5(dir),
        std_sorted(dir),
        listing_over("Listing", dir, Listing::new(), EndMarker::NONE, opener(dir)),
    ]
}

/// These, and what tells where the time of the others goes.
pub fn all(dir: &Directory) -> Vec<Contender<'_>> {
    let mut all = rungs(dir);
    let sorted_by = |marker| listing_over("Listing, EndMarker", dir, Listing::new(), marker, opener(dir));
    all.extend(marker(dir).map(sorted_by));
    let as_it_comes = Listing::with_order(Order::Directory);
    all.extend([
        listing_over("Listing, not sorted", dir, as_it_comes, EndMarker::NONE, opener(dir)),
        v4_unsorted(dir),
        lendir_over("Entries", dir, Buffer::DEFAULT_CAPACITY, opener(dir)),
    ]);
    all
}

/// Opens the directory relative to its parent, which all that take turns have in common.
fn opener(dir: &Directory) -> impl Fn() -> OwnedFd {
    let parent = dir.path().parent().expect("BUG: the directory has no parent");
    let name_from = parent.as_os_str().len() + 1;
    let parent = lendir::open(parent).expect("cannot open the parent");
    move || openat(&parent, &dir.turn()[name_from..], FLAGS, Mode::empty()).expect("cannot open the directory")
}

fn v1(dir: &Directory) -> Contender<'_> {
    let read = move |names: &mut Vec<Vec<u8>>| {
        *names = Vec::new();
        // SAFETY: the path ends with NUL, and the stream is new.
        unsafe { drain(libc::opendir(dir.turn().as_ptr()), |name| names.push(name.to_bytes().to_vec())) };
        names.sort_unstable();
    };
    Contender::filling("v1 readdir, owned strings", dir.oracle(Answer::Sorted), Vec::new(), read, |names| hash(names))
}

/// The names one after the other, each with its NUL, and pointers to them: what v2 and v3 reuse.
#[derive(Default)]
struct Arena {
    bytes: Vec<u8>,
    names: Vec<*const c_char>,
}

impl Arena {
    /// # Safety
    ///
    /// As [`drain`].
    unsafe fn read(&mut self, stream: *mut libc::DIR) {
        let Self { bytes, names } = self;
        bytes.clear();
        names.clear();
        // SAFETY: as the caller promises.
        unsafe {
            drain(stream, |name| {
                names.push(ptr::without_provenance(bytes.len()));
                bytes.extend_from_slice(name.to_bytes_with_nul());
            });
        }
        for name in &mut *names {
            *name = bytes.as_ptr().wrapping_add(name.addr()).cast();
        }
        // SAFETY: each points to a name in `bytes`.
        names.sort_unstable_by(|a, b| unsafe { libc::strcmp(*a, *b) }.cmp(&0));
    }

    fn hash(&self) -> u64 {
        // SAFETY: each points to a name in `bytes`, which is borrowed.
        hash(self.names.iter().map(|name| unsafe { CStr::from_ptr(*name) }.to_bytes()))
    }
}

fn v2(dir: &Directory) -> Contender<'_> {
    // SAFETY: the path ends with NUL, the stream is new.
    let read = move |arena: &mut Arena| unsafe { arena.read(libc::opendir(dir.turn().as_ptr())) };
    Contender::filling("v2 one arena", dir.oracle(Answer::Sorted), Arena::default(), read, Arena::hash)
}

fn v3(dir: &Directory) -> Contender<'_> {
    let open = opener(dir);
    // SAFETY: the descriptor becomes the stream's, which is new.
    let read = move |arena: &mut Arena| unsafe { arena.read(libc::fdopendir(open().into_raw_fd())) };
    Contender::filling("v3 openat", dir.oracle(Answer::Sorted), Arena::default(), read, Arena::hash)
}

/// Blocks that the kernel writes to, where the names stay, and pointers to them: what v4 and v5 reuse.
#[derive(Default)]
struct Blocks {
    blocks: Vec<Vec<u64>>,
    names: Vec<*mut u8>,
}

impl Blocks {
    /// As in the article.
    const SIZE: usize = 8 * 1024;
    /// What v5 keeps free at the end of each block, because it reads past a name.
    const SPARE: usize = 256;

    /// Gives each name but dots to `prepare` and keeps it.
    #[inline]
    fn read(&mut self, dir: &OwnedFd, size: usize, prepare: impl Fn(*mut u8)) {
        let Self { blocks, names } = self;
        names.clear();
        for index in 0.. {
            if index == blocks.len() {
                blocks.push(vec![0; Self::SIZE / size_of::<u64>()]);
            }
            let block = blocks[index].as_mut_ptr().cast::<u8>();
            // SAFETY: the kernel writes at most `size` bytes to the block, whole records of which each says where the next
            // is: the type ends at byte 18, the name begins at 19 and ends with NUL.
            unsafe {
                let read = libc::syscall(libc::SYS_getdents64, dir.as_raw_fd(), block, size);
                let end = block.add(usize::try_from(read).expect("getdents64 failed"));
                if end == block {
                    break;
                }
                let mut record = block;
                while record < end {
                    let name = record.add(19);
                    let is_dots = *name == b'.' && (*name.add(1) == 0 || *name.add(1) == b'.' && *name.add(2) == 0);
                    if !is_dots {
                        prepare(name);
                        names.push(name);
                    }
                    record = record.add(usize::from(record.add(16).cast::<u16>().read_unaligned()));
                }
            }
        }
    }

    fn hash(&self) -> u64 {
        // SAFETY: each points to a name in `blocks`, which is borrowed.
        hash(self.names.iter().map(|name| unsafe { CStr::from_ptr(name.cast()) }.to_bytes()))
    }
}

fn v4(dir: &Directory) -> Contender<'_> {
    let open = opener(dir);
    let read = move |blocks: &mut Blocks| {
        blocks.read(&open(), Blocks::SIZE, |_| ());
        // SAFETY: each points to a name.
        blocks.names.sort_unstable_by(|a, b| unsafe { libc::strcmp(a.cast(), b.cast()) }.cmp(&0));
    };
    Contender::filling("v4 getdents64 into blocks", dir.oracle(Answer::Sorted), Blocks::default(), read, Blocks::hash)
}

/// Makes the first 8 bytes a number that compares as they do, or makes it bytes again.
fn swap(name: *mut u8) {
    // SAFETY: there are 8 bytes from each name on: another record, or what is spared at the end of the block. They belong to
    // this name, or else to the inode number of the next record, which nobody asks for.
    unsafe { name.cast::<u64>().write_unaligned(name.cast::<u64>().read_unaligned().to_be()) }
}

fn v5(dir: &Directory) -> Contender<'_> {
    let open = opener(dir);
    let read = move |blocks: &mut Blocks| {
        blocks.read(&open(), Blocks::SIZE - Blocks::SPARE, swap);
        blocks.names.sort_unstable_by(|a, b| {
            // SAFETY: as for `swap`; the rest, which is aligned from the fifth byte on, reaches into the spare bytes at most.
            unsafe {
                let [x, y] = [a, b].map(|name| name.cast::<u64>().read_unaligned());
                x.cmp(&y).then_with(|| {
                    if a == b { 0 } else { libc::memcmp(a.add(5).cast(), b.add(5).cast(), Blocks::SPARE) }.cmp(&0)
                })
            }
        });
        blocks.names.iter().copied().for_each(swap);
    };
    Contender::filling("v5 8 bytes at once", dir.oracle(Answer::Sorted), Blocks::default(), read, Blocks::hash)
}

fn std_sorted(dir: &Directory) -> Contender<'_> {
    let read = move |names: &mut Vec<OsString>| {
        drop(mem::take(names));
        *names = std::fs::read_dir(dir.turn_path())
            .expect("cannot open the directory")
            .map(|e| e.expect("cannot read the directory").file_name())
            .collect();
        names.sort_unstable();
    };
    let oracle = dir.oracle(Answer::Sorted);
    Contender::filling("std::fs::read_dir, sorted", oracle, Vec::new(), read, |names: &Vec<OsString>| {
        hash(names.iter().map(|name| name.as_bytes()))
    })
}

/// Beside `Order::Directory`: what it saves to note no lengths and no types.
fn v4_unsorted(dir: &Directory) -> Contender<'_> {
    let open = opener(dir);
    let read = move |blocks: &mut Blocks| blocks.read(&open(), Blocks::SIZE, |_| ());
    Contender::filling("v4 without the sort", dir.oracle(Answer::Names), Blocks::default(), read, Blocks::hash)
}
