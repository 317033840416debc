//! The kernel's requests and the replies of the server.

use super::{Answer, Batch, Counts, Directory, Node};
use crate::signals;
use crate::support::fuse::{
    self, BATCH_FORGET, DESTROY, FORGET, GETATTR, INIT, INTERRUPT, LOOKUP, OPENDIR, READDIR,
    READDIRPLUS, READDIRPLUS_AUTO, RELEASEDIR, RMDIR, STATFS, UNLINK, init, longs, send, statfs,
    u32_at, u64_at, words,
};
use crate::support::prelude::*;
use libc::c_int;
use std::ffi::CStr;
use std::io::Read;

const FOPEN_NONSEEKABLE: u32 = 1 << 2;

const ROOT: u64 = 1;

/// The bytes before each record of `READDIRPLUS`.
const HEAD: usize = 128;

pub struct Session {
    device: File,
    /// The nodes that the kernel knows, by their numbers.
    nodes: HashMap<u64, Node>,
    /// The number of each node, by the number of its directory and its name.
    numbers: HashMap<(u64, Vec<u8>), u64>,
    /// The number of made-up inode numbers.
    shifts: u64,
    open: HashMap<u64, Open>,
    /// The requests that wait for an interruption.
    hung: Vec<u64>,
    counts: Arc<Counts>,
    /// The seconds for which answers are valid, if the server answers `READDIRPLUS`.
    plus: Option<u64>,
}

/// A name and its record.
type NamedRecord = (Vec<u8>, Vec<u8>);

struct Open {
    directory: Directory,
    /// The server's own position.
    place: u64,
    /// The place before which each [`Answer::Interruption`] and [`Answer::Hang`] was sent already.
    passed: u64,
}

impl Session {
    pub fn new(device: File, root: Directory, counts: Arc<Counts>, plus: Option<u64>) -> Self {
        let nodes = HashMap::from([(ROOT, Node::Directory(root))]);
        let (numbers, open, hung) = (HashMap::new(), HashMap::new(), Vec::new());
        Self { device, nodes, numbers, shifts: 0, open, hung, counts, plus }
    }

    /// Replies to requests until the file system is unmounted.
    pub fn serve(mut self) {
        let mut request = vec![0; 64 * 1024];
        loop {
            match self.device.read(&mut request) {
                Ok(len) => self.answer(&request[..len]),
                Err(error) if error.raw_os_error() == Some(libc::ENODEV) => return, // unmounted
                Err(_) => {} // the kernel withdrew the request
            }
        }
    }

    fn answer(&mut self, request: &[u8]) {
        let (header, body) = request.split_at(40);
        let (operation, unique, node) = (u32_at(header, 4), u64_at(header, 8), u64_at(header, 16));
        // Nobody waits for these, which come at any time.
        if !matches!(operation, INIT | FORGET | BATCH_FORGET | RELEASEDIR) {
            self.counts.waited_for.fetch_add(1, Relaxed);
        }
        let answer = match operation {
            INIT => Ok(init(MAX_PAGES | self.plus.map_or(0, |_| READDIRPLUS_AUTO))),
            LOOKUP => {
                self.counts.lookups.fetch_add(1, Relaxed);
                let name = CStr::from_bytes_with_nul(body)
                    .expect("LOOKUP without a NUL at the end")
                    .to_bytes();
                self.found(node, name)
            }
            GETATTR => match self.known(node) {
                Node::Directory(Directory { refuses: Some((GETATTR, errno)), .. }) => Err(*errno),
                _ => Ok([longs(&[self.plus.unwrap_or(0), 0]), self.attributes(node)].concat()),
            },
            STATFS => Ok(statfs()),
            RMDIR => Err(libc::ENOTEMPTY),
            OPENDIR => match self.known(node) {
                Node::Directory(Directory { refuses: Some((OPENDIR, errno)), .. }) => Err(*errno),
                Node::Directory(directory) => {
                    let directory = directory.clone();
                    let flags = if directory.is_nonseekable { FOPEN_NONSEEKABLE } else { 0 };
                    self.open.insert(unique, Open { directory, place: 0, passed: 0 });
                    Ok([longs(&[unique]), words(&[flags, 0])].concat())
                }
                Node::File => unreachable!("OPENDIR of a file"),
            },
            READDIR | READDIRPLUS => {
                let is_plus = operation == READDIRPLUS;
                let Counts { reads, plus_reads, .. } = &*self.counts;
                if is_plus { plus_reads } else { reads }.fetch_add(1, Relaxed);
                let head_len = if is_plus { HEAD } else { 0 };
                let open = self
                    .open
                    .get_mut(&u64_at(body, 0))
                    .expect("READDIR of a directory that is not open");
                match open.read(u64_at(body, 8), u32_at(body, 16) as usize, head_len) {
                    Ok(records) => {
                        let mut reply = Vec::new();
                        for (name, record) in records {
                            let is_dot = matches!(&name[..], b"." | b"..");
                            let head = (is_plus && !is_dot).then(|| self.found(node, &name).ok());
                            reply.extend(head.flatten().unwrap_or_else(|| vec![0; head_len]));
                            reply.extend(record);
                        }
                        Ok(reply)
                    }
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
                    send(&self.device, interrupted, Err(libc::EINTR));
                }
                return;
            }
            FORGET | BATCH_FORGET => return, // nodes are kept to the end
            DESTROY | UNLINK => Ok(Vec::new()), // which removes nothing
            _ => Err(libc::ENOSYS),
        };
        send(&self.device, unique, answer);
    }

