//! `Roots`: the trees that a walk has not begun yet. It does not know how a root is opened, nor what comes below one.

use super::opener::OpenDir;
use rustix::fd::OwnedFd;
use rustix::fs::{SeekFrom, seek};
use std::collections::VecDeque;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

#[derive(Debug, Default)]
pub(crate) struct Roots {
    /// The next one, if it is open already. Its path is that of the walk.
    pub(crate) open: Option<OpenDir>,
    /// Whether that was opened by its path.
    pub(crate) is_by_path: bool,
    /// Each is opened when the walk comes to it, so any number of them takes no descriptor.
    pub(crate) paths: VecDeque<Box<[u8]>>,
}

impl Roots {
    pub(crate) fn open(root: OpenDir) -> Self {
        Self { open: Some(root), is_by_path: true, paths: VecDeque::new() }
    }

    /// The tree at `root`, which is read from its beginning.
    pub(crate) fn from_fd(root: OwnedFd) -> Self {
        // What cannot be rewound cannot be read, and reading it tells why.
        let _ = seek(&root, SeekFrom::Start(0));
        Self { is_by_path: false, ..Self::open(OpenDir::query(root)) }
    }

    pub(crate) fn at<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Self {
        let bytes = |path: P| path.as_ref().as_os_str().as_bytes().into();
        Self { paths: paths.into_iter().map(bytes).collect(), ..Self::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_none() && self.paths.is_empty()
    }

    /// Splits off an equal part for one of the `threads` that wait: even the last root, if this thread `is_busy` without it.
    pub(crate) fn split_off(&mut self, threads: usize, is_busy: bool) -> Option<Self> {
        let len = self.paths.len().saturating_sub(usize::from(!is_busy)).div_ceil(threads + 1);
        let paths = self.paths.split_off(self.paths.len() - len);
        (!paths.is_empty()).then_some(Self { paths, ..Self::default() })
    }
}
