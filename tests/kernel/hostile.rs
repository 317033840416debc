//! A misbehaving file system: what `lendir`, `std::fs::read_dir` and other readers deliver.
//!
//! `LENDIR_LONG=1` makes the endless directory ten million entries long.

use crate::errnos::{ERRNOS, name_of};
use crate::fuse::{Answer, Batch, Directory, Record, Server};
use crate::mounted::in_own_namespace;
use crate::readers::READERS;
use crate::signals;
use crate::support::machine;
use crate::support::process;
use crate::support::scan::{End, Found, ORDERS, Scan, errno, type_by_std};
use lendir::{Buffer, EndMarker, Entries, FileType, Listing, Order};
use libc::{DT_REG, EINTR, EINVAL, EIO, ENOENT};
use std::fs;
use std::fs::File;
use std::path::Path;
use std::process::Command;

/// A misbehaviour of the server, and the outcome for each reader.
struct Scenario {
    what: String,
    answers: Vec<Answer>,
    cookie: Option<fn(u64) -> u64>,
    lendir: Outcome,
    std: Outcome,
}

#[derive(Clone, Copy)]
enum Outcome {
    All,
    /// So many entries, and then this end.
    First(usize, End),
}

fn scenarios() -> Vec<Scenario> {
    use Outcome::{All, First};
    let eio = |after| First(after, End::Error(EIO));
    let with_ino_0 = if glibc_drops_ino_0() { First(0, End::Complete) } else { All };
    let mut table = vec![
        when("nothing wrong", honest()),
        when("not even dots", vec![]),
        when("no dots", crowd()),
        when("dots twice", [dots(), dots(), crowd()].concat()),
        when("dots last", [crowd(), dots()].concat()),
        when("dots between any two", crowd().into_iter().flat_map(|file| [dots(), vec![file]].concat()).collect()),
        when("every name twice", honest().into_iter().flat_map(|answer| [answer.clone(), answer]).collect()),
        when("`d_type` 0", altered(|record, _| record.d_type = 0)),
        when("`d_type` 15", altered(|record, _| record.d_type = 15)),
        when("a lie for a `d_type`", altered(|record, place| record.d_type = [1, 2, 4, 6, 10, 12, 14][place % 7])),
        when("`d_ino` 0", altered(|record, _| record.ino = 0)).std(with_ino_0),
        when("`d_ino` `u64::MAX`", altered(|record, _| record.ino = u64::MAX)),
        when("cookies that are all 0", honest()).cookie(|_| 0),
        when("cookies that are all the same", honest()).cookie(|_| 7),
        when("negative cookies", honest()).cookie(|place| u64::MAX - place),
        when("cookies that go back", honest()).cookie(|place| 1_000_000 - place),
        when("an `i32::MAX` cookie in the middle", honest())
            .cookie(|place| if place == 60 { i32::MAX as u64 } else { place + 1 }),
        when("an `i64::MAX` cookie in the middle", honest())
            .cookie(|place| if place == 60 { i64::MAX as u64 } else { place + 1 }),
        when("nothing but `i32::MAX` cookies", honest()).cookie(|_| i32::MAX as u64),
        when("nothing but `i64::MAX` cookies", honest()).cookie(|_| i64::MAX as u64),
        when("names of 255 bytes", among(long_names(255))),
        when("names of 256 bytes", among(long_names(256))),
        when("names of 1024 bytes", among(long_names(1024))),
        when("names of 1025 bytes", among(long_names(1025))),
        when("names of 4095 bytes", among(long_names(4095))),
        when("names of 4096 bytes", among(long_names(4096))).both(eio(3)),
        when("names that are not UTF-8", among([&[0xff, 0xfe][..], &[0xc3], &[0xed, 0xa0, 0x80]])),
        when("every name of one byte", (1..=255).filter(|&byte| byte != b'/').map(|byte| file(&[byte])).collect()),
        when("newlines in names", among(["\n", "a\nb", "\r\n"])),
        when("NUL inside names", among(["ab\0cd", ".\0hidden", "..\0hidden", "...\0"])),
        when("a name that begins with NUL", among(["\0", "\0hidden"])).lendir(eio(3)),
        when("an empty name", among([""])).both(eio(3)),
        when("a name with a slash", among(["../etc"])).both(eio(3)),
        when("an end, and then more", among_answers(vec![Answer::End]))
            .cookie(|place| place + 1)
            .both(First(3, End::Complete)),
        when("a burst of `EINTR`", among_answers(vec![Answer::Interruption; 50])).std(First(3, End::Error(EINTR))),
        when("a hang until a signal", among_answers(vec![Answer::Hang])).std(First(3, End::Error(EINTR))),
        when("hang after hang until a signal", among_answers(vec![Answer::Hang; 5])).std(First(3, End::Error(EINTR))),
    ];
    for (name, errno) in ERRNOS {
        // The middle first, because a table shows the first scenario of each name.
        for place in [4, 0, 1, 2, 3, 5, 6, 7, 8] {
            let mut answers = [dots(), crowd()[..6].to_vec()].concat();
            answers.insert(place, if errno == EINTR { Answer::Interruption } else { Answer::Error(errno) });
            let before = place.saturating_sub(2);
            let (lendir, std) = match errno {
                EINTR => (All, First(before, End::Error(EINTR))),
                ENOENT => (First(before, End::Removed), First(before, End::Complete)),
                _ => (First(before, End::Error(errno)), First(before, End::Error(errno))),
            };
            table.push(when(&format!("`{name}`"), answers).lendir(lendir).std(std));
        }
    }
    table
}

