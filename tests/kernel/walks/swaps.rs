//! Walks while another thread swaps, moves, replaces and covers directories at every level as fast
//! as it can.

use crate::file_systems::FileSystem;
use crate::mounted::run_isolated;
use crate::report::{OPTIONS, Report, comb, level};
use crate::support::prelude::*;
use rustix::fs::{RenameFlags, renameat_with};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, mount_bind, unmount};

/// The depth of the tree. Each directory has a file that names its origin and, down to this depth,
/// two directories: `kept` stays in its place, and `moved` does not.
const DEPTH: usize = 5;

const TREE: &str = "made in the tree";
/// The origin of directories that trade places with directories of the tree.
const TWINS: &str = "made as a twin";
const OUTSIDE: &str = "OUTSIDE";

/// A walk yields nothing from outside of the tree and loses no directory that stays in its place,
/// while another thread swaps directories.
#[test]
fn swapped_directories_never_lead_outside() {
    let _watchdog = machine::watchdog();
    let swaps = if machine::runs_long() { 400_000 } else { 20_000 };
    thread::scope(|scope| {
        for system in ["tmpfs", "ext4"].map(FileSystem::named) {
            scope.spawn(move || {
                let row = "walk: directories swapped meanwhile";
                let outcome = system.mounted(|_, _| {}, |mounted| race(&mounted.at, swaps));
                machine::skip_unless(row, outcome);
            });
        }
    });
}

/// Makes a directory, and adds the places in its subtree where something can be moved.
fn plant(dir: &Path, depth: usize, made: &str, places: &mut Vec<OwnedFd>) {
    fs::create_dir_all(dir).unwrap();
    fs::write(dir.join(made), "").unwrap();
    if depth > 0 {
        for name in ["kept", "moved"] {
            plant(&dir.join(name), depth - 1, made, places);
        }
        places.push(lendir::open(dir).unwrap());
    }
}

/// Walks until `wanted` swaps were made and one of them has caused an error.
fn race(at: &Path, wanted: usize) {
    let [tree, twins, outside] = ["tree", "twins", "outside"].map(|name| at.join(name));
    let mut places = Vec::new();
    plant(&tree, DEPTH, TREE, &mut places);
    plant(&outside, DEPTH, OUTSIDE, &mut Vec::new());
    let twins: Vec<_> = (0..places.len()).map(|number| twins.join(number.to_string())).collect();
    for twin in &twins {
        plant(twin, 2, TWINS, &mut Vec::new());
    }
    for place in &places {
        symlink(&outside, format!("/proc/self/fd/{}/link", place.as_raw_fd())).unwrap();
    }

    let twins: Vec<_> =
        twins.into_iter().map(|twin| lendir::open(twin.as_path()).unwrap()).collect();
    let away = lendir::open(&outside).unwrap();
    let (is_over, swaps) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        let swapper = scope.spawn(|| swap(&places, &twins, &away, &is_over, &swaps));
        let mut errors = 0;
        {
            let _over = Over(&is_over);
            while !swapper.is_finished() && (swaps.load(Relaxed) < wanted || errors == 0) {
                for options in OPTIONS {
                    let mut run = options.begin(&tree);
                    while run.step() {}
                    errors += check(run.visitor.visits) + check(read_ahead(&tree));
                }
            }
        }
        swapper.join().unwrap();
    });
}

/// Exchanges `moved` in some place for a link to the outside or for the `moved` of a twin, or moves
/// it outside or back. So `..` leads from `moved` to a directory with the names that the walk looks
/// for.
fn swap(
    places: &[OwnedFd],
    twins: &[OwnedFd],
    away: &OwnedFd,
    is_over: &AtomicBool,
    swaps: &AtomicUsize,
) {
    let mut random = Random(1);
    while !is_over.load(Relaxed) {
        let number = random.below(places.len());
        let (place, name) = (&places[number], number.to_string());
        let exchange = |other: &OwnedFd, name: &str| {
            renameat_with(place, "moved", other, name, RenameFlags::EXCHANGE)
        };
        let answer = match random.below(4) {
            0 | 1 => exchange(place, "link"),
            2 => exchange(&twins[number], "moved"),
            _ => renameat_with(place, "moved", away, &name, RenameFlags::NOREPLACE)
                .or_else(|_| renameat_with(away, &name, place, "moved", RenameFlags::NOREPLACE)),
        };
        match answer {
            Ok(()) => swaps.fetch_add(1, Relaxed),
            Err(Errno::NOENT) => continue, // `moved` is outside
            Err(error) => panic!("{error}"),
        };
    }
}

