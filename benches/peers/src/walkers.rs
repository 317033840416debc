//! Walking a tree with other crates.

use fdf::walk::Finder;
use ignore::{DirEntry, WalkBuilder, WalkState};
use jwalk::Parallelism;
use lendir_benches::contender::{Contender, Reader};
use lendir_benches::trees::{Answer, Order, Tree};
use lendir_benches::walkers as own;
use std::num::NonZero;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Returns the contenders on one thread, which yield entries in the order of the directories.
pub fn on_one_thread(tree: &Tree) -> Vec<Contender<'_>> {
    let root = tree.path();
    let oracle = || tree.oracle(Answer::ByEntry(Order::Directory));
    vec![
        own::bare_walk(tree),
        own::standard(tree),
        own::lendir(tree),
        own::walk(tree),
        Contender::reading("walkdir", oracle(), Walkdir { root, sorted: false }),
        Contender::reading("ignore", oracle(), Ignore(root)),
        Contender::reading("jwalk", oracle(), Jwalk { root, threads: Parallelism::Serial }),
    ]
}

/// Returns the contenders on one thread that sort, or that yield owned paths.
pub fn sorted_or_with_paths(tree: &Tree) -> Vec<Contender<'_>> {
    let root = tree.path();
    let sorted = tree.oracle(Answer::ByEntry(Order::Sorted));
    vec![
        own::bare_walk(tree),
        own::lendir_sorted(tree),
        own::walk_sorted(tree),
        Contender::reading("walkdir, sorted", sorted, Walkdir { root, sorted: true }),
        own::walk_paths(tree),
        Contender::reading("walkdir, paths", tree.oracle(Answer::Paths), WalkdirPaths(root)),
        Contender::counting("ferralk, paths", tree.oracle(Answer::Bytes), move || ferralk(root, 1)),
    ]
}

/// Returns the contenders on several threads, and the bare walk on one.
pub fn on_several_threads(tree: &Tree) -> Vec<Contender<'_>> {
    let (root, cores) = (tree.path(), own::cores());
    let counting = |name, count: fn(&Path, usize) -> u64, threads| {
        Contender::counting(name, tree.oracle(Answer::Bytes), move || count(root, threads))
    };
    vec![
        own::bare_walk(tree),
        own::lendir_parallel(tree),
        counting("ferralk, all cores", ferralk, cores),
        counting("ignore, all cores", ignore_parallel, cores),
        Contender::reading(
            "jwalk, all cores",
            tree.oracle(Answer::ByEntry(Order::Directory)),
            Jwalk { root, threads: Parallelism::RayonNewPool(cores) },
        ),
        counting("jwalk, process_read_dir, all cores", jwalk_process_read_dir, cores),
        counting("dua-core, 1 + 1 threads", dua, 1),
        counting("dua-core, all cores", dua, cores),
        counting("fdf, 1 + 1 threads", fdf, 1),
        counting("fdf, all cores", fdf, cores),
    ]
}

struct Walkdir<'a> {
    root: &'a Path,
    sorted: bool,
}

impl Reader for Walkdir<'_> {
    fn read(&mut self, mut take: impl FnMut(&[u8])) {
        let walk = walkdir::WalkDir::new(self.root).min_depth(1);
        for entry in if self.sorted { walk.sort_by_file_name() } else { walk } {
            take(entry.expect("cannot read the directory").file_name().as_bytes());
        }
    }
}

struct WalkdirPaths<'a>(&'a Path);

impl Reader for WalkdirPaths<'_> {
    fn read(&mut self, mut take: impl FnMut(&[u8])) {
        for entry in walkdir::WalkDir::new(self.0).min_depth(1) {
            let path = entry.expect("cannot read the directory").into_path();
            take(path.as_os_str().as_bytes());
        }
    }
}

struct Ignore<'a>(&'a Path);

impl Reader for Ignore<'_> {
    fn read(&mut self, mut take: impl FnMut(&[u8])) {
        for entry in WalkBuilder::new(self.0).standard_filters(false).build().skip(1) {
            take(entry.expect("cannot read the directory").file_name().as_bytes());
        }
    }
}

