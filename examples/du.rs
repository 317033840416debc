//! Adds up what trees take on disk, on all cores: `Walk::spread` and `post_order`, and one `statx` an entry.

const HELP: &str = "\
Usage: du [-asx] [-j THREADS] [--] [PATH]...

Prints how many KiB each directory takes on disk with everything below it, as du -k does. PATH is . by default.

  -a          print files too
  -s          print only the total of each PATH
  -x          stay on the file system of PATH
  -j THREADS  use this many threads; by default one for each core
  --help      print this text

A file with several links is counted once, where it is found first: in a directory's own entries, then below it. With several
threads, chance decides that and the order of lines, but not the total of a PATH. On a terminal, control characters are printed
as ?. Exit status: 0, or 1 for an error.
";

use lendir::{Dir, Walk};
use rustix::fd::BorrowedFd;
use rustix::fs::{AtFlags, CWD, FileType, Statx, StatxFlags, statx};
use rustix::path::Arg;
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Stdout, Write};
use std::num::NonZero;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

fn main() -> ExitCode {
    match du(std::env::args_os().skip(1)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "du: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Does what the arguments ask for, and returns whether it could read all of it. An error is one of output or of usage.
fn du(mut args: impl Iterator<Item = OsString>) -> io::Result<bool> {
    let (mut lines, mut one_device, mut paths) = (Lines::Directories, false, Vec::new());
    let mut threads = thread::available_parallelism().map_or(1, NonZero::get);
    while let Some(arg) = args.next() {
        match arg.as_bytes() {
            b"--help" => return io::stdout().write_all(HELP.as_bytes()).map(|()| true),
            b"--" => paths.extend(args.by_ref()),
            [b'-', letters @ ..] if !letters.is_empty() => {
                for letter in letters {
                    match letter {
                        b'a' => lines = Lines::All,
                        b's' => lines = Lines::Totals,
                        b'x' => one_device = true,
                        b'j' => threads = number(&args.next().unwrap_or_default())?,
                        _ => return Err(usage(format!("unknown option {arg:?}"))),
                    }
                }
            }
            _ => paths.push(arg),
        }
    }
    if paths.is_empty() {
        paths.push(".".into());
    }

    let (seen, sums, keys, visited, failed) = Default::default();
    let out = Mutex::new(BufWriter::with_capacity(1 << 16, io::stdout()));
    let (many, terminal) = (paths.len() > 1, io::stdout().is_terminal());
    let run = Run { lines, many, threads, terminal, seen, sums, keys, out, visited, failed };
    run.with_progress(|| paths.iter().try_for_each(|path| run.path(path.as_ref(), one_device)))?;
    run.out.lock().unwrap().flush()?;
    Ok(!run.failed.into_inner())
}

fn number(threads: &OsStr) -> io::Result<usize> {
    let number = threads.to_str().and_then(|text| text.parse::<NonZero<u8>>().ok());
    number.map(|number| number.get().into()).ok_or_else(|| usage("-j needs a number from 1 to 255"))
}

fn usage(error: impl Display) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, format!("{error}; try --help"))
}

#[derive(PartialEq)]
enum Lines {
    Totals,
    Directories,
    All,
}

/// What is asked for, and what the threads share. For most entries they take no lock.
struct Run {
    lines: Lines,
    /// The trees of several paths can overlap.
    many: bool,
    threads: usize,
    terminal: bool,
    /// What may come again.
    seen: Mutex<HashSet<(Device, u64)>>,
    /// For each directory that has not had its second visit: its own blocks, those of its files, and the sums of the
    /// directories in it that have had theirs.
    sums: Mutex<HashMap<Key, u64>>,
    keys: [RandomState; 2],
    out: Mutex<BufWriter<Stdout>>,
    /// Directories.
    visited: AtomicU64,
    failed: AtomicBool,
}

type Device = (u32, u32);

/// 128 bits that stand for a path. The paths themselves would take memory by the square of the depth.
type Key = [u64; 2];

impl Run {
    fn path(&self, path: &Path, one_device: bool) -> io::Result<()> {
        let Some(root) = self.count(CWD, path, None, || path.into()) else { return Ok(()) };
        let mut blocks = root.stx_blocks;
        if let Some(walk) = is_dir(&root).then(|| Walk::open(path)).and_then(|walk| self.value(walk)) {
            let walk = if self.lines == Lines::Totals { walk } else { walk.post_order(true) };
            let only = one_device.then(|| device(&root));
            for part in walk.spread(self.threads, |walk| self.part(walk, only)) {
                blocks += part?;
            }
        }
        self.print(blocks, path)
    }

