//! Levels that are closed early: the tree is the same with few descriptors, and a level that is moved meanwhile is one error.

use crate::support::pre_order::{Answer, PRE_ORDER, PreOrder, errors_between, next};
use crate::support::process;
use crate::support::tree::{self, Tree};
use crate::walk_bounds::{leave_room, open_descriptors};
use lendir::{Order, ReadTree};
use rustix::fs::{Mode, mkdirat, mknodat};
use std::fs::{self, File};

const SORTED: PreOrder = PreOrder { order: Order::Bytes, ..PRE_ORDER };
const FEW: PreOrder = PreOrder { max_open: 4, ..SORTED };

/// Nested directories `m`, each after a file `a` and before a directory `y` and a file `z`.
fn comb(levels: usize) -> Tree {
    Tree::new(|at| {
        let mut dir = lendir::open(at).unwrap();
        for _ in 0..levels {
            for name in ["m", "y"] {
                mkdirat(&dir, name, Mode::RWXU).unwrap();
            }
            for name in ["a", "z"] {
                mknodat(&dir, name, lendir::FileType::RegularFile, Mode::RUSR, 0).unwrap();
            }
            dir = lendir::openat(&dir, "m").unwrap();
        }
    })
}

fn begin(tree: &Tree, way: PreOrder) -> ReadTree {
    way.options().read_tree(tree.path()).unwrap().with_order(way.order)
}

/// Reads on to the end of the last `m`.
fn go_down(tree: &mut ReadTree, levels: usize) -> Vec<Answer> {
    let mut answers = Vec::new();
    while answers.last().is_none_or(|last: &Answer| last.depth < levels || !last.path.ends_with("m")) {
        answers.push(next(tree, |_| ()).unwrap());
    }
    answers
}

#[test]
fn few_descriptors_give_the_same() {
    let tree = comb(60);
    let all = SORTED.by_std(tree.path());
    for max_open in [0, 4, 5, 6, 13, 32, 1000] {
        assert!(PreOrder { max_open, ..SORTED }.read(tree.path()) == all, "{max_open} open");
    }
}

/// Two and three levels are moved away, in both orders, and one is removed with what is in it: nothing comes twice, and what does
/// not come is below an error.
#[test]
fn each_level_that_is_moved_away_is_one_error() {
    const LEVELS: usize = 46;
    let mut lost = 0;
    for way in [SORTED, FEW] {
        for moved in [&[20, 10][..], &[10, 20], &[30, 20, 10], &[10, 20, 30], &[3, 2, 1], &[12, 11], &[45, 2], &[1]] {
            for twins in [false, true] {
                let (tree, aside) = (comb(LEVELS), Tree::new(|_| ()));
                let all = SORTED.by_std(tree.path());
                let mut read = begin(&tree, way);
                let mut answers = go_down(&mut read, LEVELS);
                for (number, level) in moved.iter().enumerate() {
                    let mut from = tree.path().join("m/".repeat(*level).trim_end_matches('/'));
                    // What was below a level moved before is with that one.
                    if let Some((above, _)) = moved[..number].iter().enumerate().rfind(|(_, above)| *above < level) {
                        from = aside.path().join(format!("{above}/{}", "m/".repeat(level - moved[above])));
                    }
                    fs::rename(&from, aside.path().join(number.to_string())).unwrap();
                    if twins {
                        tree::make(&from, &["a", "m/z", "y/", "z", "twin"]);
                    }
                }
                answers.extend(way.all(&mut read));
                let errors = errors_between(&answers, &all, false, &format!("{way:?}, {moved:?}, twins: {twins}"));
                assert!(errors.iter().all(|(_, errno)| *errno == libc::ENOENT), "{errors:?}");
                lost += errors.len();
            }
        }
    }
    assert!(lost > 20, "{lost} levels lost");
}

