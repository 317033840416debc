//! A file system that takes a millisecond for each call, as one over a network does. This process serves it through
//! `/dev/fuse`.

use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// What a process waits for each answer, at least.
pub const LATENCY: Duration = Duration::from_millis(1);

/// This many requests can wait at once.
const THREADS: usize = 32;

/// In the namespace of the thread that mounts, this directory is the file system; for everybody else it stays what it was.
///
/// Only other processes may read it. If this one were killed while a thread of its own waits for an answer, the server's
/// descriptor would be closed after that thread has ended, and the thread would wait until then.
pub const POINT: &str = "/mnt";

/// A tree with 10 directories in each directory, down to this level, and 10 files in each, those of the last level too.
#[derive(Clone, Copy)]
pub struct Shape {
    pub levels: u32,
}

const DIRECTORIES: u64 = 10;
const FILES: u64 = 10;

/// A file takes as many KiB on disk, and so does a directory.
const KIBIBYTES: u64 = 4;

impl Shape {
    /// The root is one.
    pub fn directories(self) -> u64 {
        (0..=self.levels).map(|level| DIRECTORIES.pow(level)).sum()
    }

    pub fn files(self) -> u64 {
        self.directories() * FILES
    }

    /// Of all names below the root; each has two.
    pub fn bytes_of_names(self) -> u64 {
        2 * (self.directories() - 1 + self.files())
    }

    pub fn kibibytes(self) -> u64 {
        KIBIBYTES * (self.directories() + self.files())
    }
}

/// The number of a node is the way to it: after the 1 of the root, five bits for each step. So the server remembers nothing.
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
    /// The first `DIRECTORIES` numbers are those of directories, even where there are none.
    fn indices(self, directory: Node) -> std::ops::Range<u64> {
        let first = if directory.level() < self.levels { 0 } else { DIRECTORIES };
        first..DIRECTORIES + FILES
    }

    fn look_up(self, directory: Node, name: &[u8]) -> Option<Node> {
        self.indices(directory).find(|&index| name_of(index) == name).map(|index| directory.below(index))
    }
}

/// `d0` to `d9` and `f0` to `f9`.
fn name_of(index: u64) -> [u8; 2] {
    let digit = |number| b"0123456789"[usize::try_from(number).expect("BUG: over 32 bits")];
    if index < DIRECTORIES { [b'd', digit(index)] } else { [b'f', digit(index - DIRECTORIES)] }
}

/// The mounted file system. Unmounted when dropped; and if this process is killed, its namespace ends, and the mount with it.
pub struct Server {
    waited_for: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    /// Mounts it where the calling thread and the programs that it starts see it, and nobody else.
    pub fn mount(shape: Shape) -> io::Result<Self> {
        let device = File::options().read(true).write(true).open("/dev/fuse")?;
        // SAFETY: the thread keeps its table of descriptors; only its mounts and its working directory become its own.
        unsafe { unshare_unsafe(UnshareFlags::NEWNS)? };
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", device.as_raw_fd());
        mount("lendir", POINT, "fuse", MountFlags::empty(), &*CString::new(options).expect("BUG: an inner NUL"))?;

        let (device, waited_for) = (Arc::new(device), Arc::<AtomicU64>::default());
        let serve = |_| {
            let (device, waited_for) = (Arc::clone(&device), Arc::clone(&waited_for));
            thread::spawn(move || serve(shape, &device, &waited_for))
        };
        let threads = (0..THREADS).map(serve).collect();
        Ok(Self { waited_for, threads })
    }

    /// How many requests have come that a process waited for.
    pub fn waited_for(&self) -> u64 {
        self.waited_for.load(Relaxed)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let unmounted = unmount(POINT, UnmountFlags::DETACH);
        if !thread::panicking() {
            unmounted.expect("cannot unmount the file system");
            self.threads.drain(..).for_each(|thread| thread.join().expect("a thread of the server panicked"));
        }
    }
}

