//! Adds up what trees take on disk, on all cores: `Walk::spread`, `post_order`, and a value that goes down with each directory.

const HELP: &str = "\
Usage: du [-achsx] [-d N] [-j N] [--] [PATH]...

Prints how many KiB each directory takes on disk with everything below it, as du -k does. PATH is . by default.

  -a      print files too
  -c      print the total of all PATHs at the end
  -d N    print what is at most N levels below PATH
  -h      print sizes as 4.0K, 17M or 1.2G, rounded up
  -s      print only PATH itself, as -d 0
  -x      stay on the file system of PATH
  -j N    use N threads; by default one for each core
  --help  print this text

A file with several links is counted once, where it is found first: in a directory's own entries, then below it. A directory
that is mounted below itself is counted once. With several threads, chance decides where a file is counted and the order of
lines, but not the total of a PATH. On a terminal, control characters are printed as ?. Exit status: 0, or 1 for an error.
";

use lendir::rustix::fd::BorrowedFd;
use lendir::rustix::fs::{AtFlags, CWD, FileType, Statx, StatxFlags, statx};
use lendir::rustix::path::Arg;
use lendir::{Dir, OFlags, Walk};
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Stdout, Write};
use std::mem;
use std::num::NonZero;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
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
    let (mut all, mut total, mut human, mut one_device) = (false, false, false, false);
    let (mut summary, mut depth, mut paths) = (false, None, Vec::new());
    let mut threads = thread::available_parallelism().map_or(1, NonZero::get);
    while let Some(arg) = args.next() {
        match arg.as_bytes() {
            b"--help" => return io::stdout().write_all(HELP.as_bytes()).map(|()| true),
            b"--" => paths.extend(args.by_ref()),
            [b'-', b'-', ..] => return Err(usage(format!("unknown option {arg:?}"))),
            [b'-', letters @ ..] if !letters.is_empty() => {
                let mut letters = letters;
                while let [letter, rest @ ..] = letters {
                    letters = rest;
                    match letter {
                        b'a' => all = true,
                        b'c' => total = true,
                        b'd' => {
                            let levels = number(value(&mut letters, &mut args));
                            depth = Some(levels.ok_or_else(|| usage("-d needs a number of levels"))?);
                        }
                        b'h' => human = true,
                        b's' => summary = true,
                        b'x' => one_device = true,
                        b'j' => {
                            let count = number::<NonZero<u8>>(value(&mut letters, &mut args));
                            threads = count.ok_or_else(|| usage("-j needs a number from 1 to 255"))?.get().into();
                        }
                        _ => return Err(usage(format!("unknown option -{}", letter.escape_ascii()))),
                    }
                }
            }
            _ => paths.push(arg),
        }
    }
    if summary && all {
        return Err(usage("-s prints PATH alone, -a all below it"));
    }
    if summary && depth.is_some_and(|depth| depth > 0) {
        return Err(usage("-s prints PATH alone, as -d 0"));
    }
    if paths.is_empty() {
        paths.push(".".into());
    }

    let depth = if summary { 0 } else { depth.unwrap_or(usize::MAX) };
    let (seen, visited, failed) = Default::default();
    let out = Mutex::new(BufWriter::with_capacity(1 << 16, io::stdout()));
    let (many, terminal) = (paths.len() > 1, io::stdout().is_terminal());
    let size = if human { human_size } else { |blocks: u64| blocks.div_ceil(2).to_string() };
    let run = Run { all, depth, size, many, threads, terminal, seen, out, visited, failed };
    run.with_progress(|| {
        let sums = paths.iter().map(|path| run.path(path.as_ref(), one_device));
        let sum = sums.sum::<io::Result<u64>>()?;
        if total { run.print(sum, Path::new("total")) } else { Ok(()) }
    })?;
    run.out.lock().unwrap().flush()?;
    Ok(!run.failed.into_inner())
}

/// What belongs to an option: the other letters, as in -j2, or else the next argument.
fn value(letters: &mut &[u8], args: &mut impl Iterator<Item = OsString>) -> Option<OsString> {
    match mem::take(letters) {
        [] => args.next(),
        letters => Some(OsStr::from_bytes(letters).into()),
    }
}

