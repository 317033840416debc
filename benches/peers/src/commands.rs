//! Measures whole programs that list a tree or add up its sizes: the examples of `lendir`, programs
//! of other crates, which are built first, and installed programs. They run with warm and with cold
//! caches, and on a file system that takes a millisecond for each request.

use crate::fuse::{LETTERS, POINT, Server, Service, Shape};
use crate::programs::{directory, run};
use lendir_benches::Arguments;
use lendir_benches::contender::{Contender, Oracle, Work, hash};
use lendir_benches::ratio::{Bench, cell, time};
use lendir_benches::trees::{Answer, Fixture, Tree};
use std::fmt::Write;
use std::fs::DirEntry;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Returns `true` for an example of `lendir`, and for `files` of this package, which are built first.
fn is_own(name: &str) -> bool {
    name.starts_with("examples/") || name.starts_with("files")
}

/// The directory for the programs of other crates.
const PEERS: &str = "peers";

/// A set of commands that do the same work on a tree.
struct Task {
    name: &'static str,
    /// The crate whose program is built, and its version.
    peer: &'static str,
    /// The tree with warm and with cold caches.
    tree: Fixture,
    commands: &'static [&'static str],
}

const TASKS: [Task; 3] = [
    Task {
        name: "find",
        peer: "fdf@0.9.8",
        tree: Fixture::System("/usr"),
        commands: &[
            "examples/find -j 1",
            "examples/find -j 2",
            "examples/find -j 8",
            "examples/find -j 32",
            "find",
            "find {} -size -9G",
            "bfs",
            "bfs -size -9G",
            "fdfind -u -j1 .",
            "fdfind -u -j2 .",
            "fdfind -u -j8 .",
            "fdfind -u -j32 .",
            "fdf -HI -j1 .",
            "fdf -HI -j2 .",
            "fdf -HI -j8 .",
        ],
    },
    Task {
        name: "du",
        peer: "fdu@0.5.0",
        tree: Fixture::System("/usr"),
        commands: &[
            "examples/du -s -j 1",
            "examples/du -s -j 2",
            "examples/du -s -j 8",
            "examples/du -s -j 32",
            "du -sk",
            // It has no option for its threads, and starts one for each core.
            "fdu --no-gitignore --view=summary --format=json",
        ],
    },
    Task {
        name: "files",
        peer: "ripgrep@15.2.0",
        tree: Fixture::Repositories,
        commands: &[
            "rg --files --no-require-git -j1",
            "rg --files --no-require-git -j2",
            "rg --files --no-require-git -j8",
            "files -j 1",
            "files -j 2",
            "files -j 8",
        ],
    },
];

/// The output of a command.
#[derive(Clone, Copy)]
enum Output {
    Paths,
    /// The paths of some files, in any order.
    Files,
    /// The size of the tree on disk, in KiB.
    Usage,
    /// The size of the contents of its files: without directories and links. A file with two links
    /// counts twice.
    UsageOfFiles,
}

/// Returns a table in Markdown for each task.
pub fn tables(arguments: &Arguments, bench: &mut Bench) -> String {
    let is_test = arguments.has("--test");
    // A file system that takes a millisecond for each request.
    let shape = Shape::of_tens(if is_test { 1 } else { 3 });
    let mut all = String::new();
    for task in TASKS.iter().filter(|task| arguments.ask_for(TITLE, task.name)) {
        build_own();
        let peer = install(task.peer);
        let tree = match task.tree {
            Fixture::System(_) if is_test => Fixture::Small,
            tree => tree,
        };
        let tree = tree.make();
        let warm = task.on_warm_caches(bench, &tree);
        let cold = task.on_cold_caches(&tree, is_test);
        // The mounts are in the namespace of one thread, which ends with this thread.
        let slow = thread::spawn(move || task.on_slow(shape))
            .join()
            .expect("the thread that measures panicked");
        let (place, directories, files) = (&tree.label, shape.directories(), shape.files());
        write!(
            all,
            "\n### {TITLE}: {}\n\n{}Slow: {directories} directories and {files} files on FUSE, {LATENCY:?} a request; \
             with READDIRPLUS: answers are kept for {TTL} s, and requests are shown by kind ({LETTERS})\n\n\
             | | {place} | system calls | peak memory | cold caches | slow | requests waited for | at once | with READDIRPLUS |\n\
             |---|---|---|---|---|---|---|---|---|\n",
            task.name,
            peer.err().unwrap_or_default()
        )
        .expect(TO_STRING);
        for (((name, warm), cold), slow) in task.commands.iter().zip(warm).zip(cold).zip(slow) {
            writeln!(all, "| `{name}` | {} | {cold} | {} |", warm.join(" | "), slow.join(" | "))
                .expect(TO_STRING);
        }
    }
    all
}

