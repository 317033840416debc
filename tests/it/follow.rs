//! Symbolic links that the caller follows: `Dir::follow_entry` and `Dir::follow_name`, against `std` and `find -L`.

use crate::fixture::run;
use crate::support::machine::{Watchdog, passed, runs_long, skip};
use crate::support::process;
use crate::support::scan::errno;
use crate::support::tree::{self, Random, Tree};
use crate::visits::Next;
use crate::walk_bounds::leave_room;
use lendir::{Error, FileType, Listing, Walk};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// One answer of the walk: a path, its depth, and what it is.
type Answer = (PathBuf, usize, What);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    First,
    Second,
    Error(i32),
}

#[derive(Clone, Copy, Debug)]
struct Way {
    is_sorted: bool,
    is_post_order: bool,
    max_open: usize,
    max_depth: usize,
}

const PLAIN: Way = Way { is_sorted: false, is_post_order: false, max_open: 32, max_depth: usize::MAX };
const WAYS: [Way; 7] = [
    PLAIN,
    Way { max_open: 4, ..PLAIN },
    Way { is_post_order: true, ..PLAIN },
    Way { is_sorted: true, ..PLAIN },
    Way { is_sorted: true, is_post_order: true, max_open: 4, ..PLAIN },
    Way { is_post_order: true, max_open: 4, ..PLAIN },
    Way { max_depth: 3, is_post_order: true, ..PLAIN },
];

impl Way {
    fn begin(self, root: &Path) -> Walk {
        let options = Walk::options().post_order(self.is_post_order).max_open(self.max_open).max_depth(self.max_depth);
        options.open(root).unwrap()
    }

    /// All that is left of the walk, which follows all links.
    fn walked(self, walk: &mut impl Next) -> Vec<Answer> {
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
            let what = if dir.is_second_visit() { What::Second } else { What::First };
            answers.push((dir.path().to_owned(), dir.depth(), what));
            if self.is_sorted {
                dir.read_into(&mut listing).unwrap();
                for entry in &listing {
                    let is_link = entry.file_type() == FileType::Symlink && dir.depth() + 1 < self.max_depth;
                    assert_eq!(dir.follow_name(entry.name()), is_link, "{dir:?}");
                }
            } else {
                while dir.next().unwrap().is_some() {
                    dir.follow_entry(); // whatever it is
                }
            }
        }
    }

    fn by_std(self, root: &Path) -> Vec<Answer> {
        let canonical = fs::canonicalize(root).unwrap();
        let mut above: Vec<_> = canonical.ancestors().skip(1).map(id).collect();
        let mut answers = Vec::new();
        self.below(root, 0, &mut above, &mut answers);
        answers
    }

    fn below(self, path: &Path, depth: usize, above: &mut Vec<(u64, u64)>, answers: &mut Vec<Answer>) {
        answers.push((path.to_owned(), depth, What::First));
        above.push(id(path));
        let mut entries: Vec<_> = fs::read_dir(path).unwrap().map(Result::unwrap).collect();
        if self.is_sorted {
            entries.sort_by_key(fs::DirEntry::file_name);
        }
        for entry in entries.iter().filter(|_| depth + 1 < self.max_depth) {
            let path = entry.path();
            match fs::metadata(&path) {
                Ok(metadata) if !metadata.is_dir() => {}
                Ok(_) if above.contains(&id(&path)) => answers.push((path, depth + 1, What::Error(libc::ELOOP))),
                Ok(_) => self.below(&path, depth + 1, above, answers),
                Err(error) if matches!(errno(&error), libc::ENOENT | libc::ENOTDIR) => {}
                Err(error) => answers.push((path, depth + 1, What::Error(errno(&error)))),
            }
        }
        above.pop();
        if self.is_post_order {
            answers.push((path.to_owned(), depth, What::Second));
        }
    }
}

fn answer(error: &Error) -> Answer {
    (error.path().to_owned(), error.depth(), What::Error(errno(error)))
}

