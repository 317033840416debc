//! Measures programs that remove a tree, in wall time and in processor time. Each removes a fresh
//! tree, which this program has just made.

use crate::commands::{TO_STRING, build_own, command, install};
use lendir_benches::Arguments;
use lendir_benches::directories::{Root, roots};
use lendir_benches::ratio::time;
use std::fmt::Write;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The argument that makes this program remove a tree by `std`.
pub const REMOVE: &str = "--remove";

const TITLE: &str = "Programs: rm";
const PEER: &str = "rmz@3.2.1";
const ROUNDS: usize = 5;

/// The commands, and the processors that they may use. rmz has no option for its threads, and
/// starts one for each processor.
const COMMANDS: [(&str, &str); 6] = [
    ("rm -r", "0"),
    (REMOVE, "0"),
    ("rmz", "0"),
    ("examples/rm -r", "0"),
    ("rmz", "0,1"),
    ("examples/rm -r -j 2", "0,1"),
];

/// Trees: the number of directories, and of files in each.
const SHAPES: [(&str, (usize, usize)); 2] = [
    ("20,000 directories of 5 files", (20_000, 5)),
    ("a directory of 100,000 files", (1, 100_000)),
];

/// Returns a table in Markdown.
pub fn table(arguments: &Arguments) -> String {
    let is_test = arguments.has("--test");
    let (mut rows, mut missing) = (String::new(), None);
    for (root, (shape, sizes)) in roots().iter().flat_map(|root| SHAPES.map(|it| (root, it))) {
        let label = format!("{shape}, {}", root.file_system);
        if !arguments.ask_for(TITLE, &label) {
            continue;
        }
        missing.get_or_insert_with(|| {
            build_own();
            install(PEER).err().unwrap_or_default()
        });
        let sizes = if is_test { (sizes.0.min(20), sizes.1.min(20)) } else { sizes };
        let cells = medians(root, sizes, if is_test { 1 } else { ROUNDS });
        writeln!(rows, "| {label} | {} |", cells.join(" | ")).expect(TO_STRING);
        println!("{TITLE}: {label}: nothing remains");
    }
    let Some(missing) = missing else { return rows };
    let names = COMMANDS.map(|(name, processors)| {
        let name = if name == REMOVE { "std" } else { name };
        format!("{name}, {}", if processors == "0" { "one thread" } else { "two threads" })
    });
    format!(
        "\n### {TITLE}\n\n{missing}wall time, processor time\n\n| | {} |\n|---|{}\n{rows}",
        names.join(" | "),
        "---|".repeat(names.len())
    )
}

/// Returns the medians of rounds in which the commands take turns.
fn medians(root: &Root, sizes: (usize, usize), rounds: usize) -> Vec<String> {
    let mut seen = COMMANDS.map(|_| [Vec::new(), Vec::new()]);
    for _ in 0..rounds {
        for ((name, processors), seen) in COMMANDS.iter().zip(&mut seen) {
            let temporary = root.temporary();
            let tree = temporary.path().join("tree");
            make(&tree, sizes);
            let inner = if *name == REMOVE {
                let mut this =
                    Command::new(std::env::current_exe().expect("cannot find this program"));
                this.arg(REMOVE).arg(&tree);
                this
            } else {
                command(name, &tree)
            };
            let mut pinned = Command::new("taskset");
            pinned.args(["-c", processors]).arg(inner.get_program()).args(inner.get_args());
            let (begin, begin_processor) = (Instant::now(), processor_time());
            let status = pinned.stdin(Stdio::null()).stderr(Stdio::null()).status();
            let seconds = [begin.elapsed().as_secs_f64(), processor_time() - begin_processor];
            if status.is_ok_and(|status| status.success()) {
                assert!(!tree.exists(), "{name} leaves the tree");
                (0..2).for_each(|index| seen[index].push(seconds[index]));
            }
        }
    }
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).map_or_else(|| "SKIPPED".into(), |median| time(*median))
    };
    seen.into_iter().map(|seen| seen.map(median).join(", ")).collect()
}

/// Makes a tree. A hundred of its directories are in one.
fn make(tree: &Path, (dirs, files): (usize, usize)) {
    for dir in (0..dirs).map(|dir| tree.join((dir / 100).to_string()).join(dir.to_string())) {
        fs::create_dir_all(&dir).expect("cannot make a directory");
        for file in 0..files {
            File::create_new(dir.join(format!("file{file}"))).expect("cannot make a file");
        }
    }
}

/// Returns the processor time of all children that have ended, in seconds.
fn processor_time() -> f64 {
    // SAFETY: a `rusage` is plain data, and `getrusage` writes one.
    let usage = unsafe {
        let mut usage = std::mem::zeroed();
        assert_eq!(libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage), 0);
        usage
    };
    let duration = |time: libc::timeval| {
        let micros = time.tv_sec * 1_000_000 + time.tv_usec;
        Duration::from_micros(micros.try_into().expect("BUG: a negative time"))
    };
    (duration(usage.ru_utime) + duration(usage.ru_stime)).as_secs_f64()
}
