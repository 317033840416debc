//! Effects of bind mounts on `..`. If a closed level is mounted on itself while the walk is below
//! it, `..` leads to the new mount. The root of that mount has the same device, inode number and
//! birth time. Other mounts in the level do not cover directories there.

use crate::mounted::run_isolated;
use crate::report::{Report, SORTED, comb, level};
use crate::support::prelude::*;
use rustix::mount::{MountFlags, mount, mount_bind};
use std::fs::rename;

const DEPTH: usize = 8;
const CLOSED: [usize; 3] = [1, 3, DEPTH - 3];

/// Walks, and mounts the level `closed` on itself once the walk has closed it. With `covers`, a
/// tmpfs covers the pending directory there. Returns the report of `std` before the walk, and the
/// report of the walk.
fn walk(tree: &Path, options: TestOptions, closed: usize, covers: bool) -> [Report; 2] {
    comb(tree, DEPTH);
    let point = tree.join(level(closed));
    if covers {
        make(&point, &["z/COVERED/file"]);
        mount("none", point.join("z"), "tmpfs", MountFlags::empty(), c"").unwrap();
        make(&point, &["z/file"]);
    }
    let all = Report::expected(tree).unwrap();
    let mut run = options.begin(tree);
    run.until(level(DEPTH));
    mount_bind(&point, &point).unwrap();
    [all, run.finish()]
}

/// A level that is mounted on itself is lost under `same_mount`, because the new mount is not the
/// root's. Otherwise the walk may find the level or lose it. The rest is complete.
#[test]
fn level_mounted_on_itself_loses_only_itself() {
    run_isolated("walk: a closed level is mounted on itself", |scratch| {
        for closed in CLOSED {
            for number in 0..8 {
                let [covers, second_visits, is_on_one_mount] =
                    [1, 2, 4].map(|bit| number & bit != 0);
                let options = TestOptions { second_visits, is_on_one_mount, ..SORTED };
                let [all, report] =
                    walk(&scratch.join(format!("{closed} {number}")), options, closed, covers);
                let what = format!("level {closed}, covered: {covers}, {options:?}");
                let lost = level(closed);
                let in_doubt = [lost.join("z")];
                let error = (lost.clone(), ENOENT);
                if is_on_one_mount {
                    let is_right = !report.second_visits.contains(&lost);
                    assert!(is_right, "{what}: the second visit is that of the new mount");
                    let found = report.sorted();
                    assert_eq!(found, all.without(&in_doubt).with_errors([error]), "{what}");
                } else {
                    let is_right = report.errors.is_empty() || report.errors == [error];
                    assert!(is_right, "{what}: {:?}", report.errors);
                    let rest = Report { errors: vec![], ..report.sorted() }.without(&in_doubt);
                    assert_eq!(rest, all.without(&in_doubt), "{what}");
                }
            }
        }
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
                rename(scratch.join("a/b/x"), scratch.join("a/x")).unwrap();
            }
            Requests::FOLLOW
        });
        assert_eq!(directories(&visits), ["", "x", "x/sub"].map(|path| root.join(path)));
        assert_eq!(errors(&visits), [(&*root.join("x/link"), ENOENT)]);
    });
}
