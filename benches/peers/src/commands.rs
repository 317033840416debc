//! Measures whole programs: the examples of `lendir` and `files` of this package, programs of other
//! crates, which are built first, and GNU's. They remove a tree that was just made, list the files that
//! no `.gitignore` excludes, or add up sizes: with warm and with cold caches, and on a server that
//! takes a millisecond for each request.

use crate::fuse::{POINT, Server, Service, Shape};
use crate::programs::{directory, run};
use lendir_benches::Arguments;
use lendir_benches::contender::hash;
use lendir_benches::directories::{Root, roots};
use lendir_benches::ratio::{median, time};
use lendir_benches::trees::{Fixture, Tree, directory as make_directory, fill};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const TITLE: &str = "Programs";
const ROUNDS: usize = 5;
const LATENCY: Duration = Duration::from_millis(1);
const SKIPPED: &str = "SKIPPED";

/// The columns, and the processors on which their programs run. Some programs have no option for their
/// threads, and start one for each processor.
const COLUMNS: [(&str, &str); 7] = [
    ("lendir, one thread", "0"),
    ("lendir, two threads", "0,1"),
    ("lendir, 8 threads", "0,1"),
    ("peer, one thread", "0"),
    ("peer, two threads", "0,1"),
    ("peer, 8 threads", "0,1"),
    ("GNU", "0"),
];

/// Programs that do the same work, one for each column.
#[derive(Clone, Copy)]
struct Task {
    name: &'static str,
    /// The crate whose program is the peer, and its version.
    peer: &'static str,
    commands: [Option<&'static str>; COLUMNS.len()],
}

const RM: Task = Task {
    name: "rm",
    peer: "rmz@3.2.1",
    commands: [
        Some("examples/rm -r"),
        Some("examples/rm -r -j 2"),
        None,
        Some("rmz"),
        Some("rmz"),
        None,
        Some("rm -r"),
    ],
};

const FILES: Task = Task {
    name: "files",
    peer: "ripgrep@15.2.0",
    commands: [
        Some("files -j 1"),
        Some("files -j 2"),
        Some("files -j 8"),
        Some("rg --files --no-require-git -j1"),
        Some("rg --files --no-require-git -j2"),
        Some("rg --files --no-require-git -j8"),
        None,
    ],
};

const FDU: &str = "fdu --no-gitignore --view=summary --format=json";

const DU: Task = Task {
    name: "du",
    peer: "fdu@0.5.0",
    commands: [
        Some("examples/du -s -j 1"),
        Some("examples/du -s -j 2"),
        Some("examples/du -s -j 8"),
        Some(FDU),
        Some(FDU),
        None,
        Some("du -sk"),
    ],
};

/// Returns a table in Markdown.
pub fn table(arguments: &Arguments) -> String {
    let (is_test, mut rows, mut missing) = (arguments.has("--test"), String::new(), String::new());
    for task in [RM, FILES, DU].iter().filter(|task| arguments.ask_for(TITLE, task.name)) {
        build_own();
        if let Err(failure) = install(task.peer) {
            missing =
                format!("{missing}Without {} its cells are SKIPPED: {failure}\n\n", task.peer);
        }
        rows += &match task.name {
            "rm" => task.rows_of_removal(is_test),
            "files" => {
                let disk = &roots()[0];
                let label = format!("{}, 100 directories with a .gitignore", disk.file_system);
                let fill = |root: &Path| (0..100).for_each(|index| repository(root, index));
                task.rows(&Tree::new(label, disk.temporary(), fill), is_test)
            }
            _ if is_test => task.rows(&Fixture::Small.make(), is_test),
            _ => task.rows(&Fixture::System("/usr").make(), is_test),
        };
        println!("{TITLE}: {}: all answers are right", task.name);
    }
    if rows.is_empty() {
        return rows;
    }
    let names = COLUMNS.map(|column| column.0).join(" | ");
    format!(
        "\n### {TITLE}\n\n{missing}| | {names} |\n|---|{}\n{rows}",
        "---|".repeat(COLUMNS.len())
    )
}

/// Builds the examples, and `files`, into the directory of this program.
fn build_own() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (manifest, targets) in [
        (package.join("../../Cargo.toml"), &["--example=du", "--example=rm"][..]),
        (package.join("Cargo.toml"), &["--bin=files"]),
    ] {
        let mut cargo = Command::new("cargo");
        cargo.args(["build", "--release", "--manifest-path"]).arg(manifest).args(targets);
        run(cargo.arg("--target-dir").arg(directory().join(".."))).expect("cannot build them");
    }
}

