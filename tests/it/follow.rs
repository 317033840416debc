//! Symbolic links that the caller follows with `Entry::follow` and `Dir::follow_name`, and the
//! return from their targets.

use crate::support::machine::{Watchdog, runs_long};
use crate::support::options::{PLAIN, POST, TestOptions};
use crate::support::process;
use crate::support::requests::{About, Requests, Visitor, collect_visits};
use crate::support::tree::{self, Random, Tree};
use crate::support::visits::{
    Visit, What, assert_nothing_is_lost_silently, directories, errors, expected_visits,
    in_one_order,
};
use crate::walk_dirs_bounds::leave_room;
use lendir::WalkDirs;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

const OPTIONS: [TestOptions; 7] = [
    PLAIN,
    TestOptions { max_open: 4, ..PLAIN },
    POST,
    TestOptions { is_sorted: true, ..PLAIN },
    TestOptions { is_sorted: true, max_open: 4, ..POST },
    TestOptions { max_open: 4, ..POST },
    TestOptions { max_depth: 3, ..POST },
];

/// Returns the requests of a caller that follows all links.
fn requests(options: TestOptions) -> Requests {
    options.requests().about(About::Follow)
}

fn follow_all(options: TestOptions, root: &Path) -> Vec<Visit> {
    collect_visits(&mut options.build().open(root).unwrap(), |_| requests(options))
}

fn follow_with_std(options: TestOptions, root: &Path) -> Vec<Visit> {
    expected_visits(root, options.second_visits, |_| requests(options))
}

/// The name of the tree's root.
const ROOT: &str = "root";

/// Makes directories and links. The links lead to directories, to files, to nothing, to themselves,
/// to other links, and to directories above the root, from which a link leads back.
fn make(above: &Path, seed: u64) {
    let at = &above.join(ROOT);
    tree::make(above, &["beside/below/", "root/"]);
    symlink("../root/d0", above.join("beside/back")).unwrap();
    let mut random = Random(seed);
    let mut dirs = vec![at.clone()];
    for number in 0..9 {
        let dir = dirs[random.below(dirs.len())].join(format!("d{number}"));
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("file"), "").unwrap();
        dirs.push(dir);
    }
    let mut links: Vec<PathBuf> = Vec::new();
    for number in 0..6 {
        let dir = &dirs[random.below(dirs.len())];
        let link = dir.join(format!("l{number}"));
        let to = dirs[random.below(dirs.len())].clone();
        let target = match random.below(12) {
            0..4 => to,
            4..7 => {
                let up: PathBuf = dir.strip_prefix(at).unwrap().iter().map(|_| "..").collect();
                Path::new(".").join(up).join(to.strip_prefix(at).unwrap())
            }
            7 if !links.is_empty() => links[random.below(links.len())].clone(),
            8 => dirs[1].join(["file", "nothing", "file/below"][random.below(3)]),
            9 => link.clone(),
            11 => [above.to_owned(), above.join("beside")][random.below(2)].clone(),
            _ => PathBuf::from([".", ".."][random.below(2)]),
        };
        symlink(target, &link).unwrap();
        links.push(link);
    }
}

fn seeds() -> u64 {
    if runs_long() { 1000 } else { 24 }
}

/// Makes a tree with [`make`]. Returns the tree and its root.
pub fn made(seed: u64) -> (Tree, PathBuf) {
    let tree = Tree::new(|at| make(at, seed));
    let root = tree.path().join(ROOT);
    (tree, root)
}

/// A walk that follows all links yields what `std` says, on one thread and on several.
#[test]
fn followed_links_agree_with_std() {
    let _watchdog = Watchdog::new(300);
    let (mut loops, mut deepest) = (0, 0);
    for seed in 0..seeds() {
        let (_tree, root) = made(seed);
        for options in OPTIONS {
            let expected = follow_with_std(options, &root);
            assert_eq!(follow_all(options, &root), expected, "seed {seed}, {options:?}");
            for threads in [2, 8] {
                let walk = options.build().open(&root).unwrap();
                let parts = walk
                    .run_parallel(threads, |worker| collect_visits(worker, |_| requests(options)));
                let visits = in_one_order(parts.into_iter().flatten());
                let expected = in_one_order(expected.clone());
                assert_eq!(visits, expected, "seed {seed}, {options:?}, {threads} threads");
            }
            let is_loop =
                |visit: &&Visit| visit.what == What::Error(libc::ELOOP) && visit.path.exists();
            loops += expected.iter().filter(is_loop).count();
            deepest = expected.iter().map(|visit| visit.depth).max().max(Some(deepest)).unwrap();
        }
    }
    assert!(loops > 50 && deepest > 5, "{loops} loops, {deepest} levels");
}

