//! Counts of allocations.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;

/// An allocator that counts for each thread separately, because other tests allocate in their
/// threads.
struct Counting;

thread_local! {
    static ALLOCATED: Cell<Allocated> = const { Cell::new(Allocated { times: 0, bytes: 0, freed: 0 }) };
}

/// Counts of allocations. The bytes may wrap around on 32 bits, because only differences are
/// compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocated {
    pub times: usize,
    pub bytes: usize,
    pub freed: usize,
}

pub const NOTHING: Allocated = Allocated { times: 0, bytes: 0, freed: 0 };

#[global_allocator]
static ALLOCATOR: Counting = Counting;

impl Counting {
    fn add(bytes: usize) {
        let so_far = ALLOCATED.get();
        ALLOCATED.set(Allocated {
            times: so_far.times + 1,
            bytes: so_far.bytes.wrapping_add(bytes),
            ..so_far
        });
    }

    fn free(bytes: usize) {
        let so_far = ALLOCATED.get();
        ALLOCATED.set(Allocated { freed: so_far.freed.wrapping_add(bytes), ..so_far });
    }
}

// SAFETY: every call is forwarded unchanged to `System`. Counting allocates nothing: the cells need
// no initialization and no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::add(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        Self::free(layout.size());
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Self::add(size);
        Self::free(layout.size());
        unsafe { System.realloc(memory, layout, size) }
    }
}

/// Returns what `work` allocates and frees in this thread.
pub fn allocated<T>(work: impl FnOnce() -> T) -> Allocated {
    let before = ALLOCATED.get();
    black_box(work());
    let after = ALLOCATED.get();
    Allocated {
        times: after.times - before.times,
        bytes: after.bytes.wrapping_sub(before.bytes),
        freed: after.freed.wrapping_sub(before.freed),
    }
}

/// Returns the size of a `Vec` that has grown to `count` elements by doubling.
pub const fn grown(count: usize, size: usize) -> usize {
    count.next_power_of_two() * size
}
