//! The example `du`, as a program.

use crate::examples::{lines, outcome};
use crate::fixture::example;
use crate::machine::can_trace;
use crate::support::tree::{self, Tree};
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

/// Makes a file and waits until it has its final size on disk: file systems may allocate space only on writeback.
fn write(path: &Path, bytes: usize) {
    fs::write(path, vec![1; bytes]).unwrap();
    File::open(path).unwrap().sync_all().unwrap();
}

/// A file with several links counts once, as does a directory in two PATHs. Links are not followed.
#[test]
fn adds_up_what_is_below() {
    let tree = Tree::on_disk(|at| {
        tree::make(at, &["a/b/c\td/empty", "other/"]);
        for (path, bytes) in
            [("a/file", 1), ("a/b/large", 1_000_000), ("a/b/c\td/.file", 4097), ("other/huge", 1_500_000)]
        {
            write(&at.join(path), bytes);
        }
        fs::hard_link(at.join("a/b/large"), at.join("a/b/c\td/again")).unwrap();
        symlink("../other", at.join("a/link")).unwrap();
        File::create_new(at.join("a/sparse")).unwrap().set_len(1 << 30).unwrap();
    });
    let blocks = |paths: &[&str]| -> u64 {
        paths.iter().map(|path| tree.path().join(path).symlink_metadata().unwrap().blocks()).sum()
    };
    let own = blocks(&["a", "a/file", "a/link", "a/sparse"]);
    let (b, c) = (blocks(&["a/b"]), blocks(&["a/b/c\td", "a/b/c\td/.file", "a/b/c\td/empty"]));
    let large = blocks(&["a/b/large"]);
    let line = |blocks: u64, path: &str| format!("{}\t{path}", blocks.div_ceil(2));
    let all = line(own + b + c + large, "a");
    for (args, expected) in [
        (&["-s", "a", "a"][..], &[&*all][..]),
        (&["-d1", "-k", "--", "a"], &[&all, &line(b + c + large, "a/b")]),
        (&["a/file", "a/link"], &[&line(blocks(&["a/file"]), "a/file"), &line(blocks(&["a/link"]), "a/link")]),
    ] {
        for threads in ["-j1", "-j8"] {
            let found = outcome(example("du"), tree.path(), &[&[threads], args].concat());
            assert_eq!(found, (lines(expected, "\n"), 0, Some(0)), "{args:?} {threads}");
        }
    }
    let tenths = (blocks(&["other/huge"]) * 5).div_ceil(1024);
    let (found, ..) = outcome(example("du"), tree.path(), &["-h", "other/huge", "a/b/c\td"]);
    assert_eq!(found[0], format!(r"{}.{}M\tother/huge\n", tenths / 10, tenths % 10));
    assert!(found[1].ends_with(r"K\ta/b/c?d\n"), "{found:?}");
}

#[test]
fn what_may_not_be_read_is_an_error_and_the_rest_is_added_up() {
    let tree = Tree::of(&["a/locked/below/"]);
    fs::set_permissions(tree.path().join("a/locked"), Permissions::from_mode(0o000)).unwrap();
    let blocks = |path: &str| tree.path().join(path).metadata().unwrap().blocks();
    let kib = (blocks("a") + blocks("a/locked")).div_ceil(2);
    let found = outcome(example("du"), tree.path(), &["-s", "a", "missing"]);
    assert_eq!(found, (lines(&[&format!("{kib}\ta")], "\n"), 2, Some(1)));
}

/// strace refuses the one call that asks for the size of `a/b`.
#[test]
fn size_of_a_directory_that_cannot_be_had_is_an_error_and_the_rest_is_added_up() {
    if !can_trace("size_of_a_directory_that_cannot_be_had_is_an_error_and_the_rest_is_added_up") {
        return;
    }
    let tree = Tree::of(&["a/b/c/", "a/d/"]);
    let blocks = |path: &str| tree.path().join(path).metadata().unwrap().blocks();
    let line = |path: &str, blocks: u64| format!("{}\t{path}", blocks.div_ceil(2));
    let (c, d) = (blocks("a/b/c"), blocks("a/d"));
    let expected = [line("a/b/c", c), line("a/b", c), line("a/d", d), line("a", blocks("a") + c + d)];
    let expected = expected.each_ref().map(|line| &**line);
    for threads in ["-j1", "-j4"] {
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-o", "/dev/null", "-e", "inject=statx:error=EIO"]);
        strace.arg("-P").arg(tree.path().join("a/b")).arg(example("du").get_program());
        let found = outcome(strace, tree.path(), &[threads, "a"]);
        assert_eq!(found, (lines(&expected, "\n"), 1, Some(1)), "{threads}");
    }
}
