//! `Mount`: what the mount of a directory tells about reading it. A new file system needs its
//! number in `file_system.rs`.
//!
//! A `Mount` does not know how a directory is read.

use crate::file_system::FileSystem;
use crate::open::rewind;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{AtFlags, StatxFlags, statx};
use std::fs;

/// The facts that hold for every directory of one mount. They must not be carried across a mount
/// point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    /// The cookie that marks the end of a directory, if one does. Without it, only an empty
    /// `getdents64` is the end.
    pub(crate) end_cookie: Option<EndCookie>,
    /// Whether a directory may end where it ended when it was opened, until a seek: on btrfs, and
    /// on an overlay over btrfs.
    has_fixed_end: bool,
    /// 3 or 4 on NFS, otherwise 0.
    nfs_version: u8,
}

/// The cookie of the last entry of a directory, where it marks the end.
///
/// A reader normally learns that a directory is at its end from one more `getdents64`, which
/// returns nothing. Some file systems say so earlier, in the cookie (`d_off`) of the last entry.
/// Elsewhere, `i32::MAX` can be an ordinary position: xfs, ramfs, proc, overlay, FUSE and network
/// file systems have no such cookie. On 9p, the server names the file system type, so it decides.
///
/// The cookie counts only on the last record of a batch, and only if that batch left room for the
/// largest record. Otherwise the batch may have ended because the next record did not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndCookie {
    /// tmpfs (Linux 6.14 and later), btrfs, sysfs, cgroup2 and devtmpfs.
    I32Max,
    /// ext2, ext3 and ext4 with hashed directories. A 32-bit process gets 32-bit hashes.
    IsizeMax,
    #[cfg(test)]
    MadeUp(u64),
}

impl EndCookie {
    pub(crate) fn is(self, cookie: u64) -> bool {
        match self {
            Self::I32Max => cookie == i32::MAX as u64,
            Self::IsizeMax => cookie == isize::MAX as u64, // `ext4_get_htree_eof`
            #[cfg(test)]
            Self::MadeUp(end) => cookie == end,
        }
    }
}

impl Mount {
    /// A mount of which nothing is known, except that its directories end where they should. It is
    /// right on every other file system.
    pub(crate) const PLAIN: Self = Self { end_cookie: None, has_fixed_end: false, nfs_version: 0 };

    /// A mount of an unknown file system.
    pub(crate) const UNKNOWN: Self = Self { has_fixed_end: true, ..Self::PLAIN };

    /// Returns the facts about the mount that `dir` is on, or [`UNKNOWN`](Self::UNKNOWN) if
    /// `fstatfs` fails.
    pub(crate) fn of(dir: impl AsFd) -> Self {
        #[cfg(test)]
        if tests::IS_NFS3.get() {
            return Self { nfs_version: 3, ..Self::PLAIN };
        }
        let end_cookie = Some(EndCookie::I32Max);
        match FileSystem::of(&dir) {
            Ok(FileSystem::EXT4) => Self { end_cookie: Some(EndCookie::IsizeMax), ..Self::PLAIN },
            Ok(FileSystem::TMPFS | FileSystem::SYSFS | FileSystem::CGROUP2) => {
                Self { end_cookie, ..Self::PLAIN }
            }
            Ok(FileSystem::BTRFS) => Self { end_cookie, ..Self::UNKNOWN },
            Ok(FileSystem::OVERLAY) | Err(_) => Self::UNKNOWN,
            Ok(FileSystem::NFS) => {
                Self { nfs_version: if is_nfs3(dir.as_fd()) { 3 } else { 4 }, ..Self::PLAIN }
            }
            _ => Self::PLAIN,
        }
    }

    /// Returns the facts about the mount of `target`. If `dir`, on this mount, is on the same one,
    /// they are known, which on NFS saves a request and a look at all mounts.
    pub(crate) fn of_target(self, dir: BorrowedFd<'_>, target: BorrowedFd<'_>) -> Self {
        let is_same = || mount_id(dir).is_some_and(|mount| Some(mount) == mount_id(target));
        if self.nfs_version > 0 && is_same() { self } else { Self::of(target) }
    }

    /// Returns `true` on NFS 3, whose plain listings lack the types. The kernel lists them together
    /// with the metadata, which tells the types, only as long as it sees that entries are queried.
    pub(crate) fn needs_queries(self) -> bool {
        self.nfs_version == 3
    }

