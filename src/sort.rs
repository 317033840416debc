//! The 8-byte big-endian key of a name, and the sort that uses it.
//!
//! The first 8 bytes in which the names can differ, those after the prefix that all of them share, make one big-endian
//! number that compares as they do. The lowest bits of it give way to the number of the name, and the sort is one of plain
//! integers, which `core` does at its fastest. What is still equal then, which is rare, is sorted again by what follows.

use core::cmp::Ordering;
use core::mem;

/// Where a name is, with a tag of 4 bits. The name stays there, in a slice of all names, after at least 8 other bytes.
///
/// From the top: 47 bits of where it starts, so that places compare as the names were put there; [`Place::TIED`]; 12 bits
/// of length; the tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(u64);

#[allow(clippy::cast_possible_truncation, reason = "each part comes out as it went in")]
impl Place {
    pub(crate) const MAX_START: u64 = (1 << 47) - 1;
    const MAX_LEN: u64 = (1 << 12) - 1;
    const MAX_TAG: u64 = (1 << 4) - 1;

    /// That the last sort saw no difference to the name before.
    const TIED: u64 = 1 << 16;

    #[inline]
    pub(crate) fn new(start: usize, len: usize, tag: u16) -> Self {
        let (start, len, tag) = (start as u64, len as u64, u64::from(tag));
        debug_assert!(start <= Self::MAX_START && len <= Self::MAX_LEN && tag <= Self::MAX_TAG);
        Self(start << 17 | len << 4 | tag)
    }

    #[inline]
    pub(crate) fn start(self) -> usize {
        (self.0 >> 17) as usize
    }

    #[inline]
    pub(crate) fn len(self) -> usize {
        (self.0 >> 4 & Self::MAX_LEN) as usize
    }

    #[inline]
    pub(crate) fn tag(self) -> u16 {
        (self.0 & Self::MAX_TAG) as u16
    }

    #[inline]
    pub(crate) fn name(self, names: &[u8]) -> &[u8] {
        &names[self.start()..self.start() + self.len()]
    }

    /// The 8 bytes of the name from `depth` on, big-endian, with zeros for those beyond its end.
    #[inline]
    pub(crate) fn key(self, depth: usize, names: &[u8]) -> u64 {
        let (from, end) = (self.start() + depth, self.start() + self.len());
        // Near its end a name is read with bytes before it, which are shifted out: nothing is read past the end.
        let before = (from + 8).saturating_sub(end);
        if before >= 8 {
            return 0;
        }
        let bytes = names[from - before..][..8].try_into().expect("BUG: not 8 bytes");
        u64::from_be_bytes(bytes) << (8 * before)
    }

    fn is_tied(self) -> bool {
        self.0 & Self::TIED != 0
    }
}

/// 1 in each byte.
const ONES: u64 = u64::MAX / 0xff;

/// Whether `A` to `Z` count as `a` to `z`. Names that differ in nothing else are told apart by their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    Sensitive,
    AsciiInsensitive,
}

impl Case {
    #[inline]
    fn fold(self, key: u64) -> u64 {
        match self {
            Case::Sensitive => key,
            Case::AsciiInsensitive => {
                // Of each byte the highest bit is set where the sum reaches `A`, and where it goes beyond `Z`.
                let low = key & (ONES * 0x7f);
                let from_a = low + ONES * (0x80 - u64::from(b'A'));
                let beyond_z = low + ONES * (0x7f - u64::from(b'Z'));
                let is_upper = from_a & !beyond_z & !key & (ONES * 0x80);
                key | is_upper >> 2
            }
        }
    }

    /// The order of two names.
    pub(crate) fn compare(self, a: &[u8], b: &[u8]) -> Ordering {
        match self {
            Case::Sensitive => a.cmp(b),
            Case::AsciiInsensitive => {
                let [lower_a, lower_b] = [a, b].map(|name| name.iter().map(u8::to_ascii_lowercase));
                lower_a.cmp(lower_b).then_with(|| a.cmp(b))
            }
        }
    }
}

