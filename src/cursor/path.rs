//! `TreePath`: the path of the name that the cursor is at. `PathBounds`: the part of the path that
//! belongs to a level.
//!
//! They do not know whether a directory is open, nor whether the path still leads to it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The most bytes of a name, with a slash before it and a NUL after it.
const MAX_NAME: usize = 4095 + 2;

/// The path of the name that was set last.
#[derive(Clone, Debug, Default)]
pub(crate) struct TreePath {
    /// The path and a NUL. Empty before the first root.
    bytes: Vec<u8>,
    /// The length of the root's path.
    pub(super) root_len: usize,
}

impl TreePath {
    /// Sets the path to a root.
    pub(crate) fn begin(&mut self, root: &[u8]) {
        self.bytes.clear();
        self.bytes.reserve(root.len() + 1 + MAX_NAME);
        self.bytes.extend_from_slice(root);
        self.bytes.push(0);
        self.root_len = root.len();
    }

    /// Returns the path with its NUL.
    #[inline]
    pub(crate) fn as_bytes_with_nul(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the path without its NUL.
    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len()]
    }

    /// Returns the path without its NUL.
    #[inline]
    pub(crate) fn as_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(self.as_bytes()))
    }

    /// Returns the path relative to the root.
    #[inline]
    pub(crate) fn relative_to_root(&self) -> &Path {
        let path = &self.as_bytes()[self.root_len..];
        Path::new(OsStr::from_bytes(path.strip_prefix(b"/").unwrap_or(path)))
    }

    /// Returns the path of the level whose path ends at `end`.
    #[inline]
    pub(crate) fn prefix(&self, end: usize) -> &[u8] {
        &self.bytes[..end]
    }

    /// Returns the path of the ancestor at this depth.
    pub(crate) fn ancestor(&self, depth: usize) -> &Path {
        let path = self.as_bytes();
        let mut slashes = (self.root_len + 1..path.len()).filter(|index| path[*index] == b'/');
        let names_end = |names| slashes.nth(names).unwrap_or(path.len());
        let end = depth.checked_sub(1).map_or(self.root_len, names_end);
        Path::new(OsStr::from_bytes(&path[..end]))
    }

    /// Returns the length without the NUL.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.bytes.len().saturating_sub(1) // before the first root there is no NUL
    }

    /// Reserves memory for the names in the directory at the end of the path. Returns `false` if it
    /// is refused.
    #[inline]
    pub(super) fn reserve_name(&mut self) -> bool {
        self.bytes.try_reserve(MAX_NAME).is_ok()
    }

    /// Reserves memory for the path to another root, and for the names in it.
    pub(super) fn reserve_root(&mut self, root: &[u8]) -> bool {
        self.bytes.clear();
        self.bytes.try_reserve(root.len() + 1 + MAX_NAME).is_ok()
    }

    /// Appends `name`, which has its NUL, to the path of the level that ends at `end`.
    #[inline]
    pub(crate) fn set_name(&mut self, end: usize, name: &[u8]) {
        self.bytes.truncate(end);
        if self.bytes.last().is_some_and(|last| *last != b'/') {
            self.bytes.push(b'/');
        }
        self.bytes.extend_from_slice(name);
    }

    /// Cuts the path down to the level whose path ends at `end`.
    pub(crate) fn truncate_to(&mut self, end: usize) {
        self.bytes.truncate(end);
        self.bytes.push(0);
    }

    /// Returns a copy of the path that ends at `end`, for another thread, or `None` if memory is
    /// refused.
    pub(crate) fn copy_prefix(&self, end: usize) -> Option<Self> {
        let mut copy = Self { bytes: Vec::new(), ..*self };
        copy.bytes.try_reserve(end + MAX_NAME).ok()?;
        copy.bytes.extend_from_slice(self.prefix(end));
        copy.bytes.push(0);
        Some(copy)
    }
}

/// The depth of the directory that contains a root: one less than 0, so that the depth of an entry
/// there wraps to 0.
pub(crate) const ABOVE_ROOT: usize = usize::MAX;

/// The position of a level in the tree, and in the paths of its contents.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PathBounds {
    /// The depth. The directory that contains a root has [`ABOVE_ROOT`].
    pub(crate) depth: usize,
    /// The offset at which the path ends.
    pub(crate) path_end: usize,
}

#[cfg(test)]
mod tests {
    use super::TreePath;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn names_are_appended_and_cut_off() {
        for (root, a, bc) in [
            ("/", "/a", "/a/bc"),
            ("", "a", "a/bc"),
            ("r/s", "r/s/a", "r/s/a/bc"),
            ("r/", "r/a", "r/a/bc"),
        ] {
            let [root, a, bc] = [root, a, bc].map(str::as_bytes);
            let mut path = TreePath::default();
            path.begin(root);
            path.set_name(root.len(), b"a\0");
            assert_eq!(path.as_bytes(), a);
            path.set_name(a.len(), b"bc\0");
            assert_eq!(path.as_bytes(), bc);
            let copy = path.copy_prefix(a.len()).unwrap();
            assert_eq!((copy.as_bytes(), copy.root_len), (a, root.len()));
            let ancestors = [0, 1, 2].map(|depth| path.ancestor(depth).as_os_str().as_bytes());
            assert_eq!(ancestors, [root, a, bc]);
            path.truncate_to(root.len());
            assert_eq!(path.as_bytes_with_nul(), [root, b"\0"].concat());
        }
    }
}
