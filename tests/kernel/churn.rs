//! Scans while entries are made, removed and renamed among others that stay: each of those that stay comes exactly once.
//!
//! There is one exception, which the last test reproduces: when all entries that the kernel has yet to return are removed
//! between two batches, tmpfs begins again, and returns those that stay a second time. Elsewhere the churn leaves thousands
//! of entries in place, and so does not come to it.

use crate::file_systems::{Contents, FileSystem};
use crate::mounted::{Mounted, Part};
use crate::support::machine;
use crate::support::scan::all;
use lendir::{Buffer, EndMarker, Entries, FileType};
use rustix::fs::{AtFlags, CWD, Mode, mknodat, renameat, unlinkat};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The entries that stay are named by their numbers, the others begin with a letter.
const STAYING: usize = 3000;
const CAPACITIES: [usize; 4] = [0, Buffer::DEFAULT_CAPACITY, 128 * 1024, 1024 * 1024];

#[test]
fn stable_entries_come_once() {
    let _watchdog = machine::watchdog();
    let duration = Duration::from_millis(if machine::runs_long() { 60_000 } else { 2_000 });
    thread::scope(|scope| {
        for system in FileSystem::local().filter(|system| system.contents != Contents::Packed) {
            scope.spawn(move || {
                let row = format!("churn on {}", system.name);
                match system.mounted(fill, |mounted| scan_beside_churn(mounted, duration)) {
                    Ok(scans) => machine::passed(&row, scans, &format!("scans with each of {STAYING} that stay once")),
                    Err(missing) => machine::skip(&row, &missing),
                }
            });
        }
    });
}

fn fill(dir: &Path, part: Part) {
    for index in (0..STAYING).filter(|index| part.has(*index)) {
        mknodat(CWD, dir.join(index.to_string()), FileType::RegularFile, Mode::RUSR, 0).unwrap();
    }
}

fn scan_beside_churn(mounted: &Mounted, duration: Duration) -> usize {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let scans = scope.spawn(|| {
            let _over = Over(&is_over);
            scan(mounted, Instant::now() + duration)
        });
        churn(&mounted.at, &is_over);
        scans.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Its drop says that the scans are over, even after a panic.
pub struct Over<'a>(pub &'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The number of scans, each of which saw all that stays.
fn scan(mounted: &Mounted, until: Instant) -> usize {
    let mut scans = 0;
    let marker = EndMarker::of(lendir::open(&mounted.at).unwrap()).unwrap();
    let mut buffers = CAPACITIES.map(Buffer::with_capacity);
    // At least one whole turn, however slow this machine is.
    loop {
        for buffer in &mut buffers {
            for marker in [EndMarker::NONE, marker] {
                let what = format!("{} with {buffer:?} and {marker:?}", mounted.system.name);
                let dir = lendir::open(&mounted.at).unwrap();
                let mut entries = Entries::new(&dir, buffer).with_end_marker(marker);
                for _ in ["opened", "rewound"] {
                    let mut times = [0_u8; STAYING];
                    while let Some(entry) = entries.next().unwrap() {
                        if let Some(index) = entry.numeric_name() {
                            times[index as usize] += 1;
                        }
                    }
                    assert_eq!(
                        times.iter().position(|times| *times != 1),
                        None,
                        "{what}: an entry that stays did not come once"
                    );
                    scans += 1;
                    entries.rewind().unwrap();
                }
            }
        }
        if Instant::now() > until {
            break scans;
        }
    }
}

/// Makes, renames and removes entries, a few hundred at a time, until it is over.
fn churn(path: &Path, is_over: &AtomicBool) {
    let dir = lendir::open(path).unwrap();
    // Names of several lengths, which make the file system split and merge records and blocks.
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

/// A kernel may mend this: then the row says so.
#[test]
fn only_tmpfs_begins_again_when_all_the_rest_is_removed() {
    let _watchdog = machine::watchdog();
    for system in FileSystem::local().filter(|system| system.contents == Contents::Written) {
        let row = format!("emptied midway: {}", system.name);
        let what = match (system.mounted(fill, |mounted| times_seen_beside_removal(&mounted.at)), system.name) {
            (Ok(1), "tmpfs") => "scan with the entry that stays once: this kernel's tmpfs does not begin again",
            (Ok(1), _) => "scan with the entry that stays once",
            (Ok(2), "tmpfs") => "scan with the entry that stays twice, as is documented of tmpfs",
            (Ok(times), _) => panic!("{row}: the entry that stays comes {times} times"),
            (Err(missing), _) => {
                machine::skip(&row, &missing);
                continue;
            }
        };
        machine::passed(&row, 1, what);
    }
}

/// Reads one batch, removes everything except its first entry, and reads on: how often that entry came in all.
fn times_seen_beside_removal(path: &Path) -> usize {
    let dir = lendir::open(path).unwrap();
    let mut buffer = Buffer::with_capacity(0);
    let mut entries = Entries::new(&dir, &mut buffer);
    let stays = loop {
        // mkfs leaves a `lost+found`.
        if let Some(number) = entries.next().unwrap().unwrap().numeric_name() {
            break number;
        }
    };
    for index in (0..STAYING).filter(|index| *index != stays as usize) {
        unlinkat(&dir, index.to_string(), AtFlags::empty()).unwrap();
    }
    1 + all(&mut entries).iter().filter(|entry| entry.name == stays.to_string().as_bytes()).count()
}
