//! Symbolic links that the caller follows by `follow`, or the walk by `follow_links`, and the return
//! from their targets.

use crate::support::prelude::*;
use crate::support::requests::check_walk_dirs;

const OPTIONS: [TestOptions; 7] = [
    PLAIN,
    TestOptions { max_open: 4, ..PLAIN },
    POST,
    TestOptions { is_sorted: true, ..PLAIN },
    TestOptions { is_sorted: true, max_open: 4, ..POST },
    TestOptions { max_open: 4, ..POST },
    TestOptions { max_depth: 3, ..POST },
];

/// Returns the requests of a caller that follows all links.
fn requests(options: TestOptions) -> Requests {
    Requests { follows: options.is_sorted, ..options.requests().about(About::Follow) }
}

/// Returns a builder of a walk that follows the links that such a caller names.
fn build(options: TestOptions) -> WalkDirsOptions {
    options.build().follow_links(options.is_sorted)
}

fn follow_all(options: TestOptions, root: &Path) -> Vec<Visit> {
    collect_visits(&mut build(options).open(root).unwrap(), |_| requests(options))
}

fn follow_with_std(options: TestOptions, root: &Path) -> Vec<Visit> {
    expected_visits(root, options.second_visits, |_| requests(options))
}

/// A walk that follows links, by calls or by its option, yields what `std` says, and so it does where
/// directories cannot be read or searched.
#[test]
fn followed_links_agree_with_std() {
    let _watchdog = watchdog();
    let (mut loops, mut deepest, mut forbidden) = (0, 0, 0);
    as_nobody(|| {
        for seed in 0..if runs_long() { 1000 } else { 24 } {
            let (_tree, root) = tree::linked(seed);
            if seed % 3 == 0 {
                forbid_some(&root, seed);
            }
            let all = Requests { follows: true, ..Requests::ALL };
            for requests in [
                all,
                Requests::FOLLOW,
                Requests { follows: true, ..Requests::sorted(Order::Bytes).about(About::Follow) },
                Requests { max_depth: 3, ..all },
                Requests { max_depth: 3, ..Requests::random(seed, &root) },
                Requests { follows: true, ..Requests::random(seed, &root) },
            ] {
                let options = WalkDirs::options().max_depth(requests.max_depth);
                let options = options.follow_links(requests.follows);
                let what = format!("seed {seed}, {requests:?}");
                let all = check_walk_dirs(&options, &root, &what, |_| requests);
                let is = |errno| move |visit: &&Visit| visit.what == What::Error(errno);
                loops += all.iter().filter(is(libc::ELOOP)).filter(|at| at.path.exists()).count();
                forbidden += all.iter().filter(is(libc::EACCES)).count();
                deepest = all.iter().map(|visit| visit.depth).max().max(Some(deepest)).unwrap();
            }
        }
    });
    let found = [loops, deepest, forbidden];
    assert!(loops > 50 && deepest > 5 && forbidden > 20, "{found:?}");
}

/// `..` from the target of a link does not lead to the parent of the link, so the levels above the
/// link are reopened by name.
#[test]
fn walk_reopens_levels_above_links() {
    const LEVELS: usize = 19; // the model opens paths, and the kernel limits the links in a path
    let parts = Tree::new(|at| tree::linked_levels(at, LEVELS));
    let root = parts.path().join("0");
    for (options, max_open) in OPTIONS
        .into_iter()
        .flat_map(|options| [4, 5, 6, 7, 9, 12, 32].map(|max_open| (options, max_open)))
    {
        let options = TestOptions { max_open, ..options };
        assert_eq!(follow_all(options, &root), follow_with_std(options, &root), "{options:?}");
    }
    let mut lost = 0;
    // Once the walk is below all links, one of them leads elsewhere.
    let is_at = |at: &Path, level: usize| at == root.join("m/".repeat(level).trim_end_matches('/'));
    for (options, max_open) in
        OPTIONS[..6].iter().flat_map(|options| [4, 6, 9, 12].map(|max_open| (options, max_open)))
    {
        let options = TestOptions { max_open, is_sorted: true, ..*options };
        let expected = follow_with_std(options, &root);
        for changed in [1, 5, 10, 17] {
            let link = parts.path().join(format!("{changed}/m"));
            let target = fs::read_link(&link).unwrap();
            let change = |target: &Path| {
                fs::remove_file(&link).unwrap();
                symlink(target, &link).unwrap();
            };
            tree::make(parts.path(), &["twin/a/"]);
            let (mut walk, mut visitor) = (build(options).open(&root).unwrap(), Visitor::default());
            let requests = |at: &Path| {
                if is_at(at, LEVELS - 1) {
                    change(&parts.path().join("twin"));
                }
                self::requests(options)
            };
            while visitor.take(&mut walk, |_| (), requests) {}
            change(&target);
            fs::remove_dir_all(parts.path().join("twin")).unwrap();
            let what = format!("{options:?}, changed {changed}");
            assert_nothing_is_lost_silently(&visitor.visits, &expected, &what);
            let errors = errors(&visitor.visits);
            assert!(errors.iter().all(|(_, errno)| *errno == libc::ENOENT), "{what}: {errors:?}");
            assert!(errors.len() <= LEVELS - changed, "{what}: {errors:?}");
            lost += errors.len();
        }
    }
    assert!(lost > 50, "{lost} levels lost");
}

/// A walk that follows links needs five descriptors: one for the first level, one for the current
/// level, one for the target, and two for the ancestors. With second visits, the root's parent
/// takes another one.
#[test]
fn process_with_few_descriptors_follows_links() {
    process::run("follow::process_with_few_descriptors_follows_links", || {
        for seed in 0..8 {
            let (_tree, root) = tree::linked(seed);
            for options in OPTIONS {
                let expected = follow_with_std(options, &root);
                let others = leave_room(5 + usize::from(options.second_visits));
                let visits = follow_all(options, &root);
                drop(others);
                assert_eq!(visits, expected, "seed {seed}, {options:?}");
            }
        }
    });
}
