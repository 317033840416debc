//! The example `watch`, as a program: it reports processes that the test starts and ends.

use crate::fixture::example;
use crate::machine::watchdog;
use crate::support::process::Process;
use crate::support::scratch::Scratch;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

#[test]
fn reports_a_process_that_appears_and_vanishes() {
    let _watchdog = watchdog();
    let dir = Scratch::new();
    let path = dir.path().join("a\tb\nc\x1b\x7f");
    symlink("/bin/sh", &path).unwrap();
    // A subshell begins with the name of its shell.
    let mut shell = Command::new(path);
    shell.arg0("sh").args(["-c", "read start; (read stop); :"]).stdin(Stdio::piped());
    let mut shell = Process::start(&mut shell);

    let mut watch = Process::start(example("watch").args(["-n", "0.02"]).stdout(Stdio::piped()));
    let mut lines = BufReader::new(watch.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    let first = lines.next().unwrap();
    assert!(first.starts_with("watching ") && first.ends_with(" processes"), "{first}");
    let mut stdin = shell.0.stdin.take().unwrap();
    stdin.write_all(b"start\n").unwrap();
    let appeared = lines.find(|line| line.starts_with("+ ") && line.ends_with(" a?b?c??")).unwrap();
    drop(stdin);
    let vanished = format!("- {}", appeared.split(' ').nth(1).unwrap());
    assert!(lines.any(|line| line == vanished));
    assert!(shell.0.wait().unwrap().success());
}