fn id(path: &Path) -> (u64, u64) {
    let metadata = fs::metadata(path).unwrap();
    (metadata.dev(), metadata.ino())
}

/// Some directories, and links to them, to files, to nothing, to themselves, to other links, and if `leaves` to what is above.
fn make(at: &Path, seed: u64, leaves: bool) {
    let mut random = Random(seed);
    let mut dirs = vec![at.to_owned()];
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
        let target = match random.below(if leaves { 12 } else { 11 }) {
            0..4 => to,
            4..7 => {
                let up: PathBuf = dir.strip_prefix(at).unwrap().iter().map(|_| "..").collect();
                Path::new(".").join(up).join(to.strip_prefix(at).unwrap())
            }
            7 if !links.is_empty() => links[random.below(links.len())].clone(),
            8 => dirs[1].join(["file", "nothing", "file/below"][random.below(3)]),
            9 => link.clone(),
            11 => at.join("..").join(["", ".."][random.below(2)]),
            _ => PathBuf::from([".", ".."][random.below(if leaves || dir != at { 2 } else { 1 })]),
        };
        symlink(target, &link).unwrap();
        links.push(link);
    }
}

fn seeds() -> u64 {
    if runs_long() { 1000 } else { 24 }
}

#[test]
fn links_lead_where_std_says() {
    let (mut cases, mut loops, mut deepest) = (0, 0, 0);
    for seed in 0..seeds() {
        let tree = Tree::new(|at| make(at, seed, true));
        for way in WAYS {
            let expected = way.by_std(tree.path());
            assert_eq!(way.walked(&mut way.begin(tree.path())), expected, "seed {seed}, {way:?}");
            loops += expected.iter().filter(|answer| answer.2 == What::Error(libc::ELOOP)).count();
            deepest = expected.iter().map(|answer| answer.1).max().max(Some(deepest)).unwrap();
            cases += 1;
        }
    }
    assert!(loops > 50 && deepest > 5, "{loops} loops, {deepest} levels");
    passed(
        "walk: links that are followed",
        cases,
        "walks of made trees, as `std` finds them, with an error for each loop",
    );
}

#[test]
fn links_are_followed_by_several_threads() {
    let _watchdog = Watchdog::new(300);
    let mut cases = 0;
    for seed in 0..seeds() / 3 {
        let tree = Tree::new(|at| make(at, seed, true));
        for way in WAYS {
            let mut expected = way.by_std(tree.path());
            expected.sort();
            for threads in [2, 8] {
                let parts = way.begin(tree.path()).spread(threads, |worker| way.walked(worker));
                let mut answers: Vec<_> = parts.into_iter().flatten().collect();
                answers.sort();
                assert_eq!(answers, expected, "seed {seed}, {way:?}, {threads} threads");
                cases += 1;
            }
        }
    }
    passed("spread: links that are followed", cases, "walks of made trees by 2 and 8 threads");
}

/// Loops below the root only, as `find` knows no others.
#[test]
fn links_lead_where_find_says() {
    let has_find =
        Command::new("find").arg("--version").output().is_ok_and(|output| output.stdout.starts_with(b"find (GNU"));
    if !has_find {
        return skip("follow::links_lead_where_find_says", "GNU find");
    }
    for seed in 0..seeds() {
        let tree = Tree::new(|at| make(at, seed, false));
        let found = run(Command::new("find").arg("-L").arg(tree.path()).args(["-type", "d", "-print0"]));
        let paths = found.stdout.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        let mut found: Vec<_> = paths.map(|path| PathBuf::from(OsStr::from_bytes(path))).collect();
        found.sort();
        let answers = PLAIN.walked(&mut PLAIN.begin(tree.path()));
        let first = answers.into_iter().filter(|answer| answer.2 == What::First);
        let mut paths: Vec<_> = first.map(|answer| answer.0).collect();
        paths.sort();
        assert_eq!(paths, found, "seed {seed}");
    }
}

