//! What a walk lends, and what it must lend according to `std::fs::read_dir`: one model for all tests.

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

/// A walk, or one of its threads.
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

/// One answer of [`WalkDirs::next`], or an error of [`Dir::next`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    pub path: PathBuf,
    pub depth: usize,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A directory, with the names and inode numbers of the entries that it lent.
    First(Vec<Found>),
    /// The same directory once more, after everything below it.
    Second,
    /// `ELOOP` for a link that leads back, too: see [`check_loop`].
    Error(i32),
}

/// What a test does with one directory.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How many entries it asks for one by one.
    pub lend: usize,
    /// Whether it then reads the whole directory into a `Listing`.
    pub read: Option<Order>,
    /// At which of these entries it calls [`Dir::skip_subdirs`].
    pub leave: Option<usize>,
    /// What it does with an entry.
    pub prune: fn(u64, &[u8]) -> Prune,
    pub seed: u64,
    /// Whether it follows all links.
    pub follows: bool,
    /// The option of the walk.
    pub max_depth: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prune {
    No,
    Skip,
    SkipName,
    /// Both, twice.
    Both,
}

impl Plan {
    /// Reads all entries, and skips none.
    pub const ALL: Self = Self {
        lend: usize::MAX,
        read: None,
        leave: None,
        prune: |_, _| Prune::No,
        seed: 0,
        follows: false,
        max_depth: usize::MAX,
    };

    /// Reads all entries, and follows the links.
    pub const FOLLOW: Self = Self { follows: true, ..Self::ALL };

    pub fn sorted(order: Order) -> Self {
        Self { lend: 0, read: Some(order), ..Self::ALL }
    }

    /// A random plan, which depends only on the seed and the path.
    pub fn any(seed: u64, path: &Path) -> Self {
        let mut random = Random::of(&(seed, path));
        let seed = random.0;
        let lend = [0, 1, random.below(20), random.below(400), usize::MAX][random.below(5)];
        let read = (random.below(4) == 0).then(|| ORDERS[random.below(ORDERS.len())]);
        let leave = (random.below(12) == 0).then(|| random.below(3));
        Self { lend, read, leave, prune: Prune::any, seed, ..Self::ALL }
    }

    fn prune(&self, name: &[u8]) -> Prune {
        (self.prune)(self.seed, name)
    }
}

impl Prune {
    fn any(seed: u64, name: &[u8]) -> Self {
        [Self::Skip, Self::SkipName, Self::Both]
            .get(Random::of(&(seed, name)).below(12))
            .copied()
            .unwrap_or(Self::No)
    }
}

pub fn walk(root: &Path, max_open: usize, second_visits: bool) -> WalkDirs {
    WalkDirs::options().max_open(max_open).second_visits(second_visits).open(root).unwrap()
}

/// All that is left of `walk`, with each directory treated by the plan for its path.
pub fn walked(walk: &mut impl Next, plan: impl Fn(&Path) -> Plan) -> Vec<Visit> {
    let (mut lent, mut inos) = (Lent::default(), HashMap::new());
    while lent.take(walk, |dir| check(dir, &mut inos), &plan) {}
    assert!(walk.next_dir().unwrap().is_none(), "the walk goes on after its end");
    lent.visits
}

/// Checks that `dir` is what its path says, and that its parent is the one that was lent. `inos` has those.
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

/// What a walk has lent so far.
#[derive(Default)]
pub struct Lent {
    pub visits: Vec<Visit>,
    listing: Listing,
    errors: usize,
}

impl Lent {
    /// Takes the next answer of a walk. Returns whether there was one.
    pub fn take(
        &mut self,
        walk: &mut impl Next,
        check: impl FnOnce(&Dir<'_>),
        plan: impl FnOnce(&Path) -> Plan,
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
                    let plan = plan(dir.path());
                    first_visit(dir, plan, &mut self.listing, &mut self.visits);
                }
            }
        }
        true
    }

    /// Whether this is the last directory that was lent for the first time.
    pub fn is_at(&self, dir: &Path) -> bool {
        let last = self.visits.iter().rev().find(|visit| matches!(visit.what, What::First(_)));
        last.is_some_and(|last| last.path == dir)
    }
}

fn ino(dir: BorrowedFd<'_>) -> u64 {
    fstat(dir).unwrap().st_ino
}

fn second_visit(mut dir: Dir<'_>) -> Visit {
    assert!(dir.next().unwrap().is_none(), "a second visit lends an entry");
    Visit { path: dir.path().to_owned(), depth: dir.depth(), what: What::Second }
}

