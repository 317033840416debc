//! Measures contenders by criterion, with ratios for samples. It does not know what a contender
//! does.
//!
//! A contender and the base, such as the bare loop, take turns of about 200 µs. So the drift of a
//! busy machine affects both equally. A sample is the ratio of the medians of their turns.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "statistics"
)]

use crate::contender::Contender;
use criterion::measurement::{Measurement, ValueFormatter};
use criterion::{Criterion, SamplingMode, Throughput};
use std::fmt;
use std::time::Duration;

/// The length of a turn: long enough for the clock, and short enough that the machine does not
/// drift.
const TURN: Duration = Duration::from_micros(200);

/// The time of a reading above which a contender gets fewer samples.
const LONG: Duration = Duration::from_millis(10);

/// The value that criterion measures: the contender's time divided by the time of the base, times
/// the number of readings.
pub struct Ratio;

impl Measurement for Ratio {
    type Intermediate = ();
    type Value = f64;

    fn start(&self) {}

    fn end(&self, (): ()) -> f64 {
        unreachable!("BUG: a ratio is measured by `iter_custom` only")
    }

    fn add(&self, a: &f64, b: &f64) -> f64 {
        a + b
    }

    fn zero(&self) -> f64 {
        0.0
    }

    fn to_f64(&self, value: &f64) -> f64 {
        *value
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        self
    }
}

impl ValueFormatter for Ratio {
    fn format_value(&self, value: f64) -> String {
        format!("{value:.3}")
    }

    fn scale_values(&self, _: f64, _: &mut [f64]) -> &'static str {
        "ratio"
    }

    fn scale_throughputs(&self, _: f64, _: &Throughput, _: &mut [f64]) -> &'static str {
        "ratio"
    }

    fn scale_for_machines(&self, _: &mut [f64]) -> &'static str {
        "ratio"
    }
}

/// A benchmark that measures each contender of a row against the first one.
pub struct Bench {
    /// `None` in a test, which checks the answers and measures nothing.
    criterion: Option<Criterion<Ratio>>,
}

impl Bench {
    /// Creates a benchmark. `criterion` reads its own arguments. Its filter has no effect, because
    /// words select whole rows.
    pub fn new(criterion: Criterion, is_test: bool) -> Self {
        let criterion = criterion.with_measurement(Ratio).with_filter("").nresamples(5000);
        Self { criterion: (!is_test).then_some(criterion) }
    }

    /// Checks and measures the contenders. Criterion prints its results in a group that is named by
    /// title and label.
    fn measure(&mut self, title: &str, label: &str, mut contenders: Vec<Contender<'_>>) -> Row {
        contenders.iter_mut().for_each(Contender::check);
        let (base, others) = contenders.split_first_mut().expect("BUG: a row without contenders");
        let mut row = Row { label: label.into(), base: (base.name, f64::NAN), ratios: Vec::new() };
        let Some(criterion) = &mut self.criterion else {
            println!("{title}: {label}: all {} answers are right", 1 + others.len());
            row.ratios = others.iter().map(|it| (it.name, f64::NAN)).collect();
            return row;
        };
        let mut group = criterion.benchmark_group(format!("{title}: {label}"));
        group.sampling_mode(SamplingMode::Flat);
        let mut base_seconds = Vec::new();
        for it in others {
            let name = it.name;
            let once = base.time(1) + it.time(1);
            let count = if once < LONG { 30 } else { 10 };
            group.sample_size(count).warm_up_time(Duration::from_millis(100));
            // Long enough for at least two readings a sample.
            group.measurement_time((once * count as u32 * 3 / 2).max(Duration::from_millis(600)));
            let readings = (TURN.as_nanos() / base.time(1).as_nanos()).max(1) as u64;
            let is_long = once >= LONG;
            let mut pair =
                Pair { contenders: [base, it], readings, is_long, samples: Vec::new(), random: 1 };
            group.bench_function(name, |bencher| bencher.iter_custom(|times| pair.sample(times)));
            // Without the first ones, which were for warming up.
            let measured = &pair.samples[pair.samples.len().saturating_sub(count)..];
            row.ratios.push((name, median(measured.iter().map(|[base, it]| it / base).collect())));
            base_seconds.extend(measured.iter().map(|[base, _]| *base));
        }
        group.finish();
        row.base.1 = median(base_seconds);
        row
    }
}

