//! An allocator that counts for each thread separately, because other tests allocate in their
//! threads.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;

struct Counting;

thread_local! {
    static ALLOCATED: Cell<Allocated> = const { Cell::new(Allocated { times: 0, now: 0, peak: 0 }) };
}

/// Counts the allocations of this thread, and the bytes in use now and at most.
#[derive(Clone, Copy, Debug)]
pub struct Allocated {
    pub times: usize,
    now: usize,
    pub peak: usize,
}

/// The memory that is in use before a measurement, which may free it.
const BEFORE: usize = usize::MAX / 2;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

impl Counting {
    fn count(times: usize, freed: usize, bytes: usize) {
        let before = ALLOCATED.get();
        let now = before.now.wrapping_sub(freed).wrapping_add(bytes);
        ALLOCATED.set(Allocated { times: before.times + times, now, peak: before.peak.max(now) });
    }
}

// SAFETY: every call is forwarded unchanged to `System`. Counting allocates nothing: the cell needs
// no initialization and no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::count(1, 0, layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        Self::count(0, layout.size(), 0);
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::count(1, layout.size(), size);
        unsafe { System.realloc(memory, layout, size) }
    }
}

/// Returns what `work` allocates in this thread.
pub fn allocated<T>(work: impl FnOnce() -> T) -> Allocated {
    ALLOCATED.set(Allocated { times: 0, now: BEFORE, peak: BEFORE });
    black_box(work());
    let after = ALLOCATED.get();
    Allocated { peak: after.peak - BEFORE, ..after }
}

/// Returns the size of a `Vec` that has grown to `count` elements by doubling.
pub const fn grown(count: usize, size: usize) -> usize {
    count.next_power_of_two() * size
}
