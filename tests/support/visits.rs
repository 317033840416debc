//! Collects the visits of a [`WalkDirs`], and builds the same visits from `std::fs::read_dir`.

use super::scan::{self, Found, ORDERS, errno, sorted, type_by_std};
use super::tree::Random;
use lendir::{Dir, Error, FileType, Listing, Order, WalkDirs, Worker};
use rustix::fs::{AtFlags, fstat, statat};
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirEntry};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A walk or one of its threads.
pub trait Next<S = ()> {
    fn next_dir(&mut self) -> Result<Option<Dir<'_, S>>, Error>;
}

impl<S: Clone> Next<S> for WalkDirs<S> {
    fn next_dir(&mut self) -> Result<Option<Dir<'_, S>>, Error> {
        self.next()
    }
}

impl<S: Clone + Send> Next<S> for Worker<'_, S> {
    fn next_dir(&mut self) -> Result<Option<Dir<'_, S>>, Error> {
        self.next()
    }
}

/// One result of [`WalkDirs::next`], or an error of [`Dir::next`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    pub path: PathBuf,
    pub depth: usize,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A directory, with the names and inode numbers of the entries that it yielded.
    First(Vec<Found>),
    /// The second visit of a directory, after the visits of its subtree.
    Second,
    /// The number of an error. `ELOOP` also stands for a link that leads back: see [`check_loop`].
    Error(i32),
}

/// The calls and requests that a caller makes for one directory.
#[derive(Clone, Copy, Debug)]
pub struct Requests {
    /// The number of entries to read one by one.
    pub next_calls: usize,
    /// The order of the `Listing` into which the caller then reads the whole directory, if any.
    pub listing: Option<Order>,
    /// The number of entries before the call of [`Dir::skip_subdirs`], if any.
    pub skip_subdirs_at: Option<usize>,
    /// The request for an entry.
    pub skip: fn(u64, &[u8]) -> Skip,
    pub seed: u64,
    /// Whether the caller follows all links.
    pub follows: bool,
    /// The option of the walk.
    pub max_depth: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skip {
    No,
    Subtree,
    Name,
    /// Both requests, twice.
    Both,
}

impl Requests {
    /// Reads all entries and skips none.
    pub const ALL: Self = Self {
        next_calls: usize::MAX,
        listing: None,
        skip_subdirs_at: None,
        skip: |_, _| Skip::No,
        seed: 0,
        follows: false,
        max_depth: usize::MAX,
    };

    /// Reads all entries and follows all links.
    pub const FOLLOW: Self = Self { follows: true, ..Self::ALL };

    pub fn sorted(order: Order) -> Self {
        Self { next_calls: 0, listing: Some(order), ..Self::ALL }
    }

    /// Returns random requests, which depend only on the seed and the path.
    pub fn random(seed: u64, path: &Path) -> Self {
        let mut random = Random::of(&(seed, path));
        let seed = random.0;
        let next_calls = [0, 1, random.below(20), random.below(400), usize::MAX][random.below(5)];
        let listing = (random.below(4) == 0).then(|| ORDERS[random.below(ORDERS.len())]);
        let skip_subdirs_at = (random.below(12) == 0).then(|| random.below(3));
        Self { next_calls, listing, skip_subdirs_at, skip: Skip::random, seed, ..Self::ALL }
    }

