//! Signals that only interrupt a system call: one to a chosen thread, or a storm of them to this
//! thread.

use crate::support::prelude::*;
use std::cell::Cell;
use std::{process, ptr};

/// The signal. The whole process has one handler for it, but each signal goes to one thread.
const SIGNAL: libc::c_int = libc::SIGUSR1;

thread_local! {
    static RECEIVED: Cell<u64> = const { Cell::new(0) };
}

/// Returns the number of signals that this thread has received.
pub fn received() -> u64 {
    RECEIVED.get()
}

extern "C" fn count(_: libc::c_int) {
    RECEIVED.set(RECEIVED.get() + 1);
}

/// Installs the handler, so a signal interrupts the system call of its thread instead of ending the
/// process.
pub fn catch() {
    // SAFETY:
    // - zeros are a valid `sigaction`, and the call only reads it;
    // - `count` is async-signal-safe: it touches nothing but a thread-local without initialization
    //   or destructor.
    let answer = unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = count as extern "C" fn(libc::c_int) as libc::sighandler_t;
        libc::sigaction(SIGNAL, &raw const action, ptr::null_mut())
    };
    assert_eq!(answer, 0, "sigaction failed");
}

/// Interrupts a thread of this process.
pub fn interrupt(thread: u32) {
    // SAFETY: the call takes no memory.
    unsafe { libc::syscall(libc::SYS_tgkill, process::id(), thread, SIGNAL) };
}

/// A timer that interrupts the thread that started it, every 300 µs until it is dropped.
pub struct Storm(libc::timer_t);

impl Storm {
    pub fn begin() -> Self {
        catch();
        let every = libc::timespec { tv_sec: 0, tv_nsec: 300_000 };
        let spec = libc::itimerspec { it_interval: every, it_value: every };
        let mut timer = ptr::null_mut();
        // SAFETY: zeros are a valid `sigevent`; the calls only read `event` and `spec`, and write
        // to `timer`.
        let answers = unsafe {
            let mut event: libc::sigevent = mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = SIGNAL;
            event.sigev_notify_thread_id = libc::gettid();
            let created = libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer);
            (created, libc::timer_settime(timer, 0, &raw const spec, ptr::null_mut()))
        };
        assert_eq!(answers, (0, 0), "timer_create or timer_settime failed");
        Self(timer)
    }
}

impl Drop for Storm {
    fn drop(&mut self) {
        // SAFETY: `begin` made this timer, and nothing else deletes it.
        unsafe { libc::timer_delete(self.0) };
    }
}
