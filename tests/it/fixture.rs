//! Directories to read, what a reader saw in them, and the examples that read them.

use lendir::{Entries, Entry, FileType};
use std::io;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// What identifies an entry: name, inode, type.
pub type Seen = (Vec<u8>, u64, FileType);

pub fn seen(entry: &Entry<'_>) -> Seen {
    let file_type = entry.resolve_file_type().expect("the type of an entry that stays");
    (entry.name().to_vec(), entry.ino(), file_type)
}

/// What is left of `entries`, in the order it came.
pub fn drain(entries: &mut Entries<'_>) -> io::Result<Vec<Seen>> {
    let mut all = Vec::new();
    while let Some(entry) = entries.next()? {
        all.push(seen(&entry));
    }
    Ok(all)
}

pub fn names(seen: Vec<Seen>) -> Vec<Vec<u8>> {
    seen.into_iter().map(|(name, ..)| name).collect()
}

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
