//! `Share`, `Work`: what one thread of a walk gives to another.

use super::identity::Identity;
use super::level::{Level, Spot, State};
use super::levels::{Known, Levels};
use super::links::Links;
use super::options::Options;
use super::path::GivenPath;
use super::pending::Pending;
use super::shared::Shared;
use crate::sync::Arc;
use rustix::io::fcntl_dupfd_cloexec;
use std::ops::Range;

/// A share of the work for another thread.
#[derive(Debug)]
pub(super) struct Share<S> {
    options: Options,
    known: Known,
    first: Level<S>,
    links: Links,
    pending: Pending,
    path: GivenPath,
}

/// Work that one thread gives to another.
#[derive(Debug)]
pub(super) enum Work<S> {
    Share(Share<S>),
    /// Everything, from a thread that leaves.
    All(Levels<S>),
}

impl<S: Clone> Levels<S> {
    /// Takes half of the directories pending at the shallowest open level, for another thread. Gives away a single one only if
    /// others are left. Duplicates the level's descriptor.
    pub(super) fn give_share(&mut self) -> Option<Share<S>> {
        let shallowest = self.pending_from(0)?;
        let is_closed = (1..=self.closed.len()).contains(&shallowest.0);
        let below_closed = || self.pending_from(self.stack[self.closed.len() + 1].spot.names_at);
        let (index, names) = if is_closed { below_closed()? } else { shallowest };
        let half_at = self.pending.half(names.clone());
        if half_at == names.end && !is_closed && self.pending_from(names.end).is_none() {
            return None;
        }
        let dir = fcntl_dupfd_cloexec(self.stack[index].dir(), 0).ok()?;
        let shared = if self.known.post_order { Some(self.share(index)?) } else { None };
        let level = &mut self.stack[index];
        level.next_at = half_at;
        let spot = Spot { names_at: 0, ..level.spot };
        let first = Level::new(State::First(dir), spot, level.end_marker, level.value.clone());
        Some(Share {
            options: self.options,
            known: self.known,
            first: Level { shared, ..first },
            links: self.links.down_to(spot.depth),
            pending: self.pending.copy(names.start..half_at),
            path: self.path.give(spot.path_end),
        })
    }

    /// The shallowest level with pending names at or after `at`, and their range. Skips levels without names, of which a
    /// post-order chain has many.
    fn pending_from(&self, mut at: usize) -> Option<(usize, Range<usize>)> {
        while at < self.pending.len() {
            let below = self.stack.partition_point(|level| level.spot.names_at <= at);
            let end = self.stack.get(below).map_or(self.pending.len(), |level| level.spot.names_at);
            let next_at = self.stack[below - 1].next_at;
            if next_at < end {
                return Some((below - 1, next_at..end));
            }
            at = end;
        }
        None
    }

    /// Shares the level at `index`, and all above it, with other threads.
    fn share(&mut self, index: usize) -> Option<Arc<Shared<S>>> {
        let Self { options, stack, closed, .. } = self;
        // The levels above a shared one are shared too.
        for at in stack[..=index].partition_point(|level| level.shared.is_some())..=index {
            let level = &stack[at];
            let identity = match level.open_dir() {
                Some(dir) => Identity::note(dir, options.same_mount),
                None => closed[at - 1],
            };
            let value = level.value.clone();
            let shared = match at.checked_sub(1).and_then(|above| stack[above].shared.clone()) {
                Some(above) => Shared::below(above, level.spot, identity, value),
                None => Shared::root(fcntl_dupfd_cloexec(level.dir(), 0).ok()?, level.spot, identity, value),
            };
            stack[at].shared = Some(shared);
        }
        stack[index].shared.clone()
    }

    /// Takes work from another thread, once its own is done.
    pub(super) fn take(&mut self, work: Work<S>) {
        match work {
            Work::All(levels) => *self = levels,
            Work::Share(Share { options, known, first, links, pending, path }) => {
                (self.options, self.known, self.links, self.pending) = (options, known, links, pending);
                self.path.take(path);
                self.stack.push(first);
            }
        }
    }
}
