//! A model of queries and requests: which directories a walk enters, how often it calls `openat2`,
//! and which errors it yields. The calls about entries come in any order. Types are missing, calls
//! fail, and a directory changes.

use crate::support::machine::runs_long;
use crate::support::scan::{errno, path};
use crate::support::tree::{Random, make};
use crate::trap::{self, GETDENTS64, NEWFSTATAT, OPENAT2, STATX, trapped};
use lendir::{Dir, DirEntry, StatxFlags};
use libc::{EACCES, EIO, ENOENT, ENOSYS, ENOTDIR, c_int, c_long};
use rustix::fs::{AtFlags, CWD, statx};
use std::collections::BTreeMap;
use std::fs;
use std::mem;
use std::os::unix::fs::symlink;
use std::path::Path;

/// The file at a name. The links lead to a directory outside and to the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum There {
    Directory,
    File,
    Link { to_directory: bool },
    Nothing,
}

use There::{Directory, File, Link, Nothing};

const ENTRIES: [(&str, There); 4] = [
    ("d", Directory),
    ("f", File),
    ("to directory", Link { to_directory: true }),
    ("to file", Link { to_directory: false }),
];

/// A call about an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    FileType,
    Stat,
    Statx,
    Skip,
    Follow,
}

/// Makes a call about a `DirEntry` or a `WalkEntry`.
macro_rules! call {
    ($entry:expr, $call:expr) => {
        match $call {
            Call::FileType => drop($entry.file_type()),
            Call::Stat => drop($entry.stat()),
            Call::Statx => drop($entry.statx(StatxFlags::BASIC_STATS)),
            Call::Skip => $entry.skip_subtree(),
            Call::Follow => $entry.follow(),
        }
    };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    Next,
    /// The calls are made in its closure.
    Find,
    /// The `Dir` is dropped at the directory, so the walk reads the rest.
    Midway,
    Walk,
}

#[derive(Debug)]
struct Case {
    reader: Reader,
    has_types: bool,
    /// The call that fails.
    fails: Option<c_long>,
    /// The error of `openat2`.
    refused: Option<c_int>,
    calls: BTreeMap<&'static str, Vec<Call>>,
    /// The file type at the name of the directory during the calls about it, and after them.
    in_place: [There; 2],
}

impl Case {
    fn new(seed: usize) -> Self {
        let mut random = Random::of(&seed);
        let mut one_of = |request: usize| random.below(request);
        let reader = [Reader::Next, Reader::Find, Reader::Midway, Reader::Walk][one_of(4)];
        let has_types = one_of(2) == 0;
        let mut calls = BTreeMap::new();
        for (name, _) in ENTRIES {
            let call = |number| {
                [Call::FileType, Call::Stat, Call::Statx, Call::Skip, Call::Follow][number]
            };
            calls.insert(name, (0..one_of(4)).map(|_| call(one_of(5))).collect());
        }
        let in_place = [0; 2].map(|_| [Directory, Directory, File, Nothing][one_of(4)]);
        Self {
            reader,
            has_types,
            fails: [Some(NEWFSTATAT), Some(STATX), None][one_of(3)],
            // With `EACCES` the directory is yielded but cannot be read.
            refused: [None, None, Some(ENOENT), has_types.then_some(EACCES)][one_of(4)],
            calls,
            in_place: if reader == Reader::Midway { [Directory; 2] } else { in_place },
        }
    }

    /// Returns the expected result if the calls were made about the `yielded` entries.
    fn expected(&self, yielded: &[String]) -> Outcome {
        let mut outcome = Outcome::default();
        for (name, there) in ENTRIES {
            let [during, after] = if name == "d" { self.in_place } else { [there; 2] };
            let by_record =
                self.has_types.then_some(there).filter(|there| *there != File || !self.has_types);
            let is_file = self.has_types && there == File;
            let (mut known, mut request) = (by_record, None);
            for call in self.calls[name]
                .iter()
                .filter(|_| !is_file && yielded.iter().any(|yielded| yielded == name))
            {
                let answer = match call {
                    Call::Skip | Call::Follow => {
                        request = Some(*call);
                        continue;
                    }
                    Call::FileType if self.has_types => continue,
                    Call::FileType | Call::Stat => {
                        self.fails != Some(NEWFSTATAT) && during != Nothing
                    }
                    Call::Statx if self.fails == Some(STATX) || during == Nothing => continue,
                    Call::Statx => true,
                };
                known = if answer { Some(during) } else { known };
            }
            if request != Some(Call::Skip) && !is_file {
                let is_requested = request == Some(Call::Follow);
                self.open(&mut outcome, name, known, after, is_requested);
            }
        }
        outcome.opened += u32::from(mem::take(&mut outcome.asks_for_filter));
        outcome
    }

    /// Returns `true` if the walk learns an unknown type by `statx`.
    fn asks(&self, there: There) -> bool {
        self.fails != Some(STATX) && there != Nothing
    }

    fn open(
        &self,
        outcome: &mut Outcome,
        name: &str,
        known: Option<There>,
        there: There,
        is_requested: bool,
    ) {
        let known = known.or_else(|| self.asks(there).then_some(there));
        let is_followed = is_requested && matches!(known, None | Some(Link { .. }));
        if matches!(known, None | Some(Directory)) {
            outcome.opened += 1;
            let there = match there {
                Directory => 0,
                Nothing => ENOENT,
                File | Link { .. } => ENOTDIR,
            };
            outcome.asks_for_filter |= self.refused.unwrap_or(there) != 0;
            match self.refused.unwrap_or(there) {
                0 => return outcome.enter(name, self),
                // The error of reading the directory.
                EACCES if there == 0 => return outcome.errors.push((name.into(), EACCES)),
                ENOENT | ENOTDIR if known.is_none() => {}
                // The walk does not open a file or a link with `O_PATH`, either.
                errno => return outcome.errors.push((name.into(), errno)),
            }
        }
        if is_followed && matches!(there, Directory | Link { to_directory: true }) {
            outcome.enter(name, self);
        }
    }

