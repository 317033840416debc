//! A file system that takes a fixed time for each request, like a network file system. This process
//! serves it through `/dev/fuse`. It does not know who reads it.

use crate::protocol::{
    self, BATCH_FORGET, DESTROY, FORGET, GETATTR, INIT, INTERRUPT, LOOKUP, OPENDIR, READDIR,
    RELEASEDIR, STATFS, init, longs, send, statfs, u32_at, u64_at, words,
};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount,
};
use rustix::thread::{UnshareFlags, set_current_timer_slack, unshare_unsafe};
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::num::NonZeroU64;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The mount point, in the mount namespace of the thread that mounts. For all other threads and
/// processes, the directory does not change.
///
/// Only other processes may read it. If this process is killed, its descriptors are closed only
/// after all of its threads have ended. A thread of its own that waits for an answer would never
/// end.
pub const POINT: &str = "/mnt";

/// The shape of a tree: 10 directories in each directory, down to this level, and 10 files in each
/// directory.
#[derive(Clone, Copy)]
pub struct Shape {
    pub levels: u32,
}

const DIRECTORIES: u64 = 10;
const FILES: u64 = 10;

/// The size on disk of each file and of each directory.
const KIBIBYTES: u64 = 4;

impl Shape {
    /// Returns the number of directories, including the root.
    pub fn directories(self) -> u64 {
        (0..=self.levels).map(|level| DIRECTORIES.pow(level)).sum()
    }

    pub fn files(self) -> u64 {
        self.directories() * FILES
    }

    /// Returns the bytes of all names below the root, which have two bytes each.
    pub fn bytes_of_names(self) -> u64 {
        2 * (self.directories() - 1 + self.files())
    }

    pub fn kibibytes(self) -> u64 {
        KIBIBYTES * self.directories() + self.kibibytes_of_files()
    }

    pub fn kibibytes_of_files(self) -> u64 {
        KIBIBYTES * self.files()
    }
}

/// The number of a node. It encodes the path: after the 1 of the root, five bits for each
/// component. So the server remembers nothing.
#[derive(Clone, Copy)]
struct Node(u64);

const STEP: u32 = 5;

impl Node {
    fn level(self) -> u32 {
        self.0.ilog2() / STEP
    }

    fn below(self, index: u64) -> Self {
        Self(self.0 << STEP | index)
    }

    fn is_directory(self) -> bool {
        self.level() == 0 || self.0 % (1 << STEP) < DIRECTORIES
    }
}

impl Shape {
    /// Returns the numbers of the entries. The first `DIRECTORIES` numbers are reserved for
    /// directories.
    fn indices(self, directory: Node) -> std::ops::Range<u64> {
        let first = if directory.level() < self.levels { 0 } else { DIRECTORIES };
        first..DIRECTORIES + FILES
    }

    fn look_up(self, directory: Node, name: &[u8]) -> Option<Node> {
        self.indices(directory)
            .find(|&index| name_of(index) == name)
            .map(|index| directory.below(index))
    }
}

/// Returns `d0` to `d9` for directories, and `f0` to `f9` for files.
fn name_of(index: u64) -> [u8; 2] {
    let digit = |number| b"0123456789"[usize::try_from(number).expect("BUG: over 32 bits")];
    if index < DIRECTORIES { [b'd', digit(index)] } else { [b'f', digit(index - DIRECTORIES)] }
}

/// The mounted file system. It is unmounted on drop. If this process is killed, its namespace ends,
/// and the mount with it.
pub struct Server {
    latency: Duration,
    waited_for: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

/// The facts that the server observes about a program.
pub struct Observed {
    pub seconds: f64,
    /// The number of requests that made the program wait.
    pub requests: u64,
    /// The average number of requests that waited at once, if each took no longer than the latency.
    pub at_once: f64,
}

impl Server {
    /// Mounts the file system for the calling thread and the programs that it starts. They wait for
    /// each answer at least for the latency.
    pub fn mount(shape: Shape, latency: Duration) -> io::Result<Self> {
        let device = File::options().read(true).write(true).open("/dev/fuse")?;
        // SAFETY: the thread keeps its table of descriptors; only its mounts and its working
        // directory become its own.
        unsafe { unshare_unsafe(UnshareFlags::NEWNS)? };
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", device.as_raw_fd());
        mount(
            "lendir",
            POINT,
            "fuse",
            MountFlags::empty(),
            &*CString::new(options).expect("BUG: an inner NUL"),
        )?;

        let (device, waited_for) = (Arc::new(device), Arc::<AtomicU64>::default());
        let (waiting, due) = mpsc::channel();
        let receiver = {
            let (device, waited_for) = (Arc::clone(&device), Arc::clone(&waited_for));
            thread::spawn(move || receive(shape, latency, &device, &waited_for, &waiting))
        };
        let sender = thread::spawn(move || {
            // A sleep takes up to 50 µs longer by default.
            set_current_timer_slack(NonZeroU64::new(1))
                .expect("cannot set the precision of sleeps");
            for answer in due {
                Answer::send_when_due(answer, &device);
            }
        });
        Ok(Self { latency, waited_for, threads: vec![receiver, sender] })
    }

