//! Twins: directories made in the place of removed ones, with their inode numbers and, before the clock's next tick, their birth
//! times. The walk takes no twin for the directory that it closed.

use super::changes::WAYS;
use super::{Told, comb, level};
use crate::file_systems::FileSystem;
use crate::mounted::Mounted;
use crate::support::machine;
use crate::support::scan::errno;
use crate::support::tree::make;
use lendir::WalkDirs;
use libc::ENOENT;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Mode, StatxFlags, mkdirat, renameat, statat, statx, unlinkat};
use rustix::time::{ClockId, clock_getres, clock_gettime};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

/// The level at this depth is closed when the walk comes to the last.
const DEPTH: usize = 4;

/// How old, in ticks of the clock, the stamp of the directory's birth is when the level is closed. The clock lags by up to two
/// ticks, and so does the stamp.
const AGES: [f64; 6] = [0.0, 0.5, 1.11, 1.25, 1.5, 1.9];

/// How many are made for each way to walk, and for each of the [`AGES`].
fn twins() -> usize {
    if machine::runs_long() { 10 } else { 2 }
}

/// For the other thread, at most.
const WAIT: Duration = Duration::from_millis(50);

/// What identifies a directory to a walk: its inode number and birth.
type Identity = (u64, Duration);

/// The tick of the clock that stamps births.
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

/// Where a tree gets its directory `d` once the walk has begun. All of it by descriptors, so it takes only a few microseconds.
struct Place {
    tree: OwnedFd,
    beside: OwnedFd,
}

impl Place {
    /// `fill` makes what the directory holds: `d`, and perhaps `z`.
    fn new(at: &Path, fill: fn(&Path)) -> Self {
        let [tree, beside] = ["tree", "beside"].map(|name| at.join(name));
        fs::create_dir_all(&tree).unwrap();
        fs::create_dir_all(beside.join("twin/OUTSIDE")).unwrap();
        fill(&beside);
        let [tree, beside] = [tree, beside].map(|path| lendir::open(path.as_path()).unwrap());
        Self { tree, beside }
    }

    /// At any time of a tick, after a sleep: when the machine was idle, the clock can lag by two ticks.
    fn make(&self) -> Identity {
        thread::sleep(Duration::from_nanos(
            (now().as_nanos() % tick().as_nanos()).try_into().unwrap(),
        ));
        mkdirat(&self.tree, c"d", Mode::RWXU).unwrap();
        for (aside, name) in [(c"d", c"d/d"), (c"z", c"d/z")] {
            let _ = renameat(&self.beside, aside, &self.tree, name); // there need not be a `z`
        }
        self.identity()
    }

    /// Removes it, and makes another one, with the same `d` and another `z` in it.
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
        // Not the ctime: whoever asks for it makes the kernel's stamps finer from then on.
        let stat =
            statx(&self.tree, c"d", AtFlags::empty(), StatxFlags::INO | StatxFlags::BTIME).unwrap();
        (
            stat.stx_ino,
            Duration::new(stat.stx_btime.tv_sec.try_into().unwrap(), stat.stx_btime.tv_nsec),
        )
    }
}

/// Runs `test` on ext4, if a twin can have the inode number and the birth there. If not, it would show nothing. Returns the
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

#[test]
fn twin_made_between_two_ticks_is_refused() {
    let outcome = where_twins_occur(|mounted| {
        let whole = mounted.join("whole");
        comb(&whole, DEPTH);
        let all = Told::by_std(&whole).unwrap();
        let lost = level(1);
        let expected = all.without(&[lost.join("z")]).with_errors([(&lost, ENOENT)]);
        let refused = AGES.map(|age| {
            let mut refused = 0;
            for (way, number) in
                WAYS.into_iter().flat_map(|way| (0..twins()).map(move |number| (way, number)))
            {
                let at = mounted.join(format!("{way:?} {age} {number}"));
                let place = Place::new(&at, |beside| {
                    comb(&beside.join("d"), DEPTH - 2);
                    make(beside, &["z/file"]);
                });
                make(&at.join("tree"), &["z/file"]);
                let mut run = way.begin(at.join("tree"));
                let made = place.make();
                run.until(level(DEPTH - 1));
                wait_until_old(made, age);
                // At this step the level `d` is closed.
                run.until(level(DEPTH));
                if place.replace().0 != made.0 {
                    continue; // the number went elsewhere
                }
                let told = run.finish();
                assert!(
                    !told.left.contains(&lost),
                    "{way:?}, {age} ticks: a twin has the second visit"
                );
                assert_eq!(told.sorted(), expected, "{way:?}, {age} ticks: twin {number}");
                refused += 1;
            }
            assert!(refused > twins(), "only {refused} twins have the inode number");
            refused
        });
        refused.iter().sum()
    });
    let row = "walk: twins with the same inode number, between two ticks";
    machine::skip_unless(row, outcome);
}

/// A thread that goes on in a level that others have left identifies it by what they noted.
#[test]
fn twin_of_a_level_that_several_threads_share_is_refused() {
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

/// `d/d` has a directory for each of two threads. One of them leaves `d/d` and `d` for good. Then the other makes a twin of
/// `d`, and is the last one there.
///
/// Returns whether the twin has the inode number.
fn share_with_twin(at: &Path) -> bool {
    let place = Place::new(at, |beside| make(beside, &["d/1/", "d/2/"]));
    let tree = at.join("tree");
    let walk = WalkDirs::options().second_visits(true).open(&tree).unwrap();
    let made = place.make();
    let [is_shared, is_done, has_number] = [(); 3].map(|()| AtomicBool::new(false));
    let relative = |path: &Path| path.strip_prefix(&tree).unwrap().to_owned();
    let parts = walk.run_parallel(2, |worker| {
        let mut told = Told::default();
        let mut is_first = false;
        loop {
            let mut dir = match worker.next() {
                Ok(Some(dir)) => dir,
                Ok(None) => return told,
                Err(error) => {
                    told.errors.push((relative(error.path()), errno(&error)));
                    continue;
                }
            };
            let path = relative(dir.path());
            let is_below = path.starts_with("d/d") && path != level(2);
            if dir.is_second_visit() {
                let twin = statat(dir.fd(), c"z/OUTSIDE", AtFlags::SYMLINK_NOFOLLOW);
                assert!(twin.is_err(), "the second visit of {} is that of a twin", path.display());
                is_done.fetch_or(is_first && is_below, SeqCst);
                told.left.push(path);
                continue;
            }
            while dir.next().unwrap().is_some() {}
            is_first |= path.as_os_str().is_empty();
            if is_below && is_first {
                machine::wait(&is_shared, WAIT);
            } else if is_below {
                is_shared.store(true, SeqCst);
                machine::wait(&is_done, WAIT);
                has_number.store(place.replace().0 == made.0, SeqCst);
            }
            told.visited.push(path);
        }
    });
    if !has_number.load(SeqCst) {
        return false;
    }
    let told = parts.into_iter().fold(Told::default(), Told::and);
    assert_eq!(told.errors, [(level(1), ENOENT)]);
    assert!(!told.left.contains(&level(1)) && told.left.contains(&level(0)), "{told:?}");
    true
}