    /// Reads the tree. Returns the entries about which calls were made, and the result.
    fn run(&self, tree: &Path) -> (Vec<String>, Outcome) {
        let (mut yielded, mut outcome) = (Vec::new(), Outcome::default());
        let mut place = Place { at: tree.join("root/d"), there: Directory };
        let root = tree.join("root");
        trap::fail(OPENAT2, self.refused.unwrap_or(0), {
            let is_refused = self.refused.is_some();
            move |number| is_refused && number != 2 // this one opens `.`
        });
        if !self.has_types {
            trap::hide_types();
        }
        if let Some(call) = self.fails {
            // The walk works without `statx`.
            trap::refuse(call, if call == STATX { ENOSYS } else { EIO });
        }
        if self.reader == Reader::Walk {
            let mut walk = lendir::walk(&root).unwrap();
            while let Some(entry) =
                walk.next_or_report(|error| outcome.errors.push(of_root(&error, &root)))
            {
                if entry.depth() == 1 {
                    self.call_all(entry.name(), &mut place, &mut yielded, |call| {
                        call!(entry, call);
                    });
                } else {
                    outcome
                        .entered
                        .push(entry.relative_path().parent().unwrap().to_str().unwrap().to_owned());
                }
            }
        } else {
            let mut walk = lendir::walk_dirs(&root).unwrap();
            while let Some(mut dir) =
                walk.next_or_report(|error| outcome.errors.push(of_root(&error, &root)))
            {
                if dir.depth() == 0 {
                    self.in_root(&mut dir, &mut place, &mut yielded);
                } else if dir
                    .next_or_report(|error| outcome.errors.push(of_root(&error, &root)))
                    .is_some()
                {
                    outcome.entered.push(dir.file_name().to_str().unwrap().to_owned());
                }
            }
        }
        outcome.opened = trap::made();
        trap::count(OPENAT2);
        place.put(Directory);
        outcome.entered.sort();
        outcome.errors.sort();
        (yielded, outcome)
    }

    fn in_root(&self, dir: &mut Dir<'_>, place: &mut Place, yielded: &mut Vec<String>) {
        let mut call_and_stop = |entry: &DirEntry<'_>| {
            self.call_all(entry.name(), place, yielded, |call| call!(entry, call));
            self.reader == Reader::Midway && entry.name() == b"d"
        };
        if self.reader == Reader::Next {
            while dir.next().unwrap().map(|entry| call_and_stop(&entry)).is_some() {}
        } else {
            assert_eq!(dir.find(call_and_stop).unwrap().is_some(), self.reader == Reader::Midway);
        }
    }

    fn call_all(
        &self,
        name: &[u8],
        place: &mut Place,
        yielded: &mut Vec<String>,
        call: impl Fn(Call),
    ) {
        let name = std::str::from_utf8(name).unwrap();
        let is_changed = name == "d";
        if is_changed {
            place.put(self.in_place[0]);
        }
        self.calls[name].iter().copied().for_each(call);
        if is_changed {
            place.put(self.in_place[1]);
        }
        yielded.push(name.to_owned());
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    entered: Vec<String>,
    errors: Vec<(String, c_int)>,
    /// The number of calls of `openat2`.
    opened: u32,
    /// Whether a call has failed. After the first one, `.` is opened to see whether a filter
    /// refuses the call.
    asks_for_filter: bool,
}

impl Outcome {
    fn enter(&mut self, name: &str, case: &Case) {
        self.entered.push(name.into());
        let opens_file = !case.has_types && !case.asks(File); // the file in it
        self.opened += u32::from(opens_file);
        self.asks_for_filter |= opens_file;
    }
}

/// The path of the directory, and what is there.
struct Place {
    at: std::path::PathBuf,
    there: There,
}

impl Place {
    fn put(&mut self, there: There) {
        let kept = self.at.with_file_name("../kept");
        match self.there {
            Directory => fs::rename(&self.at, &kept).unwrap(),
            File => fs::remove_file(&self.at).unwrap(),
            _ => {}
        }
        match there {
            Directory => fs::rename(&kept, &self.at).unwrap(),
            File => fs::write(&self.at, "").unwrap(),
            _ => {}
        }
        self.there = there;
    }
}

fn of_root(error: &lendir::Error, root: &Path) -> (String, c_int) {
    (path(error).strip_prefix(root).unwrap().to_str().unwrap().to_owned(), errno(error))
}

/// A walk enters and opens what the model says, for random queries and requests.
#[test]
fn walk_relies_on_outcomes_and_requests() {
    const TEST: &str = "walks::queries::walk_relies_on_outcomes_and_requests";
    trapped(TEST, &[GETDENTS64, OPENAT2, STATX, NEWFSTATAT], |tree| {
        make(tree, &["root/d/x", "root/f", "outside/x"]);
        symlink("../outside", tree.join("root/to directory")).unwrap();
        symlink("f", tree.join("root/to file")).unwrap();
        // If the first call fails, rustix makes no other.
        statx(CWD, tree, AtFlags::empty(), StatxFlags::INO).unwrap();
        let cases = if runs_long() { 50_000 } else { 5_000 };
        for seed in 0..cases {
            let case = Case::new(seed);
            let (yielded, outcome) = case.run(tree);
            let mut expected = case.expected(&yielded);
            expected.entered.sort();
            expected.errors.sort();
            assert_eq!(outcome, expected, "seed {seed}, {case:?}");
        }
    });
}
