//! Reports the processes that appear (`+ PID NAME`) and vanish (`- PID`) between two scans of
//! /proc: `watch_pids [SECONDS]`. SECONDS is the time between two scans, 1 by default. The program
//! runs until Ctrl-C.
//!
//! It opens /proc once and reads it again after `rewind`. Once there is memory for every PID, a
//! scan allocates nothing.
//!
//! A process that has just started may still have the name of its parent. Control characters are
//! escaped.

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;
use std::time::Duration;
use std::{env, fs, mem, thread};

fn main() -> ExitCode {
    let seconds = env::args().nth(1).map_or(Ok(1.0), |seconds| seconds.parse());
    let Some(interval) = seconds.ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
    else {
        eprintln!("watch_pids: usage: watch_pids [SECONDS]");
        return ExitCode::FAILURE;
    };
    match watch(interval, &mut io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "watch_pids: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Watches until an error of reading or of output.
fn watch(interval: Duration, out: &mut impl Write) -> io::Result<()> {
    let mut proc = lendir::read_dir("/proc")?;
    let (mut before, mut now) = (Vec::<u32>::new(), Vec::<u32>::new());
    for scan in 1_u64.. {
        proc.rewind()?;
        now.clear();
        while let Some(entry) = proc.next()? {
            now.extend(entry.numeric_name());
        }
        if scan == 1 {
            writeln!(out, "watching {} processes", now.len())?;
        } else {
            // One loop can compare the scans, because procfs lists processes by ascending PID.
            let [mut olds, mut news] = [&before, &now].map(|pids| pids.iter().peekable());
            while let Some(pid) = olds.peek().into_iter().chain(news.peek()).min().copied() {
                match [&mut olds, &mut news].map(|pids| pids.next_if_eq(&pid)) {
                    [Some(_), None] => writeln!(out, "- {pid}")?,
                    [None, Some(_)] => writeln!(out, "+ {pid} {}", command_name(*pid))?,
                    _ => {}
                }
            }
        }
        mem::swap(&mut before, &mut now);
        thread::sleep(interval);
    }
    Ok(())
}

/// Returns the name of a process, or an empty one if the process is gone.
fn command_name(pid: u32) -> String {
    let comm = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    String::from_utf8_lossy(comm.trim_ascii_end()).escape_debug().to_string()
}
