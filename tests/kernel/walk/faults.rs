//! Every error at every system call of a walk: it comes once, with its path, and the rest is complete.

use super::{Run, SORTED, Told, WAYS, comb, level};
use crate::errnos::ERRNOS;
use crate::faults::trapped;
use crate::file_systems::FileSystem;
use crate::mounted::in_own_namespace;
use crate::support::machine;
use crate::support::process;
use crate::support::tree::make;
use crate::support::way::{PLAIN, Way};
use crate::trap;
use lendir::{FileType, Walk};
use libc::{EACCES, EINTR, EIO, ELOOP, EMFILE, ENFILE, ENOENT, ENOSYS, ENOTDIR, EPERM, EXDEV, c_int, c_long};
use rustix::fs::{AtFlags, CWD, Mode, StatxFlags, mknodat, statx};
use rustix::mount::{MountFlags, mount, mount_bind};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

const OPENAT: c_long = libc::SYS_openat;
const OPENAT2: c_long = libc::SYS_openat2;
const GETDENTS64: c_long = libc::SYS_getdents64;
const STATX: c_long = libc::SYS_statx;
const NEWFSTATAT: c_long = libc::SYS_newfstatat;
const CALLS: [c_long; 5] = [OPENAT, OPENAT2, GETDENTS64, STATX, NEWFSTATAT];

const DEPTH: usize = 6;

/// How often in a row a call is interrupted.
const BURST: u32 = 20;

/// A way to walk a [`comb`], and whether its directories tell types.
struct Sweep<'a> {
    tree: &'a Path,
    all: Told,
    way: Way,
    has_types: bool,
}

#[test]
fn each_error_of_each_call_comes_once() {
    const TEST: &str = "walk::faults::each_error_of_each_call_comes_once";
    trapped(TEST, &CALLS, || {
        let tree = tempfile::tempdir().unwrap();
        comb(tree.path(), DEPTH);
        let mut cases = 0;
        for number in 0..8 {
            let [is_post_order, is_on_one_mount, has_types] = [1, 2, 4].map(|bit| number & bit != 0);
            let way = Way { is_post_order, is_on_one_mount, ..SORTED };
            let all = Told::by_std(tree.path()).unwrap();
            let sweep = Sweep { tree: tree.path(), all, way, has_types };
            let also = [EMFILE, ENFILE, EPERM, EXDEV];
            for errno in ERRNOS.into_iter().map(|(_, errno)| errno).chain(also) {
                cases += CALLS.map(|call| sweep.check(call, errno)).into_iter().sum::<usize>();
            }
        }
        let what =
            "walks in which one call fails, or all of a kind: one error each, with its path, and the rest complete";
        machine::passed("walk: every call fails", cases, what);
    });
}

