//! A level is lost, and then the walk enters directories below it.

use crate::support::machine::{self, Watchdog};
use crate::support::process;
use crate::support::scan::errno;
use crate::support::tree::{self, Tree};
use crate::visits::{Next, Plan, by_std, directories};
use crate::walk_bounds::leave_room;
use lendir::{Dir, Error, FileType, Listing, Order, Walk};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;
use std::{fs, mem, thread};

const DEPTH: usize = 46;

fn path(tree: &Tree, levels: usize) -> PathBuf {
    tree.path().join("m/".repeat(levels).trim_end_matches('/'))
}

/// A chain of 46 levels. When a walk is at its end, the levels down to `lost` are closed. Right below that one the chain forks:
/// into a second one, of as many directories as may be open, and `beside`.
fn forked(max_open: usize, beside: &[&str]) -> (Tree, usize) {
    let lost = DEPTH + 1 - max_open;
    let tree = Tree::new(|at| {
        tree::chain(at, DEPTH);
        let fork = at.join("m/".repeat(lost + 1));
        for name in beside.iter().chain(&["z"]) {
            fs::create_dir(fork.join(name)).unwrap();
        }
        tree::chain(&fork.join("z"), max_open);
    });
    (tree, lost)
}

/// Moves a level away, and what is below it elsewhere.
fn cut(tree: &Tree, lost: usize, aside: &Tree) {
    fs::rename(path(tree, lost + 1), aside.path().join("below")).unwrap();
    fs::rename(path(tree, lost), aside.path().join("above")).unwrap();
}

/// The visits, with whether each is a second one, and the errors.
type Seen = (Vec<(PathBuf, bool)>, Vec<(PathBuf, i32)>);

