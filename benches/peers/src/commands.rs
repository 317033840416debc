//! Whole programs that list a tree or add it up: `examples/find` and `examples/du` beside those that are installed.

use crate::programs::{directory, run};
use lendir_benches::Arguments;
use lendir_benches::contender::{Contender, Oracle, Work};
use lendir_benches::table::time;
use lendir_benches::trees::{Answer, Fixture, Tree};
use lendir_benches::turns::{Effort, Turns};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How the commands begin that are examples of `lendir`, built here and now.
pub const OWN: &str = "examples/";

/// Commands that do the same work; the path of a tree is appended to each. All are measured against the first one.
struct Task {
    name: &'static str,
    commands: &'static [&'static str],
    /// Those of them whose output is compared with the oracle begin with one of these.
    checked: &'static [&'static str],
    answer: fn(&[u8], &Path) -> u64,
    oracle: fn(&Tree) -> Oracle<'_>,
}

const FIND: Task = Task {
    name: "find",
    commands: &[
        "examples/find -j 1",
        "examples/find -j 2",
        "find",
        "bfs",
        "bfs -j1",
        "fdfind -u -j1 .",
        "fdfind -u -j2 .",
    ],
    checked: &[""],
    answer: bytes_of_names,
    oracle: |tree| tree.oracle(Answer::Bytes),
};

const DU: Task = Task {
    name: "du",
    commands: &[
        "examples/du -s -j 1",
        "examples/du -s -j 2",
        "du -sk",
        "dua -t1 aggregate",
        "dua -t2 aggregate",
        "pdu --threads=1 --max-depth=1",
        "pdu --threads=2 --max-depth=1",
        "gdu -npsc -m1",
        "gdu -npsc -m2",
    ],
    // The others round, and some count a file once for each of its links.
    checked: &["examples/du ", "du "],
    answer: |output, _| kibibytes(output),
    oracle: |tree| {
        Oracle::new(&tree.label, false, || {
            kibibytes(&run(&mut command("du -sk", tree.path())).expect("`du -sk` failed").stdout)
        })
    },
};

/// Prints a table for each task and tree, in which times are ratios of medians.
pub fn print_tables(arguments: &Arguments) {
    let (fixtures, effort) = if arguments.has("--test") {
        (vec![Fixture::Small], Effort::test())
    } else {
        (Fixture::all().into(), Effort::rounds(7))
    };
    let mut is_built = false;
    for task in [FIND, DU] {
        for fixture in &fixtures {
            let title = format!("Peers: programs, {} on {}", task.name, fixture.label());
            if arguments.ask_for(&title) {
                if !is_built {
                    build_examples();
                    is_built = true;
                }
                println!("\n### {title}\n");
                task.print(&fixture.make(), effort);
            }
        }
    }
}

/// In the directory of this program, where cargo puts examples beside it.
pub fn build_examples() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "--example=find", "--example=du", "--manifest-path"]).arg(manifest);
    run(cargo.arg("--target-dir").arg(directory().join(".."))).expect("cannot build the examples");
}

impl Task {
    fn print(&self, tree: &Tree, effort: Effort) {
        let mut contenders = Vec::new();
        for &name in self.commands {
            // What is not installed fails here, and so does an option that this version does not have.
            match run(&mut command(name, tree.path())) {
                Ok(_) => contenders.push(Contender::new(
                    name,
                    (self.oracle)(tree),
                    Whole { name, tree, answer: self.answer },
                )),
                Err(failure) if name.starts_with(OWN) => panic!("{name}: {failure}"),
                Err(failure) => println!("SKIPPED `{name}`: {}  ", failure.lines().next().unwrap_or_default()),
            }
        }
        let is_checked = |it: &&mut Contender<'_>| self.checked.iter().any(|start| it.name.starts_with(start));
        contenders.iter_mut().filter(is_checked).for_each(Contender::check);
        let turns = Turns::take(&mut contenders, effort);

        println!("\n| | time | system calls | peak memory |");
        println!("|---|---|---|---|");
        for (index, Contender { name, .. }) in contenders.iter().enumerate() {
            let time =
                if index == 0 { time(turns.median(0)) } else { format!("{:.2}", turns.ratio(index, 0).of_medians) };
            // The last line of `strace -c` is the total: percent, seconds, microseconds a call, calls.
            let calls =
                last_line("strace -fc", name, tree).and_then(|line| line.split_whitespace().nth(3).map(String::from));
            let memory = last_line("/usr/bin/time -f %M", name, tree).and_then(|line| line.trim().parse::<f64>().ok());
            let calls = calls.unwrap_or_else(|| "–".into());
            let memory = memory.map_or_else(|| "–".into(), |kib| format!("{:.1} MiB", kib / 1024.0));
            println!("| `{name}` | {time} | {calls} | {memory} |");
        }
    }
}

/// What `observer` says last about the command. `None` without it.
///
/// A child of this process would not do: the kernel begins its peak memory with that of the process that started it.
fn last_line(observer: &str, name: &str, tree: &Tree) -> Option<String> {
    let inner = command(name, tree.path());
    let mut words = observer.split(' ');
    let mut command = Command::new(words.next()?);
    command.args(words).arg(inner.get_program()).args(inner.get_args());
    let stderr = command.stdout(Stdio::null()).stderr(Stdio::piped()).output().ok()?.stderr;
    String::from_utf8_lossy(&stderr).lines().last().map(String::from)
}

pub fn command(name: &str, root: &Path) -> Command {
    let mut words = name.split(' ');
    let program = words.next().expect("BUG: `split` gave nothing");
    let is_own = program.starts_with(OWN);
    let mut command = if is_own { Command::new(directory().join(program)) } else { Command::new(program) };
    command.args(words).arg(root);
    command
}

struct Whole<'a> {
    name: &'static str,
    tree: &'a Tree,
    answer: fn(&[u8], &Path) -> u64,
}

impl Work for Whole<'_> {
    fn time(&mut self, times: u64) -> Duration {
        let begin = Instant::now();
        for _ in 0..times {
            let mut command = command(self.name, self.tree.path());
            let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
            status.expect("cannot run the command again");
        }
        begin.elapsed()
    }

    fn answer(&mut self) -> u64 {
        (self.answer)(
            &run(&mut command(self.name, self.tree.path())).expect("the command failed").stdout,
            self.tree.path(),
        )
    }
}

/// In a list of paths. Some programs list the root too, and some write `/` after directories.
pub fn bytes_of_names(output: &[u8], root: &Path) -> u64 {
    let paths = output.split(|byte| *byte == b'\n').map(|path| path.strip_suffix(b"/").unwrap_or(path));
    let below = paths.filter(|path| *path != root.as_os_str().as_bytes());
    below.map(|path| path.rsplit(|byte| *byte == b'/').next().map_or(0, |name| name.len() as u64)).sum()
}

/// The number that `du -sk` prints.
pub fn kibibytes(output: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(output);
    text.split_whitespace().next().and_then(|number| number.parse().ok()).expect("`du` printed no number")
}
