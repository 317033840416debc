//! Walks of `/proc` and `/sys` while processes start and end.

use crate::report::OPTIONS;
use crate::support::prelude::*;
use crate::support::process::fork_storm;
use libc::{ESRCH, c_int};

/// The errors that may occur. The directories of a process disappear when it ends, and only its
/// owner may read some of them. A zombie has no namespaces, so its `net` cannot be read.
const EXPLAINED: [c_int; 5] = [ENOENT, ESRCH, EACCES, EPERM, EINVAL];

#[test]
fn proc_and_sys_cause_only_known_errors() {
    let _watchdog = machine::watchdog();
    let _storm = fork_storm();
    let rounds = if machine::runs_long() { 100 } else { 1 };
    for root in ["/proc", "/sys"] {
        let Ok(_) = lendir::open(root) else {
            machine::skip(&format!("walk: all of {root}"), &format!("{root} mounted"));
            continue;
        };
        for round in 0..rounds {
            let options = OPTIONS[round % OPTIONS.len()];
            // Entries are left out: millions of paths would take most of the test's time.
            let walk = || {
                let (mut run, mut visited, mut errors) =
                    (options.begin(root), Vec::new(), Vec::new());
                while run.step() {
                    for Visit { path, what, .. } in run.visitor.visits.drain(..) {
                        match what {
                            What::First(_) => visited.push(path),
                            What::Second | What::Entry { .. } => {}
                            What::Error(errno) => errors.push((path, errno)),
                        }
                    }
                }
                (visited, errors)
            };
            for (mut visited, errors) in [walk(), as_nobody(walk)] {
                for (path, errno) in &errors {
                    assert!(EXPLAINED.contains(errno), "{root}, {}: {errno}", path.display());
                    assert_ne!(path, &PathBuf::new(), "the root cannot be read: {errno}");
                }
                assert!(visited.len() > 100, "{} directories", visited.len());
                visited.sort_unstable();
                let is_right = visited.windows(2).all(|pair| pair[0] != pair[1]);
                assert!(is_right, "{root}: a directory came twice");
            }
        }
    }
}
