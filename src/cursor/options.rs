//! `Options`: the options that both walks have, and the methods that set them.

use super::entry_state::EntryState;
use crate::listing::{Listing, Order};
use rustix::fs::OFlags;

/// The fewest descriptors with which a walk works: one for the root, one for the current directory,
/// and two to reopen a closed level.
pub(crate) const MIN_OPEN: usize = 4;

/// The options of a walk. Each of its threads has a copy.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct Options {
    /// Whether the walk stays on the mount of each root.
    pub(crate) same_mount: bool,
    /// The number of levels that may be open at once, at least [`MIN_OPEN`].
    pub(crate) max_open: usize,
    /// The depth of the deepest entries that are yielded.
    pub(crate) max_depth: usize,
    /// The request about every entry: `FOLLOWED` or `NO_REQUEST`.
    pub(crate) request: EntryState,
    /// Whether a root that is a symbolic link is followed.
    pub(crate) follow_root_links: bool,
    /// Whether each root is an entry before its contents. Only a `Walk` has this option.
    pub(crate) yield_roots: bool,
    /// Whether directories are visited a second time. Then the directory that contains a root stays
    /// open, so that the caller can remove the root from it. A `Walk` has no second visits.
    pub(crate) second_visits: bool,
    /// The extra flags with which a directory is opened for reading: `O_NOATIME` or none.
    pub(crate) flags: OFlags,
    /// Whether the metadata of each entry is fetched right after its batch.
    pub(crate) metadata: bool,
}

impl Options {
    /// Returns `true` if a walk enters the directories in a directory at `depth`.
    #[inline(always)]
    pub(crate) fn enters_below(&self, depth: usize) -> bool {
        depth + 1 < self.max_depth
    }

    /// Creates a listing that queries its entries as these options say.
    pub(crate) fn listing(&self, order: Order) -> Listing {
        let mut listing = Listing::with_order(order);
        (listing.has_metadata, listing.is_on_one_mount) = (self.metadata, self.same_mount);
        listing
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            same_mount: false,
            max_open: 32,
            max_depth: usize::MAX,
            request: EntryState::NO_REQUEST,
            follow_root_links: true,
            yield_roots: false,
            second_visits: false,
            flags: OFlags::empty(),
            metadata: false,
        }
    }
}

/// Writes the methods that `WalkOptions` and `WalkDirsOptions` have in common. `$walk` is what they
/// make. Each option is documented once, at the `WalkOptions`. Methods come in the order of the
/// documentation, and those of one walk alone after `open`.
macro_rules! common_options {
    (
        $walk:ty,
        $(#[$open:meta])* open,
        { $($more:tt)* }
        $(#[$max_depth:meta])* max_depth,
        $(#[$follow_links:meta])* follow_links,
        $(#[$metadata:meta])* metadata,
        $(#[$same_mount:meta])* same_mount,
        $(#[$follow_root_links:meta])* follow_root_links,
        $(#[$max_open:meta])* max_open,
        $(#[$no_atime:meta])* no_atime,
        $(#[$open_all:meta])* open_all,
        $(#[$from_fd:meta])* from_fd,
    ) => {
        $(#[$open])*
        pub fn open(self, path: impl AsRef<::std::path::Path>) -> Result<$walk, $crate::Error> {
            let roots = $crate::cursor::roots::Roots::open(path.as_ref(), &self.options)?;
            Ok(self.begin(roots, path.as_ref()))
        }

        $($more)*

        $(#[$max_depth])*
        pub fn max_depth(mut self, depth: usize) -> Self {
            self.options.max_depth = depth;
            self
        }

        $(#[$follow_links])*
        #[doc(alias("symlink", "logical"))]
        pub fn follow_links(mut self, yes: bool) -> Self {
            use $crate::cursor::entry_state::EntryState;
            self.options.request = if yes { EntryState::FOLLOWED } else { EntryState::NO_REQUEST };
            self
        }

        $(#[$metadata])*
        #[doc(alias("nfs", "READDIRPLUS", "mtime", "modified", "size", "statx"))]
        pub fn metadata(mut self, yes: bool) -> Self {
            self.options.metadata = yes;
            self
        }

        $(#[$same_mount])*
        #[doc(alias("mount", "one_file_system", "xdev", "same_file_system"))]
        pub fn same_mount(mut self, yes: bool) -> Self {
            self.options.same_mount = yes;
            self
        }

        $(#[$follow_root_links])*
        pub fn follow_root_links(mut self, yes: bool) -> Self {
            self.options.follow_root_links = yes;
            self
        }

        $(#[$max_open])*
        #[doc(alias("EMFILE", "ulimit"))]
        pub fn max_open(mut self, descriptors: usize) -> Self {
            self.options.max_open = descriptors.max($crate::cursor::options::MIN_OPEN);
            self
        }

        $(#[$no_atime])*
        #[doc(alias("O_NOATIME", "atime"))]
        pub fn no_atime(mut self, yes: bool) -> Self {
            self.options.flags.set(::rustix::fs::OFlags::NOATIME, yes);
            self
        }

        $(#[$open_all])*
        pub fn open_all<P: AsRef<::std::path::Path>>(
            self,
            paths: impl IntoIterator<Item = P>,
        ) -> $walk {
            self.begin($crate::cursor::roots::Roots::at(paths), "".as_ref())
        }

        $(#[$from_fd])*
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
