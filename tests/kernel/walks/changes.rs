//! Walks of trees that the test changes between two visits. Each result is known.
//! `tests/it/walk_dirs_bounds.rs` has the changes that need no root.

use crate::mounted::run_isolated;
use crate::report::{Report, SORTED, comb, level};
use crate::support::options::TestOptions;
use crate::support::tree::make;
use libc::{ENOENT, ENOTDIR, c_int};
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, unmount};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

const DEPTH: usize = 8;
/// One of the levels that are closed while the walk is at the deepest one.
const CLOSED: usize = 3;

/// Options with a known order of directories.
const OPTIONS: [TestOptions; 4] = [
    SORTED,
    TestOptions { second_visits: true, ..SORTED },
    TestOptions { is_on_one_mount: true, ..SORTED },
    TestOptions { second_visits: true, is_on_one_mount: true, ..SORTED },
];

/// A change that is made when the walk has yielded the directory `at`.
struct Change {
    what: &'static str,
    at: PathBuf,
    before: fn(tree: &Path),
    make: fn(tree: &Path, beside: &Path),
    /// The errors that the change causes.
    errors: Vec<(PathBuf, c_int)>,
    /// The directories that are not entered after the change.
    missed: Vec<PathBuf>,
    missed_on_one_mount: Vec<PathBuf>,
}

/// Returns a change that loses nothing.
fn change(what: &'static str, make: fn(&Path, &Path)) -> Change {
    let (errors, missed, missed_on_one_mount) = (vec![], vec![], vec![]);
    Change { what, at: level(DEPTH), before: |_| (), make, errors, missed, missed_on_one_mount }
}

impl Change {
    fn at(self, at: PathBuf) -> Self {
        Self { at, ..self }
    }

    /// Sets what is done before the walk.
    fn after(self, before: fn(&Path)) -> Self {
        Self { before, ..self }
    }

    /// Adds a directory that is not entered under `same_mount`.
    fn hides(self, missed: PathBuf) -> Self {
        Self { missed_on_one_mount: vec![missed], ..self }
    }

    /// Adds levels that the walk cannot reopen. Each is one error, and its pending directories are
    /// lost.
    fn loses(self, depths: impl IntoIterator<Item = usize>, errno: c_int) -> Self {
        let lost: Vec<_> = depths.into_iter().map(level).collect();
        let missed = lost.iter().map(|lost| lost.join("z")).collect();
        Self { errors: lost.into_iter().map(|lost| (lost, errno)).collect(), missed, ..self }
    }

    /// Adds directories that cannot be entered, with one error each.
    fn refuses(self, directories: impl IntoIterator<Item = PathBuf>, errno: c_int) -> Self {
        let missed: Vec<_> = directories.into_iter().collect();
        Self { errors: missed.iter().map(|dir| (dir.clone(), errno)).collect(), missed, ..self }
    }
}

fn changes() -> Vec<Change> {
    let zs = |depths: std::ops::RangeInclusive<usize>| depths.map(|depth| level(depth).join("z"));
    vec![
        change("a closed level and its parent are moved", |tree, beside| {
            rename(tree.join(level(CLOSED)), beside.join("moved"));
            rename(tree.join(level(CLOSED - 1)), beside.join("moved too"));
        })
        .loses([CLOSED - 1], ENOENT),
        change("everything is moved level by level", |tree, beside| {
            for depth in (2..=DEPTH).rev() {
                rename(tree.join(level(depth)), beside.join(depth.to_string()));
            }
        })
        // `..` leads to none of the levels now, and a name only to the first. The last two are
        // open.
        .loses(2..DEPTH - 1, ENOENT),
        change("the contents of a closed level are moved out", |tree, beside| {
            rename(tree.join(level(CLOSED + 1)), beside.join("moved"));
        }),
        change("a closed level is renamed, and its contents are moved out", |tree, beside| {
            rename(tree.join(level(CLOSED + 1)), beside.join("moved"));
            rename(tree.join(level(CLOSED)), tree.join(level(CLOSED - 1)).join("renamed"));
        })
        .loses([CLOSED], ENOENT),
        change("a link takes the place of a closed level", |tree, beside| {
            rename(tree.join(level(CLOSED + 1)), beside.join("moved"));
            rename(tree.join(level(CLOSED)), tree.join(level(CLOSED - 1)).join("renamed"));
            symlink(beside.join("outside"), tree.join(level(CLOSED))).unwrap();
        })
        .loses([CLOSED], ENOTDIR),
        change("the contents of a closed level are moved into a twin", |tree, beside| {
            rename(beside.join("outside/d"), beside.join("d"));
            rename(tree.join(level(CLOSED + 1)), beside.join("outside/d"));
        }),
        change("everything is removed except the contents of the first level", |tree, _| {
            fs::remove_dir_all(tree.join("d")).unwrap();
        })
        .refuses(zs(1..=DEPTH), ENOENT),
        change("everything is removed", |tree, _| fs::remove_dir_all(tree).unwrap())
            .refuses(zs(0..=DEPTH), ENOENT),
        change("links take the place of all pending directories", |tree, beside| {
            for depth in 0..=DEPTH {
                rename(tree.join(level(depth)).join("z"), beside.join(depth.to_string()));
                symlink(beside.join("outside"), tree.join(level(depth)).join("z")).unwrap();
            }
        })
        .refuses(zs(0..=DEPTH), ENOTDIR),
    ]
}

fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    fs::rename(from, to).unwrap();
}

/// A walk loses only the directories that are moved, removed or replaced, and yields nothing from
/// outside.
#[test]
fn moved_directories_lose_only_themselves() {
    run_isolated("walk: changes between two steps", |scratch| check_all(&changes(), scratch));
}

fn check_all(changes: &[Change], scratch: &Path) {
    let cases = changes.iter().flat_map(|change| OPTIONS.map(|options| (change, options)));
    for (number, (change, options)) in cases.enumerate() {
        let [tree, beside] =
            ["tree", "beside"].map(|name| scratch.join(number.to_string()).join(name));
        comb(&tree, DEPTH);
        // The directories have the names that the walk looks for.
        make(&beside, &["outside/d/OUTSIDE", "outside/z/OUTSIDE", "outside/OUTSIDE"]);
        (change.before)(&tree);
        let hidden = if options.is_on_one_mount { &change.missed_on_one_mount[..] } else { &[] };
        let all = Report::expected(&tree).unwrap().without(&change.missed).without(hidden);
        let expected = all.with_errors(change.errors.clone());
        let mut run = options.begin(&tree);
        // The walk does not visit a hidden directory.
        run.until(if expected.first_visits.contains(&change.at) {
            &change.at
        } else {
            Path::new("z")
        });
        (change.make)(&tree, &beside);
        let report = run.finish();

        let what = format!("{}, {options:?}", change.what);
        assert_eq!(report.clone().sorted(), expected, "{what}");
        if options.second_visits {
            let is_lost = |dir: &&PathBuf| !change.errors.iter().any(|(path, _)| path == *dir);
            let mut left = report.second_visits;
            left.sort_unstable();
            assert_eq!(
                left.iter().collect::<Vec<_>>(),
                expected.first_visits.iter().filter(is_lost).collect::<Vec<_>>(),
                "{what}"
            );
        }
    }
}

fn mount_tmpfs(at: &Path) {
    mount("none", at, "tmpfs", MountFlags::empty(), c"").unwrap();
}

fn detach(at: &Path) {
    unmount(at, UnmountFlags::DETACH).unwrap();
}

/// Covers a level and its contents with a copy.
fn mount_comb(tree: &Path) {
    let point = tree.join(level(CLOSED));
    mount_tmpfs(&point);
    comb(&point, DEPTH - CLOSED);
}

fn mount_file(point: &Path) {
    mount_tmpfs(point);
    make(point, &["file"]);
}

/// Returns changes that mount and unmount.
fn mount_changes() -> [Change; 7] {
    let z = || level(CLOSED).join("z");
    [
        change("a tmpfs is mounted on a pending directory", |tree, _| {
            mount_file(&tree.join(level(CLOSED)).join("z"));
        })
        .hides(z()),
        change("a pending directory is mounted on itself", |tree, _| {
            let point = tree.join(level(CLOSED)).join("z");
            mount_bind(&point, &point).unwrap();
        })
        .hides(z()),
        change("a tmpfs is mounted on a closed level", |tree, _| {
            let point = tree.join(level(CLOSED));
            mount_tmpfs(&point);
            make(&point, &["z/OUTSIDE"]);
        })
        .loses([CLOSED], ENOENT),
        change("a tmpfs is mounted on the root", |tree, _| {
            mount_tmpfs(tree);
            make(tree, &["z/OUTSIDE"]);
        }),
        // Under `same_mount`, the walk has passed the level by then.
        change("the mount on a closed level is unmounted", |tree, _| {
            detach(&tree.join(level(CLOSED)));
        })
        .after(mount_comb)
        .hides(level(CLOSED)),
        // The mount covers the same tree.
        change("a mount is unmounted after the entry of its directory", |tree, _| {
            detach(&tree.join(level(CLOSED)));
        })
        .after(mount_comb)
        .at(level(CLOSED - 1)),
        change("the mount on a pending directory is unmounted", |tree, _| {
            detach(&tree.join(level(CLOSED)).join("z"));
        })
        .after(|tree| mount_file(&tree.join(level(CLOSED)).join("z"))),
    ]
}

#[test]
fn mount_changes_lose_only_covered_directories() {
    run_isolated("walk: mounted and unmounted midway", |scratch| {
        check_all(&mount_changes(), scratch);
    });
}