    /// Visits the directories that `walk` lends to this thread. Returns the blocks of all their entries.
    fn part(&self, walk: &mut Walk, only: Option<Device>) -> io::Result<u64> {
        let mut blocks = 0;
        while let Some(dir) = walk.next().transpose() {
            match self.value(dir) {
                Some(dir) if dir.is_second_visit() => self.leave(&dir)?,
                Some(dir) => blocks += self.enter(dir, only)?,
                None => {}
            }
        }
        Ok(blocks)
    }

    fn enter(&self, mut dir: Dir<'_>, only: Option<Device>) -> io::Result<u64> {
        self.visited.fetch_add(1, Relaxed);
        let (path, mut files, mut dirs, mut below) = (dir.path(), 0, 0, Vec::new());
        while let Some(entry) = dir.next().transpose() {
            let Some(entry) = self.value(entry) else { continue };
            let entry_path = || path.join(entry.name_os());
            match self.count(entry.dir(), entry.name_cstr(), only, entry_path) {
                None => dir.skip_entry(),
                Some(stat) if is_dir(&stat) => {
                    dirs += stat.stx_blocks;
                    if self.lines != Lines::Totals {
                        below.push((self.key(&entry_path()), stat.stx_blocks));
                    }
                }
                Some(stat) => {
                    files += stat.stx_blocks;
                    if self.lines == Lines::All {
                        self.print(stat.stx_blocks, &entry_path())?;
                    }
                }
            }
        }
        if self.lines != Lines::Totals {
            let mut sums = self.sums.lock().unwrap();
            sums.extend(below);
            if let Some(sum) = sums.get_mut(&self.key(path)) {
                *sum += files;
            }
        }
        Ok(files + dirs)
    }

    /// All below the directory has been counted, by whichever threads: adds it to the directory above.
    fn leave(&self, dir: &Dir<'_>) -> io::Result<()> {
        let mut sums = self.sums.lock().unwrap();
        let Some(blocks) = sums.remove(&self.key(dir.path())) else { return Ok(()) }; // the root, whose sum the threads return
        if let Some(sum) = dir.path().parent().and_then(|above| sums.get_mut(&self.key(above))) {
            *sum += blocks;
        }
        drop(sums);
        self.print(blocks, dir.path())
    }

    /// Asks what a file takes. `None` if it was counted before, is not on the `only` device, or cannot be asked.
    fn count(
        &self,
        dir: BorrowedFd<'_>,
        name: impl Arg,
        only: Option<Device>,
        path: impl Fn() -> PathBuf,
    ) -> Option<Statx> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        let mask = StatxFlags::TYPE | StatxFlags::NLINK | StatxFlags::INO | StatxFlags::BLOCKS;
        let answer = statx(dir, name, flags, mask).map_err(|error| format!("{}: {error}", path().display()));
        self.value(answer).filter(|stat| {
            let may_come_again = self.many || (stat.stx_nlink > 1 && !is_dir(stat));
            only.is_none_or(|only| only == device(stat))
                && (!may_come_again || self.seen.lock().unwrap().insert((device(stat), stat.stx_ino)))
        })
    }

    fn key(&self, path: &Path) -> Key {
        self.keys.each_ref().map(|key| key.hash_one(path.as_os_str()))
    }

    fn print(&self, blocks: u64, path: &Path) -> io::Result<()> {
        let mut out = self.out.lock().unwrap();
        write!(out, "{}\t", blocks.div_ceil(2))?; // a block has 512 bytes
        if self.terminal {
            return writeln!(out, "{}", without_controls(path.display()));
        }
        out.write_all(path.as_os_str().as_bytes())?;
        out.write_all(b"\n")
    }

    /// The value, or else the error is reported: the sums are not complete.
    fn value<T>(&self, result: Result<T, impl Display>) -> Option<T> {
        let report = |error| {
            self.failed.store(true, Relaxed);
            let _ = writeln!(io::stderr(), "du: {}", without_controls(error));
        };
        result.map_err(report).ok()
    }

    /// Shows each second, until `work` is done, how far it is. Lines on a terminal show it, too.
    fn with_progress<T>(&self, work: impl FnOnce() -> T) -> T {
        if !io::stderr().is_terminal() || (self.terminal && self.lines != Lines::Totals) {
            return work();
        }
        let (working, done) = channel::<()>();
        thread::scope(|scope| {
            scope.spawn(move || {
                while done.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
                    let _ = write!(io::stderr(), "\r{} directories", self.visited.load(Relaxed));
                }
                let _ = write!(io::stderr(), "\r\x1b[K"); // clears the line
            });
            let result = work();
            drop(working);
            result
        })
    }
}

fn device(stat: &Statx) -> Device {
    (stat.stx_dev_major, stat.stx_dev_minor)
}

fn is_dir(stat: &Statx) -> bool {
    FileType::from_raw_mode(stat.stx_mode.into()) == FileType::Directory
}

/// Control characters in a name could be commands to a terminal.
fn without_controls(text: impl Display) -> String {
    text.to_string().replace(char::is_control, "?")
}
