//! A model that crosses the features: random words at first and second visits, levels that are closed and lost, few
//! descriptors, threads, states that panic, rights that are missing, and a tree that changes meanwhile. It does not know what
//! a walk lends. It checks what holds of every walk. `LENDIR_SEED=7` runs one case.

use crate::support::machine::{passed, runs_long};
use crate::support::process::{self, as_nobody};
use crate::support::scan::errno;
use crate::support::tree::{self, Random, Tree};
use crate::visits::Next;
use crate::walk_bounds::{leave_room, open_descriptors};
use lendir::{Dir, Error, FileType, Listing, Order, Walk};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{CWD, RenameFlags, fstat, renameat_with};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::any::Any;
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind, set_hook, take_hook};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::{env, iter, mem, thread, vec};

/// What a caller does with each directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Caller {
    /// Random calls, which name nothing at second visits.
    Words,
    /// Random calls.
    WordsAgain,
    /// It enters a few directories at a time, at second visits too.
    FewAtATime,
    /// So does this one, the recipe of strict pre-order. It is for one thread.
    Recipe,
}

const CALLERS: [Caller; 4] = [Caller::Words, Caller::WordsAgain, Caller::FewAtATime, Caller::Recipe];

/// What a seed stands for.
#[derive(Debug)]
struct Case {
    seed: u64,
    caller: Caller,
    /// At a visit it makes fewer calls than this.
    calls: usize,
    /// 0 is a walk that is not spread.
    threads: usize,
    max_open: usize,
    second_visits: bool,
    same_mount: bool,
    /// How many descriptors the process has.
    room: Option<usize>,
    /// After so many steps a thread returns.
    leaves_after: usize,
    /// The state panics at this clone, or at this drop; at 0 it does not.
    panics_at: [usize; 2],
    /// Whether the caller goes on after that.
    catches: bool,
    /// At one visit of so many, the thread changes the tree.
    change_in: usize,
    /// How many changes another thread makes.
    others: usize,
}

impl Case {
    fn new(seed: u64) -> Self {
        let mut random = Random::of(&seed);
        let mut one_of = |choice: &[usize]| choice[random.below(choice.len())];
        let caller = CALLERS[one_of(&[0, 1, 2, 3])];
        let threads = one_of(if caller == Caller::Recipe { &[0, 1] } else { &[0, 1, 2, 2, 8] });
        Self {
            seed,
            caller,
            threads,
            calls: one_of(&[1, 2, 4, 12]),
            max_open: one_of(&[4, 4, 5, 8, 32]),
            second_visits: matches!(caller, Caller::FewAtATime | Caller::Recipe) || one_of(&[0, 1, 1, 1]) > 0,
            same_mount: one_of(&[0, 0, 1]) > 0,
            room: [Some(one_of(&[3, 5, 8, 12, 20])), None, None][one_of(&[0, 1, 2])],
            leaves_after: one_of(&[usize::MAX, usize::MAX, usize::MAX, 20]),
            panics_at: [one_of(&[0, 0, 0, 3, 10, 30]), one_of(&[0, 0, 0, 3, 10, 30, 100])],
            catches: one_of(&[0, 1, 1]) > 0,
            change_in: one_of(&[usize::MAX, 4, 10, 30]),
            others: one_of(&[0, 0, 0, 300]),
        }
    }
}

/// What a walk carries down. It panics once, without a message.
struct State {
    fuses: Arc<[AtomicUsize; 2]>,
    /// The last visit of this directory or, before its first one, of that above.
    visit: Option<usize>,
    is_below_link: bool,
}

const BLOWN: &str = "on purpose";

fn burn(fuse: &AtomicUsize) {
    if fuse.fetch_sub(1, SeqCst) == 1 && !thread::panicking() {
        resume_unwind(Box::new(BLOWN));
    }
}

fn is_blown(panic: &dyn Any) -> bool {
    panic.downcast_ref() == Some(&BLOWN)
}

impl Clone for State {
    fn clone(&self) -> Self {
        burn(&self.fuses[0]);
        Self { fuses: Arc::clone(&self.fuses), ..*self }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        burn(&self.fuses[1]);
    }
}

