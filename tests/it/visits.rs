//! What a walk lends, and what it must lend according to `std::fs::read_dir`: the order of a walk, for all tests.

use crate::spread::Next;
use crate::support::scan::{self, Found, errno, sorted, type_by_std};
use crate::support::tree::Random;
use lendir::{Dir, Error, FileType, Listing, Order, Walk};
use rustix::fs::fstat;
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::hash::{Hash, Hasher};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// One answer of [`Walk::next`], or an error of [`Dir::next`].
#[derive(Debug, PartialEq, Eq)]
pub struct Visit {
    pub path: PathBuf,
    pub depth: usize,
    pub what: What,
}

#[derive(Debug, PartialEq, Eq)]
pub enum What {
    /// A directory, with the names and inode numbers of the entries that it lent.
    First(Vec<Found>),
    /// The same directory once more, after everything below it.
    Second,
    Error(i32),
}

/// What a test does with one directory.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How many entries it asks for one by one.
    pub lend: usize,
    pub then: Then,
    /// At which of these entries it calls [`Dir::skip_all`].
    pub leave: Option<usize>,
    /// What it does with an entry.
    pub prune: fn(u64, &[u8]) -> Prune,
    pub seed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    Drop,
    Read(Order),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prune {
    No,
    Skip,
    SkipName,
    /// Both, twice.
    Both,
}

const ORDERS: [Order; 4] = [Order::Bytes, Order::AsciiCaseless, Order::Inode, Order::Unsorted];

impl Plan {
    /// Reads all entries, and skips none.
    pub const ALL: Self = Self { lend: usize::MAX, then: Then::Drop, leave: None, prune: |_, _| Prune::No, seed: 0 };

    pub fn sorted(order: Order) -> Self {
        Self { lend: 0, then: Then::Read(order), ..Self::ALL }
    }

    /// A random plan, which depends only on the seed and the path.
    pub fn any(seed: u64, path: &Path) -> Self {
        let seed = hash(&(seed, path));
        let mut random = Random(seed);
        let lend = [0, 1, random.below(20), random.below(400), usize::MAX][random.below(5)];
        let then = if random.below(4) > 0 { Then::Drop } else { Then::Read(ORDERS[random.below(4)]) };
        let leave = (random.below(12) == 0).then(|| random.below(3));
        Self { lend, then, leave, prune: Prune::any, seed }
    }

    fn prune(&self, name: &[u8]) -> Prune {
        (self.prune)(self.seed, name)
    }
}