    fn known(&self, number: u64) -> &Node {
        self.nodes.get(&number).expect("a request about an unknown node")
    }

    /// Returns the number of the node that `name` leads to, the same number each time.
    fn look_up(&mut self, directory: u64, name: &[u8]) -> Result<u64, c_int> {
        let place = (directory, name.to_vec());
        if let Some(number) = self.numbers.get(&place) {
            return Ok(*number);
        }
        let Node::Directory(parent) = self.known(directory) else {
            unreachable!("LOOKUP in a file")
        };
        let node = (parent.lookup)(name)?;
        let number = ROOT + self.nodes.len() as u64;
        self.numbers.insert(place, number);
        self.nodes.insert(number, node);
        Ok(number)
    }

    /// Returns the reply to the `LOOKUP` of `name`.
    fn found(&mut self, directory: u64, name: &[u8]) -> Result<Vec<u8>, c_int> {
        let (number, valid) = (self.look_up(directory, name)?, self.plus.unwrap_or(0));
        Ok([longs(&[number, 0, valid, valid, 0]), self.attributes(number)].concat())
    }

    fn attributes(&mut self, number: u64) -> Vec<u8> {
        let (mode, is_shifty) = match self.known(number) {
            Node::File => (libc::S_IFREG, false),
            Node::Directory(directory) => (libc::S_IFDIR, directory.is_shifty),
        };
        self.shifts += u64::from(is_shifty);
        let ino = if is_shifty { (1 << 32) + self.shifts } else { number };
        [longs(&[ino, 0, 0, 0, 0, 0]), words(&[0, 0, 0, mode | 0o755, 1, 0, 0, 0, 4096, 0])]
            .concat()
    }
}

impl Open {
    /// Returns the next names and their records, at most `size` bytes of them with a head for each.
    /// If the next answer is not a record, returns that answer.
    fn read(
        &mut self,
        offset: u64,
        size: usize,
        head_len: usize,
    ) -> Result<Vec<NamedRecord>, Answer> {
        let directory = self.directory.clone();
        let mut place = if directory.cookie.is_some() { self.place } else { offset };
        let mut left = match directory.batch {
            Batch::Full => u64::MAX,
            Batch::One => 1,
        };
        let (mut records, mut len) = (Vec::new(), 0);
        while left > 0 {
            match (directory.answers)(place) {
                Answer::Record(record) => {
                    let cookie = directory.cookie.map_or(place + 1, |cookie| cookie(place));
                    let bytes = fuse::record(record.ino, cookie, &record.name, record.d_type);
                    len += head_len + bytes.len();
                    if len > size {
                        break;
                    }
                    records.push((record.name, bytes));
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
}

/// A flag that lets the kernel request 1 MiB at once, instead of 128 KiB.
const MAX_PAGES: u32 = 1 << 22;
