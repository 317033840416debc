//! Checks that `ReadDir` reads the same as `Entries`, shares its descriptor, and reports errors.

use crate::support::prelude::*;
use lendir::read_dir;
use std::os::unix::net::UnixStream;

/// The number of entries that fill three batches of 32 KiB, at 24 bytes each.
const MANY: usize = 3000;

fn by_entries(path: &Path) -> Vec<Found> {
    scan::all(&mut Entries::new(lendir::open(path).unwrap().as_fd(), &mut Buffer::new()))
}

/// Returns all remaining entries.
fn all(dir: &mut ReadDir) -> Vec<Found> {
    let path = dir.path().to_owned();
    let mut found = Vec::new();
    while let Some(entry) = dir.next().unwrap() {
        assert_eq!(entry.path(), path.join(entry.file_name()));
        found.push(Found::from(&entry));
    }
    for _ in 0..3 {
        assert!(dir.next().unwrap().is_none());
    }
    found
}

#[test]
fn read_dir_reads_the_same_as_entries() {
    for made in [numbered(0), numbered(1), numbered(MANY), mixed()] {
        let expected = by_entries(made.path());
        let mut dir = read_dir(made.path()).unwrap();
        for _ in 0..3 {
            assert_eq!(all(&mut dir), expected);
            assert!(!dir.is_removed());
            dir.rewind().unwrap();
        }
        assert_eq!(dir.count().unwrap(), expected.len() as u64);
        assert_eq!(dir.count().unwrap(), 0);

        dir.rewind().unwrap();
        let found: Result<Vec<_>, Error> =
            dir.filter_map(|entry| Some(Found::from(&entry))).collect();
        assert_eq!(found.unwrap(), expected);
        let none: Vec<Result<(), Error>> =
            read_dir(made.path()).unwrap().filter_map(|_| None).collect();
        assert!(none.is_empty());
    }
}

/// The position does not matter: this or another reader of the descriptor has yielded nothing,
/// some, or all entries before, or has called `seek`.
#[test]
fn read_into_reads_the_whole_directory() {
    for made in [numbered(0), numbered(1), numbered(MANY)] {
        let expected = scan::sorted(by_entries(made.path()), Order::Unsorted);
        let mut listing = Listing::with_order(Order::Unsorted);
        let mut check = |mut dir: ReadDir| {
            for _ in 0..2 {
                dir.read_into(&mut listing).unwrap();
                assert_eq!(scan::listed(&listing), expected);
                for entry in &listing {
                    let path = entry.in_dir(dir.fd()).path();
                    assert_eq!(path, dir.path().join(entry.file_name()));
                }
                assert!(dir.next().unwrap().is_none() && !dir.is_removed());
            }
            dir.rewind().unwrap();
            assert_eq!(dir.count().unwrap(), expected.len() as u64);
        };
        for yielded in [0, 1, expected.len() / 2, expected.len(), expected.len() + 1] {
            let mut dir = read_dir(made.path()).unwrap();
            let fd = lendir::open(made.path()).unwrap();
            let mut of_fd = ReadDir::from_fd(fd.try_clone().unwrap(), "");
            let mut cookie = 0;
            for _ in 0..yielded {
                of_fd.next().unwrap();
                cookie = dir.next().unwrap().map_or(cookie, |entry| entry.cookie());
            }
            check(dir);
            check(of_fd);
            let mut at_cookie = read_dir(made.path()).unwrap();
            at_cookie.seek(cookie).unwrap();
            check(at_cookie);
            let mut buffer = Buffer::with_capacity(0);
            let mut entries = Entries::new(fd.as_fd(), &mut buffer);
            (0..yielded).for_each(|_| assert!(entries.next().is_ok()));
            check(ReadDir::from_fd(fd, made.path()));
        }
    }
}

