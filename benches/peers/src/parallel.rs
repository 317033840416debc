//! Walks on several threads, by `lendir` and by other crates. Each returns the bytes of all names
//! below the root, and if `QUERY`, also queries each entry. A walk that is timed as a whole runs in a
//! child of its own.

use fdf::walk::Finder;
use ignore::{WalkBuilder, WalkState};
use rustix::time::{ClockId, clock_gettime};
use std::num::NonZero;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The name of a walk, and the walk: the root and the number of threads.
pub type Way = (&'static str, fn(&Path, usize) -> u64);

/// The first argument of a child. The name of a way, the number of threads and the root follow.
pub const RUN: &str = "--run";

/// Is a child: prints the seconds of wall and processor time, and the answer.
pub fn run(ways: &[Way], name: &str, threads: &str, root: &str) {
    let (_, walk) = ways.iter().find(|way| way.0 == name).expect("no way has this name");
    let threads = threads.parse().expect("the argument is not a number of threads");
    let clocks = || {
        [ClockId::Monotonic, ClockId::ProcessCPUTime].map(|clock| {
            let now = Duration::try_from(clock_gettime(clock));
            now.expect("BUG: the clock stands before its beginning").as_secs_f64()
        })
    };
    let begin = clocks();
    let answer = walk(root.as_ref(), threads);
    let end = clocks();
    println!("{} {} {answer}", end[0] - begin[0], end[1] - begin[1]);
}

/// Runs a way in a child, and checks its answer. Returns the seconds of wall and processor time.
pub fn measure(name: &str, threads: usize, root: &Path, right: u64) -> [f64; 2] {
    let mut child = Command::new("/proc/self/exe");
    child.args([RUN, name, &threads.to_string()]).arg(root);
    let output = child.output().expect("cannot start this program again");
    let text = String::from_utf8_lossy(&output.stdout);
    let [wall, processor, answer] = text.split_whitespace().collect::<Vec<_>>()[..] else {
        panic!("{name}: {}", String::from_utf8_lossy(&output.stderr));
    };
    assert_eq!(answer, right.to_string(), "{name} is wrong with {threads} threads");
    [wall, processor].map(|text| text.parse().expect("the child printed no seconds"))
}

pub fn lendir<const QUERY: bool>(root: &Path, threads: usize) -> u64 {
    let walk = lendir::walk_dirs(root).expect("cannot open the root");
    let parts = walk.run_parallel(threads, |worker| {
        let mut bytes = 0;
        while let Some(mut dir) = worker.next().expect("cannot open a directory of the tree") {
            while let Some(entry) = dir.next().expect("cannot read the directory") {
                if QUERY {
                    entry.metadata().expect("cannot query the entry");
                }
                bytes += entry.name().len() as u64;
            }
        }
        bytes
    });
    parts.into_iter().sum()
}

pub fn ignore<const QUERY: bool>(root: &Path, threads: usize) -> u64 {
    /// The sum of one thread, which is added to the total when the thread ends.
    struct Sum<'a>(u64, &'a AtomicU64);

    impl Drop for Sum<'_> {
        fn drop(&mut self) {
            self.1.fetch_add(self.0, Relaxed);
        }
    }

    let total = AtomicU64::new(0);
    WalkBuilder::new(root).standard_filters(false).threads(threads).build_parallel().run(|| {
        let mut sum = Sum(0, &total);
        Box::new(move |entry| {
            let sum = &mut sum; // the whole of it, because this closure owns what it drops
            let entry = entry.expect("cannot read the directory");
            if QUERY {
                entry.metadata().expect("cannot query the entry");
            }
            if entry.depth() > 0 {
                sum.0 += entry.file_name().len() as u64;
            }
            WalkState::Continue
        })
    });
    total.into_inner()
}

/// Walks on `threads` threads, which send the entries to this one.
pub fn dua<const QUERY: bool>(root: &Path, threads: usize) -> u64 {
    let options = dua_core::Options::default();
    let options = if QUERY { options } else { options.skip_metadata() };
    let walk = dua_core::walk(root, threads, dua_core::Order::Completion, options, |_| true);
    let entries = walk.map(|entry| entry.expect("cannot read the directory"));
    let below = entries.filter(|entry| entry.depth > 0);
    below.map(|entry| entry.file_name.len() as u64).sum()
}

/// Walks on `threads` threads, which send the entries to this one. Errors are ignored, as by default.
pub fn fdf<const QUERY: bool>(root: &Path, threads: usize) -> u64 {
    let all = Finder::init(root).keep_hidden(false); // whose argument is whether to hide them
    let all = all.respect_gitignore(false).thread_count(NonZero::new(threads));
    let all = if QUERY { all.filter(Some(|entry| entry.get_lstat().is_ok())) } else { all };
    let entries = all.build().expect("cannot prepare the walk").traverse();
    let entries = entries.expect("cannot open the root");
    entries.map(|entry| entry.file_name().len() as u64).sum()
}

/// Returns the cores, the processor and the kernel, from procfs.
pub fn machine() -> String {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let info = read("/proc/cpuinfo");
    let cores = info.lines().filter(|line| line.starts_with("processor")).count().max(1);
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or(std::env::consts::ARCH, |(_, model)| model);
    let kernel = read("/proc/sys/kernel/osrelease");
    let release = kernel.trim().split('-').next().unwrap_or_default();
    format!("{cores} cores of {model}, Linux {release}")
}
