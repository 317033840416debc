//! The same directories, read by `lendir` and by others: `cargo run --release --manifest-path benches/peers/Cargo.toml`.
//!
//! Prints two tables, in Markdown: all contenders on some directories, and those that sort on those of the gitstatus ladder. A
//! cell is the median time of each contender as a ratio to that of the bare loop (open,
//! `getdents64` until it says 0, close, nothing looked at), and in brackets the middle half of the ratios round by round.
//! All contenders of a column take their turns in the same rounds, and every answer is first compared with that of `std`.
//! Those in Go and C++ are built where there are `go` and `g++`; they run in processes of their own and measure themselves.
//!
//! It takes three minutes. With `--test` behind `--`, one round: whether it runs, not how fast.

#[path = "../../contenders/mod.rs"]
mod contenders;
#[path = "../../directories/mod.rs"]
mod directories;
mod processes;
mod programs;
mod readers;
#[path = "../../turns/mod.rs"]
mod turns;

use contenders::Contender;
use directories::{Directory, Made, Names, fastest_root, roots};
use programs::Program;
use readers::Order;
use std::time::Duration;
use turns::{Ratio, Turns, machine};

/// How long all contenders of one directory may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many processes stand in the last column besides those that are there anyway.
const MORE_PROCESSES: usize = 300;

fn main() {
    if processes::Idle::was_it() {
        return;
    }
    let is_test = std::env::args().any(|arg| arg == "--test");
    let (rounds_at_most, more_processes) = if is_test { (1, 30) } else { (2000, MORE_PROCESSES) };
    let (programs, missing) = programs::build();

    let mut table = Table::default();
    for dir in directories() {
        table.measure(&dir, directory_work(&dir, &programs), rounds_at_most);
    }
    if let Some(mut proc) = Directory::system("/proc") {
        table.measure(&proc, process_work(&proc, &programs), rounds_at_most);
        let _idle = processes::Idle::processes(more_processes).expect("processes");
        proc.label = format!("/proc, {more_processes} more");
        table.measure(&proc, process_work(&proc, &programs), rounds_at_most);
    }

    let mut ladder = Table::default();
    for dir in shapes() {
        let entrants = enter("nothing looked at", [contenders::bare_loop(&dir)]);
        ladder.measure(&dir, entrants.into_iter().chain(sort_work(&dir, &programs)).collect(), rounds_at_most);
    }

    println!("{}", machine());
    for sentence in missing {
        println!("\n{sentence}");
    }
    table.print();
    table.print_figures();
    ladder.print();
}

fn directories() -> Vec<Directory> {
    let fastest = fastest_root();
    vec![
        fastest.directory(16, Names::Pids),
        fastest.directory(1024, Names::Pids),
        roots()[0].directory(32, Names::Sixteen),
        roots()[0].directory(1024, Names::Hex),
    ]
}

/// What the rungs of the ladder are compared on, made in order and not.
fn shapes() -> Vec<Directory> {
    let fastest = fastest_root();
    let made_both_ways =
        |count, names| [Made::InOrder, Made::Shuffled].map(|made| fastest_root().directory_made(count, names, made));
    let mut all = vec![roots()[0].directory(32, Names::Sixteen), fastest.directory(32, Names::Sixteen)];
    all.extend(made_both_ways(1024, Names::Pids));
    all.extend(made_both_ways(1024, Names::Photos));
    all.push(fastest.directory(100_000, Names::Hex));
    all.extend(made_both_ways(100_000, Names::Photos));
    all
}

/// A row of the table to be.
struct Entrant<'a> {
    work: &'static str,
    contender: Contender<'a>,
}

fn enter<'a>(work: &'static str, contenders: impl IntoIterator<Item = Contender<'a>>) -> Vec<Entrant<'a>> {
    contenders.into_iter().map(|contender| Entrant { work, contender }).collect()
}

fn directory_work<'a>(dir: &'a Directory, programs: &[Program]) -> Vec<Entrant<'a>> {
    let mut all = enter("nothing looked at", [contenders::bare_loop(dir)]);
    all.extend(enter(READ, [contenders::lendir(dir)]));
    all.extend(enter(READ, contenders::lendir_marked(dir)));
    all.extend(enter(READ, readers::plain(dir)));
    all.extend(enter(READ, [contenders::std_names(dir)]));
    all.extend(enter(READ, elsewhere(dir, programs, Order::Any)));
    all.extend(sort_work(dir, programs));
    all.extend(enter(SORT, readers::walkdir_sorted(dir)));
    all
}

