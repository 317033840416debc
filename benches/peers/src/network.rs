//! Walks by many threads on a file system that takes 20 ms for each request, as one far away does, and on /usr with cold caches.
//! There a walk is as fast as many of its threads wait for an answer at the same time.

use crate::commands::bytes_of_names;
use crate::fuse::{Observed, POINT, Server, Service, Shape};
use crate::programs::run;
use crate::walkers::{dua, ignore_parallel, jwalk_sorted, read_ahead};
use lendir_benches::ratio::time;
use lendir_benches::{Arguments, walkers};
use rustix::fs::{FileType, fstat};
use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// Tells this program to be one of the contenders: which, with how many threads, on which tree. It prints its answer.
pub const RUN: &str = "--run";

const TITLE: &str = "Threads on a slow network";
const LATENCY: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Not a walk: each thread calls `fstat` on the root again and again. The most that the server and this machine can do.
    Calls,
    Ignore,
    Fd,
    Dua,
    Lendir,
    Jwalk,
    Ahead,
}

const WAYS: [Way; 7] =
    [Way::Calls, Way::Ignore, Way::Fd, Way::Dua, Way::Lendir, Way::Jwalk, Way::Ahead];

/// The number of calls that each thread makes.
const CALLS: u64 = 64;

impl Way {
    fn name(self) -> &'static str {
        match self {
            Self::Calls => "only `fstat`",
            Self::Ignore => "ignore",
            Self::Fd => "`fdfind -u`",
            Self::Dua => "dua-core",
            Self::Lendir => "lendir",
            Self::Jwalk => "jwalk, sorted",
            Self::Ahead => "lendir, read ahead, sorted",
        }
    }

    fn command(self, threads: usize, root: &str) -> Command {
        if self == Self::Fd {
            let mut fd = Command::new("fdfind");
            fd.args(["-u", &format!("-j{threads}"), ".", root]);
            return fd;
        }
        let mut this = Command::new(std::env::current_exe().expect("cannot find this program"));
        this.args([RUN, self.name(), &threads.to_string(), root]);
        this
    }

    fn answer(self, output: &[u8], root: &str) -> u64 {
        let printed = || {
            String::from_utf8_lossy(output).trim().parse().expect("this program printed no number")
        };
        if self == Self::Fd { bytes_of_names(output, root.as_ref()) } else { printed() }
    }

    /// All but the first add up the bytes of all names.
    fn right(self, shape: Shape, threads: usize) -> u64 {
        if self == Self::Calls { CALLS * threads as u64 } else { shape.bytes_of_names() }
    }

    /// `None` if it is not installed.
    fn measure(self, server: &Server, shape: Shape, threads: usize) -> Option<Observed> {
        let (output, seen) = server.observe(|| run(&mut self.command(threads, POINT)));
        let output = match output {
            Err(failure) if self != Self::Fd => panic!("{}: {failure}", self.name()),
            output => output.ok()?.stdout,
        };
        let (answer, right) = (self.answer(&output, POINT), self.right(shape, threads));
        assert_eq!(answer, right, "{} gives a wrong answer with {threads} threads", self.name());
        Some(seen)
    }
}

/// Is the contender that the arguments after [`RUN`] say.
pub fn run_way(name: &str, threads: &str, root: &str) {
    let way = WAYS.into_iter().find(|way| way.name() == name).expect("no contender has this name");
    let (threads, root) =
        (threads.parse().expect("the argument is not a number of threads"), Path::new(root));
    let answer = match way {
        Way::Calls => calls(root, threads),
        Way::Ignore => ignore_parallel(root, threads),
        Way::Dua => dua(root, threads),
        Way::Lendir => walkers::walked_bytes(root, threads),
        Way::Jwalk => jwalk_sorted(root, threads),
        Way::Ahead => read_ahead(root, threads),
        Way::Fd => unreachable!("BUG: fd is a program of its own"),
    };
    println!("{answer}");
}

/// Returns how many calls said that the root is a directory.
fn calls(root: &Path, threads: usize) -> u64 {
    let root = File::open(root).expect("cannot open the root");
    let is_directory =
        || fstat(&root).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_dir());
    let work = || (0..CALLS).filter(|_| is_directory()).count() as u64;
    thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread panicked")).sum()
    })
}