fn number<T: FromStr>(arg: Option<OsString>) -> Option<T> {
    arg?.to_str()?.parse().ok()
}

fn usage(error: impl Display) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, format!("{error}; try --help"))
}

/// What is asked for, and what the threads share. For most entries they take no lock.
struct Run {
    all: bool,
    /// The deepest level that is printed; the roots are level 0.
    depth: usize,
    /// How a number of blocks is printed.
    size: fn(u64) -> String,
    /// The trees of several paths can overlap.
    many: bool,
    threads: usize,
    terminal: bool,
    /// What may come again.
    seen: Mutex<HashSet<(Device, u64)>>,
    out: Mutex<BufWriter<Stdout>>,
    /// Directories.
    visited: AtomicU64,
    failed: AtomicBool,
}

type Device = (u32, u32);

/// A directory that is printed. Those below it that are not printed share it.
struct Sum {
    above: Option<Arc<Sum>>,
    depth: usize,
    /// Of all entries below it, except those in directories that have a `Sum` of their own and no second visit yet.
    blocks: AtomicU64,
}

impl Run {
    /// Returns the blocks of the path with everything below it.
    fn path(&self, path: &Path, one_device: bool) -> io::Result<u64> {
        let Some(root) = self.count(CWD, path, None, || path.into()) else { return Ok(0) };
        let sum = Arc::new(Sum { above: None, depth: 0, blocks: root.stx_blocks.into() });
        if is_dir(&root) {
            // What was a directory is not followed, should it be a link by now.
            let dir = lendir::open_with(path, OFlags::NOFOLLOW);
            if let Some(dir) = self.value(dir.map_err(|error| format!("{}: {error}", path.display()))) {
                let walk = Walk::new(dir, path).post_order(self.depth > 0).with_state(Arc::clone(&sum));
                let only = one_device.then(|| device(&root));
                for part in walk.spread(self.threads, |walk| self.part(walk, only, root.stx_mnt_id)) {
                    part?;
                }
            }
        }
        let blocks = sum.blocks.load(Relaxed);
        self.print(blocks, path)?;
        Ok(blocks)
    }

    /// Visits the directories that `walk` lends to this thread.
    fn part(&self, walk: &mut Walk<Arc<Sum>>, only: Option<Device>, mount: u64) -> io::Result<()> {
        while let Some(dir) = walk.next_or(|error| self.complain(error)) {
            if dir.is_second_visit() { self.leave(&dir)? } else { self.enter(dir, only, mount)? }
        }
        Ok(())
    }

    /// Adds the blocks of its entries to its sum, or to that of the directory above.
    fn enter(&self, mut dir: Dir<'_, Arc<Sum>>, only: Option<Device>, mount: u64) -> io::Result<()> {
        self.visited.fetch_add(1, Relaxed);
        let (path, depth, mut blocks) = (dir.path(), dir.depth(), 0);
        if (1..=self.depth).contains(&depth) {
            let above = Some(Arc::clone(dir.state()));
            *dir.state_mut() = Arc::new(Sum { above, depth, blocks: 0.into() });
        }
        while let Some(entry) = dir.next_or(|error| self.complain(error)) {
            let entry_path = || path.join(entry.name_os());
            match self.count(entry.dir(), entry.name_cstr(), only, entry_path) {
                // Only what is mounted can be above itself. Linux numbers mounts since 5.8.
                Some(stat) if stat.stx_mnt_id != mount && is_above(&stat, entry.dir(), depth) => dir.skip_entry(),
                Some(stat) => {
                    blocks += stat.stx_blocks;
                    if self.all && depth < self.depth && !is_dir(&stat) {
                        self.print(stat.stx_blocks, &entry_path())?;
                    }
                }
                None => dir.skip_entry(),
            }
        }
        dir.state().blocks.fetch_add(blocks, Relaxed);
        Ok(())
    }

