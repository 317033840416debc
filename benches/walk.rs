//! `cargo bench --bench walk`: whole trees, by each walker.
//!
//! Criterion measures one after the other; where the ratio counts, `cargo bench --bench ratios` has them in turn.

use criterion::{BenchmarkId, Criterion, SamplingMode};
use lendir_benches::{trees, walkers};
use std::time::Duration;

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(500))
        .sample_size(10)
        .nresamples(2000)
        .configure_from_args();
    let mut group = criterion.benchmark_group("i. walk");
    group.sampling_mode(SamplingMode::Flat);
    for fixture in trees::Fixture::all() {
        let tree = fixture.make();
        for contender in &mut walkers::all(&tree) {
            contender.check();
            let id = BenchmarkId::new(contender.name, &tree.label);
            group.bench_function(id, |bencher| bencher.iter_custom(|times| contender.time(times)));
        }
    }
    group.finish();
    criterion.final_summary();
}
