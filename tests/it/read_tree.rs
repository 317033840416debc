//! What `ReadTree` and `TreeEntry` promise: each entry, then at once what is below it, and errors where they belong.

mod costs;
mod lost;

use crate::fixture::{has_gnu, run};
use crate::follow;
use crate::support::machine::runs_long;
use crate::support::pre_order::{Answer, PRE_ORDER, PreOrder, Word, as_set};
use crate::support::process::as_nobody;
use crate::support::scan::ORDERS;
use crate::support::tree::{self, Random, Tree};
use lendir::{FileType, Order, ReadTree, Walk, read_tree};
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The same in each order. In the kernel's, also with few descriptors, and as a set with the other orders.
fn check(root: &Path, way: PreOrder, what: &str) -> Vec<Answer> {
    let all = way.by_std(root);
    for order in ORDERS {
        for max_open in if order == Order::Unsorted { &[4, 5, 32, 1000][..] } else { &[32] } {
            let way = PreOrder { order, max_open: *max_open, ..way };
            let answers = way.read(root);
            assert!(answers == way.by_std(root), "{what}, {way:?}");
            // What a loop is depends on the way to it, and what is skipped on the order.
            assert!(
                way.seed.is_some()
                    || as_set(answers).iter().map(|a| &a.path).eq(as_set(all.clone()).iter().map(|a| &a.path))
            );
        }
    }
    all
}

#[test]
fn agrees_with_std_on_random_trees() {
    for seed in 0..if runs_long() { 50 } else { 2 } {
        let make = |at: &Path| tree::random(at, seed);
        let tree = if seed == 0 { Tree::on_disk(make) } else { Tree::new(make) };
        let all = check(tree.path(), PRE_ORDER, &format!("tree {seed}"));
        assert!(all.len() > 700, "{} entries", all.len());
    }
}

#[test]
fn every_maximum_depth_gives_the_entries_of_that_depth_and_above() {
    let tree = Tree::new(|at| tree::random(at, 3));
    let all = PRE_ORDER.by_std(tree.path());
    let deepest = all.iter().map(|answer| answer.depth).max().unwrap();
    assert!(deepest > 8, "{deepest}");
    for root in [tree.path(), Path::new("/etc")] {
        for max_depth in 0..if root == tree.path() { deepest + 2 } else { 3 } {
            let way = PreOrder { max_depth, ..PRE_ORDER };
            // Others may change system trees.
            let agrees = (0..20).any(|_| way.read(root) == way.by_std(root));
            assert!(agrees, "{}, maximum depth {max_depth}", root.display());
            let is_above = |answer: &&Answer| answer.depth <= max_depth;
            let paths = |answers: &[Answer]| answers.iter().map(|answer| answer.path.clone()).collect::<Vec<_>>();
            let above: Vec<_> = all.iter().filter(is_above).cloned().collect();
            assert!(root != tree.path() || paths(&way.read(root)) == paths(&above), "maximum depth {max_depth}");
        }
    }
}

#[test]
fn directories_that_may_not_be_read_or_searched_are_errors_right_after_their_entries() {
    as_nobody(|| {
        let mut errors = 0;
        for seed in 0..if runs_long() { 50 } else { 3 } {
            let tree = Tree::new(|at| tree::random(at, seed));
            let mut random = Random(seed);
            let all = PRE_ORDER.by_std(tree.path());
            let is_dir = |answer: &&Answer| fs::symlink_metadata(&answer.path).unwrap().is_dir();
            let dirs: Vec<_> = all.iter().filter(is_dir).collect();
            // From the deepest on: those below one of these cannot be reached.
            for dir in dirs.into_iter().rev() {
                let mode = [0o100, 0o000, 0o400, 0o300].get(random.below(12)).copied().unwrap_or(0o700);
                fs::set_permissions(&dir.path, Permissions::from_mode(mode)).unwrap();
            }
            let all = check(tree.path(), PRE_ORDER, &format!("tree {seed}"));
            errors += all.iter().filter(|answer| answer.what.is_err()).count();
        }
        assert!(errors > 100, "{errors} errors");
        // The root too, and the directory that takes the place of the one above it.
        let tree = Tree::of(&["a/b/"]);
        for dir in ["a/b", "a", ""] {
            fs::set_permissions(tree.path().join(dir), Permissions::from_mode(0o300)).unwrap();
            let answers = check(tree.path(), PRE_ORDER, dir);
            assert_eq!(answers.last().unwrap().what, Err(libc::EACCES), "{dir}");
        }
    });
}

