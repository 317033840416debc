//! The model of both walks: a recursion over `std::fs` that returns what a walk must yield, for the
//! requests of its caller. It also has checks for walks that lose something.

use super::requests::{Request, Requests};
use super::scan::{Found, errno, path, sorted, type_by_std};
use super::tree::{Random, chmod};
use lendir::{Error, FileType, Order};
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// One result of `Walk::next` or `WalkDirs::next`, or an error of `Dir::next`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    pub path: PathBuf,
    pub depth: usize,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// An entry of a `Walk`.
    Entry { is_last: bool },
    /// A directory, with the names and inode numbers of the entries that it yielded.
    First(Vec<Found>),
    /// The second visit of a directory, after the visits of its subtree.
    Second,
    /// The number of an error. `ELOOP` also stands for a link that leads back: see [`check_loop`].
    Error(i32),
}

impl Visit {
    pub fn new(path: impl Into<PathBuf>, depth: usize, what: What) -> Self {
        Self { path: path.into(), depth, what }
    }

    /// Returns the paths of the yielded entries.
    pub fn entries(&self) -> impl Iterator<Item = PathBuf> {
        let found = if let What::First(found) = &self.what { &found[..] } else { &[] };
        found.iter().map(|entry| self.path.join(OsStr::from_bytes(&entry.name)))
    }

    pub fn errno(&self) -> Option<i32> {
        if let What::Error(errno) = self.what { Some(errno) } else { None }
    }
}

impl From<&Error> for Visit {
    fn from(error: &Error) -> Self {
        check_loop(error);
        Self::new(path(error), error.depth(), What::Error(errno(error)))
    }
}

/// Checks that the error of a link that leads back, and no other error, names the ancestor.
fn check_loop(error: &Error) {
    let path = path(error);
    let is_loop = errno(error) == libc::ELOOP && path.exists();
    let ancestor = path.ancestors().skip(1).find(|above| is_loop && id(above) == id(path));
    assert_eq!(error.loop_ancestor(), ancestor, "{error}");
}

fn id(path: &Path) -> (u64, u64) {
    let metadata = fs::metadata(path).unwrap();
    (metadata.dev(), metadata.ino())
}

/// The walk that the model predicts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Walk,
    WalkDirs { second_visits: bool },
}

/// Returns the visits that a `WalkDirs` must yield, in order.
pub fn expected_visits(
    root: &Path,
    second_visits: bool,
    requests: impl Fn(&Path) -> Requests,
) -> Vec<Visit> {
    expected(Kind::WalkDirs { second_visits }, root, requests)
}

/// Returns what a walk must yield, in order. `requests` returns what the caller does in the
/// directory of a path.
pub fn expected(kind: Kind, root: &Path, requests: impl Fn(&Path) -> Requests) -> Vec<Visit> {
    let mut visits = Vec::new();
    below(kind, root, 0, &requests, &mut visits);
    visits
}

