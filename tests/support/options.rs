//! The options of a [`WalkDirs`] that tests vary.

use super::visits::Requests;
use lendir::{Order, WalkDirs, WalkDirsOptions};

#[derive(Clone, Copy, Debug)]
pub struct TestOptions {
    /// Whether each directory is read into a `Listing`.
    pub is_sorted: bool,
    pub second_visits: bool,
    pub is_on_one_mount: bool,
    pub max_open: usize,
    pub max_depth: usize,
}

/// The default options of a walk.
pub const PLAIN: TestOptions = TestOptions {
    is_sorted: false,
    second_visits: false,
    is_on_one_mount: false,
    max_open: 32,
    max_depth: usize::MAX,
};
pub const POST: TestOptions = TestOptions { second_visits: true, ..PLAIN };

impl TestOptions {
    pub fn requests(self) -> Requests {
        let requests = if self.is_sorted { Requests::sorted(Order::Bytes) } else { Requests::ALL };
        Requests { max_depth: self.max_depth, ..requests }
    }

    /// Returns a builder with these options. The caller sorts.
    pub fn build(self) -> WalkDirsOptions {
        let options = WalkDirs::options().max_open(self.max_open).max_depth(self.max_depth);
        options.second_visits(self.second_visits).same_mount(self.is_on_one_mount)
    }
}
