//! A model that combines the features: the calls of `support::requests`, closed and lost levels, few
//! descriptors, threads, states that panic, missing rights, and a tree that changes meanwhile. It
//! does not know what is yielded, but checks what holds for every `WalkDirs` and every `Walk`. `LENDIR_SEED=7`
//! runs one case.

use crate::support::fuses::{Fuses, is_blown};
use crate::support::prelude::*;
use crate::support::requests::Request;
use rustix::fs::{CWD, RenameFlags, fstat, renameat_with};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::HashSet;
use std::env;
use std::ffi::OsString;
use std::panic::{resume_unwind, set_hook, take_hook};

/// The case of a seed.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools, reason = "options of a walk, and of its caller")]
struct Case {
    seed: u64,
    /// Whether the tree is read with a `Walk`.
    is_entry_walk: bool,
    /// The number of threads. 0 is a walk without `run_parallel` or without reading ahead.
    threads: usize,
    max_open: usize,
    second_visits: bool,
    same_mount: bool,
    /// The number of descriptors of the process.
    room: Option<usize>,
    /// The number of steps after which a thread returns.
    leaves_after: usize,
    /// The clone and the drop of the state that panic, or 0. A drop that panics can lose an error.
    panics_at: [usize; 2],
    /// Whether the caller continues after a panic.
    catches: bool,
    /// A thread changes the tree at one of this number of visits.
    change_in: usize,
    /// The number of changes by another thread.
    others: usize,
}

impl Case {
    fn new(seed: u64) -> Self {
        let mut random = Random::of(&seed);
        let mut one_of = |choice: &[usize]| choice[random.below(choice.len())];
        Self {
            seed,
            is_entry_walk: one_of(&[0, 0, 1]) > 0,
            threads: one_of(&[0, 1, 2, 2, 8]),
            max_open: one_of(&[4, 4, 4, 5, 32]),
            second_visits: one_of(&[0, 1, 1, 1]) > 0,
            same_mount: one_of(&[0, 0, 1]) > 0,
            room: [Some(one_of(&[3, 5, 8, 12, 20])), None, None][one_of(&[0, 1, 2])],
            leaves_after: one_of(&[usize::MAX, usize::MAX, usize::MAX, 20]),
            panics_at: [one_of(&[0, 0, 0, 3, 10, 30]), one_of(&[0, 0, 0, 3, 10, 30, 100])],
            catches: one_of(&[0, 1, 1]) > 0,
            change_in: one_of(&[usize::MAX, 3, 6, 20]),
            others: one_of(&[0, 0, 0, 300]),
        }
    }
}

/// The state of a walk, which can panic.
#[derive(Clone)]
struct State {
    _fuses: Fuses,
    /// The index of the first visit of this directory or, before that visit, of its parent.
    visit: Option<usize>,
    is_below_link: bool,
}

/// A device and an inode number.
type Id = (u64, u64);

fn id(dir: BorrowedFd<'_>) -> Id {
    let stat = fstat(dir).unwrap();
    (stat.st_dev, stat.st_ino)
}

/// A directory that was yielded.
struct Visit {
    path: OsString,
    id: Id,
    /// The index of the parent's visit.
    above: Option<usize>,
    /// Whether the second visit has come.
    is_over: bool,
    /// The number of visits in its subtree that have not ended.
    running: usize,
    /// The number of times that each name was entered in it, and that a name may be.
    entered: HashMap<Vec<u8>, usize>,
    may_enter: usize,
    /// Whether its caller got the error of reading it.
    is_reported: bool,
}

/// All visits and errors of a walk.
#[derive(Default)]
struct Log {
    visits: Vec<Visit>,
    errors: HashMap<OsString, usize>,
}

impl Log {
    fn begin(&mut self, dir: &mut Dir<'_, State>, requests: &Requests, place: &Place) -> usize {
        let own = id(dir.fd());
        let is_followed = requests.last_at(dir.path()) == Some(Request::Follow);
        let above = dir.state_mut().visit.replace(self.visits.len());
        if let Some(above) = above.map(|above| &mut self.visits[above]) {
            let times = above.entered.entry(dir.name().to_vec()).or_default();
            *times += 1;
            assert!(*times <= above.may_enter, "{dir:?} was entered {times} times");
        }
        dir.state_mut().is_below_link |= is_followed;
        let is_right = !place.outside.contains(&own) || dir.state().is_below_link;
        assert!(is_right, "{dir:?} is outside of the tree");
        for above in self.ways_up(above) {
            let above = &mut self.visits[above];
            let is_right = !above.is_over;
            assert!(is_right, "{dir:?} is visited after the second visit of {:?}", above.path);
            above.running += 1;
        }
        self.visits.push(Visit {
            path: dir.path().into(),
            id: own,
            above,
            is_over: false,
            running: 0,
            entered: HashMap::new(),
            may_enter: if requests.names_at.is_some() { 2 } else { 1 },
            is_reported: false,
        });
        self.visits.len() - 1
    }

