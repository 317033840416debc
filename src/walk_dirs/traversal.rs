//! `Traversal`, `Step`: what one thread of a `WalkDirs` has still to do in a tree, and the next step that it takes there.
//!
//! ```text
//! roots     the trees to do after this one     /var
//! stack     the levels with something to do    /usr           share         doc
//! pending   their names still to do            lib sbin src   icons man     adduser apt bash
//! path      of the name gone to last           /usr/share/doc
//! ```
//!
//! A level stays on the stack while it has names pending, and with second visits until its own. The traversal does not know how a
//! directory is opened or found again ([`cursor`](crate::cursor)), nor what is read from it ([`dir`](crate::walk_dirs::dir)).
//!
//! What a call of `WalkDirs::next` or `Worker::next` does, in this order, and where:
//!
//! ```text
//! finish  reads the entries that were not lent, in case they are directories       lender, dir
//! settle  decides which of the names that were noted are entered                   choices
//! share   splits off a part of the names for each thread that waits                split, work_queue
//! step    takes the next name that is pending:                                     pending
//!           opens that directory, and puts its level on the stack                  cursor, opener, links, stack
//!         or, when none is pending at the current level:
//!           finds the level above again, if that was closed                        cursor, reopen
//!           makes the second visit, or leaves it to other threads                  shared_level
//!           goes up, or on to the next root                                        stack, roots
//! lend    lends the directory, to be read                                          dir
//! ```

use super::choices::Choices;
use super::pending::{Item, Pending};
use super::shared_level::SharedLevel;
use crate::cursor::Cursor;
use crate::cursor::options::Options;
use crate::error::Error;
use crate::read_dir::entry_state::EntryUpdates;
use crate::sync::Arc;

pub(crate) struct Traversal<S> {
    pub(crate) cursor: Cursor<Todo<S>>,
    pub(crate) second_visits: bool,
    /// What each root begins with.
    pub(crate) root_state: S,
    pub(crate) choices: Choices,
    /// About the entry that was lent last.
    pub(crate) updates: EntryUpdates,
}

/// What is left to do at a level.
pub(crate) struct Todo<S> {
    pub(crate) visit: Visit,
    /// Where its names begin in [`Pending`].
    pub(crate) names_at: usize,
    /// Where the first of them still to do begins.
    pub(crate) next_at: usize,
    /// `Some` if several threads walk it.
    pub(crate) shared: Option<Arc<SharedLevel<S>>>,
    /// The caller's.
    pub(crate) state: S,
}

/// The visits of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visit {
    /// The walk does not come back to it once its names are done.
    Only,
    /// It does.
    First,
    /// It has.
    Second,
}

/// What a step came to.
pub(crate) enum Step {
    /// There is a directory to lend, for its first visit or its second.
    Lend,
    /// There is another step to take.
    More,
    /// Nothing is left.
    Done,
}

impl<S> Todo<S> {
    /// Of a directory that is opened.
    #[inline]
    fn new(second_visits: bool, names_at: usize, state: S) -> Self {
        let visit = if second_visits { Visit::First } else { Visit::Only };
        Self { visit, names_at, next_at: names_at, shared: None, state }
    }
}

impl<S> Traversal<S> {
    /// No levels, and no roots.
    pub(crate) fn new(options: Options, second_visits: bool, root_state: S) -> Self {
        let (cursor, choices, updates) =
            (Cursor::new(options), Choices::default(), EntryUpdates::default());
        Self { cursor, second_visits, root_state, choices, updates }
    }

    /// The same, for another thread.
    pub(crate) fn without_work(&self, root_state: S) -> Self {
        Self::new(*self.cursor.options(), self.second_visits, root_state)
    }

    /// Abandons what is left.
    pub(crate) fn clear(&mut self) {
        self.choices.clear();
        self.updates.take();
        self.cursor.clear(); // last: a state may panic
    }

    /// Whether there is something to do in the current directory before the next step.
    #[inline]
    pub(crate) fn is_unfinished(&self) -> bool {
        self.choices.is_unread() || self.choices.is_unsettled() || !self.updates.is_empty()
    }

    /// Closes the current directory.
    #[inline]
    fn pop(&mut self) {
        let remaining = self.cursor.pop();
        self.choices.pending.truncate(remaining.names_at);
    }

    /// What holds between two steps.
    fn check(&self) {
        self.cursor.check();
        let (levels, names) = (self.cursor.levels(), self.choices.pending.len());
        let Some(top) = levels.last() else {
            return assert_eq!(names, 0, "nothing is pending, but there are names");
        };
        let Todo { names_at, next_at, .. } = top.remaining;
        assert!(names_at <= next_at && next_at <= names, "the top's next name is elsewhere");
        if let [.., above, _] = levels {
            assert!(
                above.remaining.next_at <= names_at,
                "a level's names do not come after those of the one above"
            );
        }
    }
}

impl<S: Clone> Traversal<S> {
    /// Opens the next directory, or takes a step towards it.
    #[inline(always)]
    pub(crate) fn step(&mut self) -> Result<Step, Error> {
        if cfg!(debug_assertions) {
            self.check();
        }
        let Some(top) = self.cursor.levels().last() else { return self.open_root() };
        if top.remaining.next_at < self.choices.pending.len() {
            self.descend()
        } else if top.remaining.visit == Visit::First {
            self.visit_again()
        } else if self.cursor.is_level_above_closed() {
            self.reopen_level_above().map(|()| Step::More)
        } else {
            self.pop();
            Ok(Step::More)
        }
    }

