//! The file systems that this machine can mount: each is one row, mounted for the time of one test and seen by it alone.
#![allow(dead_code, reason = "no test uses all of it")]

use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// A file system and how to get it.
pub struct FileSystem {
    pub name: &'static str,
    pub contents: Contents,
    end_cookie: Option<u64>,
    /// Shell commands that mount it at `at`, out of `source` or an `image` where it has one. A server goes on running.
    script: &'static str,
}

/// Where the contents of a file system come from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Contents {
    /// It is empty at first and can be written.
    Written,
    /// It is made from the directory `source`, and can only be read.
    Packed,
    /// It can be written; half of it comes from the directory `source`, the other half lies above.
    Merged,
    /// The kernel makes it up, the same for the whole machine. Some of its directories hold still.
    Kernel { still: &'static [&'static str], takes_directories: bool },
}

/// Which of the entries belong in the directory that is being filled.
#[derive(Clone, Copy)]
pub enum Part {
    All,
    Even,
    Odd,
}

impl Part {
    pub fn has(self, index: usize) -> bool {
        match self {
            Self::All => true,
            Self::Even => index % 2 == 0,
            Self::Odd => index % 2 == 1,
        }
    }
}

/// Of ext2, ext3 and ext4, to a process of this width.
const HASHED: Option<u64> = Some(if cfg!(target_pointer_width = "32") { i32::MAX as u64 } else { i64::MAX as u64 });
const MAX: Option<u64> = Some(i32::MAX as u64);

const PROC: Contents = kernel(&["sys/kernel", "sys/vm", "sys/net/ipv4", "self/attr", "1/ns"], false);
const SYS: Contents = kernel(&["class/tty", "class/net/lo", "devices/system/cpu", "kernel"], false);
const CGROUP: Contents = kernel(&["."], true);
const DEV: Contents = kernel(&[], true);

#[rustfmt::skip]
pub static FILE_SYSTEMS: [FileSystem; 16] = [
    row("tmpfs",           Contents::Written, MAX,    "mount -t tmpfs none at"),
    row("ramfs",           Contents::Written, None,   "mount -t ramfs none at"),
    row("ext2",            Contents::Written, HASHED, "mkfs.ext2 -q image 256M; mount -o loop image at"),
    row("ext4",            Contents::Written, HASHED, "mkfs.ext4 -q image 256M; mount -o loop image at"),
    row("ext4 ^filetype",  Contents::Written, HASHED, "mkfs.ext4 -q -O ^filetype image 256M; mount -o loop image at"),
    row("ext4 ^dir_index", Contents::Written, None,   "mkfs.ext4 -q -O ^dir_index image 256M; mount -o loop image at"),
    row("xfs",             Contents::Written, None,   "truncate -s 400M image; mkfs.xfs -q image; mount -o loop image at"),
    row("btrfs",           Contents::Written, MAX,    "truncate -s 256M image; mkfs.btrfs -q image; mount -o loop image at"),
    row("squashfs",        Contents::Packed,  None,   "mksquashfs source image -quiet -no-progress; mount -o loop image at"),
    row("overlay",         Contents::Written, None,   "mkdir work up; mount -t overlay -o lowerdir=source,upperdir=up,workdir=work o at"),
    row("overlay, merged", Contents::Merged,  None,   "mkdir work up; mount -t overlay -o lowerdir=source,upperdir=up,workdir=work o at"),
    row("FUSE (bindfs)",   Contents::Written, None,   "exec bindfs -f source at"),
    row("proc",            PROC,              None,   "mount -t proc none at"),
    row("sysfs",           SYS,               MAX,    "mount -t sysfs none at"),
    row("cgroup2",         CGROUP,            MAX,    "mount -t cgroup2 none at"),
    row("devtmpfs",        DEV,               MAX,    "mount -t devtmpfs none at"),
];

pub static HIDING_PROC: FileSystem = row("proc, hidepid=2", PROC, None, "mount -t proc -o hidepid=2 none at");

const fn kernel(still: &'static [&'static str], takes_directories: bool) -> Contents {
    Contents::Kernel { still, takes_directories }
}

const fn row(name: &'static str, contents: Contents, end_cookie: Option<u64>, script: &'static str) -> FileSystem {
    FileSystem { name, contents, end_cookie, script }
}

/// A file system while it is mounted.
pub struct Mounted {
    pub system: &'static FileSystem,
    pub at: PathBuf,
    _server: Server,
}

