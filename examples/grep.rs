//! Prints the lines that contain TEXT, after the path of their file: `grep TEXT [PATH]...`. It
//! searches each PATH and all files below it. PATH is `.` by default.
//!
//! TEXT is compared byte by byte. A file is read in chunks of 32 KiB. A chunk with a NUL is binary,
//! and ends the search of its file; so does a line of more than 1 MiB, which is an error. So is the
//! file that the output goes to: each line that is found there would make it longer. On a terminal,
//! control characters and invisible characters are escaped.
//!
//! Threads that walk open the files, and send them over a bounded channel to the same number of
//! threads that search. So all of these search, even if all files are in one directory. Where a
//! process may open few files, one thread walks and one searches.
//!
//! In your own program, `getrlimit` needs the feature `process` of `rustix`.

use lendir::{Error, WalkDirs, WalkOptions, Worker};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::ffi::OsString;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SendError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::{mem, thread};

static FAILED: AtomicBool = AtomicBool::new(false);

fn main() -> ExitCode {
    match grep(std::env::args_os().skip(1)) {
        Err(error) if Errno::from_io_error(&error) != Some(Errno::PIPE) => complain(error),
        _ => {}
    }
    ExitCode::from(u8::from(FAILED.load(Relaxed)))
}

fn complain(error: impl Display) {
    FAILED.store(true, Relaxed);
    let _ = writeln!(io::stderr(), "grep: {error}");
}

/// Runs with the arguments of the program. Returns an error of output or of usage.
fn grep(mut args: impl Iterator<Item = OsString>) -> io::Result<()> {
    let usage = || io::Error::other("usage: grep TEXT [PATH]...");
    let text = args.next().filter(|text| !text.is_empty()).ok_or_else(usage)?.into_vec();
    let paths: Vec<_> = args.map(PathBuf::from).collect();
    let paths = if paths.is_empty() { vec![".".into()] } else { paths };
    // 16 threads that walk hold at most 32 directories open each, and all together 200 files.
    let has_few = getrlimit(Resource::Nofile).current.is_some_and(|most| most < 1024);
    let cores = thread::available_parallelism().map_or(8, |cores| cores.get().clamp(8, 16));
    let (threads, batch_len, most_queued) = if has_few { (1, 1, 1) } else { (cores, 4, 16) };

    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?).metadata()?;
    let output = output.is_file().then(|| (output.dev(), output.ino()));
    let grep = &Grep { text, batch_len, output, is_terminal: io::stdout().is_terminal() };
    let (dirs, files): (Vec<_>, Vec<_>) = paths.into_iter().partition(|path| path.is_dir());
    for path in &files {
        match open_root(path) {
            Ok(file) => grep.print_lines(&file, path)?,
            Err(error) => complain(error),
        }
    }
    thread::scope(|scope| {
        // The last thread at one end of the channel drops this end, even in a panic. Then the
        // threads at the other end return.
        let (batches, received) = sync_channel(most_queued);
        let received = Arc::new(Mutex::new(received));
        let start = |received: Arc<_>| {
            // The system may refuse some or all of the threads.
            thread::Builder::new().spawn_scoped(scope, move || grep.search_all(&received)).ok()
        };
        let searching: Vec<_> = vec![received; threads].into_iter().filter_map(start).collect();
        let walked = WalkDirs::options().open_all(dirs).run_parallel(threads, |worker| {
            grep.walk(worker, &batches).inspect_err(|_| worker.stop())
        });
        drop(batches);
        let searched = searching.into_iter().map(|thread| thread.join().unwrap());
        walked.into_iter().chain(searched).collect()
    })
}

struct Grep {
    text: Vec<u8>,
    batch_len: usize,
    /// The device and the inode number of the output, if that is a file.
    output: Option<(u64, u64)>,
    is_terminal: bool,
}

/// Open files and their paths. Sending a single file takes longer than searching a short one.
type Batch = Vec<(File, PathBuf)>;

const CHUNK: usize = 32 << 10;
const LONGEST_LINE: usize = 1 << 20;

