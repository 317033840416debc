//! Queries of an entry and their errors.

use crate::support::prelude::*;
use rustix::fs::{CWD, FileType, Mode, fstat, mknodat, openat};
use rustix::io::{Errno, FdFlags, fcntl_getfd};
use rustix::process::setsid;
use rustix::pty::{OpenptFlags, openpt, ptsname, unlockpt};
use std::io::Read;
use std::os::unix::net::UnixListener;

/// Checks that the crate's metadata is std's, method by method.
fn assert_same(found: &Metadata, expected: &fs::Metadata) {
    macro_rules! same {
        ($($method:ident)*) => { $(assert_eq!(found.$method(), expected.$method());)* };
    }
    same!(is_dir is_file is_symlink len dev ino mode nlink uid gid rdev blksize blocks);
    same!(atime atime_nsec mtime mtime_nsec ctime ctime_nsec);
    assert_eq!(found.file_type(), type_of_mode(expected.mode()));
    assert_eq!(found.modified().unwrap(), expected.modified().unwrap());
    assert_eq!(found.accessed().unwrap(), expected.accessed().unwrap());
    if cfg!(target_env = "gnu") {
        assert_eq!(found.created().ok(), expected.created().ok()); // elsewhere std has no `statx`
    }
}

/// A query describes the entry itself, never the target of a link.
#[test]
fn queries_describe_the_entry_itself() {
    let made = mixed();
    symlink("x/".repeat(2047), made.path().join("long")).unwrap(); // the kernel's limit is 4095
    let mut dir = lendir::read_dir(made.path()).unwrap();
    let (mut checked, mut links) = (0, 0);
    while let Some(entry) = dir.next().unwrap() {
        let expected = fs::symlink_metadata(entry.path()).unwrap();
        assert_same(&entry.metadata().unwrap(), &expected);
        assert_eq!(entry.file_type().unwrap(), type_of_mode(expected.mode()));
        let target = entry
            .read_link()
            .map_err(|error| (error.path().unwrap().to_owned(), error.raw_os_error()));
        let expected =
            fs::read_link(entry.path()).map_err(|error| (entry.path(), error.raw_os_error()));
        assert_eq!(target, expected);
        links += usize::from(target.is_ok());
        checked += 1;
    }
    assert!(checked > 20 && links > 1 && links < checked, "{links} links of {checked}");
}

/// Returns all that an entry answers, whatever yields it.
fn answers(entry: &Entry<'_>) -> String {
    assert_eq!([entry.file_name().as_bytes(), entry.name_cstr().to_bytes()], [entry.name(); 2]);
    let errno = |error: Error| error.raw_os_error();
    format!(
        "{:?} {:?} {:?} {:?} {:?} {} {} {:?} {:?}",
        entry.name_cstr(),
        entry.numeric_name(),
        entry.d_type(),
        entry.file_type().unwrap(),
        (entry.ino(), entry.cookie()),
        entry.metadata().unwrap().mode(),
        fstat(entry.dir_fd()).unwrap().st_ino,
        entry.read_link().map_err(errno),
        entry.open_file().map(|file| file.metadata().unwrap().ino()).map_err(errno),
    )
}

/// A function that takes an entry need not know who yields it. Only the path differs: that of an
/// `Entries` is the name alone.
#[test]
fn entries_of_all_readers_agree() {
    let made = mixed();
    let (mut listing, fd) = (Listing::new(), lendir::open(made.path()).unwrap());
    let mut buffer = Buffer::new();
    let [mut all, mut of_entries, mut of_dir, mut of_walk, mut of_listing] =
        [(); 5].map(|()| BTreeSet::new());
    let mut dir = lendir::read_dir(made.path()).unwrap();
    while let Some(entry) = dir.next().unwrap() {
        all.insert((entry.path(), answers(&entry)));
    }
    dir.read_into(&mut listing).unwrap();
    of_listing.extend(listing.iter().map(|entry| {
        let entry = entry.in_dir(fd.as_fd());
        (entry.path(), answers(&entry))
    }));
    let mut entries = Entries::new(fd.as_fd(), &mut buffer);
    while let Some(entry) = entries.next().unwrap() {
        of_entries.insert((made.path().join(entry.path()), answers(&entry)));
    }
    let mut walk = lendir::walk_dirs(made.path()).unwrap();
    let mut root = walk.next().unwrap().unwrap();
    while let Some(entry) = root.next().unwrap() {
        of_dir.insert((Entry::path(&entry), answers(&entry)));
    }
    let mut walk = Walk::options().max_depth(1).open(made.path()).unwrap();
    while let Some(entry) = walk.next().unwrap() {
        of_walk.insert((Entry::path(&entry), answers(&entry)));
    }
    assert!(all.len() > 20);
    assert_eq!([&of_entries, &of_dir, &of_walk, &of_listing], [&all; 4]);
}

