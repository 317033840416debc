//! The example `watch`, as a program: processes that the test starts appear and vanish before its eyes.

use crate::fixture::{check_broken_pipe, check_full_device, check_help, check_usage_error, example, run};
use crate::machine::{Watchdog, watchdog};
use crate::support::process::Process;
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::process::{ChildStdout, Command, Stdio};

/// A `watch` that runs until it is dropped, and its lines after the first.
struct Watch {
    lines: Lines<BufReader<ChildStdout>>,
    _program: Process,
    _watchdog: Watchdog,
}

impl Watch {
    fn start() -> Self {
        let watchdog = watchdog();
        let mut program = Process::start(example("watch").args(["-n", "0.02"]).stdout(Stdio::piped()));
        let mut lines = BufReader::new(program.0.stdout.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        assert!(first.starts_with("watching ") && first.ends_with(" processes"), "{first}");
        Self { lines, _program: program, _watchdog: watchdog }
    }

    /// The next line that is wanted; lines about other processes are passed over.
    fn wait_for(&mut self, wanted: impl Fn(&str) -> bool) -> String {
        self.lines.by_ref().map(Result::unwrap).find(|line| wanted(line)).expect("`watch` ended before the line came")
    }
}

#[test]
fn reports_a_process_that_appears_and_vanishes() {
    let mut watch = Watch::start();
    let child = Process::start(Command::new("sleep").arg("600"));
    let pid = child.0.id();
    let appeared = format!("+ {pid} ");
    // A child that is seen before its exec still has the name of this program, so only that it has one is certain.
    assert!(watch.wait_for(|line| line.starts_with(&appeared)).len() > appeared.len());

    drop(child);
    let vanished = format!("- {pid}");
    watch.wait_for(|line| line == vanished);
}

/// A subshell has the name of its shell from the beginning.
#[test]
fn control_characters_are_printed_as_question_marks() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a\tb\nc\x1b\x7f");
    symlink("/bin/sh", &path).unwrap();
    let mut shell = Command::new(path);
    shell.arg0("sh").args(["-c", "read start; (read stop); :"]).stdin(Stdio::piped());
    let mut shell = Process::start(&mut shell);

    let mut watch = Watch::start();
    let mut stdin = shell.0.stdin.take().unwrap();
    stdin.write_all(b"start\n").unwrap();
    watch.wait_for(|line| line.starts_with("+ ") && line.ends_with(" a?b?c??"));
    drop(stdin);
    assert!(shell.0.wait().unwrap().success());
}

#[test]
fn ends_after_a_number_of_scans_and_says_their_cost() {
    let _watchdog = watchdog();
    for (args, begin, end) in [
        (&["-n", "0.01", "-c", "1"][..], "1 scan took ", "s\n"),
        (&["-n", "0.01", "-c", "3"], "3 scans took ", "s each\n"),
        (&["-c3", "-n.01"], "3 scans took ", "s each\n"),
    ] {
        let output = run(example("watch").args(args));
        assert_eq!(output.status.code(), Some(0));
        assert!(output.stdout.starts_with(b"watching "));
        let cost = String::from_utf8(output.stderr).unwrap();
        assert!(cost.starts_with(begin) && cost.ends_with(end) && cost.lines().count() == 1, "{cost}");
    }
}

#[test]
fn help_is_the_text_at_the_head() {
    check_help("watch");
}

#[test]
fn wrong_usage_is_named() {
    for seconds in [&["-n"][..], &["-n", "soon"], &["-n", "-1"], &["-n", "NaN"], &["-n", "1e300"], &["-n", "--help"]] {
        check_usage_error("watch", seconds, "-n needs a number of seconds");
    }
    for count in [&["-c"][..], &["-c", "0"], &["-c", "-1"], &["-c", "1.5"], &["-c", "4294967296"]] {
        check_usage_error("watch", count, "-c needs a number of scans, 1 or more");
    }
    check_usage_error("watch", &["-c0"], "-c needs a number of scans, 1 or more");
    check_usage_error("watch", &["-nsoon"], "-n needs a number of seconds");
    check_usage_error("watch", &["-z"], "unknown option -z");
    check_usage_error("watch", &["-zn1"], "unknown option -z");
    check_usage_error("watch", &["--count"], r#"unknown option "--count""#);
    check_usage_error("watch", &["sleep"], r#"unexpected argument "sleep""#);
    check_usage_error("watch", &["--", "-n"], r#"unexpected argument "-n""#);
}

#[test]
fn broken_pipe_is_quiet() {
    check_broken_pipe("watch", &[]);
}

#[test]
fn full_device_is_reported() {
    check_full_device("watch", &[]);
}
