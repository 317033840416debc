//! Scans while a timer interrupts them every 300 µs: none loses an entry.

use crate::file_systems::FileSystem;
use crate::mounted::{Mounted, Part};
use crate::signals::{self, Storm};
use crate::support::machine;
use lendir::{Buffer, EndMarker, Entries, FileType};
use rustix::fs::{CWD, Mode, mknodat};
use std::path::Path;
use std::{mem, thread};

const CAPACITIES: [usize; 4] = [0, Buffer::DEFAULT_CAPACITY, 128 * 1024, 1024 * 1024];

#[test]
fn scans_are_complete_despite_signals() {
    let _watchdog = machine::watchdog();
    thread::scope(|scope| {
        for system in FileSystem::local() {
            scope.spawn(move || {
                let count = if system.is_slow_to_fill && !machine::runs_long() { 4_000 } else { 20_000 };
                let fill = |dir: &Path, part: Part| fill(dir, (0..count).filter(|index| part.has(*index)));
                let row = format!("signal storm on {}", system.name);
                match system.mounted(fill, |mounted| scan(mounted, count)) {
                    Ok(scans) => machine::passed(&row, scans, &format!("scans of {count} entries complete")),
                    Err(missing) => machine::skip(&row, &missing),
                }
            });
        }
    });
}

fn fill(dir: &Path, names: impl Iterator<Item = usize>) {
    for name in names {
        mknodat(CWD, dir.join(name.to_string()), FileType::RegularFile, Mode::RUSR, 0).unwrap();
    }
}

/// The number of scans, all of them complete.
fn scan(mounted: &Mounted, count: usize) -> usize {
    let dir = lendir::open(&mounted.at).unwrap();
    let marker = EndMarker::of(&dir).unwrap();
    let _storm = Storm::begin();
    let rounds = if machine::runs_long() { 125 } else { 1 };
    for _ in 0..rounds {
        for capacity in CAPACITIES {
            let mut buffer = Buffer::with_capacity(capacity);
            for marker in [EndMarker::NONE, marker] {
                let mut entries = Entries::new(&dir, &mut buffer).with_end_marker(marker);
                entries.rewind().unwrap();
                let mut seen = vec![false; count];
                while let Some(entry) = entries.next().unwrap() {
                    // mkfs leaves a `lost+found`.
                    let Some(index) = entry.numeric_name() else { continue };
                    assert!(!mem::replace(&mut seen[index as usize], true), "{index} came twice");
                }
                let missing = seen.iter().filter(|is_seen| !**is_seen).count();
                assert_eq!(missing, 0, "entries lost on {} with {capacity} bytes and {marker:?}", mounted.system.name);
            }
        }
    }
    assert!(signals::received() > 0, "no signal came");
    rounds * CAPACITIES.len() * 2
}
