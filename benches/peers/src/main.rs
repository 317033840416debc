//! The same directories and trees, read by `lendir` and by others: `cargo run --release --manifest-path
//! benches/peers/Cargo.toml`.
//!
//! It measures as `cargo bench` does, and ends with tables in Markdown. The programs in Go and C++ are built if there are `go` and
//! `g++`; they run in processes of their own, and time themselves. Further tables are about process monitors, about whole
//! programs that list a tree or add it up, and about many threads on a slow network.
//!
//! After `--`: `--draw` measures only what the pictures in `.github/pictures` show, and draws them. `--test` checks the answers and
//! measures nothing. Words select the rows with one of them in their title or label, or pictures.

mod again;
mod answers;
mod commands;
mod fuse;
mod monitors;
mod network;
mod picture;
mod processes;
mod programs;
#[path = "../../../tests/support/fuse.rs"]
mod protocol;
mod readers;
mod sleepers;
mod walkers;
mod work;

use criterion::Criterion;
use lendir_benches::contender::Contender;
use lendir_benches::directories::{Directory, Fixture, Names, Root, fastest_root, roots};
use lendir_benches::ratio::{Bench, Table};
use lendir_benches::trees::{self, Tree};
use lendir_benches::{Arguments, machine, readers as own, walkers as own_walkers};
use picture::{Group, Picture};
use programs::Program;
use std::path::Path;

fn main() {
    match &*std::env::args().skip(1).collect::<Vec<_>>() {
        [option] if option == sleepers::SLEEP => return sleepers::sleep(),
        [option, way, threads, root] if option == network::RUN => return network::run_way(way, threads, root),
        [option, question, way, times, root] if option == monitors::ANSWER => {
            return monitors::answer(question, way, times, root);
        }
        _ => {}
    }
    let arguments = Arguments::read();
    let (is_test, draws) = (arguments.has("--test"), arguments.has("--draw"));
    let mut bench = Bench::new(Criterion::default(), is_test);
    let (programs, missing) = programs::build();
    if !draws {
        let tables = tables(&arguments, &mut bench, &programs);
        println!("\nThis is {}.", machine());
        for sentence in missing {
            println!("\n{sentence}");
        }
        print!("{tables}");
    }
    if draws || is_test {
        draw("readers.svg", &arguments, || picture_of_readers(&mut bench, &programs));
        draw("walkers.svg", &arguments, || picture_of_walkers(&mut bench));
    }
}

fn draw(file: &str, arguments: &Arguments, picture: impl FnOnce() -> Picture) {
    if !arguments.ask_for("Drawn", file) {
        return;
    }
    let svg = picture().svg().expect("cannot draw the picture");
    if !arguments.has("--test") {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.github/pictures").join(file);
        std::fs::write(&path, svg).expect("cannot write the picture");
        println!("\ndrawn: {}", path.display());
    }
}

