//! Requests by name and about entries, with a model of the directories that a walk enters.

use crate::parallel::{OPTIONS, THREADS};
use crate::support::machine::{Watchdog, runs_long};
use crate::support::process::as_nobody;
use crate::support::scan::{ORDERS, errno};
use crate::support::tree::{self, Random, Tree, chmod};
use crate::visits::{Requests, directories, expected_visits};
use lendir::{Dir, Entry, FileType, Listing, StatxFlags, WalkDirs};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    Skip,
    Enter,
    Follow,
}

/// The requests so far.
#[derive(Default)]
struct Model {
    /// The last request for each name, in order.
    requests: Vec<(Vec<u8>, Request)>,
    /// Whether only named directories are entered.
    only_named: bool,
    /// The names in the order of the last listing.
    listed: Option<Vec<Vec<u8>>>,
}

/// A name that is entered, or its error. The path of the error ends with the name.
type Outcome = (Vec<u8>, Result<(), i32>);

impl Model {
    /// Makes up to three random calls about an entry. Its record says whether it is a directory, a
    /// link or a file.
    fn about(&mut self, entry: &Entry<'_>, random: &mut Random) {
        let is_noted = entry.d_type() != FileType::RegularFile && !self.only_named;
        for _ in 0..random.below(4) {
            let request = match random.below(4) {
                0 => {
                    entry.skip_subtree();
                    Request::Skip
                }
                1 => {
                    entry.follow();
                    Request::Follow
                }
                2 => {
                    entry.stat().unwrap();
                    continue;
                }
                _ => {
                    entry.statx(StatxFlags::TYPE).unwrap();
                    continue;
                }
            };
            if is_noted {
                self.request(entry.name(), request);
            }
        }
    }

    fn request(&mut self, name: &[u8], request: Request) {
        self.requests.retain(|(requested, _)| requested != name);
        self.requests.push((name.to_vec(), request));
    }

    fn skip_subdirs(&mut self) {
        (self.requests, self.only_named) = (vec![], true);
    }

    /// Returns the expected outcomes. `there` are the names that exist, in the kernel's order.
    /// Names that were yielded come first, in their order. Other names follow in the order of their
    /// last requests.
    fn expected(mut self, there: &[Vec<u8>]) -> Vec<Outcome> {
        let listed = self.listed.take().unwrap_or(there.to_vec());
        let is_noted = |name: &Vec<u8>| !self.only_named && !name.ends_with(b"f");
        let mut all = Vec::new();
        for name in listed.into_iter().filter(is_noted) {
            let of_name = self.requests.iter().position(|(requested, _)| *requested == name);
            let request = of_name.map(|at| self.requests.remove(at).1);
            all.push((name, request));
        }
        all.extend(self.requests.into_iter().map(|(name, request)| (name, Some(request))));
        all.into_iter().filter_map(|(name, request)| outcome(&name, request, there)).collect()
    }
}

fn outcome(name: &[u8], request: Option<Request>, there: &[Vec<u8>]) -> Option<Outcome> {
    let kind = name.last().filter(|_| there.iter().any(|there| there == name));
    let what = match (request, kind) {
        (Some(Request::Skip), _) => return None,
        (Some(_), None) if !is_name(name) => Err(libc::EINVAL),
        (Some(_), None) if name.len() > 255 => Err(libc::ENAMETOOLONG),
        (_, Some(b'd')) | (Some(Request::Follow), Some(b'l')) => Ok(()),
        (Some(Request::Enter), None) => Err(libc::ENOENT),
        (Some(Request::Enter), _) => Err(libc::ENOTDIR),
        _ => return None,
    };
    let shown = name
        .iter()
        .flat_map(|byte| if *byte == 0 { &b"\\0"[..] } else { std::slice::from_ref(byte) });
    Some((shown.copied().collect(), what))
}

fn is_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && !name.contains(&b'/') && !name.contains(&0)
}

/// Makes random calls, fewer than `most`.
fn any_calls<S>(
    dir: &mut Dir<'_, S>,
    most: usize,
    names: &[Vec<u8>],
    random: &mut Random,
) -> Model {
    let mut model = Model::default();
    let mut listing = Listing::with_order(ORDERS[random.below(ORDERS.len())]);
    for _ in 0..random.below(most) {
        let name = &names[random.below(names.len())];
        match random.below(12) {
            0..5 => {
                if let Some(entry) = dir.next().unwrap() {
                    model.about(&entry, random);
                }
            }
            7 => match random.below(60) {
                0 => {
                    dir.skip_subdirs();
                    model.skip_subdirs();
                }
                1..4 => {
                    (0..=random.below(3)).for_each(|_| dir.read_into(&mut listing).unwrap());
                    model.listed =
                        Some(listing.iter().map(|entry| entry.name().to_vec()).collect());
                }
                4..7 => {
                    let wanted = |entry: &Entry<'_>| {
                        model.about(entry, random);
                        entry.name() == name
                    };
                    dir.find(wanted).unwrap();
                }
                7 => drop(dir.count().unwrap()),
                _ => {}
            },
            8 => {
                assert!(dir.enter(name));
                model.request(name, Request::Enter);
            }
            9 => {
                assert!(dir.follow_name(name));
                model.request(name, Request::Follow);
            }
            _ => {
                dir.skip_name(name);
                model.request(name, Request::Skip);
            }
        }
    }
    model
}

