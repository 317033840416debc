//! `sort`: sorts the names of a directory by their bytes. It does not know what the names stand
//! for: `sort_by_path` of `mod.rs` adds what [`Order::Path`](crate::Order::Path) compares besides
//! the names.
//!
//! ```text
//! sort names that share their first `depth` bytes:
//!     key of a name = the 8 bytes after `depth`, big-endian, with zeros after the name's end
//!     while all keys share at least 32 bits: add the shared bytes to `depth`, read the keys again
//!     return if the keys are in order; reverse the names and return if in reverse order
//!     sort by the keys: up to 32 names by rank, more names by keys that end in an index
//!     for each run of names with equal keys:
//!         if it has at most 4 names, sort it by comparing them
//!         else if this is not the 4th turn, sort it like this again, from `depth` on
//!         else sort it by medians
//! ```
//!
//! - **Keys instead of names.** A comparison of integers replaces two cache misses and a call of
//!   `memcmp`.
//! - **The common prefix is skipped.** The first 13 bytes of `IMG_20240101_000001.jpg` decide
//!   nothing. Short prefixes are skipped key by key. One scan finds the end of longer ones.
//!   Otherwise names that share 200 bytes would be visited 25 times.
//! - **Names in order stay, and names in reverse order are reversed.** Many file systems list the
//!   oldest or the newest file first. Photographs, logs and processes are named in the order in
//!   which they were made.
//! - **Up to 32 names are placed by rank.** The rank of a key is the number of keys that are less.
//!   No branch depends on the names until two keys are equal, and a mispredicted branch takes as
//!   long as ten comparisons. A sorting network compares less. But all code is cold after a system
//!   call, and the code of a network for 32 keys fills 135 cache lines.
//! - **In larger runs, the index of the name replaces the lowest bits of the key.** `core` sorts
//!   plain integers without branches, and moves half as many bytes as it would for pairs.
//!   The displaced bits rarely matter, because the bits that all keys share are shifted out first.
//!   If they do matter, the names tie.
//! - **Names that tie are sorted by later keys, in at most [`TURNS`] turns.** A turn sorts all
//!   names of a run, even if few leave the run. After these turns, a median splits the run in
//!   linear time. So `n` names take `n log n` comparisons of keys, each of their bytes is read a
//!   few times, and calls nest `log2(n)` deep.
//! - **Names contain no NUL.** A key that ends in a zero byte contains the end of its name. So
//!   equal keys that end in a zero byte are equal names, which keep the order in which they were
//!   stored.
//!
//! A radix sort of the bits that differ was tried. It was faster from 100,000 names on, but no
//! faster for 1,024. For a few hundred names that begin like words, it took several times as long.

use super::span::Span;

/// The largest number of names with equal keys that are compared with each other, rather than by
/// new keys.
const FEW: usize = 4;

/// The largest number of names that are sorted by the ranks of their keys.
const SMALL: usize = 32;

/// The number of times that a name is sorted by its keys before medians are used.
const TURNS: u32 = 4;

/// The number of bits, shared by all keys, from which on the common prefix is skipped.
const LONG: u32 = 32;

/// The number of keys that are skipped one by one, before a scan for the end of the common prefix.
const SHARED_KEYS: u32 = 2;

/// Sorts the spans by their names, which contain no NUL. Spans of equal names keep the order in
/// which the names were stored. `keys` is memory for the keys.
pub(crate) fn sort(spans: &mut [Span], keys: &mut [u64], names: &[u8]) {
    if let [_, _, ..] = spans {
        sort_from(0, TURNS, spans, keys, names);
    }
}

/// Sorts names that share their first `depth` bytes.
fn sort_from(mut depth: usize, turns: u32, spans: &mut [Span], keys: &mut [u64], names: &[u8]) {
    let mut skipped = 0;
    let shared_bits = loop {
        let shared_bits = write_keys(depth, spans, keys, names);
        if shared_bits < LONG || keys[0].to_be_bytes()[7] == 0 {
            break shared_bits;
        }
        depth += (shared_bits / u8::BITS) as usize;
        if skipped == SHARED_KEYS {
            depth = depth.max(common_prefix(spans, names));
        }
        skipped += 1;
    };
    if keys.is_sorted_by(|a, b| a < b) {
        return;
    }
    if keys.is_sorted_by(|a, b| a > b) {
        return spans.reverse();
    }
    let any_tied = if spans.len() <= SMALL {
        sort_by_rank(spans, keys)
    } else {
        sort_by_indexed_keys(spans, keys, shared_bits)
    };
    if any_tied {
        sort_ties(depth, turns, spans, keys, names);
    }
}

