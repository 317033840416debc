//! Searches files on all cores. Threads that walk send names over a bounded channel to threads that search, so all of them search
//! even if all files are in one directory.

const HELP: &str = "\
Usage: grep [-r] [-j N] [--] TEXT [PATH]...

Prints the lines that contain TEXT, in each PATH and in all files below it, after the path of the file. PATH is . by default.

  -r      go below directories, the default
  -j N    walk with N threads, and search with N more; 0, the default: one for each core, at least 8
  --help  print this text

TEXT is not a pattern: it is compared byte by byte. A symbolic link is followed only as a PATH. Only regular files are searched,
and a binary one, with a NUL in its first 32 KiB, is skipped silently, as by grep -I. With several threads, chance decides the
order of files. On a terminal, control characters are printed as ?. Exit status: 0 if a line was found, 1 if none was, 2 for an
error.
";

use lendir::rustix::fs::{CWD, Mode, openat};
use lendir::rustix::path::Arg;
use lendir::{Error, FileType, OFlags, Walk, Worker};
use std::ffi::{CString, OsStr, OsString};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, IsTerminal, Write};
use std::num::NonZero;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;

fn main() -> ExitCode {
    match grep(std::env::args_os().skip(1)) {
        Ok(status) => ExitCode::from(status),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "grep: {error}");
            ExitCode::from(2)
        }
    }
}

/// Runs with these arguments, and returns the exit status. The error is one of output or of usage.
fn grep(mut args: impl Iterator<Item = OsString>) -> io::Result<u8> {
    let (mut threads, mut paths) = (0, Vec::new());
    while let Some(arg) = args.next() {
        match arg.as_bytes() {
            b"--help" => return io::stdout().write_all(HELP.as_bytes()).map(|()| 0),
            b"--" => paths.extend(args.by_ref()),
            b"-r" => {}
            [b'-', b'j', value @ ..] => threads = number("-j", value, &mut args)?,
            [b'-', _, ..] => return Err(usage(format!("unknown option {arg:?}"))),
            _ => paths.push(arg),
        }
    }
    if paths.is_empty() {
        return Err(usage("TEXT is missing"));
    }
    let text = paths.remove(0).into_vec();
    let paths = if paths.is_empty() { vec![".".into()] } else { paths };

    let cores = || thread::available_parallelism().map_or(1, NonZero::get);
    let threads = if threads == 0 { cores().max(8) } else { threads };

    let [found, failed, is_over] = [(); 3].map(|()| AtomicBool::new(false));
    let grep = Grep { text, terminal: io::stdout().is_terminal(), found, failed, is_over, written: Ok(()).into() };
    thread::scope(|scope| {
        // Each end is dropped with the last thread that has it, even in a panic. Then the threads at the other end go on.
        let (batches, received) = sync_channel(MOST_QUEUED);
        let received = Arc::new(Mutex::new(received));
        for _ in 0..threads {
            let (grep, received) = (&grep, Arc::clone(&received));
            let next = move || received.lock().unwrap().recv();
            thread::Builder::new().spawn_scoped(scope, move || {
                while let Ok(batch) = next() {
                    grep.search_all(&batch);
                }
            })?;
        }
        drop(received);
        let _ = Walk::options().open_all(paths).spread(threads, |worker| grep.walk(worker, &batches));
        Ok::<(), io::Error>(())
    })?;
    grep.written.into_inner().unwrap()?;
    Ok(if grep.failed.into_inner() { 2 } else { u8::from(!grep.found.into_inner()) })
}

/// The rest of the option, as in -j2, or else the next argument.
fn number(option: &str, value: &[u8], args: &mut impl Iterator<Item = OsString>) -> io::Result<usize> {
    let value = if value.is_empty() { args.next() } else { Some(OsStr::from_bytes(value).into()) };
    value.and_then(|value| value.to_str()?.parse().ok()).ok_or_else(|| usage(format!("{option} needs a number")))
}

fn usage(error: impl Display) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, format!("{error}; try --help"))
}

struct Grep {
    text: Vec<u8>,
    terminal: bool,
    found: AtomicBool,
    failed: AtomicBool,
    /// Nothing more can be printed. All threads check it.
    is_over: AtomicBool,
    written: Mutex<io::Result<()>>,
}

/// Files of one directory. To send each by itself would take longer than to search a short one.
struct Batch {
    dir: OwnedFd,
    path: PathBuf,
    names: Vec<CString>,
}

