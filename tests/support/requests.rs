//! A caller of a walk: what it reads and requests in each directory, and what the walk then yields.

use super::scan::{self, Found};
use super::tree::Random;
use super::visits::{Visit, What, expected_visits, in_one_order};
use lendir::{
    Buffer, Dir, Entries, Entry, Error, FileType, Listing, Order, Walk, WalkDirs, WalkDirsOptions,
    WalkEntry, Worker,
};
use rustix::fs::{AtFlags, fstat, statat};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::iter;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A call about an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Request {
    SkipSubtree,
    /// In a `WalkDirs` this is `SkipSubtree`, too.
    SkipRest,
    Follow,
    /// Queries, which are no requests.
    Metadata,
    FileType,
}

/// The entries about which a caller makes requests.
#[derive(Clone, Copy, Debug)]
pub enum About {
    Nothing,
    /// Follows all links, except those that are named.
    Follow,
    /// Skips the directories with these names.
    Skip(fn(&[u8]) -> bool),
    /// Makes up to three random calls, which depend only on this seed and the name.
    Random(u64),
}

/// The calls and requests that a caller makes for one directory, and an option of the walk.
#[derive(Clone, Copy, Debug)]
pub struct Requests {
    /// The number of entries to read one by one.
    pub next_calls: usize,
    /// The order of a `Walk`, or of the `Listing` into which the caller of a `WalkDirs` then reads
    /// the whole directory, if any.
    pub listing: Option<Order>,
    /// The number of entries before the call of [`Dir::skip_subdirs`], if any. In the end, the
    /// caller then passes [`names`](Self::names) of what it has read: in the order of the listing,
    /// or else in reverse.
    pub names_at: Option<usize>,
    /// Whether the descriptor is read before all calls, and the directory after the names. Neither
    /// matters.
    pub reads: [bool; 2],
    /// Whether the walk follows links by itself.
    pub follows: bool,
    /// The requests about the entries that are yielded. A listing forgets them, and is asked by name.
    pub about: About,
    pub max_depth: usize,
}

impl Requests {
    /// Reads all entries and skips none.
    pub const ALL: Self = Self {
        next_calls: usize::MAX,
        listing: None,
        names_at: None,
        reads: [false; 2],
        follows: false,
        about: About::Nothing,
        max_depth: usize::MAX,
    };

    /// Reads all entries and follows all links.
    pub const FOLLOW: Self = Self { about: About::Follow, ..Self::ALL };

    pub const fn sorted(order: Order) -> Self {
        Self { next_calls: 0, listing: Some(order), ..Self::ALL }
    }

    /// Returns the same calls with these requests, by name if the caller reads a listing.
    pub fn about(self, about: About) -> Self {
        Self { about, names_at: self.listing.map(|_| 0), ..self }
    }

    /// Returns random requests, which depend only on the seed and the name: the root has another
    /// path each time.
    pub fn random(seed: u64, path: &Path) -> Self {
        let mut random = Random::of(&(seed, path.file_name()));
        let next_calls = [0, 1, random.below(20), random.below(400), usize::MAX][random.below(5)];
        let listing = (random.below(4) == 0).then(|| scan::ORDERS[random.below(3)]);
        let names_at = (random.below(4) == 0).then(|| random.below(3));
        let reads = [random.below(4) == 0, names_at.is_some() && random.below(2) == 0];
        Self { next_calls, listing, names_at, reads, about: About::Random(seed), ..Self::ALL }
    }

    pub fn at(&self, path: &Path) -> Vec<Request> {
        use Request::{FileType, Follow, Metadata, SkipRest, SkipSubtree};
        let name = path.file_name().map_or(&b""[..], OsStr::as_bytes);
        match self.about {
            About::Follow => vec![Follow],
            About::Skip(skips) if skips(name) => vec![SkipSubtree],
            About::Nothing | About::Skip(_) => vec![],
            About::Random(seed) => {
                let mut random = Random::of(&(seed, name));
                let count = random.below(8).saturating_sub(4);
                let all = [SkipSubtree, SkipRest, Follow, Follow, Metadata, Metadata, FileType];
                (0..count).map(|_| all[random.below(all.len())]).collect()
            }
        }
    }

    /// Returns the last request about the entry at this path.
    pub fn last_at(&self, path: &Path) -> Option<Request> {
        use Request::{Follow, SkipRest, SkipSubtree};
        self.at(path)
            .into_iter()
            .rfind(|request| matches!(request, SkipSubtree | SkipRest | Follow))
    }

