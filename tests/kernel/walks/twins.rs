//! Twins of removed directories: directories in the same place, with the same inode number and,
//! before the clock's next tick, the same birth time. A walk does not take a twin for the directory
//! that it closed.

use crate::file_systems::FileSystem;
use crate::mounted::Mounted;
use crate::report::{Report, SORTED, comb, level};
use crate::support::prelude::*;
use rustix::fs::{AtFlags, Mode, StatxFlags, mkdirat, renameat, statat, statx, unlinkat};
use rustix::time::{ClockId, clock_getres, clock_gettime};

/// The depth of the tree. The level at depth 1 is closed when the walk visits the last.
const DEPTH: usize = 4;

const OPTIONS: [TestOptions; 2] =
    [SORTED, TestOptions { second_visits: true, is_on_one_mount: true, ..SORTED }];

/// The age of the directory's birth time when its level is closed, in ticks of the clock. The clock
/// lags by up to two ticks, and so does the birth time.
const AGES: [f64; 6] = [0.0, 0.5, 1.11, 1.25, 1.5, 1.9];

/// Returns the number of twins for each option and for each of the [`AGES`].
fn twins() -> usize {
    if machine::runs_long() { 10 } else { 2 }
}

/// The longest wait for the other thread.
const WAIT: Duration = Duration::from_millis(50);

/// The inode number and birth time of a directory, by which a walk identifies it.
type Identity = (u64, Duration);

/// Returns the tick of the clock that stamps births.
fn tick() -> Duration {
    clock_getres(ClockId::RealtimeCoarse).try_into().unwrap()
}

fn wait_until_old((_, birth): Identity, age: f64) {
    let age = tick().mul_f64(age);
    while now() < birth + age {
        thread::sleep(tick() / 50);
    }
}

fn now() -> Duration {
    clock_gettime(ClockId::Realtime).try_into().unwrap()
}

/// The place where a tree gets its directory `d` once the walk has begun. All steps use
/// descriptors, so they take only a few microseconds.
struct Place {
    tree: OwnedFd,
    beside: OwnedFd,
}

impl Place {
    /// Makes the tree. `fill` makes the contents of `d`: `d`, and perhaps `z`.
    fn new(at: &Path, fill: fn(&Path)) -> Self {
        let [tree, beside] = ["tree", "beside"].map(|name| at.join(name));
        fs::create_dir_all(&tree).unwrap();
        fs::create_dir_all(beside.join("twin/OUTSIDE")).unwrap();
        fill(&beside);
        let [tree, beside] = [tree, beside].map(|path| lendir::open(path.as_path()).unwrap());
        Self { tree, beside }
    }

    /// Makes `d` at any time of a tick, after a sleep: the clock of an idle machine can lag by two
    /// ticks.
    fn make(&self) -> Identity {
        thread::sleep(Duration::from_nanos(
            (now().as_nanos() % tick().as_nanos()).try_into().unwrap(),
        ));
        mkdirat(&self.tree, c"d", Mode::RWXU).unwrap();
        for (aside, name) in [(c"d", c"d/d"), (c"z", c"d/z")] {
            let _ = renameat(&self.beside, aside, &self.tree, name); // there may be no `z`
        }
        self.identity()
    }

    /// Removes `d` and makes another one, with the same `d` and another `z` in it.
    fn replace(&self) -> Identity {
        for (aside, name) in [(c"d", c"d/d"), (c"z", c"d/z")] {
            let _ = renameat(&self.tree, name, &self.beside, aside);
        }
        unlinkat(&self.tree, c"d", AtFlags::REMOVEDIR).unwrap();
        mkdirat(&self.tree, c"d", Mode::RWXU).unwrap();
        renameat(&self.beside, c"d", &self.tree, c"d/d").unwrap();
        renameat(&self.beside, c"twin", &self.tree, c"d/z").unwrap();
        self.identity()
    }

    fn identity(&self) -> Identity {
        // Without the ctime: a query of the ctime makes the kernel's stamps finer from then on.
        let stat =
            statx(&self.tree, c"d", AtFlags::empty(), StatxFlags::INO | StatxFlags::BTIME).unwrap();
        (
            stat.stx_ino,
            Duration::new(stat.stx_btime.tv_sec.try_into().unwrap(), stat.stx_btime.tv_nsec),
        )
    }
}

