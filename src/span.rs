//! `Span`: where a name is, in 8 bytes, and the key that it sorts by.

/// The span of a name in a slice of all names, with a tag of 4 bits that belongs to the caller. At least 8 bytes stand before
/// each name in the slice.
///
/// ```text
///  63                21   20   19   16 15            0
/// +--------------------+------+-------+---------------+
/// |       start        | tied |  tag  |      len      |
/// +--------------------+------+-------+---------------+
/// ```
///
/// The start is at the top, so spans compare as their names were stored.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span(pub(crate) u64);

#[allow(clippy::cast_possible_truncation, reason = "`new` put in no more bits than come out")]
impl Span {
    const LEN_MASK: u64 = 0xffff;
    const TAG_SHIFT: u32 = 16;
    const TAG_MASK: u64 = 0xf;
    /// Set by the sort: the key of this name equals the key of the name before it.
    const TIED: u64 = 1 << 20;
    const START_SHIFT: u32 = 21;
    pub(crate) const MAX_START: u64 = u64::MAX >> Self::START_SHIFT;

    /// The excess bits of a part are cut off, so they never spoil another part.
    pub(crate) fn new(start: usize, len: usize, tag: u8) -> Self {
        let (start, len, tag) = (start as u64, len as u64, u64::from(tag));
        debug_assert!(start <= Self::MAX_START && len <= Self::LEN_MASK && tag <= Self::TAG_MASK);
        Self(start << Self::START_SHIFT | (tag & Self::TAG_MASK) << Self::TAG_SHIFT | len & Self::LEN_MASK)
    }

    /// The same span, this many bytes further on.
    pub(crate) fn moved(self, bytes: usize) -> Self {
        Self(self.0 + ((bytes as u64) << Self::START_SHIFT))
    }

    pub(crate) fn start(self) -> usize {
        (self.0 >> Self::START_SHIFT) as usize
    }

    pub(crate) fn len(self) -> usize {
        (self.0 & Self::LEN_MASK) as usize
    }

    pub(crate) fn tag(self) -> u8 {
        (self.0 >> Self::TAG_SHIFT & Self::TAG_MASK) as u8
    }

    /// The same span with this tag. Its own must be 0.
    pub(crate) fn with_tag(self, tag: u8) -> Self {
        debug_assert!(self.tag() == 0 && u64::from(tag) <= Self::TAG_MASK);
        Self(self.0 | u64::from(tag) << Self::TAG_SHIFT)
    }

    pub(crate) fn end(self) -> usize {
        self.start() + self.len()
    }

    #[inline]
    pub(crate) fn name(self, names: &[u8]) -> &[u8] {
        &names[self.start()..self.end()]
    }

    /// The 8 bytes of the name from `depth` on, as a big-endian integer, with zeros for bytes after its end.
    #[inline]
    pub(crate) fn key(self, depth: usize, names: &[u8]) -> u64 {
        if depth < self.len() { self.key_inside(depth, names) } else { 0 }
    }

    /// [`key`](Self::key) at a depth that is less than the length.
    #[inline]
    pub(crate) fn key_inside(self, depth: usize, names: &[u8]) -> u64 {
        // Never read past the end of a name: read the 8 bytes before its end, and shift out those before `depth`.
        let missing = size_of::<u64>().saturating_sub(self.len() - depth);
        let bytes = names[self.start() + depth - missing..].first_chunk().expect("BUG: the name ends beyond the slice");
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
        let largest = Span::new(Span::MAX_START as usize, 0xffff, 15).with_tied(true);
        assert_eq!(largest.start() as u64, Span::MAX_START & usize::MAX as u64);
        assert_eq!((largest.len(), largest.tag(), largest.is_tied()), (0xffff, 15, true));
        assert!(!largest.with_tied(false).is_tied());
        assert!(Span::new(8, 255, 4).with_tied(true) < Span::new(9, 0, 0));
    }
}
