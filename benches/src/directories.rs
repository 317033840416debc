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
    pub path: CString,
    others: Vec<CString>,
    turn: Cell<usize>,
    _made: Option<TempDir>,
    _processes: Option<Processes>,
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
        Self::new(label, vec![CString::new(path).expect("a NUL inside the path")])
    }

    fn new(label: String, mut paths: Vec<CString>) -> Self {
        let path = paths.pop().expect("BUG: no directory");
        Self { label, path, others: paths, turn: Cell::new(0), _made: None, _processes: None }
    }

    /// Returns the path of the next directory in turn.
    #[inline]
    pub fn turn(&self) -> &CStr {
        let path = self.path_in_turn();
        let turn = self.turn.get();
        self.turn.set(if turn == self.others.len() { 0 } else { turn + 1 });
        path
    }

    /// Advances this many directories, for a program that has all the [`paths`](Self::paths).
    /// Returns the index of the first one.
    pub fn turns(&self, times: u64) -> usize {
        let (first, count) = (self.turn.get(), 1 + self.others.len() as u64);
        self.turn.set(
            usize::try_from((first as u64 + times) % count).expect("BUG: an index beyond `usize`"),
        );
        first
    }

    /// Same as [`turn`](Self::turn), for `std`.
    #[inline]
    pub fn turn_path(&self) -> &Path {
        as_path(self.turn())
    }

    /// Returns the paths in the order of the turns.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.others.iter().chain([&self.path]).map(|path| as_path(path))
    }

    #[inline]
    fn path_in_turn(&self) -> &CStr {
        self.others.get(self.turn.get()).unwrap_or(&self.path)
    }

    pub fn path(&self) -> &Path {
        as_path(&self.path)
    }

    /// Returns `true` if other processes change the directory.
    pub fn is_proc(&self) -> bool {
        self.path() == Path::new("/proc")
    }

    /// Returns the oracle, which reads the directory by `std::fs::read_dir`.
    pub fn oracle(&self, answer: Answer) -> Oracle<'_> {
        let by_std = move || {
            let mut names = names_by_std(as_path(self.path_in_turn()));
            match answer {
                Answer::Names => hash(names),
                Answer::Sorted => {
                    names.sort_unstable();
                    hash(names)
                }
                Answer::Records => records(names.iter().map(Vec::as_slice)),
            }
        };
        Oracle::new(&self.label, self.is_proc(), by_std).of_many(1 + self.others.len())
    }
}

fn as_path(path: &CStr) -> &Path {
    Path::new(OsStr::from_bytes(path.to_bytes()))
}

fn names_by_std(dir: &Path) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(dir).expect("cannot open the directory");
    entries
        .map(|entry| entry.expect("cannot read the directory").file_name().into_encoded_bytes())
        .collect()
}

/// Returns the bytes of the records of these names and of the dots.
pub(crate) fn records<'n>(names: impl Iterator<Item = &'n [u8]>) -> u64 {
    [&b"."[..], b".."]
        .into_iter()
        .chain(names)
        .map(|name| (19 + name.len() as u64 + 1).next_multiple_of(8))
        .sum()
}

/// A directory that is made when it is needed.
#[derive(Clone)]
pub enum Fixture {
    Made(Shape),
    System(&'static str),
    /// `/proc`, with this number of additional processes.
    Proc(usize),
}

impl Fixture {
    /// Returns the file system, and the number and kind of the entries: the label of a row.
    pub fn label(&self) -> String {
        match self {
            Self::Made(shape) => shape.label(),
            Self::System(path) => (*path).into(),
            Self::Proc(more) => format!("/proc, {more} processes more"),
        }
    }

    /// Same as [`make`](Self::make), but makes many similar directories.
    pub fn make_many(&self) -> Option<Directory> {
        if let Self::Made(shape) = self { Some(shape.make_many()) } else { self.make() }
    }

    /// Makes the directory. Returns `None` if the system lacks it.
    pub fn make(&self) -> Option<Directory> {
        let label = self.label();
        match self {
            Self::Made(shape) => Some(shape.make()),
            Self::System(path) => Path::new(path).is_dir().then(|| Directory::at(label, path)),
            Self::Proc(more) => {
                let processes = Some(Processes::sleeping(*more));
                Some(Directory { _processes: processes, ..Directory::at(label, "/proc") })
            }
        }
    }
}

/// The number and kind of the entries of a directory, and where it is made.
#[derive(Clone)]
pub struct Shape {
    root: Root,
    pub count: usize,
    names: Names,
    made: Made,
}

/// The order in which the entries are made. tmpfs lists the newest entry first, most others the
/// oldest.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Made {
    /// The order of the names. So they are read in order, or backwards.
    InOrder,
    Shuffled,
}

