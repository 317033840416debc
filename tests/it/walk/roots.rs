//! Roots that are entries of the walk: `yield_roots`.

use crate::support::prelude::*;
use lendir::WalkEntry;
use rustix::fs::{CWD, FileType, Mode, fstat, mknodat};

fn place() -> Tree {
    Tree::new(|at| {
        tree::make(at, &["comb/", "empty/", "file", "one/a/", "one/b"]);
        tree::comb(&at.join("comb"), 12);
        for (link, target) in [("link", "one"), ("to_file", "file"), ("to_none", "none")] {
            symlink(target, at.join(link)).unwrap();
        }
        let mode = Mode::from_raw_mode(0o600);
        mknodat(CWD, at.join("fifo"), FileType::Fifo, mode, 0).unwrap();
    })
}

/// Returns what a walk yields for a root: the root if it is wanted, then what it contains.
fn expected(options: &EntryWalk, root: &Path, follows: bool, yields: bool) -> Vec<Visit> {
    let is_dir = root.is_dir() && (follows || !root.is_symlink());
    let by_path = if follows && !yields { root.metadata() } else { root.symlink_metadata() };
    let error = match by_path {
        Err(error) => error.raw_os_error(),
        Ok(_) => (!yields && !is_dir).then_some(libc::ENOTDIR),
    };
    if let Some(errno) = error {
        return vec![Visit::new(root, 0, What::Error(errno))];
    }
    let mut visits = Vec::new();
    visits.extend(yields.then(|| Visit::new(root, 0, What::Entry { is_last: true })));
    visits.extend(is_dir.then(|| options.expected(root)).into_iter().flatten());
    visits
}

/// Whatever the root is, and whichever options there are. Without `yield_roots`, a root that is no
/// directory is an error.
#[test]
fn root_of_any_type_is_an_entry_before_its_contents() {
    let place = place();
    let roots = [
        "comb", "missing", "file", "one", "fifo", "link", "to_file", "to_none", "one/", "one/b",
        "empty", "file/", "link/", "one/.", "one/..", "comb",
    ]
    .map(|root| place.path().join(root));
    for (order, read_ahead, metadata) in ORDERS
        .into_iter()
        .flat_map(|order| [(order, 0, false), (order, 0, true), (order, 2, false)])
    {
        for (max_depth, max_open) in [(0, 32), (1, 32), (usize::MAX, 4)] {
            let options =
                EntryWalk { order, max_depth, max_open, read_ahead, metadata, ..ENTRY_WALK };
            for (follows, yields) in [(true, true), (true, false), (false, true), (false, false)] {
                let build = || options.build().yield_roots(yields).follow_root_links(follows);
                let of_root = |root: &Path| expected(&options, root, follows, yields);
                let all: Vec<_> = roots.iter().flat_map(|root| of_root(root)).collect();
                let what = format!("{options:?}, follows {follows}, yields {yields}");
                assert_eq!(options.rest(&mut build().open_all(&roots)), all, "{what}");
                for root in &roots {
                    match build().open(root) {
                        Ok(mut walk) => assert_eq!(options.rest(&mut walk), of_root(root)),
                        Err(error) => {
                            assert!(error.is_root());
                            assert_eq!([Visit::from(&error)], *of_root(root));
                        }
                    }
                }
            }
        }
    }
    assert!(ENTRY_WALK.rest(&mut Walk::options().open_all::<&str>([])).is_empty());
    for root in ["", "a\0b", "missing/.."] {
        let errors = [
            Walk::options().yield_roots(true).open(root).unwrap_err(),
            Walk::options().yield_roots(true).open_all([root]).next().unwrap_err(),
        ];
        let number = if root.contains('\0') { libc::EINVAL } else { libc::ENOENT };
        assert!(errors.iter().all(|error| error.is_root() && errno(error) == number), "{root}");
    }
}

/// `find` follows links that are roots with `-H`. It also has the order of the walk.
#[test]
fn paths_of_roots_are_those_of_find() {
    let place = place();
    let at = |end: &str| format!("{}/{end}", place.path().display());
    let made = ["one", "one/", "link", "link/", "file", "to_none", "fifo"].map(at);
    let others = ["/", "//", ".", "./", "..", "../", "src/.", "src/..", "src", "./src//"];
    for root in others.into_iter().chain(made.iter().map(|root| &**root)) {
        let found = Command::new("find").args(["-H", root, "-maxdepth", "1"]).output().unwrap();
        let found = String::from_utf8(found.stdout).unwrap();
        let options = Walk::options().max_depth(1).yield_roots(true);
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        let mut paths: Vec<_> = (options.open(root).unwrap())
            .filter_map(|entry| {
                let relative = text(entry.relative_path());
                assert_eq!(relative.is_empty(), entry.depth() == 0);
                assert!(relative.is_empty() || entry.path() == Path::new(root).join(relative));
                Some(text(entry.path()))
            })
            .map(Result::unwrap)
            .collect();
        if let Ok(mut walk) = lendir::walk_dirs(root) {
            let mut dir = walk.next().unwrap().unwrap();
            let mut of_dir = vec![text(dir.path())];
            while let Some(entry) = dir.next().unwrap() {
                of_dir.push(text(&entry.path()));
            }
            assert_eq!(of_dir, paths);
        }
        let mut found: Vec<_> = found.lines().collect();
        assert_eq!((&*paths[0], found[0]), (root, root));
        paths.sort();
        found.sort_unstable();
        assert_eq!(paths, found, "{root}");
    }
}

