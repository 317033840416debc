//! `Options`: the options that both walks have, and the methods that set them. It does not know how
//! a tree is walked.

use rustix::fs::OFlags;

/// The fewest descriptors with which a walk works: one for the root, one for the current directory,
/// and two to reopen a closed level.
pub(crate) const MIN_OPEN: usize = 4;

/// The options of a walk. Each of its threads has a copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Whether the walk stays on the mount of each root.
    pub(crate) same_mount: bool,
    /// The number of levels that may be open at once, at least [`MIN_OPEN`].
    pub(crate) max_open: usize,
    /// The depth of the deepest entries that are yielded.
    pub(crate) max_depth: usize,
    /// Whether a root that is a symbolic link is followed.
    pub(crate) follow_root_links: bool,
    /// Whether directories are visited a second time. Then the directory that contains a root stays
    /// open, so that the caller can remove the root from it. A `Walk` has no second visits.
    pub(crate) second_visits: bool,
    /// The additional flags with which a directory is opened for reading: `O_NOATIME` or none.
    pub(crate) flags: OFlags,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            same_mount: false,
            max_open: 32,
            max_depth: usize::MAX,
            follow_root_links: true,
            second_visits: false,
            flags: OFlags::empty(),
        }
    }
}

/// Writes the methods that `WalkOptions` and `WalkDirsOptions` have in common. Their `begin` makes
/// a `$walk`, whose type is called `$name`, and whose entries are called `$entry`.
macro_rules! common_options {
    ($walk:ty, $name:literal, $entry:literal) => {
        /// Sets whether the walk stays on the mount of each root. The default is `false`.
        ///
        /// With `true`, a directory on which another file system is mounted is yielded as an entry,
        /// but the walk does not descend into this directory. A file can be a mount point, too, as
        /// is usual in containers. The `stat` and `open` methods of such an entry act on the
        /// mounted file. To skip such a file, too, query whether the entry is a mount point:
        ///
        /// ```
        /// use lendir::rustix::fs::StatxAttributes;
        #[doc = concat!("use lendir::{Error, StatxFlags, ", $entry, "};")]
        ///
        #[doc = concat!("fn is_mount_point(entry: &", $entry, "<'_>) -> Result<bool, Error> {")]
        ///     let statx = entry.statx(StatxFlags::empty())?;
        ///     Ok(statx.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)) // Linux 5.8
        /// }
        /// ```
        ///
        /// The same query finds the directories that were not entered.
        ///
        /// The walk does not descend into a bind mount either, even if the bind mount shows the
        /// same file system. It descends into a btrfs subvolume, because a subvolume is not a
        /// mount. `find -xdev`, which compares `st_dev`, does the opposite in both cases.
        ///
        /// If `openat2` is missing and the kernel is older than Linux 5.8, the walk compares only
        /// devices. Then the walk does descend into a bind mount of the same file system.
        ///
        /// # Performance
        ///
        /// If the kernel has `openat2` with [`RESOLVE_NO_XDEV`] (Linux 5.6), only a directory that
        /// you have no permission to read takes two additional `statx` calls. Otherwise each
        /// directory takes two.
        ///
        /// [`RESOLVE_NO_XDEV`]: https://man7.org/linux/man-pages/man2/openat2.2.html
        #[doc(alias("xdev", "same_file_system"))]
        pub fn same_mount(mut self, yes: bool) -> Self {
            self.options.same_mount = yes;
            self
        }

        /// Sets whether a root that is a symbolic link to a directory is followed. The default is
        /// `true`.
        ///
        /// With `false`, such a root is an error: `ENOTDIR`, or `ELOOP` on old kernels. Only the
        /// last component of the path counts, as with `O_NOFOLLOW` and `find -P`: **`link/` and
        /// `link/.` are followed all the same**. A program that removes files should strip these
        /// endings first: `path.components().as_path()`.
        pub fn follow_root_links(mut self, yes: bool) -> Self {
            self.options.follow_root_links = yes;
            self
        }

        /// Sets the number of directories that a thread of the walk may hold open at once. The
        /// default is 32, and the minimum is 4.
        ///
        /// This number does not limit the depth. A walk holds one descriptor for the current
        /// directory, and one for each parent that has entries or directories pending. With [second
        /// visits](crate::WalkDirsOptions::second_visits), a walk holds one for each parent, and an
        /// additional one for the directory that contains the root. [Followed
        /// links](crate::DirEntry::follow), [several threads](crate::WalkDirs::run_parallel) and
        /// [reading ahead](crate::WalkOptions::read_ahead) take additional descriptors, too.
        ///
        /// Once this number is reached, the walk closes a level early, and reopens the level later.
        /// The walk does the same if the process (`EMFILE`) or the system (`ENFILE`) has no
        /// descriptor left.
        ///
        /// - **A level can be lost** if another process moves or removes directories while the
        ///   level is closed. The walk skips the level's pending contents and its second visit, and
        ///   returns one error. The error is `ENOENT`, `ENOTDIR` if another file has the level's
        ///   name, or `ESTALE` on NFS. The error is `EACCES` if a directory on the path can no
        ///   longer be searched, and `EMFILE` or `ENFILE` if no descriptor is left.
        /// - **A closed level is recognised** by its device, its inode number and its birth time,
        ///   and under [`same_mount`](Self::same_mount) also by its mount. `SECURITY.md` lists the
        ///   file systems whose birth times the walk cannot trust. On such a file system, a new
        ///   directory with the inode number of a removed one is taken for the removed one.
        /// - **The walk may wait for up to 20 ms** before it closes a level whose directory was
        ///   just created. So no later directory has the same birth time. With second visits on
        ///   several threads, the walk also waits before it shares such a level.
        pub fn max_open(mut self, descriptors: usize) -> Self {
            self.options.max_open = descriptors.max($crate::cursor::options::MIN_OPEN);
            self
        }

        /// Sets the depth of the deepest entries that are yielded. There is no limit by default.
        ///
        /// The entries of a root have depth 1, as with `find -maxdepth`. A directory at the maximum
        /// depth is yielded as an entry, but not opened. With 0, a [`Walk`](crate::Walk) yields
        /// nothing, and a [`WalkDirs`](crate::WalkDirs) yields each root without entries.
        pub fn max_depth(mut self, depth: usize) -> Self {
            self.options.max_depth = depth;
            self
        }

        /// Sets whether directories are opened with `O_NOATIME`, so that reading them does not
        /// change their access times. The default is `false`.
        ///
        /// The kernel permits this flag to the owner of a directory and to a process with
        /// `CAP_FOWNER`. If the kernel refuses the flag with `EPERM`, the walk opens the directory
        /// without the flag, and the access time may change.
        ///
        /// The flag has no effect on a root that is passed to [`from_fd`](Self::from_fd), nor on
        /// network file systems whose server sets the access times.
        ///
        /// # Performance
        ///
        /// Each directory for which the flag is refused takes an additional system call.
        #[doc(alias("O_NOATIME", "atime"))]
        pub fn no_atime(mut self, yes: bool) -> Self {
            self.options.flags.set($crate::OFlags::NOATIME, yes);
            self
        }

        /// Opens the root `path` and returns a walk of this tree. The paths of the walk begin with
        /// `path`, as written.
        ///
        /// A root that you have no permission to read is not an error of this method. The error
        /// occurs when the walk reads the root.
        ///
        /// # Errors
        ///
        /// Same as [`lendir::open`](crate::open()), with the path: `ENOENT` if nothing is there or
        /// a symbolic link dangles, `ENOTDIR` for a file. A program that also accepts files calls
        /// `stat` on the path first, like the example `find`.
        ///
        /// # Performance
        ///
        /// This method makes one `openat` and one `fstatfs`.
        pub fn open(self, path: impl AsRef<::std::path::Path>) -> Result<$walk, $crate::Error> {
            let roots = $crate::cursor::roots::Roots::open(path.as_ref(), &self.options)?;
            Ok(self.begin(roots, path.as_ref()))
        }

        /// Returns a walk of the trees at `paths`, one after another.
        /// [`WalkDirs::run_parallel`](crate::WalkDirs::run_parallel) walks them all at once.
        ///
        /// Each root is opened when the walk begins it, and its path is looked up only then. If a
        /// root is missing or is not a directory, the walk returns an error with this path and
        /// depth 0. The walk then continues with the next root. A path that is passed twice is
        /// walked twice.
        ///
        /// ```
        /// let roots = ["/sys/class", "/no/such/directory", "/sys/bus"];
        #[doc = concat!("let mut walk = lendir::", $name, "::options().open_all(roots);")]
        /// let mut errors = 0;
        /// while let Some(_) = walk.next_or_report(|_| errors += 1) {}
        /// assert_eq!(errors, 1);
        /// ```
        pub fn open_all<P: AsRef<::std::path::Path>>(
            self,
            paths: impl IntoIterator<Item = P>,
        ) -> $walk {
            self.begin($crate::cursor::roots::Roots::at(paths), "".as_ref())
        }

        /// Returns a walk of the tree at the descriptor `root`, which [`open`](crate::open()) or
        /// [`openat`](crate::openat()) can return.
        ///
        /// The paths of the walk begin with `path`, which the walk never looks up. With `""` they
        /// are relative to the root. If the descriptor cannot be read, the walk returns the error.
        ///
        /// The walk opens `.` in `root` and reads that descriptor from its beginning, so any number
        /// of walks can begin at duplicates of one descriptor. If you have no permission to search
        /// the root, the walk reads `root` itself. Then its duplicates, and a child process that
        /// inherits it by `fork`, share the position: if two of them read, both lose entries.
        ///
        /// ```
        /// let root = lendir::open("/sys/class")?;
        #[doc = concat!("let mut walk = lendir::", $name, "::options().from_fd(root, \"class\");")]
        /// assert!(walk.next()?.is_some_and(|next| next.path().starts_with("class")));
        /// # Ok::<(), lendir::Error>(())
        /// ```
        ///
        /// # Performance
        ///
        /// This method makes one `openat`, one `fstatfs` and one `close`.
        pub fn from_fd(
            self,
            root: impl Into<::rustix::fd::OwnedFd>,
            path: impl AsRef<::std::path::Path>,
        ) -> $walk {
            self.begin($crate::cursor::roots::Roots::from_fd(root.into()), path.as_ref())
        }
    };
}
pub(crate) use common_options;
