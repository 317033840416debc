//! `Cursor`: where a thread is in a walk, with the memory that it reads into. It goes from directory to directory and lends them.

use super::dir::Dir;
use super::notes::Rest;
use super::traversal::{Step, Traversal};
use crate::buffer::Buffer;
use crate::error::Error;

pub(super) struct Cursor<S> {
    buffer: Buffer,
    pub(super) traversal: Traversal<S>,
}

impl<S> Cursor<S> {
    pub(super) fn new(traversal: Traversal<S>) -> Self {
        Self { buffer: Buffer::new(), traversal }
    }

    #[inline(always)]
    pub(super) fn lend(&mut self) -> Dir<'_, S> {
        Dir::lend(&mut self.traversal, &mut self.buffer)
    }
}

impl<S: Clone> Cursor<S> {
    /// Reads what is [owed](Rest::Owed) of the current directory, and settles which of its names are entered. After an error, the
    /// notes may still be unfinished, and this is called again.
    #[cold]
    pub(super) fn complete(&mut self) -> Result<(), Error> {
        let notes = &mut self.traversal.notes;
        if notes.rest == Rest::Owed {
            if let Some(errno) = notes.done() {
                return Err(self.traversal.error(errno));
            }
            // From the first entry on, because a cookie may lead elsewhere.
            let has_lent = notes.has_lent();
            let read = self.lend().read_again(has_lent);
            self.traversal.notes.rest = Rest::Done; // if it cannot be read, it is not tried again
            read?;
        }
        self.traversal.settle();
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
