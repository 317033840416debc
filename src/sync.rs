//! The locks and threads of walks on several threads: from `std`, or from the scheduler in
//! `tests/shuttle`.

#[cfg(not(lendir_shuttle))]
use std as scheduled;

#[cfg(lendir_shuttle)]
#[path = "../tests/shuttle/std.rs"]
mod scheduled;
pub(crate) use scheduled::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, atomic};
pub(crate) use scheduled::thread;
