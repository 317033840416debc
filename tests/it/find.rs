//! The example `find`, as a program.

use crate::examples::{lines, outcome};
use crate::fixture::example;
use crate::support::tree::{Tree, make};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

/// Files enough that each thread writes several times: one line must not stand in the middle of another.
#[test]
fn prints_whole_lines_of_what_matches() {
    let files: Vec<_> = (0..4000).map(|file| format!("wide/{}/{}{file}", file % 40, "x".repeat(file % 90))).collect();
    let tree = Tree::new(|at| make(at, &["top/.hidden/file", "top/new\nline/", "top/[a]", "plain"]));
    make(tree.path(), &files);
    for (target, link) in [("..", "top/loop"), ("top", "link")] {
        symlink(target, tree.path().join(link)).unwrap();
    }
    let files: Vec<_> = files.iter().map(|path| &**path).collect();
    for (args, expected) in [
        (&["wide", "-type", "f"][..], &files[..]),
        (&["-maxdepth", "1"], &[".", "./link", "./plain", "./top", "./wide"]),
        (&["--", "top", "-type", "d"], &["top", "top/.hidden", "top/new\nline"]),
        (
            &["top/", "plain", "link", "-name", "*[lp]*"],
            &["link", "plain", "top/", "top/.hidden/file", "top/loop", "top/new\nline"],
        ),
        (&["top", "-name", "\\[?]", "-type", "f"], &["top/[a]"]),
        (&["top", "-type", "d", "-type", "f"], &[]),
    ] {
        for threads in ["-j0", "-j1", "-j3"] {
            let found = outcome(example("find"), tree.path(), &[args, &["-print0", threads]].concat());
            assert_eq!(found, (lines(expected, "\0"), 0, Some(0)), "{args:?} {threads}");
        }
    }
}

#[test]
fn what_may_not_be_read_is_an_error_and_the_rest_is_printed() {
    let tree = Tree::of(&["a/locked/below", "a/file"]);
    fs::set_permissions(tree.path().join("a/locked"), Permissions::from_mode(0o000)).unwrap();
    let found = outcome(example("find"), tree.path(), &["a", "missing", "a/file/"]);
    assert_eq!(found, (lines(&["a", "a/file", "a/locked"], "\n"), 3, Some(1)));
}