fn tables(arguments: &Arguments, bench: &mut Bench, programs: &[Program]) -> String {
    let (fastest, first) = (fastest_root(), &roots()[0]);
    let asked = |table: &Table, label: &str| arguments.ask_for(table.title, label);

    let mut read = Table::new("Read, other crates");
    let mut pids = Table::new("PIDs");
    for fixture in [
        Fixture::Made(first.shape(32, Names::Sixteen)),
        Fixture::Made(fastest.shape(1024, Names::Pids)),
        Fixture::Proc(300),
    ] {
        let label = fixture.label();
        let is_proc = matches!(fixture, Fixture::Proc(_));
        let [read_asked, pids_asked] = [asked(&read, &label), is_proc && asked(&pids, &label)];
        if !read_asked && !pids_asked {
            continue;
        }
        let Some(dir) = fixture.make_many() else { continue };
        if read_asked {
            read.measure(bench, &label, reading(&dir).chain([readers::walkdir(&dir, false)]).collect());
        }
        if pids_asked {
            pids.measure(bench, &label, [own::bare_loop(&dir)].into_iter().chain(processes::pids()).collect());
        }
    }

    let mut sort = Table::new("Sorted, other crates and languages");
    for shape in [
        first.shape(32, Names::Sixteen),
        fastest.shape(2, Names::Source),
        fastest.shape(8, Names::Source),
        fastest.shape(32, Names::Source),
        fastest.shape(128, Names::Source),
        fastest.shape(1024, Names::Source),
        fastest.shape(1024, Names::Photos).shuffled(),
        fastest.shape(100_000, Names::Hex),
    ] {
        if asked(&sort, &shape.label()) {
            let dir = shape.make_many();
            sort.measure(bench, &dir.label, sorting(&dir, programs).chain([readers::walkdir(&dir, true)]).collect());
        }
    }

    let mut walk = Table::new("Walk, other crates");
    for fixture in trees::Fixture::all() {
        if asked(&walk, &fixture.label()) {
            let tree = fixture.make();
            walk.measure(bench, &tree.label, walking(&tree));
        }
    }
    let mut again = Table::new("Walk again");
    if asked(&again, "/usr") {
        let tree = trees::Fixture::System("/usr").make();
        again.measure(bench, &tree.label, vec![own_walkers::lendir(&tree), again::lendir(&tree), again::std(&tree)]);
    }
    let work = work::table(arguments, bench);
    let tables = [read, pids, sort, walk, again, work].map(|table| table.to_string()).concat();
    tables + &monitors::tables(arguments, bench) + &commands::tables(arguments, bench) + &network::tables(arguments)
}

fn reading(dir: &Directory) -> impl Iterator<Item = Contender<'_>> {
    own::all(dir).into_iter().chain(readers::all(dir))
}

fn sorting<'a>(dir: &'a Directory, programs: &[Program]) -> impl Iterator<Item = Contender<'a>> {
    own::sorted(dir).into_iter().chain(programs.iter().map(|program| program.contender(dir)))
}

fn walking(tree: &Tree) -> Vec<Contender<'_>> {
    let mut all = own_walkers::all(tree);
    all.extend(walkers::all(tree));
    all
}

/// A small directory, a large one and a sorted one, in the directory for temporary files.
fn picture_of_readers(bench: &mut Bench, programs: &[Program]) -> Picture {
    let root: &Root = &roots()[0];
    let mut group = |heading: &str, contenders: Vec<Contender<'_>>| {
        Group::new(heading, &bench.measure("Drawn", heading, contenders).ratios)
    };
    let (small, large) = (root.shape(32, Names::Sixteen).make_many(), root.shape(1000, Names::Sixteen).make_many());
    let shuffled = root.shape(1000, Names::Sixteen).shuffled().make_many();
    Picture {
        title: "How long it takes to read a directory",
        place: format!("{}, {}", root.file_system, machine()),
        legend: "The bare loop makes the system calls and looks at nothing. Orange is what a reader adds to it.",
        base: "bare loop",
        groups: vec![
            group("32 files", reading(&small).collect()),
            group("1000 files", reading(&large).collect()),
            group("1000 files, sorted by name", sorting(&shuffled, programs).collect()),
        ],
    }
}

fn picture_of_walkers(bench: &mut Bench) -> Picture {
    let tree = trees::Fixture::System("/usr").make();
    let ratios = bench.measure("Drawn", &tree.label, walking(&tree)).ratios;
    let (sorted, unsorted): (Vec<_>, Vec<_>) = ratios.into_iter().partition(|it| it.0.ends_with(", sorted"));
    let (on_all_cores, on_one): (Vec<_>, Vec<_>) = unsorted.into_iter().partition(|it| it.0.ends_with(", all cores"));
    Picture {
        title: "How long it takes to walk /usr",
        place: format!("{}, {}", tree.file_system(), machine()),
        legend: "The bare walk knows all directories beforehand. Orange is what a walker adds to it.",
        base: "bare walk",
        groups: vec![
            Group::new("one thread", &on_one),
            Group::new("one thread, sorted by name", &sorted),
            Group::new(&format!("{} threads", own_walkers::cores()), &on_all_cores),
        ],
    }
}