    fn end(&mut self, number: usize, is_reported: bool) {
        self.visits[number].is_reported = is_reported;
        for above in self.ways_up(self.visits[number].above) {
            self.visits[above].running -= 1;
        }
    }

    fn again(&mut self, dir: &Dir<'_, State>) {
        let number = dir.state().visit.expect("a second visit before the first");
        let above = self.visits[number].above;
        if let Some((parent, _)) = dir.parent_and_name().filter(|_| dir.depth() > 0) {
            assert_eq!(id(parent), self.visits[above.unwrap()].id, "{dir:?} has another parent");
        }
        let first = &mut self.visits[number];
        let found = (Path::new(&first.path), first.id);
        assert_eq!(found, (dir.path(), id(dir.fd())), "{dir:?} was another directory before");
        assert!(!mem::replace(&mut first.is_over, true), "{dir:?} has two second visits");
        assert_eq!(first.running, 0, "{dir:?} is visited again before all below it");
    }

    fn ways_up(&self, from: Option<usize>) -> Vec<usize> {
        iter::successors(from, |visit| self.visits[*visit].above).collect()
    }

    fn error(&mut self, error: &Error, case: &Case) {
        use libc::{EACCES, EINVAL, ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR};
        let errnos = [ENOENT, ENOTDIR, EACCES, ELOOP, EINVAL, ENAMETOOLONG];
        assert!(
            errnos.contains(&errno(error)) || case.room.is_some() && errno(error) == libc::EMFILE,
            "{error}"
        );
        *self.errors.entry(scan::path(error).into()).or_default() += 1;
    }

    /// Checks the errors. A visit enters a name or has an error of it. A directory can have one
    /// error when it is read, and one when its level is lost. In the latter case it has no second
    /// visit.
    fn check(&self, is_whole: bool) {
        for (path, count) in &self.errors {
            let as_path = Path::new(path);
            let name = as_path.as_os_str().as_bytes().rsplit(|byte| *byte == b'/').next().unwrap();
            let above = &path.as_bytes()[..path.len() - name.len() - 1];
            let most = |visit: &Visit| {
                let may_enter = if visit.path.as_bytes() == above { visit.may_enter } else { 0 };
                let refused = may_enter.saturating_sub(*visit.entered.get(name).unwrap_or(&0));
                let own = visit.path == *path;
                refused
                    + usize::from(own && !visit.is_reported)
                    + usize::from(own && !visit.is_over)
            };
            let most: usize = self.visits.iter().map(most).sum();
            assert!(*count <= most, "{count} errors of {path:?}, at most {most}");
        }
        let mut unpaired = self.visits.iter().filter(|visit| is_whole && !visit.is_over);
        let silent = unpaired.find(|visit| !self.errors.contains_key(&visit.path));
        assert!(silent.is_none(), "{:?} has no second visit", silent.map(|visit| &visit.path));
    }
}

/// The place of a walk: its root, a directory beside it, and what the walk must not enter.
struct Place {
    root: PathBuf,
    aside: PathBuf,
    dirs: Vec<PathBuf>,
    /// The target of links that lead out of the tree.
    out: PathBuf,
    /// The directories in `out`, and `aside`.
    outside: HashSet<Id>,
    moved: AtomicUsize,
}

