//! End markers of a walk through several file systems: the cookie that ends a directory on one of them is an ordinary one on
//! another. A marker that is carried across a mount loses the entries after it.

use super::{SORTED, Told, WAYS, Way, comb, level};
use crate::file_systems::FileSystem;
use crate::fuse::{Answer, Batch, Directory, Node, Record, Server};
use crate::hostile::{dots, served};
use crate::mounted::in_own_namespace;
use crate::support::machine;
use crate::support::tree::make;
use crate::trap;
use lendir::Walk;
use libc::{DT_DIR, DT_REG, EIO, ENOENT, ENOSYS, c_int, c_long};
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, unmount};
use std::ffi::CString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const DEPTH: usize = 6;

/// How many files come after `d` and `z` in each directory of the server.
const FILES: usize = 10;

/// As [`comb`], on a server that gives one record at a time, each with a cookie that is the end on other file systems.
fn treacherous(cookie: fn(u64) -> u64) -> Directory {
    let files = || (0..FILES).map(|number| (format!("f{number}"), Node::File));
    let leaf = || directory(files().collect(), cookie);
    (0..DEPTH).fold(leaf(), |below, _| {
        let directories = [("d", below), ("z", leaf())].map(|(name, dir)| (name.to_owned(), Node::Directory(dir)));
        directory(directories.into_iter().chain(files()).collect(), cookie)
    })
}

fn directory(children: Vec<(String, Node)>, cookie: fn(u64) -> u64) -> Directory {
    let record = |(name, node): &(String, Node)| {
        let d_type = if matches!(node, Node::File) { DT_REG } else { DT_DIR };
        Answer::Record(Record { name: name.clone().into_bytes(), ino: 7, d_type })
    };
    let answers: Vec<_> = dots().into_iter().chain(children.iter().map(record)).collect();
    let answer = move |place| usize::try_from(place).ok().and_then(|place| answers.get(place).cloned());
    let lookup = move |name: &[u8]| {
        let child = children.iter().find(|(child, _)| child.as_bytes() == name);
        child.map(|(_, node)| node.clone()).ok_or(ENOENT)
    };
    Directory {
        lookup: Arc::new(lookup),
        cookie: Some(cookie),
        batch: Batch::One,
        ..Directory::of_files(move |place| answer(place).unwrap_or(Answer::End))
    }
}

/// With the cookies that are the end on tmpfs and on ext4.
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
    let options = CString::new(format!("lowerdir={lower},upperdir={upper},workdir={work}")).unwrap();
    mount("none", at, "overlay", MountFlags::empty(), &*options).unwrap();
}

/// Makes a tree in `tree` with other file systems in it, and others in those. Returns where the first of them begin.
fn mount_all(tree: &Path, scratch: &Path, server: &Server) -> Vec<PathBuf> {
    comb(tree, DEPTH);
    let points = ["fuse", "tmpfs", "ramfs", "proc", "overlay", "bind", "same"].map(|name| level(1).join(name));
    let [fuse, tmpfs, ramfs, proc, overlay, bound, same] = points.clone().map(|point| tree.join(point));
    let deep = level(4).join("fuse");
    bind(&server.path(0), &fuse);
    bind(&server.path(1), &tree.join(&deep));
    mount_new(&tmpfs, "tmpfs");
    mount_new(&ramfs, "ramfs");
    bind(Path::new("/proc/sys/kernel"), &proc);
    mount_overlay(&overlay, scratch);
    bind(&tree.join(level(DEPTH - 1)), &bound);
    bind(&same, &same);
    // In one another: the walk comes back through each.
    mount("none", fuse.join("d/d/z"), "tmpfs", MountFlags::empty(), c"").unwrap();
    comb(&fuse.join("d/d/z"), DEPTH);
    bind(&server.path(1), &fuse.join("d/d/z/d/d/z"));
    bind(&server.path(0), &tmpfs.join("d/d/z"));
    bind(&server.path(1), &ramfs.join("d/z"));
    mount_new(&ramfs.join("d/d/d/z"), "tmpfs");
    bind(&server.path(0), &overlay.join("d/z"));
    points.into_iter().chain([deep]).collect()
}

