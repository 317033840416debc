//! Reading a directory of a misbehaving file system with `lendir` and with `std::fs::read_dir`.
//! `scenarios` lists the misbehaviours, and `recipes` runs the recipes on them.

mod recipes;
mod scenarios;

use crate::fuse::{
    Answer, Batch, Directory, LONG_NAMES, Node, Server, leaf, long_names_pass, record, served,
};
use crate::support::prelude::*;
use libc::DT_DIR;
use scenarios::{Outcome, Scenario, scenarios, when};

/// `Entries`, `seek`, `Listing` and `std` yield the stated entries and end as stated, whatever the
/// server does wrong.
#[test]
fn every_scenario_ends_as_stated() {
    served("hostile::every_scenario_ends_as_stated", || {
        let mut table = scenarios();
        if !long_names_pass() {
            machine::skip("hostile server: names over 1024 bytes", LONG_NAMES);
            table.retain(|scenario| {
                !scenario.entries().iter().any(|entry| (1025..4096).contains(&entry.name.len()))
            });
        }
        let batches = [Batch::Full, Batch::One];
        let directories = table
            .iter()
            .flat_map(|scenario| batches.map(|batch| scenario.directory(batch)))
            .collect();
        let server = Server::mount(directories).unwrap();
        let mut listings = ORDERS.map(|order| (order, Listing::with_order(order)));
        for (number, scenario) in table.iter().enumerate() {
            for (variant, batch) in batches.into_iter().enumerate() {
                let path = server.path(number * batches.len() + variant);
                let case = format!("{}, {batch:?}", scenario.what);
                check_entries(scenario, &server, &path, &case);
                check_seek(scenario, &path, &case);
                check_listings(scenario, &mut listings, &path, &case);
                if cfg!(target_env = "gnu") {
                    let found = Scan::from_std(&path);
                    assert_eq!(found, scenario.expected(scenario.std).bare(), "{case}, std");
                }
            }
        }
    });
}

/// Checks `Entries` with the smallest and with a large buffer.
fn check_entries(scenario: &Scenario, server: &Server, path: &Path, case: &str) {
    let expected = scenario.expected(scenario.lendir);
    for capacity in [Buffer::MIN_CAPACITY, 1 << 20] {
        let dir = lendir::open(path).unwrap();
        let mut buffer = Buffer::with_capacity(capacity);
        let mut entries = Entries::new(dir.as_fd(), &mut buffer);
        let scan = Scan::of(&mut entries);
        assert_eq!(scan, expected, "{case}, {capacity} bytes");
        let reads = server.reads();
        assert!(entries.next().unwrap().is_none());
        assert_eq!(server.reads(), reads, "{case}: read again after the end");
        if scenario.cookie.is_none() {
            entries.rewind().unwrap();
            assert_eq!(Scan::of(&mut entries), expected, "{case}, again after a rewind");
            entries.rewind().unwrap();
            let count = match expected.end {
                End::Error(errno) => Err(errno),
                End::Complete | End::Removed => Ok(expected.found.len() as u64),
            };
            assert_eq!(entries.count().map_err(|error| errno(&error)), count, "{case}, counted");
        }
    }
}

/// Checks `Listing`s, each of which is reused for all scenarios.
fn check_listings(scenario: &Scenario, listings: &mut [(Order, Listing)], path: &Path, case: &str) {
    let expected = scenario.expected(scenario.lendir);
    for (order, listing) in &mut *listings {
        let dir = lendir::open(path).unwrap();
        let expected = expected.clone();
        let expected = if *order == Order::Path {
            expected.resolved(|_| FileType::RegularFile)
        } else {
            expected
        };
        let expected = expected.sorted(*order);
        assert_eq!(Scan::from_listing(listing, &dir), expected, "{case}, a listing by {order:?}");
        for entry in listing.iter().filter(|entry| entry.d_type() != FileType::Unknown) {
            let found = entry.in_dir(dir.as_fd()).file_type().unwrap();
            assert_eq!(found, entry.d_type(), "{case}: a known type was queried");
        }
        // The descriptor is at the end now, wherever the dots came.
        if scenario.cookie.is_none() && matches!(scenario.lendir, Outcome::All) {
            let found = Scan::from_listing(listing, &dir);
            assert_eq!(found, expected, "{case}, a second listing by {order:?}");
        }
    }
}

/// Checks `seek` with each cookie. The kernel refuses negative numbers.
fn check_seek(scenario: &Scenario, path: &Path, case: &str) {
    let dir = lendir::open(path).unwrap();
    let mut buffer = Buffer::new();
    let mut entries = Entries::new(dir.as_fd(), &mut buffer);
    let all = scenario.entries();
    for (number, entry) in all.iter().enumerate() {
        let sought = entries.seek(entry.cookie);
        match i64::try_from(entry.cookie) {
            Ok(_) => sought.unwrap(),
            Err(_) => assert_eq!(errno(&sought.unwrap_err()), EINVAL, "{case}"),
        }
        if let (None, Outcome::All, Some(following)) =
            (scenario.cookie, scenario.lendir, all.get(number + 1))
        {
            assert_eq!(entries.next().unwrap().unwrap().name(), following.name, "{case}");
        }
    }
}

/// A directory is read again from its beginning, and a walk goes on from there, even if the directory
/// refuses `lseek` or its server ignores offsets. Without dots, an empty directory looks like one at its end.
#[test]
fn reading_again_needs_no_lseek() {
    served("hostile::reading_again_needs_no_lseek", || {
        for is_nonseekable in [false, true] {
            let directory = |answers: Vec<Answer>| {
                let scenario = when("no dots", answers).cookie(|place| place + 1);
                let lookup = Arc::new(|_: &[u8]| Ok(Node::Directory(leaf())));
                Directory { lookup, is_nonseekable, ..scenario.directory(Batch::Full) }
            };
            let children = ["a", "b"].map(|name| record(name, DT_DIR)).to_vec();
            let server = Server::mount(vec![directory(vec![]), directory(children)]).unwrap();
            for (number, entries) in [0, 2].into_iter().enumerate() {
                let path = server.path(number);
                let (fd, mut listing) = (lendir::open(&path).unwrap(), Listing::new());
                let mut dir = lendir::read_dir(&path).unwrap();
                for _ in 0..3 {
                    listing.read(&fd).unwrap();
                    assert_eq!(listing.len(), entries);
                    dir.read_into(&mut listing).unwrap();
                    assert_eq!(listing.len(), entries);
                }
                let mut walk = lendir::walk_dirs(&path).unwrap();
                let mut dir = walk.next().unwrap().unwrap();
                for _ in 0..3 {
                    dir.next().unwrap();
                    dir.read_into(&mut listing).unwrap();
                    assert_eq!(listing.len(), entries);
                }
                let rest = iter::from_fn(|| walk.next().unwrap().map(drop));
                assert_eq!(rest.count(), entries, "the children, each of them once");
            }
        }
    });
}
