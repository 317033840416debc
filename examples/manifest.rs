//! Prints a hash and the path of each file below DIR, in the order of the paths:
//! `manifest [-j N] DIR`. N is the number of threads that hash, and of threads that read ahead. The
//! default is one for each core, and the most is 64.
//!
//! Equal trees have equal manifests, so `cmp` can check a tree. As in the output of `sha256sum`, a
//! line begins with a backslash if the newlines, carriage returns and backslashes of its path are
//! written as `\n`, `\r` and `\\`. On a terminal, paths are printed by `{:?}` instead.
//!
//! The tree may change meanwhile, because each file is opened relative to its directory and hashed
//! through its descriptor. The hash is FNV-1a, which detects accidents, but not attacks. Use a
//! cryptographic hash in your own program.
//!
//! In your own program, `getrlimit` needs the feature `process` of `rustix`.
//!
//! The example shows `read_ahead`, and how to keep the order of work that is done on several
//! threads.

use lendir::{Order, Walk, WalkEntry};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::collections::VecDeque;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Read, StdoutLock, Write};
use std::mem::take;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SendError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;

static FAILED: AtomicBool = AtomicBool::new(false);

fn main() -> ExitCode {
    match manifest() {
        Err(error) if Errno::from_io_error(&error) != Some(Errno::PIPE) => complain(error),
        _ => {}
    }
    ExitCode::from(u8::from(FAILED.load(Relaxed)))
}

fn complain(error: impl Display) {
    FAILED.store(true, Relaxed);
    let _ = writeln!(io::stderr(), "manifest: {error}");
}

/// Runs with the arguments of the program. Returns an error of output or of usage.
fn manifest() -> io::Result<()> {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    let (threads, root) = match &args[..] {
        [root] => (thread::available_parallelism().map_or(8, Into::into), root),
        [flag, number, root] if flag == "-j" => {
            let number = number.to_str().and_then(|number| number.parse().ok());
            (number.ok_or_else(|| io::Error::other("-j needs a number"))?, root)
        }
        _ => return Err(io::Error::other("usage: manifest [-j N] DIR")),
    };
    let threads = threads.clamp(1, 64);
    let tree = Walk::options().order(Order::Path).read_ahead(threads).open(root)?;
    let (jobs, next) = sync_channel(threads);
    // The last thread that hashes drops it, and then `send` fails.
    let next = Arc::new(Mutex::new(next));
    thread::scope(|scope| {
        for next in vec![next; threads] {
            // The system may refuse some or all of the threads.
            let _ = thread::Builder::new().spawn_scoped(scope, move || hash_all(&next));
        }
        let (out, is_terminal) = (BufWriter::new(io::stdout().lock()), io::stdout().is_terminal());
        Manifest { threads, jobs, in_order: VecDeque::new(), out, is_terminal }.print(tree)
    })
}

/// Files that one thread hashes. Sending a single file takes longer than hashing a short one.
#[derive(Default)]
struct Batch {
    files: Vec<(PathBuf, File)>,
    bytes: u64,
}

type Hashes = Vec<(PathBuf, io::Result<u64>)>;
/// A batch, and the channel for its hashes.
type Job = (Batch, SyncSender<Hashes>);

struct Manifest {
    threads: usize,
    jobs: SyncSender<Job>,
    /// The channels for the hashes that are not printed yet.
    in_order: VecDeque<Receiver<Hashes>>,
    out: BufWriter<StdoutLock<'static>>,
    is_terminal: bool,
}