/// By default, every reader sees all entries.
fn when(what: &str, answers: Vec<Answer>) -> Scenario {
    Scenario { what: what.to_owned(), answers, cookie: None, lendir: Outcome::All, std: Outcome::All }
}

impl Scenario {
    fn cookie(self, cookie: fn(u64) -> u64) -> Self {
        Self { cookie: Some(cookie), ..self }
    }

    fn lendir(self, lendir: Outcome) -> Self {
        Self { lendir, ..self }
    }

    fn std(self, std: Outcome) -> Self {
        Self { std, ..self }
    }

    fn both(self, outcome: Outcome) -> Self {
        self.lendir(outcome).std(outcome)
    }

    fn directory(&self, batch: Batch) -> Directory {
        let answers = self.answers.clone();
        let at = move |place| usize::try_from(place).ok().and_then(|place| answers.get(place).cloned());
        let answers = move |place| at(place).unwrap_or(Answer::End);
        Directory { cookie: self.cookie, batch, ..Directory::of_files(answers) }
    }

    /// All entries except dots, each name up to its first NUL.
    fn entries(&self) -> Vec<Found> {
        let records = self.answers.iter().zip(0..).filter_map(|(answer, place)| match answer {
            Answer::Record(record) => Some((record, place)),
            _ => None,
        });
        let entries = records.map(|(record, place)| Found {
            name: record.name.split(|&byte| byte == 0).next().expect("BUG: `split` gave nothing").to_vec(),
            ino: record.ino,
            file_type: FileType::from_raw_mode(u32::from(record.d_type) << 12),
            cookie: self.cookie.map_or(place + 1, |cookie| cookie(place)),
        });
        entries.filter(|entry| !matches!(&entry.name[..], b"." | b"..")).collect()
    }

    fn expected(&self, outcome: Outcome) -> Scan {
        let entries = self.entries();
        match outcome {
            Outcome::All => Scan { found: entries, end: End::Complete },
            Outcome::First(count, end) => Scan { found: entries[..count].to_vec(), end },
        }
    }
}

fn record(name: &[u8]) -> Record {
    Record { name: name.to_vec(), ino: 1000 + name.iter().map(|&byte| u64::from(byte)).sum::<u64>(), d_type: DT_REG }
}