fn below(
    kind: Kind,
    dir: &Path,
    depth: usize,
    requests_for: &impl Fn(&Path) -> Requests,
    visits: &mut Vec<Visit>,
) {
    let (requests, read) = (requests_for(dir), fs::read_dir(dir));
    let error = read.as_ref().err().map(|error| What::Error(error.raw_os_error().unwrap()));
    let error = error.map(|error| Visit::new(dir, depth, error));
    let entries = read.into_iter().flatten().filter(|_| depth < requests.max_depth);
    let entries = entries.map(Result::unwrap);
    let found =
        entries.map(|entry| Found { file_type: type_by_std(&entry), ..Found::from_std(&entry) });
    let mut found: Vec<_> = found.collect();
    let mut yielded = found[..requests.next_calls.min(found.len())].to_vec();
    // The requests are made about this number of entries.
    let mut asked = yielded.len();
    let mut names = None;
    found = sorted(found, requests.listing.unwrap_or(Order::Unsorted));
    if kind == Kind::Walk {
        visits.extend(error);
    } else {
        if requests.names_at.is_some() {
            let reverse = || yielded.iter().rev().cloned().collect();
            let of = if requests.listing.is_some() { found.clone() } else { reverse() };
            names = Some(requests.names(dir, &of));
        }
        if requests.listing.is_some() {
            // The listing has all entries, including those that were yielded before.
            yielded.extend_from_slice(&found);
            asked = 0;
        }
        yielded.iter_mut().for_each(Found::clear_unknown_to_std);
        // If the directory exists, a `WalkDirs` yields it, and its reader gets the error.
        let is_there = error.is_none() || dir.symlink_metadata().is_ok();
        visits.extend(is_there.then(|| Visit::new(dir, depth, What::First(yielded))));
        visits.extend(error.filter(|_| !is_there || !requests.hides_errors(depth)));
    }
    let is_named = names.is_some();
    let of_found = || found.iter().map(|entry| entry.name.clone()).collect();
    for (at, name) in names.unwrap_or_else(of_found).iter().enumerate() {
        let (path, depth) = (dir.join(OsStr::from_bytes(name)), depth + 1);
        if kind == Kind::Walk {
            let is_last = at + 1 == found.len();
            visits.push(Visit::new(&path, depth, What::Entry { is_last }));
        }
        let request = requests.last_at(&path).filter(|_| !is_named && at < asked);
        let is_entered = match (request, found.get(at).filter(|_| !is_named)) {
            (Some(Request::SkipRest), _) if kind == Kind::Walk => break,
            (Some(Request::SkipRest | Request::SkipSubtree), _) => false,
            (_, Some(entry)) if entry.file_type == FileType::Symlink => {
                requests.follows || request == Some(Request::Follow)
            }
            (_, entry) => entry.is_none_or(|entry| entry.file_type == FileType::Directory),
        };
        if !is_entered || depth >= requests.max_depth {
            continue;
        }
        let is_there = if is_named && !requests.follows {
            match path.symlink_metadata() {
                Ok(found) if !found.is_dir() => Err(libc::ENOTDIR),
                Ok(_) => is_target(&path, depth),
                Err(error) => Err(error.raw_os_error().unwrap()),
            }
        } else if requests.may_follow() {
            is_target(&path, depth)
        } else {
            Ok(true)
        };
        match is_there {
            Ok(true) => below(kind, &path, depth, requests_for, visits),
            Ok(false) => {}
            Err(errno) => visits.push(Visit::new(&path, depth, What::Error(errno))),
        }
    }
    // An unreadable directory has a second visit, too, unless it cannot be found.
    if kind == (Kind::WalkDirs { second_visits: true }) && dir.symlink_metadata().is_ok() {
        visits.push(Visit::new(dir, depth, What::Second));
    }
}

/// Returns `true` if a directory or a link to one is at `path`, which has this depth. Below a link,
/// a directory may be a loop, too.
fn is_target(path: &Path, depth: usize) -> Result<bool, i32> {
    match fs::metadata(path) {
        Ok(target) if !target.is_dir() => Ok(false),
        Ok(_) if path.ancestors().skip(1).take(depth).any(|above| id(above) == id(path)) => {
            Err(libc::ELOOP)
        }
        Ok(_) => Ok(true),
        Err(error) => match error.raw_os_error().unwrap() {
            libc::ENOENT | libc::ENOTDIR => Ok(false),
            errno => Err(errno),
        },
    }
}

/// Takes permissions from some directories below the root.
pub fn forbid_some(root: &Path, seed: u64) {
    let mut random = Random(seed);
    // The deepest come first, because the contents of a locked directory are out of reach.
    let dirs = expected_visits(root, false, |_| Requests::ALL);
    for dir in dirs.iter().skip(1).rev().filter(|visit| visit.errno().is_none()) {
        let mode = [0o300, 0o100, 0o400, 0o600, 0].get(random.below(15)).copied();
        chmod(&dir.path, mode.unwrap_or(0o700));
    }
}

