//! Reports processes that appear (`+ PID NAME`) and vanish (`- PID`) until Ctrl-C: `watch [-n SECONDS]`.
//!
//! Opens /proc once and scans it by `rewind`; a scan allocates nothing once there is room for every PID. Control characters
//! of a name are printed as `?`. At the end it says what a scan cost.

use lendir::{Buffer, Entries};
use rustix::fs::{Mode, OFlags, openat};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1).map(|arg| arg.into_string().unwrap_or_default());
    let interval = match (args.next().as_deref(), args.next(), args.next()) {
        (None, ..) => Some(Duration::from_secs(1)),
        (Some("-n"), Some(seconds), None) => seconds.parse().ok().and_then(|s| Duration::try_from_secs_f64(s).ok()),
        _ => None,
    };
    let Some(interval) = interval else {
        eprintln!("usage: watch [-n SECONDS]");
        return ExitCode::from(2);
    };
    match watch(interval) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            eprintln!("watch: {error}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}

fn watch(interval: Duration) -> io::Result<()> {
    let signals = Signals::block();
    let mut out = io::stdout().lock();
    let proc = lendir::open("/proc")?;
    let mut buffer = Buffer::new();
    let mut entries = Entries::new(&proc, &mut buffer);
    let (mut before, mut now) = (Vec::<u32>::new(), Vec::<u32>::new());
    let (mut scans, mut spent) = (0, Duration::ZERO);
    loop {
        let begin = Instant::now();
        entries.rewind()?;
        now.clear();
        while let Some(entry) = entries.next()? {
            now.extend(entry.numeric_name());
        }
        spent += begin.elapsed();
        scans += 1;

        if scans == 1 {
            writeln!(out, "watching {} processes", now.len())?;
        } else {
            // procfs lists processes in ascending order, so that a PID is found by binary search.
            for pid in before.iter().filter(|pid| now.binary_search(pid).is_err()) {
                writeln!(out, "- {pid}")?;
            }
            for pid in now.iter().filter(|pid| before.binary_search(pid).is_err()) {
                let mut comm = [0; 128];
                write!(out, "+ {pid} ")?;
                out.write_all(command_name(&proc, *pid, &mut comm))?;
                writeln!(out)?;
            }
        }
        std::mem::swap(&mut before, &mut now);
        if signals.arrived_within(interval) {
            break;
        }
    }
    eprintln!("{scans} scans took {:?} each; in the last were {} processes", spent / scans, before.len());
    Ok(())
}

/// Empty for a process that is gone already.
fn command_name(proc: impl AsFd, pid: u32, comm: &mut [u8]) -> &[u8] {
    let file = openat(proc, format!("{pid}/comm"), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let len = file.map_or(0, |file| File::from(file).read(comm).unwrap_or(0));
    let len = len - usize::from(comm[..len].ends_with(b"\n"));
    for byte in comm[..len].iter_mut().filter(|byte| byte.is_ascii_control()) {
        *byte = b'?';
    }
    &comm[..len]
}

/// SIGINT and SIGTERM, kept waiting until they are asked for: no handler, no flag.
struct Signals(libc::sigset_t);

impl Signals {
    fn block() -> Self {
        // SAFETY: all zeros is a `sigset_t`, and the calls write to no other memory.
        unsafe {
            let mut set = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, libc::SIGINT);
            libc::sigaddset(&raw mut set, libc::SIGTERM);
            libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            Self(set)
        }
    }

    /// Sleeps that long, or until one of them arrives.
    fn arrived_within(&self, time: Duration) -> bool {
        let limit = libc::timespec {
            tv_sec: time.as_secs().try_into().unwrap_or(i32::MAX.into()),
            tv_nsec: i32::try_from(time.subsec_nanos()).expect("BUG: not below a thousand million").into(),
        };
        // SAFETY: both pointers are to valid values, and a null `info` is allowed.
        unsafe { libc::sigtimedwait(&raw const self.0, std::ptr::null_mut(), &raw const limit) > 0 }
    }
}
