//! One suite of cases on every file system, and the table of what passed where. `file_systems` has the list.

use crate::file_systems::{Contents, FILE_SYSTEMS, FileSystem};
use crate::mounted::{Mounted, Part};
use crate::readers::{READERS, WALKERS};
use crate::support::machine;
use crate::support::scan::{self, End, Found, ORDERS, Scan, names};
use crate::walk::{Told, WAYS};
use lendir::{Buffer, EndMarker, Entries, FileType, Listing, Order, SortedEntry, Walk};
use rustix::fs::{AtFlags, CWD, Mode, RawDir, makedev, mknodat, unlinkat};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt::{Display, Write as _};
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::thread;

/// A case, run on every file system that has what it asks for.
struct Case {
    name: &'static str,
    asks: Asks,
    run: fn(&Mounted),
}

#[derive(Clone, Copy)]
enum Asks {
    /// Directories that do not change.
    Reading,
    /// The contents made by [`fill`].
    OurContents,
    /// Directories that can be removed, made by [`fill_doomed`].
    Removing,
}

const CASES: [Case; 18] = [
    Case { name: "all types", asks: Asks::OurContents, run: types_are_told_or_resolved },
    Case { name: "all names", asks: Asks::OurContents, run: names_come_back },
    Case { name: "0 to 20,000 entries", asks: Asks::OurContents, run: entries_come_once },
    Case { name: "beside `std`", asks: Asks::Reading, run: std_reads_the_same },
    Case { name: "beside Go, Python and find", asks: Asks::Reading, run: other_readers_read_the_same },
    Case { name: "sorted", asks: Asks::Reading, run: listing_is_sorted },
    Case { name: "buffers", asks: Asks::Reading, run: every_buffer_reads_the_same },
    Case { name: "seek", asks: Asks::Reading, run: seek_resumes_after_each_cookie },
    Case { name: "rewind", asks: Asks::Reading, run: rewind_begins_again },
    Case { name: "marker never early", asks: Asks::Reading, run: end_marker_loses_nothing },
    Case { name: "walk beside `std`, Python and find", asks: Asks::Reading, run: walks_tell_the_same },
    Case { name: "walk, half read", asks: Asks::Reading, run: half_read_directories_hide_nothing },
    Case { name: "walk, half removed", asks: Asks::Removing, run: half_removed_directories_hide_nothing },
    Case { name: "one call less with a marker", asks: Asks::Removing, run: end_marker_saves_the_last_call },
    Case { name: "removed before reading", asks: Asks::Removing, run: removed_before_reading },
    Case { name: "removed midway", asks: Asks::Removing, run: removed_midway },
    Case { name: "tree removed", asks: Asks::Removing, run: removed_with_the_whole_tree },
    Case { name: "removed after the end", asks: Asks::Removing, run: removed_after_the_end },
];

#[test]
fn every_file_system_passes_every_case() {
    let _watchdog = machine::watchdog();
    for (name, missing) in READERS.iter().chain(WALKERS.iter()).filter_map(|reader| reader.as_ref().err()) {
        machine::skip(&format!("{name} on every file system"), missing);
    }
    let rows: Vec<Row> = thread::scope(|scope| {
        let rows: Vec<_> = FILE_SYSTEMS.iter().map(|system| scope.spawn(|| Row::of(system))).collect();
        rows.into_iter().map(|row| row.join().expect("BUG: a case panicked outside of its guard")).collect()
    });
    machine::table("file systems", &table_of(&rows));
    for row in &rows {
        if let Err(missing) = &row.outcome {
            machine::skip(&format!("suite on {}", row.system.name), missing);
        }
    }
    assert!(rows.iter().all(Row::has_no_failure), "a case failed: the table has its `**no**`, and FAILED names it");
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Passed,
    Failed,
    NotApplicable,
}

struct Row {
    system: &'static FileSystem,
    /// The verdict of each case, or what this machine lacks.
    outcome: Result<Vec<Verdict>, String>,
}

