//! Measures how walks scale with the number of threads: `scale [DIRECTORY]`. It makes two trees of
//! a million entries in a new directory below DIRECTORY, which is `/dev/shm` by default, and takes
//! about five minutes.
//!
//! It is a program of its own, so that it can be linked statically and copied to a machine with
//! many cores and nothing else:
//! `cargo build --release --manifest-path benches/peers/Cargo.toml --target x86_64-unknown-linux-musl --bin scale`.
//!
//! Each contender runs in a child, which begins with a small table of descriptors. The longest call
//! of `openat2` is observed by the kernel's tracing, in a run that is not timed. Only root may trace.

use lendir_benches::ratio::time;
use parallel::{RUN, Way, dua, fdf, ignore, lendir};
use rustix::fs::{CWD, FileType, Mode, mkdirat, mknodat};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::id;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

#[path = "../parallel.rs"]
mod parallel;

const THREADS: [usize; 6] = [1, 2, 4, 8, 16, 32];

/// The last ones also query each entry.
const WAYS: [Way; 10] = [
    ("lendir", lendir::<false>),
    ("divided", |root, threads| divided(root, threads, false)),
    ("divided, own tables", |root, threads| divided(root, threads, true)),
    ("ignore", ignore::<false>),
    ("dua-core", dua::<false>),
    ("fdf", fdf::<false>),
    ("lendir, statx", lendir::<true>),
    ("ignore, statx", ignore::<true>),
    ("dua-core, statx", dua::<true>),
    ("fdf, lstat", fdf::<true>),
];

/// Divides the tree beforehand: each thread takes subtrees of depth 2 from a list and walks them
/// alone. With `own_tables`, the threads do not even share the table of descriptors.
fn divided(root: &Path, threads: usize, own_tables: bool) -> u64 {
    let (mut subtrees, mut bytes_above) = (Vec::new(), 0);
    let mut walk = lendir::walk_dirs(root).expect("cannot open the root");
    while let Some(mut dir) = walk.next().expect("cannot open a directory of the tree") {
        if dir.depth() == 2 {
            subtrees.push(dir.path().to_owned());
            dir.skip_subdirs();
        } else {
            while let Some(entry) = dir.next().expect("cannot read the directory") {
                bytes_above += entry.name().len() as u64;
            }
        }
    }
    let next_index = AtomicUsize::new(0);
    let work = || {
        if own_tables {
            // SAFETY: the thread uses no descriptor of another thread, and passes none on.
            unsafe { unshare_unsafe(UnshareFlags::FILES) }.expect("cannot unshare the table");
        }
        let mut bytes = 0;
        while let Some(subtree) = subtrees.get(next_index.fetch_add(1, Relaxed)) {
            bytes += lendir::<false>(subtree, 1);
        }
        bytes
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let parts = workers.into_iter().map(|it| it.join().expect("a thread panicked"));
        bytes_above + parts.sum::<u64>()
    })
}

/// A tree in which each directory has up to ten directories.
struct Tree {
    label: &'static str,
    directories: usize,
    files: usize,
}

const TREES: [Tree; 2] = [
    Tree { label: "100000 directories with 9 files", directories: 100_000, files: 9 },
    Tree { label: "100 directories with 10000 files", directories: 100, files: 10_000 },
];

impl Tree {
    /// Returns the bytes of all names below the root.
    fn bytes(&self) -> usize {
        let of_files: usize = (0..self.files).map(|file| format!("f{file}").len()).sum();
        let of_dirs: usize = (1..self.directories).map(|dir| format!("d{dir}").len()).sum();
        self.directories * of_files + of_dirs
    }

    fn make(&self, root: &Path) -> io::Result<()> {
        let mut directories: Vec<PathBuf> = Vec::new();
        for index in 0..self.directories {
            let path = match index.checked_sub(1) {
                None => root.to_owned(),
                Some(before) => directories[before / 10].join(format!("d{index}")),
            };
            mkdirat(CWD, &path, Mode::RWXU)?;
            let dir = lendir::open(&path).map_err(io::Error::from)?;
            for file in 0..self.files {
                let name = format!("f{file}");
                mknodat(&dir, name, FileType::RegularFile, Mode::RUSR, 0)?;
            }
            directories.push(path);
        }
        Ok(())
    }
}

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [RUN, name, threads, root] => parallel::run(&WAYS, name, threads, root),
        [] => measure("/dev/shm".as_ref()),
        [directory] => measure(directory.as_ref()),
        _ => panic!("usage: scale [DIRECTORY]"),
    }
}

/// The time after which no round of a tree begins, so that all takes about five minutes.
const ENOUGH: Duration = Duration::from_mins(1);

