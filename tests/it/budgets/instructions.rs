//! The instructions of the loops in `tests/downstream`, a program that is compiled as users compile
//! theirs, counted by callgrind.
//!
//! `Entries::next`, or `WalkDirs::next` with `Dir::next`, and the caller's loop must share one
//! frame, because a return after a system call is mispredicted. callgrind names the functions that
//! have frames of their own. It counts without noise: twice as many if the compiler does not inline
//! what is called for each entry.

use super::INSTRUCTIONS;
use crate::support::prelude::*;

const TEST: &str = "budgets::instructions::instructions_stay_within_the_budget";
/// The profiles of `tests/downstream/Cargo.toml`. The short form runs only the first.
const PROFILES: [&str; 2] = ["release", "fat"];
/// The functions of `lendir` from the caller's loop to a system call.
const INLINED: [&str; 7] =
    ["next", "next_record", "find", "advance", "descend", "step_to_visit", "visit"];

#[test]
fn instructions_stay_within_the_budget() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return skip(TEST, "valgrind");
    }
    let dir = tempfile::tempdir().expect("cannot make a temporary directory");
    let [files, tree] = ["files", "tree"].map(|name| dir.path().join(name));
    fs::create_dir(&files).unwrap();
    (0..1024).for_each(|number| make_file(&files.join(format!("{number:016}"))));
    for number in 0..1024 / 32 {
        let below = tree.join(format!("{number:016}"));
        fs::create_dir_all(&below).unwrap();
        (1..32).for_each(|number| make_file(&below.join(format!("{number:016}"))));
    }
    let mut broken = Vec::new();
    for profile in &PROFILES[..if runs_long() { 2 } else { 1 }] {
        let counts = counts(profile, [&files, &tree]);
        assert_eq!(counts.len(), INSTRUCTIONS.len() + 2);
        let mut base = 0;
        for (name, instructions, called) in counts {
            if name.starts_with("RawDir") {
                base = instructions;
                continue;
            }
            let (_, most) = INSTRUCTIONS.iter().find(|(of, _)| *of == name).expect("no budget");
            let ratio = f64::from(instructions) / f64::from(base);
            if ratio > *most || !called.is_empty() {
                broken.push(format!("{profile}, {name}: {ratio:.3}, not {most}, calls {called:?}"));
            }
        }
    }
    assert!(broken.is_empty(), "too many instructions, or calls of {INLINED:?}: {broken:#?}");
}

/// Builds the program, runs it under callgrind, and returns the name of each loop, its instructions,
/// and the functions that should be inlined but have a frame.
fn counts(profile: &str, [files, tree]: [&Path; 2]) -> Vec<(String, u32, Vec<String>)> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("downstream");
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--locked", "--profile", profile]);
    build.args(["--manifest-path", "tests/downstream/Cargo.toml", "--target-dir"]).arg(&target);
    // A sanitizer or a coverage tool must instrument the tests, but not the program.
    build.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS").env_remove("RUSTC_WRAPPER");
    output(&mut build);

    let outputs = tempfile::tempdir().unwrap();
    let file = outputs.path().join("out");
    let mut run = Command::new("valgrind");
    run.args(["--quiet", "--tool=callgrind"]);
    // The counts of each call of `measured` go to a file whose name begins with `file`.
    run.args(["--toggle-collect=*::measured", "--dump-after=*::measured"]);
    run.arg(format!("--callgrind-out-file={}", file.display()));
    run.arg(target.join(profile).join("lendir-downstream")).args([files, tree]);
    let lines = output(&mut run);
    let counts = lines.lines().zip(1..).map(|(line, call)| {
        let name = line.strip_suffix(": 1024").expect("a loop has missed entries");
        let of_call = fs::read_to_string(file.with_extension(call.to_string())).unwrap();
        let total = of_call.lines().find_map(|line| line.strip_prefix("totals: ")).unwrap();
        let called = of_call.lines().filter_map(called).map(str::to_owned).collect();
        (name.to_owned(), total.parse().unwrap(), called)
    });
    counts.collect()
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