fn file(name: &(impl AsRef<[u8]> + ?Sized)) -> Answer {
    Answer::Record(record(name.as_ref()))
}

pub fn dots() -> Vec<Answer> {
    [".", ".."].map(|name| Answer::Record(Record { d_type: libc::DT_DIR, ..record(name.as_bytes()) })).to_vec()
}

/// More than one batch of the smallest buffer, in no order.
fn crowd() -> Vec<Answer> {
    (0..120).map(|number| file(&format!("file-{:055}", number * 79 % 120))).collect()
}

fn honest() -> Vec<Answer> {
    [dots(), crowd()].concat()
}

fn altered(alter: fn(&mut Record, usize)) -> Vec<Answer> {
    let mut answers = honest();
    for (place, answer) in answers.iter_mut().enumerate() {
        if let Answer::Record(record) = answer {
            alter(record, place);
        }
    }
    answers
}

/// Dots, three files, `answers` and the other files.
fn among_answers(answers: Vec<Answer>) -> Vec<Answer> {
    let crowd = crowd();
    [dots(), crowd[..3].to_vec(), answers, crowd[3..].to_vec()].concat()
}

fn among<Name: AsRef<[u8]>>(names: impl IntoIterator<Item = Name>) -> Vec<Answer> {
    among_answers(names.into_iter().map(|name| file(name.as_ref())).collect())
}

fn long_names(len: usize) -> impl Iterator<Item = Vec<u8>> {
    (b'a'..=b'e').map(move |byte| vec![byte; len])
}

/// glibc before 2.37 takes an entry with the inode number 0 for a deleted one.
fn glibc_drops_ino_0() -> bool {
    let answer =
        Command::new("getconf").arg("GNU_LIBC_VERSION").output().map(|output| output.stdout).unwrap_or_default();
    let version = std::str::from_utf8(&answer).unwrap_or_default().trim_end().strip_prefix("glibc 2.");
    version.and_then(|minor| minor.parse().ok()).is_some_and(|minor: u32| minor < 37)
}

#[test]
fn every_scenario_ends_as_stated() {
    served("hostile::every_scenario_ends_as_stated", 120, || {
        let mut table = scenarios();
        if !long_names_pass() {
            machine::skip("hostile server: names over 1024 bytes", LONG_NAMES);
            table.retain(|scenario| !scenario.entries().iter().any(|entry| (1025..4096).contains(&entry.name.len())));
        }
        let batches = [Batch::Full, Batch::One, Batch::Random];
        let directories = table.iter().flat_map(|scenario| batches.map(|batch| scenario.directory(batch))).collect();
        let server = Server::mount(directories).unwrap();
        let mut listings = ORDERS.map(|order| (order, Listing::with_order(order)));
        let mut differences = Vec::new();
        let mut cases = 0;
        for (number, scenario) in table.iter().enumerate() {
            for (variant, batch) in batches.into_iter().enumerate() {
                let path = server.path(number * batches.len() + variant);
                let case = format!("{}, {batch:?}", scenario.what);
                cases += check_entries(scenario, &server, &path, &case);
                cases += check_seek(scenario, &path, &case);
                cases += check_listings(scenario, &mut listings, &path, &case);
                let scan = Scan::by_std(&path);
                if cfg!(target_env = "gnu") {
                    assert_eq!(scan, scenario.expected(scenario.std).bare(), "{case}, std");
                }
                cases += 1;
                difference(scenario, &scan, &mut differences);
            }
        }
        let what = format!("readings of {} scenarios, by `Entries`, `Listing` and `std`, as stated", table.len());
        machine::passed("hostile server: every scenario", cases, &what);
        publish(&differences);
    });
}

