//! Support for all test binaries. A binary uses only a part of most modules.

#[cfg(not(lendir_eager))]
compile_error!(
    "the tests need `--cfg lendir_eager`: .cargo/config.toml sets it, but cargo ignores this if \
     RUSTFLAGS is set, or outside the repository. Add it to RUSTFLAGS."
);

pub mod example;
pub mod fixture;
pub mod fuse;
pub mod fuses;
pub mod machine;
pub mod options;
pub mod process;
pub mod recipe;
pub mod requests;
pub mod scan;
pub mod scratch;
pub mod strace;
pub mod tree;
pub mod visits;

/// The items that most tests import.
#[allow(unused_imports, reason = "each test binary uses a part")]
pub mod prelude {
    pub use super::fixture::{example, make_file, mixed, numbered, run_unprivileged};
    pub use super::machine::{Over, can_trace, runs_long, skip, watchdog};
    pub use super::options::{ENTRY_WALK, EntryWalk, PLAIN, POST, THREADS, TIGHT, TestOptions};
    pub use super::process::{Process, as_nobody, leave_room, open_descriptors};
    pub use super::requests::{About, Next, Requests, Visitor, collect_visits, next};
    pub use super::scan::{End, Found, ORDERS, Scan, errno, type_of_mode};
    pub use super::scratch::Scratch;
    pub use super::strace::{Counted, Stepped, swap_after_each_call};
    pub use super::tree::{Random, Tree, chmod, make};
    pub use super::visits::{
        Visit, What, assert_nothing_is_lost_silently, directories, errors, errors_between,
        expected_visits, forbid_some, in_one_order,
    };
    pub use super::{machine, process, scan, tree};
    pub use lendir::{
        Buffer, Dir, Entries, Entry, Error, FileType, Listing, Metadata, Order, ReadDir, Walk,
        WalkDirs, WalkDirsOptions, WalkOptions,
    };
    pub use libc::{
        EACCES, EINTR, EINVAL, EIO, ELOOP, EMFILE, ENOENT, ENOSYS, ENOTDIR, EPERM, EXDEV,
    };
    pub use rustix::fs::OFlags;
    pub use std::collections::{BTreeMap, BTreeSet, HashMap};
    pub use std::ffi::OsStr;
    pub use std::fs::{File, Permissions};
    pub use std::io::ErrorKind;
    pub use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
    pub use std::os::unix::ffi::OsStrExt;
    pub use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    pub use std::panic::{AssertUnwindSafe, catch_unwind};
    pub use std::path::{Path, PathBuf};
    pub use std::process::{Command, Stdio};
    pub use std::sync::atomic::Ordering::{Relaxed, SeqCst};
    pub use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
    pub use std::sync::{Arc, Mutex};
    pub use std::time::Duration;
    pub use std::{fs, io, iter, mem, thread};
}
