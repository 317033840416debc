//! Cases that read directories which do not change.

use super::contents::{TYPES, still};
use crate::mounted::Mounted;
use crate::support::prelude::*;
use lendir::ListedEntry;
use rustix::fs::{RawDir, SeekFrom, seek};
use std::fmt::Display;

pub fn all(dir: &Path) -> Vec<Found> {
    scan::all(&mut Entries::new(lendir::open(dir).unwrap().as_fd(), &mut Buffer::new()))
}

/// Checks that these entries come next, in this order.
fn assert_next(entries: &mut Entries<'_>, expected: &[Found], what: &dyn Display) {
    for (index, expected) in expected.iter().enumerate() {
        let found = entries.next().unwrap().map(|entry| Found::from(&entry));
        assert_eq!(found.as_ref(), Some(expected), "{what}: {index}");
    }
}

/// Checks that these entries come next, and nothing after them.
fn assert_rest(entries: &mut Entries<'_>, expected: &[Found], what: &dyn Display) {
    assert_next(entries, expected, what);
    for _ in 0..2 {
        let more = entries.next().unwrap();
        assert!(more.is_none(), "{what}: {more:?} beyond the end");
    }
}

pub fn types_are_listed_or_queried(mounted: &Mounted) {
    let dir = lendir::open(mounted.at.join("types")).unwrap();
    let mut buffer = Buffer::new();
    let mut entries = Entries::new(dir.as_fd(), &mut buffer);
    let mut seen = BTreeMap::new();
    while let Some(entry) = entries.next().unwrap() {
        assert_eq!(entry.d_type() != FileType::Unknown, mounted.system.has_types, "{entry:?}");
        seen.insert(String::from_utf8_lossy(entry.name()).into_owned(), entry.file_type().unwrap());
    }
    let expected = TYPES
        .map(|(name, file_type)| (name.to_owned(), type_of_mode(file_type.as_raw_mode())))
        .into();
    assert_eq!(seen, expected);
    let mut listing = Listing::new();
    listing.read(lendir::openat(&dir, ".").unwrap()).unwrap();
    let resolved = |entry: ListedEntry<'_>| entry.in_dir(dir.as_fd()).file_type().unwrap();
    let seen: BTreeMap<_, _> = listing
        .iter()
        .map(|entry| (String::from_utf8_lossy(entry.name()).into_owned(), resolved(entry)))
        .collect();
    assert_eq!(seen, expected);
}

pub fn std_reads_the_same(mounted: &Mounted) {
    for dir in still(mounted) {
        let ours = all(&dir);
        let scan = Scan { found: ours.clone(), end: End::Complete };
        assert_eq!(scan.bare(), Scan::from_std(&dir), "{}", dir.display());
        let opened = lendir::open(&dir).unwrap();
        let count = Entries::new(opened.as_fd(), &mut Buffer::new()).count().unwrap();
        assert_eq!(count, ours.len() as u64, "{}", dir.display());
        for found in ours {
            let is_right = [FileType::Unknown, found.true_type(&opened)].contains(&found.file_type);
            assert!(is_right, "{found:?}");
        }
    }
}

pub fn listing_is_sorted(mounted: &Mounted) {
    for order in ORDERS {
        for path in still(mounted) {
            let dir = lendir::open(&path).unwrap();
            let mut listing = Listing::with_order(order);
            let scan = Scan { found: all(&path), end: End::Complete };
            let scan = if order == Order::Path {
                scan.resolved(|entry| entry.true_type(&dir))
            } else {
                scan
            };
            let listed = Scan::from_listing(&mut listing, &dir);
            assert_eq!(listed, scan.sorted(order), "{} by {order:?}", path.display());
        }
    }
}