impl Row {
    fn of(system: &'static FileSystem) -> Self {
        let verdicts = |mounted: &Mounted| {
            let doomed = Doomed::of(mounted);
            let verdicts = CASES.iter().map(|case| {
                let applies = match case.asks {
                    Asks::Reading => true,
                    Asks::OurContents => !matches!(system.contents, Contents::Kernel { .. }),
                    Asks::Removing => doomed.is_some(),
                };
                match applies.then(|| catch_unwind(AssertUnwindSafe(|| (case.run)(mounted)))) {
                    Some(Ok(())) => Verdict::Passed,
                    Some(Err(_)) => {
                        eprintln!("FAILED {}: {}", system.name, case.name);
                        Verdict::Failed
                    }
                    None => Verdict::NotApplicable,
                }
            });
            verdicts.collect()
        };
        Self { system, outcome: system.mounted(|at, part| fill(at, part, system), verdicts) }
    }

    fn has_no_failure(&self) -> bool {
        self.outcome.as_ref().map_or(true, |verdicts| !verdicts.contains(&Verdict::Failed))
    }
}

fn table_of(rows: &[Row]) -> String {
    let mut table = String::from("| file system |");
    for case in &CASES {
        let _ = write!(table, " {} |", case.name);
    }
    let _ = writeln!(table, " passed of tried |\n|---|{}---|", "---|".repeat(CASES.len()));
    for row in rows {
        let _ = write!(table, "| {} |", row.system.name);
        match &row.outcome {
            Ok(verdicts) => {
                for verdict in verdicts {
                    let sign = match verdict {
                        Verdict::Passed => "yes",
                        Verdict::Failed => "**no**",
                        Verdict::NotApplicable => "–",
                    };
                    let _ = write!(table, " {sign} |");
                }
                let count = |wanted| verdicts.iter().filter(|verdict| **verdict == wanted).count();
                let passed = count(Verdict::Passed);
                let _ = writeln!(table, " {passed} of {} |", passed + count(Verdict::Failed));
            }
            Err(missing) => {
                let _ = writeln!(table, "{} skipped: {missing} |", " |".repeat(CASES.len()));
            }
        }
    }
    if !machine::runs_long() {
        table += "\nShort form: large directories are sought and rewound in steps, and `ext4 ^dir_index`, which takes seconds \
                  to fill, has 1,024 entries at most. `LENDIR_LONG=1` runs the long form.\n";
    }
    table
}

/// The contents: `types`, `names`, a directory for each of [`counts`], and `doomed` to be removed.
fn fill(at: &Path, part: Part, system: &FileSystem) {
    for (dir, names) in contents(system) {
        let dir = at.join(dir);
        fs::create_dir_all(&dir).unwrap();
        for (_, name) in names.iter().enumerate().filter(|(index, _)| part.has(*index)) {
            make(&dir, OsStr::from_bytes(name), FileType::RegularFile);
        }
    }
    let types = at.join("types");
    fs::create_dir_all(&types).unwrap();
    for (_, (name, file_type)) in TYPES.iter().enumerate().filter(|(index, _)| part.has(*index)) {
        make(&types, OsStr::new(name), *file_type);
    }
    fill_doomed(&at.join("doomed"), part);
}

fn counts(system: &FileSystem) -> &'static [usize] {
    let counts = &[0, 1, 2, 16, 1024, 20_000];
    if system.is_slow_to_fill && !machine::runs_long() { &counts[..5] } else { counts }
}

/// The directories of regular files, each with all its names.
fn contents(system: &FileSystem) -> BTreeMap<String, BTreeSet<Vec<u8>>> {
    let numbers = |count: &usize| (0..*count).map(|number| number.to_string().into_bytes()).collect();
    let mut contents: BTreeMap<_, _> = counts(system).iter().map(|count| (count.to_string(), numbers(count))).collect();
    let by_length =
        (1..=255_u8).map(|length| (0..length).map(|at| 0x80 | length.wrapping_mul(31).wrapping_add(at)).collect());
    let by_byte = (1..=255).filter(|byte| !b"./".contains(byte)).map(|byte| vec![byte]);
    contents.insert("names".to_owned(), by_length.chain(by_byte).collect());
    contents
}

const TYPES: [(&str, FileType); 7] = [
    ("directory", FileType::Directory),
    ("file", FileType::RegularFile),
    ("link", FileType::Symlink),
    ("pipe", FileType::Fifo),
    ("socket", FileType::Socket),
    ("tty", FileType::CharacterDevice),
    ("disk", FileType::BlockDevice),
];

fn make(dir: &Path, name: &OsStr, file_type: FileType) {
    let path = dir.join(name);
    match file_type {
        FileType::Directory => fs::create_dir(path).unwrap(),
        FileType::Symlink => symlink("nowhere", path).unwrap(),
        _ => mknodat(CWD, path, file_type, Mode::RUSR, makedev(1, 3)).unwrap(),
    }
}

