//! The first lesson of a tree: `count [PATH]` counts its entries. A walk lends directories, and a directory lends entries.

use std::io::{self, Write};

fn main() -> io::Result<()> {
    let path = std::env::args_os().nth(1).unwrap_or(".".into());
    let complain = |error| drop(writeln!(io::stderr(), "count: {error}"));
    let mut walk = lendir::Walk::open(path)?;
    let mut count = 0;
    while let Some(mut dir) = walk.next_or(complain) {
        while dir.next_or(complain).is_some() {
            count += 1;
        }
    }
    writeln!(io::stdout(), "{count}")
}