impl Place {
    /// Makes a random tree. Names are numbers, which `out` does not contain.
    fn new(at: &Path, random: &mut Random) -> Self {
        let [root, aside, out] = ["root", "aside", "out"].map(|name| at.join(name));
        tree::make(at, &["root/", "aside/", "out/x/y/"]);
        let straight = [2, 4, 8, 32][random.below(4)];
        let mut dirs = vec![root.clone()];
        for number in 0..random.below(80) {
            let number = number.to_string();
            let dir =
                if random.below(straight) > 0 { dirs.len() - 1 } else { random.below(dirs.len()) };
            let made = dirs[dir].join(&number);
            match random.below(20) {
                0 => drop(File::create(made).unwrap()),
                1 => symlink(
                    [&*out, Path::new(".."), &dirs[random.below(dirs.len())]][random.below(3)],
                    made,
                )
                .unwrap(),
                _ => {
                    fs::create_dir(&made).unwrap();
                    dirs.push(made);
                }
            }
        }
        if random.below(4) == 0 && dirs.len() > 1 {
            (0..random.below(4))
                .for_each(|_| forbid(&dirs[1 + random.below(dirs.len() - 1)], random));
        }
        let outside = [&out, &out.join("x"), &out.join("x/y"), &aside]
            .map(|path| id(lendir::open(path).unwrap().as_fd()));
        Self { root, aside, dirs, out, outside: outside.into(), moved: AtomicUsize::new(0) }
    }

    /// Makes a random change, if it is possible. The paths may lead through links, but only to
    /// `out`.
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

    /// Makes a random change. The directory `at` has this depth. The change may separate a level
    /// above `at` from its subtree and move the level.
    fn any_change(&self, at: &Path, depth: usize, random: &mut Random) {
        match random.below(4) {
            0..3 if depth > 1 => {
                let up = random.below(depth - 1);
                at.ancestors().skip(up).take(2).for_each(|dir| self.move_aside(dir));
            }
            _ => self.change(random),
        }
    }
}

fn forbid(dir: &Path, random: &mut Random) {
    let _ =
        fs::set_permissions(dir, Permissions::from_mode([0o300, 0o600, 0, 0o700][random.below(4)]));
}

/// The caller on one thread.
struct Thread<'a> {
    case: &'a Case,
    place: &'a Place,
    log: &'a Mutex<Log>,
    random: Random,
    visitor: Visitor,
}

impl Thread<'_> {
    /// Visits directories in a loop.
    fn walk(&mut self, walk: &mut impl Next<State>) {
        for _ in 0..self.case.leaves_after {
            match catch_unwind(AssertUnwindSafe(|| Ok(walk.next_dir()?.map(|dir| self.visit(dir)))))
            {
                Ok(Ok(None)) => return,
                Ok(Ok(Some(()))) => {}
                Ok(Err(error)) => self.log.lock().unwrap().error(&error, self.case),
                Err(panic) if self.case.catches && is_blown(&*panic) => {}
                Err(panic) => resume_unwind(panic),
            }
        }
    }

    fn visit(&mut self, mut dir: Dir<'_, State>) {
        let requests = Requests::random(self.case.seed, dir.path());
        let visit = if dir.is_second_visit() {
            self.log.lock().unwrap().again(&dir);
            None
        } else {
            Some(self.log.lock().unwrap().begin(&mut dir, &requests, self.place))
        };
        if self.random.below(self.case.change_in) == 0 && !dir.state().is_below_link {
            self.place.any_change(dir.path(), dir.depth(), &mut self.random);
        }
        match visit {
            None => assert!(dir.next().is_ok_and(|entry| entry.is_none())),
            Some(visit) => {
                self.visitor.first_visit(dir, requests);
                let is_reported = self.visitor.visits.drain(..).any(|it| it.errno().is_some());
                self.log.lock().unwrap().end(visit, is_reported);
            }
        }
    }

    /// Reads all entries in a loop. Returns their number.
    fn read(&mut self, mut walk: Walk) -> usize {
        let mut yielded = 0;
        // The path of each level above the next entry, and whether the level is below a link.
        let mut above = vec![(self.place.root.clone(), false)];
        let mut times = HashMap::<_, usize>::from([(self.place.root.clone().into_os_string(), 1)]);
        while yielded < self.case.leaves_after {
            let entry = match walk.next() {
                Ok(Some(entry)) => entry,
                Ok(None) => break,
                Err(error) => {
                    self.log.lock().unwrap().error(&error, self.case);
                    continue;
                }
            };
            yielded += 1;
            *times.entry(entry.path().into()).or_default() += 1;
            assert!(entry.depth() <= above.len(), "{entry:?} comes before its directory");
            above.truncate(entry.depth());
            let (parent, is_below_link) = above.last().unwrap();
            assert_eq!(entry.path().parent(), Some(&**parent), "{entry:?} is in another directory");
            let is_right = *is_below_link || !self.place.outside.contains(&id(entry.dir_fd()));
            assert!(is_right, "{entry:?} is outside of the tree");
            let requests = Requests::random(self.case.seed, entry.path());
            requests.make(&entry);
            let is_followed = requests.last_at(entry.path()) == Some(Request::Follow);
            // The caller may have been told that a link has replaced a directory.
            let is_told = requests.at(entry.path()).contains(&Request::Metadata);
            let is_link = entry.d_type() == FileType::Symlink || is_told;
            let is_below_link = *is_below_link || is_followed && is_link;
            above.push((entry.path().to_owned(), is_below_link));
            if self.random.below(self.case.change_in) == 0 && !is_below_link {
                self.place.any_change(entry.path(), entry.depth(), &mut self.random);
            }
        }
        // An entry can have an error when it is opened or read, and one if its level is lost.
        for (path, count) in &self.log.lock().unwrap().errors {
            assert!(*count <= 2 * times.get(path).unwrap_or(&0), "{count} errors of {path:?}");
        }
        yielded
    }
}

