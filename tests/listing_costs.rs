//! `Listing`: what it allocates, counted by the allocator of a process of its own.

use lendir::{Buffer, Entries, Listing, Order};
use std::alloc::{GlobalAlloc, Layout, System};
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

struct Counting;

static CALLS: AtomicUsize = AtomicUsize::new(0);
static LIVE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to `System` as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, Relaxed);
        LIVE.fetch_add(layout.size(), Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Relaxed);
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        CALLS.fetch_add(1, Relaxed);
        LIVE.fetch_add(size, Relaxed);
        LIVE.fetch_sub(layout.size(), Relaxed);
        unsafe { System.realloc(memory, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn make(dir: &Path, count: usize) {
    for i in 0..count {
        File::create(dir.join(format!("IMG_20240101_{:06}.jpg", i * 7919 % count))).unwrap();
    }
}

/// One test, because the counters are those of the whole process.
#[test]
fn memory() {
    const NAME: usize = "IMG_20240101_000000.jpg".len();
    let small = tempfile::tempdir().unwrap();
    let large = tempfile::tempdir().unwrap();
    make(small.path(), 300);
    // Just over half of what the memory has grown to, where most of it is still unused.
    make(large.path(), 40_000);
    let mut buffer = Buffer::new();
    for order in [Order::Bytes, Order::AsciiCaseless, Order::Inode, Order::Directory] {
        let mut listing = Listing::with_order(order);
        let live = LIVE.load(Relaxed);
        let dir = lendir::open(large.path()).unwrap();
        listing.read(Entries::new(&dir, &mut buffer)).unwrap();
        assert_eq!(listing.len(), 40_000);

        // Its memory doubles when it grows, and a little is always written to in advance.
        let promised = listing.len() * (16 + 8 + NAME + 1);
        let taken = LIVE.load(Relaxed) - live;
        assert!(taken <= 2 * promised + 64 * 1024, "{order:?}: {taken} bytes for {promised}");

        let calls = CALLS.load(Relaxed);
        for path in [small.path(), large.path(), small.path()] {
            // The path is copied to the stack, so that opening allocates nothing either.
            let dir = lendir::open(path).unwrap();
            listing.read(Entries::new(&dir, &mut buffer)).unwrap();
            assert!(listing.find(b"IMG_20240101_000299.jpg").is_some());
            assert!(listing.iter().all(|entry| entry.name_cstr().count_bytes() == NAME));
            listing.clear();
        }
        assert_eq!(CALLS.load(Relaxed), calls, "{order:?}: a warm listing allocated");
    }
}
