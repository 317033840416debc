//! `Cursor`: where a thread is in a walk, with the memory that it reads into. It goes from directory to directory and lends them.

use super::dir::Dir;
use super::notes::{Report, Unfinished};
use super::traversal::{Step, Traversal};
use crate::buffer::Buffer;
use crate::error::Error;
use std::mem;

pub(super) struct Cursor<S> {
    buffer: Buffer,
    pub(super) traversal: Traversal<S>,
}

impl<S> Cursor<S> {
    pub(super) fn new(traversal: Traversal<S>) -> Self {
        Self { buffer: Buffer::new(), traversal }
    }

    /// Whether [`finish`](Self::finish) comes before the next directory.
    #[inline]
    pub(super) fn is_unfinished(&self) -> bool {
        !matches!(self.traversal.notes.unfinished, Unfinished::Nothing)
    }

    #[inline(always)]
    pub(super) fn lend(&mut self) -> Dir<'_, S> {
        Dir::lend(&mut self.traversal, &mut self.buffer)
    }
}

impl<S: Clone> Cursor<S> {
    /// Does what is [`Unfinished`] in the current directory.
    #[cold]
    pub(super) fn finish(&mut self) -> Result<(), Error> {
        match mem::replace(&mut self.traversal.notes.unfinished, Unfinished::Nothing) {
            Unfinished::Rest => {
                // From the start, because a cookie may lead elsewhere. Names noted before keep what the caller said of them.
                let read = self.lend().read_again();
                self.traversal.notes.unfinished.finish(); // if it cannot be rewound, it is not tried again
                read?;
            }
            Unfinished::Unreadable { errno, report: Report::Due } => return Err(self.traversal.error(errno)),
            Unfinished::Nothing | Unfinished::Unreadable { .. } => {}
        }
        Ok(())
    }

    /// Goes to the next directory. Returns whether there is one.
    #[inline(always)]
    pub(super) fn advance(&mut self) -> Result<bool, Error> {
        loop {
            match self.traversal.step()? {
                Step::Lend => return Ok(true),
                Step::More => {}
                Step::Done => return Ok(false),
            }
        }
    }
}
