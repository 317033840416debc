//! The instructions of loops in `tests/downstream`, a program that is compiled as users compile
//! theirs, counted by callgrind.
//!
//! `Entries::next`, or `WalkDirs::next` with `Dir::next`, and the caller's loop must share one
//! frame, because a return after a system call is mispredicted. callgrind names the functions that
//! have frames of their own. It counts instructions without noise: twice as many if the compiler
//! does not inline what is called for each entry.

use crate::support::fixture::make_file;
use crate::support::machine::{runs_long, skip};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

const TEST: &str = "next_shares_a_frame_with_the_callers_loop";
/// The profiles of `tests/downstream/Cargo.toml`. Each builds its own dependencies, so the short
/// form runs only the first.
const PROFILES: [&str; 4] = ["release", "fat", "thin", "small"];
/// The most instructions that a loop may take, as a multiple of the same loop with `RawDir` and a
/// caller that skips the dots. Only `typed` takes more than 1.06, when optimized for size.
const AT_MOST: f64 = 1.08;
/// The same for a walk, as a multiple of a walk by hand with 32 entries a directory. `WalkDirs`
/// also keeps a path and a stack of levels, and notes what the caller says of each entry: about
/// 160 for an entry, and 44,000 for its memory.
const WALK_AT_MOST: f64 = 3.5;
/// The same for a `Walk`, which first reads each directory into a listing: about 215 for an entry,
/// 50 by hand, and 97,000 for its memory.
const WALK_ENTRIES_AT_MOST: f64 = 4.6;
/// The functions of `lendir` from the caller's loop to a system call.
const INLINED: [&str; 7] =
    ["next", "next_record", "find", "advance", "descend", "step_to_visit", "visit"];

#[test]
fn next_shares_a_frame_with_the_callers_loop() {
    if !has_valgrind(TEST) {
        return;
    }
    assert_same_versions();
    let dir = tempfile::tempdir().expect("cannot make a temporary directory");
    let [files, tree] = ["files", "tree"].map(|name| dir.path().join(name));
    fs::create_dir(&files).unwrap();
    for number in 0..1024 {
        make_file(&files.join(format!("{number:016}")));
    }
    for number in 0..1024 / 32 {
        let below = tree.join(format!("{number:016}"));
        fs::create_dir_all(&below).unwrap();
        for number in 1..32 {
            make_file(&below.join(format!("{number:016}")));
        }
    }
    let profiles = if runs_long() { &PROFILES[..] } else { &PROFILES[..1] };
    let of_profiles: Vec<_> = thread::scope(|scope| {
        let paths = [&*files, &*tree];
        let runs: Vec<_> = profiles
            .iter()
            .map(|profile| scope.spawn(move || instructions(profile, paths)))
            .collect();
        runs.into_iter().map(|run| run.join().expect("the program of one profile failed")).collect()
    });

    let mut report = String::new();
    let mut all_hold = true;
    for (profile, counts) in profiles.iter().zip(&of_profiles) {
        let (raw_dir, lendir): (Vec<_>, Vec<_>) =
            counts.iter().partition(|count| count.reader == "RawDir");
        for Count { reader, name, instructions, called } in lendir {
            let (same, at_most) = match name.as_str() {
                _ if reader == "WalkDirs" => ("walk", WALK_AT_MOST),
                _ if reader == "Walk" => ("walk", WALK_ENTRIES_AT_MOST),
                "owned" => ("plain", AT_MOST),
                name => (name, AT_MOST),
            };
            let base = raw_dir
                .iter()
                .find(|count| count.name == same)
                .expect("`RawDir` has no such loop")
                .instructions;
            let ratio = f64::from(*instructions) / f64::from(base);
            writeln!(
                report,
                "{profile:8}{name:13} {instructions:7} of {base:7}: {ratio:.3} {called:?}"
            )
            .unwrap();
            all_hold &= ratio <= at_most && called.is_empty();
        }
    }
    let most = format!(
        "{AT_MOST} ({WALK_AT_MOST} for a walk, {WALK_ENTRIES_AT_MOST} for `walk`) of `RawDir`'s instructions"
    );
    assert!(all_hold, "a loop takes more than {most}, or calls one of {INLINED:?}:\n{report}");
}

/// Returns `true` if valgrind is installed. Otherwise, reports that `test` is skipped.
fn has_valgrind(test: &str) -> bool {
    let has = Command::new("valgrind").arg("--version").output().is_ok();
    if !has {
        skip(test, "valgrind");
    }
    has
}

/// Checks that the program has the same dependencies as the tests, so it needs no further
/// downloads.
fn assert_same_versions() {
    let [ours, theirs] =
        ["Cargo.lock", "tests/downstream/Cargo.lock"].map(|path| fs::read_to_string(path).unwrap());
    for checksum in theirs.lines().filter(|line| line.starts_with("checksum")) {
        assert!(
            ours.contains(checksum),
            "Cargo.lock has another version than tests/downstream/Cargo.lock: {checksum}"
        );
    }
}

struct Count {
    reader: String,
    name: String,
    instructions: u32,
    /// The functions that should be inlined but are functions of their own.
    called: Vec<String>,
}

/// Builds the program, runs it under callgrind, and returns the counts of each loop.
fn instructions(profile: &str, [files, tree]: [&Path; 2]) -> Vec<Count> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("downstream");
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--locked", "--profile", profile]);
    build.args(["--manifest-path", "tests/downstream/Cargo.toml", "--target-dir"]).arg(&target);
    // A sanitizer or a coverage tool must instrument the tests, but not the program.
    build.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS").env_remove("RUSTC_WRAPPER");
    output(&mut build);

    let profiles = tempfile::tempdir().unwrap();
    let file = profiles.path().join("out");
    let mut run = Command::new("valgrind");
    run.args(["--quiet", "--tool=callgrind"]);
    // The counts of each call of `measured` go to a file whose name begins with `file`.
    run.args(["--toggle-collect=*::measured", "--dump-after=*::measured"]);
    run.arg(format!("--callgrind-out-file={}", file.display()));
    run.arg(target.join(profile).join("lendir-downstream")).args([files, tree]);
    let lines = output(&mut run);
    let counts = lines.lines().zip(1..).map(|(line, call)| {
        let [reader, name, "1024"] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{profile}: {line}")
        };
        let (of_call, instructions) = of_call(&file, call);
        Count {
            reader: reader.to_owned(),
            name: name.to_owned(),
            instructions,
            called: of_call.lines().filter_map(called).map(str::to_owned).collect(),
        }
    });
    counts.collect()
}

/// Returns what callgrind wrote about a call, and the number of its instructions. The first
/// call is number 1.
fn of_call(file: &Path, call: usize) -> (String, u32) {
    let of_call = fs::read_to_string(file.with_extension(call.to_string())).unwrap();
    let totals = of_call
        .lines()
        .find_map(|line| line.strip_prefix("totals: "))
        .expect("callgrind wrote no totals");
    let instructions = totals.parse().unwrap();
    (of_call, instructions)
}

/// Returns the function named in `line`, such as `fn=(12) lendir::walk::WalkDirs::next`, if it must
/// be inlined.
fn called(line: &str) -> Option<&str> {
    let (_, function) = line.split_once("fn=(")?.1.split_once(") ")?;
    let is_ours = function.trim_start_matches('<').starts_with("lendir::");
    (is_ours && INLINED.contains(&function.rsplit("::").next()?)).then_some(function)
}

fn output(command: &mut Command) -> String {
    let output = command.output().expect("cannot run the program");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
