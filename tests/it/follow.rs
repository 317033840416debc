//! Symbolic links that the caller follows with `Dir::follow_entry` and `Dir::follow_name`, against `std` and `find -L`.

use crate::fixture::{has_gnu, run};
use crate::spread::Next;
use crate::support::machine::{Watchdog, passed, runs_long};
use crate::support::scan::errno;
use crate::support::tree::{self, Random, Tree};
use lendir::{Error, FileType, Listing, Walk};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// One answer of the walk: a path, its depth, and what it is.
pub type Answer = (PathBuf, usize, What);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    First,
    Second,
    Error(i32),
    /// The link leads back to this directory.
    Loop(PathBuf),
}

#[derive(Clone, Copy, Debug)]
pub struct Way {
    pub is_sorted: bool,
    pub is_post_order: bool,
    pub max_open: usize,
    pub max_depth: usize,
}

const PLAIN: Way = Way { is_sorted: false, is_post_order: false, max_open: 32, max_depth: usize::MAX };
pub const WAYS: [Way; 7] = [
    PLAIN,
    Way { max_open: 4, ..PLAIN },
    Way { is_post_order: true, ..PLAIN },
    Way { is_sorted: true, ..PLAIN },
    Way { is_sorted: true, is_post_order: true, max_open: 4, ..PLAIN },
    Way { is_post_order: true, max_open: 4, ..PLAIN },
    Way { max_depth: 3, is_post_order: true, ..PLAIN },
];

impl Way {
    pub fn begin(self, root: &Path) -> Walk {
        let options = Walk::options().post_order(self.is_post_order).max_open(self.max_open).max_depth(self.max_depth);
        options.open(root).unwrap()
    }

    /// Walks to the end, and follows all links.
    pub fn walked(self, walk: &mut impl Next) -> Vec<Answer> {
        let (mut answers, mut listing) = (Vec::new(), Listing::new());
        loop {
            let mut dir = match walk.next_dir() {
                Ok(Some(dir)) => dir,
                Ok(None) => return answers,
                Err(error) => {
                    answers.push(answer(&error));
                    continue;
                }
            };
            assert_eq!(dir.is_link(), dir.depth() > 0 && dir.path().is_symlink(), "{dir:?}");
            let what = if dir.is_second_visit() { What::Second } else { What::First };
            answers.push((dir.path().to_owned(), dir.depth(), what));
            if self.is_sorted {
                dir.read_into(&mut listing).unwrap();
                for entry in listing.iter().filter(|entry| entry.file_type() == FileType::Symlink) {
                    assert_eq!(dir.follow_name(entry.name()), dir.depth() + 1 < self.max_depth, "{dir:?}");
                }
            } else {
                while dir.next().unwrap().is_some() {
                    dir.follow_entry(); // whatever it is
                }
            }
        }
    }

    pub fn by_std(self, root: &Path) -> Vec<Answer> {
        let mut answers = Vec::new();
        self.below(root, &mut Vec::new(), &mut answers);
        answers
    }

    /// `above` holds the directories from the root down.
    fn below(self, path: &Path, above: &mut Vec<((u64, u64), PathBuf)>, answers: &mut Vec<Answer>) {
        let depth = above.len();
        answers.push((path.to_owned(), depth, What::First));
        above.push((id(path), path.to_owned()));
        let mut entries: Vec<_> = fs::read_dir(path).unwrap().map(Result::unwrap).collect();
        if self.is_sorted {
            entries.sort_by_key(fs::DirEntry::file_name);
        }
        for path in entries.iter().filter(|_| depth + 1 < self.max_depth).map(fs::DirEntry::path) {
            let what = match fs::metadata(&path) {
                Ok(metadata) if !metadata.is_dir() => continue,
                Ok(_) => {
                    let Some(above) = above.iter().find(|above| above.0 == id(&path)) else {
                        self.below(&path, above, answers);
                        continue;
                    };
                    What::Loop(above.1.clone())
                }
                Err(error) => match error.raw_os_error().unwrap() {
                    libc::ENOENT | libc::ENOTDIR => continue,
                    errno => What::Error(errno),
                },
            };
            answers.push((path, depth + 1, what));
        }
        above.pop();
        if self.is_post_order {
            answers.push((path.to_owned(), depth, What::Second));
        }
    }
}

fn answer(error: &Error) -> Answer {
    let errno = errno(error);
    let what = match error.loop_ancestor() {
        Some(ancestor) if errno == libc::ELOOP => What::Loop(ancestor.to_owned()),
        _ => What::Error(errno),
    };
    (error.path().to_owned(), error.depth(), what)
}

