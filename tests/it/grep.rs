//! The example `grep`, as a program.

use crate::examples::{lines, outcome};
use crate::fixture::example;
use crate::support::tree::{Tree, make};
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

#[test]
fn prints_lines_that_contain_the_text() {
    let tree = Tree::on_disk(|at| {
        make(at, &["a/b/"]);
        fs::write(at.join("a/text"), "one\ntwo two\nthree and one").unwrap();
        fs::write(at.join("a/b/bytes"), b"\xff one\n\xfe\n\ntw\xc3\n").unwrap();
        fs::write(at.join("a/b/binary"), "one\0two\n").unwrap();
        // One directory, so only jobs share it.
        (0..200).for_each(|number| fs::write(at.join("a/b").join(number.to_string()), format!("{number}\n")).unwrap());
        symlink("a/text", at.join("link")).unwrap();
        symlink("../text", at.join("a/b/link")).unwrap();
    });
    let number = |number: i32| format!("a/b/{number}:{number}");
    let with_3: Vec<_> = (0..200).filter(|number| number.to_string().contains('3')).map(number).collect();
    let with_3: Vec<_> = with_3.iter().map(|line| &**line).collect();
    for (args, expected) in [
        (&["3", "a/b"][..], &with_3[..]),
        (&["-r", "two two"], &["./a/text:two two"]),
        (&["--", "and one", "link", "a"], &["link:three and one", "a/text:three and one"]),
        (&["nowhere"], &[]),
    ] {
        for threads in ["-j1", "-j8"] {
            let found = outcome(example("grep"), tree.path(), &[&[threads], args].concat());
            assert_eq!(found, (lines(expected, "\n"), 0, Some(i32::from(expected.is_empty()))), "{args:?} {threads}");
        }
    }
    let (found, ..) = outcome(example("grep"), tree.path(), &["one"]);
    assert_eq!(found, [r"./a/b/bytes:\xff one\n", r"./a/text:one\n", r"./a/text:three and one\n"]);
}

#[test]
fn what_may_not_be_read_is_an_error_and_the_rest_is_searched() {
    let tree = Tree::of(&["a/denied", "locked/file"]);
    fs::write(tree.path().join("a/text"), "one\n").unwrap();
    for denied in ["a/denied", "locked"] {
        fs::set_permissions(tree.path().join(denied), Permissions::from_mode(0o000)).unwrap();
    }
    let found = outcome(example("grep"), tree.path(), &["one", "a", "locked", "missing"]);
    assert_eq!(found, (lines(&["a/text:one"], "\n"), 3, Some(2)));
}
