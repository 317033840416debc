//! Cases that run on every file system. `file_systems` lists the file
//! systems, `contents` fills them, and the other modules hold the cases.

pub mod churn;
mod contents;
mod reading;
mod removing;
mod walks;

use crate::file_systems::{Contents, FILE_SYSTEMS, FileSystem};
use crate::mounted::Mounted;
use crate::support::prelude::*;
use contents::Doomed;

/// A case, which runs on every file system that has what the case requires.
struct Case {
    name: &'static str,
    asks: Asks,
    run: fn(&Mounted),
}

#[derive(Clone, Copy)]
enum Asks {
    /// Directories that do not change.
    Reading,
    /// Directories that the tests made.
    OurContents,
    /// Directories that the tests made and can change.
    Changing,
    /// Directories that can be removed.
    Removing,
}

const CASES: [Case; 15] = [
    case("all types", Asks::OurContents, reading::types_are_listed_or_queried),
    case("beside `std`", Asks::Reading, reading::std_reads_the_same),
    case("sorted", Asks::Reading, reading::listing_is_sorted),
    case(
        "sorted, from the middle",
        Asks::Reading,
        reading::listing_starts_at_the_descriptors_position,
    ),
    case("buffers, marker", Asks::Reading, reading::buffers_and_end_marker_change_nothing),
    case("seek, rewind", Asks::Reading, reading::seek_continues_after_each_cookie),
    case("walk beside `std`", Asks::Reading, walks::walks_agree_with_std),
    case("walk, half read", Asks::Reading, walks::half_read_directories_hide_nothing),
    case("walk, half removed", Asks::Removing, removing::half_removed_directories_hide_nothing),
    case("one call less with a marker", Asks::Removing, removing::end_marker_saves_the_last_call),
    case("removed", Asks::Removing, removing::is_removed_reports_a_removed_directory),
    case("churn", Asks::Changing, churn::churn_repeats_no_remaining_entry),
    case("emptied midway", Asks::Changing, churn::only_tmpfs_repeats_an_entry),
    case("walk, churn", Asks::Changing, walks::churn_repeats_no_entry_of_a_walk),
    case("walk, made late", Asks::Changing, walks::entry_made_before_reading_is_listed),
];

const fn case(name: &'static str, asks: Asks, run: fn(&Mounted)) -> Case {
    Case { name, asks, run }
}

#[test]
fn every_file_system_passes_every_case() {
    let _watchdog = machine::watchdog();
    let failed: Vec<_> = thread::scope(|scope| {
        let rows: Vec<_> =
            FILE_SYSTEMS.iter().map(|system| scope.spawn(|| failed_cases(system))).collect();
        rows.into_iter().flat_map(|row| row.join().unwrap()).collect()
    });
    assert!(failed.is_empty(), "these cases failed: {failed:?}");
}

/// Runs the cases that apply to a file system.
fn failed_cases(system: &'static FileSystem) -> Vec<(&'static str, &'static str)> {
    let outcome = system.mounted(contents::fill, |mounted| {
        let doomed = Doomed::of(mounted);
        let fails = |case: &&Case| {
            let applies = match case.asks {
                Asks::Reading => true,
                Asks::OurContents => system.is_ours(),
                Asks::Changing => system.is_ours() && system.contents != Contents::Packed,
                Asks::Removing => doomed.is_some(),
            };
            applies && catch_unwind(AssertUnwindSafe(|| (case.run)(mounted))).is_err()
        };
        CASES.iter().filter(fails).map(|case| (system.name, case.name)).collect()
    });
    outcome.unwrap_or_else(|missing| {
        machine::skip(&format!("suite on {}", system.name), &missing);
        vec![]
    })
}
