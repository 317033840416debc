//! Directories without some of their permissions, to another user than root.

use super::{Told, WAYS, comb, level};
use crate::support::machine;
use crate::support::process::as_nobody;
use libc::EACCES;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

const DEPTH: usize = 6;
const REFUSED: usize = 3;

/// Read permission is needed to open a directory, search permission to open those in it.
#[test]
fn missing_permissions_are_one_error_each() {
    as_nobody(|| {
        let mut cases = 0;
        for mode in [0, 0o100, 0o200, 0o300, 0o400, 0o600] {
            for way in WAYS {
                let tree = tempfile::tempdir().unwrap();
                let tree = tree.path();
                comb(tree, DEPTH);
                let all = Told::by_std(tree).unwrap();
                let refused = level(REFUSED);
                let allow = |mode| fs::set_permissions(tree.join(&refused), Permissions::from_mode(mode)).unwrap();
                allow(mode);
                let told = way.walk(tree);
                allow(0o700);

                let lost =
                    if mode & 0o400 == 0 { vec![refused.clone()] } else { vec![refused.join("d"), refused.join("z")] };
                let errors = lost.iter().map(|path| (path.clone(), EACCES));
                let expected = all.clone().without(&lost).with_errors(errors);
                assert_eq!(told.clone().sorted(), expected, "{mode:o}, {way:?}");
                if way.is_post_order {
                    let mut left = told.left;
                    left.sort_unstable();
                    // What cannot be read can be opened all the same, if only its parent can be searched.
                    let visited = expected.visited.iter().chain(lost.iter().filter(|_| mode & 0o400 == 0));
                    let mut visited: Vec<&PathBuf> = visited.collect();
                    visited.sort_unstable();
                    assert!(left.iter().eq(visited), "{mode:o}, {way:?}: {left:?}");
                }
                cases += 1;
            }
        }
        let what = "walks as another user with modes 000, 100, 200, 300, 400 and 600 inside: one error each, the rest complete";
        machine::passed("walk: permissions", cases, what);
    });
}

/// The caller who was lent its entry can change it before the walk enters it.
#[test]
fn permissions_given_when_it_is_lent_let_the_walk_in() {
    as_nobody(|| {
        for way in WAYS {
            let tree = tempfile::tempdir().unwrap();
            let tree = tree.path();
            comb(tree, DEPTH);
            let all = Told::by_std(tree).unwrap();
            let allow = |mode| fs::set_permissions(tree.join(level(REFUSED)), Permissions::from_mode(mode)).unwrap();
            allow(0);
            let mut run = way.begin(tree);
            run.until(level(REFUSED - 1));
            allow(0o700);
            assert_eq!(run.finish().sorted(), all, "{way:?}");
        }
        machine::passed(
            "walk: permissions given in time",
            WAYS.len(),
            "walks that enter what could not be read before",
        );
    });
}
