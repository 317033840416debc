//! The answers of a misbehaving server, and the result that each reader must have.

use crate::errnos::ERRNOS;
use crate::fuse::{Answer, Batch, Directory, Record, dots, file_record as file, long_names};
use crate::support::prelude::*;

/// A misbehaviour of the server, and the outcome for each reader.
pub struct Scenario {
    pub what: String,
    pub answers: Vec<Answer>,
    pub cookie: Option<fn(u64) -> u64>,
    pub lendir: Outcome,
    pub std: Outcome,
}

#[derive(Clone, Copy)]
pub enum Outcome {
    All,
    /// This number of entries, followed by this end.
    First(usize, End),
}

pub fn scenarios() -> Vec<Scenario> {
    use Outcome::{All, First};
    let eio = |after| First(after, End::Error(EIO));
    let with_ino_0 = if glibc_drops_ino_0() { First(0, End::Complete) } else { All };
    #[rustfmt::skip]
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
        when("every `d_type`", altered(|record, place| record.d_type = (0..16).cycle().nth(place).unwrap())),
        when("`d_ino` 0", altered(|record, _| record.ino = 0)).std(with_ino_0),
        when("`d_ino` `u64::MAX`", altered(|record, _| record.ino = u64::MAX)),
        when("cookies that are all 0", honest()).cookie(|_| 0),
        when("cookies that are all the same", honest()).cookie(|_| 7),
        when("negative cookies", honest()).cookie(|place| u64::MAX - place),
        when("cookies that go back", honest()).cookie(|place| 1_000_000 - place),
        when("an `i32::MAX` cookie in the middle", honest()).cookie(|place| if place == CROWD / 2 { i32::MAX as u64 } else { place + 1 }),
        when("an `i64::MAX` cookie in the middle", honest()).cookie(|place| if place == CROWD / 2 { i64::MAX as u64 } else { place + 1 }),
        when("nothing but `i32::MAX` cookies", honest()).cookie(|_| i32::MAX as u64),
        when("nothing but `i64::MAX` cookies", honest()).cookie(|_| i64::MAX as u64),
        when("names of 255 bytes", among(long_names(255))),
        when("names of 256 bytes", among(long_names(256))),
        when("names of 1024 bytes", among(long_names(1024))),
        when("names of 1025 bytes", among(long_names(1025))),
        when("names of 4095 bytes", among(long_names(4095))),
        when("names of 4096 bytes", among(long_names(4096))).both(eio(3)),
        when("names that are not UTF-8", among([&[0xff, 0xfe][..], &[0xc3], &[0xed, 0xa0, 0x80]])),
        when("every name of one byte", (1..=255).filter(|&byte| byte != b'/').map(|byte| file([byte])).collect()),
        when("newlines in names", among(["\n", "a\nb", "\r\n"])),
        when("NUL inside names", among(["ab\0cd", ".\0hidden", "..\0hidden", "...\0"])),
        when("a name that begins with NUL", among(["\0", "\0hidden"])).lendir(eio(3)),
        when("an empty name", among([""])).both(eio(3)),
        when("a name with a slash", among(["../etc"])).both(eio(3)),
        when("an end, and then more", among_answers(vec![Answer::End])).cookie(|place| place + 1).both(First(3, End::Complete)),
        when("a burst of `EINTR`", among_answers(vec![Answer::Interruption; 50]))
            .std(First(3, End::Error(EINTR))),
        when("a hang until a signal", among_answers(vec![Answer::Hang])).std(First(3, End::Error(EINTR))),
        when("hang after hang until a signal", among_answers(vec![Answer::Hang; 5]))
            .std(First(3, End::Error(EINTR))),
    ];
    for (name, errno) in ERRNOS {
        // The middle comes first, because the table shows the first scenario of each name. `EIO`,
        // `ENOENT` and `EINTR` stand for the three ways to end: with an error, without one, and not
        // at all.
        let places: &[usize] =
            if matches!(errno, EIO | ENOENT | EINTR) { &[4, 0, 1, 2, 3, 5, 6, 7, 8] } else { &[4] };
        for &place in places {
            let mut answers = [dots(), crowd()[..6].to_vec()].concat();
            answers.insert(
                place,
                if errno == EINTR { Answer::Interruption } else { Answer::Error(errno) },
            );
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

/// Returns a scenario in which every reader sees all entries.
pub fn when(what: &str, answers: Vec<Answer>) -> Scenario {
    Scenario {
        what: what.to_owned(),
        answers,
        cookie: None,
        lendir: Outcome::All,
        std: Outcome::All,
    }
}

impl Scenario {
    pub fn cookie(self, cookie: fn(u64) -> u64) -> Self {
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

    pub fn directory(&self, batch: Batch) -> Directory {
        Directory { cookie: self.cookie, batch, ..Directory::with_answers(self.answers.clone()) }
    }

    /// Returns all entries except dots, each name up to its first NUL.
    pub fn entries(&self) -> Vec<Found> {
        let records = self.answers.iter().zip(0..).filter_map(|(answer, place)| match answer {
            Answer::Record(record) => Some((record, place)),
            _ => None,
        });
        let entries = records.map(|(record, place)| Found {
            name: record
                .name
                .split(|&byte| byte == 0)
                .next()
                .expect("BUG: `split` gave nothing")
                .to_vec(),
            ino: record.ino,
            file_type: type_of_mode(u32::from(record.d_type) << 12),
            cookie: self.cookie.map_or(place + 1, |cookie| cookie(place)),
        });
        entries.filter(|entry| !matches!(&entry.name[..], b"." | b"..")).collect()
    }

    pub fn expected(&self, outcome: Outcome) -> Scan {
        let entries = self.entries();
        match outcome {
            Outcome::All => Scan { found: entries, end: End::Complete },
            Outcome::First(count, end) => Scan { found: entries[..count].to_vec(), end },
        }
    }
}

/// The number of files in a [`crowd`].
pub const CROWD: u64 = 60;

/// Returns more files than one batch of the smallest buffer holds, unsorted.
fn crowd() -> Vec<Answer> {
    (0..CROWD).map(|number| file(format!("file-{:0130}", number * 37 % CROWD))).collect()
}

pub fn honest() -> Vec<Answer> {
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

/// Returns dots, three files, `answers` and the other files.
fn among_answers(answers: Vec<Answer>) -> Vec<Answer> {
    let crowd = crowd();
    [dots(), crowd[..3].to_vec(), answers, crowd[3..].to_vec()].concat()
}

fn among<Name: AsRef<[u8]>>(names: impl IntoIterator<Item = Name>) -> Vec<Answer> {
    among_answers(names.into_iter().map(file).collect())
}

/// Returns `true` if glibc is older than 2.37: such a glibc takes an entry with inode number 0 for
/// a deleted one.
fn glibc_drops_ino_0() -> bool {
    let answer = Command::new("getconf")
        .arg("GNU_LIBC_VERSION")
        .output()
        .map(|output| output.stdout)
        .unwrap_or_default();
    let version =
        std::str::from_utf8(&answer).unwrap_or_default().trim_end().strip_prefix("glibc 2.");
    version.and_then(|minor| minor.parse().ok()).is_some_and(|minor: u32| minor < 37)
}