/// By `Entries`, with the smallest and a large buffer, with a marker and without.
fn check_entries(scenario: &Scenario, server: &Server, path: &Path, case: &str) -> usize {
    let expected = scenario.expected(scenario.lendir);
    let mut cases = 0;
    for capacity in [Buffer::MIN_CAPACITY, 1 << 20] {
        for marked in [false, true] {
            let dir = lendir::open(path).unwrap();
            let marker = if marked { EndMarker::of(&dir).unwrap() } else { EndMarker::NONE };
            assert_eq!(marker, EndMarker::NONE, "FUSE has no end marker");
            let mut buffer = Buffer::with_capacity(capacity);
            let mut entries = Entries::new(&dir, &mut buffer).with_end_marker(marker);
            let scan = Scan::of(&mut entries);
            assert_eq!(scan, expected, "{case}, {capacity} bytes, {marker:?}");
            let reads = server.reads();
            assert!(entries.next().unwrap().is_none());
            assert_eq!(server.reads(), reads, "{case}: read again after the end");
            if scenario.cookie.is_none() {
                entries.rewind().unwrap();
                assert_eq!(Scan::of(&mut entries), expected, "{case}, again after a rewind");
            }
            cases += 1;
        }
    }
    cases
}

/// By `Listing`s, each of them reused for every scenario.
fn check_listings(scenario: &Scenario, listings: &mut [(Order, Listing)], path: &Path, case: &str) -> usize {
    let expected = scenario.expected(scenario.lendir);
    let mut buffer = Buffer::with_capacity(0);
    for (order, listing) in &mut *listings {
        let dir = lendir::open(path).unwrap();
        let scan = Scan::by_listing(listing, Entries::new(&dir, &mut buffer));
        let expected = expected.clone();
        let expected = if *order == Order::Path { expected.resolved(|_| FileType::RegularFile) } else { expected };
        assert_eq!(scan, expected.sorted(*order), "{case}, a listing by {order:?}");
    }
    listings.len()
}

/// `seek` asks for any cookie; the kernel refuses negative numbers.
fn check_seek(scenario: &Scenario, path: &Path, case: &str) -> usize {
    let dir = lendir::open(path).unwrap();
    let mut buffer = Buffer::new();
    let mut entries = Entries::new(&dir, &mut buffer);
    let all = scenario.entries();
    for (number, entry) in all.iter().enumerate() {
        let sought = entries.seek(entry.cookie);
        match i64::try_from(entry.cookie) {
            Ok(_) => sought.unwrap(),
            Err(_) => assert_eq!(errno(&sought.unwrap_err()), EINVAL, "{case}"),
        }
        if let (None, Outcome::All, Some(following)) = (scenario.cookie, scenario.lendir, all.get(number + 1)) {
            assert_eq!(entries.next().unwrap().unwrap().name(), following.name, "{case}");
        }
    }
    1
}

/// Adds a line where `std` delivers something else than `lendir`, for the first scenario of each name.
fn difference(scenario: &Scenario, scan: &Scan, lines: &mut Vec<String>) {
    let lendir = scenario.expected(scenario.lendir);
    let heading = format!("| {} |", scenario.what);
    if lendir.clone().bare() != *scan && !lines.iter().any(|line| line.starts_with(&heading)) {
        let all = scenario.entries().len();
        lines.push(format!("{heading} {} | {} |", in_words(&lendir, all), in_words(scan, all)));
    }
}

fn in_words(scan: &Scan, all: usize) -> String {
    let entries = match scan.found.len() {
        0 => "nothing",
        count if count == all => "every entry",
        _ => "what came before",
    };
    let oddity = if scan.found.iter().any(|entry| entry.name.is_empty()) { ", some with an empty name" } else { "" };
    let end = match scan.end {
        End::Complete if scan.found.len() == all => String::new(),
        End::Complete => ", then the end".to_owned(),
        End::Removed => ", then the end, with `removed()`".to_owned(),
        End::Error(errno) => format!(", then `{}`", name_of(errno)),
    };
    format!("{entries}{oddity}{end}")
}