    /// Observes the programs that `run` starts and waits for.
    pub fn observe<T>(&self, run: impl FnOnce() -> T) -> (T, Observed) {
        let (before, begin) = (self.waited_for.load(Relaxed), Instant::now());
        let result = run();
        let (seconds, requests) =
            (begin.elapsed().as_secs_f64(), self.waited_for.load(Relaxed) - before);
        #[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
        let at_once = requests as f64 * self.latency.as_secs_f64() / seconds;
        (result, Observed { seconds, requests, at_once })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let unmounted = unmount(POINT, UnmountFlags::DETACH);
        if !thread::panicking() {
            unmounted.expect("cannot unmount the file system");
            self.threads
                .drain(..)
                .for_each(|thread| thread.join().expect("a thread of the server panicked"));
        }
    }
}

/// Lookups and readings of one directory may overlap, as with libfuse.
const PARALLEL_DIROPS: u32 = 1 << 18;

/// An answer that a program waits for.
struct Answer {
    due: Instant,
    unique: u64,
    body: Result<Vec<u8>, i32>,
}

impl Answer {
    /// Sends the answer when it is due. Answers become due in the order of the requests, so one
    /// thread can sleep for all of them.
    fn send_when_due(self, device: &File) {
        thread::sleep(self.due.saturating_duration_since(Instant::now()));
        send(device, self.unique, self.body);
    }
}

fn receive(
    shape: Shape,
    latency: Duration,
    mut device: &File,
    waited_for: &AtomicU64,
    waiting: &mpsc::Sender<Answer>,
) {
    let mut request = vec![0; 64 * 1024];
    loop {
        let len = match device.read(&mut request) {
            Ok(len) => len,
            Err(error) if Errno::from_io_error(&error) == Some(Errno::NODEV) => return, // unmounted
            Err(_) => continue, // the request was taken back
        };
        let due = Instant::now() + latency;
        let (header, body) = request[..len].split_at(40);
        let (operation, unique, node) =
            (u32_at(header, 4), u64_at(header, 8), Node(u64_at(header, 16)));
        let answer = || shape.answer(operation, node, body).map_err(Errno::raw_os_error);
        match operation {
            FORGET | BATCH_FORGET | INTERRUPT => {} // no answer is expected
            INIT | RELEASEDIR | DESTROY => send(device, unique, answer()), // no program waits for these
            _ => {
                waited_for.fetch_add(1, Relaxed);
                let answer = Answer { due, unique, body: answer() };
                waiting.send(answer).expect("the thread that sends the answers panicked");
            }
        }
    }
}

impl Shape {
    /// Returns an answer. All answers expire at once, so the kernel requests everything again.
    fn answer(self, operation: u32, node: Node, body: &[u8]) -> Result<Vec<u8>, Errno> {
        match operation {
            INIT => Ok(init(PARALLEL_DIROPS)),
            LOOKUP => {
                let name = body.strip_suffix(b"\0").expect("LOOKUP without a NUL at the end");
                let below = self.look_up(node, name).ok_or(Errno::NOENT)?;
                Ok([longs(&[below.0, 0, 0, 0, 0]), self.attributes(below)].concat())
            }
            GETATTR => Ok([longs(&[0, 0]), self.attributes(node)].concat()),
            STATFS => Ok(statfs()),
            OPENDIR => Ok(longs(&[0, 0])),
            READDIR => Ok(self.records(node, u64_at(body, 8), u32_at(body, 16) as usize)),
            RELEASEDIR | DESTROY => Ok(Vec::new()),
            _ => Err(Errno::NOSYS),
        }
    }

    /// Returns the records from `offset` on that fit into `size`. The offset of a record is its
    /// index plus 1.
    fn records(self, directory: Node, offset: u64, size: usize) -> Vec<u8> {
        let mut records = Vec::new();
        for index in self.indices(directory).filter(|&index| index >= offset) {
            let below = directory.below(index);
            let d_type = if below.is_directory() { libc::DT_DIR } else { libc::DT_REG };
            let record = protocol::record(below.0, index + 1, &name_of(index), d_type);
            if records.len() + record.len() > size {
                break;
            }
            records.extend(record);
        }
        records
    }

    fn attributes(self, node: Node) -> Vec<u8> {
        let (mode, links) = match (node.is_directory(), node.level() < self.levels) {
            (false, _) => (libc::S_IFREG | 0o644, 1),
            (true, false) => (libc::S_IFDIR | 0o755, 2),
            (true, true) => (libc::S_IFDIR | 0o755, 12),
        };
        let sizes = longs(&[node.0, KIBIBYTES * 1024, KIBIBYTES * 2, 0, 0, 0]);
        [sizes, words(&[0, 0, 0, mode, links, 0, 0, 0, 4096, 0])].concat()
    }
}