/// Walks in all ways, alone and by several threads. Returns how often.
fn check(tree: &Path, points: &[PathBuf], what: &str) -> usize {
    let all = Told::by_std(tree).unwrap();
    let on_one = all.clone().without(points);
    assert!(all.visited.len() > on_one.visited.len() + 50);
    let last = format!("f{}", FILES - 1);
    assert!(all.entries.iter().filter(|path| path.ends_with(&last)).count() > 50, "the server's files are missing");
    for way in WAYS {
        let expected = if way.is_on_one_mount { &on_one } else { &all };
        assert_same(&way.walk(tree).sorted(), expected, &format!("{what}, {way:?}"));
        assert_same(&way.spread(tree, 3).sorted(), expected, &format!("{what}, {way:?}, several threads"));
    }
    2 * WAYS.len()
}

fn assert_same(told: &Told, expected: &Told, what: &str) {
    if told != expected {
        let lost: Vec<_> = expected.entries.iter().filter(|path| !told.entries.contains(path)).collect();
        panic!("{what}: {} entries are lost, {:?} among them; errors: {:?}", lost.len(), lost.first(), told.errors);
    }
}

const OPENAT2: c_long = libc::SYS_openat2;
const FSTATFS: c_long = libc::SYS_fstatfs;
const CALLS: [c_long; 2] = [OPENAT2, FSTATFS];

/// What is refused: nothing, and then each of these calls, every time.
const REFUSED: [Option<(c_long, c_int)>; 3] = [None, Some((OPENAT2, ENOSYS)), Some((FSTATFS, EIO))];

/// The trap comes last: the programs that mount would not survive it.
fn set_trap() -> Result<(), String> {
    trap::set_for_good(&CALLS).map_err(|error| format!("a seccomp filter ({error})"))
}

/// Refuses it from now on.
fn refuse(refused: Option<(c_long, c_int)>) {
    match refused {
        Some((call, errno)) => trap::fail(call, errno, |_| true),
        None => trap::count(OPENAT2),
    }
}

/// A walk on `system`, where all of these are mounted.
fn walk_through_all(test: &'static str, system: &'static str) {
    served(test, 60, || {
        let row = "walk: end markers, with other file systems mounted in the tree";
        let outcome = FileSystem::named(system).mounted(
            |_, _| {},
            |mounted| {
                let server = serve();
                let scratch = mounted.at.parent().unwrap().join("overlay");
                let points = mount_all(&mounted.at.join("tree"), &scratch, &server);
                set_trap()?;
                let cases = REFUSED.map(|refused| {
                    refuse(refused);
                    check(&mounted.at.join("tree"), &points, &format!("{refused:?} refused"))
                });
                detach(&mounted.at); // and the server with it, which ends then
                Ok(cases.into_iter().sum())
            },
        );
        match outcome.and_then(|outcome| outcome) {
            Ok(cases) => {
                let what = "walks through FUSE, tmpfs, ramfs, proc, overlay and bind mounts, `openat2` refused or not";
                machine::passed(row, cases, what);
            }
            Err(missing) => machine::skip(row, &missing),
        }
    });
}

#[test]
fn no_entry_is_lost_where_the_root_is_tmpfs() {
    walk_through_all("walk::markers::no_entry_is_lost_where_the_root_is_tmpfs", "tmpfs");
}

/// The root has no marker.
#[test]
fn no_entry_is_lost_where_the_root_is_ramfs() {
    walk_through_all("walk::markers::no_entry_is_lost_where_the_root_is_ramfs", "ramfs");
}

/// debugfs mounts tracefs when the walk comes to it.
#[test]
fn no_entry_is_lost_of_what_an_automount_mounts() {
    const AUTOMOUNT: &str = "tracing";
    let row = "walk: end markers, beside an automount";
    let outcome = in_own_namespace(|scratch| {
        let tree = scratch.join("tree");
        mount_new(&tree, "tmpfs");
        for is_post_order in [false, true] {
            let point = tree.join(format!("debugfs, {is_post_order}"));
            fs::create_dir(&point).unwrap();
            mount("none", &point, "debugfs", MountFlags::empty(), c"").map_err(|_| "debugfs".to_owned())?;
            let automount = point.join(AUTOMOUNT);
            let mounts = || fs::read_to_string("/proc/thread-self/mountinfo").unwrap().lines().count();
            let before = mounts();
            let mut walk = Walk::options().max_depth(3).post_order(is_post_order).open(&tree).unwrap();
            let mut names = Vec::new();
            while let Some(mut dir) = walk.next().unwrap() {
                while let Some(entry) = dir.next().unwrap() {
                    if entry.path().parent() == Some(&automount) {
                        names.push(entry.name_os().to_owned());
                    }
                }
            }
            if mounts() == before {
                return Err(format!("an automount at debugfs/{AUTOMOUNT}"));
            }
            let mut expected: Vec<_> =
                fs::read_dir(&automount).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            expected.sort_unstable();
            names.sort_unstable();
            assert_eq!(names, expected, "post order {is_post_order}");
        }
        Ok(())
    });
    match outcome.and_then(|outcome| outcome) {
        Ok(()) => machine::passed(row, 2, "walks from tmpfs through debugfs to tracefs, mounted as the walk comes"),
        Err(missing) => machine::skip(row, &missing),
    }
}

