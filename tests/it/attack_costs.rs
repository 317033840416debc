//! The cost of a walk that cannot reopen closed levels, because another process moves directories.

use crate::support::machine::runs_long;
use crate::support::strace::{Counted, lines};
use crate::support::tree::{self, Tree};
use lendir::{Listing, WalkDirs};
use rustix::fd::OwnedFd;
use rustix::fs::{RenameFlags, renameat, renameat_with};

/// The depth of the shallower of two trees. The other tree is twice as deep.
const LEVELS: usize = 60;

/// A comb and a decoy of the same depth beside it, by descriptors.
struct Place {
    tree: Tree,
    levels: Vec<OwnedFd>,
    /// The directory that contains the decoy and what is moved out of the tree.
    decoys: OwnedFd,
    _beside: Tree,
}

impl Place {
    fn new(depth: usize) -> Self {
        let tree = Tree::new(|at| tree::comb(at, depth));
        let beside = Tree::new(|at| tree::comb(at, depth));
        let mut levels = vec![lendir::open(tree.path()).unwrap()];
        for depth in 0..depth {
            levels.push(lendir::openat(&levels[depth], "m").unwrap());
        }
        let decoys = lendir::open(beside.path()).unwrap();
        Self { tree, levels, decoys, _beside: beside }
    }

    fn depth(&self) -> usize {
        self.levels.len() - 1
    }

    /// Moves a level out of the tree.
    fn take(&self, depth: usize) -> &Self {
        renameat(&self.levels[depth - 1], "m", &self.decoys, depth.to_string()).unwrap();
        self
    }

    /// Exchanges a level with the decoy.
    fn exchange(&self, depth: usize) -> &Self {
        renameat_with(&self.levels[depth - 1], "m", &self.decoys, "m", RenameFlags::EXCHANGE)
            .unwrap();
        self
    }
}

/// A change that is made when the walk is at the deepest level. The lowest closed level is then
/// three levels above.
struct Attack {
    what: &'static str,
    make: fn(&Place),
    /// Returns the number of levels of a tree of this depth to which neither `..` nor names lead
    /// any more.
    lost: fn(usize) -> usize,
}

const ATTACKS: [Attack; 5] = [
    Attack {
        what: "the lowest closed level is separated, and the middle level is moved",
        make: |place| _ = place.take(place.depth() - 2).take(place.depth() / 2),
        lost: |depth| depth / 2 - 2,
    },
    Attack {
        what: "the lowest closed level is separated, and a decoy replaces the middle level",
        make: |place| _ = place.take(place.depth() - 2).exchange(place.depth() / 2),
        lost: |depth| depth / 2 - 2,
    },
    Attack {
        what: "a decoy replaces the lowest closed level, and the middle level is moved",
        make: |place| _ = place.exchange(place.depth() - 3).take(place.depth() / 2),
        lost: |depth| depth / 2 - 3,
    },
    Attack {
        what: "the contents of the lowest closed level are moved into a decoy of the middle level",
        make: |place| {
            let (depth, half) = (place.depth() - 2, place.depth() / 2);
            place.take(depth).exchange(half);
            let mut decoy = lendir::openat(&place.levels[half - 1], "m").unwrap();
            for _ in half..depth - 1 {
                decoy = lendir::openat(&decoy, "m").unwrap();
            }
            renameat(&decoy, "m", &place.decoys, "replaced").unwrap();
            renameat(&place.decoys, depth.to_string(), &decoy, "m").unwrap();
        },
        lost: |depth| depth / 2 - 2,
    },
    Attack {
        what: "all levels are moved, each on its own",
        make: |place| (2..=place.depth()).rev().for_each(|depth| _ = place.take(depth)),
        lost: |depth| depth - 4,
    },
];

/// Starts a walk and attacks it at the deepest level.
fn begin(place: &Place, second_visits: bool, attack: &Attack) -> WalkDirs {
    let mut walk = WalkDirs::options()
        .max_open(4)
        .second_visits(second_visits)
        .open(place.tree.path())
        .unwrap();
    let mut listing = Listing::new();
    loop {
        let mut dir = walk.next().unwrap().expect("the walk ended above the deepest level");
        dir.read_into(&mut listing).unwrap();
        if dir.depth() == place.depth() && dir.name() == b"m" {
            break;
        }
    }
    (attack.make)(place);
    walk
}

/// The system calls of a walk except `close`, and the calls that mark a counted part.
const TRACED: &str = "trace=openat,openat2,getdents64,%%stat";

/// The work of the kernel, as strace shows it.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    calls: usize,
    /// The number of components in all paths: lookups of names and steps to a parent.
    names: usize,
    /// The number of levels that are opened again for reading, without `O_PATH`.
    levels: usize,
}

impl Cost {
    fn of(lines: &[String]) -> Self {
        let paths = lines.iter().flat_map(|line| line.split('"').skip(1).step_by(2));
        let names = paths.map(|path| path.split('/').filter(|name| !name.is_empty()).count()).sum();
        let levels = lines
            .iter()
            .filter(|line| line.starts_with("openat(") && !line.contains("O_PATH"))
            .count();
        Self { calls: lines.len(), names, levels }
    }
}

/// Whatever levels are moved away, the number of system calls grows with the depth of the tree, not
/// with its square.
#[test]
fn moved_levels_cost_linear_calls() {
    let test = "attack_costs::moved_levels_cost_linear_calls";
    let cases = || {
        let all = ATTACKS
            .iter()
            .flat_map(|attack| [false, true].map(|second_visits| (attack, second_visits)));
        // The short form tries each attack in one of the two orders.
        all.enumerate()
            .filter(|(number, _)| runs_long() || matches!(number % 4, 0 | 3))
            .map(|(_, case)| case)
    };
    let parts = lines(test, &["-e", TRACED, "-s", "65536"], || {
        for (attack, second_visits) in cases() {
            for depth in [LEVELS, 2 * LEVELS] {
                let place = Place::new(depth);
                let mut walk = begin(&place, second_visits, attack);
                let mut errors = 0;
                let counted = Counted::begin();
                while walk.next_or_report(|_| errors += 1).is_some() {}
                drop(counted);
                assert_eq!(
                    errors,
                    (attack.lost)(depth),
                    "{}, second visits {second_visits}",
                    attack.what
                );
            }
        }
    });
    let Some(parts) = parts else { return };
    let costs: Vec<_> = parts.iter().map(|lines| Cost::of(lines)).collect();
    for ((attack, second_visits), costs) in cases().zip(costs.chunks(2)) {
        let [once, twice] = [costs[0], costs[1]];
        let is_linear = 2 * twice.calls <= 5 * once.calls && 2 * twice.names <= 5 * once.names;
        let what = attack.what;
        let is_found_once = once.levels + (attack.lost)(LEVELS) <= LEVELS;
        assert!(
            is_linear && is_found_once,
            "{what}, second visits {second_visits}: {LEVELS} levels: {once:?}, twice as many: {twice:?}"
        );
    }
}
