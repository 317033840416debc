//! The example `pids`, as a program: against what `ps -e` says of children made for it.

use crate::fixture::{check_broken_pipe, check_full_device, check_help, check_usage_error, example, run};
use crate::machine::skip;
use crate::support::process::Process;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn pids() -> Command {
    example("pids")
}

/// Processes with command names of our choice.
struct Children {
    dir: tempfile::TempDir,
    processes: Vec<Process>,
}

impl Children {
    fn named(names: &[&[u8]]) -> Self {
        let mut children = Self { dir: tempfile::tempdir().unwrap(), processes: Vec::new() };
        for name in names {
            // The kernel takes the command name from the path that was executed, which may be a link.
            let path = children.dir.path().join(OsStr::from_bytes(name));
            symlink("/bin/sleep", &path).unwrap();
            children.processes.push(Process::start(Command::new(path).arg0("sleep").arg("600")));
        }
        children
    }

    fn ids(&self) -> Vec<u32> {
        self.processes.iter().map(|process| process.0.id()).collect()
    }

    /// The lines that begin with the PID of one of them.
    fn lines_of(&self, output: &Output) -> Vec<Vec<u8>> {
        let ids = self.ids();
        let is_ours = |line: &&[u8]| {
            let line = line.trim_ascii_start();
            let pid = line.split(|byte| *byte == b' ').next().unwrap();
            std::str::from_utf8(pid).ok().and_then(|pid| pid.parse().ok()).is_some_and(|pid| ids.contains(&pid))
        };
        output
            .stdout
            .split(|byte| *byte == b'\n')
            .filter(is_ours)
            .map(|line| line.trim_ascii_start().to_vec())
            .collect()
    }
}

#[test]
fn agrees_with_ps() {
    let children = Children::named(&[b"first", b"second child", b"fifteen letters"]);
    let Ok(ps) = Command::new("ps").args(["-e", "-o", "pid=,comm="]).output() else {
        return skip("agrees_with_ps", "ps");
    };
    let expected = children.lines_of(&ps);
    assert_eq!(expected.len(), 3);
    let output = run(&mut pids());
    assert!(output.status.success() && output.stderr.is_empty());
    assert_eq!(children.lines_of(&output), expected);
}

#[test]
fn names_are_matched_and_printed_as_bytes() {
    let children = Children::named(&[b"\xff\xfe len", b"zz lendir zz", b"zz lendir yy"]);
    let [odd, zz, yy] = children.ids().try_into().unwrap();
    let line = |pid: u32, name: &[u8]| [pid.to_string().as_bytes(), b" ", name].concat();

    let output = run(pids().arg(OsStr::from_bytes(b"\xfe l")));
    assert!(output.status.success());
    assert_eq!(output.stdout, [line(odd, b"\xff\xfe len"), vec![b'\n']].concat());

    let output = run(pids().arg("zz lendir"));
    assert_eq!(children.lines_of(&output), [line(zz, b"zz lendir zz"), line(yy, b"zz lendir yy")]);

    let output = run(pids().args(["-q", "zz lendir"]));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{zz}\n{yy}\n"));
}

#[test]
fn x_matches_whole_names() {
    let children = Children::named(&[b"lendir exact", b"lendir exactly", b"a lendir exact"]);
    let exact = children.ids()[0];
    for args in [&["-x", "lendir exact"][..], &["lendir exact", "-x"], &["-x", "--", "lendir exact"]] {
        let output = run(pids().args(args));
        assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{exact} lendir exact\n"));
    }
    let output = run(pids().args(["-qx", "lendir exact"]));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{exact}\n"));
    for part in ["", "endir exac"] {
        assert_eq!(run(pids().args(["-x", part])).status.code(), Some(1), "{part:?}");
    }
}

#[test]
fn any_of_several_names_is_enough() {
    let children = Children::named(&[b"lendir one", b"lendir two", b"lendir three"]);
    let [one, two, three] = children.ids().try_into().unwrap();
    for (args, found) in [
        (&["lendir one", "dir thr", "no process"][..], &[one, three][..]),
        (&["-x", "lendir two", "lendir", "lendir three"], &[two, three]),
        (&["lendir two", "--", "lendir two", "--no process"], &[two]),
    ] {
        let output = run(pids().arg("-q").args(args));
        assert!(output.status.success());
        let expected: String = found.iter().flat_map(|pid| [pid.to_string(), "\n".into()]).collect();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected, "{args:?}");
    }
}

