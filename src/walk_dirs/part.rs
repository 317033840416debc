//! `Part`: the part of a tree that one thread has to walk, and the steps through it.
//!
//! ```text
//! cursor.roots    the trees after this one        /var
//! cursor.stack    the levels with pending names   /usr           share         doc
//! subdirs         the pending names               lib sbin src   icons man     adduser apt bash
//! cursor.path     the path of the last name       /usr/share/doc
//! ```
//!
//! A level is kept while it has pending names, and with second visits until its second visit. A
//! part does not know how a directory is opened or reopened ([`cursor`](crate::cursor)), how it is
//! read ([`dir`](crate::walk_dirs::dir)), nor that there are other threads.
//!
//! What happens between two calls of `next`, in this order:
//!
//! ```text
//! finish    reads the remaining entries of the current directory, if the walk needs them
//!           decides which of its subdirectories are entered                      subdirs
//! (split)   if other threads wait: splits off a part for each of them            parallel
//! step      until there is a directory to visit:
//!             a name is pending:    opens that directory, and pushes its level   cursor
//!             second visit is due:  prepares the second visit, or leaves it to   shared_level
//!                                   the last thread at this level
//!             parent is closed:     reopens it                                   cursor
//!             otherwise:            pops the level
//!             no level remains:     opens the next root                          cursor
//! visit     yields the directory                                                 dir
//! ```
//!
//! Each of these can fail, and each error is reported once. What prevents reading a directory is
//! reported by its `Dir`, or by `finish` if the `Dir` is dropped before.

use super::batch::Batch;
use super::pending::{Pending, PendingName};
use super::shared_level::SharedLevel;
use super::subdirs::Subdirs;
use crate::cursor::Cursor;
use crate::cursor::options::Options;
use crate::cursor::stack::{PathByNames, Work};
use crate::error::Error;
use crate::read_dir::records::Phase;
use crate::sync::Arc;
use crate::sync::atomic::Ordering::Relaxed;
use rustix::io::Errno;
use std::mem;

/// The part of a tree that one thread has to walk.
pub(crate) struct Part<S> {
    pub(crate) cursor: Cursor<LevelWork<S>>,
    pub(crate) subdirs: Subdirs,
    /// The entries of the current directory.
    pub(crate) batch: Batch,
    /// The state that each root begins with.
    pub(crate) root_state: S,
}

/// The work that remains at a level.
pub(crate) struct LevelWork<S> {
    /// Whether the level is visited for the second time.
    pub(crate) is_second_visit: bool,
    /// The offset in [`Pending`] at which the names of the level start.
    pub(crate) names_start: usize,
    /// The offset in [`Pending`] at which the next name to enter starts.
    pub(crate) next_start: usize,
    /// `Some` if several threads walk the level.
    pub(crate) shared: Option<Arc<SharedLevel<S>>>,
    /// The caller's state.
    pub(crate) state: S,
}

impl<S> Work for LevelWork<S> {
    fn path_by_names(&self) -> Result<PathByNames<'_>, Errno> {
        self.shared.as_ref().ok_or(Errno::NOENT)?.path_by_names()
    }
}

impl<S> LevelWork<S> {
    /// Creates the work of a level whose names will start at this offset.
    #[inline]
    pub(crate) fn new(names_start: usize, state: S) -> Self {
        Self { is_second_visit: false, names_start, next_start: names_start, shared: None, state }
    }

    /// Passes the name that ends at this offset, whether its directory could be opened or not.
    #[inline]
    fn pass_name(&mut self, pending: &mut Pending, end: usize) {
        self.next_start = pending.remove_finished(self.names_start, end);
    }
}

impl<S> Part<S> {
    /// Creates a part without roots and levels.
    pub(crate) fn new(options: Options, root_state: S, buffer_capacity: usize) -> Self {
        let subdirs = Subdirs::new(options.request);
        let batch = Batch::with_capacity(buffer_capacity, &options);
        Self { cursor: Cursor::new(options), subdirs, batch, root_state }
    }