#[test]
fn links_are_followed_where_the_caller_says_so_and_loops_are_errors_right_after_them() {
    let mut loops = 0;
    for seed in 0..if runs_long() { 500 } else { 12 } {
        let (_tree, root) = follow::made(seed);
        for max_depth in [3, usize::MAX] {
            let all = check(&root, PreOrder { follows: true, max_depth, ..PRE_ORDER }, &format!("tree {seed}"));
            loops += all.iter().filter(|answer| answer.what == Err(libc::ELOOP)).count();
        }
    }
    assert!(loops > 20, "{loops} loops");
}

/// Files, directories and links are skipped and followed, up to three times each: what was said last counts.
#[test]
fn last_word_about_an_entry_counts() {
    let words = |root: &Path, seed| {
        check(root, PreOrder { seed: Some(seed), ..PRE_ORDER }, &format!("words {seed}"));
        let max_depth = usize::try_from(seed).unwrap() % 6;
        check(root, PreOrder { seed: Some(seed), max_depth, ..PRE_ORDER }, &format!("words {seed}"));
    };
    let tree = Tree::new(|at| {
        fs::create_dir(at.join("root")).unwrap(); // links of a random tree lead above it
        tree::random(&at.join("root"), 1);
    });
    for seed in 0..if runs_long() { 500 } else { 6 } {
        words(&tree.path().join("root"), seed);
        words(&follow::made(seed).1, seed);
    }
}

#[test]
fn closures_say_words_too() {
    let tree = Tree::new(|at| tree::random(at, 4));
    for seed in 0..6 {
        let way = PreOrder { seed: Some(seed), order: Order::Bytes, max_depth: 4, ..PRE_ORDER };
        let begin = || way.options().read_tree(tree.path()).unwrap().with_order(way.order);
        let answers = way.by_std(tree.path());
        let expected: Vec<_> = answers.iter().map(|answer| (answer.path.clone(), answer.what.err())).collect();
        let of_error = |error: lendir::Error| (error.path().to_owned(), error.raw_os_error());
        let say = |entry: &lendir::TreeEntry<'_>| way.words(entry.path()).into_iter().for_each(|word| word.say(entry));

        let mapped = begin().filter_map(|entry| {
            say(&entry);
            (!entry.name().starts_with(b"0")).then(|| (entry.path().to_owned(), None))
        });
        let mapped: Vec<_> = mapped.map(|item| item.unwrap_or_else(of_error)).collect();
        let is_made = |(path, errno): &(PathBuf, Option<i32>)| {
            errno.is_some() || !path.file_name().unwrap().as_bytes().starts_with(b"0")
        };
        let made: Vec<_> = expected.iter().filter(|answer| is_made(answer)).cloned().collect();
        assert!(mapped == made, "filter_map, words {seed}");

        // What is said of an entry that is found, in the closure or after it, counts as well.
        let (mut found, mut tree) = (Vec::new(), begin());
        loop {
            let step = tree.find(|entry| {
                found.push((entry.path().to_owned(), None));
                Word::SkipRest.say(entry);
                entry.skip_below();
                if way.words(entry.path()).is_empty() && entry.d_type() == FileType::Directory {
                    entry.follow(); // as without a word
                }
                say(entry);
                found.len() % 3 == 0
            });
            match step {
                Ok(None) => break,
                Ok(Some(entry)) => assert_eq!(entry.path(), found.last().unwrap().0),
                Err(error) => found.push(of_error(error)),
            }
        }
        assert!(found == expected, "find, words {seed}");
    }
    let paths = read_tree(tree.path()).unwrap().paths().map(Result::unwrap);
    assert!(paths.eq(PRE_ORDER.by_std(tree.path()).into_iter().map(|answer| answer.path)));
}

