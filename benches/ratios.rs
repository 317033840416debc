//! `cargo bench --bench ratios`: every contender in turn, round by round, in one process.
//!
//! Criterion measures one contender after the other, so that the drift of a busy machine decides between them. Here the
//! drift meets all of them alike. What is printed is the ratio of the median to that of the bare loop, and in brackets
//! the middle half of the ratios round by round. The sorted ones have scores too, those of the gitstatus article: the first
//! rung of the ladder is 100, what takes half of its time 200.
//!
//! With words after `--`, only the directories whose label has one of them: `cargo bench --bench ratios -- ext4 /proc`.

mod contenders;
mod directories;
mod ladder;
mod turns;

use contenders::Contender;
use directories::{Directory, Names, roots};
use std::time::Duration;
use turns::{Turns, machine};

/// How long all contenders of one directory may take, but for the largest, where 30 rounds take longer.
const PATIENCE: Duration = Duration::from_secs(5);

fn main() {
    // `cargo bench -- --test` and `cargo test --benches` ask only whether it runs.
    let rounds_at_most = if std::env::args().any(|arg| arg == "--test") { 1 } else { 2000 };
    let words: Vec<_> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let is_asked_for = |label: &str| words.is_empty() || words.iter().any(|word| label.contains(word));
    println!("{}", machine());
    for dir in rows().into_iter().filter(|dir| is_asked_for(&dir.label)) {
        let mut contenders = contenders::all(&dir);
        contenders.extend(contenders::rescans(&dir));
        table(&dir, &mut contenders, rounds_at_most);
    }
    Directory::for_buffers(is_asked_for, |dir| {
        let mut contenders = vec![contenders::bare_loop(dir)];
        contenders.extend(contenders::lendir_by_capacity(dir).map(|(_, contender)| contender));
        table(dir, &mut contenders, rounds_at_most);
    });
    for shape in ladder::shapes() {
        if is_asked_for(&shape.label()) {
            let dir = shape.make();
            table(&dir, &mut ladder::all(&dir), rounds_at_most);
        }
    }
}

fn rows() -> Vec<Directory> {
    let mut rows = Vec::new();
    for root in roots().iter().rev() {
        rows.push(root.directory(16, Names::Pids));
        rows.push(root.directory(32, Names::Sixteen));
        rows.push(root.directory(1024, Names::Pids));
    }
    rows.extend(["/sys/class/net", "/proc"].into_iter().filter_map(Directory::system));
    rows
}

fn table(dir: &Directory, contenders: &mut [Contender<'_>], rounds_at_most: u32) {
    for contender in &mut *contenders {
        contender.check(dir);
    }
    let turns = Turns::take(contenders, PATIENCE, rounds_at_most);
    let first_rung = contenders.iter().position(|contender| contender.name == ladder::FIRST_RUNG);
    println!("\n{}: the bare loop takes {:.2} µs, {} rounds\n", dir.label, turns.median(0) * 1e6, turns.rounds);
    for (index, contender) in contenders.iter().enumerate() {
        let score = |first| format!("{:7.1}", 100.0 * turns.median(first) / turns.median(index));
        println!("  {:34} {}{}", contender.name, turns.ratio(index, 0), first_rung.map_or(String::new(), score));
    }
}
