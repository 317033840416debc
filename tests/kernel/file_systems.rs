//! The file systems that tests run on. To add a file system, add a line to [`FILE_SYSTEMS`]: the
//! `suite` then runs on it.
//!
//! A line has a name for tables, the origin of the entries, the cookie of the last entry if that
//! cookie means the end, and the shell commands that mount the file system at `at`. The commands
//! run in an empty directory with the directories `at` and `source`, and they may make an `image`
//! there. A server keeps running as the last command. The programs for the commands belong to the
//! packages in `.ci/packages`. Without them, the tests print SKIPPED.

use crate::support::prelude::*;
use Contents::{Kernel, Merged, Packed, Written};

#[rustfmt::skip]
pub static FILE_SYSTEMS: [FileSystem; 16] = [
    line("tmpfs",           Written, MAX_SINCE_6_14, "mount -t tmpfs none at"),
    line("ramfs",           Written, NO_MARKER,      "mount -t ramfs none at"),
    line("ext2",            Written, HASHED,         "mkfs.ext2 -q image 256M; mount -o loop image at"),
    line("ext4",            Written, HASHED,         "mkfs.ext4 -q image 256M; mount -o loop image at"),
    line("ext4 ^filetype",  Written, HASHED,         "mkfs.ext4 -q -O ^filetype image 256M; mount -o loop image at").without_types(),
    line("ext4 ^dir_index", Written, NO_MARKER,      "mkfs.ext4 -q -O ^dir_index image 256M; mount -o loop image at"),
    line("xfs",             Written, NO_MARKER,      "truncate -s 400M image; mkfs.xfs -q image; mount -o loop image at"),
    line("btrfs",           Written, MAX,            "truncate -s 256M image; mkfs.btrfs -q image; mount -o loop image at"),
    line("squashfs",        Packed,  NO_MARKER,      "mksquashfs source image -quiet -no-progress; mount -o loop image at"),
    line("overlay",         Written, NO_MARKER,      "mkdir work up; mount -t overlay -o lowerdir=source,upperdir=up,workdir=work o at"),
    line("overlay, merged", Merged,  NO_MARKER,      "mkdir work up; mount -t overlay -o lowerdir=source,upperdir=up,workdir=work o at"),
    line("FUSE (bindfs)",   Written, NO_MARKER,      "exec bindfs -f source at"),
    line("proc",            PROC,    NO_MARKER,      "mount -t proc none at"),
    line("sysfs",           SYS,     MAX,            "mount -t sysfs none at"),
    line("cgroup2",         CGROUP,  MAX,            "mount -t cgroup2 none at"),
    line("devtmpfs",        DEV,     MAX_SINCE_6_14, "mount -t devtmpfs none at"),
];

/// File systems only for directories that change while a walk has closed them. The device, inode
/// number or birth time of a directory may depend on its layer here, and mergerfs makes up inode
/// numbers.
#[rustfmt::skip]
pub static LAYERED: [FileSystem; 7] = [
    line("overlay, on ext4",         Merged,  NO_MARKER, "mkdir disk; mkfs.ext4 -q image 256M; mount -o loop image disk; mkdir disk/up disk/work; cp -a source disk; mount -t overlay -o lowerdir=disk/source,upperdir=disk/up,workdir=disk/work o at"),
    line("overlay, two devices",     Merged,  NO_MARKER, "mkdir disk; mount -t tmpfs none disk; mkdir disk/up disk/work; mount -t overlay -o xino=off,lowerdir=source,upperdir=disk/up,workdir=disk/work o at"),
    line("overlay, xino",            Merged,  NO_MARKER, "mkdir disk; mount -t tmpfs none disk; mkdir disk/up disk/work; mount -t overlay -o xino=on,lowerdir=source,upperdir=disk/up,workdir=disk/work o at"),
    line("overlay, redirect_dir",    Merged,  NO_MARKER, "mkdir work up; mount -t overlay -o redirect_dir=on,index=on,nfs_export=on,lowerdir=source,upperdir=up,workdir=work o at"),
    line("FUSE (fuse-overlayfs)",    Merged,  NO_MARKER, "mkdir work up; exec fuse-overlayfs -f -o lowerdir=source,upperdir=up,workdir=work at"),
    line("FUSE (mergerfs)",          Written, NO_MARKER, "mkdir one two; exec mergerfs -f one:two at"),
    line("ext4, 128-byte inodes",    Written, HASHED,    "mkfs.ext4 -q -I 128 image 256M; mount -o loop image at"),
];

const PROC: Contents =
    kernel(&["sys/kernel", "sys/vm", "sys/net/ipv4", "self/attr", "1/ns"], false);
const SYS: Contents = kernel(&["class/tty", "class/net/lo", "devices/system/cpu", "kernel"], false);
const CGROUP: Contents = kernel(&["."], true);
const DEV: Contents = kernel(&[], true);

/// The origin of the entries of a file system.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Contents {
    /// The file system is empty at first and can be written.
    Written,
    /// The file system is made from the directory `source` and is read-only.
    Packed,
    /// The file system can be written. Half of its entries come from the directory `source`, the
    /// other half from the layer above.
    Merged,
    /// The kernel makes the entries for the whole machine. The directories `still` do not change
    /// while a test runs.
    Kernel { still: &'static [&'static str], takes_directories: bool },
}

const fn kernel(still: &'static [&'static str], takes_directories: bool) -> Contents {
    Kernel { still, takes_directories }
}

/// The cookie of the last entry if that cookie means the end, and the first version of Linux that
/// has it.
type Marker = Option<(u64, (u32, u32))>;

const NO_MARKER: Marker = None;
const MAX: Marker = Some((i32::MAX as u64, (0, 0)));
const MAX_SINCE_6_14: Marker = Some((i32::MAX as u64, (6, 14)));
/// The end marker of ext2, ext3 and ext4 for a process of this width.
const HASHED: Marker = Some((
    if cfg!(target_pointer_width = "32") { i32::MAX as u64 } else { i64::MAX as u64 },
    (0, 0),
));

/// A file system, which [`mounted`](Self::mounted) mounts.
pub struct FileSystem {
    pub name: &'static str,
    pub contents: Contents,
    pub script: &'static str,
    marker: Marker,
    /// Whether its directories list types.
    pub has_types: bool,
}

const fn line(
    name: &'static str,
    contents: Contents,
    marker: Marker,
    script: &'static str,
) -> FileSystem {
    FileSystem { name, contents, script, marker, has_types: true }
}

impl FileSystem {
    const fn without_types(self) -> Self {
        Self { has_types: false, ..self }
    }

    pub fn named(name: &str) -> &'static Self {
        FILE_SYSTEMS
            .iter()
            .chain(&LAYERED)
            .find(|system| system.name == name)
            .expect("BUG: no line has this name")
    }

    /// Returns the cookie of the last entry if that cookie means the end on this kernel.
    pub fn end_cookie(&self) -> Option<u64> {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let mut release = release
            .split(|c: char| !c.is_ascii_digit())
            .map_while(|number| number.parse::<u32>().ok());
        let release = (release.next().unwrap_or(0), release.next().unwrap_or(0));
        self.marker.filter(|(_, since)| release >= *since).map(|(cookie, _)| cookie)
    }
}
