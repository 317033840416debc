//! Errors of each system call of both walks.

use crate::errnos::ERRNOS;
use crate::file_systems::FILE_SYSTEMS;
use crate::fuse::{Directory, Server, dir, directory, file, served};
use crate::report::{Report, SORTED, SORTED_WALK, comb};
use crate::support::prelude::*;
use crate::trap::{self, CALLS, GETDENTS64, NEWFSTATAT, OPENAT, OPENAT2, STATX, trapped};
use libc::{ENFILE, c_int, c_long};
use rustix::thread::gettid;

const DEPTH: usize = 6;

const FSTATFS: c_long = libc::SYS_fstatfs;

/// The number of interruptions of a call in a row.
const BURST: u32 = 20;

type Fails = Box<dyn Fn(u32) -> bool + Send>;

/// A call that fails during a walk of a [`comb`].
struct Fault<'a> {
    call: c_long,
    errno: c_int,
    /// The visits of the walk if no call fails.
    all: &'a [Visit],
    is_on_one_mount: bool,
    has_types: bool,
    /// The numbers of threads that read ahead, for a `Walk`. A `WalkDirs` has none.
    ahead: &'a [usize],
    /// Whether the walk queries the metadata of each entry.
    has_metadata: bool,
}

fn faults(calls: &[c_long]) -> impl Iterator<Item = (c_long, c_int)> {
    let errnos = ERRNOS.into_iter().map(|(_, errno)| errno).chain([EMFILE, ENFILE, EPERM, EXDEV]);
    errnos.flat_map(move |errno| calls.iter().map(move |call| (*call, errno)))
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
            let all: Vec<_> = options.expected_visits(tree).collect();
            for (call, errno) in faults(&CALLS) {
                let all = &all[..];
                let (ahead, has_metadata) = (&[][..], false);
                let fault =
                    Fault { call, errno, all, is_on_one_mount, has_types, ahead, has_metadata };
                fault.check(&format!("{options:?}"), |_, fails| {
                    let mut run = options.begin(tree);
                    fault.set(fails);
                    while run.step() {}
                    run.visitor.visits
                });
            }
        }
    });
}

/// Each failed system call is one error in its place, and nothing else is lost. The failure of a
/// thread that reads ahead never shows.
#[test]
fn walk_reports_each_failed_call_once() {
    let calls = [&CALLS[..], &[FSTATFS]].concat();
    trapped("walks::faults::walk_reports_each_failed_call_once", &calls, |tree| {
        let [small, large] = ["small", "large"].map(|name| tree.join(name));
        comb(&small, 5);
        comb(&large, 5);
        // More than one batch, of which only the first is read before a level is closed.
        for depth in 0..2 {
            let names = (0..120).map(|number| format!("{}{number:0250}", "d/".repeat(depth)));
            make(&large, &names.collect::<Vec<_>>());
        }
        let fetching = EntryWalk { metadata: true, ..SORTED_WALK };
        let unsorted = EntryWalk { order: Order::Unsorted, ..SORTED_WALK };
        for (tree, walk, is_on_one_mount, has_types) in [
            (&small, SORTED_WALK, false, false),
            (&small, SORTED_WALK, false, true),
            (&small, SORTED_WALK, true, false),
            (&small, SORTED_WALK, true, true),
            (&small, fetching, false, false),
            (&small, fetching, false, true),
            (&large, unsorted, false, true),
        ] {
            let all = walk.expected(tree);
            let options = walk.build().same_mount(is_on_one_mount);
            for (call, errno) in faults(&calls) {
                let (all, ahead, has_metadata) = (&all[..], &[2][..], walk.metadata);
                let fault =
                    Fault { call, errno, all, is_on_one_mount, has_types, ahead, has_metadata };
                let read = |ahead, fails| {
                    let root = lendir::open(tree).unwrap();
                    fault.set(fails);
                    walk.rest(&mut options.clone().read_ahead(ahead).eager().from_fd(root, tree))
                };
                fault.check(&format!("{walk:?}"), read);
                let own = gettid();
                for every in [1, 2, 3] {
                    let fails = move |number| {
                        gettid() != own
                            && number % every == 0
                            && (errno != EINTR || number % 4 != 0)
                    };
                    let items = read(3, Box::new(fails));
                    assert_eq!(items, all, "errno {errno} of call {call}, reading ahead");
                }
                trap::count(call);
            }
        }
    });
}

