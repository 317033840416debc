//! `cargo bench --bench read_dir`: one group for each question about reading a directory.
//!
//! a. Is leaving out the sort and the allocations worth it?  b. Is reusing the buffer?  c. How large should it be?
//! d. Is `openat` worth it?  e. What does a rescan save?  f. What does the end marker save?  g. How does cost grow?
//!
//! `LENDIR_LONG=1` adds the sizes that take long: 3000 processes more, a million entries.

use criterion::{AxisScale, PlotConfiguration, measurement::WallTime};
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use lendir::{Buffer, Entries};
use lendir_benches::contender::Contender;
use lendir_benches::directories::{Directory, Fixture, Names, fastest_root, for_capacities, roots};
use lendir_benches::{is_long, readers};
use std::ffi::CString;
use std::fs::create_dir;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

type Group<'a> = BenchmarkGroup<'a, WallTime>;

fn run(group: &mut Group<'_>, parameter: &str, contenders: Vec<Contender<'_>>) {
    for mut contender in contenders {
        contender.check();
        group.bench_function(BenchmarkId::new(contender.name, parameter), |bencher| {
            bencher.iter_custom(|times| contender.time(times));
        });
    }
}

fn group<'a>(c: &'a mut Criterion, question: &str) -> Group<'a> {
    let mut group = c.benchmark_group(question);
    group.plot_config(PlotConfiguration::default().summary_scale(AxisScale::Logarithmic));
    group
}

/// Those of them that exist here.
fn system(paths: [&'static str; 2]) -> impl Iterator<Item = Directory> {
    paths.into_iter().filter_map(|path| Fixture::System(path).make())
}

fn contenders(c: &mut Criterion) {
    for root in roots() {
        let mut group = group(c, &format!("a. contenders on {}", root.file_system));
        for count in [16, 128, 1024, 16_384] {
            let dir = root.directory(count, Names::Pids);
            group.throughput(Throughput::Elements(count as u64));
            run(&mut group, &count.to_string(), readers::all(&dir));
        }
    }
    for path in ["/proc", "/proc/self/fd", "/sys/class/net"] {
        if let Some(dir) = Fixture::System(path).make() {
            run(&mut group(c, &format!("a. contenders on {path}")), path, readers::all(&dir));
        }
    }
}

fn buffer_reuse(c: &mut Criterion) {
    let root = fastest_root();
    let dirs: Vec<_> = (0..64).map(|_| root.directory(16, Names::Pids)).collect();
    let mut group = group(c, "b. a fresh buffer for each of 64 directories");
    for kib in [8, 32] {
        for (name, mut kept) in [("fresh", None), ("reused", Some(Buffer::with_capacity(kib * 1024)))] {
            group.bench_function(BenchmarkId::new(name, format!("{kib} KiB")), |bencher| {
                bencher.iter(|| {
                    for dir in &dirs {
                        let fd = lendir::open(&*dir.path).expect("cannot open the directory");
                        let mut fresh;
                        let buffer = if let Some(kept) = &mut kept {
                            kept
                        } else {
                            fresh = Buffer::with_capacity(kib * 1024);
                            &mut fresh
                        };
                        assert_eq!(Entries::new(&fd, buffer).count().expect("cannot read the directory"), 16);
                    }
                });
            });
        }
    }
}

fn buffer_size(c: &mut Criterion) {
    let mut group = group(c, "c. KiB of buffer");
    for fixture in for_capacities() {
        let Some(dir) = fixture.make() else { continue };
        for (kib, mut contender) in readers::lendir_by_capacity(&dir) {
            contender.check();
            group.bench_function(BenchmarkId::new(&dir.label, kib), |bencher| {
                bencher.iter_custom(|times| contender.time(times));
            });
        }
    }
}

fn open(c: &mut Criterion) {
    for depth in [1, 4, 16] {
        let root = fastest_root().directory(0, Names::Pids);
        let mut parent = root.path().to_owned();
        for _ in 1..depth {
            parent.push("directory");
            create_dir(&parent).expect("cannot make the directory");
        }
        let path = parent.join("leaf");
        create_dir(&path).expect("cannot make the directory");
        let relative = c_string(path.strip_prefix(root.path()).expect("BUG: not below its root"));
        let path = c_string(&path);
        let top = lendir::open(root.path()).expect("cannot open the root");
        let parent = lendir::open(&parent).expect("cannot open the parent");
        let mut group = group(c, "d. open and close");
        group.bench_function(BenchmarkId::new("absolute path", depth), |b| {
            b.iter(|| lendir::open(&*path).expect("cannot open the absolute path"));
        });
        group.bench_function(BenchmarkId::new("path relative to the root", depth), |b| {
            b.iter(|| lendir::openat(&top, &*relative).expect("cannot open the relative path"));
        });
        group.bench_function(BenchmarkId::new("name relative to the parent", depth), |b| {
            b.iter(|| lendir::openat(&parent, c"leaf").expect("cannot open the name"));
        });
    }
}

fn c_string(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).expect("BUG: a NUL inside the path")
}

fn rescan(c: &mut Criterion) {
    let mut group = group(c, "e. rescan");
    let mut dirs = vec![fastest_root().directory(16, Names::Pids), fastest_root().directory(1024, Names::Pids)];
    dirs.extend(system(["/proc", "/sys/class/net"]));
    for dir in &dirs {
        let mut all = vec![readers::bare_loop(dir), readers::lendir(dir)];
        all.extend(readers::rescans(dir));
        run(&mut group, &dir.label, all);
    }
}

fn end_marker(c: &mut Criterion) {
    let mut group = group(c, "f. end marker");
    let mut dirs: Vec<_> = roots().iter().map(|root| root.directory(32, Names::Sixteen)).collect();
    dirs.extend(system(["/sys/class/net", "/sys/fs/cgroup"]));
    for dir in &dirs {
        let Some(marked) = readers::lendir_marked(dir) else { continue };
        run(&mut group, &dir.label, vec![readers::lendir(dir), marked]);
    }
}

fn growth(c: &mut Criterion) {
    let mut group = group(c, "g. growth");
    let counts = [16, 128, 1000, 10_000, 100_000, 1_000_000];
    for &count in if is_long() { &counts[..] } else { &counts[..5] } {
        let dir = fastest_root().directory(count, Names::Hex);
        group.throughput(Throughput::Elements(count as u64));
        let sorted = readers::listing("lendir, sorted", &dir);
        let all = vec![readers::bare_loop(&dir), readers::lendir(&dir), sorted];
        run(&mut group, &count.to_string(), all);
    }
}

criterion_group! {
    name = questions;
    config = Criterion::default()
        .sample_size(20)
        .nresamples(2000)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(500));
    targets = contenders, buffer_reuse, buffer_size, open, rescan, end_marker, growth
}
criterion_main!(questions);
