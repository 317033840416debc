//! The trees that the benchmarks walk, and the oracle for each. They do not know how they are
//! walked.

use crate::contender::{Oracle, hash};
use crate::directories::{fastest_root, file_system, records, roots};
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
    ByDirectory(Order),
    /// The hash of all names, each followed by its contents.
    ByEntry(Order),
    /// The hash of all paths, each followed by its contents, in the order of the directories.
    Paths,
    /// The bytes of all names, for contenders whose threads have no common order.
    Bytes,
    /// The bytes of all records, including the records of `.` and `..`.
    Records,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Directory,
    Sorted,
}

impl Tree {
    /// Returns an existing tree.
    pub fn at(label: String, path: PathBuf) -> Self {
        Self { label, path, _made: None }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn file_system(&self) -> &'static str {
        file_system(&self.path)
    }

    /// Returns the oracle, which reads the tree by a recursive `std::fs::read_dir`.
    pub fn oracle(&self, answer: Answer) -> Oracle<'_> {
        Oracle::new(&self.label, false, move || {
            let order = match answer {
                Answer::ByDirectory(order) | Answer::ByEntry(order) => order,
                Answer::Paths | Answer::Bytes | Answer::Records => Order::Directory,
            };
            let level = Level::read(&self.path, order);
            let mut names = Vec::new();
            match answer {
                Answer::Records => return level.records(),
                Answer::Paths => return hash(level.paths(&self.path)),
                Answer::ByDirectory(_) => level.by_directory(&mut names),
                Answer::ByEntry(_) | Answer::Bytes => level.by_entry(&mut names),
            }
            if matches!(answer, Answer::Bytes) {
                names.iter().map(|name| name.len() as u64).sum()
            } else {
                hash(names)
            }
        })
    }

    /// Returns the directories, each after its parent.
    pub fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        Level::read(&self.path, Order::Directory)
            .steps(self.path.as_os_str().as_bytes(), &mut steps);
        steps
    }
}

/// One directory of the bare walk.
pub struct Step {
    /// The name in its parent, or the path of the root.
    pub name: CString,
    /// The number of its subdirectories.
    pub directories: usize,
}

/// Reads a directory and its contents by `std`. Links are not followed.
struct Level(Vec<(Vec<u8>, Option<Level>)>);

impl Level {
    fn read(path: &Path, order: Order) -> Self {
        let mut entries: Vec<_> = std::fs::read_dir(path)
            .expect("cannot open the directory")
            .map(|entry| {
                let entry = entry.expect("cannot read the directory");
                (
                    entry.file_name().into_encoded_bytes(),
                    entry.file_type().expect("cannot tell its type").is_dir(),
                )
            })
            .collect();
        if order == Order::Sorted {
            entries.sort_unstable();
        }
        // Only now, because the directory is closed. Otherwise a long chain would exhaust the
        // descriptors.
        let entries = entries.into_iter().map(|(name, is_dir)| {
            let below = is_dir.then(|| Self::read(&path.join(OsStr::from_bytes(&name)), order));
            (name, below)
        });
        Self(entries.collect())
    }

    fn below(&self) -> impl Iterator<Item = (&[u8], &Self)> {
        self.0.iter().filter_map(|(name, below)| Some((&**name, below.as_ref()?)))
    }

