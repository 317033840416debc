//! The directories that the benchmarks read, and the oracle over them.

use crate::contender::{Oracle, hash};
use crate::is_long;
use rustix::fs::{FileType, Mode, mknodat, statfs};
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// An existing directory. One that was made for a benchmark is removed on drop.
pub struct Directory {
    pub label: String,
    pub path: CString,
    _made: Option<TempDir>,
    _processes: Option<Processes>,
}

/// What a contender answers with.
#[derive(Clone, Copy)]
pub enum Answer {
    /// The hash of all names, in the order of the directory.
    Names,
    /// The hash of all names, sorted by their bytes.
    Sorted,
    /// The bytes of all records, those of `.` and `..` too.
    Records,
}

impl Directory {
    /// One that exists already.
    pub fn at(label: String, path: &str) -> Self {
        Self { label, path: CString::new(path).expect("no NUL"), _made: None, _processes: None }
    }

    pub fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(self.path.to_bytes()))
    }

    /// Other processes come and go in it.
    pub fn is_proc(&self) -> bool {
        self.path() == Path::new("/proc")
    }

    /// Answers as `std::fs::read_dir` does.
    pub fn oracle(&self, answer: Answer) -> Oracle<'_> {
        let by_std = move || {
            let mut names = names_by_std(self.path());
            match answer {
                Answer::Names => hash(names),
                Answer::Sorted => {
                    names.sort_unstable();
                    hash(names)
                }
                Answer::Records => records(names.iter().map(Vec::as_slice)),
            }
        };
        Oracle::new(&self.label, self.is_proc(), by_std)
    }
}

fn names_by_std(dir: &Path) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(dir).expect("a directory");
    entries.map(|entry| entry.expect("an entry").file_name().into_encoded_bytes()).collect()
}

/// The bytes of the records of these names and of the dots.
pub(crate) fn records<'n>(names: impl Iterator<Item = &'n [u8]>) -> u64 {
    [&b"."[..], b".."].into_iter().chain(names).map(|name| (19 + name.len() as u64 + 1).next_multiple_of(8)).sum()
}

/// A directory that is made when its turn comes.
#[derive(Clone)]
pub enum Fixture {
    Made(Shape),
    System(&'static str),
    /// `/proc` with so many processes more than there are.
    Proc(usize),
}

impl Fixture {
    /// File system, number and kind of entries, as a table heads its row.
    pub fn label(&self) -> String {
        match self {
            Self::Made(shape) => shape.label(),
            Self::System(path) => (*path).into(),
            Self::Proc(more) => format!("/proc, {more} processes more"),
        }
    }

    /// `None` where the system lacks it.
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

/// Those that tell how large a buffer should be. `LENDIR_LONG=1` adds `/proc` with 3000 processes more.
pub fn for_capacities() -> Vec<Fixture> {
    let mut all: Vec<_> =
        [1024, 100_000].map(|count| Fixture::Made(fastest_root().shape(count, Names::Sixteen))).into();
    all.push(Fixture::Proc(300));
    if is_long() {
        all.push(Fixture::Proc(3000));
    }
    all
}

/// Entries of one kind in one directory.
#[derive(Clone)]
pub struct Shape {
    root: Root,
    pub count: usize,
    names: Names,
    made: Made,
}

/// In which order the entries are made. tmpfs lists the newest first, most others the oldest.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Made {
    /// So the names are read in order, or in the opposite order.
    InOrder,
    Shuffled,
}

impl Shape {
    #[must_use]
    pub fn shuffled(self) -> Self {
        Self { made: Made::Shuffled, ..self }
    }

    /// The label without the number of entries.
    pub fn kind(&self) -> String {
        format!("{}, {}", self.root.file_system, self.describe())
    }

    pub fn label(&self) -> String {
        format!("{}, {} {}", self.root.file_system, self.count, self.describe())
    }

    fn describe(&self) -> String {
        format!("{}{}", self.names.describe(), if self.made == Made::Shuffled { ", shuffled" } else { "" })
    }

