//! Programs that work on each file, as a search does, or that are given many roots: the walker of `ignore` on several threads,
//! and `lendir` with jobs.

use ignore::{WalkBuilder, WalkState};
use lendir::{FileType, Walk};
use lendir_benches::contender::{Contender, Oracle};
use lendir_benches::ratio::{Bench, Table};
use lendir_benches::{Arguments, trees::Fixture};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// What is done with each file.
#[derive(Clone, Copy)]
enum Work {
    Nothing,
    /// As a file system over a network makes a reader wait.
    Wait(Duration),
    Compute(Duration),
}

impl Work {
    fn label(self) -> String {
        match self {
            Self::Nothing => "no work".into(),
            Self::Wait(time) => format!("{time:?} of waiting for each"),
            Self::Compute(time) => format!("{time:?} of computing for each"),
        }
    }

    fn run(self) {
        match self {
            Self::Nothing => {}
            Self::Wait(time) => thread::sleep(time),
            Self::Compute(time) => {
                let begin = Instant::now();
                while begin.elapsed() < time {}
            }
        }
    }
}

pub fn table(arguments: &Arguments, bench: &mut Bench) -> Table {
    let (wait, compute) = (Work::Wait(Duration::from_micros(500)), Work::Compute(Duration::from_micros(5)));
    let wait_long = Work::Wait(Duration::from_millis(20));
    let mut table = Table::new("Work on each file");
    for (fixture, work, threads) in [
        (Fixture::Flat, wait, 2),
        (Fixture::Flat, wait, 8),
        (Fixture::Flat, wait_long, 128),
        (Fixture::Flat, compute, 2),
        (Fixture::Uneven, wait, 8),
        (Fixture::Many, Work::Nothing, 8),
        (Fixture::Many, wait, 8),
    ] {
        let is_many = matches!(fixture, Fixture::Many);
        let each = if is_many { ", each a root" } else { "" };
        let label = format!("{}{each}, {}, {threads} threads", fixture.label(), work.label());
        if !arguments.ask_for(table.title, &label) {
            continue;
        }
        let tree = fixture.make();
        let roots = if is_many { directories_in(tree.path().into()) } else { vec![tree.path().into()] };
        let oracle = || Oracle::new(&label, false, || by_ignore(&roots, 1, Work::Nothing));
        let mut contenders = vec![
            Contender::counting("ignore", oracle(), || by_ignore(&roots, threads, work)),
            Contender::counting("lendir", oracle(), || by_lendir(&roots, threads, work)),
        ];
        if !matches!(work, Work::Wait(_)) {
            contenders.push(Contender::counting("lendir, one thread", oracle(), || by_lendir(&roots, 1, work)));
        }
        table.measure(bench, &label, contenders);
    }
    table
}

fn directories_in(path: PathBuf) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).expect("cannot open the directory");
    entries.map(|entry| entry.expect("cannot read the directory").path()).collect()
}

/// How many files there are.
fn by_ignore(roots: &[PathBuf], threads: usize, work: Work) -> u64 {
    let files = AtomicU64::new(0);
    let mut builder = WalkBuilder::new(&roots[0]);
    for root in &roots[1..] {
        builder.add(root);
    }
    builder.standard_filters(false).threads(threads).build_parallel().run(|| {
        Box::new(|entry| {
            let entry = entry.expect("cannot read the directory");
            if entry.file_type().is_some_and(|it| it.is_file()) {
                files.fetch_add(1, Relaxed);
                work.run();
            }
            WalkState::Continue
        })
    });
    files.into_inner()
}

fn by_lendir(roots: &[PathBuf], threads: usize, work: Work) -> u64 {
    let walk = Walk::options().open_all(roots);
    let parts = walk.spread(threads, |worker| {
        let (jobs, mut files) = (worker.jobs(), 0);
        while let Some(mut dir) = worker.next().expect("cannot open a directory of the tree") {
            while let Some(entry) = dir.next().expect("cannot read the directory") {
                if entry.file_type() == FileType::RegularFile {
                    files += 1;
                    jobs.run(move |_| work.run());
                }
            }
        }
        files
    });
    parts.into_iter().sum()
}
