//! The same (name, inode, type) as `std::fs::read_dir`, on the system's directories and on made ones.

use crate::fixture::{Seen, drain, make_file, numbered};
use lendir::{Buffer, EndMarker, Entries, FileType};
use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirEntryExt, FileTypeExt};
use std::path::{Path, PathBuf};

fn by_std(path: &Path) -> Vec<Seen> {
    let mut all: Vec<Seen> = std::fs::read_dir(path)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let file_type = entry.file_type().unwrap();
            let file_type = match () {
                () if file_type.is_file() => FileType::RegularFile,
                () if file_type.is_dir() => FileType::Directory,
                () if file_type.is_symlink() => FileType::Symlink,
                () if file_type.is_fifo() => FileType::Fifo,
                () if file_type.is_socket() => FileType::Socket,
                () if file_type.is_char_device() => FileType::CharacterDevice,
                () if file_type.is_block_device() => FileType::BlockDevice,
                () => FileType::Unknown,
            };
            (entry.file_name().into_vec(), entry.ino(), file_type)
        })
        .collect();
    sort(&mut all);
    all
}

fn sort(all: &mut [Seen]) {
    all.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
}

fn by_lendir(path: &Path, capacity: usize) -> Vec<Seen> {
    let dir = lendir::open(path).unwrap();
    let mut buffer = Buffer::with_capacity(capacity);
    let marker = EndMarker::of(&dir).unwrap();
    let mut all = drain(&mut Entries::new(&dir, &mut buffer)).unwrap();
    let mut again = Entries::new(&dir, &mut buffer).with_end_marker(marker);
    again.rewind().unwrap();
    assert_eq!(drain(&mut again).unwrap(), all, "{} with its end marker", path.display());
    sort(&mut all);
    all
}

fn agree(path: &Path) -> Vec<Seen> {
    let expected = by_std(path);
    for capacity in [Buffer::MIN_CAPACITY, 1 << 20] {
        assert!(by_lendir(path, capacity) == expected, "{} with {capacity} bytes", path.display());
    }
    expected
}

/// The directory and those below it, breadth first, links not followed.
fn tree(root: &str, most: usize) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut queue = VecDeque::from([PathBuf::from(root)]);
    while let Some(path) = queue.pop_front().filter(|_| found.len() < most) {
        let Ok(children) = std::fs::read_dir(&path) else { continue };
        queue.extend(children.flatten().filter(|c| c.file_type().is_ok_and(|t| t.is_dir())).map(|c| c.path()));
        found.push(path);
    }
    found
}

#[test]
fn the_systems_own_directories() {
    let mut tried = 0;
    for root in ["/sys", "/usr"] {
        for path in tree(root, 1000) {
            agree(&path);
            tried += 1;
        }
    }
    assert!(tried > 100, "{tried} directories");
    // What other processes change meanwhile counts only if it stays between two readings of ours.
    for path in ["/dev", "/proc/self", "/proc/self/ns", "/proc/self/attr", "/proc/self/net"].map(Path::new) {
        let stable = (0..100).any(|_| {
            let before = by_lendir(path, Buffer::MIN_CAPACITY);
            let std = by_std(path);
            let after = by_lendir(path, 1 << 20);
            before == after && std == before
        });
        assert!(stable, "{}", path.display());
    }
}

#[test]
fn sizes_from_empty_to_many_refills() {
    for count in [0, 1, 2, 16, 1024, 100_000] {
        let dir = numbered(count);
        assert_eq!(agree(dir.path()).len(), count);
    }
}

#[test]
fn names_of_every_length_and_of_any_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let mut names: BTreeSet<Vec<u8>> =
        ["...", ".a.", "..a", "two\nlines", "ü", "\u{202e}"].map(|name| name.as_bytes().to_vec()).into();
    for length in 1..=255 {
        names.extend([vec![b'n'; length], vec![0xff; length]]);
    }
    for byte in (1..=255).filter(|byte| !b"/.".contains(byte)) {
        names.extend([vec![byte], vec![b'.', byte]]);
    }
    for name in &names {
        make_file(&dir.path().join(OsStr::from_bytes(name)));
    }
    assert!(agree(dir.path()).into_iter().map(|(name, ..)| name).eq(names));
}

#[test]
fn every_file_type() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    make_file(&path("file"));
    std::fs::create_dir(path("directory")).unwrap();
    std::os::unix::fs::symlink("file", path("link")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
    let made = lendir::open(dir.path()).unwrap();
    let node = |name, kind| rustix::fs::mknodat(&made, name, kind, rustix::fs::Mode::RUSR, rustix::fs::makedev(1, 3));
    node("fifo", FileType::Fifo).unwrap();
    let mut expected =
        vec![FileType::RegularFile, FileType::Directory, FileType::Symlink, FileType::Socket, FileType::Fifo];
    for (name, kind) in [("character", FileType::CharacterDevice), ("block", FileType::BlockDevice)] {
        match node(name, kind) {
            Ok(()) => expected.push(kind),
            Err(error) => crate::machine::skip("every_file_type", &format!("mknod of a {name} device: {error}")),
        }
    }
    let types: Vec<_> = agree(dir.path()).into_iter().map(|(.., file_type)| file_type).collect();
    assert_eq!(types.len(), expected.len());
    assert!(expected.iter().all(|kind| types.contains(kind)), "{types:?}");
}
