//! The exact system calls, counted by strace in a process of their own.

use crate::fixture::numbered;
use crate::machine::{can_trace, skip};
use lendir::{Buffer, EndMarker, Entries};
use std::path::Path;
use std::process::Command;

/// Says to the child which of the tests it plays.
const TRACED: &str = "LENDIR_TRACED";
/// What begins and ends the part that counts: calls that nobody else makes.
const BEGIN: &str = "/begin of the traced part";
const END: &str = "/end of the traced part";

/// The names of the system calls that `work` makes, traced in a child that runs this same test.
///
/// `None` to the caller in the child, which has nothing to compare, and where strace is missing, which is said.
fn system_calls(test: &str, work: impl FnOnce()) -> Option<Vec<String>> {
    if std::env::var_os(TRACED).is_some() {
        let _ = std::fs::symlink_metadata(BEGIN);
        work();
        let _ = std::fs::symlink_metadata(END);
        return None;
    }
    if !can_trace(test) {
        return None;
    }
    let log = tempfile::NamedTempFile::new().unwrap();
    let child = Command::new("strace")
        .args(["-f", "-qq", "-o"])
        .arg(log.path())
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &format!("system_calls::{test}"), "--test-threads=1"])
        .env(TRACED, "1")
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
    let log = std::fs::read_to_string(log.path()).unwrap();
    let begin = log.lines().find(|line| line.contains(BEGIN)).expect("the traced part");
    let thread = begin.split(' ').next().unwrap();
    let mut lines =
        log.lines().filter(|line| line.starts_with(thread)).skip_while(|line| !line.contains(BEGIN)).skip(1);
    let calls = lines.by_ref().take_while(|line| !line.contains(END)).map(|line| {
        let call = line[thread.len()..].trim_start();
        call.split('(').next().unwrap().to_owned()
    });
    // Before it closes a descriptor, std asserts with one fcntl that it is open, if debug assertions are on.
    Some(calls.filter(|call| !(cfg!(debug_assertions) && call == "fcntl")).collect())
}

fn read_all(path: &Path, buffer: &mut Buffer) {
    let dir = lendir::open(path).unwrap();
    assert_eq!(Entries::new(&dir, buffer).count().unwrap(), 16);
}

#[test]
fn a_small_directory_takes_four() {
    let dir = numbered(16);
    let mut buffer = Buffer::new();
    if let Some(calls) = system_calls("a_small_directory_takes_four", || read_all(dir.path(), &mut buffer)) {
        assert_eq!(calls, ["openat", "getdents64", "getdents64", "close"]);
    }
}

/// A file system with an end marker, or the name of what is missing.
fn marked() -> Result<(&'static Path, EndMarker), &'static str> {
    let path = Path::new("/sys/class");
    let dir = lendir::open(path).map_err(|_| "no sysfs")?;
    let marker = EndMarker::of(&dir).unwrap();
    if marker == EndMarker::NONE { Err("no sysfs on /sys") } else { Ok((path, marker)) }
}

#[test]
fn with_an_end_marker_three() {
    let (path, marker) = match marked() {
        Ok(marked) => marked,
        Err(missing) => return skip("with_an_end_marker_three", missing),
    };
    let mut buffer = Buffer::new();
    let calls = system_calls("with_an_end_marker_three", || {
        let dir = lendir::open(path).unwrap();
        let mut entries = Entries::new(&dir, &mut buffer).with_end_marker(marker);
        while entries.next().unwrap().is_some() {}
        assert!(entries.next().unwrap().is_none());
    });
    if let Some(calls) = calls {
        assert_eq!(calls, ["openat", "getdents64", "close"]);
    }
}

#[test]
fn asking_for_the_marker_takes_one() {
    let dir = lendir::open("/sys").unwrap();
    if let Some(calls) = system_calls("asking_for_the_marker_takes_one", || assert!(EndMarker::of(&dir).is_ok())) {
        assert_eq!(calls, ["fstatfs"]);
    }
}

#[test]
fn a_rescan_takes_one_more_than_the_reading() {
    let dir = numbered(16);
    let fd = lendir::open(dir.path()).unwrap();
    let mut buffer = Buffer::new();
    let mut entries = Entries::new(&fd, &mut buffer);
    let calls = system_calls("a_rescan_takes_one_more_than_the_reading", || {
        entries.rewind().unwrap();
        while entries.next().unwrap().is_some() {}
    });
    if let Some(calls) = calls {
        assert_eq!(calls, ["lseek", "getdents64", "getdents64"]);
    }
}

#[test]
fn a_marked_rescan_takes_two() {
    let (path, marker) = match marked() {
        Ok(marked) => marked,
        Err(missing) => return skip("a_marked_rescan_takes_two", missing),
    };
    let fd = lendir::open(path).unwrap();
    let mut buffer = Buffer::new();
    let mut entries = Entries::new(&fd, &mut buffer).with_end_marker(marker);
    let calls = system_calls("a_marked_rescan_takes_two", || {
        entries.rewind().unwrap();
        while entries.next().unwrap().is_some() {}
    });
    if let Some(calls) = calls {
        assert_eq!(calls, ["lseek", "getdents64"]);
    }
}

#[test]
fn after_an_error_none() {
    let file = tempfile::tempfile().unwrap();
    let mut buffer = Buffer::new();
    let mut entries = Entries::new(&file, &mut buffer);
    let calls = system_calls("after_an_error_none", || {
        assert!(entries.next().is_err());
        for _ in 0..10 {
            assert!(entries.next().unwrap().is_none());
        }
    });
    if let Some(calls) = calls {
        assert_eq!(calls, ["getdents64"]);
    }
}

#[test]
fn a_known_type_takes_none_and_a_large_directory_one_a_batch() {
    let dir = numbered(1024); // 24 bytes each, some 8 KiB three times over
    let fd = lendir::open(dir.path()).unwrap();
    let mut buffer = Buffer::with_capacity(Buffer::MIN_CAPACITY);
    let mut entries = Entries::new(&fd, &mut buffer);
    let mut known = true;
    let calls = system_calls("a_known_type_takes_none_and_a_large_directory_one_a_batch", || {
        while let Some(entry) = entries.next().unwrap() {
            known &= entry.file_type() != lendir::FileType::Unknown;
            entry.resolve_file_type().unwrap();
        }
    });
    if !known {
        return skip("a_known_type_takes_none", "a temporary directory whose file system knows types");
    }
    if let Some(calls) = calls {
        assert_eq!(calls, ["getdents64"; 5]);
    }
}

#[test]
fn no_descriptor_is_left_open() {
    let dir = numbered(16);
    let mut buffer = Buffer::new();
    let calls = system_calls("no_descriptor_is_left_open", || {
        read_all(dir.path(), &mut buffer);
        assert!(lendir::open("/nowhere").is_err());
        let fd = lendir::open(dir.path()).unwrap();
        assert!(lendir::openat(&fd, "1").is_err());
        let mut entries = Entries::new(&fd, &mut buffer);
        assert!(entries.next().unwrap().is_some());
        assert!(entries.seek(u64::MAX).is_err());
        let child = lendir::openat(&fd, ".").unwrap();
        assert!(EndMarker::of(&child).is_ok());
    });
    if let Some(calls) = calls {
        let count = |name: &str| calls.iter().filter(|call| *call == name).count();
        assert_eq!((count("openat"), count("close")), (5, 3), "two of the five are refused: {calls:?}");
    }
}
