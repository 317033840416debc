//! The directories that the benchmarks read, and the oracle for each. They do not know how they are
//! read.

use crate::contender::{Oracle, hash};
use rustix::fs::{FileType, Mode, mknodat, statfs};
use std::cell::Cell;
use std::collections::HashSet;
use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// An existing directory, or many similar ones that are read in turn. A directory that was made for
/// a benchmark is removed on drop.
pub struct Directory {
    pub label: String,
    paths: Vec<CString>,
    turn: Cell<usize>,
    _made: Option<TempDir>,
}

/// The kind of a contender's answer.
#[derive(Clone, Copy)]
pub enum Answer {
    /// The hash of all names, in the order of the directory.
    Names,
    /// The hash of all names, sorted by their bytes.
    Sorted,
    /// The bytes of all records, including the records of `.` and `..`.
    Records,
}

impl Directory {
    /// Returns an existing directory.
    pub fn at(label: String, path: &str) -> Self {
        let paths = vec![CString::new(path).expect("a NUL inside the path")];
        Self { label, paths, turn: Cell::new(0), _made: None }
    }

    /// Returns the path of the next directory in turn.
    #[inline]
    pub fn turn(&self) -> &CStr {
        let turn = self.turn.get();
        self.turn.set(if turn + 1 == self.paths.len() { 0 } else { turn + 1 });
        &self.paths[turn]
    }

    /// Same as [`turn`](Self::turn), for `std`.
    #[inline]
    pub fn turn_path(&self) -> &Path {
        as_path(self.turn())
    }

    /// Returns the paths in the order of the turns.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.paths.iter().map(|path| as_path(path))
    }

    /// Returns the path of the first directory.
    pub fn path(&self) -> &Path {
        as_path(&self.paths[0])
    }

    /// Returns the oracle, which reads the directory by `std::fs::read_dir`.
    pub fn oracle(&self, answer: Answer) -> Oracle<'_> {
        let by_std = move || {
            let entries = std::fs::read_dir(as_path(&self.paths[self.turn.get()]));
            let names = entries.expect("cannot open the directory").map(|entry| {
                entry.expect("cannot read the directory").file_name().into_encoded_bytes()
            });
            let mut names: Vec<_> = names.collect();
            match answer {
                Answer::Names => hash(names),
                Answer::Sorted => {
                    names.sort_unstable();
                    hash(names)
                }
                Answer::Records => DOTS + names.iter().map(|name| record_len(name)).sum::<u64>(),
            }
        };
        let changes = self.path() == Path::new("/proc"); // by other processes
        Oracle::new(&self.label, changes, self.paths.len(), by_std)
    }
}

fn as_path(path: &CStr) -> &Path {
    Path::new(OsStr::from_bytes(path.to_bytes()))
}

/// The bytes of the records of `.` and `..`.
pub(crate) const DOTS: u64 = 48;

/// Returns the bytes of the record of this name.
pub(crate) fn record_len(name: &[u8]) -> u64 {
    (19 + name.len() as u64 + 1).next_multiple_of(8)
}

/// The number and kind of the entries of a directory, and where it is made when it is needed.
#[derive(Clone)]
pub struct Shape {
    root: Root,
    count: usize,
    names: Names,
    /// Whether the entries are made in random order. Otherwise they are read in order or backwards:
    /// tmpfs lists the newest entry first, most others the oldest.
    is_shuffled: bool,
}

impl Shape {
    #[must_use]
    pub fn shuffled(self) -> Self {
        Self { is_shuffled: true, ..self }
    }

    /// Returns the file system, and the number and kind of the entries: the label of a row.
    pub fn label(&self) -> String {
        let shuffled = if self.is_shuffled { ", shuffled" } else { "" };
        format!("{}, {} {}{shuffled}", self.root.file_system, self.count, self.names.describe())
    }

    /// Returns the number of similar directories that are too many for the branch predictor to
    /// memorise. If one is read again and again, the processor predicts all branches.
    pub fn many(&self) -> usize {
        (16_384 / self.count).clamp(1, 1024)
    }

    pub fn make(&self, directories: usize) -> Directory {
        let made = self.root.temporary();
        let paths = (0..directories).map(|number| {
            let path = made.path().join(format!("{number:04}"));
            rustix::fs::mkdir(&path, Mode::RWXU).expect("cannot make the directory");
            self.fill(&path, number);
            CString::new(path.into_os_string().into_encoded_bytes()).expect("BUG: an inner NUL")
        });
        let paths = paths.collect();
        Directory { label: self.label(), paths, turn: Cell::new(0), _made: Some(made) }
    }