/// Directories to be removed. They hold only directories, so cgroup2 can have them too.
fn fill_doomed(at: &Path, part: Part) {
    for dir in ["before", "tree/a/b", "after", "saved", "midway"] {
        fs::create_dir_all(at.join(dir)).unwrap();
        // Names long enough for three batches of the smallest buffer.
        let count = if dir == "midway" { 200 } else { 0 };
        for index in (0..count).filter(|index| part.has(*index)) {
            fs::create_dir(at.join(dir).join(format!("{index:0>100}"))).unwrap();
        }
    }
}

/// The path of the directories to be removed, on a file system that can have them.
struct Doomed(PathBuf);

impl Doomed {
    fn path(mounted: &Mounted) -> PathBuf {
        match mounted.system.contents {
            Contents::Kernel { .. } => mounted.at.join(format!("lendir-{}", std::process::id())),
            Contents::Written | Contents::Packed | Contents::Merged => mounted.at.join("doomed"),
        }
    }

    fn of(mounted: &Mounted) -> Option<Self> {
        let path = Self::path(mounted);
        match mounted.system.contents {
            Contents::Written | Contents::Merged => {}
            Contents::Kernel { takes_directories: true, .. } => fill_doomed(&path, Part::All),
            Contents::Kernel { takes_directories: false, .. } | Contents::Packed => return None,
        }
        Some(Self(path))
    }
}

impl Drop for Doomed {
    fn drop(&mut self) {
        remove_directories(&self.0);
    }
}

/// Removes a tree of directories and whatever the kernel put there.
fn remove_directories(dir: &Path) {
    for child in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        if child.file_type().unwrap().is_dir() {
            remove_directories(&child.path());
        }
    }
    fs::remove_dir(dir).unwrap();
}

/// The directories that do not change while the cases run.
fn still(mounted: &Mounted) -> impl Iterator<Item = PathBuf> {
    let names = match mounted.system.contents {
        Contents::Kernel { still, takes_directories } => {
            let made = Doomed::path(mounted).join("midway").display().to_string();
            still.iter().map(ToString::to_string).chain(takes_directories.then_some(made)).collect()
        }
        Contents::Written | Contents::Packed | Contents::Merged => {
            contents(mounted.system).into_keys().chain(["types".to_owned()]).collect::<Vec<_>>()
        }
    };
    names.into_iter().map(|name| mounted.at.join(name))
}

fn all(dir: &Path) -> Vec<Found> {
    scan::all(&mut Entries::new(&lendir::open(dir).unwrap(), &mut Buffer::new()))
}

fn by_name(found: Vec<Found>) -> Vec<Found> {
    scan::sorted(found, Order::Bytes)
}

/// These come next, in this order.
fn assert_next(entries: &mut Entries<'_>, expected: &[Found], what: &dyn Display) {
    for (index, expected) in expected.iter().enumerate() {
        let entry = entries.next().unwrap();
        assert!(entry.as_ref().is_some_and(|entry| expected == entry), "{what}: {index}: {expected:?}, not {entry:?}");
    }
}

/// These come next, and then no more.
fn assert_rest(entries: &mut Entries<'_>, expected: &[Found], what: &dyn Display) {
    assert_next(entries, expected, what);
    for _ in 0..2 {
        let more = entries.next().unwrap();
        assert!(more.is_none(), "{what}: {more:?} beyond the end");
    }
}

fn types_are_told_or_resolved(mounted: &Mounted) {
    let dir = lendir::open(mounted.at.join("types")).unwrap();
    let mut buffer = Buffer::new();
    let mut entries = Entries::new(&dir, &mut buffer);
    let mut seen = BTreeMap::new();
    while let Some(entry) = entries.next().unwrap() {
        assert_eq!(entry.file_type() != FileType::Unknown, mounted.system.has_types, "{entry:?}");
        seen.insert(String::from_utf8_lossy(entry.name()).into_owned(), entry.resolve_file_type().unwrap());
    }
    let expected = TYPES.map(|(name, file_type)| (name.to_owned(), file_type)).into();
    assert_eq!(seen, expected);
    entries.rewind().unwrap();
    let mut listing = Listing::new();
    listing.read(entries).unwrap();
    let resolved = |entry: SortedEntry<'_>| entry.resolve_file_type(&dir).unwrap();
    let seen: BTreeMap<_, _> =
        listing.iter().map(|entry| (String::from_utf8_lossy(entry.name()).into_owned(), resolved(entry))).collect();
    assert_eq!(seen, expected);
}