    /// All below the directory has been counted, by whichever threads: adds it to the directory above, which has counted the
    /// directory itself.
    fn leave(&self, dir: &Dir<'_, Arc<Sum>>) -> io::Result<()> {
        if !(1..=self.depth).contains(&dir.depth()) {
            return Ok(());
        }
        let stat = statx(dir, "", AtFlags::EMPTY_PATH, StatxFlags::BLOCKS);
        let stat = self.value(stat.map_err(|error| format!("{}: {error}", dir.path().display())));
        let mut blocks = stat.map_or(0, |stat| stat.stx_blocks);
        // A directory that could not be read has none, but that of the one above.
        let sum = Some(dir.state()).filter(|sum| sum.depth == dir.depth());
        if let Some(Sum { above: Some(above), blocks: below, .. }) = sum.map(AsRef::as_ref) {
            let below = below.load(Relaxed);
            above.blocks.fetch_add(below, Relaxed);
            blocks += below;
        }
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
        let mask = StatxFlags::TYPE | StatxFlags::NLINK | StatxFlags::INO | StatxFlags::BLOCKS | StatxFlags::MNT_ID;
        let answer = statx(dir, name, flags, mask).map_err(|error| format!("{}: {error}", path().display()));
        self.value(answer).filter(|stat| {
            let may_come_again = self.many || (stat.stx_nlink > 1 && !is_dir(stat));
            only.is_none_or(|only| only == device(stat))
                && (!may_come_again || self.seen.lock().unwrap().insert((device(stat), stat.stx_ino)))
        })
    }

    fn print(&self, blocks: u64, path: &Path) -> io::Result<()> {
        let mut out = self.out.lock().unwrap();
        write!(out, "{}\t", (self.size)(blocks))?;
        if self.terminal {
            return writeln!(out, "{}", without_controls(path.display()));
        }
        out.write_all(path.as_os_str().as_bytes())?;
        out.write_all(b"\n")
    }

    /// The value, or else the error is reported.
    fn value<T>(&self, result: Result<T, impl Display>) -> Option<T> {
        result.map_err(|error| self.complain(error)).ok()
    }

    /// Reports an error, after which the sums are not complete.
    fn complain(&self, error: impl Display) {
        self.failed.store(true, Relaxed);
        let _ = writeln!(io::stderr(), "du: {}", without_controls(error));
    }

    /// Shows each second, until `work` is done, how far it is. Lines on a terminal show it, too.
    fn with_progress<T>(&self, work: impl FnOnce() -> T) -> T {
        if !io::stderr().is_terminal() || (self.terminal && self.depth > 0) {
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

/// Whether it is the directory `dir`, which is `depth` levels below the root, or one above it.
fn is_above(stat: &Statx, dir: BorrowedFd<'_>, depth: usize) -> bool {
    let mut above = String::from(".");
    is_dir(stat)
        && (0..=depth).any(|_| {
            let found = statx(dir, &above, AtFlags::NO_AUTOMOUNT, StatxFlags::INO);
            above.push_str("/..");
            found.is_ok_and(|found| (device(&found), found.stx_ino) == (device(stat), stat.stx_ino))
        })
}

fn device(stat: &Statx) -> Device {
    (stat.stx_dev_major, stat.stx_dev_minor)
}

fn is_dir(stat: &Statx) -> bool {
    FileType::from_raw_mode(stat.stx_mode.into()) == FileType::Directory
}

/// As 4.0K, 17M or 1.2G: rounded up, and with two digits at least.
fn human_size(blocks: u64) -> String {
    let bytes = u128::from(blocks) * 512;
    let mut unit = 1;
    for letter in ["", "K", "M", "G", "T", "P", "E"] {
        let (tenths, whole) = ((bytes * 10).div_ceil(unit), bytes.div_ceil(unit));
        if unit > 1 && tenths < 100 {
            return format!("{}.{}{letter}", tenths / 10, tenths % 10);
        }
        if whole < 1024 {
            return format!("{whole}{letter}");
        }
        unit <<= 10;
    }
    format!("{}Z", bytes.div_ceil(unit))
}

/// Control characters in a name could be commands to a terminal.
fn without_controls(text: impl Display) -> String {
    text.to_string().replace(char::is_control, "?")
}
