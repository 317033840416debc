//! Queries of an entry and their errors.

use crate::support::fixture::{make_file, mixed};
use crate::support::scratch::Scratch;
use lendir::rustix::fs::{FileType, StatxFlags, fcntl_getfl};
use lendir::rustix::io::{FdFlags, fcntl_getfd};
use lendir::{Buffer, Entries, Entry, Error, ListedEntry, Listing, OFlags};
use std::fs;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::process::Command;

/// A query describes the entry itself, never the target of a link.
#[test]
fn queries_describe_the_entry_itself() {
    let made = mixed();
    symlink("x/".repeat(2047), made.path().join("long")).unwrap(); // the kernel's limit is 4095
    let mut dir = lendir::read_dir(made.path()).unwrap();
    let (mut checked, mut links) = (0, 0);
    while let Some(entry) = dir.next().unwrap() {
        let expected = fs::symlink_metadata(entry.path()).unwrap();
        let (stat, statx) = (entry.stat().unwrap(), entry.statx(StatxFlags::BASIC_STATS).unwrap());
        assert_eq!((stat.st_ino, stat.st_mode), (expected.ino(), expected.mode()));
        assert_eq!((statx.stx_ino, u32::from(statx.stx_mode)), (expected.ino(), expected.mode()));
        assert_eq!(
            (u64::try_from(stat.st_size), statx.stx_size),
            (Ok(expected.len()), expected.len())
        );
        assert_eq!(entry.file_type().unwrap(), FileType::from_raw_mode(expected.mode()));
        let target =
            entry.read_link().map_err(|error| (error.path().to_owned(), error.raw_os_error()));
        let expected =
            fs::read_link(entry.path()).map_err(|error| (entry.path(), error.raw_os_error()));
        assert_eq!(target, expected);
        links += usize::from(target.is_ok());
        checked += 1;
    }
    assert!(checked > 20 && links > 1 && links < checked, "{links} links of {checked}");
}

#[test]
fn listed_entry_agrees_with_entry() {
    let made = mixed();
    let (mut dir, mut listing) = (lendir::read_dir(made.path()).unwrap(), Listing::new());
    dir.read_into(&mut listing).unwrap();
    dir.rewind().unwrap();
    let fd = lendir::open(made.path()).unwrap();
    while let Some(entry) = dir.next().unwrap() {
        let sorted = listing.by_name(entry.name()).unwrap();
        assert_eq!((sorted.name_cstr(), sorted.name_os()), (entry.name_cstr(), entry.name_os()));
        assert_eq!((sorted.ino(), sorted.d_type()), (entry.ino(), entry.d_type()));
        assert_eq!((sorted.numeric_name(), sorted.path()), (entry.numeric_name(), entry.path()));
        assert_eq!(
            (sorted.depth(), sorted.wrap_error(io::ErrorKind::Other).path()),
            (1, &*entry.path())
        );
        assert_eq!(sorted.file_type(&fd).unwrap(), entry.file_type().unwrap());
        let (a, b) = (sorted.stat(&fd).unwrap(), entry.stat().unwrap());
        assert_eq!((a.st_dev, a.st_ino, a.st_mode), (b.st_dev, b.st_ino, b.st_mode));
        assert_eq!(sorted.statx(&fd, StatxFlags::INO).unwrap().stx_ino, b.st_ino);
        assert_eq!(sorted.open(&fd, OFlags::PATH).is_ok(), entry.open(OFlags::PATH).is_ok());
        assert_eq!(sorted.read_link(&fd).ok(), entry.read_link().ok());
    }
    fs::remove_file(made.path().join("plain")).unwrap();
    let gone = listing.by_name("plain").unwrap();
    let errors = [
        gone.stat(&fd).err(),
        gone.statx(&fd, StatxFlags::INO).err(),
        gone.open(&fd, OFlags::RDONLY).err(),
    ];
    for error in errors.into_iter().chain([gone.read_link(&fd).err()]) {
        let error = error.expect("it did not fail");
        assert_eq!(
            (error.path(), error.raw_os_error()),
            (&*made.path().join("plain"), Some(libc::ENOENT))
        );
    }
    listing.read(lendir::open("/").unwrap()).unwrap();
    assert!(
        listing.iter().all(|entry| entry.path().as_os_str() == entry.name_os()),
        "an entry has the path of another directory"
    );
}

#[test]
fn open_follows_no_link_and_closes_on_exec() {
    let made = Scratch::new();
    make_file(&made.path().join("file"));
    fs::create_dir(made.path().join("directory")).unwrap();
    symlink("file", made.path().join("link")).unwrap();
    let mut dir = lendir::read_dir(made.path()).unwrap();
    while let Some(entry) = dir.next().unwrap() {
        let is_link = entry.name() == b"link";
        let opened = entry.open(OFlags::RDONLY | OFlags::NONBLOCK);
        assert_eq!(
            opened.as_ref().err().and_then(Error::raw_os_error),
            is_link.then_some(libc::ELOOP)
        );
        if let Ok(fd) = opened {
            assert!(fcntl_getfd(&fd).unwrap().contains(FdFlags::CLOEXEC));
            assert!(fcntl_getfl(&fd).unwrap().contains(OFlags::NONBLOCK));
        }
        let itself = entry.open(OFlags::PATH).unwrap();
        assert_eq!(lendir::rustix::fs::fstat(itself).unwrap().st_ino, entry.stat().unwrap().st_ino);
        let below = entry.open(OFlags::DIRECTORY);
        assert_eq!(below.is_ok(), entry.name() == b"directory");
    }
}

