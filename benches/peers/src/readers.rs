//! Reading a directory with other crates, in the directory's order and sorted by the bytes of the names.

use lendir::{Buffer, Entries, Listing};
use lendir_benches::contender::{Contender, Reader};
use lendir_benches::directories::{Answer, Directory};
use lendir_benches::readers::{is_dots, std_read_dir};
use linux_io::{File, OpenOptions};
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use std::os::unix::ffi::OsStrExt;
use walkdir::WalkDir;

/// In the directory's own order.
pub fn plain(dir: &Directory) -> Vec<Contender<'_>> {
    let linux_io = LinuxIo { dir, buffer: vec![0; Buffer::DEFAULT_CAPACITY] };
    vec![
        Contender::reading("linux-io", dir.oracle(Answer::Names), linux_io),
        Contender::reading("nix", dir.oracle(Answer::Names), Nix(dir)),
        std_read_dir(dir),
        Contender::reading("walkdir, depth 1", dir.oracle(Answer::Names), OneLevel { dir, sorted: false }),
    ]
}

/// Sorted by bytes, `lendir` first.
pub fn sorted(dir: &Directory) -> Vec<Contender<'_>> {
    let listing = Sorted { dir, listing: Listing::new(), buffer: Buffer::new() };
    let mut all = vec![
        Contender::reading("lendir::Listing", dir.oracle(Answer::Sorted), listing),
        Contender::reading("std, sorted", dir.oracle(Answer::Sorted), StdSorted(dir)),
    ];
    // It opens the directories in it too, and to sort reads each to its end: on /proc, 200 times the bare loop.
    if !dir.is_proc() {
        let walkdir = OneLevel { dir, sorted: true };
        all.push(Contender::reading("walkdir, depth 1, sorted", dir.oracle(Answer::Sorted), walkdir));
    }
    all
}

/// Its safe interface that takes a buffer. The buffer must be aligned to 8, as an allocation of this size is.
struct LinuxIo<'a> {
    dir: &'a Directory,
    buffer: Vec<u8>,
}

impl Reader for LinuxIo<'_> {
    #[inline]
    fn read(&mut self, mut take: impl FnMut(&[u8])) {
        let options = OpenOptions::read_only().directory().close_on_exec();
        let dir = File::open(self.dir.turn(), options).expect("cannot open the directory");
        let entries = dir.getdents_all(&mut self.buffer, |entry| {
            let name = entry.name.to_bytes();
            if !is_dots(name) {
                take(name);
            }
        });
        for entry in entries {
            entry.expect("cannot read the directory");
        }
    }
}

struct Nix<'a>(&'a Directory);

impl Reader for Nix<'_> {
    #[inline]
    fn read(&mut self, mut take: impl FnMut(&[u8])) {
        let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let mut dir = nix::dir::Dir::open(self.0.turn(), flags, Mode::empty()).expect("cannot open the directory");
        for entry in dir.iter() {
            let entry = entry.expect("cannot read the directory");
            let name = entry.file_name().to_bytes();
            if !is_dots(name) {
                take(name);
            }
        }
    }
}

/// walkdir, as far as the entries of the root.
struct OneLevel<'a> {
    dir: &'a Directory,
    sorted: bool,
}

impl Reader for OneLevel<'_> {
    fn read(&mut self, mut take: impl FnMut(&[u8])) {
        let one_level = WalkDir::new(self.dir.turn_path()).min_depth(1).max_depth(1);
        for entry in if self.sorted { one_level.sort_by_file_name() } else { one_level } {
            take(entry.expect("cannot read the directory").file_name().as_bytes());
        }
    }
}

struct StdSorted<'a>(&'a Directory);

impl Reader for StdSorted<'_> {
    fn read(&mut self, mut take: impl FnMut(&[u8])) {
        let entries = std::fs::read_dir(self.0.turn_path()).expect("cannot open the directory");
        let mut names: Vec<_> = entries.map(|entry| entry.expect("cannot read the directory").file_name()).collect();
        names.sort_unstable();
        for name in &names {
            take(name.as_bytes());
        }
    }
}

struct Sorted<'a> {
    dir: &'a Directory,
    listing: Listing,
    buffer: Buffer,
}

impl Reader for Sorted<'_> {
    fn read(&mut self, mut take: impl FnMut(&[u8])) {
        let dir = lendir::open(self.dir.turn()).expect("cannot open the directory");
        self.listing.read(Entries::new(&dir, &mut self.buffer)).expect("cannot read the directory");
        for entry in &self.listing {
            take(entry.name());
        }
    }
}
