//! Walks while other threads change the tree, calls fail, or the file system lies.

mod changes;
mod copy_up;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod faults;
mod hostile;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod markers;
mod mounts;
mod no_atime;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod openat2;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod parallel;
mod procfs;
mod requests;
mod swaps;
mod twins;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod walk;