    pub fn make(&self) -> Directory {
        let made = self.root.temporary();
        let dir = lendir::open(made.path()).expect("the directory just made");
        let mut indices: Vec<_> = (0..self.count).collect();
        if self.made == Made::Shuffled {
            indices.sort_by_key(|index| mix(*index as u64));
        }
        for index in indices {
            let name = self.names.name(index);
            match self.names {
                Names::Pids => rustix::fs::mkdirat(&dir, name, Mode::RWXU),
                _ => mknodat(&dir, name, FileType::RegularFile, Mode::RUSR, 0),
            }
            .expect("an entry to read");
        }
        let path = CString::new(made.path().as_os_str().as_bytes()).expect("BUG: a path without NUL");
        Directory { label: self.label(), path, _made: Some(made), _processes: None }
    }
}

/// Where directories are made.
#[derive(Clone)]
pub struct Root {
    pub file_system: &'static str,
    path: PathBuf,
}

/// The temporary directory's file system, and tmpfs beside it unless that is it already.
pub fn roots() -> Vec<Root> {
    let mut roots = vec![std::env::temp_dir()];
    if file_system(&roots[0]) != "tmpfs" {
        roots.push("/dev/shm".into());
    }
    let roots = roots.into_iter().map(|path| Root { file_system: file_system(&path), path });
    roots.filter(|root| root.path == std::env::temp_dir() || root.file_system == "tmpfs").collect()
}

/// tmpfs if there is one, else the temporary directory.
pub fn fastest_root() -> Root {
    roots().pop().expect("BUG: the temporary directory is always there")
}

fn file_system(path: &Path) -> &'static str {
    match statfs(path).map_or(0, |stat| stat.f_type) {
        0x0102_1994 => "tmpfs",
        0xef53 => "ext4",
        0x9123_683e => "btrfs",
        0x5846_5342 => "xfs",
        0x794c_7630 => "overlay",
        _ => "the temporary directory",
    }
}

impl Root {
    pub fn shape(&self, count: usize, names: Names) -> Shape {
        Shape { root: self.clone(), count, names, made: Made::InOrder }
    }

    pub fn directory(&self, count: usize, names: Names) -> Directory {
        self.shape(count, names).make()
    }

    pub(crate) fn temporary(&self) -> TempDir {
        tempfile::Builder::new().prefix("lendir").tempdir_in(&self.path).expect("a temporary directory")
    }
}

/// How the entries of a made directory are named.
#[derive(Clone, Copy)]
pub enum Names {
    /// `1000`, `1007`, …: directories named as procfs names processes.
    Pids,
    /// `file_00000000000`: 16 bytes, what the gitstatus article lists.
    Sixteen,
    /// `IMG_20240101_000001.jpg`: 13 bytes are the same in all.
    Photos,
    /// 16 hexadecimal digits without order.
    Hex,
}

impl Names {
    fn name(self, index: usize) -> String {
        match self {
            Self::Pids => (1000 + 7 * index).to_string(),
            Self::Sixteen => format!("file_{index:011}"),
            Self::Photos => format!("IMG_20240101_{index:06}.jpg"),
            Self::Hex => format!("{:016x}", mix(index as u64)),
        }
    }

    fn describe(self) -> &'static str {
        match self {
            Self::Pids => "PID-like",
            Self::Sixteen => "with 16-byte names",
            Self::Photos => "sharing 13 bytes",
            Self::Hex => "random hex",
        }
    }
}

/// The finalizer of `SplitMix64`: a bijection without visible order.
fn mix(index: u64) -> u64 {
    let mut z = index.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Children that wait to be killed, which they are on drop.
struct Processes(Vec<libc::pid_t>);

impl Processes {
    fn sleeping(count: usize) -> Self {
        let fork = |_| {
            // SAFETY: the child calls nothing but prctl, pause and _exit, which are safe after a fork of many threads.
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
        assert_eq!(processes.0.len(), count, "processes to be listed");
        processes
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        for pid in &self.0 {
            // SAFETY: they are our children, not waited for yet, so that the numbers are still theirs.
            unsafe {
                libc::kill(*pid, libc::SIGKILL);
                libc::waitpid(*pid, std::ptr::null_mut(), 0);
            }
        }
    }
}
