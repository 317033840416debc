//! Checks what a root may be, and several roots in one walk: `WalkDirsOptions::open_all`.

use crate::support::prelude::*;
use crate::support::scan::path;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, fstat, openat, statat, unlinkat};
use rustix::io::Errno;

/// Returns roots and the expected visits. Some roots cannot be opened, and one occurs twice.
fn roots(place: &Tree, options: TestOptions) -> (Vec<PathBuf>, Vec<Visit>) {
    let (mut roots, mut expected) = (Vec::new(), Vec::new());
    for (name, errno) in [
        ("comb", None),
        ("missing", Some(libc::ENOENT)),
        ("wide", None),
        ("file", Some(libc::ENOTDIR)),
        ("comb", None),
        ("a\0b", Some(libc::EINVAL)),
        ("link", None),
        ("secret", None),
        ("empty", None),
    ] {
        let root = place.path().join(name);
        match errno {
            None => {
                expected.extend(expected_visits(&root, options.second_visits, |_| Requests::ALL));
            }
            Some(errno) => {
                expected.push(Visit { path: root.clone(), depth: 0, what: What::Error(errno) });
            }
        }
        roots.push(root);
    }
    (roots, expected)
}

fn place() -> Tree {
    Tree::new(|at| {
        tree::make(at, &["comb/", "wide/", "file", "empty/", "secret/below/"]);
        chmod(at.join("secret"), 0o300);
        tree::comb(&at.join("comb"), 12);
        tree::wide(&at.join("wide"), 50, 2);
        symlink("comb/m", at.join("link")).unwrap();
    })
}

/// One thread walks the roots in their order. Several threads share them.
#[test]
fn open_all_walks_each_root() {
    let _watchdog = watchdog();
    as_nobody(|| {
        let place = place();
        for options in [PLAIN, POST, TIGHT] {
            let (roots, expected) = roots(&place, options);
            let visits = collect_visits(&mut options.build().open_all(&roots), |_| Requests::ALL);
            assert_eq!(visits, expected, "{options:?}");
            let expected = in_one_order(expected);
            for threads in THREADS {
                let parts = options
                    .build()
                    .open_all(&roots)
                    .run_parallel(threads, |worker| collect_visits(worker, |_| Requests::ALL));
                let found = in_one_order(parts.into_iter().flatten());
                assert_eq!(found, expected, "{options:?}, {threads} threads");
            }
            // The first thread returns before the other threads begin. They get its roots.
            let parts = options.build().open_all(&roots).run_parallel(3, |worker| {
                if worker.index() == 0 { vec![] } else { collect_visits(worker, |_| Requests::ALL) }
            });
            let found = in_one_order(parts.into_iter().flatten());
            assert_eq!(found, expected, "{options:?}, one thread leaves");
        }
    });
}

#[test]
fn each_root_begins_with_the_same_state() {
    let tree = Tree::of(&["1/a/b/", "2/a/b/", "3/a/b/"]);
    let roots = ["1", "2", "3"].map(|name| tree.path().join(name));
    for second_visits in [false, true] {
        for threads in THREADS {
            let options = WalkDirs::options().second_visits(second_visits).with_state(7);
            let parts = options.open_all(&roots).run_parallel(threads, |worker| {
                let mut visits = 0;
                while let Some(mut dir) = worker.next().unwrap() {
                    assert_eq!(
                        *dir.state(),
                        7 + dir.depth() + usize::from(dir.is_second_visit()),
                        "{dir:?}"
                    );
                    *dir.state_mut() += 1;
                    visits += 1;
                }
                visits
            });
            assert_eq!(parts.into_iter().sum::<usize>(), if second_visits { 18 } else { 9 });
        }
    }
}

#[test]
fn follow_root_links_refuses_links() {
    let tree = Tree::of(&["d/below/"]);
    let at = |name: &str| tree.path().join(name);
    symlink("d", at("link")).unwrap();
    symlink("below", at("d/to_below")).unwrap();
    for (name, is_refused) in [
        ("link", true),
        ("d", false),
        ("link/below", false),
        ("link/to_below", true),
        // The documentation warns of these.
        ("link/", false),
        ("link/.", false),
        ("link//.//", false),
    ] {
        assert!(lendir::walk_dirs(at(name)).is_ok(), "{name}");
        let options = WalkDirs::options().follow_root_links(false);
        let results =
            [options.clone().open(at(name)).err(), options.open_all([at(name)]).next().err()];
        for error in results {
            assert_eq!(error.is_some(), is_refused, "{name}");
            if let Some(error) = error {
                let found = (error.path(), error.depth(), errno(&error));
                assert_eq!(found, (Some(&*at(name)), 0, libc::ENOTDIR));
            }
        }
    }
}

