//! A FUSE server that misbehaves as a test tells it to. It speaks the protocol of `/dev/fuse` directly, because the libraries
//! check what a server sends: an odd `d_type`, chosen cookies and a NUL in a name do not pass.

use crate::signals;
use libc::c_int;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use tempfile::TempDir;

/// A directory of the server. Its entries and the nodes that their names lead to need not agree.
#[derive(Clone)]
pub struct Directory {
    /// The answer at each place, from 0 on.
    pub answers: Arc<dyn Fn(u64) -> Answer + Send + Sync>,
    /// The cookie for each place. Without one it is the number of the place after it, and the server goes where the reader
    /// asks it to. With one, the reader's offsets mean nothing: an open directory is then served from the beginning to the
    /// end by the server's own count, whatever is asked, and has nothing when that is through.
    pub cookie: Option<fn(u64) -> u64>,
    pub batch: Batch,
    /// The node that a name leads to, or an error. Each lookup asks again, so a tree can be endless.
    pub lookup: Arc<Lookup>,
    /// An operation on it, [`OPENDIR`] or [`GETATTR`], that ends with an error.
    pub refuses: Option<(u32, c_int)>,
    /// Whether it has another inode number each time that it is asked for.
    pub is_shifty: bool,
    /// Whether it has another birth time each time that it is asked for. Others have none.
    pub is_reborn: bool,
}

type Lookup = dyn Fn(&[u8]) -> Result<Node, c_int> + Send + Sync;

#[derive(Clone)]
pub enum Node {
    Directory(Directory),
    File,
}

/// What the server answers at one place of a directory.
#[derive(Clone, Debug)]
pub enum Answer {
    Record(Record),
    /// An error, each time it is asked for.
    Error(c_int),
    /// `EINTR`, once.
    Interruption,
    /// No answer until a signal comes, which the server sends itself; once.
    Hang,
    End,
}

#[derive(Clone, Debug)]
pub struct Record {
    pub name: Vec<u8>,
    pub ino: u64,
    pub d_type: u8,
}

/// How many records go into one answer.
#[derive(Clone, Copy, Debug)]
pub enum Batch {
    Full,
    One,
    /// 1 to 16.
    Random,
}

impl Directory {
    /// One with nothing but files below it.
    pub fn of_files(answers: impl Fn(u64) -> Answer + Send + Sync + 'static) -> Self {
        Self {
            answers: Arc::new(answers),
            cookie: None,
            batch: Batch::Full,
            lookup: Arc::new(|_| Ok(Node::File)),
            refuses: None,
            is_shifty: false,
            is_reborn: false,
        }
    }

    /// One with `directories` below it, named by their numbers, though it lists nothing.
    fn of(directories: Vec<Self>) -> Self {
        let lookup = move |name: &[u8]| {
            let number = std::str::from_utf8(name).ok().and_then(|name| name.parse::<usize>().ok());
            number
                .and_then(|number| directories.get(number))
                .map_or(Ok(Node::File), |one| Ok(Node::Directory(one.clone())))
        };
        Self { lookup: Arc::new(lookup), ..Self::of_files(|_| Answer::End) }
    }
}

/// The mounted file system: a root with the given directories, named by their numbers. Unmounted when dropped.
pub struct Server {
    point: TempDir,
    reads: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Mounts it. The caller has set up a mount namespace for it.
    pub fn mount(directories: Vec<Directory>) -> io::Result<Self> {
        let point = tempfile::tempdir()?;
        let reads = Arc::default();
        let (sender, outcome) = mpsc::channel();
        let (path, counter) = (point.path().to_owned(), Arc::clone(&reads));
        let thread = thread::spawn(move || match connect(&path) {
            Ok(device) => {
                sender.send(Ok(())).unwrap();
                Session::new(device, Directory::of(directories), counter).serve();
            }
            Err(error) => sender.send(Err(error)).unwrap(),
        });
        outcome.recv().unwrap()?;
        Ok(Self { point, reads, thread: Some(thread) })
    }

