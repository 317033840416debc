//! Walks that end early. None of them hangs.

use super::{DIRECTORIES, any_way, begin, endings, explore, make};
use crate::fuses::Fuses;
use crate::tree::Tree;
use lendir::WalkDirs;
use shuttle::rand::{Rng, thread_rng};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The walk ends even if no closure runs to its end.
#[test]
fn walk_ends_if_all_threads_return_early() {
    let tree = Tree::new(make);
    explore(1000, move || {
        let (second_visits, max_open) = any_way();
        let _ = begin(&tree, second_visits, max_open).run_parallel(
            thread_rng().gen_range(1..5),
            |worker| {
                (0..thread_rng().gen_range(0..8))
                    .take_while(|_| worker.next().unwrap().is_some())
                    .count()
            },
        );
    });
}

#[test]
fn stop_ends_all_threads() {
    let tree = Tree::new(make);
    explore(1000, move || {
        let (second_visits, max_open) = any_way();
        let (stop_at, returns) = (thread_rng().gen_range(0..20), thread_rng().gen_bool(0.5));
        let walk = begin(&tree, second_visits, max_open);
        endings::stop(walk, thread_rng().gen_range(1..5), stop_at, returns, &|_, _| ());
    });
}

#[test]
fn panic_propagates_after_all_closures() {
    let tree = Tree::new(make);
    explore(1000, move || {
        let (second_visits, max_open) = any_way();
        let panic_at = thread_rng().gen_range(0..DIRECTORIES);
        let panics = panic_at..panic_at + thread_rng().gen_range(1..3);
        endings::panic(
            begin(&tree, second_visits, max_open),
            thread_rng().gen_range(1..5),
            panics,
            &|_, _| (),
        );
    });
}

#[test]
fn panic_of_clone_does_not_hang() {
    let tree = Tree::new(make);
    explore(1000, move || {
        let (second_visits, max_open) = any_way();
        let fuse = Fuses::new([thread_rng().gen_range(1..30), 0]);
        let options =
            WalkDirs::options().second_visits(second_visits).max_open(max_open).with_state(fuse);
        let walk = options.open(tree.path()).unwrap();
        let parallel = AssertUnwindSafe(|| {
            walk.run_parallel(thread_rng().gen_range(1..5), |worker| {
                while worker.next().unwrap().is_some() {}
            })
        });
        let _ = catch_unwind(parallel);
    });
}
