//! The locks and threads that several threads of a walk use: those of `std`, or of the scheduler in `tests/shuttle`.

#[cfg(not(lendir_shuttle))]
use std as scheduled;

#[cfg(lendir_shuttle)]
#[path = "../tests/shuttle/std.rs"]
mod scheduled;
pub(crate) use scheduled::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, atomic, mpsc};
pub(crate) use scheduled::thread;
