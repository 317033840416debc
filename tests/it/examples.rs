//! What all examples have in common, and the lessons `count` and `sorted`, as programs.

use crate::fixture::{
    check_broken_pipe, check_full_device, check_help, check_usage_error, example, mixed, run, run_on_terminal,
    run_unprivileged, while_root_is_swapped,
};
use crate::machine::skip;
use crate::support::tree::Tree;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

/// What a user without privileges gets: the lines, sorted, the number of errors, and the exit status.
pub fn outcome(mut command: Command, dir: &Path, args: &[&str]) -> (Vec<String>, usize, Option<i32>) {
    let output = run_unprivileged(command.current_dir(dir).env("LC_ALL", "C").args(args));
    let lines = output.stdout.split_inclusive(|byte| matches!(byte, b'\n' | b'\0'));
    let mut lines: Vec<_> = lines.map(|line| line.escape_ascii().to_string()).collect();
    lines.sort_unstable();
    (lines, String::from_utf8_lossy(&output.stderr).lines().count(), output.status.code())
}

/// Checks that our program, with each option of `threads`, has the outcome of GNU's, with the option `own`.
pub fn assert_same(program: &str, dir: &Path, threads: &[&str], own: &str, args: &[&str]) {
    let expected = outcome(Command::new(program), dir, &[&[own], args].concat());
    for threads in threads {
        assert_eq!(outcome(example(program), dir, &[&[*threads], args].concat()), expected, "{threads} {args:?}");
    }
}

#[test]
fn help_is_the_text_at_the_head_of_a_lesson() {
    for name in ["du", "find", "grep", "pids", "rm", "watch"] {
        check_help(name);
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name).with_extension("rs");
        assert!(fs::read_to_string(source).unwrap().lines().count() <= 150, "{name} is too long for a lesson");
    }
}

#[test]
fn wrong_usage_is_named() {
    let cases: [(&str, &str, &[&[&str]]); 13] = [
        ("du", "unknown option \"-szx\"", &[&[".", "-szx"]]),
        ("find", "unknown option \"-mindepth\"", &[&[".", "-mindepth", "1"]]),
        ("find", "unknown option \"!\"", &[&[".", "!", "-name", "x"]]),
        ("find", "-type needs one of f, d, l", &[&["-type"], &["-type", "fd"], &["-type", "F"]]),
        ("find", "-maxdepth needs a number", &[&["-maxdepth"], &["-maxdepth", "-1"], &["-maxdepth", "x", "."]]),
        ("du", "-j needs a number", &[&["-j"], &["-jx"], &["-j", "-1"]]),
        ("grep", "unknown option \"-i\"", &[&["-i", "x"]]),
        ("grep", "TEXT is missing", &[&[], &["-r", "--"]]),
        ("pids", "-x needs a NAME", &[&["-x"]]),
        ("rm", "unknown option \"-ri\"", &[&["-ri", "missing"]]),
        ("rm", "a PATH is missing", &[&[], &["-x", "--"]]),
        ("watch", "-n needs a number of seconds", &[&["-n"], &["-nsoon"], &["-n", "-1"], &["-n", "1e300"]]),
        ("watch", "-c needs a number of scans, 1 or more", &[&["-c", "0"], &["-c1.5"], &["-c", "4294967296"]]),
    ];
    for (name, complaint, all_args) in cases {
        for args in all_args {
            check_usage_error(name, args, complaint);
        }
    }
}

#[test]
fn output_that_nobody_reads_ends_the_program_quietly_and_a_full_device_is_reported() {
    for (name, args) in [
        ("du", &["-j1", "/sys/class"][..]),
        ("du", &["-j4", "/sys/bus", "/sys/class"]),
        ("find", &["-j2", "/sys/class"]),
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

/// A link that others put in the place of a PATH is not followed.
#[test]
fn link_swapped_in_at_the_root_is_not_followed() {
    let at = Tree::of(&["root/inside/", "outside/outside/"]);
    symlink("outside", at.path().join("link")).unwrap();
    for name in ["du", "find"] {
        let text = while_root_is_swapped(at.path(), || run(example(name).current_dir(at.path()).arg("root")));
        assert!(text.contains("inside") && !text.contains("outside"), "{name}: {text}");
    }
}
