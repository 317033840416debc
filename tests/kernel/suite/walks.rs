//! Cases that walk trees. In some cases, other threads change the trees.

use super::contents::{WIDTH, still};
use crate::mounted::Mounted;
use crate::report::{OPTIONS, Report};
use crate::support::prelude::*;
use std::time::Instant;

/// Calls `compare` with each tree and its expected report, and again if the tree has changed
/// meanwhile.
fn compare_with_std(
    mounted: &Mounted,
    mut compare: impl FnMut(&Path, &Report) -> Result<(), String>,
) {
    let trees =
        if mounted.system.is_ours() { vec![mounted.at.clone()] } else { still(mounted).collect() };
    for tree in trees {
        let mut verdict = Ok(());
        let is_settled = (0..10).any(|_| {
            let Ok(before) = Report::expected(&tree) else { return false };
            verdict = compare(&tree, &before);
            verdict.is_ok() || Report::expected(&tree).is_ok_and(|after| after == before)
        });
        assert!(is_settled, "{} changed during each of ten comparisons", tree.display());
        verdict.unwrap();
    }
}

pub fn walks_agree_with_std(mounted: &Mounted) {
    compare_with_std(mounted, |tree, expected| {
        for options in OPTIONS {
            if options.walk(tree).sorted().entries != expected.entries {
                return Err(format!(
                    "a `Walk`, {options:?}, and `std` differ on {}",
                    tree.display()
                ));
            }
            let report = options.walk_dirs(tree);
            if options.second_visits && report.second_visits.len() != expected.first_visits.len() {
                return Err(format!(
                    "{options:?}: {} second visits in {}",
                    report.second_visits.len(),
                    tree.display()
                ));
            }
            if report.sorted() != *expected {
                return Err(format!("{options:?} and `std` differ on {}", tree.display()));
            }
        }
        Ok(())
    });
}

pub fn half_read_directories_hide_nothing(mounted: &Mounted) {
    compare_with_std(mounted, |tree, expected| {
        for is_on_one_mount in [false, true] {
            let options = TestOptions { max_open: 4, is_on_one_mount, ..PLAIN };
            let (mut run, mut visits) = (options.begin(tree), 1..);
            // None, one, the first batch, and one more.
            let mut requests = || Requests {
                next_calls: [0, 1, 400, 1500][visits.next().unwrap_or(0) % 4],
                ..Requests::ALL
            };
            while run.visitor.take(&mut run.walk, |_| (), |_| requests()) {}
            let report = Report::of(run.visitor.visits).sorted();
            if report.first_visits != expected.first_visits || !report.errors.is_empty() {
                return Err(format!(
                    "half read, {} has other directories or errors: {report:?}",
                    tree.display()
                ));
            }
        }
        Ok(())
    });
}

pub fn churn_repeats_no_entry_of_a_walk(mounted: &Mounted) {
    let tree = mounted.at.join("tree");
    let duration = Duration::from_millis(if machine::runs_long() { 60_000 } else { 100 });
    let is_over = AtomicBool::new(false);
    let staying = Report::expected(&tree).unwrap().entries;
    thread::scope(|scope| {
        let churn = scope.spawn(|| churn(&tree, &is_over));
        {
            let _over = Over(&is_over);
            let until = Instant::now() + duration;
            // Each option at least once, however slow this machine is.
            loop {
                for options in OPTIONS {
                    check(options, &tree, &staying);
                }
                if Instant::now() >= until || churn.is_finished() {
                    break;
                }
            }
        }
        churn.join().unwrap();
    });
}

fn check(options: TestOptions, tree: &Path, staying: &[PathBuf]) {
    for report in [options.walk_dirs(tree), options.walk(tree), options.run_parallel(tree, 3)] {
        let mut times: BTreeMap<_, _> = staying.iter().map(|path| (path, 0)).collect();
        for entry in &report.entries {
            if let Some(times) = times.get_mut(entry) {
                *times += 1;
            }
        }
        let wrong = times.iter().find(|(_, times)| **times != 1);
        let is_right = wrong.is_none();
        assert!(is_right, "{options:?}: a remaining entry, and how often it came: {wrong:?}");
        for (path, errno) in &report.errors {
            let is_right = *errno == ENOENT && !is_staying(path);
            assert!(is_right, "{options:?}: {}: {errno}", path.display());
        }
    }
}

fn is_staying(path: &Path) -> bool {
    path.iter().all(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit))
}

/// Makes, renames and removes directories at each level until `is_over`.
fn churn(tree: &Path, is_over: &AtomicBool) {
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
        if round % 2 == 0 {
            let _ = fs::remove_dir_all(&renamed);
        }
    }
}

/// A `Dir` has what was made after the walk had yielded it, and a `Walk` what was made in the root
/// before the first `next`.
pub fn entry_made_before_reading_is_listed(mounted: &Mounted) {
    let root = mounted.at.join("watched");
    make(&root, &["below/"]);
    let (entries, mut listing) = (lendir::walk(&root).unwrap(), Listing::new());
    for is_whole in [true, false] {
        let mut dirs = lendir::walk_dirs(&root).unwrap();
        for _ in ["root", "below"] {
            let mut dir = dirs.next().unwrap().unwrap();
            let name = format!("late, {is_whole}");
            fs::write(dir.path().join(&name), "").unwrap();
            if is_whole {
                dir.read_into(&mut listing).unwrap();
                assert!(listing.by_name(name).is_some());
            } else {
                let found = dir.find(|entry| entry.name() == name.as_bytes()).unwrap();
                assert!(found.is_some());
            }
        }
    }
    assert_eq!(entries.into_iter().count(), 5);
    fs::remove_dir_all(&root).unwrap();
}
