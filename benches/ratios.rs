//! `cargo bench --bench ratios`: every contender in turn, round by round, in one process.
//!
//! Criterion measures one contender after the other, so that the drift of a busy machine decides between them. Here the
//! drift meets all of them alike. What is printed is the ratio of the median to that of the bare loop, and in brackets
//! the middle half of the ratios round by round. The sorted ones have scores too, those of the gitstatus article: the first
//! rung of the ladder is 100, what takes half of its time 200.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss, reason = "statistics")]

mod contenders;
mod directories;
mod ladder;

use contenders::Contender;
use directories::{Directory, Names, roots};
use std::time::Duration;

/// Long enough for the clock, short enough for the machine not to drift within a round.
const SAMPLE: Duration = Duration::from_micros(200);
/// How long all contenders of one directory may take, but for the largest, where 30 rounds take longer.
const PATIENCE: Duration = Duration::from_secs(5);

fn main() {
    // `cargo bench -- --test` and `cargo test --benches` ask only whether it runs.
    let rounds_at_most = if std::env::args().any(|arg| arg == "--test") { 1 } else { 2000 };
    println!("{}", machine());
    for dir in rows() {
        let mut contenders = contenders::all(&dir);
        contenders.extend(contenders::rescans(&dir));
        table(&dir, &mut contenders, rounds_at_most);
    }
    for shape in ladder::shapes() {
        let dir = shape.make();
        table(&dir, &mut ladder::all(&dir), rounds_at_most);
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
    let once = contenders[0].time(10) / 10;
    let times = (SAMPLE.as_nanos() / once.as_nanos()).max(1) as u64;
    let round = SAMPLE.max(once) * contenders.len() as u32;
    let rounds = ((PATIENCE.as_nanos() / round.as_nanos()) as u32).max(30).min(rounds_at_most) as usize;

    let mut samples = vec![Vec::with_capacity(rounds); contenders.len()];
    for round in 0..rounds {
        // Each round begins with another contender, so that none always follows the same one.
        for turn in 0..contenders.len() {
            let index = (round + turn) % contenders.len();
            samples[index].push(contenders[index].time(times).as_secs_f64() / times as f64);
        }
    }

    let base = quantile(&samples[0], 0.5);
    let medians: Vec<_> = samples.iter().map(|samples| quantile(samples, 0.5)).collect();
    let first_rung = contenders.iter().position(|contender| contender.name == ladder::FIRST_RUNG);
    println!("\n{}: the bare loop takes {:.2} µs, {rounds} rounds\n", dir.label, base * 1e6);
    for (index, contender) in contenders.iter().enumerate() {
        let ratios: Vec<_> = samples[index].iter().zip(&samples[0]).map(|(it, bare)| it / bare).collect();
        let (low, high) = (quantile(&ratios, 0.25), quantile(&ratios, 0.75));
        let score =
            first_rung.map_or(String::new(), |first| format!("{:7.1}", 100.0 * medians[first] / medians[index]));
        println!("  {:34} {:.3}  [{low:.3} to {high:.3}]{score}", contender.name, medians[index] / base);
    }
}

fn quantile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * part).round() as usize]
}

/// Processor, cores and kernel, as far as procfs tells.
fn machine() -> String {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let info = read("/proc/cpuinfo");
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map(|(_, model)| model);
    let kernel = read("/proc/sys/kernel/osrelease");
    let release = kernel.trim().split('-').next().unwrap_or_default();
    format!(
        "{}, {} cores, Linux {release}",
        model.unwrap_or(std::env::consts::ARCH),
        std::thread::available_parallelism().map_or(1, usize::from)
    )
}