fn names_come_back(mounted: &Mounted) {
    let found = by_name(all(&mounted.at.join("names")));
    assert!(names(&found).into_iter().eq(&contents(mounted.system)["names"]));
}

fn entries_come_once(mounted: &Mounted) {
    let contents = contents(mounted.system);
    for count in counts(mounted.system) {
        let path = mounted.at.join(count.to_string());
        assert!(names(&by_name(all(&path))).into_iter().eq(&contents[&count.to_string()]), "{count}");
        let dir = lendir::open(&path).unwrap();
        assert_eq!(Entries::new(&dir, &mut Buffer::new()).count().unwrap(), *count as u64);
    }
}

fn std_reads_the_same(mounted: &Mounted) {
    for dir in still(mounted) {
        let ours = all(&dir);
        let scan = Scan { found: ours.clone(), end: End::Complete };
        assert_eq!(scan.bare(), Scan::by_std(&dir), "{}", dir.display());
        let opened = lendir::open(&dir).unwrap();
        for found in ours {
            assert!([FileType::Unknown, found.true_type(&opened)].contains(&found.file_type), "{found:?}");
        }
    }
}

fn other_readers_read_the_same(mounted: &Mounted) {
    let dirs: Vec<_> = still(mounted).collect();
    let ours = by_name(dirs.iter().flat_map(|dir| all(dir)).collect());
    for reader in READERS.iter().flatten() {
        let mut told = reader.read(&dirs);
        told.names.sort_unstable();
        assert!(told.is_content && told.names == names(&ours), "{}", reader.name);
    }
}

fn listing_is_sorted(mounted: &Mounted) {
    let mut buffer = Buffer::with_capacity(0);
    for order in ORDERS {
        let mut listing = Listing::with_order(order);
        for path in still(mounted) {
            let dir = lendir::open(&path).unwrap();
            let entries = Entries::new(&dir, &mut buffer).with_end_marker(EndMarker::of(&dir).unwrap());
            let scan = Scan { found: all(&path), end: End::Complete };
            let scan = if order == Order::Path { scan.resolved(|entry| entry.true_type(&dir)) } else { scan };
            let listed = Scan::by_listing(&mut listing, entries);
            assert!(listed == scan.sorted(order), "{} by {order:?}", path.display());
        }
    }
}

/// From the floor up to 1 MiB.
const CAPACITIES: [usize; 5] = [0, 8 * 1024 + 1, Buffer::DEFAULT_CAPACITY, 64 * 1024, 1024 * 1024];

fn every_buffer_reads_the_same(mounted: &Mounted) {
    assert_every_buffer_reads_the_same(mounted, |_| EndMarker::NONE);
}

fn assert_every_buffer_reads_the_same(mounted: &Mounted, marker: impl Fn(&OwnedFd) -> EndMarker) {
    for path in still(mounted) {
        let expected = all(&path);
        for capacity in CAPACITIES {
            let dir = lendir::open(&path).unwrap();
            let mut buffer = Buffer::with_capacity(capacity);
            let mut entries = Entries::new(&dir, &mut buffer).with_end_marker(marker(&dir));
            assert_rest(&mut entries, &expected, &format_args!("{} with {capacity} bytes", path.display()));
        }
    }
}

fn seek_resumes_after_each_cookie(mounted: &Mounted) {
    for path in still(mounted) {
        let expected = all(&path);
        let dir = lendir::open(&path).unwrap();
        let mut buffer = Buffer::with_capacity(0);
        let mut entries = Entries::new(&dir, &mut buffer);
        for index in (0..expected.len()).step_by(step(&expected)) {
            entries.seek(expected[index].cookie).unwrap();
            let (rest, what) = (&expected[index + 1..], format_args!("{} after entry {index}", path.display()));
            if rest.len() > FEW {
                assert_next(&mut entries, &rest[..2], &what);
            } else {
                assert_rest(&mut entries, rest, &what);
            }
        }
    }
}