/// The descriptor of `into_fd` does not return to entries that were fetched and not yielded.
#[test]
fn into_fd_is_behind_the_fetched_entries() {
    let made = numbered(MANY);
    let mut dir = read_dir(made.path()).unwrap();
    let cookie = dir.next().unwrap().unwrap().cookie();
    let fd = dir.into_fd();
    let rest = scan::all(&mut Entries::new(fd.as_fd(), &mut Buffer::new()));
    assert!((1..MANY - 1).contains(&rest.len()), "{} entries remain", rest.len());
    let mut dir = ReadDir::from_fd(fd, "");
    dir.seek(cookie).unwrap();
    assert_eq!(all(&mut dir)[..], by_entries(made.path())[1..]);
}

#[test]
fn read_into_error_leaves_the_listing_empty() {
    let made = numbered(3);
    let mut listing = Listing::new();
    read_dir(made.path()).unwrap().read_into(&mut listing).unwrap();
    let (socket, _) = UnixStream::pair().unwrap();
    let file = File::open(made.path().join("1")).unwrap();
    for fd in [OwnedFd::from(socket), OwnedFd::from(file)] {
        listing.read(lendir::open(made.path()).unwrap()).unwrap();
        assert_eq!(listing.len(), 3);
        let error = ReadDir::from_fd(fd, "").read_into(&mut listing).unwrap_err();
        assert_eq!((error.raw_os_error(), error.depth()), (Some(libc::ENOTDIR), 0));
        assert!(listing.is_empty());
    }
    let path = made.path().join("gone");
    std::fs::create_dir(&path).unwrap();
    let mut dir = read_dir(&path).unwrap();
    std::fs::remove_dir(&path).unwrap();
    dir.read_into(&mut listing).unwrap();
    assert!(listing.is_empty() && listing.is_removed() && dir.is_removed());
    dir.rewind().unwrap();
    assert!(!dir.is_removed());
    assert!(dir.next().unwrap().is_none() && dir.is_removed());
    listing.read(lendir::open(made.path()).unwrap()).unwrap();
    assert!(!listing.is_removed());
}

#[test]
fn error_has_the_path_and_is_reported_once() {
    let made = numbered(1);
    let file = made.path().join("1");
    let mut dir = ReadDir::from_fd(File::open(&file).unwrap(), "");
    assert_eq!(dir.path(), Path::new(""));
    for _ in 0..2 {
        let mut errors: Vec<Error> = Vec::new();
        assert!(dir.next_or_report(|error| errors.push(error)).is_none());
        assert_eq!(errors.pop().unwrap().raw_os_error(), Some(libc::ENOTDIR));
        assert!(dir.next_or_report(|error| errors.push(error)).is_none() && errors.is_empty());
        dir.rewind().unwrap();
    }
    let mut buffer = Buffer::new();
    let mut errors = 0;
    let fd = dir.fd();
    let mut entries = Entries::new(fd, &mut buffer);
    (0..2).for_each(|_| assert!(entries.next_or_report(|_| errors += 1).is_none()));
    assert_eq!(errors, 1);
    let made: Vec<Result<(), Error>> = dir.filter_map(|_| None).collect();
    let is_right = matches!(&made[..], [Err(error)] if error.raw_os_error() == Some(libc::ENOTDIR));
    assert!(is_right, "{made:?}");
}

#[test]
fn read_dir_shares_its_descriptor() {
    let made = numbered(1);
    let mut dir = read_dir(made.path()).unwrap();
    let mut buffer = Buffer::new();
    let entry = dir.next().unwrap().unwrap();
    let same = lendir::openat(entry.dir_fd(), ".").unwrap();
    assert_eq!(scan::all(&mut Entries::new(same.as_fd(), &mut buffer)).len(), 1);
    make_file(&made.path().join("2"));
    let fd = dir.fd();
    let mut entries = Entries::new(fd, &mut buffer);
    entries.rewind().unwrap();
    assert_eq!(scan::all(&mut entries).len(), 2);
    let debug = format!("{dir:?}");
    assert!(debug.starts_with(&format!("ReadDir {{ path: {:?}, dir: ", made.path())), "{debug}");
    assert!(debug.ends_with(", phase: Fresh, .. }"), "{debug}");
}
