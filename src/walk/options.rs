//! `WalkOptions`: what the caller asks of a walk before it begins.

use super::Walk;
use super::roots::Roots;
use super::traversal::Traversal;
use crate::error::Error;
use rustix::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The first level, the current directory, and two more on the way by names to a closed level.
pub(super) const MIN_OPEN: usize = 4;

/// Each thread of a walk has a copy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    pub(super) same_mount: bool,
    pub(super) post_order: bool,
    /// At least [`MIN_OPEN`]. Lowered once the system has refused a descriptor.
    pub(super) max_open: usize,
    /// Entries of this depth are the deepest that are lent.
    pub(super) max_depth: usize,
    /// Whether a root may be a symbolic link.
    pub(super) follow_roots: bool,
}

/// How to walk, set before the walk begins, as with [`std::fs::OpenOptions`]. [`Walk::options`] makes it.
///
/// ```
/// use lendir::Walk;
///
/// let mut walk = Walk::options().same_mount(true).max_depth(2).open("/sys/class")?;
/// while let Some(mut dir) = walk.next_ok(|error| eprintln!("{error}")) {
///     while let Some(entry) = dir.next_ok(|error| eprintln!("{error}")) {
///         println!("{}", entry.path().display());
///     }
/// }
/// # Ok::<(), lendir::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "it does nothing before `open`, `open_all` or `from_fd`"]
pub struct WalkOptions<S = ()> {
    options: Options,
    state: S,
}

impl WalkOptions {
    pub(super) const DEFAULT: Self = Self {
        options: Options {
            same_mount: false,
            post_order: false,
            max_open: 32,
            max_depth: usize::MAX,
            follow_roots: true,
        },
        state: (),
    };
}

impl<S> WalkOptions<S> {
    /// Stays on the mount of each root: the directory that a file system is mounted on is lent as an entry and not entered. A file
    /// can be a mount point too, as in containers: [`Entry::stat`](crate::Entry::stat) and [`open`](crate::Entry::open) lead to
    /// what is mounted there.
    ///
    /// A bind mount is not entered either, even if it shows the same file system. A btrfs subvolume is entered, because it is
    /// not a mount. `find -xdev`, which compares `st_dev`, does the opposite of both. To name what was not entered, ask for
    /// `STATX_ATTR_MOUNT_ROOT` by [`Entry::statx`](crate::Entry::statx) (Linux 5.8), as the example `rm -x` does.
    ///
    /// Costs: nothing, where there is `openat2` with [`RESOLVE_NO_XDEV`]. Elsewhere one more `statx` for each directory. Before
    /// Linux 5.8 that can tell devices only, so bind mounts of the same file system are entered.
    ///
    /// [`RESOLVE_NO_XDEV`]: https://man7.org/linux/man-pages/man2/openat2.2.html
    #[doc(alias = "xdev")]
    #[doc(alias = "same_file_system")]
    pub fn same_mount(mut self, yes: bool) -> Self {
        self.options.same_mount = yes;
        self
    }

    /// Lends each directory once more, after everything below it and without its entries: see
    /// [`Dir::is_second_visit`](crate::Dir::is_second_visit) and [`Dir::parent`](crate::Dir::parent). First and second visits
    /// come in pairs, except that a level that was moved or removed meanwhile can be [lost](Self::max_open).
    ///
    /// Costs: a level keeps its descriptor until its second visit, so in a tree deeper than [`max_open`](Self::max_open)
    /// the walk closes levels early.
    #[doc(alias = "depth_first")]
    #[doc(alias = "contents_first")]
    pub fn post_order(mut self, yes: bool) -> Self {
        self.options.post_order = yes;
        self
    }

    /// Sets how many descriptors a thread of the walk may hold at once: 32 by default, and 4 at least.
    ///
    /// It holds one for the current directory, and one for each level above that has directories left to do (in post-order, for
    /// each level). Beyond the limit, or when the process (`EMFILE`) or the system (`ENFILE`) has no more, it closes the
    /// shallowest levels, and reopens them by `..` on the way back, or else by names from the root's level, which stays open. It
    /// accepts only the directory that it closed: the same device, inode number and, where the file system fixes it, birth time,
    /// and under [`same_mount`](Self::same_mount) the same mount. `SECURITY.md` lists the file systems that do not fix it: there, a
    /// directory that was removed and replaced by one of the same inode number is taken for the same.
    ///
    /// If neither leads there, the level was moved or removed. The rest of it is skipped, including its second visit, with one
    /// error: `ENOENT`, `ENOTDIR` if something else has its name, `EACCES` if a directory on the way can no longer be searched, or
    /// `EMFILE` or `ENFILE` if no descriptor is left.
    ///
    /// Birth times are as fine as the clock's tick: before the walk closes a level that is less than 11 ms old, it sleeps 11 ms.
    pub fn max_open(mut self, descriptors: usize) -> Self {
        self.options.max_open = descriptors.max(MIN_OPEN);
        self
    }

