//! Scans procfs: `numeric_name` finds the PIDs, and `/proc/PID/comm` is opened relative to `/proc`.

const HELP: &str = "\
Usage: pids [-qx] [--proc DIR] [--] [NAME]...

Lists the processes of this system by ascending PID, each with its command name, but never pids itself.

  NAME        list only processes whose command name contains one of these
  -x          list only processes whose whole command name is a NAME
  -q          print only PIDs
  --proc DIR  read the procfs mounted on DIR instead of /proc
  --help      print this text

The command name is that of /proc/PID/comm, where the kernel keeps 15 bytes of a program's name. Control characters are
printed as ?.
Exit status: 0 if a process was listed, 1 if none was, 2 for an error.
";

use lendir::OFlags;
use lendir::rustix::fd::BorrowedFd;
use lendir::rustix::fs::{Mode, openat};
use lendir::rustix::io::Errno;
use std::ffi::{CStr, OsStr, OsString};
use std::fmt::Display;
use std::fs::{File, read_link};
use std::io::{self, BufWriter, ErrorKind, Read, Write};
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
            let _ = writeln!(io::stderr(), "pids: {error}");
            ExitCode::from(2)
        }
    }
}

/// Runs with these arguments, and returns whether it listed a process.
fn pids(mut args: impl Iterator<Item = OsString>, out: &mut impl Write) -> io::Result<bool> {
    let (mut exact, mut quiet, mut root, mut names) = (false, false, PathBuf::from("/proc"), Vec::new());
    while let Some(arg) = args.next() {
        match arg.as_bytes() {
            b"--help" => return out.write_all(HELP.as_bytes()).map(|()| true),
            b"--proc" => root = args.next().ok_or_else(|| usage("--proc needs a directory"))?.into(),
            long if long.starts_with(b"--proc=") => root = OsStr::from_bytes(&long["--proc=".len()..]).into(),
            b"--" => names.extend(args.by_ref()),
            [b'-', b'-', ..] => return Err(usage(format!("unknown option {arg:?}"))),
            [b'-', letters @ ..] if !letters.is_empty() => {
                for letter in letters {
                    match letter {
                        b'q' => quiet = true,
                        b'x' => exact = true,
                        _ => return Err(usage(format!("unknown option -{}", letter.escape_ascii()))),
                    }
                }
            }
            _ => names.push(arg),
        }
    }
    if exact && names.is_empty() {
        return Err(usage("-x needs a NAME"));
    }
    let is_wanted = |name: &[u8]| {
        let is_in_name = |wanted: &[u8]| wanted.is_empty() || name.windows(wanted.len()).any(|part| part == wanted);
        let is_match =
            |wanted: &OsString| if exact { name == wanted.as_bytes() } else { is_in_name(wanted.as_bytes()) };
        names.is_empty() || names.iter().any(is_match)
    };

    let mut proc = lendir::read_dir(root.as_path())?;
    let myself = read_link(root.join("self")).ok();
    let mut comm = [0; 128];
    let mut found = false;
    // procfs lists processes by ascending PID, so there is nothing to sort.
    while let Some(entry) = proc.next()? {
        if entry.numeric_name().is_none() || myself.as_ref().is_some_and(|myself| myself == entry.name_os()) {
            continue;
        }
        if quiet && names.is_empty() {
            out.write_all(entry.name())?;
        } else {
            let Some(name) = command_name(entry.dir_fd(), entry.name(), &mut comm)? else { continue };
            if !is_wanted(name) {
                continue;
            }
            out.write_all(entry.name())?;
            if !quiet {
                name.iter_mut().filter(|byte| byte.is_ascii_control()).for_each(|byte| *byte = b'?');
                out.write_all(b" ")?;
                out.write_all(name)?;
            }
        }
        out.write_all(b"\n")?;
        found = true;
    }
    Ok(found)
}

/// Reads `/proc/PID/comm` without allocating. `None` if the process is gone, or hidden from this user (`hidepid`).
fn command_name<'b>(proc: BorrowedFd<'_>, pid: &[u8], comm: &'b mut [u8]) -> io::Result<Option<&'b mut [u8]>> {
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

fn usage(error: impl Display) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, format!("{error}; try --help"))
}
