//! The directories that the benchmarks read: made ones, gone on drop, and the system's own.

#![allow(dead_code, reason = "each benchmark uses a part")]

use rustix::fs::{FileType, Mode, mknodat, statfs};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

pub struct Directory {
    /// File system, number and kind of entries, as a table would head its row.
    pub label: String,
    pub path: CString,
    _made: Option<TempDir>,
}

impl Directory {
    /// For question c, those with a label that is wanted: /proc with more processes than there are, for as long as these
    /// live, and made ones.
    pub fn for_buffers(is_wanted: impl Fn(&str) -> bool, mut see: impl FnMut(&Self)) {
        for more in if is_long() { &[300, 3000][..] } else { &[300] } {
            let label = format!("/proc with {more} more");
            if is_wanted(&label) {
                let _processes = Processes::sleeping(*more);
                see(&Self { label, ..Self::system("/proc").expect("procfs") });
            }
        }
        let root = fastest_root();
        for count in [1024, 100_000] {
            if is_wanted(&root.label(count, Names::Sixteen, Made::InOrder)) {
                see(&root.directory(count, Names::Sixteen));
            }
        }
    }

    /// One of the system's own, or `None` where it is missing.
    pub fn system(path: &str) -> Option<Self> {
        Path::new(path).is_dir().then(|| Self { label: path.into(), path: CString::new(path).unwrap(), _made: None })
    }

    pub fn path(&self) -> &Path {
        Path::new(std::ffi::OsStr::from_bytes(self.path.to_bytes()))
    }
}

/// Whether what takes long is asked for.
pub fn is_long() -> bool {
    std::env::var_os("LENDIR_LONG").is_some_and(|value| value == "1")
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
            Self::Sixteen => "16-byte names",
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

/// In which order the entries are made, which is what tmpfs lists them by, the newest first, and others the oldest first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Made {
    /// As they are numbered: names that are sorted, or sorted backwards, before anyone sorts them.
    InOrder,
    Shuffled,
}

impl Made {
    fn describe(self) -> &'static str {
        match self {
            Self::InOrder => "",
            Self::Shuffled => ", shuffled",
        }
    }
}

impl Root {
    pub fn directory(&self, count: usize, names: Names) -> Directory {
        self.directory_made(count, names, Made::InOrder)
    }

    /// The label but for the number of entries.
    pub fn kind(&self, names: Names, order: Made) -> String {
        format!("{}, {}{}", self.file_system, names.describe(), order.describe())
    }

    pub fn label(&self, count: usize, names: Names, order: Made) -> String {
        format!("{}, {count} {}{}", self.file_system, names.describe(), order.describe())
    }

    pub fn directory_made(&self, count: usize, names: Names, order: Made) -> Directory {
        let made = tempfile::Builder::new().prefix("lendir").tempdir_in(&self.path).expect("a temporary directory");
        let dir = lendir::open(made.path()).expect("the directory just made");
        let mut indices: Vec<_> = (0..count).collect();
        if order == Made::Shuffled {
            indices.sort_by_key(|index| mix(*index as u64));
        }
        for index in indices {
            match names {
                Names::Pids => rustix::fs::mkdirat(&dir, names.name(index), Mode::RWXU),
                _ => mknodat(&dir, names.name(index), FileType::RegularFile, Mode::RUSR, 0),
            }
            .expect("an entry to read");
        }
        Directory {
            label: self.label(count, names, order),
            path: CString::new(made.path().as_os_str().as_bytes()).expect("BUG: a path without NUL"),
            _made: Some(made),
        }
    }
}

/// Children that only wait to be ended, which they are on drop.
pub struct Processes(Vec<libc::pid_t>);

impl Processes {
    pub fn sleeping(count: usize) -> Self {
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
