//! Other programs that read directories, to compare with `lendir`: find, Python and Go.

use crate::support::scratch::Scratch;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::fd::IntoRawFd;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

/// A program that prints the names in the directories that it is given, with a NUL after each.
pub struct Reader {
    pub name: &'static str,
    program: OsString,
    before: &'static [&'static str],
    after: &'static [&'static str],
}

/// The answer of a reader.
pub struct Output {
    pub names: Vec<Vec<u8>>,
    /// Whether it ended with success.
    pub is_content: bool,
}

/// Each is set up once for all tests of this process. An error has the name of the reader, and what this machine lacks.
pub static READERS: LazyLock<[Result<Reader, (&str, String)>; 4]> = LazyLock::new(|| {
    [
        ready("Go `os.ReadDir`", go(), &[], &[]),
        ready("Python `os.listdir`", python(), &["-ISc", LISTDIR], &[]),
        ready("Python `os.scandir`", python(), &["-ISc", SCANDIR], &[]),
        ready("find", find(), &["-H"], &["-mindepth", "1", "-maxdepth", "1", "-printf", "%f\\0"]),
    ]
});

/// Programs that print the paths of everything below the directories that they are given, relative to these.
pub static WALKERS: LazyLock<[Result<Reader, (&str, String)>; 2]> = LazyLock::new(|| {
    [
        ready("Python `os.fwalk`", python(), &["-ISc", FWALK], &[]),
        ready("find", find(), &["-H"], &["-mindepth", "1", "-printf", "%P\\0"]),
    ]
});

fn ready(
    name: &'static str,
    program: io::Result<OsString>,
    before: &'static [&'static str],
    after: &'static [&'static str],
) -> Result<Reader, (&'static str, String)> {
    match program {
        Ok(program) => Ok(Reader { name, program, before, after }),
        Err(missing) => Err((name, missing.to_string())),
    }
}

const LISTDIR: &str = "import os, sys
for directory in sys.argv[1:]:
    for name in os.listdir(os.fsencode(directory)): sys.stdout.buffer.write(name + b'\\0')";

const SCANDIR: &str = "import os, sys
for directory in sys.argv[1:]:
    for entry in os.scandir(os.fsencode(directory)): sys.stdout.buffer.write(entry.name + b'\\0')";

const FWALK: &str = "import os, sys
for root in map(os.path.realpath, map(os.fsencode, sys.argv[1:])):
    for directory, directories, files, _ in os.fwalk(root):
        for name in directories + files:
            sys.stdout.buffer.write(os.path.join(directory, name)[len(root) + 1:] + b'\\0')";

const GO: &str = r#"package main

import "os"

func main() {
	status := 0
	for _, directory := range os.Args[1:] {
		var names []byte
		entries, err := os.ReadDir(directory)
		for _, entry := range entries {
			names = append(append(names, entry.Name()...), 0)
		}
		os.Stdout.Write(names)
		if err != nil {
			status = 1
		}
	}
	os.Exit(status)
}
"#;

impl Reader {
    pub fn read<Dir: AsRef<OsStr>>(&self, directories: &[Dir]) -> Output {
        let mut command = Command::new(&self.program);
        command.args(self.before).args(directories).args(self.after).stderr(Stdio::null());
        let output = command.output().unwrap();
        let mut names: Vec<_> = output.stdout.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect();
        assert_eq!(names.pop(), Some(vec![]), "{}: no NUL after the last name", self.name);
        Output { names, is_content: output.status.success() }
    }
}

/// A path to the built program through a descriptor that stays open, so no file is left.
fn go() -> io::Result<OsString> {
    let scratch = Scratch::new();
    fs::write(scratch.path().join("list.go"), GO)?;
    let build = ["build", "-o", "list", "list.go"];
    answer(Command::new("go").args(build).current_dir(scratch.path()).env("GO111MODULE", "off"))?;
    let descriptor = File::open(scratch.path().join("list"))?.into_raw_fd();
    Ok(format!("/proc/{}/fd/{descriptor}", std::process::id()).into())
}

/// The interpreter itself, not a script that looks for one.
fn python() -> io::Result<OsString> {
    let itself = answer(Command::new("python3").args(["-c", "import sys; print(sys.executable, end='')"]))?;
    Ok(Path::new(&itself).into())
}

fn find() -> io::Result<OsString> {
    answer(Command::new("find").args(["/", "-maxdepth", "0", "-printf", "%f"]))?;
    Ok("find".into())
}

/// What `command` prints if it succeeds.
fn answer(command: &mut Command) -> io::Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    match command.output() {
        Ok(output) if output.status.success() => String::from_utf8(output.stdout).map_err(io::Error::other),
        Ok(output) => Err(io::Error::other(format!("a `{program}` that works ({})", output.status))),
        Err(error) => Err(io::Error::other(format!("`{program}` ({error})"))),
    }
}