/// Builds the program of another crate with the settings of its author, even if `.ci/run` uses faster
/// ones. This takes one or two minutes the first time.
fn install(peer: &str) -> Result<(), String> {
    let mut cargo = Command::new("cargo");
    cargo.env_remove("CARGO_PROFILE_RELEASE_LTO").env_remove("CARGO_PROFILE_RELEASE_CODEGEN_UNITS");
    cargo.args(["install", "--quiet", "--locked", peer, "--root"]).arg(directory().join("peers"));
    run(&mut cargo).map(drop)
}

/// Returns a command on the processors of its column. The observer is a program that runs it.
fn command(column: usize, observer: &str, name: &str, root: &Path) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", COLUMNS[column].1]).args(observer.split_whitespace());
    let (program, arguments) = name.split_once(' ').unwrap_or((name, ""));
    command.arg(match program {
        "fdu" | "rg" | "rmz" => directory().join("peers/bin").join(program),
        "examples/du" | "examples/rm" | "files" => directory().join(program),
        _ => program.into(),
    });
    command.args(arguments.split_whitespace()).arg(root);
    command.stdin(Stdio::null());
    command
}

/// Returns the seconds that a command takes, whose output is not read, or `None` if it fails.
fn seconds(mut command: Command) -> Option<f64> {
    let begin = Instant::now();
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success()).then(|| begin.elapsed().as_secs_f64())
}

impl Task {
    /// Returns a cell for each column. `cell` is called with the column and its command.
    fn cells(&self, mut cell: impl FnMut(usize, &str) -> Option<String>) -> String {
        let cells = self.commands.iter().enumerate().map(|(column, command)| match command {
            None => "–".into(),
            Some(command) => cell(column, command).unwrap_or_else(|| SKIPPED.into()),
        });
        cells.collect::<Vec<_>>().join(" | ")
    }

    /// Returns the medians of rounds in which the commands take turns.
    fn medians(&self, rounds: usize, mut run: impl FnMut(usize, &str) -> Option<f64>) -> String {
        let mut seen = [const { Vec::new() }; COLUMNS.len()];
        for _ in 0..rounds {
            for (column, command) in self.commands.iter().enumerate() {
                seen[column].extend(command.and_then(|command| run(column, command)));
            }
        }
        self.cells(|column, _| {
            Some(&seen[column]).filter(|seen| !seen.is_empty()).map(|it| time(median(it.clone())))
        })
    }

    fn rows(&self, tree: &Tree, is_test: bool) -> String {
        let (root, name, rounds) = (tree.path(), self.name, if is_test { 1 } else { ROUNDS });
        let right = |command: &str| match command.split(' ').next() {
            Some("rg" | "files") => self.oracle(tree, 3),
            Some("fdu") => usage_of_files(root),
            _ => self.oracle(tree, 6),
        };
        self.cells(|column, command| {
            let (answer, _) = answer(column, command, root)?;
            assert_eq!(answer, right(command), "{command} gives a wrong answer");
            None
        });
        let warm = self.medians(rounds, |column, it| seconds(command(column, "", it, root)));
        let cold = self.medians(rounds, |column, it| {
            rustix::fs::sync();
            let is_cold = is_test || std::fs::write("/proc/sys/vm/drop_caches", "3").is_ok();
            is_cold.then(|| seconds(command(column, "", it, root)))?
        });
        // The last line of `strace -c` is the total: percent, seconds, microseconds a call, calls.
        let calls = self.cells(|column, it| {
            last_line(column, "strace -fc", it, root)?.split_whitespace().nth(3).map(String::from)
        });
        let memory = self.cells(|column, it| {
            let kib = last_line(column, "/usr/bin/time -f %M", it, root)?;
            Some(format!("{:.1} MiB", kib.trim().parse::<f64>().ok()? / 1024.0))
        });
        let [slow, plus] = [false, true].map(|plus| self.on_server(plus, is_test));
        let label = &tree.label;
        format!(
            "| {name}, {label} | {warm} |\n| {name}, system calls | {calls} |\n\
             | {name}, peak memory | {memory} |\n| {name}, cold caches | {cold} |\n\
             | {name}, 1 ms a request | {slow} |\n| {name}, 1 ms, READDIRPLUS | {plus} |\n"
        )
    }

    /// Returns the answer of the command in a column, or of the first if it cannot be built.
    fn oracle(&self, tree: &Tree, column: usize) -> u64 {
        let of = |column: usize| answer(column, self.commands[column]?, tree.path());
        of(column).or_else(|| of(0)).expect("no program can be an oracle").0
    }

