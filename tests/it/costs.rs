//! Counts allocations: none per entry, one per `Buffer`, two per `ReadDir`, and as many for a
//! `Listing` as its memory grows.

use crate::allocations::{Allocated, NOTHING, allocated};
use crate::support::fixture::{make_file, numbered};
use crate::support::scan::ORDERS;
use crate::support::scratch::Scratch;
use lendir::rustix::fs::StatxFlags;
use lendir::{Buffer, Entries, Listing, OFlags};
use std::hint::black_box;
use std::os::fd::AsFd;
use std::path::Path;

#[test]
fn buffer_makes_one_allocation() {
    let once = |bytes| Allocated { times: 1, bytes, freed: bytes };
    assert_eq!(allocated(|| drop(Buffer::new())), once(Buffer::DEFAULT_CAPACITY));
    assert_eq!(allocated(|| drop(Buffer::with_capacity(0))), once(Buffer::MIN_CAPACITY));
}

#[test]
fn reading_allocates_nothing() {
    let dirs = [numbered(0), numbered(16), numbered(1000)];
    let mut buffer = Buffer::with_capacity(Buffer::MIN_CAPACITY);
    let mut read = 0;
    let costs = allocated(|| {
        for dir in &dirs {
            let dir = lendir::open(dir.path()).unwrap();
            let mut entries = Entries::new(dir.as_fd(), &mut buffer);
            for _ in 0..2 {
                entries.rewind().unwrap();
                while let Some(entry) = entries.next().unwrap() {
                    black_box((
                        entry.name(),
                        entry.file_name(),
                        entry.numeric_name(),
                        entry.file_type().unwrap(),
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
    assert_eq!(read, 3 * 1016);
    assert_eq!(costs, NOTHING);
}

#[test]
fn read_dir_makes_two_allocations() {
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
    let bytes = Buffer::DEFAULT_CAPACITY + made.path().as_os_str().len();
    assert_eq!((read, costs), (2 * 5000, Allocated { times: 2, bytes, freed: bytes }));
}

#[test]
fn error_makes_two_allocations_at_most() {
    let file = tempfile::tempfile().unwrap();
    let mut buffer = Buffer::new();
    let costs = [
        allocated(|| lendir::open("/nowhere").unwrap_err()),
        allocated(|| lendir::openat(&file, "below").unwrap_err()),
        allocated(|| Entries::new(file.as_fd(), &mut buffer).next().unwrap_err()),
        allocated(|| Entries::new(file.as_fd(), &mut buffer).seek(u64::MAX).unwrap_err()),
    ];
    assert!(costs.iter().all(|costs| costs.times <= 2), "{costs:?}");
}

/// A `Listing` takes the memory that its documentation states. Once it has held a directory of the
/// same size, it allocates nothing.
#[test]
fn listing_reuses_bounded_memory() {
    const NAME: usize = "IMG_20240101_000000.jpg".len();
    let directory = |count: usize| {
        let dir = Scratch::in_memory();
        for number in 0..count {
            make_file(&dir.path().join(format!("IMG_20240101_{:06}.jpg", number * 7919 % count)));
        }
        dir
    };
    // The number is just over half of what the memory of a listing grows to, so most of the memory
    // is unused.
    let (small, large) = (directory(300), directory(40_000));
    let fresh = allocated(|| Listing::new().read(lendir::open(small.path()).unwrap()).unwrap());
    assert!(fresh.times == 3 && fresh.bytes <= 54 * 1024, "{fresh:?}");
    for order in ORDERS {
        let mut listing = Listing::with_order(order);
        let mut read = |path: &Path| {
            // `open` copies the path to the stack, so it allocates nothing, either.
            let dir = lendir::open(path).unwrap();
            listing.read(&dir).unwrap();
            assert!(listing.by_name(b"IMG_20240101_000299.jpg").is_some());
            listing.iter().for_each(|entry| assert_eq!(entry.name_cstr().count_bytes(), NAME));
            listing.len()
        };
        let mut len = 0;
        let cold = allocated(|| len = read(large.path()));
        assert_eq!(len, 40_000);

        // The memory doubles when it grows, and always has room for a batch of up to a mebibyte.
        let record = (19 + NAME + 1).next_multiple_of(8);
        let promised = len * (16 + record);
        let taken = cold.bytes - cold.freed;
        assert!(
            taken <= 2 * (promised + 1024 * 1024),
            "{order:?}: {taken} bytes taken, {promised} promised"
        );

        let warm = allocated(|| [small.path(), large.path(), small.path()].map(read));
        assert_eq!(warm, NOTHING, "{order:?}");
    }
}
