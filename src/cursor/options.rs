//! `Options`: what the caller may want of any tree, set before it is entered. It does not know
//! whether that is read by a `WalkDirs` or by a `Walk`.

/// The base, the current directory, and two more on the way by names to a closed level.
pub(crate) const MIN_OPEN: usize = 4;

/// Each thread of a walk has a copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    pub(crate) same_mount: bool,
    /// At least [`MIN_OPEN`].
    pub(crate) max_open: usize,
    /// Entries of this depth are the deepest that are lent.
    pub(crate) max_depth: usize,
    /// Whether a root may be a symbolic link.
    pub(crate) follow_root_links: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { same_mount: false, max_open: 32, max_depth: usize::MAX, follow_root_links: true }
    }
}

impl Options {
    pub(crate) fn set_max_open(&mut self, descriptors: usize) {
        self.max_open = descriptors.max(MIN_OPEN);
    }
}
