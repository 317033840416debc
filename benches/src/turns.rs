//! Contenders measured in turn, round by round, so the drift of a busy machine affects all of them alike.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss, reason = "statistics")]

use crate::contender::Contender;
use std::fmt;
use std::time::Duration;

/// Long enough for the clock, short enough for the machine not to drift within a round.
const SAMPLE: Duration = Duration::from_micros(200);

/// How long to measure.
#[derive(Clone, Copy)]
pub struct Effort {
    /// How long all contenders of one table row may take. The slowest rows take longer, for 30 rounds.
    patience: Duration,
    rounds_at_most: usize,
}

impl Effort {
    pub fn new(patience: Duration) -> Self {
        Self { patience, rounds_at_most: 2000 }
    }

    pub fn rounds(rounds: usize) -> Self {
        Self { patience: Duration::ZERO, rounds_at_most: rounds }
    }

    /// One round: tells whether it runs, not how fast.
    pub fn test() -> Self {
        Self::rounds(1)
    }

    fn is_test(self) -> bool {
        self.rounds_at_most == 1
    }
}

/// What each contender took in each round.
pub struct Turns {
    pub rounds: usize,
    /// Seconds per reading.
    samples: Vec<Vec<f64>>,
}

impl Turns {
    /// The first contender decides how often each of them reads in a round.
    pub fn take(contenders: &mut [Contender<'_>], effort: Effort) -> Self {
        let once = contenders[0].time(10) / 10;
        let times = if effort.is_test() { 1 } else { (SAMPLE.as_nanos() / once.as_nanos()).max(1) as u64 };
        let round: Duration = contenders.iter_mut().map(|contender| contender.time(1) + contender.time(times)).sum();
        let rounds = ((effort.patience.as_nanos() / round.as_nanos()) as usize).max(30).min(effort.rounds_at_most);

        let mut samples = vec![Vec::with_capacity(rounds); contenders.len()];
        let mut order: Vec<_> = (0..contenders.len()).collect();
        let mut random = 1;
        for _ in 0..rounds {
            shuffle(&mut order, &mut random);
            for &index in &order {
                // Not timed: it would pay for what the previous contender left in the caches.
                contenders[index].time(1);
                samples[index].push(contenders[index].time(times).as_secs_f64() / times as f64);
            }
        }
        Self { rounds, samples }
    }

    /// Seconds per reading.
    pub fn median(&self, index: usize) -> f64 {
        quantile(&self.samples[index], 0.5)
    }

    /// Contender `index` against contender `base`.
    pub fn ratio(&self, index: usize, base: usize) -> Ratio {
        let ratios: Vec<_> = self.samples[index].iter().zip(&self.samples[base]).map(|(it, base)| it / base).collect();
        let of_medians = self.median(index) / self.median(base);
        Ratio { of_medians, low: quantile(&ratios, 0.25), high: quantile(&ratios, 0.75) }
    }
}

/// The ratio of two medians, shown with the middle half of the ratios round by round in brackets.
pub struct Ratio {
    pub of_medians: f64,
    low: f64,
    high: f64,
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { of_medians, low, high } = self;
        write!(f, "{of_medians:.3}  [{low:.3} to {high:.3}]")
    }
}

/// A new order for each round: in a rotation, all but the first still follow the same one every time.
fn shuffle(order: &mut [usize], random: &mut u64) {
    for last in (1..order.len()).rev() {
        *random = random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        order.swap(last, (*random >> 33) as usize % (last + 1));
    }
}

fn quantile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * part).round() as usize]
}

/// Processor, cores and kernel, as far as procfs tells.
pub fn machine() -> String {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let info = read("/proc/cpuinfo");
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ")).map(|(_, model)| model);
    let kernel = read("/proc/sys/kernel/osrelease");
    let release = kernel.trim().split('-').next().unwrap_or_default();
    let cores = info.lines().filter(|line| line.starts_with("processor")).count().max(1);
    format!("{}, {cores} cores, Linux {release}", model.unwrap_or(std::env::consts::ARCH))
}
