//! Allocations, counted: none per entry, none per directory, one per `Buffer`, and those of a `Listing`.

#[allow(dead_code, reason = "the test runs what `main` calls")]
#[path = "../../examples/find.rs"]
mod find;

#[allow(dead_code, reason = "the test runs what `main` calls")]
#[path = "../../examples/pids.rs"]
mod pids;

use crate::fixture::{make_file, numbered};
use crate::support::machine::runs_long;
use crate::support::scan::ORDERS;
use crate::support::tree::{self, Tree};
use lendir::rustix::fs::StatxFlags;
use lendir::{Buffer, EndMarker, Entries, Listing, OFlags, Walk};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::CString;
use std::hint::black_box;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

/// Counts for each thread separately, because the other tests allocate in theirs. Refuses where a test asks for it.
struct Counting;

thread_local! {
    static ALLOCATED: Cell<Allocated> = const { Cell::new(Allocated { times: 0, bytes: 0, freed: 0 }) };
    /// Allocations of this many bytes or more are refused.
    static REFUSED: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Modulo 2^32 on 32 bits, where a thread that runs all tests allocates more: only differences are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Allocated {
    times: usize,
    bytes: usize,
    freed: usize,
}

const NOTHING: Allocated = Allocated { times: 0, bytes: 0, freed: 0 };

#[global_allocator]
static ALLOCATOR: Counting = Counting;

impl Counting {
    fn add(bytes: usize) {
        let so_far = ALLOCATED.get();
        ALLOCATED.set(Allocated { times: so_far.times + 1, bytes: so_far.bytes.wrapping_add(bytes), ..so_far });
    }

    fn free(bytes: usize) {
        let so_far = ALLOCATED.get();
        ALLOCATED.set(Allocated { freed: so_far.freed.wrapping_add(bytes), ..so_far });
    }
}

// SAFETY: every call is passed on to `System` as it came, or answered with null, which means that there is no memory. Counting
// allocates nothing: the cells need no initialization and no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() >= REFUSED.get() {
            return ptr::null_mut();
        }
        Self::add(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        Self::free(layout.size());
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if size >= REFUSED.get() {
            return ptr::null_mut();
        }
        Self::add(size);
        Self::free(layout.size());
        unsafe { System.realloc(memory, layout, size) }
    }
}

/// While it lives, this thread is refused memory if it asks for that many bytes or more at a time.
pub struct Refusal(());

impl Refusal {
    pub fn of(bytes: usize) -> Self {
        REFUSED.set(bytes);
        Self(())
    }
}

impl Drop for Refusal {
    fn drop(&mut self) {
        REFUSED.set(usize::MAX);
    }
}

/// What this thread has ever allocated.
pub fn bytes_so_far() -> usize {
    ALLOCATED.get().bytes
}

/// What `work` allocates and frees in this thread.
fn allocated<T>(work: impl FnOnce() -> T) -> Allocated {
    let before = ALLOCATED.get();
    black_box(work());
    let after = ALLOCATED.get();
    Allocated {
        times: after.times - before.times,
        bytes: after.bytes.wrapping_sub(before.bytes),
        freed: after.freed.wrapping_sub(before.freed),
    }
}

#[test]
fn buffer_is_one_allocation_of_its_capacity() {
    let once = |bytes| Allocated { times: 1, bytes, freed: bytes };
    assert_eq!(allocated(|| drop(Buffer::new())), once(Buffer::DEFAULT_CAPACITY));
    assert_eq!(allocated(|| drop(Buffer::with_capacity(0))), once(Buffer::MIN_CAPACITY));
}

#[test]
fn reading_allocates_nothing() {
    let dirs = [numbered(0), numbered(16), numbered(5000)];
    let paths = dirs.each_ref().map(|dir| CString::new(dir.path().as_os_str().as_bytes()).unwrap());
    let mut buffer = Buffer::with_capacity(Buffer::MIN_CAPACITY);
    let mut read = 0;
    let costs = allocated(|| {
        for path in &paths {
            let dir = lendir::open(path).unwrap();
            let marker = EndMarker::of(&dir).unwrap();
            let mut entries = Entries::new(&dir, &mut buffer).with_end_marker(marker);
            for _ in 0..2 {
                entries.rewind().unwrap();
                while let Some(entry) = entries.next().unwrap() {
                    black_box((
                        entry.name(),
                        entry.name_os(),
                        entry.numeric_name(),
                        entry.resolve_file_type().unwrap(),
                        entry.stat().unwrap(),
                        entry.statx(StatxFlags::BASIC_STATS).unwrap(),
                        entry.open(OFlags::PATH).unwrap(),
                    ));
                    read += 1;
                }
            }
            entries.rewind().unwrap();
            read += entries.count().unwrap();
        }
    });
    assert_eq!(read, 3 * 5016);
    assert_eq!(costs, NOTHING);
}

