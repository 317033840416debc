//! Errors of a walk: each comes once, with its path, and the rest is complete.

use crate::support::prelude::*;
use crate::support::requests::check_walk_dirs;

#[test]
fn question_mark_keeps_kind_message_and_error() {
    fn question_mark() -> io::Result<()> {
        while lendir::walk_dirs("/no/such/directory")?
            .next()?
            .is_some_and(|mut dir| dir.next().is_ok())
        {}
        Ok(())
    }
    let error = question_mark().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(error.to_string(), "/no/such/directory: No such file or directory (os error 2)");
    let inner = error.downcast::<Error>().unwrap();
    assert_eq!((inner.path(), inner.depth()), (Some(Path::new("/no/such/directory")), 0));
    assert!(std::error::Error::source(&inner).is_none(), "the cause is in the message already");
    assert_eq!((inner.kind(), inner.raw_os_error()), (ErrorKind::NotFound, Some(libc::ENOENT)));
    assert_eq!(format!("{inner:?}"), inner.to_string());
    assert_eq!(inner.into_io_error().raw_os_error(), Some(libc::ENOENT));
}

/// Directories that cannot be read or searched have the same errors as with `std`, in the same
/// places, on one thread and on several.
#[test]
fn forbidden_directories_agree_with_std() {
    as_nobody(|| {
        let tree = Tree::new(|at| tree::wide(at, 8, 1));
        let forbidden =
            [0, 1, 2, 3, 4, 5, 6, 7].map(|mode| (tree.path().join(mode.to_string()), mode << 6));
        for (dir, mode) in &forbidden {
            tree::make(dir, &["a/b/", "f", "z/"]);
            tree::random(&dir.join("z"), u64::from(*mode));
            chmod(dir, *mode);
        }
        let options = WalkDirs::options();
        for seed in 0..if runs_long() { 1000 } else { 6 } {
            let what = format!("requests {seed}");
            check_walk_dirs(&options, tree.path(), &what, |at| Requests::random(seed, at));
        }
        for requests in [Requests::ALL, Requests::sorted(Order::Bytes)] {
            let expected = expected_visits(tree.path(), false, |_| requests);
            let errors = expected.iter().filter(|visit| visit.what == What::Error(libc::EACCES));
            // One for each of four modes without r, and two for each of two with r and without x.
            assert_eq!(errors.count(), 4 + 2 * 2, "{expected:?}");
            check_walk_dirs(&options, tree.path(), &format!("{requests:?}"), |_| requests);
        }
    });
}
