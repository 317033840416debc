//! What `Entries` promises, sentence by sentence.

use crate::fixture::{make_file, numbered};
use crate::support::scan::{Found, all, names};
use lendir::{Buffer, EndMarker, Entries, FileType, Walk};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// 2000 records of 24 bytes: two batches even with 32 KiB.
const MANY: usize = 2000;

fn sorted<T: Ord>(mut items: Vec<T>) -> Vec<T> {
    items.sort();
    items
}

#[test]
fn dots_are_skipped_and_lookalikes_kept() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["...", ".a", "..a", ".", "..", ". ", "a", ".. "] {
        let path = dir.path().join(name);
        if !path.exists() {
            make_file(&path);
        }
    }
    let made: [&[u8]; 6] = [b"...", b".. ", b"..a", b". ", b".a", b"a"];
    let fd = lendir::open(dir.path()).unwrap();
    let mut buffer = Buffer::new();
    let found = all(&mut Entries::new(&fd, &mut buffer));
    assert_eq!(sorted(names(&found)), sorted(made.to_vec()));

    for path in ["/", "/proc", "/proc/self", "/sys", "/dev", "/tmp"] {
        let fd = lendir::open(path).unwrap();
        let mut entries = Entries::new(&fd, &mut buffer);
        while let Some(entry) = entries.next().unwrap() {
            assert!(entry.name() != b"." && entry.name() != b"..", "{path}");
        }
    }
}

#[test]
fn end_holds_until_rewind() {
    let dir = numbered(3);
    let fd = lendir::open(dir.path()).unwrap();
    let mut buffer = Buffer::new();
    let mut entries = Entries::new(&fd, &mut buffer);
    assert_eq!(all(&mut entries).len(), 3);
    make_file(&dir.path().join("late"));
    for _ in 0..3 {
        assert!(entries.next().unwrap().is_none());
    }
    assert!(!entries.removed());
    entries.rewind().unwrap();
    assert_eq!(all(&mut entries).len(), 4);
}

#[test]
fn error_comes_once_until_rewind() {
    let file = tempfile::tempfile().unwrap();
    let mut buffer = Buffer::new();
    let mut entries = Entries::new(&file, &mut buffer);
    for _ in 0..2 {
        let error = entries.next().unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOTDIR));
        for _ in 0..3 {
            assert!(entries.next().unwrap().is_none());
        }
        assert!(!entries.removed());
        entries.rewind().unwrap();
    }
}

#[test]
fn removed_directory_ends_and_is_reported() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("dir");
    std::fs::create_dir(&path).unwrap();
    let fd = lendir::open(&path).unwrap();
    let mut buffer = Buffer::new();
    let mut entries = Entries::new(&fd, &mut buffer);
    assert!(entries.next().unwrap().is_none());
    assert!(!entries.removed(), "an empty directory is not a removed one");

    std::fs::remove_dir(&path).unwrap();
    for _ in 0..2 {
        entries.rewind().unwrap();
        assert!(!entries.removed(), "nothing was read yet");
        assert!(entries.next().unwrap().is_none());
        assert!(entries.removed());
    }
}

#[test]
fn seek_goes_to_just_after_the_entry_of_a_cookie() {
    let dir = numbered(MANY);
    let fd = lendir::open(dir.path()).unwrap();
    let mut buffer = Buffer::with_capacity(Buffer::MIN_CAPACITY);
    let mut entries = Entries::new(&fd, &mut buffer);
    let expected = all(&mut entries);
    assert_eq!(expected.len(), MANY);
    for position in (0..MANY).step_by(7).chain([MANY - 1]) {
        entries.seek(expected[position].cookie).unwrap();
        let next = entries.next().unwrap().map(|entry| Found::from(&entry));
        assert_eq!(next.as_ref(), expected.get(position + 1), "after entry {position}");
    }
    entries.seek(expected[MANY / 2].cookie).unwrap();
    assert_eq!(all(&mut entries), expected[MANY / 2 + 1..]);
}

#[test]
fn rewind_discards_the_buffer() {
    let dir = numbered(50);
    let fd = lendir::open(dir.path()).unwrap();
    let mut buffer = Buffer::new();
    let mut entries = Entries::new(&fd, &mut buffer);
    let expected = all(&mut entries);
    for count in 0..=expected.len() {
        entries.rewind().unwrap();
        for _ in 0..count {
            assert!(entries.next().unwrap().is_some());
        }
        entries.rewind().unwrap();
        assert_eq!(all(&mut entries), expected, "after {count} entries");
    }
}