/// `is_root` holds for what prevents a walk from seeing a tree at all, and for no other error.
#[test]
fn only_errors_of_a_root_are_root_errors() {
    process::as_nobody(|| {
        let tree = Tree::of(&["secret/", "tree/secret/", "file"]);
        let at = |name: &str| tree.path().join(name);
        for secret in ["secret", "tree/secret"] {
            chmod(at(secret), 0o300);
        }
        let file = || File::open(at("file")).unwrap();
        let roots = || ["missing", "file", "secret"].map(at);
        let mut errors = Vec::new();
        for root in ["missing", "file"].map(at) {
            errors.extend(lendir::read_dir(&root).err());
            errors.extend(lendir::walk(&root).err());
            errors.extend(lendir::walk_dirs(&root).err());
        }
        for mut walk in [
            Walk::options().open_all(roots()),
            Walk::options().from_fd(file(), ""),
            lendir::walk(at("secret")).unwrap(),
        ] {
            while walk.next_or_report(|error| errors.push(error)).is_some() {}
        }
        for reads in [false, true] {
            for walk in [
                WalkDirs::options().open_all(roots()),
                WalkDirs::options().from_fd(file(), ""),
                lendir::walk_dirs(at("secret")).unwrap(),
            ] {
                let parts = walk.run_parallel(2, |worker| {
                    let mut errors = Vec::new();
                    while let Some(mut dir) = worker.next_or_report(|error| errors.push(error)) {
                        if reads {
                            errors.extend(dir.next().err());
                        }
                    }
                    errors
                });
                errors.extend(parts.into_iter().flatten());
            }
        }
        assert_eq!((errors.len(), errors.iter().all(Error::is_root)), (6 + 3 * 5, true));

        let mut errors = Vec::new();
        let mut walk = lendir::walk(at("tree")).unwrap();
        while walk.next_or_report(|error| errors.push(error)).is_some() {}
        let mut walk = lendir::walk_dirs(at("tree")).unwrap();
        while let Some(mut dir) = walk.next_or_report(|error| errors.push(error)) {
            errors.push(dir.wrap_error(Errno::PERM));
            errors.extend(dir.next().err());
        }
        assert_eq!((errors.len(), errors.iter().any(Error::is_root)), (1 + 2 + 1, false));
    });
}

/// The walk never opens this path, so it may be anything.
#[test]
fn from_fd_accepts_any_path() {
    let tree = Tree::of(&["a/"]);
    let cases = [
        ("x\0y", "x\0y", "x\0y/a"),
        ("", "", "a"),
        ("a/b", "b", "a/b/a"),
        ("a/b//", "b", "a/b//a"),
        ("/", "/", "/a"),
        (".", ".", "./a"),
        ("a/..", "a/..", "a/../a"),
    ];
    for (path, name, below) in cases {
        let root = lendir::open(tree.path()).unwrap();
        let mut walk = WalkDirs::options().second_visits(true).from_fd(root, path);
        let mut visits = 0;
        while let Some(dir) = walk.next().unwrap() {
            visits += 1;
            if dir.depth() == 0 {
                let seen = (dir.path(), dir.name(), dir.file_name());
                assert_eq!(seen, (Path::new(path), name.as_bytes(), name.as_ref()));
                assert!(dir.parent_and_name().is_none());
            } else {
                let name = dir.parent_and_name().map(|(_, name)| name);
                let seen = (dir.path(), name);
                assert_eq!(seen, (Path::new(below), dir.is_second_visit().then_some(c"a")));
            }
        }
        assert_eq!(visits, 4);
    }
}

