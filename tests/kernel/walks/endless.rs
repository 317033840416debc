//! Endless trees, and a huge directory: the caller bounds the walk, and it takes little memory.

use super::WAYS;
use super::hostile::{leaf, record};
use crate::fuse::{Answer, Directory, Node, Server};
use crate::hostile::endless::resident_pages;
use crate::hostile::{dots, served};
use crate::support::machine;
use lendir::WalkDirs;
use libc::{DT_DIR, DT_REG};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// An endless tree with the same entries on every level.
fn endless(names: &'static [&'static str]) -> Directory {
    let answers: Vec<_> = dots()
        .into_iter()
        .chain(names.iter().map(|name| record(name.as_bytes(), DT_DIR)))
        .collect();
    let answer =
        move |place| usize::try_from(place).ok().and_then(|place| answers.get(place).cloned());
    let lookup = move |_: &[u8]| Ok(Node::Directory(endless(names)));
    Directory {
        lookup: Arc::new(lookup),
        ..Directory::of_files(move |place| answer(place).unwrap_or(Answer::End))
    }
}

/// The caller ends it, by `skip_subdirs` at some depth or by `stop`.
#[test]
fn depth_without_end_is_bounded_by_the_caller() {
    let seconds = if machine::runs_long() { 1800 } else { 60 };
    served("walks::endless::depth_without_end_is_bounded_by_the_caller", seconds, || {
        let server = Server::mount(vec![endless(&["d"]), endless(&["d", "e"])]).unwrap();
        let deepest = if machine::runs_long() { 50_000 } else { 1_000 };
        for (server_path, deepest, directories) in [
            (server.path(0), deepest, deepest + 1),
            // The walk comes back to every level of this one.
            (server.path(1), 7, (2 << 7) - 1),
        ] {
            for way in WAYS {
                let mut walk = way.options().open(&server_path).unwrap();
                let (mut visited, mut left) = (0, 0);
                while let Some(mut dir) = walk.next().unwrap() {
                    if dir.is_second_visit() {
                        left += 1;
                        continue;
                    }
                    visited += 1;
                    if dir.depth() == deepest {
                        dir.skip_subdirs();
                    }
                }
                assert_eq!(visited, directories, "{way:?}");
                assert_eq!(left, if way.second_visits { directories } else { 0 }, "{way:?}");
            }
        }
        let mut walk = lendir::walk_dirs(server.path(1)).unwrap();
        let mut visited = 0;
        while walk.next().unwrap().is_some_and(|dir| dir.depth() < deepest) {
            visited += 1;
        }
        assert_eq!(visited, deepest, "the walk did not go straight down");
    });
}

/// A huge directory takes memory for the names of directories, not of files.
#[test]
fn huge_directory_takes_constant_memory() {
    let (count, seconds) = if machine::runs_long() { (10_000_000, 1800) } else { (100_000, 60) };
    served("walks::endless::huge_directory_takes_constant_memory", seconds, || {
        let answers = move |place| match place {
            0 => record(b"directory", DT_DIR),
            place if place < count => record(place.to_string().as_bytes(), DT_REG),
            _ => Answer::End,
        };
        let lookup = |_: &[u8]| Ok(Node::Directory(leaf()));
        let server = Server::mount(vec![Directory {
            lookup: Arc::new(lookup),
            ..Directory::of_files(answers)
        }])
        .unwrap();
        let mut walk = lendir::walk_dirs(server.path(0)).unwrap();
        let (mut seen, mut at_first, mut visited) = (0, 0, 0);
        while let Some(mut dir) = walk.next().unwrap() {
            visited += 1;
            while dir.next().unwrap().is_some() {
                seen += 1;
                if seen == 10_000 {
                    at_first = resident_pages();
                }
            }
        }
        let grown = resident_pages().saturating_sub(at_first);
        assert!(grown < 64, "memory has grown by {grown} pages after {seen} entries");
        assert_eq!((visited, seen), (2, count + 1));
    });
}

#[test]
fn tree_without_end_is_stopped_for_all() {
    const MOST: usize = 2000;
    served("walks::endless::tree_without_end_is_stopped_for_all", 60, || {
        let server = Server::mount(vec![endless(&["d", "e", "f"])]).unwrap();
        for threads in [2, 3, 16] {
            let visits = AtomicUsize::new(0);
            let _ = WalkDirs::options()
                .second_visits(true)
                .open(server.path(0))
                .unwrap()
                .run_parallel(threads, |worker| {
                    while worker.next().unwrap().is_some() {
                        if visits.fetch_add(1, Relaxed) == MOST {
                            worker.stop();
                        }
                    }
                });
            assert!(visits.into_inner() > MOST);
        }
    });
}