    pub fn may_follow(&self) -> bool {
        self.follows || matches!(self.about, About::Follow | About::Random(_))
    }

    /// Returns `true` if the error of reading a directory comes neither to this caller nor from the
    /// walk.
    pub fn hides_errors(&self, depth: usize) -> bool {
        let enters = self.names_at.is_none() && depth + 1 < self.max_depth;
        !enters && self.next_calls == 0 && self.listing.is_none() && !self.reads[1]
    }

    /// Returns the names that the caller passes to the walk after it has read these entries. Random
    /// names are also those of files and links, or come twice, or do not exist.
    pub fn names(&self, dir: &Path, found: &[Found]) -> Vec<Vec<u8>> {
        let (is_random, follows) = (matches!(self.about, About::Random(_)), self.follows);
        let mut names = Vec::new();
        for entry in found {
            let path = dir.join(OsStr::from_bytes(&entry.name));
            let is_skipped =
                matches!(self.last_at(&path), Some(Request::SkipSubtree | Request::SkipRest));
            let is_wanted = match entry.file_type {
                FileType::Directory => true,
                FileType::Symlink => is_random || follows,
                _ => is_random,
            };
            if is_wanted && !is_skipped {
                let mut random = Random::of(&entry.name);
                let times = if is_random && random.below(8) == 0 { 2 } else { 1 };
                names.extend(iter::repeat_n(entry.name.clone(), times));
                if is_random && random.below(8) == 0 {
                    let ends = [&b"x"[..], b" ", &[b'x'; 256]];
                    names.push([&entry.name, ends[random.below(3)]].concat());
                }
            }
        }
        names
    }

    /// Makes the requests about an entry of a `Walk`.
    pub fn make(&self, entry: &WalkEntry<'_>) {
        for request in self.at(entry.path()) {
            match request {
                Request::SkipSubtree => entry.skip_subtree(),
                Request::SkipRest => entry.skip_rest_of_dir(),
                Request::Follow => entry.follow(),
                query => query.ask(entry),
            }
        }
    }
}

impl Request {
    /// Queries an entry, which fails without permission to search its directory.
    fn ask(self, entry: &Entry<'_>) {
        match self {
            Self::Metadata => drop(entry.metadata()),
            _ => drop(entry.file_type()),
        }
    }
}

