//! Mounts in the tree and end markers: a walk through several file systems. A cookie that ends a
//! directory on one file system is an ordinary cookie on another, so a walk must not use its marker
//! on another mount.

use crate::file_systems::FileSystem;
use crate::fuse::{Batch, Child, Directory, Server, dir, directory, file, served};
use crate::report::{OPTIONS, Report, check_ways, comb, level};
use crate::support::prelude::*;
use crate::trap;
use libc::{c_int, c_long};
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, unmount};
use std::ffi::CString;

const DEPTH: usize = 6;

/// The number of files after `d` and `z` in each directory of the server.
const FILES: usize = 10;

/// Returns a [`comb`] on a server that sends one record at a time. Each record has a cookie that is
/// the end on other file systems.
fn treacherous(cookie: fn(u64) -> u64) -> Directory {
    let with_files = |directories: Vec<Child>| {
        let files = (0..FILES).map(|number| file(format!("f{number}")));
        let directory = directory(directories.into_iter().chain(files).collect());
        Directory { cookie: Some(cookie), batch: Batch::One, ..directory }
    };
    let leaf = with_files(vec![]);
    (0..DEPTH)
        .fold(leaf.clone(), |below, _| with_files(vec![dir("d", below), dir("z", leaf.clone())]))
}

/// Serves the cookies that are the end on tmpfs and on ext4.
fn serve() -> Server {
    let cookies: [fn(u64) -> u64; 2] = [|_| i32::MAX as u64, |_| i64::MAX as u64];
    Server::mount(cookies.map(treacherous).to_vec()).unwrap()
}

fn mount_new(at: &Path, system: &str) {
    fs::create_dir_all(at).unwrap();
    mount("none", at, system, MountFlags::empty(), c"").unwrap();
    comb(at, DEPTH);
}

fn bind(what: &Path, at: &Path) {
    fs::create_dir_all(at).unwrap();
    mount_bind(what, at).unwrap();
}

fn mount_overlay(at: &Path, scratch: &Path) {
    let [lower, upper, work] = ["lower", "upper", "work"].map(|name| scratch.join(name));
    comb(&lower, DEPTH);
    make(&upper, &["d/d/above", "above/file"]);
    fs::create_dir_all(&work).unwrap();
    fs::create_dir_all(at).unwrap();
    let [lower, upper, work] = [lower, upper, work].map(|path| path.to_str().unwrap().to_owned());
    let options =
        CString::new(format!("lowerdir={lower},upperdir={upper},workdir={work}")).unwrap();
    mount("none", at, "overlay", MountFlags::empty(), &*options).unwrap();
}

/// Makes a tree in `tree`, mounts other file systems in it, and further ones in those. Returns the
/// mount points in the tree itself.
fn mount_all(tree: &Path, scratch: &Path, server: &Server) -> Vec<PathBuf> {
    comb(tree, DEPTH);
    let points = ["fuse", "tmpfs", "ramfs", "proc", "overlay", "bind", "same"]
        .map(|name| level(1).join(name));
    let [fuse, tmpfs, ramfs, proc, overlay, bound, same] =
        points.clone().map(|point| tree.join(point));
    let deep = level(4).join("fuse");
    bind(&server.path(0), &fuse);
    bind(&server.path(1), &tree.join(&deep));
    mount_new(&tmpfs, "tmpfs");
    mount_new(&ramfs, "ramfs");
    bind(Path::new("/proc/sys/kernel"), &proc);
    mount_overlay(&overlay, scratch);
    bind(&tree.join(level(DEPTH - 1)), &bound);
    bind(&same, &same);
    // Nested, so the walk returns through each.
    mount("none", fuse.join("d/d/z"), "tmpfs", MountFlags::empty(), c"").unwrap();
    comb(&fuse.join("d/d/z"), DEPTH);
    bind(&server.path(1), &fuse.join("d/d/z/d/d/z"));
    bind(&server.path(0), &tmpfs.join("d/d/z"));
    bind(&server.path(1), &ramfs.join("d/z"));
    mount_new(&ramfs.join("d/d/d/z"), "tmpfs");
    bind(&server.path(0), &overlay.join("d/z"));
    points.into_iter().chain([deep]).collect()
}

/// Walks with all options, on one thread and on several.
fn check(tree: &Path, points: &[PathBuf], what: &str) {
    let all = Report::expected(tree).unwrap();
    let on_one = all.clone().without(points);
    let counts = [&all, &on_one].map(|report| report.first_visits.len());
    assert!(counts[0] > counts[1] + 50, "{counts:?} directories");
    let last = format!("f{}", FILES - 1);
    assert!(
        all.entries.iter().filter(|path| path.ends_with(&last)).count() > 50,
        "the server's files are missing"
    );
    check_ways(tree, |options| if options.is_on_one_mount { &on_one } else { &all }, what);
    // A mount point is entered if it is the root.
    for options in OPTIONS {
        let visited = options.walk_dirs(tree.join(&points[0])).sorted().first_visits;
        assert!(visited.len() > 1, "{what}, {options:?}");
    }
}

const OPENAT2: c_long = libc::SYS_openat2;
const FSTATFS: c_long = libc::SYS_fstatfs;
const CALLS: [c_long; 2] = [OPENAT2, FSTATFS];

/// The calls that are refused every time.
const REFUSED: [Option<(c_long, c_int)>; 3] = [None, Some((OPENAT2, ENOSYS)), Some((FSTATFS, EIO))];

/// Refuses this call from now on.
fn refuse(refused: Option<(c_long, c_int)>) {
    match refused {
        Some((call, errno)) => trap::fail(call, errno, |_| true),
        None => trap::count(OPENAT2),
    }
}

/// Walks a tree on `system` in which all of these are mounted.
fn walk_through_all(test: &'static str, system: &'static str) {
    served(test, || {
        let row = "walk: end markers, with other file systems mounted in the tree";
        let outcome = FileSystem::named(system).mounted(
            |_, _| {},
            |mounted| {
                let server = serve();
                let scratch = mounted.at.parent().unwrap().join("overlay");
                let points = mount_all(&mounted.at.join("tree"), &scratch, &server);
                // This comes last, because the programs that mount would not survive the trap.
                let _trap = trap::set(&CALLS)?;
                for refused in REFUSED {
                    refuse(refused);
                    check(&mounted.at.join("tree"), &points, &format!("{refused:?} refused"));
                }
                unmount(&mounted.at, UnmountFlags::DETACH).unwrap(); // this ends the server, too
                Ok(())
            },
        );
        machine::skip_unless(row, outcome.and_then(|outcome| outcome));
    });
}

#[test]
fn walk_from_tmpfs_loses_no_entry() {
    walk_through_all("walks::markers::walk_from_tmpfs_loses_no_entry", "tmpfs");
}

/// The root has no marker.
#[test]
fn walk_from_ramfs_loses_no_entry() {
    walk_through_all("walks::markers::walk_from_ramfs_loses_no_entry", "ramfs");
}
