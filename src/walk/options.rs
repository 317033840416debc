//! `Options`: what the caller asked of a walk. Each of its threads has a copy.

/// The first level, the current directory, and two more on the way by names to a closed level.
pub(super) const MIN_OPEN: usize = 4;

/// Each applies from the next directory on, except `post_order`, which applies from the next root on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    pub(super) same_mount: bool,
    pub(super) post_order: bool,
    /// At least [`MIN_OPEN`].
    max_open: usize,
    /// Entries of this depth are the deepest that are lent.
    pub(super) max_depth: usize,
}

impl Options {
    pub(super) fn max_open(self) -> usize {
        self.max_open
    }

    pub(super) fn set_max_open(&mut self, descriptors: usize) {
        self.max_open = descriptors.max(MIN_OPEN);
    }
}

impl Default for Options {
    fn default() -> Self {
        Self { same_mount: false, post_order: false, max_open: 32, max_depth: usize::MAX }
    }
}