fn publish(differences: &[String]) {
    let table = format!(
        "| the file system answers with | `lendir` delivers | `std::fs::read_dir` delivers |\n|---|---|---|\n{}\n",
        differences.join("\n")
    );
    machine::table("std", &table);
}

/// In no scenario does `std`, Go, Python or find see more entries than `lendir`, or report a loss that `lendir` does not.
///
/// Readers that make up a name are left out: they make it from an entry without one, where `lendir` ends with an error.
#[test]
fn no_other_reader_sees_more() {
    served("hostile::no_other_reader_sees_more", 240, || {
        // The server's signal finds only the threads of this process.
        let hangs = |scenario: &Scenario| scenario.answers.iter().any(|answer| matches!(answer, Answer::Hang));
        let mut table = scenarios();
        table.retain(|scenario| !hangs(scenario));
        if !machine::runs_long() {
            table = table.into_iter().step_by(3).collect(); // each starts a process for each reader
        }
        let server = Server::mount(table.iter().map(|scenario| scenario.directory(Batch::Full)).collect()).unwrap();
        for (name, missing) in READERS.iter().filter_map(|reader| reader.as_ref().err()) {
            machine::skip(&format!("{name} on a hostile server"), missing);
        }
        let (mut comparison, mut alike, mut cases) = (Comparison::default(), 0, 0);
        for (number, scenario) in table.iter().enumerate() {
            let path = server.path(number);
            let names: Vec<_> = scenario.entries().into_iter().map(|entry| entry.name).collect();
            let all = names.iter().filter(|name| !name.is_empty()).count();
            let ours = Scan::of(&mut Entries::new(&lendir::open(&path).unwrap(), &mut Buffer::new()));
            let ours = Summary::by_scan(ours, &names);
            let mut row = vec![Some(ours), Some(Summary::by_scan(Scan::by_std(&path), &names))];
            row.extend(READERS.iter().map(|reader| {
                let told = reader.as_ref().ok()?.read(&[&path]);
                Some(Summary::new(&told.names, !told.is_content, &names))
            }));
            for theirs in row[1..].iter().flatten().filter(|theirs| theirs.made_up == 0) {
                let is_more = theirs.names > ours.names || (theirs.tells && !ours.tells && ours.names < all);
                assert!(!is_more, "{}: {theirs:?}, lendir {ours:?}", scenario.what);
                cases += 1;
            }
            if row.iter().flatten().all(|seen| *seen == ours) && ours.names == all {
                alike += 1;
            } else {
                let cells = row.iter().map(|seen| seen.map_or("–".to_owned(), |seen| seen.in_words(all)));
                comparison.add(&scenario.what, &cells.collect::<Vec<_>>().join(" | "));
            }
        }
        machine::table("readers", &comparison.to_text(alike));
        let what = "readings by others: none saw more, except made-up names";
        machine::passed("hostile server: beside other readers", cases, what);
    });
}

/// How much of a directory a reader delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Summary {
    /// How many of the names that are there.
    names: usize,
    /// How many names that are not there.
    made_up: usize,
    /// Whether an error, or `removed`, says that there may be more.
    tells: bool,
}

impl Summary {
    fn new(names: &[Vec<u8>], tells: bool, all: &[Vec<u8>]) -> Self {
        let is_there = |name: &&Vec<u8>| !name.is_empty() && all.contains(name);
        let there = names.iter().filter(is_there).count();
        Self { names: there, made_up: names.len() - there, tells }
    }

    fn by_scan(scan: Scan, all: &[Vec<u8>]) -> Self {
        let names: Vec<_> = scan.found.into_iter().map(|entry| entry.name).collect();
        Self::new(&names, scan.end != End::Complete, all)
    }

