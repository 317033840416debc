//! Walks on several threads while calls fail. The tests among mounts and with a hostile server run
//! on several threads, too.

use crate::report::{Report, SORTED, comb};
use crate::support::prelude::*;
use crate::trap::{self, trapped};
use libc::{c_int, c_long};

const CALLS: [c_long; 4] =
    [libc::SYS_openat, libc::SYS_getdents64, libc::SYS_statx, libc::SYS_fcntl];

#[test]
fn failed_calls_lose_nothing_silently() {
    trapped("walks::parallel::failed_calls_lose_nothing_silently", &CALLS, |tree| {
        comb(tree, 10);
        let all = Report::expected(tree).unwrap();
        let walk = |options: TestOptions,
                    call: c_long,
                    errno: c_int,
                    fails: &'static (dyn Fn(u32) -> bool + Sync)| {
            let run = options.begin(tree);
            trap::fail(call, errno, fails);
            let visits = run.run_parallel(4, |_| ());
            let made = trap::made();
            trap::count(call);
            let expected: Vec<_> = options.expected_visits(tree).collect();
            assert_nothing_is_lost_silently(
                &visits,
                &expected,
                &format!("{options:?}, call {call}"),
            );
            (Report::of(visits), made)
        };
        for options in [PLAIN, POST, SORTED, TestOptions { second_visits: true, ..SORTED }] {
            for call in CALLS {
                let (report, calls) = walk(options, call, EIO, &|_| false);
                assert_eq!(report.sorted(), all);
                for nth in 1..=calls {
                    walk(options, call, EIO, Box::leak(Box::new(move |number| number == nth)));
                }
            }
            // A level whose descriptor cannot be duplicated is not split.
            let (report, _) = walk(options, libc::SYS_fcntl, EMFILE, &|_| true);
            assert_eq!(report.sorted(), all);
        }
        // If a thread has to return to a level that it cannot recognise, the level has no
        // second visit. Nothing else is lost.
        let mut errors = 0;
        for number in 0..5000 {
            // Chance decides whether a thread has to.
            if number >= 50 && errors > 0 {
                break;
            }
            let (report, _) = walk(POST, libc::SYS_statx, EIO, &|_| true);
            errors += report.errors.len();
            assert_eq!(Report { errors: vec![], ..report }.sorted(), all);
        }
        assert!(errors > 0, "no thread had to return");
    });
}