fn first_visit(mut dir: Dir<'_>, plan: Plan, listing: &mut Listing, visits: &mut Vec<Visit>) {
    let (path, depth) = (dir.path().to_owned(), dir.depth());
    if depth > 0 {
        assert_eq!(Some(OsStr::from_bytes(dir.name())), path.file_name());
    }
    assert!(dir.parent_and_name().is_none());
    let mut found = Vec::new();
    let mut error = None;
    while found.len() < plan.lend {
        if plan.leave == Some(found.len()) {
            dir.skip_subdirs();
        }
        match dir.next() {
            Ok(None) => {
                dir.skip_name("no such name");
                break;
            }
            Err(answer) => {
                assert!(error.replace(answer).is_none(), "{} has two errors", path.display());
            }
            Ok(Some(entry)) => {
                let lent = entry;
                let entry = Found::from(&lent);
                if plan.follows {
                    lent.follow(); // whatever it is
                }
                match plan.prune(&entry.name) {
                    Prune::No => {}
                    Prune::Skip => lent.skip_subtree(),
                    Prune::SkipName => {
                        dir.skip_name(&entry.name);
                    }
                    Prune::Both => {
                        lent.skip_subtree();
                        (0..2).for_each(|_| dir.skip_name(&entry.name));
                    }
                }
                found.push(entry);
            }
        }
    }
    if let Some(order) = plan.read {
        if listing.order() != order {
            *listing = Listing::with_order(order);
        }
        error = error.or(dir.read_into(listing).err());
        for entry in scan::listed(listing) {
            if plan.follows && matches!(entry.file_type, FileType::Symlink | FileType::Unknown) {
                assert_eq!(dir.follow_name(&entry.name), depth + 1 < plan.max_depth, "{dir:?}");
            }
            if plan.prune(&entry.name) != Prune::No {
                dir.skip_name(&entry.name);
            }
            found.push(entry);
        }
    }
    found.iter_mut().for_each(bare);
    visits.push(Visit { path, depth, what: What::First(found) });
    visits.extend(error.as_ref().map(Visit::from));
}

/// What `std` reports of it.
fn bare(entry: &mut Found) {
    (entry.file_type, entry.cookie) = (FileType::Unknown, 0);
}

impl Visit {
    /// The paths of the entries that were lent.
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

/// The error of a link that leads back, and no other, names the ancestor that it leads to.
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

/// What a walk of `root` must answer: the order of a walk, by `std`.
pub fn by_std(root: &Path, second_visits: bool, plan: impl Fn(&Path) -> Plan) -> Vec<Visit> {
    let mut visits = Vec::new();
    below(root, 0, second_visits, &plan, &mut visits);
    visits
}

fn below(
    path: &Path,
    depth: usize,
    second_visits: bool,
    plan_for: &impl Fn(&Path) -> Plan,
    visits: &mut Vec<Visit>,
) {
    let visit = |what| Visit { path: path.to_owned(), depth, what };
    match fs::read_dir(path) {
        Err(error) => {
            // If it exists, it is lent, and its reader gets the error.
            visits.extend(path.symlink_metadata().is_ok().then(|| visit(What::First(vec![]))));
            visits.push(visit(What::Error(error.raw_os_error().unwrap())));
        }
        Ok(entries) => {
            let plan = plan_for(path);
            let found =
                |entry: DirEntry| Found { file_type: type_by_std(&entry), ..Found::by_std(&entry) };
            let mut found: Vec<_> = entries.map(|entry| found(entry.unwrap())).collect();
            let mut lent = found[..plan.lend.min(found.len())].to_vec();
            let is_left = plan.leave.is_some_and(|leave| leave < plan.lend && leave <= found.len());
            let mut told = lent.len();
            if let Some(order) = plan.read {
                // All of it, whatever was lent before.
                found = sorted(found, order);
                lent.extend_from_slice(&found);
                told = found.len();
            }
            lent.iter_mut().for_each(bare);
            visits.push(visit(What::First(lent)));
            let is_pruned = |at, name: &[u8]| is_left || at < told && plan.prune(name) != Prune::No;
            for (at, entry) in found.iter().enumerate() {
                if is_pruned(at, &entry.name) || depth + 1 >= plan.max_depth {
                    continue;
                }
                let child = path.join(OsStr::from_bytes(&entry.name));
                match entry.file_type {
                    FileType::Directory if !plan.follows => {}
                    FileType::Directory | FileType::Symlink if plan.follows => {
                        match is_entered(&child, depth) {
                            Ok(true) => {}
                            Ok(false) => continue,
                            Err(errno) => {
                                visits.push(Visit {
                                    path: child,
                                    depth: depth + 1,
                                    what: What::Error(errno),
                                });
                                continue;
                            }
                        }
                    }
                    _ => continue,
                }
                below(&child, depth + 1, second_visits, plan_for, visits);
            }
        }
    }
    // A directory that cannot be read has one, too, unless it cannot be found.
    if second_visits && path.symlink_metadata().is_ok() {
        visits.push(visit(What::Second));
    }
}

/// Whether a directory or a link to one is at `path`, which is in a directory of this depth. Below a link, a directory may be a
/// loop, too.
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

/// By their paths, as the visits of several threads have no order.
pub fn in_one_order(visits: impl IntoIterator<Item = Visit>) -> Vec<Visit> {
    let mut visits: Vec<_> = visits.into_iter().collect();
    visits.sort_by(|a, b| {
        let key = |visit: &Visit| match visit.what {
            What::First(_) => 0,
            What::Second => 1,
            What::Error(errno) => 2 + errno,
        };
        // As bytes: `Path` compares name by name, which takes longer than the walk.
        (a.path.as_os_str().as_bytes(), key(a)).cmp(&(b.path.as_os_str().as_bytes(), key(b)))
    });
    visits
}

/// The paths of the first visits, sorted.
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

/// Checks that nothing comes twice or from elsewhere, and that for all that is missing there is an error, its own or one above it.
pub fn assert_nothing_is_lost_silently(visits: &[Visit], expected: &[Visit], what: &str) {
    // Not as `Path`s, which are compared name by name.
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
    assert!(other.is_none(), "{what}: {other:?} is lent, but not in the tree");
}