/// Device and inode number.
type Id = (u64, u64);

fn id(dir: BorrowedFd<'_>) -> Id {
    let stat = fstat(dir).unwrap();
    (stat.st_dev, stat.st_ino)
}

struct Visit {
    path: OsString,
    id: Id,
    /// The visit of the directory above at which it was entered.
    above: Option<usize>,
    is_first: bool,
    /// Whether the directory was visited once more.
    is_over: bool,
    /// How many visits below it have not ended.
    running: usize,
    /// What was entered then.
    entered: HashSet<Vec<u8>>,
    said: Said,
}

/// What a caller has said at a visit, and what it knows.
#[derive(Default)]
struct Said {
    /// The names of its entries.
    names: Vec<Vec<u8>>,
    /// Whether it got the error of reading it.
    is_told: bool,
    /// Whether it named what to enter.
    has_named: bool,
}

/// All visits and errors of a walk.
#[derive(Default)]
struct Log {
    visits: Vec<Visit>,
    errors: HashMap<OsString, usize>,
}

impl Log {
    fn begin(&mut self, dir: &mut Dir<'_, State>, place: &Place) -> usize {
        let (number, is_first, own) = (self.visits.len(), !dir.is_second_visit(), id(dir.fd()));
        let state = dir.state_mut();
        let before = state.visit.replace(number);
        let above = if is_first { before } else { self.visits[before.unwrap()].above };
        if is_first {
            let is_new = above.is_none_or(|above| self.visits[above].entered.insert(dir.name().to_vec()));
            assert!(is_new, "{dir:?} was entered twice");
            let is_link = dir.is_link();
            dir.state_mut().is_below_link |= is_link;
            assert!(!place.outside.contains(&own) || dir.state().is_below_link, "{dir:?} is outside of the tree");
        } else {
            let before = &mut self.visits[before.unwrap()];
            assert!(before.path == dir.path() && before.id == own, "{dir:?} was another directory before");
            assert!(!mem::replace(&mut before.is_over, true), "{dir:?} has two second visits");
            assert_eq!(before.running, 0, "{dir:?} is visited again before all below it");
            if let Some(parent) = dir.parent() {
                assert_eq!(id(parent), self.visits[above.unwrap()].id, "{dir:?} has another parent");
            }
        }
        for above in self.ways_up(above) {
            let above = &mut self.visits[above];
            assert!(!above.is_over, "{dir:?} is visited after the second visit of {:?}", above.path);
            above.running += 1;
        }
        let names = before
            .filter(|_| !is_first)
            .map(|before| mem::take(&mut self.visits[before].said.names))
            .unwrap_or_default();
        self.visits.push(Visit {
            path: dir.path().into(),
            id: own,
            above,
            is_first,
            is_over: false,
            running: 0,
            entered: HashSet::new(),
            said: Said { names, ..Said::default() },
        });
        number
    }

    fn end(&mut self, number: usize, said: Said) {
        self.visits[number].said = said;
        for above in self.ways_up(self.visits[number].above) {
            self.visits[above].running -= 1;
        }
    }

    fn ways_up(&self, from: Option<usize>) -> Vec<usize> {
        iter::successors(from, |visit| self.visits[*visit].above).collect()
    }

    fn error(&mut self, error: &Error, case: &Case) {
        let errnos = [libc::ENOENT, libc::ENOTDIR, libc::EACCES, libc::ELOOP, libc::EINVAL];
        assert!(errnos.contains(&errno(error)) || case.room.is_some() && errno(error) == libc::EMFILE, "{error}");
        *self.errors.entry(error.path().into()).or_default() += 1;
    }

