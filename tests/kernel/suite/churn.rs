//! Cases that scan a directory during signals or during changes: each remaining entry comes exactly
//! once.
//!
//! There is one exception, which the last case reproduces. If all entries that the kernel has yet
//! to return are removed between two batches, tmpfs starts again and returns the remaining entries
//! a second time. Thousands of entries remain in the other cases, so the exception does not apply
//! there.

use super::contents::most;
use crate::mounted::Mounted;
use crate::support::prelude::*;
use crate::support::scan::{all, all_again};
use rustix::fs::{AtFlags, FileType, Mode, mkdirat, mknodat, renameat, unlinkat};
use std::sync::atomic::Ordering;
use std::time::Instant;

const CAPACITIES: [usize; 4] = [0, Buffer::DEFAULT_CAPACITY, 128 * 1024, 1024 * 1024];

pub fn churn_repeats_no_remaining_entry(mounted: &Mounted) {
    let duration = Duration::from_millis(if machine::runs_long() { 60_000 } else { 100 });
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let scans = scope.spawn(|| {
            let _over = Over(&is_over);
            scan_until(mounted, duration);
        });
        churn(mounted, &is_over);
        scans.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

/// Scans the largest directory at least once with each reader. The names of its remaining entries
/// are numbers.
fn scan_until(mounted: &Mounted, duration: Duration) {
    let path = mounted.at.join(most().to_string());
    let mut buffers = CAPACITIES.map(Buffer::with_capacity);
    let begin = Instant::now();
    let check = |found: &[Found], what: &str| {
        let mut times = vec![0_u8; most()];
        let numbers =
            found.iter().filter_map(|entry| std::str::from_utf8(&entry.name).ok()?.parse().ok());
        numbers.for_each(|number: usize| times[number] += 1);
        let wrong = times.iter().position(|times| *times != 1);
        assert_eq!(wrong, None, "{what}: a remaining entry was not yielded exactly once");
    };
    loop {
        for buffer in &mut buffers {
            let what = format!("{buffer:?}");
            let dir = lendir::open(&path).unwrap();
            let mut entries = Entries::new(dir.as_fd(), buffer);
            for _ in ["opened", "rewound"] {
                check(&all(&mut entries), &what);
                entries.rewind().unwrap();
            }
        }
        check(&all_again(lendir::read_dir(&path).unwrap()), "with a marker");
        if begin.elapsed() > duration {
            break;
        }
    }
}

/// Makes, renames and removes a few hundred entries at a time until `is_over`.
fn churn(mounted: &Mounted, is_over: &AtomicBool) {
    let dir = lendir::open(mounted.at.join(most().to_string())).unwrap();
    // Names of several lengths make the file system split and merge records and blocks.
    let name = |stem: &str, index: usize| format!("{stem}{index:0>width$}", width = index % 7 * 20);
    for round in 0_usize.. {
        let indices = || (round * 100..).take(100 + round % 300);
        for index in indices() {
            mknodat(&dir, name("made", index), FileType::RegularFile, Mode::RUSR, 0).unwrap();
        }
        for index in indices().step_by(2) {
            renameat(&dir, name("made", index), &dir, name("renamed", index)).unwrap();
        }
        for index in indices() {
            let stem = if (index - round * 100) % 2 == 0 { "renamed" } else { "made" };
            unlinkat(&dir, name(stem, index), AtFlags::empty()).unwrap();
        }
        if is_over.load(Ordering::Relaxed) {
            break;
        }
    }
}

/// Reads one batch, removes everything except its first entry, and continues to read.
pub fn only_tmpfs_repeats_an_entry(mounted: &Mounted) {
    const COUNT: u32 = 1500;
    let at = lendir::open(&mounted.at).unwrap();
    mkdirat(&at, "emptied", Mode::RWXU).unwrap();
    let dir = lendir::openat(&at, "emptied").unwrap();
    for number in 0..COUNT {
        mknodat(&dir, number.to_string(), FileType::RegularFile, Mode::RUSR, 0).unwrap();
    }
    // btrfs lists nothing that is made after the opening
    let dir = lendir::openat(&at, "emptied").unwrap();
    let mut buffer = Buffer::with_capacity(0);
    let mut entries = Entries::new(dir.as_fd(), &mut buffer);
    let stays = entries
        .next()
        .unwrap()
        .and_then(|entry| entry.numeric_name())
        .expect("the first name is not a number");
    for number in (0..COUNT).filter(|number| *number != stays) {
        unlinkat(&dir, number.to_string(), AtFlags::empty()).unwrap();
    }
    let times = 1 + all(&mut entries)
        .iter()
        .filter(|entry| entry.name == stays.to_string().as_bytes())
        .count();
    // A later kernel may fix this. The overlays are on top of a tmpfs.
    let most =
        if ["tmpfs", "overlay", "overlay, merged"].contains(&mounted.system.name) { 2 } else { 1 };
    assert!((1..=most).contains(&times), "the remaining entry came {times} times");
}