/// A table in Markdown. Few threads take minutes, so their rows are measured only if asked for.
pub fn tables(arguments: &Arguments) -> String {
    let is_test = arguments.has("--test");
    let sizes: &[(u32, &[usize], &[usize])] = if is_test {
        &[(1, &[8], &[])]
    } else {
        &[(3, &[32, 64, 128, 256], &[8]), (4, &[256], &[128])]
    };
    let mut rows = String::new();
    for &(levels, short, long) in sizes {
        let shape = Shape::of_tens(levels);
        let label =
            |threads: usize| format!("{threads} threads, {} directories", shape.directories());
        let long = if arguments.is_long() { long } else { &[] };
        let mut all = [long, short].concat();
        all.retain(|&threads| arguments.ask_for(TITLE, &label(threads)));
        all.sort_unstable();
        if all.is_empty() {
            continue;
        }
        // The mount is in the namespace of one thread, and ends with this thread.
        let measure = || match Server::mount(Service::slow(shape, LATENCY)) {
            Ok(server) => all
                .iter()
                .map(|&threads| row(&server, shape, &label(threads), threads, is_test))
                .collect(),
            Err(error) => {
                format!("| {} directories | SKIPPED: {error} | | | |\n", shape.directories())
            }
        };
        rows += &thread::scope(|scope| scope.spawn(measure).join())
            .expect("the thread that measures panicked");
    }
    for threads in if is_test { &[2][..] } else { &[1, 4, 16] } {
        let label = format!("{threads} threads, /usr with cold caches");
        if arguments.ask_for(TITLE, &label) {
            rows += &cold_row(&label, *threads, is_test);
        }
    }
    if rows.is_empty() {
        return rows;
    }
    format!(
        "\n### {TITLE}\n\n{LATENCY:?} a request, on FUSE: time, requests waited for, how many of them at once\n\n\
         | | {} |\n|---|{}\n{rows}",
        WAYS.map(Way::name).join(" | "),
        "---|".repeat(WAYS.len())
    )
}

/// The contenders run in turns, three times each, or less often if that takes long: nearly all of it is then the server's sleep,
/// which hardly varies.
fn row(server: &Server, shape: Shape, label: &str, threads: usize, is_test: bool) -> String {
    let mut seen: [Vec<Observed>; WAYS.len()] = Default::default();
    let mut seconds = 0.0;
    for _ in 0..3 {
        for (way, seen) in WAYS.iter().zip(&mut seen) {
            seen.extend(way.measure(server, shape, threads));
            seconds += seen.last().map_or(0.0, |last| last.seconds);
        }
        if is_test || seconds > 10.0 {
            break;
        }
    }
    println!(
        "{TITLE}: {label}: all {} answers are right",
        seen.iter().filter(|seen| !seen.is_empty()).count()
    );
    let cells = seen.map(|mut seen| {
        seen.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        seen.get(seen.len() / 2).map_or_else(
            || "SKIPPED".into(),
            |Observed { seconds, requests, at_once, .. }| {
                format!("{}, {requests}, {at_once:.1}", time(*seconds))
            },
        )
    });
    format!("| {label} | {} |\n", cells.join(" | "))
}

/// Returns the median of five runs, in turns, or SKIPPED if this process has no permission to drop
/// the caches.
fn cold_row(label: &str, threads: usize, is_test: bool) -> String {
    const ROOT: &str = "/usr";
    let mut seconds: [Vec<f64>; WAYS.len()] = Default::default();
    for _ in 0..if is_test { 1 } else { 5 } {
        let mut answers = Vec::new();
        for (way, seconds) in WAYS.iter().zip(&mut seconds).filter(|(way, _)| **way != Way::Calls) {
            rustix::fs::sync();
            if !is_test && std::fs::write("/proc/sys/vm/drop_caches", "3").is_err() {
                continue;
            }
            let begin = Instant::now();
            let Ok(output) = run(&mut way.command(threads, ROOT)) else { continue };
            seconds.push(begin.elapsed().as_secs_f64());
            answers.push(way.answer(&output.stdout, ROOT));
        }
        assert!(
            answers.iter().all(|answer| *answer == answers[0]),
            "the answers differ: {answers:?}"
        );
    }
    println!("{TITLE}: {label}: all answers are the same");
    let cells = seconds.map(|mut seconds| {
        seconds.sort_by(f64::total_cmp);
        seconds.get(seconds.len() / 2).map_or_else(|| "SKIPPED".into(), |median| time(*median))
    });
    format!("| {label} | {} |\n", cells.join(" | "))
}
