//! Reading a directory with other crates and with `std`, in the directory's order and sorted by the bytes of the names.

use crate::contenders::{Answer, Contender};
use crate::directories::Directory;
use lendir::{Buffer, Entries, Listing};
use linux_io::{File, OpenOptions};
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use std::os::unix::ffi::OsStrExt;
use walkdir::WalkDir;

/// What opens `dir`, gives each name but the dots to `take`, and closes it.
trait Reader {
    fn read(&mut self, dir: &Directory, take: impl FnMut(&[u8]));
}

/// The contender that sums up the bytes of the names, once they are known to be the same as those of `std`.
fn contender<'a>(name: &'static str, dir: &'a Directory, order: Order, mut reader: impl Reader + 'a) -> Contender<'a> {
    check(name, dir, order, || {
        let mut names = Vec::new();
        reader.read(dir, |name| names.push(name.to_vec()));
        names
    });
    Contender::new(name, Answer::Names, move || {
        let mut bytes = 0;
        reader.read(dir, |name| bytes += name.len() as u64);
        bytes
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Any,
    Bytes,
}

/// Panics unless the names are those that `std` reads, in order if they should be; processes may come and go meanwhile.
pub fn check(contender: &str, dir: &Directory, order: Order, mut names: impl FnMut() -> Vec<Vec<u8>>) {
    let agrees = |_| {
        let mut names = names();
        if order == Order::Any {
            names.sort_unstable();
        }
        let by_std = std::fs::read_dir(dir.path()).expect("a directory");
        let mut expected: Vec<_> =
            by_std.map(|entry| entry.expect("an entry").file_name().into_encoded_bytes()).collect();
        expected.sort_unstable();
        names == expected
    };
    assert!((0..100).any(agrees), "{contender} does not read {} as std does", dir.label);
}

/// In the directory's own order.
pub fn plain(dir: &Directory) -> Vec<Contender<'_>> {
    let buffer = vec![0; Buffer::DEFAULT_CAPACITY];
    vec![
        contender("linux-io getdents_all", dir, Order::Any, LinuxIo(buffer)),
        contender("nix Dir", dir, Order::Any, Nix),
        contender("walkdir, depth 1", dir, Order::Any, Walkdir),
    ]
}

/// Sorted by bytes, `lendir` first.
pub fn sorted(dir: &Directory) -> Vec<Contender<'_>> {
    let listing = Sorted { listing: Listing::new(), buffer: Buffer::new() };
    vec![
        contender("lendir Listing", dir, Order::Bytes, listing),
        contender("std and sort_unstable", dir, Order::Bytes, StdSorted),
    ]
}

/// It opens each subdirectory even at its greatest depth, and to sort reads it to the end: on /proc that was some 200 times
/// the bare loop, and most of the time that all contenders had.
pub fn walkdir_sorted(dir: &Directory) -> Option<Contender<'_>> {
    let is_proc = dir.path().starts_with("/proc");
    (!is_proc).then(|| contender("walkdir, depth 1, sort_by_file_name", dir, Order::Bytes, WalkdirSorted))
}

/// The safe interface that takes a buffer; it wants one aligned to 8, which an allocation as large as this one is.
struct LinuxIo(Vec<u8>);

impl Reader for LinuxIo {
    fn read(&mut self, dir: &Directory, mut take: impl FnMut(&[u8])) {
        let options = OpenOptions::read_only().directory().close_on_exec();
        let dir = File::open(&dir.path, options).expect("a directory");
        let entries = dir.getdents_all(&mut self.0, |entry| match entry.name.to_bytes() {
            b"." | b".." => {}
            name => take(name),
        });
        for entry in entries {
            entry.expect("an entry");
        }
    }
}

struct Nix;

impl Reader for Nix {
    fn read(&mut self, dir: &Directory, mut take: impl FnMut(&[u8])) {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let mut dir = nix::dir::Dir::open(&*dir.path, flags, Mode::empty()).expect("a directory");
        for entry in dir.iter() {
            match entry.expect("an entry").file_name().to_bytes() {
                b"." | b".." => {}
                name => take(name),
            }
        }
    }
}

struct Walkdir;

impl Reader for Walkdir {
    fn read(&mut self, dir: &Directory, mut take: impl FnMut(&[u8])) {
        for entry in WalkDir::new(dir.path()).min_depth(1).max_depth(1) {
            take(entry.expect("an entry").file_name().as_bytes());
        }
    }
}

struct WalkdirSorted;

impl Reader for WalkdirSorted {
    fn read(&mut self, dir: &Directory, mut take: impl FnMut(&[u8])) {
        for entry in WalkDir::new(dir.path()).min_depth(1).max_depth(1).sort_by_file_name() {
            take(entry.expect("an entry").file_name().as_bytes());
        }
    }
}

struct StdSorted;

impl Reader for StdSorted {
    fn read(&mut self, dir: &Directory, mut take: impl FnMut(&[u8])) {
        let entries = std::fs::read_dir(dir.path()).expect("a directory");
        let mut names: Vec<_> = entries.map(|entry| entry.expect("an entry").file_name()).collect();
        names.sort_unstable();
        for name in &names {
            take(name.as_bytes());
        }
    }
}

struct Sorted {
    listing: Listing,
    buffer: Buffer,
}

impl Reader for Sorted {
    fn read(&mut self, dir: &Directory, mut take: impl FnMut(&[u8])) {
        let dir = lendir::open(&*dir.path).expect("a directory");
        self.listing.read(Entries::new(&dir, &mut self.buffer)).expect("its entries");
        for entry in &self.listing {
            take(entry.name());
        }
    }
}
