//! Measures `lendir` against `std` and others, each in turn with a bare loop of the same system
//! calls: `cargo bench`.
//!
//! Standard output ends with the tables, and the last table is the README's. Words select rows,
//! including slow ones: `cargo bench -- '/proc|Sorted'`. `LENDIR_LONG=1` selects all rows. The
//! options are the options of criterion.

use criterion::Criterion;
use lendir_benches::contender::Contender;
use lendir_benches::directories::{Directory, Fixture, Names, Shape, fastest_root, roots};
use lendir_benches::ratio::{Bench, Table, cell};
use lendir_benches::{Arguments, machine, readers, trees, walkers, with_commands};
use std::env;
use std::os::unix::process::CommandExt;
use std::process::Command;

const PROC: Fixture = Fixture::System("/proc");

fn main() {
    let arguments = Arguments::read();
    if arguments.has("--bench") && !arguments.has("--quiet") {
        // One line for each contender. Criterion takes this option from the command line only.
        let program = env::current_exe().expect("cannot find this program");
        panic!(
            "cannot start it again: {}",
            Command::new(program).args(env::args_os().skip(1)).arg("--quiet").exec()
        );
    }
    // `cargo test --benches` does not pass `--bench`.
    let is_test = arguments.has("--test") || !arguments.has("--bench");
    let mut bench = Bench::new(Criterion::default().configure_from_args(), is_test);
    println!("{}", INTRODUCTION.replace("MACHINE", &machine()));
    let tables = [
        read(&mut bench, &arguments),
        sorted(&mut bench, &arguments),
        read_again(&mut bench, &arguments),
        compared(&mut bench, &arguments),
        walk(&mut bench, &arguments),
        by_capacity(&mut bench, &arguments),
    ];
    let text: String = tables.iter().map(Table::to_string).collect();
    print!("{}", with_commands(&text, "cargo bench"));
    print_readme(&tables);
}

const INTRODUCTION: &str = "
lendir against std and others. Each figure is a ratio: the time to read a directory, divided by the
time of a bare loop. The bare loop makes the system calls (open, getdents64 until it returns 0,
close) and looks at no entry. The two take turns, so other work on the machine slows both. Before a
contender is timed, its answer is compared with the answer of std.

This takes two minutes, and ends with the README's table. For more rows, set LENDIR_LONG=1, or give
words: `cargo bench -- '/proc|Sorted'`.

This is MACHINE.
";

/// Returns the shape of a directory on the file system of temporary files.
fn files() -> Shape {
    roots()[0].shape(32, Names::Sixteen)
}

/// Returns a table with a row for each fixture that the arguments select and the system has.
fn table(
    title: &'static str,
    all: &[Fixture],
    bench: &mut Bench,
    arguments: &Arguments,
    make: fn(&Fixture) -> Option<Directory>,
    contenders: impl Fn(&Directory) -> Vec<Contender<'_>>,
) -> Table {
    let mut table = Table::new(title);
    for fixture in all.iter().filter(|it| arguments.ask_for(title, &it.label())) {
        let Some(dir) = make(fixture) else { continue };
        table.measure(bench, &dir.label, contenders(&dir));
    }
    table
}

fn read(bench: &mut Bench, arguments: &Arguments) -> Table {
    let fastest = fastest_root();
    let mut all =
        vec![PROC, Fixture::Made(files()), Fixture::Made(fastest.shape(8, Names::Source))];
    all.extend([16, 1024].map(|count| Fixture::Made(fastest.shape(count, Names::Pids))));
    if arguments.is_long() {
        all.push(Fixture::System("/sys/class/net"));
        all.extend([1000, 1_000_000].map(|count| Fixture::Made(fastest.shape(count, Names::Hex))));
    }
    table("Read", &all, bench, arguments, Fixture::make_many, readers::all)
}

/// Measures sorted readings. tmpfs lists the newest entry first, so names that were made in order
/// are listed exactly backwards, and the sort of `core` only reverses them. Shuffled names say more
/// about a sort.
fn sorted(bench: &mut Bench, arguments: &Arguments) -> Table {
    let fastest = fastest_root();
    let mut all = vec![files(), fastest.shape(8, Names::Source), fastest.shape(128, Names::Source)];
    if arguments.is_long() {
        all.extend([fastest.shape(1024, Names::Pids), fastest.shape(1024, Names::Pids).shuffled()]);
        all.push(fastest.shape(100_000, Names::Photos).shuffled());
    }
    let all: Vec<_> = all.into_iter().map(Fixture::Made).collect();
    table("Sorted", &all, bench, arguments, Fixture::make_many, |dir| {
        let mut contenders = readers::sorted(dir);
        contenders.extend(readers::resorted(dir));
        contenders
            .extend(arguments.is_long().then(|| readers::not_sorted(dir)).into_iter().flatten());
        contenders
    })
}

fn read_again(bench: &mut Bench, arguments: &Arguments) -> Table {
    let mut all = vec![PROC, Fixture::Made(fastest_root().shape(16, Names::Pids))];
    if arguments.is_long() {
        all.extend([files(), fastest_root().shape(1024, Names::Pids)].map(Fixture::Made));
        all.push(Fixture::System("/sys/class/net"));
    }
    table("Read again, without opening", &all, bench, arguments, Fixture::make, readers::rescans)
}

fn compared(bench: &mut Bench, arguments: &Arguments) -> Table {
    let all = [Fixture::Made(fastest_root().shape(8192, Names::Sixteen))];
    table("Compared, two listings", &all, bench, arguments, Fixture::make_many, readers::compared)
}

fn walk(bench: &mut Bench, arguments: &Arguments) -> Table {
    let mut all = vec![trees::Fixture::System("/usr"), trees::Fixture::Small];
    if arguments.is_long() {
        all.extend([trees::Fixture::Large, trees::Fixture::Chain]);
    }
    let mut table = Table::new("WalkDirs");
    for fixture in all.iter().filter(|it| arguments.ask_for(table.title, &it.label())) {
        let tree = fixture.make();
        table.measure(bench, &tree.label, walkers::all(&tree));
    }
    table
}

fn by_capacity(bench: &mut Bench, arguments: &Arguments) -> Table {
    let made =
        [16, 1024, 100_000].map(|count| Fixture::Made(fastest_root().shape(count, Names::Pids)));
    let mut all: Vec<_> = made.into_iter().chain([300, 3000].map(Fixture::Proc)).collect();
    all.retain(|_| arguments.is_long());
    table("By capacity of the buffer", &all, bench, arguments, Fixture::make, readers::by_capacity)
}

/// Prints the rows of README.md that were measured.
fn print_readme([read, sorted, ..]: &[Table; 6]) {
    const NAMES: [&str; 4] = ["lendir", "RawDir", "readdir of libc", "std::fs::read_dir"];
    let files = files().label();
    let rows = [
        ("`/proc`".into(), read.row("/proc")),
        (files.clone(), read.row(&files)),
        (format!("{files}, sorted"), sorted.row(&files)),
    ];
    println!("\n### The table of README.md\n");
    println!("| | `lendir` | `RawDir` of rustix | `readdir` of libc | `std::fs::read_dir` |");
    println!("|---|---|---|---|---|");
    for (label, row) in rows {
        if let Some(row) = row {
            println!("| {label} | {} |", NAMES.map(|name| cell(row.ratio(name))).join(" | "));
        }
    }
}
