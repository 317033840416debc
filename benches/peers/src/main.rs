//! Measures `lendir` against other crates, languages and programs:
//! `cargo run --release --manifest-path benches/peers/Cargo.toml`.
//!
//! It measures like `cargo bench`, and ends with tables in Markdown. The programs in Go and C++ are
//! built if `go` and `g++` are installed. They run in processes of their own and time themselves.
//!
//! The arguments after `--`: `--test` checks the answers and measures little or nothing. Words select
//! the rows whose title or label contains one of the words.

mod agree;
mod commands;
mod fuse;
mod in_order;
mod metadata;
mod parallel;
mod programs;
#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../../../tests/support/fuse.rs"]
mod protocol;
mod readers;
mod walkers;

use criterion::Criterion;
use lendir_benches::Arguments;
use lendir_benches::contender::Contender;
use lendir_benches::directories::{Directory, Names, Shape, fastest_root, roots};
use lendir_benches::ratio::{Bench, Table};
use lendir_benches::trees::{Fixture, Tree};
use programs::Program;

fn main() {
    let all: Vec<_> = std::env::args().skip(1).collect();
    match all.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [parallel::RUN, way, threads, root] => {
            return parallel::run(&in_order::WAYS, way, threads, root);
        }
        [metadata::QUERY, way, root] => return metadata::query(way, root),
        _ => {}
    }
    let arguments = Arguments::read();
    let mut bench = Bench::new(Criterion::default(), arguments.has("--test"));
    let (programs, missing) = programs::build();
    if arguments.has("--test") && arguments.ask_for("Walks on one thread", agree::LABEL) {
        println!("{}: {}", agree::LABEL, agree::check());
    }
    let mut text = directories(&arguments, &mut bench, &programs).to_string();
    for (title, contenders) in [
        ("Walks on one thread", walkers::on_one_thread as fn(&Tree) -> Vec<Contender<'_>>),
        ("Walks on several threads", walkers::on_several_threads),
    ] {
        text += &walks(title, contenders, &arguments, &mut bench).to_string();
    }
    text += &in_order::table(&arguments);
    text += &metadata::table(&arguments);
    text += &commands::table(&arguments);
    println!("\nThis is {}.", parallel::machine());
    for sentence in missing {
        println!("\n{sentence}");
    }
    print!("{text}");
}

/// Returns the table of readers of one directory.
fn directories(arguments: &Arguments, bench: &mut Bench, programs: &[Program]) -> Table {
    let (fast, disk) = (fastest_root(), &roots()[0]);
    let mut table = Table::new("Other crates and languages");
    let mut measure = |shape: Shape, is_sorted: bool| {
        let label = shape.label() + if is_sorted { ", sorted" } else { "" };
        if arguments.ask_for(table.title, &label) {
            let dir = shape.make(shape.many());
            let contenders =
                if is_sorted { sorted(&dir, programs) } else { readers::unsorted(&dir) };
            table.measure(bench, &label, contenders);
        }
    };
    measure(disk.shape(32, Names::Sixteen), false);
    measure(fast.shape(1024, Names::Pids), false);
    measure(disk.shape(32, Names::Sixteen), true);
    measure(disk.shape(1000, Names::Sixteen).shuffled(), true);
    measure(fast.shape(8, Names::Source), true);
    measure(fast.shape(1024, Names::Source), true);
    measure(fast.shape(100_000, Names::Hex), true);
    table
}

fn sorted<'a>(dir: &'a Directory, programs: &[Program]) -> Vec<Contender<'a>> {
    let programs = programs.iter().map(|program| program.contender(dir));
    readers::sorted(dir).into_iter().chain(programs).collect()
}

fn walks(
    title: &'static str,
    contenders: fn(&Tree) -> Vec<Contender<'_>>,
    arguments: &Arguments,
    bench: &mut Bench,
) -> Table {
    let mut table = Table::new(title);
    for fixture in [Fixture::Small, Fixture::Large, Fixture::Chain, Fixture::System("/usr")] {
        if arguments.ask_for(title, &fixture.label()) {
            let tree = fixture.make();
            table.measure(bench, &tree.label, contenders(&tree));
        }
    }
    table
}