/// Returns the length of the common prefix of all names.
#[cold]
fn common_prefix(spans: &[Span], names: &[u8]) -> usize {
    let first = spans[0].name(names);
    spans.iter().map(|span| span.name(names)).fold(first.len(), |end, name| {
        let shared = || first.iter().zip(name).take_while(|(a, b)| a == b).count();
        if name.starts_with(&first[..end]) { end } else { shared() }
    })
}

/// Writes the keys of all names. Returns the number of bits that all keys share, counted from the
/// highest bit.
fn write_keys(depth: usize, spans: &[Span], keys: &mut [u64], names: &[u8]) -> u32 {
    let (mut all, mut any) = (u64::MAX, 0);
    for (key, span) in keys.iter_mut().zip(spans) {
        *key = span.key(depth, names);
        (all, any) = (all & *key, any | *key);
    }
    (all ^ any).leading_zeros()
}

/// Sorts spans by their keys. Spans with equal keys keep their order, and each but the first of
/// them is marked as tied. Returns `true` if there are any.
///
/// The place of a span is the number of keys that are less, and of equal keys before it. A place
/// that holds the default is free: the default is not a span, because at least 8 bytes precede each
/// name.
fn sort_by_rank(spans: &mut [Span], keys: &[u64]) -> bool {
    let mut sorted = [Span::default(); SMALL];
    let mut any_tied = false;
    for (index, (span, key)) in spans.iter().zip(keys).enumerate() {
        let less = keys.iter().filter(|other| *other < key).count();
        let is_tied = sorted[less % SMALL] != Span::default();
        let equal =
            if is_tied { keys[..index].iter().filter(|other| *other == key).count() } else { 0 };
        sorted[(less + equal) % SMALL] = span.with_tied(is_tied);
        any_tied |= is_tied;
    }
    spans.copy_from_slice(&sorted[..spans.len()]);
    any_tied
}

/// Sorts any number of spans like [`sort_by_rank`]. The shared bits of the keys are
/// shifted out, and then the index of each span replaces the lowest bits of its key. So spans whose
/// keys differ only in these bits tie as well.
#[inline(never)]
fn sort_by_indexed_keys(spans: &mut [Span], keys: &mut [u64], shared_bits: u32) -> bool {
    let index_mask = (spans.len() as u64).next_power_of_two() - 1;
    for (key, index) in keys.iter_mut().zip(0..) {
        *key = key.wrapping_shl(shared_bits) & !index_mask | index;
    }
    keys.sort_unstable_by(|a, b| {
        #[cfg(test)]
        tests::count(1);
        a.cmp(b)
    });
    // Replace each index by its span.
    let (mut any_tied, mut key_before) = (false, !keys[0]);
    for key in &mut *keys {
        let tied = *key ^ key_before <= index_mask;
        any_tied |= tied;
        key_before = *key;
        #[allow(clippy::cast_possible_truncation, reason = "it is the index of a span")]
        let span = spans[(*key & index_mask) as usize];
        *key = span.with_tied(tied).0;
    }
    for (span, key) in spans.iter_mut().zip(keys) {
        *span = Span(*key);
    }
    any_tied
}

/// Sorts the names that tie.
#[inline(never)]
fn sort_ties(depth: usize, turns: u32, spans: &mut [Span], keys: &mut [u64], names: &[u8]) {
    for run in spans.chunk_by_mut(|_, next| next.is_tied()) {
        match run.len() {
            1 => {}
            2..=FEW => sort_by_comparing(run, names),
            len if turns > 1 => sort_from(depth, turns - 1, run, &mut keys[..len], names),
            _ => sort_by_median(depth, run, names),
        }
    }
}

fn sort_by_comparing(spans: &mut [Span], names: &[u8]) {
    spans.sort_unstable_by(|a, b| a.name(names).cmp(b.name(names)).then(a.cmp(b)));
}

