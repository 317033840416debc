//! Measures `lendir` against `std` and others, each in turn with a bare loop of the same system
//! calls: `cargo bench`.
//!
//! Standard output ends with the tables. Words select rows, including slow ones:
//! `cargo bench -- '/proc|Sorted'`. `LENDIR_LONG=1` selects all rows. The options are the options of
//! criterion.

use criterion::Criterion;
use lendir::Order;
use lendir_benches::contender::Contender;
use lendir_benches::directories::{Directory, Names, Shape, fastest_root, roots};
use lendir_benches::ratio::{Bench, Table};
use lendir_benches::{Arguments, readers};
use std::env;
use std::os::unix::process::CommandExt;
use std::process::Command;

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
    println!("{INTRODUCTION}");

    // The first rows of a table, and the slow ones.
    let (fast, files) = (fastest_root(), roots()[0].shape(32, Names::Sixteen));
    let pids = |count| fast.shape(count, Names::Pids);
    let source = |count| fast.shape(count, Names::Source);
    let hex = |count| fast.shape(count, Names::Hex);
    let photos = fast.shape(100_000, Names::Photos);
    let read =
        [vec![files.clone(), source(8), pids(16), pids(1024)], vec![hex(1000), hex(1_000_000)]];
    // tmpfs lists the newest entry first, so names that were made in order are listed exactly
    // backwards, and the sort of `core` only reverses them. Shuffled names say more about a sort.
    let sorted = [
        vec![files, source(8), source(128)],
        vec![pids(1024), pids(1024).shuffled(), photos.shuffled()],
    ];
    let again = [vec![pids(16)], vec![pids(1024), pids(100_000)]];
    let mut table =
        |title, shapes, contenders| table(title, shapes, &mut bench, &arguments, contenders);
    let tables = [
        table(READ, read, readers::all),
        table(SORTED, sorted, |dir| {
            let mut all = readers::sorted(dir);
            all.push(readers::listing("lendir, not sorted", dir, Order::Unsorted));
            all
        }),
        table(READ_AGAIN, again, readers::rescans_and_capacities),
    ];
    for table in tables {
        print!("{table}");
    }
}

const INTRODUCTION: &str = "
Each figure is a ratio: the time to read a directory, divided by the time of a bare loop, which makes
the system calls (open, getdents64 until it returns 0, close) and looks at no entry. The two take
turns, so other work on the machine slows both. First, each answer is compared with the answer of std.

For more rows, set LENDIR_LONG=1, or give words: `cargo bench -- '/proc|Sorted'`. benches/README.md has
all tables, and says how they are made.
";

const READ: &str = "Read";
const SORTED: &str = "Sorted";
const READ_AGAIN: &str = "Read again, and by capacity";

/// Measures a row for each directory that the arguments select: for `/proc`, which nobody sorts, and
/// for these shapes, of which `long` are slow.
fn table(
    title: &'static str,
    [short, long]: [Vec<Shape>; 2],
    bench: &mut Bench,
    arguments: &Arguments,
    contenders: fn(&Directory) -> Vec<Contender<'_>>,
) -> Table {
    let mut table = Table::new(title);
    let mut measure = |label: &str, make: &dyn Fn() -> Directory| {
        if arguments.ask_for(title, label) {
            table.measure(bench, label, contenders(&make()));
        }
    };
    if title != SORTED {
        measure("/proc", &|| Directory::at("/proc".into(), "/proc"));
    }
    for shape in short.iter().chain(long.iter().filter(|_| arguments.is_long())) {
        let many = if title == READ_AGAIN { 1 } else { shape.many() };
        measure(&shape.label(), &|| shape.make(many));
    }
    table
}