fn measure(directory: &Path) {
    let tracing = Tracing::start();
    println!(
        "### How it scales\n\n`scale {}`, on {}: wall time, processor time; the medians of up to \
         three runs, in turns{}\n\n| | {} | lendir, longest openat2 |\n|---|---|{}",
        directory.display(),
        parallel::machine(),
        tracing.as_ref().err().map_or_else(String::new, |error| format!("; no tracing: {error}")),
        WAYS.map(|it| it.0).join(" | "),
        "---|".repeat(WAYS.len())
    );
    for tree in &TREES {
        let root = directory.join(format!("lendir-scale-{}", id()));
        let rows = tree.make(&root).map(|()| rows(tree, &root, tracing.as_ref().ok()));
        let removed = fs::remove_dir_all(&root);
        print!("{}", rows.expect("cannot make the tree"));
        removed.expect("cannot remove the tree");
    }
}

/// Returns a row for each number of threads.
fn rows(tree: &Tree, root: &Path, tracing: Option<&Tracing>) -> String {
    let bytes = tree.bytes() as u64;
    let mut all = THREADS.map(|_| WAYS.map(|_| Vec::new()));
    let begin = Instant::now();
    for _ in 0..3 {
        for (threads, runs) in THREADS.into_iter().zip(&mut all) {
            for ((name, _), runs) in WAYS.iter().zip(runs) {
                runs.push(parallel::measure(name, threads, root, bytes));
            }
        }
        if begin.elapsed() > ENOUGH {
            break;
        }
    }
    let median = |mut runs: Vec<[f64; 2]>| {
        runs.sort_by(|a, b| a[0].total_cmp(&b[0]));
        runs[(runs.len() - 1) / 2].map(time).join(", ")
    };
    let rows = THREADS.into_iter().zip(all).map(|(threads, runs)| {
        let cells = runs.map(median).join(" | ");
        let longest = tracing.map_or_else(String::new, |tracing| {
            let run = || _ = parallel::measure(WAYS[0].0, threads, root, bytes);
            tracing.longest(run).map_or_else(|error| error.to_string(), time)
        });
        let plural = if threads == 1 { "" } else { "s" };
        format!("| {}, {threads} thread{plural} | {cells} | {longest} |\n", tree.label)
    });
    rows.collect()
}

/// The kernel's tracing of `openat2`, in mounts of this process. Nothing else that is traced is
/// disturbed.
struct Tracing(PathBuf);

impl Tracing {
    fn start() -> io::Result<Self> {
        const PLACE: &str = "/sys/kernel/tracing";
        // SAFETY: the process has one thread, and uses no other table of descriptors.
        unsafe { unshare_unsafe(UnshareFlags::NEWNS)? };
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
        match mount("lendir", PLACE, "tracefs", MountFlags::empty(), None) {
            Ok(()) | Err(Errno::BUSY) => {} // BUSY: it is mounted there already
            Err(errno) => return Err(errno.into()),
        }
        let this = Self(Path::new(PLACE).join(format!("instances/lendir-{}", id())));
        fs::create_dir(&this.0)?;
        for (file, value) in [
            ("buffer_size_kb", "8192"), // for each core
            ("options/event-fork", "1"),
            ("set_event_pid", &id().to_string()),
            ("events/syscalls/sys_enter_openat2/enable", "1"),
            ("events/syscalls/sys_exit_openat2/enable", "1"),
        ] {
            fs::write(this.0.join(file), value)?;
        }
        Ok(this)
    }

    /// Returns the seconds of the longest call of the children that `run` starts.
    fn longest(&self, run: impl FnOnce()) -> io::Result<f64> {
        let trace = self.0.join("trace");
        fs::write(&trace, "")?;
        run();
        let (mut entered, mut longest) = (HashMap::new(), f64::NAN);
        for line in fs::read_to_string(trace)?.lines() {
            // `scale-1234    [001] ..... 12345.678901: sys_openat2(dfd: 3, filename: …)`, and then
            // `scale-1234    [001] ..... 12345.678950: sys_openat2 -> 0x4`
            let Some((before, call)) = line.split_once(": sys_openat2") else { continue };
            let mut words = before.split_whitespace();
            let (Some(thread), Some(seconds)) = (words.next(), words.next_back()) else { continue };
            let seconds: f64 = seconds.parse().map_err(io::Error::other)?;
            if call.starts_with('(') {
                entered.insert(thread.to_owned(), seconds);
            } else if let Some(entered) = entered.remove(thread) {
                longest = longest.max(seconds - entered);
            }
        }
        Ok(longest)
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}
