//! The examples, which tests run as programs.

use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

/// The example that cargo built next to this program.
///
/// `cargo test --test it` does not build it, so this fails if a source has changed since. To build it from here would take the
/// profile, target and flags of this program.
pub fn example(name: &str) -> Command {
    let tests = std::env::current_exe().unwrap();
    let path = tests.ancestors().nth(2).unwrap().join("examples").join(name);
    let is_fresh = is_newer_than_its_sources(&path).unwrap_or(false);
    assert!(is_fresh, "{} is missing or stale: `cargo test` and `cargo build --examples` build it", path.display());
    Command::new(path)
}

/// Next to what it builds, cargo lists the sources: `program: source source`, with a backslash before a space in a path.
fn is_newer_than_its_sources(program: &Path) -> io::Result<bool> {
    let modified = |path: &Path| fs::metadata(path)?.modified();
    let built = modified(program)?;
    let paths = fs::read_to_string(program.with_extension("d"))?.trim_end().replace("\\ ", "\0");
    let mut sources = paths.split(' ').skip(1).map(|path| modified(Path::new(&path.replace('\0', " "))));
    sources.try_fold(true, |is_newer, source| Ok(is_newer && source? <= built))
}
