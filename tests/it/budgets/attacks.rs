//! Walks that cannot reopen closed levels, because another process moves directories. The change is
//! made when the walk is at the deepest level. The lowest closed level is then three levels above.
//! What the walk finds then are errors: one for each level to which neither `..` nor names lead.

use super::{ALL, ANY, Budget};
use crate::support::prelude::*;
use rustix::fs::{RenameFlags, renameat, renameat_with};

/// A comb by descriptors, and the directory with a decoy of the same depth, where levels are moved.
struct Place {
    levels: Vec<OwnedFd>,
    decoys: OwnedFd,
}

impl Place {
    /// Moves a level out of the tree.
    fn take(&self, depth: usize) -> &Self {
        renameat(&self.levels[depth - 1], "m", &self.decoys, depth.to_string()).unwrap();
        self
    }

    /// Exchanges a level with the decoy.
    fn exchange(&self, depth: usize) {
        renameat_with(&self.levels[depth - 1], "m", &self.decoys, "m", RenameFlags::EXCHANGE)
            .unwrap();
    }
}

fn make(at: &Path, size: usize) {
    tree::make(at, &["tree/", "decoys/"]);
    tree::comb(&at.join("tree"), size);
    tree::comb(&at.join("decoys"), size);
}

/// An attack on a walk without or with second visits, in a tree of its own, whose middle level and
/// depth are passed.
macro_rules! attack {
    ($second_visits:literal, $what:literal, $attack:expr, $lost:expr) => {
        Budget {
            reader: "WalkDirs, attacked",
            tree: (concat!($what, ", second visits ", $second_visits), make),
            read: |at| attacked(at, $second_visits, $attack),
            found: $lost,
            calls: |size, _| 6 * size + 8,
            allocations: ALL,
            bytes: ANY,
        }
    };
}

macro_rules! attacks {
    ($($what:literal, $attack:expr, $lost:expr;)*) => {
        &[$(attack!(false, $what, $attack, $lost), attack!(true, $what, $attack, $lost)),*]
    };
}

#[rustfmt::skip]
pub const ATTACKS: &[Budget] = attacks![
    "lowest closed level separated, middle one moved", |place, half, depth| _ = place.take(depth - 2).take(half), |n| n / 2 - 2;
    "lowest closed level separated, decoy of the middle one", |place, half, depth| place.take(depth - 2).exchange(half), |n| n / 2 - 2;
    "decoy of the lowest closed level, middle one moved", |place, half, depth| { place.exchange(depth - 3); place.take(half); }, |n| n / 2 - 3;
    "contents of the lowest closed level in a decoy of the middle one", into_a_decoy, |n| n / 2 - 2;
    "all levels moved, each on its own", |place, _half, depth| (2..=depth).rev().for_each(|depth| _ = place.take(depth)), |n| n - 4;
];

fn into_a_decoy(place: &Place, half: usize, depth: usize) {
    place.take(depth - 2).exchange(half);
    let mut decoy = lendir::openat(&place.levels[half - 1], "m").unwrap();
    for _ in half..depth - 3 {
        decoy = lendir::openat(&decoy, "m").unwrap();
    }
    renameat(&decoy, "m", &place.decoys, "replaced").unwrap();
    renameat(&place.decoys, (depth - 2).to_string(), &decoy, "m").unwrap();
}

/// Walks the tree, attacks it at the deepest level, and counts from then on. Returns the number of
/// errors.
fn attacked(at: &Path, second_visits: bool, attack: fn(&Place, usize, usize)) -> usize {
    let root = at.join("tree");
    let mut levels = vec![lendir::open(&root).unwrap()];
    while let Ok(below) = lendir::openat(levels.last().unwrap(), "m") {
        levels.push(below);
    }
    let (depth, decoys) = (levels.len() - 1, lendir::open(at.join("decoys")).unwrap());
    let options = WalkDirs::options().max_open(4).second_visits(second_visits);
    let (mut walk, mut listing) = (options.open(root).unwrap(), Listing::new());
    loop {
        let mut dir = walk.next().unwrap().expect("the walk ended above the deepest level");
        dir.read_into(&mut listing).unwrap();
        if dir.depth() == depth && dir.name() == b"m" {
            break;
        }
    }
    attack(&Place { levels, decoys }, depth / 2, depth);
    let mut errors = 0;
    let _counted = Counted::begin();
    while walk.next_or_report(|_| errors += 1).is_some() {}
    errors
}
