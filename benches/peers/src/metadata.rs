//! Measures programs that query each entry. A FUSE server that answers READDIRPLUS tells the
//! metadata of many entries at once, but the kernel goes on asking for it only while entries are
//! queried between two readings of a directory. A local file system with cold caches reads them
//! from its disk.

use crate::fuse::{self, POINT, Server, Service, Shape};
use crate::programs::run;
use jwalk::{Parallelism, WalkDirGeneric};
use lendir::{Listing, Order, StatxFlags, Walk, WalkDirs, WalkOptions};
use lendir_benches::Arguments;
use lendir_benches::directories::roots;
use lendir_benches::ratio::time;
use rustix::fs::Statx;
use std::fs::{create_dir, read_dir, write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use walkdir::WalkDir;

/// The first argument of a child that is one of the contenders. The contender's name and the root
/// follow.
pub const QUERY: &str = "--query";

const TITLE: &str = "Metadata";

/// The threads of the contenders with several.
const THREADS: usize = 16;

/// A contender, which queries each entry of a tree.
struct Way {
    name: &'static str,
    count: Count,
}

/// A way to count the entries with a size above 0.
enum Count {
    /// A child of this program counts them.
    Here(fn(&Path) -> u64),
    /// They are counted in the output of a program.
    Output(fn(&str) -> u64),
}

const WAYS: [Way; 19] = [
    here("walk", |root| walk(&Walk::options(), root)),
    here("walk, sorted", |root| walk(&sorted(), root)),
    here("walk, sorted, 16 helpers", |root| walk(&sorted().read_ahead(THREADS), root)),
    here("walk, mask", |root| walk(&Walk::options().statx(SIZE), root)),
    here("walk, sorted, mask", |root| walk(&sorted().statx(SIZE), root)),
    here("walk, sorted, mask, 16 helpers", |root| {
        walk(&sorted().statx(SIZE).read_ahead(THREADS), root)
    }),
    here("Listing", |root| listings(Listing::with_order(Order::Unsorted), root)),
    here("Listing, mask", |root| {
        listings(Listing::with_order(Order::Unsorted).with_statx(SIZE), root)
    }),
    here("walk_dirs", |root| walk_dirs(lendir::Buffer::DEFAULT_CAPACITY, root)),
    here("walk_dirs, 1 MiB", |root| walk_dirs(1 << 20, root)),
    here("run_parallel, 16 threads", run_parallel),
    here("std", standard),
    here("walkdir", |root| walkdir(WalkDir::new(root))),
    here("walkdir, sorted", |root| walkdir(WalkDir::new(root).sort_by_file_name())),
    here("jwalk, process_read_dir, 16 threads", jwalk),
    program("ls -lR", |output| lines(output, |line| line.starts_with(['-', 'd']))),
    program("find {} -mindepth 1 -size +0", |output| lines(output, |_| true)),
    program("bfs {} -mindepth 1 -size +0", |output| lines(output, |_| true)),
    program("du -ak", |output| lines(output, |_| true) - 1), // without the root
];

const fn here(name: &'static str, count: fn(&Path) -> u64) -> Way {
    Way { name, count: Count::Here(count) }
}

const fn program(name: &'static str, count: fn(&str) -> u64) -> Way {
    Way { name, count: Count::Output(count) }
}

fn lines(output: &str, is_entry: fn(&&str) -> bool) -> u64 {
    output.lines().filter(is_entry).count() as u64
}

fn number(output: &str) -> u64 {
    let digits = output.split(|it: char| !it.is_ascii_digit()).next();
    digits.and_then(|digits| digits.parse().ok()).expect("the program printed no number")
}

const SIZE: StatxFlags = StatxFlags::SIZE;

fn sorted() -> WalkOptions {
    Walk::options().order(Order::Bytes)
}

fn has_size(statx: Result<Statx, lendir::Error>) -> u64 {
    u64::from(statx.expect("cannot query the entry").stx_size > 0)
}

fn walk(options: &WalkOptions, root: &Path) -> u64 {
    let (mut tree, mut count) = (options.clone().open(root).expect("cannot open the root"), 0);
    while let Some(entry) = tree.next().expect("cannot read the tree") {
        count += has_size(entry.statx(SIZE));
    }
    count
}

fn walk_dirs(buffer_capacity: usize, root: &Path) -> u64 {
    let options = WalkDirs::options().buffer_capacity(buffer_capacity);
    let (mut tree, mut count) = (options.open(root).expect("cannot open the root"), 0);
    while let Some(mut dir) = tree.next().expect("cannot open a directory of the tree") {
        while let Some(entry) = dir.next().expect("cannot read the directory") {
            count += has_size(entry.statx(SIZE));
        }
    }
    count
}

fn listings(mut listing: Listing, root: &Path) -> u64 {
    let (mut tree, mut count) = (lendir::walk_dirs(root).expect("cannot open the root"), 0);
    while let Some(mut dir) = tree.next().expect("cannot open a directory of the tree") {
        dir.read_into(&mut listing).expect("cannot read the directory");
        for entry in &listing {
            count += has_size(entry.in_dir(dir.fd()).statx(SIZE));
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
                count += has_size(entry.statx(SIZE));
            }
        }
        count
    });
    counts.into_iter().sum()
}

