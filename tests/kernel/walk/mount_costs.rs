//! What a mount point costs a walk by default: an `openat2` that says so, an `openat`, and an `fstatfs` for the end marker.

use super::{PLAIN, Told, comb};
use crate::mounted::in_own_namespace;
use crate::support::machine;
use crate::support::process;
use crate::trap;
use libc::c_long;
use rustix::mount::{MountFlags, mount};
use std::fs;

const CALLS: [c_long; 4] = [libc::SYS_openat, libc::SYS_openat2, libc::SYS_getdents64, libc::SYS_fstatfs];

#[test]
fn mount_point_takes_two_calls_more() {
    const MOUNTS: u32 = 5;
    process::run("walk::mount_costs::mount_point_takes_two_calls_more", 60, || {
        let row = "walk: what a mount point costs";
        let outcome = in_own_namespace(|scratch| {
            let tree = scratch.join("tree");
            comb(&tree, 6);
            let on_tmpfs = u32::try_from(Told::by_std(&tree).unwrap().visited.len()).unwrap();
            for number in 0..MOUNTS {
                let point = tree.join(format!("d/d/{number}"));
                fs::create_dir(&point).unwrap();
                mount("none", &point, "ramfs", MountFlags::empty(), c"").unwrap();
                comb(&point, 3);
            }
            let all = Told::by_std(&tree).unwrap();
            let directories = u32::try_from(all.visited.len()).unwrap();
            trap::set_for_good(&CALLS).map_err(|error| format!("a seccomp filter ({error})"))?;
            let marked = lendir::open(&tree).and_then(lendir::EndMarker::of).unwrap() != lendir::EndMarker::NONE;
            let reads_of_tmpfs = if marked { on_tmpfs } else { 2 * on_tmpfs };
            for (call, expected) in CALLS.into_iter().zip([
                MOUNTS,
                directories - 1,
                reads_of_tmpfs + 2 * (directories - on_tmpfs),
                1 + MOUNTS,
            ]) {
                let run = PLAIN.begin(&tree);
                trap::count(call);
                assert_eq!(run.finish().sorted(), all);
                assert_eq!(trap::made(), expected, "call {call}");
            }
            Ok(CALLS.len())
        });
        match outcome.and_then(|outcome| outcome) {
            Ok(cases) => {
                machine::passed(row, cases, "calls counted: one `openat` and one `fstatfs` for each of 5 mounts")
            }
            Err(missing) => machine::skip(row, &missing),
        }
    });
}
