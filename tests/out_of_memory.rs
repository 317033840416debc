//! `Listing` when memory runs out: an error, with what was read before it, and never an abort.
//!
//! One test in a process of its own, because its allocator refuses any thread. No other test belongs here.

#[allow(dead_code, reason = "`tests/kernel` uses the rest")]
mod support;

use lendir::{Buffer, Entries, Listing};
use std::alloc::{GlobalAlloc, Layout, System};
use std::fs::File;
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use support::machine;
use support::scan::{ORDERS, all, listed, sorted};

/// Refuses the allocation that `LEFT` counts down to, and all after it if `FOR_GOOD`.
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

// SAFETY: every call is passed on to `System` as it came, or answered with null, which means that there is no memory.
unsafe impl GlobalAlloc for Refusing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if Self::refuses() { ptr::null_mut() } else { unsafe { System.alloc(layout) } }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if Self::refuses() { ptr::null_mut() } else { unsafe { System.realloc(memory, layout, size) } }
    }
}

#[global_allocator]
static ALLOCATOR: Refusing = Refusing;

const COUNT: usize = 1500;

#[test]
fn each_refused_allocation_is_an_error() {
    let path = tempfile::tempdir().unwrap();
    for number in 0..COUNT {
        File::create(path.path().join(format!("{number:0>width$}", width = 4 + number % 60))).unwrap();
    }
    let dir = lendir::open(path.path()).unwrap();
    let mut buffer = Buffer::new();
    let all = all(&mut Entries::new(&dir, &mut buffer));
    assert_eq!(all.len(), COUNT);

    let mut cases = 0;
    for order in ORDERS {
        for (for_good, already) in [(false, 0), (true, 0), (false, 100), (true, 100)] {
            for number in 1.. {
                let mut listing = Listing::with_order(order);
                if already > 0 {
                    read(&mut listing, &dir, &mut buffer, COUNT - already).unwrap();
                }
                FOR_GOOD.store(for_good, Relaxed);
                LEFT.store(number, Relaxed);
                let answer = read(&mut listing, &dir, &mut buffer, 0);
                let was_refused = LEFT.swap(NEVER, Relaxed) == 0;

                if let Err(error) = &answer {
                    assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
                    assert!(was_refused);
                    // The memory for the last entries holds about as many of the first, whose names are of other lengths.
                    assert!(
                        (already / 2..COUNT).contains(&listing.len()),
                        "{order:?}, allocation {number}: {} entries",
                        listing.len()
                    );
                } else {
                    assert_eq!(listing.len(), COUNT);
                }
                assert!(listed(&listing) == sorted(all[..listing.len()].to_vec(), order), "{order:?}");
                read(&mut listing, &dir, &mut buffer, 0).unwrap();
                assert!(listed(&listing) == sorted(all.clone(), order), "{order:?}: not whole again");
                if !was_refused {
                    assert!(answer.is_ok() && number > 1, "{order:?}: nothing was allocated");
                    break;
                }
                cases += 1;
            }
        }
    }
    machine::passed(
        "limits: out of memory",
        cases,
        "allocations refused: `OutOfMemory`, and what came before is listed",
    );
}

/// Reads `dir` from its beginning, without the first `without` entries.
fn read(listing: &mut Listing, dir: &impl rustix::fd::AsFd, buffer: &mut Buffer, without: usize) -> io::Result<()> {
    let mut entries = Entries::new(dir, buffer);
    entries.rewind()?;
    for _ in 0..without {
        entries.next()?;
    }
    listing.read(entries)
}
