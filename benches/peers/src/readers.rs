//! Contenders that read a directory by other crates.

use lendir::{Buffer, Order};
use lendir_benches::contender::Contender;
use lendir_benches::directories::{Answer, Directory};
use lendir_benches::reader;
use lendir_benches::readers::{self as own, is_dots};
use linux_io::{File, OpenOptions};
use nix::fcntl::OFlag;
use nix::sys::stat::Mode;
use std::os::unix::ffi::OsStrExt;
use walkdir::WalkDir;

reader!(
    /// Uses the safe interface of linux-io. The buffer must be aligned to 8, and an allocation of this
    /// size is.
    LinuxIo { dir: &'a Directory, buffer: Vec<u8> } |take| {
        let options = OpenOptions::read_only().directory().close_on_exec();
        let dir = File::open(dir.turn(), options).expect("cannot open the directory");
        let entries = dir.getdents_all(buffer, |entry| {
            let name = entry.name.to_bytes();
            if !is_dots(name) {
                take(name);
            }
        });
        for entry in entries {
            entry.expect("cannot read the directory");
        }
    }
);

reader!(Nix { dir: &'a Directory } |take| {
    let flags = OFlag::O_RDONLY | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let dir = nix::dir::Dir::open(dir.turn(), flags, Mode::empty());
    for entry in dir.expect("cannot open the directory").iter() {
        let entry = entry.expect("cannot read the directory");
        let name = entry.file_name().to_bytes();
        if !is_dots(name) {
            take(name);
        }
    }
});

reader!(
    /// Also opens the subdirectories, although it is told not to enter them.
    OneLevel { dir: &'a Directory, is_sorted: bool } |take| {
        let one_level = WalkDir::new(dir.turn_path()).min_depth(1).max_depth(1);
        for entry in if *is_sorted { one_level.sort_by_file_name() } else { one_level } {
            take(entry.expect("cannot read the directory").file_name().as_bytes());
        }
    }
);

/// Returns the contenders that read a directory in the kernel's order, the bare loop first.
pub fn unsorted(dir: &Directory) -> Vec<Contender<'_>> {
    let names = || dir.oracle(Answer::Names);
    let linux_io = LinuxIo { dir, buffer: vec![0; Buffer::DEFAULT_CAPACITY] };
    vec![
        own::bare_loop(dir),
        own::standard(dir),
        own::lendir(dir),
        Contender::reading("linux-io", names(), linux_io),
        Contender::reading("nix", names(), Nix { dir }),
        Contender::reading("walkdir, depth 1", names(), OneLevel { dir, is_sorted: false }),
    ]
}

/// Returns the contenders that sort, of which [`programs`](crate::programs) has more.
pub fn sorted(dir: &Directory) -> Vec<Contender<'_>> {
    let walkdir = OneLevel { dir, is_sorted: true };
    vec![
        own::bare_loop(dir),
        own::standard_sorted(dir),
        own::listing("lendir", dir, Order::Bytes),
        Contender::reading("walkdir, depth 1", dir.oracle(Answer::Sorted), walkdir),
    ]
}