impl Sweep<'_> {
    /// Walks, and returns how often `call` was made as well.
    fn walk(&self, call: c_long, errno: c_int, fails: impl Fn(u32) -> bool + Send + 'static) -> (Told, u32) {
        let run: Run = self.way.begin(self.tree);
        trap::fail(call, errno, fails);
        if !self.has_types {
            trap::hide_types();
        }
        let told = run.finish();
        let made = trap::made();
        trap::count(call);
        (told.sorted(), made)
    }

    /// Lets each call fail in a walk of its own, and then all in one. Returns the number of walks.
    fn check(&self, call: c_long, errno: c_int) -> usize {
        let what = format!("errno {errno} of call {call}, {:?}, types: {}", self.way, self.has_types);
        let (told, calls) = self.walk(call, 0, |_| false);
        assert_eq!(told, self.all, "{what}");
        assert!(call != NEWFSTATAT || calls == 0, "{what}: a type was asked for");

        // Where `statx` is refused, `fstat` answers, which tells no mount: a level noted so is found on another one.
        let is_answered = call == STATX && matches!(errno, ENOSYS | EPERM);
        let told_errno = if is_answered { ENOENT } else { errno };
        let burst = if errno == EINTR { BURST } else { 1 };
        // What was lost with an error, and what without one.
        let (mut failed, mut silent) = (Vec::new(), Vec::new());
        for first in 1..=calls {
            let (told, made) = self.walk(call, errno, move |number| (first..first + burst).contains(&number));
            assert!(made < calls + 2 * BURST, "{what}: {made} calls, not {calls}");
            let rest = Told { errors: vec![], ..told.clone() };
            match &told.errors[..] {
                [] if rest == self.all => {}
                [] => {
                    let lost = self.opened().into_iter().chain([PathBuf::new()]);
                    silent.extend(lost.filter(|path| self.losing(call, path) == rest));
                }
                [(path, error)] => {
                    assert_eq!(*error, told_errno, "{what}");
                    let is_at_end = call == GETDENTS64 && rest == self.all;
                    assert!(is_at_end || rest == self.losing(call, path), "{what}: {told:?}");
                    failed.push(path.clone());
                }
                several => panic!("{what}: more than one error: {several:?}"),
            }
        }
        let (every, made) = self.walk(call, errno, move |number| errno != EINTR || number % (BURST + 1) != 0);
        assert!(made <= if errno == EINTR { (BURST + 1) * calls } else { calls + 20 }, "{what}: {made} calls");

        let expected = self.expected(call, errno);
        for (paths, expected) in [(&mut failed, expected.failed), (&mut silent, expected.silent)] {
            paths.sort_unstable();
            if call == GETDENTS64 {
                paths.dedup(); // there is a second call for each where there is no end marker
            }
            assert_eq!(*paths, expected, "{what}");
        }
        assert_eq!(every, expected.every, "{what}: every call fails");
        calls as usize + 1
    }

    /// What a walk opens. Where it knows no types, that is everything.
    fn opened(&self) -> Vec<PathBuf> {
        if self.has_types { self.all.visited[1..].to_vec() } else { self.all.entries.clone() }
    }

    /// The levels that the walk closes early: one more where files take a descriptor, unless a level is closed with its last
    /// directory.
    fn closed(&self) -> Vec<PathBuf> {
        (1..=DEPTH - 2 + usize::from(!self.has_types && self.way.is_post_order)).map(level).collect()
    }

    /// What is told if `call` fails that is made for `path`.
    fn losing(&self, call: c_long, path: &Path) -> Told {
        match call {
            GETDENTS64 => {
                let mut told = self.all.clone();
                told.entries.retain(|entry| !entry.parent().is_some_and(|dir| dir.starts_with(path)));
                told.visited.retain(|dir| dir == path || !dir.starts_with(path));
                told
            }
            STATX => self.all.clone().without(&[path.join("z")]),
            _ => self.all.clone().without(&[path]),
        }
    }

    fn expected(&self, call: c_long, errno: c_int) -> Expected {
        let nothing = || Expected { failed: vec![], silent: vec![], every: self.all.clone() };
        let first = ["d", "z"];
        let with_first = self.all.clone().without(&first);
        let closed_lost = || {
            let zs: Vec<_> = self.closed().iter().map(|path| path.join("z")).collect();
            self.all.clone().without(&zs).with_errors(self.closed().into_iter().map(|path| (path, errno)))
        };
        match (call, errno) {
            (_, EINTR) | (NEWFSTATAT, _) | (OPENAT2, ENOSYS | EPERM) => nothing(),
            // On the way back only.
            (OPENAT, _) => Expected { every: closed_lost(), ..nothing() },
            // Another mount, which `openat` enters.
            (OPENAT2, EXDEV) if !self.way.is_on_one_mount => nothing(),
            // Whether what has no type is a directory, and whether a directory is on another mount, is no error.
            (OPENAT2, EXDEV | ENOTDIR | ELOOP) if errno == EXDEV || !self.has_types => {
                Expected { silent: self.all.visited[1..].to_vec(), every: with_first, ..nothing() }
            }
            (OPENAT2, EMFILE | ENFILE) => Expected {
                failed: self.without_descriptors(),
                every: with_first.with_errors(first.map(|path| (path, errno))),
                ..nothing()
            },
            (OPENAT2, _) => Expected {
                failed: self.opened(),
                every: with_first.with_errors(first.map(|path| (path, errno))),
                ..nothing()
            },
            (GETDENTS64, ENOENT) => {
                Expected { silent: self.all.visited.clone(), every: self.losing(call, Path::new("")), ..nothing() }
            }
            (GETDENTS64, _) => {
                let every = self.losing(call, Path::new("")).with_errors([("", errno)]);
                Expected { failed: self.all.visited.clone(), every, ..nothing() }
            }
            (STATX, ENOSYS | EPERM) => {
                let mount = statx(CWD, self.tree, AtFlags::empty(), StatxFlags::MNT_ID).unwrap();
                let has_mount = StatxFlags::from_bits_retain(mount.stx_mask).contains(StatxFlags::MNT_ID);
                let is_lost = has_mount && self.way.is_on_one_mount;
                Expected { failed: if is_lost { self.closed() } else { vec![] }, ..nothing() }
            }
            (STATX, _) => Expected { failed: self.closed(), every: closed_lost(), ..nothing() },
            _ => unreachable!("BUG: call {call} is not listed"),
        }
    }

    /// What cannot be opened once descriptors run out: only the first level and the current directory are open, and neither can
    /// be closed.
    fn without_descriptors(&self) -> Vec<PathBuf> {
        let is_third_open = |path: &PathBuf| {
            let depth = path.iter().filter(|name| *name == "d").count();
            let is_way_down = path.ends_with("d") && depth > 2;
            // A level is on the stack while it has something left to do, in post-order until its second visit.
            let is_below_second = path.ends_with("file") && self.way.is_post_order && depth > 0;
            is_way_down || is_below_second || depth == DEPTH
        };
        self.opened().into_iter().filter(|path| !is_third_open(path)).collect()
    }
}

