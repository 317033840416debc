//! End markers that a server makes up.

use super::scenarios::{CROWD, dots, file, honest, long_names, when};
use super::{LONG_NAMES, long_names_pass, served};
use crate::fuse::{Answer, Batch, Server};
use crate::support::machine;
use lendir::{Buffer, EndMarker, Entries};

/// The `i32::MAX` of tmpfs, sysfs and others. If no sysfs is mounted, reports that `test` is skipped.
fn marker_of_another_file_system(test: &str) -> Option<EndMarker> {
    let marker = lendir::open("/sys").and_then(EndMarker::of).ok().filter(|marker| *marker != EndMarker::NONE);
    if marker.is_none() {
        machine::skip(test, "sysfs on /sys");
    }
    marker
}

#[test]
fn wrong_marker_counts_only_at_the_end_of_a_batch() {
    served("hostile::markers::wrong_marker_counts_only_at_the_end_of_a_batch", 60, || {
        const ROW: &str = "hostile server: a wrong marker";
        let Some(marker) = marker_of_another_file_system(ROW) else { return };
        let scenario = when("`i32::MAX` in the middle", honest())
            .cookie(|place| if place == 11 { i32::MAX as u64 } else { place + 1 });
        let batches = [(Batch::Full, CROWD), (Batch::One, 10)];
        let server = Server::mount(batches.map(|(batch, _)| scenario.directory(batch)).to_vec()).unwrap();
        for (number, (_, delivered)) in batches.into_iter().enumerate() {
            let dir = lendir::open(server.path(number)).unwrap();
            let mut buffer = Buffer::new();
            assert_eq!(Entries::new(&dir, &mut buffer).with_end_marker(marker).count().unwrap(), delivered);
        }
    });
}

/// A batch ends early if the next record does not fit, so the marker means the end only if the largest record would fit.
#[test]
fn marker_counts_only_with_room_for_the_largest_record() {
    served("hostile::markers::marker_counts_only_with_room_for_the_largest_record", 60, || {
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
            // The interruption ends the batch, however much the kernel requests at once.
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
            assert!(matches!(count, 1 | 2), "{count} entries");
            if count == 1 {
                believed.push(len);
            }
        }
        let room = |len: &usize| 2 * record_len(2) + record_len(*len) + LARGEST <= 8192;
        assert_eq!(believed, lens.clone().filter(room).collect::<Vec<_>>());
    });
}

/// The length of a record of `getdents64` with a name of `name` bytes.
const fn record_len(name: usize) -> usize {
    (19 + name + 1).next_multiple_of(8)
}
