//! Splits off a part of a busy thread's work for a thread that waits: some of its roots, or some of
//! the names that are pending at one of its levels. `Worker` calls it between two directories.

use super::work_queue::Workers;
use crate::open;
use crate::sync::Arc;
use crate::walk_dirs::part::{LevelWork, Part};
use crate::walk_dirs::shared_level::SharedLevel;
use rustix::io::fcntl_dupfd_cloexec;
use std::ops::Range;

/// The longest path of a level at which names are split off. A tree of 100,000 levels has paths of
/// megabytes. To copy one for every directory would take time quadratic in the depth.
const MAX_PATH: usize = 4096;

impl<S: Clone> Part<S> {
    /// Splits off a part for each thread that waits. If the walk is over, abandons all that is
    /// pending.
    #[cold]
    pub(crate) fn split(&mut self, workers: &Workers<'_, Self>) {
        while !workers.queue.is_over() {
            let Some(part) = self.split_off(workers.queue.wanted()) else { return };
            workers.push(part);
            self.cursor.lower_max_open(workers.queue.max_open()); // once a thread was started
        }
        self.clear();
    }

    /// Splits off an equal part for one of the `threads` that wait: of the roots, or of the
    /// directories pending at the shallowest open level. Splits off a single directory only if
    /// others are pending.
    fn split_off(&mut self, threads: usize) -> Option<Self> {
        if threads == 0 {
            return None;
        }
        // In a deep tree whose levels were split off one by one, to look at each of them again for
        // every directory would take time quadratic in the depth.
        let shallowest = self.pending_from(self.subdirs.pending.unsplit_start);
        self.subdirs.pending.unsplit_start = match &shallowest {
            Some((index, _)) => self.cursor.stack.levels[*index].remaining.names_start,
            None => self.subdirs.pending.len(),
        };
        // Roots first: each is a whole tree, and takes no descriptor.
        if !self.cursor.roots.is_empty() {
            let root_state = self.root_state.clone(); // first: if it panics, nothing is lost
            if let Some(roots) = self.cursor.roots.split_off(threads, shallowest.is_some()) {
                let mut part = Self::new(self.cursor.options, root_state, self.batch.capacity);
                part.cursor.roots = roots;
                return Some(part);
            }
        }
        self.split_off_names(shallowest?, threads)
    }

    /// Splits off a part of the names at the `shallowest` level that has some, or else at the
    /// shallowest open one. Duplicates the level's descriptor.
    fn split_off_names(
        &mut self,
        shallowest: (usize, Range<usize>),
        threads: usize,
    ) -> Option<Self> {
        // The shallowest level has the largest subtrees. If it is closed, there is no descriptor to
        // duplicate.
        let levels = &self.cursor.stack.levels;
        let is_closed = levels[shallowest.0].open_dir().is_none();
        let (index, names) = if is_closed {
            let open = self.cursor.stack.shallowest_open_index().unwrap_or(levels.len() - 1);
            self.pending_from(levels[open].remaining.names_start)?
        } else {
            shallowest
        };
        let level = &levels[index];
        let dir = level.open_dir().filter(|_| level.bounds.path_end <= MAX_PATH)?;
        let end = self.subdirs.pending.part_end(names.clone(), threads + 1);
        // A last name is not split off if nothing else is pending here: the two threads would pass
        // it to and fro.
        if end == names.end && !is_closed && self.pending_from(end).is_none() {
            return None;
        }
        // If this process has no permission to search the directory, no name in it can be opened.
        // Nor does `..` lead to its parent, for the last thread there.
        let search = || open::path_at(dir, c".", open::NOFOLLOW);
        if self.cursor.options.second_visits
            && search().is_err_and(|errno| !open::lacks_descriptor(errno))
        {
            if !is_closed {
                self.subdirs.pending.unsplit_start = names.end; // its subtree may be split off
            }
            return None;
        }
        let state = level.remaining.state.clone();
        let root_state = self.root_state.clone();
        let pending = self.subdirs.pending.copy(names.start..end).ok()?;
        let work = LevelWork::new(0, state);
        let mut cursor = self.cursor.split_off_level(index, work)?;
        // From now on the last thread at the level makes the second visit.
        if self.cursor.options.second_visits {
            cursor.stack.top_mut().remaining.shared = Some(self.share_levels(index)?);
        }
        // Last: if `clone` panics, nothing is lost.
        self.cursor.stack.levels[index].remaining.next_start = end;
        let mut part =
            Self { cursor, ..Self::new(self.cursor.options, root_state, self.batch.capacity) };
        part.subdirs.pending = pending;
        Some(part)
    }

