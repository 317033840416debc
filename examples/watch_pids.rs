//! Reports the processes that appear (`+ PID NAME`) and vanish (`- PID`) between two scans of
//! /proc: `watch_pids [SECONDS]`. SECONDS is the time between two scans, 1 by default. The program
//! runs until Ctrl-C.
//!
//! It opens /proc once and reads it again after `rewind`. Once there is memory for every PID, a
//! scan allocates nothing unless a process has appeared.
//!
//! A process that has just started may still have the name of its parent. Names are escaped, because
//! a newline in a name could pass for another process.

use rustix::io::Errno;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;
use std::{env, fs, mem, thread};

fn main() -> ExitCode {
    let seconds = env::args_os().nth(1).map_or(Some(1.0), |seconds| seconds.to_str()?.parse().ok());
    let interval = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let usage = || io::Error::other("usage: watch_pids [SECONDS]");
    match interval.ok_or_else(usage).and_then(|interval| watch(interval, &mut io::stdout().lock()))
    {
        Err(error) if Errno::from_io_error(&error) != Some(Errno::PIPE) => {
            let _ = writeln!(io::stderr(), "watch_pids: {error}");
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
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
    String::from_utf8_lossy(comm.strip_suffix(b"\n").unwrap_or(&comm)).escape_debug().to_string()
}