impl Fault<'_> {
    fn set(&self, fails: Fails) {
        trap::fail(self.call, self.errno, fails);
        if !self.has_types {
            trap::hide_types();
        }
    }

    /// Makes each call fail in a walk of its own, then all calls in one walk.
    fn check(&self, what: &str, read: impl Fn(usize, Fails) -> Vec<Visit>) {
        let Self { call, errno, .. } = *self;
        let what = format!("errno {errno} of call {call}, {what}, types {}", self.has_types);
        let read = |ahead, fails| {
            let visits = read(ahead, fails);
            let made = trap::made();
            trap::count(call);
            (visits, made)
        };
        let (visits, calls) = read(0, Box::new(|_| false));
        assert_eq!(visits, self.all, "{what}");
        assert!(call != NEWFSTATAT || calls == 0, "{what}: the walk queries types");

        // If `statx` fails, the walk uses `fstat`, which knows no mounts. A level that was noted
        // without `statx` seems to be on another mount.
        let is_answered = call == STATX && matches!(errno, ENOSYS | EPERM);
        let reported_errno = if is_answered { ENOENT } else { errno };
        let burst = if errno == EINTR { BURST } else { 1 };
        let mut failed = 0;
        for first in 1..=calls {
            for ahead in [&[0], self.ahead].concat() {
                let fails = move |number| (first..first + burst).contains(&number);
                let (visits, made) = read(ahead, Box::new(fails));
                let what = format!("{what}, number {first}");
                assert!(ahead > 0 || made < calls + 2 * BURST, "{what}: {made} calls, not {calls}");
                let errors = self.errors(&visits, &what);
                let is_expected = errors.iter().all(|(_, errno)| *errno == reported_errno);
                assert!(errors.len() <= 1 && is_expected, "{what}: {errors:?}");
                assert!(!errors.is_empty() || self.is_silent() || visits == self.all, "{what}");
                failed += if ahead == 0 { errors.len() } else { 0 };
            }
        }
        let every = move |number| errno != EINTR || number % (BURST + 1) != 0;
        let (visits, made) = read(0, Box::new(every));
        let most = if errno == EINTR { (BURST + 1) * calls } else { calls + 20 };
        assert!(made <= most, "{what}: {made} calls");
        let errors = self.errors(&visits, &format!("{what}, every call"));

        let calls = calls as usize;
        let expected = match (call, errno) {
            // These walks begin at a descriptor, which must be opened anew.
            (OPENAT, EMFILE | ENFILE) if !self.ahead.is_empty() => 1,
            (FSTATFS | NEWFSTATAT | OPENAT, _) | (_, EINTR) | (OPENAT2, ENOSYS | EPERM | EXDEV) => {
                0
            }
            _ if self.is_silent() => 0,
            // A level is closed, or the directory cannot be opened. Without mounts, there is no
            // error.
            (OPENAT2, EMFILE | ENFILE) | (STATX, ENOSYS | EPERM) => failed,
            // Most are queries of types, which opening also tells, or of metadata.
            (STATX, _) if !self.has_types || self.has_metadata => failed,
            // So are some of these.
            (OPENAT2, _) if self.is_on_one_mount && (!self.has_types || self.has_metadata) => {
                failed
            }
            // The second one is of `..`, and the level is then reopened by name.
            (STATX, _) => calls / 2,
            _ => calls,
        };
        assert_eq!(failed, expected, "{what}: other errors of {calls} calls");
        let never = errno == EINTR || call == OPENAT2 && matches!(errno, ENOSYS | EPERM);
        assert!(!never || errors.is_empty(), "{what}, every call: {errors:?}");
    }

    /// Returns the errors, after checking that nothing else is lost.
    fn errors<'v>(&self, visits: &'v [Visit], what: &str) -> Vec<(&'v Path, c_int)> {
        if !self.ahead.is_empty() {
            return errors_between(visits, self.all, self.is_silent(), what);
        }
        if !self.is_silent() {
            assert_nothing_is_lost_silently(visits, self.all, what);
        }
        errors(visits)
    }

    /// Returns `true` if the directory seems removed, or on another mount.
    fn is_silent(&self) -> bool {
        match (self.call, self.errno) {
            (GETDENTS64, ENOENT) => true,
            (OPENAT2, EXDEV) => self.is_on_one_mount,
            _ => false,
        }
    }
}

