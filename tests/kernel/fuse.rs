//! A FUSE server that misbehaves in the way that a test chooses. It speaks the protocol of
//! `/dev/fuse` directly, because the libraries reject an odd `d_type`, chosen cookies, and a NUL in
//! a name.

mod session;

use crate::mounted::in_own_namespace;
use crate::signals;
use crate::support::prelude::*;
use libc::{DT_DIR, DT_REG, c_int};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use session::Session;
use std::ffi::CString;
use std::sync::mpsc;
use std::thread::JoinHandle;

pub use crate::support::fuse::{GETATTR, OPENDIR};

/// A directory of the server. Its entries may differ from the nodes that their names lead to.
#[derive(Clone)]
pub struct Directory {
    /// Returns the answer at each place, from 0 on.
    pub answers: Arc<dyn Fn(u64) -> Answer + Send + Sync>,
    /// Returns the cookie for each place. With `None`, the cookie is the number of the next place,
    /// and the server reads from the requested offset. Otherwise the server ignores offsets and
    /// sends an open directory once, from beginning to end.
    pub cookie: Option<fn(u64) -> u64>,
    pub batch: Batch,
    /// Returns the node that a name leads to, or an error.
    pub lookup: Arc<Lookup>,
    /// An operation that fails with this error: [`OPENDIR`] or [`GETATTR`].
    pub refuses: Option<(u32, c_int)>,
    /// Whether the kernel refuses to seek in the directory.
    pub is_nonseekable: bool,
    /// Whether the directory has another inode number at each request.
    pub is_shifty: bool,
}

type Lookup = dyn Fn(&[u8]) -> Result<Node, c_int> + Send + Sync;

#[derive(Clone)]
pub enum Node {
    Directory(Directory),
    File,
}

/// The answer of the server at one place of a directory.
#[derive(Clone, Debug)]
pub enum Answer {
    Record(Record),
    /// An error, at each request.
    Error(c_int),
    /// `EINTR`, once.
    Interruption,
    /// No answer until a signal comes, once. The server itself sends the signal.
    Hang,
    End,
}

#[derive(Clone, Debug)]
pub struct Record {
    pub name: Vec<u8>,
    pub ino: u64,
    pub d_type: u8,
}

/// The number of records in one answer.
#[derive(Clone, Copy, Debug)]
pub enum Batch {
    Full,
    One,
}

impl Directory {
    /// Returns a directory that contains only files.
    pub fn of_files(answers: impl Fn(u64) -> Answer + Send + Sync + 'static) -> Self {
        Self {
            answers: Arc::new(answers),
            cookie: None,
            batch: Batch::Full,
            lookup: Arc::new(|_| Ok(Node::File)),
            refuses: None,
            is_nonseekable: false,
            is_shifty: false,
        }
    }

    /// Returns a directory with these answers, which ends after the last of them.
    pub fn with_answers(answers: Vec<Answer>) -> Self {
        let index = |place| usize::try_from(place).unwrap_or(usize::MAX);
        Self::of_files(move |place| answers.get(index(place)).cloned().unwrap_or(Answer::End))
    }

    /// Returns a directory that contains `directories`, named by their numbers, and lists nothing.
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

/// A mounted file system: a root with the given directories, named by their numbers. It is
/// unmounted when this value is dropped.
pub struct Server {
    point: Scratch,
    counts: Arc<Counts>,
    thread: Option<JoinHandle<()>>,
}

/// The numbers of requests.
#[derive(Default)]
struct Counts {
    waited_for: AtomicU64,
    reads: AtomicU64,
    plus_reads: AtomicU64,
    lookups: AtomicU64,
}

impl Server {
    /// Mounts the file system. The caller must have made a mount namespace.
    pub fn mount(directories: Vec<Directory>) -> io::Result<Self> {
        Self::serve(directories, None)
    }

    /// Mounts a file system that answers `READDIRPLUS`, and whose answers are valid for so many
    /// seconds.
    pub fn with_plus(directories: Vec<Directory>, seconds: u64) -> io::Result<Self> {
        Self::serve(directories, Some(seconds))
    }

    fn serve(directories: Vec<Directory>, plus: Option<u64>) -> io::Result<Self> {
        let point = Scratch::new();
        let counts = Arc::default();
        let (sender, outcome) = mpsc::channel();
        let (path, counter) = (point.path().to_owned(), Arc::clone(&counts));
        let thread = thread::spawn(move || match connect(&path) {
            Ok(device) => {
                sender.send(Ok(())).unwrap();
                Session::new(device, Directory::of(directories), counter, plus).serve();
            }
            Err(error) => sender.send(Err(error)).unwrap(),
        });
        outcome.recv().unwrap()?;
        Ok(Self { point, counts, thread: Some(thread) })
    }