    /// Returns the shallowest level with pending names at or after the offset `start`, and their
    /// range. Skips levels without names, of which a chain with second visits has many.
    fn pending_from(&self, mut start: usize) -> Option<(usize, Range<usize>)> {
        let levels = &self.cursor.stack.levels;
        let pending_end = self.subdirs.pending.len();
        while start < pending_end {
            let child = levels.partition_point(|level| level.remaining.names_start <= start);
            let end = levels.get(child).map_or(pending_end, |level| level.remaining.names_start);
            let next_start = levels[child - 1].remaining.next_start;
            if next_start < end {
                return Some((child - 1, next_start..end));
            }
            start = end;
        }
        None
    }

    /// Makes the level at `index`, and all above it, levels that several threads walk.
    fn share_levels(&mut self, index: usize) -> Option<Arc<SharedLevel<S>>> {
        // The levels above a shared one are shared, too. A level must be shared before anything
        // below it is split off, because the other thread may finish that at once.
        let first_unshared = self.cursor.stack.levels[..=index]
            .partition_point(|level| level.remaining.shared.is_some());
        for index in first_unshared..=index {
            let levels = &self.cursor.stack.levels;
            let level = &levels[index];
            let state = level.remaining.state.clone();
            let parent = levels[..index].last().and_then(|parent| parent.remaining.shared.clone());
            let root = if parent.is_none() {
                Some(fcntl_dupfd_cloexec(level.open_dir()?, 0).ok()?)
            } else {
                None
            };
            let shared = SharedLevel::new(parent, root, level.closed(), state);
            self.cursor.stack.levels[index].remaining.shared = Some(shared);
        }
        self.cursor.stack.levels[index].remaining.shared.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::MAX_PATH;
    use crate::walk_dirs::part::Part;
    use crate::{Listing, WalkDirs};
    use rustix::fs::{Mode, mkdirat};

    /// The parts that were split off.
    #[derive(Default)]
    struct Parts {
        count: usize,
        /// The length of their longest path.
        longest: usize,
    }

    /// Walks a comb, which has `levels` levels with a directory beside each, and below it a chain
    /// of as many. In the chain, splits off all parts that it can.
    fn split_comb(
        levels: usize,
        name: &str,
        second_visits: bool,
        check: impl Fn(&Part<()>),
    ) -> Parts {
        let tree = tempfile::tempdir().unwrap();
        let mut level = crate::open(tree.path()).unwrap();
        for depth in 0..2 * levels {
            if depth < levels {
                mkdirat(&level, "z", Mode::RWXU).unwrap();
            }
            mkdirat(&level, name, Mode::RWXU).unwrap();
            level = crate::openat(&level, name).unwrap();
        }
        let mut walk = WalkDirs::options()
            .max_open(2 * levels)
            .second_visits(second_visits)
            .open(tree.path())
            .unwrap();
        let (mut listing, mut parts) = (Listing::new(), Parts::default());
        while let Some(mut dir) = walk.next().unwrap() {
            dir.read_into(&mut listing).unwrap();
            let part = &mut walk.part;
            if part.cursor.stack.top().bounds.depth < levels {
                continue;
            }
            while let Some(other) = part.split_off(1) {
                parts.count += 1;
                parts.longest = parts.longest.max(other.cursor.path.len());
            }
            check(part);
        }
        parts
    }

    /// The number of levels above does not matter once their directories are split off, one by one.
    #[test]
    #[cfg_attr(miri, ignore = "opens directories")]
    fn split_off_levels_are_not_searched_again() {
        const LEVELS: usize = 100;
        let parts = split_comb(LEVELS, "m", false, |part| {
            let (searched_from, levels) =
                (part.subdirs.pending.unsplit_start, &part.cursor.stack.levels);
            let searched =
                levels.iter().filter(|level| level.remaining.names_start >= searched_from).count();
            assert!(
                levels.len() > LEVELS && searched <= 1,
                "{searched} of {} levels",
                levels.len()
            );
        });
        assert_eq!(parts.count, LEVELS);
    }

    #[test]
    #[cfg_attr(miri, ignore = "opens directories")]
    fn nothing_is_split_off_at_a_level_with_a_long_path() {
        const NAME: usize = 250;
        for second_visits in [false, true] {
            let parts = split_comb(60, &"m".repeat(NAME), second_visits, |_| ());
            assert!(parts.count >= MAX_PATH / NAME - 1, "only {} of 60 levels", parts.count);
            assert!(
                (MAX_PATH - NAME..=MAX_PATH).contains(&parts.longest),
                "{} bytes",
                parts.longest
            );
        }
    }
}
