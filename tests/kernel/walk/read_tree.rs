//! `ReadTree` where calls fail, types are missing and file systems are mounted: nothing is lost silently, and each error comes once,
//! where it belongs.

use super::comb;
use super::faults::{CALLS, GETDENTS64, OPENAT2, STATX};
use crate::errnos::ERRNOS;
use crate::faults::trapped;
use crate::file_systems::FileSystem;
use crate::mounted::in_own_namespace;
use crate::readers::WALKERS;
use crate::support::machine;
use crate::support::pre_order::{Answer, PRE_ORDER, PreOrder, as_set, errors_between, next};
use crate::support::process;
use crate::support::tree::{self, make};
use crate::trap;
use lendir::{Order, ReadTree};
use libc::{EINTR, EIO, ELOOP, EMFILE, ENFILE, ENOENT, ENOSYS, ENOTDIR, EPERM, EXDEV, c_int, c_long};
use rustix::mount::{MountFlags, mount, mount_bind};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Its order is known, and it closes levels early.
const SORTED: PreOrder = PreOrder { order: Order::Bytes, max_open: 4, ..PRE_ORDER };

const FSTATFS: c_long = libc::SYS_fstatfs;
const NEWFSTATAT: c_long = libc::SYS_newfstatat;

#[test]
fn each_error_of_each_call_comes_once_where_it_belongs() {
    const TEST: &str = "walk::read_tree::each_error_of_each_call_comes_once_where_it_belongs";
    let calls = [&CALLS[..], &[FSTATFS]].concat();
    trapped(TEST, &calls, |tree| {
        comb(tree, 6);
        let all = SORTED.by_std(tree);
        let mut cases = 0;
        for (same_mount, has_types) in [(false, true), (true, true), (false, false), (true, false)] {
            let errnos = ERRNOS.into_iter().map(|(_, errno)| errno).chain([EMFILE, ENFILE, EPERM, EXDEV]);
            for (call, errno) in errnos.flat_map(|errno| calls.iter().map(move |call| (*call, errno))) {
                cases += check(tree, &all, (same_mount, has_types), call, errno);
            }
        }
        let what = "readings of a tree in which one call fails, or all of a kind: one error each, in its place, and the rest complete";
        machine::passed("tree: every call fails", cases, what);
    });
}

/// Makes each call fail in a reading of its own, then all calls in one. Returns the number of readings.
fn check(tree: &Path, all: &[Answer], (same_mount, has_types): (bool, bool), call: c_long, errno: c_int) -> usize {
    let what = format!("errno {errno} of call {call}, same mount {same_mount}, types {has_types}");
    let read = |fails: Box<dyn Fn(u32) -> bool + Send>| {
        let root = lendir::open(tree).unwrap();
        trap::fail(call, errno, fails);
        if !has_types {
            trap::hide_types();
        }
        let mut read = SORTED.options().same_mount(same_mount).read_tree_from_fd(root, tree).with_order(SORTED.order);
        let answers = SORTED.all(&mut read);
        let made = trap::made();
        trap::count(call);
        (answers, made)
    };
    let (answers, calls) = read(Box::new(|_| false));
    assert_eq!(answers, all, "{what}");
    assert!(call != NEWFSTATAT || calls == 0, "{what}: it asks for types");

    let is_silent = match call {
        GETDENTS64 => errno == ENOENT, // it was removed
        OPENAT2 => same_mount && errno == EXDEV || !has_types && matches!(errno, ENOTDIR | ELOOP),
        _ => false,
    };
    // Where `statx` is refused, `fstat` answers, which knows no mounts: a level that was noted so seems to be on another one.
    let told_errno = if call == STATX && matches!(errno, ENOSYS | EPERM) { ENOENT } else { errno };
    let burst = if errno == EINTR { 20 } else { 1 };
    let mut failed = 0;
    for first in 1..=calls {
        let (answers, _) = read(Box::new(move |number| (first..first + burst).contains(&number)));
        let errors = errors_between(&answers, all, is_silent, &format!("{what}, number {first}"));
        assert!(errors.len() <= 1 && errors.iter().all(|(_, told)| *told == told_errno), "{what}: {errors:?}");
        assert!(!errors.is_empty() || is_silent || answers == all, "{what}: {answers:?}");
        failed += errors.len();
    }
    let (answers, _) = read(Box::new(move |number| errno != EINTR || number % (burst + 1) != 0));
    errors_between(&answers, all, is_silent, &format!("{what}, every call"));
    let expected = match (call, errno) {
        (_, EINTR) => Some(0),
        (GETDENTS64 | OPENAT2, EIO) => Some(calls as usize),
        (STATX, EIO) => Some(calls as usize / 2), // the second one is asked by `..`, and the level is then found by its name
        (FSTATFS, _) => Some(0),
        _ => None,
    };
    assert!(expected.is_none_or(|expected| failed == expected), "{what}: {failed} errors, {expected:?} expected");
    calls as usize + 1
}