/// Under `same_mount`, a link to another mount is not followed, but a link that stays on the mount
/// is.
#[test]
fn same_mount_skips_links_to_other_mounts() {
    let tree = Tree::of(&["here/"]);
    for (name, target) in [("to_here", "here"), ("to_proc", "/proc/self")] {
        symlink(target, tree.path().join(name)).unwrap();
    }
    for (is_on_one_mount, expected) in
        [(false, &["", "here", "to_here", "to_proc"][..]), (true, &["", "here", "to_here"])]
    {
        for second_visits in [false, true] {
            let options = TestOptions { is_on_one_mount, second_visits, max_depth: 2, ..PLAIN };
            let visits = follow_all(options, tree.path());
            let expected: Vec<_> = expected.iter().map(|name| tree.path().join(name)).collect();
            assert_eq!(directories(&visits), expected, "{options:?}");
            assert!(errors(&visits).is_empty(), "{options:?}: {visits:?}");
        }
    }
}

#[test]
fn loop_names_a_root_without_path() {
    let tree = Tree::of(&["a/"]);
    symlink("..", tree.path().join("a/up")).unwrap();
    let mut walk = WalkDirs::options().from_fd(lendir::open(tree.path()).unwrap(), "");
    let mut errors = Vec::new();
    while let Some(mut dir) = walk.next_ok(|error| errors.push(error.to_string())) {
        while let Some(entry) = dir.next().unwrap() {
            entry.follow();
        }
    }
    assert_eq!(errors, ["a/up: leads back to ."]);
}

/// Makes levels `0`, `1`, and so on, each with a directory `a`, a directory `z` and a link `m` to
/// the next level.
pub fn nest(at: &Path, levels: usize) {
    for level in 0..levels {
        tree::make(at, &[format!("{level}/a/"), format!("{level}/z/")]);
        if level > 0 {
            symlink(at.join(level.to_string()), at.join(format!("{}/m", level - 1))).unwrap();
        }
    }
}

/// `..` from the target of a link does not lead to the parent of the link, so the levels above the
/// link are reopened by name.
#[test]
fn walk_reopens_levels_above_links() {
    const LEVELS: usize = 19; // the model opens paths, and the kernel limits the links in a path
    let parts = Tree::new(|at| nest(at, LEVELS));
    let root = parts.path().join("0");
    for (options, max_open) in OPTIONS
        .into_iter()
        .flat_map(|options| [4, 5, 6, 7, 9, 12, 32].map(|max_open| (options, max_open)))
    {
        let options = TestOptions { max_open, ..options };
        assert_eq!(follow_all(options, &root), follow_with_std(options, &root), "{options:?}");
    }
    let mut lost = 0;
    // Once the walk is below all links, one of them leads elsewhere.
    let is_at = |at: &Path, level: usize| at == root.join("m/".repeat(level).trim_end_matches('/'));
    for (options, max_open) in
        OPTIONS[..6].iter().flat_map(|options| [4, 6, 9, 12].map(|max_open| (options, max_open)))
    {
        let options = TestOptions { max_open, is_sorted: true, ..*options };
        let expected = follow_with_std(options, &root);
        for changed in [1, 5, 10, 17] {
            let link = parts.path().join(format!("{changed}/m"));
            let target = fs::read_link(&link).unwrap();
            let change = |target: &Path| {
                fs::remove_file(&link).unwrap();
                symlink(target, &link).unwrap();
            };
            tree::make(parts.path(), &["twin/a/"]);
            let (mut walk, mut visitor) =
                (options.build().open(&root).unwrap(), Visitor::default());
            let requests = |at: &Path| {
                if is_at(at, LEVELS - 1) {
                    change(&parts.path().join("twin"));
                }
                self::requests(options)
            };
            while visitor.take(&mut walk, |_| (), requests) {}
            change(&target);
            fs::remove_dir_all(parts.path().join("twin")).unwrap();
            let what = format!("{options:?}, changed {changed}");
            assert_nothing_is_lost_silently(&visitor.visits, &expected, &what);
            let errors = errors(&visitor.visits);
            assert!(errors.iter().all(|(_, errno)| *errno == libc::ENOENT), "{what}: {errors:?}");
            assert!(errors.len() <= LEVELS - changed, "{what}: {errors:?}");
            lost += errors.len();
        }
    }
    assert!(lost > 50, "{lost} levels lost");
}

/// A walk that follows links needs five descriptors: one for the first level, one for the current
/// level, one for the target, and two for the ancestors. With second visits, the root's parent
/// takes another one.
#[test]
fn process_with_few_descriptors_follows_links() {
    process::run("follow::process_with_few_descriptors_follows_links", 60, || {
        for seed in 0..8 {
            let (_tree, root) = made(seed);
            for options in OPTIONS {
                let expected = follow_with_std(options, &root);
                let others = leave_room(5 + usize::from(options.second_visits));
                let visits = follow_all(options, &root);
                drop(others);
                assert_eq!(visits, expected, "seed {seed}, {options:?}");
            }
        }
    });
}
