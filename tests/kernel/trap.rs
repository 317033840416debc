//! A trap for the system calls of one thread: chosen calls fail with a chosen error, and all others
//! go through.
//!
//! The trap is in the kernel (seccomp), because `lendir` makes its system calls without the C
//! library. A thread cannot remove the trap, and the whole process has one handler for it. So a
//! test that sets the trap must run in a process of its own.

use crate::support::prelude::*;
use libc::{c_int, c_long, c_ulong, c_void, siginfo_t, sock_filter, sock_fprog, ucontext_t};
use rustix::thread::set_no_new_privs;
use std::sync::{MutexGuard, PoisonError};

pub const OPENAT: c_long = libc::SYS_openat;
pub const OPENAT2: c_long = libc::SYS_openat2;
pub const GETDENTS64: c_long = libc::SYS_getdents64;
pub const STATX: c_long = libc::SYS_statx;
pub const NEWFSTATAT: c_long = libc::SYS_newfstatat;
/// The calls of a walk.
pub const CALLS: [c_long; 5] = [OPENAT, OPENAT2, GETDENTS64, STATX, NEWFSTATAT];

/// The sixth argument of the calls that the trap itself makes. Trapped calls take at most five
/// arguments.
const OWN: u32 = u32::from_ne_bytes(*b"trap");

struct Plan {
    call: c_long,
    errno: c_int,
    fails: Box<dyn Fn(u32) -> bool + Send>,
    made: u32,
    hides_types: bool,
    /// The calls that always fail, and their errors.
    refused: Vec<(c_long, c_int)>,
}

/// The current plan. The signal handler locks it, too. That cannot deadlock: the signal comes from
/// a trapped system call of this thread, and the thread makes no such call while it holds the lock.
static PLAN: Mutex<Option<Plan>> = Mutex::new(None);

/// Makes `call` fail with `errno` from now on if `fails` returns `true` for its number. The first
/// call is number 1.
pub fn fail(call: c_long, errno: c_int, fails: impl Fn(u32) -> bool + Send + 'static) {
    *plan() = Some(Plan {
        call,
        errno,
        fails: Box::new(fails),
        made: 0,
        hides_types: false,
        refused: vec![],
    });
}

/// Lets every call go through from now on, and counts each `call`.
pub fn count(call: c_long) {
    fail(call, 0, |_| false);
}

/// Makes `getdents64` return no types, in addition.
pub fn hide_types() {
    if let Some(plan) = plan().as_mut() {
        plan.hides_types = true;
    }
}

/// Makes every `call` fail with `errno`, in addition.
pub fn refuse(call: c_long, errno: c_int) {
    if let Some(plan) = plan().as_mut() {
        plan.refused.push((call, errno));
    }
}

/// Returns how often the counted call was made, failures included.
pub fn made() -> u32 {
    plan().as_ref().map_or(0, |plan| plan.made)
}

fn plan() -> MutexGuard<'static, Option<Plan>> {
    PLAN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A guard. Once it is dropped, all calls go through, so the test can remove what it made.
pub struct Trap(());

/// Sets the trap for these `calls` in this thread and in the threads that it starts. Each call
/// takes at most five arguments. An error names what this machine lacks.
pub fn set(calls: &[c_long]) -> Result<Trap, String> {
    let refused = |error: io::Error| format!("a seccomp filter ({error})");
    let step = |code: u32, jt, jf, k| sock_filter {
        code: u16::try_from(code).expect("BUG: over 16 bits"),
        jt,
        jf,
        k,
    };
    let load = |offset| step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset);
    let skip_if =
        |value, yes, no| step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, yes, no, value);
    let answer = |action| step(libc::BPF_RET | libc::BPF_K, 0, 0, action);

    // `struct seccomp_data`: the call's number at 0, its sixth argument at 56, low half first on a
    // little-endian machine.
    let mut filter = vec![load(56), skip_if(OWN, 0, 1), answer(libc::SECCOMP_RET_ALLOW), load(0)];
    for &call in calls {
        filter.push(skip_if(
            u32::try_from(call).expect("BUG: a system call's number beyond `u32`"),
            0,
            1,
        ));
        filter.push(answer(libc::SECCOMP_RET_TRAP));
    }
    filter.push(answer(libc::SECCOMP_RET_ALLOW));
    let program = sock_fprog {
        len: u16::try_from(filter.len()).expect("BUG: over 16 bits"),
        filter: filter.as_mut_ptr(),
    };

    // SAFETY: zeros are a valid `sigaction`.
    let action = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_trap as extern "C" fn(_, _, _) as usize;
        action.sa_flags = libc::SA_SIGINFO;
        action
    };
    set_no_new_privs(true).map_err(|errno| refused(errno.into()))?;
    // SAFETY:
    // - the calls only read `action`, `program` and the filter that it points to, all of which
    //   outlive them;
    // - `on_trap` has the signature that SA_SIGINFO requires. It runs only in place of a system
    //   call: see `PLAN`.
    let failed = unsafe {
        libc::sigaction(libc::SIGSYS, &raw const action, std::ptr::null_mut()) != 0
            || libc::prctl(
                libc::PR_SET_SECCOMP,
                c_ulong::from(libc::SECCOMP_MODE_FILTER),
                &raw const program,
            ) != 0
    };
    if failed { Err(refused(io::Error::last_os_error())) } else { Ok(Trap(())) }
}