    fn in_words(self, all: usize) -> String {
        let names = if self.names == all { "all".to_owned() } else { format!("{} of {all}", self.names) };
        let made_up = if self.made_up > 0 { format!(" and {} made up", self.made_up) } else { String::new() };
        let told = match (self.tells, self.names == all) {
            (true, _) => ", error",
            (false, true) => "",
            (false, false) => ", **no error**",
        };
        format!("{names}{made_up}{told}")
    }
}

/// The scenarios in which a reader misses entries. Those with the same outcome share a row.
#[derive(Default)]
struct Comparison(Vec<(Vec<String>, String)>);

impl Comparison {
    fn add(&mut self, what: &str, cells: &str) {
        if self.0.iter().any(|(scenarios, _)| scenarios.iter().any(|scenario| scenario == what)) {
            return; // the first scenario of this name is shown
        }
        match self.0.iter_mut().find(|row| row.1 == cells) {
            Some((scenarios, _)) => scenarios.push(what.to_owned()),
            None => self.0.push((vec![what.to_owned()], cells.to_owned())),
        }
    }

    fn to_text(&self, alike: usize) -> String {
        let others = READERS.iter().map(|reader| reader.as_ref().map_or_else(|(name, _)| *name, |reader| reader.name));
        let heads: Vec<_> = ["`lendir`", "`std::fs::read_dir`"].into_iter().chain(others).collect();
        let rule = "---|".repeat(1 + heads.len());
        let rows = self.0.iter().map(|(scenarios, cells)| format!("| {} | {cells} |\n", scenarios.join(", ")));
        format!(
            "| the file system answers with | {} |\n|{rule}\n{}\nLeft out: {alike} scenarios in which every reader sees every \
             entry, and those that hang until a signal, which other processes do not get. Each `errno` was tried at nine \
             places; one in the middle is shown. `removed()` of `lendir` counts as an error, as both say that there may be \
             more. A made-up name is one that no entry has, such as the empty name. – is a reader that this \
             machine did not have.\n",
            heads.join(" | "),
            rows.collect::<String>()
        )
    }
}

pub const LONG_NAMES: &str = "a kernel whose FUSE takes names over 1024 bytes";

/// Whether names of 4095 bytes reach a reader at all.
pub fn long_names_pass() -> bool {
    let scenario = when("a long name", long_names(4095).map(|name| file(&name)).collect());
    let server = Server::mount(vec![scenario.directory(Batch::Full)]).unwrap();
    fs::read_dir(server.path(0)).unwrap().next().unwrap().is_ok()
}

/// `file_type` is the type that the server sends. Where that means nothing, `resolve_file_type` asks, as `std` does.
#[test]
fn types_are_passed_on_or_resolved() {
    served("hostile::types_are_passed_on_or_resolved", 60, || {
        let answers = (0..16).map(|d_type| Answer::Record(Record { d_type, ..record(&[b'a' + d_type]) })).collect();
        let server = Server::mount(vec![when("every `d_type`", answers).directory(Batch::Full)]).unwrap();
        let dir = lendir::open(server.path(0)).unwrap();
        let mut buffer = Buffer::new();
        let mut listing = Listing::new();
        listing.read(Entries::new(&dir, &mut buffer)).unwrap();
        let mut entries = Entries::new(&dir, &mut buffer);
        entries.rewind().unwrap();
        let mut beside = fs::read_dir(server.path(0)).unwrap();
        for (d_type, listed) in (0..16).zip(&listing) {
            let said = FileType::from_raw_mode(d_type << 12);
            let resolved = if said == FileType::Unknown { FileType::RegularFile } else { said };
            let entry = entries.next().unwrap().unwrap();
            assert_eq!(entry.file_type(), said);
            assert_eq!(entry.resolve_file_type().unwrap(), resolved);
            assert_eq!(listed.name(), entry.name());
            assert_eq!(listed.file_type(), said);
            assert_eq!(listed.resolve_file_type(&dir).unwrap(), resolved);
            assert_eq!(type_by_std(&beside.next().unwrap().unwrap()), resolved);
        }
        assert_eq!(listing.len(), 16);
        machine::passed("hostile server: types", 16, "values of `d_type`, passed on or resolved");
    });
}