impl Shape {
    #[must_use]
    pub fn shuffled(self) -> Self {
        Self { made: Made::Shuffled, ..self }
    }

    pub fn label(&self) -> String {
        let shuffled = if self.made == Made::Shuffled { ", shuffled" } else { "" };
        format!("{}, {} {}{shuffled}", self.root.file_system, self.count, self.names.describe())
    }

    /// Makes one directory. If it is read again and again, the processor predicts all branches.
    pub fn make(&self) -> Directory {
        self.take_turns(1)
    }

    /// Makes similar directories, too many for the branch predictor to memorise.
    pub fn make_many(&self) -> Directory {
        self.take_turns((16_384 / self.count.max(1)).clamp(1, 1024))
    }

    fn take_turns(&self, directories: usize) -> Directory {
        let made = self.root.temporary();
        let paths = (0..directories).map(|number| {
            let path = made.path().join(format!("{number:04}"));
            rustix::fs::mkdir(&path, Mode::RWXU).expect("cannot make the directory");
            self.fill(&path, number);
            CString::new(path.into_os_string().into_encoded_bytes())
                .expect("BUG: a NUL inside the path")
        });
        let directory = Directory::new(self.label(), paths.collect());
        Directory { _made: Some(made), ..directory }
    }

    fn fill(&self, path: &Path, number: usize) {
        let dir = lendir::open(path).expect("cannot open the directory just made");
        let mut names: Vec<_> = self.names.of_directory(number).take(self.count).collect();
        if self.made == Made::Shuffled {
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
    let mut roots = vec![std::env::temp_dir()];
    if file_system(&roots[0]) != "tmpfs" {
        roots.push("/dev/shm".into());
    }
    let roots = roots.into_iter().map(|path| Root { file_system: file_system(&path), path });
    roots.filter(|root| root.path == std::env::temp_dir() || root.file_system == "tmpfs").collect()
}

/// Returns tmpfs if there is one, or else the temporary directory.
pub fn fastest_root() -> Root {
    roots().pop().expect("BUG: not even the temporary directory is a root")
}

pub(crate) fn file_system(path: &Path) -> &'static str {
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
        Shape { root: self.clone(), count, names, made: Made::InOrder }
    }

    /// Returns a new directory, which is removed on drop.
    pub fn temporary(&self) -> TempDir {
        tempfile::Builder::new()
            .prefix("lendir")
            .tempdir_in(&self.path)
            .expect("cannot make a temporary directory")
    }
}

/// The names of the entries.
#[derive(Clone, Copy)]
pub enum Names {
    /// `1000`, `1007`, …: directories with the names of processes.
    Pids,
    /// `file_00000000000`: 16 bytes, like the names in the gitstatus article.
    Sixteen,
    /// `IMG_20240101_000001.jpg`: 13 bytes are the same in all.
    Photos,
    /// 16 hexadecimal digits, unsorted.
    Hex,
    /// One to three words, mostly with an extension, unsorted.
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
    let words: Vec<_> = [0, 12, 24]
        .into_iter()
        .take(1 + bits(36) % 3)
        .map(|from| WORDS[bits(from) % WORDS.len()])
        .collect();
    words.join("_") + ENDINGS[bits(48) % ENDINGS.len()]
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

/// Child processes that sleep. They are killed on drop.
struct Processes(Vec<libc::pid_t>);

impl Processes {
    fn sleeping(count: usize) -> Self {
        let fork = |_| {
            // SAFETY: the child calls only prctl, pause and _exit, which are safe after a fork of a
            // process with many threads.
            unsafe {
                match libc::fork() {
                    0 => {
                        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                        libc::pause();
                        libc::_exit(0)
                    }
                    pid => pid,
                }
            }
        };
        let processes = Self((0..count).map(fork).filter(|pid| *pid > 0).collect());
        assert_eq!(processes.0.len(), count, "some processes cannot be started");
        processes
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for pid in &self.0 {
            // SAFETY: our children are not yet reaped, so no other process has their PIDs.
            unsafe {
                libc::kill(*pid, libc::SIGKILL);
                libc::waitpid(*pid, std::ptr::null_mut(), 0);
            }
        }
    }
}