/// The error of a directory comes after the entries that were read before it and what is below them, whatever is entered meanwhile.
#[test]
fn read_error_waits_for_its_own_directory() {
    const TEST: &str = "walk::read_tree::read_error_waits_for_its_own_directory";
    trapped(TEST, &[GETDENTS64], |tree| {
        make(tree, &["a/f", "big/", "z/f"]);
        let big = tree.join("big");
        let name = |number| format!("{number:04} {}", "n".repeat(100));
        tree::make(&big, &(0..2000).map(|number| name(number) + "/").collect::<Vec<_>>());
        // Of those, some have directories of their own in which reading fails, too.
        tree::make(&big, &(0..2000).step_by(50).map(|number| name(number) + "/g/h/f").collect::<Vec<_>>());
        let read = |order, number: u32, skips: bool| -> (Vec<Answer>, Vec<Answer>) {
            let way = PreOrder { order, ..PRE_ORDER };
            let all = way.by_std(tree);
            let mut read = way.options().read_tree(tree).unwrap().with_order(order);
            let mut answers = Vec::new();
            let mut until = |read: &mut ReadTree, is_end: &dyn Fn(&Answer) -> bool, skips: bool| loop {
                let Some(answer) = next(read, |entry| {
                    if skips {
                        entry.skip_rest()
                    }
                }) else {
                    break;
                };
                answers.push(answer);
                if answers.last().is_some_and(is_end) {
                    break;
                }
            };
            until(&mut read, &|answer| answer.path == big, false);
            trap::fail(GETDENTS64, EIO, move |made| made == number);
            until(&mut read, &|_| true, skips);
            until(&mut read, &|_| false, false);
            trap::count(GETDENTS64);
            (answers, all)
        };
        for order in [Order::Bytes, Order::Unsorted] {
            for number in 1..=4 {
                let (answers, all) = read(order, number, false);
                let what = format!("{order:?}, call {number}");
                assert_eq!(errors_between(&answers, &all, false, &what), [(big.clone(), EIO)]);
                let is_in_big = |answer: &&Answer| answer.path.parent() == Some(&big) && answer.what.is_ok();
                let come: Vec<_> = answers.iter().filter(is_in_big).collect();
                assert!(come.len() < 2000 && come.is_empty() == (number == 1), "{what}: {} entries", come.len());
                assert_eq!(come.last().map(|last| last.what), come.last().map(|_| Ok(true)), "{what}");
                // All that is below an entry that comes.
                let is_below = |answer: &&Answer| come.iter().any(|above| answer.path.starts_with(&above.path));
                let [told, whole] = [&answers, &all].map(|all| all.iter().filter(is_below).count());
                assert_eq!(told, whole, "{what}");
            }
            let (answers, _) = read(order, 2, true);
            let in_big: Vec<_> = answers.iter().filter(|answer| answer.path.starts_with(&big)).collect();
            assert_eq!(in_big.len(), 3, "{order:?}: `big`, its first entry, and the error: {in_big:?}");
            assert_eq!(in_big[2], &Answer::error(&big, 1, EIO));
        }
        machine::passed("tree: a directory that cannot be read to its end", 10, "readings in which a later call fails");
    });
}

#[test]
fn other_mounts_are_entered_only_if_they_may_be() {
    let outcome = in_own_namespace(|scratch| {
        let tree = scratch.join("tree");
        make(&tree, &["d/e/f", "tmpfs/covered", "bind/covered", "d/last/"]);
        for point in ["tmpfs", "d/last"].map(|point| tree.join(point)) {
            mount("none", &point, "tmpfs", MountFlags::empty(), c"").unwrap();
            make(&point, &["below/f", "g"]);
        }
        mount_bind(tree.join("d/e"), tree.join("bind")).unwrap();
        let points = ["tmpfs", "bind", "d/last"].map(|point| tree.join(point));
        for max_open in [4, 32] {
            let way = PreOrder { max_open, ..SORTED };
            let mut all = way.by_std(&tree);
            assert_eq!(way.read(&tree), all);
            all.retain(|answer| !points.iter().any(|at| answer.path != *at && answer.path.starts_with(at)));
            let mut read = way.options().same_mount(true).read_tree(&tree).unwrap().with_order(way.order);
            assert_eq!(way.all(&mut read), all);
            for point in &points {
                let mut read = way.options().same_mount(true).read_tree(point).unwrap().with_order(way.order);
                assert_eq!(way.all(&mut read), way.by_std(point), "as the root, a mount point is entered");
            }
        }
        10
    });
    machine::report("tree: mount points", outcome, "readings of a tree with two tmpfs and a bind mount in it");
}

/// Where the directories list no types, too: what may be a directory is opened, and nothing is asked.
#[test]
fn gives_what_find_gives_with_types_and_without_and_asks_for_none() {
    const TEST: &str = "walk::read_tree::gives_what_find_gives_with_types_and_without_and_asks_for_none";
    process::run(TEST, 120, || {
        for name in ["ext4", "ext4 ^filetype"] {
            let fill = |at: &Path, _| {
                fs::create_dir(at.join("random")).unwrap();
                tree::random(&at.join("random"), 7);
            };
            let outcome = FileSystem::named(name).mounted(fill, |mounted| {
                let way = PreOrder { max_open: 1000, ..SORTED };
                let mut expected = WALKERS.iter().flatten().find(|walker| walker.name == "find").map(|find| {
                    find.read(&[&mounted.at]).names.into_iter().map(|name| mounted.at.join(OsStr::from_bytes(&name)))
                });
                let by_std = way.by_std(&mounted.at);
                let Ok(_trap) = trap::set(&[NEWFSTATAT, STATX]) else { return };
                for call in [NEWFSTATAT, STATX] {
                    trap::count(call);
                    let answers = way.read(&mounted.at);
                    assert_eq!(trap::made(), 0, "{name}: call {call}");
                    assert!(answers == by_std, "{name}");
                }
                if let Some(found) = expected.as_mut() {
                    let mut found: Vec<_> = found.map(|path| path.into_os_string()).collect();
                    found.sort_unstable();
                    let told = as_set(by_std);
                    assert!(told.iter().map(|answer| answer.path.as_os_str()).eq(&found), "{name}: find");
                }
            });
            machine::report(
                &format!("tree: {name}"),
                outcome.map(|()| 2),
                "readings, as by find, that ask for no type",
            );
        }
    });
}