const TITLE: &str = "Programs";
const LATENCY: Duration = Duration::from_millis(1);
/// The seconds for which the kernel may keep what the server with READDIRPLUS told.
const TTL: u64 = 60;
const SKIPPED: &str = "SKIPPED";
pub const TO_STRING: &str = "BUG: writing to a `String` failed";

/// Builds the examples, and `files`, into the directory of this program.
pub fn build_own() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let examples = ["--example=find", "--example=du", "--example=rm"];
    for (manifest, targets) in [
        (package.join("../../Cargo.toml"), &examples[..]),
        (package.join("Cargo.toml"), &["--bin=files"]),
    ] {
        let mut cargo = Command::new("cargo");
        cargo.args(["build", "--release", "--manifest-path"]).arg(manifest).args(targets);
        run(cargo.arg("--target-dir").arg(directory().join("..")))
            .expect("cannot build the programs");
    }
}

impl Output {
    fn of(name: &str) -> Self {
        match name.split(' ').next() {
            Some("examples/du" | "du") => Self::Usage,
            Some("fdu") => Self::UsageOfFiles,
            Some("files" | "rg") => Self::Files,
            _ => Self::Paths,
        }
    }

    /// Returns the bytes of all names, the hash of the sorted lines, or the KiB.
    fn answer(self, output: &[u8], root: &Path) -> u64 {
        match self {
            Self::Paths => bytes_of_names(output, root),
            Self::Files => {
                let mut lines: Vec<_> = output.split(|byte| *byte == b'\n').collect();
                lines.sort_unstable();
                hash(lines)
            }
            Self::Usage => number(output, ""),
            Self::UsageOfFiles => number(output, "\"allocated\": ") / 1024,
        }
    }

    fn oracle(self, tree: &Tree) -> Oracle<'_> {
        match self {
            Self::Paths => tree.oracle(Answer::Bytes),
            // The same as `rg --files`, if it could be built.
            Self::Files => Oracle::new(&tree.label, false, move || {
                let output = run(&mut command("rg --files --no-require-git", tree.path()))
                    .or_else(|_| run(&mut command("files", tree.path())));
                self.answer(&output.expect("`files` failed").stdout, tree.path())
            }),
            Self::Usage => Oracle::new(&tree.label, false, || {
                number(
                    &run(&mut command("du -sk", tree.path())).expect("`du -sk` failed").stdout,
                    "",
                )
            }),
            Self::UsageOfFiles => {
                Oracle::new(&tree.label, false, || blocks_of_files(tree.path()) / 2)
            }
        }
    }

    /// Returns `true` if the output is right for [`POINT`].
    fn is_right_on_slow(self, output: &[u8], shape: Shape) -> bool {
        let right = match self {
            Self::Files => {
                let lines = output.split(|byte| *byte == b'\n').count() - 1;
                return lines as u64 == shape.files();
            }
            Self::Paths => shape.bytes_of_names(),
            Self::Usage => shape.kibibytes(),
            Self::UsageOfFiles => shape.kibibytes_of_files(),
        };
        self.answer(output, POINT.as_ref()) == right
    }
}

