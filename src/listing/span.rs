//! `Span`: the position of a name, in 8 bytes, and the key that the name is sorted by. It does not
//! know what the bytes between the names are. It imports nothing, because the fuzz test compiles
//! this file and `sort.rs` alone.

/// The position of a name in a slice of all names. At least 8 bytes precede each name in the slice.
///
/// ```text
///  63                17   16   15            0
/// +--------------------+------+---------------+
/// |       start        | tied |      len      |
/// +--------------------+------+---------------+
/// ```
///
/// The start is in the highest bits, so spans compare in the order in which their names were
/// stored.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span(pub(crate) u64);

#[allow(clippy::cast_possible_truncation, reason = "`new` put in no more bits than come out")]
impl Span {
    const LEN_MASK: u64 = 0xffff;
    /// The bit that the sort sets if the key of this name equals the key of the previous name.
    const TIED: u64 = 1 << 16;
    const START_SHIFT: u32 = 17;
    pub(crate) const MAX_START: u64 = u64::MAX >> Self::START_SHIFT;

    /// Creates a span. Excess bits of one part are cut off, so they do not change the other part.
    pub(crate) fn new(start: usize, len: usize) -> Self {
        let (start, len) = (start as u64, len as u64);
        debug_assert!(start <= Self::MAX_START && len <= Self::LEN_MASK);
        Self(start << Self::START_SHIFT | len & Self::LEN_MASK)
    }

    /// Returns the span of the same name in a slice where the name begins `bytes` bytes later.
    pub(crate) fn moved(self, bytes: usize) -> Self {
        Self(self.0 + ((bytes as u64) << Self::START_SHIFT))
    }

    pub(crate) fn start(self) -> usize {
        (self.0 >> Self::START_SHIFT) as usize
    }

    pub(crate) fn len(self) -> usize {
        (self.0 & Self::LEN_MASK) as usize
    }

    pub(crate) fn end(self) -> usize {
        self.start() + self.len()
    }

    #[inline]
    pub(crate) fn name(self, names: &[u8]) -> &[u8] {
        #[cfg(test)]
        crate::listing::sort::tests::count(self.len().div_ceil(size_of::<u64>()));
        &names[self.start()..self.end()]
    }

    /// Returns the 8 bytes of the name from `depth` on, as a big-endian integer. Bytes after the
    /// end of the name are zero.
    #[inline]
    pub(crate) fn key(self, depth: usize, names: &[u8]) -> u64 {
        #[cfg(test)]
        crate::listing::sort::tests::count(1);
        if depth >= self.len() {
            return 0;
        }
        // Never read past the end of a name: read the 8 bytes before its end, and shift out the
        // bytes before `depth`.
        let missing = size_of::<u64>().saturating_sub(self.len() - depth);
        let end = self.start() + depth + size_of::<u64>() - missing;
        let bytes =
            names[..end].last_chunk().expect("BUG: less than 8 bytes before the end of the name");
        u64::from_be_bytes(*bytes) << (8 * missing % 64)
    }

    pub(crate) fn is_tied(self) -> bool {
        self.0 & Self::TIED != 0
    }

    pub(crate) fn with_tied(self, tied: bool) -> Self {
        Self(self.0 & !Self::TIED | if tied { Self::TIED } else { 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::Span;

    #[test]
    fn spans_keep_their_parts() {
        #[allow(
            clippy::cast_possible_truncation,
            reason = "the start is cut on machines that cannot have so many bytes"
        )]
        let largest = Span::new(Span::MAX_START as usize, 0xffff).with_tied(true);
        assert_eq!(largest.start() as u64, Span::MAX_START & usize::MAX as u64);
        assert_eq!((largest.len(), largest.is_tied()), (0xffff, true));
        assert!(!largest.with_tied(false).is_tied());
        assert!(Span::new(8, 255).with_tied(true) < Span::new(9, 0));
    }
}