/// The recipe of strict pre-order.
fn in_pre_order(walk: &mut impl Next, mut look: impl FnMut(&Dir<'_>)) -> Seen {
    let (mut listing, mut left) = (Listing::with_order(Order::Path), Vec::new());
    let (mut visits, mut errors) = (Vec::new(), Vec::new());
    loop {
        let mut dir = match walk.next_dir() {
            Ok(Some(dir)) => dir,
            Ok(None) => return (visits, errors),
            Err(error) => {
                errors.push((error.path().to_owned(), errno(&error)));
                continue;
            }
        };
        visits.push((dir.path().to_owned(), dir.is_second_visit()));
        look(&dir);
        let depth = dir.depth();
        left.truncate(depth + usize::from(dir.is_second_visit()));
        if !dir.is_second_visit() {
            dir.read_into(&mut listing).unwrap();
            let entries: Vec<_> = listing.iter().map(|entry| (entry.name().to_vec(), entry.file_type())).collect();
            left.push(entries.into_iter());
            dir.skip_all();
        }
        left[depth].any(|(name, file_type)| file_type == FileType::Directory && dir.enter(name));
    }
}

/// Two renames, and with the default options too.
#[test]
fn strict_pre_order_goes_on_below_a_level_that_was_moved() {
    for (walk, max_open) in [(Walk::options(), 32), (Walk::options().max_open(4), 4)] {
        let ((tree, lost), aside) = (forked(max_open, &[]), Tree::new(|_| ()));
        let mut walk = walk.second_visits(true).open(tree.path()).unwrap();
        let (end, mut is_cut) = (path(&tree, DEPTH), false);
        let (visits, errors) = in_pre_order(&mut walk, |dir| {
            if !is_cut && dir.path() == end {
                cut(&tree, lost, &aside);
                is_cut = true;
            }
        });
        assert_eq!(errors, [(path(&tree, lost), libc::ENOENT)], "{max_open} open");
        assert!(!visits.contains(&(path(&tree, lost), true)), "{max_open} open");
        assert_eq!(visits.last(), Some(&(tree.path().to_owned(), true)), "{max_open} open");
    }
}

/// Nothing is moved.
#[test]
fn strict_pre_order_goes_on_below_a_level_for_which_there_was_no_descriptor() {
    process::run("lost_levels::strict_pre_order_goes_on_below_a_level_for_which_there_was_no_descriptor", 60, || {
        let (tree, lost) = forked(4, &[]);
        let mut walk = Walk::options().max_open(4).second_visits(true).open(tree.path()).unwrap();
        let above_end = path(&tree, lost + 2);
        let all = getrlimit(Resource::Nofile);
        let (visits, errors) = in_pre_order(&mut walk, |dir| {
            // Only the next step cannot open any.
            let is_last = dir.is_second_visit() && dir.path() == above_end;
            setrlimit(Resource::Nofile, if is_last { Rlimit { current: Some(0), ..all } } else { all }).unwrap();
        });
        assert_eq!(errors, [(path(&tree, lost), libc::EMFILE)]);
        assert!(!visits.contains(&(path(&tree, lost), true)));
    });
}

/// Nor here: four threads need more descriptors than the process has.
#[test]
fn threads_go_on_below_a_level_for_which_there_was_no_descriptor() {
    process::run("lost_levels::threads_go_on_below_a_level_for_which_there_was_no_descriptor", 120, || {
        let tree = Tree::new(|at| {
            for name in ["a", "b", "c", "d"] {
                let dir = at.join(name);
                fs::create_dir(&dir).unwrap();
                tree::comb(&dir, 12);
                for levels in [4, 6] {
                    tree::comb(&dir.join("m/".repeat(levels)).join("z"), 8);
                }
            }
        });
        let all = by_std(tree.path(), false, |_| Plan::ALL);
        let all = directories(&all);
        let mut lost = 0;
        // Rare: at that moment the other threads hold all.
        while lost < 5 {
            let others = leave_room(12);
            let (visits, errors) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
            // The state is the names that are left.
            let walk = Walk::options().second_visits(true).with_state(vec![]).open(tree.path()).unwrap();
            walk.spread(4, |worker| {
                while let Some(mut dir) = worker.next_ok(|error| {
                    assert_eq!(errno(&error), libc::EMFILE, "{error}");
                    errors.lock().unwrap().push(error.path().to_owned());
                }) {
                    if !dir.is_second_visit() {
                        let mut names = Vec::new();
                        while let Some(entry) = dir.next().unwrap() {
                            names.push(entry.name().to_vec());
                        }
                        *dir.state_mut() = names;
                        dir.skip_all();
                        visits.lock().unwrap().push(dir.path().to_owned());
                    }
                    thread::sleep(Duration::from_micros(20));
                    let at = dir.state().len().saturating_sub(if dir.depth() == 0 { 4 } else { 1 });
                    for name in dir.state_mut().split_off(at) {
                        dir.enter(name);
                    }
                }
            });
            drop(others);
            let (mut visits, errors) = (visits.into_inner().unwrap(), errors.into_inner().unwrap());
            visits.sort();
            let is_visited = |path: &Path| visits.binary_search_by(|visit| (**visit).cmp(path)).is_ok();
            assert!(visits.windows(2).all(|pair| pair[0] != pair[1]), "a directory was visited twice");
            let is_told = |path: &Path| errors.iter().any(|failed| path.starts_with(failed));
            assert!(all.iter().all(|path| is_visited(path) || is_told(path)), "a directory is lost without an error");
            lost += errors.iter().filter(|path| is_visited(path)).count();
        }
    });
}

/// The first thread enters three directories below a level that was lost, of which the second one waits for a part.
#[test]
fn what_is_entered_below_a_lost_level_is_shared() {
    let _watchdog = Watchdog::new(60);
    for _ in 0..20 {
        let ((tree, lost), aside) = (forked(4, &["x", "y"]), Tree::new(|_| ()));
        // The state is whether the three are left to enter.
        let options = Walk::options().max_open(4).second_visits(true).with_state(true);
        let walk = options.open(tree.path()).unwrap();
        let (is_begun, errors) = (AtomicBool::new(false), Mutex::new(Vec::new()));
        walk.spread(2, |worker| {
            let is_first = worker.index() == 0;
            if is_first {
                machine::wait(&is_begun, Duration::from_secs(1));
            }
            is_begun.store(true, SeqCst);
            let on_error = |error: Error| errors.lock().unwrap().push((error.path().to_owned(), errno(&error)));
            while let Some(mut dir) = worker.next_ok(on_error) {
                let is_fork = dir.path() == path(&tree, lost + 1);
                assert!(dir.path() != path(&tree, lost) || !dir.is_second_visit());
                match dir.is_second_visit() {
                    false if is_first && dir.depth() <= DEPTH && dir.path() == path(&tree, dir.depth()) => {
                        dir.skip_all();
                        if dir.depth() < DEPTH {
                            dir.enter("m");
                        } else {
                            cut(&tree, lost, &aside);
                        }
                    }
                    true if is_fork && mem::take(dir.state_mut()) => {
                        for name in ["x", "y", "z"] {
                            dir.enter(name);
                        }
                    }
                    _ => {}
                }
            }
        });
        assert_eq!(errors.into_inner().unwrap(), [(path(&tree, lost), libc::ENOENT)]);
    }
}

/// Two threads are below `L/M`, and the second is the last there. It does not find `L`, because both were moved apart, and enters
/// `L/M/n` from there. A third rename cuts that off from what is below it.
#[test]
fn last_thread_goes_on_below_a_level_that_it_does_not_find() {
    let _watchdog = Watchdog::new(60);
    let happen = || {
        let tree = Tree::of(&["L/M/n/n1/n2/n3/n4/n5/", "L/M/x/", "L/M/y/", "L/M/z/"]);
        let aside = Tree::of(&[]);
        let away = |from: &Path, name: &str| fs::rename(from, aside.path().join(name)).unwrap();
        let relative = |path: &Path| path.strip_prefix(tree.path()).unwrap().to_owned();
        let mut walk = Walk::options().max_open(4).second_visits(true).open(tree.path()).unwrap();
        while let Some(mut dir) = walk.next().unwrap() {
            if dir.depth() == 2 {
                dir.skip_all();
                for name in ["x", "y", "z"] {
                    dir.enter(name);
                }
                break;
            }
        }
        let [is_begun, has_part, is_done, is_moved] = [(); 4].map(|()| AtomicBool::new(false));
        let (visits, errors) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
        walk.spread(2, |worker| {
            let is_first = worker.index() == 0;
            if is_first {
                machine::wait(&is_begun, Duration::from_secs(1));
            }
            is_begun.store(true, SeqCst);
            let on_error = |error: Error| errors.lock().unwrap().push((relative(error.path()), errno(&error)));
            while let Some(mut dir) = worker.next_ok(on_error) {
                visits.lock().unwrap().push((relative(dir.path()), dir.is_second_visit()));
                match (dir.name(), dir.is_second_visit()) {
                    // The first thread goes up past `L` before the second one goes on.
                    (b"x" | b"y", false) if !is_first && !has_part.swap(true, SeqCst) => {
                        machine::wait(&is_done, Duration::from_secs(1));
                        thread::sleep(Duration::from_millis(2));
                        away(&tree.path().join("L/M"), "M");
                        away(&tree.path().join("L"), "L");
                        is_moved.store(true, SeqCst);
                    }
                    (b"z", false) if is_first => machine::wait(&has_part, Duration::from_millis(100)),
                    (b"z", true) => is_done.store(true, SeqCst),
                    (b"M", true) if !visits.lock().unwrap().iter().any(|(path, _)| path.ends_with("n")) => {
                        dir.enter("n");
                    }
                    (b"n5", false) if is_moved.load(SeqCst) => away(&aside.path().join("M/n/n1/n2"), "n2"),
                    _ => {}
                }
            }
        });
        let (visits, errors) = (visits.into_inner().unwrap(), errors.into_inner().unwrap());
        // Otherwise the first thread still had `L` open.
        let is_lost = is_moved.into_inner() && errors.iter().any(|(path, _)| path == Path::new("L"));
        is_lost.then_some((visits, errors))
    };
    let (visits, errors) = (0..100).find_map(|_| happen()).expect("the second thread was never the last");
    assert_eq!(errors.iter().filter(|(path, _)| path == Path::new("L")).count(), 1, "{errors:?}");
    assert_eq!(errors[0], ("L".into(), libc::ENOENT));
    assert!(!visits.contains(&("L".into(), true)), "a lost level has a second visit");
    assert_eq!(visits.last(), Some(&("".into(), true)));
}
