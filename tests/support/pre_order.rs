//! Collects the items that a [`Walk`] yields, and builds the same items from `std::fs`.

use super::scan::{Found, sorted, type_by_std};
use super::tree::Random;
use super::visits::{Visit, What, is_entered};
use lendir::{FileType, Order, Walk, WalkEntry, WalkOptions};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// One result of [`Walk::next`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    pub path: PathBuf,
    pub depth: usize,
    /// Whether the entry is the last of its directory, or the number of the error.
    pub what: Result<bool, i32>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Request {
    SkipSubtree,
    SkipRest,
    Follow,
    /// A query, which is not a request.
    Stat,
}

/// The requests that a caller makes about each entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requests {
    None,
    Follow,
    /// Up to three random requests, which depend only on this seed and the path.
    Random(u64),
}

/// The options of a [`Walk`] and the requests of its caller.
#[derive(Clone, Copy, Debug)]
pub struct EntryWalk {
    pub order: Order,
    pub max_depth: usize,
    pub max_open: usize,
    pub read_ahead: usize,
    pub requests: Requests,
}

pub const ENTRY_WALK: EntryWalk = EntryWalk {
    order: Order::Unsorted,
    max_depth: usize::MAX,
    max_open: 32,
    read_ahead: 0,
    requests: Requests::None,
};

impl EntryWalk {
    fn requests_at(&self, path: &Path) -> Vec<Request> {
        match self.requests {
            Requests::None => vec![],
            Requests::Follow => vec![Request::Follow],
            Requests::Random(seed) => {
                let mut random = Random::of(&(seed, path));
                let count = random.below(8).saturating_sub(4);
                (0..count)
                    .map(|_| {
                        [Request::SkipSubtree, Request::SkipRest, Request::Follow, Request::Stat]
                            [random.below(4)]
                    })
                    .collect()
            }
        }
    }

    pub fn request(&self, entry: &WalkEntry<'_>) {
        for request in self.requests_at(entry.path()) {
            match request {
                Request::SkipSubtree => entry.skip_subtree(),
                Request::SkipRest => entry.skip_rest_of_dir(),
                Request::Follow => entry.follow(),
                Request::Stat => drop(entry.stat().unwrap()),
            }
        }
    }

    pub fn build(&self) -> WalkOptions {
        let options = Walk::options().max_depth(self.max_depth).max_open(self.max_open);
        options.order(self.order).read_ahead(self.read_ahead)
    }

    pub fn begin(&self, root: impl AsRef<Path>) -> Walk {
        self.build().open(root).unwrap()
    }

    pub fn read(&self, root: impl AsRef<Path>) -> Vec<Item> {
        self.rest(&mut self.begin(root))
    }

    /// Returns the remaining items of a walk.
    pub fn rest(&self, walk: &mut Walk) -> Vec<Item> {
        let mut items = Vec::new();
        while let Some(item) = next(walk, |entry| self.request(entry)) {
            items.push(item);
            assert!(items.len() < 1_000_000, "answers without end");
        }
        assert!(walk.next().unwrap().is_none(), "the walk continues after its end");
        items
    }

    /// Returns the expected items: a recursion over `std::fs::read_dir`.
    pub fn expected(&self, root: impl AsRef<Path>) -> Vec<Item> {
        let mut items = Vec::new();
        if self.max_depth > 0 {
            self.below(root.as_ref(), 0, &mut items);
        }
        items
    }

    fn below(&self, dir: &Path, depth: usize, items: &mut Vec<Item>) {
        let entries = match fs::read_dir(dir) {
            Ok(entries) => entries.map(Result::unwrap),
            Err(error) => {
                return items.push(item(dir, depth, Err(error.raw_os_error().unwrap())));
            }
        };
        let found = entries
            .map(|entry| Found { file_type: type_by_std(&entry), ..Found::from_std(&entry) });
        let found = sorted(found.collect(), self.order);
        for (at, Found { name, file_type, .. }) in found.iter().enumerate() {
            let (path, depth) = (dir.join(OsStr::from_bytes(name)), depth + 1);
            items.push(item(&path, depth, Ok(at + 1 == found.len())));
            let is_to_enter = match self
                .requests_at(&path)
                .into_iter()
                .rfind(|request| *request != Request::Stat)
            {
                Some(Request::SkipRest) => break,
                Some(Request::SkipSubtree) => false,
                Some(Request::Follow) => {
                    matches!(file_type, FileType::Directory | FileType::Symlink)
                }
                _ => *file_type == FileType::Directory,
            };
            if is_to_enter && depth < self.max_depth {
                // Below a followed link, a directory can be a loop, too.
                match if self.requests == Requests::None {
                    Ok(true)
                } else {
                    is_entered(&path, depth - 1)
                } {
                    Ok(true) => self.below(&path, depth, items),
                    Ok(false) => {}
                    Err(errno) => items.push(item(&path, depth, Err(errno))),
                }
            }
        }
    }
}

fn item(path: &Path, depth: usize, what: Result<bool, i32>) -> Item {
    Item { path: path.into(), depth, what }
}

/// Returns the next item. Checks its entry and passes the entry to `request`.
pub fn next(walk: &mut Walk, request: impl FnOnce(&WalkEntry<'_>)) -> Option<Item> {
    match walk.next() {
        Ok(None) => None,
        Err(error) => match Visit::from(&error) {
            Visit { path, depth, what: What::Error(errno) } => Some(item(&path, depth, Err(errno))),
            visit => panic!("BUG: {visit:?} is not an error"),
        },
        Ok(Some(entry)) => {
            assert!(
                entry.path().as_os_str().as_bytes().ends_with(entry.name_cstr().to_bytes()),
                "{entry:?}"
            );
            assert!(entry.path().ends_with(entry.relative_path()), "{entry:?}");
            assert_eq!(entry.relative_path().iter().count(), entry.depth(), "{entry:?}");
            request(&entry);
            Some(item(entry.path(), entry.depth(), Ok(entry.is_last())))
        }
    }
}

/// Returns the errors of a walk in trouble, after checking what always holds. Entries come in the
/// order of `all`, and none comes twice. An error comes right after the entries of its directory
/// and their subtrees. Each missing entry is below an error, unless `may_be_silent`.
pub fn errors_between(
    items: &[Item],
    all: &[Item],
    may_be_silent: bool,
    what: &str,
) -> Vec<(PathBuf, i32)> {
    let mut expected = all.iter().map(|item| &item.path);
    let (mut yielded, mut errors) = (HashSet::new(), Vec::new());
    for (at, Item { path, depth, what: item }) in items.iter().enumerate() {
        let Err(errno) = item else {
            assert!(
                expected.any(|next| next == path),
                "{what}: {} comes twice or in another place",
                path.display()
            );
            yielded.insert(path);
            continue;
        };
        let is_right_after = *depth == 0 || at > 0 && items[at - 1].path.starts_with(path);
        let is_below = |item: &Item| item.path.starts_with(path) && item.path != *path;
        let is_between = items[..at].iter().any(is_below) && items[at + 1..].iter().any(is_below);
        assert!(
            is_right_after && !is_between,
            "{what}: the error of {} is not in its place",
            path.display()
        );
        errors.push((path.clone(), *errno));
    }
    let is_reported = |path: &Path| {
        path.ancestors().skip(1).any(|dir| errors.iter().any(|(path, _)| path == dir))
    };
    let silent = all
        .iter()
        .map(|item| &item.path)
        .find(|path| !yielded.contains(path) && !is_reported(path));
    assert!(
        may_be_silent || silent.is_none(),
        "{what}: {silent:?} is lost without an error: {errors:?}"
    );
    errors
}