/// Sorts visits by path, because the visits of several threads have no order.
pub fn in_one_order(visits: impl IntoIterator<Item = Visit>) -> Vec<Visit> {
    let mut visits: Vec<_> = visits.into_iter().collect();
    visits.sort_by(|a, b| {
        let key = |visit: &Visit| match visit.what {
            What::Entry { .. } | What::First(_) => 0,
            What::Second => 1,
            What::Error(errno) => 2 + errno,
        };
        // As bytes, because `Path` compares name by name, which takes longer than the walk.
        (a.path.as_os_str().as_bytes(), key(a)).cmp(&(b.path.as_os_str().as_bytes(), key(b)))
    });
    visits
}

/// Returns the paths of the first visits, sorted.
pub fn directories(visits: &[Visit]) -> Vec<&Path> {
    let first = visits.iter().filter(|visit| matches!(visit.what, What::First(_)));
    let mut paths: Vec<_> = first.map(|visit| &*visit.path).collect();
    paths.sort_unstable_by_key(|path| path.as_os_str());
    paths
}

pub fn errors(visits: &[Visit]) -> Vec<(&Path, i32)> {
    visits.iter().filter_map(|visit| Some((&*visit.path, visit.errno()?))).collect()
}

/// Checks that no visit comes twice or from elsewhere, and that each missing visit has an error:
/// its own, or one of an ancestor.
pub fn assert_nothing_is_lost_silently(visits: &[Visit], expected: &[Visit], what: &str) {
    // As bytes, because `Path` compares name by name.
    let [seen, expected] = [visits, expected].map(|visits| {
        let entries =
            visits.iter().flat_map(Visit::entries).map(|path| (path.into_os_string(), None));
        let visits = visits.iter().filter(|visit| visit.errno().is_none());
        let visits = visits
            .map(|visit| (visit.path.clone().into_os_string(), Some(visit.what == What::Second)));
        let mut all: Vec<_> = entries.chain(visits).collect();
        all.sort_unstable();
        all
    });
    let failed: HashSet<_> = errors(visits).into_iter().map(|(path, _)| path).collect();
    assert!(seen.windows(2).all(|pair| pair[0] != pair[1]), "{what}: a path came twice");
    let is_told = |path: &OsString| Path::new(path).ancestors().any(|path| failed.contains(path));
    let missing = expected.iter().filter(|visit| seen.binary_search(visit).is_err());
    let silent: Vec<_> = missing.filter(|(path, _)| !is_told(path)).collect();
    assert!(silent.is_empty(), "{what}, errors of {failed:?}: {silent:?} lost without an error");
    let other = seen.iter().find(|visit| expected.binary_search(visit).is_err());
    assert!(other.is_none(), "{what}: {other:?} is yielded, but not in the tree");
}

/// Returns the errors of a `Walk` in trouble, after checking what always holds. Entries come in the
/// order of `all`. An error comes right after the entries of its directory and their subtrees. Each
/// missing entry is below an error, unless `may_be_silent`.
pub fn errors_between<'v>(
    visits: &'v [Visit],
    all: &[Visit],
    may_be_silent: bool,
    what: &str,
) -> Vec<(&'v Path, i32)> {
    let mut expected = all.iter().map(|visit| &visit.path);
    for (at, Visit { path, depth, what: found }) in visits.iter().enumerate() {
        if !matches!(found, What::Error(_)) {
            let is_next = expected.any(|next| next == path);
            assert!(is_next, "{what}: {} comes twice or in another place", path.display());
            continue;
        }
        let is_right_after = *depth == 0 || at > 0 && visits[at - 1].path.starts_with(path);
        let is_below = |visit: &Visit| visit.path.starts_with(path) && visit.path != *path;
        let is_between = visits[..at].iter().any(is_below) && visits[at + 1..].iter().any(is_below);
        let is_placed = is_right_after && !is_between;
        assert!(is_placed, "{what}: the error of {} is not in its place", path.display());
    }
    if !may_be_silent {
        assert_nothing_is_lost_silently(visits, all, what);
    }
    errors(visits)
}