/// A change of mounts when the walk has visited `at`.
struct Change {
    what: &'static str,
    at: PathBuf,
    before: fn(&Path, &Server),
    make: fn(&Path, &Server),
    /// Whether the walk sees what there is after the change, or what there was before it.
    is_seen: bool,
}

fn detach(at: &Path) {
    unmount(at, UnmountFlags::DETACH).unwrap();
}

fn changes() -> [Change; 6] {
    let below = |depth: usize| level(1).join("fuse").join(level(depth));
    [
        Change {
            what: "the server is mounted on a directory still to do",
            at: level(DEPTH),
            before: |_, _| {},
            make: |tree, server| bind(&server.path(0), &tree.join(level(2)).join("z")),
            is_seen: true,
        },
        Change {
            what: "the server is mounted on the directory that is next",
            at: level(2),
            before: |_, _| {},
            make: |tree, server| bind(&server.path(1), &tree.join(level(3))),
            is_seen: true,
        },
        Change {
            what: "the server is unmounted before the walk comes there",
            at: level(DEPTH),
            before: |tree, server| bind(&server.path(0), &tree.join(level(2)).join("z")),
            make: |tree, _| detach(&tree.join(level(2)).join("z")),
            is_seen: true,
        },
        Change {
            what: "the server is unmounted while the walk is in it",
            at: below(DEPTH),
            before: |tree, server| bind(&server.path(0), &tree.join("d/fuse")),
            make: |tree, _| detach(&tree.join("d/fuse")),
            is_seen: false,
        },
        Change {
            what: "a tmpfs is mounted on a directory of the server",
            at: below(DEPTH),
            before: |tree, server| bind(&server.path(0), &tree.join("d/fuse")),
            make: |tree, _| mount_new(&tree.join("d/fuse/d/z"), "tmpfs"),
            is_seen: true,
        },
        Change {
            what: "a tmpfs is unmounted from a directory of the server",
            at: below(DEPTH),
            before: |tree, server| {
                bind(&server.path(0), &tree.join("d/fuse"));
                mount("none", tree.join("d/fuse/d/z"), "tmpfs", MountFlags::empty(), c"").unwrap();
                comb(&tree.join("d/fuse/d/z"), DEPTH);
            },
            make: |tree, _| detach(&tree.join("d/fuse/d/z")),
            is_seen: true,
        },
    ]
}

#[test]
fn no_entry_is_lost_if_mounts_change_midway() {
    served("walk::markers::no_entry_is_lost_if_mounts_change_midway", 60, || {
        let row = "walk: end markers, mounted and unmounted midway";
        let outcome = FileSystem::named("tmpfs").mounted(
            |_, _| {},
            |mounted| {
                let server = serve();
                set_trap()?;
                let mut cases = 0;
                for refused in REFUSED {
                    for change in changes() {
                        for is_post_order in [false, true] {
                            let tree = mounted.at.join(cases.to_string());
                            comb(&tree, DEPTH);
                            (change.before)(&tree, &server);
                            let before = Told::by_std(&tree).unwrap();
                            refuse(refused);
                            let mut run = Way { is_post_order, ..SORTED }.begin(&tree);
                            run.until(&change.at);
                            (change.make)(&tree, &server);
                            let told = run.finish().sorted();
                            let expected = if change.is_seen { Told::by_std(&tree).unwrap() } else { before };
                            let what = format!("{}, post order {is_post_order}, {refused:?} refused", change.what);
                            assert_same(&told, &expected, &what);
                            cases += 1;
                        }
                    }
                }
                detach(&mounted.at); // and the server with it, which ends then
                Ok(cases)
            },
        );
        match outcome.and_then(|outcome| outcome) {
            Ok(cases) => machine::passed(row, cases, "walks beside a server whose every cookie is an end elsewhere"),
            Err(missing) => machine::skip(row, &missing),
        }
    });
}
