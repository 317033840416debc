//! Promises of `Entries`.

use crate::support::prelude::*;
use crate::support::scan::names;

/// The number of records of 24 bytes that take two batches even with 32 KiB.
const MANY: usize = 2000;

fn sorted<T: Ord>(mut items: Vec<T>) -> Vec<T> {
    items.sort();
    items
}

#[test]
fn iterators_share_the_descriptors_position() {
    let dir = numbered(MANY);
    let fd = lendir::open(dir.path()).unwrap();
    let same = rustix::io::dup(&fd).unwrap();
    let (mut first_buffer, mut second_buffer) =
        (Buffer::with_capacity(0), Buffer::with_capacity(0));
    let mut first = Entries::new(fd.as_fd(), &mut first_buffer);
    let mut second = Entries::new(same.as_fd(), &mut second_buffer);
    let mut found = Vec::new();
    let (mut from_first, mut from_second) = (0, 0);
    loop {
        let one = first.next().unwrap().map(|entry| Found::from(&entry));
        let other = second.next().unwrap().map(|entry| Found::from(&entry));
        if one.is_none() && other.is_none() {
            break;
        }
        from_first += usize::from(one.is_some());
        from_second += usize::from(other.is_some());
        found.extend(one.into_iter().chain(other));
    }
    assert!(from_first > 0 && from_second > 0, "{from_first} and {from_second} entries");
    let expected: Vec<_> = (1..=MANY).map(|number| number.to_string().into_bytes()).collect();
    assert_eq!(sorted(names(&found)), sorted(expected));
}

#[test]
fn forms_of_a_name_agree() {
    let dir = Scratch::new();
    for name in ["0", "7", "007", "4194304", "4294967295", "4294967296", "+1", "name"] {
        make_file(&dir.path().join(name));
    }
    let fd = lendir::open(dir.path()).unwrap();
    let mut buffer = Buffer::new();
    let mut entries = Entries::new(fd.as_fd(), &mut buffer);
    let mut numbers = Vec::new();
    while let Some(entry) = entries.next().unwrap() {
        assert_eq!(entry.name_cstr().to_bytes(), entry.name());
        assert_eq!(entry.file_name().as_encoded_bytes(), entry.name());
        numbers.extend(entry.numeric_name());
    }
    assert_eq!(sorted(numbers), [0, 7, 4_194_304, u32::MAX]);
}

#[test]
fn debug_shows_names_and_paths() {
    let dir = numbered(1);
    let fd = lendir::open(dir.path()).unwrap();
    let mut buffer = Buffer::default();
    assert_eq!(format!("{buffer:?}"), "Buffer { capacity: 32768, .. }");
    let mut entries = Entries::new(fd.as_fd(), &mut buffer);
    let entry = format!("{:?}", entries.next().unwrap().unwrap());
    assert!(entry.starts_with("Entry { name: \"1\", d_type: RegularFile, ino: "), "{entry}");
    assert!(format!("{entries:?}").contains("phase: Reading"), "{entries:?}");

    let mut listing = Listing::new();
    listing.read(lendir::open(dir.path()).unwrap()).unwrap();
    let entry = format!("{:?}", listing.get(0).unwrap());
    assert!(entry.starts_with("ListedEntry { name: \"1\", d_type: RegularFile, ino: "), "{entry}");
    let seen = format!("{listing:?}");
    assert_eq!(seen, format!("Listing {{ order: Bytes, entries: [{entry}], .. }}"));

    let mut walk = lendir::walk_dirs(dir.path()).unwrap();
    let begin =
        format!("WalkDirs {{ path: {:?}, options: Options {{ same_mount: false, ", dir.path());
    assert!(format!("{walk:?}").starts_with(&begin), "{walk:?}");
    let root = walk.next().unwrap().unwrap();
    assert_eq!(
        format!("{root:?}"),
        format!("Dir {{ path: {:?}, depth: 0, is_second_visit: false, .. }}", dir.path())
    );
    let _ =
        walk.run_parallel(1, |worker| assert_eq!(format!("{worker:?}"), "Worker { index: 0, .. }"));
}
