//! `Entry::numeric_name` against a number that is parsed and printed again: `cargo +nightly fuzz run --fuzz-dir tests/fuzz numeric_name`.

#![no_main]

use entry::{Directory, Entry, Record};
use libfuzzer_sys::fuzz_target;
use records::HEADER;
use rustix::fs::CWD;

#[macro_use]
#[path = "../../../src/debug.rs"]
mod debug;
#[allow(dead_code, reason = "the library uses more of it")]
#[path = "../../../src/read_dir/entry.rs"]
mod entry;
#[allow(dead_code, reason = "the library uses more of it")]
#[path = "../../../src/error.rs"]
mod error;
#[allow(dead_code, reason = "the library uses more of it")]
#[path = "../../../src/file_type.rs"]
mod file_type;
#[allow(dead_code, reason = "the library uses more of it")]
#[path = "../../../src/metadata.rs"]
mod metadata;

mod records {
    pub(crate) const HEADER: usize = 8 + 8 + 2 + 1;
}

/// Compares the number of an entry of this name with the one number whose decimal form it is.
fn agrees(name: &[u8]) {
    let bytes = &[&[0; HEADER], name, b"\0"].concat();
    let record = Record::Kept { bytes, metadata: None };
    let directory = Directory { fd: CWD, path: b"", depth: 0 };
    let entry = Entry { record, directory, queried: None };
    let parsed = str::from_utf8(name).ok().and_then(|name| name.parse().ok());
    let expected = parsed.filter(|number: &u32| number.to_string().as_bytes() == name);
    assert_eq!(entry.numeric_name(), expected, "{:?}", name.escape_ascii().to_string());
}

/// The input is a name. Because random bytes seldom make a number, it is also written in digits and
/// signs, and its first byte makes a number on one side of `u32::MAX` or the other.
fn check(data: &[u8]) {
    agrees(data);
    let digits: Vec<_> =
        data.iter().map(|byte| b"0123456789012+-."[usize::from(byte % 16)]).collect();
    agrees(&digits);
    if let Some(&first) = data.first() {
        let number = u64::from(u32::MAX) - 128 + u64::from(first);
        agrees(number.to_string().as_bytes());
    }
}

fuzz_target!(|data: &[u8]| check(data));