impl FileSystem {
    /// Those with contents of their own, which are not made up by the kernel.
    pub fn local() -> impl Iterator<Item = &'static Self> {
        FILE_SYSTEMS.iter().filter(|system| !matches!(system.contents, Contents::Kernel { .. }))
    }

    pub fn named(name: &str) -> &'static Self {
        FILE_SYSTEMS.iter().find(|system| system.name == name).expect("BUG: there is a row of this name")
    }

    /// What this kernel leaves in the last cookie of a directory, if that says that there is no more.
    pub fn end_cookie(&self) -> Option<u64> {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let mut release = release.split(|c: char| !c.is_ascii_digit()).map_while(|number| number.parse::<u32>().ok());
        let has_it = !self.name.ends_with("tmpfs") || (release.next(), release.next()) >= (Some(6), Some(14));
        self.end_cookie.filter(|_| has_it)
    }

    /// Whether its directories tell the types of their entries.
    pub fn has_types(&self) -> bool {
        !self.script.contains("^filetype")
    }

    /// Whether the time to fill a directory goes with the square of its entries: 20,000 take seconds.
    pub fn is_slow_to_fill(&self) -> bool {
        self.script.contains("^dir_index")
    }

    /// Mounts it, has `fill` make the contents, and runs `test`, all in a thread of its own; then nothing is left of it.
    ///
    /// Otherwise says what this machine lacks.
    pub fn mounted<T: Send>(
        &'static self,
        fill: impl Fn(&Path, Part) + Sync + Send,
        test: impl FnOnce(&Mounted) -> T + Send,
    ) -> Result<T, String> {
        in_own_namespace(|scratch| {
            let (at, source) = (scratch.join("at"), scratch.join("source"));
            match self.contents {
                Contents::Packed => fill(&source, Part::All),
                Contents::Merged => fill(&source, Part::Even),
                Contents::Written | Contents::Kernel { .. } => {}
            }
            let mounted = Mounted { system: self, _server: Server::start(self.script, scratch)?, at };
            match self.contents {
                Contents::Written => fill(&mounted.at, Part::All),
                Contents::Merged => fill(&mounted.at, Part::Odd),
                Contents::Packed | Contents::Kernel { .. } => {}
            }
            Ok(test(&mounted))
        })?
    }
}

/// Runs `test` in a thread with a mount namespace of its own, on a tmpfs that covers the temporary directory there.
///
/// Mounts, images and loop devices cannot outlive the namespace, however the process ends.
pub fn in_own_namespace<T: Send>(test: impl FnOnce(&Path) -> T + Send) -> Result<T, String> {
    let test = || {
        // SAFETY: a mount namespace of its own takes no memory and no descriptor from any thread.
        if unsafe { libc::unshare(libc::CLONE_NEWNS) } != 0 {
            return Err(format!("root, to mount ({})", io::Error::last_os_error()));
        }
        let scratch = std::env::temp_dir();
        let script = "mount --make-rprivate /; mount -t tmpfs none .; cd \"$PWD\"; mkdir at source";
        let output = shell(script, &scratch).output().map_err(|error| format!("sh ({error})"))?;
        if output.status.success() { Ok(test(&scratch)) } else { Err(last_line(&output.stderr)) }
    };
    thread::scope(|scope| scope.spawn(test).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The shell that mounted a file system, which is its server or has ended.
struct Server(Child);

impl Server {
    fn start(script: &str, scratch: &Path) -> Result<Self, String> {
        let device = |path: &Path| fs::metadata(path).map(|metadata| metadata.dev());
        let mut command = shell(script, scratch);
        let mut server = Self(command.spawn().map_err(|error| format!("sh ({error})"))?);
        while device(&scratch.join("at")).ok() == device(scratch).ok() {
            match server.0.try_wait() {
                Ok(None) => thread::sleep(Duration::from_millis(1)),
                Ok(Some(status)) if status.success() => break,
                _ => {
                    let mut complaint = Vec::new();
                    let _ = server.0.stderr.take().map(|mut stderr| stderr.read_to_end(&mut complaint));
                    return Err(last_line(&complaint));
                }
            }
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn shell(script: &str, scratch: &Path) -> Command {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("/bin/sh");
    command.args(["-ec", script]).current_dir(scratch).env("PATH", format!("{path}:/usr/sbin:/sbin"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    // SAFETY: `prctl` is async-signal-safe and this operation touches no memory.
    unsafe {
        command.pre_exec(|| {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            Ok(())
        })
    };
    command
}

fn last_line(text: &[u8]) -> String {
    String::from_utf8_lossy(text).trim_end().lines().last().unwrap_or("no reason given").to_owned()
}
