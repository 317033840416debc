//! Mount points in the tree: what `same_mount` leaves out. `markers` walks through more of them.

use crate::fuse::{Server, leaf, served};
use crate::mounted::run_isolated;
use crate::support::prelude::*;
use rustix::fs::fstat;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, unmount};

fn mount_tmpfs(at: &Path) {
    mount("none", at, "tmpfs", MountFlags::empty(), c"").unwrap();
}

/// `d_type` of an entry at a mount point is the type of the covered file. `stat` describes what is
/// mounted there.
#[test]
fn mount_point_has_the_covered_type() {
    run_isolated("walk: types of mount points", |scratch| {
        let tree = scratch.join("tree");
        make(&tree, &["device", "directory/"]);
        mount_bind("/dev/null", tree.join("device")).unwrap();
        mount_tmpfs(&tree.join("directory"));
        let mut dir = lendir::read_dir(&tree).unwrap();
        while let Some(entry) = dir.next().unwrap() {
            let mounted = entry.metadata().unwrap();
            let (beneath, there) = match entry.name() {
                b"device" => (FileType::RegularFile, FileType::CharacterDevice),
                _ => (FileType::Directory, FileType::Directory),
            };
            assert_eq!((entry.d_type(), mounted.file_type()), (beneath, there));
            assert_ne!(mounted.dev(), fstat(entry.dir_fd()).unwrap().st_dev);
        }
    });
}

/// Under `same_mount`, a link to another mount is not followed, but a link that stays on the mount
/// is.
#[test]
fn same_mount_skips_links_to_bind_mounts() {
    const ALL: [&str; 15] = [
        "", "2", "2/1", "3", "3/below", "4", "4/1", "5", "bind", "bind/e", "bind/e/1", "d", "d/e",
        "d/e/1", "z",
    ];
    let links = [
        ("d/e/1", "../../z"),
        ("2", "bind/e"),
        ("3", "../other"),
        ("4", "d/e"),
        ("5", "../other/below"),
    ];
    run_isolated("walk: links to other mounts", |scratch| {
        let (tree, other) = (scratch.join("tree"), scratch.join("other"));
        make(&tree, &["d/e/file", "bind/", "z/"]);
        make(&other, &["below/file"]);
        mount_tmpfs(&other);
        make(&other, &["below/file"]);
        mount_bind(tree.join("d"), tree.join("bind")).unwrap();
        for (name, target) in links {
            symlink(target, tree.join(name)).unwrap();
        }
        for number in 0..8 {
            let [has_few, second_visits, is_on_one_mount] = [1, 2, 4].map(|bit| number & bit != 0);
            let options = TestOptions {
                max_open: if has_few { 4 } else { 32 },
                second_visits,
                is_on_one_mount,
                ..PLAIN
            };
            let visits =
                collect_visits(&mut options.build().open(&tree).unwrap(), |_| Requests::FOLLOW);
            let is_there = |path: &&str| {
                !is_on_one_mount || !["2", "3", "5", "b"].iter().any(|at| path.starts_with(at))
            };
            let expected: Vec<_> =
                ALL.into_iter().filter(is_there).map(|path| tree.join(path)).collect();
            assert_eq!(directories(&visits), expected, "{options:?}");
            assert!(errors(&visits).is_empty(), "{options:?}: {visits:?}");
        }
    });
}

/// The caller has asked for it, so leaving it out is an error.
#[test]
fn named_mount_point_is_an_error() {
    run_isolated("walk: named mount points", |scratch| {
        let tree = scratch.join("tree");
        make(&tree, &["mount/", "beside/"]);
        mount_tmpfs(&tree.join("mount"));
        symlink("mount", tree.join("link")).unwrap();
        for (name, follows) in [("mount", false), ("mount", true), ("link", true)] {
            let mut walk =
                WalkDirs::options().follow_links(follows).same_mount(true).open(&tree).unwrap();
            let mut root = walk.next().unwrap().unwrap();
            root.skip_subdirs();
            assert!(root.enter_name(name).unwrap() && root.enter_name("beside").unwrap());
            let error = walk.next().unwrap_err();
            assert_eq!(error.raw_os_error(), Some(EXDEV));
            assert_eq!(error.path(), Some(&*tree.join(name)));
            assert_eq!(walk.next().unwrap().unwrap().name(), b"beside");
        }
    });
}

