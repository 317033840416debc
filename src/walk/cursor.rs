//! `Cursor`: where a thread is in a walk, with the memory that it reads into. It goes from directory to directory and lends them.

use super::dir::Dir;
use super::levels::{Levels, Step};
use super::pending::Pending;
use super::unread::{Tell, Unread};
use crate::buffer::Buffer;
use crate::error::Error;
use std::{io, mem};

#[derive(Debug)]
pub(super) struct Cursor<S> {
    buffer: Buffer,
    pub(super) levels: Levels<S>,
}

impl<S> Cursor<S> {
    pub(super) fn new(levels: Levels<S>) -> Self {
        Self { buffer: Buffer::new(), levels }
    }

    /// Whether the caller has stopped the walk, or something of the current directory is unread: [`finish`](Self::finish) comes
    /// first.
    #[inline]
    pub(super) fn is_unfinished(&self) -> bool {
        !matches!(self.levels.notes.unread, Unread::Nothing)
    }

    pub(super) fn is_stopped(&self) -> bool {
        matches!(self.levels.notes.unread, Unread::Stopped)
    }

    #[inline(always)]
    pub(super) fn lend(&mut self) -> Dir<'_, S> {
        Dir::lend(&mut self.levels, &mut self.buffer)
    }
}

impl<S: Clone> Cursor<S> {
    /// Reads what is unread of the current directory.
    #[cold]
    pub(super) fn finish(&mut self) -> Result<(), Error> {
        match mem::replace(&mut self.levels.notes.unread, Unread::Nothing) {
            Unread::Stopped => self.levels.clear(),
            Unread::Rest => {
                // Read from the start: a cookie may lead elsewhere. What was noted before keeps its mark, and comes once.
                let noted = if self.levels.notes.is_untouched() { Pending::default() } else { self.levels.rewind()? };
                self.lend().read_for_directories(&noted)?;
            }
            Unread::OutOfMemory => return Err(self.levels.error(io::ErrorKind::OutOfMemory)),
            Unread::Refused { errno, tell: Tell::Always } => return Err(self.levels.error(errno)),
            Unread::Nothing | Unread::Refused { .. } => {}
        }
        Ok(())
    }

    /// Goes to the next directory. Returns whether there is one.
    #[inline(always)]
    pub(super) fn advance(&mut self) -> Result<bool, Error> {
        loop {
            match self.levels.step()? {
                Step::Lend => return Ok(true),
                Step::More => {}
                Step::Done => return Ok(false),
            }
        }
    }
}