    fn skip(&self, name: &[u8]) -> Skip {
        (self.skip)(self.seed, name)
    }
}

impl Skip {
    fn random(seed: u64, name: &[u8]) -> Self {
        [Self::Subtree, Self::Name, Self::Both]
            .get(Random::of(&(seed, name)).below(12))
            .copied()
            .unwrap_or(Self::No)
    }
}

pub fn walk(root: &Path, max_open: usize, second_visits: bool) -> WalkDirs {
    WalkDirs::options().max_open(max_open).second_visits(second_visits).open(root).unwrap()
}

/// Returns the remaining visits of `walk`. `requests` returns what the caller does in the directory
/// of a path.
pub fn collect_visits(walk: &mut impl Next, requests: impl Fn(&Path) -> Requests) -> Vec<Visit> {
    let (mut visitor, mut inos) = (Visitor::default(), HashMap::new());
    while visitor.take(walk, |dir| check(dir, &mut inos), &requests) {}
    assert!(walk.next_dir().unwrap().is_none(), "the walk continues after its end");
    visitor.visits
}

/// Checks that `dir` is the directory at its path, and that its parent is the one that was yielded.
/// `inos` holds the inode numbers of the yielded directories.
fn check(dir: &Dir<'_>, inos: &mut HashMap<PathBuf, u64>) {
    assert_eq!(dir.is_link(), dir.depth() > 0 && dir.path().is_symlink(), "{dir:?}");
    if !dir.is_second_visit() {
        inos.insert(dir.path().to_owned(), ino(dir.fd()));
    } else if let Some((parent, name)) = dir.parent_and_name() {
        let path = dir.path().parent().filter(|_| dir.depth() > 0);
        if let Some(path) = path {
            assert_eq!(*inos.entry(path.to_owned()).or_insert(ino(parent)), ino(parent), "{dir:?}");
            assert_eq!(name.to_bytes(), dir.name(), "{dir:?}");
        } else {
            assert!(dir.path().as_os_str().as_bytes().ends_with(name.to_bytes()), "{dir:?}");
            let named = statat(parent, name, AtFlags::empty()).unwrap();
            assert_eq!(named.st_ino, ino(dir.fd()), "{dir:?}");
        }
    }
}

/// A caller of a walk that keeps all visits.
#[derive(Default)]
pub struct Visitor {
    pub visits: Vec<Visit>,
    listing: Listing,
    errors: usize,
}

impl Visitor {
    /// Takes the next visit or error of a walk. Returns `false` at the end.
    pub fn take(
        &mut self,
        walk: &mut impl Next,
        check: impl FnOnce(&Dir<'_>),
        requests: impl FnOnce(&Path) -> Requests,
    ) -> bool {
        match walk.next_dir() {
            Ok(None) => return false,
            Err(error) => {
                self.errors += 1;
                assert!(self.errors < 100_000, "errors without end: {error}");
                self.visits.push(Visit::from(&error));
            }
            Ok(Some(dir)) => {
                check(&dir);
                if dir.is_second_visit() {
                    self.visits.push(second_visit(dir));
                } else {
                    let requests = requests(dir.path());
                    first_visit(dir, requests, &mut self.listing, &mut self.visits);
                }
            }
        }
        true
    }

    /// Returns `true` if this is the directory of the last first visit.
    pub fn is_at(&self, dir: &Path) -> bool {
        let last = self.visits.iter().rev().find(|visit| matches!(visit.what, What::First(_)));
        last.is_some_and(|last| last.path == dir)
    }
}

fn ino(dir: BorrowedFd<'_>) -> u64 {
    fstat(dir).unwrap().st_ino
}

fn second_visit(mut dir: Dir<'_>) -> Visit {
    assert!(dir.next().unwrap().is_none(), "a second visit yields an entry");
    assert_enters_nothing(&mut dir);
    Visit { path: dir.path().to_owned(), depth: dir.depth(), what: What::Second }
}

fn assert_enters_nothing(dir: &mut Dir<'_>) {
    for name in ["m", "..", "missing"] {
        assert!(!dir.enter(name) && !dir.follow_name(name), "{dir:?}: {name}");
    }
}

fn first_visit(
    mut dir: Dir<'_>,
    requests: Requests,
    listing: &mut Listing,
    visits: &mut Vec<Visit>,
) {
    let (path, depth) = (dir.path().to_owned(), dir.depth());
    if depth > 0 {
        assert_eq!(Some(OsStr::from_bytes(dir.name())), path.file_name());
    }
    assert!(dir.parent_and_name().is_none());
    if depth + 1 >= requests.max_depth {
        assert_enters_nothing(&mut dir);
    }
    let mut found = Vec::new();
    let mut error = None;
    while found.len() < requests.next_calls {
        if requests.skip_subdirs_at == Some(found.len()) {
            dir.skip_subdirs();
        }
        match dir.next() {
            Ok(None) => {
                dir.skip_name("no such name");
                break;
            }
            Err(failure) => {
                assert!(error.replace(failure).is_none(), "{} has two errors", path.display());
            }
            Ok(Some(entry)) => {
                let found_entry = Found::from(&entry);
                if requests.follows {
                    entry.follow(); // whatever its type
                }
                match requests.skip(&found_entry.name) {
                    Skip::No => {}
                    Skip::Subtree => entry.skip_subtree(),
                    Skip::Name => {
                        dir.skip_name(&found_entry.name);
                    }
                    Skip::Both => {
                        entry.skip_subtree();
                        (0..2).for_each(|_| dir.skip_name(&found_entry.name));
                    }
                }
                found.push(found_entry);
            }
        }
    }
    if let Some(order) = requests.listing {
        if listing.order() != order {
            *listing = Listing::with_order(order);
        }
        error = error.or(dir.read_into(listing).err());
        for entry in scan::listed(listing) {
            if requests.follows && matches!(entry.file_type, FileType::Symlink | FileType::Unknown)
            {
                assert_eq!(dir.follow_name(&entry.name), depth + 1 < requests.max_depth, "{dir:?}");
            }
            if requests.skip(&entry.name) != Skip::No {
                dir.skip_name(&entry.name);
            }
            found.push(entry);
        }
    }
    found.iter_mut().for_each(Found::clear_unknown_to_std);
    visits.push(Visit { path, depth, what: What::First(found) });
    visits.extend(error.as_ref().map(Visit::from));
}

impl Visit {
    /// Returns the paths of the yielded entries.
    pub fn entries(&self) -> impl Iterator<Item = PathBuf> {
        let found = if let What::First(found) = &self.what { &found[..] } else { &[] };
        found.iter().map(|entry| self.path.join(OsStr::from_bytes(&entry.name)))
    }
}

impl From<&Error> for Visit {
    fn from(error: &Error) -> Self {
        check_loop(error);
        Self { path: error.path().into(), depth: error.depth(), what: What::Error(errno(error)) }
    }
}

/// Checks that the error of a link that leads back, and no other error, names the ancestor.
fn check_loop(error: &Error) {
    let is_loop = errno(error) == libc::ELOOP && error.path().exists();
    let ancestor =
        error.path().ancestors().skip(1).find(|above| is_loop && id(above) == id(error.path()));
    assert_eq!(error.loop_ancestor(), ancestor, "{error}");
}

fn id(path: &Path) -> (u64, u64) {
    let metadata = fs::metadata(path).unwrap();
    (metadata.dev(), metadata.ino())
}

/// Returns the visits that a walk of `root` must yield, in order, according to `std`.
pub fn expected_visits(
    root: &Path,
    second_visits: bool,
    requests: impl Fn(&Path) -> Requests,
) -> Vec<Visit> {
    let mut visits = Vec::new();
    below(root, 0, second_visits, &requests, &mut visits);
    visits
}

fn below(
    path: &Path,
    depth: usize,
    second_visits: bool,
    requests_for: &impl Fn(&Path) -> Requests,
    visits: &mut Vec<Visit>,
) {
    let visit = |what| Visit { path: path.to_owned(), depth, what };
    match fs::read_dir(path) {
        Err(error) => {
            // If the directory exists, it is yielded, and its reader gets the error.
            visits.extend(path.symlink_metadata().is_ok().then(|| visit(What::First(vec![]))));
            visits.push(visit(What::Error(error.raw_os_error().unwrap())));
        }
        Ok(entries) => {
            let requests = requests_for(path);
            let found = |entry: DirEntry| Found {
                file_type: type_by_std(&entry),
                ..Found::from_std(&entry)
            };
            let entries = entries.filter(|_| depth < requests.max_depth);
            let mut found: Vec<_> = entries.map(|entry| found(entry.unwrap())).collect();
            let mut yielded = found[..requests.next_calls.min(found.len())].to_vec();
            let skips_subdirs = requests.skip_subdirs_at.is_some_and(|skip_subdirs_at| {
                skip_subdirs_at < requests.next_calls && skip_subdirs_at <= found.len()
            });
            let mut requested = yielded.len();
            if let Some(order) = requests.listing {
                // The listing has all entries, including those that were yielded before.
                found = sorted(found, order);
                yielded.extend_from_slice(&found);
                requested = found.len();
            }
            yielded.iter_mut().for_each(Found::clear_unknown_to_std);
            visits.push(visit(What::First(yielded)));
            let is_skipped = |at, name: &[u8]| {
                skips_subdirs || at < requested && requests.skip(name) != Skip::No
            };
            for (at, entry) in found.iter().enumerate() {
                if is_skipped(at, &entry.name) || depth + 1 >= requests.max_depth {
                    continue;
                }
                let child = path.join(OsStr::from_bytes(&entry.name));
                let decision = match entry.file_type {
                    FileType::Directory | FileType::Symlink if requests.follows => {
                        is_entered(&child, depth)
                    }
                    file_type => Ok(file_type == FileType::Directory),
                };
                match decision {
                    Ok(true) => below(&child, depth + 1, second_visits, requests_for, visits),
                    Ok(false) => {}
                    Err(errno) => visits.push(Visit {
                        path: child,
                        depth: depth + 1,
                        what: What::Error(errno),
                    }),
                }
            }
        }
    }
    // An unreadable directory has a second visit, too, unless it cannot be found.
    if second_visits && path.symlink_metadata().is_ok() {
        visits.push(visit(What::Second));
    }
}

/// Returns `true` if a directory or a link to one is at `path`, in a directory of this depth. Below
/// a link, a directory may be a loop, too.
pub fn is_entered(path: &Path, depth: usize) -> Result<bool, i32> {
    match fs::metadata(path) {
        Ok(target) if !target.is_dir() => Ok(false),
        Ok(_) if path.ancestors().skip(1).take(depth + 1).any(|above| id(above) == id(path)) => {
            Err(libc::ELOOP)
        }
        Ok(_) => Ok(true),
        Err(error) => match error.raw_os_error().unwrap() {
            libc::ENOENT | libc::ENOTDIR => Ok(false),
            errno => Err(errno),
        },
    }
}

/// Sorts visits by path, because the visits of several threads have no order.
pub fn in_one_order(visits: impl IntoIterator<Item = Visit>) -> Vec<Visit> {
    let mut visits: Vec<_> = visits.into_iter().collect();
    visits.sort_by(|a, b| {
        let key = |visit: &Visit| match visit.what {
            What::First(_) => 0,
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
    let errors = visits.iter().filter_map(|visit| match visit.what {
        What::Error(errno) => Some((&*visit.path, errno)),
        _ => None,
    });
    errors.collect()
}

/// Checks that no visit comes twice or from elsewhere, and that each missing visit has an error:
/// its own, or one of an ancestor.
pub fn assert_nothing_is_lost_silently(visits: &[Visit], expected: &[Visit], what: &str) {
    // As bytes, because `Path` compares name by name.
    let [seen, expected] = [visits, expected].map(|visits| {
        let entries =
            visits.iter().flat_map(Visit::entries).map(|path| (path.into_os_string(), None));
        let visits = visits.iter().filter(|visit| !matches!(visit.what, What::Error(_)));
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
