//! Adds up the disk usage of trees, on all cores: `second_visits`, and a state that each directory passes down.

const HELP: &str = "\
Usage: du [-hksx] [-d N] [-j N] [--] [PATH]...

Prints the disk usage of each directory, with everything below it, in KiB. PATH is . by default.

  -d N    print only directories at most N levels below PATH; -s means -d 0
  -h      print sizes as 4.0K, 17.3M or 1.2G, rounded up; -k, the default, prints KiB
  -x      do not enter a directory that a file system is mounted on
  -j N    use N threads; 0, the default: one for each core, at least 8
  --help  print this text

A file with several links counts once, as does a directory in two PATHs or mounts. With several threads, chance decides where it
counts, and the order of lines. Control characters are printed as ?. Exit status: 0, or 1 for an error.
";

use lendir::rustix::fs::{AtFlags, CWD, Statx, StatxFlags, statx};
use lendir::{Error, FileType, Walk};
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::io::{self, BufWriter, ErrorKind, Stdout, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

fn main() -> ExitCode {
    match du(std::env::args_os().skip(1)) {
        Ok(is_complete) => ExitCode::from(u8::from(!is_complete)),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "du: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs with these arguments, and returns whether it could read everything. The error is one of output or of usage.
fn du(mut args: impl Iterator<Item = OsString>) -> io::Result<bool> {
    let (mut human, mut max_depth, mut threads, mut paths) = (false, usize::MAX, 0, Vec::new());
    let mut options = Walk::options().follow_roots(false).second_visits(true);
    while let Some(arg) = args.next() {
        match arg.as_bytes() {
            b"--help" => return io::stdout().write_all(HELP.as_bytes()).map(|()| true),
            b"--" => paths.extend(args.by_ref()),
            [b'-', b'd', value @ ..] => max_depth = number("-d", value, &mut args)?,
            [b'-', b'j', value @ ..] => threads = number("-j", value, &mut args)?,
            [b'-', letters @ ..] if !letters.is_empty() => {
                for letter in letters {
                    match letter {
                        b'h' | b'k' => human = *letter == b'h',
                        b's' => max_depth = 0,
                        b'x' => options = options.same_mount(true),
                        _ => return Err(usage(format!("unknown option {arg:?}"))),
                    }
                }
            }
            _ => paths.push(arg),
        }
    }
    let paths = if paths.is_empty() { vec![".".into()] } else { paths };

    let du = Du { human, out: BufWriter::new(io::stdout()).into(), seen: Mutex::default(), failed: false.into() };
    // The sum of the directory with everything below it, and that of its parent. `None` if it was counted before.
    let parts = options.with_state(None::<[Arc<AtomicU64>; 2]>).open_all(paths).spread(threads, |walk| {
        while let Some(mut dir) = walk.next_ok(|error| du.error(&error)) {
            if !dir.is_second_visit() {
                let above = dir.state_mut().take().map(|[above, _]| above).unwrap_or_default();
                let mut blocks = match dir.statx(StatxFlags::BASIC_STATS) {
                    Ok(stat) if du.is_new(&stat) => stat.stx_blocks,
                    Ok(_) => {
                        dir.skip_all();
                        continue;
                    }
                    Err(error) => {
                        du.complain(&error);
                        0 // what is below it counts all the same
                    }
                };
                while let Some(entry) = dir.next_ok(|error| du.complain(&error)) {
                    if matches!(entry.file_type(), Ok(FileType::Directory)) {
                        continue; // it adds its own size when it is visited
                    }
                    match entry.statx(StatxFlags::BASIC_STATS) {
                        Ok(stat) if stat.stx_nlink == 1 || du.is_new(&stat) => blocks += stat.stx_blocks,
                        Ok(_) => {}
                        Err(error) => du.complain(&error),
                    }
                }
                *dir.state_mut() = Some([Arc::new(blocks.into()), above]);
            } else if let Some([blocks, above]) = dir.state() {
                above.fetch_add(blocks.load(Relaxed), Relaxed);
                if dir.depth() <= max_depth {
                    du.print(blocks.load(Relaxed), dir.path())?;
                }
            }
        }
        Ok(())
    });
    parts.into_iter().collect::<io::Result<()>>()?;
    du.out.into_inner().unwrap().flush().map(|()| !du.failed.into_inner())
}

/// The rest of the option, as in -j2, or else the next argument.
fn number(option: &str, value: &[u8], args: &mut impl Iterator<Item = OsString>) -> io::Result<usize> {
    let value = if value.is_empty() { args.next() } else { Some(OsStr::from_bytes(value).into()) };
    value.and_then(|value| value.to_str()?.parse().ok()).ok_or_else(|| usage(format!("{option} needs a number")))
}

fn usage(error: impl Display) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, format!("{error}; try --help"))
}

struct Du {
    human: bool,
    out: Mutex<BufWriter<Stdout>>,
    seen: Mutex<HashSet<(u32, u32, u64)>>,
    failed: AtomicBool,
}

impl Du {
    fn is_new(&self, stat: &Statx) -> bool {
        self.seen.lock().unwrap().insert((stat.stx_dev_major, stat.stx_dev_minor, stat.stx_ino))
    }

    /// A root that is not a directory is printed, not reported as an error. If printing fails, `flush` returns the error.
    fn error(&self, error: &Error) {
        let query = || statx(CWD, error.path(), AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BASIC_STATS);
        let is_file = |stat: &Statx| FileType::from_raw_mode(stat.stx_mode.into()) != FileType::Directory;
        match (error.depth() == 0).then(query) {
            Some(Ok(stat)) if is_file(&stat) => {
                if stat.stx_nlink == 1 || self.is_new(&stat) {
                    let _ = self.print(stat.stx_blocks, error.path());
                }
            }
            _ => self.complain(error),
        }
    }

    fn print(&self, blocks: u64, path: &Path) -> io::Result<()> {
        let tenths = |power: usize| (blocks * 5).div_ceil(1 << (10 * power));
        let size = match (0..6).find(|power| tenths(*power) < 10240) {
            Some(n) if self.human => format!("{}.{}{}", tenths(n) / 10, tenths(n) % 10, &"KMGTPE"[n..=n]),
            _ => blocks.div_ceil(2).to_string(),
        };
        writeln!(self.out.lock().unwrap(), "{size}\t{}", path.to_string_lossy().replace(char::is_control, "?"))
    }

    fn complain(&self, error: &Error) {
        self.failed.store(true, Relaxed);
        let _ = writeln!(io::stderr(), "du: {error}");
    }
}
