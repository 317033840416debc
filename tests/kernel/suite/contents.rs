//! The contents of each file system: directories to read, a tree to walk, and directories that a
//! case removes.

use crate::file_systems::{Contents, FileSystem};
use crate::mounted::{Mounted, Part};
use crate::support::prelude::*;
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};

/// Makes `types`, `names`, a directory for each of [`counts`], `tree`, and `doomed`, which cases
/// remove.
pub fn fill(at: &Path, part: Part) {
    for (dir, names) in files() {
        let dir = at.join(dir);
        fs::create_dir_all(&dir).unwrap();
        for (_, name) in names.iter().enumerate().filter(|(index, _)| part.has(*index)) {
            make(&dir, OsStr::from_bytes(name), FileType::RegularFile);
        }
    }
    let types = at.join("types");
    fs::create_dir_all(&types).unwrap();
    for (_, (name, file_type)) in TYPES.iter().enumerate().filter(|(index, _)| part.has(*index)) {
        make(&types, OsStr::new(name), *file_type);
    }
    fill_tree(&at.join("tree"), WIDTH, DEPTH, &|number| part.has(number));
    fill_doomed(&at.join("doomed"), part);
}

/// Returns the number of files in the largest directory: several batches of any buffer but the
/// largest. Without an index, the time to make the files grows with the square of their number.
pub fn most() -> usize {
    if machine::runs_long() { 20_000 } else { 3000 }
}

fn counts() -> [usize; 6] {
    [0, 1, 2, 16, 1024, most()]
}

/// Returns the directories of regular files, with the names in each.
fn files() -> BTreeMap<String, BTreeSet<Vec<u8>>> {
    let numbers = |count: usize| (0..count).map(|number| number.to_string().into_bytes()).collect();
    let mut files: BTreeMap<_, _> =
        counts().map(|count| (count.to_string(), numbers(count))).into();
    let by_length = (1..=255_u8).map(|length| {
        (0..length).map(|at| 0x80 | length.wrapping_mul(31).wrapping_add(at)).collect()
    });
    let by_byte = (1..=255).filter(|byte| !b"./".contains(byte)).map(|byte| vec![byte]);
    files.insert("names".to_owned(), by_length.chain(by_byte).collect());
    files
}

pub const TYPES: [(&str, FileType); 7] = [
    ("directory", FileType::Directory),
    ("file", FileType::RegularFile),
    ("link", FileType::Symlink),
    ("pipe", FileType::Fifo),
    ("socket", FileType::Socket),
    ("tty", FileType::CharacterDevice),
    ("disk", FileType::BlockDevice),
];

fn make(dir: &Path, name: &OsStr, file_type: FileType) {
    let path = dir.join(name);
    match file_type {
        FileType::Directory => fs::create_dir(path).unwrap(),
        FileType::Symlink => symlink("nowhere", path).unwrap(),
        _ => mknodat(CWD, path, file_type, Mode::RUSR, makedev(1, 3)).unwrap(),
    }
}

pub const WIDTH: usize = 5;
const DEPTH: usize = 3;

/// Makes a tree with `width` directories and as many files in each directory, `depth` levels deep.
/// All names are numbers.
fn fill_tree(dir: &Path, width: usize, depth: usize, is_here: &dyn Fn(usize) -> bool) {
    fs::create_dir_all(dir).unwrap();
    for number in (0..width).filter(|number| is_here(*number)) {
        let below = dir.join(number.to_string());
        tree::make(&below, &(width..2 * width).map(|file| file.to_string()).collect::<Vec<_>>());
        if depth > 1 {
            fill_tree(&below, width, depth - 1, &|_| true);
        }
    }
}

/// Makes directories that cases remove. They contain only directories, so cgroup2 can have them,
/// too.
fn fill_doomed(at: &Path, part: Part) {
    for dir in ["before", "after", "saved", "midway"] {
        fs::create_dir_all(at.join(dir)).unwrap();
        // The names are long enough for three batches of the smallest buffer.
        let count = if dir == "midway" { 200 } else { 0 };
        for index in (0..count).filter(|index| part.has(*index)) {
            fs::create_dir(at.join(dir).join(format!("{index:0>100}"))).unwrap();
        }
    }
}

/// The path of the directories that cases remove, on a file system that can have them.
pub struct Doomed(PathBuf);

impl Doomed {
    pub fn path(mounted: &Mounted) -> PathBuf {
        match mounted.system.contents {
            Contents::Kernel { .. } => mounted.at.join(format!("lendir-{}", std::process::id())),
            Contents::Written | Contents::Packed | Contents::Merged => mounted.at.join("doomed"),
        }
    }

    pub fn of(mounted: &Mounted) -> Option<Self> {
        let path = Self::path(mounted);
        match mounted.system.contents {
            Contents::Written | Contents::Merged => {}
            Contents::Kernel { takes_directories: true, .. } => fill_doomed(&path, Part::All),
            Contents::Kernel { takes_directories: false, .. } | Contents::Packed => return None,
        }
        Some(Self(path))
    }
}

impl Drop for Doomed {
    fn drop(&mut self) {
        remove_directories(&self.0);
    }
}

/// Removes a tree of directories and whatever the kernel put there.
pub fn remove_directories(dir: &Path) {
    for child in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        if child.file_type().unwrap().is_dir() {
            remove_directories(&child.path());
        }
    }
    fs::remove_dir(dir).unwrap();
}

impl FileSystem {
    pub fn is_ours(&self) -> bool {
        !matches!(self.contents, Contents::Kernel { .. })
    }
}

/// Returns the directories that do not change while the cases run.
pub fn still(mounted: &Mounted) -> impl Iterator<Item = PathBuf> {
    let names = match mounted.system.contents {
        Contents::Kernel { still, takes_directories } => {
            let made = Doomed::path(mounted).join("midway").display().to_string();
            still.iter().map(ToString::to_string).chain(takes_directories.then_some(made)).collect()
        }
        Contents::Written | Contents::Packed | Contents::Merged => {
            files().into_keys().chain(["types".to_owned()]).collect::<Vec<_>>()
        }
    };
    names.into_iter().map(|name| mounted.at.join(name))
}