    /// Goes on with another part, in the memory of this one.
    pub(crate) fn replace_with(&mut self, part: Self) {
        let Self { mut batch, .. } = mem::replace(self, part);
        if self.batch.is_finished() {
            batch.begin(Phase::Ended); // what the caller left there is of another directory
            self.batch = batch;
        }
    }

    /// Abandons all that is pending.
    pub(crate) fn clear(&mut self) {
        self.subdirs = Subdirs::new(self.cursor.options.request);
        self.batch.updates.clear();
        self.cursor = Cursor::new(self.cursor.options); // last: dropping a state may panic
    }

    /// Returns `true` if [`finish`](Self::finish) must be called before the next step.
    #[inline]
    pub(crate) fn is_unfinished(&self) -> bool {
        let Self { subdirs, batch, .. } = self;
        subdirs.needs_rest() && !batch.is_finished() || !batch.updates.is_empty()
    }

    /// Reads the remaining entries of the current directory, if the walk needs them, and decides
    /// which subdirectories are entered. After an error the directory may still be unfinished, and
    /// this is called again.
    #[cold]
    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        let Self { cursor, subdirs, batch, .. } = self;
        let Some(top) = cursor.stack.levels.last_mut() else { return Ok(()) };
        let (directory, mount, _) = top.parts(&cursor.path);
        while subdirs.needs_rest() && batch.advance(directory, mount, subdirs)? {}
        batch.note(directory.fd, subdirs);
        Ok(())
    }

    #[inline]
    fn pop_level(&mut self) {
        let work = self.cursor.stack.pop();
        self.subdirs.pending.truncate(work.names_start);
    }
}

impl<S: Clone> Part<S> {
    /// Finishes the current directory, then opens the next one. Returns whether there is a
    /// directory to visit.
    #[inline(always)]
    pub(crate) fn advance(&mut self) -> Result<bool, Error> {
        if self.is_unfinished() {
            self.finish()?;
        }
        self.step_to_visit()
    }

    /// Takes steps until there is a directory to visit. Returns `false` if no directory is pending.
    #[inline(always)]
    pub(crate) fn step_to_visit(&mut self) -> Result<bool, Error> {
        loop {
            let Some(top) = self.cursor.stack.levels.last() else { return self.open_root() };
            if top.remaining.next_start < self.subdirs.pending.len() {
                if self.descend()? {
                    return Ok(true);
                }
            } else if self.cursor.options.second_visits && !top.remaining.is_second_visit {
                if self.begin_second_visit()? {
                    return Ok(true);
                }
            } else if self.cursor.stack.closed_level_above().is_some() {
                self.reopen_parent()?;
            } else {
                self.pop_level();
            }
        }
    }

    #[cold]
    fn open_root(&mut self) -> Result<bool, Error> {
        let Self { cursor, root_state, .. } = self;
        cursor.open_root(|| LevelWork::new(0, root_state.clone()))
    }

    /// Opens the first pending directory of the current one.
    #[inline(always)]
    fn descend(&mut self) -> Result<bool, Error> {
        let Self { cursor, subdirs, .. } = self;
        let pending = &mut subdirs.pending;
        let PendingName { state, name, end } = pending.get(cursor.stack.top().remaining.next_start);
        cursor.path.set_name(cursor.stack.top().bounds.path_end, name.to_bytes_with_nul());
        // The name stays pending until the directory is open and on the stack: after a panic
        // meanwhile, it is not lost.
        let child = match cursor.open(state, name) {
            Ok(Some(child)) => child,
            not_opened => {
                cursor.stack.top_mut().remaining.pass_name(pending, end);
                return not_opened.map(|_| false);
            }
        };
        let parent = &cursor.stack.top().remaining;
        // The last child replaces its parent and inherits its state, unless the parent has a second
        // visit.
        if end == pending.len()
            && !cursor.options.second_visits
            && cursor.stack.closed_level_above().is_none()
        {
            pending.truncate(parent.names_start);
            let work = cursor.replace_top(child);
            work.next_start = work.names_start;
        } else {
            let state = parent.state.clone(); // first: if it panics, nothing is lost
            cursor.stack.top_mut().remaining.pass_name(pending, end);
            cursor.push(child, LevelWork::new(pending.len(), state));
        }
        Ok(true)
    }