/// The bytes of all names.
pub fn ignore_parallel(root: &Path, threads: usize) -> u64 {
    let total = AtomicU64::new(0);
    WalkBuilder::new(root).standard_filters(false).threads(threads).build_parallel().run(|| {
        let mut sum = Sum { bytes: 0, total: &total };
        Box::new(move |entry| {
            sum.add(&entry.expect("cannot read the directory"));
            WalkState::Continue
        })
    });
    total.into_inner()
}

/// The sum of one thread, which is added to the total when the thread ends.
struct Sum<'a> {
    bytes: u64,
    total: &'a AtomicU64,
}

impl Sum<'_> {
    fn add(&mut self, entry: &DirEntry) {
        if entry.depth() > 0 {
            self.bytes += entry.file_name().len() as u64;
        }
    }
}

impl Drop for Sum<'_> {
    fn drop(&mut self) {
        self.total.fetch_add(self.bytes, Relaxed);
    }
}

struct Jwalk<'a> {
    root: &'a Path,
    threads: Parallelism,
}

impl Reader for Jwalk<'_> {
    fn read(&mut self, mut take: impl FnMut(&[u8])) {
        let walk = jwalk::WalkDir::new(self.root)
            .min_depth(1)
            .skip_hidden(false)
            .parallelism(self.threads.clone());
        for entry in walk {
            take(entry.expect("cannot read the directory").file_name().as_bytes());
        }
    }
}

/// Returns the bytes of all names, of entries that are collected with their paths.
fn ferralk(root: &Path, threads: usize) -> u64 {
    let result =
        ferralk::Walker::new(root).threads(threads).collect().expect("cannot read the tree");
    let names = result.entries().iter().filter_map(|entry| entry.basename());
    names.map(|name| name.len() as u64).sum()
}

/// The bytes of all names, while `threads` threads read ahead of this one.
pub fn read_ahead(root: &Path, threads: usize) -> u64 {
    let options = lendir::Walk::options().order(lendir::Order::Bytes).read_ahead(threads);
    let (mut tree, mut bytes) = (options.open(root).expect("cannot open the root"), 0);
    while let Some(entry) = tree.next().expect("cannot read the directory") {
        bytes += entry.name().len() as u64;
    }
    bytes
}

/// The bytes of all names, sorted, by as many threads and this one.
pub fn jwalk_sorted(root: &Path, threads: usize) -> u64 {
    let walk = jwalk::WalkDir::new(root).min_depth(1).skip_hidden(false).sort(true);
    let entries = walk.parallelism(Parallelism::RayonNewPool(threads)).into_iter();
    entries.map(|entry| entry.expect("cannot read the directory").file_name().len() as u64).sum()
}

/// The bytes of all names, added up by the threads that read the directories. This one waits for
/// them.
fn jwalk_process_read_dir(root: &Path, threads: usize) -> u64 {
    let total = Arc::<AtomicU64>::default();
    let sum = Arc::clone(&total);
    let walk = jwalk::WalkDir::new(root).min_depth(1).skip_hidden(false);
    let walk = walk.parallelism(Parallelism::RayonNewPool(threads)).process_read_dir(
        move |depth, _, (), entries| {
            if depth.is_some() {
                let names = entries.iter().flatten().map(|entry| entry.file_name.len() as u64);
                sum.fetch_add(names.sum(), Relaxed);
            }
        },
    );
    for entry in walk {
        entry.expect("cannot read the directory");
    }
    total.load(Relaxed)
}

/// The bytes of all names. `threads` threads walk, and send what they find to this one.
pub fn dua(root: &Path, threads: usize) -> u64 {
    let options = dua_core::Options::default().skip_metadata();
    let entries = dua_core::walk(root, threads, dua_core::Order::ParentFirst, options, |_| true);
    let names = entries
        .map(|entry| entry.expect("cannot read the directory"))
        .filter(|entry| entry.depth > 0);
    names.map(|entry| entry.file_name.len() as u64).sum()
}

/// The bytes of all names. `threads` threads walk, and send what they find to this one. Errors are ignored, as by default.
fn fdf(root: &Path, threads: usize) -> u64 {
    let all = Finder::init(root).keep_hidden(false); // whose argument is whether to hide them
    let all = all.respect_gitignore(false).thread_count(NonZero::new(threads));
    let entries =
        all.build().expect("cannot prepare the walk").traverse().expect("cannot open the root");
    entries.map(|entry| entry.file_name().len() as u64).sum()
}
