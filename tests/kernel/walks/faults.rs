//! Errors of each system call of a `WalkDirs`.

use crate::errnos::ERRNOS;
use crate::report::{Report, Run, SORTED, comb, level};
use crate::support::options::TestOptions;
use crate::support::process::as_nobody;
use crate::support::requests::{Requests, collect_visits};
use crate::support::tree::{chmod, make};
use crate::support::visits::{Visit, What, directories, errors};
use crate::trap::{self, CALLS, GETDENTS64, NEWFSTATAT, OPENAT, OPENAT2, STATX, trapped};
use libc::{
    EACCES, EINTR, ELOOP, EMFILE, ENFILE, ENOENT, ENOSYS, ENOTDIR, EPERM, EXDEV, c_int, c_long,
};
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use std::path::{Path, PathBuf};

const DEPTH: usize = 6;

/// The number of interruptions of a call in a row.
const BURST: u32 = 20;

/// The options for a walk of a [`comb`], and whether its directories list types.
struct Sweep<'a> {
    tree: &'a Path,
    all: Report,
    options: TestOptions,
    has_types: bool,
}

/// Each failed system call is reported once, with its path, and the rest of the walk is complete.
#[test]
fn walk_dirs_reports_each_failed_call_once() {
    trapped("walks::faults::walk_dirs_reports_each_failed_call_once", &CALLS, |tree| {
        comb(tree, DEPTH);
        for number in 0..8 {
            let [second_visits, is_on_one_mount, has_types] =
                [1, 2, 4].map(|bit| number & bit != 0);
            let options = TestOptions { second_visits, is_on_one_mount, ..SORTED };
            let all = Report::expected(tree).unwrap();
            let sweep = Sweep { tree, all, options, has_types };
            let also = [EMFILE, ENFILE, EPERM, EXDEV];
            for errno in ERRNOS.into_iter().map(|(_, errno)| errno).chain(also) {
                for call in CALLS {
                    sweep.check(call, errno);
                }
            }
        }
    });
}

