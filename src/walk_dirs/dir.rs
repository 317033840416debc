//! `Dir`: the current directory, its entries, and the requests of the caller.

use super::batch::Batch;
use super::dir_entry::DirEntry;
use super::part::{LevelWork, Part};
use super::subdirs::Subdirs;
use crate::cursor::Cursor;
use crate::cursor::opener::last_component_start;
use crate::cursor::stack::Level;
use crate::error::Error;
use crate::listing::Listing;
use crate::metadata::Metadata;
use crate::read_dir::entry::Directory;
use crate::read_dir::mount::Mount;
use crate::read_dir::records::Phase;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{AtFlags, unlinkat};
use rustix::io::{Errno, retry_on_intr};
use std::ffi::{CStr, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// An open directory of a [`WalkDirs`](crate::WalkDirs), which yields its entries like
/// [`Entries`](crate::Entries), until the next call to [`WalkDirs::next`](crate::WalkDirs::next).
///
/// ```
/// let mut walk = lendir::walk_dirs("/sys/class")?;
/// while let Some(mut dir) = walk.next_or_report(|error| eprintln!("{error}")) {
///     println!("{:?}:", dir.path());
///     while let Some(entry) = dir.next_or_report(|error| eprintln!("{error}")) {
///         println!("    {:?}", entry.file_name());
///     }
/// }
/// # Ok::<(), lendir::Error>(())
/// ```
///
/// The walk descends into every subdirectory unless you say otherwise. [`DirEntry::skip_subtree`]
/// leaves out one of them, and [`skip_subdirs`](Self::skip_subdirs) all.
///
/// Sometimes the choice depends on what else is in the directory, such as an ignore file. Then read
/// everything into a [`Listing`] first ([`read_into`](Self::read_into)), and name the
/// subdirectories yourself. After `skip_subdirs`, the walk enters exactly the names that you pass
/// to [`enter_name`](Self::enter_name).
pub struct Dir<'a, S = ()> {
    batch: &'a mut Batch,
    directory: Directory<'a>,
    mount: Mount,
    /// The directory that the name is relative to, at a second visit.
    parent: Option<BorrowedFd<'a>>,
    is_second_visit: bool,
    state: &'a mut S,
    /// The path of the directory, with its NUL.
    path: &'a [u8],
    subdirs: &'a mut Subdirs,
}

impl<'a, S> Dir<'a, S> {
    /// Begins a visit of the part's current directory.
    #[inline(always)]
    pub(crate) fn visit(part: &'a mut Part<S>) -> Self {
        let Part { cursor, subdirs, batch, .. } = part;
        let Cursor { options, root_parent, stack, path, unreadable, .. } = cursor;
        let (top, above) = stack.levels.split_last_mut().expect("BUG: there is no level");
        let bounds = top.bounds;
        let is_second_visit = top.remaining.is_second_visit;
        let parent = match above.last() {
            _ if !is_second_visit => None,
            _ if bounds.depth == 0 => root_parent.as_deref().map(AsFd::as_fd),
            // Another directory's descriptor would make the name act elsewhere.
            above => above
                .filter(|above| above.bounds.depth + 1 == bounds.depth)
                .and_then(Level::open_dir),
        };
        // A second visit and a directory at the maximum depth yield no entries.
        let has_entries = !is_second_visit && bounds.depth < options.max_depth;
        let phase = unreadable.map_or(Phase::Fresh, Phase::Failed);
        batch.begin(if has_entries { phase } else { Phase::Empty });
        subdirs.begin(is_second_visit || !options.enters_below(bounds.depth));
        let (directory, mount, LevelWork { state, .. }) = top.parts(path);
        Self {
            batch,
            directory,
            mount,
            parent,
            is_second_visit,
            state,
            path: path.as_bytes_with_nul(),
            subdirs,
        }
    }

