//! Walks while signals come, and while others add to the tree and remove from it.

use super::{Told, WAYS, remove_contents};
use crate::churn::Over;
use crate::file_systems::{Contents, FileSystem};
use crate::mounted::{Mounted, Part};
use crate::signals::{self, Storm};
use crate::support::machine;
use crate::support::tree::make;
use crate::support::way::Way;
use libc::ENOENT;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// A tree of `width` directories in each directory, `depth` levels deep, and as many files. All names are numbers.
fn fill(dir: &Path, width: usize, depth: usize, is_here: &dyn Fn(usize) -> bool) {
    for number in (0..width).filter(|number| is_here(*number)) {
        let below = dir.join(number.to_string());
        make(&below, &(width..2 * width).map(|file| file.to_string()).collect::<Vec<_>>());
        if depth > 1 {
            fill(&below, width, depth - 1, &|_| true);
        }
    }
}

const WIDTH: usize = 6;
const DEPTH: usize = 3;

fn fill_part(dir: &Path, part: Part) {
    fill(dir, WIDTH, DEPTH, &|number| part.has(number));
}

fn is_staying(path: &Path) -> bool {
    path.iter().all(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit))
}

#[test]
fn walks_are_complete_despite_signals() {
    let _watchdog = machine::watchdog();
    let rounds = if machine::runs_long() { 100 } else { 1 };
    thread::scope(|scope| {
        for system in FileSystem::local() {
            scope.spawn(move || {
                let row = format!("walk: signal storm on {}", system.name);
                let walk = |mounted: &Mounted| {
                    let expected = Told::by_std(&mounted.at).unwrap();
                    let _storm = Storm::begin();
                    for _ in 0..rounds {
                        for way in WAYS {
                            assert_eq!(way.walk(&mounted.at).sorted(), expected, "{}, {way:?}", system.name);
                        }
                    }
                    assert!(signals::received() > 0, "no signal came");
                    rounds * WAYS.len()
                };
                match system.mounted(fill_part, walk) {
                    Ok(walks) => machine::passed(&row, walks, "walks complete while signals come"),
                    Err(missing) => machine::skip(&row, &missing),
                }
            });
        }
    });
}

#[test]
fn what_stays_is_told_once_while_others_come_and_go() {
    let _watchdog = machine::watchdog();
    let duration = Duration::from_millis(if machine::runs_long() { 60_000 } else { 500 });
    thread::scope(|scope| {
        for system in FileSystem::local().filter(|system| system.contents != Contents::Packed) {
            scope.spawn(move || {
                let row = format!("walk: churn on {}", system.name);
                match system.mounted(fill_part, |mounted| walk_beside_churn(&mounted.at, duration)) {
                    Ok((walks, errors)) => {
                        let what = format!("walks with all that stays once; {errors} errors of what does not");
                        machine::passed(&row, walks, &what);
                    }
                    Err(missing) => machine::skip(&row, &missing),
                }
            });
        }
    });
}

/// The walks, and the errors that they told.
fn walk_beside_churn(tree: &Path, duration: Duration) -> (usize, usize) {
    let is_over = AtomicBool::new(false);
    let staying = Told::by_std(tree).unwrap();
    // mkfs leaves a `lost+found`.
    let staying: Vec<_> = staying.entries.into_iter().filter(|path| is_staying(path)).collect();
    thread::scope(|scope| {
        let churn = scope.spawn(|| churn(tree, &is_over, |_| {}));
        let (mut walks, mut errors) = (0, 0);
        {
            let _over = Over(&is_over);
            let until = Instant::now() + duration;
            // At least one whole turn, however slow this machine is.
            while walks == 0 || Instant::now() < until && !churn.is_finished() {
                for way in WAYS {
                    errors += check(way, tree, &staying);
                    walks += 1;
                }
            }
        }
        churn.join().unwrap();
        (walks, errors)
    })
}

/// The number of errors.
fn check(way: Way, tree: &Path, staying: &[PathBuf]) -> usize {
    let told = way.walk(tree);
    let mut times: BTreeMap<_, _> = staying.iter().map(|path| (path, 0)).collect();
    for entry in &told.entries {
        if let Some(times) = times.get_mut(entry) {
            *times += 1;
        }
    }
    let wrong = times.iter().find(|(_, times)| **times != 1);
    assert!(wrong.is_none(), "{way:?}: an entry that stays, and how often it came: {wrong:?}");
    for (path, errno) in &told.errors {
        assert!(*errno == ENOENT && !is_staying(path), "{way:?}: {}: {errno}", path.display());
    }
    told.errors.len()
}

