//! Compares sorted walks of trees whose caches are warm, in wall time and in processor time: alone,
//! and beside busy processes, which preempt a walk so that its calls seem to wait.

use crate::walkers::{jwalk_sorted, read_ahead};
use lendir_benches::Arguments;
use lendir_benches::ratio::time;
use lendir_benches::trees::Fixture;
use lendir_benches::walkers::{cores, walked_bytes};
use rustix::time::{ClockId, clock_gettime};
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

const TITLE: &str = "In order, warm";
const ROUNDS: usize = 15;
const BUSY_COUNT: usize = 8;

struct Contender {
    name: &'static str,
    threads: usize,
    /// Returns the bytes of all names.
    read: fn(&Path, usize) -> u64,
}

fn contenders() -> Vec<Contender> {
    let ahead = |name, threads| Contender { name, threads, read: read_ahead };
    vec![
        ahead("one thread", 0),
        ahead("1 helper", 1),
        ahead("2 helpers", 2),
        ahead("4 helpers", 4),
        ahead("16 helpers", 16),
        ahead("64 helpers", 64),
        Contender { name: "in no order, all cores", threads: cores(), read: walked_bytes },
        Contender { name: "jwalk, all cores", threads: cores(), read: jwalk_sorted },
    ]
}

/// Returns the time on a clock, in seconds.
fn seconds(clock: ClockId) -> f64 {
    let now = clock_gettime(clock);
    let seconds = Duration::try_from(now).expect("BUG: the clock stands before its beginning");
    seconds.as_secs_f64()
}

/// Returns a table in Markdown.
pub fn table(arguments: &Arguments) -> String {
    let contenders = contenders();
    let mut rows = String::new();
    for (fixture, busy_count) in [
        (Fixture::System("/usr"), 0),
        (Fixture::System("/usr"), BUSY_COUNT),
        (Fixture::Small, 0),
        (Fixture::Many, 0),
    ] {
        let label = match busy_count {
            0 => fixture.label(),
            _ => format!("{}, beside {busy_count} busy processes", fixture.label()),
        };
        if arguments.ask_for(TITLE, &label) {
            let busy: Vec<_> = (0..busy_count).map(|_| Busy::start()).collect();
            rows += &row(&label, fixture, &contenders, arguments.has("--test"));
            drop(busy);
        }
    }
    if rows.is_empty() {
        return rows;
    }
    let names: Vec<_> = contenders.iter().map(|contender| contender.name).collect();
    format!(
        "\n### {TITLE}\n\nwall time, processor time; of one thread's\n\n| | {} |\n|---|{}\n{rows}",
        names.join(" | "),
        "---|".repeat(names.len())
    )
}

/// A process that computes until it is dropped.
struct Busy(Child);

impl Busy {
    fn start() -> Self {
        let child = Command::new("sh").args(["-c", "while :; do :; done"]).spawn();
        Self(child.expect("cannot start a shell"))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the medians of rounds in which the contenders take turns.
fn row(label: &str, fixture: Fixture, contenders: &[Contender], is_test: bool) -> String {
    let tree = fixture.make();
    let all = walkdir::WalkDir::new(tree.path()).min_depth(1).into_iter();
    let answer: u64 =
        all.map(|entry| entry.expect("cannot read the directory").file_name().len() as u64).sum();
    let mut seen = vec![[Vec::new(), Vec::new()]; contenders.len()];
    for round in 0..=if is_test { 0 } else { ROUNDS } {
        for (contender, seen) in contenders.iter().zip(&mut seen) {
            let clocks = [ClockId::Monotonic, ClockId::ProcessCPUTime];
            let begin = clocks.map(seconds);
            let bytes = (contender.read)(tree.path(), contender.threads);
            let end = clocks.map(seconds);
            assert_eq!(bytes, answer, "{} gives a wrong answer", contender.name);
            if round > 0 || is_test {
                (0..2).for_each(|index| seen[index].push(end[index] - begin[index]));
            }
        }
    }
    println!("{TITLE}: {label}: all {} answers are right", contenders.len());
    let medians: Vec<_> = seen
        .into_iter()
        .map(|seen| {
            seen.map(|mut values| {
                values.sort_by(f64::total_cmp);
                values[values.len() / 2]
            })
        })
        .collect();
    let [wall, processor] = medians[0];
    let ratios =
        medians[1..].iter().map(|[one, two]| format!("{:.2}, {:.2}", one / wall, two / processor));
    let cells: Vec<_> =
        [format!("{}, {}", time(wall), time(processor))].into_iter().chain(ratios).collect();
    format!("| {label} | {} |\n", cells.join(" | "))
}
