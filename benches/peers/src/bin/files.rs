//! Lists the files below PATH that no `.gitignore` excludes: `files [-j N] PATH`, like
//! `rg --files -j N PATH`.
//!
//! It reads each directory, and looks into the listing for a `.gitignore`, so it opens none that
//! does not exist. The rules of a directory are the walk's state: its subdirectories get them on any
//! thread. Hidden files are left out unless a rule begins with `!`.
//!
//! It reads no `.gitignore` that is a symbolic link, like git.
//!
//! It knows neither `.ignore`, `.rgignore`, `.git/info/exclude`, global rules, rules above PATH nor
//! whether there is a repository: `rg` needs `--no-config --no-require-git --no-ignore-dot
//! --no-ignore-exclude --no-ignore-global --no-ignore-parent` for the same answer.

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use lendir::{Dir, Error, FileType, ListedEntry, Listing, Order, WalkDirs, Worker};
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The rules of one `.gitignore`, and the rules above it.
struct Rules {
    own: Gitignore,
    above: Option<Arc<Rules>>,
}

type State = Option<Arc<Rules>>;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let (threads, root) = match &arguments[..] {
        [root] => (0, root),
        [option, number, root] if option == "-j" => {
            let number = number.to_str().and_then(|number| number.parse().ok());
            (number.expect("-j needs a number"), root)
        }
        _ => panic!("usage: files [-j N] PATH"),
    };
    let is_complete = AtomicBool::new(true);
    let report = |error: &dyn std::fmt::Display| {
        is_complete.store(false, Relaxed);
        let _ = writeln!(io::stderr(), "files: {error}");
    };
    match WalkDirs::options().with_state(State::None).open(root) {
        Err(error) => report(&error),
        Ok(walk) => {
            for listed in walk.run_parallel(threads, |worker| list(worker, &report)) {
                match listed {
                    // A closed pipe is no error.
                    Err(error) if error.kind() != io::ErrorKind::BrokenPipe => report(&error),
                    _ => {}
                }
            }
        }
    }
    ExitCode::from(u8::from(!is_complete.into_inner()))
}

/// Lists the directories of one thread. Returns an error of output.
fn list(worker: &mut Worker<State>, report: &dyn Fn(&dyn std::fmt::Display)) -> io::Result<()> {
    let mut listing = Listing::with_order(Order::Unsorted);
    let (mut path, mut lines) = (Vec::new(), Vec::new());
    while let Some(mut dir) = worker.next_or_report(|error| report(&error)) {
        if let Err(error) = dir.read_into(&mut listing) {
            report(&error); // the listing holds the entries that were read before
        }
        let rules = listing.by_name(".gitignore");
        if let Some(entry) = rules.filter(|entry| entry.d_type() != FileType::Symlink) {
            match read_rules(&dir, entry, report) {
                Ok(own) => {
                    let above = dir.state_mut().take();
                    *dir.state_mut() = Some(Arc::new(Rules { own, above }));
                }
                Err(error) => report(&error),
            }
        }
        dir.skip_subdirs();
        path.clear();
        path.extend_from_slice(dir.path().as_os_str().as_bytes());
        if !path.ends_with(b"/") {
            path.push(b'/');
        }
        let len = path.len();
        for entry in &listing {
            let file_type = match entry.in_dir(dir.fd()).file_type() {
                Ok(file_type) => file_type,
                Err(error) => {
                    report(&error);
                    continue;
                }
            };
            path.truncate(len);
            path.extend_from_slice(entry.name());
            match file_type {
                FileType::Directory if !is_excluded(dir.state(), &path, entry.name(), true) => {
                    if let Err(error) = dir.enter_name(entry.name()) {
                        report(&error);
                    }
                }
                FileType::RegularFile if !is_excluded(dir.state(), &path, entry.name(), false) => {
                    lines.extend_from_slice(&path);
                    lines.push(b'\n');
                }
                _ => {}
            }
        }
        if lines.len() > 1 << 16 {
            if let Err(error) = io::stdout().lock().write_all(&lines) {
                worker.stop();
                return Err(error);
            }
            lines.clear();
        }
    }
    io::stdout().lock().write_all(&lines)
}

/// Reads the rules of one `.gitignore`, without its wrong lines, which it reports.
fn read_rules(
    dir: &Dir<State>,
    entry: ListedEntry,
    report: &dyn Fn(&dyn std::fmt::Display),
) -> Result<Gitignore, Error> {
    let (entry, mut text) = (entry.in_dir(dir.fd()), Vec::new());
    entry.open_file()?.read_to_end(&mut text).map_err(|error| entry.wrap_error(error))?;
    let mut rules = GitignoreBuilder::new(dir.path());
    for line in String::from_utf8_lossy(&text).lines() {
        if let Err(error) = rules.add_line(None, line) {
            report(&entry.wrap_error(io::Error::other(error)));
        }
    }
    rules.build().map_err(|error| entry.wrap_error(io::Error::other(error)))
}

/// Returns `true` if the nearest rule that matches excludes the path, or none matches a hidden name.
fn is_excluded(rules: &State, path: &[u8], name: &[u8], is_dir: bool) -> bool {
    let path = Path::new(OsStr::from_bytes(path));
    let mut rest = rules.as_ref();
    while let Some(rules) = rest {
        match rules.own.matched(path, is_dir) {
            Match::None => rest = rules.above.as_ref(),
            Match::Ignore(_) => return true,
            Match::Whitelist(_) => return false,
        }
    }
    name.starts_with(b".")
}
