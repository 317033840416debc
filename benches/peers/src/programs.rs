//! Measures the same work in other languages, by programs that are built first and then read
//! directories on request.
//!
//! The arguments of such a program are the directories. On standard input, it gets a number of
//! readings and the index of a directory. It reads that number of directories in turn, beginning
//! with this index. It answers with the nanoseconds that this took, and with the bytes of the last
//! directory's names. For 0 readings, it answers with the length of the directory's names, each
//! with a NUL after it, and then with the sorted names. So it can take turns with the contenders of
//! this process.

use lendir_benches::contender::{Contender, Work, hash};
use lendir_benches::directories::{Answer, Directory};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::time::Duration;

/// A compiled program that sorts.
pub struct Program {
    name: &'static str,
    path: PathBuf,
}

/// Builds the programs. Returns the ones that could be built, and a sentence about each of the
/// others.
///
/// They are placed next to this program, because the directory for temporary files may be mounted
/// `noexec`.
pub fn build() -> (Vec<Program>, Vec<String>) {
    let (mut programs, mut missing) = (Vec::new(), Vec::new());
    let sources = [
        ("Go os.ReadDir", "peers.go", "go build -o"),
        ("C++, gitstatus v5", "gitstatus.cc", "g++ -std=c++17 -O3 -o"),
    ];
    for (name, source, compiler) in sources {
        let path = directory().join(source).with_extension("built");
        let mut words = compiler.split(' ');
        let mut command = Command::new(words.next().expect("BUG: `split` gave nothing"));
        let command =
            command.args(words).arg(&path).arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(source));
        match run(command) {
            Ok(_) => programs.push(Program { name, path }),
            Err(failure) => missing
                .push(format!("Without `{compiler}` the rows of {name} are missing: {failure}")),
        }
    }
    (programs, missing)
}

/// Returns the directory that contains this program.
pub fn directory() -> PathBuf {
    let this = std::env::current_exe().expect("cannot find this program");
    this.parent().expect("BUG: the path of this program has no parent").into()
}

/// Runs a command until it ends. The error is its output on standard error.
pub fn run(command: &mut Command) -> Result<Output, String> {
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(output)
    } else {
        Err(String::from_utf8_lossy(&output.stderr).trim().into())
    }
}

impl Program {
    pub fn contender<'a>(&self, dir: &'a Directory) -> Contender<'a> {
        let running = Running::start(&self.path, dir).expect("cannot start the program just built");
        Contender::new(self.name, dir.oracle(Answer::Sorted), running)
    }
}

/// A running program. It ends when its standard input is closed.
struct Running<'a> {
    dir: &'a Directory,
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

impl<'a> Running<'a> {
    fn start(program: &Path, dir: &'a Directory) -> io::Result<Self> {
        let mut command = Command::new(program);
        let mut child =
            command.args(dir.paths()).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let stdout =
            BufReader::new(child.stdout.take().expect("BUG: standard output is not piped"));
        Ok(Self { dir, stdin: child.stdin.take(), stdout, child })
    }

    fn ask(&mut self, times: u64) -> io::Result<Vec<u64>> {
        let mut stdin = self.stdin.as_ref().expect("BUG: standard input was closed before `drop`");
        let path = self.dir.turn_path();
        let first = self.dir.paths().position(|it| it == path).expect("BUG: not in turn");
        (1..times).for_each(|_| _ = self.dir.turn()); // which the program reads, too
        stdin.write_all(format!("{times} {first}\n").as_bytes())?;
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        line.split_ascii_whitespace()
            .map(|number| number.parse().map_err(io::Error::other))
            .collect()
    }

    fn names(&mut self) -> io::Result<u64> {
        let &[len] = &*self.ask(0)? else { return Err(io::ErrorKind::InvalidData.into()) };
        let mut names = Vec::new();
        (&mut self.stdout).take(len).read_to_end(&mut names)?;
        Ok(hash(names.split_inclusive(|byte| *byte == 0).map(|name| &name[..name.len() - 1])))
    }

    fn read(&mut self, times: u64) -> io::Result<Duration> {
        let &[nanoseconds, _bytes] = &*self.ask(times)? else {
            return Err(io::ErrorKind::InvalidData.into());
        };
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
