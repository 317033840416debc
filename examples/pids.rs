//! Lists the processes of this machine, each with its PID and command name: `pids [PROC]`. PROC is
//! `/proc` by default. `pids` itself is not listed. Control characters are printed as `?`.
//!
//! `numeric_name` finds the PIDs. `/proc/PID/comm`, in which the kernel keeps 15 bytes of a
//! program's name, is opened relative to `/proc`.

use lendir::OFlags;
use lendir::rustix::fd::BorrowedFd;
use lendir::rustix::fs::{Mode, openat};
use lendir::rustix::io::Errno;
use std::ffi::CStr;
use std::fs::{File, read_link};
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let proc = std::env::args_os().nth(1).unwrap_or("/proc".into());
    let mut out = BufWriter::new(io::stdout().lock());
    match pids(proc.as_ref(), &mut out).and_then(|()| out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "pids: {error}");
            ExitCode::FAILURE
        }
    }
}

fn pids(root: &Path, out: &mut impl Write) -> io::Result<()> {
    let mut proc = lendir::read_dir(root)?;
    let myself = read_link(root.join("self")).ok();
    let mut comm = [0; 128];
    // No sort is needed, because procfs lists processes by ascending PID.
    while let Some(entry) = proc.next()? {
        if entry.numeric_name().is_none()
            || myself.as_ref().is_some_and(|myself| myself == entry.name_os())
        {
            continue;
        }
        let Some(name) = command_name(entry.dir_fd(), entry.name(), &mut comm)? else { continue };
        name.iter_mut().filter(|byte| byte.is_ascii_control()).for_each(|byte| *byte = b'?');
        for part in [entry.name(), b" ", name, b"\n"] {
            out.write_all(part)?;
        }
    }
    Ok(())
}

/// Reads `/proc/PID/comm` without an allocation. Returns `None` if the process is gone, or hidden
/// from this user (`hidepid`).
fn command_name<'b>(
    proc: BorrowedFd<'_>,
    pid: &[u8],
    comm: &'b mut [u8],
) -> io::Result<Option<&'b mut [u8]>> {
    let mut path = [0; "4294967295/comm\0".len()];
    path[..pid.len()].copy_from_slice(pid);
    path[pid.len()..][..5].copy_from_slice(b"/comm");
    let path = CStr::from_bytes_until_nul(&path).expect("BUG: a PID of more than ten digits");
    let file = openat(proc, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map(File::from);
    match file.map_err(io::Error::from).and_then(|mut file| file.read(comm)) {
        Ok(len) => {
            let len = len - usize::from(comm[..len].ends_with(b"\n"));
            Ok(Some(&mut comm[..len]))
        }
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::NOENT | Errno::SRCH | Errno::PERM | Errno::ACCESS) => Ok(None),
            _ => Err(error),
        },
    }
}
