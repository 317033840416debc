//! Names that the caller passes to `Dir`, with a model of what a walk enters.

use crate::support::machine::{runs_long, watchdog};
use crate::support::options::{OPTIONS, THREADS};
use crate::support::process::as_nobody;
use crate::support::requests::Requests;
use crate::support::scan::{errno, path};
use crate::support::tree::{self, Random, Tree, chmod};
use crate::support::visits::{directories, expected_visits};
use lendir::{Dir, Error, Listing, WalkDirs};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// A name that is entered, or its error.
type Outcome = (String, Result<(), i32>);

/// Returns what comes of a name. Its last letter says whether it is a directory, a link to one, or
/// a file, if it exists.
fn outcome(name: &str, follows: bool, there: &[String]) -> Option<Outcome> {
    let kind = name.chars().last().filter(|_| there.iter().any(|there| there == name));
    let what = match (kind, follows) {
        (Some('d'), _) | (Some('l'), true) => Ok(()),
        (None, _) if name.len() > 255 => Err(libc::ENAMETOOLONG),
        (_, true) => return None,
        (None, false) => Err(libc::ENOENT),
        (Some(_), false) => Err(libc::ENOTDIR),
    };
    Some((name.to_owned(), what))
}

/// Makes random calls that do not matter: the names alone do.
fn read_some(dir: &mut Dir<'_>, listing: &mut Listing, random: &mut Random) {
    for _ in 0..random.below(40) {
        match random.below(40) {
            0 => dir.read_into(listing).unwrap(),
            1 => assert!(dir.count().is_ok()),
            2 => dir.skip_subdirs(),
            number => {
                let Some(entry) = dir.next().unwrap() else { return };
                match number {
                    3..8 => entry.follow(),
                    8..13 => entry.skip_subtree(),
                    13..16 => drop(entry.stat().unwrap()),
                    _ => {}
                }
            }
        }
    }
}

/// Reads and requests something, and names some of `names`. Returns the expected outcomes.
fn name_some(
    dir: &mut Dir<'_>,
    names: &[String],
    there: &[String],
    (seed, follows): (u64, bool),
) -> Vec<Outcome> {
    let (mut random, mut listing) = (Random(seed), Listing::new());
    read_some(dir, &mut listing, &mut random);
    dir.skip_subdirs();
    let mut outcomes = Vec::new();
    let most = [1, 4, names.len()][random.below(3)];
    for _ in 0..random.below(most) {
        let name = &names[random.below(names.len())]; // also twice
        assert!(dir.enter_name(name).unwrap());
        outcomes.extend(outcome(name, follows, there));
    }
    while random.below(2) == 0 && dir.next().unwrap().is_some() {}
    if random.below(4) == 0 {
        dir.read_into(&mut listing).unwrap();
    }
    outcomes
}

