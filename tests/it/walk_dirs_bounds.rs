//! Deep trees, and the descriptors and the stack that their walks take.

use crate::support::prelude::*;
use crate::support::requests::walk;
use crate::support::strace::most_open;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, fcntl_getfl, mkdirat, mknodat, statat, symlinkat,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

/// Returns the number of directories that `walk` yields, and a hash of their names and depths, in
/// order. All paths would take too much memory.
fn trace(walk: &mut WalkDirs, mut look: impl FnMut(&Dir<'_>)) -> (usize, u64) {
    let mut listing = Listing::new();
    let (mut count, mut hasher) = (0, DefaultHasher::new());
    while let Some(mut dir) = walk.next().unwrap() {
        (dir.name(), dir.depth(), dir.is_second_visit(), dir.path().as_os_str().len())
            .hash(&mut hasher);
        assert_eq!(dir.is_second_visit(), dir.parent_and_name().is_some());
        look(&dir);
        dir.read_into(&mut listing).unwrap();
        count += 1;
    }
    (count, hasher.finish())
}

const COMB_DEPTH: usize = 6;

/// Makes two combs with a chain of this length between them, so more `..` lead from one comb to the
/// other than one path can hold.
fn combs_far_apart(at: &Path, between: usize) {
    let levels = [(tree::COMB, COMB_DEPTH), (tree::CHAIN, between), (tree::COMB, COMB_DEPTH)];
    tree::nest(at, levels.into_iter().flat_map(|(names, count)| iter::repeat_n(names, count)));
}

#[test]
fn deep_trees_take_little_stack() {
    let depth = if runs_long() { 100_000 } else { 2500 };
    let test = |make: fn(&Path, usize), count: usize| {
        let tree = Tree::new(|at| make(at, depth));
        for second_visits in [false, true] {
            let expected = trace(&mut walk(tree.path(), 400, second_visits), |_| ());
            assert_eq!(expected.0, if second_visits { 2 * count } else { count });
            let [first, moved] = ["m", "moved"].map(|name| tree.path().join(name));
            for max_open in [1, 32] {
                let found = trace(&mut walk(tree.path(), max_open, second_visits), |dir| {
                    // From now on, only `..` leads to the parents.
                    if dir.name() == b"m" && dir.depth() == depth && !dir.is_second_visit() {
                        fs::rename(&first, &moved).unwrap();
                    }
                });
                assert_eq!(found, expected, "{max_open} open");
                fs::rename(&moved, &first).unwrap();
            }
        }
    };
    thread::scope(|scope| {
        let far_apart = (combs_far_apart as fn(&Path, usize), depth + 2 * 3 * COMB_DEPTH);
        for (make, below) in
            [(tree::chain as fn(&Path, usize), depth), (tree::comb, 3 * depth), far_apart]
        {
            let thread = thread::Builder::new().stack_size(64 * 1024);
            thread.spawn_scoped(scope, move || test(make, below + 1)).unwrap();
        }
    });
}

/// A level without pending directories is closed once the level below it is open. Links that are not
/// followed, and directories that are not named, are not pending.
#[test]
fn level_without_pending_directories_is_closed() {
    process::run("walk_dirs_bounds::level_without_pending_directories_is_closed", || {
        let before = open_descriptors();
        let chain = Tree::new(|at| {
            tree::nest_with(at, 300, |dir, _| {
                mkdirat(dir, "m", Mode::RWXU).unwrap();
                mkdirat(dir, "skipped", Mode::RWXU).unwrap();
                symlinkat(".", dir, "zz").unwrap();
            });
        });
        let (mut walk, mut listing) = (walk(chain.path(), 32, false), Listing::new());
        let mut count = 0;
        while let Some(mut dir) = walk.next().unwrap() {
            let is_right = open_descriptors() <= before + 2;
            assert!(is_right, "{dir:?} is yielded with more than two descriptors open");
            dir.read_into(&mut listing).unwrap();
            if dir.depth() < 300 {
                dir.skip_subdirs();
                dir.enter_name("m").unwrap();
            }
            count += 1;
        }
        assert_eq!(count, 301);
    });
}

/// Moves the directory `from` into `aside`, under a unique name.
fn move_aside(from: &Path, aside: &Path) -> io::Result<()> {
    fs::rename(from, aside.join(from.to_str().unwrap().replace('/', "_")))
}

/// Inside `next`, a walk reopens closed levels by `..` or by name, or loses them. It has no more
/// descriptors open than `max_open` allows even then.
#[test]
fn system_calls_respect_max_open() {
    // To reach a level above a link by names, the walk keeps some levels open.
    const WITH_ROOM: usize = 9;
    let cases = || {
        [false, true]
            .into_iter()
            .flat_map(|second_visits| (0..5).map(move |change| (second_visits, change)))
    };
    let most = most_open("walk_dirs_bounds::system_calls_respect_max_open", || {
        for (second_visits, change) in cases() {
            let aside = Tree::new(|_| ());
            let tree = Tree::new(|at| {
                // In one case, more `..` lead to the parent than one path can hold. With second
                // visits, each step ends at the next level.
                combs_far_apart(
                    at,
                    if change == 0 && !second_visits { 4096 / "../".len() } else { 0 },
                );
                tree::comb(&at.join("z"), COMB_DEPTH);
                symlink(aside.path(), at.join("m/m/m/link")).unwrap();
                tree::linked_levels(at, 30);
            });
            let path = |levels| tree.path().join("m/".repeat(levels));
            let _counted = Counted::begin();
            let nested = tree.path().join("0");
            let (root, max_open) =
                if change == 4 { (&*nested, WITH_ROOM) } else { (tree.path(), 4) };
            let options = WalkDirs::options().max_open(max_open).second_visits(second_visits);
            let mut walk = options.follow_links(change >= 3).open(root).unwrap();
            collect_visits(&mut walk, |at| {
                match change {
                    1 if at.ends_with("m/z") => {
                        move_aside(at.parent().unwrap(), aside.path()).unwrap();
                    }
                    // The rest of the level right below the root is lost.
                    2 if at == path(2 * COMB_DEPTH) => {
                        move_aside(&path(2), aside.path()).unwrap();
                        move_aside(&path(1), aside.path()).unwrap();
                    }
                    _ => (),
                }
                let about = if change >= 3 { About::Follow } else { About::Nothing };
                Requests::sorted(Order::Bytes).about(about)
            });
        }
    });
    for ((second_visits, change), most) in cases().zip(most.into_iter().flatten()) {
        let parents = usize::from(second_visits); // the root's
        let asked = 1; // a duplicate, to find out whether few descriptors are left
        let stated = [4, 4, 4, 4 + 2, WITH_ROOM + asked][change] + parents;
        assert!(most <= stated, "change {change}, second visits {second_visits}: {most} open");
    }
}

/// A walk reopens all levels, even if the test changes the current directory or its parent. `..`
/// leads elsewhere or is refused then, or a level cannot be read any more.
#[test]
fn walk_reopens_parents_of_changed_directories() {
    type Change = fn(at: &Path, aside: &Path) -> io::Result<()>;
    fn allow(at: &Path, mode: u32) -> io::Result<()> {
        fs::set_permissions(at, Permissions::from_mode(mode))
    }
    // The ends of the paths where the change is made.
    let changes: [(&[&str], Change); 6] = [
        (&["a", "z"], |at, _| fs::remove_dir(at)),
        (&["a", "z"], move_aside),
        (&["a", "z"], |at, _| allow(at, 0o000)),
        (&["m/z"], |at, aside| move_aside(at.parent().unwrap(), aside)),
        (&["m/z"], |at, aside| {
            allow(at, 0o000).and_then(|()| move_aside(at.parent().unwrap(), aside))
        }),
        (&[""], |at, _| allow(at, 0o300)),
    ];
    let ways = [false, true]
        .into_iter()
        .flat_map(|second_visits| [1, 32, 1000].map(|max_open| (second_visits, max_open)));
    as_nobody(|| {
        for (second_visits, max_open) in ways {
            for (number, (ends, change)) in changes.into_iter().enumerate() {
                let (tree, aside) = (Tree::new(|at| tree::comb(at, 40)), Tree::new(|_| ()));
                let expected =
                    expected_visits(tree.path(), second_visits, |_| Requests::sorted(Order::Bytes));
                let visits =
                    collect_visits(&mut walk(tree.path(), max_open, second_visits), |at| {
                        if ends.iter().any(|end| at.ends_with(end)) {
                            change(at, aside.path()).unwrap();
                        }
                        Requests::sorted(Order::Bytes)
                    });
                let what =
                    format!("change {number}, second visits {second_visits}, {max_open} open");
                assert_eq!(visits, expected, "{what}");
            }
        }
    });
}

/// `parent_and_name` is `None` below a lost level, and for a root that came as a descriptor. A name
/// alone would act in the current directory, and there `remove_dir` is an error. A level that was
/// reopened by name is readable.
#[test]
fn parent_and_name_leads_to_the_directory() {
    const DEPTH: usize = 10;
    for (is_by_path, max_open) in [(true, 4), (true, 7), (false, 4)] {
        let (tree, aside) = (Tree::new(|at| tree::comb(at, DEPTH)), Tree::new(|_| ()));
        let path = |levels| tree.path().join("m/".repeat(levels).trim_end_matches('/'));
        let options = WalkDirs::options().second_visits(true).max_open(max_open);
        let mut walk = if is_by_path {
            options.open(tree.path()).unwrap()
        } else {
            options.from_fd(lendir::open(tree.path()).unwrap(), tree.path())
        };
        let (mut lost, mut nameless, mut named) = (0, Vec::new(), 0);
        while let Some(mut dir) = walk.next_or_report(|_| lost += 1) {
            if dir.path() == path(DEPTH) && !dir.is_second_visit() {
                fs::rename(path(3), aside.path().join("below")).unwrap();
                fs::rename(path(2), aside.path().join("moved")).unwrap();
            }
            assert!(!fcntl_getfl(dir.fd()).unwrap().contains(OFlags::PATH), "{dir:?}");
            if let Some((parent, name)) = dir.parent_and_name() {
                let at_name = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).unwrap();
                assert_eq!(at_name.st_ino, dir.metadata().unwrap().ino(), "{dir:?}");
                named += 1;
                continue;
            }
            let error = dir.remove_dir().unwrap_err();
            let is_lost = dir.is_second_visit() && dir.depth() > 0;
            let kind = if is_lost { io::ErrorKind::NotFound } else { io::ErrorKind::InvalidInput };
            assert_eq!((error.path(), error.kind()), (Some(dir.path()), kind), "{dir:?}");
            if dir.is_second_visit() {
                nameless.push(dir.path().to_owned());
            } else {
                dir.read_into(&mut Listing::new()).unwrap();
            }
        }
        let expected = if is_by_path { vec![path(3)] } else { vec![path(3), path(0)] };
        assert_eq!((lost, nameless), (1, expected), "{max_open} open");
        assert!(named > 2 * DEPTH, "{named}");
    }
}

