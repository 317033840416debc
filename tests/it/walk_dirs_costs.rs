//! The allocations and the memory of a walk.

use crate::allocations::{allocated, grown};
use crate::support::fixture::numbered;
use crate::support::machine::runs_long;
use crate::support::tree::{self, Tree};
use lendir::{Buffer, Dir, FileType, Listing, WalkDirs};
use rustix::fs::{Mode, mkdirat, symlinkat};
use std::hint::black_box;
use std::iter;
use std::path::Path;

/// The memory of a batch: its records, and 8 bytes for each of 24.
const BATCH: usize = Buffer::DEFAULT_CAPACITY + Buffer::DEFAULT_CAPACITY.div_ceil(24) * 8;

/// The calls of a caller in each directory.
const LOOKS: [fn(&mut Dir<'_>, &mut Listing); 4] = [
    |dir, listing| dir.read_into(listing).unwrap(),
    |dir, _| while black_box(dir.next().unwrap()).is_some() {},
    |dir, _| _ = dir.next().unwrap(), // dropped midway
    |dir, listing| {
        dir.read_into(listing).unwrap();
        dir.skip_subdirs();
        for entry in listing.iter().filter(|entry| entry.d_type() == FileType::Directory) {
            dir.enter_name(entry.name()).unwrap();
        }
    },
];

/// Visits at most `most` directories, of several roots. Returns the number of visits.
fn walk_some(walk: &mut WalkDirs, listing: &mut Listing, roots: &mut usize, most: usize) -> usize {
    let mut visits = 0;
    while visits < most {
        let Some(mut dir) = walk.next().unwrap() else { break };
        black_box((
            dir.path(),
            dir.name(),
            dir.depth(),
            dir.is_second_visit(),
            dir.parent_and_name(),
        ));
        visits += 1;
        LOOKS[*roots / 4 % LOOKS.len()](&mut dir, listing);
        *roots += usize::from(dir.depth() == 0 && !dir.is_second_visit());
    }
    visits
}

/// A walk of many trees allocates nothing for a directory once its memory has grown.
#[test]
fn warm_walk_allocates_nothing() {
    let trees = [
        Tree::new(|at| tree::comb(at, 50)),
        Tree::new(|at| tree::wide(at, 100, 8)),
        Tree::new(|at| tree::chain(at, 50)),
        Tree::of(&["only/f"]),
    ];
    for second_visits in [false, true] {
        for max_open in [1, 1000] {
            let options = WalkDirs::options()
                .max_open(max_open)
                .same_mount(true)
                .second_visits(second_visits);
            let begin = |rounds: usize| {
                options.clone().open_all(
                    (0..rounds * LOOKS.len() * trees.len()).map(|root| trees[root % 4].path()),
                )
            };
            let (mut listing, mut roots) = (Listing::new(), 0);
            let count = walk_some(&mut begin(1), &mut listing, &mut 0, usize::MAX);
            let mut walk = begin(10);
            assert_eq!(walk_some(&mut walk, &mut listing, &mut roots, count), count);
            let costs = allocated(|| {
                assert_eq!(walk_some(&mut walk, &mut listing, &mut roots, usize::MAX), 9 * count);
            });
            // The paths of the roots are freed. With second visits, threads could share the parent
            // of each root.
            let roots = 9 * LOOKS.len() * trees.len() * usize::from(second_visits);
            assert_eq!(costs.times, roots, "second visits {second_visits}, {max_open} open");
        }
    }
}

#[test]
fn files_take_the_memory_of_a_batch() {
    let count = if runs_long() { 100_000 } else { 5000 };
    let dir = numbered(count);
    let mut walk = lendir::walk_dirs(dir.path()).unwrap();
    let mut files = 0;
    let costs = allocated(|| {
        let mut root = walk.next().unwrap().unwrap();
        while let Some(entry) = root.next().unwrap() {
            files += usize::from(entry.numeric_name().is_some());
        }
        assert!(walk.next().unwrap().is_none());
    });
    assert_eq!(files, count);
    // A `Vec` begins with four levels.
    assert!(costs.times <= 3 && costs.bytes <= BATCH + 4 * 112, "{costs:?}");
}

/// A walk takes the memory that the documentation of `WalkDirs` states, doubled, because memory
/// doubles when it grows.
#[test]
fn walk_takes_the_documented_memory() {
    const LEVELS: usize = 2000;
    const NAME: usize = grown(4097, 1); // the path has room for a name
    const PATH: usize = grown(LEVELS * "m/".len(), 1) + NAME;
    const NAMES: usize = grown(LEVELS * 3 * ("m".len() + 2), 1);
    const ALL_LEVELS: usize = grown(LEVELS, 112);
    const ANCESTORS: usize = grown(LEVELS, 32);
    let linked_chain = |at: &Path, count: usize| {
        let end = tree::nest(at, iter::repeat_n(tree::CHAIN, count));
        mkdirat(&end, "empty", Mode::RWXU).unwrap();
        symlinkat("empty", &end, "link").unwrap();
    };
    let taken = |make: fn(&Path, usize), max_open: usize, second_visits: bool| {
        let tree = Tree::new(|at| make(at, LEVELS));
        let mut walk = None;
        let costs = allocated(|| {
            let options = WalkDirs::options().max_open(max_open).second_visits(second_visits);
            let mut new = options.from_fd(lendir::open(tree.path()).unwrap(), "");
            while let Some(mut dir) = new.next().unwrap() {
                while let Some(entry) = dir.next().unwrap() {
                    entry.follow();
                }
            }
            walk = Some(new);
        });
        costs.bytes - costs.freed - BATCH
    };
    for (shape, make, max_open, second_visits, promised) in [
        ("a chain", tree::chain as fn(&Path, usize), 32, false, PATH),
        (
            "a wide tree",
            |at, count| tree::wide(at, count, 8),
            32,
            false,
            grown(LEVELS * (8 + 2), 1) + NAME,
        ),
        ("a comb", tree::comb, LEVELS, false, PATH + NAMES + ALL_LEVELS),
        ("a comb, few open", tree::comb, 32, false, PATH + NAMES + ALL_LEVELS),
        ("a chain with second visits", tree::chain, 32, true, PATH + ALL_LEVELS),
        ("a chain with a link at its end", linked_chain, 32, false, PATH + ANCESTORS),
    ] {
        let taken = taken(make, max_open, second_visits);
        assert!(taken <= promised + 1024, "{shape}: {taken} bytes taken, {promised} promised");
    }
}