    pub fn path(&self, directory: usize) -> PathBuf {
        self.point.path().join(directory.to_string())
    }

    /// How many READDIR requests have come.
    pub fn reads(&self) -> u64 {
        self.reads.load(Relaxed)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let unmounted = unmount(self.point.path(), UnmountFlags::DETACH);
        if !thread::panicking() {
            unmounted.unwrap();
            self.thread.take().expect("BUG: the thread was joined before").join().unwrap();
        }
    }
}

/// Mounts `point` from a thread with a descriptor table of its own: when the process is killed, the server's end closes
/// with this thread, and a reader that waits for an answer is let go. In a shared table each would wait for the other.
fn connect(point: &Path) -> io::Result<File> {
    // SAFETY: this thread uses no descriptor that it shared before, and shares none that it opens from here on.
    unsafe { unshare_unsafe(UnshareFlags::FILES)? };
    let device = File::options().read(true).write(true).open("/dev/fuse")?;
    let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", device.as_raw_fd());
    mount("lendir", point, "fuse", MountFlags::empty(), &*CString::new(options).expect("BUG: an inner NUL"))?;
    Ok(device)
}

// The operations that a reader causes; <linux/fuse.h> has them and the layouts below.
const LOOKUP: u32 = 1;
const FORGET: u32 = 2;
pub const GETATTR: u32 = 3;
const STATFS: u32 = 17;
const INIT: u32 = 26;
pub const OPENDIR: u32 = 27;
const READDIR: u32 = 28;
const RELEASEDIR: u32 = 29;
const INTERRUPT: u32 = 36;
const DESTROY: u32 = 38;
const BATCH_FORGET: u32 = 42;
const STATX: u32 = 52;

const ROOT: u64 = 1;

struct Session {
    device: File,
    /// The nodes that the kernel knows, by their numbers.
    nodes: HashMap<u64, Known>,
    /// The number of each of them, by that of its directory and its name.
    numbers: HashMap<(u64, Vec<u8>), u64>,
    next_number: u64,
    /// How often a number was made up.
    shifts: u64,
    open: HashMap<u64, Open>,
    /// The requests that wait for their interruption.
    hung: Vec<u64>,
    reads: Arc<AtomicU64>,
}

struct Known {
    node: Node,
    place: (u64, Vec<u8>),
    /// How often the kernel looked it up and has not yet forgotten it.
    lookups: u64,
}

struct Open {
    directory: Directory,
    /// The server's own count.
    place: u64,
    /// Every [`Answer::Interruption`] and [`Answer::Hang`] before this place has been given.
    passed: u64,
    random: u64,
}

impl Session {
    fn new(device: File, root: Directory, reads: Arc<AtomicU64>) -> Self {
        let root = Known { node: Node::Directory(root), place: (0, Vec::new()), lookups: 1 };
        let nodes = HashMap::from([(ROOT, root)]);
        let (numbers, open, hung) = (HashMap::new(), HashMap::new(), Vec::new());
        Self { device, nodes, numbers, next_number: ROOT + 1, shifts: 0, open, hung, reads }
    }

    fn serve(mut self) {
        let mut request = vec![0; 64 * 1024];
        loop {
            match self.device.read(&mut request) {
                Ok(len) => self.answer(&request[..len]),
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => return, // unmounted
                Err(_) => {}                                                        // the request was taken back
            }
        }
    }