/// What is lost with an error when each call of a kind fails once, what without one, and what is told if all of them fail.
struct Expected {
    failed: Vec<PathBuf>,
    silent: Vec<PathBuf>,
    every: Told,
}

/// The walk reads such a directory from its beginning. Where it cannot, the directories that it has not seen are lost.
#[test]
fn directory_dropped_midway_that_cannot_be_rewound_is_one_error() {
    const TEST: &str = "walk::faults::directory_dropped_midway_that_cannot_be_rewound_is_one_error";
    trapped(TEST, &[libc::SYS_lseek], || {
        let tree = tempfile::tempdir().unwrap();
        make(tree.path(), &["a/file", "b/file", "c/file"]);
        for (_, errno) in ERRNOS {
            let mut walk = Walk::open(tree.path()).unwrap();
            let mut root = walk.next().unwrap().unwrap();
            let first = tree.path().join(root.next().unwrap().unwrap().name_os());
            trap::fail(libc::SYS_lseek, errno, |number| number == 1);

            let mut visited = Vec::new();
            if errno == EINTR {
                visited.push(walk.next().unwrap().unwrap().path().to_owned());
            } else {
                let error = walk.next().unwrap_err();
                assert_eq!((error.path(), error.depth()), (tree.path(), 0));
                assert_eq!(error.io_error().raw_os_error(), Some(errno));
            }
            while let Some(dir) = walk.next().unwrap() {
                visited.push(dir.path().to_owned());
            }
            assert_eq!((&visited[0], visited.len()), (&first, if errno == EINTR { 3 } else { 1 }), "errno {errno}");
            trap::count(libc::SYS_lseek);
        }
        let what = "errors of `lseek` in a directory that was dropped midway: one, and the directories seen before are visited";
        machine::passed("walk: a rewind fails", ERRNOS.len(), what);
    });
}

