//! The examples, as programs, where directories list no types: of the same tree, each says and does what it does elsewhere.

use crate::file_systems::FileSystem;
use crate::mounted::{Mounted, Part};
use crate::support::example::example;
use crate::support::machine;
use crate::support::process::{NOBODY, as_nobody};
use crate::support::tree;
use lendir::FileType;
use rustix::fs::{CWD, Mode, mkfifoat};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::path::Path;
use std::process::Command;

/// One after another, in the same tree.
const RUNS: [&[&str]; 21] = [
    &["count"],
    &["sorted"],
    &["sorted", "a/b"],
    &["find"],
    &["find", "-type", "f"],
    &["find", "-type", "d", "-j3"],
    &["find", "link", "a", "-type", "l"],
    &["find", "-maxdepth", "2", "-name", "*e*"],
    &["du", "-s"],
    &["du", "-j1"],
    &["du", "-j1", "a", "link", "twice"],
    &["grep", "needle"],
    &["grep", "-j1", "needle", "a", "link", "pipe"],
    &["rm", "a", "a/b/deep/needle", "missing"],
    &["find"],
    &["rm", "-r", "a/b", "link"],
    &["find"],
    &["rm", "-rfx", "a", "other", "missing"],
    &["find"],
    &["rm", "-r", "all"],
    &["count"],
];

#[test]
fn tell_and_remove_the_same_where_directories_list_no_types() {
    let _watchdog = machine::watchdog();
    let outcomes = |system: &str| FileSystem::named(system).mounted(fill, outcomes);
    let compared = outcomes("ext4").and_then(|typed| Ok((typed, outcomes("ext4 ^filetype")?)));
    let compared = compared.map(|(typed, untyped)| {
        for ((typed, untyped), run) in typed.iter().zip(&untyped).zip(RUNS) {
            assert_eq!(untyped, typed, "{run:?}");
        }
        assert_eq!(typed.first().unwrap().0, ["23\n"]);
        assert_eq!(typed.last().unwrap().0, ["3\n"]);
        RUNS.len()
    });
    machine::report(
        "examples without types",
        compared,
        "runs of the examples that tell and do what they do where types are listed",
    );
}

/// In the directory `tree`, which belongs to nobody, as all in it does.
fn fill(at: &Path, _: Part) {
    let tree = &at.join("tree");
    fs::create_dir(tree).unwrap();
    chown(tree, Some(NOBODY), Some(NOBODY)).unwrap();
    as_nobody(|| {
        tree::make(tree, &["a/b/deep/below/", "a/b/empty/", "a/.hidden/", "other/new\nline/", "all/deep/", "all/file"]);
        for file in ["needle", "a/needle", "a/b/deep/needle", "a/.hidden/needle", "other/new\nline/needle"] {
            fs::write(tree.join(file), format!("a needle\nnothing\n{}needle\n", "x".repeat(2000))).unwrap();
        }
        for (target, link) in
            [("a", "link"), ("../../other", "a/b/link"), ("needle", "a/needle link"), ("x", "other/x")]
        {
            symlink(target, tree.join(link)).unwrap();
        }
        fs::hard_link(tree.join("a/needle"), tree.join("twice")).unwrap();
        for pipe in ["pipe", "a/pipe"] {
            mkfifoat(CWD, tree.join(pipe), Mode::RWXU).unwrap();
        }
    });
}

/// What each of the [`RUNS`] prints, its errors, and its exit status. Lines are sorted: each file system has an order of its own.
fn outcomes(mounted: &Mounted) -> Vec<(Vec<String>, Vec<String>, Option<i32>)> {
    let tree = mounted.at.join("tree");
    let entry_has_type = lendir::read_dir(&tree).unwrap().next().unwrap().unwrap().d_type() != FileType::Unknown;
    assert_eq!(entry_has_type, mounted.system.has_types);
    // Not everybody can reach the programs where cargo built them. If this process wrote the copies, one that another test forks
    // meanwhile would have them open, and a program that is open for writing does not start.
    let here = mounted.at.parent().expect("BUG: it is mounted at /");
    let programs = RUNS.map(|run| example(run[0]).get_program().to_owned()).into_iter().collect::<BTreeSet<_>>();
    assert!(Command::new("cp").args(programs).arg(here).status().unwrap().success());
    let lines = |text: &[u8]| {
        let mut lines: Vec<_> = String::from_utf8_lossy(text).split_inclusive('\n').map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    let outcome = |run: &[&str]| {
        let output =
            Command::new(here.join(run[0])).args(&run[1..]).current_dir(&tree).env("LC_ALL", "C").output().unwrap();
        (lines(&output.stdout), lines(&output.stderr), output.status.code())
    };
    as_nobody(|| RUNS.map(outcome).into())
}
