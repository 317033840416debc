//! The time of each visit, by a clock that several threads share. It shows the order that
//! `WalkDirs::run_parallel` promises.

use lendir::{Dir, Error, Worker};
use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

pub struct Clock(AtomicUsize);

/// A visit, and when it began and ended.
#[derive(Debug)]
pub struct Stamp {
    pub path: PathBuf,
    pub is_second_visit: bool,
    begin: usize,
    end: usize,
}

impl Clock {
    pub fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    fn tick(&self) -> usize {
        self.0.fetch_add(1, SeqCst)
    }

    /// Takes the next visit of a thread, in a walk whose paths begin with `root`. Calls `look`
    /// during the visit.
    pub fn visit(
        &self,
        worker: &mut Worker<'_>,
        root: &Path,
        look: impl FnOnce(Dir<'_>),
    ) -> Result<Option<Stamp>, Error> {
        let Some(dir) = worker.next()? else { return Ok(None) };
        let begin = self.tick();
        let (path, is_second_visit) = (dir.path().to_owned(), dir.is_second_visit());
        let below = path.strip_prefix(root).unwrap();
        assert_eq!(dir.depth(), below.components().count());
        assert_eq!(dir.name(), path.file_name().unwrap().as_bytes());
        look(dir);
        Ok(Some(Stamp { path, is_second_visit, begin, end: self.tick() }))
    }
}

pub fn read_all(mut dir: Dir<'_>) {
    while dir.next().unwrap().is_some() {}
}

/// Checks that each directory was yielded before its children and, with second visits, again after
/// them.
pub fn check(root: &Path, second_visits: bool, stamps: &[Stamp]) {
    let of = |is_second_visit: bool| {
        let of = stamps.iter().filter(|stamp| stamp.is_second_visit == is_second_visit);
        of.map(|stamp| (&*stamp.path, stamp)).collect::<HashMap<_, _>>()
    };
    let (firsts, seconds) = (of(false), of(true));
    assert_eq!(
        stamps.len(),
        firsts.len() + seconds.len(),
        "a directory is yielded twice: {stamps:#?}"
    );
    assert!(second_visits || seconds.is_empty(), "{seconds:?}");
    for stamp in stamps {
        let (path, shown) = (&*stamp.path, stamp.path.display());
        let above = path.parent().filter(|_| path != root);
        if stamp.is_second_visit {
            let first = firsts.get(path).is_none_or(|first| first.end < stamp.begin);
            assert!(first, "the second visit of {shown} began before the first ended");
        } else if let Some(above) = above {
            assert!(firsts[above].begin < stamp.begin, "{shown} came before its parent");
        }
        if let Some(second) = above.and_then(|above| seconds.get(above)) {
            assert!(
                stamp.end < second.begin,
                "{shown} had not ended at the second visit of its parent"
            );
        }
    }
}
