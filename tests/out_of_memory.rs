//! A test of a `Listing`, a `Walk` and a `WalkDirs` while the allocator refuses memory.
//!
//! This test runs alone in its process, because its allocator refuses memory to every thread. No
//! other test belongs here.

#[allow(dead_code, reason = "`tests/kernel` uses the rest")]
mod support;

use lendir::{Buffer, Entries, Error, Listing, Order, Walk, WalkDirs};
use rustix::fs::{SeekFrom, seek};
use std::alloc::{GlobalAlloc, Layout, System};
use std::fs::{self, File};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::{io, ptr};
use support::machine;
use support::options::{ENTRY_WALK, EntryWalk};
use support::process::leave_room;
use support::scan::{Found, ORDERS, all, listed, sorted};
use support::scratch::Scratch;
use support::tree::{self, Tree};

/// An allocator that refuses the allocation that `LEFT` counts down to. With `FOR_GOOD`, it also
/// refuses each later allocation.
struct Refusing;

static LEFT: AtomicUsize = AtomicUsize::new(NEVER);
static FOR_GOOD: AtomicBool = AtomicBool::new(false);
const NEVER: usize = usize::MAX;

impl Refusing {
    fn refuses() -> bool {
        match LEFT.load(Relaxed) {
            NEVER => false,
            0 => FOR_GOOD.load(Relaxed),
            left => {
                LEFT.store(left - 1, Relaxed);
                left == 1
            }
        }
    }
}

// SAFETY: every call is forwarded unchanged to `System` or returns null, which means that there is
// no memory.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if Self::refuses() { ptr::null_mut() } else { unsafe { System.alloc(layout) } }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if Self::refuses() {
            ptr::null_mut()
        } else {
            unsafe { System.realloc(memory, layout, size) }
        }
    }
}

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

const COUNT: usize = 1500;

/// If memory runs out, a `Listing` returns an error and keeps the entries that it read before. It
/// never aborts, and it still reads and sorts other directories, when only a part of its memory may
/// have grown.
#[test]
fn each_refused_allocation_is_an_error() {
    let [dir, other] = [COUNT, 100].map(|count| Directory::new(count, |number| 4 + number % 60));
    for order in ORDERS {
        for (for_good, before) in
            [(false, None), (true, None), (false, Some(&other)), (true, Some(&other))]
        {
            assert!(refuse_each(order, for_good, before, &dir, &dir) > 0, "nothing was allocated");
        }
    }
    // Many entries need many places. Long names need a large arena.
    let dirs = [(1, 1), (340, 4), (700, 4), (1300, 4), (1500, 4), (2600, 4), (4000, 4), (400, 200)];
    let dirs = dirs.into_iter().chain([(150, 200)]);
    let dirs: Vec<_> = dirs.map(|(count, len)| Directory::new(count, |_| len)).collect();
    let mut cases = 0;
    for before in [None, Some(&dirs[1]), Some(&dirs[7])] {
        for (at, first) in dirs.iter().enumerate() {
            let neighbours = at.saturating_sub(1)..dirs.len().min(at + 2); // the short form
            for second in &dirs[if machine::runs_long() { 0..dirs.len() } else { neighbours }] {
                cases += refuse_each(Order::Bytes, false, before, first, second);
            }
        }
    }
    assert!(cases > 100, "{cases} cases");
    one_refusal_amid_a_walk();
    refusals_while_directories_are_closed();
}

