//! Lists the processes of a running system, ascending by PID: `pids [-q] [--proc DIR] [NAME]`.
//!
//! Prints the PID and the command name of each process, or of those whose command name contains NAME; with `-q` the PID
//! alone. DIR is another procfs. Control characters in a name are printed as `?`, as ps does. Exit status: 0 if there was
//! one, 1 if there was none, 2 for trouble.

use lendir::{Buffer, Entries};
use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use std::ffi::{CStr, OsString};
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut out = BufWriter::new(io::stdout().lock());
    match pids(std::env::args_os().skip(1), &mut out).and_then(|found| out.flush().map(|()| found)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("pids: {error}");
            ExitCode::from(2)
        }
    }
}

/// Does what the arguments ask for, and tells whether there was a process to print.
pub(crate) fn pids(mut args: impl Iterator<Item = OsString>, out: &mut impl Write) -> io::Result<bool> {
    let (mut quiet, mut root, mut wanted) = (false, PathBuf::from("/proc"), OsString::new());
    while let Some(arg) = args.next() {
        match arg.as_bytes() {
            b"-q" => quiet = true,
            b"--proc" => root = args.next().ok_or_else(usage)?.into(),
            [b'-', ..] => return Err(usage()),
            _ if wanted.is_empty() => wanted = arg,
            _ => return Err(usage()),
        }
    }

    let proc = lendir::open(&root).map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", root.display())))?;
    let mut buffer = Buffer::new();
    let mut entries = Entries::new(&proc, &mut buffer);
    let mut comm = [0; 128];
    let mut found = false;
    // procfs itself lists processes in ascending order, so there is nothing to sort.
    while let Some(entry) = entries.next()? {
        let Some(pid) = entry.numeric_name().map(|_| entry.name()) else { continue };
        if quiet && wanted.is_empty() {
            out.write_all(pid)?;
        } else {
            let Some(name) = command_name(&proc, pid, &mut comm)? else { continue };
            if !contains(name, wanted.as_bytes()) {
                continue;
            }
            out.write_all(pid)?;
            if !quiet {
                out.write_all(b" ")?;
                out.write_all(name)?;
            }
        }
        out.write_all(b"\n")?;
        found = true;
    }
    Ok(found)
}

/// What `/proc/PID/comm` says, but for control characters; `None` when the process is gone, or hidden from us (`hidepid`).
fn command_name<'b>(proc: &OwnedFd, pid: &[u8], comm: &'b mut [u8]) -> io::Result<Option<&'b [u8]>> {
    let mut path = [0; "4294967295/comm\0".len()];
    path[..pid.len()].copy_from_slice(pid);
    path[pid.len()..][..5].copy_from_slice(b"/comm");
    let path = CStr::from_bytes_until_nul(&path).expect("BUG: a PID has at most ten digits");
    let read = openat(proc.as_fd(), path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .map_err(io::Error::from)
        .and_then(|file| File::from(file).read(comm));
    match read {
        Ok(len) => {
            let len = len - usize::from(comm[..len].ends_with(b"\n"));
            comm[..len].iter_mut().filter(|byte| byte.is_ascii_control()).for_each(|byte| *byte = b'?');
            Ok(Some(&comm[..len]))
        }
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::NOENT | Errno::SRCH | Errno::PERM | Errno::ACCESS) => Ok(None),
            _ => Err(io::Error::new(error.kind(), format!("{}: {error}", path.to_string_lossy()))),
        },
    }
}

fn contains(name: &[u8], wanted: &[u8]) -> bool {
    wanted.is_empty() || name.windows(wanted.len()).any(|part| part == wanted)
}

fn usage() -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, "usage: pids [-q] [--proc DIR] [NAME]")
}
