//! The same work in other languages: programs built here and now, which read when they are told to.
//!
//! Such a program has the directories that take turns as its arguments. Given a number of readings and the index of a directory
//! on its standard input, it reads one directory after the other from there on, and answers with the nanoseconds that took and
//! the bytes of the last one's names. Given 0 readings, it answers with the length of the names of that directory, each with a
//! NUL after it, and then with the names, in its own order. So it can take its turn among the contenders of this process.

use lendir_benches::contender::{Contender, Work, hash};
use lendir_benches::directories::{Answer, Directory};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::time::Duration;

/// A compiled program; the ways to read that it knows are its rows in the table.
pub struct Program {
    path: PathBuf,
    ways: &'static [Way],
}

struct Way {
    name: &'static str,
    argument: &'static str,
    /// `Names` or `Sorted`.
    answer: Answer,
}

/// Those that could be built, and a sentence on each that could not.
///
/// They are put next to this program, because the directory for temporary files may be mounted `noexec`.
pub fn build() -> (Vec<Program>, Vec<String>) {
    let into = directory();
    let source = |name| Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let (go, ladder) = (into.join("peers-go"), into.join("peers-ladder"));
    let mut missing = Vec::new();
    let mut programs = Vec::new();
    let mut compile = |command: &mut Command, path: &Path, ways| match run(command) {
        Ok(_) => programs.push(Program { path: path.into(), ways }),
        Err(failure) => {
            missing.push(format!("Without `{}` its rows are missing: {failure}", command.get_program().display()));
        }
    };
    compile(Command::new("go").args(["build", "-o"]).arg(&go).arg(source("peers.go")), &go, GO);
    compile(
        Command::new("g++").args(["-std=c++17", "-O3", "-o"]).arg(&ladder).arg(source("ladder.cc")),
        &ladder,
        LADDER,
    );
    (programs, missing)
}

/// The directory that this program is in.
pub fn directory() -> PathBuf {
    let this = std::env::current_exe().expect("cannot find this program");
    this.parent().expect("BUG: the path of this program has no parent").into()
}

/// Runs it to its end. Why it failed is what it wrote to its standard error.
pub fn run(command: &mut Command) -> Result<Output, String> {
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() { Ok(output) } else { Err(String::from_utf8_lossy(&output.stderr).trim().into()) }
}

const GO: &[Way] = &[
    Way { name: "Go, getdents64", argument: "lending", answer: Answer::Names },
    Way { name: "Go os.ReadDir", argument: "ReadDir", answer: Answer::Sorted },
];

const LADDER: &[Way] = &[
    Way { name: "C++, readdir", argument: "v1", answer: Answer::Sorted },
    Way { name: "C++, gitstatus v5", argument: "v5", answer: Answer::Sorted },
];

impl Program {
    /// Those of its ways that sort, or those that do not.
    pub fn contenders<'a>(&self, dir: &'a Directory, sorted: bool) -> impl Iterator<Item = Contender<'a>> {
        let ways = self.ways.iter().filter(move |way| matches!(way.answer, Answer::Sorted) == sorted);
        ways.map(|way| {
            let running = Running::start(&self.path, way.argument, dir).expect("cannot start the program just built");
            Contender::new(way.name, dir.oracle(way.answer), running)
        })
    }
}

/// It ends when its standard input does.
struct Running<'a> {
    dir: &'a Directory,
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl<'a> Running<'a> {
    fn start(program: &Path, way: &str, dir: &'a Directory) -> io::Result<Self> {
        let mut command = Command::new(program);
        let mut child = command.arg(way).args(dir.paths()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let stdout = BufReader::new(child.stdout.take().expect("BUG: standard output is not piped"));
        Ok(Self { dir, stdin: child.stdin.take(), stdout, child })
    }

    fn ask(&mut self, times: u64) -> io::Result<Vec<u64>> {
        let mut stdin = self.stdin.as_ref().expect("BUG: standard input was closed before `drop`");
        let first = self.dir.turns(times.max(1));
        stdin.write_all(format!("{times} {first}\n").as_bytes())?;
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        line.split_ascii_whitespace().map(|number| number.parse().map_err(io::Error::other)).collect()
    }

    fn names(&mut self) -> io::Result<u64> {
        let &[len] = &*self.ask(0)? else { return Err(io::ErrorKind::InvalidData.into()) };
        let mut names = Vec::new();
        (&mut self.stdout).take(len).read_to_end(&mut names)?;
        Ok(hash(names.split_inclusive(|byte| *byte == 0).map(|name| &name[..name.len() - 1])))
    }

    fn read(&mut self, times: u64) -> io::Result<Duration> {
        let &[nanoseconds, _bytes] = &*self.ask(times)? else { return Err(io::ErrorKind::InvalidData.into()) };
        Ok(Duration::from_nanos(nanoseconds))
    }
}

impl Work for Running<'_> {
    fn time(&mut self, times: u64) -> Duration {
        self.read(times).expect("the program did not answer with a duration")
    }

    fn answer(&mut self) -> u64 {
        self.names().expect("the program did not answer with names")
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.child.wait();
    }
}
