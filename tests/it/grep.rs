//! The example `grep`, as a program.

use crate::examples::{lines, outcome};
use crate::fixture::example;
use crate::support::machine::Watchdog;
use crate::support::process::Process;
use crate::support::tree::{Tree, make};
use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::io::ioctl_fionread;
use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

#[test]
fn prints_lines_that_contain_the_text() {
    let tree = Tree::on_disk(|at| {
        make(at, &["a/b/"]);
        fs::write(at.join("a/text"), "one\ntwo two\nthree and one").unwrap();
        fs::write(at.join("a/b/bytes"), b"\xff one\n\xfe\n\ntw\xc3\n").unwrap();
        fs::write(at.join("a/b/binary"), "one\0two\n").unwrap();
        // One directory, which one thread walks and several search.
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

fn make_fifo(at: &Path) {
    mkfifoat(CWD, at, Mode::RWXU).unwrap();
}

/// What was listed as a directory or a file is replaced before it is opened: the program waits because nobody reads its output,
/// and has more files than the channel and a pipe have room for, but no more than one `getdents64` reads.
#[test]
fn fifo_that_is_swapped_in_is_an_error_and_does_not_block() {
    const FILES: usize = 1200;
    let _watchdog = Watchdog::new(60);
    let line = "x".repeat(4000);
    let link_to_fifo: fn(&Path) = |at| {
        make_fifo(&at.with_file_name("fifo"));
        symlink("fifo", at).unwrap();
    };
    for (is_dir, swap_in) in [(true, make_fifo as fn(&Path)), (true, link_to_fifo), (false, make_fifo)] {
        let tree = Tree::of(&["dir/"]);
        (0..FILES).for_each(|number| fs::write(tree.path().join(number.to_string()), &line).unwrap());
        let mut process = Process::start(
            example("grep").args(["-j1", "x"]).arg(tree.path()).stdout(Stdio::piped()).stderr(Stdio::piped()),
        );
        let (mut stdout, mut stderr) = (process.0.stdout.take().unwrap(), process.0.stderr.take().unwrap());
        while ioctl_fionread(&stdout).unwrap() == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        let entries = fs::read_dir(tree.path()).unwrap().map(|entry| entry.unwrap().path());
        let listed: Vec<_> = entries.filter(|path| path.is_dir() == is_dir).collect();
        let swapped = &listed[listed.len() / 2];
        fs::rename(swapped, tree.path().join("aside")).unwrap();
        swap_in(swapped);
        let (mut text, mut errors) = (Vec::new(), String::new());
        stdout.read_to_end(&mut text).unwrap();
        stderr.read_to_string(&mut errors).unwrap();
        let found = text.split(|byte| *byte == b'\n').count() - 1;
        let expected = if is_dir { FILES } else { FILES - 1 };
        assert_eq!((found, errors.lines().count()), (expected, 1), "directory {is_dir}: {errors}");
        assert_eq!(process.0.wait().unwrap().code(), Some(2));
    }
}

#[test]
fn fifo_is_not_searched() {
    let _watchdog = Watchdog::new(60);
    let tree = Tree::of(&["a/"]);
    fs::write(tree.path().join("a/text"), "one\n").unwrap();
    make_fifo(&tree.path().join("fifo"));
    make_fifo(&tree.path().join("a/fifo"));
    let found = outcome(example("grep"), tree.path(), &["one", "fifo", "a"]);
    assert_eq!(found, (lines(&["a/text:one"], "\n"), 1, Some(2)));
}