    /// Of each name, a visit enters a directory or has an error. A directory can have one when it is read, and one when its
    /// level is lost, which is why it has no second visit.
    fn check(&self, is_whole: bool) {
        let read = |visit: &Visit| visit.is_first && !visit.said.is_told;
        let lost = |visit: &Visit| !visit.is_over && (visit.is_first || visit.said.has_named);
        for (path, count) in &self.errors {
            let as_path = Path::new(path);
            let name = as_path.as_os_str().as_bytes().rsplit(|byte| *byte == b'/').next().unwrap();
            let above = &path.as_bytes()[..path.len() - name.len() - 1];
            let most = |visit: &Visit| {
                let refused = visit.path.as_bytes() == above && !visit.entered.contains(name);
                let own = visit.path == *path;
                usize::from(refused) + usize::from(own && read(visit)) + usize::from(own && lost(visit))
            };
            let most: usize = self.visits.iter().map(most).sum();
            assert!(*count <= most, "{count} errors of {path:?}, at most {most}");
        }
        let mut unpaired = self.visits.iter().filter(|visit| is_whole && visit.is_first && !visit.is_over);
        let silent = unpaired.find(|visit| !self.errors.contains_key(&visit.path));
        assert!(silent.is_none(), "{:?} has no second visit", silent.map(|visit| &visit.path));
    }
}

/// Where a walk takes place: its root, a directory beside it, and what it must not enter.
struct Place {
    root: PathBuf,
    aside: PathBuf,
    dirs: Vec<PathBuf>,
    /// Where links lead out of the tree.
    out: PathBuf,
    /// What is there, and `aside`.
    outside: HashSet<Id>,
    moved: AtomicUsize,
}

impl Place {
    /// Names are numbers, which `out` does not have.
    fn new(at: &Path, random: &mut Random) -> Self {
        let [root, aside, out] = ["root", "aside", "out"].map(|name| at.join(name));
        tree::make(at, &["root/", "aside/", "out/x/y/"]);
        let straight = [1, 2, 8, 32][random.below(4)];
        let mut dirs = vec![root.clone()];
        for number in 0..random.below(80) {
            let number = number.to_string();
            let dir = if random.below(straight) > 0 { dirs.len() - 1 } else { random.below(dirs.len()) };
            let made = dirs[dir].join(&number);
            match random.below(20) {
                0 => drop(File::create(made).unwrap()),
                1 => symlink([&*out, Path::new(".."), &dirs[random.below(dirs.len())]][random.below(3)], made).unwrap(),
                _ => {
                    fs::create_dir(&made).unwrap();
                    dirs.push(made);
                }
            }
        }
        if random.below(4) == 0 && dirs.len() > 1 {
            (0..random.below(4)).for_each(|_| forbid(&dirs[1 + random.below(dirs.len() - 1)], random));
        }
        let outside =
            [&out, &out.join("x"), &out.join("x/y"), &aside].map(|path| id(lendir::open(path).unwrap().as_fd()));
        Self { root, aside, dirs, out, outside: outside.into(), moved: AtomicUsize::new(0) }
    }

    /// Whether or not it can. The paths may lead through links, but only to `out`.
    fn change(&self, random: &mut Random) {
        let any = |random: &mut Random| &self.dirs[random.below(self.dirs.len())];
        let (from, to) = (any(random), any(random));
        if *from == self.root {
            return;
        }
        match random.below(8) {
            0 | 1 => self.move_aside(from),
            2 => {
                let number = random.below(1 + self.moved.load(SeqCst)).to_string();
                let _ = fs::rename(self.aside.join(&number), to.join(format!("back-{number}")));
            }
            3 => drop(renameat_with(CWD, from, CWD, to, RenameFlags::EXCHANGE)),
            4 => {
                let link = self.aside.join(format!("link-{}", self.moved.fetch_add(1, SeqCst)));
                let _ = symlink(&self.out, &link);
                let _ = renameat_with(CWD, from, CWD, link, RenameFlags::EXCHANGE);
            }
            5 => drop(fs::remove_dir(from)),
            6 => drop(fs::create_dir(to.join("new"))),
            _ => forbid(from, random),
        }
    }

    fn move_aside(&self, dir: &Path) {
        let number = self.moved.fetch_add(1, SeqCst).to_string();
        let _ = fs::rename(dir, self.aside.join(number));
    }

    /// Cuts a level above `dir` off from what is below it, and moves it.
    fn cut(&self, dir: &Dir<'_, State>, random: &mut Random) {
        if dir.depth() > 1 && !dir.state().is_below_link {
            let up = random.below(dir.depth() - 1);
            dir.path().ancestors().skip(up).take(2).for_each(|dir| self.move_aside(dir));
        }
    }
}