/// Walks as the case says. Returns `true` if the walk came to its end.
fn walk(case: &Case, place: &Place, log: &Mutex<Log>) -> bool {
    let thread = |index: usize| {
        let (random, visitor) = (Random::of(&(case.seed, index)), Visitor::default());
        Thread { case, place, log, random, visitor }
    };
    if case.is_entry_walk {
        let options = Walk::options().max_open(case.max_open).same_mount(case.same_mount);
        thread(0).read(options.read_ahead(case.threads).eager().open(&place.root).unwrap());
        return false;
    }
    let options = WalkDirs::options()
        .max_open(case.max_open)
        .second_visits(case.second_visits)
        .same_mount(case.same_mount);
    let state = State { _fuses: Fuses::new(case.panics_at), visit: None, is_below_link: false };
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut walk = options.with_state(state).open(&place.root).unwrap();
        match case.threads {
            0 => thread(0).walk(&mut walk),
            threads => {
                drop(walk.run_parallel(threads, |worker| thread(worker.index()).walk(worker)));
            }
        }
    }));
    outcome.inspect_err(|panic| assert!(is_blown(&**panic), "another panic")).is_ok()
        && case.leaves_after == usize::MAX
}

fn check(case: &Case, place: &Place) {
    let (log, is_over, before) = (Mutex::default(), AtomicBool::new(false), open_descriptors());
    let others = case.room.map(leave_room);
    let is_whole = thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Random::of(&(case.seed, "others"));
            (0..case.others)
                .take_while(|_| !is_over.load(SeqCst))
                .for_each(|_| place.change(&mut random));
        });
        let is_whole = walk(case, place, &log);
        is_over.store(true, SeqCst);
        is_whole
    });
    drop(others);
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    assert_eq!(open_descriptors(), before, "a descriptor is still open");
    let log = log.into_inner().unwrap();
    if !case.is_entry_walk {
        log.check(is_whole && case.second_visits && case.panics_at[1] == 0);
    }
}

/// No random walk leaves the tree, enters a directory twice, reports an error twice, or ends
/// without an error or a second visit of each directory.
#[test]
fn random_walks_keep_all_invariants() {
    const TEST: &str = "model::random_walks_keep_all_invariants";
    process::run(TEST, || {
        as_nobody(|| {
            let one = env::var("LENDIR_SEED").ok().map(|seed| seed.parse().unwrap());
            let seeds =
                one.map_or(0..if runs_long() { 20_000 } else { 500 }, |seed| seed..seed + 1);
            let is_broken = Arc::new(AtomicBool::new(false));
            // The hook also notices a panic that another panic hides. Panics on purpose have no
            // message.
            let (report, breaks) = (take_hook(), Arc::clone(&is_broken));
            set_hook(Box::new(move |panic| {
                breaks.store(true, SeqCst);
                report(panic);
            }));
            let cases: Vec<_> = seeds.map(Case::new).collect();
            // Many at once, because a walk waits before it closes a new level.
            for cases in cases.chunks(50) {
                let tree = Tree::new(|_| ());
                let place = |case: &Case| {
                    Place::new(&tree.path().join(case.seed.to_string()), &mut Random(case.seed))
                };
                let places: Vec<_> = cases.iter().map(place).collect();
                for (case, place) in cases.iter().zip(&places) {
                    let checked = catch_unwind(AssertUnwindSafe(|| check(case, place)));
                    assert!(!is_broken.load(SeqCst), "{case:?}");
                    checked.unwrap_or_else(|panic| resume_unwind(panic));
                }
            }
        });
    });
}