    #[cold]
    fn open_root(&mut self) -> Result<Step, Error> {
        if !self.cursor.has_roots() {
            self.cursor.clear(); // closes the parent of the last root
            return Ok(Step::Done);
        }
        let remaining = Todo::new(self.second_visits, 0, self.root_state.clone()); // first: if it panics, nothing is lost
        self.cursor.open_root(remaining, &mut || false).map(|_| Step::Lend)
    }

    /// Opens the first directory that is pending in the current one.
    #[inline(always)]
    fn descend(&mut self) -> Result<Step, Error> {
        let Self { cursor, second_visits, choices, .. } = self;
        let pending = &mut choices.pending;
        let Item { state, name, end } = pending.at(cursor.top().remaining.next_at);
        cursor.set_name(name.to_bytes_with_nul());
        // The name stays pending until the directory is open and on the stack: whatever panics on the way, it is not lost.
        let child = match cursor.open(state, name, &mut || false) {
            Ok(Some(child)) => child,
            none => {
                Self::done(cursor.remaining_mut(), pending, end);
                return none.map(|_| Step::More);
            }
        };
        let top = &cursor.top().remaining;
        // If it is the last child, it inherits the state. Not if the walk comes back for a second visit.
        if end == pending.len() && top.visit == Visit::Only && cursor.can_replace_top() {
            pending.truncate(top.names_at);
            let remaining = cursor.replace_top(child);
            remaining.next_at = remaining.names_at;
        } else {
            let state = top.state.clone(); // first: if it panics, nothing is lost
            Self::done(cursor.remaining_mut(), pending, end);
            let remaining = Todo::new(*second_visits, pending.len(), state);
            cursor.push(child, remaining);
        }
        Ok(Step::Lend)
    }

    /// The first item that is pending at `level`, which ends at `end`, is done.
    #[inline]
    fn done(level: &mut Todo<S>, pending: &mut Pending, end: usize) {
        level.next_at = pending.drop_done(level.names_at, end);
    }

    /// The current directory is done: reopens the level right above it. If that is lost, its names cannot be opened any more, and
    /// those of the current directory are done.
    fn reopen_level_above(&mut self) -> Result<(), Error> {
        let Self { cursor, choices, .. } = self;
        let lose = |[above, top]: [&mut Todo<S>; 2]| {
            let names_at = above.names_at;
            choices.pending.truncate(names_at);
            (above.next_at, top.names_at, top.next_at) = (names_at, names_at, names_at);
            above.shared.as_ref().is_none_or(|shared| shared.lose())
        };
        cursor.reopen_level_above(lose, &mut || false)
    }

    /// The current directory is done for its first visit: makes it ready for its second one, with its parent open. If other
    /// threads are still below it, the visit is theirs. A lost level has none.
    #[cold]
    fn visit_again(&mut self) -> Result<Step, Error> {
        // The parent first: `Dir::parent_and_name` lends it, and `..` leads to it only while the child is open.
        if self.cursor.is_level_above_closed() {
            self.reopen_level_above()?;
        }
        self.leave_shared()?;
        if self.cursor.top().open_dir().is_none() {
            self.pop();
            return Ok(Step::More);
        }
        let remaining = self.cursor.remaining_mut();
        // Names that were split off may still be there.
        (remaining.visit, remaining.next_at) = (Visit::Second, remaining.names_at);
        self.choices.pending.truncate(remaining.names_at);
        self.cursor.reset_path();
        Ok(Step::Lend)
    }

    /// Gives up the current level if this thread shares it. As long as others are at the level or below it, it is lost to this
    /// one. If this thread is the last and came to it from another one, the level above is put on the stack.
    fn leave_shared(&mut self) -> Result<(), Error> {
        let is_first = self.cursor.levels().len() == 1;
        let top = self.cursor.remaining_mut();
        // Cloned first: if it panics, nothing is lost.
        let state_above =
            top.shared.as_ref().filter(|_| is_first).and_then(|shared| shared.state_above());
        // Taken, so it is given up only once: if a panic or an error comes after this, this is called again.
        let Some(shared) = top.shared.take() else { return Ok(()) };
        let Some(mut last) = Arc::into_inner(shared) else {
            self.cursor.lose_top();
            return Ok(());
        };
        // The shared level held its parent. Now this thread holds the parent, and gives it up in turn when it is done there.
        let above = last.above.take().zip(state_above);
        let came_up = above.map_or(Ok(()), |(above, state)| self.come_up(above, state));
        if last.is_lost() {
            self.cursor.lose_top(); // only now: until here, `..` began there
        }
        came_up
    }

    /// Puts `level`, which is above the base, on the stack. A level that cannot be found is lost, as in
    /// [`reopen_level_above`](Self::reopen_level_above).
    fn come_up(&mut self, level: Arc<SharedLevel<S>>, state: S) -> Result<(), Error> {
        let shared = Arc::clone(&level);
        let remaining =
            Todo { visit: Visit::First, names_at: 0, next_at: 0, shared: Some(level), state };
        self.cursor.insert_level_above(
            shared.level,
            || shared.path_by_names(),
            remaining,
            || shared.lose(),
        )
    }
}