/// Returns the number of blocks of 512 bytes in all files.
fn blocks_of_files(dir: &Path) -> u64 {
    let entries = std::fs::read_dir(dir).expect("cannot open the directory");
    let blocks = |entry: std::io::Result<DirEntry>| {
        let entry = entry.expect("cannot read the directory");
        let file_type = entry.file_type().expect("cannot tell its type");
        if file_type.is_dir() {
            return blocks_of_files(&entry.path());
        }
        if file_type.is_file() {
            entry.metadata().expect("cannot stat the file").blocks()
        } else {
            0
        }
    };
    entries.map(blocks).sum()
}

impl Task {
    /// Returns the commands that run on this machine. A command that is not installed, or lacks an
    /// option, fails.
    fn installed(&self, root: &Path) -> Vec<&'static str> {
        let runs = |name: &&str| match run(&mut command(name, root)) {
            Err(failure) if is_own(name) => panic!("{name}: {failure}"),
            result => result.is_ok(),
        };
        self.commands.iter().copied().filter(runs).collect()
    }

    /// Returns for each command: its ratio to the time of the first command, its system calls, and
    /// its peak memory.
    fn on_warm_caches(&self, bench: &mut Bench, tree: &Tree) -> Vec<[String; 3]> {
        let contender = |name: &&'static str| {
            Contender::new(name, Output::of(name).oracle(tree), Whole { name, tree })
        };
        let installed = self.installed(tree.path());
        let row = bench.measure(TITLE, self.name, installed.iter().map(contender).collect());
        let cells = |name: &&'static str| {
            let time = if *name == row.base.0 { time(row.base.1) } else { cell(row.ratio(name)) };
            // The last line of `strace -c` is the total: percent, seconds, microseconds a call,
            // calls.
            let calls = last_line("strace -fc", name, tree)
                .and_then(|line| line.split_whitespace().nth(3).map(String::from));
            let memory = last_line("/usr/bin/time -f %M", name, tree)
                .and_then(|line| line.trim().parse::<f64>().ok());
            let memory =
                memory.map_or_else(|| SKIPPED.into(), |kib| format!("{:.1} MiB", kib / 1024.0));
            [time, calls.unwrap_or_else(|| SKIPPED.into()), memory]
        };
        let skipped = || [SKIPPED; 3].map(String::from);
        self.commands
            .iter()
            .map(|name| if installed.contains(name) { cells(name) } else { skipped() })
            .collect()
    }

    /// Returns the median of five runs, in turns, or SKIPPED if this process is not permitted to
    /// drop the caches.
    fn on_cold_caches(&self, tree: &Tree, is_test: bool) -> Vec<String> {
        let installed = self.installed(tree.path());
        let mut seconds = vec![Vec::new(); self.commands.len()];
        for _ in 0..if is_test { 1 } else { 5 } {
            for (name, seconds) in self.commands.iter().zip(&mut seconds) {
                rustix::fs::sync();
                let is_cold = is_test || std::fs::write("/proc/sys/vm/drop_caches", "3").is_ok();
                if is_cold && installed.contains(name) {
                    seconds.push(Whole { name, tree }.time(1).as_secs_f64());
                }
            }
        }
        let cell = |mut seconds: Vec<f64>| {
            seconds.sort_by(f64::total_cmp);
            seconds.get(seconds.len() / 2).map_or_else(|| SKIPPED.into(), |median| time(*median))
        };
        seconds.into_iter().map(cell).collect()
    }

    /// Runs each command once, on a mount of its own, because nearly all of the time is the
    /// server's sleep, which hardly varies. Returns SKIPPED if this process is not permitted to
    /// mount, or there is no FUSE.
    fn on_slow(&self, shape: Shape) -> Vec<[String; 4]> {
        let slow = Service::slow(shape, LATENCY);
        let observe = |name: &str, service| {
            let server = Server::mount(service).ok()?;
            let (output, seen) = server.observe(|| run(&mut command(name, POINT.as_ref())));
            let output = output.ok()?.stdout;
            let is_right = Output::of(name).is_right_on_slow(&output, shape);
            assert!(is_right, "{name} gives a wrong answer");
            Some(seen)
        };
        let cells = |name: &&'static str| {
            let seen = observe(name, slow)?;
            let with_plus = observe(name, Service { plus: true, ttl: TTL, ..slow })?;
            let [requests, at_once] = [seen.requests.to_string(), format!("{:.1}", seen.at_once)];
            Some([time(seen.seconds), requests, at_once, with_plus.to_string()])
        };
        self.commands
            .iter()
            .map(|name| cells(name).unwrap_or_else(|| [SKIPPED; 4].map(String::from)))
            .collect()
    }
}

