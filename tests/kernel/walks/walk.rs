//! `Walk` where calls fail or types are missing: nothing is lost silently, and each error comes once,
//! where it belongs.

use super::comb;
use super::faults::{CALLS, GETDENTS64, NEWFSTATAT, OPENAT2, STATX};
use crate::errnos::ERRNOS;
use crate::faults::trapped;
use crate::file_systems::FileSystem;
use crate::support::machine;
use crate::support::pre_order::{Answer, PRE_ORDER, PreOrder, Says, errors_between, next};
use crate::support::process;
use crate::support::tree::{self, make};
use crate::trap;
use lendir::Order;
use libc::{
    EINTR, EIO, ELOOP, EMFILE, ENFILE, ENOENT, ENOSYS, ENOTDIR, EPERM, EXDEV, c_int, c_long,
};
use rustix::thread::gettid;
use std::fs;
use std::path::Path;

/// Its order is known, and it closes levels early.
const SORTED: PreOrder = PreOrder { order: Order::Bytes, max_open: 4, ..PRE_ORDER };

const FSTATFS: c_long = libc::SYS_fstatfs;

#[test]
fn each_error_of_each_call_comes_once_where_it_belongs() {
    const TEST: &str = "walks::walk::each_error_of_each_call_comes_once_where_it_belongs";
    let calls = [&CALLS[..], &[FSTATFS]].concat();
    trapped(TEST, &calls, |tree| {
        comb(tree, 5);
        let all = SORTED.by_std(tree);
        for (same_mount, has_types) in [(false, true), (true, true), (false, false), (true, false)]
        {
            let errnos =
                ERRNOS.into_iter().map(|(_, errno)| errno).chain([EMFILE, ENFILE, EPERM, EXDEV]);
            for (call, errno) in
                errnos.flat_map(|errno| calls.iter().map(move |call| (*call, errno)))
            {
                check(tree, &all, (same_mount, has_types), call, errno);
            }
        }
    });
}

/// Makes each call fail in a reading of its own, then all calls in one. What fails in a thread that reads ahead never shows.
fn check(
    tree: &Path,
    all: &[Answer],
    (same_mount, has_types): (bool, bool),
    call: c_long,
    errno: c_int,
) {
    let what = format!("errno {errno} of call {call}, same mount {same_mount}, types {has_types}");
    let read = |read_ahead: usize, fails: Box<dyn Fn(u32) -> bool + Send>| {
        let root = lendir::open(tree).unwrap();
        trap::fail(call, errno, fails);
        if !has_types {
            trap::hide_types();
        }
        let mut read =
            SORTED.options().same_mount(same_mount).read_ahead(read_ahead).from_fd(root, tree);
        let answers = SORTED.all(&mut read);
        drop(read);
        let made = trap::made();
        trap::count(call);
        (answers, made)
    };
    let (answers, calls) = read(0, Box::new(|_| false));
    assert_eq!(answers, all, "{what}");
    assert!(call != NEWFSTATAT || calls == 0, "{what}: it asks for types");

    let is_silent = match call {
        GETDENTS64 => errno == ENOENT, // it was removed
        OPENAT2 => {
            same_mount && errno == EXDEV || !has_types && matches!(errno, ENOENT | ENOTDIR | ELOOP)
        }
        _ => false,
    };
    // Where `statx` is refused, `fstat` answers, which knows no mounts: a level that was noted so seems to be on another one.
    let told_errno = if call == STATX && matches!(errno, ENOSYS | EPERM) { ENOENT } else { errno };
    let burst = if errno == EINTR { 20 } else { 1 };
    let mut failed = 0;
    for first in 1..=calls {
        for read_ahead in [0, 2] {
            let (answers, _) =
                read(read_ahead, Box::new(move |number| (first..first + burst).contains(&number)));
            let errors =
                errors_between(&answers, all, is_silent, &format!("{what}, number {first}"));
            assert!(
                errors.len() <= 1 && errors.iter().all(|(_, told)| *told == told_errno),
                "{what}: {errors:?}"
            );
            if errors.is_empty() && !is_silent {
                assert_eq!(answers, all, "{what}");
            }
            failed += if read_ahead == 0 { errors.len() } else { 0 };
        }
    }
    let own = gettid();
    for every in [1, 2, 3] {
        let fails = move |number| {
            gettid() != own && number % every == 0 && (errno != EINTR || number % 4 != 0)
        };
        let (answers, _) = read(3, Box::new(fails));
        assert_eq!(answers, all, "{what}: by threads that read ahead");
    }
    let (answers, _) = read(0, Box::new(move |number| errno != EINTR || number % (burst + 1) != 0));
    let errors = errors_between(&answers, all, is_silent, &format!("{what}, every call"));
    assert!(errno != EINTR || errors.is_empty(), "{what}, every call: {errors:?}");
    let expected = match (call, errno) {
        (FSTATFS, _) | (_, EINTR) => Some(0),
        (GETDENTS64 | OPENAT2, EIO) => Some(calls as usize),
        (STATX, EIO) => Some(calls as usize / 2), // the second one is asked by `..`, and the level is then found by its name
        _ => None,
    };
    assert!(
        expected.is_none_or(|expected| failed == expected),
        "{what}: {failed} errors, {expected:?} expected"
    );
}

