//! Cases that walk trees. Only in the last two do others change them.

use super::churn::Over;
use super::contents::{DEPTH, WIDTH, fill_tree, still};
use crate::mounted::Mounted;
use crate::signals::{self, Storm};
use crate::support::machine;
use crate::support::tree::make;
use crate::support::visits::Plan;
use crate::support::way::{PLAIN, Way};
use crate::walks::{Told, WAYS, remove_contents};
use libc::ENOENT;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// Calls `compare` with each tree and the result of `std`, and again if the tree has changed meanwhile.
fn compare_with_std(
    mounted: &Mounted,
    mut compare: impl FnMut(&Path, &Told) -> Result<(), String>,
) {
    let trees =
        if mounted.system.is_ours() { vec![mounted.at.clone()] } else { still(mounted).collect() };
    for tree in trees {
        let mut verdict = Ok(());
        let is_settled = (0..10).any(|_| {
            let Ok(before) = Told::by_std(&tree) else { return false };
            verdict = compare(&tree, &before);
            verdict.is_ok() || Told::by_std(&tree).is_ok_and(|after| after == before)
        });
        assert!(is_settled, "{} changed during each of ten comparisons", tree.display());
        verdict.unwrap();
    }
}

pub fn walks_tell_what_std_tells(mounted: &Mounted) {
    compare_with_std(mounted, |tree, expected| {
        for way in WAYS {
            if way.walk(tree).sorted().entries != expected.entries {
                return Err(format!("a `Walk`, {way:?}, and `std` differ on {}", tree.display()));
            }
            let told = way.walk_dirs(tree);
            if way.second_visits && told.left.len() != expected.visited.len() {
                return Err(format!(
                    "{way:?}: {} second visits in {}",
                    told.left.len(),
                    tree.display()
                ));
            }
            if told.sorted() != *expected {
                return Err(format!("{way:?} and `std` differ on {}", tree.display()));
            }
        }
        Ok(())
    });
}

pub fn half_read_directories_hide_nothing(mounted: &Mounted) {
    compare_with_std(mounted, |tree, expected| {
        for is_on_one_mount in [false, true] {
            let way = Way { max_open: 4, is_on_one_mount, ..PLAIN };
            let (mut run, mut visits) = (way.begin(tree), 1..);
            // None, one, the first batch, and one more.
            let mut plan =
                || Plan { lend: [0, 1, 400, 1500][visits.next().unwrap_or(0) % 4], ..Plan::ALL };
            while run.lent.take(&mut run.walk, |_| (), |_| plan()) {}
            let told = Told::of(run.lent.visits).sorted();
            if told.visited != expected.visited || !told.errors.is_empty() {
                return Err(format!(
                    "half read, {} has other directories or errors: {told:?}",
                    tree.display()
                ));
            }
        }
        Ok(())
    });
}

pub fn walks_are_complete_despite_signals(mounted: &Mounted) {
    let tree = mounted.at.join("tree");
    let expected = Told::by_std(&tree).unwrap();
    let _storm = Storm::begin();
    let before = signals::received();
    let rounds = if machine::runs_long() { 100 } else { 1 };
    for _ in 0..rounds {
        for way in WAYS {
            assert_eq!(way.walk_dirs(&tree).sorted(), expected, "{way:?}");
            assert_eq!(way.walk(&tree).sorted().entries, expected.entries, "a `Walk`, {way:?}");
        }
    }
    assert!(signals::received() > before, "no signal came");
}

pub fn what_stays_is_told_once_while_others_come_and_go(mounted: &Mounted) {
    let tree = mounted.at.join("tree");
    let duration = Duration::from_millis(if machine::runs_long() { 60_000 } else { 100 });
    let is_over = AtomicBool::new(false);
    let staying = Told::by_std(&tree).unwrap().entries;
    thread::scope(|scope| {
        let churn = scope.spawn(|| churn(&tree, &is_over, |_| {}));
        {
            let _over = Over(&is_over);
            let until = Instant::now() + duration;
            // Each way at least once, however slow this machine is.
            loop {
                for way in WAYS {
                    check(way, &tree, &staying);
                }
                if Instant::now() >= until || churn.is_finished() {
                    break;
                }
            }
        }
        churn.join().unwrap();
    });
}

fn check(way: Way, tree: &Path, staying: &[PathBuf]) {
    for told in [way.walk_dirs(tree), way.walk(tree), way.run_parallel(tree, 3)] {
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
    }
}

fn is_staying(path: &Path) -> bool {
    path.iter().all(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit))
}

/// Makes, renames and removes directories at each level until it is over, and calls `besides` at the same places.
fn churn(tree: &Path, is_over: &AtomicBool, besides: impl Fn(&Path)) {
    for round in 0.. {
        if is_over.load(Relaxed) {
            break;
        }
        let numbers = [round / 3, round / (3 * WIDTH)].map(|number| (number % WIDTH).to_string());
        let at: PathBuf =
            [tree].into_iter().chain(numbers.iter().take(round % 3).map(Path::new)).collect();
        let [made, renamed] =
            ["made", "renamed"].map(|name| at.join(format!("{name}-{}", round % 50)));
        // If a step fails, another thread was faster.
        let made_all =
            [&made, &made.join("a"), &made.join("a/b")].into_iter().try_for_each(fs::create_dir);
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

/// A tree is removed while others add to it and swap directories for links. Nothing is removed through a link.
pub fn tree_is_removed_while_others_add_remove_and_swap(mounted: &Mounted) {
    let rounds = if machine::runs_long() { 100 } else { 1 };
    let [tree, outside] = ["removed", "outside"].map(|name| mounted.at.join(name));
    for _ in 0..rounds {
        for dir in [&tree, &outside] {
            fill_tree(dir, WIDTH, DEPTH, &|_| true);
        }
        for dir in Told::by_std(&tree).unwrap().visited {
            make(&tree.join(dir), &["swapped/file"]);
        }
        remove_beside_churn(&tree, &outside);
        fs::remove_dir_all(&outside).unwrap();
    }
}

fn remove_beside_churn(tree: &Path, outside: &Path) {
    let all_outside = Told::by_std(outside).unwrap();
    let is_over = AtomicBool::new(false);
    let swap = |at: &Path| {
        let [link, swapped] = ["link", "swapped"].map(|name| at.join(name));
        let _ = symlink(outside, &link);
        let _ = renameat_with(CWD, link, CWD, swapped, RenameFlags::EXCHANGE);
    };
    let remove = || remove_contents(lendir::open(tree).unwrap()).unwrap();
    thread::scope(|scope| {
        let churns = [(); 2].map(|()| scope.spawn(|| churn(tree, &is_over, swap)));
        {
            let _over = Over(&is_over);
            (0..3).for_each(|_| remove());
        }
        for churn in churns {
            churn.join().unwrap();
        }
    });
    let left = Told::by_std(tree).unwrap();
    // What others made may be left, and so may the directories to which they added.
    let is_of_others = |path: &&PathBuf| !is_staying(path) || left.visited.contains(path);
    assert!(left.entries.iter().all(|path| is_of_others(&path)), "{:?}", left.entries);
    remove();
    assert_eq!(Told::by_std(tree).unwrap().entries, Vec::<PathBuf>::new());
    assert_eq!(Told::by_std(outside).unwrap(), all_outside, "something outside was removed");
}
