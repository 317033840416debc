//! What sharing a deep tree costs several threads: the cost grows with the depth, not with its square.

use crate::support::machine;
use crate::support::process;
use crate::support::tree::Tree;
use lendir::Walk;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, mkdirat, renameat};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

/// Nested levels. Returns descriptors of the `wanted` ones.
fn levels(at: &Path, depth: usize, name: &str, wanted: &[usize]) -> Vec<OwnedFd> {
    let mut level = lendir::open(at).unwrap();
    let mut found = Vec::new();
    for depth in 0..=depth {
        if wanted.contains(&depth) {
            found.push(level.try_clone().unwrap());
        }
        mkdirat(&level, name, Mode::RWXU).unwrap();
        level = lendir::openat(&level, name).unwrap();
    }
    found
}

/// Long enough for a busy machine.
fn wait(flag: &AtomicBool) {
    machine::wait(flag, Duration::from_secs(1));
}

/// The most memory that this process has had since it was last asked, in bytes.
fn most_memory() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("/proc/self/status has no VmHWM");
    fs::write("/proc/self/clear_refs", "5").unwrap();
    1024 * line.trim().strip_suffix(" kB").and_then(|number| number.parse::<usize>().ok()).expect("VmHWM not in kB")
}

/// Two threads walk the bottom of a chain with second visits. Meanwhile all levels are cut off, so each is lost. Returns the memory
/// that this takes, and the number of errors.
fn memory_of_lost_levels(depth: usize) -> (usize, usize) {
    let name = "m".repeat(250);
    let (tree, aside) = (Tree::new(|_| ()), Tree::new(|_| ()));
    let found = levels(tree.path(), depth - 1, &name, &[0, depth - 4, depth - 1]);
    let [top, bottom, last] = found.try_into().expect("not three levels");
    // For each directory that it visits, a thread may copy 4 KiB of path.
    let beside = 8 + 2 * depth * name.len() / 4096;
    for number in 0..beside {
        mkdirat(&last, format!("{name}/{number}"), Mode::RWXU).unwrap();
    }
    let aside = lendir::open(aside.path()).unwrap();
    let cut = || {
        renameat(&bottom, &*name, &aside, "bottom").unwrap();
        renameat(&top, &*name, &aside, "top").unwrap();
    };
    let [is_deepest, is_shared, is_cut] = [(); 3].map(|()| AtomicBool::new(false));
    let walk = Walk::options().max_open(4).second_visits(true).open(tree.path()).unwrap();
    let before = [most_memory(), most_memory()][1];
    let errors = walk.spread(2, |worker| {
        let is_first = worker.index() == 0;
        if !is_first {
            wait(&is_deepest);
        }
        let mut errors = 0;
        while let Some(mut dir) = worker.next_ok(|_| errors += 1) {
            while dir.next().unwrap().is_some() {}
            if dir.depth() == depth && !dir.is_second_visit() {
                is_deepest.store(true, SeqCst);
                thread::sleep(Duration::from_millis(20)); // the other one begins to wait
            } else if dir.depth() <= depth || is_cut.load(SeqCst) {
                // Nothing is left to arrange.
            } else if !is_first && !is_shared.swap(true, SeqCst) {
                wait(&is_cut);
            } else if is_first && is_shared.load(SeqCst) {
                cut();
                is_cut.store(true, SeqCst);
            } else {
                thread::sleep(Duration::from_millis(1)); // for the other one to begin
            }
        }
        errors
    });
    assert!(is_shared.load(SeqCst) && is_cut.load(SeqCst), "the threads were never both at the bottom");
    (most_memory() - before, errors.into_iter().sum())
}

/// The paths of 4 times as many levels are 16 times as long in total.
#[test]
fn lost_levels_take_memory_for_their_number_not_for_their_paths() {
    process::run("share_costs::lost_levels_take_memory_for_their_number_not_for_their_paths", 120, || {
        const LEVELS: usize = 500;
        let [(few, errors), (many, more_errors)] = [LEVELS, 4 * LEVELS].map(memory_of_lost_levels);
        assert!(errors >= LEVELS - 10 && more_errors >= 4 * LEVELS - 10, "only {errors} and {more_errors} are lost");
        let few = few.max(2 << 20);
        assert!(many <= 5 * few, "{LEVELS} levels take {few} bytes, 4 times as many take {many}");
    });
}
