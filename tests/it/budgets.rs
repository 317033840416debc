//! The costs of reading: system calls, allocations, memory and instructions.
//!
//! [`BUDGETS`] has a row for each reader and tree, and [`INSTRUCTIONS`] one for each loop of
//! `tests/downstream`. To add a reader, add a row. Each row is measured on a tree of [`SIZE`] and on
//! one four times as large, so a cost that grows with the square of the tree exceeds its budget.

mod allocations;
mod attacks;
mod instructions;

use crate::support::machine::{has_types, is_marked};
use crate::support::prelude::*;
use crate::support::strace::{name_of, names_in, parts, total};
use allocations::{allocated, grown};
use attacks::ATTACKS;
use rustix::fs::{Mode, mkdirat, symlinkat};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::hint::black_box;

/// The size of the smaller tree.
const SIZE: usize = 40;

/// The most instructions of each loop of `tests/downstream`, as a multiple of those of the loop with
/// `RawDir` whose caller skips the dots. A walk also keeps a path and a stack of levels, and notes
/// what the caller says of each entry. A `Walk` first reads each directory into a listing.
const INSTRUCTIONS: [(&str, f64); 8] = [
    ("Entries", 1.0),
    ("Entries, generic", 1.0),
    ("Entries, find", 1.05),
    ("Entries, count", 0.7),
    ("ReadDir", 1.05),
    ("WalkDirs", 2.9),
    ("run_parallel", 2.9),
    ("Walk", 4.1),
];

/// A reader, a tree, and what reading the tree may cost.
struct Budget {
    reader: &'static str,
    tree: Shape,
    /// Reads the tree, with one [`Counted`]. Returns how many directories or entries it found.
    read: fn(&Path) -> usize,
    /// The number of entries that `read` finds in a tree of a size.
    found: fn(usize) -> usize,
    /// The most system calls for a tree of a size. The second number is that for a small directory:
    /// 3 if its file system marks the end, otherwise 4.
    calls: fn(usize, usize) -> usize,
    /// The most allocations, whatever the size.
    allocations: usize,
    /// The most bytes at once.
    bytes: fn(usize) -> usize,
}