impl Prune {
    fn any(seed: u64, name: &[u8]) -> Self {
        [Self::Skip, Self::SkipName, Self::Both].get(Random(hash(&(seed, name))).below(12)).copied().unwrap_or(Self::No)
    }
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

pub fn walk(root: &Path, max_open: usize, is_post_order: bool) -> Walk {
    Walk::options().max_open(max_open).post_order(is_post_order).open(root).unwrap()
}

/// All that is left of `walk`, with each directory treated by the plan for its path.
pub fn walked(walk: &mut impl Next, plan: impl Fn(&Path) -> Plan) -> Vec<Visit> {
    let mut visits = Vec::new();
    let mut listing = Listing::new();
    let mut inos = HashMap::new();
    loop {
        match walk.next_dir() {
            Ok(Some(dir)) if dir.is_second_visit() => {
                if let (Some(parent), Some(path)) = (dir.parent(), dir.path().parent()) {
                    assert_eq!(*inos.entry(path.to_owned()).or_insert(ino(parent)), ino(parent), "{dir:?}");
                }
                visits.push(second_visit(dir));
            }
            Ok(Some(dir)) => {
                inos.insert(dir.path().to_owned(), ino(dir.fd()));
                let plan = plan(dir.path());
                first_visit(dir, plan, &mut listing, &mut visits);
            }
            Ok(None) => break,
            Err(error) => visits.push(Visit::from(&error)),
        }
    }
    assert!(walk.next_dir().unwrap().is_none(), "the walk goes on after its end");
    visits
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
    assert!(dir.parent().is_none());
    dir.skip_entry(); // no effect: before the first entry there is nothing to skip
    let mut found = Vec::new();
    let mut error = None;
    while found.len() < plan.lend {
        if plan.leave == Some(found.len()) {
            dir.skip_all();
        }
        match dir.next() {
            Ok(None) => {
                dir.skip_entry(); // nor after the last one
                dir.skip_name("no such name");
                break;
            }
            Err(answer) => error = Some(answer),
            Ok(Some(entry)) => {
                let entry = Found::from(&entry);
                match plan.prune(&entry.name) {
                    Prune::No => {}
                    Prune::Skip => dir.skip_entry(),
                    Prune::SkipName => {
                        dir.skip_name(&entry.name);
                    }
                    Prune::Both => (0..2).for_each(|_| {
                        dir.skip_name(&entry.name);
                        dir.skip_entry();
                    }),
                }
                found.push(entry);
            }
        }
    }
    match plan.then {
        Then::Drop => {}
        Then::Read(order) => {
            if listing.order() != order {
                *listing = Listing::with_order(order);
            }
            error = error.or(dir.read_into(listing).err());
            for entry in scan::listed(listing) {
                if plan.prune(&entry.name) != Prune::No {
                    dir.skip_name(&entry.name);
                }
                found.push(entry);
            }
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

impl From<&Error> for Visit {
    fn from(error: &Error) -> Self {
        Self { path: error.path().into(), depth: error.depth(), what: What::Error(errno(error)) }
    }
}

/// The directories of a tree, each with those in it, by `std`.
pub fn directories(root: &Path) -> BTreeMap<PathBuf, Vec<PathBuf>> {
    let (mut found, mut to_do) = (BTreeMap::new(), vec![root.to_owned()]);
    while let Some(dir) = to_do.pop() {
        let entries = fs::read_dir(&dir).unwrap().map(Result::unwrap);
        let below = entries.filter(|entry| entry.file_type().unwrap().is_dir()).map(|entry| entry.path());
        let below: Vec<_> = below.collect();
        to_do.extend_from_slice(&below);
        found.insert(dir, below);
    }
    found
}

/// What a walk of `root` must answer: the order of a walk, by `std`.
pub fn by_std(root: &Path, is_post_order: bool, plan: impl Fn(&Path) -> Plan) -> Vec<Visit> {
    let mut visits = Vec::new();
    below(root, 0, is_post_order, &plan, &mut visits);
    visits
}

fn below(path: &Path, depth: usize, is_post_order: bool, plan_for: &impl Fn(&Path) -> Plan, visits: &mut Vec<Visit>) {
    let visit = |what| Visit { path: path.to_owned(), depth, what };
    match fs::read_dir(path) {
        Err(error) => {
            // If it exists, it is lent, and its reader gets the error.
            visits.extend(path.symlink_metadata().is_ok().then(|| visit(What::First(vec![]))));
            visits.push(visit(What::Error(error.raw_os_error().unwrap())));
        }
        Ok(entries) => {
            let plan = plan_for(path);
            let entries = entries.map(Result::unwrap);
            let mut found: Vec<_> =
                entries.map(|entry| Found { file_type: type_by_std(&entry), ..Found::by_std(&entry) }).collect();
            let mut lent = found[..plan.lend.min(found.len())].to_vec();
            let is_left = plan.leave.is_some_and(|leave| leave < plan.lend && leave <= found.len());
            let mut told = lent.len();
            if let Then::Read(order) = plan.then {
                // All of it, whatever was lent before.
                found = sorted(found, order);
                lent.extend_from_slice(&found);
                told = found.len();
            }
            let is_pruned = |at, name: &[u8]| is_left || at < told && plan.prune(name) != Prune::No;
            let mut todo = Vec::new();
            for (at, entry) in found.iter().enumerate() {
                if entry.file_type == FileType::Directory && !is_pruned(at, &entry.name) {
                    todo.push(path.join(OsStr::from_bytes(&entry.name)));
                }
            }
            lent.iter_mut().for_each(bare);
            visits.push(visit(What::First(lent)));
            for path in todo {
                below(&path, depth + 1, is_post_order, plan_for, visits);
            }
        }
    }
    // A directory that cannot be read has one, too, unless it cannot be found.
    if is_post_order && path.symlink_metadata().is_ok() {
        visits.push(visit(What::Second));
    }
}