/// Makes, renames and removes directories at each level until it is over, and calls `besides` at the same places.
fn churn(tree: &Path, is_over: &AtomicBool, besides: impl Fn(&Path)) {
    for round in 0.. {
        if is_over.load(Relaxed) {
            break;
        }
        let numbers = [round / 3, round / (3 * WIDTH)].map(|number| (number % WIDTH).to_string());
        let at: PathBuf = [tree].into_iter().chain(numbers.iter().take(round % 3).map(Path::new)).collect();
        let [made, renamed] = ["made", "renamed"].map(|name| at.join(format!("{name}-{}", round % 50)));
        // Whatever fails, another thread has been there.
        let made_all = [&made, &made.join("a"), &made.join("a/b")].into_iter().try_for_each(fs::create_dir);
        let _ = made_all.and_then(|()| {
            fs::write(made.join("a/file"), "")?;
            fs::rename(made.join("a/b"), made.join("b"))?;
            fs::rename(&made, &renamed)?;
            fs::remove_dir_all(renamed.join("a"))
        });
        besides(&at);
        if round % 2 == 0 {
            let _ = fs::remove_dir_all(&renamed);
        }
    }
}

/// What was there is removed, even while others add to it; what a link leads to is not.
#[test]
fn tree_is_removed_while_others_add_remove_and_swap() {
    let _watchdog = machine::watchdog();
    let rounds = if machine::runs_long() { 200 } else { 5 };
    thread::scope(|scope| {
        for system in ["tmpfs", "ext4", "btrfs"].map(FileSystem::named) {
            scope.spawn(move || {
                let row = format!("walk: `rm -r` on {}", system.name);
                let outcome = system.mounted(
                    |_, _| {},
                    |mounted| {
                        for _ in 0..rounds {
                            remove_beside_churn(&mounted.at).unwrap();
                        }
                    },
                );
                match outcome {
                    Ok(()) => {
                        let what =
                            "trees removed while others add, remove and swap directories for links to the outside";
                        machine::passed(&row, rounds, what);
                    }
                    Err(missing) => machine::skip(&row, &missing),
                }
            });
        }
    });
}

fn remove_beside_churn(at: &Path) -> io::Result<()> {
    let [tree, outside] = ["tree", "outside"].map(|name| at.join(name));
    for dir in [&tree, &outside] {
        fs::create_dir_all(dir)?;
        fill(dir, WIDTH, DEPTH, &|_| true);
    }
    for dir in Told::by_std(&tree)?.visited {
        make(&tree.join(dir), &["swapped/file"]);
    }
    let all_outside = Told::by_std(&outside)?;
    let is_over = AtomicBool::new(false);
    let swap = |at: &Path| {
        let [link, swapped] = ["link", "swapped"].map(|name| at.join(name));
        let _ = symlink(&outside, &link);
        let _ = renameat_with(CWD, link, CWD, swapped, RenameFlags::EXCHANGE);
    };
    thread::scope(|scope| -> io::Result<()> {
        let churns = [(); 2].map(|()| scope.spawn(|| churn(&tree, &is_over, swap)));
        let removed = {
            let _over = Over(&is_over);
            (0..3).try_for_each(|_| remove_contents(lendir::open(&tree)?))
        };
        for churn in churns {
            churn.join().unwrap();
        }
        removed
    })?;
    let left = Told::by_std(&tree)?;
    // What others made is left, and the directories to which they added.
    let is_of_others = |path: &&PathBuf| !is_staying(path) || left.visited.contains(path);
    assert!(left.entries.iter().all(|path| is_of_others(&path)), "{:?}", left.entries);
    remove_contents(lendir::open(&tree)?)?;
    assert_eq!(Told::by_std(&tree)?.entries, Vec::<PathBuf>::new());
    assert_eq!(Told::by_std(&outside)?, all_outside, "something outside was removed");
    fs::remove_dir_all(&outside)
}
