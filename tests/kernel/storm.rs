//! Scans under a storm of signals: a timer interrupts every 300 µs, and no scan loses an entry. A process of its own,
//! because the signal is everybody's.

mod machine;
mod mounted;

use lendir::{Buffer, EndMarker, Entries, FileType};
use mounted::{FileSystem, Mounted, Part};
use rustix::fs::{CWD, Mode, mknodat};
use std::cell::Cell;
use std::path::Path;
use std::{mem, ptr, thread};

const CAPACITIES: [usize; 4] = [0, Buffer::DEFAULT_CAPACITY, 128 * 1024, 1024 * 1024];

#[test]
fn every_scan_is_complete() {
    machine::watchdog();
    thread::scope(|scope| {
        for system in FileSystem::local() {
            scope.spawn(move || {
                // `ext4 ^dir_index` takes seconds to fill: the plain form has a fifth there.
                let count = if system.is_slow_to_fill() && !machine::runs_long() { 4_000 } else { 20_000 };
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
                assert_eq!(missing, 0, "{} with {capacity} bytes and {marker:?}", mounted.system.name);
            }
        }
    }
    assert!(SIGNALS.get() > 0, "no signal came");
    rounds * CAPACITIES.len() * 2
}

/// A timer that interrupts the thread which began it, and no other.
struct Storm(libc::timer_t);

thread_local! {
    static SIGNALS: Cell<u64> = const { Cell::new(0) };
}

extern "C" fn count_signal(_: libc::c_int) {
    SIGNALS.set(SIGNALS.get() + 1);
}

impl Storm {
    fn begin() -> Self {
        // SAFETY: zeros are valid for these plain C structures, which outlive the calls that read them; the action only
        // touches a thread-local without a destructor.
        unsafe {
            let mut action: libc::sigaction = mem::zeroed();
            action.sa_sigaction = count_signal as extern "C" fn(libc::c_int) as libc::sighandler_t;
            assert_eq!(libc::sigaction(libc::SIGUSR1, &raw const action, ptr::null_mut()), 0);

            let mut event: libc::sigevent = mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = libc::SIGUSR1;
            event.sigev_notify_thread_id = libc::gettid();
            let mut timer = ptr::null_mut();
            assert_eq!(libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer), 0);

            let every = libc::timespec { tv_sec: 0, tv_nsec: 300_000 };
            let spec = libc::itimerspec { it_interval: every, it_value: every };
            assert_eq!(libc::timer_settime(timer, 0, &raw const spec, ptr::null_mut()), 0);
            Self(timer)
        }
    }
}

impl Drop for Storm {
    fn drop(&mut self) {
        // SAFETY: the timer is this one's own.
        unsafe { libc::timer_delete(self.0) };
    }
}