/// Makes a chain with a file on either side of each directory, so a walk returns to each level.
fn chain_with_files(at: &Path, levels: usize) {
    tree::nest_with(at, levels, |dir, _| {
        mknodat(dir, "a", FileType::RegularFile, Mode::RUSR, 0).unwrap();
        mkdirat(dir, "m", Mode::RWXU).unwrap();
        mknodat(dir, "z", FileType::RegularFile, Mode::RUSR, 0).unwrap();
    });
}

/// Lets this process have so many descriptors, and returns what `work` returns.
fn with_descriptors<T>(count: u64, work: impl FnOnce() -> T) -> T {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(count), ..limit }).unwrap();
    let result = work();
    setrlimit(Resource::Nofile, limit).unwrap();
    result
}

/// A program opens each file, whatever its `ulimit -n`. Even with four descriptors, the walk
/// finishes.
#[test]
fn walk_leaves_descriptors_to_its_program() {
    const LEVELS: usize = 45;
    process::run("walk_dirs_bounds::walk_leaves_descriptors_to_its_program", || {
        let tree = Tree::new(|at| chain_with_files(at, LEVELS));
        let used = open_descriptors() as u64;
        for count in (used + 4..used + 17).chain([32, 34, 35, 36, 48, 64]) {
            let (mut entries, mut opened) = (0, 0);
            let mut open = |entry: &Entry<'_>| {
                entries += 1;
                opened += usize::from(entry.open_file().is_ok());
            };
            with_descriptors(count, || {
                let mut walk = lendir::walk(tree.path()).unwrap();
                while let Some(entry) = walk.next().unwrap() {
                    open(&entry);
                }
                let options = WalkDirs::options().second_visits(count > used + 4);
                let mut walk = options.open(tree.path()).unwrap();
                while let Some(mut dir) = walk.next().unwrap() {
                    while let Some(entry) = dir.next().unwrap() {
                        open(&entry);
                    }
                }
            });
            assert_eq!(entries, 2 * 3 * LEVELS, "{count} descriptors");
            // Under the lowest limits, a level can take the last one before another is refused.
            let missing = 2 * 2 * LEVELS - opened;
            assert!(missing <= if count < 20 { 4 } else { 0 }, "{count}: {missing} are missing");
        }
    });
}

