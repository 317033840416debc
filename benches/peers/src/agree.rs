//! Compares `walk` with `WalkDir` on random trees: sorted and not, to each depth, with and without
//! followed links, and with directories that cannot be read.
//!
//! The two differ in three ways, which [`by_walkdir`] evens out:
//!
//! - `WalkDir` returns the error of a followed link in place of its entry, and `walk` after it.
//! - In a `walk`, a dangling link is not an error, and a link at the maximum depth is not followed.
//! - Below a followed link, `walk` also refuses a directory that is on its path already, even if no
//!   link leads to it.

use lendir::{Order, Walk};
use lendir_benches::directories::{fastest_root, mix};
use rustix::fs::{Gid, Uid};
use rustix::io::{self, Errno};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::{iter, thread};
use walkdir::{DirEntryExt, WalkDir};

pub const LABEL: &str = "walk and WalkDir";

const TREES: u64 = 60;
const ENTRIES: usize = 60;
/// The most links to directories. They multiply the work.
const LINKS: usize = 5;
const LOOP: i32 = Errno::LOOP.raw_os_error();
/// The errors of `stat` for a link to nothing, or to a path below a file.
const DANGLING: [i32; 2] = [Errno::NOENT.raw_os_error(), Errno::NOTDIR.raw_os_error()];

/// Returns a sentence about the comparison. Panics unless the two agree.
///
/// A thread without rights makes the trees and walks them.
pub fn check() -> String {
    let checked = thread::scope(|scope| {
        let check = || {
            let _ = drop_rights(); // an ordinary user has none to drop
            let mut seen = Seen::default();
            (0..TREES).for_each(|number| check_tree(number, &mut seen));
            seen
        };
        scope.spawn(check).join()
    });
    let seen = checked.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    seen.sentence()
}

/// Drops the rights of this thread. The functions of the C library would drop the rights of all
/// threads.
fn drop_rights() -> io::Result<()> {
    const NOBODY: u32 = 65534;
    let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
    set_thread_groups(&[])?;
    set_thread_res_gid(group, group, group)?;
    set_thread_res_uid(user, user, user)
}

/// The number of things that were compared.
#[derive(Default)]
struct Seen {
    walks: usize,
    entries: usize,
    loops: usize,
    denied: usize,
    /// Whether there was a directory that cannot be read.
    any_locked: bool,
}

impl Seen {
    fn add(&mut self, items: &[Item]) {
        let errors = |of: Errno| {
            items.iter().filter(|it| it.what == What::Error(Some(of.raw_os_error()))).count()
        };
        self.walks += 1;
        self.entries += items.iter().filter(|it| matches!(it.what, What::Entry { .. })).count();
        self.loops += errors(Errno::LOOP);
        self.denied += errors(Errno::ACCESS);
    }

    fn sentence(&self) -> String {
        let Self { walks, entries, loops, denied, any_locked } = self;
        assert!(
            *loops > 0 && (*denied > 0 || !any_locked),
            "they met no loop, or were never refused"
        );
        format!("{walks} walks agree, with {entries} entries, {loops} loops, and {denied} refusals")
    }
}

/// An entry or an error of a walk.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Item {
    path: PathBuf,
    depth: usize,
    what: What,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Entry(Kind),
    /// The `errno` of the error.
    Error(Option<i32>),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Link,
    Directory { ino: u64 },
    Other { ino: u64 },
}

#[derive(Clone, Copy, Debug)]
struct Way {
    sorted: bool,
    follow: bool,
    max_depth: usize,
    /// The option of `walk`.
    max_open: usize,
}

/// Directories that cannot be read or searched. They can again after a drop, so that the tree can
/// be removed.
struct Locked(Vec<PathBuf>);

impl Drop for Locked {
    fn drop(&mut self) {
        for dir in &self.0 {
            let _ = fs::set_permissions(dir, Permissions::from_mode(0o700));
        }
    }
}

fn check_tree(number: u64, seen: &mut Seen) {
    let made = fastest_root().temporary();
    let (deepest, locked) = make(made.path(), Random(number << 32));
    seen.any_locked |= locked.0.iter().any(|dir| fs::read_dir(dir).is_err());
    let max_open = if number.is_multiple_of(2) { 4 } else { 32 }; // with 4 it closes levels early
    for max_depth in (1..=deepest + 1).chain([usize::MAX]) {
        for (sorted, follow) in [(false, false), (false, true), (true, false), (true, true)] {
            let way = Way { sorted, follow, max_depth, max_open };
            let (mut ours, mut theirs) = (by_walk(made.path(), way), by_walkdir(made.path(), way));
            if !sorted {
                ours.sort_unstable();
                theirs.sort_unstable();
            }
            let differ = iter::zip(&ours, &theirs).find(|(ours, theirs)| ours != theirs);
            assert_eq!(
                (differ, ours.len()),
                (None, theirs.len()),
                "tree {number}, {way:?}: what differs first, of `walk` and of `WalkDir`, and how much they say"
            );
            seen.add(&ours);
        }
    }
}