fn rewind_begins_again(mounted: &Mounted) {
    for path in still(mounted) {
        let expected = all(&path);
        let dir = lendir::open(&path).unwrap();
        let mut buffer = Buffer::with_capacity(0);
        let mut entries = Entries::new(&dir, &mut buffer);
        for count in (0..=expected.len()).step_by(step(&expected)) {
            assert_next(&mut entries, &expected[..count], &format_args!("the first {count} of {}", path.display()));
            entries.rewind().unwrap();
        }
        assert_rest(&mut entries, &expected, &format_args!("{} after the last rewind", path.display()));
    }
}

/// Where there are more entries than this, cases look at some of them.
const FEW: usize = 600;

fn step(entries: &[Found]) -> usize {
    match (entries.len(), machine::runs_long()) {
        (..=FEW, _) | (..=2000, true) => 1,
        (..=2000, false) => 13,
        (_, true) => 17,
        (_, false) => 1301,
    }
}

fn end_marker_loses_nothing(mounted: &Mounted) {
    assert_every_buffer_reads_the_same(mounted, |dir| EndMarker::of(dir).unwrap());
    if let Some(end) = mounted.system.end_cookie() {
        for dir in still(mounted) {
            let cookies = cookies_with_dots(&dir);
            assert_eq!(cookies.iter().position(|cookie| *cookie == end), Some(cookies.len() - 1), "{}", dir.display());
        }
    }
}

fn cookies_with_dots(dir: &Path) -> Vec<u64> {
    let mut cookies = Vec::new();
    let mut memory = Vec::with_capacity(Buffer::DEFAULT_CAPACITY);
    let mut records = RawDir::new(lendir::open(dir).unwrap(), memory.spare_capacity_mut());
    while let Some(record) = records.next() {
        cookies.push(record.unwrap().next_entry_cookie());
    }
    cookies
}

/// The directory is removed once its last entry is lent. An iterator that asks the kernel again finds that out; one that
/// believes a marker does not ask.
fn end_marker_saves_the_last_call(mounted: &Mounted) {
    let path = Doomed::path(mounted).join("saved");
    fs::create_dir(path.join("child")).unwrap();
    let dir = lendir::open(&path).unwrap();
    let marker = EndMarker::of(&dir).unwrap();
    let mut buffer = Buffer::new();
    let count = Entries::new(&dir, &mut buffer).count().unwrap();
    let mut entries = Entries::new(&dir, &mut buffer).with_end_marker(marker);
    entries.rewind().unwrap();
    for _ in 0..count {
        assert!(entries.next().unwrap().is_some());
    }
    remove_directories(&path);
    assert!(entries.next().unwrap().is_none());
    assert_eq!(entries.removed(), mounted.system.end_cookie().is_none());
}

fn removed_before_reading(mounted: &Mounted) {
    let path = Doomed::path(mounted).join("before");
    let dir = lendir::open(&path).unwrap();
    remove_directories(&path);
    let mut buffer = Buffer::new();
    assert_gone(&mut Entries::new(&dir, &mut buffer));
}

fn removed_midway(mounted: &Mounted) {
    let path = Doomed::path(mounted).join("midway");
    let expected = all(&path);
    let dir = lendir::open(&path).unwrap();
    let mut buffer = Buffer::with_capacity(0);
    let mut entries = Entries::new(&dir, &mut buffer).with_end_marker(EndMarker::of(&dir).unwrap());
    let mut found = vec![Found::from(&entries.next().unwrap().expect("the directory lists no entry"))];
    remove_directories(&path);
    let rest = Scan::of(&mut entries);
    found.extend(rest.found);
    assert!(
        found.len() < expected.len() && expected.starts_with(&found),
        "what is delivered is not what was in the buffer"
    );
    assert_eq!(rest.end, End::Removed);
}

fn removed_with_the_whole_tree(mounted: &Mounted) {
    let tree = Doomed::path(mounted).join("tree");
    let dirs = ["", "a", "a/b"].map(|dir| lendir::open(tree.join(dir)).unwrap());
    remove_directories(&tree);
    let mut buffer = Buffer::new();
    for dir in &dirs {
        assert_gone(&mut Entries::new(dir, &mut buffer));
    }
}

fn removed_after_the_end(mounted: &Mounted) {
    let path = Doomed::path(mounted).join("after");
    let dir = lendir::open(&path).unwrap();
    let mut buffer = Buffer::new();
    let mut entries = Entries::new(&dir, &mut buffer);
    while entries.next().unwrap().is_some() {}
    remove_directories(&path);
    assert!(entries.next().unwrap().is_none() && !entries.removed(), "the end came before");
    entries.rewind().unwrap();
    assert_gone(&mut entries);
}

