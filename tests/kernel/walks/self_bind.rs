//! What bind mounts do to `..`. If a closed level is mounted on itself while the walk is below it, `..` leads to the new mount,
//! whose root has the same device, inode number and birth time. Other mounts in the level do not cover directories there.

use super::{SORTED, Told, Way, comb, level};
use crate::mounted::in_own_namespace;
use crate::support::machine;
use crate::support::tree::make;
use crate::support::visits::{Plan, directories, errors, walked};
use libc::ENOENT;
use rustix::mount::{MountFlags, mount, mount_bind};
use std::fs::rename;
use std::os::unix::fs::symlink;
use std::path::Path;

const DEPTH: usize = 8;
const CLOSED: [usize; 3] = [1, 3, DEPTH - 3];

/// Walks, and mounts the level `closed` on itself once the walk has closed it. With `covers`, a tmpfs covers what is left to do
/// there. Returns the result by `std` before, and that of the walk.
fn walk(tree: &Path, way: Way, closed: usize, covers: bool) -> [Told; 2] {
    comb(tree, DEPTH);
    let point = tree.join(level(closed));
    if covers {
        make(&point, &["z/COVERED/file"]);
        mount("none", point.join("z"), "tmpfs", MountFlags::empty(), c"").unwrap();
        make(&point, &["z/file"]);
    }
    let all = Told::by_std(tree).unwrap();
    let mut run = way.begin(tree);
    run.until(level(DEPTH));
    mount_bind(&point, &point).unwrap();
    [all, run.finish()]
}

/// Under `same_mount` the level is lost, because the new mount is not the root's. Otherwise the walk may or may not find it, on
/// either mount. The rest is complete.
#[test]
fn a_level_that_is_mounted_on_itself_costs_nothing_else() {
    let outcome = in_own_namespace(|scratch| {
        for closed in CLOSED {
            for number in 0..8 {
                let [covers, second_visits, is_on_one_mount] =
                    [1, 2, 4].map(|bit| number & bit != 0);
                let way = Way { second_visits, is_on_one_mount, ..SORTED };
                let [all, told] =
                    walk(&scratch.join(format!("{closed} {number}")), way, closed, covers);
                let what = format!("level {closed}, covered: {covers}, {way:?}");
                let lost = level(closed);
                let in_doubt = [lost.join("z")];
                let error = (lost.clone(), ENOENT);
                if is_on_one_mount {
                    assert!(
                        !told.left.contains(&lost),
                        "{what}: the second visit is that of the new mount"
                    );
                    assert_eq!(
                        told.sorted(),
                        all.without(&in_doubt).with_errors([error]),
                        "{what}"
                    );
                } else {
                    assert!(
                        told.errors.is_empty() || told.errors == [error],
                        "{what}: {:?}",
                        told.errors
                    );
                    let rest = Told { errors: vec![], ..told.sorted() }.without(&in_doubt);
                    assert_eq!(rest, all.without(&in_doubt), "{what}");
                }
            }
        }
    });
    machine::skip_unless("walk: a closed level is mounted on itself", outcome);
}

/// In a directory that was moved out of the root's bind mount, `..` is `ENOENT`, so the walk cannot check whether a link is a loop.
#[test]
fn a_link_whose_directory_has_left_the_mount_is_an_error() {
    let outcome = in_own_namespace(|scratch| {
        make(scratch, &["a/b/x/sub/", "target/in/", "mount/"]);
        symlink(scratch.join("target"), scratch.join("a/b/x/link")).unwrap();
        let root = scratch.join("mount");
        mount_bind(scratch.join("a/b"), &root).unwrap();
        let visits = walked(&mut lendir::walk_dirs(&root).unwrap(), |path| {
            if path.ends_with("x") {
                rename(scratch.join("a/b/x"), scratch.join("a/x")).unwrap();
            }
            Plan::FOLLOW
        });
        assert_eq!(directories(&visits), ["", "x", "x/sub"].map(|path| root.join(path)));
        assert_eq!(errors(&visits), [(&*root.join("x/link"), ENOENT)]);
    });
    let row = "walk: a link is followed in a directory that has left the bind mount";
    machine::skip_unless(row, outcome);
}
