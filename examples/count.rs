//! Counts all entries of a tree: `count [PATH]`. PATH is `.` by default.
//!
//! This is the first example to read about trees. A walk yields directories, and each directory
//! yields its entries.

use lendir::Error;
use std::process::ExitCode;

fn main() -> ExitCode {
    let path = std::env::args_os().nth(1).unwrap_or(".".into());
    let (mut count, mut status) = (0, ExitCode::SUCCESS);
    let mut complain = |error: Error| {
        eprintln!("count: {error}");
        status = ExitCode::FAILURE;
    };
    match lendir::walk_dirs(path) {
        Ok(mut walk) => {
            while let Some(mut dir) = walk.next_ok(&mut complain) {
                while dir.next_ok(&mut complain).is_some() {
                    count += 1;
                }
            }
            println!("{count}");
        }
        Err(error) => complain(error),
    }
    status
}