/// Two walks side by side, and threads, share the descriptors with their program.
#[test]
fn walks_and_threads_share_few_descriptors() {
    const LEVELS: usize = 45;
    process::run("walk_dirs_bounds::walks_and_threads_share_few_descriptors", || {
        let tree = Tree::new(|at| {
            for part in ["a", "b", "c", "d", "e", "f", "g", "h"] {
                fs::create_dir(at.join(part)).unwrap();
                chain_with_files(&at.join(part), LEVELS);
            }
        });
        let files = 8 * 2 * LEVELS;
        for count in [32, 40, 48, 64] {
            let [mut left, mut right] = [(); 2].map(|()| lendir::walk(tree.path()).unwrap());
            let mut opened = 0;
            with_descriptors(count, || {
                while let Some(left) = left.next().unwrap() {
                    let right = right.next().unwrap().unwrap();
                    let files = [left.open_file(), right.open_file()];
                    opened += files.iter().flatten().count();
                }
            });
            assert_eq!(opened, 2 * files, "{count} descriptors, two walks");
            for threads in [0, 2, 8, 16] {
                let opened = with_descriptors(count, || {
                    lendir::walk_dirs(tree.path()).unwrap().run_parallel(threads, |worker| {
                        let mut opened = 0;
                        while let Some(mut dir) = worker.next().unwrap() {
                            while let Some(entry) = dir.next().unwrap() {
                                opened += usize::from(entry.open_file().is_ok());
                            }
                        }
                        opened
                    })
                });
                let opened: usize = opened.iter().sum();
                assert_eq!(opened, files, "{count} descriptors, {threads} threads");
            }
        }
    });
}