/// Returns what a `Walk` yields while threads read ahead, by directory. A `Walk` yields the whole
/// of each directory, because it closes no level.
fn read_ahead(root: &Path) -> Vec<Visit> {
    let mut walk = Walk::options().read_ahead(3).eager().from_fd(lendir::open(root).unwrap(), "");
    let (mut dirs, mut visits) = (BTreeMap::<_, Vec<_>>::new(), Vec::new());
    while let Some(entry) = walk.next_or_report(|error| visits.push(Visit::from(&error))) {
        let dir = entry.path().parent().expect("BUG: a path without a parent").to_owned();
        dirs.entry(dir).or_default().push(Found {
            name: entry.name().into(),
            ino: entry.ino(),
            file_type: entry.d_type(),
            cookie: 0,
        });
    }
    let first = |(path, entries): (PathBuf, _)| {
        let depth = path.iter().count();
        Visit { path, depth, what: What::First(entries) }
    };
    visits.extend(dirs.into_iter().map(first)); // a directory before its contents
    visits
}

/// Checks each visit of a walk. Returns the number of errors.
fn check(visits: Vec<Visit>) -> usize {
    // The origins of the directories, by path. If several come at one path, the last one counts.
    let mut made: HashMap<PathBuf, Option<&str>> = HashMap::new();
    let (mut kept, mut errors) = (Vec::new(), 0);
    for Visit { path: dir, what, .. } in visits {
        let entries = match what {
            What::First(entries) => entries,
            What::Second | What::Entry { .. } => continue,
            What::Error(errno) => {
                assert!([ENOENT, ENOTDIR].contains(&errno), "{}: {errno}", dir.display());
                errors += 1;
                continue;
            }
        };
        let count =
            |name: &str| entries.iter().filter(|entry| entry.name == name.as_bytes()).count();
        assert_eq!(count(OUTSIDE), 0, "{} is from outside", dir.display());
        let here = [TREE, TWINS].into_iter().find(|name| count(name) > 0);
        let is_right = here.is_some();
        assert!(is_right, "{} lacks the file that names its origin: {entries:?}", dir.display());
        // `kept` never leaves its parent. So this shows whether the walk descends into the parent,
        // not into a twin.
        if dir.ends_with("kept") {
            let parent = dir.parent().expect("BUG: a path without a parent");
            assert_eq!(here, made[parent], "{} was not made where its parent was", dir.display());
        }
        if dir.iter().all(|name| name == "kept") {
            kept.push(dir.clone());
            for name in [TREE, "kept"] {
                let expected = usize::from(name == TREE || dir.iter().count() < DEPTH);
                assert_eq!(count(name), expected, "{name} in {}", dir.display());
            }
        }
        made.insert(dir, here);
    }
    kept.sort_unstable();
    let expected = (0..=DEPTH).map(|depth| vec!["kept"; depth].into_iter().collect::<PathBuf>());
    assert_eq!(kept, expected.collect::<Vec<_>>(), "an untouched directory is missing");
    errors
}

/// Under `same_mount`, a walk enters no mount that another thread mounts and unmounts all the time.
#[test]
fn racing_mounts_are_never_entered() {
    const LEVELS: usize = 8;
    let _watchdog = machine::watchdog();
    let wanted = if machine::runs_long() { 20_000 } else { 500 };
    run_isolated("walk: mounted and unmounted meanwhile", |scratch| {
        let [tree, outside] = ["tree", "outside"].map(|name| scratch.join(name));
        comb(&tree, LEVELS);
        make(&outside, &["OUTSIDE", "z/OUTSIDE", "d/OUTSIDE"]);
        let all = Report::expected(&tree).unwrap();
        let made = AtomicUsize::new(0);
        // The thread is in the same namespace.
        thread::scope(|scope| {
            scope.spawn(|| {
                for number in 0..wanted {
                    let point = tree.join(level(1 + number % LEVELS)).join(if number % 3 == 0 {
                        "."
                    } else {
                        "z"
                    });
                    mount_bind(&outside, &point).unwrap();
                    thread::yield_now();
                    unmount(&point, UnmountFlags::DETACH).unwrap();
                    made.store(number + 1, Relaxed);
                }
            });
            while made.load(Relaxed) < wanted {
                for (second_visits, max_open) in [(false, 32), (false, 4), (true, 32), (true, 4)] {
                    let options =
                        TestOptions { is_on_one_mount: true, second_visits, max_open, ..PLAIN };
                    let report = options.walk_dirs(&tree);
                    let is_ours =
                        |path: &PathBuf| all.entries.contains(path) || path == &PathBuf::new();
                    let other = report
                        .entries
                        .iter()
                        .chain(&report.first_visits)
                        .find(|path| !is_ours(path));
                    assert!(other.is_none(), "{other:?} is yielded from another mount");
                    // Level 0 is never covered.
                    let is_missing = |path: &&str| !report.entries.contains(&PathBuf::from(path));
                    assert_eq!(["d", "z", "z/file"].into_iter().find(is_missing), None);
                    let is_right = report.errors.iter().all(|(_, errno)| *errno == ENOENT);
                    assert!(is_right, "{:?}", report.errors);
                }
            }
        });
    });
}