/// An unreadable directory needs a descriptor to be yielded. Otherwise, the lack of descriptors is
/// its error.
#[test]
fn unreadable_directory_needs_a_descriptor() {
    trapped("walks::faults::unreadable_directory_needs_a_descriptor", &CALLS, |tree| {
        let names = ["a", "b"].map(|name| tree.join(name));
        let set_modes = |of_tree, of_both| {
            fs::set_permissions(tree, Permissions::from_mode(of_tree)).unwrap();
            for name in &names {
                fs::set_permissions(name, Permissions::from_mode(of_both)).unwrap();
            }
        };
        make(tree, &["a/", "b/"]);
        set_modes(0o755, 0);
        for errno in [EMFILE, ENFILE] {
            let report = as_nobody(|| {
                let run = SORTED.begin(tree);
                trap::fail(OPENAT, errno, |number| number == 1);
                run.finish()
            });
            trap::count(OPENAT);
            assert_eq!(report.first_visits, ["", "b"].map(PathBuf::from));
            assert_eq!(
                report.errors,
                [("a", errno), ("b", EACCES)].map(|(path, errno)| (PathBuf::from(path), errno))
            );
        }
        set_modes(0o700, 0o700);
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

/// The walk goes on where a `Dir` is left, so it makes the calls of a full reading, whatever the
/// file system. The last directory has several batches.
#[test]
fn dir_that_is_left_takes_no_call_more() {
    const TEST: &str = "walks::faults::dir_that_is_left_takes_no_call_more";
    const READING: [c_long; 4] = [GETDENTS64, libc::SYS_lseek, OPENAT, OPENAT2];
    const FILES: usize = 2000;
    fn check(tree: &Path, what: &str) {
        let _trap = match trap::set(&READING) {
            Ok(trap) => trap,
            Err(missing) => return machine::skip(TEST, &missing),
        };
        let calls = |look: fn(&mut Dir<'_>)| {
            READING.map(|call| {
                trap::count(call);
                let (mut walk, mut count) = (lendir::walk_dirs(tree).unwrap(), 0);
                while let Some(mut dir) = walk.next().unwrap() {
                    look(&mut dir);
                    count += 1;
                }
                assert_eq!(count, 4, "{what}");
                trap::made()
            })
        };
        let all = calls(|dir| assert!(dir.count().unwrap() > 0));
        let looks: [fn(&mut Dir<'_>); 3] = [
            |_| (),
            |dir| assert!(dir.next().unwrap().is_some()),
            |dir| assert!(dir.find(|entry| !entry.name().is_empty()).unwrap().is_some()),
        ];
        for look in looks {
            assert_eq!(calls(look), all, "{what}: getdents64, lseek, openat, openat2");
        }
    }
    served(TEST, || {
        for name in ["tmpfs", "ext4", "xfs", "btrfs"] {
            let system = FILE_SYSTEMS.iter().find(|system| system.name == name).unwrap();
            let fill = |at: &Path, _| {
                make(at, &["tree/a/file", "tree/b/file", "tree/z/"]);
                for number in 0..FILES {
                    fs::write(at.join(format!("tree/z/{number:020}")), "").unwrap();
                }
            };
            let outcome = system.mounted(fill, |mounted| check(&mounted.at.join("tree"), name));
            machine::skip_unless(TEST, outcome);
        }
        // Last: in this thread the trap stays.
        let child = |name, count| {
            let files = (0..count).map(|number| file(format!("{number:020}")));
            let seekless = |directory| Directory { cookie: Some(|place| place + 1), ..directory };
            dir(name, seekless(directory(files.collect())))
        };
        let tree = directory(vec![child("a", 1), child("b", 1), child("z", FILES)]);
        let server = Server::mount(vec![tree]).unwrap();
        check(&server.path(0), "a server that ignores seeks");
    });
}
