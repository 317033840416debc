//! Walks by several threads while calls fail, and where threads are refused. The tests of one thread among mounts, and against a
//! hostile server, run on several threads too.

use super::{SORTED, Told, comb};
use crate::support::way::{PLAIN, POST, Way};

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))] // where `trap` knows the registers
mod faults {
    use super::*;
    use crate::faults::trapped;
    use crate::support::visits::assert_nothing_is_lost_silently;
    use crate::trap;
    use libc::{EIO, EMFILE, c_int, c_long};

    const CALLS: [c_long; 4] =
        [libc::SYS_openat, libc::SYS_getdents64, libc::SYS_statx, libc::SYS_fcntl];

    #[test]
    fn failing_calls_lose_nothing_silently() {
        trapped("walks::parallel::faults::failing_calls_lose_nothing_silently", &CALLS, |tree| {
            comb(tree, 10);
            let all = Told::by_std(tree).unwrap();
            let walk = |way: Way,
                        call: c_long,
                        errno: c_int,
                        fails: &'static (dyn Fn(u32) -> bool + Sync)| {
                let run = way.begin(tree);
                trap::fail(call, errno, fails);
                let visits = run.run_parallel(4).concat();
                let made = trap::made();
                trap::count(call);
                let expected: Vec<_> = way.by_std(tree).collect();
                assert_nothing_is_lost_silently(
                    &visits,
                    &expected,
                    &format!("{way:?}, call {call}"),
                );
                (Told::of(visits), made)
            };
            for way in [PLAIN, POST, SORTED, Way { second_visits: true, ..SORTED }] {
                for call in CALLS {
                    let (told, calls) = walk(way, call, EIO, &|_| false);
                    assert_eq!(told.sorted(), all);
                    for nth in 1..=calls {
                        walk(way, call, EIO, Box::leak(Box::new(move |number| number == nth)));
                    }
                }
                // What cannot be duplicated is not split off.
                let (told, _) = walk(way, libc::SYS_fcntl, EMFILE, &|_| true);
                assert_eq!(told.sorted(), all);
            }
            // If a thread has to come back to a level that it cannot recognise, the level has no second visit. Nothing else is lost.
            let mut errors = 0;
            for number in 0..5000 {
                // Chance decides whether a thread has to.
                if number >= 50 && errors > 0 {
                    break;
                }
                let (told, _) = walk(POST, libc::SYS_statx, EIO, &|_| true);
                errors += told.errors.len();
                assert_eq!(Told { errors: vec![], ..told }.sorted(), all);
            }
            assert!(errors > 0, "no thread had to come back");
        });
    }
}
