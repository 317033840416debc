//! Measures programs that query each entry. A FUSE server that answers READDIRPLUS tells the
//! metadata of many entries at once, but the kernel goes on asking for it only while entries are
//! queried between two readings of a directory.

use crate::fuse::{POINT, Server, Service, Shape};
use crate::programs::run;
use lendir::{Order, Walk, WalkOptions};
use lendir_benches::Arguments;
use lendir_benches::ratio::time;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;
use walkdir::WalkDir;

/// The first argument of a child that is one of the ways. Its name and the root follow.
pub const QUERY: &str = "--query";

const TITLE: &str = "Metadata";

/// The threads of the ways with several.
const THREADS: usize = 16;

/// The ways to count the entries of a tree with a size above 0. A child of this program counts them.
type Count = fn(&Path) -> u64;

const WAYS: [(&str, Count); 9] = [
    ("walk", |root| walk(&Walk::options(), root)),
    ("walk, sorted", |root| walk(&sorted(), root)),
    ("walk, sorted, fetched", |root| walk(&fetched(), root)),
    ("walk, sorted, fetched, 16 helpers", |root| walk(&fetched().read_ahead(THREADS), root)),
    ("walk_dirs", walk_dirs),
    ("run_parallel, 16 threads", run_parallel),
    ("walkdir", |root| walkdir(WalkDir::new(root))),
    ("walkdir, sorted", |root| walkdir(WalkDir::new(root).sort_by_file_name())),
    ("dua-core, 16 threads", dua),
];

/// A program that prints a line for each entry with a size above 0.
const FIND: &str = "find -size";

fn sorted() -> WalkOptions {
    Walk::options().order(Order::Bytes)
}

/// Lets the walk query each entry while it reads.
fn fetched() -> WalkOptions {
    sorted().metadata(true)
}

fn has_size(entry: &lendir::Entry<'_>) -> u64 {
    u64::from(entry.metadata().expect("cannot query the entry").len() > 0)
}

fn walk(options: &WalkOptions, root: &Path) -> u64 {
    let (mut tree, mut count) = (options.clone().open(root).expect("cannot open the root"), 0);
    while let Some(entry) = tree.next().expect("cannot read the tree") {
        count += has_size(&entry);
    }
    count
}

fn walk_dirs(root: &Path) -> u64 {
    let (mut tree, mut count) = (lendir::walk_dirs(root).expect("cannot open the root"), 0);
    while let Some(mut dir) = tree.next().expect("cannot open a directory of the tree") {
        while let Some(entry) = dir.next().expect("cannot read the directory") {
            count += has_size(&entry);
        }
    }
    count
}

fn run_parallel(root: &Path) -> u64 {
    let tree = lendir::walk_dirs(root).expect("cannot open the root");
    let counts = tree.run_parallel(THREADS, |worker| {
        let mut count = 0;
        while let Some(mut dir) = worker.next().expect("cannot open a directory of the tree") {
            while let Some(entry) = dir.next().expect("cannot read the directory") {
                count += has_size(&entry);
            }
        }
        count
    });
    counts.into_iter().sum()
}

fn walkdir(walk: WalkDir) -> u64 {
    let entries = walk.min_depth(1).into_iter().map(|entry| entry.expect("cannot read the tree"));
    entries.map(|it| u64::from(it.metadata().expect("cannot query the entry").len() > 0)).sum()
}

/// The threads that read a directory also query its entries.
fn dua(root: &Path) -> u64 {
    let (options, order) = (dua_core::Options::default(), dua_core::Order::ParentFirst);
    let entries = dua_core::walk(root, THREADS, order, options, |_| true);
    let below = entries.map(|it| it.expect("cannot read the tree")).filter(|it| it.depth > 0);
    let metadata = below.filter_map(|entry| entry.metadata);
    metadata.map(|it| u64::from(it.expect("cannot query the entry").len() > 0)).sum()
}

/// Is the way that the arguments after [`QUERY`] say, and prints its answer.
pub fn query(name: &str, root: &str) {
    let (_, count) = WAYS.iter().find(|way| way.0 == name).expect("no way has this name");
    println!("{}", count(root.as_ref()));
}

/// Queries the tree at [`POINT`], and checks the answer.
fn count(name: &str, entries: u64) {
    let answer = if name == FIND {
        let output = run(Command::new("find").args([POINT, "-mindepth", "1", "-size", "+0"]));
        output.expect("`find` failed").stdout.split(|byte| *byte == b'\n').count() as u64 - 1
    } else {
        let mut this = Command::new(std::env::current_exe().expect("cannot find this program"));
        let output =
            run(this.args([QUERY, name, POINT])).unwrap_or_else(|it| panic!("{name}: {it}"));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.trim().parse().expect("the program printed no number")
    };
    assert_eq!(answer, entries, "{name} gives a wrong answer");
}

/// Returns a table in Markdown. Each way runs once, on a mount of its own, because nearly all of the
/// time is the server's sleep, which hardly varies.
pub fn table(arguments: &Arguments) -> String {
    let is_test = arguments.has("--test");
    let wide = Shape { levels: 0, directories: 0, files: if is_test { 300 } else { 20_000 } };
    let tree = Shape { levels: 2, directories: 10, files: if is_test { 3 } else { 30 } };
    let mut rows = Vec::new();
    for (label, shape, micros) in
        [("20,000 files", wide, 200), ("111 directories of 30 files", tree, 1000)]
    {
        if !arguments.ask_for(TITLE, label) {
            continue;
        }
        let latency = Duration::from_micros(if is_test { 0 } else { micros });
        for name in WAYS.map(|way| way.0).into_iter().chain([FIND]) {
            let cell = |plus| match Server::mount(Service { shape, latency, plus, ttl: 60 }) {
                Err(error) => format!("SKIPPED: {error}"),
                Ok(server) => {
                    let ((), seen) = server.observe(|| count(name, shape.entries()));
                    format!("{}, {}", time(seen.seconds), seen.requests)
                }
            };
            // A mount is in the namespace of one thread, and ends with this thread.
            let cells = thread::scope(|scope| scope.spawn(|| [true, false].map(cell)).join());
            let cells = cells.expect("the thread that measures panicked").join(" | ");
            rows.push(format!("| {label}: {name} | {cells} |\n"));
        }
        println!("{TITLE}: {label}: all answers are right");
    }
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "\n### {TITLE}\n\n200 µs a request in the large directory, 1 ms in the tree: time, requests\n\n\
         | | READDIRPLUS | no READDIRPLUS |\n|---|---|---|\n{}",
        rows.concat()
    )
}
