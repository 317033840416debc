//! `Roots`: the trees that a walk has not begun yet.

use rustix::fd::OwnedFd;
use rustix::fs::SeekFrom;
use std::collections::VecDeque;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A root is opened when the walk comes to it, so any number of them takes no descriptor.
#[derive(Debug, Default)]
pub(super) struct Roots {
    /// The next one, if it is open already. Its path is that of the walk.
    open: Option<OwnedFd>,
    paths: VecDeque<Box<[u8]>>,
}

pub(super) enum Root {
    Open(OwnedFd),
    At(Box<[u8]>),
}

impl Roots {
    pub(super) fn of(root: OwnedFd) -> Self {
        Self { open: Some(root), paths: VecDeque::new() }
    }

    /// A descriptor of the caller's, which may have been read.
    pub(super) fn rewound(root: OwnedFd) -> Self {
        // What cannot be rewound cannot be read, and reading it tells why.
        let _ = rustix::fs::seek(&root, SeekFrom::Start(0));
        Self::of(root)
    }

    pub(super) fn at<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Self {
        let bytes = |path: P| path.as_ref().as_os_str().as_bytes().into();
        Self { open: None, paths: paths.into_iter().map(bytes).collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_none() && self.paths.is_empty()
    }

    /// The next one.
    pub(super) fn take(&mut self) -> Option<Root> {
        self.open.take().map(Root::Open).or_else(|| self.paths.pop_front().map(Root::At))
    }

    /// Half of them, for another thread: even a single one, if this thread `is_busy` without it.
    pub(super) fn give_half(&mut self, is_busy: bool) -> Option<Self> {
        let all = self.paths.len();
        let kept = if is_busy { all / 2 } else { all.div_ceil(2) };
        let paths = self.paths.split_off(kept);
        (!paths.is_empty()).then_some(Self { open: None, paths })
    }
}