/// A name, and a function that makes a tree of a size.
type Shape = (&'static str, fn(&Path, usize));

const FILES: Shape = ("files", |at, size| {
    (0..250 * size).for_each(|number| make_file(&at.join(number.to_string())));
});
const FEW_FILES: Shape = ("few files", |at, size| {
    (0..size).for_each(|number| make_file(&at.join(number.to_string())));
});
const CHAIN: Shape = ("chain", tree::chain);
const COMB: Shape = ("comb", tree::comb);
const WIDE: Shape = ("wide tree", |at, size| tree::wide(at, size, 8));
const APART: Shape = ("two combs far apart", |at, size| {
    let levels = [(tree::COMB, 6), (tree::CHAIN, size), (tree::COMB, 6)];
    tree::nest(at, levels.into_iter().flat_map(|(names, count)| iter::repeat_n(names, count)));
});
const FORBIDDEN: Shape = ("chain beside directories that cannot be read", |at, size| {
    tree::nest_with(at, size, |dir, _| {
        mkdirat(dir, "m", Mode::RWXU).unwrap();
        mkdirat(dir, "z", Mode::empty()).unwrap();
    });
});
const LINKS: Shape = ("links at each level", |at, size| linked_chain(at, "root", size));
const LINKS_BELOW: Shape = ("links at each level below a link", |at, size| {
    tree::make(at, &["root/"]);
    symlink("../chain", at.join("root/l")).unwrap();
    linked_chain(at, "chain", size);
});
const LINK_TO_MANY: Shape = ("link at the end to many directories", |at, size| {
    links_at_the_end(at, size, 1, "many");
    tree::wide(&at.join("many"), size, 4);
});
const MANY_LINKS: Shape =
    ("many links at the end", |at, size| links_at_the_end(at, size, size, "many"));

/// Makes a chain in `name` with a link to the directory `many` before and after the next directory
/// at each level.
fn linked_chain(at: &Path, name: &str, size: usize) {
    tree::make(at, &[&*format!("{name}/"), "many/"]);
    tree::nest_with(&at.join(name), size, |dir, _| {
        symlinkat(at.join("many"), dir, "before").unwrap();
        mkdirat(dir, "m", Mode::RWXU).unwrap();
        symlinkat(at.join("many"), dir, "behind").unwrap();
    });
}

/// Makes a chain in `root` with links to `target` at its end.
fn links_at_the_end(at: &Path, size: usize, count: usize, target: &str) {
    tree::make(at, &["root/", "many/"]);
    let end = tree::nest(&at.join("root"), iter::repeat_n(tree::CHAIN, size));
    (0..count).for_each(|number| symlinkat(at.join(target), &end, number.to_string()).unwrap());
}

/// The calls that read [`FILES`] in batches of the default capacity, and find the end. Most records
/// have 32 bytes, some 24.
const fn reads(size: usize) -> usize {
    (250 * size * 31).div_ceil(Buffer::DEFAULT_CAPACITY)
}

/// The memory of a walk's batch, its records and 8 bytes for each of 24, and of its path, which has
/// room for a name.
const BATCH: usize = Buffer::DEFAULT_CAPACITY + Buffer::DEFAULT_CAPACITY.div_ceil(24) * 8 + 9700;
const ANY: fn(usize) -> usize = |_| usize::MAX;
const ALL: usize = usize::MAX;

/// The path in a chain.
const fn path(size: usize) -> usize {
    grown(2 * size, 1)
}

/// The path, the levels and the pending names in a comb.
const fn levels(size: usize) -> usize {
    path(size) + grown(size, 112) + grown(9 * size, 1)
}

macro_rules! budgets {
    ($($reader:literal, $tree:expr, $found:expr, $calls:expr, $allocations:expr, $bytes:expr, $read:expr;)*) => {
        &[$(Budget {
            reader: $reader,
            tree: $tree,
            read: $read,
            found: $found,
            calls: $calls,
            allocations: $allocations,
            bytes: $bytes,
        }),*]
    };
}

#[rustfmt::skip]
const BUDGETS: &[Budget] = budgets![
//  reader                      tree          what it finds    calls                               allocations, bytes            how it reads
    "Entries",                  FILES,        |n| 250 * n,     |n, _| 2 + reads(n),                 1, |_| 32768,                 |at| entries(at, 1, |_| ());
    "Entries, query each",      FEW_FILES,    |n| n,           |n, _| 4 + 4 * n,                    1, |_| 32768,                 |at| entries(at, 1, query);
    "Entries, three times",     FILES,        |n| 750 * n,     |n, _| 4 + 3 * reads(n),             1, |_| 32768,                 |at| entries(at, 3, |_| ());
    "ReadDir, three times",     FILES,        |n| 750 * n,     |n, c| 3 + 2 * (c - 2) + 3 * reads(n), 2, |_| 33000,               read_dir;
    "Listing",                  FEW_FILES,    |n| n,           |_, _| 4,                            3, |_| 54 * 1024,             |at| listing(at, Listing::new(), 1);
    "Listing",                  FILES,        |n| 250 * n,     |n, _| 2 + reads(n).min(7),         18, |n| 250 * n * 90,          |at| listing(at, Listing::new(), 1);
    "Listing, three times",     FILES,        |n| 750 * n,     |n, _| 6 + 3 * reads(n).min(7),     18, |n| 250 * n * 90,          |at| listing(at, Listing::new(), 3);
    "Listing, metadata",        FILES,        |n| 250 * n,     |n, _| 2 + reads(n).min(7) + 250 * n, 28, |n| 250 * n * 290,       |at| listing(at, Listing::new().with_metadata(), 1);
    "Listing by path",          FILES,        |n| 750 * n,     |n, _| 6 + 3 * reads(n).min(7),     18, |n| 250 * n * 90,          |at| listing(at, Listing::with_order(Order::Path), 3);
    "WalkDirs",                 FILES,        |n| 250 * n,     |n, _| 3 + reads(n),                 6, |_| BATCH,                 entries_of_dirs;
    "Walk",                     FILES,        |n| 250 * n + 1, |n, _| 3 + reads(n).min(8),         14, |_| 720_000,               |at| walk(at, Walk::options());
    "Walk, metadata",           FILES,        |n| 250 * n + 1, |n, _| 3 + reads(n).min(8) + 250 * n, 28, |_| 2_300_000,           |at| walk(at, Walk::options().metadata(true));
    "WalkDirs",                 CHAIN,        |n| n + 1,       |n, c| (n + 1) * c + 1,             10, |n| BATCH + path(n),       |at| dirs(at, options(), read_all);
    "WalkDirs",                 WIDE,         |n| n + 1,       |n, c| (n + 1) * c + 1,              8, |n| BATCH + grown(10 * n, 1), |at| dirs(at, options(), read_all);
    "WalkDirs",                 COMB,         |n| 3 * n + 1,   |n, c| (3 * n + 1) * c + 1,         17, |n| BATCH + levels(n),     |at| dirs(at, options(), read_all);
    "WalkDirs, second visits",  CHAIN,        |n| n + 1,       |n, c| (n + 1) * c + 3,             18, |n| BATCH + levels(n),     |at| dirs(at, options().second_visits(true), read_all);
    "WalkDirs, second visits",  COMB,         |n| 3 * n + 1,   |n, c| (3 * n + 1) * c + 3,         18, |n| BATCH + levels(n),     |at| dirs(at, options().second_visits(true), read_all);
    "WalkDirs, same mount",     COMB,         |n| 3 * n + 1,   |n, c| (3 * n + 1) * c + 1,         17, |n| BATCH + levels(n),     |at| dirs(at, options().same_mount(true), read_all);
    "WalkDirs, listings",       COMB,         |n| 3 * n + 1,   |n, c| (3 * n + 1) * c + 1,         24, |n| 2 * BATCH + levels(n), |at| dirs(at, options(), |dir, listing| dir.read_into(listing).unwrap());
    "WalkDirs, unread",         COMB,         |n| 3 * n + 1,   |n, c| (3 * n + 1) * c + 1,         17, |n| BATCH + levels(n),     |at| dirs(at, options(), |_, _| ());
    "WalkDirs, one entry",      COMB,         |n| 3 * n + 1,   |n, c| (3 * n + 1) * c + 1,         17, |n| BATCH + levels(n),     |at| dirs(at, options(), |dir, _| _ = dir.next().unwrap());
    "WalkDirs, named",          COMB,         |n| 3 * n + 1,   |n, c| (3 * n + 1) * c + 1,         24, |n| 2 * BATCH + levels(n), |at| dirs(at, options(), name_all);
    "WalkDirs, one skipped",    COMB,         |n| 2 * n + 1,   |n, c| (2 * n + 1) * c + 1,         18, |n| BATCH + levels(n),     |at| dirs(at, options(), skip_z);
    "WalkDirs, all skipped",    WIDE,         |_| 1,           |_, c| c,                            3, |_| 6000,                  |at| dirs(at, options(), |dir, _| dir.skip_subdirs());
    "WalkDirs, max_depth",      COMB,         |_| 4,           |_, c| 4 + 2 * c,                    6, |_| BATCH,                 |at| dirs(at, options().max_depth(2), |_, _| ());
    "WalkDirs, links",          LINKS,        |n| n + 1,       |n, c| (n + 1) * c + 1,             12, |n| BATCH + path(n),       |at| dirs(&at.join("root"), options(), read_all);
    "Walk",                     CHAIN,        |n| n + 1,       |n, c| (n + 1) * c + 1,             10, |n| BATCH + path(n),       |at| walk(at, Walk::options());
    "Walk",                     WIDE,         |n| n + 1,       |n, c| (n + 1) * c + 1,              7, |_| BATCH,                 |at| walk(at, Walk::options());
    "Walk, sorted",             COMB,         |n| 3 * n + 1,   |n, c| (3 * n + 1) * c + 1,         17, |n| 64_000 + 200 * n,      |at| walk(at, sorted().max_open(1000));
    "Walk by path",             COMB,         |n| 3 * n + 1,   |n, c| (3 * n + 1) * c + 1,         17, |n| 64_000 + 200 * n,      |at| walk(at, sorted().order(Order::Path).max_open(1000));
// A level that is closed takes 2 more to be recognised, 2 to be opened again and closed, and one to tell whether its birth time can be trusted.
    "WalkDirs, 4 open",         COMB,         |n| 3 * n + 1,   |n, c| (3 * n + 1) * c + 5 * n,     17, |n| BATCH + levels(n),     |at| dirs(at, options().max_open(4), read_all);
    "Walk, sorted, 4 open",     COMB,         |n| 3 * n + 1,   |n, c| (3 * n + 1) * c + 5 * n,     17, |n| 64_000 + 200 * n,      |at| walk(at, sorted().max_open(4));
    "WalkDirs, 4 open",         APART,        |n| n + 37,      |n, c| (n + 37) * c + 2 * n + 50,   13, |n| BATCH + levels(n + 12), |at| dirs(at, options().max_open(4), read_all);
    "WalkDirs, 4 open",         FORBIDDEN,    |n| 2 * n + 1,   |n, c| (2 * n + 1) * c + n,         ALL, ANY,                      |at| dirs(at, options().max_open(4), read_all);
    "WalkDirs, 10 descriptors", COMB,         |n| 3 * n + 1,   |n, c| (3 * n + 1) * c + 5 * n,     ALL, ANY,                      few_descriptors;
    "WalkDirs, followed",       LINKS,        |n| 3 * n + 1,   |n, c| (3 * n + 1) * c + 14 * n,    ALL, ANY,                      follow_dirs;
    "WalkDirs, followed",       LINKS_BELOW,  |n| 3 * n + 2,   |n, c| (3 * n + 2) * c + 15 * n,    ALL, ANY,                      follow_dirs;
    "WalkDirs, followed",       LINK_TO_MANY, |n| 2 * n + 2,   |n, c| (2 * n + 2) * c + 5 * n,     ALL, ANY,                      follow_dirs;
    "WalkDirs, followed",       MANY_LINKS,   |n| 2 * n + 1,   |n, c| (2 * n + 1) * c + 6 * n + 5, ALL, ANY,                      follow_dirs;
    "Walk, followed",           LINKS,        |n| 3 * n + 1,   |n, c| (3 * n + 1) * c + 14 * n,    ALL, ANY,                      follow;
    "Walk, followed",           LINKS_BELOW,  |n| 3 * n + 2,   |n, c| (3 * n + 2) * c + 15 * n,    ALL, ANY,                      follow;
    "Walk, followed",           LINK_TO_MANY, |n| 2 * n + 2,   |n, c| (2 * n + 2) * c + 5 * n,     ALL, ANY,                      follow;
    "Walk, followed",           MANY_LINKS,   |n| 2 * n + 1,   |n, c| (2 * n + 1) * c + 6 * n + 5, ALL, ANY,                      follow;
];

fn entries(at: &Path, times: usize, look: fn(&Entry<'_>)) -> usize {
    let _counted = Counted::begin();
    let (dir, mut buffer) = (lendir::open(at).unwrap(), Buffer::new());
    let (mut entries, mut found) = (Entries::new(dir.as_fd(), &mut buffer), 0);
    for time in 0..times {
        if time > 0 {
            entries.rewind().unwrap();
        }
        while let Some(entry) = entries.next().unwrap() {
            look(&entry);
            found += 1;
        }
    }
    found
}

/// Makes four calls.
fn query(entry: &Entry<'_>) {
    black_box((entry.name(), entry.numeric_name(), entry.file_type().unwrap()));
    black_box(entry.metadata().unwrap());
    black_box(entry.open_file().unwrap());
}

fn read_dir(at: &Path) -> usize {
    let _counted = Counted::begin();
    let (mut dir, mut found) = (lendir::read_dir(at).unwrap(), 0);
    for time in 0..3 {
        if time > 0 {
            dir.rewind().unwrap();
        }
        while black_box(dir.next().unwrap()).is_some() {
            found += 1;
        }
    }
    found
}

fn listing(at: &Path, mut listing: Listing, times: usize) -> usize {
    let _counted = Counted::begin();
    let (mut dir, mut found) = (lendir::open(at).unwrap(), 0);
    for time in 0..times {
        if time > 0 {
            dir = lendir::openat(&dir, ".").unwrap();
        }
        listing.read(&dir).unwrap();
        assert!(listing.by_name("7").is_some());
        found += listing.iter().len();
    }
    found
}

fn options() -> WalkDirsOptions {
    WalkDirs::options().max_open(1000)
}

fn sorted() -> WalkOptions {
    Walk::options().order(Order::Bytes)
}

/// Returns the number of first visits.
fn dirs(root: &Path, options: WalkDirsOptions, look: fn(&mut Dir<'_>, &mut Listing)) -> usize {
    let _counted = Counted::begin();
    let (mut walk, mut listing, mut found) = (options.open(root).unwrap(), Listing::new(), 0);
    while let Some(mut dir) = walk.next_or_report(|_| ()) {
        black_box((dir.path(), dir.name(), dir.parent_and_name()));
        if !dir.is_second_visit() {
            look(&mut dir, &mut listing);
            found += 1;
        }
    }
    found
}

fn read_all(dir: &mut Dir<'_>, _: &mut Listing) {
    while black_box(dir.next_or_report(|_| ())).is_some() {}
}

fn name_all(dir: &mut Dir<'_>, listing: &mut Listing) {
    dir.read_into(listing).unwrap();
    dir.skip_subdirs();
    for entry in listing.iter().filter(|entry| entry.d_type() == FileType::Directory) {
        dir.enter_name(entry.name()).unwrap();
    }
}

fn skip_z(dir: &mut Dir<'_>, _: &mut Listing) {
    while let Some(entry) = dir.next().unwrap() {
        if entry.name() == b"z" {
            entry.skip_subtree();
        }
    }
}

fn few_descriptors(at: &Path) -> usize {
    let limit = getrlimit(Resource::Nofile);
    let others = leave_room(10);
    let found = dirs(at, options(), read_all);
    drop(others);
    setrlimit(Resource::Nofile, limit).unwrap();
    found
}

fn entries_of_dirs(at: &Path) -> usize {
    let _counted = Counted::begin();
    let (mut walk, mut found) = (lendir::walk_dirs(at).unwrap(), 0);
    let mut root = walk.next().unwrap().unwrap();
    while black_box(root.next().unwrap()).is_some() {
        found += 1;
    }
    assert!(walk.next().unwrap().is_none());
    found
}

fn follow_dirs(at: &Path) -> usize {
    dirs(&at.join("root"), WalkDirs::options(), |dir, _| {
        while let Some(entry) = dir.next().unwrap() {
            entry.follow();
        }
    })
}

/// Returns the number of entries and the root.
fn walk(root: &Path, options: WalkOptions) -> usize {
    let _counted = Counted::begin();
    walk_rest(options.open(root).unwrap(), false)
}

fn walk_rest(mut walk: Walk, follows: bool) -> usize {
    let mut found = 1;
    while let Some(entry) = walk.next().unwrap() {
        black_box(entry.path());
        if follows {
            entry.follow();
        }
        found += 1;
    }
    found
}

fn follow(at: &Path) -> usize {
    let _counted = Counted::begin();
    walk_rest(Walk::options().open(at.join("root")).unwrap(), true)
}

impl Budget {
    fn what(&self, size: usize) -> String {
        format!("{} of a {} of size {size}", self.reader, self.tree.0)
    }

    fn read(&self, size: usize, at: &Path) {
        assert_eq!((self.read)(at), (self.found)(size), "{}", self.what(size));
    }
}

fn budgets() -> impl Iterator<Item = &'static Budget> {
    BUDGETS.iter().chain(ATTACKS)
}

/// Reads each tree of [`BUDGETS`] in both sizes, and passes the path to `measure`.
fn for_each_tree(mut measure: impl FnMut(&Budget, usize, &Path)) {
    let mut trees = HashMap::new();
    for budget in budgets() {
        for size in [SIZE, 4 * SIZE] {
            let (name, make) = budget.tree;
            let tree = trees.entry((name, size)).or_insert_with(|| Tree::new(|at| make(at, size)));
            measure(budget, size, tree.path());
        }
    }
}

#[test]
fn allocations_stay_within_the_budget() {
    for_each_tree(|budget, size, at| {
        if budget.allocations < ALL {
            let costs = allocated(|| budget.read(size, at));
            let most = (budget.allocations, (budget.bytes)(size));
            let is_kept = costs.times <= most.0 && costs.peak <= most.1;
            assert!(is_kept, "{}: {costs:?}, allowed are {most:?}", budget.what(size));
        }
    });
    for fails in [|| lendir::open("/nowhere").err(), || lendir::walk("/nowhere").err()] {
        assert!(allocated(|| fails().unwrap()).times <= 2);
    }
}

/// The number of names that the kernel looks up grows with the tree, too.
/// An entry that can be kept takes one allocation more than one that is lent, and yielding the root
/// takes none.
#[test]
fn owned_entry_takes_one_allocation() {
    let tree = Tree::new(|at| tree::wide(at, SIZE, 8));
    for yields in [false, true] {
        let options = Walk::options().yield_roots(yields);
        let count = SIZE + usize::from(yields);
        let lent = allocated(|| walk(tree.path(), options.clone()));
        let owned = allocated(|| {
            let walk = options.clone().open(tree.path()).unwrap();
            assert_eq!(walk.into_iter().map(Result::unwrap).count(), count);
        });
        assert_eq!(owned.times - lent.times, count);
    }
    let dir = || lendir::read_dir(tree.path()).unwrap();
    let lent = allocated(|| assert_eq!(dir().count().unwrap(), SIZE as u64));
    let owned = allocated(|| assert_eq!(dir().into_iter().map(Result::unwrap).count(), SIZE));
    assert_eq!(owned.times - lent.times, SIZE);
}

#[test]
fn calls_stay_within_the_budget() {
    const TEST: &str = "budgets::calls_stay_within_the_budget";
    if !has_types(TEST, Tree::of(&["f"]).path()) {
        return;
    }
    let parts = parts(TEST, || {
        as_nobody(|| for_each_tree(Budget::read));
    });
    let Some(parts) = parts else { return };
    let of_a_directory = if is_marked(Tree::new(|_| ()).path()) { 3 } else { 4 };
    let mut broken = Vec::new();
    for (budget, parts) in budgets().zip(parts.chunks(2)) {
        let of_parts = [(&parts[0], SIZE), (&parts[1], 4 * SIZE)];
        broken.extend(of_parts.into_iter().filter_map(|(part, size)| {
            // At 12, 56 and 113 descriptors, a duplicate shows that more are left, and is closed.
            let most = (budget.calls)(size, of_a_directory) + 2 * 3;
            let calls = part.iter().map(|line| name_of(line));
            let broken = || format!("{}: not {most}: {:?}", budget.what(size), totals(calls));
            (part.len() > most).then(broken)
        }));
        let [few, many] = [names_in(&parts[0]), names_in(&parts[1])];
        if many > 5 * few {
            broken.push(format!("{}: {few} to {many} names", budget.what(4 * SIZE)));
        }
    }
    assert!(broken.is_empty(), "too many calls, or names that the kernel looks up: {broken:#?}");
}

fn totals<'c>(calls: impl Iterator<Item = &'c str>) -> BTreeMap<&'c str, usize> {
    let mut totals = BTreeMap::new();
    calls.for_each(|call| *totals.entry(call).or_default() += 1);
    totals
}

