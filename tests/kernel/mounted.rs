//! Mounts that last as long as their test, in a mount namespace that no other test sees.

use crate::file_systems::{Contents, FileSystem};
use crate::support::prelude::*;
use crate::support::process::in_thread;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::io::Read;

/// A file system while it is mounted.
pub struct Mounted {
    pub system: &'static FileSystem,
    pub at: PathBuf,
    _server: Process,
}

/// The part of the entries that belong in the directory that is being filled.
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

impl FileSystem {
    /// Mounts the file system, makes the entries with `fill`, and runs `test`, all in a thread of
    /// its own. Nothing remains afterwards. An error names what this machine lacks.
    pub fn mounted<T: Send>(
        &'static self,
        fill: impl Fn(&Path, Part) + Sync + Send,
        test: impl FnOnce(&Mounted) -> T + Send,
    ) -> Result<T, String> {
        in_own_namespace(|scratch| {
            let [at, source] = ["at", "source"].map(|name| scratch.join(name));
            fs::create_dir(&at).unwrap();
            fs::create_dir(&source).unwrap();
            match self.contents {
                Contents::Packed => fill(&source, Part::All),
                Contents::Merged => fill(&source, Part::Even),
                Contents::Written | Contents::Kernel { .. } => {}
            }
            let mounted = Mounted { system: self, _server: run_script(self.script, scratch)?, at };
            match self.contents {
                Contents::Written => fill(&mounted.at, Part::All),
                Contents::Merged => fill(&mounted.at, Part::Odd),
                Contents::Packed | Contents::Kernel { .. } => {}
            }
            Ok(test(&mounted))
        })?
    }
}

/// Runs `test` in a thread with a mount namespace of its own and an empty directory, a tmpfs.
/// Threads and processes that `test` starts are in the namespace, too. However the process ends,
/// mounts, images and loop devices do not outlive it. An error names what this machine lacks.
pub fn in_own_namespace<T: Send>(test: impl FnOnce(&Path) -> T + Send) -> Result<T, String> {
    let scratch = Scratch::new();
    in_thread(|| {
        let scratch = scratch.path();
        let isolate = || {
            // SAFETY: this does not change any thread's descriptors.
            unsafe { unshare_unsafe(UnshareFlags::NEWNS)? };
            mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
            mount("none", scratch, "tmpfs", MountFlags::empty(), c"")
        };
        isolate().map_err(|error| format!("the right to mount ({})", io::Error::from(error)))?;
        Ok(test(scratch))
    })
}

/// Runs `test` [in its own namespace](in_own_namespace), or reports that `row` is skipped.
pub fn run_isolated<T: Send>(row: &str, test: impl FnOnce(&Path) -> T + Send) {
    machine::skip_unless(row, in_own_namespace(test));
}

/// Runs a script that mounts something at `at`. Returns the shell, which is the server by then or
/// has ended.
fn run_script(script: &str, scratch: &Path) -> Result<Process, String> {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("/bin/sh");
    shell.args(["-ec", script]).current_dir(scratch).env("PATH", format!("{path}:/usr/sbin:/sbin"));
    let mut shell =
        Process::start(shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()));
    let device = |path: &Path| fs::metadata(path).map(|metadata| metadata.dev());
    while device(&scratch.join("at")).ok() == device(scratch).ok() {
        match shell.0.try_wait() {
            Ok(None) => thread::sleep(Duration::from_millis(1)),
            Ok(Some(status)) if status.success() => break,
            _ => {
                let mut complaint = Vec::new();
                let _ = shell.0.stderr.take().map(|mut stderr| stderr.read_to_end(&mut complaint));
                let complaint = String::from_utf8_lossy(&complaint);
                let complaint = complaint.trim_end().lines().last().unwrap_or("no reason given");
                return Err(format!("what mounts it ({complaint})"));
            }
        }
    }
    Ok(shell)
}