/// The error of a directory comes before the entries that were read until then, and all that is below these comes.
#[test]
fn read_error_comes_before_what_was_read_and_hides_none_of_it() {
    const TEST: &str = "walks::walk::read_error_comes_before_what_was_read_and_hides_none_of_it";
    trapped(TEST, &[GETDENTS64], |tree| {
        let big = tree.join("big");
        let name = |number| format!("big/{number:04} {}", "n".repeat(100));
        make(tree, &["a/f", "z/f"]);
        make(tree, &(0..1000).map(|number| name(number) + "/").collect::<Vec<_>>());
        make(
            tree,
            &(0..1000).step_by(50).map(|number| name(number) + "/g/h/f").collect::<Vec<_>>(),
        );
        for order in [Order::Bytes, Order::Unsorted] {
            let way = PreOrder { order, ..PRE_ORDER };
            let all = way.by_std(tree);
            for number in 1..=3 {
                let (mut read, mut answers) = (way.begin(tree), Vec::<Answer>::new());
                while let Some(answer) = next(&mut read, |_| ()) {
                    if answer.path == big && answer.what.is_ok() {
                        trap::fail(GETDENTS64, EIO, move |made| made == number);
                    }
                    if answer.what.is_err() {
                        assert_eq!(
                            answers.last().map(|before| &before.path),
                            Some(&big),
                            "the error comes later"
                        );
                    }
                    answers.push(answer);
                }
                trap::count(GETDENTS64);
                let what = format!("{order:?}, call {number}");
                assert_eq!(errors_between(&answers, &all, false, &what), [(big.clone(), EIO)]);
                let is_in_big =
                    |answer: &&Answer| answer.path.parent() == Some(&big) && answer.what.is_ok();
                let come: Vec<_> = answers.iter().filter(is_in_big).collect();
                assert!(
                    come.len() < 1000 && come.is_empty() == (number == 1),
                    "{what}: {} entries",
                    come.len()
                );
                assert!(come.last().is_none_or(|last| last.what == Ok(true)), "{what}");
                // All that is below an entry that comes.
                let is_below = |answer: &&Answer| {
                    come.iter().any(|above| answer.path.starts_with(&above.path))
                };
                let [told, whole] = [&answers, &all].map(|all| all.iter().filter(is_below).count());
                assert_eq!(told, whole, "{what}");
            }
        }
    });
}

#[test]
fn entries_of_unknown_type_are_opened_and_followed_as_others() {
    const TEST: &str = "walks::walk::entries_of_unknown_type_are_opened_and_followed_as_others";
    trapped(TEST, &[GETDENTS64], |tree| {
        fs::create_dir(tree.join("root")).unwrap(); // links of a random tree lead above it
        tree::random(&tree.join("root"), 6);
        let says = [Says::Nothing, Says::Follow, Says::Any(1), Says::Any(2)];
        for way in says.map(|says| PreOrder { says, max_depth: 6, ..SORTED }) {
            let expected = way.by_std(tree);
            trap::count(GETDENTS64);
            trap::hide_types();
            let answers = way.read(tree);
            trap::count(GETDENTS64);
            assert_eq!(answers, expected, "{way:?}");
        }
    });
}

/// Where the directories list no types, too: what may be a directory is opened, and nothing is asked.
#[test]
fn gives_what_std_gives_with_types_and_without_and_asks_for_none() {
    const TEST: &str = "walks::walk::gives_what_std_gives_with_types_and_without_and_asks_for_none";
    process::run(TEST, 120, || {
        for name in ["ext4", "ext4 ^filetype"] {
            let outcome = FileSystem::named(name).mounted(
                |at, _| tree::random(at, 7),
                |mounted| {
                    let way = PreOrder { max_open: 1000, ..SORTED };
                    let expected = way.by_std(&mounted.at);
                    let Ok(_trap) = trap::set(&[NEWFSTATAT, STATX]) else { return };
                    for call in [NEWFSTATAT, STATX] {
                        trap::count(call);
                        let answers = way.read(&mounted.at);
                        assert_eq!(trap::made(), 0, "{name}: call {call}");
                        assert_eq!(answers, expected, "{name}");
                    }
                },
            );
            machine::skip_unless(&format!("tree: {name}"), outcome);
        }
    });
}
