//! Measures programs that work on each file, like a search, or that walk many roots: the walker of
//! `ignore` on several threads, and `lendir`, which sends files to other threads over a bounded
//! channel, or by rayon.

use ignore::{WalkBuilder, WalkState};
use lendir::{FileType, WalkDirs};
use lendir_benches::contender::{Contender, Oracle};
use lendir_benches::ratio::{Bench, Table};
use lendir_benches::{Arguments, trees::Fixture};
use std::ffi::CString;
use std::mem;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// The work on each file.
#[derive(Clone, Copy)]
enum Work {
    Nothing,
    /// Waiting, like for a file system over a network.
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
    let (wait, compute) =
        (Work::Wait(Duration::from_micros(500)), Work::Compute(Duration::from_micros(5)));
    let wait_long = Work::Wait(Duration::from_millis(20));
    let mut table = Table::new("Work on each file");
    for (fixture, work, threads) in [
        (Fixture::Flat, wait, 2),
        (Fixture::Flat, wait, 8),
        (Fixture::Flat, wait_long, 128),
        (Fixture::Flat, compute, 2),
        (Fixture::Large, compute, 2),
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
        let roots =
            if is_many { directories_in(tree.path().into()) } else { vec![tree.path().into()] };
        let oracle = || Oracle::new(&label, false, || by_ignore(&roots, 1, Work::Nothing));
        let mut contenders =
            vec![Contender::counting("ignore", oracle(), || by_ignore(&roots, threads, work))];
        if let Work::Nothing = work {
            contenders.push(Contender::counting("lendir, the walk", oracle(), || {
                by_walk(&roots, threads, work)
            }));
        } else {
            contenders.push(Contender::counting("lendir, a channel", oracle(), || {
                by_channel(&roots, threads, work)
            }));
            contenders.push(Contender::counting("lendir, rayon", oracle(), || {
                by_rayon(&roots, threads, work)
            }));
        }
        if !matches!(work, Work::Wait(_)) {
            contenders.push(Contender::counting("lendir, one thread", oracle(), || {
                by_walk(&roots, 1, work)
            }));
        }
        table.measure(bench, &label, contenders);
    }
    table
}

fn directories_in(path: PathBuf) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).expect("cannot open the directory");
    entries.map(|entry| entry.expect("cannot read the directory").path()).collect()
}

/// Works on each file by the walker of `ignore`. Returns the number of files.
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

/// Calls `send` for up to 16 files of a directory at a time. Returns the number of files.
fn walk(
    roots: &[PathBuf],
    threads: usize,
    send: impl Fn(BorrowedFd<'_>, Vec<CString>) + Sync,
) -> u64 {
    let parts = WalkDirs::options().open_all(roots).run_parallel(threads, |worker| {
        let mut files = 0;
        while let Some(mut dir) = worker.next().expect("cannot open a directory of the tree") {
            let mut names = Vec::new();
            while let Some(entry) = dir.next().expect("cannot read the directory") {
                if entry.file_type().expect("cannot tell its type") == FileType::RegularFile {
                    files += 1;
                    names.push(entry.name_cstr().to_owned());
                    if names.len() == 16 {
                        send(entry.dir_fd(), mem::take(&mut names));
                    }
                }
            }
            if !names.is_empty() {
                send(dir.fd(), names);
            }
        }
        files
    });
    parts.into_iter().sum()
}

/// Returns the contender that uses the recipe *Work on each file on all cores*.
fn by_channel(roots: &[PathBuf], threads: usize, work: Work) -> u64 {
    thread::scope(|scope| {
        let (sender, receiver) = sync_channel::<(OwnedFd, Vec<CString>)>(64);
        let receiver = Arc::new(Mutex::new(receiver));
        for _ in 0..threads {
            let receiver = Arc::clone(&receiver);
            let next = move || receiver.lock().expect("a thread has panicked").recv();
            scope.spawn(move || {
                while let Ok((dir, names)) = next() {
                    for _ in names {
                        work.run();
                    }
                    drop(dir);
                }
            });
        }
        drop(receiver);
        walk(roots, threads, |dir, names| {
            sender.send((duplicate(dir), names)).expect("a thread has panicked");
        })
    })
}

/// Returns the contender with a task for each file. It makes its pool each time, because the others
/// start threads each time.
fn by_rayon(roots: &[PathBuf], threads: usize, work: Work) -> u64 {
    let pool =
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("cannot start threads");
    pool.in_place_scope(|scope| {
        walk(roots, threads, |dir, names| {
            let dir = Arc::new(duplicate(dir));
            for name in names {
                let file = (Arc::clone(&dir), name);
                scope.spawn(move |_| {
                    let _file = file;
                    work.run();
                });
            }
        })
    })
}

/// Returns the contender whose threads walk and do the work.
fn by_walk(roots: &[PathBuf], threads: usize, work: Work) -> u64 {
    walk(roots, threads, |_, names| {
        for _ in names {
            work.run();
        }
    })
}

fn duplicate(dir: BorrowedFd<'_>) -> OwnedFd {
    dir.try_clone_to_owned().expect("no descriptor is left")
}
