//! The options of a [`WalkDirs`] and of a [`Walk`] that tests vary.

use super::requests::{About, Requests, next};
use super::visits::{Kind, Visit, expected};
use lendir::{Order, Walk, WalkDirs, WalkDirsOptions, WalkEntry, WalkOptions};
use std::path::Path;

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
/// Options that close levels early.
pub const TIGHT: TestOptions = TestOptions { max_open: 4, ..POST };

/// One of each kind of options, for walks on several threads.
pub const OPTIONS: [TestOptions; 7] = [
    PLAIN,
    TestOptions { is_sorted: true, ..PLAIN },
    TestOptions { is_on_one_mount: true, ..PLAIN },
    TestOptions { max_open: 4, ..PLAIN },
    POST,
    TIGHT,
    TestOptions { is_sorted: true, is_on_one_mount: true, ..TIGHT },
];
pub const THREADS: [usize; 3] = [1, 2, 8];

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

/// The options of a [`Walk`] and the requests of its caller.
#[derive(Clone, Copy, Debug)]
pub struct EntryWalk {
    pub order: Order,
    pub max_depth: usize,
    pub max_open: usize,
    pub read_ahead: usize,
    pub metadata: bool,
    pub about: About,
}

pub const ENTRY_WALK: EntryWalk = EntryWalk {
    order: Order::Unsorted,
    max_depth: usize::MAX,
    max_open: 32,
    read_ahead: 0,
    metadata: false,
    about: About::Nothing,
};

impl EntryWalk {
    pub fn requests(&self) -> Requests {
        let listing = Some(self.order);
        Requests { listing, about: self.about, max_depth: self.max_depth, ..Requests::ALL }
    }

    pub fn build(&self) -> WalkOptions {
        let options = Walk::options().max_depth(self.max_depth).max_open(self.max_open);
        let options = options.order(self.order).metadata(self.metadata);
        options.read_ahead(self.read_ahead).eager()
    }

    pub fn begin(&self, root: impl AsRef<Path>) -> Walk {
        self.build().open(root).unwrap()
    }

    pub fn read(&self, root: impl AsRef<Path>) -> Vec<Visit> {
        self.rest(&mut self.begin(root))
    }

    /// Returns the remaining results of a walk.
    pub fn rest(&self, walk: &mut Walk) -> Vec<Visit> {
        self.rest_checked(walk, |_| ())
    }

    /// Returns the remaining results of a walk, and passes each entry to `check`.
    pub fn rest_checked(&self, walk: &mut Walk, check: impl Fn(&WalkEntry<'_>)) -> Vec<Visit> {
        let mut visits = Vec::new();
        let request = |entry: &WalkEntry<'_>| {
            check(entry);
            self.requests().make(entry);
        };
        while let Some(visit) = next(walk, request) {
            visits.push(visit);
            assert!(visits.len() < 1_000_000, "results without end");
        }
        assert!(walk.next().unwrap().is_none(), "the walk continues after its end");
        visits
    }

    /// Returns the results that a walk must have, according to the model.
    pub fn expected(&self, root: impl AsRef<Path>) -> Vec<Visit> {
        expected(Kind::Walk, root.as_ref(), |_| self.requests())
    }
}
