//! What other readers make of a misbehaving server. This runs four programs for each scenario, so only in the long form.

use super::scenarios::{Scenario, scenarios};
use super::served;
use crate::fuse::{Answer, Batch, Server};
use crate::readers::READERS;
use crate::support::machine;
use crate::support::scan::{End, Scan};
use lendir::{Buffer, Entries};

/// In no scenario does `std`, Go, Python or find see more entries than `lendir`, or report a loss that `lendir` does not.
///
/// Readers that make up a name are left out: they do so for an entry without a name, where `lendir` ends with an error.
#[test]
fn no_other_reader_sees_more() {
    if !machine::runs_long() {
        return;
    }
    served("hostile::others::no_other_reader_sees_more", 240, || {
        // The server can send signals only to threads of this process.
        let hangs = |scenario: &Scenario| scenario.answers.iter().any(|answer| matches!(answer, Answer::Hang));
        let mut table = scenarios();
        table.retain(|scenario| !hangs(scenario));
        let server = Server::mount(table.iter().map(|scenario| scenario.directory(Batch::Full)).collect()).unwrap();
        for (name, missing) in READERS.iter().filter_map(|reader| reader.as_ref().err()) {
            machine::skip(&format!("{name} on a hostile server"), missing);
        }
        let (mut rows, mut cases) = (Rows::default(), 0);
        for (number, scenario) in table.iter().enumerate() {
            let path = server.path(number);
            let names: Vec<_> = scenario.entries().into_iter().map(|entry| entry.name).collect();
            let all = names.iter().filter(|name| !name.is_empty()).count();
            let by_scan = |scan: Scan| {
                let found: Vec<_> = scan.found.into_iter().map(|entry| entry.name).collect();
                Seen::new(&found, scan.end != End::Complete, &names)
            };
            let ours = by_scan(Scan::of(&mut Entries::new(&lendir::open(&path).unwrap(), &mut Buffer::new())));
            let mut row = vec![Some(ours), Some(by_scan(Scan::by_std(&path)))];
            row.extend(READERS.iter().map(|reader| {
                let told = reader.as_ref().ok()?.read(&[&path]);
                Some(Seen::new(&told.names, !told.is_content, &names))
            }));
            for theirs in row[1..].iter().flatten().filter(|theirs| theirs.made_up == 0) {
                let is_more = theirs.names > ours.names || (theirs.tells && !ours.tells && ours.names < all);
                assert!(!is_more, "{}: {theirs:?}, lendir {ours:?}", scenario.what);
                cases += 1;
            }
            if ours.names < all || row.iter().flatten().any(|seen| *seen != ours) {
                let cells = row.iter().map(|seen| seen.map_or("–".to_owned(), |seen| seen.in_words(all)));
                rows.add(&scenario.what, &cells.collect::<Vec<_>>().join(" | "));
            }
        }
        machine::table("readers", &rows.to_text());
        let what = "readings by `std`, Go, Python and find: none sees more, except made-up names";
        machine::passed("hostile server: beside other readers", cases, what);
    });
}

/// How much of a directory a reader delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    /// How many of the server's names.
    names: usize,
    /// How many other names.
    made_up: usize,
    /// Whether an error, or `removed`, says that there may be more.
    tells: bool,
}

impl Seen {
    fn new(names: &[Vec<u8>], tells: bool, all: &[Vec<u8>]) -> Self {
        let is_there = |name: &&Vec<u8>| !name.is_empty() && all.contains(name);
        let there = names.iter().filter(is_there).count();
        Self { names: there, made_up: names.len() - there, tells }
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

/// The scenarios in which a reader misses entries, with what each reader saw. Scenarios with the same outcome share a row.
#[derive(Default)]
struct Rows(Vec<(Vec<String>, String)>);

impl Rows {
    /// Only the first scenario of a name counts.
    fn add(&mut self, what: &str, cells: &str) {
        if self.0.iter().any(|(scenarios, _)| scenarios.iter().any(|scenario| scenario == what)) {
            return;
        }
        match self.0.iter_mut().find(|row| row.1 == cells) {
            Some((scenarios, _)) => scenarios.push(what.to_owned()),
            None => self.0.push((vec![what.to_owned()], cells.to_owned())),
        }
    }

    fn to_text(&self) -> String {
        let others = READERS.iter().map(|reader| reader.as_ref().map_or_else(|(name, _)| *name, |reader| reader.name));
        let heads: Vec<_> = ["`lendir`", "`std::fs::read_dir`"].into_iter().chain(others).collect();
        let rule = "---|".repeat(1 + heads.len());
        let rows = self.0.iter().map(|(scenarios, cells)| format!("| {} | {cells} |\n", scenarios.join(", ")));
        format!("| the file system answers with | {} |\n|{rule}\n{}", heads.join(" | "), rows.collect::<String>())
    }
}