/// The `i32::MAX` of tmpfs, sysfs and others; where no sysfs is mounted, reports that `test` is skipped.
fn marker_of_another_file_system(test: &str) -> Option<EndMarker> {
    let marker = lendir::open("/sys").and_then(EndMarker::of).ok().filter(|marker| *marker != EndMarker::NONE);
    if marker.is_none() {
        machine::skip(test, "sysfs on /sys");
    }
    marker
}

#[test]
fn wrong_marker_is_believed_at_the_end_of_a_batch_only() {
    served("hostile::wrong_marker_is_believed_at_the_end_of_a_batch_only", 60, || {
        const ROW: &str = "hostile server: a wrong marker";
        let Some(marker) = marker_of_another_file_system(ROW) else { return };
        let scenario = when("`i32::MAX` in the middle", honest())
            .cookie(|place| if place == 11 { i32::MAX as u64 } else { place + 1 });
        let batches = [(Batch::Full, 120), (Batch::One, 10)];
        let server = Server::mount(batches.map(|(batch, _)| scenario.directory(batch)).to_vec()).unwrap();
        for (number, (_, delivered)) in batches.into_iter().enumerate() {
            let dir = lendir::open(server.path(number)).unwrap();
            let mut buffer = Buffer::new();
            assert_eq!(Entries::new(&dir, &mut buffer).with_end_marker(marker).count().unwrap(), delivered);
        }
        let what = "directories with the marker of another file system: believed at the end of a batch only";
        machine::passed(ROW, 2, what);
    });
}

/// A batch ends early where the next record does not fit, so the marker means the end only if the largest one would fit.
#[test]
fn marker_is_believed_only_with_room_for_the_largest_record() {
    served("hostile::marker_is_believed_only_with_room_for_the_largest_record", 60, || {
        const ROW: &str = "hostile server: room after the marker";
        const LARGEST: usize = record_len(4095);
        let Some(marker) = marker_of_another_file_system(ROW) else { return };
        if !long_names_pass() {
            return machine::skip(ROW, LONG_NAMES);
        }
        // The name of the marked record ends 4120 bytes before the end of the buffer; the record itself ends after that.
        let nearly = 8192 - LARGEST - 2 * record_len(2) - 19;
        let lens = nearly - 10..=nearly + 3;
        let scenario = |len: usize| {
            // The interruption ends the batch, however much the kernel asks for at once.
            let answers = [
                dots(),
                vec![file(&vec![b'm'; len]), Answer::Interruption],
                long_names(4095).take(1).map(|name| file(&name)).collect(),
            ];
            when("the marker near the end of the buffer", answers.concat())
                .cookie(|place| if place == 2 { i32::MAX as u64 } else { place + 1 })
        };
        let server = Server::mount(lens.clone().map(|len| scenario(len).directory(Batch::Full)).collect()).unwrap();
        let mut believed = Vec::new();
        for (number, len) in lens.clone().enumerate() {
            let dir = lendir::open(server.path(number)).unwrap();
            let mut buffer = Buffer::with_capacity(8192);
            let count = Entries::new(&dir, &mut buffer).with_end_marker(marker).count().unwrap();
            assert!(count == 1 || count == 2);
            if count == 1 {
                believed.push(len);
            }
        }
        let room = |len: &usize| 2 * record_len(2) + record_len(*len) + LARGEST <= 8192;
        assert_eq!(believed, lens.clone().filter(room).collect::<Vec<_>>());
        machine::passed(
            ROW,
            lens.count(),
            "lengths of a marked record: believed up to 4120 bytes before the end of the buffer",
        );
    });
}

