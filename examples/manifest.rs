//! Prints a hash and the path of each file below DIR, in the order of the paths:
//! `manifest [-j N] DIR`. N is the number of threads that hash. The default is one for each core.
//!
//! The tree may change meanwhile, because each file is opened relative to its directory and hashed
//! through its descriptor. The hash is FNV-1a, which detects accidents, but not attacks. Use a
//! cryptographic hash in your own program.
//!
//! The example shows `read_ahead`, and how to keep the order of work that is done on several
//! threads.

use lendir::rustix::io::Errno;
use lendir::{OFlags, Order, Walk, WalkEntry};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
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
        Err(error) if Errno::from_io_error(&error) != Some(Errno::PIPE) => complain(error),
        _ => {}
    }
    ExitCode::from(u8::from(FAILED.load(Relaxed)))
}

fn complain(error: impl Display) {
    FAILED.store(true, Relaxed);
    let _ = writeln!(io::stderr(), "manifest: {error}");
}

/// Files that one thread hashes. Sending a single file takes longer than hashing a short one.
#[derive(Default)]
struct Batch {
    files: Vec<(PathBuf, File)>,
    bytes: u64,
}

impl Batch {
    /// Returns `true` if the batch must be sent. The limits bound the descriptors in the channel,
    /// and distribute large files.
    fn is_full(&self) -> bool {
        self.files.len() == 16 || self.bytes >= 256 << 10
    }
}

type Hashes = Vec<(PathBuf, io::Result<u64>)>;
/// A batch, and the channel for its hashes.
type Job = (Batch, SyncSender<Hashes>);

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
    let tree = Walk::options().order(Order::Path).read_ahead(threads).open(root)?;
    let (jobs, next) = sync_channel(threads);
    let (places, in_order) = sync_channel(2 * threads);
    // The last thread that hashes drops it, and then `send` fails.
    let next = Arc::new(Mutex::new(next));
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

/// Opens the files and sends them to the threads that hash. Sends the receivers of the hashes, in
/// order, to be printed.
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

/// Opens a regular file, and returns it with its length. Returns `None` for any other entry.
fn open(entry: &WalkEntry<'_>) -> Result<Option<(File, u64)>, lendir::Error> {
    if !entry.file_type()?.is_file() {
        return Ok(None);
    }
    // By now the name may belong to a FIFO. Without `NONBLOCK`, opening a FIFO waits for a writer.
    let file = File::from(entry.open(OFlags::RDONLY | OFlags::NONBLOCK)?);
    let found = file.metadata().map_err(|error| entry.wrap_error(error))?;
    Ok(found.is_file().then_some((file, found.len())))
}

/// Hashes the files of each batch.
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
        // A name could contain terminal commands.
        let path = path.to_string_lossy().replace(char::is_control, "?");
        match hash {
            Ok(hash) => writeln!(out, "{hash:016x}  {path}")?,
            Err(error) => complain(format_args!("{path}: {error}")),
        }
    }
    out.flush()
}