/// Runs `test` on ext4 if a twin can have the same inode number and birth time there. Returns the
/// number of cases.
fn where_twins_occur(test: impl FnOnce(&Path) -> usize + Send) -> Result<usize, String> {
    let test = |mounted: &Mounted| {
        let is_perfect = |number| {
            let place = Place::new(&mounted.at.join(format!("control {number}")), |beside| {
                make(beside, &["d/"]);
            });
            place.make() == place.replace()
        };
        (0..40).any(is_perfect).then(|| test(&mounted.at))
    };
    let missing = "a kernel and a file system that make twins between two ticks of the clock";
    FileSystem::named("ext4").mounted(|_, _| {}, test)?.ok_or_else(|| missing.to_owned())
}

/// A closed level whose place a twin has taken is lost, with one error.
#[test]
fn walk_refuses_a_twin_of_the_same_tick() {
    let outcome = where_twins_occur(|mounted| {
        let whole = mounted.join("whole");
        comb(&whole, DEPTH);
        let all = Report::expected(&whole).unwrap();
        let lost = level(1);
        let expected = all.without(&[lost.join("z")]).with_errors([(&lost, ENOENT)]);
        let refused = AGES.map(|age| {
            let mut refused = 0;
            for (options, number) in OPTIONS
                .into_iter()
                .flat_map(|options| (0..twins()).map(move |number| (options, number)))
            {
                let at = mounted.join(format!("{options:?} {age} {number}"));
                let place = Place::new(&at, |beside| {
                    comb(&beside.join("d"), DEPTH - 2);
                    make(beside, &["z/file"]);
                });
                make(&at.join("tree"), &["z/file"]);
                let mut run = options.begin(at.join("tree"));
                let made = place.make();
                run.until(level(DEPTH - 1));
                wait_until_old(made, age);
                // At this step the level `d` is closed.
                run.until(level(DEPTH));
                if place.replace().0 != made.0 {
                    continue; // another file has the inode number
                }
                let report = run.finish();
                let is_right = !report.second_visits.contains(&lost);
                assert!(is_right, "{options:?}, {age} ticks: a twin has the second visit");
                assert_eq!(report.sorted(), expected, "{options:?}, {age} ticks: twin {number}");
                refused += 1;
            }
            assert!(refused > twins() / 2, "only {refused} twins have the inode number");
            refused
        });
        refused.iter().sum()
    });
    let row = "walk: twins with the same inode number, between two ticks";
    machine::skip_unless(row, outcome);
}

/// A thread that returns to a level of other threads identifies the level by what they noted, so it
/// refuses a twin.
#[test]
fn threads_refuse_a_twin_of_a_shared_level() {
    let _watchdog = machine::watchdog();
    let outcome = where_twins_occur(|mounted| {
        (0..25 * twins())
            .filter(|number| share_with_twin(&mounted.join(number.to_string())))
            .count()
    });
    let outcome = outcome.and_then(|refused| match refused {
        0 => Err("threads that run at the same time".to_owned()),
        _ => Ok(refused),
    });
    let row = "walk by several threads: twins with the same inode number, between two ticks";
    machine::skip_unless(row, outcome);
}

/// Walks a tree in which `d/d` has a directory for each of two threads. One of them leaves `d/d`
/// and `d` for good. Then the other makes a twin of `d`, and is the last one there.
///
/// Returns `true` if the twin has the inode number.
fn share_with_twin(at: &Path) -> bool {
    let place = Place::new(at, |beside| make(beside, &["d/1/", "d/2/"]));
    let run = POST.begin(at.join("tree"));
    let made = place.make();
    let [is_shared, is_done, has_number] = [(); 3].map(|()| AtomicBool::new(false));
    let parts = run.walk.run_parallel(2, |worker| {
        let mut visitor = Visitor::default();
        let mut is_first = false;
        let mut look = |dir: &Dir<'_>| {
            let path = dir.path();
            let is_below = path.starts_with("d/d") && path != level(2);
            if dir.is_second_visit() {
                let twin = statat(dir.fd(), c"z/OUTSIDE", AtFlags::SYMLINK_NOFOLLOW);
                assert!(twin.is_err(), "the second visit of {} is that of a twin", path.display());
                is_done.fetch_or(is_first && is_below, SeqCst);
                return;
            }
            is_first |= path.as_os_str().is_empty();
            if is_below && is_first {
                machine::wait(&is_shared, WAIT);
            } else if is_below {
                is_shared.store(true, SeqCst);
                machine::wait(&is_done, WAIT);
                has_number.store(place.replace().0 == made.0, SeqCst);
            }
        };
        while visitor.take(worker, &mut look, |_| Requests::ALL) {}
        visitor.visits
    });
    if !has_number.load(SeqCst) {
        return false;
    }
    let report = Report::of(parts.concat());
    assert_eq!(report.errors, [(level(1), ENOENT)]);
    assert!(
        !report.second_visits.contains(&level(1)) && report.second_visits.contains(&level(0)),
        "{report:?}"
    );
    true
}
