//! Contenders that read a directory by other crates.

use lendir::Buffer;
use lendir_benches::contender::{Contender, Reader};
use lendir_benches::directories::{Answer, Directory};
use lendir_benches::readers::is_dots;
use linux_io::{File, OpenOptions};
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use std::os::unix::ffi::OsStrExt;
use walkdir::WalkDir;

/// Returns the crates that read one directory, in the kernel's order.
pub fn all(dir: &Directory) -> [Contender<'_>; 2] {
    let linux_io = LinuxIo { dir, buffer: vec![0; Buffer::DEFAULT_CAPACITY] };
    [
        Contender::reading("linux-io", dir.oracle(Answer::Names), linux_io),
        Contender::reading("nix", dir.oracle(Answer::Names), Nix(dir)),
    ]
}

/// Returns walkdir with depth 1. It also opens the subdirectories, although it is told not to enter
/// them.
pub fn walkdir(dir: &Directory, sorted: bool) -> Contender<'_> {
    let answer = if sorted { Answer::Sorted } else { Answer::Names };
    Contender::reading("walkdir, depth 1", dir.oracle(answer), OneLevel { dir, sorted })
}

/// A contender that uses the safe interface of linux-io with a buffer. The buffer must be aligned
/// to 8. An allocation of this size is.
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
        let mut dir = nix::dir::Dir::open(self.0.turn(), flags, Mode::empty())
            .expect("cannot open the directory");
        for entry in dir.iter() {
            let entry = entry.expect("cannot read the directory");
            let name = entry.file_name().to_bytes();
            if !is_dots(name) {
                take(name);
            }
        }
    }
}

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