/// After `skip_subdirs`, the walk enters exactly what the caller names, in that order.
#[test]
fn walk_enters_exactly_the_named_directories() {
    let _watchdog = watchdog();
    let outside = Tree::of(&["below/"]);
    let tree = Tree::new(|at| {
        for number in 0..60 {
            fs::create_dir(at.join(format!("{number}d"))).unwrap();
            File::create(at.join(format!("{number}f"))).unwrap();
            symlink(outside.path().join("below"), at.join(format!("{number}l"))).unwrap();
        }
    });
    let there = fs::read_dir(tree.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let there: Vec<_> = there.map(|name| name.into_string().unwrap()).collect();
    // Others are prefixes or extensions of these.
    let missing = ["0", "1dd", "2d ", "zzz", &"x".repeat(300)].map(String::from);
    let names = [&there[..], &missing].concat();
    for seed in 0..if runs_long() { 4000 } else { 60 } {
        for (threads, second_visits) in
            THREADS.map(|threads| (threads, true)).into_iter().chain([(1, false)])
        {
            let follows = seed % 2 == 0;
            let options = WalkDirs::options().max_open(4).second_visits(second_visits);
            let options = options.follow_links(follows);
            let [outcomes, expected] = [(); 2].map(|()| Mutex::<Vec<Outcome>>::default());
            let add = |path: &Path, what| {
                let name = path.strip_prefix(tree.path()).unwrap().to_str().unwrap().to_owned();
                outcomes.lock().unwrap().push((name, what));
            };
            let _ = options.open(tree.path()).unwrap().run_parallel(threads, |worker| {
                while let Some(mut dir) =
                    worker.next_or_report(|error| add(path(&error), Err(errno(&error))))
                {
                    match dir.depth() {
                        _ if dir.is_second_visit() => {}
                        0 => {
                            *expected.lock().unwrap() =
                                name_some(&mut dir, &names, &there, (seed, follows));
                        }
                        _ => add(dir.path(), Ok(())),
                    }
                }
            });
            let [mut outcomes, mut expected] =
                [outcomes, expected].map(|all| all.into_inner().unwrap());
            if threads > 1 {
                outcomes.sort();
                expected.sort();
            }
            let what = format!("seed {seed}, {threads} threads, second visits {second_visits}");
            assert_eq!(outcomes, expected, "{what}");
        }
    }
}

/// A call that cannot have the effect that its caller wants is an error at once.
#[test]
fn names_need_skip_subdirs_and_one_component() {
    let tree = Tree::of(&["d/"]);
    let root = tree.path().to_str().unwrap();
    // As text, because a `Path` overlooks slashes.
    let path = |error: &Error| error.path().unwrap().to_str().unwrap().to_owned();
    let mut walk = lendir::walk_dirs(tree.path()).unwrap();
    let mut dir = walk.next().unwrap().unwrap();
    let error = dir.enter_name("d").unwrap_err();
    assert_eq!((path(&error), error.depth()), (format!("{root}/d"), 1));
    assert_eq!((error.kind(), error.raw_os_error()), (ErrorKind::InvalidInput, None));
    dir.skip_subdirs();
    for name in ["", ".", "..", "/", "/d", "d/", "d/e", "../d", "d\0"] {
        let error = dir.enter_name(name).unwrap_err();
        let slash = if name.is_empty() { "" } else { "/" };
        assert_eq!(path(&error), format!("{root}{slash}{name}"));
        assert_eq!(errno(&error), libc::EINVAL);
    }
    assert!(walk.next().unwrap().is_none(), "a refused name is entered");
}

/// The caller skips the contents of each directory and enters its children by name. So the walk
/// reads no directory, and needs no permission to read one.
#[test]
fn threads_enter_named_directories() {
    let _watchdog = watchdog();
    as_nobody(|| {
        let tree = Tree::new(|at| tree::random(at, 11));
        let all = expected_visits(tree.path(), false, |_| Requests::ALL);
        let all = directories(&all);
        let mut below = BTreeMap::<_, Vec<_>>::new();
        for path in &all {
            below.entry(path.parent().unwrap()).or_default().push(path.file_name().unwrap());
        }
        for path in all.iter().rev() {
            chmod(path, 0o300);
        }
        for options in OPTIONS {
            for threads in THREADS {
                let parts =
                    options.build().open(tree.path()).unwrap().run_parallel(threads, |worker| {
                        let mut paths = Vec::new();
                        while let Some(mut dir) = worker.next().unwrap() {
                            if !dir.is_second_visit() {
                                dir.skip_subdirs();
                                for name in below.get(dir.path()).into_iter().flatten() {
                                    dir.enter_name(name.as_bytes()).unwrap();
                                }
                                paths.push(dir.path().to_owned());
                            }
                        }
                        paths
                    });
                let mut paths: Vec<_> = parts.into_iter().flatten().collect();
                paths.sort_unstable_by(|a: &PathBuf, b| a.as_os_str().cmp(b.as_os_str()));
                assert_eq!(paths, all, "{threads} threads, {options:?}");
            }
        }
    });
}
