//! Temporary directories that do not outlive their test.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;
use tempfile::TempDir;

/// A temporary directory. A test that cannot remove it fails.
pub struct Scratch(Option<TempDir>);

impl Scratch {
    /// Makes one in the directory for temporary files.
    pub fn new() -> Self {
        Self::of(tempfile::tempdir().expect("cannot make a temporary directory"))
    }

    /// Makes one on a tmpfs if the machine has one. On disk, making and removing a file takes 25
    /// times as long.
    pub fn in_memory() -> Self {
        tempfile::tempdir_in("/dev/shm").map_or_else(|_| Self::for_others(), Self::of)
    }

    /// Makes one that other users can enter: in the directory for temporary files if possible.
    /// Other users cannot always enter `TMPDIR`: Debian's `pam_tmpdir` makes one for each user.
    pub fn for_others() -> Self {
        let others_may_enter = |dir: &&Path| {
            let is_searchable = |dir: &Path| {
                fs::metadata(dir).is_ok_and(|dir| dir.permissions().mode() & 0o001 != 0)
            };
            fs::canonicalize(dir).is_ok_and(|dir| dir.ancestors().all(is_searchable))
        };
        let temporary = env::temp_dir();
        let mut parents = [&*temporary, Path::new("/tmp"), Path::new("/var/tmp")]
            .into_iter()
            .filter(others_may_enter);
        let made = parents.find_map(|parent| tempfile::tempdir_in(parent).ok());
        Self::of(made.expect("other users can reach no temporary directory"))
    }

    fn of(made: TempDir) -> Self {
        Self(Some(made))
    }

    pub fn path(&self) -> &Path {
        self.0.as_ref().expect("BUG: used after it was dropped").path()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let left = format!("{} still exists", self.path().display());
        match self.0.take().map(TempDir::close) {
            Some(Err(error)) if error.kind() != ErrorKind::NotFound && !thread::panicking() => {
                panic!("{left}: {error}")
            }
            _ => {}
        }
    }
}
