//! Measures how process viewers read from the kernel: in the ways that they use today, and with
//! `lendir`. With `lendir`, files are opened relative to the directory that lists them, and files
//! and links are read into memory that is reused.

use crate::answers;
use crate::sleepers::{DESCRIPTORS, PROCESSES, Sleepers, THREADS};
use lendir_benches::Arguments;
use lendir_benches::contender::{Contender, Oracle, hash};
use lendir_benches::ratio::{Bench, cell, time};
use std::collections::HashSet;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// The first argument of a child that answers a question, so that its system calls can be counted.
/// The question, the way and the number of times follow.
pub const ANSWER: &str = "--answer";

struct Question {
    title: &'static str,
    ways: &'static [Way],
}

/// A way to answer: finds the processes or files in question below a directory, and writes a line
/// for each. A line begins with a PID.
struct Way {
    name: &'static str,
    write: fn(&Path, &mut Vec<u8>),
}

/// The columns of the table.
const WAYS: [&str; 4] = ["std", "walkdir", "procfs", "lendir"];

/// The questions. The first way of each uses `std`.
const QUESTIONS: [Question; 4] = [
    Question {
        title: "threads by name",
        ways: &[
            Way { name: "std", write: answers::threads_by_std },
            Way { name: "walkdir", write: answers::threads_by_walkdir },
            Way { name: "procfs", write: answers::threads_by_procfs },
            Way { name: "lendir", write: answers::threads_by_lendir },
        ],
    },
    Question {
        title: "descriptors",
        ways: &[
            Way { name: "std", write: answers::descriptors_by_std },
            Way { name: "procfs", write: answers::descriptors_by_procfs },
            Way { name: "lendir", write: answers::descriptors_by_lendir },
        ],
    },
    Question {
        title: "stat of each process",
        ways: &[
            Way { name: "std", write: answers::stat_by_std },
            Way { name: "procfs", write: answers::stat_by_procfs },
            Way { name: "lendir", write: answers::stat_by_lendir },
        ],
    },
    Question {
        title: "processes of a cgroup tree",
        ways: &[
            Way { name: "std", write: answers::cgroups_by_std },
            Way { name: "walkdir", write: answers::cgroups_by_walkdir },
            Way { name: "lendir", write: answers::cgroups_by_lendir },
        ],
    },
];

/// Returns a table in Markdown.
pub fn tables(arguments: &Arguments, bench: &mut Bench) -> String {
    let asked: Vec<_> =
        QUESTIONS.iter().filter(|question| arguments.ask_for(TITLE, question.title)).collect();
    if asked.is_empty() {
        return String::new();
    }
    let sleepers = Sleepers::start();
    let pids = sleepers.pids();
    let mut text = format!(
        "\n### {TITLE}\n\n{PROCESSES} processes more, each with {THREADS} threads and {DESCRIPTORS} descriptors more\n\n\
         | | {} |\n|---|{}\n",
        WAYS.join(" | "),
        "---|".repeat(WAYS.len())
    );
    for question in asked {
        let root =
            if question.is_of_cgroups() { sleepers.cgroups() } else { Ok(Path::new("/proc")) };
        match root {
            Ok(root) => text += &question.row(bench, root, &pids),
            Err(error) => {
                writeln!(text, "| {} | SKIPPED: {error} | | | |", question.title).expect(TO_STRING);
            }
        }
    }
    text
}

const TITLE: &str = "Monitors";
const TO_STRING: &str = "BUG: writing to a `String` failed";

/// Answers the question in the arguments after [`ANSWER`].
pub fn answer(title: &str, name: &str, times: &str, root: &str) {
    let question = QUESTIONS
        .iter()
        .find(|question| question.title == title)
        .expect("no question has this title");
    let way =
        question.ways.iter().find(|way| way.name == name).expect("no way to answer has this name");
    for _ in 0..times.parse().expect("the argument is not a number of times") {
        (way.write)(Path::new(root), &mut Vec::with_capacity(1 << 20));
    }
}

impl Question {
    fn is_of_cgroups(&self) -> bool {
        self.title.ends_with("cgroup tree")
    }

    /// Returns a row. Only the lines of `pids`, which stay, are compared with the lines of the
    /// first way, because other processes start and end.
    fn row(&self, bench: &mut Bench, root: &Path, pids: &HashSet<Vec<u8>>) -> String {
        let answer = |lines: &Vec<u8>| {
            let mut lines: Vec<_> = lines
                .split(|byte| *byte == b'\n')
                .filter(|line| pids.contains(pid(line)))
                .collect();
            assert!(
                lines.len() >= pids.len(),
                "only {} lines for {} processes",
                lines.len(),
                pids.len()
            );
            lines.sort_unstable();
            hash(lines)
        };
        let lines = |way: &Way| {
            let mut lines = Vec::new();
            (way.write)(root, &mut lines);
            lines
        };
        let first = &self.ways[0];
        let contender = |way: &'static Way| {
            let oracle = Oracle::new(self.title, false, move || answer(&lines(first)));
            let fill = move |lines: &mut Vec<u8>| {
                lines.clear();
                (way.write)(root, lines);
            };
            Contender::filling(way.name, oracle, Vec::new(), fill, answer)
        };
        let row = bench.measure(TITLE, self.title, self.ways.iter().map(contender).collect());

        let cells = WAYS.map(|name| {
            if !self.ways.iter().any(|way| way.name == name) {
                return cell(None);
            }
            let time = if name == row.base.0 { time(row.base.1) } else { cell(row.ratio(name)) };
            let calls = self
                .system_calls(name, root)
                .map_or_else(|| "not counted".into(), |calls| calls.to_string());
            format!("{time}, {calls}")
        });
        format!("| {} | {} |\n", self.title, cells.join(" | "))
    }

    /// Returns the system calls of a child that answers twice, minus the calls of a child that
    /// answers once. Returns `None` without strace.
    fn system_calls(&self, name: &str, root: &Path) -> Option<usize> {
        let traced = |times| {
            let mut strace = Command::new("strace");
            strace
                .args(["-qq", "-o", "/dev/stdout"])
                .arg(std::env::current_exe().expect("cannot find this program"));
            let output = strace.args([ANSWER, self.title, name, times]).arg(root).output().ok()?;
            output.status.success().then(|| output.stdout.split(|byte| *byte == b'\n').count())
        };
        Some(traced("2")?.saturating_sub(traced("1")?))
    }
}

fn pid(line: &[u8]) -> &[u8] {
    line.split(|byte| *byte == b' ').next().expect("BUG: `split` gave nothing")
}