    /// Advances to the next entry, or returns `None` at the end of the directory.
    ///
    /// [`next_or_report`](Self::next_or_report) is the usual loop. An entry borrows this `Dir`:
    /// take its [`path`](Self::path), [`depth`](Self::depth) and [`state`](Self::state) before the
    /// loop.
    ///
    /// # Errors
    ///
    /// At most one, after the entries that were read before it, and then `Ok(None)`. The walk still
    /// descends into the directories among these entries. If you drop the `Dir` first,
    /// [`WalkDirs::next`](crate::WalkDirs::next) returns the error.
    ///
    /// - Reading fails: the errors of [`Entries::next`](crate::Entries::next), and
    ///   [`OutOfMemory`](io::ErrorKind::OutOfMemory) if memory is refused, for the buffer or for
    ///   the names of subdirectories, which the walk then does not enter.
    /// - The directory exists, but cannot be opened for reading ([openat(2)]): usually `EACCES`.
    ///   For a root of [`from_fd`](crate::WalkDirsOptions::from_fd), also `EMFILE` and `ENFILE`.
    ///
    /// [openat(2)]: https://man7.org/linux/man-pages/man2/openat.2.html
    #[inline(always)]
    pub fn next(&mut self) -> Result<Option<DirEntry<'_>>, Error> {
        let Self { batch, directory, mount, subdirs, .. } = self;
        let is_there = batch.advance(*directory, *mount, subdirs)?;
        Ok(if is_there { Some(batch.entry(*directory)) } else { None })
    }

    /// Advances to the next entry, or returns `None` at the end and after an error. `on_error` gets
    /// the error, of which there is at most one.
    #[inline(always)]
    pub fn next_or_report(&mut self, on_error: impl FnOnce(Error)) -> Option<DirEntry<'_>> {
        self.next().map_err(on_error).unwrap_or(None)
    }

    /// Finds the next entry for which `wanted` returns `true`. The walk still enters all
    /// subdirectories, before and after it.
    ///
    /// # Errors
    ///
    /// The same as for [`next`](Self::next). With `?`, the first directory that you have no
    /// permission to read ends the search of the tree.
    #[inline(always)]
    pub fn find(
        &mut self,
        mut wanted: impl FnMut(&DirEntry<'_>) -> bool,
    ) -> Result<Option<DirEntry<'_>>, Error> {
        let Self { batch, directory, mount, subdirs, .. } = self;
        while batch.advance(*directory, *mount, subdirs)? {
            if wanted(&batch.entry(*directory)) {
                return Ok(Some(batch.entry(*directory)));
            }
        }
        Ok(None)
    }

    /// Counts the entries that remain, by reading the directory to its end. The walk descends into
    /// the directories among them.
    ///
    /// # Errors
    ///
    /// The same as for [`next`](Self::next). The count up to the error is lost.
    #[inline]
    pub fn count(&mut self) -> Result<u64, Error> {
        let mut count = 0;
        while self.next()?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    /// Reads the whole directory into `listing`, sorted, whatever was yielded before. Afterwards
    /// [`next`](Self::next) is at the end.
    ///
    /// The walk then descends in the order of the listing, and forgets which entries you skipped or
    /// followed. To choose among the subdirectories, name them:
    ///
    /// ```
    /// use lendir::Listing;
    ///
    /// let mut listing = Listing::new();
    /// let mut walk = lendir::walk_dirs("src")?;
    /// while let Some(mut dir) = walk.next()? {
    ///     println!("{:?}", dir.path());
    ///     dir.read_into(&mut listing)?;
    ///     dir.skip_subdirs();
    ///     for entry in &listing {
    ///         if entry.name() != b"cursor" && entry.in_dir(dir.fd()).file_type()?.is_dir() {
    ///             dir.enter_name(entry.name())?;
    ///         }
    ///     }
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The same as for [`ReadDir::read_into`](crate::ReadDir::read_into) and [`next`](Self::next).
    /// After an error, the listing holds the entries that were read before it, and the walk
    /// descends into the directories among them.
    ///
    /// # Performance
    ///
    /// The directory is opened again if an entry was yielded before. Each call copies the path, and
    /// in a deep chain of directories the copies add up to the square of the depth. A sorted
    /// [`walk`](crate::walk()) copies none.
    #[doc(alias("sort_by", "gitignore"))]
    #[inline(always)]
    pub fn read_into(&mut self, listing: &mut Listing) -> Result<(), Error> {
        let Self { batch, directory, mount, subdirs, .. } = self;
        batch.read_whole(listing, *directory, *mount, subdirs)
    }

    /// Tells the walk not to descend into any entry of this directory, except those that you [name
    /// from now on](Self::enter_name).
    ///
    /// ```
    /// let mut walk = lendir::walk_dirs("src")?;
    /// while let Some(mut dir) = walk.next_or_report(|error| eprintln!("{error}")) {
    ///     println!("{:?}", dir.path());
    ///     if dir.name() == b"walk_dirs" {
    ///         dir.skip_subdirs();
    ///     }
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// [`next`](Self::next) still yields entries. Names that you passed before are forgotten.
    #[doc(alias = "skip_current_dir")]
    #[inline]
    pub fn skip_subdirs(&mut self) {
        self.batch.updates.clear();
        self.subdirs.skip_all();
    }

    /// Tells the walk to descend into the directory `name`, after [`skip_subdirs`].
    ///
    /// The walk enters exactly the names that you pass, in this order. A directory whose entries
    /// you know need not even be read:
    ///
    /// ```
    /// let mut walk = lendir::walk_dirs("/sys/class")?;
    /// if let Some(mut dir) = walk.next()? {
    ///     dir.skip_subdirs(); // and `next` was not called, so nothing is read
    ///     dir.enter_name("net")?;
    /// }
    /// # assert_eq!(walk.next()?.unwrap().name(), b"net");
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// Returns `false` where the walk enters nothing: at a [second visit](Self::is_second_visit),
    /// and where [`max_depth`](crate::WalkOptions::max_depth) lets it open nothing below this
    /// directory.
    ///
    /// # Errors
    ///
    /// - `EINVAL`: no entry can have the name, which is empty, `.` or `..`, or has a slash or a
    ///   NUL.
    /// - [`InvalidInput`](io::ErrorKind::InvalidInput): [`skip_subdirs`] was not called, and a
    ///   directory that is also yielded would be entered twice.
    ///
    /// If the walk cannot enter it, [`WalkDirs::next`](crate::WalkDirs::next) says so later, since
    /// you asked for it. There, `EXDEV` means that it is a mount point, under
    /// [`same_mount`](crate::WalkOptions::same_mount). `ENOENT` means that there is no such entry,
    /// and `ENOTDIR` that it is a symbolic link or a file, except that
    /// [`follow_links`](crate::WalkDirsOptions::follow_links) passes over these.
    ///
    /// [`skip_subdirs`]: Self::skip_subdirs
    pub fn enter_name(&mut self, name: impl AsRef<[u8]>) -> Result<bool, Error> {
        let name = name.as_ref();
        self.subdirs.name(name).map_err(|error| self.directory.error_at(name, error))
    }

    /// Borrows the state that the walk hands down the tree: see
    /// [`with_state`](crate::WalkDirsOptions::with_state).
    #[inline]
    pub fn state(&self) -> &S {
        self.state
    }

    /// Borrows the state to change it, for this directory and everything below it.
    #[inline]
    pub fn state_mut(&mut self) -> &mut S {
        self.state
    }

    /// Returns the path of this directory, which begins with the root's as you wrote it.
    ///
    /// Use the path in messages, for [the reason](crate::Entry::path) that entries have. To act on
    /// the directory, use [`fd`](Self::fd). The path borrows from the walk, not from this `Dir`:
    ///
    /// ```
    /// let mut walk = lendir::walk_dirs("/sys/class")?;
    /// while let Some(mut dir) = walk.next_or_report(|error| eprintln!("{error}")) {
    ///     let path = dir.path();
    ///     while let Some(entry) = dir.next_or_report(|error| eprintln!("{error}")) {
    ///         println!("{:?} in {path:?}", entry.file_name());
    ///     }
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    #[inline]
    pub fn path(&self) -> &'a Path {
        Path::new(OsStr::from_bytes(self.directory.path))
    }

    /// Returns the name of this directory. A root has the [`Path::file_name`] of its path or, if
    /// the path has none, like `/`, `.`, `a/..` and the empty path, the whole path.
    #[inline]
    pub fn name(&self) -> &'a [u8] {
        self.path().file_name().map_or(self.directory.path, OsStr::as_bytes)
    }

    /// Returns the [`name`](Self::name) as an `OsStr`, for `std`.
    #[inline]
    pub fn file_name(&self) -> &'a OsStr {
        OsStr::from_bytes(self.name())
    }

    /// Returns the depth below the root, which itself has depth 0.
    #[inline]
    pub fn depth(&self) -> usize {
        self.directory.depth
    }

    /// Tells whether this is the [second visit](crate::WalkDirsOptions::second_visits), after
    /// everything below the directory. It yields no entries then.
    #[inline]
    pub fn is_second_visit(&self) -> bool {
        self.is_second_visit
    }

    /// Returns the descriptor of this directory, for `*at` calls on its entries and for calls on
    /// the directory itself. Do not [read the directory through it](crate::Entry::dir_fd). It
    /// borrows from the walk, like the [`path`](Self::path).
    ///
    /// A directory that you have no permission to read is opened with `O_PATH`, and calls such as
    /// `fchmod` refuse its descriptor. A lock by `flock` ends when the walk closes the descriptor,
    /// which can be as soon as the walk continues.
    #[doc(alias = "as_fd")]
    #[inline]
    pub fn fd(&self) -> BorrowedFd<'a> {
        self.directory.fd
    }

    /// Queries the metadata of this directory, such as its owner, mode and times.
    ///
    /// ```
    /// let mut walk = lendir::walk_dirs("src")?;
    /// while let Some(dir) = walk.next_or_report(|error| eprintln!("{error}")) {
    ///     println!("{:o} {:?}", dir.metadata()?.mode() & 0o7777, dir.path());
    /// }
    /// # Ok::<(), lendir::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The error of [fstat(2)], with the path, such as `EIO` or `ESTALE` of a server.
    ///
    /// [fstat(2)]: https://man7.org/linux/man-pages/man2/fstat.2.html
    pub fn metadata(&self) -> Result<Metadata, Error> {
        Metadata::query(self.fd(), c"", AtFlags::EMPTY_PATH).map_err(|errno| self.wrap_error(errno))
    }

    /// Turns the error of your own call into an [`Error`] with this directory's
    /// [`path`](Self::path) and [`depth`](Self::depth): see [`Error::new`].
    #[cold]
    #[must_use = "this makes an error, and reports nothing"]
    pub fn wrap_error(&self, cause: impl Into<io::Error>) -> Error {
        self.directory.wrap_error(cause)
    }

    /// Removes this directory at its [second visit](Self::is_second_visit), once it is empty. A
    /// root is removed from the directory that it was opened through.
    ///
    /// ```
    /// use lendir::{Error, WalkDirsOptions};
    /// use std::path::Path;
    ///
    /// fn remove(tree: &Path) -> Result<(), Error> {
    ///     let options = WalkDirsOptions::new().second_visits(true).follow_root_links(false);
    ///     let mut walk = options.open(tree)?;
    ///     while let Some(mut dir) = walk.next()? {
    ///         while let Some(entry) = dir.next()? {
    ///             if !entry.file_type()?.is_dir() {
    ///                 entry.remove_file()?;
    ///             }
    ///         }
    ///         if dir.is_second_visit() {
    ///             dir.remove_dir()?;
    ///         }
    ///     }
    ///     Ok(())
    /// }
    /// # let made = tempfile::tempdir()?;
    /// # std::fs::create_dir_all(made.path().join("tree/empty/empty"))?;
    /// # remove(&made.path().join("tree"))?;
    /// # assert!(!made.path().join("tree").exists());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// [A recipe](crate::recipes#remove-a-tree) also removes what appears meanwhile.
    ///
    /// # Errors
    ///
    /// The errors of [`Entry::remove_dir`](crate::Entry::remove_dir), with this directory's path,
    /// and two for lack of the [parent](Self::parent_and_name):
    ///
    /// - [`InvalidInput`](io::ErrorKind::InvalidInput): this is a first visit, or a root of
    ///   [`from_fd`](crate::WalkOptions::from_fd).
    /// - `ENOENT`: the parent is [lost](crate::WalkOptions::max_open), which
    ///   [`WalkDirs::next`](crate::WalkDirs::next) has reported.
    #[doc(alias("rmdir", "unlinkat", "delete", "remove_dir_all"))]
    pub fn remove_dir(&self) -> Result<(), Error> {
        let Some((parent, name)) = self.parent_and_name() else {
            let is_lost = self.is_second_visit && self.depth() > 0;
            let why = "its parent is not open: this is no second visit, or a root by descriptor";
            let unknown = || io::Error::new(io::ErrorKind::InvalidInput, why);
            return Err(self.wrap_error(if is_lost { Errno::NOENT.into() } else { unknown() }));
        };
        retry_on_intr(|| unlinkat(parent, name, AtFlags::REMOVEDIR))
            .map_err(|errno| self.wrap_error(errno))
    }

    /// Returns the open parent of this directory and its name there, at a [second
    /// visit](Self::is_second_visit), to be passed to calls such as `renameat`.
    ///
    /// The walk opened the directory, even a root, through this parent, whatever the path resolves
    /// to by then. The name of a root is the last component of its path as you wrote it, such as
    /// `dir`, `dir/`, `..` or `/`.
    ///
    /// Another process can put a symbolic link in place of the directory, and `chmodat` would
    /// follow it, like `chownat` without `AtFlags::SYMLINK_NOFOLLOW`. To change the directory
    /// itself, call `fchmod` or `fchown` on its [`fd`](Self::fd).
    ///
    /// Returns `None` at a first visit, when the parent may already be closed for good; for a root
    /// that was passed [as a descriptor](crate::WalkOptions::from_fd); and if the parent is
    /// [lost](crate::WalkOptions::max_open), which [`WalkDirs::next`](crate::WalkDirs::next) has
    /// reported.
    #[doc(alias("parent", "name_cstr", "rename"))]
    pub fn parent_and_name(&self) -> Option<(BorrowedFd<'a>, &'a CStr)> {
        let parent = self.parent?;
        let name_start = last_component_start(self.directory.path);
        let name = CStr::from_bytes_until_nul(&self.path[name_start..]);
        Some((parent, name.expect("BUG: a path without its NUL")))
    }

    /// Tells whether the directory was removed before or while it was read: see
    /// [`Entries::is_removed`](crate::Entries::is_removed).
    pub fn is_removed(&self) -> bool {
        self.batch.is_removed()
    }
}

debug!([S] Dir<'_, S>, |dir|
    path: dir.path(), depth: dir.depth(), is_second_visit: dir.is_second_visit());
