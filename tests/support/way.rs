//! The ways to walk a tree.

use super::visits::Plan;
use lendir::{Order, WalkDirs, WalkDirsOptions};

#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// Each directory is read into a `Listing`.
    pub is_sorted: bool,
    pub second_visits: bool,
    pub is_on_one_mount: bool,
    pub max_open: usize,
    pub max_depth: usize,
}

/// A walk's own settings.
pub const PLAIN: Way = Way {
    is_sorted: false,
    second_visits: false,
    is_on_one_mount: false,
    max_open: 32,
    max_depth: usize::MAX,
};
pub const POST: Way = Way { second_visits: true, ..PLAIN };

impl Way {
    pub fn plan(self) -> Plan {
        let plan = if self.is_sorted { Plan::sorted(Order::Bytes) } else { Plan::ALL };
        Plan { max_depth: self.max_depth, ..plan }
    }

    /// The options of the walk. The caller sorts.
    pub fn options(self) -> WalkDirsOptions {
        let options = WalkDirs::options().max_open(self.max_open).max_depth(self.max_depth);
        options.second_visits(self.second_visits).same_mount(self.is_on_one_mount)
    }
}