    /// Lets `dir`, which is at its beginning, end where it ends now.
    pub(crate) fn move_fixed_end(self, dir: impl AsFd) {
        if self.has_fixed_end {
            let _ = rewind(dir);
        }
    }

    /// Creates a mount whose directories end with this cookie.
    #[cfg(test)]
    pub(crate) fn made_up(cookie: u64) -> Self {
        let end_cookie = (cookie != 0).then_some(EndCookie::MadeUp(cookie));
        Self { end_cookie, ..Self::PLAIN }
    }
}

/// Returns `true` if `dir` is on a mount of NFS 3. NFS 4 has the same number, so this looks the
/// mount up in mountinfo, whose lines are `id parent device root at options [optional] - type ...`.
#[cold]
fn is_nfs3(dir: BorrowedFd<'_>) -> bool {
    let Some(id) = mount_id(dir).map(|id| id.to_string()) else { return false };
    let Ok(mounts) = fs::read("/proc/self/mountinfo") else { return false };
    mounts.split(|byte| *byte == b'\n').any(|line| {
        let mut fields = line.split(|byte| *byte == b' ');
        fields.next() == Some(id.as_bytes())
            && fields.skip_while(|field| *field != b"-").nth(1) == Some(b"nfs")
    })
}

/// Returns the id of the mount that `dir` is on, since Linux 5.8.
fn mount_id(dir: BorrowedFd<'_>) -> Option<u64> {
    let statx = statx(dir, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID).ok()?;
    (statx.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(statx.stx_mnt_id)
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::{Dir, Listing, Order, Walk, WalkOptions};
    use std::cell::Cell;
    use std::fs::{File, create_dir};
    use std::os::unix::fs::symlink;

    thread_local! {
        /// Whether each directory that this thread opens counts as one on NFSv3.
        pub(super) static IS_NFS3: Cell<bool> = const { Cell::new(false) };
        /// The number of types that this thread has asked for.
        static QUERY_COUNT: Cell<usize> = const { Cell::new(0) };
    }

    pub(crate) fn count_query() {
        QUERY_COUNT.set(QUERY_COUNT.get() + 1);
    }

    /// Even if its record has a type: otherwise the records of the next batch have none.
    #[test]
    #[cfg_attr(miri, ignore = "reads directories")]
    fn each_reader_queries_each_entry_on_nfs3() {
        let made = tempfile::tempdir().unwrap();
        let path = |name| made.path().join(name);
        create_dir(path("a")).unwrap();
        for name in ["a/b", "c"] {
            File::create_new(path(name)).unwrap();
        }
        let walk = |options: WalkOptions| {
            let mut walk = options.open(made.path()).unwrap();
            while walk.next().unwrap().is_some() {}
        };
        let dirs = |read: fn(&mut Dir<'_>)| {
            let mut walk = crate::walk_dirs(made.path()).unwrap();
            while let Some(mut dir) = walk.next().unwrap() {
                read(&mut dir);
            }
        };
        let readers: [(&str, &dyn Fn()); 5] = [
            ("Walk", &|| walk(Walk::options())),
            ("a sorted Walk", &|| walk(Walk::options().order(Order::Bytes))),
            ("Dir::next", &|| dirs(|dir| while dir.next().unwrap().is_some() {})),
            ("Dir::read_into", &|| dirs(|dir| dir.read_into(&mut Listing::new()).unwrap())),
            ("WalkDirs::next", &|| dirs(|_| {})),
        ];
        for (name, read) in readers {
            for (is_nfs3, count) in [(true, 3), (false, 0)] {
                IS_NFS3.set(is_nfs3);
                QUERY_COUNT.set(0);
                read();
                assert_eq!(QUERY_COUNT.get(), count, "{name}, NFSv3: {is_nfs3}");
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "reads directories")]
    fn target_of_a_link_is_on_nfs3_like_the_link() {
        let made = tempfile::tempdir().unwrap();
        for name in ["links", "target"] {
            create_dir(made.path().join(name)).unwrap();
        }
        File::create_new(made.path().join("target/file")).unwrap();
        symlink("../target", made.path().join("links/link")).unwrap();
        IS_NFS3.set(true);
        let mut walk = crate::walk(made.path().join("links")).unwrap();
        IS_NFS3.set(false);
        QUERY_COUNT.set(0);
        while let Some(entry) = walk.next().unwrap() {
            entry.follow();
        }
        assert_eq!(QUERY_COUNT.get(), 2, "of the link, and of the file");
    }
}