/// Builds the program of another crate with the settings of its author, even if `.ci/run` uses
/// faster settings. This takes one or two minutes the first time.
///
/// The error says which rows are missing, and why.
pub fn install(peer: &str) -> Result<(), String> {
    let mut cargo = Command::new("cargo");
    cargo.env_remove("CARGO_PROFILE_RELEASE_LTO").env_remove("CARGO_PROFILE_RELEASE_CODEGEN_UNITS");
    cargo.args(["install", "--quiet", "--locked", peer, "--root"]).arg(directory().join(PEERS));
    run(&mut cargo)
        .map(drop)
        .map_err(|failure| format!("Without {peer} its rows are SKIPPED: {failure}\n\n"))
}

/// Returns the last line that `observer` prints about the command, or `None` if `observer` is
/// missing.
///
/// The command must not be a child of this process, because the peak memory of a child begins with
/// its parent's memory.
fn last_line(observer: &str, name: &str, tree: &Tree) -> Option<String> {
    let inner = command(name, tree.path());
    let mut words = observer.split(' ');
    let mut command = Command::new(words.next()?);
    command.args(words).arg(inner.get_program()).args(inner.get_args());
    let stderr = command.stdout(Stdio::null()).stderr(Stdio::piped()).output().ok()?.stderr;
    String::from_utf8_lossy(&stderr).lines().last().map(String::from)
}

/// Returns the command. The root takes the place of `{}`, or is the last argument.
pub fn command(name: &str, root: &Path) -> Command {
    let name = if name.contains("{}") { name.into() } else { format!("{name} {{}}") };
    let mut words = name.split(' ');
    let program = words.next().expect("BUG: `split` gave nothing");
    let mut command = match program {
        "fdf" | "fdu" | "rg" | "rmz" => {
            Command::new(directory().join(PEERS).join("bin").join(program))
        }
        _ if is_own(program) => Command::new(directory().join(program)),
        _ => Command::new(program),
    };
    let root = root.as_os_str();
    command.args(words.map(|word| if word == "{}" { root } else { word.as_ref() }));
    command
}

struct Whole<'a> {
    name: &'static str,
    tree: &'a Tree,
}

impl Work for Whole<'_> {
    fn time(&mut self, times: u64) -> Duration {
        let begin = Instant::now();
        for _ in 0..times {
            let mut command = command(self.name, self.tree.path());
            let status =
                command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
            status.expect("cannot run the command again");
        }
        begin.elapsed()
    }

    fn answer(&mut self) -> u64 {
        let root = self.tree.path();
        let output = run(&mut command(self.name, root)).expect("the command failed");
        Output::of(self.name).answer(&output.stdout, root)
    }
}

/// Returns the bytes of the names in a list of paths. Some programs also list the root, and some
/// write `/` after directories.
pub fn bytes_of_names(output: &[u8], root: &Path) -> u64 {
    let paths =
        output.split(|byte| *byte == b'\n').map(|path| path.strip_suffix(b"/").unwrap_or(path));
    let below = paths.filter(|path| *path != root.as_os_str().as_bytes());
    below
        .map(|path| path.rsplit(|byte| *byte == b'/').next().map_or(0, |name| name.len() as u64))
        .sum()
}

/// Returns the number after the first `label`.
fn number(output: &[u8], label: &str) -> u64 {
    let text = String::from_utf8_lossy(output);
    let digits = text
        .split_once(label)
        .and_then(|(_, after)| after.split(|it: char| !it.is_ascii_digit()).next());
    digits.and_then(|digits| digits.parse().ok()).expect("the command printed no number")
}