    fn by_directory<'a>(&'a self, names: &mut Vec<&'a [u8]>) {
        names.extend(self.0.iter().map(|(name, _)| &**name));
        self.below().for_each(|(_, below)| below.by_directory(names));
    }

    fn by_entry<'a>(&'a self, names: &mut Vec<&'a [u8]>) {
        for (name, below) in &self.0 {
            names.push(name);
            if let Some(below) = below {
                below.by_entry(names);
            }
        }
    }

    fn paths(&self, dir: &Path) -> Vec<Vec<u8>> {
        let mut paths = Vec::new();
        for (name, below) in &self.0 {
            let path = dir.join(OsStr::from_bytes(name));
            paths.push(path.as_os_str().as_bytes().to_vec());
            paths.extend(below.iter().flat_map(|below| below.paths(&path)));
        }
        paths
    }

    fn records(&self) -> u64 {
        records(self.0.iter().map(|(name, _)| &**name))
            + self.below().map(|(_, below)| below.records()).sum::<u64>()
    }

    fn steps(&self, name: &[u8], steps: &mut Vec<Step>) {
        let name = CString::new(name).expect("BUG: a NUL inside the name");
        steps.push(Step { name, directories: self.below().count() });
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
    /// One directory with 2000 files.
    Flat,
    /// One directory with 2000 files among 40 with 25 each.
    Uneven,
    /// 1000 directories with one file each.
    Many,
    /// 100 directories that have a `.gitignore` each, and about 300 files. It is on a disk.
    Repositories,
    System(&'static str),
}

impl Fixture {
    pub fn all() -> [Self; 4] {
        [Self::Small, Self::Large, Self::Chain, Self::System("/usr")]
    }

    pub fn label(self) -> String {
        let file_system = fastest_root().file_system;
        match self {
            Self::Small => format!("{file_system}, 273 directories with 8 files"),
            Self::Large => format!("{file_system}, 4 directories with 5000 files"),
            Self::Chain => format!("{file_system}, a chain of 1000 directories"),
            Self::Flat => format!("{file_system}, 2000 files in one directory"),
            Self::Uneven => format!("{file_system}, a directory with 2000 files among 40 with 25"),
            Self::Many => format!("{file_system}, 1000 directories with one file"),
            Self::Repositories => {
                format!("{}, 100 directories with a .gitignore", roots()[0].file_system)
            }
            Self::System(path) => path.into(),
        }
    }

    pub fn make(self) -> Tree {
        let label = self.label();
        if let Self::System(path) = self {
            return Tree::at(label, path.into());
        }
        let root = if let Self::Repositories = self { &roots()[0] } else { &fastest_root() };
        let made = root.temporary();
        match self {
            Self::Small => fill_levels(made.path(), 2),
            Self::Large => (0..4).for_each(|index| fill(&directory(made.path(), index), 5000)),
            Self::Flat => fill(made.path(), 2000),
            Self::Uneven => {
                for index in 0..41 {
                    fill(&directory(made.path(), index), if index == 20 { 2000 } else { 25 });
                }
            }
            Self::Many => (0..1000).for_each(|index| fill(&directory(made.path(), index), 1)),
            Self::Repositories => {
                (0..100).for_each(|index| fill_repository(&directory(made.path(), index)));
            }
            Self::Chain | Self::System(_) => {
                drop((0..1000).fold(made.path().to_owned(), |parent, _| {
                    fill(&parent, 1);
                    directory(&parent, 0)
                }));
            }
        }
        Tree { label, path: made.path().into(), _made: Some(made) }
    }
}

fn fill_levels(dir: &Path, levels: usize) {
    fill(dir, 8);
    if levels > 0 {
        (0..16).for_each(|index| fill_levels(&directory(dir, index), levels - 1));
    }
}

fn directory(parent: &Path, index: usize) -> PathBuf {
    let path = parent.join(format!("d{index}"));
    create_dir(&path).expect("cannot make the directory");
    path
}

fn fill(dir: &Path, files: usize) {
    for index in 0..files {
        File::create_new(dir.join(format!("file_{index:011}"))).expect("cannot make the file");
    }
}

/// Fills a directory with files that its `.gitignore` excludes, in several ways, and others.
fn fill_repository(dir: &Path) {
    const RULES: &str = "# rules\n/target/\n*.o\n!keep.o\n/d1/*.log\nd2/**/a.md\n!.shown\n";
    let make = |path: PathBuf| drop(File::create_new(path).expect("cannot make the file"));
    std::fs::write(dir.join(".gitignore"), RULES).expect("cannot make the file");
    for hidden in [".hidden", ".shown"] {
        make(dir.join(hidden));
    }
    for index in 0..10 {
        let source = directory(dir, index);
        fill(&source, 10);
        for name in ["main.o", "keep.o", "build.log", "a.md", "target", ".shown"] {
            make(source.join(name));
        }
        make(directory(&source, 0).join("a.md"));
    }
    let target = dir.join("target");
    create_dir(&target).expect("cannot make the directory");
    fill(&target, 100);
}
