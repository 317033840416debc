//! Prints the lines that contain TEXT, after the path of their file: `grep TEXT [PATH]...`. It
//! searches each PATH and all files below it. PATH is `.` by default.
//!
//! TEXT is compared byte by byte. A file is read in chunks of 32 KiB. A chunk with a NUL is binary,
//! and ends the search of its file; so does a line of more than 1 MiB, which is an error. On a
//! terminal, control characters and invisible characters are escaped.
//!
//! Threads that walk send names over a bounded channel to the same number of threads that search.
//! So all of these search, even if all files are in one directory. Where a process may open few
//! files, one thread walks and one searches.
//!
//! In your own program, `getrlimit` needs the feature `process` of `rustix`.

use lendir::{Error, FileType, WalkDirs, Worker};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
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
    // Each batch in the channel holds a descriptor, and so does each thread that searches.
    let has_few = getrlimit(Resource::Nofile).current.is_some_and(|most| most < 256);
    let cores = thread::available_parallelism().map_or(8, |cores| cores.get().max(8));
    let (threads, most_queued) = if has_few { (1, 1) } else { (cores, MOST_QUEUED) };

    let grep = &Grep { text, is_terminal: io::stdout().is_terminal() };
    let (dirs, files): (Vec<_>, Vec<_>) = paths.into_iter().partition(|path| path.is_dir());
    for path in &files {
        // Opening a FIFO can end the process that waits to write into it.
        if path.metadata().is_ok_and(|found| !found.is_file()) {
            complain(Error::new(path, io::Error::other("not a regular file")));
        } else {
            grep.search(CWD, path.as_os_str(), OFlags::empty(), path)?;
        }
    }
    thread::scope(|scope| {
        // The last thread at one end of the channel drops this end, even in a panic. Then the
        // threads at the other end return.
        let (batches, received) = sync_channel(most_queued);
        let received = Arc::new(Mutex::new(received));
        let search = |received: Arc<_>| {
            // The system may refuse some or all of the threads.
            thread::Builder::new().spawn_scoped(scope, move || grep.search_all(&received)).ok()
        };
        let searching: Vec<_> = vec![received; threads].into_iter().filter_map(search).collect();
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
    is_terminal: bool,
}

/// Files of one directory. Sending a single file takes longer than searching a short one.
struct Batch {
    dir: OwnedFd,
    path: PathBuf,
    names: Vec<OsString>,
}

const MOST_NAMES: usize = 16;
/// The number of batches in the channel. In a much shorter channel, the threads wait for each other
/// at nearly every batch.
const MOST_QUEUED: usize = 64;
const CHUNK: usize = 32 << 10;
const LONGEST_LINE: usize = 1 << 20;

impl Grep {
    /// Walks a part of the trees and sends the files. Returns an error of output.
    fn walk(&self, worker: &mut Worker<'_>, batches: &SyncSender<Batch>) -> io::Result<()> {
        while let Some(mut dir) = worker.next_or_report(complain) {
            let (path, mut names) = (dir.path(), Vec::new());
            while let Some(entry) = dir.next_or_report(complain) {
                match entry.file_type() {
                    Ok(FileType::RegularFile) => names.push(entry.file_name().to_owned()),
                    Ok(_) => {}
                    Err(error) => complain(error),
                }
                if names.len() == MOST_NAMES {
                    self.send(entry.dir_fd(), path, mem::take(&mut names), batches)?;
                }
            }
            if !names.is_empty() {
                self.send(dir.fd(), path, names, batches)?;
            }
        }
        Ok(())
    }

    /// Sends a batch, and waits while the channel is full. If no descriptor is left, or no thread
    /// searches, because all were refused or the output has failed, this thread searches instead.
    fn send(
        &self,
        dir: BorrowedFd<'_>,
        path: &Path,
        names: Vec<OsString>,
        batches: &SyncSender<Batch>,
    ) -> io::Result<()> {
        let Ok(owned) = dir.try_clone_to_owned() else {
            return self.search_names(dir, path, &names);
        };
        match batches.send(Batch { dir: owned, path: path.to_owned(), names }) {
            Ok(()) => Ok(()),
            Err(SendError(batch)) => self.search_names(dir, path, &batch.names),
        }
    }

    /// Searches the files that the other threads send.
    fn search_all(&self, received: &Mutex<Receiver<Batch>>) -> io::Result<()> {
        let next = || received.lock().unwrap().recv();
        while let Ok(Batch { dir, path, names }) = next() {
            self.search_names(dir.as_fd(), &path, &names)?;
        }
        Ok(())
    }

    fn search_names(&self, dir: BorrowedFd<'_>, path: &Path, names: &[OsString]) -> io::Result<()> {
        let search = |name: &OsString| self.search(dir, name, OFlags::NOFOLLOW, &path.join(name));
        names.iter().try_for_each(search)
    }

    /// Opens a file and searches it. Returns an error of output.
    fn search(&self, dir: impl AsFd, name: &OsStr, flags: OFlags, path: &Path) -> io::Result<()> {
        match open_file(dir, name, flags) {
            Ok(file) => self.print_lines(&file, path),
            Err(error) => {
                complain(Error::new(path, error));
                Ok(())
            }
        }
    }

    /// Prints the lines that contain the text, after the path. Returns an error of output.
    fn print_lines(&self, file: &File, path: &Path) -> io::Result<()> {
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

/// Opens a file, and refuses whatever is not a regular one. By now the name may belong to a FIFO.
/// Without `NONBLOCK`, opening a FIFO waits for a writer.
fn open_file(dir: impl AsFd, name: &OsStr, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::NOCTTY | OFlags::CLOEXEC;
    match openat(&dir, name, flags | OFlags::NONBLOCK, Mode::empty()) {
        Ok(file) => regular(file.into()),
        // Another process has a lease on the file. Without `NONBLOCK`, opening waits for its end.
        Err(Errno::AGAIN) => {
            let found = openat(dir, name, flags | OFlags::PATH, Mode::empty())?;
            let found = regular(found.into())?;
            File::open(format!("/proc/self/fd/{}", found.as_raw_fd()))
        }
        Err(errno) => Err(errno.into()),
    }
}

fn regular(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("not a regular file")) }
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
