//! `Batch`: the entries of the current directory that were read, and what comes after them. It
//! outlives the `Dir`, so that the walk goes on where the caller stopped.
//!
//! ```text
//! listing   adduser apt bash | curl dash   what was read
//!           passed           remaining
//! ```
//!
//! The entries that were passed are noted in `Subdirs` when the batch is used up, and before, once
//! the caller has queried one of them or requested something.

use super::dir_entry::DirEntry;
use super::subdirs::Subdirs;
use crate::cursor::entry_state::EntryUpdates;
use crate::cursor::options::Options;
use crate::error::Error;
use crate::listing::{Listing, MAX_STREAM_BATCH, Order, Source};
use crate::open::{open_again, rewind};
use crate::read_dir::buffer::Buffer;
use crate::read_dir::entry::Directory;
use crate::read_dir::mount::Mount;
use crate::read_dir::records::Phase;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use std::mem;

/// The entries of the current directory that were read together, in memory that the next batch
/// reuses.
pub(crate) struct Batch {
    /// The entries, and the phase of reading after them.
    listing: Listing,
    /// The index of the first entry that remains. It is 0 before the first batch.
    next: usize,
    /// The index of the first entry that was not noted.
    noted_end: usize,
    /// The updates of the entry that was passed last.
    pub(crate) updates: EntryUpdates,
    /// The number of bytes that a batch takes.
    pub(crate) capacity: usize,
}

impl Batch {
    /// Creates a batch of so many bytes of records, but at least and at most those of a [`Buffer`].
    /// It allocates nothing before it reads.
    pub(crate) fn with_capacity(bytes: usize, options: &Options) -> Self {
        let listing = options.listing(Order::Unsorted);
        let (updates, capacity) = (EntryUpdates::default(), Buffer::clamp(bytes));
        Self { listing, next: 0, noted_end: 0, updates, capacity }
    }

    /// Begins a directory in this phase.
    #[inline]
    pub(crate) fn begin(&mut self, phase: Phase) {
        self.listing.clear();
        self.listing.phase = phase;
        (self.next, self.noted_end) = (0, 0);
    }

    /// Advances to the next entry, for which it reads the next batch if this one is used up.
    /// Returns `false` at the end, and an error once.
    #[inline(always)]
    pub(crate) fn advance(
        &mut self,
        directory: Directory<'_>,
        mount: Mount,
        subdirs: &mut Subdirs,
    ) -> Result<bool, Error> {
        if !self.updates.is_empty() {
            self.note(directory.fd, subdirs);
        }
        while self.next == self.listing.len() {
            if self.noted_end < self.next {
                self.note(directory.fd, subdirs);
            }
            let phase = self.listing.phase;
            if !phase.is_reading() {
                let end = self.listing.phase.take_error();
                return end.map(|()| false).map_err(|errno| directory.error(errno));
            }
            if phase == Phase::Fresh {
                mount.move_fixed_end(directory.fd);
            }
            // Keep the system call in the caller's frame: after a system call, returning from an
            // outer frame mispredicts.
            self.begin(phase);
            let source = Source::in_parts(directory.fd, mount);
            // A reply with metadata brings few names.
            let is_large = self.listing.has_metadata && phase == Phase::Reading;
            let least = if is_large { MAX_STREAM_BATCH } else { 0 };
            self.listing.fill_batch(source, self.capacity.max(least), phase);
            if self.listing.phase == Phase::Empty {
                self.read_again(source);
            }
        }
        self.next += 1;
        Ok(true)
    }

    /// Reads the first batch once more, because it was empty: the caller may have read the
    /// descriptor to its end. If the directory is empty, this changes nothing.
    #[cold]
    #[inline(never)]
    fn read_again(&mut self, source: Source<'_>) {
        if rewind(source.dir).is_ok() {
            self.listing.fill_batch(source, self.capacity, Phase::Fresh);
        }
    }

    /// Returns the entry that [`advance`](Self::advance) has set.
    #[inline(always)]
    pub(crate) fn entry<'e>(&'e self, directory: Directory<'e>) -> DirEntry<'e> {
        let entry = self.listing.get(self.next - 1).expect("BUG: no entry was yielded");
        DirEntry::new(entry.record(), directory, &self.updates)
    }

    /// Notes the entries that were passed. The updates are about the last of them.
    #[inline(never)] // In the frame that reads a directory, registers are scarce.
    pub(crate) fn note(&mut self, dir: BorrowedFd<'_>, subdirs: &mut Subdirs) {
        for index in mem::replace(&mut self.noted_end, self.next)..self.next {
            let entry = self.listing.get(index).expect("BUG: an entry is missing");
            let noted = subdirs.note(entry, |state| {
                let is_last = index + 1 == self.next;
                let state = if is_last { self.updates.apply_to(state) } else { state };
                state.resolve(dir, entry.name_cstr())
            });
            if noted.is_err() {
                self.listing.phase = Phase::Failed(Errno::NOMEM);
            }
        }
        self.updates.clear();
    }

    /// Reads the whole directory into `listing`, through another descriptor if reading has begun,
    /// and notes its entries in place of those that were passed. Then nothing remains here.
    #[inline(always)]
    pub(crate) fn read_whole(
        &mut self,
        listing: &mut Listing,
        directory: Directory<'_>,
        mount: Mount,
        subdirs: &mut Subdirs,
    ) -> Result<(), Error> {
        listing.clear();
        let again = match self.listing.phase {
            Phase::Empty => return Ok(()),
            Phase::Fresh => {
                mount.move_fixed_end(directory.fd);
                Ok(None)
            }
            Phase::Failed(errno) => Err(errno),
            _ => open_again(directory.fd),
        };
        let again = again.map_err(|errno| {
            _ = self.listing.phase.take_error();
            directory.error(errno)
        })?;
        let fd = again.as_ref().map_or(directory.fd, AsFd::as_fd);
        let source = Source::whole(fd, mount, subdirs.can_enter());
        listing.is_on_one_mount = self.listing.is_on_one_mount;
        let read = listing.read_known(directory, source);
        listing.is_on_one_mount = false; // it is the caller's
        self.begin(listing.phase);
        self.updates.clear();
        subdirs.forget_passed();
        let noted = listing.iter().map(|entry| subdirs.note(entry, |state| state));
        let noted = noted.fold(Ok(()), Result::and).map_err(|error| directory.error(error));
        read.and(noted)
    }

    /// Returns `true` if nothing remains to be yielded, noted or reported.
    #[inline]
    pub(crate) fn is_finished(&self) -> bool {
        let phase = self.listing.phase;
        let is_ended = !phase.is_reading() && !matches!(phase, Phase::Failed(_));
        is_ended && self.noted_end == self.listing.len()
    }

    /// Returns `true` if the directory no longer exists.
    pub(crate) fn is_removed(&self) -> bool {
        self.listing.is_removed()
    }
}