    /// Lends no entries deeper than `depth`, like `find -maxdepth`: with 1 only those of the root, with 0 none.
    pub fn max_depth(mut self, depth: usize) -> Self {
        self.options.max_depth = depth;
        self
    }

    /// Whether a root may be a symbolic link to a directory, which is the default. Otherwise such a root is an error: `ENOTDIR`,
    /// or `ELOOP` on old kernels.
    ///
    /// **This is about the last component, as `O_NOFOLLOW` is: `link/` and `link/.` are followed all the same**, as by `find -P`. A
    /// program that removes files should strip them first: `path.components().as_path()`.
    pub fn follow_roots(mut self, yes: bool) -> Self {
        self.options.follow_roots = yes;
        self
    }

    /// Carries a state down the tree. Each root begins with a clone of `of_root`, and each directory with a clone of its parent's
    /// [`Dir::state`](crate::Dir::state), as the caller left it there. At its second visit a directory has its own state again. In
    /// an [`Arc`](std::sync::Arc) a state also carries sums up, as in the example `du`.
    ///
    /// ```
    /// let mut walk = lendir::Walk::options().with_state(None).open("/usr/share/doc")?;
    /// while let Some(mut dir) = walk.next_ok(|error| eprintln!("{error}")) {
    ///     let depth = dir.depth();
    ///     while let Some(entry) = dir.next_ok(|error| eprintln!("{error}")) {
    ///         if entry.name() == b".git" {
    ///             *dir.state_mut() = Some(depth); // this directory and those below it are in a repository
    ///         }
    ///     }
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// Costs: one clone for each directory that is not the last of its parent's (in post-order, for each directory), and the
    /// size of the state for each level.
    pub fn with_state<T>(self, of_root: T) -> WalkOptions<T> {
        WalkOptions { options: self.options, state: of_root }
    }

    /// Begins a walk of the tree at `path`. The paths that it lends begin with `path`, as it is written here.
    ///
    /// Costs: one `openat`, and three allocations, for the [`Buffer`](crate::Buffer), the path and the first level; the rest of
    /// the memory comes with the tree.
    ///
    /// # Errors
    ///
    /// Those of [`open`](crate::open()), with the path: `ENOENT` for nothing or a dangling link, `ENOTDIR` for a file or a FIFO,
    /// `EACCES` for a directory that may not be read.
    pub fn open(self, path: impl AsRef<Path>) -> Result<Walk<S>, Error> {
        let mut walk = self.open_all::<&Path>([]);
        walk.reopen(path)?;
        Ok(walk)
    }

    /// Begins a walk of the trees at `paths`, one after another; on [several threads](Walk::spread), of all of them at once. A
    /// path that is given twice is walked twice: to avoid that, compare `fstat` of each root, and [skip](crate::Dir::skip_all) it.
    ///
    /// A root is opened when the walk comes to it. If it is missing, or no directory, [`Walk::next`] returns the error, with the
    /// path and depth 0, and the next call goes on with the next root. One that may not be read is lent, as below a root.
    ///
    /// ```
    /// let mut walk = lendir::Walk::options().open_all(["/sys/class", "/no/such/directory", "/sys/bus"]);
    /// let mut errors = 0;
    /// while let Some(_dir) = walk.next_ok(|_| errors += 1) {}
    /// assert_eq!(errors, 1);
    /// ```
    ///
    /// Costs: the memory of [`open`](Self::open), and a copy of each path.
    pub fn open_all<P: AsRef<Path>>(self, paths: impl IntoIterator<Item = P>) -> Walk<S> {
        self.begin(Roots::at(paths), b"")
    }

    /// Begins a walk of the tree at `root`, from [`open`](crate::open()) or [`openat`](crate::openat). The paths that it lends
    /// begin with `path`, which nothing looks up; with `""` they are relative to the root.
    ///
    /// Costs: one `lseek`, as the root is read from its beginning, and the memory of [`open`](Self::open). A descriptor that cannot
    /// be read is lent all the same, and [`Dir::next`](crate::Dir::next) returns the error.
    pub fn from_fd(self, root: impl Into<OwnedFd>, path: impl AsRef<Path>) -> Walk<S> {
        self.begin(Roots::rewound(root.into()), path.as_ref().as_os_str().as_bytes())
    }

    fn begin(self, roots: Roots, path: &[u8]) -> Walk<S> {
        let mut traversal = Traversal::new(self.options, self.state);
        traversal.begin(roots, path);
        Walk::new(traversal)
    }
}
