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

use fdf::walk::Finder;
use ignore::{WalkBuilder, WalkState};
use lendir::StatxFlags;
use lendir_benches::machine;
use lendir_benches::ratio::time;
use rustix::fs::{CWD, FileType, Mode, mkdirat, mknodat};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use rustix::time::{ClockId, clock_gettime};
use std::collections::HashMap;
use std::fs;
use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, id};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// The first argument of a child. The contender, the number of threads and the root follow.
const RUN: &str = "--run";

const THREADS: [usize; 6] = [1, 2, 4, 8, 16, 32];

struct Contender {
    name: &'static str,
    /// Returns the number of entries below the root.
    count: fn(&Path, usize) -> u64,
}

/// They only count entries.
const READERS: &[Contender] = &[
    Contender { name: "lendir", count: |root, threads| lendir(root, threads, false) },
    Contender { name: "divided", count: |root, threads| divided(root, threads, false) },
    Contender { name: "divided, own tables", count: |root, threads| divided(root, threads, true) },
    Contender { name: "ignore", count: |root, threads| ignore(root, threads, false) },
    Contender { name: "dua-core", count: |root, threads| dua(root, threads, false) },
    Contender { name: "fdf", count: |root, threads| fdf(root, threads, false) },
];

/// They also query each entry.
const QUERIERS: &[Contender] = &[
    Contender { name: "lendir, statx", count: |root, threads| lendir(root, threads, true) },
    Contender { name: "ignore, statx", count: |root, threads| ignore(root, threads, true) },
    Contender { name: "dua-core, statx", count: |root, threads| dua(root, threads, true) },
    Contender { name: "fdf, lstat", count: |root, threads| fdf(root, threads, true) },
];

fn lendir(root: &Path, threads: usize, query: bool) -> u64 {
    let walk = lendir::walk_dirs(root).expect("cannot open the root");
    let counts = walk.run_parallel(threads, |worker| {
        let mut count = 0;
        while let Some(mut dir) = worker.next().expect("cannot open a directory of the tree") {
            while let Some(entry) = dir.next().expect("cannot read the directory") {
                if query {
                    entry.statx(StatxFlags::SIZE).expect("cannot query the entry");
                }
                count += 1;
            }
        }
        count
    });
    counts.into_iter().sum()
}

/// Divides the tree beforehand: each thread takes subtrees of depth 2 from a list and walks them
/// alone. With `own_tables`, the threads do not even share the table of descriptors.
fn divided(root: &Path, threads: usize, own_tables: bool) -> u64 {
    let (mut subtrees, mut count_above) = (Vec::new(), 0);
    let mut walk = lendir::walk_dirs(root).expect("cannot open the root");
    while let Some(mut dir) = walk.next().expect("cannot open a directory of the tree") {
        if dir.depth() == 2 {
            subtrees.push(dir.path().to_owned());
            dir.skip_subdirs();
        } else {
            count_above += dir.count().expect("cannot read the directory");
        }
    }
    let next_index = AtomicUsize::new(0);
    let work = || {
        if own_tables {
            // SAFETY: the thread uses no descriptor of another thread, and passes none on.
            unsafe { unshare_unsafe(UnshareFlags::FILES) }.expect("cannot unshare the table");
        }
        let mut count = 0;
        while let Some(subtree) = subtrees.get(next_index.fetch_add(1, Relaxed)) {
            count += lendir(subtree, 1, false);
        }
        count
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let counts = workers.into_iter().map(|it| it.join().expect("a thread panicked"));
        count_above + counts.sum::<u64>()
    })
}

fn ignore(root: &Path, threads: usize, query: bool) -> u64 {
    /// The count of one thread, which is added to the total when the thread ends.
    struct Count<'a>(u64, &'a AtomicU64);

    impl Count<'_> {
        fn add(&mut self, entries: u64) {
            self.0 += entries;
        }
    }

    impl Drop for Count<'_> {
        fn drop(&mut self) {
            self.1.fetch_add(self.0, Relaxed);
        }
    }

    let total = AtomicU64::new(0);
    WalkBuilder::new(root).standard_filters(false).threads(threads).build_parallel().run(|| {
        let mut count = Count(0, &total);
        Box::new(move |entry| {
            let entry = entry.expect("cannot read the directory");
            if query {
                entry.metadata().expect("cannot query the entry");
            }
            count.add(u64::from(entry.depth() > 0));
            WalkState::Continue
        })
    });
    total.into_inner()
}

/// One more thread, this one, takes the entries.
fn dua(root: &Path, threads: usize, query: bool) -> u64 {
    let options = dua_core::Options::default();
    let options = if query { options } else { options.skip_metadata() };
    let walk = dua_core::walk(root, threads, dua_core::Order::Completion, options, |_| true);
    let entries = walk.map(|entry| entry.expect("cannot read the directory"));
    entries.filter(|entry| entry.depth > 0).count() as u64
}

/// One more thread, this one, takes the entries.
fn fdf(root: &Path, threads: usize, query: bool) -> u64 {
    let all = Finder::init(root).keep_hidden(false); // whose argument is whether to hide them
    let all = all.respect_gitignore(false).thread_count(NonZero::new(threads));
    let all = if query { all.filter(Some(|entry| entry.get_lstat().is_ok())) } else { all };
    let entries = all.build().expect("cannot prepare the walk").traverse();
    entries.expect("cannot open the root").count() as u64
}

/// A tree in which each directory has up to ten directories.
struct Tree {
    label: &'static str,
    directories: u64,
    files: u64,
}