fn by_walk(root: &Path, way: Way) -> Vec<Item> {
    let order = if way.sorted { Order::Bytes } else { Order::Unsorted };
    let options = Walk::options().max_depth(way.max_depth).max_open(way.max_open).order(order);
    let mut tree = options.open(root).expect("cannot open the root");
    let mut items = Vec::new();
    loop {
        match tree.next() {
            Ok(None) => return items,
            Ok(Some(entry)) => {
                let kind = match entry.file_type().expect("cannot tell its type") {
                    lendir::FileType::Symlink => Kind::Link,
                    lendir::FileType::Directory => Kind::Directory { ino: entry.ino() },
                    _ => Kind::Other { ino: entry.ino() },
                };
                items.push(Item {
                    path: entry.path().into(),
                    depth: entry.depth(),
                    what: What::Entry(kind),
                });
                if way.follow {
                    entry.follow();
                }
            }
            Err(error) => {
                let what = What::Error(error.raw_os_error());
                let path = error.path().expect("an error without a path").to_owned();
                items.push(Item { path, depth: error.depth(), what });
            }
        }
    }
}

fn by_walkdir(root: &Path, way: Way) -> Vec<Item> {
    let walk = WalkDir::new(root).min_depth(1).max_depth(way.max_depth).follow_links(way.follow);
    let mut walk = if way.sorted { walk.sort_by_file_name() } else { walk }.into_iter();
    let mut items = Vec::new();
    while let Some(entry) = walk.next() {
        match entry {
            Ok(entry) => {
                let kind = match entry.file_type() {
                    _ if entry.path_is_symlink() => Kind::Link,
                    it if it.is_dir() => Kind::Directory { ino: entry.ino() },
                    _ => Kind::Other { ino: entry.ino() },
                };
                let (path, depth) = (entry.path().to_owned(), entry.depth());
                let is_loop = depth < way.max_depth
                    && matches!(kind, Kind::Directory { .. })
                    && is_in_itself(root, &path);
                items.push(Item { path: path.clone(), depth, what: What::Entry(kind) });
                if is_loop {
                    walk.skip_current_dir();
                    items.push(Item { path, depth, what: What::Error(Some(LOOP)) });
                }
            }
            Err(error) => {
                let (path, depth) =
                    (error.path().expect("an error without a path").to_owned(), error.depth());
                let is_link = items.last().is_none_or(|last| last.path != path); // its entry was not yielded
                if is_link {
                    items.push(Item { path: path.clone(), depth, what: What::Entry(Kind::Link) });
                }
                let errno = match error.loop_ancestor() {
                    Some(_) => Some(LOOP),
                    None => error.io_error().and_then(std::io::Error::raw_os_error),
                };
                if !is_link
                    || (depth < way.max_depth
                        && !errno.is_some_and(|errno| DANGLING.contains(&errno)))
                {
                    items.push(Item { path, depth, what: What::Error(errno) });
                }
            }
        }
    }
    items
}

/// Returns `true` if a directory above `path`, up to the root, is the same directory as `path`.
fn is_in_itself(root: &Path, path: &Path) -> bool {
    let id = |path: &Path| fs::metadata(path).ok().map(|it| (it.dev(), it.ino()));
    let above = path.ancestors().skip(1).take_while(|above| above.starts_with(root));
    id(path).is_some_and(|of_path| above.filter_map(id).any(|of_above| of_above == of_path))
}

/// Makes a tree. Returns its depth, and the directories that are locked.
fn make(root: &Path, mut random: Random) -> (usize, Locked) {
    let may_lock = random.below(2) == 0;
    let is_deep = random.below(3) == 0;
    let (mut dirs, mut locked, mut links, mut deepest) =
        (vec![(root.to_owned(), 1)], Vec::new(), 0, 1);
    // Links lead only to these, because an error of `WalkDir` has no path if the target of a link
    // cannot be read.
    let mut open = vec![root.to_owned()];
    for _ in 0..ENTRIES {
        let last = dirs.len() - 1;
        let (dir, depth) =
            &dirs[if is_deep && random.below(4) > 0 { last } else { random.below(dirs.len()) }];
        let (path, depth) = (dir.join(random.name()), *depth);
        let link = |to: &Path| drop(symlink(to, &path)); // a name that is taken is left out, here and below
        match random.below(12) {
            0..5 => {
                if fs::create_dir(&path).is_ok() {
                    if may_lock && random.below(6) == 0 {
                        locked.push(path.clone());
                    } else {
                        open.push(path.clone());
                    }
                    dirs.push((path, depth + 1));
                }
            }
            5 | 6 if links < LINKS => {
                links += 1;
                let above = dir
                    .parent()
                    .filter(|above| open.iter().any(|it| it == above) && random.below(3) == 0);
                link(if above.is_some() {
                    Path::new("..")
                } else {
                    &open[random.below(open.len())]
                });
            }
            7 => link([Path::new("nothing"), Path::new("nothing/below"), &path][random.below(3)]),
            _ => drop(File::create_new(&path)),
        }
        deepest = deepest.max(depth);
    }
    let locked = Locked(locked);
    for dir in locked.0.iter().rev() {
        let mode = [0o000, 0o111, 0o444][random.below(3)];
        fs::set_permissions(dir, Permissions::from_mode(mode)).expect("cannot lock the directory");
    }
    (deepest, locked)
}

/// Pseudo-random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 += 1;
        usize::try_from(mix(self.0) % end as u64).expect("BUG: not below `end`")
    }

    /// Returns a name of any bytes. It is short, because `WalkDir` cannot open a path of more than
    /// 4,096 bytes.
    fn name(&mut self) -> OsString {
        let bytes = (0..=self.below(12)).map(|_| match u8::try_from(self.below(256)) {
            Ok(0 | b'/') => b'\n',
            byte => byte.expect("BUG: more than a byte"),
        });
        OsString::from_vec(bytes.collect())
    }
}
