//! The 8-byte big-endian key of a name, and the sort that uses it.
//!
//! The first 8 bytes in which names can differ, those after the prefix that all of them share, make one big-endian number
//! that compares as they do. Its leading bits and the number of the name go into one word, and it is words that are sorted:
//! by `core`'s sort of integers where they are few, by a radix sort from some hundreds on. What is still equal then, which
//! is rare, is sorted again by what comes after it.

use core::cmp::Ordering;
use core::mem;
use core::ops::Range;

/// Where a name is, with a tag of 4 bits. The name stays there, in a slice of all names, after at least 8 other bytes.
///
/// From the top: 47 bits of where it starts, so that places order as the names were put there; [`Place::TIED`]; 12 bits of
/// length; the tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place(u64);

impl Place {
    pub(crate) const MAX_START: u64 = (1 << 47) - 1;
    const MAX_LEN: u64 = (1 << 12) - 1;
    const MAX_TAG: u64 = (1 << 4) - 1;

    /// That the last sort saw no difference to the name before.
    const TIED: u64 = 1 << 16;

    #[inline]
    pub(crate) fn new(start: u64, len: u64, tag: u64) -> Self {
        debug_assert!(start <= Self::MAX_START && len <= Self::MAX_LEN && tag <= Self::MAX_TAG);
        Self(start << 17 | len << 4 | tag)
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "it was an index before")]
    pub(crate) fn start(self) -> usize {
        (self.0 >> 17) as usize
    }

    #[inline]
    pub(crate) fn len(self) -> usize {
        (self.0 >> 4 & Self::MAX_LEN) as usize
    }

    #[inline]
    pub(crate) fn tag(self) -> u8 {
        (self.0 & Self::MAX_TAG) as u8
    }

    #[inline]
    pub(crate) fn name(self, names: &[u8]) -> &[u8] {
        &names[self.start()..self.start() + self.len()]
    }

    /// The 8 bytes of the name from `depth` on, big-endian, with zeros for those beyond its end.
    #[inline]
    fn key(self, depth: usize, names: &[u8]) -> u64 {
        if depth >= self.len() {
            return 0;
        }
        // Near its end a name is read with bytes before it, which are shifted out: nothing is read past the end.
        let from = self.start() + depth;
        let at = from.min(self.start() + self.len() - 8);
        let bytes = names[at..at + 8].try_into().expect("BUG: not 8 bytes");
        u64::from_be_bytes(bytes) << (8 * (from - at))
    }

    fn is_tied(self) -> bool {
        self.0 & Self::TIED != 0
    }
}

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
            Case::AsciiInsensitive => u64::from_ne_bytes(key.to_ne_bytes().map(|byte| byte.to_ascii_lowercase())),
        }
    }

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

/// Up to here names are compared with each other, without keys.
const FEW: usize = 4;

/// From here on a radix sort beats comparisons.
const RADIX_FROM: usize = 192;

/// The most words that have a use as scratch: 64 KiB, which stay in the processor's cache.
pub(crate) const SCRATCH: usize = 8192;

/// Sorts the places of NUL-free names by their names, those of equal names as the names were put there.
///
/// `words` is memory of the same length. `scratch` is memory too: [`SCRATCH`] words, or as many as there are places, make
/// it faster; it works with none.
pub(crate) fn sort(places: &mut [Place], words: &mut [u64], scratch: &mut [u64], names: &[u8], case: Case) {
    sort_from(0, places, words, scratch, names, case);
}

/// Sorts the places of names that begin with the same `depth` bytes.
fn sort_from(
    mut depth: usize,
    mut places: &mut [Place],
    mut words: &mut [u64],
    scratch: &mut [u64],
    names: &[u8],
    case: Case,
) {
    loop {
        if places.len() <= FEW {
            return sort_by_comparing(places, names, case);
        }
        let first = case.fold(places[0].key(depth, names));
        let mut varying = 0;
        for (word, place) in words.iter_mut().zip(&*places) {
            *word = case.fold(place.key(depth, names));
            varying |= *word ^ first;
        }
        if varying == 0 && first & 0xff == 0 {
            // All names end here.
            return sort_by_comparing(places, names, case);
        }
        let shared_bytes = varying.leading_zeros() / 8;
        if shared_bytes > 0 {
            depth += shared_bytes as usize;
            continue;
        }
        let number_bits = usize::BITS - (places.len() - 1).leading_zeros();
        if places.len() < RADIX_FROM || scratch.len() < RADIX_FROM {
            for (word, number) in words.iter_mut().zip(0..) {
                *word = *word >> number_bits << number_bits | number;
            }
            words.sort_unstable();
        } else {
            let used_bits = squeeze(words, varying, number_bits);
            radix_sort(words, scratch, number_bits..used_bits);
        }
        if !take_order(places, words, number_bits) {
            return;
        }
        // The longest run of ties is the next turn of this loop. A call for each of the others sorts at most half of these
        // places, so that calls nest log2(n) deep at most, however far the names agree.
        let (mut longest, mut words_of_longest): (&mut [Place], &mut [u64]) = Default::default();
        for mut run in places.chunk_by_mut(|_, next| next.is_tied()) {
            let mut words_of_run;
            (words_of_run, words) = words.split_at_mut(run.len());
            if run.len() > longest.len() {
                mem::swap(&mut run, &mut longest);
                mem::swap(&mut words_of_run, &mut words_of_longest);
            }
            sort_from(depth, run, words_of_run, scratch, names, case);
        }
        (places, words) = (longest, words_of_longest);
    }
}