const TREES: [Tree; 2] = [
    Tree { label: "100000 directories with 9 files", directories: 100_000, files: 9 },
    Tree { label: "100 directories with 10000 files", directories: 100, files: 10_000 },
];

impl Tree {
    fn entries(&self) -> u64 {
        self.directories - 1 + self.directories * self.files
    }

    fn make(&self, root: &Path) -> io::Result<()> {
        let mut directories: Vec<PathBuf> = Vec::new();
        for index in 0..self.directories {
            let path = match index.checked_sub(1) {
                None => root.to_owned(),
                Some(before) => {
                    let parent = usize::try_from(before / 10).expect("BUG: over 2^32 directories");
                    directories[parent].join(format!("d{index}"))
                }
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
        [RUN, name, threads, root] => run(name, threads, root),
        [] => measure("/dev/shm".as_ref()),
        [directory] => measure(directory.as_ref()),
        _ => panic!("usage: scale [DIRECTORY]"),
    }
}

/// Is a child: prints the seconds of wall and processor time, and the number of entries.
fn run(name: &str, threads: &str, root: &str) {
    let mut contenders = READERS.iter().chain(QUERIERS);
    let contender = contenders.find(|it| it.name == name).expect("an unknown contender");
    let threads = threads.parse().expect("the argument is not a number of threads");
    let clocks = || {
        [ClockId::Monotonic, ClockId::ProcessCPUTime].map(|clock| {
            let now = Duration::try_from(clock_gettime(clock));
            now.expect("BUG: the clock stands before its beginning").as_secs_f64()
        })
    };
    let begin = clocks();
    let count = (contender.count)(root.as_ref(), threads);
    let end = clocks();
    println!("{} {} {count}", end[0] - begin[0], end[1] - begin[1]);
}

/// The figures of a run.
struct Figures {
    wall: f64,
    processor: f64,
}

/// Runs a contender in a child, and checks its answer.
fn measure_one(contender: &Contender, threads: usize, tree: &Tree, root: &Path) -> Figures {
    let mut child = Command::new("/proc/self/exe");
    child.args([RUN, contender.name, &threads.to_string()]).arg(root);
    let output = child.output().expect("cannot start this program again");
    let text = String::from_utf8_lossy(&output.stdout);
    let [wall, processor, count] = text.split_whitespace().collect::<Vec<_>>()[..] else {
        panic!("{}: {}", contender.name, String::from_utf8_lossy(&output.stderr));
    };
    assert_eq!(count, tree.entries().to_string(), "{} gives a wrong answer", contender.name);
    let seconds = |text: &str| text.parse().expect("the child printed no seconds");
    Figures { wall: seconds(wall), processor: seconds(processor) }
}

/// The time after which no round of a table begins, so that all takes about five minutes.
const ENOUGH: Duration = Duration::from_secs(30);

fn measure(directory: &Path) {
    let tracing = Tracing::start();
    println!(
        "### How it scales\n\n`scale {}`, on {}: wall time, processor time; the medians of up to \
         three runs, in turns{}",
        directory.display(),
        machine(),
        tracing.as_ref().err().map_or_else(String::new, |error| format!("; no tracing: {error}"))
    );
    for tree in &TREES {
        let root = directory.join(format!("lendir-scale-{}", id()));
        let tables = tree.make(&root).map(|()| {
            let readers = table(tree, &root, READERS, tracing.as_ref().ok());
            readers + &table(tree, &root, QUERIERS, None)
        });
        let removed = fs::remove_dir_all(&root);
        print!("{}", tables.expect("cannot make the tree"));
        removed.expect("cannot remove the tree");
    }
}

/// Returns a table of the contenders. `tracing` adds a column for the first one.
fn table(tree: &Tree, root: &Path, contenders: &[Contender], tracing: Option<&Tracing>) -> String {
    let mut rows = THREADS.map(|_| contenders.iter().map(|_| Vec::new()).collect::<Vec<_>>());
    let begin = Instant::now();
    for _ in 0..3 {
        for (threads, runs) in THREADS.into_iter().zip(&mut rows) {
            for (contender, runs) in contenders.iter().zip(runs) {
                runs.push(measure_one(contender, threads, tree, root));
            }
        }
        if begin.elapsed() > ENOUGH {
            break;
        }
    }

    let mut names: Vec<_> = contenders.iter().map(|it| it.name.to_owned()).collect();
    names.extend(tracing.map(|_| format!("{}, longest openat2", contenders[0].name)));
    let (head, rule) = (names.join(" | "), "---|".repeat(names.len()));
    let mut lines = vec![format!("| {} | {head} |", tree.label), format!("|---|{rule}")];
    for (threads, mut runs) in THREADS.into_iter().zip(rows) {
        let mut cells: Vec<_> = runs.iter_mut().map(|runs| median(runs)).collect();
        cells.extend(tracing.map(|tracing| {
            let longest = tracing.longest(|| {
                measure_one(&contenders[0], threads, tree, root);
            });
            longest.map_or_else(|error| error.to_string(), time)
        }));
        let label = if threads == 1 { "1 thread".into() } else { format!("{threads} threads") };
        lines.push(format!("| {label} | {} |", cells.join(" | ")));
    }
    format!("\n{}\n", lines.join("\n"))
}

/// Returns the cell of the median run.
fn median(runs: &mut [Figures]) -> String {
    runs.sort_by(|a, b| a.wall.total_cmp(&b.wall));
    let Figures { wall, processor } = &runs[(runs.len() - 1) / 2];
    format!("{}, {}", time(*wall), time(*processor))
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
