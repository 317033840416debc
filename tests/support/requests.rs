//! A caller of a walk: what it reads and requests in each directory, and what the walk then yields.

use super::scan::{self, Found};
use super::tree::Random;
use super::visits::{Visit, What, expected_visits, in_one_order};
use lendir::{Dir, Entry, Error, FileType, Listing, Order, Walk, WalkDirs, WalkEntry, Worker};
use rustix::fs::{AtFlags, fstat, statat};
use std::collections::HashMap;
use std::ffi::OsStr;
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
    /// Follows all links. Those that are named, the walk must follow by itself.
    Follow,
    /// Skips the directories with these names.
    Skip(fn(&[u8]) -> bool),
    /// Makes up to three random calls, which depend only on this seed and the path.
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
    /// caller then names what to enter of all that it has read: in the order of the listing, or
    /// else in reverse.
    pub names_at: Option<usize>,
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

    /// Returns random requests, which depend only on the seed and the path.
    pub fn random(seed: u64, path: &Path) -> Self {
        let mut random = Random::of(&(seed, path));
        let next_calls = [0, 1, random.below(20), random.below(400), usize::MAX][random.below(5)];
        let listing = (random.below(4) == 0).then(|| scan::ORDERS[random.below(3)]);
        let names_at = (random.below(6) == 0).then(|| random.below(3));
        Self { next_calls, listing, names_at, about: About::Random(seed), ..Self::ALL }
    }

    fn at(&self, path: &Path) -> Vec<Request> {
        use Request::{FileType, Follow, Metadata, SkipRest, SkipSubtree};
        let name = path.file_name().map_or(&b""[..], OsStr::as_bytes);
        match self.about {
            About::Follow => vec![Follow],
            About::Skip(skips) if skips(name) => vec![SkipSubtree],
            About::Nothing | About::Skip(_) => vec![],
            About::Random(seed) => {
                let mut random = Random::of(&(seed, path));
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

    /// Returns `true` if the walk follows all links, also those that are named.
    pub fn follows_names(&self) -> bool {
        matches!(self.about, About::Follow)
    }

    pub fn may_follow(&self) -> bool {
        matches!(self.about, About::Follow | About::Random(_))
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
    /// Queries an entry.
    fn ask(self, entry: &Entry<'_>) {
        match self {
            Self::Metadata => drop(entry.metadata().unwrap()),
            _ => drop(entry.file_type().unwrap()),
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

    fn first_visit(&mut self, mut dir: Dir<'_>, requests: Requests) {
        let (path, depth) = (dir.path().to_owned(), dir.depth());
        if depth > 0 {
            assert_eq!(Some(OsStr::from_bytes(dir.name())), path.file_name());
        }
        assert!(dir.parent_and_name().is_none());
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
            let mut listing = Listing::with_order(order);
            error = error.or(dir.read_into(&mut listing).err());
            named = scan::listed(&listing);
            found.extend_from_slice(&named);
        }
        if requests.names_at.is_some() {
            dir.skip_subdirs();
            enter_by_name(&mut dir, &named, requests);
        }
        if depth + 1 >= requests.max_depth {
            assert_enters_nothing(&mut dir);
        }
        found.iter_mut().for_each(Found::clear_unknown_to_std);
        self.visits.push(Visit::new(path, depth, What::First(found)));
        self.visits.extend(error.as_ref().map(Visit::from));
    }
}

/// Enters what the requests do not skip, in this order.
fn enter_by_name(dir: &mut Dir<'_>, named: &[Found], requests: Requests) {
    let is_allowed = dir.depth() + 1 < requests.max_depth;
    for entry in named {
        let request = requests.last_at(&dir.path().join(OsStr::from_bytes(&entry.name)));
        let file_type = match entry.file_type {
            FileType::Unknown => entry.true_type(dir.fd()),
            file_type => file_type,
        };
        let is_entered = match (request, file_type) {
            (Some(Request::SkipSubtree | Request::SkipRest), _) => continue,
            (_, FileType::Directory) => dir.enter_name(&entry.name).unwrap(),
            (_, FileType::Symlink) if requests.follows_names() => {
                dir.enter_name(&entry.name).unwrap()
            }
            _ => continue,
        };
        assert_eq!(is_entered, is_allowed, "{dir:?}");
    }
}

fn assert_enters_nothing(dir: &mut Dir<'_>) {
    dir.skip_subdirs();
    for name in ["m", "missing"] {
        assert!(!dir.enter_name(name).unwrap(), "{dir:?}: {name}");
    }
}

/// Checks that a walk with all options yields what the model says, on one thread and on several.
pub fn check_walk_dirs(root: &Path, what: &str, requests: impl Fn(&Path) -> Requests + Sync) {
    for second_visits in [false, true] {
        let expected = expected_visits(root, second_visits, &requests);
        for max_open in [1, 5, 32, 1000] {
            for same_mount in [false, true] {
                let options = WalkDirs::options()
                    .same_mount(same_mount)
                    .max_open(max_open)
                    .second_visits(second_visits);
                let visits = collect_visits(&mut options.open(root).unwrap(), &requests);
                let how = format!(
                    "second visits {second_visits}, {max_open} open, same mount {same_mount}"
                );
                assert_eq!(visits, expected, "{what}, {how}");
            }
        }
        let expected = in_one_order(expected);
        for threads in [2, 8] {
            let walk = walk(root, 4, second_visits);
            let parts = walk.run_parallel(threads, |worker| collect_visits(worker, &requests));
            let visits = in_one_order(parts.into_iter().flatten());
            assert_eq!(visits, expected, "{what}, {threads} threads, {second_visits}");
        }
    }
}
