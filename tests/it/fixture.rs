//! Directories to read, and the examples that read them.

use std::path::Path;
use std::process::{Command, Output};
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
    std::fs::File::create_new(path).expect("a new file");
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
