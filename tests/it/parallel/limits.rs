//! Checks parallel walks that have few descriptors or rights, or whose threads the system refuses.

use crate::support::fixture::run;
use crate::support::prelude::*;
use crate::support::strace::lines;
use lendir::Worker;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::panic::resume_unwind;
use std::sync::Barrier;

/// A part that no thread has taken yet has a descriptor. With second visits, the root and its
/// parent each have another one.
#[test]
fn threads_respect_max_open() {
    process::run("parallel::limits::threads_respect_max_open", || {
        let tree = Tree::new(|at| tree::bushy(at, 60));
        let before = open_descriptors();
        let of_one = [0, 1, 4, 5, 1000].into_iter().flat_map(|max_open| {
            [PLAIN, POST].map(|options| (TestOptions { max_open, ..options }, &THREADS[..1]))
        });
        let of_all = [PLAIN, POST, TIGHT].map(|options| (options, &THREADS[..]));
        for (options, threads) in of_one.chain(of_all) {
            for &threads in threads {
                let most = Mutex::new(0);
                let parallel = |until: usize, look: &(dyn Fn(Dir<'_>) + Sync)| {
                    let walk = options.begin(tree.path());
                    let work = |worker: &mut Worker<'_>| {
                        (0..until).find(|_| worker.next().unwrap().map(look).is_none())
                    };
                    let _ = catch_unwind(AssertUnwindSafe(|| walk.run_parallel(threads, work)));
                    assert_eq!(open_descriptors(), before, "a descriptor is still open");
                };
                parallel(usize::MAX, &|_| {
                    let mut most = most.lock().unwrap();
                    *most = open_descriptors().max(*most);
                });
                let most = most.into_inner().unwrap() - before;
                // One thread has no other part, and no parent of the root without second visits.
                let parents = usize::from(options.second_visits);
                let is_right = match threads {
                    1 => most <= options.max_open.max(4) + parents,
                    _ => most <= threads * (options.max_open + 1) + 2,
                };
                assert!(is_right, "{options:?}, {threads} threads: {most} open");
                for until in [0, 1, 10] {
                    parallel(until, &|_| ());
                }
                parallel(usize::MAX, &|dir| {
                    if dir.depth() == 2 {
                        resume_unwind(Box::new(()))
                    }
                });
            }
        }
    });
}

/// If a directory cannot be opened, or a descriptor cannot be duplicated, each missing directory
/// has an error: its own, or one of an ancestor.
#[test]
fn few_descriptors_lose_nothing_silently() {
    process::run("parallel::limits::few_descriptors_lose_nothing_silently", || {
        let tree = Tree::new(|at| tree::bushy(at, 30));
        for options in [PLAIN, POST, TIGHT] {
            let expected = options.expected_visits(tree.path());
            for (descriptors, threads) in
                [2, 3, 5, 8, 12, 40].into_iter().flat_map(|room| [(room, 1), (room, 8)])
            {
                let _others = leave_room(descriptors);
                for _ in 0..if runs_long() { 100 } else { 1 } {
                    let parts = options
                        .begin(tree.path())
                        .run_parallel(threads, |worker| collect_visits(worker, |_| Requests::ALL));
                    let visits = parts.concat();
                    let is_right = errors(&visits).iter().all(|(_, errno)| *errno == libc::EMFILE);
                    assert!(is_right, "{visits:?}");
                    assert_nothing_is_lost_silently(
                        &visits,
                        &expected,
                        &format!("{options:?}, {descriptors} descriptors, {threads} threads"),
                    );
                }
            }
        }
    });
}

/// After the first refusal, the walk splits off no other part: each part would take a descriptor.
#[test]
fn walk_survives_refused_threads() {
    process::run("parallel::limits::walk_survives_refused_threads", || {
        let tree = as_nobody(|| Tree::new(|at| tree::comb(at, 30)));
        // This is opened first, because an ordinary user lacks permission to open it here.
        let descriptors = Mutex::new(lendir::read_dir("/proc/self/fd").unwrap());
        let open = || {
            let mut descriptors = descriptors.lock().unwrap();
            descriptors.rewind().unwrap();
            descriptors.count().unwrap()
        };
        as_nobody(|| {
            setrlimit(Resource::Nproc, Rlimit { current: Some(0), ..getrlimit(Resource::Nproc) })
                .unwrap();
            for options in [PLAIN, POST, TIGHT] {
                for threads in [2, usize::MAX] {
                    let (before, most) = (open(), AtomicU64::new(0));
                    let parts = options.begin(tree.path()).run_parallel(threads, |worker| {
                        collect_visits(worker, |_| {
                            most.fetch_max(open(), Relaxed);
                            options.requests()
                        })
                    });
                    let [visits] = <[_; 1]>::try_from(parts).unwrap();
                    assert_eq!(in_one_order(visits), options.expected_visits(tree.path()));
                    let most = most.into_inner() - before;
                    let is_right = most <= options.max_open as u64 + 3;
                    assert!(is_right, "{options:?}, {threads} threads: {most} open");
                }
            }
        });
    });
}

/// A program that has threads already would wait for it.
#[test]
fn one_thread_grows_the_table_of_descriptors() {
    const TEST: &str = "parallel::limits::one_thread_grows_the_table_of_descriptors";
    let tree = Tree::of(&["flat/1", "deep/a/1", "deep/b/1"]);
    let is_growth = |line: &&str| line.contains("F_DUPFD_CLOEXEC, 511)"); // 16 times 32
    // The tests have a thread each.
    let parts = lines(TEST, &["-e", "trace=fcntl,?fcntl64,%file"], || {
        let _counted = Counted::begin();
        let _ = lendir::walk_dirs(tree.path())
            .unwrap()
            .run_parallel(16, |worker| while worker.next().unwrap().is_some() {});
    });
    let Some(parts) = parts else { return };
    assert_eq!(parts[0].iter().map(|line| &**line).find(is_growth), None);

    for (dir, growths) in [("flat", 0), ("deep", 1)] {
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-e", "trace=fcntl,?fcntl64"]).arg(example("du").get_program());
        strace.args(["-j", "16", dir]).current_dir(tree.path()).env_remove("LD_LIBRARY_PATH");
        let log = String::from_utf8(run(&mut strace).stderr).unwrap();
        assert_eq!(log.lines().filter(is_growth).count(), growths, "{log}");
    }
}

/// The second thread takes half of the directories, because the first one waits in a directory.
#[test]
fn each_thread_has_the_buffer_capacity() {
    const TEST: &str = "parallel::limits::each_thread_has_the_buffer_capacity";
    let parts = lines(TEST, &["-e", "trace=getdents64,%file"], || {
        let (tree, both) = (Tree::new(|at| tree::wide(at, 8, 1)), Barrier::new(2));
        let walk = WalkDirs::options().buffer_capacity(1_000_000).open(tree.path()).unwrap();
        let _ = walk.run_parallel(2, |worker| {
            let _counted = (worker.index() == 1).then(Counted::begin);
            for visit in worker.index().. {
                let Some(mut dir) = worker.next().unwrap() else { break };
                assert_eq!(dir.count().unwrap(), if dir.depth() == 0 { 8 } else { 0 });
                if visit == 1 {
                    both.wait();
                }
            }
        });
    });
    let Some(parts) = parts else { return };
    let reads = parts[0].iter().filter(|line| line.starts_with("getdents64("));
    let (large, other): (Vec<_>, Vec<_>) = reads.partition(|line| line.contains(", 1000000)"));
    assert!(!large.is_empty() && other.is_empty(), "{large:?}, {other:?}");
}
