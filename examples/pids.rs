//! Lists the processes of this machine, each with its PID and command name: `pids [PROC]`. PROC is
//! `/proc` by default. `pids` itself is not listed. Names are escaped, because a newline in a name
//! could pass for another process, and an escape sequence could act on a terminal.
//!
//! `numeric_name` finds the PIDs. `/proc/PID/comm`, in which the kernel keeps 15 bytes of a
//! program's name, is opened relative to `/proc`. No process takes an allocation.

use rustix::fd::BorrowedFd;
use rustix::fs::{FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use std::ffi::CStr;
use std::fmt::Display;
use std::fs::{File, read_link};
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static FAILED: AtomicBool = AtomicBool::new(false);

fn main() -> ExitCode {
    let proc = std::env::args_os().nth(1).unwrap_or("/proc".into());
    let mut out = BufWriter::new(io::stdout().lock());
    match pids(proc.as_ref(), &mut out).and_then(|()| out.flush()) {
        Err(error) if Errno::from_io_error(&error) != Some(Errno::PIPE) => complain(error),
        _ => {}
    }
    ExitCode::from(u8::from(FAILED.load(Relaxed)))
}

fn complain(error: impl Display) {
    FAILED.store(true, Relaxed);
    let _ = writeln!(io::stderr(), "pids: {error}");
}

fn pids(root: &Path, out: &mut impl Write) -> io::Result<()> {
    let mut proc = lendir::read_dir(root)?;
    let myself = read_link(root.join("self")).ok();
    let mut comm = [0; 128];
    // No sort is needed, because procfs lists processes by ascending PID.
    while let Some(entry) = proc.next_or_report(complain) {
        if entry.numeric_name().is_none()
            || myself.as_ref().is_some_and(|myself| myself == entry.file_name())
        {
            continue;
        }
        match command_name(entry.dir_fd(), entry.name(), &mut comm) {
            Ok(name) => {
                out.write_all(entry.name())?;
                out.write_all(b" ")?;
                for part in name.utf8_chunks() {
                    let (valid, invalid) = (part.valid(), part.invalid());
                    write!(out, "{}{}", valid.escape_debug(), invalid.escape_ascii())?;
                }
                out.write_all(b"\n")?;
            }
            Err(error) => match Errno::from_io_error(&error) {
                // The process is gone, or hidden from this user (`hidepid`).
                Some(Errno::NOENT | Errno::SRCH | Errno::PERM | Errno::ACCESS) => {}
                _ => complain(entry.wrap_error(error)),
            },
        }
    }
    Ok(())
}

/// Reads `/proc/PID/comm`.
fn command_name<'b>(proc: BorrowedFd<'_>, pid: &[u8], comm: &'b mut [u8]) -> io::Result<&'b [u8]> {
    let mut path = [0; "4294967295/comm\0".len()];
    path[..pid.len()].copy_from_slice(pid);
    path[pid.len()..][..5].copy_from_slice(b"/comm");
    let path = CStr::from_bytes_until_nul(&path).expect("BUG: a PID of more than ten digits");
    // PROC may be any directory. Without `NONBLOCK`, opening a FIFO waits for a writer.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(proc, path, flags, Mode::empty())?);
    if !FileType::from_raw_mode(fstat(&file)?.st_mode).is_file() {
        return Err(io::Error::other("comm is not a regular file"));
    }
    let len = file.read(comm)?;
    Ok(comm[..len].strip_suffix(b"\n").unwrap_or(&comm[..len]))
}
