//! A test of a `Listing` and a `Walk` while the allocator refuses memory.
//!
//! This test runs alone in its process, because its allocator refuses memory to every thread. No
//! other test belongs here.

#[allow(dead_code, reason = "`tests/kernel` uses the rest")]
mod support;

use lendir::{Buffer, Entries, Error, Listing, Order, StatxFlags, Walk};
use rustix::fs::{SeekFrom, seek};
use std::alloc::{GlobalAlloc, Layout, System};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::{io, ptr};
use support::machine;
use support::scan::{Found, ORDERS, all, listed, sorted};
use support::scratch::Scratch;

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
/// never aborts, and it can be used again.
#[test]
fn each_refused_allocation_is_an_error() {
    let [dir, other] = [COUNT, 100].map(|count| Directory::new(count, |number| 4 + number % 60));
    for order in ORDERS {
        for (for_good, already) in [(false, 0), (true, 0), (false, 100), (true, 100)] {
            for number in 1.. {
                let mut listing = Listing::with_order(order);
                if already > 0 {
                    other.read(&mut listing).unwrap();
                }
                let (answer, was_refused) = refused(number, for_good, || dir.read(&mut listing));
                if let Err(error) = &answer {
                    assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
                    assert!(was_refused, "{error}, but no allocation was refused");
                    let len = listing.len();
                    assert!(
                        (already / 2..COUNT).contains(&len),
                        "{order:?}, allocation {number}: {len} entries"
                    );
                } else {
                    assert_eq!(listing.len(), COUNT);
                }
                dir.check(&listing, listing.len(), order);
                let read = if answer.is_ok() { 0 } else { listing.len() };
                listing.read(&dir.fd).unwrap();
                assert_eq!(
                    listed(&listing),
                    sorted(dir.all[read..].to_vec(), order),
                    "{order:?}: the rest"
                );
                dir.read(&mut listing).unwrap();
                dir.check(&listing, COUNT, order);
                if !was_refused {
                    assert!(answer.is_ok() && number > 1, "{order:?}: nothing was allocated");
                    break;
                }
            }
        }
    }
    one_refusal_and_two_readings();
    one_refusal_amid_a_walk();
}

/// Checks that a `Walk` that gets no memory for its next batch yields the entries that it has, and
/// then the error.
fn one_refusal_amid_a_walk() {
    let dir = Directory::new(4 * COUNT, |_| 60);
    for mask in [None, Some(StatxFlags::INO)] {
        let options = mask.map_or(Walk::options(), |mask| Walk::options().statx(mask));
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
                // With a mask, only answers may be lost.
                let least = usize::from(mask.is_none());
                assert!((least..4 * COUNT - 300).contains(&count), "{count} entries are left");
            } else {
                assert!(count == 0 && !was_refused && number > 3, "{number}, {count} are left");
                break;
            }
        }
    }
}

/// Checks that a listing still reads and sorts other directories after a refusal, when only a part
/// of its memory may have grown.
fn one_refusal_and_two_readings() {
    // Many entries need many places. Long names need a large arena.
    let dirs = [
        (1, 1),
        (340, 4),
        (700, 4),
        (1300, 4),
        (1500, 4),
        (2600, 4),
        (4000, 4),
        (400, 200),
        (150, 200),
    ];
    let dirs = dirs.map(|(count, len)| Directory::new(count, |_| len));
    let order = Order::Bytes;
    let mut cases = 0;
    for before in [None, Some(&dirs[1]), Some(&dirs[7])] {
        for (at, first) in dirs.iter().enumerate() {
            let neighbours = at.saturating_sub(1)..dirs.len().min(at + 2); // the short form
            for second in &dirs[if machine::runs_long() { 0..dirs.len() } else { neighbours }] {
                for number in 1.. {
                    let mut listing = Listing::with_order(order);
                    if let Some(before) = before {
                        before.read(&mut listing).unwrap();
                    }
                    let (answer, was_refused) = refused(number, false, || first.read(&mut listing));
                    assert!(was_refused || answer.is_ok(), "{answer:?}");
                    if answer.is_ok() {
                        assert_eq!(listing.len(), first.all.len());
                    }
                    first.check(&listing, listing.len(), order);
                    for dir in [second, first] {
                        dir.read(&mut listing).unwrap();
                        dir.check(&listing, dir.all.len(), order);
                    }
                    if !was_refused {
                        break;
                    }
                    cases += 1;
                }
            }
        }
    }
    assert!(cases > 100, "{cases} cases");
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
