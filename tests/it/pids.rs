//! The example `pids`, as a program: against what `ps -e` says of children made for it.

use crate::fixture::{example, run};
use crate::machine::skip;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

fn pids() -> Command {
    example("pids")
}

/// Processes with command names of our choice, ended and reaped on drop.
struct Children {
    dir: tempfile::TempDir,
    processes: Vec<Child>,
}

impl Children {
    fn named(names: &[&[u8]]) -> Self {
        let mut children = Self { dir: tempfile::tempdir().unwrap(), processes: Vec::new() };
        for name in names {
            // The command name of a process is that of its file: /bin/sleep, under another name.
            let path = children.dir.path().join(OsStr::from_bytes(name));
            std::fs::copy("/bin/sleep", &path).unwrap();
            children.processes.push(Command::new(path).arg("600").spawn().unwrap());
        }
        children
    }

    fn ids(&self) -> Vec<u32> {
        self.processes.iter().map(Child::id).collect()
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

impl Drop for Children {
    fn drop(&mut self) {
        for process in &mut self.processes {
            process.kill().expect("a child to end");
            process.wait().expect("a child to reap");
        }
    }
}

#[test]
fn agrees_with_ps() {
    let children = Children::named(&[b"first", b"second child", b"fifteen letters"]);
    let Ok(ps) = Command::new("ps").args(["-e", "-o", "pid=,comm="]).output() else {
        return skip("agrees_with_ps", "no ps");
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
fn quiet_prints_every_pid_once_ascending() {
    let children = Children::named(&[b"quiet"]);
    let output = run(pids().arg("-q"));
    let all: Vec<u32> = String::from_utf8(output.stdout).unwrap().lines().map(|line| line.parse().unwrap()).collect();
    assert!(all.is_sorted_by(|a, b| a < b));
    assert!(all.contains(&std::process::id()) && all.contains(&children.ids()[0]));
}

#[test]
fn no_match_is_status_1_and_trouble_is_status_2() {
    let output = run(pids().arg("no process is named like this"));
    assert_eq!((output.status.code(), output.stdout.len(), output.stderr.len()), (Some(1), 0, 0));
    for args in [&["--proc", "/nowhere"][..], &["--proc"], &["-x"]] {
        let output = run(pids().args(args));
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{args:?}");
        assert!(output.stderr.starts_with(b"pids: "), "{args:?}");
    }
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
fn who_vanished_midway_is_gone_and_not_an_error() {
    let (_dir, args) = fake_proc(&[("7", None), ("4294967295", Some(b"still here\n")), ("sys", None), ("08", None)]);
    let output = run(pids().args(&args));
    assert!(output.status.success() && output.stderr.is_empty());
    assert_eq!(output.stdout, b"4294967295 still here\n");
}

#[test]
fn a_reader_that_leaves_ends_it_quietly() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = pids().stdout(writer).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
    assert!(output.status.success(), "{:?}", output.status);
    assert!(output.stderr.is_empty());
}
