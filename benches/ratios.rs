//! `cargo bench --bench ratios`: every contender in turn, round by round, in one process.
//!
//! Criterion measures one contender after the other, so the drift of a busy machine decides between them. Here the drift
//! affects all of them alike. Small directories and sorted ones take turns too, so the processor learns none by heart. As each
//! row is measured, standard error shows the ratios of the medians to that of the bare loop, and in brackets the middle half of
//! the ratios round by round. At the end, standard output has them in Markdown tables, as in `benches/README.md`.
//!
//! Words after `--` choose the rows whose label has one of them: `cargo bench --bench ratios -- ext4 /proc`.

use lendir_benches::counters::Counted;
use lendir_benches::directories::{Fixture, Names, for_capacities, roots};
use lendir_benches::table::Table;
use lendir_benches::turns::{Effort, machine};
use lendir_benches::{Arguments, ladder, readers, trees, walkers};
use std::time::Duration;

fn main() {
    let arguments = Arguments::read();
    // `cargo test --benches` leaves out `--bench`.
    let is_test = arguments.has("--test") || !arguments.has("--bench");
    let effort = if is_test { Effort::test() } else { Effort::new(Duration::from_secs(5)) };

    let mut read = Table::new("Read", effort);
    let mut rescan = Table::new("Read again, without opening", effort);
    for fixture in directories().into_iter().filter(|it| arguments.ask_for(&it.label())) {
        let Some(dir) = fixture.make_many() else { continue };
        read.measure(&dir.label, readers::all(&dir));
        let Some(dir) = fixture.make() else { continue };
        let bare_loop = [readers::bare_loop(&dir)];
        rescan.measure(&dir.label, bare_loop.into_iter().chain(readers::rescans(&dir)).collect());
    }

    let mut capacity = Table::new("By capacity of the buffer", effort);
    for fixture in for_capacities().into_iter().filter(|it| arguments.ask_for(&it.label())) {
        let Some(dir) = fixture.make() else { continue };
        let bare_loop = [readers::bare_loop(&dir)].into_iter();
        let by_capacity = readers::lendir_by_capacity(&dir).map(|(_, contender)| contender);
        capacity.measure(&dir.label, bare_loop.chain(by_capacity).collect());
    }

    let mut sort = Table::new("Sort", effort);
    let mut alone = Table::new("Sort, one directory alone", effort);
    let mut counted = Counted::new(if is_test { 1 } else { 4096 });
    for shape in ladder::shapes().into_iter().filter(|it| arguments.ask_for(&it.label())) {
        let dir = shape.make_many();
        sort.measure(&dir.label, ladder::all(&dir));
        if shape.count <= 1024 {
            counted.measure(&dir.label, &mut ladder::rungs(&dir));
        }
        if shape.is_shown_alone() {
            let dir = shape.make();
            alone.measure(&dir.label, ladder::all(&dir));
        }
    }

    let mut walk = Table::new("Walk", effort);
    for fixture in trees::Fixture::all().into_iter().filter(|it| arguments.ask_for(&it.label())) {
        let tree = fixture.make();
        walk.measure(&tree.label, walkers::all(&tree).into_iter().chain(walkers::bounds(&tree)).collect());
    }

    println!("{}", machine());
    for table in [read, rescan, capacity, sort, alone] {
        print!("{table}");
    }
    print!("{counted}{walk}");
}

fn directories() -> Vec<Fixture> {
    let made = roots().into_iter().rev().flat_map(|root| {
        [root.shape(16, Names::Pids), root.shape(32, Names::Sixteen), root.shape(1024, Names::Pids)].map(Fixture::Made)
    });
    made.chain(["/sys/class/net", "/proc"].map(Fixture::System)).collect()
}
