//! `Lender`: where a thread is in a walk, the buffer that it reads into, and the loop from directory to directory. `WalkDirs::next`
//! and `Worker::next` both run this loop. It does not know which directory is next, nor what a part of the work is.

use super::dir::Dir;
use super::parallel::work_queue::{Others, WorkQueue};
use super::traversal::{Step, Traversal};
use crate::error::Error;
use crate::read_dir::buffer::Buffer;
use crate::read_dir::records::Phase;

pub(crate) struct Lender<S> {
    buffer: Buffer,
    pub(crate) traversal: Traversal<S>,
}

impl<S> Lender<S> {
    pub(crate) fn new(traversal: Traversal<S>, buffer_capacity: usize) -> Self {
        Self { buffer: Buffer::with_capacity(buffer_capacity), traversal }
    }

    pub(crate) fn buffer_capacity(&self) -> usize {
        self.buffer.capacity()
    }

    #[inline(always)]
    pub(crate) fn lend(&mut self) -> Dir<'_, S> {
        Dir::lend(&mut self.traversal, &mut self.buffer)
    }
}

impl<S: Clone> Lender<S> {
    /// Goes to the next directory. Returns whether there is one. The head of [`traversal`](crate::walk_dirs::traversal) says what happens on
    /// the way. `others` are those of a thread of several.
    #[inline(always)]
    pub(crate) fn advance(
        &mut self,
        others: Option<&Others<'_, Traversal<S>>>,
    ) -> Result<bool, Error> {
        let queue = others.map(|others| others.queue);
        loop {
            if self.traversal.is_unfinished() {
                self.finish(queue)?;
            }
            // Between two directories, when all names of the last one have been noted.
            if let Some(others) = others.filter(|others| others.queue.wanted() > 0) {
                self.traversal.split(others);
            }
            loop {
                match self.traversal.step()? {
                    Step::Lend => return Ok(true),
                    Step::More => {}
                    Step::Done => break,
                }
            }
            match queue.and_then(WorkQueue::pop) {
                Some(part) => self.traversal = part,
                None => return Ok(false),
            }
        }
    }

    /// Reads what is left of the current directory, if it is to be read, and settles which of its names are entered. After an error
    /// it may still be unfinished, and this is called again.
    #[cold]
    fn finish(&mut self, queue: Option<&WorkQueue<Traversal<S>>>) -> Result<(), Error> {
        if queue.is_some_and(WorkQueue::is_over) {
            self.traversal.clear();
        }
        let Traversal { cursor, choices, updates, .. } = &mut self.traversal;
        choices.take(updates);
        if choices.is_unread() {
            if let Some(errno) = choices.end_reading() {
                return Err(cursor.error(errno));
            }
            // From the first entry on, because a cookie may lead elsewhere. Before any was lent, it stands there, as far as anybody
            // knows.
            let mut entries = cursor.visit().entries(&mut self.buffer, Phase::Reading);
            entries.rewind().or_else(|error| if choices.has_lent { Err(error) } else { Ok(()) })?;
            choices.begin_again();
            while let Some(entry) = entries.next()? {
                choices.note(&entry);
            }
        }
        self.traversal.choices.settle();
        Ok(())
    }
}
