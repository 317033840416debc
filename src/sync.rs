//! The locks and threads that several threads of a walk use: those of `std`, or of the scheduler in `tests/shuttle`.

#[cfg(not(lendir_shuttle))]
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, atomic};
#[cfg(not(lendir_shuttle))]
pub(crate) use std::thread;

#[cfg(lendir_shuttle)]
#[path = "../tests/shuttle/std.rs"]
mod scheduled;
#[cfg(lendir_shuttle)]
pub(crate) use scheduled::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, atomic};
#[cfg(lendir_shuttle)]
pub(crate) use scheduled::thread;