#[test]
fn any_borrow_of_a_descriptor_will_do() {
    let dir = numbered(50);
    let fd = lendir::open(dir.path()).unwrap();
    let mut buffer = Buffer::new();
    let expected = all(&mut Entries::new(&fd, &mut buffer));
    assert!(all(&mut Entries::new(&fd, &mut buffer)).is_empty(), "its position is not at the end");
    let mut entries = Entries::new(&fd, &mut buffer);
    entries.rewind().unwrap();
    assert_eq!(all(&mut entries), expected);
    let (socket, _) = UnixStream::pair().unwrap();
    assert_eq!(Entries::new(&socket, &mut buffer).rewind().unwrap_err().raw_os_error(), Some(libc::ESPIPE));
}

#[test]
fn refused_seek_changes_nothing() {
    let dir = numbered(10);
    let fd = lendir::open(dir.path()).unwrap();
    let mut buffer = Buffer::new();
    let mut entries = Entries::new(&fd, &mut buffer);
    assert!(entries.next().unwrap().is_some());
    let error = entries.seek(u64::MAX).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EINVAL));
    assert_eq!(all(&mut entries).len(), 9);
}

#[test]
fn iterators_on_one_descriptor_share_its_position() {
    let dir = numbered(MANY);
    let fd = lendir::open(dir.path()).unwrap();
    let same = rustix::io::dup(&fd).unwrap();
    let (mut first_buffer, mut second_buffer) = (Buffer::with_capacity(0), Buffer::with_capacity(0));
    let mut first = Entries::new(&fd, &mut first_buffer);
    let mut second = Entries::new(&same, &mut second_buffer);
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
    assert!(from_first > 0 && from_second > 0);
    let expected: Vec<_> = (1..=MANY).map(|number| number.to_string().into_bytes()).collect();
    assert_eq!(sorted(names(&found)), sorted(expected));
}

#[test]
fn next_iterator_starts_after_the_last_batch_or_a_cookie() {
    let dir = numbered(MANY);
    let fd = lendir::open(dir.path()).unwrap();
    let mut buffer = Buffer::with_capacity(Buffer::MIN_CAPACITY);
    let expected = all(&mut Entries::new(&fd, &mut buffer));

    let mut entries = Entries::new(&fd, &mut buffer);
    entries.rewind().unwrap();
    let cookie = entries.next().unwrap().unwrap().cookie();
    let rest = all(&mut Entries::new(&fd, &mut buffer));
    assert!(rest.len() < expected.len() - 1, "the first batch was not dropped");
    assert_eq!(rest, expected[expected.len() - rest.len()..]);

    let mut entries = Entries::new(&fd, &mut buffer);
    entries.seek(cookie).unwrap();
    assert_eq!(all(&mut entries), expected[1..]);
}

#[test]
fn descriptor_is_usable_while_an_entry_lives() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["a", "b", "c"] {
        std::fs::create_dir(dir.path().join(name)).unwrap();
        make_file(&dir.path().join(name).join(name));
    }
    let fd = lendir::open(dir.path()).unwrap();
    let (mut outer, mut inner) = (Buffer::new(), Buffer::new());
    let mut entries = Entries::new(&fd, &mut outer);
    let mut children = 0;
    while let Some(entry) = entries.next().unwrap() {
        let child = lendir::openat(&fd, entry.name_cstr()).unwrap();
        let mut grandchildren = Entries::new(&child, &mut inner);
        assert_eq!(grandchildren.next().unwrap().unwrap().name(), entry.name());
        assert!(grandchildren.next().unwrap().is_none());
        children += 1;
    }
    assert_eq!(children, 3);
    assert_eq!(rustix::fs::fstat(entries.as_fd()).unwrap().st_ino, rustix::fs::fstat(&fd).unwrap().st_ino);
}

