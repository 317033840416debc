//! The example `pids`, as a program: on a directory that looks like procfs.

use crate::examples::{lines, outcome};
use crate::fixture::{example, run};
use crate::support::tree::Tree;
use std::fs;
use std::os::unix::fs::symlink;

/// By ascending PID is the order of procfs; here it is that of any directory. `pids` takes the `self` of it, 30, for itself.
#[test]
fn lists_processes_by_name() {
    let tree = Tree::of(&["6/", "sys/", "08/"]); // 6 ended midway
    for (pid, name) in [("7", "one\n"), ("1", "a one\n"), ("4294967295", "a\tb\x1b\n"), ("30", "-q two\n")] {
        fs::create_dir(tree.path().join(pid)).unwrap();
        fs::write(tree.path().join(pid).join("comm"), name).unwrap();
    }
    symlink("30", tree.path().join("self")).unwrap();
    for (args, expected) in [
        (&["--proc=."][..], &["7 one", "1 a one", "4294967295 a?b?"][..]),
        (&["--proc=.", "-q"], &["6", "7", "1", "4294967295"]),
        (&["--proc", ".", "-q", "one", "\x1b"], &["7", "1", "4294967295"]),
        (&["--proc", ".", "-x", "one", "a?b?", "two"], &["7 one"]),
        (&["--proc", ".", "--", "-q"], &[]),
    ] {
        let found = outcome(example("pids"), tree.path(), args);
        assert_eq!(found, (lines(expected, "\n"), 0, Some(i32::from(expected.is_empty()))), "{args:?}");
    }
}

#[test]
fn missing_procfs_is_an_error() {
    let output = run(example("pids").arg("--proc=/nowhere"));
    let error = b"pids: /nowhere: No such file or directory (os error 2)\n";
    assert_eq!((&*output.stderr, output.status.code()), (&error[..], Some(2)));
}
