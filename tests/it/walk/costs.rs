//! Counts the allocations and system calls of a `Walk`: none of the former once warm, and of the
//! latter, a number in proportion to the tree.

use crate::allocations::{allocated, grown};
use crate::support::machine::runs_long;
use crate::support::process::leave_room;
use crate::support::scan::ORDERS;
use crate::support::strace::{Counted, total, totals};
use crate::support::tree::{self, Tree};
use lendir::{Listing, Order, StatxFlags, Walk};
use std::fs::{self, File};
use std::hint::black_box;
use std::path::Path;

type Make = fn(&Path, usize);

/// Reads at most `most` entries. Returns the number of entries read.
fn read(tree: &mut Walk, most: usize) -> usize {
    let mut count = 0;
    while count < most && tree.next().unwrap().map(|entry| black_box(entry.path())).is_some() {
        count += 1;
    }
    count
}

#[test]
fn warm_walk_allocates_nothing() {
    let trees = [
        Tree::new(|at| tree::comb(at, 60)),
        Tree::new(|at| tree::wide(at, 600, 60)),
        Tree::new(|at| tree::bushy(at, 5)),
        Tree::of(&["only/f", "g"]),
    ];
    let count: usize =
        trees.iter().map(|tree| read(&mut lendir::walk(tree.path()).unwrap(), usize::MAX)).sum();
    for order in ORDERS {
        let roots = trees.iter().map(Tree::path).cycle().take(4 * trees.len());
        let mut tree = Walk::options().max_open(4).order(order).open_all(roots);
        assert_eq!(read(&mut tree, 2 * count), 2 * count);
        let costs = allocated(|| assert_eq!(read(&mut tree, usize::MAX), 2 * count));
        assert_eq!(costs.times, 0, "{order:?}: {costs:?}"); // the roots' paths are freed
    }
}

/// A walk keeps at most twice the memory that the documentation states, because memory doubles when
/// it grows. All allocations together are at most three times as much. If the path was copied for
/// each directory, they would grow with the square of the depth.
#[test]
fn memory_grows_with_the_pending_entries() {
    let levels = if runs_long() { 20_000 } else { 2000 };
    let begin = (54 + 64) * 1024;
    // Each directory also has the records of `.` and `..`.
    let (path, stack, entries) =
        (grown(levels * "m/".len(), 1), grown(levels, 136), 2 * levels * (3 * (24 + 16) + 2 * 24));
    for (shape, make, max_open, count, promised) in [
        ("a chain", tree::chain as Make, 32, levels, begin + path),
        ("a comb", tree::comb, 4, 3 * levels, begin + path + stack + entries),
        ("a comb, 1000 open", tree::comb, 1000, 3 * levels, begin + path + stack + entries),
    ] {
        let tree = Tree::new(|at| make(at, levels));
        let mut tree =
            Walk::options().max_open(max_open).from_fd(lendir::open(tree.path()).unwrap(), "");
        let costs = allocated(|| assert_eq!(read(&mut tree, usize::MAX), count, "{shape}"));
        let taken = costs.bytes - costs.freed;
        assert!(
            taken <= promised && costs.bytes <= 3 * promised,
            "{shape}: {taken} of {costs:?}, {promised} promised"
        );
    }
}

/// Four times as many entries in one directory take no more memory, even if each is queried when it
/// is read. A listing takes more.
#[test]
fn memory_does_not_grow_with_a_directory() {
    const MASK: StatxFlags = StatxFlags::BASIC_STATS;
    let taken = [9000, 36_000].map(|count| {
        let tree = Tree::new(|at| {
            (0..count).for_each(|number| drop(File::create(at.join(format!("{number:050}")))));
        });
        let walks = [Walk::options(), Walk::options().statx(MASK)].map(|options| {
            let mut walk = options.open(tree.path()).unwrap();
            let costs = allocated(|| assert_eq!(read(&mut walk, usize::MAX), count));
            costs.bytes - costs.freed
        });
        let mut listing = Listing::new();
        let costs = allocated(|| listing.read(lendir::open(tree.path()).unwrap()).unwrap());
        (walks, costs.bytes - costs.freed)
    });
    let [(few, few_listed), (many, many_listed)] = taken;
    assert!((0..2).all(|index| many[index] <= few[index] * 5 / 4), "{taken:?}");
    assert!(many_listed > 2 * few_listed && many[0] < many_listed / 2, "{taken:?}");
}

/// A directory takes three or four calls, and a level that is closed up to five more.
#[test]
fn walk_makes_few_calls_for_a_directory() {
    const LEVELS: usize = 60;
    let shapes = [
        (tree::chain as Make, 32, LEVELS, 4),
        (tree::comb, 1000, 3 * LEVELS, 4),
        (tree::comb, 4, 3 * LEVELS, 6),
    ];
    let parts = totals("walk::costs::walk_makes_few_calls_for_a_directory", || {
        for (make, max_open, directories, _) in shapes {
            let tree = Tree::new(|at| make(at, LEVELS));
            let options = Walk::options().max_open(max_open).order(Order::Bytes);
            let _counted = Counted::begin();
            assert_eq!(read(&mut options.open(tree.path()).unwrap(), usize::MAX), directories);
        }
    });
    for ((_, max_open, directories, most), totals) in shapes.iter().zip(parts.into_iter().flatten())
    {
        let calls = totals.values().sum::<usize>();
        assert!(calls <= most * (directories + 1) + 3, "{max_open} open: {totals:?}");
    }
}

/// No directory is opened below `max_depth`. Threads that read ahead open few directories in vain,
/// for lack of descriptors.
#[test]
fn each_directory_is_opened_once() {
    const OPENED: usize = 3 * (20 + 80 + 140);
    let opened = total("walk::costs::each_directory_is_opened_once", "openat2", || {
        let tree = Tree::new(|at| {
            let paths = (0..20).flat_map(|a| (0..3).map(move |b| format!("{a}/{b}/c")));
            paths.for_each(|path| fs::create_dir_all(at.join(path)).unwrap());
        });
        for (max_depth, count) in [(1, 20), (2, 80), (3, 140), (4, 140)] {
            for threads in [0, 1, 3] {
                let mut tree = Walk::options()
                    .max_depth(max_depth)
                    .read_ahead(threads)
                    .eager()
                    .open(tree.path())
                    .unwrap();
                assert_eq!(read(&mut tree, usize::MAX), count);
            }
        }
    });
    let Some(opened) = opened else { return };
    assert!((OPENED..OPENED + OPENED / 10).contains(&opened), "{opened} are opened, not {OPENED}");
}

/// Once the system has refused a descriptor, few directories are given up and opened again.
#[test]
fn few_descriptors_cause_few_opens_in_vain() {
    const TEST: &str = "walk::costs::few_descriptors_cause_few_opens_in_vain";
    const ENTRIES: usize = 20 * (1 + 20 * 2);
    const WALKS: usize = 5; // the threads may be late in one of them
    let opened = total(TEST, "openat2", || {
        let tree = Tree::new(|at| {
            let paths = (0..20).flat_map(|a| (0..20).map(move |b| format!("{a}/{b}/c")));
            paths.for_each(|path| fs::create_dir_all(at.join(path)).unwrap());
        });
        let _taken = leave_room(40);
        for _ in 0..WALKS {
            let mut tree = Walk::options().read_ahead(16).eager().open(tree.path()).unwrap();
            assert_eq!(read(&mut tree, usize::MAX), ENTRIES);
        }
    });
    let Some(opened) = opened else { return };
    let least = WALKS * ENTRIES;
    assert!((least..least + least / 7).contains(&opened), "{opened} are opened, not {least}");
}