#[test]
fn roots_come_one_after_another_and_a_missing_one_is_an_error() {
    let tree = Tree::of(&["a/b/c/f", "a/d", "z/y/x"]);
    let at = |name: &str| tree.path().join(name);
    symlink("a", at("link")).unwrap();
    for way in [PRE_ORDER, PreOrder { max_depth: 1, ..PRE_ORDER }] {
        let roots = ["a", "missing", "z", "a/d", "link", "z/y"].map(at);
        let expected: Vec<_> = roots.iter().flat_map(|root| way.by_std(root)).collect();
        assert_eq!(way.all(&mut way.options().read_trees(&roots)), expected);
        let errors: Vec<_> = expected.iter().filter_map(|answer| answer.what.err()).collect();
        assert_eq!(errors, [libc::ENOENT, libc::ENOTDIR]);
    }
    assert!(PRE_ORDER.all(&mut Walk::options().read_trees::<&str>([])).is_empty());
    for (path, errno) in [("missing", libc::ENOENT), ("a/d", libc::ENOTDIR)] {
        assert_eq!(read_tree(at(path)).unwrap_err().raw_os_error(), Some(errno));
    }
    let refused = Walk::options().follow_roots(false).read_tree(at("link")).unwrap_err();
    assert!(matches!(refused.raw_os_error(), Some(libc::ENOTDIR | libc::ELOOP)), "{refused}");
}

/// `dir/` and `dir//` stay as they are written; the relative path has none of them.
#[test]
fn paths_begin_with_that_of_the_root() {
    let tree = Tree::of(&["d/e/f", "d/g"]);
    let dir = tree.path().join("d").into_os_string().into_string().unwrap();
    let from_fd = |path: &str| Walk::options().read_tree_from_fd(lendir::open(&dir).unwrap(), path);
    let opened =
        [&*dir, &format!("{dir}/"), &format!("{dir}/.")].map(|root| (root.to_owned(), read_tree(root).unwrap()));
    let from_fds = ["", ".", "/", "name", "dir/"].map(|path| (path.to_owned(), from_fd(path)));
    for (root, tree) in opened.into_iter().chain(from_fds) {
        let mut tree = tree.with_order(Order::Bytes);
        for (relative, depth, is_last) in [("e", 1, false), ("e/f", 2, true), ("g", 1, true)] {
            let entry = tree.next().unwrap().unwrap();
            let path = Path::new(&root).join(relative);
            assert_eq!(entry.path().as_os_str(), path, "{root}");
            assert_eq!(
                (entry.relative_path().to_str().unwrap(), entry.depth(), entry.is_last()),
                (relative, depth, is_last)
            );
            let metadata = fs::symlink_metadata(Path::new(&dir).join(relative)).unwrap();
            let stat = entry.stat().unwrap();
            assert_eq!((entry.ino(), stat.st_ino), (metadata.ino(), metadata.ino()));
            assert_eq!(entry.file_type().unwrap(), FileType::from_raw_mode(metadata.mode()));
            assert_eq!(entry.error(std::io::ErrorKind::Other).path(), entry.path());
        }
        assert!(tree.next().unwrap().is_none());
    }
    for root in [".", "./src", "/", "/etc"] {
        let mut tree = Walk::options().max_depth(2).read_tree(root).unwrap();
        while let Some(entry) = tree.next_ok(drop) {
            assert_eq!(entry.relative_path(), entry.path().strip_prefix(root).unwrap());
            if entry.depth() == 1 && !entry.is_last() {
                entry.skip_below();
            }
        }
    }
}

#[test]
fn gives_what_find_gives() {
    if !has_gnu("find", "read_tree::gives_what_find_gives") {
        return;
    }
    let tree = Tree::new(|at| tree::random(at, 5));
    for (max_depth, args) in [(usize::MAX, &[][..]), (2, &["-maxdepth", "2"])] {
        let output = run(Command::new("find").arg(tree.path()).args(["-mindepth", "1"]).args(args).arg("-print0"));
        let mut found: Vec<_> = output.stdout.split(|byte| *byte == 0).filter(|path| !path.is_empty()).collect();
        found.sort_unstable();
        let answers = as_set(PreOrder { max_depth, ..PRE_ORDER }.read(tree.path()));
        assert!(answers.iter().map(Answer::bytes).eq(found), "{max_depth}");
    }
}

/// What is below a directory is looked for when the next entry is asked for, not before.
#[test]
fn directory_is_lent_before_it_is_opened() {
    as_nobody(|| {
        let tree = Tree::of(&["a/f"]);
        let dir = tree.path().join("a");
        fs::set_permissions(&dir, Permissions::from_mode(0)).unwrap();
        let mut read: ReadTree = read_tree(tree.path()).unwrap();
        assert_eq!(read.next().unwrap().unwrap().path(), dir);
        fs::set_permissions(&dir, Permissions::from_mode(0o700)).unwrap();
        assert_eq!(read.next().unwrap().unwrap().name_os(), OsStr::new("f"));
    });
}