/// `open_file` opens nothing but a regular file, never waits, and does not believe that the record
/// tells of one.
#[test]
fn open_file_opens_only_regular_files() {
    let made = Scratch::new();
    let at = |name: &str| made.path().join(name);
    make_file(&at("file"));
    fs::create_dir(at("directory")).unwrap();
    symlink("file", at("link")).unwrap();
    mknodat(CWD, at("fifo"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let _socket = UnixListener::bind(at("socket")).unwrap();
    let mut listing = Listing::new();
    lendir::read_dir(made.path()).unwrap().read_into(&mut listing).unwrap();
    let open = |name: &str| {
        let dir = lendir::open(made.path()).unwrap();
        listing.by_name(name).unwrap().in_dir(dir.as_fd()).open_file()
    };
    let file = open("file").unwrap();
    assert!(fcntl_getfd(&file).unwrap().contains(FdFlags::CLOEXEC));
    for swapped in ["fifo", "directory"] {
        fs::rename(at("file"), at("away")).unwrap();
        fs::rename(at(swapped), at("file")).unwrap(); // since it was listed
        symlink("away", at(swapped)).unwrap();
        for name in ["file", "directory", "link", "fifo", "socket"] {
            let error = open(name).unwrap_err();
            assert_eq!(error.path(), Some(&*at(name)));
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{error}");
        }
    }
}

/// A program that waits at a FIFO, to write, notices nothing: it would get `SIGPIPE`.
#[test]
fn open_file_does_not_wake_a_writer() {
    let _watchdog = watchdog();
    let made = Scratch::new();
    let path = made.path().join("fifo");
    mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).unwrap();
    thread::scope(|scope| {
        let writer = scope.spawn(|| fs::write(&path, "data"));
        thread::sleep(Duration::from_millis(100)); // it opens the FIFO, and waits
        let mut dir = lendir::read_dir(made.path()).unwrap();
        assert!(dir.next().unwrap().unwrap().open_file().is_err());
        thread::sleep(Duration::from_millis(100));
        assert!(!writer.is_finished(), "{:?}", writer.join());
        assert_eq!(fs::read(&path).unwrap(), b"data");
    });
}

/// A daemon has no controlling terminal. If it got one, a hangup there would end it.
#[test]
fn open_file_takes_no_terminal() {
    process::run("entry::open_file_takes_no_terminal", || {
        setsid().unwrap();
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        unlockpt(&terminal).unwrap();
        let path = ptsname(&terminal, Vec::new()).unwrap();
        let path = Path::new(OsStr::from_bytes(path.as_bytes()));
        let (dir, name) = (path.parent().unwrap(), path.file_name().unwrap().as_bytes());
        let devices = lendir::open(dir).unwrap();
        let listed = lendir::list(dir).unwrap();
        // The record of a file that was swapped for the terminal.
        let made = Scratch::new();
        make_file(&made.path().join(path.file_name().unwrap()));
        let swapped = lendir::list(made.path()).unwrap();
        for listing in [listed, swapped] {
            let entry = listing.by_name(name).unwrap().in_dir(devices.as_fd());
            assert_eq!(entry.open_file().unwrap_err().kind(), io::ErrorKind::InvalidInput);
            let own = fs::File::open("/dev/tty").map(drop).map_err(|error| error.raw_os_error());
            assert_eq!(own, Err(Some(libc::ENXIO)));
        }
    });
}

/// Samba and NFS servers hold leases for their clients, and give them up when they are asked to.
#[test]
fn open_file_waits_for_a_lease() {
    const TEST: &str = "entry::open_file_waits_for_a_lease";
    const F_SETLEASE: libc::c_int = 1024;
    process::run(TEST, || {
        let made = Scratch::new();
        fs::write(made.path().join("file"), "data").unwrap();
        let holder = fs::File::options().write(true).open(made.path().join("file")).unwrap();
        // SAFETY: these calls take numbers alone.
        let lease =
            |kind: libc::c_int| unsafe { libc::fcntl(holder.as_raw_fd(), F_SETLEASE, kind) };
        // SAFETY: the same. The kernel asks by this signal, which would end the process.
        unsafe { libc::signal(libc::SIGIO, libc::SIG_IGN) };
        if lease(libc::F_WRLCK) != 0 {
            return skip(TEST, "leases on its file system");
        }
        let entry = lendir::list(made.path()).unwrap();
        let dir = lendir::open(made.path()).unwrap();
        let entry = || entry.get(0).unwrap().in_dir(dir.as_fd());
        let refused = openat(&dir, c"file", OFlags::NONBLOCK, Mode::empty()).unwrap_err();
        assert_eq!(refused, Errno::AGAIN);
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(200));
                assert_eq!(lease(libc::F_UNLCK), 0);
            });
            let mut text = String::new();
            entry().open_file().unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text, "data");
        });
    });
}

/// Returns the error of each call that can fail, for an entry that is gone.
fn errors(entry: &Entry<'_>) -> [Error; 4] {
    [
        entry.metadata().err(),
        entry.read_link().err(),
        entry.remove_file().err(),
        entry.remove_dir().err(),
    ]
    .map(|error| error.expect("it did not fail"))
}