/// Makes a directory, a file and a link of each number.
fn make(at: &Path, count: usize, target: &Path) {
    for number in 0..count {
        fs::create_dir(at.join(format!("{number:03}d"))).unwrap();
        File::create(at.join(format!("{number:03}f"))).unwrap();
        symlink(target, at.join(format!("{number:03}l"))).unwrap();
    }
}

/// Whatever requests the caller makes, in whatever order, the walk enters what the model says, in
/// the same order.
#[test]
fn requests_by_name_enter_what_the_model_enters() {
    let _watchdog = Watchdog::new(300);
    let outside = Tree::of(&["below/"]);
    for count in [2, 60] {
        let tree = Tree::new(|at| make(at, count, &outside.path().join("below")));
        let there: Vec<_> = fs::read_dir(tree.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_encoded_bytes())
            .collect();
        // Names that are never yielded. Some of them are prefixes or extensions of others.
        let others = [
            "",
            ".",
            "..",
            "000",
            "000d/",
            "000dd",
            "zzz",
            "0",
            "001d\0",
            "001\0d",
            "a\\0b",
            &"x".repeat(300),
        ];
        let names: Vec<_> = there.iter().cloned().chain(others.map(Vec::from)).collect();
        for seed in 0..if runs_long() { 4000 } else { 60 } {
            for (threads, second_visits) in
                THREADS.map(|threads| (threads, true)).into_iter().chain([(1, false)])
            {
                let walk = WalkDirs::options()
                    .max_open(4)
                    .second_visits(second_visits)
                    .open(tree.path())
                    .unwrap();
                let (model, outcomes) = (Mutex::<Model>::default(), Mutex::new(Vec::new()));
                let _ = walk.run_parallel(threads, |worker| {
                    let outcome = |path: &Path, what: Result<(), i32>| {
                        // As bytes, because `Path` takes "a/" for "a".
                        let path = path
                            .as_os_str()
                            .as_bytes()
                            .strip_prefix(tree.path().as_os_str().as_bytes());
                        let name = path.unwrap().strip_prefix(b"/").unwrap();
                        outcomes.lock().unwrap().push((name.to_vec(), what));
                    };
                    while let Some(mut dir) =
                        worker.next_ok(|error| outcome(error.path(), Err(errno(&error))))
                    {
                        if dir.is_second_visit() {
                            assert!(!dir.enter("000d") && !dir.follow_name("000l"));
                        } else if dir.depth() > 0 {
                            outcome(dir.path(), Ok(()));
                        } else {
                            let mut random = Random(1 + seed);
                            let most = [600, 1, 2, 4, 30, 300][random.below(6)];
                            *model.lock().unwrap() = any_calls(&mut dir, most, &names, &mut random);
                        }
                    }
                });
                let mut outcomes = outcomes.into_inner().unwrap();
                let mut expected = model.into_inner().unwrap().expected(&there);
                if threads > 1 {
                    outcomes.sort();
                    expected.sort();
                }
                let what = format!(
                    "{count}, seed {seed}, {threads} threads, second visits {second_visits}"
                );
                assert_eq!(outcomes, expected, "{what}");
            }
        }
    }
}

/// The caller skips the contents of each directory and enters its children by name. So the walk
/// reads no directory, and needs no permission to read one.
#[test]
fn threads_enter_named_directories() {
    let _watchdog = Watchdog::new(300);
    as_nobody(enter_unreadable_directories);
}

fn enter_unreadable_directories() {
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
            let parts = options.begin(tree.path()).run_parallel(threads, |worker| {
                let mut paths = Vec::new();
                while let Some(mut dir) = worker.next().unwrap() {
                    if dir.is_second_visit() {
                        continue;
                    }
                    dir.skip_subdirs();
                    for name in below.get(dir.path()).into_iter().flatten() {
                        dir.enter(name.as_bytes());
                    }
                    paths.push(dir.path().to_owned());
                }
                paths
            });
            let mut paths: Vec<_> = parts.into_iter().flatten().collect();
            paths.sort_unstable_by(|a: &PathBuf, b| a.as_os_str().cmp(b.as_os_str()));
            assert_eq!(paths, all, "{threads} threads, {options:?}");
        }
    }
}
