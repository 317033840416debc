//! The same directories and trees, read by `lendir` and by others: `cargo run --release --manifest-path
//! benches/peers/Cargo.toml`.
//!
//! It prints Markdown tables. A cell is the median time as a ratio to that of the bare loop (open, `getdents64` until it
//! returns 0, close, nothing looked at). All contenders of a row take their turns in the same rounds, and every answer is
//! first compared with that of `std`. The programs in Go and C++ are built where there are `go` and `g++`; they run in
//! processes of their own and time themselves. Tables of their own follow: what monitors read of processes, and whole programs
//! that list or add up a tree, the last of them on a slow file system.
//!
//! After `--`: `--draw` measures only what the pictures in `.github/pictures` show, and draws them. `--test` does one round,
//! which tells whether it runs, not how fast. Words choose the rows whose label has one of them, or the pictures.

mod again;
mod answers;
mod commands;
mod fts;
mod fuse;
mod monitors;
mod picture;
mod processes;
mod programs;
mod readers;
mod sleepers;
mod slow;
mod walkers;

use lendir_benches::contender::Contender;
use lendir_benches::directories::{Directory, Fixture, Names, Shape, fastest_root, roots};
use lendir_benches::table::Table;
use lendir_benches::trees::{self, Tree};
use lendir_benches::turns::{Effort, machine};
use lendir_benches::{Arguments, readers as own, walkers as own_walkers};
use picture::{Group, Picture};
use programs::Program;
use std::path::Path;
use std::time::Duration;

fn main() {
    match &*std::env::args().skip(1).collect::<Vec<_>>() {
        [option] if option == sleepers::SLEEP => return sleepers::sleep(),
        [option, question, way, times, root] if option == monitors::ANSWER => {
            return monitors::answer(question, way, times, root);
        }
        _ => {}
    }
    let arguments = Arguments::read();
    let (is_test, draws) = (arguments.has("--test"), arguments.has("--draw"));
    let effort = if is_test { Effort::test() } else { Effort::new(Duration::from_secs(10)) };
    let (programs, missing) = programs::build();
    println!("{}", machine());
    for sentence in missing {
        println!("\n{sentence}");
    }
    if !draws {
        print_tables(&arguments, &programs, effort);
    }
    if draws || is_test {
        draw("readers.svg", &arguments, || picture_of_readers(&programs, effort));
        draw("walkers.svg", &arguments, || picture_of_walkers(effort));
    }
}

fn draw(file: &str, arguments: &Arguments, picture: impl FnOnce() -> Picture) {
    if !arguments.ask_for(file) {
        return;
    }
    let svg = picture().svg().expect("cannot draw the picture");
    if !arguments.has("--test") {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.github/pictures").join(file);
        std::fs::write(&path, svg).expect("cannot write the picture");
        println!("\ndrawn: {}", path.display());
    }
}

fn print_tables(arguments: &Arguments, programs: &[Program], effort: Effort) {
    let mut read = Table::new("Peers: read", effort);
    let mut pids = Table::new("Peers: PIDs", effort);
    let mut names = Table::new("Peers: PIDs and command names", effort);
    for dir in directories().iter().filter(|it| arguments.ask_for(&it.label())).filter_map(Fixture::make_many) {
        read.measure(&dir.label, reading(&dir, programs));
        if dir.is_proc() {
            pids.measure(&dir.label, after_bare_loop(&dir, processes::pids()));
            names.measure(&dir.label, after_bare_loop(&dir, processes::names()));
        }
    }
    let mut sort = Table::new("Peers: sort", effort);
    let mut alone = Table::new("Peers: sort, one directory alone", effort);
    for shape in shapes().into_iter().filter(|it| arguments.ask_for(&it.label())) {
        let dir = shape.make_many();
        sort.measure(&dir.label, sorting(&dir, programs));
        if shape.is_shown_alone() {
            let dir = shape.make();
            alone.measure(&dir.label, sorting(&dir, programs));
        }
    }
    let mut walk = Table::new("Peers: walk", effort);
    for fixture in trees::Fixture::all().into_iter().filter(|it| arguments.ask_for(&it.label())) {
        let tree = fixture.make();
        walk.measure(&tree.label, walking(&tree));
    }
    let mut again = Table::new("Peers: walk again", effort);
    if arguments.ask_for("/usr, again") {
        let tree = trees::Fixture::System("/usr").make();
        again.measure(&tree.label, vec![own_walkers::lendir(&tree), again::incremental(&tree)]);
    }
    for table in [read, pids, names, sort, alone, walk, again] {
        print!("{table}");
    }
    monitors::print_tables(arguments, effort);
    commands::print_tables(arguments);
    slow::print_tables(arguments);
}