/// It goes by its name in the directory that listed it, though another directory has the path.
#[test]
fn entry_is_removed_in_the_directory_that_listed_it() {
    let remove = |entry: &Entry<'_>| {
        let [as_file, as_dir] = [entry.remove_file(), entry.remove_dir()]
            .map(|removed| removed.map_err(|error| error.raw_os_error()));
        match entry.name() {
            b"dir" => assert_eq!((as_file, as_dir), (Err(Some(libc::EISDIR)), Ok(()))),
            b"full" => {
                assert_eq!(as_file, Err(Some(libc::EISDIR)));
                assert_eq!(as_dir, Err(Some(libc::ENOTEMPTY)));
            }
            _ => assert_eq!((as_file, as_dir), (Ok(()), Err(Some(libc::ENOENT)))),
        }
    };
    let names = |dir: &Path| {
        let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
        names.collect::<BTreeSet<_>>()
    };
    for reader in ["read_dir", "list", "walk"] {
        let made = Scratch::new();
        let [dir, aside] = ["dir", "moved"].map(|name| made.path().join(name));
        let fill = || {
            fs::create_dir_all(dir.join("full/below")).unwrap();
            fs::create_dir(dir.join("dir")).unwrap();
            make_file(&dir.join("file"));
            symlink("full", dir.join("link")).unwrap();
        };
        fill();
        let swap = || {
            fs::rename(&dir, &aside).unwrap();
            fill();
        };
        match reader {
            "read_dir" => {
                let mut entries = lendir::read_dir(&dir).unwrap();
                swap();
                while let Some(entry) = entries.next().unwrap() {
                    remove(&entry);
                }
            }
            "list" => {
                let (listing, fd) = (lendir::list(&dir).unwrap(), lendir::open(&dir).unwrap());
                swap();
                listing.iter().for_each(|entry| remove(&entry.in_dir(fd.as_fd())));
            }
            _ => {
                let mut walk = Walk::options().max_depth(2).open(&dir).unwrap();
                swap();
                // It does not try to enter what is gone.
                while let Some(entry) = walk.next().unwrap() {
                    if entry.depth() == 1 {
                        remove(&entry);
                    }
                }
            }
        }
        assert_eq!(names(&aside), ["full".into()].into(), "{reader}");
        assert_eq!(names(&dir).len(), 4, "{reader}");
    }
}

#[test]
fn error_has_path_and_depth_of_the_entry() {
    let made = Scratch::new();
    let below = made.path().join("a/b");
    fs::create_dir_all(&below).unwrap();
    let check = |entry: &Entry<'_>, path: &Path, depth| {
        for error in errors(entry) {
            let found = (error.path(), error.depth(), error.raw_os_error());
            assert_eq!(found, (Some(path), depth, Some(libc::ENOENT)));
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
                assert_eq!(entry.depth(), depth);
                check(&entry, &path, depth);
            }
        }
        make_file(&path);
        dir.read_into(&mut listing).unwrap();
        fs::remove_file(&path).unwrap();
        check(&listing.by_name("gone").unwrap().in_dir(dir.fd()), &path, depth);
    }
    assert_eq!(depth, 3);

    let path = gone(&below);
    let mut dir = lendir::read_dir(&below).unwrap();
    let fd = lendir::open(&below).unwrap();
    let mut buffer = Buffer::new();
    let mut entries = Entries::new(fd.as_fd(), &mut buffer);
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
    let mut walk = lendir::walk_dirs(&proc).unwrap();
    let mut entry_walk = lendir::walk(&proc).unwrap();
    let walk_entry =
        entry_walk.find(|entry| entry.name() == b"fd").unwrap().expect("it has no `fd`");
    let mut dir = walk.next().unwrap().unwrap();
    let first = dir.next().unwrap().unwrap(); // one batch has all entries
    let (mut names, mut dirs) = (0, usize::from(first.d_type().is_dir()));
    process.kill().unwrap();
    process.wait().unwrap();
    while let Some(entry) = dir.next().unwrap() {
        names += 1;
        dirs += usize::from(entry.d_type().is_dir());
        for error in errors(&entry) {
            assert!(error.is_gone() && error.raw_os_error() == Some(libc::ESRCH), "{error}");
        }
    }
    assert!(names > 20 && dirs > 1, "{names} names, {dirs} directories");
    assert!(
        walk_entry.metadata().unwrap_err().is_gone() && lendir::open(&proc).unwrap_err().is_gone()
    );
    let mut errors = 0;
    while walk.next_or_report(|error| errors += usize::from(error.is_gone())).is_some() {}
    assert_eq!(errors, dirs, "a failed query silences the walk");
    assert!(entry_walk.next().unwrap_err().is_gone());
}

/// A directory is asked through its descriptor.
#[test]
fn directory_has_metadata() {
    let made = Scratch::new();
    let mut walk = lendir::walk_dirs(made.path()).unwrap();
    let dir = walk.next().unwrap().unwrap();
    let expected = dir.fd().try_clone_to_owned().map(fs::File::from).unwrap().metadata().unwrap();
    assert_same(&dir.metadata().unwrap(), &expected);
    let mut root = lendir::walk_dirs("/").unwrap();
    assert_ne!(root.next().unwrap().unwrap().metadata().unwrap().is_mount_point(), Some(false));
}