/// Returns the next result of a `Walk`. Checks its entry and passes the entry to `request`.
pub fn next(walk: &mut Walk, request: impl FnOnce(&WalkEntry<'_>)) -> Option<Visit> {
    let entry = match walk.next() {
        Ok(entry) => entry?,
        Err(error) => return Some(Visit::from(&error)),
    };
    let path = entry.path();
    assert!(path.as_os_str().as_bytes().ends_with(entry.name_cstr().to_bytes()), "{entry:?}");
    assert!(path.ends_with(entry.relative_path()), "{entry:?}");
    assert_eq!(entry.relative_path().iter().count(), entry.depth(), "{entry:?}");
    request(&entry);
    Some(Visit::new(path, entry.depth(), What::Entry { is_last: entry.is_last() }))
}

/// A `WalkDirs` or one of its threads.
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

fn ino(dir: BorrowedFd<'_>) -> u64 {
    fstat(dir).unwrap().st_ino
}

/// A caller of a `WalkDirs` that keeps all visits.
#[derive(Default)]
pub struct Visitor {
    pub visits: Vec<Visit>,
    errors: usize,
    /// Kept for the next visit, in which the entries of this one must not show.
    listing: Option<(Order, Listing)>,
}

impl Visitor {
    /// Takes the next visit or error of a walk. Returns `false` at the end.
    pub fn take<S>(
        &mut self,
        walk: &mut impl Next<S>,
        check: impl FnOnce(&Dir<'_, S>),
        requests: impl FnOnce(&Path) -> Requests,
    ) -> bool {
        match walk.next_dir() {
            Ok(None) => return false,
            Err(error) => {
                self.errors += 1;
                assert!(self.errors < 100_000, "errors without end: {error}");
                self.visits.push(Visit::from(&error));
            }
            Ok(Some(mut dir)) => {
                check(&dir);
                if dir.is_second_visit() {
                    assert!(dir.next().unwrap().is_none(), "a second visit yields an entry");
                    assert_enters_nothing(&mut dir);
                    self.visits.push(Visit::new(dir.path(), dir.depth(), What::Second));
                } else {
                    let requests = requests(dir.path());
                    self.first_visit(dir, requests);
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

    pub fn first_visit<S>(&mut self, mut dir: Dir<'_, S>, requests: Requests) {
        let (path, depth) = (dir.path().to_owned(), dir.depth());
        if depth > 0 {
            assert_eq!(Some(OsStr::from_bytes(dir.name())), path.file_name());
        }
        assert!(dir.parent_and_name().is_none());
        if requests.reads[0] {
            let _ = Entries::new(dir.fd(), &mut Buffer::with_capacity(0)).count();
        }
        let mut found = Vec::new();
        let mut error = None;
        while found.len() < requests.next_calls {
            if requests.names_at == Some(found.len()) {
                dir.skip_subdirs();
            }
            match dir.next() {
                Ok(None) => break,
                Err(failure) => {
                    assert!(error.replace(failure).is_none(), "{} has two errors", path.display());
                }
                Ok(Some(entry)) => {
                    found.push(Found::from(&*entry));
                    for request in requests.at(&entry.path()) {
                        match request {
                            Request::SkipSubtree | Request::SkipRest => entry.skip_subtree(),
                            Request::Follow => entry.follow(),
                            query => query.ask(&entry),
                        }
                    }
                }
            }
        }
        let mut named = found.clone();
        named.reverse();
        if let Some(order) = requests.listing {
            let listing = self.listing.take().filter(|(kept, _)| *kept == order);
            let mut listing = listing.map_or_else(|| Listing::with_order(order), |kept| kept.1);
            error = error.or(dir.read_into(&mut listing).err());
            named = scan::listed(&listing);
            found.extend_from_slice(&named);
            self.listing = Some((order, listing));
        }
        if requests.names_at.is_some() {
            dir.skip_subdirs();
            enter_by_name(&mut dir, &mut named, requests);
        }
        if requests.reads[1] {
            error = error.or(dir.read_into(&mut Listing::new()).err());
            assert!(dir.next().unwrap().is_none());
        }
        if depth + 1 >= requests.max_depth {
            assert_enters_nothing(&mut dir);
        }
        found.iter_mut().for_each(Found::clear_unknown_to_std);
        self.visits.push(Visit::new(path, depth, What::First(found)));
        self.visits.extend(error.as_ref().map(Visit::from));
    }
}

/// Passes the [`names`](Requests::names) of these entries.
fn enter_by_name<S>(dir: &mut Dir<'_, S>, found: &mut [Found], requests: Requests) {
    for entry in found.iter_mut().filter(|entry| entry.file_type == FileType::Unknown) {
        entry.file_type = entry.true_type(dir.fd());
    }
    let is_allowed = dir.depth() + 1 < requests.max_depth;
    for name in requests.names(dir.path(), found) {
        assert_eq!(dir.enter_name(name).unwrap(), is_allowed, "{dir:?}");
    }
}

fn assert_enters_nothing<S>(dir: &mut Dir<'_, S>) {
    dir.skip_subdirs();
    for name in ["m", "missing"] {
        assert!(!dir.enter_name(name).unwrap(), "{dir:?}: {name}");
    }
}

/// Checks that a walk with these and all other options yields what the model says, on one thread and
/// on several. Returns the visits without second ones.
pub fn check_walk_dirs(
    options: &WalkDirsOptions,
    root: &Path,
    what: &str,
    requests: impl Fn(&Path) -> Requests + Sync,
) -> Vec<Visit> {
    let [all, _] = [false, true].map(|second_visits| {
        let options = options.clone().second_visits(second_visits);
        let expected = expected_visits(root, second_visits, &requests);
        for (max_open, same_mount) in [(1, false), (1, true), (5, false), (32, true), (1000, false)]
        {
            let options = options.clone().max_open(max_open).same_mount(same_mount);
            let options = options.buffer_capacity([0, 1 << 16][usize::from(same_mount)]);
            let visits = collect_visits(&mut options.clone().open(root).unwrap(), &requests);
            assert_eq!(visits, expected, "{what}, {options:?}");
        }
        let sorted = in_one_order(expected.clone());
        for (threads, max_open) in [(1, 32), (2, 4), (3, 32), (64, 4)] {
            let walk = options.clone().max_open(max_open).open(root).unwrap();
            let parts = walk.run_parallel(threads, |worker| collect_visits(worker, &requests));
            assert!(parts.len() <= threads, "{} of {threads} threads", parts.len());
            let visits = in_one_order(parts.concat());
            assert_eq!(visits, sorted, "{what}, {threads} threads, {options:?}");
        }
        expected
    });
    all
}
