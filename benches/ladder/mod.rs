//! The ladder of the gitstatus article (`docs/listdir.md` in romkatv/gitstatus), rung by rung in Rust, and what stands
//! beside it: `std` and `lendir`.
//!
//! Each rung makes the system calls of the article and sorts by its comparison, with `core`'s unstable sort instead of
//! that of C++. `O_NOATIME` is left out everywhere, `.` and `..` are skipped everywhere. From v3 on, a directory is opened
//! relative to its parent, and so it is by the bare loop that all are measured against.

#![allow(dead_code, reason = "each benchmark uses a part")]

use crate::contenders::{Answer, Contender, FLAGS, bare_loop, bare_loop_over, lendir_over, listing_over, marker};
use crate::directories::{Directory, Made, Names, Root, fastest_root, is_long, roots};
use lendir::{Buffer, EndMarker, Listing, Order};
use rustix::fs::{Mode, openat};
use std::ffi::{CStr, CString, OsString, c_char};
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::{mem, ptr};

pub const FIRST_RUNG: &str = "v1 readdir, owned strings";

/// What one table is about.
pub struct Shape {
    root: Root,
    pub count: usize,
    names: Names,
    made: Made,
}

impl Shape {
    pub fn kind(&self) -> String {
        self.root.kind(self.names, self.made)
    }

    pub fn label(&self) -> String {
        self.root.label(self.count, self.names, self.made)
    }

    pub fn make(&self) -> Directory {
        self.root.directory_made(self.count, self.names, self.made)
    }
}

/// With `LENDIR_LONG=1` in the environment, a million entries too.
///
/// Names made in order are a gift to every sort of `core`, which sees that they are sorted backwards already; that gift is
/// real, for photographs and processes are made in order, but it says nothing of the sort. So there are both.
pub fn shapes() -> Vec<Shape> {
    let mut shapes = Vec::new();
    for root in roots().into_iter().rev() {
        shapes.push(Shape { root, count: 32, names: Names::Sixteen, made: Made::InOrder });
    }
    let mut on_the_fastest = vec![
        (32, Names::Sixteen, Made::Shuffled),
        (1024, Names::Pids, Made::InOrder),
        (1024, Names::Pids, Made::Shuffled),
        (1024, Names::Photos, Made::InOrder),
        (100_000, Names::Photos, Made::InOrder),
        (100_000, Names::Hex, Made::InOrder),
        (32, Names::Photos, Made::Shuffled),
        (1024, Names::Photos, Made::Shuffled),
        (100_000, Names::Photos, Made::Shuffled),
    ];
    if is_long() {
        on_the_fastest.extend([(1_000_000, Names::Photos, Made::Shuffled), (1_000_000, Names::Hex, Made::InOrder)]);
    }
    let root = fastest_root();
    shapes.extend(on_the_fastest.into_iter().map(|(count, names, made)| Shape {
        root: root.clone(),
        count,
        names,
        made,
    }));
    shapes
}

/// The bare loop, the ladder, `lendir` and `std`: no more than criterion has colours for.
pub fn rungs(dir: &Directory) -> Vec<Contender<'_>> {
    vec![
        bare_loop_over("bare loop, openat", opener(dir)),
        v1(dir),
        v2(dir),
        v3(dir),
        v4(dir),
        v5(dir),
        listing_over("lendir::Listing", Listing::new(), EndMarker::NONE, opener(dir)),
        std_sorted(dir),
    ]
}

/// These, and what tells where the time of the others goes.
pub fn all(dir: &Directory) -> Vec<Contender<'_>> {
    let mut all = rungs(dir);
    let sorted_by = |marker| listing_over("lendir::Listing, EndMarker", Listing::new(), marker, opener(dir));
    all.extend(marker(dir).map(sorted_by));
    let as_it_comes = Listing::with_order(Order::Directory);
    all.extend([
        listing_over("lendir::Listing, Order::Directory", as_it_comes, EndMarker::NONE, opener(dir)),
        v4_unsorted(dir),
        lendir_over("lendir::Entries", Buffer::DEFAULT_CAPACITY, opener(dir)),
        bare_loop(dir),
    ]);
    all
}

/// Opens the directory relative to its parent.
fn opener(dir: &Directory) -> impl Fn() -> OwnedFd + 'static {
    let path = dir.path();
    let parent = lendir::open(path.parent().expect("BUG: made in another directory")).expect("the parent");
    let name = CString::new(path.file_name().expect("BUG: a made directory has a name").as_bytes()).expect("no NUL");
    move || openat(&parent, &*name, FLAGS, Mode::empty()).expect("a directory")
}