#[test]
fn level_that_is_removed_is_one_error() {
    let (tree, aside) = (comb(12), Tree::new(|_| ()));
    let all = SORTED.by_std(tree.path());
    let mut read = begin(&tree, FEW);
    let mut answers = go_down(&mut read, 12);
    let level = |number| tree.path().join("m/".repeat(number).trim_end_matches('/'));
    // What is below stays, and `..` from there leads to `aside`.
    fs::rename(level(5), aside.path().join("below")).unwrap();
    for name in ["a", "z"] {
        fs::remove_file(level(4).join(name)).unwrap();
    }
    fs::remove_dir(level(4).join("y")).unwrap();
    fs::remove_dir(level(4)).unwrap();
    answers.extend(FEW.all(&mut read));
    assert_eq!(errors_between(&answers, &all, false, "removed"), [(level(4), libc::ENOENT)]);
    assert_eq!(answers.len(), all.len() + 1 - 2); // `y` and `z` are lost
}

/// In a tree at rest, while this process has no descriptor left: each level that cannot be opened again is one error, and once
/// there are descriptors the rest comes.
#[test]
fn level_that_no_descriptor_is_left_for_is_one_error() {
    process::run("read_tree::lost::level_that_no_descriptor_is_left_for_is_one_error", 60, || {
        let tree = comb(12);
        let all = SORTED.by_std(tree.path());
        let answers_of = |errors_until_there_are_more: usize| {
            let mut read = begin(&tree, FEW);
            let mut answers = go_down(&mut read, 12);
            let (mut others, mut errors) = (Vec::<File>::new(), 0);
            while errors < errors_until_there_are_more {
                others.extend(leave_room(0)); // whatever the tree has closed
                let Some(answer) = next(&mut read, |_| ()) else { break };
                errors += usize::from(answer.what.is_err());
                answers.push(answer);
            }
            others.clear();
            answers.extend(FEW.all(&mut read));
            let errors = errors_between(&answers, &all, false, &format!("{errors_until_there_are_more} errors"));
            assert!(errors.iter().all(|(_, errno)| *errno == libc::EMFILE), "{errors:?}");
            errors.len()
        };
        let most = answers_of(usize::MAX);
        assert!(most > 5, "{most}");
        for wanted in 1..=most {
            assert_eq!(answers_of(wanted), wanted);
        }
    });
}

#[test]
fn process_with_few_descriptors_gets_all() {
    process::run("read_tree::lost::process_with_few_descriptors_gets_all", 60, || {
        let tree = comb(50);
        let all = SORTED.by_std(tree.path());
        // The least: the root, the current directory, and the way back to a closed one.
        for room in 3..16 {
            let mut read = begin(&tree, PreOrder { max_open: 1000, ..SORTED });
            let others = leave_room(room - 1); // the root is open
            let answers = SORTED.all(&mut read);
            drop(others);
            assert!(answers == all, "{room} descriptors");
        }
    });
}

#[test]
fn no_more_descriptors_are_open_than_stated() {
    process::run("read_tree::lost::no_more_descriptors_are_open_than_stated", 60, || {
        let tree = comb(50);
        let before = open_descriptors();
        for max_open in [0, 4, 5, 32, 1000] {
            let mut read = begin(&tree, PreOrder { max_open, ..SORTED });
            let mut most = 0;
            while next(&mut read, |_| most = most.max(open_descriptors() - before)).is_some() {}
            let is_most = most == max_open.max(4) || max_open > 50 && most == 50; // the deepest directory is empty
            assert!(is_most, "{most} open, {max_open} allowed");
            assert_eq!(open_descriptors(), before, "a descriptor was left open at the end");
            let mut read = begin(&tree, PreOrder { max_open, ..SORTED });
            go_down(&mut read, 20);
            drop(read);
            assert_eq!(open_descriptors(), before, "a descriptor was left open midway");
        }
        // A level without anything left is closed once the one below it is open.
        let chain = Tree::new(|at| tree::chain(at, 300));
        let mut read = begin(&chain, PRE_ORDER);
        while next(&mut read, |_| assert!(open_descriptors() <= before + 1)).is_some() {}
    });
}
