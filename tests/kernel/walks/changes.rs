//! Walks of trees in which the test mounts and unmounts between two visits. Each result is known.
//! `tests/it` has the changes that need no root: `budgets::attacks`, `walk_dirs_bounds`, `walk::lost`.

use crate::mounted::run_isolated;
use crate::report::{Report, SORTED, comb, level};
use crate::support::prelude::*;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, unmount};

const DEPTH: usize = 8;
/// One of the levels that are closed while the walk is at the deepest one.
const CLOSED: usize = 3;

/// A change that is made when the walk has yielded the directory `at`.
struct Change {
    what: &'static str,
    at: usize,
    before: fn(tree: &Path),
    make: fn(tree: &Path),
    /// Whether the level is lost, with an error.
    is_lost: bool,
    /// Whether the level is lost under `same_mount`, and perhaps otherwise.
    is_in_doubt: bool,
    /// A directory that is not entered under `same_mount`.
    hides: Option<PathBuf>,
}

const fn change(what: &'static str, make: fn(&Path)) -> Change {
    Change {
        what,
        at: DEPTH,
        before: |_| (),
        make,
        is_lost: false,
        is_in_doubt: false,
        hides: None,
    }
}

fn point(tree: &Path) -> PathBuf {
    tree.join(level(CLOSED))
}

fn pending() -> PathBuf {
    level(CLOSED).join("z")
}

fn mount_tmpfs(at: &Path, file: &str) {
    mount("none", at, "tmpfs", MountFlags::empty(), c"").unwrap();
    make(at, &[file]);
}

fn detach(at: &Path) {
    unmount(at, UnmountFlags::DETACH).unwrap();
}

/// Mounts a level on itself. `..` then leads to the root of the new mount, which has the same device,
/// inode number and birth time.
fn mount_on_itself(tree: &Path) {
    mount_bind(point(tree), point(tree)).unwrap();
}

/// Covers a level and its contents with a copy.
fn mount_comb(tree: &Path) {
    mount_tmpfs(&point(tree), "");
    comb(&point(tree), DEPTH - CLOSED);
}

#[rustfmt::skip]
fn changes() -> [Change; 9] {
    let hides = Some(pending());
    [
        Change { hides: hides.clone(), ..change("a tmpfs is mounted on a pending directory", |tree| mount_tmpfs(&tree.join(pending()), "file")) },
        Change { hides, ..change("a pending directory is mounted on itself", |tree| mount_bind(tree.join(pending()), tree.join(pending())).unwrap()) },
        Change { is_lost: true, ..change("a tmpfs is mounted on a closed level", |tree| mount_tmpfs(&point(tree), "z/OUTSIDE")) },
        change("a tmpfs is mounted on the root", |tree| mount_tmpfs(tree, "z/OUTSIDE")),
        // Under `same_mount`, the walk has passed the level by then.
        Change { before: mount_comb, hides: Some(level(CLOSED)), ..change("the mount on a closed level is unmounted", |tree| detach(&point(tree))) },
        // The mount covers the same tree.
        Change { before: mount_comb, at: CLOSED - 1, ..change("a mount is unmounted after the entry of its directory", |tree| detach(&point(tree))) },
        Change { before: |tree| mount_tmpfs(&tree.join(pending()), "file"), ..change("the mount on a pending directory is unmounted", |tree| detach(&tree.join(pending()))) },
        Change { is_in_doubt: true, ..change("a closed level is mounted on itself", mount_on_itself) },
        // A mount in the level does not cover the directory there.
        Change { is_in_doubt: true, before: |tree| mount_tmpfs(&tree.join(pending()), "file"), ..change("a closed level with a mount is mounted on itself", mount_on_itself) },
    ]
}

#[test]
fn mount_changes_lose_only_covered_directories() {
    run_isolated("walk: mounted and unmounted midway", |scratch| {
        for (number, (change, bits)) in
            changes().iter().flat_map(|change| (0..4).map(move |bits| (change, bits))).enumerate()
        {
            let (second_visits, is_on_one_mount) = (bits & 1 != 0, bits & 2 != 0);
            let options = TestOptions { second_visits, is_on_one_mount, ..SORTED };
            let tree = scratch.join(number.to_string());
            comb(&tree, DEPTH);
            (change.before)(&tree);
            let (lost, hidden) = (level(CLOSED), change.hides.iter().filter(|_| is_on_one_mount));
            let hidden: Vec<_> = hidden.cloned().collect();
            let all = Report::expected(&tree).unwrap();
            let expected = |is_lost: bool| {
                let missed = hidden.iter().cloned().chain(is_lost.then(pending));
                let all = all.clone().without(&missed.collect::<Vec<_>>());
                all.with_errors(is_lost.then_some((lost.clone(), ENOENT)))
            };
            let mut run = options.begin(&tree);
            // The walk does not visit a hidden directory.
            let is_visited = expected(false).first_visits.contains(&level(change.at));
            run.until(if is_visited { level(change.at) } else { "z".into() });
            (change.make)(&tree);
            let report = run.finish();
            let what = format!("{}, {options:?}", change.what);
            let is_lost = match change.is_in_doubt {
                true if !is_on_one_mount => !report.errors.is_empty(),
                is_in_doubt => change.is_lost || is_in_doubt,
            };
            let expected = expected(is_lost);
            assert_eq!(report.clone().sorted(), expected, "{what}");
            let mut again = report.second_visits;
            again.sort_unstable();
            let mut firsts = expected.first_visits;
            firsts.retain(|dir| second_visits && !(is_lost && *dir == lost));
            assert_eq!(again, firsts, "{what}");
        }
    });
}