const MOST_NAMES: usize = 16;

/// Batches in the channel. With room for fewer, threads wait for each other at nearly every batch.
const MOST_QUEUED: usize = 64;

impl Grep {
    /// What each thread that walks does.
    fn walk(&self, worker: &mut Worker<'_>, batches: &SyncSender<Batch>) {
        while let Some(mut dir) = worker.next_ok(|error| self.error(&error)) {
            let (path, mut names) = (dir.path(), Vec::new());
            while let Some(entry) = dir.next_ok(|error| self.complain(error)) {
                match entry.file_type() {
                    Ok(FileType::RegularFile) => names.push(entry.name_cstr().to_owned()),
                    Ok(_) => {}
                    Err(error) => self.complain(error),
                }
                if names.len() == MOST_NAMES {
                    self.send(entry.dir_fd(), path, std::mem::take(&mut names), batches);
                }
                if self.is_over.load(Relaxed) {
                    break;
                }
            }
            if !names.is_empty() {
                self.send(dir.fd(), path, names, batches);
            }
            if self.is_over.load(Relaxed) {
                worker.stop();
            }
        }
    }

    /// Waits while the channel is full. It fails only after the threads that search have ended.
    fn send(&self, dir: BorrowedFd<'_>, path: &Path, names: Vec<CString>, batches: &SyncSender<Batch>) {
        match dir.try_clone_to_owned() {
            Ok(dir) => _ = batches.send(Batch { dir, path: path.to_owned(), names }),
            Err(error) => self.complain(format_args!("{}: {error}", path.display())),
        }
    }

    /// A PATH that is not a directory is a file to search.
    fn error(&self, error: &Error) {
        if error.depth() == 0 && error.kind() == ErrorKind::NotADirectory {
            self.search(CWD, error.path(), OFlags::empty(), error.path());
        } else {
            self.complain(error);
        }
    }

    fn search_all(&self, Batch { dir, path, names }: &Batch) {
        for name in names {
            self.search(dir, name, OFlags::NOFOLLOW, &path.join(OsStr::from_bytes(name.to_bytes())));
        }
    }

    /// Prints the lines of a file at once, because other threads print too. If it cannot, all threads end.
    fn search(&self, dir: impl AsFd, name: impl Arg, flags: OFlags, path: &Path) {
        if self.is_over.load(Relaxed) {
            return;
        }
        // By now it may be a FIFO: without `NONBLOCK`, to open one waits for a writer.
        let flags = flags | OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(dir, name, flags, Mode::empty()).map_err(io::Error::from);
        match file.and_then(|file| self.lines(file.into(), path)) {
            Ok(lines) if lines.is_empty() => {}
            Ok(lines) => {
                self.found.store(true, Relaxed);
                if let Err(error) = io::stdout().write_all(&lines) {
                    *self.written.lock().unwrap() = Err(error);
                    self.is_over.store(true, Relaxed);
                }
            }
            Err(error) => self.complain(format_args!("{}: {error}", path.display())),
        }
    }

    /// The lines that contain the text.
    fn lines(&self, file: File, path: &Path) -> io::Result<Vec<u8>> {
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        let mut file = BufReader::with_capacity(1 << 15, file);
        let (mut line, mut lines) = (Vec::new(), Vec::new());
        let is_binary = file.fill_buf()?.contains(&b'\0');
        while !is_binary && file.read_until(b'\n', &mut line)? > 0 {
            if self.text.is_empty() || line.windows(self.text.len()).any(|part| part == self.text) {
                lines.extend(self.shown(path.as_os_str().as_bytes()));
                lines.push(b':');
                lines.extend(self.shown(line.strip_suffix(b"\n").unwrap_or(&line)));
                lines.push(b'\n');
            }
            line.clear();
        }
        Ok(lines)
    }

    /// Control characters could be terminal commands.
    fn shown(&self, text: &[u8]) -> Vec<u8> {
        let is_control = |char: char| char.is_control() && char != '\t';
        if self.terminal { String::from_utf8_lossy(text).replace(is_control, "?").into() } else { text.to_vec() }
    }

    fn complain(&self, error: impl Display) {
        self.failed.store(true, Relaxed);
        let _ = writeln!(io::stderr(), "grep: {}", error.to_string().replace(char::is_control, "?"));
    }
}