/// Acts by the name of the root in the directory that contains it.
#[test]
fn entry_of_a_root_is_like_any_other() {
    let check = |entry: &WalkEntry<'_>| {
        let path = entry.path();
        let found = entry.metadata().unwrap();
        let expected = fstat(File::open(path).unwrap()).unwrap();
        assert_eq!((found.dev(), found.ino()), (expected.st_dev, expected.st_ino));
        assert_eq!(entry.ino(), expected.st_ino);
        assert_eq!((entry.depth(), entry.relative_path()), (0, Path::new("")));
        assert_eq!(entry.path(), path);
        let error = entry.read_link().unwrap_err();
        assert_eq!((error.path(), error.depth(), error.is_root()), (Some(path), 0, false));
        assert_eq!(entry.file_type().unwrap().is_file(), entry.open_file().is_ok());
        assert_eq!(entry.file_type().unwrap().is_dir(), path.is_dir());
    };
    let place = place();
    let at = |name: &str| place.path().join(name);
    let yields = || Walk::options().yield_roots(true);
    for options in [yields(), yields().metadata(true)] {
        let mut walk = options.open_all(["one", "file", "one/", "empty"].map(at));
        while let Some(entry) = walk.next().unwrap() {
            if entry.depth() == 0 {
                check(&entry);
                entry.skip_subtree();
            }
            assert_eq!(entry.depth(), 0, "the contents of a root are skipped");
        }
    }
    // A link is followed on request, and a query does not change what is entered.
    let mut walk = yields().follow_root_links(false).open(at("link")).unwrap();
    let root = walk.next().unwrap().unwrap();
    assert!(root.metadata().is_ok() && root.file_type().unwrap().is_symlink());
    root.follow();
    assert!(walk.next().unwrap().is_some());
    // The root is removed although its path leads elsewhere by now.
    let roots = ["one/empty", "one/file"].map(at);
    fs::create_dir(&roots[0]).unwrap();
    File::create(&roots[1]).unwrap();
    let mut walks = roots.each_ref().map(|root| yields().open(root).unwrap());
    fs::rename(at("one"), at("moved")).unwrap();
    symlink(".", at("one")).unwrap();
    for walk in &mut walks {
        let root = walk.next().unwrap().unwrap();
        root.remove_file().or_else(|_| root.remove_dir()).unwrap();
        assert!(walk.next().unwrap().is_none());
    }
    assert!(!at("moved/empty").exists() && !at("moved/file").exists());
    assert!(at("empty").exists() && at("file").exists());
}

/// It is `.` in itself. Its path is the one that the caller passes.
#[test]
fn root_by_descriptor_is_an_entry_in_itself() {
    let place = place();
    let root = place.path().join("one");
    for (path, first) in [("", "a"), (".", "./a"), ("/", "/a"), ("x", "x/a"), ("x/", "x/a")] {
        let options = Walk::options().order(lendir::Order::Bytes).yield_roots(true);
        let mut walk = options.from_fd(lendir::open(&root).unwrap(), path);
        let entry = walk.next().unwrap().unwrap();
        assert_eq!((entry.path().to_str(), entry.name()), (Some(path), &b"."[..]));
        assert_eq!(entry.depth(), 0);
        let ino = entry.metadata().unwrap().ino();
        assert_eq!(ino, fstat(lendir::open(&root).unwrap()).unwrap().st_ino);
        assert_eq!(entry.ino(), ino);
        let entry = walk.next().unwrap().unwrap();
        assert_eq!((entry.path().to_str(), entry.depth()), (Some(first), 1));
        assert_eq!(entry.relative_path(), Path::new("a"));
        entry.skip_rest_of_dir();
        assert!(walk.next().unwrap().is_none());
    }
}

/// The entry comes first, and the caller may make it readable then.
#[test]
fn unreadable_root_is_an_entry_and_then_an_error() {
    as_nobody(|| {
        let tree = Tree::of(&["dir/file", "locked/dir/"]);
        let at = |name: &str| tree.path().join(name);
        let options = || WalkOptions::new().yield_roots(true);
        for mode in [0o300, 0o000] {
            chmod(at("dir"), mode);
            let mut walk = options().open(at("dir")).unwrap();
            assert!(walk.next().unwrap().is_some());
            let error = walk.next().unwrap_err();
            assert!(
                error.is_root()
                    && errno(&error) == libc::EACCES
                    && error.path() == Some(&at("dir"))
            );
            assert!(walk.next().unwrap().is_none());
            let mut walk = options().open(at("dir")).unwrap();
            assert!(walk.next().unwrap().is_some());
            chmod(at("dir"), 0o700);
            assert_eq!(walk.next().unwrap().unwrap().name(), b"file");
        }
        chmod(at("locked"), 0o600);
        let error = options().open(at("locked/dir")).unwrap_err();
        assert!(error.is_root() && errno(&error) == libc::EACCES);
        chmod(at("locked"), 0o700);
    });
}

/// A loop through a root is found, and links below it are followed.
#[test]
fn links_below_a_yielded_root_are_followed() {
    for seed in 0..8 {
        let (_tree, root) = tree::linked(seed);
        let options = EntryWalk { about: About::Follow, ..ENTRY_WALK };
        let mut walk = Walk::options().yield_roots(true).follow_links(true).open(&root).unwrap();
        assert_eq!(ENTRY_WALK.rest(&mut walk), expected(&options, &root, true, true));
    }
}
