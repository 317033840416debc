//! The sort of names against `slice::sort`: `cargo +nightly fuzz run --fuzz-dir tests/fuzz sort`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use sort::sort;
use span::Span;

#[allow(dead_code, reason = "the library uses more of it")]
#[path = "../../../src/listing/sort.rs"]
mod sort;
#[allow(dead_code, reason = "the library uses more of it")]
#[path = "../../../src/listing/span.rs"]
mod span;

/// The first byte says whether some names end in `/`, as directories do in `Order::Path`, and how often the names are given.
/// The other bytes are names, separated by NUL.
fn check(data: &[u8]) {
    let Some((&how, data)) = data.split_first() else { return };
    let names = data.split(|byte| *byte == 0).filter(|name| (1..4096).contains(&name.len()));
    let path = |(index, name): (usize, &[u8])| {
        let is_dir = how & 1 != 0 && index % 3 == 0;
        if is_dir { [name, b"/"].concat() } else { name.to_vec() }
    };
    let names: Vec<_> = names.enumerate().map(path).collect();
    let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
    let names = names.repeat(1 + usize::from(how >> 6));

    let mut arena = vec![0xff; 8];
    let mut spans = Vec::new();
    for name in &names {
        spans.push(Span::new(arena.len(), name.len()));
        arena.extend_from_slice(name);
        arena.push(0xff);
    }
    let mut expected: Vec<_> = names.into_iter().zip(spans.clone()).collect();
    expected.sort_by_key(|(name, _)| *name);
    let mut keys = vec![0; spans.len()];
    sort(&mut spans, &mut keys, &arena);
    for ((name, span), sorted) in expected.into_iter().zip(spans) {
        assert_eq!((sorted.name(&arena), sorted.start()), (name, span.start()));
    }
}

fuzz_target!(|data: &[u8]| check(data));