/// A listing reads the rest if the descriptor is in the middle. It reads everything if the
/// descriptor is at the end.
pub fn listing_starts_at_the_descriptors_position(mounted: &Mounted) {
    for path in still(mounted) {
        let expected = all(&path);
        let dir = lendir::open(&path).unwrap();
        let mut listing = Listing::with_order(Order::Unsorted);
        for next in (1..expected.len()).step_by(step(&expected)) {
            seek(&dir, SeekFrom::Start(expected[next - 1].cookie)).unwrap();
            for found in [&expected[next..], &expected] {
                let scan = Scan { found: found.to_vec(), end: End::Complete };
                let what = format_args!("{} from entry {next} on", path.display());
                let seen = Scan::from_listing(&mut listing, &dir);
                assert_eq!(seen, scan.sorted(Order::Unsorted), "{what}");
            }
        }
    }
}

/// Capacities from the smallest to 1 MiB.
const CAPACITIES: [usize; 5] = [0, 8 * 1024 + 1, Buffer::DEFAULT_CAPACITY, 64 * 1024, 1024 * 1024];

/// Buffers of all sizes and the end marker yield the same entries. The marker is the cookie of the
/// last entry and of no other.
pub fn buffers_and_end_marker_change_nothing(mounted: &Mounted) {
    for path in still(mounted) {
        let expected = all(&path);
        for capacity in CAPACITIES {
            let mut buffer = Buffer::with_capacity(capacity);
            let dir = lendir::open(&path).unwrap();
            let what = format_args!("{} with {capacity} bytes", path.display());
            assert_rest(&mut Entries::new(dir.as_fd(), &mut buffer), &expected, &what);
        }
        let seen = scan::all_again(lendir::read_dir(&path).unwrap());
        assert_eq!(seen, expected, "{}", path.display());
        if let Some(end) = mounted.system.end_cookie() {
            let cookies = cookies_with_dots(&path);
            let seen = cookies.iter().position(|cookie| *cookie == end);
            assert_eq!(seen, Some(cookies.len() - 1), "{}", path.display());
        }
    }
}

fn cookies_with_dots(dir: &Path) -> Vec<u64> {
    let mut cookies = Vec::new();
    let mut memory = Vec::with_capacity(Buffer::DEFAULT_CAPACITY);
    let mut records = RawDir::new(lendir::open(dir).unwrap(), memory.spare_capacity_mut());
    while let Some(record) = records.next() {
        cookies.push(record.unwrap().next_entry_cookie());
    }
    cookies
}

pub fn seek_continues_after_each_cookie(mounted: &Mounted) {
    for path in still(mounted) {
        let expected = all(&path);
        let dir = lendir::open(&path).unwrap();
        let mut buffer = Buffer::with_capacity(0);
        let mut entries = Entries::new(dir.as_fd(), &mut buffer);
        for index in (0..expected.len()).step_by(step(&expected)) {
            entries.seek(expected[index].cookie).unwrap();
            let (rest, what) =
                (&expected[index + 1..], format_args!("{} after entry {index}", path.display()));
            if rest.len() > FEW {
                assert_next(&mut entries, &rest[..2], &what);
            } else {
                assert_rest(&mut entries, rest, &what);
            }
        }
        // A new descriptor: one that first reads at the end of an ext4 directory finds nothing
        // after a rewind, either.
        let dir = lendir::open(&path).unwrap();
        let mut entries = Entries::new(dir.as_fd(), &mut buffer);
        for count in (0..=expected.len()).step_by(step(&expected)) {
            assert_next(
                &mut entries,
                &expected[..count],
                &format_args!("the first {count} of {}", path.display()),
            );
            entries.rewind().unwrap();
        }
        assert_rest(
            &mut entries,
            &expected,
            &format_args!("{} after the last rewind", path.display()),
        );
    }
}

/// The number of entries above which the case checks only some of them.
const FEW: usize = 400;

fn step(entries: &[Found]) -> usize {
    match (entries.len(), machine::runs_long()) {
        (..=20, _) | (..=2000, true) => 1,
        (..=2000, false) => 37,
        (_, true) => 17,
        (_, false) => 499,
    }
}