    fn answer(&mut self, request: &[u8]) {
        let (header, body) = request.split_at(40);
        let (operation, unique, node) = (u32_at(header, 4), u64_at(header, 8), u64_at(header, 16));
        let answer = match operation {
            INIT => Ok([
                words(&[7, 31, 0, MAX_PAGES]),
                words(&[0, 4096, 1]),
                [256_u16, 0].map(u16::to_ne_bytes).concat(),
                words(&[0; 8]),
            ]
            .concat()),
            LOOKUP => {
                let name = CStr::from_bytes_with_nul(body).expect("LOOKUP without a NUL at the end").to_bytes();
                self.look_up(node, name).map(|number| [longs(&[number, 0, 0, 0, 0]), self.attributes(number)].concat())
            }
            GETATTR => match &self.known(node).node {
                Node::Directory(Directory { refuses: Some((GETATTR, errno)), .. }) => Err(*errno),
                _ => Ok([longs(&[0, 0]), self.attributes(node)].concat()),
            },
            // Where it is refused once, the kernel does not come back to it.
            STATX => match &self.known(node).node {
                Node::Directory(Directory { is_reborn: true, .. }) => Ok(self.reborn(node)),
                _ => Err(libc::ENOSYS),
            },
            STATFS => Ok([longs(&[0; 5]), words(&[4096, 255, 4096, 0, 0, 0, 0, 0, 0, 0])].concat()),
            OPENDIR => match &self.known(node).node {
                Node::Directory(Directory { refuses: Some((OPENDIR, errno)), .. }) => Err(*errno),
                Node::Directory(directory) => {
                    let directory = directory.clone();
                    self.open.insert(unique, Open { directory, place: 0, passed: 0, random: unique });
                    Ok(longs(&[unique, 0]))
                }
                Node::File => unreachable!("OPENDIR of a file"),
            },
            READDIR => {
                self.reads.fetch_add(1, Relaxed);
                let open = self.open.get_mut(&u64_at(body, 0)).expect("READDIR of a directory that is not open");
                match open.read(u64_at(body, 8), u32_at(body, 16) as usize) {
                    Ok(records) => Ok(records),
                    Err(Answer::Error(errno)) => Err(errno),
                    Err(Answer::Hang) => {
                        self.hung.push(unique);
                        signals::interrupt(u32_at(header, 32));
                        return;
                    }
                    Err(_) => Err(libc::EINTR),
                }
            }
            RELEASEDIR => {
                self.open.remove(&u64_at(body, 0));
                Ok(Vec::new())
            }
            INTERRUPT => {
                let interrupted = u64_at(body, 0);
                if self.hung.contains(&interrupted) {
                    self.hung.retain(|&hung| hung != interrupted);
                    self.send(interrupted, Err(libc::EINTR));
                }
                return;
            }
            FORGET => return self.forget(node, u64_at(body, 0)),
            BATCH_FORGET => {
                let pairs = body[8..].chunks_exact(16).take(u32_at(body, 0) as usize);
                return pairs.for_each(|pair| self.forget(u64_at(pair, 0), u64_at(pair, 8)));
            }
            DESTROY => Ok(Vec::new()),
            _ => Err(libc::ENOSYS),
        };
        self.send(unique, answer);
    }

    fn known(&self, number: u64) -> &Known {
        self.nodes.get(&number).expect("a request about an unknown node")
    }

    /// The number of the node that `name` leads to: the same one until the kernel has forgotten it.
    fn look_up(&mut self, directory: u64, name: &[u8]) -> Result<u64, c_int> {
        let place = (directory, name.to_vec());
        let known = self.numbers.get(&place).copied();
        let number = match (known, &self.known(directory).node) {
            (Some(number), _) => number,
            (None, Node::Directory(directory)) => {
                let node = (directory.lookup)(name)?;
                let number = self.next_number;
                self.next_number += 1;
                self.numbers.insert(place.clone(), number);
                self.nodes.insert(number, Known { node, place, lookups: 0 });
                number
            }
            (None, Node::File) => unreachable!("LOOKUP in a file"),
        };
        self.nodes.get_mut(&number).expect("BUG: a number without a node").lookups += 1;
        Ok(number)
    }