/// So many keys that all names share are passed one by one before it is asked how far they agree.
const KEYS_PASSED: u32 = 2;

/// Up to here names are compared with each other, without keys.
const FEW: usize = 4;

/// Sorts the places of NUL-free names by their names, those of equal names as the names were put there.
///
/// `words` are the [keys](Place::key) of the places from the first byte on, and lost.
//
// A radix sort over only the bits that vary, gathered side by side, was built too: no faster for 1024 PID-like names, up to a
// fifth faster for 100,000, 25 to 45 % for a million, and two to four times slower for a few hundred that begin like words.
pub(crate) fn sort(places: &mut [Place], words: &mut [u64], names: &[u8], case: Case) {
    if case == Case::AsciiInsensitive {
        for word in &mut *words {
            *word = case.fold(*word);
        }
    }
    // File systems that list the oldest first, or the newest, often give names that were made in order. Keys tell that too,
    // but for names that share one key and are not told apart by the next, it takes fewer looks at them to compare names.
    if places.len() > FEW && words[0] == words[1] && places[0].len() > 2 * size_of::<u64>() {
        let as_they_came = || places.iter().map(|place| place.name(names));
        if as_they_came().is_sorted_by(|a, b| case.compare(a, b).is_le()) {
            return;
        }
        if as_they_came().is_sorted_by(|a, b| case.compare(a, b).is_gt()) {
            return places.reverse();
        }
    }
    sort_by_keys(0, places, words, names, case);
}

/// Sorts the places of names that begin with the same `depth` bytes.
fn sort_from(depth: usize, places: &mut [Place], words: &mut [u64], names: &[u8], case: Case) {
    if places.len() <= FEW {
        return sort_by_comparing(places, names, case);
    }
    put_keys(words, depth, places, names, case);
    sort_by_keys(depth, places, words, names, case);
}

/// Sorts the places of names that begin with the same `depth` bytes, and whose keys from there on are `words`.
fn sort_by_keys(mut depth: usize, mut places: &mut [Place], mut words: &mut [u64], names: &[u8], mut case: Case) {
    let mut passed = 0;
    while places.len() > FEW {
        if words.is_sorted_by(|a, b| a < b) {
            return;
        }
        if words.is_sorted_by(|a, b| a > b) {
            return places.reverse();
        }
        let first = words[0];
        let varying = words.iter().fold(0, |varying, word| varying | word ^ first);
        let shared_bits = varying.leading_zeros();
        // Where a name ends within its key, no other key of it has more to say.
        let is_last = varying != 0 && places[0].len() <= depth + size_of::<u64>();
        if shared_bits < u8::BITS || is_last {
            if !sort_by_words(places, words, shared_bits) {
                return;
            }
            // The longest run of ties is the next turn of this loop. A call for each of the others sorts at most half of
            // these places, so that calls nest log2(n) deep at most, however far the names agree.
            let (mut longest, mut words_of_longest): (&mut [Place], &mut [u64]) = Default::default();
            for mut run in places.chunk_by_mut(|_, next| next.is_tied()) {
                let mut words_of_run;
                (words_of_run, words) = words.split_at_mut(run.len());
                if run.len() > longest.len() {
                    mem::swap(&mut run, &mut longest);
                    mem::swap(&mut words_of_run, &mut words_of_longest);
                }
                if run.len() > 1 {
                    sort_from(depth, run, words_of_run, names, case);
                }
            }
            (places, words) = (longest, words_of_longest);
            passed = 0;
        } else if varying != 0 {
            depth += (shared_bits / u8::BITS) as usize;
        } else if first.to_be_bytes()[7] != 0 {
            depth += size_of::<u64>();
            passed += 1;
            if passed > KEYS_PASSED {
                depth = agreed(depth, places, names, case);
            }
        } else if case == Case::AsciiInsensitive {
            // All names end here, and differ in case at most.
            (depth, case) = (0, Case::Sensitive);
        } else {
            // All names are equal, and still as they came.
            return;
        }
        put_keys(words, depth, places, names, case);
    }
    sort_by_comparing(places, names, case);
}