    fn fill(&self, path: &Path, number: usize) {
        let dir = lendir::open(path).expect("cannot open the directory just made");
        let mut names: Vec<_> = self.names.of_directory(number).take(self.count).collect();
        if self.is_shuffled {
            let mut index = (number * self.count) as u64;
            names.sort_by_cached_key(|_| {
                index += 1;
                mix(index)
            });
        }
        for name in names {
            match self.names {
                Names::Pids => rustix::fs::mkdirat(&dir, name, Mode::RWXU),
                _ => mknodat(&dir, name, FileType::RegularFile, Mode::RUSR, 0),
            }
            .expect("cannot make the entry");
        }
    }
}

/// A place where directories are made.
#[derive(Clone)]
pub struct Root {
    pub file_system: &'static str,
    path: PathBuf,
}

/// Returns the temporary directory's file system, and tmpfs if that is another one.
pub fn roots() -> Vec<Root> {
    let [first, memory] = [std::env::temp_dir(), "/dev/shm".into()]
        .map(|path| Root { file_system: file_system(&path), path });
    let is_another = first.file_system != "tmpfs" && memory.file_system == "tmpfs";
    [first].into_iter().chain(is_another.then_some(memory)).collect()
}

/// Returns tmpfs if there is one, or else the temporary directory.
pub fn fastest_root() -> Root {
    roots().pop().expect("BUG: not even the temporary directory is a root")
}

fn file_system(path: &Path) -> &'static str {
    match statfs(path).map_or(0, |stat| stat.f_type) {
        0x0102_1994 => "tmpfs",
        0xef53 => "ext4",
        0x9123_683e => "btrfs",
        0x5846_5342 => "xfs",
        0x794c_7630 => "overlay",
        _ => "another file system",
    }
}

impl Root {
    pub fn shape(&self, count: usize, names: Names) -> Shape {
        Shape { root: self.clone(), count, names, is_shuffled: false }
    }

    /// Returns a new directory, which is removed on drop.
    pub fn temporary(&self) -> TempDir {
        let made = tempfile::Builder::new().prefix("lendir").tempdir_in(&self.path);
        made.expect("cannot make a temporary directory")
    }
}

/// The names of the entries. `describe` says what they are.
#[derive(Clone, Copy)]
pub enum Names {
    Pids,
    /// 16 bytes, like the names in the gitstatus article.
    Sixteen,
    Photos,
    Hex,
    /// One to three words, mostly with an extension.
    Source,
}

/// Returns one of about 200,000 names.
fn source_name(number: u64) -> String {
    const WORDS: [&str; 48] = [
        "main", "lib", "mod", "test", "tests", "util", "error", "config", "parse", "lexer",
        "token", "buffer", "entry", "path", "walk", "tree", "node", "list", "hash", "map", "set",
        "string", "format", "print", "io", "net", "http", "socket", "thread", "sync", "lock",
        "queue", "task", "time", "date", "math", "matrix", "vector", "image", "color", "font",
        "text", "shader", "index", "README", "Makefile", "arch", "x86",
    ];
    const ENDINGS: [&str; 12] =
        [".rs", ".rs", ".c", ".c", ".h", ".h", ".py", ".md", ".txt", ".json", ".toml", ""];
    #[allow(clippy::cast_possible_truncation, reason = "12 bits")]
    let bits = |from: u32| (number >> from & 0xfff) as usize;
    let words = [0, 12, 24].map(|from| WORDS[bits(from) % WORDS.len()]);
    words[..=bits(36) % 3].join("_") + ENDINGS[bits(48) % ENDINGS.len()]
}

impl Names {
    /// Returns an endless iterator over names. A single directory has the names of number 0.
    fn of_directory(self, number: usize) -> impl Iterator<Item = String> {
        let mut given = HashSet::new();
        let name = move |index: usize| match self {
            Self::Pids => (1000 + number + 7 * index).to_string(),
            Self::Sixteen => format!("file_{:011}", number + index),
            Self::Photos => format!("IMG_20240101_{:06}.jpg", number + index),
            Self::Hex => format!("{:016x}", mix((number << 32 | index) as u64)),
            Self::Source => source_name(mix((number << 32 | index) as u64)),
        };
        (0..).map(name).filter(move |name| given.insert(name.clone()))
    }

    fn describe(self) -> &'static str {
        match self {
            Self::Pids => "directories named as PIDs",
            Self::Sixteen => "files with 16-byte names",
            Self::Photos => "photos, whose names share 13 bytes",
            Self::Hex => "files named in random hex",
            Self::Source => "files as in a source tree",
        }
    }
}

/// Shuffles numbers by a bijection: the finalizer of `SplitMix64`.
pub fn mix(index: u64) -> u64 {
    let mut z = index.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