impl Drop for Trap {
    fn drop(&mut self) {
        *plan() = None;
    }
}

/// Runs `part` of `test` in a process of its own, with a trap for `calls` and an empty directory.
pub fn trapped(test: &str, calls: &[c_long], part: impl FnOnce(&Path)) {
    process::run(test, || {
        let scratch = Scratch::in_memory();
        match set(calls) {
            Ok(_trap) => part(scratch.path()),
            Err(missing) => machine::skip(test, &missing),
        }
    });
}

extern "C" fn on_trap(_: c_int, _: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: with SA_SIGINFO the third argument is the context of the interrupted thread, and
    // nothing else uses it before the return.
    let context = unsafe { &mut *context.cast::<ucontext_t>() };
    let (call, arguments) = registers(context);
    let mut plan = plan();
    let answer = if let Some(plan) = plan.as_mut().filter(|plan| plan.call == call) {
        plan.made += 1;
        if (plan.fails)(plan.made) {
            -c_long::from(plan.errno)
        } else {
            go_through(call, arguments)
        }
    } else {
        let mut refused = plan.iter().flat_map(|plan| &plan.refused);
        match refused.find(|refused| refused.0 == call) {
            Some((_, errno)) => -c_long::from(*errno),
            None => go_through(call, arguments),
        }
    };
    if call == libc::SYS_getdents64 && plan.as_ref().is_some_and(|plan| plan.hides_types) {
        hide(arguments[1] as *mut u8, usize::try_from(answer).unwrap_or(0));
    }
    set_answer(context, answer);
}

fn go_through(call: c_long, arguments: [c_long; 5]) -> c_long {
    let [first, second, third, fourth, fifth] = arguments;
    // SAFETY: the same call with the same arguments as the one that was trapped.
    match unsafe { libc::syscall(call, first, second, third, fourth, fifth, c_long::from(OWN)) } {
        -1 => -c_long::from(
            io::Error::last_os_error().raw_os_error().expect("BUG: -1 without an errno"),
        ),
        answer => answer,
    }
}

/// Sets every `d_type` to 0 in the records that `getdents64` wrote.
fn hide(records: *mut u8, len: usize) {
    let mut at = 0;
    while at < len {
        // SAFETY: the kernel has just written `len` bytes of whole records to this memory. Each
        // record has its length at 16 and its type at 18.
        unsafe {
            let record = records.add(at);
            at += usize::from(record.add(16).cast::<u16>().read_unaligned());
            record.add(18).write(0);
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn registers(context: &ucontext_t) -> (c_long, [c_long; 5]) {
    use libc::{REG_R8, REG_R10, REG_RAX, REG_RDI, REG_RDX, REG_RSI};
    let register = |number: c_int| {
        context.uc_mcontext.gregs[usize::try_from(number).expect("BUG: a negative index")]
    };
    (register(REG_RAX), [REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8].map(register))
}

#[cfg(target_arch = "x86_64")]
fn set_answer(context: &mut ucontext_t, answer: c_long) {
    context.uc_mcontext.gregs[usize::try_from(libc::REG_RAX).expect("BUG: a negative index")] =
        answer;
}

#[cfg(target_arch = "aarch64")]
fn registers(context: &ucontext_t) -> (c_long, [c_long; 5]) {
    let register =
        |number: usize| c_long::from_ne_bytes(context.uc_mcontext.regs[number].to_ne_bytes());
    (register(8), [0, 1, 2, 3, 4].map(register))
}

#[cfg(target_arch = "aarch64")]
fn set_answer(context: &mut ucontext_t, answer: c_long) {
    context.uc_mcontext.regs[0] = u64::from_ne_bytes(answer.to_ne_bytes());
}