fn standard(dir: &Path) -> u64 {
    let mut count = 0;
    for entry in read_dir(dir).expect("cannot open the directory") {
        let entry = entry.expect("cannot read the directory");
        let metadata = entry.metadata().expect("cannot query the entry");
        count += u64::from(metadata.len() > 0);
        if metadata.is_dir() {
            count += standard(&entry.path());
        }
    }
    count
}

fn walkdir(walk: WalkDir) -> u64 {
    let entries = walk.min_depth(1).into_iter().map(|entry| entry.expect("cannot read the tree"));
    entries.map(|it| u64::from(it.metadata().expect("cannot query the entry").len() > 0)).sum()
}

/// The threads that read a directory also query its entries.
fn jwalk(root: &Path) -> u64 {
    let walk = WalkDirGeneric::<((), u64)>::new(root).min_depth(1).skip_hidden(false).sort(true);
    let walk = walk.parallelism(Parallelism::RayonNewPool(THREADS));
    let entries = walk.process_read_dir(|_, _, (), entries| {
        for entry in entries.iter_mut().flatten() {
            entry.client_state = entry.metadata().expect("cannot query the entry").len();
        }
    });
    let entries = entries.into_iter().map(|entry| entry.expect("cannot read the tree"));
    entries.map(|entry| u64::from(entry.client_state > 0)).sum()
}

/// Is the contender that the arguments after [`QUERY`] say, and prints its answer.
pub fn query(name: &str, root: &str) {
    let way = WAYS.iter().find(|way| way.name == name).expect("no contender has this name");
    let Count::Here(count) = way.count else { unreachable!("BUG: a program of its own") };
    println!("{}", count(root.as_ref()));
}

impl Way {
    fn command(&self) -> Command {
        if let Count::Output(_) = self.count {
            return crate::commands::command(self.name, POINT.as_ref());
        }
        let mut this = Command::new(std::env::current_exe().expect("cannot find this program"));
        this.args([QUERY, self.name, POINT]);
        this
    }

    /// Queries the tree at [`POINT`]. Returns `None` if the program is not installed.
    fn run(&self, entries: u64) -> Option<()> {
        let output = match (run(&mut self.command()), &self.count) {
            (Err(failure), Count::Here(_)) => panic!("{}: {failure}", self.name),
            (output, _) => output.ok()?.stdout,
        };
        let output = String::from_utf8_lossy(&output);
        let count = match self.count {
            Count::Here(_) => number(&output),
            Count::Output(count) => count(&output),
        };
        assert_eq!(count, entries, "{} gives a wrong answer", self.name);
        Some(())
    }
}

/// Returns the tables in Markdown.
pub fn tables(arguments: &Arguments) -> String {
    let is_test = arguments.has("--test");
    let micros = |micros| Duration::from_micros(if is_test { 0 } else { micros });
    let wide = Shape { levels: 0, directories: 0, files: if is_test { 300 } else { 20_000 } };
    let tree = Shape { levels: 2, directories: 10, files: 30 };
    [
        ("20000 files in one directory", wide, micros(200)),
        ("111 directories with 30 files", tree, micros(1000)),
    ]
    .into_iter()
    .filter(|(label, ..)| arguments.ask_for(TITLE, label))
    .map(|(label, shape, latency)| served(label, shape, latency))
    .chain(arguments.ask_for(TITLE, COLD).then(|| on_cold_caches(is_test)))
    .collect()
}