    /// Reopens the parent of the current directory, in which nothing is pending. If the parent is
    /// lost, its names cannot be opened any more.
    #[cold]
    fn reopen_parent(&mut self) -> Result<(), Error> {
        let lose = |[parent, top]: [&mut LevelWork<S>; 2]| {
            parent.next_start = top.names_start;
            parent.shared.as_ref().is_none_or(|shared| !shared.is_lost.swap(true, Relaxed))
        };
        self.cursor.reopen_level_above(lose)
    }

    /// Prepares the second visit of the current directory, with its parent open. If other threads
    /// are still at the level or below it, the last of them makes the visit. A lost level has none.
    #[cold]
    fn begin_second_visit(&mut self) -> Result<bool, Error> {
        // The parent first: `Dir::parent_and_name` returns it, and `..` leads to it only while the
        // child is open.
        self.reopen_parent()?;
        self.leave_shared_level()?;
        if self.cursor.stack.top().open_dir().is_none() {
            self.pop_level();
            return Ok(false);
        }
        let work = &mut self.cursor.stack.top_mut().remaining;
        work.is_second_visit = true;
        work.next_start = work.names_start;
        // Names that were split off may still be there.
        self.subdirs.pending.truncate(work.names_start);
        let path_end = self.cursor.stack.top().bounds.path_end;
        self.cursor.path.truncate_to(path_end);
        Ok(true)
    }

    /// Gives up the current level if this thread shares it. While others are at the level or below
    /// it, the level is lost to this thread. If this thread is the last one there, and its part
    /// began there, pushes the level's parent.
    fn leave_shared_level(&mut self) -> Result<(), Error> {
        let is_bottom = self.cursor.stack.levels.len() == 1;
        let top = &mut self.cursor.stack.top_mut().remaining;
        // Cloned first: if it panics, nothing is lost.
        let parent_state =
            top.shared.as_ref().filter(|_| is_bottom).and_then(|shared| shared.parent_state());
        // Taken, so it is given up only once: if a panic or an error comes after this, this is
        // called again.
        let Some(shared) = top.shared.take() else { return Ok(()) };
        let Some(mut shared) = Arc::into_inner(shared) else {
            self.cursor.stack.lose_top();
            return Ok(());
        };
        // The shared level held its parent. Now this thread holds the parent, and gives it up in
        // turn when it leaves that level.
        if let Some((parent, state)) = shared.parent.take().zip(parent_state) {
            let level = parent.level;
            let work = LevelWork { shared: Some(parent), ..LevelWork::new(0, state) };
            self.cursor.insert_level_above(level, work);
        }
        let result = self.reopen_parent();
        if shared.is_lost.load(Relaxed) {
            // Last: reopening the parent needs the descriptor of this level for `..`.
            self.cursor.stack.lose_top();
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use std::fs::create_dir_all;

    /// A caller has left a directory after `skip_subdirs`, and another one all entries of `b`.
    #[test]
    #[cfg_attr(miri, ignore = "reads a directory")]
    fn replaced_part_keeps_no_entries() {
        let made = tempfile::tempdir().unwrap();
        for name in ["a/1", "a/2", "a/3", "b/4"] {
            create_dir_all(made.path().join(name)).unwrap();
        }
        let [mut left, mut other] =
            ["a", "b"].map(|name| crate::walk_dirs(made.path().join(name)).unwrap());
        let mut dir = left.next().unwrap().unwrap();
        dir.next().unwrap();
        dir.skip_subdirs();
        let mut dir = other.next().unwrap().unwrap();
        while dir.next().unwrap().is_some() {}
        left.part.replace_with(other.part);
        assert_eq!(left.next().unwrap().unwrap().path(), made.path().join("b/4"));
        assert!(left.next().unwrap().is_none(), "an entry of `a` is pending below `b`");
    }
}
