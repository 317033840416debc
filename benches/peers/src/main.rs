//! Measures `lendir` against other crates, languages and programs:
//! `cargo run --release --manifest-path benches/peers/Cargo.toml`.
//!
//! It measures in the same way as `cargo bench`, and ends with tables in Markdown. The programs in
//! Go and C++ are built if `go` and `g++` are installed. They run in processes of their own and
//! time themselves. Further tables are about process monitors, whole programs, and many threads on
//! a slow network.
//!
//! The arguments after `--`: `--draw` also draws `.github/pictures/walkers.svg` from the rows
//! in the tables. `--test` checks the answers and measures nothing. Words select the rows whose
//! title or label contains one of the words.

mod agree;
mod answers;
mod commands;
mod fuse;
mod in_order;
mod metadata;
mod monitors;
mod network;
mod picture;
mod processes;
mod programs;
#[path = "../../../tests/support/fuse.rs"]
mod protocol;
mod readers;
mod removers;
mod sleepers;
mod walkers;
mod work;

use criterion::Criterion;
use lendir_benches::contender::Contender;
use lendir_benches::directories::{Directory, Fixture, Names, fastest_root, roots};
use lendir_benches::ratio::{Bench, Table};
use lendir_benches::trees::{self, Tree};
use lendir_benches::{Arguments, machine, readers as own, walkers as own_walkers, with_commands};
use picture::{Group, Picture};
use programs::Program;
use std::path::Path;

fn main() {
    match &*std::env::args().skip(1).collect::<Vec<_>>() {
        [option] if option == sleepers::SLEEP => return sleepers::sleep(),
        [option, tree] if option == removers::REMOVE => {
            return std::fs::remove_dir_all(tree).expect("cannot remove the tree");
        }
        [option, way, threads, root] if option == network::RUN => {
            return network::run_way(way, threads, root);
        }
        [option, way, root] if option == metadata::QUERY => return metadata::query(way, root),
        [option, question, way, times, root] if option == monitors::ANSWER => {
            return monitors::answer(question, way, times, root);
        }
        _ => {}
    }
    let arguments = Arguments::read();
    let mut bench = Bench::new(Criterion::default(), arguments.has("--test"));
    let (programs, missing) = programs::build();
    let (tables, picture) = measure(&arguments, &mut bench, &programs);
    println!("\nThis is {}.", machine());
    for sentence in missing {
        println!("\n{sentence}");
    }
    let command = "cargo run --release --manifest-path benches/peers/Cargo.toml";
    print!("{}", with_commands(&tables, command));
    if let Some(picture) = picture {
        draw(&picture, &arguments);
    }
}

fn draw(picture: &Picture, arguments: &Arguments) {
    let svg = picture.svg().expect("cannot draw the picture");
    if arguments.has("--draw") {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.github/pictures/walkers.svg");
        std::fs::write(&path, svg).expect("cannot write the picture");
        println!("\ndrawn: {}", path.display());
    }
}