#[test]
fn read_dir_is_two_allocations_and_reading_none() {
    let made = numbered(5000);
    let mut read = 0;
    let costs = allocated(|| {
        let mut dir = lendir::read_dir(made.path()).unwrap();
        for _ in 0..2 {
            while black_box(dir.next().unwrap()).is_some() {
                read += 1;
            }
            dir.rewind().unwrap();
        }
    });
    let bytes = Buffer::DEFAULT_CAPACITY + made.path().as_os_str().len() + 1;
    assert_eq!((read, costs), (2 * 5000, Allocated { times: 2, bytes, freed: bytes }));
}

#[test]
fn errors_allocate_nothing() {
    let file = tempfile::tempfile().unwrap();
    let mut buffer = Buffer::new();
    let costs = allocated(|| {
        assert!(lendir::open("/nowhere").is_err());
        assert!(lendir::openat(&file, "below").is_err());
        assert!(Entries::new(&file, &mut buffer).next().is_err());
        assert!(Entries::new(&file, &mut buffer).seek(u64::MAX).is_err());
    });
    assert_eq!(costs, NOTHING);
}

#[test]
fn pids_allocates_nothing_per_process() {
    let fake_proc = |count: u32| {
        let dir = tempfile::tempdir().unwrap();
        for pid in 1..=count {
            let process = dir.path().join(pid.to_string());
            std::fs::create_dir(&process).unwrap();
            std::fs::write(process.join("comm"), format!("process {pid}\n")).unwrap();
        }
        dir
    };
    let list = |proc: &Path, out: &mut Vec<u8>| {
        let args = ["--proc".into(), proc.into()];
        out.clear();
        allocated(|| assert!(pids::pids(args.into_iter(), out).unwrap())).times
    };
    let (few, many) = (fake_proc(1), fake_proc(1000));
    let mut out = Vec::with_capacity(1 << 16);
    let once = list(few.path(), &mut out);
    assert_eq!(out, b"1 process 1\n");
    let again = list(many.path(), &mut out);
    assert_eq!(out.split(|byte| *byte == b'\n').count(), 1001);
    assert_eq!(once, again, "allocations for 1 and for 1000 processes");
}

#[test]
fn find_allocates_nothing_per_entry() {
    let (few, many) = (numbered(1), numbered(5000));
    let mut out = Vec::with_capacity(1 << 20);
    let mut list = |dir: &Path, count: usize| {
        out.clear();
        let costs = allocated(|| assert!(find::find([dir.into()].into_iter(), &mut out).unwrap()));
        assert_eq!(out.split(|byte| *byte == b'\n').count(), 2 + count);
        costs
    };
    assert_eq!(list(few.path(), 1), list(many.path(), 5000), "allocations for 1 and for 5000 files");
}

/// A `Listing` takes what its documentation says and, once it has held as large a directory, allocates nothing.
#[test]
fn listing_memory_is_bounded_and_reused() {
    const NAME: usize = "IMG_20240101_000000.jpg".len();
    let directory = |count: usize| {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..count {
            make_file(&dir.path().join(format!("IMG_20240101_{:06}.jpg", number * 7919 % count)));
        }
        dir
    };
    // Just over half of what the memory of the listing grows to, where most of it is still unused.
    let (small, large) = (directory(300), directory(40_000));
    let mut buffer = Buffer::new();
    for order in ORDERS {
        let mut listing = Listing::with_order(order);
        let mut read = |path: &Path| {
            // The path is copied to the stack, so opening allocates nothing either.
            let dir = lendir::open(path).unwrap();
            listing.read(Entries::new(&dir, &mut buffer)).unwrap();
            assert!(listing.find(b"IMG_20240101_000299.jpg").is_some());
            assert!(listing.iter().all(|entry| entry.name_cstr().count_bytes() == NAME));
            let len = listing.len();
            listing.clear();
            len
        };
        let mut len = 0;
        let cold = allocated(|| len = read(large.path()));
        assert_eq!(len, 40_000);

        // The memory doubles when it grows, and a little is always written to in advance.
        let record = (19 + NAME + 1).next_multiple_of(8);
        let promised = len * (16 + record);
        let taken = cold.bytes - cold.freed;
        assert!(taken <= 2 * promised + 64 * 1024, "{order:?}: {taken} bytes taken, {promised} promised");

        let warm = allocated(|| [small.path(), large.path(), small.path()].map(read));
        assert_eq!(warm, NOTHING, "{order:?}");
    }
}