/// The length of a record of `getdents64` with a name of `name` bytes.
const fn record_len(name: usize) -> usize {
    (19 + name + 1).next_multiple_of(8)
}

/// A `Listing` of such a directory would never be complete.
#[test]
fn endless_directory_takes_constant_memory() {
    let (count, seconds) = if machine::runs_long() { (10_000_000, 1800) } else { (200_000, 60) };
    served("hostile::endless_directory_takes_constant_memory", seconds, || {
        let server = Server::mount(vec![Directory::of_files(|place| file(&place.to_string()))]).unwrap();
        let dir = lendir::open(server.path(0)).unwrap();
        let mut buffer = Buffer::new();
        let mut entries = Entries::new(&dir, &mut buffer);
        let mut at_first = 0;
        for number in 0..count {
            assert_eq!(entries.next().unwrap().unwrap().numeric_name(), Some(number));
            if number == 10_000 {
                at_first = resident_pages();
            }
        }
        let grown = resident_pages().saturating_sub(at_first);
        assert!(grown < 64, "memory has grown by {grown} pages after {count} entries");
        for (number, entry) in (0..count / 10).zip(fs::read_dir(server.path(0)).unwrap()) {
            assert_eq!(entry.unwrap().file_name(), *number.to_string());
        }
        machine::passed("hostile server: an endless directory", count as usize, "entries in constant memory");
    });
}

/// A `Listing` takes what its documentation says: the entry's record, and 16 bytes.
#[test]
fn listing_of_millions_takes_the_memory_it_promises() {
    const NAME: usize = 16;
    let (count, seconds) = if machine::runs_long() { (10_000_000, 1800) } else { (300_000, 120) };
    served("hostile::listing_of_millions_takes_the_memory_it_promises", seconds, || {
        let name = |place: u64| format!("{:0NAME$x}", place.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let answers = move |place| if place < count { file(&name(place)) } else { Answer::End };
        let server = Server::mount(vec![Directory::of_files(answers)]).unwrap();
        let dir = lendir::open(server.path(0)).unwrap();
        let mut buffer = Buffer::with_capacity(1 << 20);
        assert!(Entries::new(&dir, &mut buffer).next().unwrap().is_some());
        let mut listing = Listing::new();
        let at_first = resident_pages();
        let mut entries = Entries::new(&dir, &mut buffer);
        entries.rewind().unwrap();
        listing.read(entries).unwrap();
        let grown = 4096 * resident_pages().saturating_sub(at_first);
        let promised = count * (16 + (19 + NAME as u64 + 1).next_multiple_of(8));
        assert!(grown < promised + (4 << 20), "{grown} bytes taken, {promised} promised");
        assert_eq!(listing.len() as u64, count);
        assert!(listing.iter().is_sorted_by(|a, b| a.name() < b.name()));
        for place in (0..count).step_by(9973) {
            assert_eq!(listing.find(name(place).as_bytes()).unwrap().name(), name(place).as_bytes());
        }
        let what = format!("entries with names of {NAME} bytes, listed in {} bytes an entry", grown.div_ceil(count));
        machine::passed("hostile server: a listing of millions", listing.len(), &what);
    });
}

/// Of this process, to which the server belongs.
pub fn resident_pages() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("no resident size in statm")
}

/// Runs `part` of `test` in a process of its own, where it may mount a server.
///
/// The server shares the process with its reader, to be able to interrupt it. No other test runs there, so the process can be
/// ended when a reader hangs.
pub fn served(test: &str, seconds: u64, part: impl FnOnce() + Send) {
    process::run(test, seconds, || {
        signals::catch();
        let outcome = match File::open("/dev/fuse") {
            Ok(_) => in_own_namespace(|_| part()),
            Err(error) => Err(format!("/dev/fuse ({error})")),
        };
        if let Err(missing) = outcome {
            machine::skip(test, &missing);
        }
    });
}
