//! `Entry::numeric_name` against a number that is parsed and printed again: `cargo +nightly fuzz run --fuzz-dir tests/fuzz numeric_name`.

#![no_main]

use lendir::{Buffer, Entries};
use libfuzzer_sys::fuzz_target;
use rustix::fd::AsFd;
use rustix::fs::{CWD, Record, answer};

/// Compares the number of an entry of this name with the one number whose decimal form it is.
fn agrees(name: &[u8]) {
    let record = Record { ino: 1, cookie: 1, d_type: 0, name: name.to_vec() };
    answer([Ok([record].into())]);
    let mut buffer = Buffer::with_capacity(Buffer::MIN_CAPACITY);
    let mut entries = Entries::new(CWD.as_fd(), &mut buffer);
    let Ok(Some(entry)) = entries.next() else { return }; // a dot, or an empty name
    let parsed = str::from_utf8(name).ok().and_then(|name| name.parse().ok());
    let expected = parsed.filter(|number: &u32| number.to_string().as_bytes() == name);
    assert_eq!(entry.numeric_name(), expected, "{:?}", name.escape_ascii().to_string());
}

/// The input is a name. Because random bytes seldom make a number, it is also written in digits and
/// signs, and its first byte makes a number on one side of `u32::MAX` or the other.
fn check(data: &[u8]) {
    let name: Vec<_> = data.iter().map(|byte| byte.max(&1)).copied().take(4095).collect();
    agrees(&name);
    let digits: Vec<_> =
        name.iter().map(|byte| b"0123456789012+-."[usize::from(byte % 16)]).collect();
    agrees(&digits);
    if let Some(&first) = data.first() {
        let number = u64::from(u32::MAX) - 128 + u64::from(first);
        agrees(number.to_string().as_bytes());
    }
}

fuzz_target!(|data: &[u8]| check(data));