fn id(path: &Path) -> (u64, u64) {
    let metadata = fs::metadata(path).unwrap();
    (metadata.dev(), metadata.ino())
}

/// The root of the tree that is walked.
const ROOT: &str = "root";

/// Directories, and links to directories, to files, to nothing, to themselves, to other links, and to what is above the root. A
/// link leads back from there.
fn make(above: &Path, seed: u64) {
    let at = &above.join(ROOT);
    tree::make(above, &["beside/below/", "root/"]);
    symlink("../root/d0", above.join("beside/back")).unwrap();
    let mut random = Random(seed);
    let mut dirs = vec![at.clone()];
    for number in 0..9 {
        let dir = dirs[random.below(dirs.len())].join(format!("d{number}"));
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("file"), "").unwrap();
        dirs.push(dir);
    }
    let mut links: Vec<PathBuf> = Vec::new();
    for number in 0..6 {
        let dir = &dirs[random.below(dirs.len())];
        let link = dir.join(format!("l{number}"));
        let to = dirs[random.below(dirs.len())].clone();
        let target = match random.below(12) {
            0..4 => to,
            4..7 => {
                let up: PathBuf = dir.strip_prefix(at).unwrap().iter().map(|_| "..").collect();
                Path::new(".").join(up).join(to.strip_prefix(at).unwrap())
            }
            7 if !links.is_empty() => links[random.below(links.len())].clone(),
            8 => dirs[1].join(["file", "nothing", "file/below"][random.below(3)]),
            9 => link.clone(),
            11 => [above.to_owned(), above.join("beside")][random.below(2)].clone(),
            _ => PathBuf::from([".", ".."][random.below(2)]),
        };
        symlink(target, &link).unwrap();
        links.push(link);
    }
}

fn seeds() -> u64 {
    if runs_long() { 1000 } else { 24 }
}

/// A tree of [`make`], and its root.
pub fn made(seed: u64) -> (Tree, PathBuf) {
    let tree = Tree::new(|at| make(at, seed));
    let root = tree.path().join(ROOT);
    (tree, root)
}

#[test]
fn links_lead_where_std_says() {
    let (mut cases, mut loops, mut deepest) = (0, 0, 0);
    for seed in 0..seeds() {
        let (_tree, root) = made(seed);
        for way in WAYS {
            let expected = way.by_std(&root);
            assert_eq!(way.walked(&mut way.begin(&root)), expected, "seed {seed}, {way:?}");
            loops += expected.iter().filter(|answer| matches!(answer.2, What::Loop(_))).count();
            deepest = expected.iter().map(|answer| answer.1).max().max(Some(deepest)).unwrap();
            cases += 1;
        }
    }
    assert!(loops > 50 && deepest > 5, "{loops} loops, {deepest} levels");
    passed("walk: links that are followed", cases, "walks of made trees, as by `std`, with an error for each loop");
}

#[test]
fn links_are_followed_by_several_threads() {
    let _watchdog = Watchdog::new(300);
    let mut cases = 0;
    for seed in 0..seeds() / 3 {
        let (_tree, root) = made(seed);
        for way in WAYS {
            let mut expected = way.by_std(&root);
            expected.sort();
            for threads in [2, 8] {
                let parts = way.begin(&root).spread(threads, |worker| way.walked(worker));
                let mut answers: Vec<_> = parts.into_iter().flatten().collect();
                answers.sort();
                assert_eq!(answers, expected, "seed {seed}, {way:?}, {threads} threads");
                cases += 1;
            }
        }
    }
    passed("spread: links that are followed", cases, "walks of made trees by 2 and 8 threads");
}

#[test]
fn links_lead_where_find_says() {
    if !has_gnu("find", "follow::links_lead_where_find_says") {
        return;
    }
    for seed in 0..seeds() {
        let (_tree, root) = made(seed);
        let found = run(Command::new("find").arg("-L").arg(&root).args(["-type", "d", "-print0"]));
        let paths = found.stdout.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        let mut found: Vec<_> = paths.map(|path| PathBuf::from(OsStr::from_bytes(path))).collect();
        found.sort();
        let answers = PLAIN.walked(&mut PLAIN.begin(&root));
        let first = answers.into_iter().filter(|answer| answer.2 == What::First);
        let mut paths: Vec<_> = first.map(|answer| answer.0).collect();
        paths.sort();
        assert_eq!(paths, found, "seed {seed}");
    }
}
