//! Prints the lines that contain TEXT, after the path of their file: `grep TEXT [PATH]...`. It
//! searches each PATH and all files below it. PATH is `.` by default.
//!
//! TEXT is compared byte by byte. A file with a NUL in its first 32 KiB is binary, and is skipped.
//! On a terminal, control characters and invisible characters are escaped.
//!
//! Threads that walk send names over a bounded channel to the same number of threads that search.
//! So all of these search, even if all files are in one directory.

use lendir::rustix::fs::{CWD, Mode, openat};
use lendir::rustix::io::Errno;
use lendir::{Error, FileType, OFlags, WalkDirs, Worker};
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
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
    let threads = thread::available_parallelism().map_or(8, |cores| cores.get().max(8));

    let grep = &Grep { text };
    let (dirs, files): (Vec<_>, Vec<_>) = paths.into_iter().partition(|path| path.is_dir());
    files.iter().try_for_each(|path| grep.search(CWD, path.as_os_str(), OFlags::empty(), path))?;
    thread::scope(|scope| {
        // The last thread at one end of the channel drops this end, even in a panic. Then the
        // threads at the other end return.
        let (batches, received) = sync_channel(MOST_QUEUED);
        let received = Arc::new(Mutex::new(received));
        let search = |received: Arc<_>| scope.spawn(move || grep.search_all(&received));
        let searching: Vec<_> = vec![received; threads].into_iter().map(search).collect();
        let _ = WalkDirs::options()
            .open_all(dirs)
            .run_parallel(threads, |worker| grep.walk(worker, &batches));
        drop(batches);
        searching.into_iter().try_for_each(|thread| thread.join().unwrap())
    })?;
    Ok(())
}

struct Grep {
    text: Vec<u8>,
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

impl Grep {
    /// Walks a part of the trees and sends the files, until no thread searches any more.
    fn walk(&self, worker: &mut Worker<'_>, batches: &SyncSender<Batch>) {
        while let Some(mut dir) = worker.next_ok(complain) {
            let (path, mut names) = (dir.path(), Vec::new());
            while let Some(entry) = dir.next_ok(complain) {
                match entry.file_type() {
                    Ok(FileType::RegularFile) => names.push(entry.name_os().to_owned()),
                    Ok(_) => {}
                    Err(error) => complain(error),
                }
                if names.len() == MOST_NAMES
                    && !self.send(entry.dir_fd(), path, mem::take(&mut names), batches)
                {
                    return worker.stop();
                }
            }
            if !names.is_empty() && !self.send(dir.fd(), path, names, batches) {
                return worker.stop();
            }
        }
    }

    /// Sends a batch, and waits while the channel is full. Returns `false` if no thread searches
    /// any more.
    fn send(
        &self,
        dir: BorrowedFd<'_>,
        path: &Path,
        names: Vec<OsString>,
        batches: &SyncSender<Batch>,
    ) -> bool {
        let dir = dir.try_clone_to_owned().map_err(|error| complain(Error::new(path, error)));
        dir.map_or(true, |dir| batches.send(Batch { dir, path: path.to_owned(), names }).is_ok())
    }

    /// Searches the files that the other threads send.
    fn search_all(&self, received: &Mutex<Receiver<Batch>>) -> io::Result<()> {
        let next = || received.lock().unwrap().recv();
        while let Ok(Batch { dir, path, names }) = next() {
            for name in names {
                self.search(&dir, &name, OFlags::NOFOLLOW, &path.join(&name))?;
            }
        }
        Ok(())
    }

    /// Prints the lines of a file by one call, because other threads print, too. Returns an error
    /// of output.
    fn search(&self, dir: impl AsFd, name: &OsStr, flags: OFlags, path: &Path) -> io::Result<()> {
        let mut lines = self.lines(dir, name, flags, path).unwrap_or_else(|error| {
            complain(Error::new(path, error));
            vec![]
        });
        if io::stdout().is_terminal() {
            // A name or a line could contain terminal commands.
            let escape = |char| match char {
                '\t' | '\n' | '"' | '\'' | '\\' => String::from(char),
                _ => char.escape_debug().to_string(),
            };
            let lines_of_chars = String::from_utf8_lossy(&lines);
            lines = lines_of_chars.chars().map(escape).collect::<String>().into();
        }
        io::stdout().write_all(&lines)
    }

    /// Returns the lines that contain the text, after the path.
    fn lines(
        &self,
        dir: impl AsFd,
        name: &OsStr,
        flags: OFlags,
        path: &Path,
    ) -> io::Result<Vec<u8>> {
        // By now the name may belong to a FIFO. Without `NONBLOCK`, opening a FIFO waits for a
        // writer.
        let flags = flags | OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(dir, name, flags, Mode::empty())?);
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        let mut file = BufReader::with_capacity(1 << 15, file);
        let (mut line, mut lines) = (Vec::new(), Vec::new());
        let is_binary = file.fill_buf()?.contains(&b'\0');
        while !is_binary && file.read_until(b'\n', &mut line)? > 0 {
            if line.windows(self.text.len()).any(|part| part == self.text) {
                let line = line.strip_suffix(b"\n").unwrap_or(&line);
                lines.extend([path.as_os_str().as_bytes(), b":", line, b"\n"].concat());
            }
            line.clear();
        }
        Ok(lines)
    }
}
