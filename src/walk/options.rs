//! `WalkOptions`: what the caller wants of a walk, set before it begins.

/// The base, the current directory, and two more on the way by names to a closed level.
pub(super) const MIN_OPEN: usize = 4;

/// Each thread of a walk has a copy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Options {
    pub(super) same_mount: bool,
    pub(super) second_visits: bool,
    /// At least [`MIN_OPEN`].
    pub(super) max_open: usize,
    /// Entries of this depth are the deepest that are lent.
    pub(super) max_depth: usize,
    /// Whether a root may be a symbolic link.
    pub(super) follow_roots: bool,
}

/// How to walk, set before the walk begins. [`Walk::options`](super::Walk::options) has the defaults; each method takes the
/// options, and returns them changed.
///
/// ```
/// use lendir::Walk;
///
/// let mut walk = Walk::options().same_mount(true).max_depth(2).open("/sys/class")?;
/// while let Some(mut dir) = walk.next_ok(|error| eprintln!("{error}")) {
///     while let Some(entry) = dir.next_ok(|error| eprintln!("{error}")) {
///         println!("{:?}", entry.path());
///     }
/// }
/// # Ok::<(), lendir::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "it does nothing before `open`, `open_all` or `from_fd`"]
pub struct WalkOptions<S = ()> {
    pub(super) options: Options,
    pub(super) state: S,
}

/// Those of [`Walk::options`](super::Walk::options).
impl Default for WalkOptions {
    fn default() -> Self {
        let options = Options {
            same_mount: false,
            second_visits: false,
            max_open: 32,
            max_depth: usize::MAX,
            follow_roots: true,
        };
        Self { options, state: () }
    }
}

impl<S> WalkOptions<S> {
    /// Stays on the mount of each root: the directory that a file system is mounted on is lent as an entry and not entered. A
    /// file can be a mount point too, as in containers: [`Entry::stat`](crate::Entry::stat) and [`open`](crate::Entry::open)
    /// lead to what is mounted there.
    ///
    /// A bind mount is not entered either, even if it shows the same file system. A btrfs subvolume is entered, because it is
    /// not a mount. `find -xdev`, which compares `st_dev`, does the opposite of both. To name what was not entered, query
    /// `STATX_ATTR_MOUNT_ROOT` by [`Entry::statx`](crate::Entry::statx) (Linux 5.8), as the example `rm -x` does.
    ///
    /// Costs: where there is `openat2` with [`RESOLVE_NO_XDEV`], one `statx` for a directory that may not be read, and nothing
    /// for the others. Elsewhere one `statx` for each directory, which before Linux 5.8 can tell devices only, so bind mounts
    /// of the same file system are entered.
    ///
    /// [`RESOLVE_NO_XDEV`]: https://man7.org/linux/man-pages/man2/openat2.2.html
    #[doc(alias("xdev", "same_file_system"))]
    pub fn same_mount(mut self, yes: bool) -> Self {
        self.options.same_mount = yes;
        self
    }

    /// Lends each directory once more, after everything below it and without its entries: see
    /// [`Dir::is_second_visit`](crate::Dir::is_second_visit) and [`Dir::parent`](crate::Dir::parent). First and second visits
    /// come in pairs, except that a level that others move or remove can be [lost](Self::max_open). On several threads too,
    /// the second visits of all directories below have ended before that of a directory begins, and it sees what their closures
    /// wrote.
    ///
    /// Costs: a level keeps its descriptor until its second visit, so in a tree deeper than [`max_open`](Self::max_open)
    /// the walk closes levels early.
    #[doc(alias("depth_first", "contents_first", "post_order"))]
    pub fn second_visits(mut self, yes: bool) -> Self {
        self.options.second_visits = yes;
        self
    }

    /// Sets how many descriptors a thread of the walk may hold at once: 32 by default, and 4 at least.
    ///
    /// It holds one for the current directory, and one for each level above that has directories left to do; with second visits,
    /// one for each level above. [Following a link](crate::Dir::follow_entry) and [several threads](super::Walk::spread) take
    /// more.
    ///
    /// - **When it closes levels early**: at the limit, and when the process (`EMFILE`) or the system (`ENFILE`) has no
    ///   descriptor left. It closes the shallowest first, except the shallowest of all, which stays open.
    /// - **How it finds them again**: on the way back, by `..` from the directory below, or else by names from the shallowest
    ///   level.
    /// - **What it accepts**: only the directory that it closed. It compares device and inode number, under
    ///   [`same_mount`](Self::same_mount) the mount, and the birth time where the file system fixes that. `SECURITY.md` lists the
    ///   file systems that do not: there, a directory that was removed is taken for the same if another one got its inode number.
    /// - **A level that it does not find is lost**: it was moved or removed. The rest of it is skipped, including its second
    ///   visit, with one error: `ENOENT`, `ENOTDIR` if something else has its name, `EACCES` if a directory on the way can no
    ///   longer be searched, or `EMFILE` or `ENFILE` if no descriptor is left.
    /// - **Past a lost level** it finds the levels above by names alone.
    /// - **It waits** before it closes a level that was just made, until the clock that stamps births is past that one, so no
    ///   directory made later has the same birth time. That takes one or two ticks of the clock, at most 20 ms with
    ///   `CONFIG_HZ=100`. With second visits on several threads it also waits before it shares such a level.
    pub fn max_open(mut self, descriptors: usize) -> Self {
        self.options.max_open = descriptors.max(MIN_OPEN);
        self
    }

    /// Lends no entries deeper than `depth`, like `find -maxdepth`. A directory of that depth is an entry, and not opened: with
    /// 1 the walk lends one [`Dir`](crate::Dir), the root, and its entries; with 0 that `Dir` and no entries. A
    /// [`ReadTree`](crate::ReadTree) lends these entries.
    pub fn max_depth(mut self, depth: usize) -> Self {
        self.options.max_depth = depth;
        self
    }

    /// Whether a root may be a symbolic link to a directory, which is the default. Otherwise such a root is an error: `ENOTDIR`,
    /// or `ELOOP` on old kernels.
    ///
    /// **This is about the last component, as `O_NOFOLLOW` is: `link/` and `link/.` are followed all the same**, as by `find
    /// -P`. A program that removes files should strip them first: `path.components().as_path()`.
    #[doc(alias = "follow_root_links")]
    pub fn follow_roots(mut self, yes: bool) -> Self {
        self.options.follow_roots = yes;
        self
    }

    /// Carries a state down the tree.
    ///
    /// - Each root begins with a clone of `of_root`, and each directory with a clone of its parent's
    ///   [`Dir::state`](crate::Dir::state), as you left it there. All directories in one parent begin with the same.
    /// - At its second visit a directory has its own state again. If nobody changed that, it is still the clone of its parent's.
    /// - In an [`Arc`](std::sync::Arc) a state also carries sums up: at second visits, as in the example `du`, or when its last
    ///   clone is dropped, as in [a recipe](crate::recipes#trees).
    /// - Descriptors in a state do not count for [`max_open`](Self::max_open).
    /// - If cloning a state panics, and you catch the panic, the walk goes on and nothing is lost. If dropping one panics, the
    ///   error of a root that could not be opened, or of a level that was lost, may be lost with it.
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
    /// Costs: one clone for each directory that is not the last of its parent's (with second visits, for each), and the
    /// size of the state for each level. On several threads, one clone more for each thread, and one or two for each part of the
    /// work that it splits off; with second visits also one for each level from the root to such a part.
    pub fn with_state<T>(self, of_root: T) -> WalkOptions<T> {
        WalkOptions { options: self.options, state: of_root }
    }
}
