//! Counts the allocations and system calls of one reading of a directory, and of one walk of a
//! tree: `cargo bench --bench counts`.
//!
//! It counts every `malloc` of the process, including the ones in the C library. strace counts the
//! system calls of two child processes, of which one reads ten times more than the other.

use lendir::Listing;
use lendir_benches::contender::Contender;
use lendir_benches::directories::{Directory, Names, fastest_root};
use lendir_benches::trees::{self, Tree};
use lendir_benches::{readers, walkers};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The first argument of a child. A contender, a number of times and a path follow.
const READ: &str = "--read";
const WALK: &str = "--walk";
const TIMES: u64 = 10;

fn main() {
    let args: Vec<_> = std::env::args().collect();
    if let [_, child, name, times, path] = &args[..] {
        let times = times.parse().expect("the argument is not a number of times");
        let time = |mut all: Vec<Contender<'_>>| {
            let contender = all.iter_mut().find(|contender| contender.name == name);
            contender.expect("no contender has this name").time(times)
        };
        match &**child {
            READ => time(everyone(&Directory::at(path.clone(), path))),
            WALK => time(all_walkers(&Tree::at(path.clone(), path.into()))),
            _ => panic!("no child does {child}"),
        };
        return;
    }
    let has_strace =
        Command::new("strace").arg("true").output().is_ok_and(|output| output.status.success());
    if !has_strace {
        eprintln!("strace is missing or not permitted to trace: system calls are not counted");
    }
    let dir = fastest_root().shape(1024, Names::Pids).make();
    println!(
        "\n### Allocations and system calls\n\n`cargo bench --bench counts`\n\n{}, for each reading:\n",
        dir.label
    );
    count(READ, everyone(&dir), dir.path(), has_strace);
    let tree = trees::Fixture::Small.make();
    println!("\n{}, for each walk:\n", tree.label);
    count(WALK, all_walkers(&tree), tree.path(), has_strace);
}

/// Prints a table of the allocations and system calls of each contender.
fn count(child: &str, contenders: Vec<Contender<'_>>, path: &Path, has_strace: bool) {
    println!("| | allocations | system calls |\n|---|---|---|");
    for mut contender in contenders {
        contender.check();
        let before = mallocs::counted();
        contender.time(TIMES);
        let allocations =
            mallocs::counted().map(|after| (after - before.unwrap_or(0)).div_ceil(TIMES));
        let allocations = allocations.map_or("not counted".into(), |number| number.to_string());
        let calls = if has_strace {
            system_calls(child, contender.name, path)
        } else {
            "not counted".into()
        };
        println!("| {} | {allocations} | {calls} |", contender.name);
    }
}

/// Returns all contenders, under different names.
fn everyone(dir: &Directory) -> Vec<Contender<'_>> {
    let sorted = readers::listing("lendir, sorted", dir, Listing::new());
    let again = readers::lendir_rescan(dir).named("lendir, read again");
    readers::all(dir).into_iter().chain([again, sorted]).collect()
}

fn all_walkers(tree: &Tree) -> Vec<Contender<'_>> {
    let more = [walkers::walk_sorted(tree), walkers::walk_paths(tree)];
    walkers::all(tree).into_iter().chain(more).collect()
}

/// Returns the system calls of one reading, for example `close, getdents64 ×2, openat`.
fn system_calls(child: &str, contender: &str, path: &Path) -> String {
    let traced = |times: u64| {
        let log = tempfile::NamedTempFile::new().expect("cannot make a log file");
        let status = Command::new("strace")
            .args(["-qq", "-o"])
            .arg(log.path())
            .arg(std::env::current_exe().expect("cannot find this program"))
            .args([child, contender, &times.to_string()])
            .arg(path)
            .status();
        assert!(status.expect("cannot run strace").success(), "strace failed");
        let mut calls = BTreeMap::<String, u64>::new();
        for line in
            std::fs::read_to_string(log.path()).expect("cannot read the log of strace").lines()
        {
            *calls.entry(line.split('(').next().unwrap_or_default().to_owned()).or_default() += 1;
        }
        calls
    };
    let (once, more) = (traced(1), traced(1 + TIMES));
    let mut calls = Vec::new();
    for (name, number) in more {
        match number.saturating_sub(once.get(&name).copied().unwrap_or(0)).div_ceil(TIMES) {
            0 => {}
            1 => calls.push(name),
            number => calls.push(format!("{name} ×{number}")),
        }
    }
    calls.join(", ")
}

/// Replaces `malloc` for every caller: counts the calls and passes them on to glibc.
#[cfg(target_env = "gnu")]
mod mallocs {
    use std::ffi::c_void;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    static COUNT: AtomicU64 = AtomicU64::new(0);

    #[allow(clippy::unnecessary_wraps, reason = "`None` where it is not glibc's")]
    pub fn counted() -> Option<u64> {
        Some(COUNT.load(Relaxed))
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

#[cfg(not(target_env = "gnu"))]
mod mallocs {
    pub fn counted() -> Option<u64> {
        None
    }
}
