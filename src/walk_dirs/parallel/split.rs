//! How a busy thread splits off a part of its traversal for a thread that waits: some of its roots, or some of the names that are
//! pending at one of its levels. It does not know which thread takes the part.

use super::work_queue::Others;
use crate::cursor::raw_open;
use crate::cursor::reopen::ClosedLevel;
use crate::sync::Arc;
use crate::walk_dirs::shared_level::SharedLevel;
use crate::walk_dirs::traversal::{Todo, Traversal};
use rustix::io::fcntl_dupfd_cloexec;
use std::ops::Range;

/// At a level whose path is longer, nothing is split off: a tree of 100,000 levels has paths of megabytes, and copying one for every
/// directory would take time quadratic in the depth.
const MAX_PATH: usize = 4096;

impl<S: Clone> Traversal<S> {
    /// Other threads have nothing to do: splits off a part of what is left here for each. Stops if the walk is over.
    #[cold]
    pub(crate) fn split(&mut self, others: &Others<'_, Self>) {
        while !others.queue.is_over() {
            let Some(part) = self.split_off(others.queue.wanted()) else { return };
            others.push(part);
        }
        self.clear();
    }

    /// Splits off an equal part of this thread's work for one of the `threads` that wait: of its roots, or of the directories
    /// pending at the shallowest open level. Splits off a single one only if others are left.
    fn split_off(&mut self, threads: usize) -> Option<Self> {
        if threads == 0 {
            return None;
        }
        // Levels before `split_until` have no names to split off. In a deep tree whose levels were split off one by one, looking
        // at each of them again for every directory would take time quadratic in the depth.
        let shallowest = self.names_from(self.choices.pending.split_until);
        let split_until = match &shallowest {
            Some((index, _)) => self.cursor.levels()[*index].remaining.names_at,
            None => self.choices.pending.len(),
        };
        self.choices.pending.split_until = split_until;
        // Roots first: each is a whole tree, and takes no descriptor.
        if self.cursor.has_roots() {
            let root_state = self.root_state.clone(); // first: if it panics, nothing is lost
            if let Some(cursor) = self.cursor.split_off_roots(threads, shallowest.is_some()) {
                return Some(Self { cursor, ..self.without_work(root_state) });
            }
        }
        self.split_off_names(shallowest?, threads)
    }

    /// A part of the names at the `shallowest` level that has some, or at the shallowest open one. Duplicates the level's
    /// descriptor.
    fn split_off_names(
        &mut self,
        shallowest: (usize, Range<usize>),
        threads: usize,
    ) -> Option<Self> {
        // The shallowest level has the most below it. If it is closed there is no descriptor to duplicate.
        let levels = self.cursor.levels();
        let is_closed = levels[shallowest.0].open_dir().is_none();
        let (index, names) = if is_closed {
            let open = self.cursor.shallowest_open_index().unwrap_or(levels.len() - 1);
            self.names_from(levels[open].remaining.names_at)?
        } else {
            shallowest
        };
        let level = &levels[index];
        let dir = level.open_dir().filter(|_| level.bounds.path_end <= MAX_PATH)?;
        let end = self.choices.pending.part(names.clone(), threads + 1);
        // A last name is not split off if this thread would have nothing left: the two would pass it to and fro.
        if end == names.end && !is_closed && self.names_from(end).is_none() {
            return None;
        }
        // If nobody may search this directory, no name in it can be opened. Nor does `..` lead up from it, for the last thread
        // there.
        let search = || raw_open::path_at(dir, c".", raw_open::NOFOLLOW);
        if self.second_visits && search().is_err_and(|errno| !raw_open::lacks_descriptor(errno)) {
            if !is_closed {
                self.choices.pending.split_until = names.end; // what is below it may be split off
            }
            return None;
        }
        let (visit, state, root_state) =
            (level.remaining.visit, level.remaining.state.clone(), self.root_state.clone());
        let remaining = Todo { visit, names_at: 0, next_at: 0, shared: None, state };
        let mut cursor = self.cursor.split_off_level(index, remaining)?;
        // From now on the second visit belongs to whoever is done last, here or there.
        if self.second_visits {
            cursor.remaining_mut().shared = Some(self.share_levels(index)?);
        }
        self.cursor.remaining_at_mut(index).next_at = end; // last: if `clone` panics, nothing is lost
        let mut part = Self { cursor, ..self.without_work(root_state) };
        part.choices.pending = self.choices.pending.copy(names.start..end);
        Some(part)
    }

    /// The shallowest level with pending names at or after `at`, and their range. Skips levels without names, of which a
    /// chain with second visits has many.
    fn names_from(&self, mut at: usize) -> Option<(usize, Range<usize>)> {
        let levels = self.cursor.levels();
        while at < self.choices.pending.len() {
            let below = levels.partition_point(|level| level.remaining.names_at <= at);
            let end = levels
                .get(below)
                .map_or(self.choices.pending.len(), |level| level.remaining.names_at);
            let next_at = levels[below - 1].remaining.next_at;
            if next_at < end {
                return Some((below - 1, next_at..end));
            }
            at = end;
        }
        None
    }

    /// Makes the level at `index`, and all above it, levels that several threads walk.
    fn share_levels(&mut self, index: usize) -> Option<Arc<SharedLevel<S>>> {
        // The levels above a shared one are shared too. Each must be shared before anything below it is split off: the other
        // thread may be done with that at once.
        let first = self.cursor.levels()[..=index]
            .partition_point(|level| level.remaining.shared.is_some());
        for at in first..=index {
            let levels = self.cursor.levels();
            let above = at.checked_sub(1).and_then(|above| levels[above].remaining.shared.clone());
            let level = &levels[at];
            let (closed, state) = (
                ClosedLevel { bounds: level.bounds, identity: level.identity()? },
                level.remaining.state.clone(),
            );
            self.cursor.remaining_at_mut(at).shared = Some(match above {
                Some(above) => SharedLevel::below(above, closed, state),
                None => SharedLevel::root(
                    fcntl_dupfd_cloexec(level.open_dir()?, 0).ok()?,
                    closed,
                    state,
                ),
            });
        }
        self.cursor.levels()[index].remaining.shared.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::MAX_PATH;
    use crate::walk_dirs::traversal::Traversal;
    use crate::{Listing, WalkDirs};
    use rustix::fs::{Mode, mkdirat};

    /// What was split off.
    #[derive(Default)]
    struct Parts {
        count: usize,
        /// How long their paths are at most.
        longest: usize,
    }

    /// Goes down a comb, so many levels with a directory beside each, and a chain of as many below. In the chain all is split off
    /// that can be.
    fn split_comb(
        levels: usize,
        name: &str,
        second_visits: bool,
        check: impl Fn(&Traversal<()>),
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
            let traversal = &mut walk.lender.traversal;
            if traversal.cursor.top().bounds.depth < levels {
                continue;
            }
            while let Some(part) = traversal.split_off(1) {
                parts.count += 1;
                parts.longest = parts.longest.max(part.cursor.path().len());
            }
            check(traversal);
        }
        parts
    }

    /// However many levels there are above, once their directories are split off, one by one.
    #[test]
    #[cfg_attr(miri, ignore = "opens directories")]
    fn what_is_split_off_is_not_searched_again() {
        const LEVELS: usize = 100;
        let parts = split_comb(LEVELS, "m", false, |traversal| {
            let (searched_from, levels) =
                (traversal.choices.pending.split_until, traversal.cursor.levels());
            let searched =
                levels.iter().filter(|level| level.remaining.names_at >= searched_from).count();
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