fn sort_by_comparing(places: &mut [Place], names: &[u8], case: Case) {
    places.sort_unstable_by(|a, b| case.compare(a.name(names), b.name(names)).then(a.cmp(b)));
}

/// How far the names, which agree up to `depth`, do so: one look at each, where keys would be one for every 8 bytes.
fn agreed(depth: usize, places: &[Place], names: &[u8], case: Case) -> usize {
    let key = |place: &Place, depth: usize| case.fold(place.key(depth, names));
    let mut end = places[0].len();
    for place in &places[1..] {
        let mut at = depth;
        while at < end {
            let shared_bits = (key(&places[0], at) ^ key(place, at)).leading_zeros();
            at += (shared_bits / u8::BITS) as usize;
            if shared_bits < u64::BITS {
                end = end.min(at);
            }
        }
    }
    end
}

fn put_keys(words: &mut [u64], depth: usize, places: &[Place], names: &[u8], case: Case) {
    for (word, place) in words.iter_mut().zip(places) {
        *word = case.fold(place.key(depth, names));
    }
}

/// Sorts the places by the keys in `words`, but for as many of their lowest bits as it takes to number them.
///
/// Marks the ties, and returns whether there are any.
fn sort_by_words(places: &mut [Place], words: &mut [u64], shared_bits: u32) -> bool {
    let numbers = u64::MAX >> (places.len() as u64 - 1).leading_zeros();
    for (word, number) in words.iter_mut().zip(0..) {
        *word = *word << shared_bits & !numbers | number;
    }
    words.sort_unstable();
    // A word gives way to the place that it numbers.
    let mut before = !words[0];
    let mut ties = 0;
    for word in &mut *words {
        let tie = if (*word ^ before) > numbers { 0 } else { Place::TIED };
        ties |= tie;
        before = *word;
        #[allow(clippy::cast_possible_truncation, reason = "it counted places")]
        let place = places[(*word & numbers) as usize];
        *word = place.0 & !Place::TIED | tie;
    }
    for (place, word) in places.iter_mut().zip(words) {
        *place = Place(*word);
    }
    ties != 0
}

#[cfg(test)]
mod tests {
    use super::{Case, FEW, Place, sort};

    /// What the sort must give: every name in order, with the number it had, equal names by number.
    fn check(names: &[Vec<u8>], case: Case) {
        let mut arena = vec![0xff; 8];
        let mut places = Vec::new();
        for (tag, name) in (0..16).cycle().zip(names) {
            places.push(Place::new(arena.len(), name.len(), tag));
            arena.extend_from_slice(name);
            arena.push(0xff); // and not NUL, so that to read past the end of a name is to sort it wrongly
        }
        let before = arena.clone();
        let mut expected: Vec<_> = names.iter().zip(places.clone()).collect();
        expected.sort_by_cached_key(|&(name, _)| match case {
            Case::Sensitive => (None, name),
            Case::AsciiInsensitive => (Some(name.to_ascii_lowercase()), name),
        });
        let mut words: Vec<_> = places.iter().map(|place| place.key(0, &arena)).collect();
        sort(&mut places, &mut words, &arena, case);
        assert_eq!(arena, before);
        for ((name, place), sorted) in expected.into_iter().zip(places) {
            assert_eq!(sorted.name(&arena), name);
            assert_eq!((sorted.start(), sorted.tag()), (place.start(), place.tag()));
        }
    }

    fn check_both(names: &[Vec<u8>]) {
        check(names, Case::Sensitive);
        check(names, Case::AsciiInsensitive);
    }

    /// xorshift64*, seeded.
    struct Random(u64);

    impl Random {
        fn below(&mut self, end: usize) -> usize {
            self.0 ^= self.0 >> 12;
            self.0 ^= self.0 << 25;
            self.0 ^= self.0 >> 27;
            let high = u32::try_from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32).unwrap();
            high as usize % end
        }