/// Old kernels refuse it, and so do the seccomp filters of containers.
#[test]
fn mounts_are_told_apart_where_openat2_is_refused() {
    const TEST: &str = "walk::faults::mounts_are_told_apart_where_openat2_is_refused";
    trapped(TEST, &CALLS, || {
        let row = "walk: `openat2` is refused";
        let outcome = in_own_namespace(|scratch| {
            let tree = scratch.join("tree");
            comb(&tree, DEPTH);
            make(&tree, &["tmpfs/", "bind/", "itself/", "z/tmpfs/"]);
            mount_bind(tree.join("d"), tree.join("bind")).unwrap();
            mount_bind(&tree, tree.join("itself")).unwrap();
            for point in ["tmpfs", "z/tmpfs"] {
                mount("none", tree.join(point), "tmpfs", MountFlags::empty(), c"").unwrap();
                make(&tree.join(point), &["directory/file"]);
            }
            let mount_points = ["tmpfs", "bind", "itself", "z/tmpfs"].map(PathBuf::from);
            let all = Told::by_std(&tree).unwrap().without(&mount_points);
            let mut cases = 0;
            for is_post_order in [false, true] {
                let way = Way { is_on_one_mount: true, is_post_order, ..SORTED };
                let run = way.begin(&tree);
                trap::count(GETDENTS64);
                assert_eq!(run.finish().sorted(), all);
                let has_marker = trap::made() as usize == all.visited.len();
                for errno in [ENOSYS, EPERM] {
                    let walk = |call, error, failing: Option<u32>| {
                        let run = way.begin(&tree);
                        trap::fail(call, error, move |number| Some(number) == failing);
                        trap::refuse(OPENAT2, errno);
                        let told = run.finish().sorted();
                        (told, trap::made())
                    };
                    // `statx` says which mount a directory is on. If that fails, the directory cannot be entered.
                    let (told, calls) = walk(STATX, EIO, None);
                    assert_eq!(told, all);
                    for number in 1..=calls {
                        let (told, _) = walk(STATX, EIO, Some(number));
                        let rest = Told { errors: vec![], ..told.clone() };
                        match &told.errors[..] {
                            [] => assert_eq!(rest, all, "a level is found by its name"),
                            [(path, error)] => {
                                assert!([EIO, errno].contains(error));
                                let lost = [path.clone(), path.join("z")].map(|path| all.clone().without(&[path]));
                                assert!(lost.contains(&rest), "{told:?}");
                            }
                            several => panic!("more than one error: {several:?}"),
                        }
                    }

                    // A directory that may not be opened is an error, but not the root of another mount.
                    let (told, opens) = walk(OPENAT, EACCES, None);
                    assert_eq!(told, all);
                    for number in 1..=opens {
                        let (told, _) = walk(OPENAT, EACCES, Some(number));
                        let rest = Told { errors: vec![], ..told.clone() };
                        match &told.errors[..] {
                            [] => assert_eq!(rest, all, "a mount point, or a way back"),
                            [(path, EACCES)] => {
                                assert!(!mount_points.contains(path));
                                assert_eq!(rest, all.clone().without(&[path]));
                            }
                            several => panic!("more than one error: {several:?}"),
                        }
                    }

                    let (told, reads) = walk(GETDENTS64, EIO, None);
                    assert_eq!(told, all);
                    let saved = usize::from(has_marker); // of the root, which is read first
                    assert_eq!(
                        reads as usize,
                        2 * all.visited.len() - saved,
                        "a directory below the root is read with a marker"
                    );
                    cases += (calls + opens) as usize + 3;
                    trap::count(GETDENTS64);
                }
            }
            cases
        });
        match outcome {
            Ok(cases) => {
                let what =
                    "walks under `ENOSYS` and `EPERM`: the same tree, bind mounts distinguished, without an end marker";
                machine::passed(row, cases, what);
            }
            Err(missing) => machine::skip(row, &missing),
        }
    });
}

/// On a file system that tells no types, an entry that is no directory costs one `openat2`.
#[test]
fn unknown_types_are_opened_and_never_asked_for() {
    const TEST: &str = "walk::faults::unknown_types_are_opened_and_never_asked_for";
    process::run(TEST, 60, || {
        let row = "walk: unknown types";
        let fill = |at: &Path, _| {
            comb(at, DEPTH);
            symlink("d", at.join("link")).unwrap();
            symlink("nowhere", at.join("dangling")).unwrap();
            // Opening one to read would wait for a writer.
            mknodat(CWD, at.join("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        };
        // The trap comes last: the programs that mount would not survive it.
        let outcome = FileSystem::named("ext4 ^filetype").mounted(fill, |mounted| {
            trap::set_for_good(&CALLS).map_err(|error| format!("a seccomp filter ({error})"))?;
            let all = Told::by_std(&mounted.at).unwrap();
            let entries = u32::try_from(all.entries.len()).expect("BUG: more entries than a `u32` counts");
            for (call, expected) in [(NEWFSTATAT, 0), (STATX, 0), (OPENAT2, entries)] {
                let run = PLAIN.begin(&mounted.at);
                trap::count(call);
                assert_eq!(run.finish().sorted(), all);
                assert_eq!(trap::made(), expected, "call {call}");
            }
            for way in WAYS {
                assert_eq!(way.walk(&mounted.at).sorted(), all, "{way:?}");
            }
            Ok(3 + WAYS.len())
        });
        match outcome.and_then(|cases| cases) {
            Ok(cases) => {
                machine::passed(row, cases, "walks on ext4 without types: an `openat2` an entry, and no `stat`");
            }
            Err(missing) => machine::skip(row, &missing),
        }
    });
}
