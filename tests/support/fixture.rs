//! Directories to read, and functions that run the examples.

pub use super::example::example;
use super::machine::skip;
use super::process::in_thread;
use super::scratch::Scratch;
use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::str;

/// Makes a directory with `count` empty files, named by numbers as processes are.
pub fn numbered(count: usize) -> Scratch {
    let dir = Scratch::in_memory();
    for number in 1..=count {
        make_file(&dir.path().join(number.to_string()));
    }
    dir
}

pub fn make_file(path: &Path) {
    File::create_new(path).expect("cannot make the file");
}

/// Makes entries of every type that needs no privilege, with names of many lengths and bytes.
pub fn mixed() -> Scratch {
    let root = Scratch::new();
    let dir = root.path();
    for name in ["directory", "Directory", ".hidden", "-f"] {
        fs::create_dir(dir.join(name)).unwrap();
    }
    for (name, target) in
        [("link", "nowhere"), ("link to a directory", "directory"), ("link to a file", "plain")]
    {
        symlink(target, dir.join(name)).unwrap();
    }
    mkfifoat(CWD, dir.join("fifo"), Mode::RWXU).unwrap();
    drop(UnixListener::bind(dir.join("socket")).unwrap());
    let letters =
        ["plain", "a", "A", "ab", "aB", "Ab", "b", "B", "_", "[", "~", " ", "\t", "\n", "é"];
    let odd: [&[u8]; 5] = [b"\xff", b"\xff\xfe", b"\x01", b"\x80 \xc3", b"two\nlines"];
    for name in letters.iter().map(|name| name.as_bytes()).chain(odd) {
        make_file(&dir.join(OsStr::from_bytes(name)));
    }
    for len in [7, 8, 9, 16, 255] {
        make_file(&dir.join("x".repeat(len)));
    }
    root
}

pub fn run(command: &mut Command) -> Output {
    command.output().expect("cannot run the program")
}

/// Returns `true` if GNU's program of this name is installed. Otherwise, reports that `test` is
/// skipped.
pub fn has_gnu(program: &str, test: &str) -> bool {
    let version = Command::new(program).arg("--version").output();
    let has =
        version.is_ok_and(|output| output.stdout.starts_with(format!("{program} (GNU").as_bytes()));
    if !has {
        skip(test, &format!("GNU {program}"));
    }
    has
}

/// Runs a program without root's privileges, so permissions are enforced.
pub fn run_unprivileged(command: &mut Command) -> Output {
    in_thread(|| {
        for capability in [CapabilitySet::DAC_OVERRIDE, CapabilitySet::DAC_READ_SEARCH] {
            // A program that root executes gets all capabilities of this set. Other users have no
            // permission to change the set, and need not.
            let _ = remove_capability_from_bounding_set(capability);
        }
        run(command)
    })
}

/// Runs a shell script that may mount; `$0` is the path of the example. Returns `None` without user
/// namespaces.
pub fn in_mount_namespace(dir: &Path, name: &str, script: &str) -> Option<Output> {
    let unshare =
        |command: &[&str]| run(Command::new("unshare").current_dir(dir).arg("-rm").args(command));
    let can_mount = unshare(&["mount", "-t", "tmpfs", "none", "/tmp"]).status.success();
    let example = example(name);
    can_mount.then(|| {
        unshare(&[
            "sh",
            "-c",
            script,
            example.get_program().to_str().expect("the path is not UTF-8"),
        ])
    })
}

pub fn run_into(command: &mut Command, stdout: impl Into<Stdio>) -> Output {
    command.stdout(stdout).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap()
}