impl Sweep<'_> {
    /// Walks. Returns the report, and how often `call` was made.
    fn walk(
        &self,
        call: c_long,
        errno: c_int,
        fails: impl Fn(u32) -> bool + Send + 'static,
    ) -> (Report, u32) {
        let run: Run = self.options.begin(self.tree);
        trap::fail(call, errno, fails);
        if !self.has_types {
            trap::hide_types();
        }
        let report = run.finish();
        let made = trap::made();
        trap::count(call);
        (report.sorted(), made)
    }

    /// Makes each call fail in a walk of its own, then all calls in one walk.
    fn check(&self, call: c_long, errno: c_int) {
        let what =
            format!("errno {errno} of call {call}, {:?}, types: {}", self.options, self.has_types);
        let (report, calls) = self.walk(call, 0, |_| false);
        assert_eq!(report, self.all, "{what}");
        assert!(call != NEWFSTATAT || calls == 0, "{what}: the walk queries types");

        // If `statx` fails, the walk uses `fstat`, which knows no mounts. A level that was noted
        // without `statx` seems to be on another mount.
        let is_answered = call == STATX && matches!(errno, ENOSYS | EPERM);
        let reported_errno = if is_answered { ENOENT } else { errno };
        let burst = if errno == EINTR { BURST } else { 1 };
        // The paths that were lost with an error and without one.
        let (mut failed, mut silent) = (Vec::new(), Vec::new());
        for first in 1..=calls {
            let (report, made) =
                self.walk(call, errno, move |number| (first..first + burst).contains(&number));
            assert!(made < calls + 2 * BURST, "{what}: {made} calls, not {calls}");
            let rest = Report { errors: vec![], ..report.clone() };
            match &report.errors[..] {
                [] if rest == self.all => {}
                [] => {
                    let lost = self.opened().into_iter().chain([PathBuf::new()]);
                    silent.extend(
                        lost.filter(|path| Self::lose(self.all.clone(), call, errno, path) == rest),
                    );
                }
                [(path, error)] => {
                    assert_eq!(*error, reported_errno, "{what}");
                    let is_at_end = call == GETDENTS64 && rest == self.all;
                    let expected = Self::lose(self.all.clone(), call, errno, path);
                    if !is_at_end {
                        assert_eq!(rest, expected, "{what}");
                    }
                    failed.push(path.clone());
                }
                several => panic!("{what}: more than one error: {several:?}"),
            }
        }
        let (every, made) =
            self.walk(call, errno, move |number| errno != EINTR || number % (BURST + 1) != 0);
        assert!(
            made <= if errno == EINTR { (BURST + 1) * calls } else { calls + 20 },
            "{what}: {made} calls"
        );

        let expected = self.expected(call, errno);
        for (paths, expected) in [(&mut failed, expected.failed), (&mut silent, expected.silent)] {
            paths.sort_unstable();
            if call == GETDENTS64 {
                paths.dedup(); // without an end marker there is a second call for each
            }
            assert_eq!(*paths, expected, "{what}");
        }
        assert_eq!(every, expected.every, "{what}: every call fails");
    }

    /// Returns what a walk opens: everything, if it knows no types.
    fn opened(&self) -> Vec<PathBuf> {
        if self.has_types { self.all.first_visits[1..].to_vec() } else { self.all.entries.clone() }
    }

    /// Returns the levels that the walk closes early. There is one more if files take a descriptor,
    /// unless a level is closed with its last directory.
    fn closed(&self) -> Vec<PathBuf> {
        (1..=DEPTH - 2 + usize::from(!self.has_types && self.options.second_visits))
            .map(level)
            .collect()
    }

    /// Returns the rest of a report if the `call` for `path` fails.
    fn lose(report: Report, call: c_long, errno: c_int, path: &Path) -> Report {
        match call {
            GETDENTS64 => report.unread(path),
            OPENAT | STATX => report.without(&[path.join("z")]),
            _ if is_yielded(errno) => report.unread(path),
            _ => report.without(&[path]),
        }
    }

    /// Returns the expected failures. The call is made once for each path, and costs that path
    /// unless another path has cost it before.
    fn expected(&self, call: c_long, errno: c_int) -> Expected {
        let paths = match call {
            OPENAT2 => self.opened(),
            GETDENTS64 => self.all.first_visits.clone(),
            OPENAT | STATX => self.closed(),
            _ => vec![],
        };
        let nothing = Expected { failed: vec![], silent: vec![], every: self.all.clone() };
        let is_silent = match (call, errno) {
            // The call is repeated, or another call takes its place, as it would on another mount.
            (_, EINTR) | (OPENAT2, ENOSYS | EPERM | EXDEV) => return nothing,
            (STATX, ENOSYS | EPERM) => {
                let mount = statx(CWD, self.tree, AtFlags::empty(), StatxFlags::MNT_ID).unwrap();
                let has_mount =
                    StatxFlags::from_bits_retain(mount.stx_mask).contains(StatxFlags::MNT_ID);
                return if has_mount && self.options.is_on_one_mount {
                    Expected { failed: paths, ..nothing }
                } else {
                    nothing
                };
            }
            // The directory seems removed, or not a directory.
            (GETDENTS64, ENOENT) => true,
            (OPENAT2, ENOENT | ENOTDIR | ELOOP) => !self.has_types,
            _ => false,
        };
        let mut every = self.all.clone();
        // If all calls of `openat2` fail, a filter refuses it, and `openat` takes its place.
        for path in paths.iter().filter(|_| call != OPENAT2) {
            if path.parent().is_none() || every.entries.contains(path) {
                every = Self::lose(every, call, errno, path);
                every.errors.extend((!is_silent).then(|| (path.clone(), errno)));
            }
        }
        let (failed, silent) = match (call, errno) {
            _ if is_silent => (
                vec![],
                paths.into_iter().filter(|path| self.all.first_visits.contains(path)).collect(),
            ),
            (OPENAT, _) => (vec![], vec![]), // the level is reopened by name
            (OPENAT2, EMFILE | ENFILE) => (self.without_descriptors(), vec![]),
            _ => (paths, vec![]),
        };
        Expected { failed, silent, every }
    }

    /// Returns what cannot be opened without descriptors while only the first level and the current
    /// directory are open, because neither can be closed.
    fn without_descriptors(&self) -> Vec<PathBuf> {
        let is_third_open = |path: &PathBuf| {
            let depth = path.iter().filter(|name| *name == "d").count();
            let is_way_down = path.ends_with("d") && depth > 2;
            // A level is open while it has pending directories or leads back to a closed level.
            // With second visits, it is open until its second visit.
            let is_below_second =
                path.ends_with("file") && depth > usize::from(!self.options.second_visits);
            is_way_down || is_below_second || depth == DEPTH
        };
        self.opened().into_iter().filter(|path| !is_third_open(path)).collect()
    }
}

