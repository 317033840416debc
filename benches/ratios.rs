//! `cargo bench`: `lendir` beside `std` and others, each measured in turn with a bare loop of the same system calls.
//!
//! Standard output ends with the tables, of which the last is the README's. Words choose rows and add those that take long, as
//! does `LENDIR_LONG=1`: `cargo bench -- '/proc|sorted'`. Options are those of criterion.

use criterion::Criterion;
use lendir_benches::directories::{Directory, Fixture, Names, Shape, fastest_root, roots};
use lendir_benches::ratio::{Bench, Table, cell};
use lendir_benches::{Arguments, machine, readers, trees, walkers};
use std::cell::LazyCell;

const PROC: Fixture = Fixture::System("/proc");

fn main() {
    let arguments = Arguments::read();
    // `cargo test --benches` leaves out `--bench`.
    let is_test = arguments.has("--test") || !arguments.has("--bench");
    let mut bench = Bench::new(Criterion::default().configure_from_args(), is_test);
    println!("{}", INTRODUCTION.replace("MACHINE", &machine()));
    let made: Files = LazyCell::new(|| files().make_many());
    let tables = [
        read(&mut bench, &arguments, &made),
        sorted(&mut bench, &arguments, &made),
        read_again(&mut bench, &arguments),
        walk(&mut bench, &arguments),
        by_capacity(&mut bench, &arguments),
    ];
    for table in &tables {
        print!("{table}");
    }
    print_readme(&tables);
}

const INTRODUCTION: &str = "
lendir beside std and others. Each figure is a ratio: the time of one that reads a directory, divided by that of a bare
loop which makes the system calls (open, getdents64 until it returns 0, close) and looks at nothing. The two take turns,
so that other work on the machine slows both. Every answer is compared with that of std before it is timed.

It takes two minutes, and ends with the README's table. More rows: LENDIR_LONG=1, or words, as in
`cargo bench -- '/proc|Sorted'`.

This is MACHINE.
";

/// Where temporary files are. Two tables have it.
type Files = LazyCell<Directory>;

fn files() -> Shape {
    roots()[0].shape(32, Names::Sixteen)
}

fn read(bench: &mut Bench, arguments: &Arguments, of_readme: &Files) -> Table {
    let (first, fastest) = (&roots()[0], fastest_root());
    let mut all = vec![PROC, Fixture::Made(files())];
    all.extend([16, 1024].map(|count| Fixture::Made(fastest.shape(count, Names::Pids))));
    if arguments.is_long() {
        all.extend([16, 1024].map(|count| Fixture::Made(first.shape(count, Names::Pids))));
        all.push(Fixture::System("/sys/class/net"));
        all.extend([1000, 100_000, 1_000_000].map(|count| Fixture::Made(fastest.shape(count, Names::Hex))));
    }
    let mut table = Table::new("Read");
    for fixture in all.iter().filter(|it| arguments.ask_for(table.title, &it.label())) {
        let made;
        let dir = if fixture.label() == files().label() {
            of_readme
        } else {
            made = fixture.make_many();
            let Some(made) = &made else { continue };
            made
        };
        table.measure(bench, &dir.label, readers::all(dir));
    }
    table
}

/// tmpfs lists the newest entry first, so names that were made in order come exactly backwards, and `core`'s sort only reverses
/// them. Shuffled names tell more about the sort.
fn sorted(bench: &mut Bench, arguments: &Arguments, of_readme: &Files) -> Table {
    let fastest = fastest_root();
    let mut all = vec![files(), fastest.shape(8, Names::Source), fastest.shape(128, Names::Source)];
    if arguments.is_long() {
        all.extend([32, 1024].map(|count| fastest.shape(count, Names::Source)));
        all.extend([fastest.shape(1024, Names::Pids), fastest.shape(1024, Names::Pids).shuffled()]);
        all.extend([1024, 100_000].map(|count| fastest.shape(count, Names::Photos).shuffled()));
        all.push(fastest.shape(100_000, Names::Hex));
    }
    let mut table = Table::new("Sorted");
    for shape in all.iter().filter(|it| arguments.ask_for(table.title, &it.label())) {
        let made;
        let dir = if shape.label() == files().label() {
            of_readme
        } else {
            made = shape.make_many();
            &made
        };
        let mut contenders = readers::sorted(dir);
        if arguments.is_long() {
            contenders.extend(readers::not_sorted(dir));
        }
        table.measure(bench, &dir.label, contenders);
    }
    table
}

fn read_again(bench: &mut Bench, arguments: &Arguments) -> Table {
    let mut all = vec![PROC, Fixture::Made(fastest_root().shape(16, Names::Pids))];
    if arguments.is_long() {
        all.extend([files(), fastest_root().shape(1024, Names::Pids)].map(Fixture::Made));
        all.push(Fixture::System("/sys/class/net"));
    }
    let mut table = Table::new("Read again, without opening");
    for fixture in all.iter().filter(|it| arguments.ask_for(table.title, &it.label())) {
        let Some(dir) = fixture.make() else { continue };
        table.measure(bench, &dir.label, readers::rescans(&dir));
    }
    table
}

fn walk(bench: &mut Bench, arguments: &Arguments) -> Table {
    let mut all = vec![trees::Fixture::System("/usr"), trees::Fixture::Small];
    if arguments.is_long() {
        all.extend([trees::Fixture::Large, trees::Fixture::Chain]);
    }
    let mut table = Table::new("Walk");
    for fixture in all.iter().filter(|it| arguments.ask_for(table.title, &it.label())) {
        let tree = fixture.make();
        table.measure(bench, &tree.label, walkers::all(&tree));
    }
    table
}

fn by_capacity(bench: &mut Bench, arguments: &Arguments) -> Table {
    let mut all: Vec<_> =
        [16, 1024, 100_000].map(|count| Fixture::Made(fastest_root().shape(count, Names::Pids))).into();
    all.extend([Fixture::Proc(300), Fixture::Proc(3000)]);
    all.retain(|_| arguments.is_long());
    let mut table = Table::new("By capacity of the buffer");
    for fixture in all.iter().filter(|it| arguments.ask_for(table.title, &it.label())) {
        let Some(dir) = fixture.make() else { continue };
        let bare_loop = [readers::bare_loop(&dir)].into_iter();
        table.measure(bench, &dir.label, bare_loop.chain(readers::lendir_by_capacity(&dir)).collect());
    }
    table
}

/// The rows of README.md, of those that were measured.
fn print_readme([read, sorted, _, walk, ..]: &[Table; 5]) {
    const NAMES: [&str; 5] = ["lendir", "lendir, EndMarker", "RawDir", "readdir of libc", "std::fs::read_dir"];
    let on_all_cores = ["lendir, all cores", "", "", "", ""];
    let files = files().label();
    let rows = [
        ("`/proc`".into(), read.row("/proc"), NAMES),
        (files.clone(), read.row(&files), NAMES),
        (format!("{files}, sorted"), sorted.row(&files), NAMES),
        ("`/usr`, walked".into(), walk.row("/usr"), NAMES),
        (format!("`/usr`, walked by {} threads", walkers::cores()), walk.row("/usr"), on_all_cores),
    ];
    println!("\n### The table of README.md\n");
    println!("| | `lendir` | with `EndMarker` | `RawDir` of rustix | `readdir` of libc | `std::fs::read_dir` |");
    println!("|---|---|---|---|---|---|");
    for (label, row, names) in rows {
        if let Some(row) = row {
            println!("| {label} | {} |", names.map(|name| cell(row.ratio(name))).join(" | "));
        }
    }
}