// The operations that a reader causes; <linux/fuse.h> has them and the layouts below.
const LOOKUP: u32 = 1;
const FORGET: u32 = 2;
const GETATTR: u32 = 3;
const STATFS: u32 = 17;
const INIT: u32 = 26;
const OPENDIR: u32 = 27;
const READDIR: u32 = 28;
const RELEASEDIR: u32 = 29;
const INTERRUPT: u32 = 36;
const DESTROY: u32 = 38;
const BATCH_FORGET: u32 = 42;

/// Lookups and readings of one directory may overlap, as libfuse lets them.
const PARALLEL_DIROPS: u32 = 1 << 18;

/// Each thread takes one request at a time.
fn serve(shape: Shape, mut device: &File, waited_for: &AtomicU64) {
    let mut request = vec![0; 64 * 1024];
    loop {
        let len = match device.read(&mut request) {
            Ok(len) => len,
            Err(error) if Errno::from_io_error(&error) == Some(Errno::NODEV) => return, // unmounted
            Err(_) => continue,                                                         // the request was taken back
        };
        let (header, body) = request[..len].split_at(40);
        let (operation, unique, node) = (u32_at(header, 4), u64_at(header, 8), Node(u64_at(header, 16)));
        match operation {
            FORGET | BATCH_FORGET | INTERRUPT => continue, // no answer is expected
            INIT | RELEASEDIR | DESTROY => {}              // nobody waits for the answer
            _ => {
                waited_for.fetch_add(1, Relaxed);
                thread::sleep(LATENCY);
            }
        }
        let (error, body) = match shape.answer(operation, node, body) {
            Ok(body) => (0, body),
            Err(errno) => (-errno.raw_os_error(), Vec::new()),
        };
        let len = u32::try_from(16 + body.len()).expect("BUG: an answer of 4 GiB or more");
        let reply = [&len.to_ne_bytes()[..], &error.to_ne_bytes(), &unique.to_ne_bytes(), &body].concat();
        let _ = device.write_all(&reply); // ENOENT: nobody waits for it any more
    }
}

impl Shape {
    /// All of it expires at once, so each program has to ask for everything, whoever asked before.
    fn answer(self, operation: u32, node: Node, body: &[u8]) -> Result<Vec<u8>, Errno> {
        match operation {
            INIT => Ok([
                words(&[7, 31, 0, PARALLEL_DIROPS]),
                words(&[0, 4096, 1]),
                [256_u16, 0].map(u16::to_ne_bytes).concat(),
                words(&[0; 8]),
            ]
            .concat()),
            LOOKUP => {
                let name = body.strip_suffix(b"\0").expect("LOOKUP without a NUL at the end");
                let below = self.look_up(node, name).ok_or(Errno::NOENT)?;
                Ok([longs(&[below.0, 0, 0, 0, 0]), self.attributes(below)].concat())
            }
            GETATTR => Ok([longs(&[0, 0]), self.attributes(node)].concat()),
            STATFS => Ok([longs(&[0; 5]), words(&[4096, 255, 4096, 0, 0, 0, 0, 0, 0, 0])].concat()),
            OPENDIR => Ok(longs(&[0, 0])),
            READDIR => Ok(self.records(node, u64_at(body, 8), u32_at(body, 16) as usize)),
            RELEASEDIR | DESTROY => Ok(Vec::new()),
            _ => Err(Errno::NOSYS),
        }
    }

    /// From `offset` on, as many as fit `size`. The offset of a record is the number after its index.
    fn records(self, directory: Node, offset: u64, size: usize) -> Vec<u8> {
        let mut records = Vec::new();
        for index in self.indices(directory).filter(|&index| index >= offset) {
            let below = directory.below(index);
            let name = name_of(index);
            let d_type = if below.is_directory() { libc::DT_DIR } else { libc::DT_REG };
            let mut record = [&longs(&[below.0, index + 1]), &words(&[2, d_type.into()]), &name[..]].concat();
            record.resize(record.len().next_multiple_of(8), 0);
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

fn longs(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

fn words(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("BUG: not 8 bytes"))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("BUG: not 4 bytes"))
}