/// Returns `true` if a directory that cannot be opened with this error is yielded as unreadable.
/// Otherwise it is gone, or no descriptor is free.
fn is_yielded(errno: c_int) -> bool {
    !matches!(errno, ENOENT | ENOTDIR | ELOOP | EMFILE | ENFILE)
}

/// The paths that are lost with an error and without one if each call of a kind fails once, and the
/// report if all calls fail.
struct Expected {
    failed: Vec<PathBuf>,
    silent: Vec<PathBuf>,
    every: Report,
}

/// An unreadable directory needs a descriptor to be yielded. Otherwise, the lack of descriptors is
/// its error.
#[test]
fn unreadable_directory_needs_a_descriptor() {
    trapped("walks::faults::unreadable_directory_needs_a_descriptor", &CALLS, |tree| {
        make(tree, &["a/file", "b/file"]);
        for path in [tree.to_owned(), tree.join("a"), tree.join("b")] {
            chmod(&path, if path == tree { 0o755 } else { 0o311 });
        }
        as_nobody(|| {
            for errno in [EMFILE, ENFILE] {
                let run = SORTED.begin(tree);
                trap::fail(OPENAT, errno, |number| number == 1);
                let report = run.finish();
                trap::count(OPENAT);
                assert_eq!(report.first_visits, ["", "b"].map(PathBuf::from));
                assert_eq!(
                    report.errors,
                    [("a", errno), ("b", EACCES)].map(|(path, errno)| (PathBuf::from(path), errno))
                );
            }
        });
    });
}

/// A walk closes a level that was just made, even if it can neither sleep nor read the clock. With
/// a vDSO, no filter refuses the time.
#[test]
fn walk_closes_new_levels_without_clock() {
    const CALLS: [c_long; 2] = [libc::SYS_clock_nanosleep, libc::SYS_clock_gettime];
    const TREES: usize = 20;
    trapped("walks::faults::walk_closes_new_levels_without_clock", &CALLS, |at| {
        for (number, errno) in
            (0..TREES).flat_map(|number| [EPERM, ENOSYS].map(|errno| (number, errno)))
        {
            let tree = at.join(format!("{number} {errno}"));
            comb(&tree, DEPTH);
            let all = Report::expected(&tree).unwrap();
            for options in [SORTED, TestOptions { second_visits: true, ..SORTED }] {
                trap::fail(CALLS[0], errno, |_| true);
                trap::refuse(CALLS[1], errno);
                let report = options.walk_dirs(&tree);
                trap::count(CALLS[0]);
                assert_eq!(report.sorted(), all, "{options:?}");
            }
        }
    });
}

/// A walk reads a directory again whose `Dir` was dropped midway. If the directory can be neither
/// opened again nor rewound, there is one error, and the directories that were not read are lost.
#[test]
fn failed_rewind_of_a_dropped_dir_is_one_error() {
    const TEST: &str = "walks::faults::failed_rewind_of_a_dropped_dir_is_one_error";
    trapped(TEST, &[libc::SYS_lseek, libc::SYS_openat], |tree| {
        make(tree, &["a/file", "b/file", "c/file"]);
        for (_, errno) in ERRNOS {
            let mut walk = lendir::walk_dirs(tree).unwrap();
            let mut root = walk.next().unwrap().unwrap();
            let first = tree.join(root.next().unwrap().unwrap().name_os());
            trap::fail(libc::SYS_lseek, errno, |number| number == 1);
            trap::refuse(libc::SYS_openat, libc::EACCES);

            let visits = collect_visits(&mut walk, |_| Requests::ALL);
            let error = Visit { path: tree.into(), depth: 0, what: What::Error(errno) };
            if errno == EINTR {
                assert_eq!((&visits[0].path, visits.len(), errors(&visits).len()), (&first, 3, 0));
            } else {
                assert_eq!((&visits[0], directories(&visits)), (&error, vec![&*first]));
            }
            trap::count(libc::SYS_lseek);
        }
    });
}
