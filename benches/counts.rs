//! Counts the allocations and system calls of one reading of a directory, and of one walk of a
//! tree: `cargo bench --bench counts`.
//!
//! It counts every `malloc` of the process, including the ones in the C library. strace counts the
//! system calls of two child processes, of which one reads ten times more than the other.

use lendir::Order;
use lendir_benches::contender::Contender;
use lendir_benches::directories::{Directory, Names, fastest_root};
use lendir_benches::trees::{self, Tree};
use lendir_benches::{readers, walkers};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The first argument of a child: what it reads. A contender, a number of times and a path follow.
const DIRECTORY: &str = "directory";
const TREE: &str = "tree";
const TIMES: u64 = 10;

fn main() {
    let args: Vec<_> = std::env::args().collect();
    if let [_, what, name, times, path] = &args[..] {
        let times = times.parse().expect("the argument is not a number of times");
        let time = |mut all: Vec<Contender<'_>>| {
            let contender = all.iter_mut().find(|contender| contender.name == name);
            contender.expect("no contender has this name").time(times)
        };
        match &**what {
            DIRECTORY => time(readers(&Directory::at(path.clone(), path))),
            TREE => time(walkers(&Tree::at(path.clone(), path.into()))),
            _ => panic!("no child reads a {what}"),
        };
        return;
    }
    let dir = fastest_root().shape(1024, Names::Pids).make(1);
    let tree = trees::Fixture::Small.make();
    println!(
        "\n### Allocations and system calls\n\ndirectory: {}; tree: {}\n",
        dir.label, tree.label
    );
    println!("| | allocations | system calls |\n|---|---|---|");
    count(DIRECTORY, readers(&dir), dir.path());
    count(TREE, walkers(&tree), tree.path());
}

/// Prints a row for each contender.
fn count(what: &str, contenders: Vec<Contender<'_>>, path: &Path) {
    for mut contender in contenders {
        contender.check();
        let before = mallocs::counted();
        contender.time(TIMES);
        let allocations = (mallocs::counted() - before).div_ceil(TIMES);
        let calls = system_calls(what, contender.name, path);
        let calls = calls.unwrap_or_else(|| "not counted: strace is missing or refused".into());
        println!("| {what}: {} | {allocations} | {calls} |", contender.name);
    }
}

/// Returns all contenders that read a directory, under different names.
fn readers(dir: &Directory) -> Vec<Contender<'_>> {
    let sorted = readers::listing("lendir, sorted", dir, Order::Bytes);
    readers::all(dir).into_iter().chain([readers::lendir_rescan(dir), sorted]).collect()
}

fn walkers(tree: &Tree) -> Vec<Contender<'_>> {
    let sorted = walkers::sorted(tree);
    walkers::unsorted(tree).into_iter().chain(sorted).chain([walkers::paths(tree)]).collect()
}

/// Returns the system calls of one reading, for example `close, getdents64 ×2, openat`.
fn system_calls(what: &str, contender: &str, path: &Path) -> Option<String> {
    let traced = |times: u64| {
        let log = tempfile::NamedTempFile::new().expect("cannot make a log file");
        let mut strace = Command::new("strace");
        strace.args(["-qq", "-o"]).arg(log.path());
        strace.arg(std::env::current_exe().expect("cannot find this program"));
        strace.args([what, contender, &times.to_string()]).arg(path);
        strace.status().ok().filter(std::process::ExitStatus::success)?;
        let mut calls = BTreeMap::<String, u64>::new();
        let log = std::fs::read_to_string(log.path()).expect("cannot read the log of strace");
        for line in log.lines() {
            *calls.entry(line.split('(').next().unwrap_or_default().to_owned()).or_default() += 1;
        }
        Some(calls)
    };
    let (once, more) = (traced(1)?, traced(1 + TIMES)?);
    let calls = more.into_iter().filter_map(|(name, number)| {
        match number.saturating_sub(once.get(&name).copied().unwrap_or(0)).div_ceil(TIMES) {
            0 => None,
            1 => Some(name),
            number => Some(format!("{name} ×{number}")),
        }
    });
    Some(calls.collect::<Vec<_>>().join(", "))
}

/// Replaces `malloc` for every caller: counts the calls and passes them on to glibc.
mod mallocs {
    use std::ffi::c_void;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    static COUNT: AtomicU64 = AtomicU64::new(0);

    pub fn counted() -> u64 {
        COUNT.load(Relaxed)
    }

    unsafe extern "C" {
        fn __libc_malloc(size: usize) -> *mut c_void;
        fn __libc_calloc(count: usize, size: usize) -> *mut c_void;
        fn __libc_realloc(old: *mut c_void, size: usize) -> *mut c_void;
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
        COUNT.fetch_add(1, Relaxed);
        // SAFETY: the caller's call, forwarded unchanged; the next two likewise.
        unsafe { __libc_malloc(size) }
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
        COUNT.fetch_add(1, Relaxed);
        unsafe { __libc_calloc(count, size) }
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn realloc(old: *mut c_void, size: usize) -> *mut c_void {
        COUNT.fetch_add(1, Relaxed);
        unsafe { __libc_realloc(old, size) }
    }
}