struct Pair<'p, 'a> {
    /// The base, then the contender.
    contenders: [&'p mut Contender<'a>; 2],
    /// The number of readings in one turn of each.
    readings: u64,
    is_long: bool,
    /// The seconds for a reading, of both.
    samples: Vec<[f64; 2]>,
    random: u64,
}

impl Pair<'_, '_> {
    fn sample(&mut self, times: u64) -> f64 {
        let mut turns = [Vec::new(), Vec::new()];
        let mut left = times;
        while left > 0 {
            let readings = left.min(self.readings);
            // A random turn. Strict alternation can keep step with the scheduler, which then always
            // interrupts the same contender.
            self.random = self.random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            for index in if self.random >> 63 == 0 { [0, 1] } else { [1, 0] } {
                let contender = &mut *self.contenders[index];
                if !self.is_long {
                    // Not timed, because the other one has evicted data from the caches.
                    contender.time(1);
                }
                turns[index].push(contender.time(readings).as_secs_f64() / readings as f64);
            }
            left -= readings;
        }
        let sample = turns.map(median);
        self.samples.push(sample);
        sample[1] / sample[0] * times as f64
    }
}

/// Returns the median, or NaN without values, for example if criterion was called to print a list.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        count => f64::midpoint(values[(count - 1) / 2], values[count / 2]),
    }
}

/// The results for one directory or tree.
struct Row {
    label: String,
    /// The name of the base, and the seconds for a reading.
    base: (&'static str, f64),
    ratios: Vec<(&'static str, f64)>,
}

/// A table in Markdown, with a column for each contender.
pub struct Table {
    pub title: &'static str,
    rows: Vec<Row>,
}

impl Table {
    pub fn new(title: &'static str) -> Self {
        Self { title, rows: Vec::new() }
    }

    /// Measures contenders and adds a row.
    pub fn measure(&mut self, bench: &mut Bench, label: &str, contenders: Vec<Contender<'_>>) {
        self.rows.push(bench.measure(self.title, label, contenders));
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(first) = self.rows.first() else { return Ok(()) };
        // A contender that only some rows have is placed after its predecessor in these rows.
        let mut columns = Vec::new();
        for row in &self.rows {
            let mut before = 0;
            for (name, _) in &row.ratios {
                let place = columns.iter().position(|it| it == name).unwrap_or_else(|| {
                    columns.insert(before, *name);
                    before
                });
                before = place + 1;
            }
        }
        writeln!(f, "\n### {}\n\n| | {} | {} |", self.title, first.base.0, columns.join(" | "))?;
        writeln!(f, "|---|---|{}", "---|".repeat(columns.len()))?;
        for row in &self.rows {
            write!(f, "| {} | {} |", row.label, time(row.base.1))?;
            for column in &columns {
                let ratio =
                    row.ratios.iter().find(|(name, ratio)| name == column && !ratio.is_nan());
                write!(f, " {} |", ratio.map_or_else(|| "–".into(), |it| format!("{:.2}", it.1)))?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// Returns the time with three digits.
pub fn time(seconds: f64) -> String {
    let (value, unit) = match seconds {
        _ if seconds.is_nan() => return "–".into(),
        ..1e-3 => (seconds * 1e6, "µs"),
        1e-3..1.0 => (seconds * 1e3, "ms"),
        _ => (seconds, "s"),
    };
    let decimals = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.decimals$} {unit}")
}
