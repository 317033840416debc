//! Names that the caller passes to `Dir`, and entries that change while the caller asks about them.

use crate::support::options::OPTIONS;
use crate::support::prelude::*;
use rustix::fs::{CWD, Mode, mknodat};

/// A call that cannot have the effect that its caller wants is an error at once.
#[test]
fn names_need_skip_subdirs_and_one_component() {
    let tree = Tree::of(&["d/"]);
    let root = tree.path().to_str().unwrap();
    // As text, because a `Path` overlooks slashes.
    let path = |error: &Error| error.path().unwrap().to_str().unwrap().to_owned();
    let mut walk = lendir::walk_dirs(tree.path()).unwrap();
    let mut dir = walk.next().unwrap().unwrap();
    let error = dir.enter_name("d").unwrap_err();
    assert_eq!((path(&error), error.depth()), (format!("{root}/d"), 1));
    assert_eq!((error.kind(), error.raw_os_error()), (ErrorKind::InvalidInput, None));
    dir.skip_subdirs();
    for name in ["", ".", "..", "/", "/d", "d/", "d/e", "../d", "d\0"] {
        let error = dir.enter_name(name).unwrap_err();
        let slash = if name.is_empty() { "" } else { "/" };
        assert_eq!(path(&error), format!("{root}{slash}{name}"));
        assert_eq!(errno(&error), libc::EINVAL);
    }
    assert!(walk.next().unwrap().is_none(), "a refused name is entered");
}

/// A caller that enters directories by name needs no permission to read them, on any thread. They
/// have their second visits all the same.
#[test]
fn threads_enter_named_directories() {
    let _watchdog = watchdog();
    as_nobody(|| {
        let tree = Tree::new(|at| tree::comb(at, 60));
        let all = expected_visits(tree.path(), false, |_| Requests::ALL);
        let all = directories(&all);
        all.iter().rev().for_each(|path| chmod(path, 0o300));
        for (options, threads) in OPTIONS.iter().flat_map(|of| THREADS.map(|count| (of, count))) {
            let (walk, seconds) = (options.build().open(tree.path()).unwrap(), AtomicUsize::new(0));
            let parts = walk.run_parallel(threads, |worker| {
                let mut paths = Vec::new();
                while let Some(mut dir) = worker.next().unwrap() {
                    if dir.is_second_visit() {
                        seconds.fetch_add(1, SeqCst);
                    } else {
                        dir.skip_subdirs();
                        let is_level = dir.depth() == 0 || dir.name() == b"m" && dir.depth() < 60;
                        for name in if is_level { tree::COMB } else { &[] } {
                            dir.enter_name(name).unwrap();
                        }
                        paths.push(dir.path().to_owned());
                    }
                }
                paths
            });
            let mut paths = parts.concat();
            paths.sort_unstable_by(|a: &PathBuf, b| a.as_os_str().cmp(b.as_os_str()));
            assert_eq!(paths, all, "{threads} threads, {options:?}");
            let expected = if options.second_visits { all.len() } else { 0 };
            assert_eq!(seconds.into_inner(), expected, "{threads} threads, {options:?}");
        }
    });
}

/// Puts a file of this type at the path of a directory, or nothing, or the directory again. A link
/// leads to a directory outside of the tree.
fn put(at: &Path, there: FileType) {
    let aside = at.with_file_name("../aside");
    if at.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        fs::rename(at, &aside).unwrap();
    } else {
        let _ = fs::remove_file(at);
    }
    match there {
        FileType::Directory => fs::rename(aside, at).unwrap(),
        FileType::RegularFile => fs::write(at, "").unwrap(),
        FileType::Symlink => symlink("../outside", at).unwrap(),
        FileType::Fifo => mknodat(CWD, at, rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap(),
        _ => {}
    }
}

/// Makes calls about an entry: `m` queries the metadata, `t` the type, `f` follows, `s` skips.
macro_rules! ask {
    ($entry:expr, $calls:expr) => {
        for call in $calls.chars() {
            match call {
                'm' => drop($entry.metadata()),
                't' => drop($entry.file_type()),
                'f' => $entry.follow(),
                _ => $entry.skip_subtree(),
            }
        }
    };
}

/// Returns the file in what the walk enters at `d`, or the number of an error. `d` changes before
/// these calls about it and after them.
fn changed(root: &Path, reader: usize, calls: &str, [during, after]: [FileType; 2]) -> Outcome {
    let at = &root.join("d");
    let (mut outcome, mut below) = (Ok(None), Vec::new());
    let mut fail = |error: Error| {
        assert_eq!((scan::path(&error), error.depth()), (&**at, 1));
        outcome = Err(errno(&error));
    };
    if reader == 0 {
        let mut walk = lendir::walk(root).unwrap();
        while let Some(entry) = walk.next_or_report(&mut fail) {
            if entry.path() == at {
                put(at, during);
                ask!(entry, calls);
                put(at, after);
            } else {
                below.push(entry.name().to_vec());
            }
        }
    } else {
        let options = WalkDirs::options().max_open(1).second_visits(reader == 2);
        let mut walk = options.open(root).unwrap();
        while let Some(mut dir) = walk.next_or_report(&mut fail) {
            let is_root = dir.depth() == 0;
            while let Some(entry) = dir.next().unwrap() {
                if is_root {
                    put(at, during);
                    ask!(entry, calls);
                    put(at, after);
                } else {
                    below.push(entry.name().to_vec());
                }
            }
        }
    }
    put(at, FileType::Directory);
    assert!(below.len() <= 1 && (below.is_empty() || outcome.is_ok()), "{outcome:?}, {below:?}");
    outcome.map(|_: Option<Vec<u8>>| below.pop())
}

type Outcome = Result<Option<Vec<u8>>, i32>;

/// A directory that is replaced while the caller asks about it, or later, is entered, left out, or
/// one error, as the last answer and the last request say. A query that fails answers nothing.
#[test]
fn changed_directory_is_what_the_caller_was_told() {
    use FileType::{Directory, Fifo, RegularFile, Symlink, Unknown};
    const TEST: &str = "requests::changed_directory_is_what_the_caller_was_told";
    let tree = Tree::new(|at| tree::make(at, &["root/d/own", "outside/other"]));
    let root = tree.path().join("root");
    if !machine::has_types(TEST, &root) {
        return;
    }
    let all = [Directory, RegularFile, Symlink, Fifo, Unknown];
    for (during, after) in all.into_iter().flat_map(|during| all.map(|after| (during, after))) {
        for calls in ["", "m", "t", "f", "s", "mf", "fm", "mt", "sf", "fs", "msm"] {
            let is_told = calls.contains('m') && during != Unknown;
            let known = if is_told { during } else { Directory };
            let follows = calls.rfind('f') > calls.rfind('s');
            let is_skipped = calls.rfind('s') > calls.rfind('f');
            let expected = match (known, after) {
                (Directory | Symlink, _) if is_skipped => Ok(None),
                (Directory, Directory) => Ok(Some(b"own".to_vec())),
                (Directory, Unknown) => Err(libc::ENOENT),
                (Directory, _) => Err(libc::ENOTDIR),
                (Symlink, Directory) if follows => Ok(Some(b"own".to_vec())),
                (Symlink, Symlink) if follows => Ok(Some(b"other".to_vec())),
                _ => Ok(None),
            };
            for reader in 0..3 {
                let found = changed(&root, reader, calls, [during, after]);
                assert_eq!(found, expected, "{during:?}, {after:?}, {calls:?}, reader {reader}");
            }
        }
    }
}