/// No directory is opened below `max_depth`. Threads that read ahead open few directories in vain,
/// for lack of descriptors.
#[test]
fn each_directory_is_opened_once() {
    const OPENED: usize = 3 * (20 + 80 + 140) + WALKS * 20 * 41;
    const WALKS: usize = 5; // the threads may be late in one of them
    let opened = total("budgets::each_directory_is_opened_once", "openat2", || {
        let made = |below: usize| {
            let paths = (0..20).flat_map(|a| (0..below).map(move |b| format!("{a}/{b}/c/")));
            Tree::new(|at| tree::make(at, &paths.collect::<Vec<_>>()))
        };
        let (small, large) = (made(3), made(20));
        for (max_depth, count) in [(1, 20), (2, 80), (3, 140), (4, 140)] {
            for threads in [0, 1, 3] {
                let options = Walk::options().max_depth(max_depth).read_ahead(threads).eager();
                assert_eq!(walk(small.path(), options), count + 1);
            }
        }
        // Once the system has refused a descriptor, few directories are given up and opened again.
        let _taken = leave_room(40);
        for _ in 0..WALKS {
            let options = Walk::options().read_ahead(16).eager();
            assert_eq!(walk(large.path(), options), 20 * 41 + 1);
        }
    });
    let is_kept = |opened| (OPENED..OPENED + OPENED / 8).contains(&opened);
    assert!(opened.is_none_or(is_kept), "{opened:?} are opened, not {OPENED}");
}
