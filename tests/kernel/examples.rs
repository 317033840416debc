//! The examples, run as programs on a file system whose directories list no types.

use crate::file_systems::FileSystem;
use crate::mounted::{Mounted, Part};
use crate::support::example::example;
use crate::support::prelude::*;
use crate::support::process::NOBODY;
use rustix::fs::{CWD, Mode, mkfifoat};
use std::os::unix::fs::chown;

/// The commands, which run one after another in the same tree.
const RUNS: [&[&str]; 17] = [
    &["count"],
    &["sorted", "a/b"],
    &["find"],
    &["find", "-j", "3", "link", "a"],
    &["du", "-j", "1", "a", "link", "twice"],
    &["grep", "needle"],
    &["grep", "needle", "a", "link", "pipe"],
    &["compare", "a", "deep"],
    &["manifest", "."],
    &["copy", "a", "other/copy"],
    &["rm", "a", "a/b/deep/needle", "missing"],
    &["find"],
    &["rm", "-r", "a/b", "link"],
    &["find"],
    &["rm", "-r", "a", "other", "missing"],
    &["find"],
    &["count"],
];

/// On a file system whose directories list no types, each example prints and removes the same as on
/// one whose directories list them.
#[test]
fn examples_need_no_listed_types() {
    let _watchdog = machine::watchdog();
    let outcomes = |system: &str| FileSystem::named(system).mounted(fill, outcomes);
    let compared = outcomes("ext4").and_then(|typed| Ok((typed, outcomes("ext4 ^filetype")?)));
    let compared = compared.map(|(typed, untyped)| {
        for ((typed, untyped), run) in typed.iter().zip(&untyped).zip(RUNS) {
            assert_eq!(untyped, typed, "{run:?}");
        }
        assert_eq!([&typed[0].0, &typed[RUNS.len() - 1].0], [&["2520\n"], &["5\n"]]);
    });
    machine::skip_unless("examples without types", compared);
}

/// Makes the directory `tree`, which belongs to an ordinary user with all its contents.
fn fill(at: &Path, _: Part) {
    let tree = &at.join("tree");
    fs::create_dir(tree).unwrap();
    chown(tree, Some(NOBODY), Some(NOBODY)).unwrap();
    as_nobody(|| {
        tree::make(tree, &["a/b/deep/below/", "a/b/empty/", "other/new\nline/", "deep/er/"]);
        // So many that `rm` sorts them if it knows their types.
        fs::create_dir(tree.join("other/many")).unwrap();
        for number in 0..2500 {
            fs::write(tree.join(format!("other/many/{number}")), "").unwrap();
        }
        for file in ["needle", "a/needle", "a/b/deep/needle", "other/new\nline/needle"] {
            fs::write(tree.join(file), "a needle\nnothing\nneedle\n").unwrap();
        }
        for (target, link) in [("a", "link"), ("../../other", "a/b/link"), ("x", "other/x")] {
            symlink(target, tree.join(link)).unwrap();
        }
        fs::hard_link(tree.join("a/needle"), tree.join("twice")).unwrap();
        for pipe in ["pipe", "a/pipe"] {
            mkfifoat(CWD, tree.join(pipe), Mode::RWXU).unwrap();
        }
    });
}

/// Returns the output, the errors and the exit status of each of the [`RUNS`]. Lines are sorted,
/// because the order depends on the file system.
fn outcomes(mounted: &Mounted) -> Vec<(Vec<String>, Vec<String>, Option<i32>)> {
    let tree = mounted.at.join("tree");
    let entry_has_type =
        lendir::read_dir(&tree).unwrap().next().unwrap().unwrap().d_type() != FileType::Unknown;
    assert_eq!(entry_has_type, mounted.system.has_types);
    // The programs are copied, because an ordinary user may lack permission to search the directory
    // where cargo built them. `cp` writes the copies, because a program that is open for writing
    // does not start. A process that another test forks meanwhile would inherit a descriptor for
    // writing from this process.
    let here = mounted.at.parent().expect("BUG: it is mounted at /");
    let programs = RUNS
        .map(|run| example(run[0]).get_program().to_owned())
        .into_iter()
        .collect::<BTreeSet<_>>();
    assert!(Command::new("cp").args(programs).arg(here).status().unwrap().success());
    let lines = |text: &[u8]| {
        let mut lines: Vec<_> =
            String::from_utf8_lossy(text).split_inclusive('\n').map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    };
    as_nobody(|| {
        let outcomes = RUNS.map(|run| {
            let output = Command::new(here.join(run[0]))
                .args(&run[1..])
                .current_dir(&tree)
                .output()
                .unwrap();
            (lines(&output.stdout), lines(&output.stderr), output.status.code())
        });
        outcomes.into()
    })
}