/// Walks to the end, and returns the number of directories. With a `listing`, each is read into it.
fn walk_all(walk: &mut Walk, mut listing: Option<&mut Listing>) -> usize {
    let mut count = 0;
    while let Some(mut dir) = walk.next().unwrap() {
        black_box((dir.path(), dir.name(), dir.depth(), dir.is_second_visit(), dir.parent()));
        match &mut listing {
            Some(listing) => dir.read(listing).unwrap(),
            None => while black_box(dir.next().unwrap()).is_some() {},
        }
        count += 1;
    }
    count
}

#[test]
fn walk_reset_for_a_thousand_trees_allocates_nothing_once_warm() {
    let trees = [
        Tree::new(|at| tree::comb(at, 50)),
        Tree::new(|at| tree::wide(at, 100, 8)),
        Tree::new(|at| tree::chain(at, 50)),
        Tree::of(&["only/f"]),
    ];
    for is_post_order in [false, true] {
        for max_open in [1, 1000] {
            let mut walk = Walk::open(trees[0].path()).unwrap().max_open(max_open).same_mount(true);
            if is_post_order {
                walk = walk.post_order(true);
            }
            let mut listing = Listing::new();
            let mut rounds = |rounds: usize| {
                for round in 0..rounds {
                    walk.reset(lendir::open(trees[round % 4].path()).unwrap(), "");
                    let listing = (round / 4 % 2 == 0).then_some(&mut listing);
                    if round / 8 % 2 == 0 {
                        walk_all(&mut walk, listing);
                    } else {
                        walk.next().unwrap().unwrap().stop();
                        assert!(walk.next().unwrap().is_none());
                    }
                }
            };
            rounds(16);
            assert_eq!(allocated(|| rounds(1000)), NOTHING, "post order {is_post_order}, {max_open} open");
        }
    }
}

#[test]
fn walk_allocates_nothing_for_files_but_the_name_of_one_link() {
    let count = if runs_long() { 100_000 } else { 5000 };
    let dir = numbered(count);
    let mut walk = Walk::open(dir.path()).unwrap();
    let mut files = 0;
    let costs = allocated(|| {
        let mut root = walk.next().unwrap().unwrap();
        while let Some(entry) = root.next().unwrap() {
            files += usize::from(entry.numeric_name().is_some());
        }
        assert!(walk.next().unwrap().is_none());
    });
    assert_eq!(files, count);
    assert!(costs.times <= 1 && costs.bytes <= 300, "{costs:?}");
}

/// What the documentation of `Walk` says, in memory that doubles when it grows.
#[test]
fn walk_takes_memory_for_what_is_left_to_do() {
    const LEVELS: usize = 5000;
    const PATH: usize = LEVELS * "m/".len();
    const NAMES: usize = LEVELS * 3 * ("m".len() + 2);
    const OPEN: usize = LEVELS * 64;
    const CLOSED: usize = LEVELS * (64 + 56);
    let taken = |make: fn(&Path, usize), max_open: usize, is_post_order: bool| {
        let tree = Tree::new(|at| make(at, LEVELS));
        let mut walk = None;
        let costs = allocated(|| {
            let mut new = Walk::new(lendir::open(tree.path()).unwrap(), "").max_open(max_open);
            if is_post_order {
                new = new.post_order(true);
            }
            walk_all(&mut new, None);
            walk = Some(new);
        });
        costs.bytes - costs.freed - Buffer::DEFAULT_CAPACITY
    };
    for (shape, make, max_open, is_post_order, promised) in [
        ("a chain", tree::chain as fn(&Path, usize), 32, false, PATH),
        ("a wide tree", |at, count| tree::wide(at, count, 8), 32, false, LEVELS * (8 + 2)),
        ("a comb", tree::comb, LEVELS, false, PATH + NAMES + OPEN),
        ("a comb, few open", tree::comb, 32, false, PATH + NAMES + CLOSED),
        ("a chain in post-order", tree::chain, 32, true, PATH + CLOSED),
    ] {
        let taken = taken(make, max_open, is_post_order);
        assert!(taken <= 2 * promised + 1024, "{shape}: {taken} bytes taken, {promised} promised");
    }
}
