//! If a walk is refused memory, it lends all entries of the directory, fails once with `OutOfMemory`, and goes on with the rest.

use crate::costs::Refusal;
use crate::support::machine::passed;
use crate::support::process;
use crate::support::scan::ORDERS;
use crate::support::tree::{self, Tree};
use lendir::{Dir, Error, Listing, Order, Walk};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;

/// The walk is refused allocations of this many bytes or more.
const REFUSED: usize = 64 * 1024;

/// Directories in one. Their names take half a megabyte.
const COUNT: usize = 5000;
const DIGITS: usize = 100;

/// How the caller reads the wide directory: so many entries one by one, and then the whole of it or not.
#[derive(Clone, Copy, Debug)]
struct Look {
    lends: usize,
    reads: Option<Order>,
    /// Whether its listing already has the memory.
    is_grown: bool,
    is_post_order: bool,
}

const ALL: usize = usize::MAX;
const LEND: Look = Look { lends: ALL, reads: None, is_grown: false, is_post_order: false };

/// What the caller sees.
#[derive(Default)]
struct Seen {
    names: Vec<Vec<u8>>,
    errors: Vec<Error>,
}

impl Look {
    fn look(self, dir: &mut Dir<'_>, listing: &mut Listing, seen: &mut Seen) {
        while seen.names.len() < self.lends {
            let entry = {
                let _refusal = Refusal::of(REFUSED);
                dir.next()
            };
            match entry {
                Ok(Some(entry)) => seen.names.push(entry.name().to_vec()),
                Ok(None) => return,
                Err(error) => {
                    seen.errors.push(error);
                    for _ in 0..3 {
                        assert!(dir.next().unwrap().is_none(), "the error came twice");
                    }
                    return;
                }
            }
        }
        if self.reads.is_some() {
            let read = {
                let _refusal = Refusal::of(REFUSED);
                dir.read_into(listing)
            };
            seen.errors.extend(read.err());
            seen.names = listing.iter().map(|entry| entry.name().to_vec()).collect(); // of the whole directory
            if seen.names.len() == COUNT {
                assert!(dir.next().unwrap().is_none(), "the error came twice");
            }
        }
    }
}

/// A wide directory between two others.
fn tree() -> Tree {
    Tree::new(|at| {
        tree::make(at, &["a/0/file", "w/", "z/0/file"]);
        tree::wide(&at.join("w"), COUNT, DIGITS);
    })
}

/// Walks that [`tree`].
fn check(look: Look, tree: &Tree) {
    let wide = tree.path().join("w");
    let mut listing = Listing::with_order(look.reads.unwrap_or(Order::Bytes));
    if look.is_grown {
        let mut walk = Walk::open(&wide).unwrap();
        walk.next().unwrap().unwrap().read_into(&mut listing).unwrap();
        assert_eq!(listing.len(), COUNT);
    }
    let mut walk = Walk::options().post_order(look.is_post_order).open(tree.path()).unwrap();
    let (mut seen, mut entered, mut others) = (Seen::default(), HashSet::new(), 0);
    loop {
        let next = {
            let _refusal = Refusal::of(REFUSED);
            walk.next()
        };
        let mut dir = match next {
            Ok(None) => break,
            Err(error) => {
                seen.errors.push(error);
                continue;
            }
            Ok(Some(dir)) if dir.is_second_visit() => continue,
            Ok(Some(dir)) => dir,
        };
        if dir.path() == wide {
            look.look(&mut dir, &mut listing, &mut seen);
        } else if dir.path().parent() == Some(&wide) {
            assert!(entered.insert(dir.name().to_vec()), "{dir:?} is entered twice");
        } else {
            others += 1;
        }
    }
    assert_eq!(
        others,
        ["", "a", "a/0", "z", "z/0"].len(),
        "{look:?}: another number of directories in the rest of the tree"
    );
    let [error] = &seen.errors[..] else { panic!("{look:?}: {:?}", seen.errors) };
    assert_eq!((error.kind(), error.path(), error.depth()), (io::ErrorKind::OutOfMemory, &*wide, 1), "{look:?}");
    if look.lends == ALL || look.is_grown {
        assert_eq!(seen.names.len(), COUNT, "{look:?}: another number of entries");
    }
    // There is memory for some of them.
    assert!(
        (100..COUNT).contains(&entered.len()),
        "{look:?}: {} directories are entered, which is too few or too many",
        entered.len()
    );
    let is_there = |name: &Vec<u8>| wide.join(OsStr::from_bytes(name)).is_dir();
    assert!(entered.iter().all(is_there), "{look:?}");
    if look.lends == ALL || look.reads.is_some() {
        let seen: HashSet<_> = seen.names.iter().cloned().collect();
        assert!(entered.is_subset(&seen), "{look:?}: a directory is entered that was neither lent nor read");
    }
}

/// In a process of its own, because it may abort.
fn check_all(test: &str, looks: impl FnOnce() -> Vec<Look>) {
    process::run(&format!("refused_memory::{test}"), 120, || {
        let (tree, mut cases) = (tree(), 0);
        for look in looks() {
            for is_post_order in [false, true] {
                check(Look { is_post_order, ..look }, &tree);
                cases += 1;
            }
        }
        let row = format!("walk: refused memory, {}", test.replace('_', " "));
        passed(&row, cases, "walks with `OutOfMemory` once, and the rest of the tree");
    });
}

#[test]
fn next_lends_every_entry_and_then_fails_once() {
    check_all("next_lends_every_entry_and_then_fails_once", || vec![LEND]);
}

#[test]
fn directory_dropped_before_its_end_fails_through_the_walk() {
    check_all("directory_dropped_before_its_end_fails_through_the_walk", || {
        [0, 1, 1000, COUNT - 1, COUNT].map(|lends| Look { lends, ..LEND }).to_vec()
    });
}

#[test]
fn read_fails_once() {
    check_all("read_fails_once", || {
        let read = |order| Look { lends: 0, reads: Some(order), ..LEND };
        let looks = ORDERS.into_iter().flat_map(|order| {
            [(0, false), (0, true), (1000, true)].map(|(lends, is_grown)| Look { lends, is_grown, ..read(order) })
        });
        looks.collect()
    });
}

/// The walk notes no names there.
#[test]
fn directory_that_is_skipped_takes_no_memory() {
    process::run("refused_memory::directory_that_is_skipped_takes_no_memory", 60, || {
        let tree = Tree::new(|at| tree::wide(at, COUNT, DIGITS));
        let mut walk = Walk::open(tree.path()).unwrap();
        let _refusal = Refusal::of(REFUSED);
        let mut dir = walk.next().unwrap().unwrap();
        dir.skip_all();
        let mut count = 0;
        while dir.next().unwrap().is_some() {
            count += 1;
        }
        assert_eq!(count, COUNT);
        assert!(walk.next().unwrap().is_none());
    });
}