/// `parent_and_name` leads to the root, however the root's path is written. Removing the root by
/// that name succeeds or has a clear error.
#[test]
fn parent_and_name_leads_to_the_root() {
    let test = "roots::parent_and_name_leads_to_the_root";
    process::run(test, || {
        process::as_nobody(|| {
            let tree =
                Tree::of(&["cwd/one/", "cwd/a/two/", "cwd/three/", "searched/four/", "cwd/b/"]);
            std::env::set_current_dir(tree.path().join("cwd")).unwrap();
            chmod("../searched", 0o300);
            symlink("b", "link").unwrap();
            let absolute = tree.path().join("cwd/three");
            for (root, name, removed) in [
                ("one", "one", Ok(())),
                ("a//two//", "two//", Ok(())),
                (absolute.to_str().unwrap(), "three", Ok(())),
                ("../searched/four", "four", Ok(())),
                ("link", "link", Err(Errno::NOTDIR)),
                ("link/", "link/", Err(Errno::NOTDIR)),
                (".", ".", Err(Errno::INVAL)),
                ("b/.", ".", Err(Errno::INVAL)),
                ("b/..", "..", Err(Errno::NOTEMPTY)),
                ("..", "..", Err(Errno::NOTEMPTY)),
                ("/", "/", Err(Errno::BUSY)),
                ("//", "//", Err(Errno::BUSY)),
            ] {
                let mut walk = WalkDirs::options().second_visits(true).open(root).unwrap();
                walk.next().unwrap().unwrap().skip_subdirs();
                let dir = walk.next().unwrap().unwrap();
                let (parent, found) = dir.parent_and_name().unwrap();
                assert_eq!(found.to_str(), Ok(name), "{root}");
                let named = statat(parent, found, AtFlags::empty()).unwrap();
                assert_eq!(named.st_ino, fstat(dir.fd()).unwrap().st_ino, "{root}");
                assert_eq!(unlinkat(parent, found, AtFlags::REMOVEDIR), removed, "{root}");
            }
            for root in ["", "missing", "missing/d", "a/missing/", "one/../../searched/five"] {
                let error = WalkDirs::options().second_visits(true).open(root).unwrap_err();
                let seen = (path(&error), errno(&error));
                assert_eq!(seen, (Path::new(root), libc::ENOENT), "{root}");
            }
            chmod("../searched", 0o600);
            let error =
                WalkDirs::options().second_visits(true).open("../searched/four").unwrap_err();
            assert_eq!(errno(&error), libc::EACCES);
        });
    });
}

/// The parent stays the same if the root's path leads elsewhere meanwhile, whichever thread has the
/// second visit of the root.
#[test]
fn parent_of_a_root_is_opened_once() {
    for threads in THREADS {
        let tree = Tree::of(&["a/root/1/", "a/root/2/", "a/root/3/", "b/root/", "victim/root/"]);
        let at = |path: &str| tree.path().join(path);
        let swap = |above: &str| {
            fs::rename(at(above), at(&format!("moved_{above}"))).unwrap();
            symlink("victim", at(above)).unwrap();
        };
        let roots = ["a/root", "b/root"].map(at);
        let walk = WalkDirs::options().second_visits(true).open_all(&roots);
        let _ = walk.run_parallel(threads, |worker| {
            while let Some(dir) = worker.next().unwrap() {
                if dir.is_second_visit() {
                    dir.remove_dir().unwrap();
                } else if dir.depth() == 0 {
                    swap(if dir.path() == roots[0] { "a" } else { "b" });
                }
            }
        });
        let remaining =
            ["moved_a/root", "moved_b/root", "victim/root"].map(|path| at(path).exists());
        assert_eq!(remaining, [false, false, true], "{threads} threads");
    }
}

/// A walk whose root cannot be opened anew would share the position of the descriptor.
#[test]
fn lack_of_a_descriptor_for_a_root_is_an_error() {
    process::run("roots::lack_of_a_descriptor_for_a_root_is_an_error", || {
        let tree = Tree::of(&["a", "b", "c"]);
        let [first, second] = [(); 2].map(|()| lendir::open(tree.path()).unwrap());
        let held = leave_room(0);
        let mut walk = Walk::options().from_fd(first, "root");
        let mut walk_dirs = WalkDirs::options().from_fd(second, "root");
        drop(held);
        let error = walk.next().unwrap_err();
        assert_eq!((path(&error), errno(&error)), (Path::new("root"), libc::EMFILE));
        assert!(walk.next().unwrap().is_none());
        let mut dir = walk_dirs.next().unwrap().unwrap();
        assert_eq!(errno(&dir.next().unwrap_err()), libc::EMFILE);
        assert!(walk_dirs.next().unwrap().is_none());
    });
}

/// Even without permission to search the root, which leaves only the descriptor itself.
#[test]
fn walks_of_duplicates_do_not_disturb_each_other() {
    process::as_nobody(|| {
        let tree = Tree::of(&["a", "b", "c"]);
        let root = lendir::open(tree.path()).unwrap();
        let walk = || WalkDirs::options().from_fd(root.try_clone().unwrap(), "");
        let (mut first, mut second) = (walk(), walk());
        for walk in [&mut first, &mut second] {
            assert_eq!(walk.next().unwrap().unwrap().count().unwrap(), 3);
        }
        chmod(tree.path(), 0o400);
        for _ in 0..2 {
            assert_eq!(walk().next().unwrap().unwrap().count().unwrap(), 3);
        }
        let only_a_path = openat(CWD, tree.path(), OFlags::PATH, Mode::empty()).unwrap();
        let mut walk = WalkDirs::options().from_fd(only_a_path, "");
        assert_eq!(errno(&walk.next().unwrap().unwrap().count().unwrap_err()), libc::EACCES);
    });
}