fn forbid(dir: &Path, random: &mut Random) {
    let _ = fs::set_permissions(dir, Permissions::from_mode([0o300, 0o600, 0, 0o700][random.below(4)]));
}

/// A thread's caller.
struct Thread<'a> {
    case: &'a Case,
    place: &'a Place,
    log: &'a Mutex<Log>,
    random: Random,
    listing: Listing,
    /// The recipe's.
    left: Vec<vec::IntoIter<(Vec<u8>, FileType)>>,
}

impl Thread<'_> {
    /// The loop.
    fn walk(&mut self, walk: &mut impl Next<State>) {
        for _ in 0..self.case.leaves_after {
            match catch_unwind(AssertUnwindSafe(|| Ok(walk.next_dir()?.map(|dir| self.visit(dir))))) {
                Ok(Ok(None)) => return,
                Ok(Ok(Some(()))) => {}
                Ok(Err(error)) => self.log.lock().unwrap().error(&error, self.case),
                Err(panic) if self.case.catches && is_blown(&*panic) => {}
                Err(panic) => resume_unwind(panic),
            }
        }
    }

    fn visit(&mut self, mut dir: Dir<'_, State>) {
        let mut log = self.log.lock().unwrap();
        let visit = log.begin(&mut dir, self.place);
        let mut said = mem::take(&mut log.visits[visit].said);
        drop(log);
        if self.random.below(self.case.change_in) == 0 {
            match self.random.below(4) {
                0..3 => self.place.cut(&dir, &mut self.random),
                _ => self.place.change(&mut self.random),
            }
        }
        match self.case.caller {
            // What is entered again and again has no end.
            _ if visit > 400 => dir.skip_all(),
            Caller::Words if dir.is_second_visit() => {}
            Caller::Words | Caller::WordsAgain => self.words(&mut dir, &mut said),
            Caller::FewAtATime => self.few_at_a_time(&mut dir, &mut said),
            Caller::Recipe => self.recipe(&mut dir, &mut said),
        }
        self.log.lock().unwrap().end(visit, said);
    }

    fn words(&mut self, dir: &mut Dir<'_, State>, said: &mut Said) {
        let mut is_listed = false;
        for _ in 0..self.random.below(self.case.calls) {
            let name = match self.random.below(8) {
                0 => b"..".to_vec(),
                1 => self.random.below(80).to_string().into(),
                _ if said.names.is_empty() => b"missing".to_vec(),
                _ => said.names[self.random.below(said.names.len())].clone(),
            };
            match self.random.below(14) {
                0 | 1 => drop(said.next(dir)),
                2..6 => while said.next(dir) {},
                6 => said.told(dir.count().is_err()),
                7 => {
                    said.listed(dir, &mut self.listing);
                    is_listed = true;
                }
                8 if !is_listed => [Dir::skip_entry, Dir::follow_entry][self.random.below(2)](dir),
                9 => said.has_named |= dir.enter(name),
                10 => said.has_named |= dir.follow_name(name),
                11 => dir.skip_name(name),
                12 if self.random.below(8) == 0 => dir.skip_all(),
                _ => {}
            }
        }
    }

    fn few_at_a_time(&mut self, dir: &mut Dir<'_, State>, said: &mut Said) {
        if !dir.is_second_visit() {
            said.listed(dir, &mut self.listing);
            dir.skip_all();
        }
        let rest = said.names.len().saturating_sub(1 + self.random.below(3));
        for name in said.names.split_off(rest) {
            said.has_named |= dir.enter(name);
        }
    }

    /// As in `src/recipes.md`.
    fn recipe(&mut self, dir: &mut Dir<'_, State>, said: &mut Said) {
        let (depth, left) = (dir.depth(), &mut self.left);
        left.truncate(depth + usize::from(dir.is_second_visit()));
        if !dir.is_second_visit() {
            said.is_told |= dir.read_into(&mut self.listing).is_err();
            let entries: Vec<_> = self.listing.iter().map(|entry| (entry.name().to_vec(), entry.file_type())).collect();
            left.push(entries.into_iter());
            dir.skip_all();
        }
        said.has_named = left[depth].any(|(name, file_type)| file_type == FileType::Directory && dir.enter(name));
    }
}