        fn name(&mut self, len: usize, alphabet: &[u8]) -> Vec<u8> {
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

    // An interpreter takes as long for a name of 100 bytes as a processor for a directory.
    const LONGEST: usize = if cfg!(miri) { 60 } else { 4095 };

    const ROUNDS: usize = if cfg!(miri) { 1 } else { 12 };

    #[test]
    fn names_of_all_lengths_and_alphabets() {
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
                    check_both(&names);
                }
            }
        }
    }

    #[test]
    fn names_that_share_a_prefix() {
        let mut random = Random(2);
        for _ in 0..ROUNDS {
            for shared in [1, 7, 8, 9, 13, LONGEST / 16, LONGEST - 20] {
                let alphabet = ALPHABETS[random.below(ALPHABETS.len())];
                let prefix = random.name(shared, alphabet);
                let count = random.below(if cfg!(miri) { 12 } else { 300 });
                let names: Vec<_> = (0..count)
                    .map(|_| {
                        let kept = if random.below(10) == 0 { random.below(shared) } else { shared };
                        let len = random.below(20);
                        [&prefix[..kept], &random.name(len, b"ab")].concat()
                    })
                    .collect();
                check_both(&names);
            }
        }
    }

    #[test]
    fn few_names_and_many() {
        let mut random = Random(3);
        let many = if cfg!(miri) { 65 } else { 20_000 };
        for count in [0, 1, 2, 3, FEW, FEW + 1, 8, 9, 33, many] {
            for alphabet in ALPHABETS {
                let names: Vec<_> = (0..count).map(|_| random.name(16, alphabet)).collect();
                check_both(&names);
            }
        }
    }

    #[test]
    fn names_equal_throughout() {
        for len in [0, 1, 7, 8, 9, LONGEST / 16, LONGEST] {
            for count in [2, FEW + 1, if cfg!(miri) { 9 } else { 3000 }] {
                check_both(&vec![vec![b'A'; len]; count]);
            }
        }
    }

    #[test]
    fn names_that_differ_in_case_alone() {
        let mut random = Random(4);
        for len in [1, 8, 9, 40, LONGEST] {
            let names: Vec<_> = (0..if cfg!(miri) { 9 } else { 300 }).map(|_| random.name(len, b"aA")).collect();
            check_both(&names);
        }
    }

    #[test]
    fn case_is_folded_as_ascii_has_it() {
        for byte in 0..=255_u8 {
            let [key, lower] = [byte, byte.to_ascii_lowercase()]
                .map(|byte| u64::from_be_bytes([b'Z', byte, b'@', b'[', 0xc1, 0xff, byte, 1]));
            let expected = u64::from_be_bytes(lower.to_be_bytes().map(|byte| byte.to_ascii_lowercase()));
            assert_eq!(Case::AsciiInsensitive.fold(key), expected, "{byte:#x}");
        }
    }

    #[test]
    fn each_name_the_beginning_of_the_next() {
        let mut names: Vec<_> = (1..=LONGEST).step_by(3).map(|len| vec![b'a'; len]).collect();
        names.reverse();
        check_both(&names);
        names.extend_from_within(..);
        check_both(&names);
    }

    /// 100,000 names of 255 bytes that share 250, on a stack of 64 KiB.
    #[test]
    #[cfg_attr(miri, ignore = "100,000 names are too many for an interpreter")]
    fn the_stack_is_bounded() {
        let sort_in_little_stack = || {
            let mut random = Random(5);
            let prefix = random.name(250, b"ab");
            let mut names: Vec<_> =
                (0..100_000).map(|_| [&prefix[..], &random.name(5, b"0123456789")].concat()).collect();
            check(&names, Case::Sensitive);
            names.push(b"b".to_vec());
            check(&names, Case::Sensitive);
            let nested: Vec<_> = (1..=4095).rev().map(|len| vec![b'a'; len]).collect();
            check(&nested, Case::Sensitive);
        };
        std::thread::Builder::new().stack_size(64 * 1024).spawn(sort_in_little_stack).unwrap().join().unwrap();
    }
}
