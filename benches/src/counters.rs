//! The processor's counters, of this thread in user mode: what no other load of the machine reaches.
//!
//! [`Counted`] is a Markdown table of them. Where they cannot be read, as in most virtual machines, it says SKIPPED, and why.

#![allow(clippy::cast_precision_loss, reason = "statistics")]

use crate::contender::Contender;
use rustix::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::fmt::{self, Write};
use std::io;

/// One group: they count together, or not at all.
struct Counters {
    leader: OwnedFd,
    #[allow(dead_code, reason = "they count as long as they are open")]
    others: [OwnedFd; 2],
}

/// `PERF_COUNT_HW_CPU_CYCLES`, `_INSTRUCTIONS` and `_BRANCH_MISSES`.
const EVENTS: [u64; 3] = [0, 1, 5];

impl Counters {
    fn open() -> io::Result<Self> {
        let leader = open_event(EVENTS[0], -1)?;
        let others = [open_event(EVENTS[1], leader.as_raw_fd())?, open_event(EVENTS[2], leader.as_raw_fd())?];
        Ok(Self { leader, others })
    }

    fn read(&self) -> [u64; EVENTS.len()] {
        let mut bytes = [0; 8 * (1 + EVENTS.len())];
        assert_eq!(rustix::io::read(&self.leader, &mut bytes).expect("cannot read the counters"), bytes.len());
        std::array::from_fn(|event| {
            u64::from_ne_bytes(*bytes[8 * (1 + event)..].first_chunk().expect("BUG: not 8 bytes"))
        })
    }
}

/// See `perf_event_open(2)`.
fn open_event(event: u64, group: i32) -> io::Result<OwnedFd> {
    const ATTR_SIZE_VER0: u64 = 64;
    const FORMAT_GROUP: u64 = 1 << 3;
    const EXCLUDE_KERNEL_AND_HV: u64 = 1 << 5 | 1 << 6;
    // `type` (0, hardware) and `size` are the two halves of the first field.
    let type_and_size = if cfg!(target_endian = "little") { ATTR_SIZE_VER0 << 32 } else { ATTR_SIZE_VER0 };
    let attr = [type_and_size, event, 0, 0, FORMAT_GROUP, EXCLUDE_KERNEL_AND_HV, 0, 0];
    let (this_thread, any_cpu, close_on_exec) = (0, -1, 8);
    // SAFETY: the kernel reads 64 bytes of `attr`, as its size says, and returns a new descriptor or -1.
    unsafe {
        let fd = libc::syscall(libc::SYS_perf_event_open, attr.as_ptr(), this_thread, any_cpu, group, close_on_exec);
        let fd = i32::try_from(fd).expect("BUG: a descriptor beyond `i32`");
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd)) }
    }
}

/// User cycles and mispredicted branches of a reading: a row for each directory.
pub struct Counted {
    counters: io::Result<Counters>,
    /// How many are counted, after as many that are not.
    readings: u64,
    columns: Vec<&'static str>,
    rows: String,
}

impl Counted {
    pub fn new(readings: u64) -> Self {
        Self { counters: Counters::open(), readings, columns: Vec::new(), rows: String::new() }
    }

    /// Adds a row. All rows have the same contenders.
    pub fn measure(&mut self, label: &str, contenders: &mut [Contender<'_>]) {
        let Ok(counters) = &self.counters else { return };
        self.columns = contenders.iter().map(|contender| contender.name).collect();
        write!(self.rows, "| {label} |").expect("BUG: writing to a `String` failed");
        for contender in contenders {
            contender.time(self.readings);
            let before = counters.read();
            contender.time(self.readings);
            let after = counters.read();
            let each = |event: usize| (after[event] - before[event]) as f64 / self.readings as f64;
            let (cycles, misses) = (each(0), each(2));
            write!(self.rows, " {cycles:.0}, {misses:.1} |").expect("BUG: writing to a `String` failed");
        }
        self.rows.push('\n');
    }
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n### User cycles, mispredicted branches\n")?;
        if let Err(error) = &self.counters {
            return writeln!(f, "SKIPPED: perf_event_open: {error}");
        }
        let columns = self.columns.join(" | ");
        write!(f, "| | {columns} |\n|---|{}\n{}", "---|".repeat(self.columns.len()), self.rows)
    }
}