impl Grep {
    /// Walks a part of the trees and sends the files. Waits while the channel is full. If no thread
    /// searches, because all were refused or the output has failed, this thread searches instead.
    /// Returns an error of output.
    fn walk(&self, worker: &mut Worker<'_>, batches: &SyncSender<Batch>) -> io::Result<()> {
        let mut batch = Vec::new();
        while let Some(mut dir) = worker.next_or_report(complain) {
            while let Some(entry) = dir.next_or_report(complain) {
                if entry.file_type().is_ok_and(|found| !found.is_file()) {
                    continue;
                }
                match entry.open_file() {
                    Ok(file) => batch.push((file, entry.path())),
                    Err(error) => complain(error),
                }
                if batch.len() == self.batch_len {
                    let sent = batches.send(mem::take(&mut batch));
                    sent.or_else(|SendError(batch)| self.search(batch))?;
                }
            }
        }
        self.search(batch)
    }

    /// Searches the files that the other threads send.
    fn search_all(&self, received: &Mutex<Receiver<Batch>>) -> io::Result<()> {
        let next = || received.lock().unwrap().recv();
        while let Ok(batch) = next() {
            self.search(batch)?;
        }
        Ok(())
    }

    fn search(&self, batch: Batch) -> io::Result<()> {
        batch.into_iter().try_for_each(|(file, path)| self.print_lines(&file, &path))
    }

    /// Prints the lines that contain the text, after the path. Returns an error of output.
    fn print_lines(&self, file: &File, path: &Path) -> io::Result<()> {
        let is = |output| file.metadata().is_ok_and(|found| (found.dev(), found.ino()) == output);
        if self.output.is_some_and(is) {
            complain(Error::new(path, io::Error::other("it is also the output")));
            return Ok(());
        }
        let (mut chunk, mut lines) = (Vec::with_capacity(CHUNK), Vec::new());
        loop {
            let unfinished = chunk.len(); // a line without its end
            // It reads on after a short read, or an interrupted one.
            let len = match file.take(CHUNK as u64).read_to_end(&mut chunk) {
                Ok(len) if unfinished <= LONGEST_LINE => len,
                ended => {
                    let error = ended.err().unwrap_or(io::Error::other("a line is too long"));
                    complain(Error::new(path, error));
                    return Ok(());
                }
            };
            let added = &chunk[unfinished..];
            if added.contains(&b'\0') {
                return Ok(());
            }
            let newline = added.iter().rposition(|byte| *byte == b'\n');
            let end = match newline {
                _ if len < CHUNK => chunk.len(), // the end of the file
                Some(newline) => unfinished + newline + 1,
                None => 0,
            };
            for line in chunk[..end].split_inclusive(|byte| *byte == b'\n') {
                if line.windows(self.text.len()).any(|part| part == self.text) {
                    let line = line.strip_suffix(b"\n").unwrap_or(line);
                    lines.extend([path.as_os_str().as_bytes(), b":", line, b"\n"].concat());
                }
            }
            chunk.drain(..end);
            if self.is_terminal {
                lines = escape(&lines);
            }
            io::stdout().write_all(&lines)?; // by one call, because other threads print as well
            if len < CHUNK {
                return Ok(());
            }
            lines.clear();
        }
    }
}

/// Opens a PATH that is not a directory. A PATH can be a link, which `open_file` refuses, so it is
/// resolved first. Nor does `open_file` open a FIFO: that could end a process that waits to write.
fn open_root(path: &Path) -> Result<File, Error> {
    let is_link = path.is_symlink();
    let real = if is_link { path.canonicalize() } else { Ok(path.to_owned()) };
    let options = WalkOptions::new().yield_roots(true).max_depth(0);
    let mut walk = options.open(real.map_err(|error| Error::new(path, error))?)?;
    walk.next()?.expect("the root").open_file()
}

/// The letters and signs that nobody sees although `escape_debug` keeps them: the fillers of Hangul,
/// which Unicode lets a terminal ignore, and the blanks of Braille, hieroglyphs and music.
const NO_INK: &str = "\u{115f}\u{1160}\u{3164}\u{ffa0}\u{2800}\u{13441}\u{13442}\u{1d159}";

/// Escapes what could be a terminal command, in a path or in a line, and what cannot be seen there.
fn escape(lines: &[u8]) -> Vec<u8> {
    let escape = |char: char| match char {
        '\t' | '\n' | '"' | '\'' | '\\' => String::from(char),
        _ if NO_INK.contains(char) => char.escape_unicode().to_string(),
        _ => char.escape_debug().to_string(),
    };
    String::from_utf8_lossy(lines).chars().map(escape).collect::<String>().into()
}
