//! What all examples have in common, and the lessons `count` and `sorted`, as programs.

use crate::fixture::{check_broken_pipe, check_full_device, example, mixed, run, run_on_terminal, run_unprivileged};
use crate::machine::skip;
use crate::support::tree::Tree;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// What a user without privileges gets: the lines, sorted, the number of errors, and the exit status.
pub fn outcome(mut command: Command, dir: &Path, args: &[&str]) -> (Vec<String>, usize, Option<i32>) {
    let output = run_unprivileged(command.current_dir(dir).env("LC_ALL", "C").args(args));
    (sorted(&output.stdout), String::from_utf8_lossy(&output.stderr).lines().count(), output.status.code())
}

/// The lines of [`outcome`] for a program that prints these, in any order.
pub fn lines(lines: &[&str], end: &str) -> Vec<String> {
    sorted(lines.iter().flat_map(|line| [line, end]).collect::<String>().as_bytes())
}

fn sorted(text: &[u8]) -> Vec<String> {
    let lines = text.split_inclusive(|byte| matches!(byte, b'\n' | b'\0'));
    let mut lines: Vec<_> = lines.map(|line| line.escape_ascii().to_string()).collect();
    lines.sort_unstable();
    lines
}

#[test]
fn wrong_usage_is_named() {
    for (name, args, complaint) in [
        ("du", &[".", "-szx"][..], "unknown option \"-szx\""),
        ("find", &[".", "!", "-name", "x"], "unknown option \"!\""),
        ("grep", &["-r", "--"], "TEXT is missing"),
        ("pids", &["-x"], "-x needs a NAME"),
        ("rm", &["-ri", "missing"], "unknown option \"-ri\""),
        ("watch", &["-n", "1e300"], "-n needs a number of seconds"),
    ] {
        let output = run(example(name).args(args));
        assert!(matches!(output.status.code(), Some(1 | 2)) && output.stdout.is_empty(), "{args:?}: {output:?}");
        assert_eq!(String::from_utf8(output.stderr).unwrap(), format!("{name}: {complaint}; try --help\n"));
    }
}

#[test]
fn output_that_nobody_reads_ends_the_program_quietly_and_a_full_device_is_reported() {
    for (name, args) in [
        ("du", &["-j4", "/sys/bus", "/sys/class"][..]),
        ("find", &["-j2", "/sys/bus"]),
        ("grep", &["-j2", "", "/proc/self/stat", "/proc/self/maps"]),
        ("pids", &[]),
        ("rm", &["--help"]),
        ("watch", &[]),
    ] {
        check_broken_pipe(name, args);
        check_full_device(name, args);
    }
}

#[test]
fn control_characters_are_question_marks_on_a_terminal() {
    let tree = Tree::of(&["new\nline/"]);
    fs::write(tree.path().join("new\nline/\x1b[31mred\u{9b}"), "\ttext\x1b[0m\n").unwrap();
    for (name, args, text) in [
        ("find", &["new\nline", "miss\x1bing"][..], "new?line\r\nnew?line/?[31mred?\r\n"),
        ("find", &["-print0", "-type", "d", "new\nline", "miss\x1bing"], "new\r\nline\0"),
        ("grep", &["text", "new\nline", "miss\x1bing"], "text?[0m\r\n"),
        ("du", &["-s", "new\nline", "miss\x1bing"], "new?line\r\n"),
        ("rm", &["miss\x1bing"], ""),
    ] {
        let mut command = example(name);
        command.current_dir(tree.path()).args(args);
        let Some((shown, errors)) = run_on_terminal(command) else {
            return skip("control_characters_are_question_marks_on_a_terminal", "pseudo-terminals");
        };
        assert!(shown.ends_with(text), "{name}: {shown:?}");
        assert_eq!(errors, format!("{name}: miss?ing: No such file or directory (os error 2)\n"));
    }
    let mut sorted = example("sorted");
    sorted.arg(tree.path().join("new\nline"));
    assert_eq!(run_on_terminal(sorted), Some(("?[31mred?\r\n".into(), String::new())));
}

#[test]
fn sorted_prints_all_names_by_bytes() {
    let root = mixed();
    let mut names: Vec<_> = fs::read_dir(root.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    let lines: Vec<u8> = names.iter().flat_map(|name| [name.as_encoded_bytes(), b"\n"].concat()).collect();
    assert_eq!(run(example("sorted").arg(root.path())).stdout, lines);
    assert_eq!(run(example("sorted").current_dir(root.path())).stdout, lines);
}

#[test]
fn lessons_say_in_a_readable_line_what_they_cannot_read() {
    let tree = Tree::of(&["dir/a", "dir/b", "locked/below/", "file"]);
    let check = |args: &[&str], text: &str, errors: &str| {
        let output = run_unprivileged(example(args[0]).current_dir(tree.path()).args(&args[1..]));
        assert_eq!((str::from_utf8(&output.stdout), str::from_utf8(&output.stderr)), (Ok(text), Ok(errors)));
        assert_eq!(output.status.success(), errors.is_empty());
    };
    check(&["count"], "6\n", "");
    check(&["count", "--help"], "", "count: --help: No such file or directory (os error 2)\n");
    check(&["sorted", "file"], "", "sorted: file: Not a directory (os error 20)\n");
    fs::set_permissions(tree.path().join("locked"), Permissions::from_mode(0o000)).unwrap();
    check(&["count"], "5\n", "count: ./locked: Permission denied (os error 13)\n");
}