/// Returns the tables, and the picture if its row was selected.
fn measure(
    arguments: &Arguments,
    bench: &mut Bench,
    programs: &[Program],
) -> (String, Option<Picture>) {
    let (fastest, first) = (fastest_root(), &roots()[0]);
    let asked = |table: &Table, label: &str| arguments.ask_for(table.title, label);

    let mut read = Table::new("Read, other crates");
    let mut pids = Table::new("PIDs");
    for fixture in [
        Fixture::Made(first.shape(32, Names::Sixteen)),
        Fixture::Made(first.shape(1000, Names::Sixteen)),
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
            read.measure(bench, &label, reading(&dir));
        }
        if pids_asked {
            pids.measure(
                bench,
                &label,
                [own::bare_loop(&dir)].into_iter().chain(processes::pids()).collect(),
            );
        }
    }

    let mut sort = Table::new("Sorted, other crates and languages");
    for shape in [
        first.shape(32, Names::Sixteen),
        first.shape(1000, Names::Sixteen).shuffled(),
        fastest.shape(2, Names::Source),
        fastest.shape(8, Names::Source),
        fastest.shape(32, Names::Source),
        fastest.shape(1024, Names::Source),
        fastest.shape(1024, Names::Photos).shuffled(),
        fastest.shape(100_000, Names::Hex),
    ] {
        if asked(&sort, &shape.label()) {
            let dir = shape.make_many();
            sort.measure(bench, &dir.label, sorting(&dir, programs));
        }
    }

    let walks = walks(arguments, bench);
    let work = work::table(arguments, bench);
    let picture = picture_of_walkers(&walks);
    let mut text: String =
        [read, pids, sort].iter().chain(&walks).chain([&work]).map(Table::to_string).collect();
    text += &monitors::tables(arguments, bench);
    text += &commands::tables(arguments, bench);
    text += &removers::table(arguments);
    text += &metadata::tables(arguments);
    text += &network::tables(arguments);
    text += &in_order::table(arguments);
    (text, picture)
}

fn reading(dir: &Directory) -> Vec<Contender<'_>> {
    let mut all = own::all(dir);
    all.extend(readers::all(dir));
    all.push(readers::walkdir(dir, false));
    all
}

fn sorting<'a>(dir: &'a Directory, programs: &[Program]) -> Vec<Contender<'a>> {
    let mut all = own::sorted(dir);
    all.extend(programs.iter().map(|program| program.contender(dir)));
    all.push(readers::walkdir(dir, true));
    all
}

/// Returns the tables about walks of other crates.
fn walks(arguments: &Arguments, bench: &mut Bench) -> [Table; 3] {
    let tables = [
        (
            "Walk, other crates, one thread",
            walkers::on_one_thread as fn(&Tree) -> Vec<Contender<'_>>,
        ),
        ("Walk, other crates, sorted or with paths", walkers::sorted_or_with_paths),
        ("Walk, other crates, several threads", walkers::on_several_threads),
    ];
    if arguments.has("--test") && arguments.ask_for(tables[0].0, agree::LABEL) {
        println!("{}: {}: {}", tables[0].0, agree::LABEL, agree::check());
    }
    tables.map(|(title, contenders)| {
        let mut table = Table::new(title);
        for fixture in trees::Fixture::all() {
            if arguments.ask_for(title, &fixture.label()) {
                let tree = fixture.make();
                table.measure(bench, &tree.label, contenders(&tree));
            }
        }
        table
    })
}

/// Returns `None` unless one of the tables has its row.
fn picture_of_walkers(walks: &[Table]) -> Option<Picture> {
    let tree = trees::Fixture::System("/usr");
    let rows = walks.iter().filter_map(|table| table.row(&tree.label()));
    let ratios: Vec<_> = rows.flat_map(|row| row.ratios.clone()).collect();
    if ratios.is_empty() {
        return None;
    }
    // The headings of the groups say the same.
    let suffixes = [", sorted", ", paths", ", all cores"];
    let without = |suffix: &str| {
        ratios.iter().filter_map(|it| Some((it.0.strip_suffix(suffix)?, it.1))).collect::<Vec<_>>()
    };
    let [sorted, paths, on_all_cores] = suffixes.map(without);
    let mut on_one = ratios.clone();
    on_one.retain(|it| !suffixes.iter().any(|suffix| it.0.ends_with(suffix)));
    Some(Picture {
        title: "How long it takes to walk /usr",
        place: format!("{}, {}", tree.make().file_system(), machine()),
        legend: "The bare walk knows all directories beforehand. Orange is what a walker adds to it.",
        base: "bare walk",
        groups: vec![
            Group::new("one thread", &on_one),
            Group::new("one thread, sorted by name", &sorted),
            Group::new("one thread, each path owned", &paths),
            Group::new(&format!("{} threads", own_walkers::cores()), &on_all_cores),
        ],
    })
}
