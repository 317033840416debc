//! `manifest [-j N] DIR` prints a hash and the path of each file below DIR, in the order of the paths. N threads hash; the
//! default is one for each core. It shows `read_ahead` and work that is done on several threads and comes back in order.
//!
//! The tree may change meanwhile: each file is opened relative to its directory, and hashed through that descriptor. The hash
//! is FNV-1a, which shows accidents, not attacks. In your program, use a cryptographic one.

use lendir::{OFlags, Order, Walk, WalkEntry};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::mem::take;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;

static FAILED: AtomicBool = AtomicBool::new(false);

fn main() -> ExitCode {
    match manifest() {
        Ok(()) => ExitCode::from(u8::from(FAILED.load(Relaxed))),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "manifest: {error}");
            ExitCode::FAILURE
        }
    }
}

fn complain(error: impl Display) {
    FAILED.store(true, Relaxed);
    let _ = writeln!(io::stderr(), "manifest: {error}");
}

/// Files that are hashed by one thread. To send each file by itself takes longer than to hash a short one.
#[derive(Default)]
struct Batch {
    files: Vec<(PathBuf, File)>,
    bytes: u64,
}

impl Batch {
    /// So the batches that wait in a channel hold few descriptors, and large files go to different threads.
    fn is_full(&self) -> bool {
        self.files.len() == 16 || self.bytes >= 256 << 10
    }
}

type Hashes = Vec<(PathBuf, io::Result<u64>)>;
/// A batch, and where to send its hashes.
type Job = (Batch, SyncSender<Hashes>);

/// Runs with the arguments of the program. The error is one of output or of usage.
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
    let tree = Walk::options().order(Order::Path).read_ahead(threads).open(root)?;
    let (jobs, next) = sync_channel(threads);
    let (places, in_order) = sync_channel(2 * threads);
    let next = Arc::new(Mutex::new(next)); // dropped with the last thread that hashes, and then `send` fails
    thread::scope(|scope| {
        for next in vec![next; threads.max(1)] {
            scope.spawn(move || hash_all(&next));
        }
        let printing = scope.spawn(move || print_all(in_order));
        send_all(tree, &jobs, &places);
        drop((jobs, places));
        printing.join().unwrap()
    })
}

/// Opens each file and sends it to be hashed, and the receiver of its hash to be printed in turn.
fn send_all(mut tree: Walk, jobs: &SyncSender<Job>, places: &SyncSender<Receiver<Hashes>>) {
    let mut batch = Batch::default();
    let send = |batch| {
        let (answer, place) = sync_channel(1);
        places.send(place).is_ok() && jobs.send((batch, answer)).is_ok()
    };
    while let Some(entry) = tree.next_ok(complain) {
        match open(&entry) {
            Ok(Some((file, len))) => {
                batch.bytes += len;
                batch.files.push((entry.path().to_owned(), file));
            }
            Ok(None) => {}
            Err(error) if error.is_gone() => {} // removed since it was listed
            Err(error) => complain(error),
        }
        if batch.is_full() && !send(take(&mut batch)) {
            return; // the output has failed
        }
    }
    send(batch);
}

/// Opens a regular file. Returns its length too.
fn open(entry: &WalkEntry<'_>) -> Result<Option<(File, u64)>, lendir::Error> {
    if !entry.file_type()?.is_file() {
        return Ok(None);
    }
    // By now it may be a FIFO: without `NONBLOCK`, to open one waits for a writer.
    let file = File::from(entry.open(OFlags::RDONLY | OFlags::NONBLOCK)?);
    let found = file.metadata().map_err(|error| entry.wrap_error(error))?;
    Ok(found.is_file().then_some((file, found.len())))
}

/// What each thread that hashes does.
fn hash_all(next: &Mutex<Receiver<Job>>) {
    let next = || next.lock().unwrap().recv();
    while let Ok((batch, answer)) = next() {
        let hashes = batch.files.into_iter().map(|(path, file)| (path, hash(file)));
        let _ = answer.send(hashes.collect());
    }
}

fn hash(mut file: File) -> io::Result<u64> {
    let (mut hash, mut part) = (0xcbf2_9ce4_8422_2325, vec![0; 64 * 1024]);
    loop {
        match file.read(&mut part)? {
            0 => return Ok(hash),
            len => {
                let add =
                    |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
                hash = part[..len].iter().fold(hash, add);
            }
        }
    }
}

fn print_all(in_order: Receiver<Receiver<Hashes>>) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    for (path, hash) in in_order.into_iter().flat_map(|place| place.recv().unwrap_or_default()) {
        let path = path.to_string_lossy().replace(char::is_control, "?"); // which could be terminal commands
        match hash {
            Ok(hash) => writeln!(out, "{hash:016x}  {path}")?,
            Err(error) => complain(format_args!("{path}: {error}")),
        }
    }
    out.flush()
}