fn is_dots(name: &CStr) -> bool {
    matches!(name.to_bytes(), b"." | b"..")
}

/// Gives away each name of the stream but dots, and closes it.
///
/// # Safety
///
/// The stream is open, and nobody else's.
unsafe fn drain(stream: *mut libc::DIR, mut take: impl FnMut(&CStr)) {
    assert!(!stream.is_null());
    // SAFETY: the caller's; an entry is looked at before the next is asked for.
    unsafe {
        loop {
            let entry = libc::readdir64(stream);
            if entry.is_null() {
                break;
            }
            let name = CStr::from_ptr((*entry).d_name.as_ptr());
            if !is_dots(name) {
                take(name);
            }
        }
        libc::closedir(stream);
    }
}

fn v1(dir: &Directory) -> Contender<'_> {
    let read = move |names: &mut Vec<Vec<u8>>| {
        *names = Vec::new();
        // SAFETY: the path ends with NUL, the stream is new.
        unsafe { drain(libc::opendir(dir.path.as_ptr()), |name| names.push(name.to_bytes().to_vec())) };
        names.sort_unstable();
    };
    Contender::listing(FIRST_RUNG, Answer::Sorted, Vec::new(), read, |names| names.iter().map(Vec::as_slice).collect())
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
        // SAFETY: the caller's.
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

    fn names(&self) -> Vec<&[u8]> {
        // SAFETY: each points to a name in `bytes`, which is borrowed.
        self.names.iter().map(|name| unsafe { CStr::from_ptr(*name) }.to_bytes()).collect()
    }
}

fn v2(dir: &Directory) -> Contender<'_> {
    // SAFETY: the path ends with NUL, the stream is new.
    let read = move |arena: &mut Arena| unsafe { arena.read(libc::opendir(dir.path.as_ptr())) };
    Contender::listing("v2 one arena", Answer::Sorted, Arena::default(), read, Arena::names)
}

fn v3(dir: &Directory) -> Contender<'_> {
    let open = opener(dir);
    // SAFETY: the descriptor becomes the stream's, which is new.
    let read = move |arena: &mut Arena| unsafe { arena.read(libc::fdopendir(open().into_raw_fd())) };
    Contender::listing("v3 openat", Answer::Sorted, Arena::default(), read, Arena::names)
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
    /// What v5 keeps free at the end of each block, so that it may read past a name.
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
                let end = block.add(usize::try_from(read).expect("no error"));
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

    fn names(&self) -> Vec<&[u8]> {
        // SAFETY: each points to a name in `blocks`, which is borrowed.
        self.names.iter().map(|name| unsafe { CStr::from_ptr(name.cast()) }.to_bytes()).collect()
    }
}

fn v4(dir: &Directory) -> Contender<'_> {
    let open = opener(dir);
    let read = move |blocks: &mut Blocks| {
        blocks.read(&open(), Blocks::SIZE, |_| ());
        // SAFETY: each points to a name.
        blocks.names.sort_unstable_by(|a, b| unsafe { libc::strcmp(a.cast(), b.cast()) }.cmp(&0));
    };
    Contender::listing("v4 getdents64 into blocks", Answer::Sorted, Blocks::default(), read, Blocks::names)
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
    Contender::listing("v5 compares 8 bytes at once", Answer::Sorted, Blocks::default(), read, Blocks::names)
}

fn std_sorted(dir: &Directory) -> Contender<'_> {
    let read = |names: &mut Vec<OsString>| {
        drop(mem::take(names));
        *names =
            std::fs::read_dir(dir.path()).expect("a directory").map(|e| e.expect("an entry").file_name()).collect();
        names.sort_unstable();
    };
    Contender::listing("std::fs::read_dir, sorted", Answer::Sorted, Vec::new(), read, |names| {
        names.iter().map(|name: &OsString| name.as_bytes()).collect()
    })
}

/// Beside `Order::Directory`, what it spares to have no copies of the names, no lengths, types and inodes.
fn v4_unsorted(dir: &Directory) -> Contender<'_> {
    let open = opener(dir);
    let read = move |blocks: &mut Blocks| blocks.read(&open(), Blocks::SIZE, |_| ());
    Contender::listing("v4 without the sort", Answer::Listing, Blocks::default(), read, Blocks::names)
}