/// Refuses each allocation in turn of a listing that reads `first`, after it has read `before`. Then
/// reads the rest, `second` and `first`. Returns the number of allocations.
fn refuse_each(
    order: Order,
    for_good: bool,
    before: Option<&Directory>,
    first: &Directory,
    second: &Directory,
) -> usize {
    for number in 1.. {
        let mut listing = Listing::with_order(order);
        if let Some(before) = before {
            before.read(&mut listing).unwrap();
        }
        let (answer, was_refused) = refused(number, for_good, || first.read(&mut listing));
        let (what, len) = (format!("{order:?}, allocation {number}"), listing.len());
        if let Err(error) = &answer {
            assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
            assert!(was_refused, "{what}: {error}, but no allocation was refused");
            let small = before.map(|before| before.all.len()).filter(|len| 10 * len < COUNT);
            let least = small.filter(|len| *len < first.all.len()).unwrap_or(0) / 2;
            assert!((least..=first.all.len()).contains(&len), "{what}: {len} entries");
        } else {
            assert_eq!(len, first.all.len(), "{what}");
        }
        first.check(&listing, len, order);
        let read = len % first.all.len(); // a reading from the end begins again
        listing.read(&first.fd).unwrap();
        assert_eq!(listed(&listing), sorted(first.all[read..].to_vec(), order), "{what}: the rest");
        for dir in [second, first] {
            dir.read(&mut listing).unwrap();
            dir.check(&listing, dir.all.len(), order);
        }
        if !was_refused {
            assert!(answer.is_ok(), "{what}: {answer:?}");
            return number - 1;
        }
    }
    0
}

/// The entries and errors that a walk yields.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
struct Yields {
    entries: usize,
    errors: usize,
}

impl Yields {
    fn add(&mut self, error: &Error) {
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
        self.errors += 1;
    }
}

/// Walks to the end, without an allocation of its own, and follows links.
fn walk(walk: &mut Walk) -> Yields {
    let mut yields = Yields::default();
    while let Some(entry) = walk.next_or_report(|error| yields.add(&error)) {
        entry.follow();
        yields.entries += 1;
    }
    yields
}

/// Walks in the same way. The caller leaves each directory at an entry that it has queried, and
/// reads what remains into a listing unless that is refused.
fn walk_dirs(walk: &mut WalkDirs) -> Yields {
    let (mut yields, mut listing) = (Yields::default(), Listing::new());
    while let Some(mut dir) = walk.next_or_report(|error| yields.add(&error)) {
        let mut of_dir = Yields::default();
        while let Some(entry) = dir.next_or_report(|error| of_dir.add(&error)) {
            entry.follow();
            of_dir.entries += 1;
            if of_dir.entries == 200 {
                break;
            }
        }
        if of_dir.entries == 200 {
            let _ = dir.read_into(&mut listing).inspect_err(|error| of_dir.add(error));
            of_dir.entries += listing.len();
        }
        yields.entries += of_dir.entries + usize::from(dir.is_second_visit());
        yields.errors += of_dir.errors;
    }
    yields
}

/// Checks walks that close half-read directories, because of `max_open` and for want of
/// descriptors: a refused allocation is an error, and neither an abort nor a silent loss.
fn refusals_while_directories_are_closed() {
    let tree = Tree::new(|tree| {
        // Whichever end the kernel begins at, directories are closed before most names are read.
        File::create(tree.join("file")).unwrap();
        let wide = tree.join("wide");
        let add_comb = |name: &str| {
            fs::create_dir_all(wide.join(name)).unwrap();
            tree::comb(&wide.join(name), 6);
        };
        add_comb("first");
        (0..600).for_each(|file| drop(File::create(wide.join(format!("{file:060}"))).unwrap()));
        add_comb("last");
        (0..200).for_each(|dir| fs::create_dir(tree.join(format!("{dir:060}"))).unwrap());
        symlink("wide/first/m", tree.join("link")).unwrap();
    });
    for max_open in [4, 1000] {
        // With 1000, the system refuses a descriptor.
        let _taken = (max_open == 1000).then(|| leave_room(7));
        for order in ORDERS {
            for metadata in [false, true] {
                let options = EntryWalk { order, max_open, metadata, ..ENTRY_WALK };
                let what = format!("{options:?}");
                check_walk(&what, || options.begin(tree.path()), walk);
            }
        }
        for second_visits in [false, true] {
            let options = WalkDirs::options().max_open(max_open).second_visits(second_visits);
            let begin = || match options.clone().buffer_capacity(0) {
                options if second_visits => options.open(tree.path()).unwrap(),
                options => options.open_all([tree.path()]), // opens the root in `next`
            };
            check_walk(&format!("{options:?}"), begin, walk_dirs);
        }
    }
}