/// Returns the table for a tree on a FUSE server. Each contender runs once, on a mount of its own,
/// because nearly all of the time is the server's sleep, which hardly varies.
fn served(label: &str, shape: Shape, latency: Duration) -> String {
    let services = [(true, 60), (true, 0), (false, 60), (false, 0)];
    let services = services.map(|(plus, ttl)| Service { shape, latency, plus, ttl });
    let cell = |way: &Way, service| match Server::mount(service) {
        Err(error) => format!("SKIPPED: {error}"),
        Ok(server) => match server.observe(|| way.run(shape.entries())) {
            (None, _) => "SKIPPED".into(),
            (Some(()), seen) => seen.to_string(),
        },
    };
    // A mount is in the namespace of one thread, and ends with this thread.
    let row = |way: &Way| {
        let measure = || services.map(|service| cell(way, service)).join(" | ");
        let cells = thread::scope(|scope| scope.spawn(measure).join());
        format!("| {} | {} |\n", way.name, cells.expect("the thread that measures panicked"))
    };
    let rows: String = WAYS.iter().map(row).collect();
    println!("{TITLE}: {label}: all answers are right");
    let heads = services.map(|service| {
        let plus = if service.plus { "READDIRPLUS" } else { "no READDIRPLUS" };
        format!("{plus}, kept for {} s", service.ttl)
    });
    format!(
        "\n### {TITLE}: {label}\n\n{latency:?} a request, on FUSE: time, requests by kind ({})\n\n\
         | | {} |\n|---|---|---|---|---|\n{rows}",
        fuse::LETTERS,
        heads.join(" | ")
    )
}

const COLD: &str = "ext4 with cold caches";
const DIRECTORIES: u64 = 500;
const FILES: u64 = 40;

/// Returns the table for a local file system: the medians of three runs, in turns.
fn on_cold_caches(is_test: bool) -> String {
    let image = roots()[0].temporary();
    let measure = || -> Result<Vec<String>, String> {
        fuse::own_mounts().map_err(|error| error.to_string())?;
        make(&image.path().join("image"))?;
        let mut seconds = WAYS.map(|_| Vec::new());
        for _ in 0..if is_test { 1 } else { 3 } {
            for (way, seconds) in WAYS.iter().zip(&mut seconds) {
                rustix::fs::sync();
                if !is_test {
                    write("/proc/sys/vm/drop_caches", "3").map_err(|error| error.to_string())?;
                }
                let begin = Instant::now();
                let is_installed = way.run(DIRECTORIES * (1 + FILES)).is_some();
                seconds.extend(is_installed.then(|| begin.elapsed().as_secs_f64()));
            }
        }
        let cell = |mut seconds: Vec<f64>| {
            seconds.sort_by(f64::total_cmp);
            seconds.get(seconds.len() / 2).map_or_else(|| "SKIPPED".into(), |median| time(*median))
        };
        Ok(seconds.map(cell).into())
    };
    let cells = thread::scope(|scope| scope.spawn(measure).join())
        .expect("the thread that measures panicked")
        .unwrap_or_else(|error| vec![format!("SKIPPED: {error}"); WAYS.len()]);
    println!("{TITLE}: {COLD}: all answers are right");
    let row = |(way, cell): (&Way, String)| format!("| {} | {cell} |\n", way.name);
    let rows: String = WAYS.iter().zip(cells).map(row).collect();
    format!(
        "\n### {TITLE}: {COLD}\n\n{DIRECTORIES} directories with {FILES} files, on a loop device\n\n\
         | | time |\n|---|---|\n{rows}"
    )
}

/// Makes a file system in a file, mounts it at [`POINT`] and fills it.
fn make(image: &PathBuf) -> Result<(), String> {
    run(Command::new("mkfs.ext4").arg("-q").arg(image).arg("512M"))?;
    run(Command::new("mount").args(["-o", "loop"]).arg(image).arg(POINT))?;
    let lost_found = Path::new(POINT).join("lost+found");
    std::fs::remove_dir(&lost_found).map_err(|error| error.to_string())?;
    for directory in 0..DIRECTORIES {
        let path = Path::new(POINT).join(format!("d{directory}"));
        create_dir(&path).expect("cannot make the directory");
        for file in 0..FILES {
            write(path.join(format!("f{file}")), "1").expect("cannot make the file");
        }
    }
    Ok(())
}
