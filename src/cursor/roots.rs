//! `Roots`: the roots that a walk still has to begin.

use super::opener::{OpenDir, Root};
use super::options::Options;
use crate::error::Error;
use crate::open::{lacks_descriptor, open_anew, rewind};
use crate::read_dir::mount::Mount;
use rustix::fd::{AsFd, OwnedFd};
use std::collections::VecDeque;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The roots that a walk still has to begin, in their order.
#[derive(Default)]
pub(crate) struct Roots {
    /// The next root if it is already open. Its path is the current path of the walk.
    pub(crate) open: Option<Root>,
    /// The paths of the other roots. Each root is opened when the walk begins it, so that these
    /// roots hold no descriptors.
    pub(crate) paths: VecDeque<Box<[u8]>>,
}

impl Roots {
    /// Opens the root at `path`.
    pub(crate) fn open(path: &Path, options: &Options) -> Result<Self, Error> {
        let bytes = path.as_os_str().as_bytes();
        let root = Root::open(bytes, options).map_err(|errno| Error::of_root(path, errno))?;
        Ok(Self { open: Some(root), ..Self::default() })
    }

    /// Returns `root` as the only root, to be read from its beginning.
    pub(crate) fn from_fd(root: OwnedFd) -> Self {
        let found = match open_anew(root.as_fd()) {
            Ok(dir) => OpenDir::query(dir),
            // The walk shares the position with duplicates, as `WalkOptions::from_fd` says.
            Err(errno) if !lacks_descriptor(errno) && rewind(&root).is_ok() => OpenDir::query(root),
            Err(errno) => OpenDir { dir: root, mount: Mount::PLAIN, unreadable: Some(errno) },
        };
        Self { open: Some(Root { found, parent: None, entry: None }), ..Self::default() }
    }

    /// Returns the roots at `paths`, none of them open.
    pub(crate) fn at<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Self {
        let bytes = |path: P| path.as_ref().as_os_str().as_bytes().into();
        Self { paths: paths.into_iter().map(bytes).collect(), ..Self::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_none() && self.paths.is_empty()
    }

    /// Splits off an equal part for one of the `threads` that wait. This thread keeps at least one
    /// root unless it `is_busy` with other directories.
    pub(crate) fn split_off(&mut self, threads: usize, is_busy: bool) -> Option<Self> {
        let len = self.paths.len().saturating_sub(usize::from(!is_busy)).div_ceil(threads + 1);
        let paths = self.paths.split_off(self.paths.len() - len);
        (!paths.is_empty()).then_some(Self { paths, ..Self::default() })
    }
}