    pub fn path(&self, directory: usize) -> PathBuf {
        self.point.path().join(directory.to_string())
    }

    /// Returns the number of requests so far for whose answers a process has waited.
    pub fn all_requests(&self) -> u64 {
        self.counts.waited_for.load(Relaxed)
    }

    /// Returns the number of `READDIR` requests so far.
    pub fn reads(&self) -> u64 {
        self.counts.reads.load(Relaxed)
    }

    /// Returns the numbers of `READDIRPLUS`, `READDIR` and `LOOKUP` requests so far.
    pub fn requests(&self) -> [u64; 3] {
        let Counts { reads, plus_reads, lookups, .. } = &*self.counts;
        [plus_reads, reads, lookups].map(|count| count.load(Relaxed))
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

/// Mounts `point` from a thread with a descriptor table of its own. When the process is killed, the
/// server's end then closes with this thread, and a waiting reader returns. In a shared table, each
/// would wait for the other.
fn connect(point: &Path) -> io::Result<File> {
    // SAFETY: this thread uses no descriptor that it shared before, and shares none that it opens
    // from here on.
    unsafe { unshare_unsafe(UnshareFlags::FILES)? };
    let device = File::options().read(true).write(true).open("/dev/fuse")?;
    let options =
        format!("fd={},rootmode=40000,user_id=0,group_id=0,allow_other", device.as_raw_fd());
    mount(
        "lendir",
        point,
        "fuse",
        MountFlags::empty(),
        &*CString::new(options).expect("BUG: an inner NUL"),
    )?;
    Ok(device)
}

pub fn record(name: impl AsRef<[u8]>, d_type: u8) -> Answer {
    let name = name.as_ref().to_vec();
    let ino = 1000 + name.iter().map(|&byte| u64::from(byte)).sum::<u64>();
    Answer::Record(Record { name, ino, d_type })
}

/// Returns the record of a file.
pub fn file_record(name: impl AsRef<[u8]>) -> Answer {
    record(name, DT_REG)
}

pub fn dots() -> Vec<Answer> {
    [".", ".."].map(|name| record(name, DT_DIR)).to_vec()
}

pub fn long_names(len: usize) -> impl Iterator<Item = Vec<u8>> {
    (b'a'..=b'e').map(move |byte| vec![byte; len])
}

/// An entry of a directory, and the node that its name leads to. They need not agree.
#[derive(Clone)]
pub struct Child {
    name: Vec<u8>,
    d_type: u8,
    node: Result<Node, c_int>,
}

pub fn child(name: impl AsRef<[u8]>, d_type: u8, node: Result<Node, c_int>) -> Child {
    Child { name: name.as_ref().to_vec(), d_type, node }
}

pub fn dir(name: impl AsRef<[u8]>, directory: Directory) -> Child {
    child(name, DT_DIR, Ok(Node::Directory(directory)))
}

pub fn file(name: impl AsRef<[u8]>) -> Child {
    child(name, DT_REG, Ok(Node::File))
}

/// Returns a directory with these children, which ends with `end`.
pub fn directory_that_ends(children: Vec<Child>, end: Answer) -> Directory {
    let records = children.iter().map(|child| record(&child.name, child.d_type));
    let answers = dots().into_iter().chain(records).chain([end]).collect();
    let lookup = move |name: &[u8]| {
        let child = children.iter().find(|child| child.name == name);
        child.map_or(Err(ENOENT), |child| child.node.clone())
    };
    Directory { lookup: Arc::new(lookup), ..Directory::with_answers(answers) }
}

pub fn directory(children: Vec<Child>) -> Directory {
    directory_that_ends(children, Answer::End)
}

/// Returns a directory with one file.
pub fn leaf() -> Directory {
    directory(vec![file("file")])
}

pub const LONG_NAMES: &str = "a kernel whose FUSE takes names over 1024 bytes";

/// Returns `true` if names of 4095 bytes reach a reader at all.
pub fn long_names_pass() -> bool {
    let answers = long_names(4095).map(file_record).collect();
    let server = Server::mount(vec![Directory::with_answers(answers)]).unwrap();
    fs::read_dir(server.path(0)).unwrap().next().unwrap().is_ok()
}

/// Runs `part` of `test` in a process of its own, where it may mount a server.
///
/// The server is in the same process as its reader, so the server can interrupt the reader. No
/// other test runs there, so the process can be killed if a reader hangs.
pub fn served(test: &str, part: impl FnOnce() + Send) {
    process::run(test, || {
        signals::catch();
        let outcome = match File::open("/dev/fuse") {
            Ok(_) => in_own_namespace(|_| part()),
            Err(error) => Err(format!("/dev/fuse ({error})")),
        };
        machine::skip_unless(test, outcome);
    });
}
