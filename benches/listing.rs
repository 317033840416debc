//! `cargo bench --bench listing`: a directory sorted, by each rung of the ladder, `std` and `lendir`, after each has been
//! seen to give the same names in the same order. `LENDIR_LONG=1` adds a million entries.
//!
//! Criterion measures one after the other; where the ratio counts, `cargo bench --bench ratios` has them in turn.

mod contenders;
mod directories;
mod ladder;

use criterion::{Criterion, SamplingMode};
use std::time::Duration;

fn main() {
    let mut criterion = Criterion::default()
        .without_plots()
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(300))
        .sample_size(10)
        .nresamples(5000)
        .configure_from_args();
    for shape in ladder::shapes() {
        let dir = shape.make();
        let mut group = criterion.benchmark_group(shape.label());
        group.sampling_mode(SamplingMode::Flat);
        for contender in &mut ladder::all(&dir) {
            contender.check(&dir);
            group.bench_function(contender.name, |bencher| bencher.iter_custom(|times| contender.time(times)));
        }
        group.finish();
    }
    criterion.final_summary();
}
