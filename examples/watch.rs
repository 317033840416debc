//! Opens /proc once and rescans it by `rewind`: once there is room for every PID, a scan allocates nothing.

const HELP: &str = "\
Usage: watch [-n SECONDS] [-c COUNT]

Reports processes that appear (+ PID NAME) and vanish (- PID) between two scans of /proc, until Ctrl-C.

  -n SECONDS  wait this long between two scans, 1 second by default
  -c COUNT    end after COUNT scans, and print to standard error how long they took
  --help      print this text

A process that has just started may still have the name of its parent. Control characters are printed as ?.
Exit status: 0, or 2 for an error.
";

use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::{Duration, Instant};
use std::{fs, mem, thread};

fn main() -> ExitCode {
    match run(std::env::args_os().skip(1), &mut io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "watch: {error}");
            ExitCode::from(2)
        }
    }
}

/// Runs with these arguments.
fn run(mut args: impl Iterator<Item = OsString>, out: &mut impl Write) -> io::Result<()> {
    let (mut interval, mut count) = (Duration::from_secs(1), None);
    while let Some(arg) = args.next() {
        match arg.as_bytes() {
            b"--help" => return out.write_all(HELP.as_bytes()),
            b"--" => break,
            [b'-', letter @ (b'n' | b'c'), value @ ..] => {
                // -n2 as well as -n 2
                let value = if value.is_empty() { args.next() } else { Some(OsStr::from_bytes(value).into()) };
                if *letter == b'n' {
                    let seconds = number(value).and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
                    interval = seconds.ok_or_else(|| usage("-n needs a number of seconds"))?;
                } else {
                    let scans = number(value).filter(|scans| *scans > 0);
                    count = Some(scans.ok_or_else(|| usage("-c needs a number of scans, 1 or more"))?);
                }
            }
            [b'-', b'-', ..] => return Err(usage(format!("unknown option {arg:?}"))),
            [b'-', letter, ..] => return Err(usage(format!("unknown option -{}", letter.escape_ascii()))),
            _ => return Err(usage(format!("unexpected argument {arg:?}"))),
        }
    }
    match args.next() {
        None => watch(interval, count, out),
        Some(arg) => Err(usage(format!("unexpected argument {arg:?}"))),
    }
}

fn number<T: FromStr>(arg: Option<OsString>) -> Option<T> {
    arg?.to_str()?.parse().ok()
}

fn usage(error: impl Display) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, format!("{error}; try --help"))
}

fn watch(interval: Duration, count: Option<u32>, out: &mut impl Write) -> io::Result<()> {
    let mut proc = lendir::read_dir("/proc")?;
    let (mut before, mut now) = (Vec::<u32>::new(), Vec::<u32>::new());
    let mut spent = Duration::ZERO;
    for scan in 1_u64.. {
        let begin = Instant::now();
        proc.rewind()?;
        now.clear();
        while let Some(entry) = proc.next()? {
            now.extend(entry.numeric_name());
        }
        spent += begin.elapsed();

        if scan == 1 {
            writeln!(out, "watching {} processes", now.len())?;
        } else {
            // procfs lists processes by ascending PID, so one loop goes through both scans.
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
        if count.is_some_and(|count| scan == u64::from(count)) {
            break;
        }
        thread::sleep(interval);
    }
    match count {
        Some(1) => writeln!(io::stderr(), "1 scan took {spent:?}"),
        Some(count) => writeln!(io::stderr(), "{count} scans took {:?} each", spent / count),
        None => Ok(()),
    }
}

/// Empty for a process that is gone.
fn command_name(pid: u32) -> String {
    let comm = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    String::from_utf8_lossy(comm.strip_suffix(b"\n").unwrap_or(&comm)).replace(char::is_control, "?")
}
