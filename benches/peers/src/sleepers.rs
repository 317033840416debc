//! Starts processes that sleep, with known threads, descriptors and cgroups.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

/// The argument that makes this program such a process.
pub const SLEEP: &str = "--sleep";

pub const PROCESSES: usize = 64;
/// The number of threads besides the first thread of a process. They are named `idle-0`, `idle-1`,
/// …
pub const THREADS: usize = 8;
/// The number of descriptors besides standard input, output and error.
pub const DESCRIPTORS: usize = 16;

/// Children of this process. Each ends when its standard input is closed, even if this process is
/// killed.
pub struct Sleepers {
    children: Vec<Child>,
    cgroups: io::Result<Cgroups>,
}

impl Sleepers {
    pub fn start() -> Self {
        let this = std::env::current_exe().expect("cannot find this program");
        let start = |_| {
            let mut command = Command::new(&this);
            let command = command
                .arg(SLEEP)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null());
            command.spawn().expect("cannot start a process")
        };
        let children = (0..PROCESSES).map(start).collect();
        let mut all = Self { children, cgroups: Err(ErrorKind::NotFound.into()) };
        for child in &mut all.children {
            let stdout = child.stdout.as_mut().expect("BUG: standard output is not piped");
            BufReader::new(stdout)
                .read_line(&mut String::new())
                .expect("a process did not say that it sleeps");
        }
        all.cgroups = Cgroups::make(&all.children);
        all
    }

    /// Returns the root of the tree of cgroups.
    pub fn cgroups(&self) -> Result<&Path, &io::Error> {
        self.cgroups.as_ref().map(|cgroups| &*cgroups.0)
    }

    /// Returns the PIDs, as they are written in `/proc`.
    pub fn pids(&self) -> HashSet<Vec<u8>> {
        self.children.iter().map(|child| child.id().to_string().into_bytes()).collect()
    }
}

impl Drop for Sleepers {
    /// Kills the processes first, because only an empty tree of cgroups can be removed.
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill().and_then(|()| child.wait());
        }
    }
}

/// Runs such a process.
pub fn sleep() {
    let _open: Vec<_> =
        (0..DESCRIPTORS).map(|_| File::open("/dev/null").expect("cannot open /dev/null")).collect();
    for index in 0..THREADS {
        let thread = thread::Builder::new().name(format!("idle-{index}")).stack_size(1 << 16);
        thread
            .spawn(|| {
                loop {
                    thread::park();
                }
            })
            .expect("cannot start a thread");
    }
    println!("asleep");
    io::stdin().read_to_end(&mut Vec::new()).expect("cannot read standard input");
}

/// A tree of 73 cgroups, 8 in each down to the second level. The children are in its leaves.
struct Cgroups(PathBuf);

const WIDTH: usize = 8;

/// The places for the tree, of which the first that exists is used: version 2 alone, version 2
/// beside version 1, or a controller of version 1.
const PARENTS: [&str; 3] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/pids"];

impl Cgroups {
    fn make(children: &[Child]) -> io::Result<Self> {
        let is_cgroup = |path: &&str| Path::new(path).join("cgroup.procs").exists();
        let parent = PARENTS.into_iter().find(is_cgroup).ok_or(ErrorKind::NotFound)?;
        let tree = Self(Path::new(parent).join("lendir-peers"));
        let _ = remove(&tree.0); // it may be left from a run that was killed
        let branches = (0..WIDTH).map(|index| tree.0.join(format!("branch-{index}")));
        let leaves: Vec<_> = branches
            .flat_map(|branch| (0..WIDTH).map(move |index| branch.join(format!("leaf-{index}"))))
            .collect();
        leaves.iter().try_for_each(fs::create_dir_all)?;
        for (child, leaf) in children.iter().zip(leaves.iter().cycle()) {
            fs::write(leaf.join("cgroup.procs"), child.id().to_string())?;
        }
        Ok(tree)
    }
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        let _ = remove(&self.0);
    }
}

/// Removes a cgroup. Its files need not be removed, because they belong to the directory.
fn remove(cgroup: &Path) -> io::Result<()> {
    for entry in fs::read_dir(cgroup)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove(&entry.path())?;
        }
    }
    fs::remove_dir(cgroup)
}
