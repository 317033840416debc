//! The offsets of pending directories against a queue of names: `cargo +nightly fuzz run --fuzz-dir tests/fuzz pending`.

#![no_main]

use entry_state::EntryState;
use libfuzzer_sys::fuzz_target;
use pending::Pending;
use std::collections::VecDeque;

#[allow(dead_code, reason = "the library uses more of it")]
#[path = "../../../src/walk_dirs/pending.rs"]
mod pending;

#[allow(dead_code, reason = "the library uses more of it")]
#[path = "../../../src/cursor/entry_state.rs"]
mod entry_state;

#[allow(dead_code, reason = "the library uses more of it")]
#[path = "../../../src/file_type.rs"]
mod file_type;

mod cursor {
    pub(crate) use super::entry_state;
}

mod read_dir {
    pub(crate) mod entry {
        use crate::file_type::FileType;
        use rustix::{fd::BorrowedFd, io::Errno};

        /// Stands for the system call of the library, which no step makes.
        pub(crate) fn query_type(_: BorrowedFd<'_>, _: &std::ffi::CStr) -> Result<FileType, Errno> {
            unreachable!("BUG: a step has queried a type")
        }
    }
}

/// The names from this offset to the end, each with its state.
fn names(pending: &Pending, mut start: usize) -> VecDeque<(u8, Vec<u8>)> {
    let mut names = VecDeque::new();
    while start < pending.len() {
        let name = pending.get(start);
        names.push_back((name.state.0, name.name.to_bytes().to_vec()));
        start = name.end;
    }
    assert_eq!(start, pending.len());
    names
}

/// The steps are separated by NUL. The first byte says what happens, and the other bytes are a name.
fn check(data: &[u8]) {
    let (mut pending, mut model, mut next_start) = (Pending::default(), VecDeque::new(), 0);
    for step in data.split(|byte| *byte == 0) {
        let Some((&how, name)) = step.split_first() else { continue };
        match how % 8 {
            0 if next_start < pending.len() => {
                let end = pending.get(next_start).end;
                next_start = pending.remove_finished(0, end);
                assert!(next_start <= pending.len() - next_start, "most names are not finished");
                model.pop_front();
            }
            1 if next_start < pending.len() => {
                let range = next_start..pending.len();
                let end = pending.part_end(range.clone(), 2 + usize::from(how >> 4));
                let mut parts = names(&pending.copy(range.start..end).unwrap(), 0);
                assert!(!parts.is_empty());
                parts.append(&mut names(&pending, end));
                assert_eq!(parts, model);
            }
            4 => {
                pending.truncate(next_start);
                model.clear();
            }
            _ => {
                pending.push(EntryState(how), name).unwrap();
                model.push_back((how, name.to_vec()));
            }
        }
        assert_eq!(names(&pending, next_start), model);
    }
}

fuzz_target!(|data: &[u8]| check(data));