/// The roots of trees that hold still.
fn trees(mounted: &Mounted) -> Vec<PathBuf> {
    match mounted.system.contents {
        Contents::Kernel { .. } => still(mounted).collect(),
        _ => vec![mounted.at.clone()],
    }
}

/// Calls `compare` with each tree and what `std` tells of it, and again if the tree changed meanwhile.
fn compare_with_std(mounted: &Mounted, mut compare: impl FnMut(&Path, &Told) -> Result<(), String>) {
    for tree in trees(mounted) {
        let mut verdict = Ok(());
        let is_settled = (0..10).any(|_| {
            let Ok(before) = Told::by_std(&tree) else { return false };
            verdict = compare(&tree, &before);
            verdict.is_ok() || Told::by_std(&tree).is_ok_and(|after| after == before)
        });
        assert!(is_settled, "{} changed during each of ten comparisons", tree.display());
        verdict.unwrap();
    }
}

fn walks_tell_the_same(mounted: &Mounted) {
    compare_with_std(mounted, |tree, expected| {
        for way in WAYS {
            let told = way.walk(tree);
            if way.is_post_order && told.left.len() != expected.visited.len() {
                return Err(format!("{way:?}: {} second visits in {}", told.left.len(), tree.display()));
            }
            if told.sorted() != *expected {
                return Err(format!("{way:?} and `std` differ on {}", tree.display()));
            }
        }
        for walker in WALKERS.iter().flatten() {
            let mut told = walker.read(&[tree]);
            told.names.sort_unstable();
            if !told.is_content
                || !told.names.iter().eq(expected.entries.iter().map(|path| path.as_os_str().as_bytes()))
            {
                return Err(format!("{} and `std` differ on {}", walker.name, tree.display()));
            }
        }
        Ok(())
    });
}

fn half_read_directories_hide_nothing(mounted: &Mounted) {
    compare_with_std(mounted, |tree, expected| {
        for is_on_one_mount in [false, true] {
            let walk = Walk::new(lendir::open(tree).unwrap(), "").max_open(4);
            let mut walk = if is_on_one_mount { walk.same_mount(true) } else { walk };
            let mut visited = Vec::new();
            while let Some(mut dir) = walk.next().map_err(|error| error.to_string())? {
                visited.push(dir.path().to_owned());
                // None, one, the first batch, and one more.
                for _ in 0..[0, 1, 400, 1500][visited.len() % 4] {
                    dir.next().map_err(|error| error.to_string())?;
                }
            }
            visited.sort_unstable_by(|a: &PathBuf, b| a.as_os_str().cmp(b.as_os_str()));
            if visited != expected.visited {
                return Err(format!("{} of {} directories were visited", visited.len(), expected.visited.len()));
            }
        }
        Ok(())
    });
}

/// Cookies need not stay what they were when entries are removed, but what stays is found all the same.
fn half_removed_directories_hide_nothing(mounted: &Mounted) {
    const COUNT: usize = 60;
    for removed in [1, 10, COUNT / 2] {
        let path = Doomed::path(mounted).join("half").join(removed.to_string());
        for number in 0..COUNT {
            fs::create_dir_all(path.join(number.to_string())).unwrap();
        }
        let mut walk = Walk::open(&path).unwrap();
        let mut root = walk.next().unwrap().expect("the walk did not lend the root");
        let mut left = removed;
        while left > 0 {
            let entry = root.next().unwrap().expect("the directory ended early");
            // cgroup2 puts files there.
            if entry.resolve_file_type().unwrap() == FileType::Directory {
                unlinkat(entry.dir(), entry.name_cstr(), AtFlags::REMOVEDIR).unwrap();
                root.skip_entry();
                left -= 1;
            }
        }
        let mut visited = 0;
        while walk.next().unwrap().is_some() {
            visited += 1;
        }
        assert_eq!(visited, COUNT - removed, "directories left, after {removed} were removed as they were lent");
    }
}

fn assert_gone(entries: &mut Entries<'_>) {
    for _ in 0..2 {
        assert!(entries.next().unwrap().is_none());
        assert!(entries.removed());
        entries.rewind().unwrap();
        assert!(!entries.removed());
    }
}
