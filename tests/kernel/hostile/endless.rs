//! Directories of any number of entries, and the memory that it takes to read them.

use super::scenarios::file;
use super::served;
use crate::fuse::{Answer, Directory, Server};
use crate::support::machine;
use lendir::{Buffer, Entries, Listing};
use std::fs;

/// A `Listing` of such a directory would never be complete.
#[test]
fn endless_directory_takes_constant_memory() {
    let (count, seconds) = if machine::runs_long() { (10_000_000, 1800) } else { (200_000, 60) };
    served("hostile::endless::endless_directory_takes_constant_memory", seconds, || {
        let server =
            Server::mount(vec![Directory::of_files(|place| file(&place.to_string()))]).unwrap();
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
    });
}

/// For each entry, a `Listing` takes the memory that its documentation states: the record, and 16 bytes.
#[test]
fn listing_of_millions_takes_the_memory_it_promises() {
    const NAME: usize = 16;
    let (count, seconds) = if machine::runs_long() { (10_000_000, 1800) } else { (300_000, 120) };
    served("hostile::endless::listing_of_millions_takes_the_memory_it_promises", seconds, || {
        let name = |place: u64| format!("{:0NAME$x}", place.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let answers = move |place| if place < count { file(&name(place)) } else { Answer::End };
        let server = Server::mount(vec![Directory::of_files(answers)]).unwrap();
        let dir = lendir::open(server.path(0)).unwrap();
        let mut listing = Listing::new();
        let at_first = resident_pages();
        listing.read(&dir).unwrap();
        let grown = 4096 * resident_pages().saturating_sub(at_first);
        let promised = count * (16 + (19 + NAME as u64 + 1).next_multiple_of(8));
        assert!(grown < promised + (4 << 20), "{grown} bytes taken, {promised} promised");
        assert_eq!(listing.len() as u64, count);
        assert!(listing.iter().is_sorted_by(|a, b| a.name() < b.name()));
        for place in (0..count).step_by(9973) {
            assert_eq!(
                listing.by_name(name(place).as_bytes()).unwrap().name(),
                name(place).as_bytes()
            );
        }
    });
}

/// Of this process, to which the server belongs.
pub fn resident_pages() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("no resident size in statm")
}
