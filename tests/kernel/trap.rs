//! A trap for this thread's system calls: chosen calls are answered with a chosen error, the others go through.
//!
//! It sits in the kernel (seccomp), because `lendir` makes its system calls without the C library's help. There is no way
//! back: a test that sets it runs in a process of its own.

use libc::{c_int, c_long, c_ulong, c_void, siginfo_t, sock_filter, sock_fprog, ucontext_t};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The system calls that can be made to fail.
const TRAPPED: [c_long; 5] =
    [libc::SYS_getdents64, libc::SYS_openat, libc::SYS_lseek, libc::SYS_fstatfs, libc::SYS_newfstatat];

/// The sixth argument of the calls that the trap itself makes; those it traps take five at most.
const OWN: u32 = u32::from_ne_bytes(*b"trap");

struct Plan {
    call: c_long,
    errno: c_int,
    fails: Box<dyn Fn(u32) -> bool + Send>,
    made: u32,
    hides_types: bool,
}

/// Locked in the signal handler too. That cannot deadlock: the signal is the answer to a system call of this thread, and
/// none of those that are trapped is made while the lock is held.
static PLAN: Mutex<Option<Plan>> = Mutex::new(None);

/// From now on `call` fails with `errno` each time that `fails` says so of its number, which counts from 1.
pub fn fail(call: c_long, errno: c_int, fails: impl Fn(u32) -> bool + Send + 'static) {
    *plan() = Some(Plan { call, errno, fails: Box::new(fails), made: 0, hides_types: false });
}

/// From now on every call goes through, and those of `call` are counted.
pub fn count(call: c_long) {
    fail(call, 0, |_| false);
}

/// Besides, `getdents64` says of no entry what it is.
pub fn hide_types() {
    if let Some(plan) = plan().as_mut() {
        plan.hides_types = true;
    }
}

/// How often the call that is counted has been made, failures included.
pub fn made() -> u32 {
    plan().as_ref().map_or(0, |plan| plan.made)
}

fn plan() -> MutexGuard<'static, Option<Plan>> {
    PLAN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets the trap for this thread and those it starts.
pub fn set_for_good() -> io::Result<()> {
    let step = |code: u32, jt, jf, k| sock_filter { code: u16::try_from(code).expect("BUG: 16 bits"), jt, jf, k };
    let load = |offset| step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset);
    let skip_if = |value, yes, no| step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, yes, no, value);
    let answer = |action| step(libc::BPF_RET | libc::BPF_K, 0, 0, action);

    // `struct seccomp_data`: the call's number at 0, its sixth argument at 56, low half first on a little-endian machine.
    let mut filter = vec![load(56), skip_if(OWN, 0, 1), answer(libc::SECCOMP_RET_ALLOW), load(0)];
    for call in TRAPPED {
        filter.push(skip_if(u32::try_from(call).expect("BUG: a system call's number"), 0, 1));
        filter.push(answer(libc::SECCOMP_RET_TRAP));
    }
    filter.push(answer(libc::SECCOMP_RET_ALLOW));
    let program =
        sock_fprog { len: u16::try_from(filter.len()).expect("BUG: a short filter"), filter: filter.as_mut_ptr() };

    // SAFETY: zero is a value of every field; the handler has the signature that SA_SIGINFO asks for.
    let action = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_trap as extern "C" fn(_, _, _) as usize;
        action.sa_flags = libc::SA_SIGINFO;
        action
    };
    let (on, off): (c_ulong, c_ulong) = (1, 0);
    // SAFETY: `action` and `program`, and the filter that it points to, are read during the calls only.
    let failed = unsafe {
        libc::sigaction(libc::SIGSYS, &raw const action, std::ptr::null_mut()) != 0
            || libc::prctl(libc::PR_SET_NO_NEW_PRIVS, on, off, off, off) != 0
            || libc::prctl(libc::PR_SET_SECCOMP, c_ulong::from(libc::SECCOMP_MODE_FILTER), &raw const program) != 0
    };
    if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
}

extern "C" fn on_trap(_: c_int, _: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: with SA_SIGINFO the third argument is the interrupted thread's context, which is ours until the return.
    let context = unsafe { &mut *context.cast::<ucontext_t>() };
    let (call, arguments) = registers(context);
    let mut plan = plan();
    let answer = match plan.as_mut().filter(|plan| plan.call == call) {
        Some(plan) => {
            plan.made += 1;
            if (plan.fails)(plan.made) { -c_long::from(plan.errno) } else { go_through(call, arguments) }
        }
        None => go_through(call, arguments),
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
        -1 => -c_long::from(io::Error::last_os_error().raw_os_error().expect("BUG: an errno")),
        answer => answer,
    }
}

/// Makes every `d_type` 0 in what `getdents64` wrote.
fn hide(records: *mut u8, len: usize) {
    let mut at = 0;
    while at < len {
        // SAFETY: the kernel has just written `len` bytes of records there: `d_reclen` stands at 16, `d_type` at 18.
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
    let register = |number: c_int| context.uc_mcontext.gregs[usize::try_from(number).expect("BUG: an index")];
    (register(REG_RAX), [REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_R8].map(register))
}

#[cfg(target_arch = "x86_64")]
fn set_answer(context: &mut ucontext_t, answer: c_long) {
    context.uc_mcontext.gregs[usize::try_from(libc::REG_RAX).expect("BUG: an index")] = answer;
}

#[cfg(target_arch = "aarch64")]
fn registers(context: &ucontext_t) -> (c_long, [c_long; 5]) {
    let register = |number: usize| c_long::from_ne_bytes(context.uc_mcontext.regs[number].to_ne_bytes());
    (register(8), [0, 1, 2, 3, 4].map(register))
}

#[cfg(target_arch = "aarch64")]
fn set_answer(context: &mut ucontext_t, answer: c_long) {
    context.uc_mcontext.regs[0] = u64::from_ne_bytes(answer.to_ne_bytes());
}