/// Refuses each allocation of a walk in turn, alone or with all that follow.
fn check_walk<W>(what: &str, begin: impl Fn() -> W, walk: impl Fn(&mut W) -> Yields) {
    let expected = walk(&mut begin());
    assert!(expected.entries > 800 && expected.errors == 0, "{what}: {expected:?}");
    for for_good in [false, true] {
        for number in 1.. {
            let mut state = begin();
            let (found, was_refused) = refused(number, for_good, || walk(&mut state));
            let what = format!("{what}, allocation {number}, for good: {for_good}: {found:?}");
            if !was_refused {
                assert_eq!(found, expected, "{what}");
                assert!(number > 5, "{what}");
                break;
            }
            assert!(found == expected || found.errors > 0, "{what}: entries are lost");
            assert!(found.entries <= expected.entries, "{what}");
        }
    }
}

/// Checks that a `Walk` that gets no memory for its next batch yields the entries that it has, and
/// then the error.
fn one_refusal_amid_a_walk() {
    let dir = Directory::new(4 * COUNT, |_| 60);
    for metadata in [false, true] {
        let options = Walk::options().metadata(metadata);
        for number in 1.. {
            let mut walk = options.clone().from_fd(dir.fd.try_clone().unwrap(), "");
            assert_eq!(walk.next().unwrap().unwrap().name(), dir.all[0].name);
            let ((count, error), was_refused) = refused(number, false, || {
                let mut all = dir.all.iter().skip(1);
                loop {
                    match walk.next() {
                        Ok(None) => break (all.len(), None),
                        Ok(Some(entry)) => assert_eq!(entry.name(), all.next().unwrap().name),
                        Err(error) => break (all.len(), Some(error)),
                    }
                }
            });
            assert!(walk.next().unwrap().is_none(), "the walk continues after its error");
            if let Some(error) = error {
                assert_eq!((error.kind(), was_refused), (io::ErrorKind::OutOfMemory, true));
                // With metadata, only answers may be lost.
                let least = usize::from(!metadata);
                assert!((least..4 * COUNT - 100).contains(&count), "{count} entries are left");
            } else {
                // Batches stay small where memory for larger ones is refused.
                assert_eq!(count, 0, "allocation {number}");
                if !was_refused {
                    assert!(number > 3, "{number}");
                    break;
                }
            }
        }
    }
}

/// Refuses the allocation of this `number` during `work`. Returns the result of `work`, and whether
/// `work` made that allocation.
fn refused<T>(number: usize, for_good: bool, work: impl FnOnce() -> T) -> (T, bool) {
    FOR_GOOD.store(for_good, Relaxed);
    LEFT.store(number, Relaxed);
    let answer = work();
    (answer, LEFT.swap(NEVER, Relaxed) == 0)
}

struct Directory {
    _made: Scratch,
    fd: OwnedFd,
    all: Vec<Found>,
}

impl Directory {
    fn new(count: usize, len: impl Fn(usize) -> usize) -> Self {
        let made = Scratch::in_memory();
        for number in 0..count {
            File::create(made.path().join(format!("{number:0>width$}", width = len(number))))
                .unwrap();
        }
        let fd = lendir::open(made.path()).unwrap();
        let all = all(&mut Entries::new(fd.as_fd(), &mut Buffer::new()));
        assert_eq!(all.len(), count);
        Self { _made: made, fd, all }
    }

    fn read(&self, listing: &mut Listing) -> Result<(), Error> {
        seek(&self.fd, SeekFrom::Start(0)).unwrap();
        listing.read(&self.fd)
    }

    /// Checks that the listing holds the first `count` entries.
    fn check(&self, listing: &Listing, count: usize, order: Order) {
        assert_eq!(listed(listing), sorted(self.all[..count].to_vec(), order), "{order:?}");
    }
}
