//! `cargo bench --bench listing`: a directory sorted, by each rung of the ladder, `std` and `lendir`, after each has been
//! seen to give the same names in the same order. `LENDIR_LONG=1` adds a million entries.
//!
//! Criterion measures one after the other; where the ratio counts, `cargo bench --bench ratios` has them in turn.

use criterion::{AxisScale, BenchmarkId, Criterion, PlotConfiguration, SamplingMode, Throughput};
use lendir_benches::ladder;
use std::time::Duration;

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(300))
        .sample_size(10)
        .nresamples(2000)
        .configure_from_args();
    for shapes in ladder::shapes().chunk_by(|a, b| a.kind() == b.kind()) {
        let mut group = criterion.benchmark_group(format!("h. sorted, {}", shapes[0].kind()));
        group.sampling_mode(SamplingMode::Flat);
        group.plot_config(PlotConfiguration::default().summary_scale(AxisScale::Logarithmic));
        for shape in shapes {
            let dir = shape.make_many();
            group.throughput(Throughput::Elements(shape.count as u64));
            for contender in &mut ladder::rungs(&dir) {
                contender.check();
                let id = BenchmarkId::new(contender.name, shape.count);
                group.bench_function(id, |bencher| bencher.iter_custom(|times| contender.time(times)));
            }
        }
        group.finish();
    }
    criterion.final_summary();
}