impl Manifest {
    /// Opens the files, sends them to the threads that hash, and prints the hashes. Returns an
    /// error of output.
    fn print(mut self, mut tree: Walk) -> io::Result<()> {
        // These limits bound the descriptors in the channel, and distribute large files.
        let most_open = getrlimit(Resource::Nofile).current.map_or(1024, |most| most.min(1024));
        let most_files = (most_open / 8 / self.threads as u64).clamp(1, 16);
        let most_bytes = 256 << 10;
        let mut batch = Batch::default();
        while let Some(entry) = tree.next_or_report(complain) {
            let mut opened = open(&entry);
            let errno =
                opened.as_ref().err().and_then(|error| Errno::from_io_error(error.io_error()));
            if errno == Some(Errno::MFILE) {
                self.send(take(&mut batch), 0)?; // all other files are closed then
                opened = open(&entry);
            }
            match opened {
                Ok(Some((file, len))) => {
                    batch.bytes = batch.bytes.saturating_add(len);
                    batch.files.push((entry.path().to_owned(), file));
                }
                Ok(None) => {}
                Err(error) if error.is_gone() => {} // removed since it was listed
                Err(error) => complain(error),
            }
            if batch.files.len() as u64 == most_files || batch.bytes >= most_bytes {
                self.send(take(&mut batch), 2 * self.threads)?;
            }
        }
        self.send(batch, 0)?;
        self.out.flush()
    }

    /// Sends a batch. Then prints hashes until this number of batches is left.
    fn send(&mut self, batch: Batch, most_left: usize) -> io::Result<()> {
        let (answer, hashes) = sync_channel(1);
        if let Err(SendError((batch, answer))) = self.jobs.send((batch, answer)) {
            let _ = answer.send(hash_batch(batch)); // every thread was refused
        }
        self.in_order.push_back(hashes);
        while self.in_order.len() > most_left {
            let hashes = self.in_order.pop_front().and_then(|hashes| hashes.recv().ok());
            for (path, hash) in hashes.expect("BUG: a thread has not hashed its batch") {
                match hash {
                    Ok(hash) => self.print_line(hash, &path)?,
                    Err(error) => complain(lendir::Error::new(path, error)),
                }
            }
        }
        Ok(())
    }

    #[allow(clippy::unnecessary_debug_formatting, reason = "it escapes")]
    fn print_line(&mut self, hash: u64, path: &Path) -> io::Result<()> {
        if self.is_terminal {
            return writeln!(self.out, "{hash:016x}  {path:?}"); // it could contain terminal commands
        }
        let mut escaped = Vec::new();
        for byte in path.as_os_str().as_bytes() {
            match byte {
                b'\n' => escaped.extend(b"\\n"),
                b'\r' => escaped.extend(b"\\r"),
                b'\\' => escaped.extend(b"\\\\"),
                byte => escaped.push(*byte),
            }
        }
        let mark = if escaped.len() > path.as_os_str().len() { "\\" } else { "" };
        write!(self.out, "{mark}{hash:016x}  ")?;
        escaped.push(b'\n');
        self.out.write_all(&escaped)
    }
}

/// Opens a regular file, and returns it with its length. Returns `None` for any other entry.
fn open(entry: &WalkEntry<'_>) -> Result<Option<(File, u64)>, lendir::Error> {
    if !entry.file_type()?.is_file() {
        return Ok(None);
    }
    let file = entry.open_file()?;
    let found = file.metadata().map_err(|error| entry.wrap_error(error))?;
    Ok(Some((file, found.len())))
}

/// Hashes the files of each batch.
fn hash_all(next: &Mutex<Receiver<Job>>) {
    let next = || next.lock().unwrap().recv();
    while let Ok((batch, answer)) = next() {
        let _ = answer.send(hash_batch(batch));
    }
}

fn hash_batch(batch: Batch) -> Hashes {
    batch.files.into_iter().map(|(path, file)| (path, hash(&file))).collect()
}

fn hash(file: &File) -> io::Result<u64> {
    let (mut hash, mut part) = (0xcbf2_9ce4_8422_2325, Vec::with_capacity(64 << 10));
    // It reads on after a short read, or an interrupted one.
    while file.take(64 << 10).read_to_end(&mut part)? > 0 {
        let add = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        hash = part.iter().fold(hash, add);
        part.clear();
    }
    Ok(hash)
}
