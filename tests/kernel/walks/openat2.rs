//! Checks that a walk opens directories with `openat2`, and that it falls back to `openat`.

use crate::mounted::run_isolated;
use crate::report::{Report, SORTED, comb};
use crate::support::prelude::*;
use crate::trap::{self, CALLS, GETDENTS64, OPENAT, OPENAT2, STATX, trapped};
use libc::ENFILE;
use rustix::mount::{MountFlags, mount, mount_bind};

const DEPTH: usize = 6;

/// A walk stays on its mount without `openat2`, which old kernels and the seccomp filters of
/// containers refuse from the beginning or from some call on.
#[test]
fn same_mount_works_without_openat2() {
    trapped("walks::openat2::same_mount_works_without_openat2", &CALLS, |_| {
        run_isolated("walk: `openat2` is refused", |scratch| {
            let tree = scratch.join("tree");
            comb(&tree, DEPTH);
            make(&tree, &["tmpfs/", "bind/", "itself/", "z/tmpfs/"]);
            mount_bind(tree.join("d"), tree.join("bind")).unwrap();
            mount_bind(&tree, tree.join("itself")).unwrap();
            for point in ["tmpfs", "z/tmpfs"] {
                mount("none", tree.join(point), "tmpfs", MountFlags::empty(), c"").unwrap();
                make(&tree.join(point), &["directory/file"]);
            }
            let mount_points = ["tmpfs", "bind", "itself", "z/tmpfs"].map(PathBuf::from);
            let all = Report::expected(&tree).unwrap().without(&mount_points);
            for second_visits in [false, true] {
                let options = TestOptions { is_on_one_mount: true, second_visits, ..SORTED };
                let run = options.begin(&tree);
                trap::count(GETDENTS64);
                assert_eq!(run.finish().sorted(), all);
                let has_marker = trap::made() as usize == all.first_visits.len();
                // A filter can be set while the walk is under way.
                for (errno, first) in
                    [ENOSYS, EPERM].into_iter().flat_map(|errno| (1..20).map(move |at| (errno, at)))
                {
                    let run = options.begin(&tree);
                    trap::fail(OPENAT2, errno, move |number| number >= first);
                    assert_eq!(run.finish().sorted(), all, "{errno} from {first} on");
                }
                for errno in [ENOSYS, EPERM, EACCES, EXDEV] {
                    let walk = |call, error, failing: Option<u32>| {
                        let run = options.begin(&tree);
                        trap::fail(call, error, move |number| Some(number) == failing);
                        trap::refuse(OPENAT2, errno);
                        let report = run.finish().sorted();
                        (report, trap::made())
                    };
                    // `statx` returns the mount of a directory. If `statx` fails, the directory is
                    // not read. A directory that cannot be opened is an error.
                    for (call, error) in [(STATX, EIO), (OPENAT, EACCES)] {
                        let (report, calls) = walk(call, error, None);
                        assert_eq!(report, all);
                        for number in 1..=calls {
                            let (report, _) = walk(call, error, Some(number));
                            let rest = Report { errors: vec![], ..report.clone() };
                            match &report.errors[..] {
                                [] => assert_eq!(
                                    rest, all,
                                    "a mount point, or a level that is found by its name"
                                ),
                                [(path, seen)] => {
                                    // A mount point is opened twice, too: see `Opener::examine`.
                                    let is_known =
                                        *seen == error || call == STATX && *seen == errno;
                                    // The directory cannot be read, or the level cannot be reopened.
                                    let lost = [
                                        all.clone().without(&[path.join("z")]),
                                        all.clone().unread(path),
                                    ];
                                    assert!(is_known && lost.contains(&rest), "{report:?}");
                                }
                                several => panic!("more than one error: {several:?}"),
                            }
                        }
                    }

                    let (report, reads) = walk(GETDENTS64, EIO, None);
                    assert_eq!(report, all);
                    let saved = usize::from(has_marker); // of the root, which is read first
                    let expected = 2 * all.first_visits.len() - saved;
                    let came = reads as usize;
                    assert_eq!(came, expected, "a directory below the root is read with a marker");
                    trap::count(GETDENTS64);
                }
            }
        });
    });
}

/// A walk that follows all links follows one that was not yielded as an entry. It learns that this is
/// a link from the error of an open, and another error may come first.
#[test]
fn named_link_survives_failed_opens() {
    trapped("walks::openat2::named_link_survives_failed_opens", &CALLS, |tree| {
        make(tree, &["a/b/c/d/file", "target/in/"]);
        symlink("../../../../target", tree.join("a/b/c/d/link")).unwrap();
        let errnos = [ENOSYS, EPERM, EMFILE, ENFILE];
        for errno in errnos {
            // With second visits, there are levels to close when descriptors run out.
            let options = WalkDirs::options().follow_links(true).second_visits(true);
            let mut walk = options.from_fd(lendir::open(tree).unwrap(), "");
            let mut followed = Vec::new();
            while let Some(mut dir) = walk.next().unwrap() {
                let path = dir.path().to_str().unwrap().to_owned();
                if path == "a/b/c/d" && !dir.is_second_visit() {
                    dir.skip_subdirs();
                    for name in ["link", "file", "missing"] {
                        assert!(dir.enter_name(name).unwrap());
                    }
                    trap::fail(OPENAT2, errno, move |number| {
                        number == 1 || matches!(errno, ENOSYS | EPERM)
                    });
                } else if path.contains("link") && !dir.is_second_visit() {
                    followed.push(path);
                }
            }
            trap::count(OPENAT2);
            assert_eq!(followed, ["a/b/c/d/link", "a/b/c/d/link/in"], "errno {errno}");
        }
    });
}

/// `openat` would mount automounts that the caller skips, so nothing is opened in advance.
#[test]
fn walk_does_not_read_ahead_without_openat2() {
    const TEST: &str = "walks::openat2::walk_does_not_read_ahead_without_openat2";
    trapped(TEST, &CALLS, |tree| {
        make(tree, &["1/", "2/", "3/", "4/", "5/"]);
        for same_mount in [false, true] {
            let mut walk =
                Walk::options().same_mount(same_mount).read_ahead(2).eager().open(tree).unwrap();
            assert!(walk.next().unwrap().is_some()); // entered
            trap::count(OPENAT);
            trap::refuse(OPENAT2, EACCES);
            while let Some(entry) = walk.next().unwrap() {
                entry.skip_subtree();
                thread::sleep(Duration::from_millis(1));
            }
            drop(walk);
            assert_eq!(trap::made(), 1);
        }
    });
}