/// Sorts names that share their first `depth` bytes by the median of their next 8 bytes. Names that
/// are less and names that are greater, at most half of all each, are sorted in the same way. Names
/// with the same 8 bytes are sorted by the bytes after these.
#[cold]
fn sort_by_median(mut depth: usize, mut spans: &mut [Span], names: &[u8]) {
    while spans.len() > FEW {
        let key = |span: &Span| span.key(depth, names);
        let median = key(spans.select_nth_unstable_by_key(spans.len() / 2, key).1);
        spans.sort_unstable_by_key(|span| key(span).cmp(&median));
        let (less, rest) = spans.split_at_mut(spans.partition_point(|span| key(span) < median));
        let (same, greater) = rest.split_at_mut(rest.partition_point(|span| key(span) == median));
        sort_by_median(depth, less, names);
        sort_by_median(depth, greater, names);
        spans = same;
        if median.to_be_bytes()[7] == 0 {
            return spans.sort_unstable(); // All names are equal.
        }
        depth += size_of::<u64>();
    }
    sort_by_comparing(spans, names);
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{FEW, SMALL, Span, sort};
    use std::cell::Cell;

    thread_local! {
        static COUNTED: Cell<usize> = const { Cell::new(0) };
    }

    /// Counts steps: keys that are read or compared, and 8 bytes of a whole name. Each step takes
    /// about as long as any other.
    pub(crate) fn count(steps: usize) {
        COUNTED.set(COUNTED.get() + steps);
    }

    /// Sorts the names, and compares the result with a stable sort of `std`. Returns the number of
    /// steps that were [counted](count).
    fn check(names: &[Vec<u8>]) -> usize {
        let mut arena = vec![0xff; 8];
        let mut spans = Vec::new();
        for name in names {
            spans.push(Span::new(arena.len(), name.len()));
            arena.extend_from_slice(name);
            arena.push(0xff); // Not NUL, so a read past the end of a name changes the order.
        }
        let before = arena.clone();
        let mut expected: Vec<_> = names.iter().zip(spans.clone()).collect();
        expected.sort_by_key(|&(name, _)| name);
        let before_sort = COUNTED.get();
        sort(&mut spans, &mut vec![0; names.len()], &arena);
        let steps = COUNTED.get() - before_sort;
        assert_eq!(arena, before);
        for ((name, span), sorted) in expected.into_iter().zip(spans) {
            assert_eq!(sorted.name(&arena), name);
            assert_eq!(sorted.start(), span.start());
        }
        steps
    }

    /// A seeded xorshift64* generator.
    pub(crate) struct Random(pub(crate) u64);

    impl Random {
        pub(crate) fn below(&mut self, end: usize) -> usize {
            self.0 ^= self.0 >> 12;
            self.0 ^= self.0 << 25;
            self.0 ^= self.0 >> 27;
            let high = u32::try_from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32).unwrap();
            high as usize % end
        }

        pub(crate) fn name(&mut self, len: usize, alphabet: &[u8]) -> Vec<u8> {
            (0..len).map(|_| alphabet[self.below(alphabet.len())]).collect()
        }
    }

    const ALPHABETS: [&[u8]; 7] = [
        b"a",
        b"ab",
        b"aAbB",
        b"0123456789abcdef",
        b"0123456789",
        &[1, 0xff],
        &[1, 0x40, 0x5b, 0x7f, 0x80, 0xfe, 0xff],
    ];

    // Miri is an interpreter, and slow.
    const LONGEST: usize = if cfg!(miri) { 60 } else { 4095 };

    const ROUNDS: usize = if cfg!(miri) { 1 } else { 12 };

    #[test]
    fn names_of_all_lengths_and_alphabets_are_sorted() {
        let mut random = Random(1);
        let max_count = if cfg!(miri) { 12 } else { 700 };
        for _ in 0..ROUNDS {
            for alphabet in ALPHABETS {
                for max_len in [1, 2, 7, 8, 9, 16, 20] {
                    let count = random.below(max_count);
                    let names: Vec<_> = (0..count)
                        .map(|_| {
                            let len = random.below(max_len + 1);
                            random.name(len, alphabet)
                        })
                        .collect();
                    check(&names);
                }
            }
        }
    }

    #[test]
    fn names_that_share_a_prefix_are_sorted() {
        let mut random = Random(2);
        for _ in 0..ROUNDS {
            for shared in [1, 7, 8, 9, 13, LONGEST / 16, LONGEST - 20] {
                let alphabet = ALPHABETS[random.below(ALPHABETS.len())];
                let prefix = random.name(shared, alphabet);
                let count = random.below(if cfg!(miri) { 12 } else { 300 });
                let names: Vec<_> = (0..count)
                    .map(|_| {
                        let kept =
                            if random.below(10) == 0 { random.below(shared) } else { shared };
                        let len = random.below(20);
                        [&prefix[..kept], &random.name(len, b"ab")].concat()
                    })
                    .collect();
                check(&names);
            }
        }
    }

    #[test]
    fn any_number_of_names_is_sorted() {
        let mut random = Random(3);
        let many = if cfg!(miri) { 65 } else { 20_000 };
        let counts = if cfg!(miri) {
            vec![0, 1, FEW, FEW + 1, 8, 9, 17, SMALL, SMALL + 1]
        } else {
            (0..=2 * SMALL).collect()
        };
        for count in counts.into_iter().chain([many]) {
            for alphabet in ALPHABETS {
                let names: Vec<_> = (0..count).map(|_| random.name(16, alphabet)).collect();
                check(&names);
            }
        }
    }

    /// Sorting takes `n log n` steps, and one step for each 8 bytes of the names. The number is
    /// multiplied by a factor that depends on what the names share.
    #[test]
    #[cfg_attr(miri, ignore = "thousands of long names are too many for Miri")]
    fn no_names_take_more_than_n_log_n_comparisons() {
        const LEN: usize = 400;
        type Shape = (&'static str, usize, fn(&mut Random) -> Vec<u8>);
        const SHAPES: [Shape; 6] = [
            ("random", 2, |random| random.name(16, b"0123456789abcdef")),
            // Comparing whole names would take ten times as many steps.
            ("groups that share a long prefix", 2, |random| {
                let mut of_group = Random(1 + random.below(16) as u64);
                [of_group.name(LEN, b"ab"), random.name(9, b"0123456789")].concat()
            }),
            // Sorting all names of a group again for each key that they share would take `log n`
            // steps each time.
            ("a few leave the rest at each key", 8, |random| {
                let shared = LEN.min(random.below(20 * LEN));
                [vec![b'a'; shared], random.name(9, b"0123456789")].concat()
            }),
            ("two groups of each at each key", 4, |random| {
                (0..LEN / 8).flat_map(|_| [*b"aaaaaaaa", *b"bbbbbbbb"][random.below(2)]).collect()
            }),
            ("names that differ only in case", 4, |random| random.name(LEN, b"aA")),
            ("equal", 8, |_| vec![b'a'; LEN]),
        ];
        let mut random = Random(6);
        for (shape, limit, name) in SHAPES {
            for count in [2048_usize, 4 * 2048] {
                let names: Vec<_> = (0..count).map(|_| name(&mut random)).collect();
                let words: usize =
                    names.iter().map(|name| name.len().div_ceil(size_of::<u64>())).sum();
                let at_most = limit * (count * count.ilog2() as usize + words);
                let steps = check(&names);
                assert!(
                    steps <= at_most,
                    "{shape}, {count} names: {steps} steps, at most {at_most}"
                );
            }
        }
    }

    #[test]
    fn equal_names_are_sorted() {
        for len in [0, 1, 7, 8, 9, LONGEST / 16, LONGEST] {
            for count in [2, FEW + 1, if cfg!(miri) { 9 } else { 3000 }] {
                check(&vec![vec![b'A'; len]; count]);
            }
        }
    }

    #[test]
    fn names_that_begin_the_next_are_sorted() {
        let mut names: Vec<_> = (1..=LONGEST).step_by(3).map(|len| vec![b'a'; len]).collect();
        names.reverse();
        check(&names);
        names.extend_from_within(..);
        check(&names);
    }

    /// The names are 100,000 of 255 bytes that share 250, and names of which each begins with all
    /// shorter ones. The stack has 64 KiB.
    #[test]
    #[cfg_attr(miri, ignore = "100,000 names are too many for Miri")]
    fn the_stack_stays_small() {
        let sort_on_a_small_stack = || {
            let mut random = Random(5);
            let prefix = random.name(250, b"ab");
            let mut names: Vec<_> = (0..100_000)
                .map(|_| [&prefix[..], &random.name(5, b"0123456789")].concat())
                .collect();
            check(&names);
            names.push(b"b".to_vec());
            check(&names);
            // Shuffle the names: the sort would reverse names in reverse order at once, and nest no
            // calls.
            let mut nested: Vec<_> = (1..=4095).step_by(4).map(|len| vec![b'a'; len]).collect();
            (1..nested.len()).for_each(|index| nested.swap(index, random.below(index + 1)));
            check(&nested);
        };
        std::thread::Builder::new()
            .stack_size(64 * 1024)
            .spawn(sort_on_a_small_stack)
            .unwrap()
            .join()
            .unwrap();
    }
}