fn sort_by_comparing(places: &mut [Place], names: &[u8], case: Case) {
    places.sort_unstable_by(|a, b| case.compare(a.name(names), b.name(names)).then(a.cmp(b)));
}

/// Makes words of keys that differ in the bits `varying` only: leaves out bits that no key needs, and numbers them.
///
/// The bytes of a key are laid side by side at the width that the widest of them needs, 4 bits where all are digits. Of
/// those, only as many stay as will tell nearly all names apart. Returns the bits used, those of the number included.
fn squeeze(words: &mut [u64], varying: u64, number_bits: u32) -> u32 {
    let byte_width = u8::BITS - varying.to_ne_bytes().into_iter().fold(0, |all, byte| all | byte).leading_zeros();
    let bytes_wanted = words.len().ilog2() / 4 + 3;
    let bytes_varying = 8 - varying.trailing_zeros() / 8;
    let kept = (bytes_wanted.min(bytes_varying) * byte_width).min(u64::BITS - number_bits);
    let dropped = 8 * byte_width - kept;
    let every_byte = u64::from_ne_bytes([u8::MAX >> (8 - byte_width); 8]);
    for (word, number) in words.iter_mut().zip(0..) {
        let mut key = *word & every_byte;
        key = key & 0x00ff_00ff_00ff_00ff | (key & 0xff00_ff00_ff00_ff00) >> (8 - byte_width);
        key = key & 0x0000_ffff_0000_ffff | (key & 0xffff_0000_ffff_0000) >> (16 - 2 * byte_width);
        key = key & 0x0000_0000_ffff_ffff | (key & 0xffff_ffff_0000_0000) >> (32 - 4 * byte_width);
        *word = key >> dropped << number_bits | number;
    }
    kept + number_bits
}

/// Puts the places into the order of the words that number them. Marks the ties, and returns whether there are any.
fn take_order(places: &mut [Place], words: &mut [u64], number_bits: u32) -> bool {
    let numbers = (1 << number_bits) - 1;
    let mut before = !words[0];
    let mut tied = 0;
    for word in &mut *words {
        let tie = if (*word ^ before) > numbers { 0 } else { Place::TIED };
        before = *word;
        tied |= tie;
        #[allow(clippy::cast_possible_truncation, reason = "it was an index before")]
        let place = places[(*word & numbers) as usize];
        *word = place.0 & !Place::TIED | tie;
    }
    for (place, word) in places.iter_mut().zip(words) {
        *place = Place(*word);
    }
    tied != 0
}

/// The widest digit of the radix sort: 2048 counters of 2 bytes are 4 KiB.
const DIGIT_BITS: u32 = 11;

/// Sorts words that differ in the given bits only, and keeps the order of those equal in them unless they are too many for
/// the scratch.
fn radix_sort(words: &mut [u64], scratch: &mut [u64], bits: Range<u32>) {
    if words.len() < RADIX_FROM || bits.is_empty() {
        return words.sort_unstable();
    }
    if words.len() > scratch.len() {
        let shift = bits.end.saturating_sub(u8::BITS).max(bits.start);
        split(words, shift);
        for part in words.chunk_by_mut(|a, b| a >> shift == b >> shift) {
            radix_sort(part, scratch, bits.start..shift);
        }
        return;
    }
    let digits = bits.len() as u32;
    let passes = digits.div_ceil(DIGIT_BITS.min(words.len().ilog2()));
    let digit_bits = digits.div_ceil(passes);
    let scratch = &mut scratch[..words.len()];
    for pass in 0..passes {
        let (from, to): (&[u64], &mut [u64]) = if pass % 2 == 0 { (words, scratch) } else { (scratch, words) };
        scatter(from, to, bits.start + pass * digit_bits, digit_bits);
    }
    if passes % 2 == 1 {
        words.copy_from_slice(scratch);
    }
}