#[test]
fn count_returns_the_number_left() {
    let dir = numbered(MANY);
    let fd = lendir::open(dir.path()).unwrap();
    let mut buffer = Buffer::new();
    assert_eq!(Entries::new(&fd, &mut buffer).count().unwrap(), MANY as u64);
    assert_eq!(Entries::new(&fd, &mut buffer).count().unwrap(), 0);
    let mut entries = Entries::new(&fd, &mut buffer);
    entries.rewind().unwrap();
    for _ in 0..5 {
        assert!(entries.next().unwrap().is_some());
    }
    assert_eq!(entries.count().unwrap(), MANY as u64 - 5);
}

#[test]
fn forms_of_a_name_agree() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["0", "7", "007", "4194304", "4294967295", "4294967296", "+1", "name"] {
        make_file(&dir.path().join(name));
    }
    let fd = lendir::open(dir.path()).unwrap();
    let mut buffer = Buffer::new();
    let mut entries = Entries::new(&fd, &mut buffer);
    let mut numbers = Vec::new();
    while let Some(entry) = entries.next().unwrap() {
        assert_eq!(entry.name_cstr().to_bytes(), entry.name());
        assert_eq!(entry.name_os().as_encoded_bytes(), entry.name());
        numbers.extend(entry.numeric_name());
    }
    assert_eq!(sorted(numbers), [0, 7, 4_194_304, u32::MAX]);
}

#[test]
fn symlinks_are_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    make_file(&dir.path().join("file"));
    std::os::unix::fs::symlink("/", dir.path().join("to a directory")).unwrap();
    std::os::unix::fs::symlink("nowhere", dir.path().join("dangling")).unwrap();
    let fd = lendir::open(dir.path()).unwrap();
    let mut buffer = Buffer::new();
    let mut entries = Entries::new(&fd, &mut buffer);
    let mut links = 0;
    while let Some(entry) = entries.next().unwrap() {
        let is_link = entry.name() != b"file";
        links += usize::from(is_link);
        let expected = if is_link { FileType::Symlink } else { FileType::RegularFile };
        assert_eq!(entry.resolve_file_type().unwrap(), expected);
    }
    assert_eq!(links, 2);
}

#[test]
fn end_marker_changes_no_result() {
    let on_tmpfs = Path::new("/dev/shm").is_dir().then(|| tempfile::tempdir_in("/dev/shm").unwrap());
    let directories = [Some(numbered(MANY)), Some(numbered(1)), Some(numbered(0)), on_tmpfs];
    let mut paths: Vec<_> = directories.iter().flatten().map(tempfile::TempDir::path).collect();
    paths.extend(["/sys", "/sys/class", "/usr", "/usr/bin", "/etc"].map(Path::new));
    for path in paths {
        let fd = lendir::open(path).unwrap();
        let marker = EndMarker::of(&fd).unwrap();
        for capacity in [Buffer::MIN_CAPACITY, 1 << 20] {
            let mut buffer = Buffer::with_capacity(capacity);
            let mut entries = Entries::new(&fd, &mut buffer);
            entries.rewind().unwrap();
            let plain = all(&mut entries);
            let mut entries = Entries::new(&fd, &mut buffer).with_end_marker(marker);
            for _ in 0..2 {
                entries.rewind().unwrap();
                assert_eq!(all(&mut entries), plain, "{}", path.display());
                assert!(entries.next().unwrap().is_none());
            }
        }
    }
    assert_eq!(EndMarker::of(lendir::open("/proc").unwrap()).unwrap(), EndMarker::NONE);
}

#[test]
fn debug_shows_what_there_is() {
    let dir = numbered(1);
    let fd = lendir::open(dir.path()).unwrap();
    let mut buffer = Buffer::default();
    assert_eq!(format!("{buffer:?}"), "Buffer { capacity: 32768 }");
    let mut entries = Entries::new(&fd, &mut buffer);
    let entry = format!("{:?}", entries.next().unwrap().unwrap());
    assert!(entry.starts_with("Entry { name: \"1\", file_type: RegularFile, ino: "), "{entry}");
    assert!(format!("{entries:?}").contains("phase: Reading"));

    let mut walk = Walk::open(dir.path()).unwrap();
    let begin = format!("Walk {{ path: {:?}, depth: 0, options: Options {{ same_mount: false, ", dir.path());
    assert!(format!("{walk:?}").starts_with(&begin), "{walk:?}");
    let root = walk.next().unwrap().unwrap();
    assert_eq!(format!("{root:?}"), format!("Dir {{ path: {:?}, depth: 0, is_second_visit: false, .. }}", dir.path()));
}