/// A link to an ancestor is a loop at each place where its directory is mounted, although the
/// ancestors differ.
#[test]
fn walk_finds_loops_below_bind_mounts() {
    const PLACES: [&str; 3] = ["x", "y", "z"];
    run_isolated("walk: loops below mounts", |scratch| {
        let (tree, mounted) = (scratch.join("tree"), scratch.join("mounted"));
        make(scratch, &["mounted/", "tree/x/c/", "tree/y/c/", "tree/z/c/"]);
        symlink("..", mounted.join("up")).unwrap();
        for place in PLACES {
            mount_bind(&mounted, tree.join(place).join("c")).unwrap();
        }
        let visits = collect_visits(&mut PLAIN.build().open(&tree).unwrap(), |_| Requests::FOLLOW);
        let mut loops = errors(&visits);
        loops.sort_unstable();
        let links = PLACES.map(|place| tree.join(place).join("c/up"));
        assert_eq!(loops, links.each_ref().map(|link| (&**link, ELOOP)));
    });
}

/// In a directory that was moved out of the root's bind mount, `..` is `ENOENT`. A link there is an
/// error, because the walk cannot check whether the link is a loop.
#[test]
fn link_outside_the_bind_mount_is_an_error() {
    run_isolated("walk: a followed link outside of the bind mount", |scratch| {
        make(scratch, &["a/b/x/sub/", "target/in/", "mount/"]);
        symlink(scratch.join("target"), scratch.join("a/b/x/link")).unwrap();
        let root = scratch.join("mount");
        mount_bind(scratch.join("a/b"), &root).unwrap();
        let visits = collect_visits(&mut lendir::walk_dirs(&root).unwrap(), |path| {
            if path.ends_with("x") {
                fs::rename(scratch.join("a/b/x"), scratch.join("a/x")).unwrap();
            }
            Requests::FOLLOW
        });
        assert_eq!(directories(&visits), ["", "x", "x/sub"].map(|path| root.join(path)));
        assert_eq!(errors(&visits), [(&*root.join("x/link"), ENOENT)]);
    });
}

/// Fetching metadata makes no request to a server that is mounted in the tree, which may never
/// answer: under `same_mount`, nor by a helper thread in a directory that the loop skips.
#[test]
fn metadata_is_not_fetched_from_mounts() {
    served("walks::mounts::metadata_is_not_fetched_from_mounts", || {
        let made = Scratch::in_memory();
        let tree = made.path();
        let server = Server::mount(vec![leaf()]).unwrap();
        let dirs: Vec<_> = (0..20).map(|number| format!("d{number:02}/")).collect();
        make(tree, &dirs);
        for dir in &dirs {
            make(&tree.join(dir), &["a/", "file", "m/", "z/"]);
            mount_bind(server.path(0), tree.join(dir).join("m")).unwrap();
        }
        let requests_of = |options: WalkOptions, skips: bool| {
            let before = server.all_requests();
            let (mut walk, mut fetched) = (options.metadata(true).open(tree).unwrap(), 0);
            while let Some(entry) = walk.next().unwrap() {
                if skips && entry.depth() == 1 && entry.name() != b"d00" {
                    entry.skip_subtree(); // meanwhile, helpers read
                    thread::sleep(Duration::from_millis(3));
                }
                if entry.name() != b"m" {
                    entry.metadata().unwrap();
                    fetched += 1;
                }
            }
            assert!(fetched >= if skips { 20 + 3 } else { 20 * 4 });
            drop(walk);
            server.all_requests() - before
        };
        for order in ORDERS {
            let options = Walk::options().order(order);
            let on_mount = options.clone().same_mount(true);
            assert_eq!(requests_of(on_mount.clone(), false), 0, "{order:?}");
            let ahead = on_mount.max_open(4).read_ahead(2).eager();
            assert_eq!(requests_of(ahead.clone(), false), 0, "{order:?}, read_ahead");
            assert_eq!(requests_of(ahead, true), 0, "{order:?}, skipped");
            // In the directory that is entered, the mount is the walk's own business.
            let requests = requests_of(options.clone().read_ahead(2).eager(), true);
            assert!(requests <= 10, "{order:?}, skipped, any mount: {requests}");
            assert!(requests_of(options, false) >= 20, "{order:?}: the mounts are entered");
        }
        // So does a listing that the caller brings.
        let mut walk = WalkDirs::options().same_mount(true).open(tree.join("d00")).unwrap();
        let (before, mut listing) = (server.all_requests(), Listing::new().with_metadata());
        walk.next().unwrap().unwrap().read_into(&mut listing).unwrap();
        let has = ["a", "file", "m", "z"].map(|name| listing.by_name(name).unwrap().metadata());
        assert_eq!(has.map(|found| found.is_ok()), [true, true, false, true]);
        assert_eq!(server.all_requests(), before);
        for dir in &dirs {
            unmount(tree.join(dir).join("m"), UnmountFlags::DETACH).unwrap();
        }
    });
}
