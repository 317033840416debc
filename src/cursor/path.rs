//! `TreePath`: the path of the name that a thread went to last. `PathBounds`: which part of it is that of a level. They do not know
//! whether anything is open, nor whether the path still leads there.

use crate::error::Error;
use std::io;

#[derive(Clone, Debug, Default)]
pub(crate) struct TreePath {
    /// With a NUL. Empty before the first root.
    bytes: Vec<u8>,
    /// How long the path of the root is.
    root: usize,
    /// Whether the root was opened by that path.
    leads_to_root: bool,
    /// Where the name begins that was gone down to last.
    name_start: usize,
}

impl TreePath {
    /// The path of a root, and whether it was opened by that.
    pub(crate) fn begin(&mut self, root: &[u8], leads_to_root: bool) {
        self.bytes.clear();
        self.bytes.extend_from_slice(root);
        self.bytes.push(0);
        (self.root, self.leads_to_root, self.name_start) = (root.len(), leads_to_root, 0);
    }

    /// Whether it leads from the current directory to the root.
    pub(crate) fn leads_to_root(&self) -> bool {
        self.leads_to_root
    }

    /// With its NUL.
    #[inline]
    pub(crate) fn as_bytes_with_nul(&self) -> &[u8] {
        &self.bytes
    }

    /// Without it.
    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len()]
    }

    /// What comes after the path of the root, and after the slash between the two.
    #[inline]
    pub(crate) fn relative_to_root(&self) -> &[u8] {
        let path = &self.as_bytes()[self.root..];
        path.strip_prefix(b"/").unwrap_or(path)
    }

    /// The first `end` bytes: the path of the level that ends there.
    pub(crate) fn prefix(&self, end: usize) -> &[u8] {
        &self.bytes[..end]
    }

    /// How long the path of the root is, with which it begins.
    pub(crate) fn root_len(&self) -> usize {
        self.root
    }

    /// The bounds of the directory of this depth whose name was [gone down to](Self::set_name) last.
    #[inline]
    pub(crate) fn bounds(&self, depth: usize) -> PathBounds {
        PathBounds { depth, name_start: self.name_start, path_end: self.len() }
    }

    /// Where it ends.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.bytes.len().saturating_sub(1) // before the first root there is no NUL
    }

    /// Goes down to `name`, which has its NUL, from the level whose path ends at `end`.
    #[inline]
    pub(crate) fn set_name(&mut self, end: usize, name: &[u8]) {
        self.bytes.truncate(end);
        if self.bytes.last().is_some_and(|last| *last != b'/') {
            self.bytes.push(b'/');
        }
        self.name_start = self.bytes.len();
        self.bytes.extend_from_slice(name);
    }

    /// Goes up to the level whose path ends at `end`.
    pub(crate) fn truncate_to(&mut self, end: usize) {
        self.bytes.truncate(end);
        self.bytes.push(0);
    }

    /// The path that ends at `end`, for another thread.
    pub(crate) fn copy_prefix(&self, end: usize) -> Self {
        const NEXT_NAME: usize = 1 + 255; // or entering the first child would take twice the memory once more
        let mut path = Self { bytes: Vec::with_capacity(end + 1 + NEXT_NAME), ..*self };
        path.bytes.extend_from_slice(self.prefix(end));
        path.bytes.push(0);
        path
    }
}

/// Where a level is in the tree, and in the path of what is below it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PathBounds {
    pub(crate) depth: usize,
    /// Where its name begins in the path.
    pub(crate) name_start: usize,
    /// Where its path ends.
    pub(crate) path_end: usize,
}

impl PathBounds {
    /// Its path. `path` is its own, or that of a directory below it.
    #[inline]
    pub(crate) fn path<'p>(&self, path: &'p [u8]) -> &'p [u8] {
        &path[..self.path_end]
    }

    /// An error that belongs to it. `path` is as for [`path`](Self::path).
    #[cold]
    pub(crate) fn error(&self, path: &[u8], cause: impl Into<io::Error>) -> Error {
        Error::new(self.path(path), self.depth, cause)
    }
}

#[cfg(test)]
mod tests {
    use super::TreePath;

    #[test]
    fn goes_down_and_up_by_names() {
        for (root, a, b) in [
            ("/", "/a", "/a/bc"),
            ("", "a", "a/bc"),
            ("r/s", "r/s/a", "r/s/a/bc"),
            ("r/", "r/a", "r/a/bc"),
        ] {
            let [root, a, b] = [root, a, b].map(str::as_bytes);
            let mut path = TreePath::default();
            path.begin(root, true);
            path.set_name(root.len(), b"a\0");
            assert_eq!((path.as_bytes(), &path.as_bytes()[path.name_start..]), (a, &b"a"[..]));
            path.set_name(a.len(), b"bc\0");
            assert_eq!((path.as_bytes(), &path.as_bytes()[path.name_start..]), (b, &b"bc"[..]));
            let copy = path.copy_prefix(a.len());
            assert_eq!((copy.as_bytes(), copy.root_len()), (a, root.len()));
            path.truncate_to(root.len());
            assert_eq!(path.as_bytes_with_nul(), [root, b"\0"].concat());
        }
    }
}
