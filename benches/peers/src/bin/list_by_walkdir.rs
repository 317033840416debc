//! Prints every path in the trees that it is passed, sorted, by the loop of walkdir's documentation.
//! `.ci/run programs` swaps a directory of such a tree, as the README shows.

use std::error::Error;
use std::io::{Write, stdout};
use walkdir::WalkDir;

#[allow(clippy::unnecessary_debug_formatting, reason = "it escapes")]
fn main() -> Result<(), Box<dyn Error>> {
    for root in std::env::args_os().skip(1) {
        for entry in WalkDir::new(root).sort_by_file_name() {
            writeln!(stdout(), "{:?}", entry?.path())?;
        }
    }
    Ok(())
}
