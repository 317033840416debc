//! Walking a tree with other crates.

use crate::parallel;
use ignore::WalkBuilder;
use lendir_benches::contender::Contender;
use lendir_benches::reader;
use lendir_benches::trees::{Answer, Tree};
use lendir_benches::walkers as own;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::thread::available_parallelism;
use walkdir::WalkDir;

reader!(Walkdir { tree: &'a Tree, is_sorted: bool } |take| {
    let walk = WalkDir::new(tree.path()).min_depth(1);
    for entry in if *is_sorted { walk.sort_by_file_name() } else { walk } {
        take(entry.expect("cannot read the directory").file_name().as_bytes());
    }
});

reader!(WalkdirPaths { tree: &'a Tree } |take| {
    for entry in WalkDir::new(tree.path()).min_depth(1) {
        let path = entry.expect("cannot read the directory").into_path();
        take(path.as_os_str().as_bytes());
    }
});

reader!(Ignore { tree: &'a Tree } |take| {
    for entry in WalkBuilder::new(tree.path()).standard_filters(false).build().skip(1) {
        take(entry.expect("cannot read the directory").file_name().as_bytes());
    }
});

/// Returns the contenders on one thread, the bare walk first. Those that neither sort nor yield owned
/// paths yield entries in the order of the directories.
pub fn on_one_thread(tree: &Tree) -> Vec<Contender<'_>> {
    let [walkdir, walkdir_sorted] = [false, true].map(|is_sorted| Walkdir { tree, is_sorted });
    let mut all = own::unsorted(tree);
    all.push(Contender::reading("walkdir", tree.oracle(Answer::ByEntry), walkdir));
    all.push(Contender::reading("ignore", tree.oracle(Answer::ByEntry), Ignore { tree }));
    all.extend(own::sorted(tree));
    all.push(Contender::reading(
        "walkdir, sorted",
        tree.oracle(Answer::ByEntrySorted),
        walkdir_sorted,
    ));
    all.push(own::paths(tree));
    let paths = WalkdirPaths { tree };
    all.push(Contender::reading("walkdir, paths", tree.oracle(Answer::Paths), paths));
    all
}

/// Returns the contenders on several threads, and the bare walk on one.
pub fn on_several_threads(tree: &Tree) -> Vec<Contender<'_>> {
    let cores = available_parallelism().map_or(1, usize::from);
    let counting = |(name, count, threads): (_, fn(&Path, usize) -> u64, usize)| {
        Contender::counting(name, tree.oracle(Answer::Bytes), move || count(tree.path(), threads))
    };
    let others = [
        ("lendir, all cores", parallel::lendir::<false> as fn(&Path, usize) -> u64, cores),
        ("ignore, all cores", parallel::ignore::<false>, cores),
        ("dua-core, 1 + 1 threads", parallel::dua::<false>, 1),
        ("dua-core, all cores", parallel::dua::<false>, cores),
        ("fdf, 1 + 1 threads", parallel::fdf::<false>, 1),
        ("fdf, all cores", parallel::fdf::<false>, cores),
    ];
    [own::bare_walk(tree)].into_iter().chain(others.map(counting)).collect()
}
