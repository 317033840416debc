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
use crate::error::Error;
use crate::listing::{Listing, Order, Source};
use crate::read_dir::buffer::Buffer;
use crate::read_dir::end_marker::EndMarker;
use crate::read_dir::entry::{Directory, Record};
use crate::read_dir::records::Phase;
use rustix::fd::BorrowedFd;
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
    /// The error that comes after the entries.
    error: Option<Errno>,
    /// The number of bytes that a batch takes.
    capacity: usize,
}

impl Batch {
    /// Creates a batch of so many bytes, but at least and at most those of a [`Buffer`]. It
    /// allocates nothing before it reads.
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        let mut listing = Listing::with_order(Order::Unsorted);
        listing.clear(); // its phase is the end
        Self {
            listing,
            next: 0,
            noted_end: 0,
            updates: EntryUpdates::default(),
            error: None,
            capacity: Buffer::clamp(bytes),
        }
    }

    /// Creates an empty batch of the same size.
    pub(crate) fn another(&self) -> Self {
        Self::with_capacity(self.capacity)
    }

    /// Begins a directory, of which nothing is read unless it `has_entries`. If it cannot be read,
    /// `unreadable` is the reason.
    #[inline]
    pub(crate) fn begin(&mut self, has_entries: bool, unreadable: Option<Errno>) {
        self.clear();
        self.error = unreadable.filter(|_| has_entries);
        if has_entries && self.error.is_none() {
            self.listing.phase = Phase::Reading;
        }
    }

    #[inline]
    fn clear(&mut self) {
        self.listing.clear();
        (self.next, self.noted_end) = (0, 0);
    }

    /// Advances to the next entry, for which it reads the next batch if this one is used up.
    /// Returns `false` at the end, and an error once.
    #[inline(always)]
    pub(crate) fn advance(
        &mut self,
        directory: Directory<'_>,
        end_marker: EndMarker,
        subdirs: &mut Subdirs,
    ) -> Result<bool, Error> {
        if !self.updates.is_empty() {
            self.note(directory.fd, subdirs);
        }
        while self.next == self.listing.len() {
            if self.noted_end < self.next {
                self.note(directory.fd, subdirs);
            }
            if self.listing.phase != Phase::Reading {
                return self.error.take().map_or(Ok(false), |errno| Err(directory.error(errno)));
            }
            if self.next == 0 {
                end_marker.move_fixed_end(directory.fd);
            } else {
                self.clear();
            }
            // Keep the system call in the caller's frame: after a system call, returning from an
            // outer frame mispredicts.
            let source = Source::in_parts(directory.fd, end_marker);
            if let Err(error) = self.listing.read_part(source, self.capacity) {
                self.error = Some(Errno::from_io_error(&error).unwrap_or(Errno::NOMEM));
                self.listing.phase = Phase::Ended;
            }
        }
        self.next += 1;
        Ok(true)
    }

    /// Returns the entry that [`advance`](Self::advance) has set.
    #[inline(always)]
    pub(crate) fn entry<'e>(&'e self, directory: Directory<'e>) -> DirEntry<'e> {
        let record = Record::Kept { bytes: self.listing.record(self.next - 1), statx: None };
        DirEntry::new(record, directory, &self.updates)
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
                self.error = Some(Errno::NOMEM); // the walk does not enter the entry
            }
        }
        self.updates.clear();
    }

    /// Reads what remains of the directory into `listing`. Then nothing remains here.
    #[inline(always)]
    pub(crate) fn read_rest(
        &mut self,
        listing: &mut Listing,
        directory: Directory<'_>,
        end_marker: EndMarker,
        enters: bool,
    ) -> Result<(), Error> {
        if self.next == 0 && self.listing.phase == Phase::Reading {
            end_marker.move_fixed_end(directory.fd);
        }
        let source = Source::whole(directory.fd, end_marker, enters);
        let read = listing.read_rest(directory, source, &self.listing, self.next);
        self.clear();
        self.listing.phase = listing.phase;
        self.error.take().map_or(Ok(()), |errno| Err(directory.error(errno))).and(read)
    }

    /// Returns `true` if nothing remains to be yielded, noted or reported.
    #[inline]
    pub(crate) fn is_finished(&self) -> bool {
        self.noted_end == self.listing.len()
            && self.listing.phase != Phase::Reading
            && self.error.is_none()
    }

    /// Returns `true` if the directory no longer exists.
    pub(crate) fn is_removed(&self) -> bool {
        self.listing.is_removed()
    }
}