#[test]
fn control_characters_match_and_print_as_question_marks() {
    let children = Children::named(&[b"a\tb\nc\x1b\x7f"]);
    let output = run(pids().arg("a\tb\nc\x1b\x7f"));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{} a?b?c??\n", children.ids()[0]));
    assert_eq!(run(pids().arg("a?b?c??")).status.code(), Some(1));
}

#[test]
fn leaves_itself_out_of_a_search() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("lendir itself");
    symlink(example("pids").get_program(), &program).unwrap();
    let search = |name| run(Command::new(&program).args(["-q", name]));
    assert_eq!(search("lendir itself").status.code(), Some(1));

    let children = Children::named(&[b"lendir itself"]);
    let namesake = format!("{}\n", children.ids()[0]);
    assert_eq!(String::from_utf8(search("lendir itself").stdout).unwrap(), namesake);

    let all = run(&mut Command::new(&program)).stdout;
    let all = String::from_utf8_lossy(&all);
    assert_eq!(all.lines().filter(|line| line.ends_with(" lendir itself")).count(), 2, "without NAME it lists all");
}

#[test]
fn quiet_prints_every_pid_once_ascending() {
    let children = Children::named(&[b"quiet"]);
    let output = run(pids().arg("-q"));
    let all: Vec<u32> = String::from_utf8(output.stdout).unwrap().lines().map(|line| line.parse().unwrap()).collect();
    assert!(all.is_sorted_by(|a, b| a < b));
    assert!(all.contains(&std::process::id()) && all.contains(&children.ids()[0]));
}

#[test]
fn no_match_is_status_1() {
    let output = run(pids().arg("no process is named like this"));
    assert_eq!((output.status.code(), output.stdout.len(), output.stderr.len()), (Some(1), 0, 0));
}

#[test]
fn an_empty_name_is_part_of_every_name() {
    let children = Children::named(&[b"named"]);
    let output = run(pids().arg(""));
    assert_eq!(children.lines_of(&output), [format!("{} named", children.ids()[0]).into_bytes()]);
}

#[test]
fn a_procfs_that_cannot_be_read_is_status_2() {
    for args in [&["--proc", "/nowhere"][..], &["--proc=/nowhere"], &["-q", "--proc=/nowhere", "name"]] {
        let output = run(pids().args(args));
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
        assert_eq!(output.stderr, b"pids: /nowhere: No such file or directory (os error 2)\n");
    }
}

#[test]
fn help_is_the_text_at_the_head() {
    check_help("pids");
}

#[test]
fn wrong_usage_is_named() {
    check_usage_error("pids", &["-z"], "unknown option -z");
    check_usage_error("pids", &["-qzx", "name"], "unknown option -z");
    check_usage_error("pids", &["--quiet"], r#"unknown option "--quiet""#);
    check_usage_error("pids", &["--process"], r#"unknown option "--process""#);
    check_usage_error("pids", &["-\x1b"], r"unknown option -\x1b");
    check_usage_error("pids", &["--proc"], "--proc needs a directory");
    check_usage_error("pids", &["-x"], "-x needs a NAME");
}

#[test]
fn two_dashes_end_the_options() {
    let children = Children::named(&[b"-q lendir", b"--help"]);
    let output = run(pids().args(["-q", "--", "-q lendir"]));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{}\n", children.ids()[0]));
    let output = run(pids().args(["-x", "--", "--help"]));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{} --help\n", children.ids()[1]));
}

/// A directory that looks like procfs.
fn fake_proc(processes: &[(&str, Option<&[u8]>)]) -> (tempfile::TempDir, [OsString; 2]) {
    let dir = tempfile::tempdir().unwrap();
    for (pid, comm) in processes {
        let process: PathBuf = dir.path().join(pid);
        std::fs::create_dir(&process).unwrap();
        if let Some(comm) = comm {
            std::fs::write(process.join("comm"), comm).unwrap();
        }
    }
    let args = ["--proc".into(), Path::as_os_str(dir.path()).into()];
    (dir, args)
}

#[test]
fn a_process_that_ends_midway_is_left_out() {
    let (_dir, args) = fake_proc(&[("7", None), ("4294967295", Some(b"still here\n")), ("sys", None), ("08", None)]);
    let [option, dir] = args.each_ref().map(|arg| arg.to_str().unwrap());
    for args in [&args[..], &[format!("{option}={dir}").into()]] {
        let output = run(pids().args(args));
        assert!(output.status.success() && output.stderr.is_empty());
        assert_eq!(output.stdout, b"4294967295 still here\n");
    }
}

#[test]
fn broken_pipe_is_quiet() {
    check_broken_pipe("pids", &[]);
}

#[test]
fn full_device_is_reported() {
    check_full_device("pids", &[]);
}