fn sort_work<'a>(dir: &'a Directory, programs: &[Program]) -> Vec<Entrant<'a>> {
    enter(SORT, readers::sorted(dir).into_iter().chain(elsewhere(dir, programs, Order::Bytes)))
}

fn elsewhere<'a>(dir: &'a Directory, programs: &[Program], order: Order) -> impl Iterator<Item = Contender<'a>> {
    programs.iter().flat_map(move |program| program.contenders(dir, order))
}

fn process_work<'a>(proc: &'a Directory, programs: &[Program]) -> Vec<Entrant<'a>> {
    let mut all = directory_work(proc, programs);
    all.extend(enter(PIDS, processes::pids(proc)));
    all.extend(enter(COMMANDS, processes::names()));
    all
}

const READ: &str = "names";
const SORT: &str = "names, sorted";
const PIDS: &str = "PIDs";
const COMMANDS: &str = "PIDs, command names";

/// Rows are contenders, columns are directories.
#[derive(Default)]
struct Table {
    columns: Vec<Column>,
    rows: Vec<(&'static str, &'static str)>,
}

struct Column {
    label: String,
    turns: Turns,
    rows: Vec<(&'static str, &'static str)>,
}

impl Table {
    fn measure(&mut self, dir: &Directory, entrants: Vec<Entrant<'_>>, rounds_at_most: u32) {
        eprintln!("{} contenders on {}", entrants.len(), dir.label);
        let rows: Vec<_> = entrants.iter().map(|entrant| (entrant.work, entrant.contender.name)).collect();
        let mut contenders: Vec<_> = entrants.into_iter().map(|entrant| entrant.contender).collect();
        for contender in &mut contenders {
            contender.check(dir);
        }
        let turns = Turns::take(&mut contenders, PATIENCE, rounds_at_most);
        // A row that only some directories have, `EndMarker`, stands behind the row that it follows there.
        for (index, row) in rows.iter().enumerate() {
            if !self.rows.contains(row) {
                let before = index.checked_sub(1).and_then(|index| self.rows.iter().position(|it| *it == rows[index]));
                self.rows.insert(before.map_or(0, |before| before + 1), *row);
            }
        }
        self.columns.push(Column { label: dir.label.clone(), turns, rows });
    }

    fn print(&self) {
        let cells = |cell: &dyn Fn(&Column) -> String| self.columns.iter().map(cell).collect::<Vec<_>>().join(" | ");
        println!("\n| work | contender | {} |", cells(&|column| column.label.clone()));
        println!("|---|---|{}", "---|".repeat(self.columns.len()));
        for row in &self.rows {
            let cell = |column: &Column| match column.index(*row) {
                Some(0) => format!("{:.2} µs, {} rounds", column.turns.median(0) * 1e6, column.turns.rounds),
                Some(index) => column.turns.ratio(index, 0).to_string(),
                None => "–".into(),
            };
            println!("| {} | {} | {} |", row.0, row.1, cells(&cell));
        }
    }

    /// Ratios to others than the bare loop, where there are processes.
    fn print_figures(&self) {
        let bare = self.rows[0];
        let figures = [
            ("listing PIDs, `lendir` to the bare loop", (PIDS, processes::LENDIR_PIDS), bare),
            ("listing PIDs, `procfs` to `lendir`", (PIDS, processes::PROCFS_PIDS), (PIDS, processes::LENDIR_PIDS)),
            ("with names, `std` to `lendir`", (COMMANDS, processes::STD_NAMES), (COMMANDS, processes::LENDIR_NAMES)),
        ];
        println!();
        for (what, it, base) in figures {
            for column in &self.columns {
                if let Some(ratio) = column.ratio(it, base) {
                    println!("- {what}, {}: {ratio}", column.label);
                }
            }
        }
    }
}

impl Column {
    fn index(&self, row: (&str, &str)) -> Option<usize> {
        self.rows.iter().position(|it| *it == row)
    }

    fn ratio(&self, it: (&str, &str), base: (&str, &str)) -> Option<Ratio> {
        Some(self.turns.ratio(self.index(it)?, self.index(base)?))
    }
}
