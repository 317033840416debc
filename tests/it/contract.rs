//! The `Debug` output of the public types.

use crate::support::prelude::*;

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
