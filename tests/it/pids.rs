//! The example `pids`, as a program: on children of the test, and on a directory that looks like procfs.

use crate::fixture::{example, run};
use crate::support::process::Process;
use crate::support::scratch::Scratch;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::process::Command;

#[test]
fn lists_processes_by_name() {
    let dir = Scratch::new();
    let names: [&[u8]; 5] = [b"lendir one", b"a lendir one", b"\xff\xfe len", b"a\tb\nc\x1b\x7f", b"-q lendir"];
    // The kernel takes the command name from the executed path, which may be a link.
    let children = names.map(|name| {
        let path = dir.path().join(OsStr::from_bytes(name));
        symlink("/bin/sleep", &path).unwrap();
        Process::start(Command::new(path).arg0("sleep").arg("600"))
    });
    let line = |at: &usize, is_quiet: bool| {
        let shown = names[*at].iter().map(|byte| if byte.is_ascii_control() { b'?' } else { *byte });
        let name: Vec<_> = if is_quiet { vec![] } else { [b' '].into_iter().chain(shown).collect() };
        [children[*at].0.id().to_string().as_bytes(), &name, b"\n"].concat()
    };
    for (args, found) in [
        (&[&b"lendir one"[..]][..], &[0, 1][..]),
        (&[b"-x", b"lendir one"], &[0]),
        (&[b"lendir one", b"-qx"], &[0]),
        (&[b"-q", b"a lendir", b"no process", b"\xfe l"], &[1, 2]),
        (&[b"a\tb\nc\x1b\x7f"], &[3]),
        (&[b"-q", b"--", b"-q lendir"], &[4]),
        (&[b"-x", b"", b"a?b?c??", b"endir one"], &[]),
    ] {
        let output = run(example("pids").args(args.iter().map(|arg| OsStr::from_bytes(arg))));
        let is_quiet = args.iter().any(|arg| matches!(*arg, b"-q" | b"-qx"));
        assert_eq!(output.stdout, found.iter().flat_map(|at| line(at, is_quiet)).collect::<Vec<_>>(), "{args:?}");
        assert_eq!((output.stderr.len(), output.status.code()), (0, Some(i32::from(found.is_empty()))));
    }
    let itself = dir.path().join("lendir itself");
    symlink(example("pids").get_program(), &itself).unwrap();
    assert_eq!(run(Command::new(itself).arg("lendir itself")).status.code(), Some(1));
}

#[test]
fn another_procfs_is_read_and_what_ended_midway_left_out() {
    let dir = Scratch::new();
    for pid in ["7", "4294967295", "sys", "08"] {
        fs::create_dir(dir.path().join(pid)).unwrap();
    }
    fs::write(dir.path().join("4294967295/comm"), "still here\n").unwrap();
    let output = run(example("pids").arg("--proc").arg(dir.path()));
    assert_eq!((&*output.stdout, output.status.code()), (&b"4294967295 still here\n"[..], Some(0)));
    let output = run(example("pids").arg("--proc=/nowhere"));
    let error = b"pids: /nowhere: No such file or directory (os error 2)\n";
    assert_eq!((&*output.stderr, output.status.code()), (&error[..], Some(2)));
}
