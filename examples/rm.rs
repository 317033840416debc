//! Removes trees: `Walk::post_order`, and every step relative to an open directory, so that no link can lead it elsewhere.

const HELP: &str = "\
Usage: rm [-fx] [--] PATH...

Removes PATH, and if it is a directory, everything below it, as rm -r does. It never asks. A symbolic link is removed, not
followed. / and paths that end in . or .. are refused.

  -f      say nothing of what is missing
  -x      leave directories alone that a file system is mounted on
  --help  print this text

If others change a tree meanwhile, even if they put links into it, nothing outside of it is removed.
Exit status: 0, or 1 if something is left.
";

use lendir::{FileType, OFlags, Walk, WalkError};
use rustix::fs::{AtFlags, CWD, Mode, unlinkat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    match rm(std::env::args_os().skip(1)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("rm: {error}");
            ExitCode::FAILURE
        }
    }
}