/// Moves words to where their digit belongs.
fn scatter(from: &[u64], to: &mut [u64], shift: u32, digit_bits: u32) {
    let mut next = [0_u16; 1 << DIGIT_BITS];
    let mask = ((1 << digit_bits) - 1) & (next.len() - 1);
    for word in from {
        next[(word >> shift) as usize & mask] += 1;
    }
    let mut sum = 0;
    for count in &mut next[..=mask] {
        sum += mem::replace(count, sum);
    }
    for word in from {
        let at = &mut next[(word >> shift) as usize & mask];
        to[usize::from(*at)] = *word;
        *at += 1;
    }
}

/// Moves words in place to where their bits from `shift` on, a byte of them, belong.
fn split(words: &mut [u64], shift: u32) {
    let digit = |word: u64| usize::from((word >> shift) as u8);
    let mut next = [0_usize; 256];
    for word in &*words {
        next[digit(*word)] += 1;
    }
    let mut ends = next;
    let mut sum = 0;
    for (start, end) in next.iter_mut().zip(&mut ends) {
        *start = sum;
        sum += *end;
        *end = sum;
    }
    for value in 0..256 {
        while next[value] < ends[value] {
            let mut word = words[next[value]];
            while digit(word) != value {
                let at = &mut next[digit(word)];
                mem::swap(&mut word, &mut words[*at]);
                *at += 1;
            }
            words[next[value]] = word;
            next[value] += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Case, Place, RADIX_FROM, SCRATCH, sort};

    /// What the sort must give: every name in order, with the number it had, equal names by number.
    fn check(names: &[Vec<u8>], case: Case) {
        let mut arena = vec![0xff; 8];
        let mut places = Vec::new();
        for (number, name) in names.iter().enumerate() {
            places.push(Place::new(arena.len() as u64, name.len() as u64, number as u64 % 16));
            arena.extend_from_slice(name);
            arena.push(0xff); // and not NUL, so that to read past the end of a name is to sort it wrongly
        }
        let before = arena.clone();
        let mut expected: Vec<_> = names.iter().zip(places.clone()).collect();
        expected.sort_by(|(a, _), (b, _)| match case {
            Case::Sensitive => a.cmp(b),
            Case::AsciiInsensitive => (a.to_ascii_lowercase(), a).cmp(&(b.to_ascii_lowercase(), b)),
        });
        for scratch in [0, names.len().min(SCRATCH)] {
            let mut sorted = places.clone();
            sort(&mut sorted, &mut vec![0; names.len()], &mut vec![0; scratch], &arena, case);
            assert_eq!(arena, before);
            for (&(name, place), sorted) in expected.iter().zip(sorted) {
                assert_eq!(sorted.name(&arena), name);
                assert_eq!((sorted.start(), sorted.tag()), (place.start(), place.tag()));
            }
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
            (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % end
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

    const ROUNDS: usize = if cfg!(miri) { 1 } else { 12 };

    #[test]
    fn names_of_all_lengths_and_alphabets() {
        let mut random = Random(1);
        let max_count = if cfg!(miri) { 40 } else { 700 };
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
            for shared in [1, 7, 8, 9, 13, 250, 4075] {
                let prefix = random.name(shared, ALPHABETS[random.0 as usize % ALPHABETS.len()]);
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
    fn counts_around_the_thresholds() {
        let mut random = Random(3);
        for count in [0, 1, 2, 3, 4, 5, RADIX_FROM - 1, RADIX_FROM, RADIX_FROM + 1] {
            let names: Vec<_> = (0..count).map(|_| random.name(16, b"0123456789abcdef")).collect();
            check_both(&names);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "too many for an interpreter")]
    fn more_names_than_scratch() {
        let mut random = Random(4);
        for alphabet in ALPHABETS {
            for count in [SCRATCH - 1, SCRATCH, SCRATCH + 1, 5 * SCRATCH] {
                for len in [3, 8, 16] {
                    let names: Vec<_> = (0..count).map(|_| random.name(len, alphabet)).collect();
                    check_both(&names);
                }
            }
        }
    }

    #[test]
    fn names_equal_throughout() {
        for len in [0, 1, 7, 8, 9, 255, 4095] {
            for count in [2, 5, 30, if cfg!(miri) { 31 } else { 3000 }] {
                check_both(&vec![vec![b'A'; len]; count]);
            }
        }
    }

    #[test]
    fn each_name_the_beginning_of_the_next() {
        let step = if cfg!(miri) { 97 } else { 3 };
        let mut names: Vec<_> = (1..=4095).step_by(step).map(|len| vec![b'a'; len]).collect();
        names.reverse();
        check_both(&names);
        names.extend_from_within(..);
        check_both(&names);
    }

    /// 100,000 names of 255 bytes that share 250, on a stack of 64 KiB.
    #[test]
    #[cfg_attr(miri, ignore = "too many for an interpreter")]
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
