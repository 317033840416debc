//! Directories to read, and the examples that read them.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A temporary directory with `count` empty files, named by numbers as processes are.
pub fn numbered(count: usize) -> TempDir {
    let dir = tempfile::tempdir().expect("a temporary directory");
    for number in 1..=count {
        make_file(&dir.path().join(number.to_string()));
    }
    dir
}

pub fn make_file(path: &Path) {
    File::create_new(path).expect("a new file");
}

/// The example that `cargo test` built beside this very program.
pub fn example(name: &str) -> Command {
    let tests = std::env::current_exe().unwrap();
    let path = tests.ancestors().nth(2).unwrap().join("examples").join(name);
    assert!(path.exists(), "{} is built by `cargo test` and `cargo build --examples`", path.display());
    Command::new(path)
}

pub fn run(command: &mut Command) -> Output {
    command.output().expect("the program runs")
}

/// Checks that the example ends quietly, as if it were done, when nobody reads its standard output any more.
#[allow(clippy::incompatible_msrv, reason = "only the crate and its examples keep to the oldest Rust")]
pub fn check_broken_pipe(name: &str, args: &[&str]) {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = run_into(example(name).args(args), writer);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

/// Checks that the example reports that its standard output cannot be written to.
pub fn check_full_device(name: &str, args: &[&str]) {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = run_into(example(name).args(args), full);
    assert!(matches!(output.status.code(), Some(1 | 2)), "{output:?}");
    assert!(output.stderr.starts_with(format!("{name}: No space left on device").as_bytes()), "{output:?}");
}

fn run_into(command: &mut Command, stdout: impl Into<Stdio>) -> Output {
    command.stdout(stdout).stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap()
}

/// Checks that `--help` prints the text at the head of the example's source.
pub fn check_help(name: &str) {
    let output = run(example(name).arg("--help"));
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
    let help = String::from_utf8(output.stdout).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name).with_extension("rs");
    let source = std::fs::read_to_string(source).unwrap();
    assert!(help.starts_with(&format!("Usage: {name} ")) && help.contains("Exit status: 0"), "{help}");
    assert!(source.contains(&format!("\n\nconst HELP: &str = \"\\\n{help}\";\n\nuse ")), "{help}");
}

/// Checks that the example prints nothing for `args` but one line, which says `complaint` and leads to `--help`.
pub fn check_usage_error(name: &str, args: &[&str], complaint: &str) {
    let output = run(example(name).args(args));
    assert!(matches!(output.status.code(), Some(1 | 2)) && output.stdout.is_empty(), "{args:?}: {output:?}");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), format!("{name}: {complaint}; try --help\n"));
}
