//! Prints the disk usage of each directory, including its contents, in KiB:
//! `du [-s] [-j N] [PATH]...`. PATH is `.` by default. With `-s`, it prints only the sum of each
//! PATH.
//!
//! A file with several links counts once, and so does a file or directory below two PATHs, or a
//! directory below two mounts. With several PATHs, the program therefore remembers every file.
//!
//! N is the number of threads. The default is 0, which means one thread for each core, but at least
//! 8. With several threads, the order of the lines of a PATH varies, and so does the directory in
//! which a file with several links counts. On a terminal, paths are printed by `{:?}`.
//!
//! The example shows second visits, a state that each directory passes down, and roots of any type.

use lendir::{Entry, FileType, Metadata, WalkDirs, WalkOptions};
use rustix::io::Errno;
use std::collections::HashSet;
use std::ffi::OsString;
use std::fmt::Display;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

static FAILED: AtomicBool = AtomicBool::new(false);

fn main() -> ExitCode {
    match du(std::env::args_os().skip(1)) {
        Err(error) if Errno::from_io_error(&error) != Some(Errno::PIPE) => complain(error),
        _ => {}
    }
    ExitCode::from(u8::from(FAILED.load(Relaxed)))
}

fn complain(error: impl Display) {
    FAILED.store(true, Relaxed);
    let _ = writeln!(io::stderr(), "du: {error}");
}

/// Runs with the arguments of the program. Returns an error of output or of usage.
fn du(mut args: impl Iterator<Item = OsString>) -> io::Result<()> {
    let (mut only_roots, mut threads, mut paths) = (false, 0, Vec::new());
    while let Some(arg) = args.next() {
        match arg.as_bytes() {
            b"-s" => only_roots = true,
            b"-j" => {
                let number = args.next().and_then(|number| number.to_str()?.parse().ok());
                threads = number.ok_or_else(|| io::Error::other("-j needs a number"))?;
            }
            [b'-', ..] => return Err(io::Error::other("usage: du [-s] [-j N] [PATH]...")),
            _ => paths.push(arg),
        }
    }
    let paths = if paths.is_empty() { vec![".".into()] } else { paths };

    let du = Du {
        only_roots,
        has_many_roots: paths.len() > 1,
        is_terminal: io::stdout().is_terminal(),
        out: BufWriter::new(io::stdout()).into(),
        seen: Mutex::default(),
    };
    let options = WalkOptions::new().yield_roots(true).max_depth(0).follow_root_links(false);
    let mut roots = options.open_all(paths);
    while let Some(root) = roots.next_or_report(complain) {
        if matches!(root.file_type(), Ok(FileType::Directory)) {
            du.add_up(root.path(), threads)?;
        } else if let Some(blocks) = du.blocks_of(&root) {
            du.print(blocks, root.path())?;
        }
    }
    du.out.into_inner().unwrap().flush()
}

struct Du {
    only_roots: bool,
    has_many_roots: bool,
    is_terminal: bool,
    out: Mutex<BufWriter<Stdout>>,
    /// The device and the inode number of what must not count again.
    seen: Mutex<HashSet<(u64, u64)>>,
}

impl Du {
    /// Adds up a tree and prints the sums. Returns an error of output.
    fn add_up(&self, root: &Path, threads: usize) -> io::Result<()> {
        let options = WalkDirs::options().follow_root_links(false).second_visits(true);
        // The sum of the directory with its contents, and the sum of its parent. `None` if the
        // directory was counted before.
        let walk = options.with_state(None::<[Arc<AtomicU64>; 2]>).open_all([root]);
        let parts = walk.run_parallel(threads, |walk| {
            while let Some(mut dir) = walk.next_or_report(complain) {
                if !dir.is_second_visit() {
                    let above = dir.state_mut().take().map(|[above, _]| above).unwrap_or_default();
                    let mut blocks = match dir.metadata() {
                        Ok(found) if self.is_new(&found) => found.blocks(),
                        Ok(_) => {
                            dir.skip_subdirs();
                            continue;
                        }
                        Err(error) => {
                            complain(error);
                            0 // its contents count all the same
                        }
                    };
                    while let Some(entry) = dir.next_or_report(complain) {
                        // The size of a directory is added when it is visited. A faulty file system
                        // may return any number.
                        if !matches!(entry.file_type(), Ok(FileType::Directory)) {
                            blocks = blocks.saturating_add(self.blocks_of(&entry).unwrap_or(0));
                        }
                    }
                    *dir.state_mut() = Some([Arc::new(blocks.into()), above]);
                } else if let Some([blocks, above]) = dir.state() {
                    let blocks = blocks.load(Relaxed);
                    let add = |sum: u64| Some(sum.saturating_add(blocks));
                    let _ = above.fetch_update(Relaxed, Relaxed, add);
                    if dir.depth() == 0 || !self.only_roots {
                        self.print(blocks, dir.path()).inspect_err(|_| walk.stop())?;
                    }
                }
            }
            Ok(())
        });
        parts.into_iter().collect()
    }

    /// Returns the blocks of a file, or `None` if it was counted before, or after an error.
    fn blocks_of(&self, file: &Entry<'_>) -> Option<u64> {
        let found = file.metadata().map_err(complain).ok()?;
        let is_new = found.nlink() == 1 && !self.has_many_roots || self.is_new(&found);
        is_new.then(|| found.blocks())
    }

    fn is_new(&self, found: &Metadata) -> bool {
        self.seen.lock().unwrap().insert((found.dev(), found.ino()))
    }

    #[allow(clippy::unnecessary_debug_formatting, reason = "it escapes")]
    fn print(&self, blocks: u64, path: &Path) -> io::Result<()> {
        let mut out = self.out.lock().unwrap();
        write!(out, "{}\t", blocks.div_ceil(2))?;
        if self.is_terminal {
            writeln!(out, "{path:?}") // a name could contain terminal commands
        } else {
            out.write_all(&[path.as_os_str().as_bytes(), b"\n"].concat())
        }
    }
}