/// A directory that the walk reaches through a link has other ancestors than one that it reaches directly, as deep.
#[test]
fn ancestors_through_a_link_are_forgotten_with_it() {
    let tree = Tree::of(&["a/", "b/t/"]);
    let at = |name: &str| tree.path().join(name);
    symlink("../b/t", at("a/l")).unwrap();
    symlink("../../a", at("b/t/to_a")).unwrap();
    symlink("..", at("b/t/to_b")).unwrap();
    for way in WAYS {
        let way = Way { is_sorted: true, ..way };
        assert_eq!(way.walked(&mut way.begin(tree.path())), way.by_std(tree.path()), "{way:?}");
    }
}

#[test]
fn only_links_that_the_caller_follows_are_entered() {
    let tree = Tree::of(&["a/below/", "b/"]);
    for name in ["1", "2", "3", "4"] {
        symlink("a", tree.path().join(name)).unwrap();
    }
    let paths = |walk: &mut Walk| {
        let mut names = Vec::new();
        while let Some(dir) = walk.next().unwrap() {
            if dir.depth() == 1 {
                names.push(dir.name_os().to_str().unwrap().to_owned());
            }
        }
        names.sort();
        names
    };
    let mut walk = Walk::open(tree.path()).unwrap();
    let mut root = walk.next().unwrap().unwrap();
    assert!(!root.follow_name("1"), "it has not been lent");
    root.follow_entry();
    while let Some(entry) = root.next().unwrap() {
        let name = entry.name().to_vec();
        match &name[..] {
            b"1" => root.follow_entry(),
            b"2" => {
                root.follow_entry();
                root.skip_entry();
                root.follow_entry();
            }
            b"3" => assert!(root.follow_name("3") && !root.follow_name("3")),
            b"4" => {}
            _ => assert!(!root.follow_name(&name), "it is not a link"),
        }
    }
    root.follow_entry(); // after the end
    assert_eq!(paths(&mut walk), ["1", "3", "a", "b"]);

    // After `skip_all`, and in a directory that is dropped midway.
    walk.reopen(tree.path()).unwrap();
    let mut root = walk.next().unwrap().unwrap();
    root.skip_all();
    while root.next().unwrap().is_some() {
        root.follow_entry();
    }
    assert!(!root.follow_name("1"));
    assert!(walk.next().unwrap().is_none());
    walk.reopen(tree.path()).unwrap();
    let mut root = walk.next().unwrap().unwrap();
    let mut expected = vec!["a".to_owned(), "b".to_owned()];
    while let Some(entry) = root.next().unwrap() {
        if entry.file_type() == FileType::Symlink {
            expected.push(entry.name_os().to_str().unwrap().to_owned());
            root.follow_entry();
            break;
        }
    }
    expected.sort();
    assert_eq!(paths(&mut walk), expected);
}

/// `..` leads elsewhere from a directory that a link led to: the levels above it are found by names.
#[test]
fn levels_above_links_are_closed_and_found() {
    const LEVELS: usize = 40;
    let parts = Tree::new(|_| ());
    for level in 0..LEVELS {
        tree::make(parts.path(), &[format!("{level}/a/"), format!("{level}/z/")]);
        if level > 0 {
            symlink(parts.path().join(level.to_string()), parts.path().join(format!("{}/m", level - 1))).unwrap();
        }
    }
    let root = parts.path().join("0");
    for way in WAYS {
        assert_eq!(way.walked(&mut way.begin(&root)), way.by_std(&root), "{way:?}");
    }
}

/// The way up to the ancestors takes two descriptors at a time; the first level, the current one and the link's target, three.
#[test]
fn process_with_few_descriptors_follows_links() {
    process::run("follow::process_with_few_descriptors_follows_links", 60, || {
        for seed in 0..8 {
            let tree = Tree::new(|at| make(at, seed, true));
            for way in WAYS {
                let expected = way.by_std(tree.path());
                let others = leave_room(5);
                let answers = way.walked(&mut way.begin(tree.path()));
                drop(others);
                assert_eq!(answers, expected, "seed {seed}, {way:?}");
            }
        }
    });
}
