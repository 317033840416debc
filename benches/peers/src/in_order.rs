//! Compares walks in order with walks in no order: on warm caches, beside busy processes, which
//! preempt a walk so that its calls seem to wait, on cold caches, and on a server that is far away.

use crate::fuse::{POINT, Server, Service, Shape};
use crate::parallel::{self, Way};
use lendir_benches::Arguments;
use lendir_benches::ratio::{median, time};
use std::path::Path;
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

const TITLE: &str = "In order";
const LATENCY: Duration = Duration::from_millis(20);

pub const WAYS: [Way; 4] = [
    ("lendir, in order", read_ahead),
    ("lendir, in no order", parallel::lendir::<false>),
    ("ignore, in no order", parallel::ignore::<false>),
    ("dua-core, in no order", parallel::dua::<false>),
];

/// Walks in order on this thread, while as many helpers as there should be threads read ahead. One
/// thread has no helper.
fn read_ahead(root: &Path, threads: usize) -> u64 {
    let helpers = if threads == 1 { 0 } else { threads };
    let options = lendir::Walk::options().order(lendir::Order::Bytes).read_ahead(helpers);
    let (mut tree, mut bytes) = (options.open(root).expect("cannot open the root"), 0);
    while let Some(entry) = tree.next().expect("cannot read the directory") {
        bytes += entry.name().len() as u64;
    }
    bytes
}

/// Returns a table in Markdown.
pub fn table(arguments: &Arguments) -> String {
    let is_test = arguments.has("--test");
    let mut rows = String::new();
    for (place, threads) in [("warm", [1, 2, 16]), ("beside 8 busy processes", [1, 2, 16])] {
        let count = if place == "warm" { 0 } else { 8 };
        let busy: Vec<_> = (0..count).map(|_| Busy::start()).collect();
        rows += &on_usr(arguments, place, &threads);
        drop(busy);
    }
    if is_test || can_drop_caches() {
        rows += &on_usr(arguments, "with cold caches", &[1, 4, 16]);
    }
    for (levels, threads) in [(3, &[64, 256][..]), (4, &[256])] {
        let shape = Shape::of_tens(if is_test { 1 } else { levels });
        rows += &on_server(arguments, shape, threads);
    }
    if rows.is_empty() {
        return rows;
    }
    let names = WAYS.map(|way| way.0).join(" | ");
    format!(
        "\n### {TITLE}\n\nwall time, processor time\n\n| | {names} |\n|---|---|---|---|---|\n{rows}"
    )
}

fn on_usr(arguments: &Arguments, place: &str, threads: &[usize]) -> String {
    let is_test = arguments.has("--test");
    let root = Path::new("/usr");
    let right = parallel::lendir::<false>(root, 1);
    let is_cold = place == "with cold caches";
    rows(arguments, &format!("/usr, {place}"), threads, |name, threads| {
        if is_cold && !is_test {
            rustix::fs::sync();
            can_drop_caches();
        }
        parallel::measure(name, threads, root, right)
    })
}

/// Drops the caches. Returns `false` without permission.
fn can_drop_caches() -> bool {
    std::fs::write("/proc/sys/vm/drop_caches", "3").is_ok()
}

fn on_server(arguments: &Arguments, shape: Shape, threads: &[usize]) -> String {
    let label = format!("{LATENCY:?} a request, {} directories", shape.directories());
    // The mount is in the namespace of one thread, and ends with this thread.
    let measure = || match Server::mount(Service::slow(shape, LATENCY)) {
        Ok(_server) => rows(arguments, &label, threads, |name, threads| {
            parallel::measure(name, threads, POINT.as_ref(), shape.bytes_of_names())
        }),
        Err(error) => format!("| {label} | SKIPPED: {error} | | | |\n"),
    };
    thread::scope(|scope| scope.spawn(measure).join()).expect("the thread that measures panicked")
}

/// Returns a row for each number of threads, with the medians of up to seven rounds in which the ways
/// take turns. No round begins after 20 seconds.
fn rows(
    arguments: &Arguments,
    label: &str,
    threads: &[usize],
    mut measure: impl FnMut(&str, usize) -> [f64; 2],
) -> String {
    let (is_test, mut rows) = (arguments.has("--test"), Vec::new());
    for &threads in if is_test { &threads[..1] } else { threads } {
        let plural = if threads == 1 { "" } else { "s" };
        let label = format!("{label}, {threads} thread{plural}");
        if !arguments.ask_for(TITLE, &label) {
            continue;
        }
        let (mut seen, mut seconds) = (WAYS.map(|_| [Vec::new(), Vec::new()]), 0.0);
        for _ in 0..if is_test { 1 } else { 7 } {
            for ((name, _), seen) in WAYS.iter().zip(&mut seen) {
                let [wall, processor] = measure(name, threads);
                seen[0].push(wall);
                seen[1].push(processor);
                seconds += wall;
            }
            if seconds > 20.0 {
                break;
            }
        }
        println!("{TITLE}: {label}: all answers are right");
        let cells = seen.map(|seen| seen.map(|seconds| time(median(seconds))).join(", "));
        rows.push(format!("| {label} | {} |\n", cells.join(" | ")));
    }
    rows.concat()
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