    fn forget(&mut self, number: u64, lookups: u64) {
        let known = self.nodes.get_mut(&number).expect("a request about an unknown node");
        known.lookups -= lookups;
        if known.lookups == 0 {
            self.numbers.remove(&known.place);
            self.nodes.remove(&number);
        }
    }

    fn attributes(&mut self, number: u64) -> Vec<u8> {
        let (mode, is_shifty) = match &self.known(number).node {
            Node::File => (libc::S_IFREG, false),
            Node::Directory(directory) => (libc::S_IFDIR, directory.is_shifty),
        };
        self.shifts += u64::from(is_shifty);
        let ino = if is_shifty { (1 << 32) + self.shifts } else { number };
        [longs(&[ino, 0, 0, 0, 0, 0]), words(&[0, 0, 0, mode | 0o755, 1, 0, 0, 0, 4096, 0])].concat()
    }

    /// The answer to STATX.
    fn reborn(&mut self, number: u64) -> Vec<u8> {
        const ALL_WITH_BIRTH: u32 = 0xfff;
        const DIRECTORY: u16 = 0o040_755;
        self.shifts += 1;
        let time = |seconds| [longs(&[seconds]), words(&[0, 0])].concat();
        [
            longs(&[0; 4]),
            words(&[ALL_WITH_BIRTH, 4096, 0, 0, 1, 0, 0]),
            [DIRECTORY, 0].map(u16::to_ne_bytes).concat(),
            longs(&[number, 0, 0, 0]),
            [time(0), time(self.shifts), time(0), time(0)].concat(),
            words(&[0; 4]),
            longs(&[0; 14]),
        ]
        .concat()
    }

    fn send(&mut self, unique: u64, answer: Result<Vec<u8>, c_int>) {
        let (error, body) = answer.map_or_else(|errno| (-errno, Vec::new()), |body| (0, body));
        let len = u32::try_from(16 + body.len()).expect("BUG: an answer of 4 GiB or more");
        let reply = [&len.to_ne_bytes()[..], &error.to_ne_bytes(), &unique.to_ne_bytes(), &body].concat();
        let _ = self.device.write_all(&reply); // ENOENT: nobody waits for it any more
    }
}

impl Open {
    /// The next records, at most `size` bytes of them, or the answer that stands there instead.
    fn read(&mut self, offset: u64, size: usize) -> Result<Vec<u8>, Answer> {
        let directory = self.directory.clone();
        let mut place = if directory.cookie.is_some() { self.place } else { offset };
        let mut left = match directory.batch {
            Batch::Full => u64::MAX,
            Batch::One => 1,
            Batch::Random => 1 + self.random() % 16,
        };
        let mut records = Vec::new();
        while left > 0 {
            match (directory.answers)(place) {
                Answer::Record(record) => {
                    let cookie = directory.cookie.map_or(place + 1, |cookie| cookie(place));
                    let record = record.to_bytes(cookie);
                    if records.len() + record.len() > size {
                        break;
                    }
                    records.extend(record);
                    left -= 1;
                }
                Answer::Interruption | Answer::Hang if place < self.passed => {}
                _ if !records.is_empty() => break,
                Answer::End => {
                    place += 1;
                    break;
                }
                error @ Answer::Error(_) => return Err(error),
                once => {
                    self.passed = place + 1;
                    return Err(once);
                }
            }
            place += 1;
        }
        self.place = place;
        Ok(records)
    }

    /// xorshift64
    fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }
}

impl Record {
    fn to_bytes(&self, cookie: u64) -> Vec<u8> {
        let len = u32::try_from(self.name.len()).expect("BUG: a name of 4 GiB or more");
        let mut bytes = [&longs(&[self.ino, cookie]), &words(&[len, self.d_type.into()]), &self.name[..]].concat();
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        bytes
    }
}

/// Lets the kernel ask for a mebibyte at once, and not only 128 KiB.
const MAX_PAGES: u32 = 1 << 22;

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