fn directories() -> Vec<Fixture> {
    let (fastest, first) = (fastest_root(), &roots()[0]);
    let shapes = [
        fastest.shape(16, Names::Pids),
        fastest.shape(1024, Names::Pids),
        first.shape(32, Names::Sixteen),
        first.shape(1024, Names::Hex),
    ];
    shapes.map(Fixture::Made).into_iter().chain([Fixture::System("/proc"), Fixture::Proc(300)]).collect()
}

/// Those of the ladder on which its lowest and highest rung are compared.
fn shapes() -> Vec<Shape> {
    let fastest = fastest_root();
    let both_ways = |shape: Shape| [shape.clone(), shape.shuffled()];
    let mut all = vec![roots()[0].shape(32, Names::Sixteen), fastest.shape(32, Names::Sixteen)];
    all.extend([1, 2, 4, 8, 32, 128, 1024].map(|count| fastest.shape(count, Names::Source)));
    all.push(fastest.shape(32, Names::Hex));
    all.extend(both_ways(fastest.shape(1024, Names::Pids)));
    all.extend(both_ways(fastest.shape(1024, Names::Photos)));
    all.push(fastest.shape(100_000, Names::Hex));
    all.extend(both_ways(fastest.shape(100_000, Names::Photos)));
    all
}

fn after_bare_loop<'a>(dir: &'a Directory, contenders: impl IntoIterator<Item = Contender<'a>>) -> Vec<Contender<'a>> {
    [own::bare_loop(dir)].into_iter().chain(contenders).collect()
}

fn reading<'a>(dir: &'a Directory, programs: &[Program]) -> Vec<Contender<'a>> {
    let mut all = vec![own::bare_loop(dir), own::lendir(dir)];
    all.extend(own::lendir_marked(dir));
    all.extend(readers::plain(dir));
    all.extend(programs.iter().flat_map(|program| program.contenders(dir, false)));
    all
}

fn sorting<'a>(dir: &'a Directory, programs: &[Program]) -> Vec<Contender<'a>> {
    let mut all = after_bare_loop(dir, readers::sorted(dir));
    all.extend(programs.iter().flat_map(|program| program.contenders(dir, true)));
    all
}

fn walking(tree: &Tree) -> Vec<Contender<'_>> {
    let mut all = own_walkers::all(tree);
    all.extend(walkers::all(tree));
    all
}

/// A small directory, a large one and a sorted one, where temporary files are. Without walkdir, which is for trees.
fn picture_of_readers(programs: &[Program], effort: Effort) -> Picture {
    let is_for_directories = |contender: &Contender<'_>| !contender.name.starts_with("walkdir");
    let mut table = Table::new("Drawn", effort);
    for (heading, count) in [("32 files", 32), ("1000 files", 1000)] {
        let dir = roots()[0].directory(count, Names::Sixteen);
        let mut contenders = vec![own::bare_loop(&dir), own::lendir(&dir)];
        contenders.extend(own::lendir_marked(&dir));
        contenders.push(own::libc_readdir(&dir));
        contenders.extend(readers::plain(&dir));
        table.measure(heading, contenders.into_iter().filter(is_for_directories).collect());
    }
    let dir = roots()[0].shape(1000, Names::Sixteen).shuffled().make();
    let contenders = sorting(&dir, programs).into_iter().filter(is_for_directories);
    table.measure("1000 files, sorted by name", contenders.collect());

    Picture {
        title: "How long it takes to read a directory",
        legend: "The bare loop makes the system calls and looks at nothing. Orange is what a reader adds to it.",
        base: "bare loop",
        groups: table.ratios().map(|(heading, ratios)| Group::new(heading, &ratios[1..])).collect(),
    }
}

fn picture_of_walkers(effort: Effort) -> Picture {
    let tree = trees::Fixture::System("/usr").make();
    let mut table = Table::new("Drawn", effort);
    table.measure(&tree.label, walking(&tree));
    let (_, ratios) = table.ratios().next().expect("BUG: the table has no row");
    let (sorted, unsorted): (Vec<_>, Vec<_>) = ratios.into_iter().skip(1).partition(|it| it.0.ends_with(", sorted"));
    let (on_all_cores, on_one): (Vec<_>, Vec<_>) = unsorted.into_iter().partition(|it| it.0.ends_with(", all cores"));
    Picture {
        title: "How long it takes to walk /usr",
        legend: "The bare walk knows all directories beforehand. Orange is what a walker adds to it.",
        base: "bare walk",
        groups: vec![
            Group::new("one thread", &on_one),
            Group::new("one thread, sorted by name", &sorted),
            Group::new(&format!("{} threads", own_walkers::cores()), &on_all_cores),
        ],
    }
}
