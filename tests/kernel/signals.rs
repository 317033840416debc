//! A signal to a chosen thread, which only interrupts its system call.

use crate::support::prelude::*;
use std::{process, ptr};

/// The signal. The whole process has one handler for it, but each signal goes to one thread.
const SIGNAL: libc::c_int = libc::SIGUSR1;

extern "C" fn ignore(_: libc::c_int) {}

/// Installs the handler, so a signal interrupts the system call of its thread instead of ending the
/// process.
pub fn catch() {
    // SAFETY:
    // - zeros are a valid `sigaction`, and the call only reads it;
    // - `ignore` is async-signal-safe, because it does nothing.
    let answer = unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = ignore as extern "C" fn(libc::c_int) as libc::sighandler_t;
        libc::sigaction(SIGNAL, &raw const action, ptr::null_mut())
    };
    assert_eq!(answer, 0, "sigaction failed");
}

/// Interrupts a thread of this process.
pub fn interrupt(thread: u32) {
    // SAFETY: the call takes no memory.
    unsafe { libc::syscall(libc::SYS_tgkill, process::id(), thread, SIGNAL) };
}
