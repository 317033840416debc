//! A file system that takes a fixed time for each request, like a network file system. This process
//! serves it through `/dev/fuse`. It counts the requests, and does not know who reads
//! it.

use crate::protocol::{
    self, BATCH_FORGET, DESTROY, FORGET, GETATTR, INIT, INTERRUPT, LOOKUP, OPENDIR, READDIR,
    READDIRPLUS, READDIRPLUS_AUTO, RELEASEDIR, STATFS, init, longs, send, statfs, u32_at, u64_at,
    words,
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

/// The shape of a tree: each directory has so many files, and down to this level so many
/// directories.
#[derive(Clone, Copy)]
pub struct Shape {
    pub levels: u32,
    pub directories: u64,
    pub files: u64,
}

/// The size of each file and of each directory, also on disk.
const KIBIBYTES: u64 = 4;

impl Shape {
    /// Returns a tree with ten directories and ten files in each directory.
    pub fn of_tens(levels: u32) -> Self {
        Self { levels, directories: 10, files: 10 }
    }

    /// Returns the number of directories, including the root.
    pub fn directories(self) -> u64 {
        (0..=self.levels).map(|level| self.directories.pow(level)).sum()
    }

    pub fn files(self) -> u64 {
        self.directories() * self.files
    }

    /// Returns the number of directories and files below the root.
    pub fn entries(self) -> u64 {
        self.directories() - 1 + self.files()
    }

    /// Returns the bytes of all names below the root.
    pub fn bytes_of_names(self) -> u64 {
        let bytes = |range: std::ops::Range<u64>| {
            range.map(|index| self.name_of(index).len() as u64).sum::<u64>()
        };
        let first_file = self.directories;
        (self.directories() - self.directories.pow(self.levels)) * bytes(0..first_file)
            + self.directories() * bytes(first_file..first_file + self.files)
    }

    pub fn kibibytes(self) -> u64 {
        KIBIBYTES * self.directories() + self.kibibytes_of_files()
    }

    pub fn kibibytes_of_files(self) -> u64 {
        KIBIBYTES * self.files()
    }
}

/// The number of a node. It encodes the path: after the 1 of the root, `Shape::step` bits for each
/// component. So the server remembers nothing.
#[derive(Clone, Copy)]
struct Node(u64);

impl Shape {
    fn step(self) -> u32 {
        u64::BITS - (self.directories + self.files).leading_zeros()
    }

    fn level(self, node: Node) -> u32 {
        node.0.ilog2() / self.step()
    }

    fn below(self, directory: Node, index: u64) -> Node {
        Node(directory.0 << self.step() | index)
    }

    fn is_directory(self, node: Node) -> bool {
        self.level(node) == 0 || node.0 % (1 << self.step()) < self.directories
    }

    /// Returns the numbers of the entries. The first `directories` numbers are reserved for
    /// directories.
    fn indices(self, directory: Node) -> std::ops::Range<u64> {
        let first = if self.level(directory) < self.levels { 0 } else { self.directories };
        first..self.directories + self.files
    }

    fn look_up(self, directory: Node, name: &[u8]) -> Option<Node> {
        let (kind, digits) = name.split_first()?;
        let number: u64 = str::from_utf8(digits).ok()?.parse().ok()?;
        let index = if *kind == b'd' { number } else { self.directories.checked_add(number)? };
        let is_entry = self.indices(directory).contains(&index) && self.name_of(index) == name;
        is_entry.then(|| self.below(directory, index))
    }

    /// Returns `d0`, `d1` and so on for directories, and `f0`, `f1` and so on for files.
    fn name_of(self, index: u64) -> Vec<u8> {
        match index.checked_sub(self.directories) {
            None => format!("d{index}"),
            Some(file) => format!("f{file}"),
        }
        .into_bytes()
    }
}

/// The tree that a server serves, and how.
#[derive(Clone, Copy)]
pub struct Service {
    pub shape: Shape,
    pub latency: Duration,
    /// Whether the server answers READDIRPLUS, and the kernel decides when to ask for it, which is
    /// the default of libfuse.
    pub plus: bool,
    /// The number of seconds for which the kernel may keep what it was told. With 0 it asks again
    /// each time.
    pub ttl: u64,
}

impl Service {
    /// Returns the service of a server that makes everything slow: the kernel may keep nothing, and
    /// has to ask for each entry by itself.
    pub fn slow(shape: Shape, latency: Duration) -> Self {
        Self { shape, latency, plus: false, ttl: 0 }
    }
}

/// Gives the calling thread, and the programs that it starts, mounts of their own.
pub fn own_mounts() -> io::Result<()> {
    // SAFETY: the thread keeps its table of descriptors; only its mounts and its working directory
    // become its own.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS)? };
    Ok(mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?)
}

/// The mounted file system. It is unmounted on drop. If this process is killed, its namespace ends,
/// and the mount with it.
pub struct Server {
    requests: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

/// The facts that the server observes about a program: the seconds that it took, and the number of
/// requests that made it wait.
pub struct Observed {
    pub seconds: f64,
    pub requests: u64,
}

impl Server {
    /// Mounts the file system for the calling thread and the programs that it starts. They wait for
    /// each answer at least for the latency.
    pub fn mount(service: Service) -> io::Result<Self> {
        let device = File::options().read(true).write(true).open("/dev/fuse")?;
        own_mounts()?;
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", device.as_raw_fd());
        mount(
            "lendir",
            POINT,
            "fuse",
            MountFlags::empty(),
            &*CString::new(options).expect("BUG: an inner NUL"),
        )?;

        let (device, requests) = (Arc::new(device), Arc::<AtomicU64>::default());
        let (waiting, due) = mpsc::channel();
        let receiver = {
            let (device, requests) = (Arc::clone(&device), Arc::clone(&requests));
            thread::spawn(move || service.receive(&device, &requests, &waiting))
        };
        let sender = thread::spawn(move || {
            // A sleep takes up to 50 µs longer by default.
            set_current_timer_slack(NonZeroU64::new(1))
                .expect("cannot set the precision of sleeps");
            for answer in due {
                Answer::send_when_due(answer, &device);
            }
        });
        Ok(Self { requests, threads: vec![receiver, sender] })
    }

    /// Observes the programs that `run` starts and waits for.
    pub fn observe<T>(&self, run: impl FnOnce() -> T) -> (T, Observed) {
        let (before, begin) = (self.requests.load(Relaxed), Instant::now());
        let result = run();
        let seconds = begin.elapsed().as_secs_f64();
        (result, Observed { seconds, requests: self.requests.load(Relaxed) - before })
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

/// One request may ask for up to 1 MiB of entries.
const MAX_PAGES: u32 = 1 << 22;

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

impl Service {
    fn receive(self, mut device: &File, requests: &AtomicU64, waiting: &mpsc::Sender<Answer>) {
        let mut request = vec![0; 64 * 1024];
        loop {
            let len = match device.read(&mut request) {
                Ok(len) => len,
                Err(error) if Errno::from_io_error(&error) == Some(Errno::NODEV) => return, // unmounted
                Err(_) => continue, // the request was taken back
            };
            let due = Instant::now() + self.latency;
            let (header, body) = request[..len].split_at(40);
            let (operation, unique, node) =
                (u32_at(header, 4), u64_at(header, 8), Node(u64_at(header, 16)));
            let answer = || self.answer(operation, node, body).map_err(Errno::raw_os_error);
            match operation {
                FORGET | BATCH_FORGET | INTERRUPT => {} // no answer is expected
                INIT | RELEASEDIR | DESTROY => send(device, unique, answer()), // no program waits for these
                _ => {
                    requests.fetch_add(1, Relaxed);
                    let answer = Answer { due, unique, body: answer() };
                    waiting.send(answer).expect("the thread that sends the answers panicked");
                }
            }
        }
    }

    fn answer(self, operation: u32, node: Node, body: &[u8]) -> Result<Vec<u8>, Errno> {
        match operation {
            INIT => {
                let plus = if self.plus { READDIRPLUS_AUTO } else { 0 };
                Ok(init(PARALLEL_DIROPS | MAX_PAGES | plus))
            }
            LOOKUP => {
                let name = body.strip_suffix(b"\0").expect("LOOKUP without a NUL at the end");
                Ok(self.found(self.shape.look_up(node, name).ok_or(Errno::NOENT)?))
            }
            GETATTR => Ok([longs(&[self.ttl, 0]), self.shape.attributes(node)].concat()),
            STATFS => Ok(statfs()),
            OPENDIR => Ok(longs(&[0, 0])),
            READDIR | READDIRPLUS => Ok(self.records(operation, node, body)),
            RELEASEDIR | DESTROY => Ok(Vec::new()),
            _ => Err(Errno::NOSYS),
        }
    }

    /// Returns the answer to the lookup of a node.
    fn found(self, node: Node) -> Vec<u8> {
        [longs(&[node.0, 0, self.ttl, self.ttl, 0]), self.shape.attributes(node)].concat()
    }

    /// Returns the records from the offset in `body` on that fit into its size. The offset of a
    /// record is its index plus 1.
    fn records(self, operation: u32, directory: Node, body: &[u8]) -> Vec<u8> {
        let (shape, offset, size) = (self.shape, u64_at(body, 8), u32_at(body, 16) as usize);
        let (mut records, indices) = (Vec::new(), shape.indices(directory));
        for index in offset.max(indices.start)..indices.end {
            let below = shape.below(directory, index);
            let d_type = if shape.is_directory(below) { libc::DT_DIR } else { libc::DT_REG };
            let mut record = if operation == READDIRPLUS { self.found(below) } else { Vec::new() };
            record.extend(protocol::record(below.0, index + 1, &shape.name_of(index), d_type));
            if records.len() + record.len() > size {
                break;
            }
            records.extend(record);
        }
        records
    }
}

impl Shape {
    fn attributes(self, node: Node) -> Vec<u8> {
        let subdirectories = u32::try_from(self.directories).expect("BUG: 2^32 directories");
        let (mode, links) = match (self.is_directory(node), self.level(node) < self.levels) {
            (false, _) => (libc::S_IFREG | 0o644, 1),
            (true, false) => (libc::S_IFDIR | 0o755, 2),
            (true, true) => (libc::S_IFDIR | 0o755, 2 + subdirectories),
        };
        let sizes = longs(&[node.0, KIBIBYTES * 1024, KIBIBYTES * 2, 0, 0, 0]);
        [sizes, words(&[0, 0, 0, mode, links, 0, 0, 0, 4096, 0])].concat()
    }
}
