//! The trees that the benchmarks walk, and the oracle for each. They do not know how they are
//! walked.

use crate::contender::{Oracle, hash};
use crate::directories::{DOTS, fastest_root, record_len};
use std::ffi::{CString, OsStr};
use std::fs::{File, create_dir};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// An existing tree. A tree that was made for a benchmark is removed on drop.
pub struct Tree {
    pub label: String,
    path: PathBuf,
    _made: Option<TempDir>,
}

/// The kind of a contender's answer.
#[derive(Clone, Copy)]
pub enum Answer {
    /// The hash of all names: the names of a directory, then the contents of each subdirectory.
    ByDirectory,
    ByDirectorySorted,
    /// The hash of all names, each followed by its contents.
    ByEntry,
    ByEntrySorted,
    /// The hash of all paths, each followed by its contents, in the order of the directories.
    Paths,
    /// The bytes of all names, for contenders whose threads have no common order.
    Bytes,
    /// The bytes of all records, including the records of `.` and `..`.
    Records,
}

impl Tree {
    /// Returns an existing tree.
    pub fn at(label: String, path: PathBuf) -> Self {
        Self { label, path, _made: None }
    }

    /// Makes a directory at this place and fills it.
    pub fn new(label: String, made: TempDir, fill: impl FnOnce(&Path)) -> Self {
        fill(made.path());
        Self { label, path: made.path().into(), _made: Some(made) }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the oracle, which reads the tree by a recursive `std::fs::read_dir`.
    pub fn oracle(&self, answer: Answer) -> Oracle<'_> {
        Oracle::new(&self.label, false, 1, move || {
            let is_sorted = matches!(answer, Answer::ByDirectorySorted | Answer::ByEntrySorted);
            let by_entry = !matches!(answer, Answer::ByDirectory | Answer::ByDirectorySorted);
            let level = Level::read(&self.path, is_sorted);
            let (mut names, root) = (Vec::new(), self.path.as_os_str().as_bytes());
            level.visit(root, by_entry, &mut |dir, name| {
                names.push(match answer {
                    Answer::Paths => [dir, b"/", name].concat(),
                    _ => name.to_vec(),
                });
            });
            let dots = || self.steps().len() as u64 * DOTS;
            match answer {
                Answer::Bytes => names.iter().map(|name| name.len() as u64).sum(),
                Answer::Records => names.iter().map(|it| record_len(it)).sum::<u64>() + dots(),
                _ => hash(names),
            }
        })
    }

    /// Returns the directories, each after its parent: the name in the parent or the path of the
    /// root, and the number of subdirectories.
    pub fn steps(&self) -> Vec<(CString, usize)> {
        let mut steps = Vec::new();
        let root = self.path.as_os_str().as_bytes();
        Level::read(&self.path, false).steps(root, &mut steps);
        steps
    }
}

/// The entries of a directory with their contents, read by `std`. Links are not followed.
struct Level(Vec<(Vec<u8>, Option<Level>)>);

impl Level {
    fn read(path: &Path, is_sorted: bool) -> Self {
        let entries = std::fs::read_dir(path).expect("cannot open the directory").map(|entry| {
            let entry = entry.expect("cannot read the directory");
            let is_dir = entry.file_type().expect("cannot tell its type").is_dir();
            (entry.file_name().into_encoded_bytes(), is_dir)
        });
        let mut entries: Vec<_> = entries.collect();
        if is_sorted {
            entries.sort_unstable();
        }
        // Only now, because the directory is closed. Otherwise a long chain would exhaust the
        // descriptors.
        let entries = entries.into_iter().map(|(name, is_dir)| {
            let below = is_dir.then(|| Self::read(&path.join(OsStr::from_bytes(&name)), is_sorted));
            (name, below)
        });
        Self(entries.collect())
    }

    fn below(&self) -> impl Iterator<Item = (&[u8], &Self)> {
        self.0.iter().filter_map(|(name, below)| Some((&**name, below.as_ref()?)))
    }

    /// Calls `take` with the path of a directory and a name in it, for each name. The contents of a
    /// directory come right after its name, or else after all names of its parent.
    fn visit(&self, dir: &[u8], by_entry: bool, take: &mut dyn FnMut(&[u8], &[u8])) {
        let path = |name: &[u8]| [dir, b"/", name].concat();
        for (name, below) in &self.0 {
            take(dir, name);
            if let (true, Some(below)) = (by_entry, below) {
                below.visit(&path(name), by_entry, take);
            }
        }
        for (name, below) in self.below().filter(|_| !by_entry) {
            below.visit(&path(name), by_entry, take);
        }
    }

    fn steps(&self, name: &[u8], steps: &mut Vec<(CString, usize)>) {
        let name = CString::new(name).expect("BUG: a NUL inside the name");
        steps.push((name, self.below().count()));
        self.below().for_each(|(name, below)| below.steps(name, steps));
    }
}

/// A tree that is made when it is needed.
#[derive(Clone, Copy)]
pub enum Fixture {
    /// 273 directories: 16 in each, two levels deep, with 8 files each.
    Small,
    /// 4 directories of 5000 files each.
    Large,
    /// A chain of 1000 directories, with one file each.
    Chain,
    System(&'static str),
}

impl Fixture {
    pub fn label(self) -> String {
        let file_system = fastest_root().file_system;
        match self {
            Self::Small => format!("{file_system}, 273 directories with 8 files"),
            Self::Large => format!("{file_system}, 4 directories with 5000 files"),
            Self::Chain => format!("{file_system}, a chain of 1000 directories"),
            Self::System(path) => path.into(),
        }
    }

    pub fn make(self) -> Tree {
        if let Self::System(path) = self {
            return Tree::at(self.label(), path.into());
        }
        Tree::new(self.label(), fastest_root().temporary(), |root| match self {
            Self::Small => fill_levels(root, 2),
            Self::Large => (0..4).for_each(|index| fill(&directory(root, index), 5000)),
            _ => {
                let mut dir = root.to_owned();
                for _ in 0..1000 {
                    fill(&dir, 1);
                    dir = directory(&dir, 0);
                }
            }
        })
    }
}

fn fill_levels(dir: &Path, levels: usize) {
    fill(dir, 8);
    if levels > 0 {
        (0..16).for_each(|index| fill_levels(&directory(dir, index), levels - 1));
    }
}

/// Makes a subdirectory, and returns its path.
pub fn directory(parent: &Path, index: usize) -> PathBuf {
    let path = parent.join(format!("d{index}"));
    create_dir(&path).expect("cannot make the directory");
    path
}

/// Makes files in a directory.
pub fn fill(dir: &Path, files: usize) {
    for index in 0..files {
        File::create_new(dir.join(format!("file_{index:011}"))).expect("cannot make the file");
    }
}