impl Said {
    fn next(&mut self, dir: &mut Dir<'_, State>) -> bool {
        let next = dir.next().map(|entry| entry.map(|entry| entry.name().to_vec()));
        self.told(next.is_err());
        let name = next.unwrap_or(None);
        let is_some = name.is_some();
        self.names.extend(name);
        is_some
    }

    fn told(&mut self, is_error: bool) {
        assert!(!(is_error && self.is_told), "an error came twice");
        self.is_told |= is_error;
    }

    /// Its error can come again.
    fn listed(&mut self, dir: &mut Dir<'_, State>, listing: &mut Listing) {
        self.is_told |= dir.read_into(listing).is_err();
        self.names.extend(listing.iter().map(|entry| entry.name().to_vec()));
    }
}

/// Walks as the case says. Returns whether the walk came to its end.
fn walk(case: &Case, place: &Place, log: &Mutex<Log>) -> bool {
    let thread = |index: usize| Thread {
        case,
        place,
        log,
        random: Random::of(&(case.seed, index)),
        listing: Listing::with_order(Order::Path),
        left: vec![],
    };
    let options = Walk::options().max_open(case.max_open).second_visits(case.second_visits).same_mount(case.same_mount);
    let state = State { fuses: Arc::new(case.panics_at.map(AtomicUsize::new)), visit: None, is_below_link: false };
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut walk = options.with_state(state).open(&place.root).unwrap();
        match case.threads {
            0 => thread(0).walk(&mut walk),
            threads => drop(walk.spread(threads, |worker| thread(worker.index()).walk(worker))),
        }
    }));
    outcome.inspect_err(|panic| assert!(is_blown(&**panic))).is_ok() && case.leaves_after == usize::MAX
}

/// Returns how many visits there were.
fn check(case: &Case, place: &Place) -> usize {
    let (log, is_over, before) = (Mutex::default(), AtomicBool::new(false), open_descriptors());
    let others = case.room.map(leave_room);
    let is_whole = thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Random::of(&(case.seed, "others"));
            (0..case.others).take_while(|_| !is_over.load(SeqCst)).for_each(|_| place.change(&mut random));
        });
        let is_whole = walk(case, place, &log);
        is_over.store(true, SeqCst);
        is_whole
    });
    drop(others);
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    assert_eq!(open_descriptors(), before, "a descriptor was left open");
    let log = log.into_inner().unwrap();
    log.check(is_whole && case.second_visits);
    log.visits.len()
}

#[test]
fn what_holds_of_every_walk_holds_of_any() {
    const TEST: &str = "model::what_holds_of_every_walk_holds_of_any";
    process::run(TEST, if runs_long() { 1800 } else { 120 }, || {
        as_nobody(|| {
            let one = env::var("LENDIR_SEED").ok().map(|seed| seed.parse().unwrap());
            let seeds = one.map_or(0..if runs_long() { 50_000 } else { 500 }, |seed| seed..seed + 1);
            let is_broken = Arc::new(AtomicBool::new(false));
            // For panics that another one hides, too: those on purpose have no message.
            let (report, breaks) = (take_hook(), Arc::clone(&is_broken));
            set_hook(Box::new(move |panic| {
                breaks.store(true, SeqCst);
                report(panic);
            }));
            let (tree, mut visits) = (Tree::new(|_| ()), 0);
            let cases: Vec<_> = seeds.map(Case::new).collect();
            // All at once, because a walk waits before it closes a level that was just made.
            for cases in cases.chunks(50) {
                let place = |case: &Case| Place::new(&tree.path().join(case.seed.to_string()), &mut Random(case.seed));
                let places: Vec<_> = cases.iter().map(place).collect();
                for (case, place) in cases.iter().zip(&places) {
                    let checked = catch_unwind(AssertUnwindSafe(|| check(case, place)));
                    assert!(!is_broken.load(SeqCst), "{case:?}");
                    visits += checked.unwrap_or_else(|panic| resume_unwind(panic));
                }
            }
            passed(
                "walk: a model of any calls and changes",
                visits,
                "visits of any walk, of which a model checks what holds of all",
            );
        });
    });
}
