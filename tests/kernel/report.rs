//! The options of a walk and its report, which the tests of walks share.

use crate::support::prelude::*;
use libc::c_int;

/// Options with a known order, which close levels early.
pub const SORTED: TestOptions = TestOptions { is_sorted: true, max_open: 4, ..PLAIN };

/// The same for a `Walk`.
pub const SORTED_WALK: EntryWalk = EntryWalk { order: Order::Bytes, max_open: 4, ..ENTRY_WALK };

pub const OPTIONS: [TestOptions; 6] = [
    PLAIN,
    TestOptions { is_sorted: false, ..SORTED },
    TestOptions { is_sorted: false, second_visits: true, ..SORTED },
    TestOptions { is_sorted: false, is_on_one_mount: true, ..SORTED },
    SORTED,
    TestOptions { second_visits: true, is_on_one_mount: true, ..SORTED },
];

impl TestOptions {
    pub fn begin(self, root: impl AsRef<Path>) -> Run {
        let walk = self.build().from_fd(lendir::open(root.as_ref()).unwrap(), "");
        Run { walk, options: self, visitor: Visitor::default() }
    }

    pub fn walk_dirs(self, root: impl AsRef<Path>) -> Report {
        self.begin(root).finish()
    }

    /// Returns the report of several threads.
    pub fn run_parallel(self, root: impl AsRef<Path>, threads: usize) -> Report {
        Report::of(self.begin(root).run_parallel(threads, |_| ()))
    }

    /// Returns the report of a `Walk` with these options: entries and errors.
    pub fn walk(self, root: impl AsRef<Path>) -> Report {
        let root = lendir::open(root.as_ref()).unwrap();
        let order = if self.is_sorted { Order::Bytes } else { Order::Unsorted };
        let options = Walk::options().max_open(self.max_open).max_depth(self.max_depth);
        let mut walk = options.same_mount(self.is_on_one_mount).order(order).from_fd(root, "");
        Report::of(iter::from_fn(|| next(&mut walk, |_| ())))
    }

    /// Returns the visits that a walk must yield. If it sorts, they come in this order.
    pub fn expected_visits(self, root: &Path) -> impl Iterator<Item = Visit> {
        let visits = expected_visits(root, self.second_visits, |_| self.requests());
        visits.into_iter().map(move |visit| Visit {
            path: visit.path.strip_prefix(root).unwrap().into(),
            ..visit
        })
    }
}

/// The result of a walk: paths relative to its root, in the order of the walk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub entries: Vec<PathBuf>,
    /// The directories at their first visits.
    pub first_visits: Vec<PathBuf>,
    /// The directories at their second visits.
    pub second_visits: Vec<PathBuf>,
    pub errors: Vec<(PathBuf, c_int)>,
}

impl Report {
    pub fn of(visits: impl IntoIterator<Item = Visit>) -> Self {
        let mut report = Self::default();
        for visit in visits {
            report.entries.extend(visit.entries());
            let Visit { path, depth, what } = visit;
            assert_eq!(depth, path.components().count());
            match what {
                What::Entry { .. } => report.entries.push(path),
                What::First(_) => report.first_visits.push(path),
                What::Second => report.second_visits.push(path),
                What::Error(errno) => report.errors.push((path, errno)),
            }
        }
        report
    }

    /// Returns the report that a walk of `root` must have, according to `std`.
    pub fn expected(root: &Path) -> io::Result<Self> {
        let report = Self::of(PLAIN.expected_visits(root));
        match report.errors.first() {
            Some((_, errno)) => Err(io::Error::from_raw_os_error(*errno)),
            None => Ok(report.sorted()),
        }
    }

    /// Sorts the report for a comparison and drops the second visits.
    pub fn sorted(mut self) -> Self {
        // As bytes, because `Path` compares name by name, which would take most of the test's time.
        for paths in [&mut self.entries, &mut self.first_visits] {
            paths.sort_unstable_by(|a, b| a.as_os_str().cmp(b.as_os_str()));
        }
        self.errors.sort_unstable();
        self.second_visits.clear();
        self
    }

    /// Returns the same report for a walk that yields these directories as entries but does not
    /// enter them.
    pub fn without<Dir: AsRef<Path>>(mut self, directories: &[Dir]) -> Self {
        let is_in = |path: &Path| directories.iter().any(|dir| path.starts_with(dir));
        self.entries.retain(|path| !path.parent().is_some_and(is_in));
        self.first_visits.retain(|path| !is_in(path));
        self
    }

    /// Returns the same report for a walk that yields this directory but cannot read it.
    pub fn unread(mut self, dir: &Path) -> Self {
        self.entries.retain(|path| !path.parent().is_some_and(|parent| parent.starts_with(dir)));
        self.first_visits.retain(|path| path == dir || !path.starts_with(dir));
        self
    }

    pub fn with_errors<P: Into<PathBuf>>(
        mut self,
        errors: impl IntoIterator<Item = (P, c_int)>,
    ) -> Self {
        self.errors = errors.into_iter().map(|(path, errno)| (path.into(), errno)).collect();
        self.errors.sort_unstable();
        self
    }
}

/// A walk that has started.
pub struct Run {
    pub walk: WalkDirs,
    options: TestOptions,
    pub visitor: Visitor,
}

impl Run {
    /// Takes the next directory with all its entries, or an error. Returns `false` at the end.
    pub fn step(&mut self) -> bool {
        self.visitor.take(&mut self.walk, |_| (), |_| self.options.requests())
    }

    /// Continues until the walk has visited `dir`.
    pub fn until(&mut self, dir: impl AsRef<Path>) {
        while !self.visitor.is_at(dir.as_ref()) {
            assert!(self.step(), "the walk ended before {}", dir.as_ref().display());
        }
    }

    /// Returns the remaining visits of several threads. Calls `look` after each visit.
    pub fn run_parallel(self, threads: usize, look: impl Fn(&Visitor) + Sync) -> Vec<Visit> {
        let parts = self.walk.run_parallel(threads, |worker| {
            let mut visitor = Visitor::default();
            while visitor.take(worker, |_| (), |_| self.options.requests()) {
                look(&visitor);
            }
            visitor.visits
        });
        parts.concat()
    }

    /// Continues to the end. Checks that the walk has ended.
    pub fn finish(mut self) -> Report {
        while self.step() {}
        assert!(!self.step(), "the walk continues after its end");
        Report::of(self.visitor.visits)
    }
}

/// Checks the reports of one thread, of three threads, and of a `Walk`, with all options.
pub fn check_ways<'t>(tree: &Path, expected: impl Fn(TestOptions) -> &'t Report, what: &str) {
    for options in OPTIONS {
        for (report, threads) in [(options.walk_dirs(tree), 1), (options.run_parallel(tree, 3), 3)]
        {
            let (report, expected) = (report.sorted(), expected(options));
            assert_eq!(report, *expected, "{what}, {options:?}, {threads} threads");
        }
        let expected = Report { first_visits: vec![], ..expected(options).clone() };
        assert_eq!(options.walk(tree).sorted(), expected, "{what}, {options:?}, a `Walk`");
    }
}

/// Returns the path of the level `depth` of a [`comb`].
pub fn level(depth: usize) -> PathBuf {
    vec!["d"; depth].into_iter().collect()
}

/// Makes nested directories `d`, `depth` levels deep. Each level also has a directory `z`, so the
/// walk has to return to each level.
pub fn comb(root: &Path, depth: usize) {
    let files: Vec<_> = (0..=depth).map(|depth| "d/".repeat(depth) + "z/file").collect();
    make(root, &files);
}