/// Returns the error of each call that can fail, for an entry that is gone.
fn errors(entry: &Entry<'_>) -> [Error; 4] {
    let mask = StatxFlags::BASIC_STATS;
    [
        entry.stat().err(),
        entry.statx(mask).err(),
        entry.open(OFlags::RDONLY).err(),
        entry.read_link().err(),
    ]
    .map(|error| error.expect("it did not fail"))
}

#[test]
fn error_has_path_and_depth_of_the_entry() {
    let made = Scratch::new();
    let below = made.path().join("a/b");
    fs::create_dir_all(&below).unwrap();
    let check = |entry: &Entry<'_>, path: &Path, depth| {
        assert_eq!(entry.depth(), depth);
        for error in errors(entry) {
            assert_eq!(
                (error.path(), error.depth(), error.raw_os_error()),
                (path, depth, Some(libc::ENOENT))
            );
        }
    };
    let gone = |at: &Path| {
        make_file(&at.join("gone"));
        at.join("gone")
    };

    let mut walk = lendir::walk_dirs(made.path()).unwrap();
    let (mut depth, mut listing) = (0, Listing::new());
    while let Some(mut dir) = walk.next().unwrap() {
        let path = gone(dir.path());
        depth += 1;
        while let Some(entry) = dir.next().unwrap() {
            if entry.name() == b"gone" {
                fs::remove_file(&path).unwrap();
                check(&entry, &path, depth);
            }
        }
        make_file(&path);
        dir.read_into(&mut listing).unwrap();
        fs::remove_file(&path).unwrap();
        let sorted = listing.by_name("gone").unwrap();
        let error = sorted.stat(dir.fd()).unwrap_err();
        assert_eq!((error.path(), error.depth(), sorted.path()), (&*path, depth, path.clone()));
    }
    assert_eq!(depth, 3);

    let path = gone(&below);
    let mut dir = lendir::read_dir(&below).unwrap();
    let fd = lendir::open(&below).unwrap();
    let mut buffer = Buffer::new();
    let mut entries = Entries::new(&fd, &mut buffer);
    let (entry, bare) = (dir.next().unwrap().unwrap(), entries.next().unwrap().unwrap());
    fs::remove_file(&path).unwrap();
    check(&entry, &path, 1);
    check(&bare, Path::new("gone"), 1);
}

/// After the end of a process, a path in its directory is `ENOENT`, and a name in the open
/// directory is `ESRCH`. Both errors are `is_gone`.
#[test]
fn ended_process_makes_errors_gone() {
    let mut process = Command::new("sleep").arg("60").spawn().unwrap();
    let proc = Path::new("/proc").join(process.id().to_string());
    let (mut walk, mut names) = (lendir::walk_dirs(&proc).unwrap(), 0);
    let mut entry_walk = lendir::walk(&proc).unwrap();
    let walk_entry =
        entry_walk.find(|entry| entry.name() == b"fd").unwrap().expect("it has no `fd`");
    let mut dir = walk.next().unwrap().unwrap();
    let first = dir.next().unwrap().unwrap(); // one batch has all entries
    let mut unqueried = usize::from(first.d_type() == FileType::Directory);
    process.kill().unwrap();
    process.wait().unwrap();
    while let Some(entry) = dir.next().unwrap() {
        names += 1;
        if entry.d_type() == FileType::Directory && names % 2 == 0 {
            unqueried += 1;
            continue;
        }
        for error in errors(&entry) {
            assert!(error.is_gone() && error.raw_os_error() == Some(libc::ESRCH), "{error}");
        }
    }
    assert!(names > 20 && unqueried > 1, "{names} names, {unqueried} unqueried");
    assert!(
        walk_entry.open(OFlags::PATH).unwrap_err().is_gone()
            && lendir::open(&proc).unwrap_err().is_gone()
    );
    let mut errors = 0;
    while walk.next_or_report(|error| errors += usize::from(error.is_gone())).is_some() {}
    assert_eq!(errors, unqueried, "queried entries have no second error");
    assert!(entry_walk.next().unwrap_err().is_gone());
}

#[test]
fn listed_entry_outlives_the_loop() {
    fn newest<'l>(
        listing: &'l Listing,
        dir: BorrowedFd<'_>,
    ) -> Option<(ListedEntry<'l>, &'l [u8])> {
        let newest =
            listing.iter().max_by_key(|entry| entry.stat(dir).map_or(0, |stat| stat.st_mtime))?;
        Some((newest, newest.name()))
    }
    let made = Scratch::new();
    make_file(&made.path().join("one"));
    let (mut dir, mut listing) = (lendir::read_dir(made.path()).unwrap(), Listing::new());
    dir.read_into(&mut listing).unwrap();
    assert_eq!(newest(&listing, dir.fd()).unwrap().1, b"one");
}