    /// Runs each command once, on a mount of its own, because nearly all of the time is the server's
    /// sleep, which hardly varies. It is SKIPPED if this process is not permitted to mount.
    fn on_server(&self, plus: bool, is_test: bool) -> String {
        let shape = Shape::of_tens(if is_test { 1 } else { 3 });
        let service = Service { plus, ttl: if plus { 60 } else { 0 }, shape, latency: LATENCY };
        self.cells(|column, command| {
            let observe = || {
                let server = Server::mount(service).ok()?;
                let (answer, seen) = server.observe(|| answer(column, command, POINT.as_ref()));
                Some((answer?, format!("{}, {}", time(seen.seconds), seen.requests)))
            };
            // The mount is in the namespace of one thread, and ends with this thread.
            let observed = thread::scope(|scope| scope.spawn(observe).join());
            let (answer, cell) = observed.expect("the thread that measures panicked")?;
            let is_right = match command.split(' ').next() {
                Some("rg" | "files") => answer.1 == shape.files(),
                Some("fdu") => answer.0 == shape.kibibytes_of_files(),
                _ => answer.0 == shape.kibibytes(),
            };
            assert!(is_right, "{command} gives a wrong answer");
            Some(cell)
        })
    }

    fn rows_of_removal(&self, is_test: bool) -> String {
        let shapes = [("20000 directories of 5 files", 20_000, 5), ("100000 files", 1, 100_000)];
        let rows = roots().into_iter().flat_map(|root| shapes.map(|shape| (root.clone(), shape)));
        let row = |(root, (label, dirs, files)): (Root, (&str, usize, usize))| {
            let [dirs, files] = [dirs, files].map(|it| if is_test { it.min(20) } else { it });
            let medians = self.medians(if is_test { 1 } else { ROUNDS }, |column, name| {
                let made = root.temporary();
                let tree = made.path().join("tree");
                // A hundred of the directories are in one.
                for dir in 0..dirs {
                    let path = tree.join((dir / 100).to_string()).join(dir.to_string());
                    std::fs::create_dir_all(&path).expect("cannot make a directory");
                    fill(&path, files);
                }
                let seconds = seconds(command(column, "", name, &tree))?;
                assert!(!tree.exists(), "{name} leaves the tree");
                Some(seconds)
            });
            format!("| rm, {}, {label} | {medians} |\n", root.file_system)
        };
        rows.map(row).collect()
    }
}

/// Returns the hash and the number of the sorted lines, or the KiB, that a command prints. Returns
/// `None` if it is not installed.
fn answer(column: usize, name: &str, root: &Path) -> Option<(u64, u64)> {
    let output = run(&mut command(column, "", name, root));
    let is_own = name.starts_with("examples/") || name.starts_with("files");
    let output = match output {
        Err(failure) if is_own => panic!("{name}: {failure}"),
        output => output.ok()?.stdout,
    };
    if name.starts_with("files") || name.starts_with("rg") {
        let mut lines: Vec<_> = output.split(|byte| *byte == b'\n').collect();
        lines.sort_unstable();
        let count = lines.len() as u64 - 1; // the last one is empty
        return Some((hash(lines), count));
    }
    let text = String::from_utf8_lossy(&output);
    let (label, unit) = if name == FDU { ("\"allocated\": ", 1024) } else { ("", 1) };
    let digits = text.split_once(label)?.1.split(|it: char| !it.is_ascii_digit()).next()?;
    Some((digits.parse::<u64>().expect("the command printed no number") / unit, 0))
}

/// Returns the last line that an observer prints about a command, or `None` if the observer is missing.
/// The command must not be a child of this process, because the peak memory of a child begins with
/// its parent's memory.
fn last_line(column: usize, observer: &str, name: &str, root: &Path) -> Option<String> {
    let mut command = command(column, observer, name, root);
    let stderr = command.stdout(Stdio::null()).stderr(Stdio::piped()).output().ok()?.stderr;
    String::from_utf8_lossy(&stderr).lines().last().map(String::from)
}

/// Returns the KiB of all files on disk.
fn usage_of_files(dir: &Path) -> u64 {
    let all = walkdir::WalkDir::new(dir).into_iter().map(|it| it.expect("cannot read the tree"));
    let files = all.filter(|entry| entry.file_type().is_file());
    files.map(|it| it.metadata().expect("cannot stat the file").blocks()).sum::<u64>() / 2
}

/// Makes a directory with files that its `.gitignore` excludes, in several ways, and about 300 others.
fn repository(parent: &Path, index: usize) {
    const RULES: &str = "# rules\n/target/\n*.o\n!keep.o\n/d1/*.log\nd2/**/a.md\n!.shown\n";
    let dir = make_directory(parent, index);
    let make = |path: &Path| drop(File::create_new(path).expect("cannot make the file"));
    std::fs::write(dir.join(".gitignore"), RULES).expect("cannot make the file");
    make(&dir.join(".hidden"));
    make(&dir.join(".shown"));
    for index in 0..10 {
        let source = make_directory(&dir, index);
        fill(&source, 10);
        for name in ["main.o", "keep.o", "build.log", "a.md", "target", ".shown"] {
            make(&source.join(name));
        }
        make(&make_directory(&source, 0).join("a.md"));
    }
    let target = dir.join("target");
    std::fs::create_dir(&target).expect("cannot make the directory");
    fill(&target, 100);
}
